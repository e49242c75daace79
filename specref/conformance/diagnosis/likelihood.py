"""Likelihoods of hypotheses, fitted strengths, and a test of fit that holds for every size.

An outcome is a whole block, or one token after a prefix at which the block was still open. The
first is sharper; the second does not depend on when an implementation ends its blocks.

Fit is judged by universal inference (Wasserman, Ramdas and Balakrishnan 2020,
arXiv:1912.11436). Q, a mixture chosen before the data, is weighed against a hypothesis: on each
case alone, and on all of them together. Under the true law each of these ratios has a mean of at
most 1, and so has their average, which therefore reaches 1/alpha with probability at most alpha.
A misfit on one of C cases counts as much as on all, but for a factor of C + 1. Where a strength
is fitted, the average is that at the strength where it is least, so at most that at the true one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from typing import Literal, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from specref.arrays import Floats, Ints
from specref.conformance.diagnosis.laws import ROUNDING, CaseLaws, Law, Observed
from specref.statistics.campaign.least import Cells, off_by
from specref.vocabulary import Tokens

Basis: TypeAlias = Literal["blocks", "next tokens"]
LEAK = 1e-6
FLAT = ("counts", "case", "node", "leak", "default")
ROWS = ("mass", "arriving", "predicted")


@dataclass(frozen=True, eq=False)
class Table:
    """The observed outcomes on all cases; hypothesis 0 is the clean rule.

    * `case`, `node`: The case and node of each; probabilities sum to 1 over all outcomes of a
      node.
    * `leak`: The law that every hypothesis is mixed with, at a weight of `LEAK`.
    * `default`: The law at nodes that a hypothesis never reaches.
    * `mass`, `arriving`: The probability under a hypothesis of the outcome, and of reaching its
      node.
    * `predicted`: Where a hypothesis has a law; elsewhere its rows are those of the clean rule.
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

        `strengths`: the shares of blocks that a bug touches; the others are clean.
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
    """{prefix: probability that a block starts with it}, for every prefix but the empty one."""
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


WEAKEST = 0.01
STRENGTHS = np.geomspace(WEAKEST, 1, 25)
ZOOMS = 3
SAME = 1e-9
MIXED_STRENGTHS = (1.0, 0.3, 0.1)
CONCENTRATIONS = (1e1, 1e2, 1e3, 1e4, 1e5)


@dataclass(frozen=True, eq=False)
class Likelihoods:
    """The likelihoods of hypotheses; natural logarithms, arrays of shape (hypotheses,).

    * `strength`: 1, or the fitted share of blocks that the bug touches.
    * `score`: The log-likelihood at that strength. A fitted one pays log(blocks) / 2, as in the
      Bayesian information criterion. On cases where a hypothesis has no law, it is given Q's.
    * `whole`: The logarithm of the evidence against a hypothesis that touches every block, over
      the cases where there is a law.
    * `against`: The same at the strength with the least evidence against it.
    * `distance`: The largest total variation between frequencies and law on a case, less noise.
    """

    strength: Floats
    score: Floats
    whole: Floats
    against: Floats
    distance: Floats


def weigh(table: Table, trials: int) -> Likelihoods:
    """Fit the strength of every hypothesis, and weigh it against all others and against Q."""
    mixture = universal(table)
    strength = _best(table, lambda s: (_log_likelihood(table, s) * table.predicted).sum(axis=1))
    whole, best = _log_likelihood(table, 1.0), _log_likelihood(table, strength)
    fitted = best.sum(axis=1) - math.log(trials) / 2 > whole.sum(axis=1)
    strength = np.where(fitted, strength, 1.0)
    used = np.where(fitted[:, None], best, whole)
    neutral = np.logaddexp.reduce(mixture, axis=0) - math.log(len(mixture))
    score = np.where(table.predicted, used, neutral).sum(axis=1) - fitted * math.log(trials) / 2
    against = partial(_against, table, neutral, _together(mixture, table))
    weakest = against(_best(table, lambda s: -against(s)))
    return Likelihoods(strength, score, against(1.0), weakest, _distance(table, strength))


