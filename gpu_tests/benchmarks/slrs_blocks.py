"""Expected tokens of an iteration by how a drafted text is verified: exact, over toy pairs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import Any, TypeAlias

from specref.algorithms import Step, block_slrs, slem, slrs
from specref.chance import exact_distribution
from specref.pairs import Case, Profile, cases, toy_pairs

Row: TypeAlias = dict[str, Any]
STEPS: Mapping[str, Step] = MappingProxyType(
    {
        "slem": slem.step,
        "bonus": partial(slrs.step, ending="bonus"),
        "residual": slrs.step,
        "block": block_slrs.step,
    }
)


@dataclass(frozen=True)
class Sizes:
    """The pairs, and how long their lookaheads are: profiles of `specref.pairs`."""

    pairs: Profile = "standard"
    lookaheads: Profile = "standard"


def rows(sizes: Sizes) -> Iterator[Row]:
    """By lookahead: cases, the mean of each way, and where each is above the one before it."""
    pairs = [pair for pair in toy_pairs(sizes.pairs) if pair.by_text and not pair.same_vocabulary]
    for lookahead, group in groupby(cases(pairs, sizes.lookaheads), lambda case: case.lookahead):
        found = [lengths(case, STEPS) for case in group]
        yield {"lookahead": lookahead} | compared(found)


def lengths(case: Case, steps: Mapping[str, Step]) -> dict[str, Fraction]:
    """The expected length of a block from each."""
    models = case.pair.target, case.pair.drafter
    return {
        name: _expected(partial(step, *models, case.context, case.lookahead))
        for name, step in steps.items()
    }


def compared(found: Sequence[Mapping[str, Fraction]]) -> Row:
    """Means, and in how many cases each is more and less than the one before it.

    Examples
    --------
    >>> one, two, three = map(Fraction, (1, 2, 3))
    >>> row = compared([{"a": one, "b": three}, {"a": two, "b": two}])
    >>> row["means"], row["more"], row["less"]
    ({'a': 1.5, 'b': 2.5}, {'b': 1}, {'b': 0})
    """
    names = [*found[0]]
    return {
        "cases": len(found),
        "means": {name: float(sum(at[name] for at in found) / len(found)) for name in names},
        "more": {b: sum(at[b] > at[a] for at in found) for a, b in pairwise(names)},
        "less": {b: sum(at[b] < at[a] for at in found) for a, b in pairwise(names)},
    }


def _expected(program: Callable[[Any], tuple[int, ...]]) -> Fraction:
    blocks = exact_distribution(program)
    return sum((Fraction(weight) * len(block) for block, weight in blocks.items()), Fraction(0))
