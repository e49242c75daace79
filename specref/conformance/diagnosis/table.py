"""Tables of counted outcomes, with their probability under every hypothesis.

An outcome is a whole block, or one token after a prefix at which the block was still open. The
first is sharper; the second does not depend on when an implementation ends its blocks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from specref.arrays import Floats, Ints
from specref.conformance.diagnosis.laws import ROUNDING, CaseLaws, Law
from specref.conformance.diagnosis.observed import Observed
from specref.vocabulary import Tokens

Basis: TypeAlias = Literal["blocks", "next tokens"]
LEAK = 1e-6
FLAT = ("counts", "case", "node", "leak", "default")
ROWS = ("mass", "arriving", "predicted")


@dataclass(frozen=True, eq=False)
class Table:
    """The observed outcomes on all cases; hypothesis 0 is the clean rule.

    Attributes
    ----------
    counts : ndarray, shape (outcomes,)
    case, node : ndarray of int, shape (outcomes,)
        The case and node of each; probabilities sum to 1 over all outcomes of a node.
    leak : ndarray, shape (outcomes,)
        The law that every hypothesis is mixed with, at a weight of `LEAK`.
    default : ndarray, shape (outcomes,)
        The law at nodes that a hypothesis never reaches.
    mass, arriving : ndarray, shape (hypotheses, outcomes)
        The probability under a hypothesis of the outcome, and of reaching its node.
    predicted : ndarray of bool, shape (hypotheses, cases)
        Where a hypothesis has a law; elsewhere its rows are those of the clean rule.
    """

    counts: Floats
    case: Ints
    node: Ints
    leak: Floats
    default: Floats
    mass: Floats
    arriving: Floats
    predicted: NDArray[np.bool_]

    def law(self, strengths: Floats | float) -> Floats:
        """The probability of each outcome; shape (hypotheses, outcomes).

        Parameters
        ----------
        strengths : ndarray, shape (hypotheses,), or float
            The share of blocks that a bug touches; the others are clean.
        """
        s = np.broadcast_to(strengths, len(self.mass))[:, None]
        mass, arriving = ((1 - s) * x[0] + s * x for x in (self.mass, self.arriving))
        default = np.broadcast_to(self.default, mass.shape).copy()
        share = np.divide(mass, arriving, out=default, where=arriving > ROUNDING)
        return np.asarray((1 - LEAK) * share + LEAK * self.leak)

    def by_case(self, values: Floats) -> Floats:
        """Sum over the outcomes of each case; shape (…, cases)."""
        return np.asarray(values @ self._cases)

    @cached_property
    def _cases(self) -> Floats:
        return np.eye(self.predicted.shape[1])[self.case]


def tabulate(
    observed: Sequence[Observed], laws: Sequence[CaseLaws], names: Sequence[str], basis: Basis
) -> Table:
    """Put the observed outcomes of all cases into one table, with a row for each of `names`."""
    columns = _blocks if basis == "blocks" else _next_tokens
    parts: list[Table] = []
    for index, (case, known) in enumerate(zip(observed, laws, strict=True)):
        rows = [known.clean, *(known.entries.get(name, known.clean) for name in names)]
        predicted = np.array([True, *(name in known.entries for name in names)])
        nodes = sum(len(np.unique(part.node)) for part in parts)
        parts.append(columns(case, rows, predicted[:, None], index, nodes))
    return Table(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in FLAT),
        *(np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ROWS),
    )


def _blocks(
    observed: Observed, rows: list[Law], predicted: NDArray[np.bool_], case: int, nodes: int
) -> Table:
    counts = {block: count for block, count in observed.blocks.items() if count}
    mass = _looked_up(rows, list(counts))
    size = 2 * len(observed.target.vocabulary)
    return Table(
        counts=np.array([*counts.values()], dtype=np.float64),
        case=np.full(len(counts), case),
        node=np.full(len(counts), nodes),
        # Go on with probability 1/2 after each token, and draw it uniformly.
        leak=np.array([float(size) ** -len(block) for block in counts]),
        default=np.zeros(len(counts)),
        mass=mass,
        arriving=np.ones_like(mass),
        predicted=predicted,
    )


def _next_tokens(
    observed: Observed, rows: list[Law], predicted: NDArray[np.bool_], case: int, nodes: int
) -> Table:
    counts = starts({block: count for block, count in observed.blocks.items() if count})
    places, started = [block[:-1] for block in counts], [starts(row) for row in rows]
    index = {prefix: nodes + node for node, prefix in enumerate(dict.fromkeys(places))}
    return Table(
        counts=np.array([*counts.values()]),
        case=np.full(len(counts), case),
        node=np.array([index[prefix] for prefix in places]),
        leak=np.full(len(counts), 1 / len(observed.target.vocabulary)),
        default=np.array([_target_law(observed, block) for block in counts]),
        mass=_looked_up(started, list(counts)),
        arriving=_looked_up([_open(row) for row in started], places),
        predicted=predicted,
    )


def starts(law: Mapping[Tokens, float]) -> Law:
    """{prefix: probability that a block starts with it}, for every prefix but the empty one.

    Examples
    --------
    >>> starts({(0,): 0.5, (0, 1): 0.25, (1,): 0.25})
    {(0,): 0.75, (0, 1): 0.25, (1,): 0.25}
    """
    mass: Law = {}
    for block, probability in law.items():
        for prefix in accumulate((token,) for token in block):
            mass[prefix] = mass.get(prefix, 0.0) + probability
    return mass


def _open(started: Law) -> Law:
    """{prefix: the probability that the block goes on after it}, from `starts`."""
    mass: Law = {}
    for prefix, probability in started.items():
        mass[prefix[:-1]] = mass.get(prefix[:-1], 0.0) + probability
    return mass


def _target_law(observed: Observed, block: Tokens) -> float:
    if observed.target.vocabulary.ends(block[:-1]):
        return 0.0
    return float(observed.target.next_token((*observed.context, *block[:-1]))[block[-1]])


def _looked_up(rows: Sequence[Law], outcomes: Sequence[Tokens]) -> Floats:
    return np.array([[row.get(outcome, 0.0) for outcome in outcomes] for row in rows])
