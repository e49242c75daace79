"""Every algorithm is lossless, proved by enumeration on random cases; planted bugs are not."""

import inspect
import itertools
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_tests.helpers.bugs import planted
from specref import Exact, Model, Vocabulary, completed, exact_distribution, is_lossless
from specref.algorithms import autoregressive, slem, slrs, standard, tli, union
from specref.algorithms.decoding import decode
from specref.chance import OutsideChanceError
from specref.distributions import residual, total_variation
from specref.models import iid_model, table_model
from specref.proofs import is_lossless_loop
from specref.proofs.batches import is_jointly_lossless
from specref.proofs.exact import check_step, shares_of, trace_to
from specref.rules import RULES
from specref.spoiled import SpoiledError
from specref.strategies import (
    heterogeneous_pairs,
    iterations,
    model_pairs,
    non_injective_pairs,
    token_level_pairs,
)
from specref.theory import at_most_n_max, fixed, until_determined
from specref.zoo import FIXTURES, MUTANTS
from specref.zoo.parts.standard import speculative
from specref.zoo.standard.printed import algorithm_5

SAME = iterations(model_pairs(), max_lookahead=3)
TOKEN_LEVEL = iterations(token_level_pairs())
STRINGS = iterations(heterogeneous_pairs())
NON_INJECTIVE = iterations(non_injective_pairs())


def keywords(step, **options):
    """The step with its keyword arguments set, named after them in test ids."""
    shown = {key: getattr(value, "__name__", value) for key, value in options.items()}

    def configured(*arguments):
        return step(*arguments, **options)

    configured.__name__ = f"{step.__module__.split('.')[-1]}.{step.__name__}({shown})"
    return configured


def garbage(vocabulary, context, text):
    """Proposals that have nothing to do with the text; some ids do not exist."""
    return tuple((7 * len(text) + 5 * j + sum(context)) % 5 - 1 for j in range(len(text) % 4))


REALIGNED = [keywords(slem.step, propose=slem.realigned(n)) for n in (1, 3)]
GARBAGE = keywords(slem.step, propose=garbage)
SLRS = [
    keywords(slrs.step, rule=rule, ending=ending)
    for rule in (fixed, until_determined, at_most_n_max)
    for ending in ("residual", "bonus")
]
SINGLE = [
    keywords(slrs.single_token_step, rule=rule)
    for rule in (fixed, until_determined, at_most_n_max)
]
STEPS_AND_CASES = {
    "autoregressive": ([autoregressive.step], TOKEN_LEVEL),
    "standard": ([standard.step], SAME),
    "union": ([union.step], TOKEN_LEVEL),
    "tli": ([tli.step], TOKEN_LEVEL),
    "slem": ([slem.step, GARBAGE], STRINGS),
    "slem, not injective": ([slem.step, *REALIGNED, GARBAGE], NON_INJECTIVE),
    "slrs": (SLRS, STRINGS),
    "slrs, not injective": (SLRS[:4], NON_INJECTIVE),
    "slrs, one token": (SINGLE, STRINGS.filter(lambda case: case[3] > 0)),
}


@pytest.mark.deep(one_in=12)
@pytest.mark.parametrize(("steps", "cases"), STEPS_AND_CASES.values(), ids=STEPS_AND_CASES)
@given(data=st.data())
def test_iteration_and_decode_loop_are_lossless(steps, cases, data):
    case, looped = data.draw(cases), data.draw(st.sampled_from(steps))
    for step in steps:
        proof = is_lossless(step, *case)
        assert proof, f"one iteration of {step.__name__}: {proof.difference}"
    proof = is_lossless_loop(looped, *case, length=3)
    assert proof, f"decode loop of {looped.__name__}: {proof.difference}"


def lossy(proof, *arguments):
    """Whether the proof fails; a crash of the step is no verdict."""
    try:
        return not proof(*arguments)
    except (ValueError, ZeroDivisionError):
        return False


