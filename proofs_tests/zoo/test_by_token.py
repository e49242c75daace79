"""Two vocabularies: known total variations, what fixtures hold, and what controls really do."""

from fractions import Fraction

import pytest

from specref.algorithms import tli, union
from specref.algorithms.decoding import Step
from specref.chance import Chance, Traced, exact_distribution
from specref.distributions import Probability
from specref.models import Model, hashed_model, iid_model, markov_model
from specref.rules import RULES
from specref.theory import psi
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo import ALL, ExactFixture, fixtures_for, total_variation_on

F = Fraction
HALVES = ["1/2", "1/2"]


def iid(tokens: list[str], p: list[str]) -> Model:
    return iid_model(Vocabulary(tokens), p)


PARTLY = ExactFixture("partly", iid(["a", "b"], ["2/3", "1/3"]), iid([*"abc"], ["1/3"] * 3), 1)
JOINED = ExactFixture(
    "joined", iid([*"ab"], HALVES), iid(["a", "b", "ab"], ["1/4", "1/4", "1/2"]), 1, (), 3
)
SPLIT = ExactFixture(
    "split", iid(["a", "ab", "b"], ["1/4", "1/4", "1/2"]), iid([*"ab"], HALVES), 1
)
SEEING = ExactFixture(
    "seeing",
    SPLIT.target,
    markov_model(Vocabulary("ab"), HALVES, [["1/10", "9/10"], HALVES]),
    2,
)
COIN = ExactFixture("coin", iid([*"ab"], HALVES), iid([*"ab"], ["3/4", "1/4"]), 1)
SURE = ExactFixture("sure", COIN.target, iid(["a", "b"], ["1", "0"]), 2)
# The target writes a, b where its tokeniser reads ab.
UNREAD = ExactFixture(
    "unread",
    markov_model(Vocabulary(["a", "ab", "b"]), [1, 0, 0], [[1, 0, 0], [1, 0, 0], [0, 0, 1]]),
    iid([*"ab"], HALVES),
    1,
    (0, 2),
)


@pytest.mark.parametrize(
    ("name", "fixture", "expected"),
    [
        ("oov-draft-dropped", PARTLY, "1/9"),
        ("tli-q-not-renormalised", PARTLY, "1/6"),
        ("slrs-exact-decompositions", JOINED, "1/4"),
        ("slrs-lookahead-off-by-one", SPLIT, "1/8"),
        ("slrs-fixed-q", SEEING, "1/5"),
        ("slrs-fall-through", COIN, "1/2"),
        ("slrs-estimated-psi", COIN, "1/24"),
        ("slem-first-match", SURE, "1/4"),
        ("slem-context-retokenised", UNREAD, "1"),
    ],
)
def test_known_total_variations(name: str, fixture: ExactFixture, expected: str) -> None:
    assert total_variation_on(ALL[name], fixture) == F(expected)


def test_by_hand_oov_drafts_on_partly_shared_tokens() -> None:
    """p = (2/3, 1/3), q = 1/3 each on a, b, c: c is drafted a third of the time."""

    def first(name: str) -> list[Probability]:
        output = PARTLY.output(ALL[name].step)
        return [sum(w for block, w in output.items() if block[0] == x) for x in (0, 1)]

    assert first("oov-draft-dropped") == [F(1, 3) + F(2, 9), F(1, 3) + F(1, 9)]
    assert first("oov-draft-to-zero") == [F(2, 3), F(1, 3)]  # token 0 passes always: p / q = 2
    assert first("tli-q-not-renormalised") == [F(1, 2), F(1, 2)]  # both ratios are at least 1
    assert first("residual-on-shared-tokens") == [F(2, 3), F(1, 3)]  # all of T is shared


def test_mismatched_lookahead_by_hand() -> None:
    assert list(psi(SPLIT.target.vocabulary, SPLIT.drafter, (), 1)) == [F(1, 2), 0, F(1, 2)]
    assert list(psi(SPLIT.target.vocabulary, SPLIT.drafter, (), 2)) == [F(1, 4), F(1, 4), F(1, 2)]
    # a is drafted with 1/4 and tested with 1/2: half of it goes on to ab.
    output = SPLIT.blocks(ALL["slrs-lookahead-off-by-one"].step)
    first = [sum(w for block, w in output.items() if block[0] == x) for x in range(3)]
    assert first == [F(1, 8), F(3, 8), F(1, 2)]


