"""The main job notices what it is there to notice."""

from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import pytest

from specref.algorithms import ALGORITHMS, autoregressive, slem, slrs, standard
from specref.pairs import Case, toy_pairs
from specref.verification import (
    AlgorithmReport,
    Verification,
    accepted_lengths,
    applies,
    cases_of,
    check_case,
    main_job,
    prove_rule,
    sample,
    verify,
)
from specref.vocabulary import UntokenisableError


def case_named(name: str, lookahead: int = 2) -> Case:
    return Case(next(pair for pair in toy_pairs() if pair.name == name), (), lookahead)


def test_a_lossless_step_with_another_acceptance_law_fails() -> None:
    case = case_named("four tokens")
    assert not check_case("standard", standard.step, case).failures
    failures = check_case("standard", slem.step, case).failures
    assert any("acceptance" in failure for failure in failures)
    assert not any("lossy" in failure for failure in failures)


def test_a_step_that_is_right_only_at_the_empty_context_fails_in_the_loop() -> None:
    def forgetful(target, drafter, context, lookahead, chance):
        return standard.step(target, drafter, context[:0], lookahead, chance)

    failures = check_case("standard", forgetful, case_named("order 1, zeros")).failures
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


@pytest.mark.parametrize("step", [slem.step, slrs.step])
def test_vocabularies_that_cannot_be_read_are_not_applicable(step) -> None:
    report = prove_rule(step, same_vocabulary=False)
    assert (report.proved, report.not_applicable) == (138, 16)
    assert not report.raised
    assert not report.refuted


def test_a_rule_that_cannot_read_what_can_be_read_has_failed() -> None:
    def unread(target, drafter, context, lookahead, chance):
        raise UntokenisableError("cannot tokenise 'ab'")

    report = prove_rule(unread, same_vocabulary=False)
    assert (report.proved, report.not_applicable) == (0, 16)
    assert len(report.raised) == 138


def test_an_error_on_unreadable_vocabularies_is_still_an_error() -> None:
    def fails(target, drafter, context, lookahead, chance):
        drafter.vocabulary.ids[target.vocabulary.tokens[0]]
        return standard.step(target, target, context, lookahead, chance)

    report = prove_rule(fails, same_vocabulary=False)
    assert report.not_applicable == 0
    assert {type(error) for _, error in report.raised} == {KeyError}


@pytest.fixture
def small_job(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"standard": standard.step, "autoregressive": autoregressive.step}
    monkeypatch.setattr(main_job, "ALGORITHMS", few)
    monkeypatch.setitem(main_job.TRIALS, "quick", 2_000)
    monkeypatch.setitem(main_job.EPS, "quick", 0.25)


def outcome(seed: int = 0, executor: Executor | None = None) -> Verification:
    """A verification without its times."""
    verification = verify(seed=seed, executor=executor)
    reports = [
        replace(report, seconds=0, monte_carlo=replace(report.monte_carlo, seconds=0))
        for report in verification.reports
    ]
    return replace(verification, reports=tuple(reports))


@pytest.mark.usefixtures("small_job")
def test_the_result_does_not_depend_on_the_workers() -> None:
    serial = outcome()
    assert serial.ok
    assert [report.cases for report in serial.reports] == [68, 154]
    with ThreadPoolExecutor(3) as threads:
        assert outcome(executor=threads) == serial
    for workers in (1, 2):
        with ProcessPoolExecutor(workers) as processes:
            assert outcome(executor=processes) == serial
    assert outcome(seed=1) != serial


@pytest.mark.usefixtures("small_job")
def test_each_case_is_told_once() -> None:
    told: list[str] = []
    verify(advance=told.append)
    assert told == ["standard"] * len(cases_of("quick")) + ["autoregressive"] * len(
        cases_of("quick")
    )


@pytest.mark.usefixtures("small_job")
def test_an_error_gives_up_what_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(target, drafter, context, lookahead, chance):
        raise RuntimeError("broken step")

    monkeypatch.setattr(main_job, "ALGORITHMS", {"standard": fails})
    with ThreadPoolExecutor(1) as threads, pytest.raises(RuntimeError, match="broken step"):
        verify(executor=threads)


def test_acceptance_is_measured_beside_the_closed_form() -> None:
    """Alpha 1e-9 for the four pairs; the planted law is 0.4 away, so power is 1."""
    report, acceptance = sample("slem", 20_000, 0.1, seed=1)
    assert report.trials == 80_000
    assert all(measured.agrees for measured in acceptance)
    assert [measured.trials for measured in acceptance] == [20_000] * 4
    assert sum(measured.alpha for measured in acceptance) == pytest.approx(report.alpha)
    wrong = replace(acceptance[0], rate_formula=acceptance[0].rate + 0.4)
    passed = AlgorithmReport("slem", cases=1, monte_carlo=report, acceptance=acceptance)
    assert passed.ok
    failed = replace(passed, acceptance=(wrong, *acceptance[1:]))
    assert "first draft accepted" in failed.problems[0]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("slow",), "profile = 'slow'"),
        (("quick", -1), "seed = -1"),
        (("quick", "0"), "seed = '0'"),
    ],
)
def test_bad_input(arguments: tuple, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        verify(*arguments)
