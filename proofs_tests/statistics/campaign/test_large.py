"""Single tokens of a large vocabulary: bugs are found in few tokens, in time and memory O(V).

The target's and the drafter's rows are new for every token, so no context is ever seen twice.
"""

import math
import re
import tracemalloc
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from specref.statistics.campaign.bets import LAG_SHAPE
from specref.statistics.campaign.campaign import Campaign
from specref.statistics.campaign.large import TILT_SHAPE, Observer, label
from specref.statistics.campaign.verdict import Verdict

SIZE = 1024
SHORTLIST = 50
Array = np.ndarray
Sampler = Callable[[Array, Array, np.random.Generator], int]


def rows(size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """A target's row of some sharpness, and a drafter's that resembles it."""
    logits = 2 * rng.standard_normal(size)
    return softmax(logits), softmax(logits + rng.standard_normal(size))


def softmax(logits: Array) -> Array:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def draw(weights: Array, rng: np.random.Generator) -> int:
    cumulative = np.cumsum(weights)
    return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))


def speculative(p: Array, q: Array, rng: np.random.Generator, *, draft=None, recover=None) -> int:
    """The first token of a block, with another draft or another recovered token than there
    should be."""
    x = draw(q, rng) if draft is None else draft
    if rng.random() * q[x] < p[x]:
        return x
    return draw(np.maximum(p - q, 0) if recover is None else recover, rng)


def residual_is_p(p: Array, q: Array, rng: np.random.Generator) -> int:
    return speculative(p, q, rng, recover=p)


def argmax_draft(p: Array, q: Array, rng: np.random.Generator) -> int:
    return speculative(p, q, rng, draft=int(q.argmax()))


def always_accept(p: Array, q: Array, rng: np.random.Generator) -> int:
    return draw(q, rng)


def shortlisted_draft(p: Array, q: Array, rng: np.random.Generator) -> int:
    kept = np.where(q >= np.sort(q)[-SHORTLIST], q, 0)
    return speculative(p, q, rng, draft=draw(kept, rng))


def tokens_until_lossy(sampler: Sampler, limit: int, rng: np.random.Generator) -> int:
    campaign = Campaign()
    for count in range(1, limit + 1):
        p, q = rows(SIZE, rng)
        campaign.observe(p, sampler(p, q, rng), q)
        if campaign.decided_lossy:
            assert campaign.report().verdict == Verdict.LOSSY
            return count
    return limit + 1


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize(
    "sampler", [residual_is_p, argmax_draft, always_accept, shortlisted_draft]
)
def test_bugs_are_found_within_two_thousand_tokens(sampler: Sampler) -> None:
    assert tokens_until_lossy(sampler, 2_000, np.random.default_rng(1)) <= 2_000


@pytest.mark.deep
@pytest.mark.parametrize("sampler", [residual_is_p, always_accept])
def test_bugs_are_found_without_the_drafter(sampler: Sampler) -> None:
    # Only the target's row is known: tilts on p alone are left.
    rng, campaign = np.random.default_rng(2), Campaign()
    for _ in range(3_000):
        p, q = rows(64, rng)
        campaign.observe(p, sampler(p, softmax(np.sqrt(q)), rng))
    assert campaign.decided_lossy


@pytest.mark.deep
def test_false_alarms_keep_alpha() -> None:
    # 20 campaigns at alpha 0.05, with a look after each of 100 tokens.
    rng, alarms = np.random.default_rng(3), 0
    for _ in range(20):
        campaign = Campaign(alpha=0.05)
        for position in range(100):
            p, q = rows(SIZE, rng)
            campaign.observe(p, speculative(p, q, rng), q, position % 7)
        alarms += campaign.decided_lossy
    assert alarms <= stats.binom.isf(1e-6, 20, 0.05)


@pytest.mark.deep
def test_a_long_correct_run_wins_nothing() -> None:
    rng, campaign = np.random.default_rng(4), Campaign(alpha=1e-3)
    for _ in range(2_000):
        p, q = rows(128, rng)
        campaign.observe(p, speculative(p, q, rng), q)
    assert campaign.report().verdict == Verdict.INCONCLUSIVE