def accepted_first(step: Step, f: ExactFixture) -> Probability:
    """The probability that the first draft is accepted."""

    def run(chance: Chance) -> bool:
        traced = Traced(chance)
        step(f.target, f.drafter, f.context, f.lookahead, traced)
        return any(s.site == "accept[0]" and s.choice for s in traced.steps)

    return exact_distribution(run).get(True, 0)


def test_a_permuted_q_is_accepted_more_often_than_any_lossless_rule_allows() -> None:
    step = ALL["tli-q-permuted"].step
    bounds = {
        name: (accepted_first(step, f), RULES["tli"].acceptance_rate(f.target, f.drafter))
        for name, f in fixtures_for("tli").items()
    }
    assert any(rate > bound for rate, bound in bounds.values())
    for f in fixtures_for("tli").values():
        bound = RULES["tli"].acceptance_rate(f.target, f.drafter)
        assert accepted_first(tli.step, f) == bound


def relabelled(words: str, ids: str, key: str) -> tuple[Model, Model]:
    """A target, and itself under other ids; words that it lacks have no mass."""
    target = hashed_model(Vocabulary(words), key)
    vocabulary = Vocabulary(ids)

    def next_token(context: Tokens) -> list[Probability]:
        row = target.next_token(tuple(words.find(ids[x]) % len(words) for x in context))
        return [row[words.index(word)] if word in words else 0 * row[0] for word in ids]

    return target, Model(vocabulary, next_token)


@pytest.mark.parametrize(
    ("step", "accepts_all"),
    [
        (tli.step, True),
        (union.step, True),
        (ALL["tli-q-permuted"].step, False),
        (ALL["tli-context-in-pruned-ids"].step, False),
        (ALL["draft-ids-unmapped"].step, False),
        (ALL["q-left-in-draft-ids"].step, False),
        (ALL["ids-taken-for-target-ids"].step, False),
    ],
)
def test_a_target_under_other_ids_is_accepted_only_if_all_is_mapped(
    step: Step, accepts_all: bool
) -> None:
    target, drafter = relabelled("abcd", "cxadb", "relabelled")
    f = ExactFixture("relabelled", target, drafter, 2)
    lengths = {len(block) for block in f.blocks(step)}
    assert (lengths == {3}) == accepts_all


@pytest.mark.parametrize("name", ["oov-context-to-zero", "drafter-context-truncated"])
def test_a_drafter_that_misreads_its_context_drafts_all_the_same(name: str) -> None:
    f = fixtures_for("union")["overlap"]
    context = (1, 0) if name == "drafter-context-truncated" else (1,)
    assert f.target.vocabulary.tokens[1] not in f.drafter.vocabulary.ids
    blocks = ExactFixture("b", f.target, f.drafter, 2, context)
    drafted = max(map(len, blocks.blocks(ALL[name].step)))
    if name == "oov-context-to-zero":
        assert max(map(len, blocks.blocks(union.step))) == 1 < drafted
    assert total_variation_on(ALL[name], blocks) == 0


@pytest.mark.parametrize(
    ("control", "mutant", "algorithm"),
    [
        ("tli-unshared-submits-nothing", "tli-q-not-renormalised", "tli"),
        ("ids-taken-for-target-ids", "draft-ids-unmapped", "union"),
        ("oov-draft-to-zero-declared", "oov-draft-to-zero", "union"),
        ("slem-match-by-text", "slem-prefix-match", "slem"),
        ("slrs-ending-bonus", "slrs-end-ignored", "slrs"),
        ("slrs-exact-decompositions-submitted", "slrs-exact-decompositions", "slrs"),
    ],
)
def test_look_alikes_stand_beside_their_mutants(control: str, mutant: str, algorithm: str) -> None:
    assert ALL[control].rule == ALL[mutant].rule == algorithm
    assert mutant in ALL[control].symptom
    fixtures = fixtures_for(algorithm).values()
    assert any(f.blocks(ALL[control].step) != f.blocks(ALL[mutant].step) for f in fixtures)
