"""Batched verification: the clean verifier exactly, each mutant where it says that it shows.

Statistical tests: a mutant must be rejected at alpha 1e-9 within 1,500 calls. The weakest
(counts-without-last) has a chi-square noncentrality of about 220 there in one row, on 47 degrees
of freedom: power above 0.999. Laws that must not be rejected are tested at 1e-4 with 1,000 calls
each, about 60 rows in all, under a fixed seed.
"""

import inspect
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2

from specref.algorithms import standard
from specref.arrays import Floats, Ints
from specref.batched import Blocks, read, verifier, weights
from specref.chance import Chance, exact_distribution
from specref.coins import Coins
from specref.distributions import Probability, residual
from specref.models import Model, hashed_model
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo import ALL, CONTROLS, MUTANTS, Entry, batched, speculative
from specref.zoo.batched import BATCHES, EVERY
from specref.zoo.parts.batched import as_verifier

F = Fraction
V, K, CALLS = 4, 2, 1_500
CLEAN = verifier()
BAD = {entry.id: entry for entry in (*batched.ENTRIES, *batched.OF_COINS)}
GOOD = {entry.id: entry for entry in batched.CONTROLS}
TAKES_COINS = {
    name: entry
    for name, entry in {**BAD, **GOOD}.items()
    if "coins" in inspect.signature(entry.make()).parameters
}


def test_all_of_them_are_listed() -> None:
    assert BAD.keys() | GOOD.keys() <= ALL.keys()


def exact_rows(role: str, row: int, key: int = 0) -> list[list[Fraction]]:
    """Rows that depend on request and position, not on tokens."""
    models = [hashed_model(Vocabulary("abcd"), f"{role} {key} {row} {i}", 6) for i in range(K + 1)]
    return [list(model.next_token(())) for model in models]


def rows_of(batch: str) -> tuple[Floats, Floats]:
    p, q = (
        np.array([exact_rows(role, row) for row in range(len(BATCHES[batch]))], dtype=float)
        for role in "pq"
    )
    return p, q[:, :K]


def draw(rows: Floats, rng: np.random.Generator) -> Ints:
    """One token from each row of probabilities."""
    ends = rows.cumsum(axis=-1)
    return (ends < rng.random((*rows.shape[:-1], 1)) * ends[..., -1:]).sum(axis=-1)


def drafts_for(batch: str, q: Floats, rng: np.random.Generator) -> Ints:
    lens = np.array(BATCHES[batch])
    return np.where(np.arange(K) < lens[:, None], draw(q, rng), -1)


def drawn(batch: str, rng: np.random.Generator) -> Coins:
    size = len(BATCHES[batch])
    return Coins(rng.random((size, K)), rng.standard_exponential((size, V)))


def models_of(row: int) -> tuple[Model, Model]:
    vocabulary = Vocabulary("abcd")
    p, q = exact_rows("p", row), exact_rows("q", row)
    return (
        Model(vocabulary, lambda context: p[len(context)]),
        Model(vocabulary, lambda context: q[len(context)]),
    )


def conditional(drafts: Tokens, target: Model, drafter: Model) -> dict[Tokens, Probability]:
    """The law of the block of `standard.verify`, given the drafts."""

    def run(chance: Chance) -> Tokens:
        given = [standard.Draft(x, drafter.next_token(drafts[:i])) for i, x in enumerate(drafts)]
        return standard.verify(target, (), given, chance)

    return exact_distribution(run)


def cells(drafts: Tokens, row: int) -> list[tuple[Floats, Fraction]]:
    """Uniforms in every cell on which the verdicts are constant, and how wide the cell is.

    The cells end at min(1, p / q); the uniforms are within 1e-12 of the end.
    """
    p, q = exact_rows("p", row), exact_rows("q", row)
    found: list[tuple[Floats, Fraction]] = []
    ratios = [min(F(1), p[i][x] / q[i][x]) for i, x in enumerate(drafts)]
    sides = [[(r, True), (1 - r, False)] for r in ratios]
    for chosen in product(*sides):
        width = F(1)
        uniforms = np.zeros(len(drafts))
        for i, (share, below) in enumerate(chosen):
            width *= share
            uniforms[i] = float(ratios[i]) * (1 - 1e-12 if below else 1 + 1e-12)
        if width:
            found.append((uniforms, width))
    return found