def bytes_per_token(size: int) -> int:
    """The most memory that one observation needs at a time, when others went before."""
    rng, observer = np.random.default_rng(6), Observer()
    p, q = rows(size, rng)
    for token in range(70):
        observer.observe(p, token, q, 0, False)
    tracemalloc.start()
    observer.observe(p, 0, q, 0, False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.deep
def test_one_observation_works_on_arrays_that_are_linear_in_the_vocabulary() -> None:
    small, large = bytes_per_token(1 << 12), bytes_per_token(1 << 16)
    assert large <= 16 * small
    assert large <= 100 * 8 * (1 << 16)  # a hundred rows; a V x V table has 65,536


def test_memory_does_not_grow() -> None:
    rng, campaign = np.random.default_rng(7), Campaign()
    held = []
    tracemalloc.start()
    for _ in range(3):
        for position in range(50):
            p, q = rows(1 << 12, rng)
            campaign.observe(p, speculative(p, q, rng), q, position % 5)
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    # One row of the vocabulary is 32,768 bytes; 50 of them were seen.
    assert held[2] - held[1] < 2 * 8 * (1 << 12)


def test_an_impossible_token_decides_at_once() -> None:
    campaign = Campaign()
    campaign.observe(np.array([0.5, 0.5, 0.0]), 0)
    campaign.observe(np.array([0.5, 0.5, 0.0]), 2)
    report = campaign.report()
    assert report.verdict == Verdict.LOSSY
    assert report.impossible == "token 2 after () on observation 2: the target excludes it"
    assert report.tokens == 2


COIN = np.array([0.5, 0.5])
BAD_OBSERVATIONS = {
    "two rows": (np.array([[0.5, 0.5]]), 0, None, 0),
    "no row": (0.5, 0, None, 0),
    "nothing": ([], 0, None, 0),
    "another size": (COIN, 0, np.array([1.0]), 0),
    "p sums to 2": (np.array([1.0, 1.0]), 0, None, 0),
    "p negative": (np.array([1.5, -0.5]), 0, None, 0),
    "p not a number": (np.array([math.nan, 1.0]), 0, None, 0),
    "q not a number": (COIN, 0, np.array([math.nan, 1.0]), 0),
    "q negative": (COIN, 0, np.array([1.5, -0.5]), 0),
    "q sums to more than 1": (COIN, 0, np.array([3.0, 2.0]), 0),
}


SAME_OBSERVATIONS = {
    "lists": ([0.5, 0.5, 0.0], 1, [0.25, 0.75, 0.0], 0),
    "tuples and numpy scalars": ((0.5, 0.5, 0.0), np.int8(1), (0.25, 0.75, 0.0), np.uint64(0)),
    "arrays of no dimension": (np.array([0.5, 0.5, 0]), np.array(1), [0.25, 0.75, 0], np.array(0)),
    "single precision": (np.float32([0.5, 0.5, 0]), 1, np.float16([0.25, 0.75, 0]), 0),
    "fractions": ([Fraction(1, 2), Fraction(1, 2), 0], 1, [Fraction(1, 4), Fraction(3, 4), 0], 0),
}


@pytest.mark.parametrize("observation", SAME_OBSERVATIONS.values(), ids=list(SAME_OBSERVATIONS))
def test_numbers_may_come_in_any_type(observation) -> None:
    plain, other = Observer(), Observer()
    for _ in range(3):
        plain.observe(np.array([0.5, 0.5, 0]), 1, np.array([0.25, 0.75, 0]), 0, False)
        other.observe(*observation, np.bool_(False))
    for kind in ("tilts", "lags", "library"):
        assert (getattr(plain, kind) == getattr(other, kind)).all()
        assert getattr(plain, kind).any()


def test_certain_tokens_may_come_as_integers() -> None:
    campaign = Campaign()
    campaign.observe([0, 1], 1, [1, 0])
    assert campaign.impossible is None
    campaign.observe([0, 1], 0)
    assert campaign.impossible is not None


NO_NUMBERS = {
    "token = True": ([0.5, 0.5], True, None, 0, False),
    f"token = {np.True_!r}": ([0.5, 0.5], np.True_, None, 0, False),
    "token = 1.0": ([0.5, 0.5], 1.0, None, 0, False),
    "token = '1'": ([0.5, 0.5], "1", None, 0, False),
    "token = None": ([0.5, 0.5], None, None, 0, False),
    "token = [1]": ([0.5, 0.5], [1], None, 0, False),
    "position = False": ([0.5, 0.5], 1, None, False, False),
    "position = 0.0": ([0.5, 0.5], 1, None, 0.0, False),
    "last = 1": ([0.5, 0.5], 1, None, 0, 1),
    "p has dtype <U3": (["1/2", "1/2"], 1, None, 0, False),
    "p has dtype bool": ([True, False], 0, None, 0, False),
    "p has dtype complex128": ([1j, 1], 0, None, 0, False),
    "p has dtype object": ([None, 1.0], 1, None, 0, False),
    "p has dtype": ([Fraction(1, 2), "1/2"], 1, None, 0, False),
    "q has dtype object": ([0.5, 0.5], 1, ["a", None], 0, False),
}


@pytest.mark.parametrize(("message", "observation"), NO_NUMBERS.items(), ids=list(NO_NUMBERS))
def test_what_is_no_number_is_refused_by_name(message: str, observation) -> None:
    campaign = Campaign()
    with pytest.raises(TypeError, match=re.escape(message) + r".*: expected"):
        campaign.observe(*observation)
    assert campaign.evidence.observer.tokens == 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("p", "token", "q", "position"), BAD_OBSERVATIONS.values(), ids=list(BAD_OBSERVATIONS)
)
def test_bad_observations(p: Array, token: int, q: Array | None, position: int) -> None:
    campaign = Campaign()
    with pytest.raises(ValueError, match="expected"):
        campaign.observe(p, token, q, position)
    assert not campaign.decided_lossy


