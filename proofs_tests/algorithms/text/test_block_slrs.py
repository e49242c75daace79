"""Block verification across vocabularies: lossless, in closed form, and never beaten."""

import random
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_tests.helpers.blocks import law, length, most
from specref import Vocabulary, exact_distribution, is_lossless
from specref.algorithms import block, block_slrs, slem, slrs
from specref.chance import Replayed, Traced
from specref.distributions import total_variation
from specref.models import as_float, hashed_model, iid_model, table_model
from specref.pairs import cases, toy_pairs
from specref.proofs import is_lossless_loop
from specref.proofs.exact import completed
from specref.strategies import (
    heterogeneous_pairs,
    iterations,
    model_pairs,
    non_injective_pairs,
    vocabularies,
)
from specref.theory import at_most_n_max, conditional_psi, fixed, proposals, until_determined
from specref.theory.block import accepted_prefixes, block_law, tokens_emitted
from specref.verification.rules import prove
from specref.vocabulary import UntokenisableError
from specref.zoo import ALL
from specref.zoo.fixtures import BLOCK_TEXTS

F = Fraction
AB, ABC = Vocabulary("ab"), Vocabulary("abc")
RULES = [fixed, at_most_n_max, until_determined]
ANY_RULE = st.sampled_from(
    [fixed, until_determined]
)  # n_max needs tokenisers that do not normalise
CASES = iterations(heterogeneous_pairs() | non_injective_pairs(), max_lookahead=2)
SMALL = iterations(heterogeneous_pairs(max_tokens=3) | non_injective_pairs(max_tokens=3))


def step_by(rule, step=block_slrs.step):
    return partial(step, rule=rule)


def rows_of(case, rule=fixed):
    target, drafter, context, lookahead = case
    seen = drafter.vocabulary.encode(target.vocabulary.decode(context))
    return conditional_psi(target.vocabulary, drafter, seen, lookahead, rule)


def ending_mass(rows):
    """The mass of texts that end where others go on."""
    return {prefix for prefix, row in rows.items() if prefix and 0 < row.sum() < 1}


@given(CASES, ANY_RULE)
def test_lossless(case, rule):
    proof = is_lossless(step_by(rule), *case)
    assert proof, proof.difference


@pytest.mark.deep
def test_lossless_on_all_toy_pairs():
    report = prove(block_slrs.step, same_vocabulary=False)
    assert (report.refuted, report.raised) == ((), ())
    assert (report.proved, report.not_applicable) == (930, 16)


@pytest.mark.deep
@pytest.mark.parametrize("rule", [at_most_n_max, until_determined])
def test_lossless_by_other_lookahead_rules(rule):
    """On the toy pairs of the quick profile that both tokenisers can read."""
    pairs = [pair for pair in toy_pairs() if pair.by_text]
    if rule is at_most_n_max:
        pairs = [pair for pair in pairs if pair.target.vocabulary.normalise is None]
    proved = 0
    for case in cases(pairs, "quick"):
        proved += is_lossless(
            step_by(rule), case.pair.target, case.pair.drafter, case.context, case.lookahead
        ).lossless
    assert proved == len([*cases(pairs, "quick")])


def words(rng, alphabet, count, eos):
    """The letters, and more words over them, shuffled; one may be EOS."""
    more = {"".join(rng.choices(alphabet, k=rng.choice([2, 2, 3]))) for _ in range(count)}
    tokens = [*alphabet, *sorted(more)]
    rng.shuffle(tokens)
    return Vocabulary(tokens, eos=rng.choice(tokens) if eos else None)


def random_case(seed):
    """Two vocabularies over the same letters, models of the whole context, a lookahead."""
    rng = random.Random(seed)
    alphabet = rng.choice(["ab", "abc"])
    vocabularies = [words(rng, alphabet, rng.randint(0, 3), rng.random() < 0.3) for _ in "pq"]
    target, drafter = (
        hashed_model(v, f"{r} {seed}") for v, r in zip(vocabularies, "pq", strict=True)
    )
    context = tuple(rng.choices(range(len(target.vocabulary)), k=rng.choice([0, 0, 2])))
    return target, drafter, context, rng.choice([1, 2, 2])


def merges(case):
    """Whether some text has fewer target tokens than drafts."""
    target, drafter, context, lookahead = case
    seen = drafter.vocabulary.encode(target.vocabulary.decode(context))
    texts = proposals(target.vocabulary, drafter, seen, lookahead)
    return any(len(tokens) < lookahead for tokens in texts)