@pytest.mark.parametrize("row", range(5))
def test_the_clean_verifier_exactly(row: int) -> None:
    """For all drafts: cells of coins, times the law of the race, is the law of the definition.

    The race is argmin noise / weight: for exponential noise its law is the weights, normalised.
    """
    target, drafter = models_of(row)
    p, q = (np.array([exact_rows(role, row)], dtype=float) for role in "pq")
    for drafts in product(range(V), repeat=K):
        if not all(drafter.next_token(drafts[:i])[x] for i, x in enumerate(drafts)):
            continue
        found: dict[Tokens, float] = {}
        for uniforms, width in cells(drafts, row):
            coins = Coins(uniforms[None], np.ones((1, V)))
            batch = read(p, q[:, :K], np.array([drafts]), None, coins, None)
            _, counts = CLEAN(p, q[:, :K], np.array([drafts]), coins=coins)
            count = counts - 1
            law = weights(batch, count)[0]
            for token in np.flatnonzero(law):
                block = (*drafts[: count[0]], int(token))
                found[block] = found.get(block, 0) + float(width) * law[token] / law.sum()
        expected = conditional(drafts, target, drafter)
        assert found.keys() == expected.keys()
        for block, weight in expected.items():
            assert found[block] == pytest.approx(float(weight), abs=1e-12)


def test_the_race_is_decided_by_noise_over_weight() -> None:
    p = np.array([[[0.5, 0.25, 0.25, 0.0]]])
    nothing = np.zeros((1, 0), dtype=int)
    for noise, winner in [((2, 1.01, 9, 0), 0), ((2, 0.99, 9, 0), 1), ((9, 9, 0, 0), 2)]:
        coins = Coins(np.zeros((1, 0)), np.array([noise], dtype=float))
        tokens, counts = CLEAN(p, np.zeros((1, 0, V)), nothing, coins=coins)
        assert (tokens.tolist(), counts.tolist()) == ([[winner]], [1])


def test_without_q_drafts_are_certain() -> None:
    p = np.array([[[0.25, 0.75, 0, 0], [0, 0, 0, 1.0]]])
    for u, block in [(0.24, [0, 3]), (0.25, [1, -1])]:
        coins = Coins(np.array([[u]]), np.ones((1, V)))
        assert CLEAN(p, None, np.array([[0]]), coins=coins)[0].tolist() == [block]


def test_coins_or_a_generator_are_needed() -> None:
    p, q = rows_of("one")
    with pytest.raises(TypeError, match="rng and coins are both None"):
        CLEAN(p, q, np.array([[0, 0]]))


def same(left: Blocks, right: Blocks) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize("batch", BATCHES)
def test_lengths_are_read_from_padding_or_given(batch: str) -> None:
    rng = np.random.default_rng(4)
    p, q = rows_of(batch)
    for _ in range(50):
        drafts, coins = drafts_for(batch, q, rng), drawn(batch, rng)
        full = np.where(drafts < 0, 1, drafts)
        given = CLEAN(p, q, full, coins=coins, lens=np.array(BATCHES[batch]))
        assert same(CLEAN(p, q, drafts, coins=coins), given)


def differs(entry: Entry, batch: str, calls: int = 50) -> bool:
    """Whether a fresh verifier ever differs from the clean one under the same coins."""
    rng = np.random.default_rng(6)
    p, q = rows_of(batch)
    for _ in range(calls):
        drafts, coins = drafts_for(batch, q, rng), drawn(batch, rng)
        if not same(entry.make()(p, q, drafts, coins=coins), CLEAN(p, q, drafts, coins=coins)):
            return True
    return False


def test_mutants_know_the_batches_they_are_blind_on() -> None:
    for name, entry in BAD.items():
        if name in TAKES_COINS:
            blind = {batch for batch in BATCHES if not differs(entry, batch)}
            assert blind == entry.blind, name
        else:
            assert entry.blind == BATCHES.keys()
    assert not differs(GOOD["product-instead-of-ratio"], "ragged", 300)