PLANTED = {
    "drafter_token": SAME,
    "always_accepted": SAME,
    "residual_is_target": SAME,
    "residual_is_absolute": SAME,
    "lenient": SAME,
    "lenient_with_its_residual": SAME,
    "argmax_match": SAME,
    "residual_bonus": SAME,
    "drafter_bonus": SAME,
    "argmax_bonus": SAME,
    "stale_bonus": SAME,
    "one_coin": SAME,
    "unlikely_draft_dropped": SAME,
    "argmax_drafted_soft_q_tested": SAME,
    "longer_of_two": SAME,
    "foreign_draft_dropped": TOKEN_LEVEL,
    "intersection_drafted_raw_q_tested": TOKEN_LEVEL,
    "slem_first_match": STRINGS,
    "slem_proposal_kept": NON_INJECTIVE,
    "slrs_first_psi_everywhere": STRINGS,
    "slrs_psi_by_decompositions": STRINGS,
    "slrs_psi_of_fixed_q": STRINGS,
    "slrs_one_draft_more": STRINGS,
    "slrs_falls_through": STRINGS,
}


planted_bugs = pytest.mark.parametrize(("name", "cases"), PLANTED.items(), ids=PLANTED)


@pytest.mark.deep(one_in=8)
@planted_bugs
def test_planted_bug_is_refuted_in_one_iteration(name, cases, counterexample):
    step = getattr(planted, name)
    assert counterexample(cases, lambda case: not lossy(is_lossless, step, *case))


@pytest.mark.deep(one_in=8)
@planted_bugs
def test_planted_bug_is_refuted_in_the_decode_loop(name, cases, counterexample):
    step = getattr(planted, name)
    assert counterexample(cases, lambda case: not lossy(is_lossless_loop, step, *case, 3))


def test_bug_between_iterations_is_refuted_in_the_decode_loop(counterexample):
    def holds(case):
        return is_lossless_loop(planted.slem_context_retokenised, *case, 3)

    assert counterexample(STRINGS, holds)


def test_float_models_are_lossless_up_to_rounding():
    p, q = np.array([0.1, 0.7, 0.2]), np.array([0.5, 0.2, 0.3])
    target, drafter = (iid_model(Vocabulary("abc"), row) for row in (p, q))
    for rule in RULES.values():
        if not rule.lossless or rule.name == "optimal":
            continue  # maximum flows are for fractions
        blocks = exact_distribution(partial(rule.step, target, drafter, (), 2))
        length = max(map(len, blocks))
        law = completed(blocks, target, (), length)
        assert total_variation(law, completed({(): 1.0}, target, (), length)) < 1e-15


def test_step_that_asks_for_float_coins_gets_no_proof():
    """accepts_half is lossless; so is this, but 1 / 2 is a float in Python."""
    halved = speculative(
        accept=lambda at: standard.acceptance(at.p, at.q, at.token) / 2,
        recover=lambda at: residual(at.p, np.minimum(at.p, at.q) / 2),
    )
    target = iid_model(Vocabulary("ab"), ["1/5", "4/5"])
    drafter = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    with pytest.raises(TypeError):
        is_lossless(halved, target, drafter, (), 1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"context": "ab"}, "context = 'ab': expected a tuple of token ids"),
        ({"context": b"ab"}, "context = b'ab': expected a tuple of token ids"),
        ({"context": 2}, "context = 2: expected a tuple of token ids"),
        ({"context": (0, "b")}, r"context\[1\] = 'b': expected a token id"),
        ({"drafter": "ab"}, "drafter = 'ab': expected a Model"),
        ({"step": standard}, r"step = <module .*>: expected a function, such as standard\.step"),
    ],
)
def test_arguments_of_the_wrong_type(changed, message):
    model = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    arguments = {"step": standard.step, "target": model, "drafter": model, "context": ()}
    with pytest.raises(TypeError, match=message):
        is_lossless(**(arguments | changed))


COIN, HEADS = (iid_model(Vocabulary("ab"), row) for row in (["1/3", "2/3"], [0, 1]))


def argmax(target, drafter, context, lookahead, chance):
    return (int(np.argmax(target.next_token(context))),)


def first_token(target, drafter, context, lookahead, chance):
    return (0,)


def bonus_from_numpy(rng):
    def step(target, drafter, context, lookahead, chance):
        block = standard.step(target, drafter, context, lookahead, chance)
        return (*block[:-1], int(rng.integers(2))) if len(block) > lookahead else block

    return step