@pytest.mark.deep
def test_lossless_on_200_random_vocabulary_pairs():
    """By enumeration; 3 lookahead rules in turn. What the pairs have in them is counted."""
    seen = {"END": 0, "merged": 0, "EOS": 0, "context": 0}
    for seed in range(200):
        case, rule = random_case(seed), RULES[seed % 3]
        assert is_lossless(step_by(rule), *case), seed
        assert law(step_by(rule), case) == block_law(case[0], case[2], rows_of(case, rule)), seed
        seen["END"] += bool(ending_mass(rows_of(case, rule)))
        seen["merged"] += merges(case)
        seen["EOS"] += case[0].vocabulary.eos is not None
        seen["context"] += bool(case[2])
    assert seen == {"END": 118, "merged": 78, "EOS": 54, "context": 75}


@pytest.mark.deep
@given(SMALL, ANY_RULE)
def test_decode_loops_are_lossless(case, rule):
    assert is_lossless_loop(step_by(rule), *case, length=3)


TEXT_MUTANTS = [entry.id for entry in ALL.values() if entry.rule == "block-slrs"]


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("mutant", [name for name in TEXT_MUTANTS if not ALL[name].lossless])
def test_the_same_proof_refutes_mutants(mutant, counterexample):
    step = ALL[mutant].step
    assert counterexample(CASES, lambda case: is_lossless(step, *case))


@given(CASES, ANY_RULE)
def test_the_law_of_the_block_is_known(case, rule):
    blocks, rows = law(step_by(rule), case), rows_of(case, rule)
    assert blocks == block_law(case[0], case[2], rows)
    assert length(blocks) == tokens_emitted(
        accepted_prefixes(case[0], case[2], rows), case[0].vocabulary
    )


def test_the_law_is_that_of_no_other_rule(counterexample):
    for step in (slrs.step, ALL["block-given-more"].step):
        assert counterexample(
            CASES, lambda case, s=step: law(s, case) == block_law(case[0], case[2], rows_of(case))
        )


@given(iterations(model_pairs(vocabularies(max_tokens=3, longest=1, eos=True))))
def test_over_single_letters_it_is_block_verification(case):
    """psi is q."""
    assert law(block_slrs.step, case) == law(block.step, case)


def chain(case, rule=fixed):
    """Expected tokens of an iteration: block verification, SLRS by both endings, SLEM."""
    endings = [partial(slrs.step, rule=rule, ending=ending) for ending in ("residual", "bonus")]
    return [length(law(step, case)) for step in (step_by(rule), *endings, slem.step)]


@given(SMALL)
def test_it_accepts_at_least_as_much_as_slrs_and_slem(case):
    by_block, residual, bonus, exact_match = chain(case)
    assert by_block >= residual >= bonus >= exact_match


@pytest.mark.deep
def test_it_accepts_more_on_many_pairs():
    """200 random pairs; block > residual, residual > bonus, bonus > SLEM, each counted."""
    chains = [chain(random_case(seed)) for seed in range(200)]
    assert all(by == sorted(by, reverse=True) for by in chains)
    strict = [sum(by[k] > by[k + 1] for by in chains) for k in range(3)]
    assert strict == [73, 81, 171]


def test_the_order_is_not_that_of_other_pairs_of_rules():
    """Block verification of psi given more accepts less than SLRS with psi itself."""
    fixture = BLOCK_TEXTS["spelled"]
    given_more = ALL["block-given-more"].step
    assert length(fixture.blocks(given_more)) < length(fixture.blocks(slrs.step))


@pytest.mark.parametrize("seed", range(8))
def test_no_lossless_rule_accepts_more(seed):
    """Over all rules that see the text, keep some of its tokens, and add one."""
    drafted = Vocabulary(["a", "b", "ab", "bb"][: 3 + seed % 2])
    target, drafter = hashed_model(AB, f"p most {seed}"), hashed_model(drafted, f"q most {seed}")
    texts = proposals(AB, drafter, (), 2)
    best = most(target, (), texts)
    accepted = accepted_prefixes(target, (), rows_of((target, drafter, (), 2)))
    formula = tokens_emitted(accepted, AB)
    assert best == pytest.approx(float(formula - 1), abs=1e-9)


def test_a_text_may_end_within_a_draft():
    """Timor et al. 2025, section 3.3: d_1 = aa is two target tokens, of which one may be kept.

    psi(a) = 2/3, psi(a | a) = 1/2 and END 1/2. p = 1/2: P_1(a) = 3/4, P_2 = min(1, 3/4) = 3/4.
    """
    drafter = iid_model(Vocabulary(["a", "b", "aa"]), ["1/3", "1/3", "1/3"])
    case = (iid_model(AB, ["1/2", "1/2"]), drafter, (), 1)
    accepted = accepted_prefixes(case[0], (), rows_of(case))
    assert {x: str(w) for x, w in accepted.items()} == {
        (): "1",
        (0,): "1/2",
        (1,): "1/3",
        (0, 0): "1/4",
    }
    assert is_lossless(block_slrs.step, *case)


