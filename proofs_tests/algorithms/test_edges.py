"""Edges of the algorithms: float ties, drafts that read as nothing, contexts nobody can read."""

import numpy as np
import pytest

from specref import Vocabulary, exact_distribution, is_lossless
from specref.algorithms import slrs, standard, union
from specref.algorithms.lookahead import fixed
from specref.chance import Sampled, Traced
from specref.models import as_float, hashed_model, iid_model, table_model
from specref.rules import RULES
from specref.theory import psi, psi_iid

AB = Vocabulary("ab")


@pytest.mark.parametrize("step", [standard.step, slrs.step, slrs.single_token_step])
def test_floats_that_differ_by_rounding_alone_do_not_crash(step) -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        p = rng.dirichlet([1, 1])
        q = np.nextafter(p, rng.integers(0, 2, 2))
        target, drafter = iid_model(AB, p), iid_model(AB, q)
        law = exact_distribution(lambda c, t=target, d=drafter: step(t, d, (), 2, c))
        first = sum(weight for block, weight in law.items() if block[0] == 0)
        assert first == pytest.approx(p[0], abs=1e-12)


def test_exact_numbers_still_refuse_an_empty_residual() -> None:
    never = iid_model(AB, ["1/2", "1/2"])
    p = never.next_token(())
    with pytest.raises(ValueError, match="all zero"):
        standard.corrected(p, p)


def test_slrs_with_a_text_that_reads_as_nothing() -> None:
    silent = Vocabulary("ab", normalise=lambda text: text.replace("x", ""))
    target = iid_model(silent, ["1/3", "2/3"])
    drafter = iid_model(Vocabulary("abx"), ["1/4", "1/4", "1/2"])
    assert psi(silent, drafter).sum() == 1 / 2
    for step in (slrs.step, slrs.single_token_step):
        assert is_lossless(step, target, drafter, (), 1)


def test_slrs_refuses_an_unknown_ending() -> None:
    model = hashed_model(AB, "p")
    with pytest.raises(ValueError, match="ending = 'end'"):
        exact_distribution(lambda c: slrs.step(model, model, (), 1, c, rule=fixed, ending="end"))


def test_psi_iid_reads_first_tokens_of_texts_that_cannot_go_on() -> None:
    vocabulary, drafter = Vocabulary(["aa", "aab", "aba", "bb"]), Vocabulary(["aaa"])
    law = psi_iid(vocabulary, drafter, np.array([1.0]), 2)
    assert law.tolist() == psi(vocabulary, iid_model(drafter, [1.0]), (), 2).tolist()


def test_acceptance_where_the_drafter_cannot_read_the_context() -> None:
    target = table_model(Vocabulary("abc"), {(2,): ["1/2", "1/4", "1/4"]})
    drafter = iid_model(AB, ["1/2", "1/2"])
    assert RULES["union"].acceptance_rate(target, drafter, (2,)) == 0
    blocks = exact_distribution(lambda c: union.step(target, drafter, (2,), 2, c))
    assert set(map(len, blocks)) == {1}


def test_float_models_give_float_laws() -> None:
    model = as_float(hashed_model(AB, "p"))
    law = exact_distribution(lambda c: standard.step(model, model, (), 1, c))
    assert sum(law.values()) == pytest.approx(1)


def test_union_drafts_on_after_a_shared_token_and_ends_at_another() -> None:
    target = iid_model(AB, ["1/2", "1/2"])
    shared = iid_model(Vocabulary("bax"), ["1/2", "1/2", 0])
    law = exact_distribution(lambda c: union.step(target, shared, (), 2, c))
    assert set(map(len, law)) == {3}
    foreign = iid_model(Vocabulary("bax"), [0, 0, 1])
    chance = Traced(Sampled(np.random.default_rng(1)))
    assert len(union.step(target, foreign, (), 2, chance)) == 1
    drafted = [one.site for one in chance.steps if one.site.startswith("draft")]
    assert drafted == ["draft[0]"]


def test_standard_needs_one_vocabulary() -> None:
    target, drafter = hashed_model(AB, "p"), hashed_model(Vocabulary("ba"), "q")
    with pytest.raises(ValueError, match="drafter has another vocabulary than target: use union"):
        exact_distribution(lambda c: standard.step(target, drafter, (), 1, c))
    with pytest.raises(ValueError, match="drafter has another vocabulary than target"):
        RULES["standard"].acceptance_rate(target, drafter)
