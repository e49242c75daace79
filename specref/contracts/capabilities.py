"""The capabilities that an implementation claims."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack, get_args

from specref.rules import declarable
from specref.suggestions import did_you_mean
from specref.theory.metrics import METRICS

Dtype: TypeAlias = Literal["float64", "float32", "float16", "bfloat16"]
CAPABILITIES = "specref_capabilities"
CLAIMABLE = "specref_claimable"
CLAIMED = "specref_claimed"
"""Attribute of implementations: the names of what they claim; the rest is by default."""
AS_TEXT = "specref_as_text"
"""Attribute of implementations that are sent numbers as text, which takes a microsecond each."""
FLAGS = (
    "ragged", "one_hot", "seeded", "greedy", "greedy_at_zero", "in_place", "row_seeds", "repeats",
    "empty_trees",
)  # fmt: skip
WORDS: Mapping[str, tuple[str | None, ...]] = MappingProxyType(
    {
        "rule": (None, *declarable()),
        "metric": tuple(METRICS),
        "recovery": (None, "race", "inverse"),
        "dtype": get_args(Dtype),
        "arrays": ("numpy", "torch"),
        "inputs": ("probs", "logits"),
    }
)


@dataclass(frozen=True)
class Capabilities:
    """The claims of an implementation; checks of anything else are not_applicable.

    Attributes
    ----------
    rule : str or None
        The algorithm whose acceptance distribution it claims ("standard", "tli", …; "topdown" or
        "traversal" for trees). None: any lossless rule; acceptance is not judged.
    batch : int or None
        The largest batch it takes; None for any.
    ragged : bool
        Rows of a batch may have different numbers of drafts.
    one_hot : bool
        `draft_probs` may be None.
    seeded : bool
        The same `rng` gives the same blocks.
    recovery : {"race", "inverse", None}
        Which of the random numbers draws the last token: ``race``, or ``final`` by an inverse CDF.
        None: not said, so that blocks are not compared one by one.
    greedy : bool
        It decodes by argmax (temperature 0): a draft is accepted iff it is the argmax of the
        target's row, and each token is an argmax. Blocks and texts are compared one by one, and
        no distribution is asked for.
    greedy_at_zero : bool
        For the contract ``ragged``: requests at temperature 0 are decoded by argmax, as under
        `greedy`, next to requests at other temperatures.
    in_place : bool
        It may change the arrays that it is given; they are copies.
    row_seeds : bool
        What a row gets depends on its own random numbers alone, not on its place in the batch.
    repeats : bool
        Siblings of a tree may repeat: they were drawn with replacement.
    empty_trees : bool
        A row may have a tree without nodes.
    metric : str
        For the contract ``metrics``: which definition of `theory.metrics` it claims to be.
    nan : {"raises", None} or int
        What becomes of a row of NaN among good ones: the call raises, or the row gets this token.
        None: not said, and no such row is given.
    dtype : str
        What probabilities, or logits, are cast to before the call.
    tolerance : float
        Total variation a token that low precision may cost; not held against it.
    arrays : {"numpy", "torch"}
        Whether it is given arrays of NumPy or tensors.
    device : str
        Where its tensors are, as torch names it.
    inputs : {"probs", "logits"}
        Whether it is given probabilities or logits: the logarithm of each probability, -inf for
        0, plus a number for each position that differs between target and draft.
    """

    rule: str | None = None
    batch: int | None = None
    ragged: bool = True
    one_hot: bool = True
    seeded: bool = True
    recovery: Literal["race", "inverse"] | None = None
    greedy: bool = False
    greedy_at_zero: bool = False
    in_place: bool = False
    row_seeds: bool = False
    repeats: bool = True
    empty_trees: bool = True
    metric: str = "acceptance_rate"
    nan: Literal["raises"] | int | None = None
    dtype: Dtype = "float64"
    tolerance: float = 0.0
    arrays: Literal["numpy", "torch"] = "numpy"
    device: str = "cpu"
    inputs: Literal["probs", "logits"] = "probs"

    def __post_init__(self) -> None:
        for name, known in WORDS.items():
            value = getattr(self, name)
            if value not in known:
                raise ValueError(f"{name} = {value!r}: expected one of {known}")
        for name in FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} = {getattr(self, name)!r}: expected True or False")
        whole = isinstance(self.batch, Integral) and not isinstance(self.batch, bool)
        if self.batch is not None and not (whole and self.batch >= 1):
            raise ValueError(f"batch = {self.batch!r}: expected an integer >= 1, or None")
        token = isinstance(self.nan, Integral) and not isinstance(self.nan, bool)
        if self.nan not in (None, "raises") and not (token and int(self.nan) >= 0):
            raise ValueError(f"nan = {self.nan!r}: expected raises, or the id of a token")
        if not isinstance(self.tolerance, Real) or not 0 <= self.tolerance < 1:
            raise ValueError(f"tolerance = {self.tolerance!r}: expected a number in [0, 1)")
        if self.arrays == "numpy" and (self.dtype == "bfloat16" or self.device != "cpu"):
            raise ValueError(
                f"arrays = 'numpy': expected 'torch' for {self.dtype} on {self.device}"
            )


class Claims(TypedDict, total=False):
    """The fields of `Capabilities` as keywords, for type checkers: any of them, and no other."""

    rule: str | None
    batch: int | None
    ragged: bool
    one_hot: bool
    seeded: bool
    recovery: Literal["race", "inverse"] | None
    greedy: bool
    greedy_at_zero: bool
    in_place: bool
    row_seeds: bool
    repeats: bool
    empty_trees: bool
    metric: str
    nan: Literal["raises"] | int | None
    dtype: Dtype
    tolerance: float
    arrays: Literal["numpy", "torch"]
    device: str
    inputs: Literal["probs", "logits"]


F = TypeVar("F", bound=Callable[..., Any])


def capable(**claims: Unpack[Claims]) -> Callable[[F], F]:
    """Decorate an implementation with what it claims, the fields of `Capabilities`.

    Examples
    --------
    >>> @capable(rule="standard", ragged=False)
    ... def verify(target_probs, draft_probs, draft_tokens, *, rng): ...
    >>> capabilities_of(verify).ragged
    False
    """
    record = Capabilities(**claims)

    def decorate(function: F) -> F:
        setattr(function, CAPABILITIES, record)
        setattr(function, CLAIMED, frozenset(claims))
        return function

    return decorate


def capabilities_of(implementation: Callable[..., Any], **claims: Unpack[Claims]) -> Capabilities:
    """The record of an implementation, with some claims overridden."""
    names = {field.name for field in fields(Capabilities)}
    for name in claims.keys() - names:
        hint = did_you_mean(name, names)
        raise TypeError(
            f"claim {name!r} is unknown: expected one of {', '.join(sorted(names))}{hint}"
        )
    record = getattr(implementation, CAPABILITIES, Capabilities())
    if not isinstance(record, Capabilities):
        raise TypeError(f"{CAPABILITIES} = {record!r}: expected Capabilities (see `capable`)")
    possible = getattr(implementation, CLAIMABLE, names)
    for name, value in claims.items():
        if name not in possible and value != getattr(record, name):
            raise TypeError(
                f"claim {name!r} is none of {implementation!r}: expected one of "
                f"{', '.join(sorted(possible))}"
            )
    return replace(record, **claims)


def explicit_claims(implementation: Callable[..., Any], claims: Iterable[str]) -> frozenset[str]:
    """The names of what is claimed, by an implementation or for it, and not only by default."""
    return frozenset(claims) | getattr(implementation, CLAIMED, frozenset())
