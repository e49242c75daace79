"""What no check of a contract tries, whatever the seed: the dimensions that lines cannot list."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from specref.conformance.strata.shape import Sized
from specref.conformance.strata.table import (
    FIRST,
    FULL_TREE,
    STEP_STRATA,
    STRATA,
    TEXT_STRATA,
    TREE_STRATA,
)
from specref.conformance.strata.trees import TreeShape
from specref.contracts.sampling import TEXT

LONGEST_TEXT = 48
"""Tokens of the longest texts that an engine is asked for."""


def most(shapes: Iterable[Sized], **words: str) -> str:
    """The largest sizes of some shapes, in words.

    Examples
    --------
    >>> from specref.conformance.strata.shape import Shape
    >>> most([Shape(1_000, 2, 4), Shape(8, 3, 1)], V="tokens", lookahead="drafts")
    'more than 1,000 tokens, 3 drafts'
    """
    every = list(shapes)
    sizes = (f"{max(one.sizes[name] for one in every):,} {word}" for name, word in words.items())
    return f"more than {', '.join(sizes)}"


ROWS = most(
    (shape for one in (*STRATA, FIRST) for shape in one.shapes),
    V="tokens of a vocabulary",
    lookahead="drafts",
    batch="rows",
)
COMPARED = TreeShape(len(FULL_TREE), FULL_TREE, 1).nodes
THREADS = "calls from several threads at once"
SEVERAL = f"texts of several calls beyond {TEXT} tokens"
UNTRIED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "verify": (ROWS, SEVERAL, THREADS),
        "ragged": (ROWS, SEVERAL, "temperatures that no line lists", THREADS),
        "tree": (
            most(
                (shape for one in TREE_STRATA for shape in one.shapes),
                V="tokens of a vocabulary",
                nodes="nodes",
                siblings="siblings",
                depth="levels",
                batch="rows",
            ),
            f"rows of more than {COMPARED} nodes compared with each other",
            "one torch.Generator for several calls",
            "several iterations of a request",
            THREADS,
        ),
        "step": (
            most(
                (shape for one in STEP_STRATA for shape in one.shapes),
                V="tokens of a vocabulary",
                context="tokens of a context",
                lookahead="drafts",
            ),
            THREADS,
        ),
        "generate": (
            most(
                (shape for one in TEXT_STRATA for shape in one.shapes),
                V="tokens of a vocabulary",
                prompt="tokens of a prompt",
                budget="tokens of a text",
            ),
            THREADS,
        ),
        "text": (
            f"more than {LONGEST_TEXT} tokens of a text, {TEXT} without a law by default",
            "prompts, vocabularies and settings but the engine's own",
        ),
    }
)
"""{contract: what is nowhere tried under it}."""