PROOFS = [is_lossless, partial(is_lossless_loop, length=3)]


@pytest.mark.parametrize("prove", PROOFS)
def test_what_never_asks_chance_is_no_proof_against_it(prove):
    with pytest.raises(OutsideChanceError, match="no decision from chance: it asked for nothing"):
        prove(argmax, COIN, COIN, (), 1)


@pytest.mark.parametrize("prove", PROOFS)
def test_what_is_certain_needs_no_chance(prove):
    """A point mass: argmax is lossless there, and another token is lossy."""
    assert prove(argmax, HEADS, COIN, (), 1)
    assert prove(first_token, HEADS, COIN, (), 1).total_variation == 1


@pytest.mark.parametrize("prove", PROOFS)
def test_what_draws_elsewhere_is_neither_proved_nor_refuted(prove):
    step = bonus_from_numpy(np.random.default_rng(1))
    with pytest.raises(OutsideChanceError, match="two runs with the same choices"):
        prove(step, COIN, HEADS, (), 1)


def test_batches_that_keep_state_are_no_function_of_chance():
    rng = np.random.default_rng(1)

    def batch(target, drafter, contexts, lookahead, chance):
        return tuple((int(rng.integers(2)),) for _ in contexts)

    with pytest.raises(OutsideChanceError):
        is_jointly_lossless(batch, COIN, COIN, [(), ()])


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("01", "step returned str: expected a tuple of token ids"),
        (1, "step returned int"),
        (None, "step returned NoneType"),
        ([[0]], r"block\[0\] = \[0\]: expected a token id"),
        ((0.0,), r"block\[0\] = 0.0: expected a token id"),
        (itertools.repeat(0), "step returned more than 1,000 tokens"),
        ((0,) * 30, "more than 1,000 texts of 30 tokens"),
        ((-1,), r"block\[0\] = -1: expected 0 <= id < 2"),
        ((2,), r"block\[0\] = 2: expected 0 <= id < 2"),
    ],
)
def test_blocks_that_are_none_are_errors(monkeypatch, block, message):
    monkeypatch.setattr("specref.proofs.exact.completed.__defaults__", (1_000,))
    monkeypatch.setattr("specref.proofs.exact.proof.__defaults__", (1_000,))
    with pytest.raises((TypeError, ValueError), match=message):
        is_lossless(lambda *arguments: block, COIN, COIN, (), 1)


def test_steps_that_are_not_awaited_are_errors():
    async def later(target, drafter, context, lookahead, chance):
        return (0,)

    with pytest.raises(TypeError, match="step returned coroutine, which is not awaited"):
        is_lossless(later, COIN, COIN, (), 1)


@pytest.mark.parametrize("kind", [list, np.array, iter], ids=["list", "array", "iterator"])
def test_blocks_may_come_in_any_sequence_of_ids(kind):
    assert is_lossless(lambda *case: kind(standard.step(*case)), COIN, HEADS, (), 2)


def test_a_function_that_does_not_tell_its_arguments_is_called():
    def step(*case):
        return standard.step(*case)

    step.__signature__ = "unknown"
    with pytest.raises(TypeError, match="signature"):
        inspect.signature(step)
    assert is_lossless(step, COIN, HEADS, (), 1)


def test_steps_of_another_signature_are_refused():
    for other in (lambda p, q: (0,), lambda p, q, drafts, *, rng: None):
        with pytest.raises(TypeError, match=r"expected \(target, drafter, context, lookahead, ch"):
            is_lossless(other, COIN, COIN, (), 1)


def test_nobody_can_change_what_a_model_remembers():
    def sets(target, drafter, context, lookahead, chance):
        p = target.next_token(context)
        p.flags.writeable = True
        p[:] = drafter.next_token(context)
        return standard.step(drafter, drafter, context, lookahead, chance)

    with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
        is_lossless(sets, COIN, HEADS, (), 1)
    assert list(COIN.next_token(())) == [Fraction(1, 3), Fraction(2, 3)]


