"""What a model's configuration declares: its longest text, vocabulary and kinds of layers.

A cache can be cropped where every layer keeps the keys and values of all tokens. Layers with a
sliding window are read that way too: the cache is full, and the mask hides what is too old.
"""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedModel

UNBOUNDED = 2**31
MASKED = ("sdpa", "eager")  # what takes a mask of four dimensions
FULL, SLIDING = "full_attention", "sliding_attention"
# Their rotary frequencies change with the longest text of a forward, and with them the law.
GROWING = ("longrope", "dynamic")
# Padding to the right changes the logits before it: rows of unequal length go wrong in any way.
MIXING = ("cpmant",)


def text_config(config: Any) -> Any:
    """The part of a configuration that describes the reading of text."""
    return config.get_text_config(decoder=True) if hasattr(config, "get_text_config") else config


def vocabulary_size(config: Any) -> int:
    """How many tokens a model has logits for, those without a string included."""
    size: int = text_config(config).vocab_size
    return size


def longest_text(config: Any) -> int:
    """How many tokens a model can read, as one model: before its frequencies change."""
    text = text_config(config)
    most: int = getattr(text, "max_position_embeddings", None) or UNBOUNDED
    rope = getattr(text, "rope_parameters", None) or {}
    by_kind = [one for one in rope.values() if isinstance(one, Mapping)]
    for scaling in [rope, *by_kind]:
        if scaling.get("rope_type") in GROWING:
            first: int | None = scaling.get("original_max_position_embeddings")
            most = min(most, first or getattr(text, "original_max_position_embeddings", most))
    return most


def windows(config: Any) -> Mapping[str, int | None]:
    """The kinds of a model's layers, and how many tokens those of a kind attend to, if not all.

    >>> from transformers import Gemma3TextConfig
    >>> windows(Gemma3TextConfig(sliding_window=512))
    {'sliding_attention': 512, 'full_attention': None}
    """
    text = text_config(config)
    kinds = getattr(text, "layer_types", None)
    if not kinds:
        chunked = "chunked_attention" if getattr(text, "attention_chunk_size", None) else FULL
        kinds = [SLIDING if getattr(text, "sliding_window", None) else chunked]
    return {kind: text.sliding_window if kind == SLIDING else None for kind in kinds}


def takes(model: "PreTrainedModel", name: str) -> bool:
    """Whether the forward of a model has a parameter; a wrapper that hides them has all."""
    named = inspect.signature(model.forward).parameters
    return name in named or "input_ids" not in named


def takes_masks(model: "PreTrainedModel") -> bool:
    """Whether a model's attention can be told what each token sees."""
    return text_config(model.config)._attn_implementation in MASKED


def check_cache(name: str, model: "PreTrainedModel", *, trees: bool = False) -> None:
    """Raise `ValueError` unless a model's cache can be cropped, and have holes (or read trees).

    The error calls the model by `name`.
    """
    text, kinds = text_config(model.config), set(windows(model.config))
    others = ", ".join(sorted(kinds - {FULL, SLIDING}))
    local = "local" in (getattr(text, "attention_layers", None) or ())
    reasons = {
        "a state that cannot be taken back": getattr(model, "_is_stateful", False),
        f"layers of {others}": bool(others),
        "attention that counts places in the cache": local or getattr(text, "alibi", False),
        "no position_ids": not takes(model, "position_ids"),
        "no keys and values": not (takes(model, "cache") or takes(model, "past_key_values")),
    }
    for reason, holds in reasons.items():
        if holds:
            raise ValueError(
                f"{name}: {type(model).__name__} has {reason}, so that its cache cannot be "
                "cropped: pass use_cache=False (specref cross-check: --no-cache), which reads "
                "every text again"
            )
    if (trees or SLIDING in kinds) and not takes_masks(model):
        raise ValueError(
            f"{name}: {type(model).__name__} has attention {text._attn_implementation!r}, which "
            f"takes no mask: call set_attn_implementation with {' or '.join(MASKED)}"
        )
