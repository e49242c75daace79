"""The longest text and the kind of attention that a model's configuration declares."""

from typing import Any

UNBOUNDED = 2**31


def longest_text(config: Any) -> int:
    """How many tokens a model can read."""
    return getattr(config, "max_position_embeddings", None) or UNBOUNDED


def check_attention(config: Any) -> None:
    """Raise `ValueError` unless every layer attends to all that came before."""
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"} or getattr(config, "sliding_window", None):
        raise ValueError(
            f"model: {type(config).__name__} has layers without full attention "
            f"({', '.join(sorted(kinds))}): expected full attention, whose cache can be cropped"
        )