def test_decode_refuses_a_context_of_text():
    model = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    with pytest.raises(TypeError, match=r"context\[0\] = 'a': expected a token id"):
        decode(standard.step, model, model, "ab", 1, 2, Exact())


def test_decode_refuses_empty_blocks():
    model, calls = iid_model(Vocabulary("a"), [1]), iter(range(3))

    def emits_nothing(*arguments):
        next(calls)
        return ()

    with pytest.raises(ValueError, match="empty block"):
        decode(emits_nothing, model, model, (), 1, 2, Exact())


@given(STRINGS, st.sampled_from([1, 2, 3]))
def test_decode_has_the_proved_law(case, length):
    """`decode`, path by path, where `is_lossless_loop` merges contexts."""
    target, drafter, context, lookahead = case
    law = exact_distribution(
        lambda chance: decode(
            slem.step, target, drafter, context, min(lookahead, 1), length, chance
        )
    )
    assert law == completed({(): Fraction(1)}, target, context, length)


def test_a_block_longer_than_the_law_is_refused():
    """Also one that has ended, and so could be counted as it is."""
    model = iid_model(Vocabulary("ab", eos="b"), ["1/2", "1/2"])
    half = Fraction(1, 2)
    with pytest.raises(ValueError, match=r"length = 1: block \(0, 1\) has 2 tokens"):
        completed({(0,): half, (0, 1): half}, model, (), 1)


def test_a_proof_shows_what_comes_out_too_often():
    """As pytest prints it after a failed `assert is_lossless(…)`."""
    ab = Vocabulary("ab")
    target, drafter = iid_model(ab, ["1/2", "1/2"]), iid_model(ab, ["3/4", "1/4"])
    assert repr(is_lossless(algorithm_5, target, drafter)) == (
        "Proof(lossless=False, total_variation=3/8, paths=3, P(0, 0) = 0, the target's is 1/4)"
    )
    assert repr(is_lossless(standard.step, target, drafter)).endswith("paths=5)")


def test_a_trace_leads_to_the_block_itself_though_a_longer_one_be_likelier():
    def step(target, drafter, context, lookahead, chance):
        return (0,) if chance.accept(Fraction(1, 4), "short") else (0, 1)

    coin = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    assert trace_to((0,), step, coin, coin, (), 1)[0] == (0,)
    assert trace_to((0, 1), step, coin, coin, (), 1)[0] == (0, 1)
    assert trace_to((0, 0), step, coin, coin, (), 1)[0] == (0,)


STEPS = [entry for entry in MUTANTS.values() if entry.rule in ("standard", "block")]


@pytest.mark.deep(one_in=48)
@pytest.mark.parametrize("entry", STEPS, ids=lambda entry: entry.id)
def test_the_shares_of_a_difference_add_up_to_it(entry):
    refuted = 0
    for fixture in FIXTURES.values():
        given = fixture.target, fixture.drafter, (), fixture.lookahead
        difference = is_lossless(entry.step, *given).difference
        if difference is not None:
            refuted += 1
            shares = shares_of(difference, entry.step, *given)
            assert sum(share for _, share in shares) == difference.output
            assert [share for _, share in shares] == sorted((x for _, x in shares), reverse=True)
            block, _ = trace_to(difference.tokens, entry.step, *given)
            both = min(len(block), len(difference.tokens))
            assert not difference.output or block[:both] == difference.tokens[:both]
    assert refuted or entry.case is not None


def test_a_loop_is_no_step_and_a_context_may_have_any_name():
    with pytest.raises(TypeError, match="in place of `lookahead` it is a loop: specref check"):
        check_step(lambda target, drafter, context, tokens, chance: ())
    check_step(lambda target, drafter, tokens, lookahead, chance: ())


class Table:
    """A model of one's own, whose rows are its own arrays: one for every context."""

    def __init__(self, row):
        self.vocabulary, self.row = Vocabulary("abc"), np.array([Fraction(x) for x in row])

    def next_token(self, context):
        return self.row


def in_place(row):
    """A min-p filter, as engines apply it to the memory that they are given."""
    row[row < Fraction(1, 4)] = Fraction(0)
    row /= row.sum()


