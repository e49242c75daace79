"""Bugs that are not in the zoo: each a few lines, as a batched verifier and as a step.

A bug is written once, over rows of a batch; as a step, over a single row, its exact law can be
enumerated. None repeats the formula of a mutant of the zoo, with whatever parameter.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from specref.algorithms.decoding import Step
from specref.arrays import Floats, Ints
from specref.contracts.capabilities import capable
from specref.zoo.parts.standard import Position, speculative


@dataclass(frozen=True)
class Rows:
    """Position i of each row, of n drafts; P, Q and X are the arguments of `verify`."""

    P: Floats
    Q: Floats
    X: Ints
    n: Ints
    i: Ints

    def of(self, rows: Floats, x: Ints) -> Floats:
        """What each row gives to a token."""
        return np.asarray(rows[np.arange(len(x)), x])

    def at(self, i: Ints) -> "Rows":
        """Another position of each row, from 0 to n."""
        return replace(self, i=np.clip(i, 0, self.n))

    @property
    def p(self) -> Floats:
        return self.of(self.P, self.i)

    @property
    def q(self) -> Floats:
        """After the last draft that of the last draft."""
        last = np.clip(np.minimum(self.i, self.n - 1), 0, None)
        return np.asarray(self.Q[np.arange(len(self.i)), last])

    @property
    def x(self) -> Ints:
        return np.asarray(self.X[np.arange(len(self.i)), np.minimum(self.i, self.X.shape[1] - 1)])

    @property
    def px(self) -> Floats:
        return self.of(self.p, self.x)

    @property
    def qx(self) -> Floats:
        return self.of(self.q, self.x)

    @property
    def ids(self) -> Ints:
        """Token ids, as a row."""
        return np.arange(self.P.shape[2])[None]


Accept = Callable[[Rows], Any]
Weights = Callable[[Rows], Floats]


def ratio(at: Rows) -> Floats:
    return np.asarray(at.px / np.maximum(at.qx, 1e-9))


def left(at: Rows) -> Floats:
    return np.maximum(at.p - at.q, 0)


@dataclass(frozen=True)
class Outside:
    """A bug: what decides on a draft, replaces a rejected one, and follows the last one."""

    formula: str
    accept: Accept = ratio
    recover: Weights = left
    bonus: Weights = lambda at: at.p

    def last(self, at: Rows) -> Floats:
        """The law of the last token: where the weights are all 0, p."""
        rejected = (at.i < at.n)[:, None]
        weights = np.where(rejected, self.recover(at), self.bonus(at))
        weights = np.where(weights.any(axis=1, keepdims=True), weights, at.p)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def verify(self, **claims: Any) -> Callable[..., tuple[Ints, Ints]]:
        """The contract ``verify``."""

        @capable(**{"rule": "standard", **claims})
        def verify(
            target_probs: Floats,
            draft_probs: Floats | None,
            draft_tokens: Ints,
            *,
            rng: np.random.Generator,
        ) -> tuple[Ints, Ints]:
            x, (size, most) = np.maximum(draft_tokens, 0), draft_tokens.shape
            certain = np.eye(target_probs.shape[2])[x]
            q = certain if draft_probs is None else draft_probs
            n = (draft_tokens >= 0).sum(axis=1)
            first = Rows(target_probs, q, x, n, np.zeros(size, dtype=np.int64))
            u, kept = rng.random((size, most)), np.zeros(size, dtype=np.int64)
            for i in range(most):
                here = (kept == i) & (i < n)
                kept[here & (u[:, i] < self.accept(first.at(kept)))] += 1
            ends = self.last(first.at(kept)).cumsum(axis=1)
            last = (ends <= rng.random((size, 1)) * ends[:, -1:]).sum(axis=1)
            tokens = np.where(np.arange(most + 1) < kept[:, None], np.pad(x, ((0, 0), (0, 1))), -1)
            tokens[np.arange(size), kept] = last
            return tokens, kept + 1

        return verify

    @property
    def step(self) -> Step:
        """The same, for exact laws: in floats."""

        def probability(at: Position) -> float:
            return float(np.clip(self.accept(_rows(at)), 0, 1)[0])

        return speculative(
            accept=probability,
            recover=lambda at: self.last(_rows(at))[0],
            bonus=lambda at: self.last(_rows(at))[0],
        )


def _rows(at: Position) -> Rows:
    n = len(at.drafts)
    p = np.array([at.to(i).p for i in range(n + 1)], dtype=np.float64)[None]
    q = np.array([draft.q for draft in at.drafts], dtype=np.float64)
    x = np.array([draft.token for draft in at.drafts], dtype=np.int64)
    if not n:
        q, x = p[0], np.zeros(1, dtype=np.int64)
    return Rows(p, q[None], x[None], np.array([n]), np.array([at.i]))


def norm(weights: Floats) -> Floats:
    return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300))


def sharpest(weights: Floats) -> Floats:
    return np.asarray(weights == weights.max(axis=1, keepdims=True), dtype=np.float64)


BUGS: Mapping[str, Outside] = MappingProxyType(
    {
        "square-root-ratio": Outside("accept sqrt(p / q)", accept=lambda at: ratio(at) ** 0.5),
        "squared-ratio": Outside("accept (p / q)^2", accept=lambda at: ratio(at) ** 2),
        "nine-tenths": Outside("accept 0.9 p / q", accept=lambda at: 0.9 * ratio(at)),
        "never-surely": Outside(
            "accept min(0.95, p / q)", accept=lambda at: np.minimum(ratio(at), 0.95)
        ),
        "barker": Outside("accept p / (p + q)", accept=lambda at: ratio(at) / (ratio(at) + 1)),
        "sum-of-p-and-ratio": Outside("accept p + p / q", accept=lambda at: at.px + ratio(at)),
        "complement": Outside("accept 1 - q + p", accept=lambda at: 1 - at.qx + at.px),
        "ratio-floor": Outside(
            "accept max(0.2, p / q)", accept=lambda at: np.maximum(ratio(at), 0.2)
        ),
        "ratio-to-eighths": Outside(
            "p / q rounded to eighths", accept=lambda at: np.round(ratio(at) * 8) / 8
        ),
        "relative-to-the-mode": Outside(
            "accept p / max p", accept=lambda at: at.px / at.p.max(axis=1)
        ),
        "entropy-gate": Outside(
            "accept where H(p) < 1, else p / q",
            accept=lambda at: np.where(
                -(at.p * np.log(at.p + 1e-300)).sum(axis=1) < 1, 1, ratio(at)
            ),
        ),
        "top-two-accepted": Outside(
            "accept x in the top 2 of p, else p / q",
            accept=lambda at: np.where((at.p > at.px[:, None]).sum(axis=1) < 2, 1, ratio(at)),
        ),
        "last-draft-unverified": Outside(
            "x_(n-1) is accepted without a test",
            accept=lambda at: np.where(at.i == at.n - 1, 1, ratio(at)),
        ),
        "first-draft-twice": Outside(
            "x_0 is tested twice",
            accept=lambda at: np.where(at.i == 0, np.minimum(ratio(at), 1) ** 2, ratio(at)),
        ),
        "p-of-the-next-row": Outside(
            "p_(i+1) / q_i",
            accept=lambda at: at.of(at.at(at.i + 1).p, at.x) / np.maximum(at.qx, 1e-9),
        ),
        "q-of-the-first-row": Outside(
            "p_i / q_0",
            accept=lambda at: at.px / np.maximum(at.of(at.at(at.i * 0).q, at.x), 1e-9),
        ),
        "ratio-decays": Outside("accept p / q 0.8^i", accept=lambda at: ratio(at) * 0.8**at.i),
        "cumulative-ratio": Outside(
            "accept by the product of the ratios so far",
            accept=lambda at: ratio(at) * np.where(at.i > 0, ratio(at.at(at.i - 1)), 1),
        ),
        "token-0-accepted": Outside(
            "x = 0 is accepted without a test",
            accept=lambda at: np.where(at.x == 0, 1, ratio(at)),
        ),
        "smoothed-p": Outside(
            "p + 0.02 in the ratio", accept=lambda at: (at.px + 0.02) / (at.qx + 0.02)
        ),
        "residual-squared": Outside(
            "recovered token ~ ((p - q)+)^2", recover=lambda at: left(at) ** 2
        ),
        "residual-flat": Outside(
            "recovered token uniform where p > q", recover=lambda at: (at.p > at.q) * 1.0
        ),
        "residual-half-q": Outside(
            "recovered token ~ (p - q / 2)+",
            recover=lambda at: np.maximum(at.p - at.q / 2, 0),
        ),
        "residual-of-double-q": Outside(
            "recovered token ~ (p - 2 q)+", recover=lambda at: np.maximum(at.p - 2 * at.q, 0)
        ),
        "residual-masks-p": Outside(
            "recovered token ~ p where p > q", recover=lambda at: at.p * (at.p > at.q)
        ),
        "residual-ratio": Outside(
            "recovered token ~ (p / q - 1)+",
            recover=lambda at: np.maximum(at.p / np.maximum(at.q, 1e-2) - 1, 0),
        ),
        "residual-of-the-mode": Outside(
            "recovered token ~ (max p - q)+",
            recover=lambda at: np.maximum(at.p.max(axis=1, keepdims=True) - at.q, 0) * (at.p > 0),
        ),
        "residual-previous-p": Outside(
            "recovered token ~ (p_(i-1) - q_i)+",
            recover=lambda at: np.maximum(at.at(at.i - 1).p - at.q, 0),
        ),
        "residual-uniform-leak": Outside(
            "recovered token ~ norm((p - q)+) + 0.1 / V",
            recover=lambda at: norm(left(at)) + 0.1 / at.P.shape[2],
        ),
        "residual-half-p": Outside(
            "recovered token ~ half norm((p - q)+), half p",
            recover=lambda at: norm(left(at)) + at.p,
        ),
        "residual-without-last-id": Outside(
            "recovered token never the last id",
            recover=lambda at: left(at) * (at.ids < at.P.shape[2] - 1),
        ),
        "bonus-squared": Outside("bonus token ~ p^2", bonus=lambda at: at.p**2),
        "bonus-first-row": Outside("bonus token ~ p_0", bonus=lambda at: at.at(at.i * 0).p),
        "bonus-mixes-q": Outside(
            "bonus token ~ 0.8 p_n + 0.2 q_(n-1)", bonus=lambda at: 0.8 * at.p + 0.2 * at.q
        ),
        "bonus-without-repeat": Outside(
            "bonus token never x_(n-1)",
            bonus=lambda at: at.p * ((at.ids != at.at(at.n - 1).x[:, None]) | (at.n < 1)[:, None]),
        ),
        "bonus-top-two": Outside(
            "bonus token ~ top-2 of p_n",
            bonus=lambda at: at.p * (at.p >= np.sort(at.p, axis=1)[:, -2:-1]),
        ),
        "bonus-product": Outside("bonus token ~ p_n q_(n-1)", bonus=lambda at: at.p * at.q),
        "bonus-half-greedy": Outside(
            "bonus token: half argmax p_n, half ~ p_n", bonus=lambda at: at.p + sharpest(at.p)
        ),
    }
)