def words_of(p, q, drafted, lookahead, eos=None):
    letters = Vocabulary("ab$"[: len(p)], eos=eos)
    drafter = Vocabulary(drafted, eos=eos if eos in [*drafted] else None)
    return iid_model(letters, p), iid_model(drafter, q), (), lookahead


ATTACKS = {
    "nothing drafted: all mass is END's": words_of([1, 0], [1], ["a"], 0),
    "letters alone": words_of(["1/2", "1/2"], ["1/2", "1/2"], "ab", 1),
    "END nearly sure": words_of(["1/2", "1/2"], ["98/100", "1/100", "1/100"], ["a", "b", "ab"], 1),
    "END where p excludes the text": words_of([0, 1], ["1/2", "1/2"], ["a", "ab"], 2),
    "p excludes what follows END": words_of([1, 0], ["1/2", "1/2"], ["a", "ab"], 2),
    "psi above p on every token": words_of(
        ["1/3", "1/3", "1/3"], ["1/2", "1/2"], ["ab", "abab"], 1
    ),
    "p equal to psi and no END": words_of(
        ["1/2", "1/2"], ["1/4"] * 4, ["aa", "ab", "ba", "bb"], 1
    ),
    "EOS within a word": words_of(["1/3", "1/3", "1/3"], ["1/2", "1/2"], ["a$b", "a"], 2, "$"),
    "EOS of the target alone": words_of(["1/2", 0, "1/2"], ["1/2", "1/2"], ["$", "a$a"], 1, "$"),
    "target never ends": words_of(["1/2", "1/2", 0], ["1/2", "1/2"], ["$", "a"], 3, "$"),
}


@pytest.mark.parametrize("case", ATTACKS.values(), ids=ATTACKS)
def test_attacks_on_the_support(case):
    target, _, context, _ = case
    proof = is_lossless(block_slrs.step, *case)
    assert proof, proof.difference
    assert law(block_slrs.step, case) == block_law(target, context, rows_of(case))


def test_the_target_is_not_asked_beyond_what_it_excludes():
    target = table_model(AB, {(): [0, 1], (1,): [0, 1], (1, 1): [0, 1]})
    drafter = iid_model(Vocabulary(["a", "aab", "bb"]), ["1/3", "1/3", "1/3"])
    assert law(block_slrs.step, (target, drafter, (), 1)).keys() == {(1,), (1, 1, 1)}


def test_sites():
    """A text that nothing could follow is fully accepted: a bonus token. Otherwise a residual."""
    target = iid_model(AB, ["1/2", "1/2"])
    for drafted, sites in {
        "ab": ["draft[0]", "accept[0]", "bonus"],
        ("a", "aa"): ["draft[0]", "accept[0]", "residual"],
    }.items():
        drafter = iid_model(Vocabulary(drafted), ["1/2", "1/2"])
        chance = Traced(Replayed([0, 1, 1]))
        assert block_slrs.step(target, drafter, (), 1, chance) == (0, 1)
        assert [asked.site for asked in chance.steps] == sites


def test_floats_have_the_same_law():
    for fixture in BLOCK_TEXTS.values():
        floats = as_float(fixture.target), as_float(fixture.drafter), (), 2
        blocks = exact_distribution(lambda chance: block_slrs.step(*floats, chance))  # noqa: B023
        assert total_variation(blocks, fixture.blocks(block_slrs.step)) < 1e-12


def test_errors_are_those_of_slrs():
    target = iid_model(AB, ["1/2", "1/2"])
    with pytest.raises(UntokenisableError, match="no token matches"):
        law(block_slrs.step, (target, iid_model(ABC, ["1/3", "1/3", "1/3"]), (), 1))
    with pytest.raises(ValueError, match="lookahead = -1"):
        law(block_slrs.step, (target, target, (), -1))


def test_completing_the_closed_form_gives_the_target_at_greater_lookahead():
    """No enumeration of coins: lookahead 4, texts of up to 8 tokens."""
    target = hashed_model(AB, "long p")
    drafter = hashed_model(Vocabulary(["a", "b", "ab", "bb"]), "long q")
    for lookahead in (3, 4):
        blocks = block_law(target, (), rows_of((target, drafter, (), lookahead)))
        longest = max(map(len, blocks))
        expected = completed({(): F(1)}, target, (), longest)
        assert completed(blocks, target, (), longest) == expected