def blocks(entry: Entry, batch: str, calls: int, *, fresh: bool = True) -> Ints:
    """Blocks of every call and row, completed by p: shape (calls, rows, K + 1)."""
    rng = np.random.default_rng(7)
    p, q = rows_of(batch)
    verify = entry.make()
    found = []
    for _ in range(calls):
        verify = entry.make() if fresh else verify
        tokens, counts = verify(p, q, drafts_for(batch, q, rng), rng=rng)
        rest = np.arange(K + 1) >= counts[:, None]
        found.append(np.where(rest, draw(p, rng), tokens))
    return np.array(found)


def p_value(outcomes: list[Tokens], law: Mapping[Tokens, float]) -> float:
    """Of a chi-square test; 0 if something impossible happened."""
    counts = Counter(outcomes)
    if counts.keys() - law.keys():
        return 0.0
    n = len(outcomes)
    statistic = sum((counts[x] - n * w) ** 2 / (n * w) for x, w in law.items())
    return float(chi2.sf(statistic, len(law) - 1)) if len(law) > 1 else 1.0


def law_of_row(p: Floats) -> dict[Tokens, float]:
    """The target's law of K + 1 tokens."""
    law = {x: float(np.prod(p[range(K + 1), x])) for x in product(range(V), repeat=K + 1)}
    return {x: w for x, w in law.items() if w > 0}


def row_p_values(found: Ints, p: Floats) -> list[float]:
    return [
        p_value([tuple(block) for block in found[:, row].tolist()], law_of_row(p[row]))
        for row in range(found.shape[1])
    ]


ROWS = [n for n, e in BAD.items() if e.shows == "row" and not e.blind >= EVERY]
EXACT = [n for n in {**BAD, **GOOD} if n not in ROWS and n != "missing-q-recovers-from-p"]


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("name", ROWS)
def test_mutants_that_show_in_a_row_do(name: str) -> None:
    batch = next(batch for batch in ("ragged", "even") if batch not in BAD[name].blind)
    assert min(row_p_values(blocks(BAD[name], batch, CALLS), rows_of(batch)[0])) < 1e-9


@pytest.mark.deep(one_in=32)
@pytest.mark.parametrize("name", [name for name in EXACT if name != "own-generator"])
@pytest.mark.parametrize("batch", ["even", "ragged"])
def test_all_others_are_exact_row_by_row(name: str, batch: str) -> None:
    """A generator of its own has one outcome for each draft: it has a test below."""
    assert min(row_p_values(blocks(ALL[name], batch, 1_000), rows_of(batch)[0])) > 1e-4


def twins(entry: Entry) -> float:
    """How often two rows with the same p, q and drafts get the same block."""
    rng = np.random.default_rng(8)
    p, q = rows_of("one")
    twice = np.repeat(p, 2, axis=0), np.repeat(q, 2, axis=0)
    equal = 0
    for _ in range(1_000):
        drafts = np.repeat(drafts_for("one", q, rng), 2, axis=0)
        tokens, _ = entry.make()(*twice, drafts, rng=rng)
        equal += int((tokens[0] == tokens[1]).all())
    return equal / 1_000


@pytest.mark.deep
def test_rows_that_share_coins_agree_too_often() -> None:
    """The chance of agreement of independent rows is exact; 6 standard errors is below 1e-8."""
    target, drafter = models_of(0)
    drafted = exact_distribution(
        lambda c: tuple(c.draw(drafter.next_token((0,) * i), f"draft[{i}]") for i in range(K))
    )
    laws = {x: conditional(x, target, drafter) for x in drafted}
    chance = float(sum(w * sum(y * y for y in laws[x].values()) for x, w in drafted.items()))
    error = 6 * np.sqrt(chance * (1 - chance) / 1_000)
    assert abs(twins(Entry(**_clean())) - chance) < error
    for name in ("rows-share-uniforms", "rows-share-noise"):
        assert BAD[name].shows == "rows"
        assert twins(BAD[name]) > chance + error, name