JUDGES = {
    "is_lossless": lambda step, p, q: is_lossless(step, p, q),
    "is_lossless_loop": lambda step, p, q: is_lossless_loop(step, p, q, (), 1, 2),
    "is_jointly_lossless": lambda step, p, q: is_jointly_lossless(
        lambda p, q, contexts, k, chance: [step(p, q, one, k, chance) for one in contexts],
        p, q, [()],
    ),
}  # fmt: skip


@pytest.mark.parametrize("judge", JUDGES)
def test_a_row_cannot_be_filtered_in_place(judge):
    def step(target, drafter, context, lookahead, chance):
        in_place(target.next_token(context))
        return standard.step(target, drafter, context, lookahead, chance)

    own, other = Table(["1/2", "3/8", "1/8"]), Table(["1/3"] * 3)
    for target in (own, iid_model(own.vocabulary, own.row)):
        with pytest.raises(ValueError, match=r"read-only: .* change a row\.copy\(\)"):
            JUDGES[judge](step, target, other)
    assert list(own.row) == [Fraction(1, 2), Fraction(3, 8), Fraction(1, 8)]


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("after_asking", [False, True])
def test_rows_that_change_beneath_the_judge_are_named(judge, after_asking):
    own, other = Table(["1/2", "3/8", "1/8"]), Table(["1/3"] * 3)

    def step(target, drafter, context, lookahead, chance):
        if after_asking:
            target.next_token(context)
        in_place(target.row)  # the array of the given model
        return standard.step(target, drafter, context, lookahead, chance)

    with pytest.raises(SpoiledError, match=r"the target's row after \(\) was changed"):
        JUDGES[judge](step, own, other)


def test_a_row_deep_in_the_text_that_changes_is_not_believed():
    rows = {text: np.array([Fraction(1, 2)] * 2) for text in itertools.product((0, 1), repeat=2)}
    target = Model(Vocabulary("ab"), lambda text: rows.get(text, ["1/2", "1/2"]))

    def step(target, drafter, context, lookahead, chance):
        row = target.next_token((1, 0)).base
        row.setflags(write=True)
        row[:] = [Fraction(1), Fraction(0)]
        return standard.step(target, drafter, context, lookahead, chance)

    assert not is_lossless(step, target, target, (), 2)


def test_models_of_ones_own_are_judged_as_models_are():
    own, other = Table(["1/2", "3/8", "1/8"]), Table(["1/3"] * 3)
    p, q = (iid_model(one.vocabulary, one.row) for one in (own, other))
    for step in (standard.step, algorithm_5):
        assert is_lossless(step, own, other, (), 2) == is_lossless(step, p, q, (), 2)


def test_rows_that_a_rule_does_not_need_may_be_missing():
    ab, half = Vocabulary("ab"), ["1/2", "1/2"]
    target = table_model(ab, {(): half})

    def one_token(target, drafter, context, lookahead, chance):
        return (chance.draw(target.next_token(context), "draw"),)

    assert is_lossless(one_token, target, iid_model(ab, half), (), 3)


def test_what_a_rule_does_to_its_vocabulary_and_numbers_is_not_believed():
    """Each rule has models of its own: what it emits is judged by those that were given."""
    ended = Vocabulary(["a", "b", "$"], eos="$")
    target, drafter = iid_model(ended, ["1/2", "1/4", "1/4"]), iid_model(ended, ["1/3"] * 3)

    def without_end(target, drafter, context, lookahead, chance):
        object.__setattr__(target.vocabulary, "eos", None)
        block = (chance.draw(target.next_token(context), "first"),)
        return (*block, chance.draw(target.next_token((*context, *block)), "second"))

    def other_numbers(target, drafter, context, lookahead, chance):
        for entry, new in zip(target.next_token(context), (1, 1, 2), strict=True):
            entry._numerator, entry._denominator = new, 4
        return standard.step(target, drafter, context, lookahead, chance)

    for step in (without_end, other_numbers):
        assert not is_lossless(step, target, drafter, (), 1)
    assert [str(p) for p in target.next_token(())] == ["1/2", "1/4", "1/4"]
    assert is_lossless(standard.step, target, drafter, (), 1)