def _together(mixture: Floats, table: Table) -> Floats:
    """log Q over all cases where a hypothesis has a law; shape (hypotheses,)."""
    known, of_hypothesis = np.unique(table.predicted, axis=0, return_inverse=True)
    sums = np.logaddexp.reduce(mixture @ known.T.astype(np.float64), axis=0) - math.log(
        len(mixture)
    )
    return np.asarray(sums[of_hypothesis.ravel()])


def _against(table: Table, of_case: Floats, together: Floats, strengths: Floats | float) -> Floats:
    """The logarithm of the average, over the cases and all of them together, of Q / likelihood."""
    likelihood = _log_likelihood(table, strengths)
    apart = np.where(table.predicted, of_case - likelihood, -np.inf)
    joint = together - (likelihood * table.predicted).sum(axis=1)
    ratios = np.concatenate([apart, joint[:, None]], axis=1)
    return np.asarray(
        np.logaddexp.reduce(ratios, axis=1) - np.log(table.predicted.sum(axis=1) + 1)
    )


def groups(table: Table, strengths: Floats) -> Ints:
    """For each hypothesis the first one that cannot be distinguished from it on the data.

    They have the same law; or one departs from the clean rule in the direction of the other,
    and both strengths are fitted: half of `residual-reversed` is `residual-abs`.
    """
    laws, directions = table.law(1.0), _directions(table)
    fitted = strengths < 1
    first = np.arange(len(laws))
    for row in range(1, len(laws)):
        same = _close(laws[:row], laws[row])
        same |= fitted[:row] & fitted[row] & _close(directions[:row], directions[row])
        same &= (table.predicted[:row] == table.predicted[row]).all(axis=1)
        first[row] = first[np.argmax(same)] if same.any() else row
    return first


def _directions(table: Table) -> Floats:
    steps = np.concatenate([x - x[0] for x in (table.mass, table.arriving)], axis=1)
    size = np.abs(steps).max(axis=1, keepdims=True)
    return np.asarray(np.divide(steps, size, out=np.zeros_like(steps), where=size > SAME))


def _close(rows: Floats, row: Floats) -> NDArray[np.bool_]:
    return np.asarray((np.abs(rows - row) < SAME).all(axis=1))


def universal(table: Table) -> Floats:
    """log Q on each case: every law at three strengths, and Dirichlet mixtures around them.

    Shape (components, cases); a component is one law and one concentration.
    """
    laws = np.concatenate([table.law(strength) for strength in MIXED_STRENGTHS])
    components = [table.by_case(table.counts * np.log(laws))]
    totals = np.bincount(table.node, table.counts)
    for c in CONCENTRATIONS:
        node = scipy.special.gammaln(c + totals) - scipy.special.gammaln(c)
        ends = np.zeros(len(totals), dtype=np.int64)
        ends[table.node] = table.case
        spent = np.bincount(ends, node, minlength=table.predicted.shape[1])
        gained = scipy.special.gammaln(c * laws + table.counts) - scipy.special.gammaln(c * laws)
        components.append(table.by_case(gained) - spent)
    return np.concatenate(components)


def _log_likelihood(table: Table, strengths: Floats | float) -> Floats:
    return table.by_case(table.counts * np.log(table.law(strengths)))


def _best(table: Table, value: Callable[[Floats], Floats]) -> Floats:
    """The strength of each hypothesis that maximises a value."""
    size, spread = len(table.mass), STRENGTHS[1] / STRENGTHS[0]
    trials = np.broadcast_to(STRENGTHS[:, None], (len(STRENGTHS), size))
    for _ in range(ZOOMS):
        strength = _largest(value, trials)
        trials = np.minimum(strength * spread ** np.linspace(-1, 1, 9)[:, None], 1)
        trials = np.maximum(trials, WEAKEST)
        spread **= 0.25
    return _largest(value, trials)


def _largest(value: Callable[[Floats], Floats], trials: Floats) -> Floats:
    values = [value(strengths) for strengths in trials]
    return np.asarray(trials[np.argmax(values, axis=0), np.arange(trials.shape[1])])


def _distance(table: Table, strengths: Floats) -> Floats:
    totals = np.bincount(table.node, table.counts)[table.node].astype(np.float64)
    excess, _ = off_by(Cells(table.counts, totals, np.minimum(table.law(strengths), 1)), 0.0)
    trials = table.by_case(table.counts)
    off = (table.by_case(excess) / trials * table.predicted).max(axis=1)
    return np.asarray(np.maximum(off, 0))
