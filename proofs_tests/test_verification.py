"""The main job notices what it is there to notice."""

from fractions import Fraction

import pytest

from specref import verification
from specref.algorithms import ALGORITHMS, slem, standard
from specref.pairs import Case, toy_pairs
from specref.verification import AlgorithmReport, accepted_lengths, applies, prove_rule


def case_named(name: str, lookahead: int = 2) -> Case:
    return Case(next(pair for pair in toy_pairs() if pair.name == name), (), lookahead)


def checked(algorithm: str, step, case: Case) -> AlgorithmReport:
    return verification._with_case(AlgorithmReport(algorithm), step, case)


def test_a_lossless_step_with_another_acceptance_law_fails() -> None:
    case = case_named("four tokens")
    assert not checked("standard", standard.step, case).failures
    failures = checked("standard", slem.step, case).failures
    assert any("acceptance" in failure for failure in failures)
    assert not any("lossy" in failure for failure in failures)


def test_a_step_that_is_right_only_at_the_empty_context_fails_in_the_loop() -> None:
    def forgetful(target, drafter, context, lookahead, chance):
        return standard.step(target, drafter, context[:0], lookahead, chance)

    failures = checked("standard", forgetful, case_named("order 1, zeros")).failures
    assert len(failures) == 1
    assert "decode loop lossy" in failures[0]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_algorithm_has_cases(algorithm: str) -> None:
    assert sum(applies(algorithm, pair) for pair in toy_pairs()) >= 15


def test_nothing_checked_is_not_ok() -> None:
    assert not AlgorithmReport("standard").ok


def test_an_empty_block_is_an_error_not_a_pass() -> None:
    report = prove_rule(lambda target, drafter, context, lookahead, chance: ())
    assert report.proved == 0
    assert "empty block" in str(report.raised[0][1])


def test_accepted_lengths() -> None:
    assert accepted_lengths({(0, 1, 2): 0.5, (1,): 0.5}) == (0.5, 0, 0.5)


def test_a_rule_that_draws_for_ever_is_stopped_once() -> None:
    def never_ends(target, drafter, context, lookahead, chance):
        while not chance.accept(Fraction(1, 2), "again"):
            pass
        return (0,)

    report = prove_rule(never_ends)
    assert len(report.raised) == 1
    assert "random decisions on one path" in str(report.raised[0][1])


def test_a_rule_may_draw_from_a_list() -> None:
    def listed(target, drafter, context, lookahead, chance):
        return (chance.draw(list(target.next_token(context)), "target[0]"),)

    assert prove_rule(listed).proved > 50