def _clean() -> dict[str, object]:
    words = {"formula": "f", "symptom": "s", "hint": "h"}
    return {"id": "clean", "stage": "batch", "make": verifier, "shows": "row", **words}


def test_a_residual_kept_between_calls_shows_in_the_second() -> None:
    entry = BAD["residual-of-previous-call"]
    values = row_p_values(blocks(entry, "even", CALLS, fresh=False), rows_of("even")[0])
    assert min(values) < 1e-9


def test_a_generator_of_its_own_gives_all_calls_the_same_luck() -> None:
    p, q = rows_of("even")
    drafts = drafts_for("even", q, np.random.default_rng(1))
    verify = BAD["own-generator"].make()
    first, second = (verify(p, q, drafts, rng=np.random.default_rng(seed)) for seed in (1, 2))
    assert same(first, second)
    clean = [CLEAN(p, q, drafts, rng=np.random.default_rng(seed))[0].tolist() for seed in range(9)]
    assert len({str(tokens) for tokens in clean}) > 1


def test_a_missing_q_by_cells() -> None:
    """p = (1/4, 3/4): the draft 0 passes with 1/4; rejected, it comes back with 1/4 again."""
    p = np.array([[[0.25, 0.75, 0, 0], [0, 0, 0, 1.0]]])
    entry = BAD["missing-q-recovers-from-p"]
    coins = Coins(np.array([[0.5]]), np.array([[0.1, 9, 9, 9]]))
    assert entry.make()(p, None, np.array([[0]]), coins=coins)[0].tolist() == [[0, -1]]
    assert CLEAN(p, None, np.array([[0]]), coins=coins)[0].tolist() == [[1, -1]]
    one_hot = np.eye(V)[[[0]]]
    assert entry.make()(p, one_hot, np.array([[0]]), coins=coins)[0].tolist() == [[1, -1]]


ULP = float(np.nextafter(1, 0))
# p is a little less than q at every token of q, as rounding can make it.
EDGES = {
    "le-at-zero": ([[0, 0.5, 0.5, 0]], [[0.5, 0.5, 0, 0]], 0, 0.0, [1, 1, 1, 1]),
    "empty-residual-is-token-0": (
        [[0, 0.5 * (1 - 2**-52), 0.5 * (1 - 2**-52), 0]],
        [[0, 0.5, 0.5, 0]],
        1,
        ULP,
        [1, 1, 1, 1],
    ),
    "zero-noise-wins": ([[0, 0.5, 0.5, 0]], [[0.5, 0.5, 0, 0]], 0, 0.5, [1, 1, 1, 0]),
}


def test_coarse_uniforms_keep_a_draft_that_is_all_but_impossible() -> None:
    """Once in 4,096 times: never in 40,000 has a probability of 6e-5."""
    tile = (40_000, 1, 1)
    p = np.tile([[1 - 2.0**-30, 2.0**-30], [0.5, 0.5]], tile)
    q, drafts = np.tile([[2.0**-30, 1 - 2.0**-30]], tile), np.ones((40_000, 1), dtype=int)
    kept = {
        name: (verify(p, q, drafts, rng=np.random.default_rng(1))[0][:, 0] == 1).sum()
        for name, verify in (("coarse", BAD["coarse-uniforms"].make()), ("clean", CLEAN))
    }
    assert kept["coarse"] > 0
    assert kept["clean"] == 0
    assert {n for n, e in BAD.items() if e.shows == "coins"} == {*EDGES, "coarse-uniforms"}


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("name", EDGES)
def test_mutants_that_only_injected_coins_find(name: str) -> None:
    p, q, draft, u, noise = EDGES[name]
    rows = np.array([[*p, [0, 1.0, 0, 0]]]), np.array([q])
    coins = Coins(np.array([[u]]), np.array([noise], dtype=float))
    right, counts = CLEAN(*rows, np.array([[draft]]), coins=coins)
    wrong, _ = BAD[name].make()(*rows, np.array([[draft]]), coins=coins)
    assert rows[0][0, 0, right[0, 0]] > 0
    assert counts.tolist() == [1]
    assert rows[0][0, 0, wrong[0, 0]] == 0
    assert not any(differs(BAD[name], batch, 300) for batch in BATCHES)