def test_the_drafter_may_have_mass_on_other_tokens() -> None:
    campaign = Campaign()
    for token in (0, 1, 1, 0):
        campaign.observe(COIN, token, np.array([0.25, 0.25]))
        campaign.observe(COIN, token, np.array([0.0, 0.0]))
    assert math.isfinite(campaign.peak)


def test_bets_are_fair_on_rows_that_sum_to_one_in_single_precision_only() -> None:
    # Such a row stands for the law p / sum(p); a bet may not win from the missing mass.
    rng = np.random.default_rng(8)
    p, q = rows(16, rng)
    q = np.where(p < np.median(p), q, p)
    for missing in (-9e-7, 9e-7):
        short = p * (1 + missing)
        pays = np.array([wealth(short, q, token) for token in range(16)])
        assert (p @ pays).max() <= 1 + 1e-9


def wealth(p: Array, q: Array, token: int) -> Array:
    observer = Observer()
    observer.observe(p, token, q, 0, False)
    return np.exp(np.concatenate([observer.tilts.ravel(), observer.library.ravel()]))


def test_a_drafter_row_that_sums_to_more_than_one_by_rounding_spoils_no_bet() -> None:
    """Single precision: within the 1e-6 that rows may miss of 1, on either side."""
    p, q = np.array([0.45, 0.45, 0.1]), np.array([0.5, 0.5 + 2e-7, 0.0])
    campaign = Campaign()
    for _ in range(400):
        campaign.observe(p, 2, q=q)
    assert campaign.report().verdict == "LOSSY"


def test_every_bet_has_a_name() -> None:
    library = [("residual-is-p", 1.0), ("residual-is-p", 0.3)]
    assert [label("library", index, library) for index in (0, 1)] == ["residual-is-p"] * 2
    tilts, lags = (
        {
            place: label(family, int(np.ravel_multi_index(place, shape)), library)
            for place in np.ndindex(shape)
        }
        for family, shape in (("tilt", TILT_SHAPE), ("lag", LAG_SHAPE))
    )
    assert tilts[0, 0, 0] == "q > p more often, at position 0"
    assert tilts[1, 1, 4] == "q/(p+q) less often, at position 4"
    assert tilts[5, 10, 5] == "last id more often, anywhere"
    assert lags[0, 0, 0] == "repeats the token of the block before"
    assert lags[1, 0, 1] == "repeats the token of 2 blocks before, too seldom"
    assert lags[6, 1, 2] == "follows the rank of 64 blocks before"
    assert [label("pointwise", index, library) for index in (0, 3, 4, 35)] == [
        "residual is p",
        "residual is p",
        "residual is |p - q|",
        "bonus from q",
    ]
    assert label("dirichlet", 1, library) == "concentration 30"


def test_a_report_names_five_suspects() -> None:
    campaign = Campaign()
    for _ in range(50):
        campaign.observe([0.5, 0.5], 0, [0.9, 0.1])
    suspects = campaign.report().suspects
    assert len({suspect.component for suspect in suspects}) == 5
    assert [one.log10_evidence for one in suspects] == sorted(
        (one.log10_evidence for one in suspects), reverse=True
    )


@pytest.mark.parametrize("over", [0.9e-6, 1.1e-6])
def test_rows_may_miss_one_by_single_precision(over: float) -> None:
    for p, q in (([0.5, 0.5 + over], [0.5, 0.5]), ([0.5, 0.5], [0.5, 0.5 + over])):
        if over < 1e-6:
            Campaign().observe(p, 0, q)
        else:
            with pytest.raises(ValueError, match=r"sums to 1\.0000011"):
                Campaign().observe(p, 0, q)
    Campaign().observe([0.5, 0.5], 0, [0.1, 0.1])
