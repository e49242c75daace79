"""What the `precision` of a vector promises: floats of that width decide it, however they do."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from proofs_tests.helpers.vectors.files import VERIFY, rule
from specref.contrib.vectors import building
from specref.contrib.vectors.deciding import decide, precision
from specref.contrib.vectors.groups import row

NAMES = ("float16", "float32", "float64")
RATIOS = {"product": lambda u, p, q: u * q < p, "ratio": lambda u, p, q: u < p / q}


class Narrow:
    """A case in floats of one width; subnormal ones are kept, or flushed to zero."""

    def __init__(self, case, name, flush):
        self.case, self.type, self.flush = case, np.dtype(name).type, flush
        self.tiny = np.finfo(name).smallest_normal

    def __call__(self, values):
        rounded = np.asarray(values, dtype=self.type)
        return np.where(abs(rounded) < self.tiny, self.type(0), rounded) if self.flush else rounded

    def laws(self):
        case, drafts = self.case, self.case["draft_tokens"]
        p = self(case["p"]["float64"])
        q = np.eye(p.shape[1])[drafts] if case["q"] is None else case["q"]["float64"]
        return p, self(np.reshape(q, (len(drafts), p.shape[1])))

    def decided(self, accepts):
        p, q = self.laws()
        drafts = [token for token in self.case["draft_tokens"] if token >= 0]
        coins = self(self.case["coins"]["accept"])
        find = {"standard": self.in_turn, "block": self.jointly}[rule(self.case)]
        kept, survival = find(p, q, drafts, coins, accepts)
        weights = p[kept]
        if kept < len(drafts):
            weights = self(np.maximum(self(survival * p[kept]) - q[kept], 0))
        return {name: [*drafts[:kept], last] for name, last in self.drawn(weights).items()}

    def in_turn(self, p, q, drafts, coins, accepts):
        for i, x in enumerate(drafts):
            if not accepts(coins[i], p[i, x], q[i, x]):
                return i, self(1)
        return len(drafts), self(1)

    def jointly(self, p, q, drafts, coins, accepts):
        survival, found = [self(1)], (0, self(1))
        for i, x in enumerate(drafts):
            survival.append(np.minimum(self(1), self(survival[i] * p[i, x]) / q[i, x]))
        for i, s in enumerate(survival[1:], start=1):
            left, rest = s, self(1)
            if i < len(drafts):
                left = self(np.maximum(self(s * p[i]) - q[i], 0)).sum(dtype=self.type)
                rest = left + (self(1) - s)
            if left and accepts(coins[i - 1], left, rest):
                found = i, s
        return found

    def drawn(self, weights):
        final, noise = self(self.case["coins"]["final"]), self(self.case["coins"]["race"])
        upwards, downwards = (
            np.searchsorted(ends, self(final * ends[-1]), side="right")
            for ends in (np.cumsum(w, dtype=self.type) for w in (weights, weights[::-1]))
        )
        possible = [int(token) for token in np.flatnonzero(weights)]
        return {
            "inverse": int(upwards),
            "descending": len(weights) - 1 - int(downwards),
            "race": min(possible, key=lambda token: noise[token] / weights[token], default=-1),
        }


def decides(case, name):
    """Whether floats of this width decide a case as it says, in every way."""
    expected = case["expected"]["tokens"]
    ways = product(RATIOS.values(), (False, True))
    return all(Narrow(case, name, flush).decided(accepts) == expected for accepts, flush in ways)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_floats_of_that_width_decide_every_case():
    for case in VERIFY:
        for name in NAMES[NAMES.index(case["precision"]) :]:
            assert decides(case, name), (case["id"], name)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_narrower_floats_would_not_decide_some():
    wide = [case for case in VERIFY if case["precision"] != "float16"]
    failing = {case["id"] for case in wide if not decides(case, "float16")}
    assert failing >= {
        "standard/final-at-edge-of-residual/005",
        "standard/final-at-edge-of-bonus/006",
        "standard/zeros-at-the-ends/003",
        "standard/subnormal-ratio/001",
        "block/final-at-edge-of-residual/005",
    }


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_logarithms_decide_every_case_whose_coin_is_not_at_its_threshold():
    thresholds = {"CoinAtThreshold", "CoinNextToThreshold"}
    for case in VERIFY:
        for name in NAMES[NAMES.index(case["precision"]) :]:
            if not thresholds & set(case["flags"]):
                found = Narrow(case, name, False).decided(by_logarithms)
                assert found == case["expected"]["tokens"], (case["id"], name)


def by_logarithms(u, p, q):
    return np.log(u) < np.log(p) - np.log(q)


def test_every_uniform_is_one_in_that_precision():
    for case in VERIFY:
        uniforms = [*case["coins"]["accept"], case["coins"]["final"]]
        rounded = np.array(uniforms).astype(case["precision"])
        assert np.all(rounded < 1), case["id"]
        assert [u == 0 for u in rounded] == [u == 0 for u in uniforms], case["id"]


def case_of(law, final=0.25, race=(1.0, 2.0, 4.0)):
    """One token of this law, drawn with these coins."""
    case = next(c for c in building.cases("standard") if c.id == "standard/no-room/001")
    return replace(case, p=(row(law),), coins=replace(case.coins, final=final, race=race))


def shifted(edge, name, units):
    return float(edge + units * Fraction(float(np.finfo(name).eps)))


@pytest.mark.parametrize(("coarse", "fine"), [NAMES[:2], NAMES[1:]])
@pytest.mark.parametrize(
    ("law", "edge"),
    [("1/3 1/3 1/3", Fraction(1, 3)), ("1/5 1/5 3/5", Fraction(3, 5)), ("1/3 1/3 1/3", 1)],
)
def test_a_last_uniform_near_an_edge_needs_more(coarse, fine, law, edge):
    """Edges are those from below, those from above (3/5), and 1."""
    far, near = (
        precision(c, decide(c))
        for c in (case_of(law, final=shifted(edge, coarse, units)) for units in (-128, -32))
    )
    assert NAMES.index(far) <= NAMES.index(coarse)
    assert near == fine


@pytest.mark.parametrize(("coarse", "fine"), [NAMES[:2], NAMES[1:]])
def test_a_close_race_needs_more(coarse, fine):
    far, near = (
        precision(c, decide(c))
        for c in (
            case_of("1/4 1/4 1/2", race=(1.0, shifted(1, coarse, units), 8.0))
            for units in (128, 32)
        )
    )
    assert NAMES.index(far) <= NAMES.index(coarse)
    assert near == fine


@pytest.mark.parametrize(
    "case",
    [
        case_of("1/3 1/3 1/3", final=1 / 3),
        case_of("1/3 1/3 1/3", final=1 - 2**-53),
        case_of("1/4 1/4 1/2", race=(1.0, 1.0, 8.0)),
    ],
)
def test_what_rounding_decides_is_refused(case):
    with pytest.raises(ValueError, match="float64 does not decide it"):
        precision(case, decide(case))