def test_one_row_of_tokens_in_all_rows_by_hand() -> None:
    p, q = rows_of("even")
    p, q = np.tile(np.eye(V)[[1, 1, 1]], (2, 1, 1)), np.tile(np.eye(V)[[1, 0]], (2, 1, 1))
    drafts = np.array([[1, 0], [1, -1]])
    coins = Coins(np.zeros((2, K)), np.ones((2, V)))
    assert CLEAN(p, q, drafts, coins=coins)[0].tolist() == [[1, 1, -1], [1, 1, -1]]
    p[1, 1] = np.eye(V)[3]
    assert CLEAN(p, q, drafts, coins=coins)[0].tolist() == [[1, 1, -1], [1, 3, -1]]
    tokens, _ = BAD["cartesian-write"].make()(p, q, drafts, coins=coins)
    assert tokens.tolist() == [[1, 3, -1], [1, 3, -1]]


@pytest.mark.parametrize("name", GOOD)
def test_controls_are_what_they_look_like(name: str) -> None:
    """Replays differ, or blocks are shorter; or nothing but the form of the test does."""
    rng = np.random.default_rng(9)
    p, q = rows_of("ragged")
    drafts = drafts_for("ragged", q, rng)
    pairs = [
        (
            GOOD[name].make()(p, q, drafts, rng=np.random.default_rng(seed)),
            CLEAN(p, q, drafts, rng=np.random.default_rng(seed)),
        )
        for seed in range(20)
    ]
    assert all(same(*pair) for pair in pairs) == (name == "product-instead-of-ratio")


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("batch", BATCHES)
def test_the_standard_step_row_by_row_is_the_clean_verifier(batch: str) -> None:
    rng = np.random.default_rng(10)
    p, q = rows_of(batch)
    for step in (standard.step, speculative(), CONTROLS["ratio-without-min"].step):
        for _ in range(50):
            drafts, coins = drafts_for(batch, q, rng), drawn(batch, rng)
            expected = CLEAN(p, q, drafts, coins=coins)
            assert same(as_verifier(step)(p, q, drafts, coins=coins), expected)


BONUS = ("bonus-argmax", "bonus-wrong-row", "bonus-from-drafter")
AS_VERIFIERS = [
    entry.id
    for entry in MUTANTS.values()
    if entry.stage in ("accept", "residual") and entry.id != "best-of-two"
]


@pytest.mark.parametrize("name", [*AS_VERIFIERS, *BONUS, "shared-u"])
def test_mutants_of_the_step_are_mutants_of_the_verifier(name: str) -> None:
    rng = np.random.default_rng(11)
    verify = as_verifier(MUTANTS[name].step)
    p, q = rows_of("ragged")

    def wrong() -> bool:
        drafts, coins = drafts_for("ragged", q, rng), drawn("ragged", rng)
        return not same(verify(p, q, drafts, coins=coins), CLEAN(p, q, drafts, coins=coins))

    assert any(wrong() for _ in range(200))


def test_a_step_that_needs_more_coins_than_a_verifier_has_is_refused() -> None:
    p, q = np.tile(np.eye(V)[1], (1, K + 1, 1)), np.tile([0.0, 0.5, 0.5, 0], (1, K, 1))
    verify = as_verifier(MUTANTS["best-of-two"].step)
    with pytest.raises(
        ValueError, match="site 'second draft': a verifier has no random number for it"
    ):
        verify(p, q, np.array([[2, 1]]), rng=np.random.default_rng(0))


def test_residual_weights_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(13)
    p, q = rows_of("ragged")
    drafts = drafts_for("ragged", q, rng)
    batch = read(p, q, drafts, rng, None, None)
    for row, n in enumerate(BATCHES["ragged"]):
        for count in range(n):
            law = weights(batch, np.full(len(drafts), count).clip(max=batch.lens))[row]
            exact = residual(*(np.array(exact_rows(role, row)[count]) for role in "pq"))
            assert law / law.sum() == pytest.approx(exact.astype(float), abs=1e-12)
