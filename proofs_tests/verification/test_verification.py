"""The main job notices what it is there to notice."""

import itertools
import pkgutil
import random
import sys
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from functools import partial
from importlib import import_module
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest

from specref import algorithms
from specref.algorithms import autoregressive, slem, standard
from specref.distributions import overlap
from specref.models import hashed_model, iid_model
from specref.pairs import Case, toy_pairs
from specref.proofs import output_distribution
from specref.report import all_rules
from specref.rule import Rule
from specref.rules import RULES, declarable
from specref.statistics import Campaign
from specref.verification import (
    AlgorithmReport,
    Verification,
    accepted_lengths,
    applies,
    cases_of,
    check_case,
    main_job,
    prove,
    rule_cases,
    rules,
    sample,
    verify,
)
from specref.verification.main_job import TRIED, sampled_pairs
from specref.verification.situations import TOY_PAIRS
from specref.vocabulary import UntokenisableError, Vocabulary


def case_named(name: str, lookahead: int = 2) -> Case:
    return Case(next(pair for pair in toy_pairs() if pair.name == name), (), lookahead)


def test_a_lossless_step_with_another_acceptance_law_fails() -> None:
    case = case_named("four tokens")
    assert not check_case(RULES["standard"], case).failures
    failures = check_case(replace(RULES["standard"], step=slem.step), case).failures
    assert any("acceptance" in failure for failure in failures)
    assert not any("lossy" in failure for failure in failures)


def test_a_step_that_is_right_only_at_the_empty_context_fails_in_the_loop() -> None:
    def forgetful(target, drafter, context, lookahead, chance):
        return standard.step(target, drafter, context[:0], lookahead, chance)

    rule = replace(RULES["standard"], step=forgetful)
    failures = check_case(rule, case_named("order 1, zeros")).failures
    assert len(failures) == 1
    assert "decode loop lossy" in failures[0]


def wrong_from_token(number: int):
    """Autoregressive up to a token of the text, then always the first of the vocabulary."""

    def step(target, drafter, context, lookahead, chance):
        if len(context) >= number:
            return (0,)
        return autoregressive.step(target, drafter, context, lookahead, chance)

    return replace(RULES["autoregressive"], step=step)


def test_of_a_loop_the_first_three_tokens_are_proved() -> None:
    case = case_named("order 1, zeros")
    third, fourth = (check_case(wrong_from_token(number), case) for number in (2, 3))
    assert (third.loops, fourth.loops) == (1, 1)
    assert ["decode loop lossy" in failure for failure in third.failures] == [True]
    assert not fourth.failures


def test_loops_are_proved_from_the_start_of_a_text_if_an_iteration_has_few_paths(monkeypatch):
    rule, case = RULES["standard"], case_named("four tokens")
    paths = check_case(rule, case).paths
    for most, loops in ((paths, 1), (paths - 1, 0)):
        monkeypatch.setattr(main_job, "LOOP_PATHS", most)
        assert check_case(rule, case).loops == loops
    monkeypatch.setattr(main_job, "LOOP_PATHS", 10 * paths)
    assert check_case(rule, replace(case, lookahead=1)).loops == 0
    assert check_case(rule, replace(case, context=(1,))).loops == 0


@pytest.mark.parametrize("name", TRIED)
def test_each_rule_has_cases(name: str) -> None:
    assert sum(applies(TRIED[name], pair) for pair in toy_pairs()) >= 15


def modules(step) -> set[str]:
    """Where a step is written, and those that it is made of."""
    parts = (step.func, *step.args, *step.keywords.values()) if isinstance(step, partial) else ()
    return {getattr(step, "__module__", "")}.union(*map(modules, parts))


def with_a_step() -> set[str]:
    """The algorithm files that have a `step` of their own."""
    found = pkgutil.walk_packages(algorithms.__path__, f"{algorithms.__name__}.")
    files = [import_module(one.name) for one in found]
    return {
        file.__name__ for file in files if file.__name__ in modules(getattr(file, "step", None))
    }


def in_no_row() -> set[str]:
    """Those that no rule is made of."""
    return with_a_step().difference(*(modules(rule.step) for rule in TRIED.values()))


def test_every_file_with_a_step_is_in_the_table(tmp_path, monkeypatch):
    of_rules = set().union(*(modules(rule.step) for rule in TRIED.values()))
    assert with_a_step() == {
        name
        for name in of_rules
        if name.startswith(f"{algorithms.__name__}.")
        and name in modules(getattr(import_module(name), "step", None))
    }
    assert len(with_a_step()) >= 17
    assert in_no_row() == set()
    (tmp_path / "planted.py").write_text("def step(): ...")
    monkeypatch.setattr(algorithms, "__path__", [*algorithms.__path__, str(tmp_path)])
    assert in_no_row() == {"specref.algorithms.planted"}
    monkeypatch.delitem(sys.modules, "specref.algorithms.planted")


@pytest.mark.parametrize("name", TRIED)
def test_a_rule_is_proved_or_refuted_on_a_case_and_a_broken_one_is_noticed(name: str) -> None:
    rule, case = TRIED[name], case_named("four tokens", 1)
    report = check_case(rule, case)
    assert not report.failures
    if rule.lossless:
        assert (report.cases, report.refuted) == (1, 0)
        broken = replace(rule, step=lambda t, d, context, lookahead, chance: (0,))
        assert check_case(broken, case).failures


@pytest.mark.parametrize("name", RULES)
def test_the_table_says_which_rules_accept_every_draft_where_p_is_q(name: str) -> None:
    whole = []
    for model in (
        hashed_model(Vocabulary("abc"), "p"),
        iid_model(Vocabulary("ab"), ["1/3", "2/3"]),
    ):
        for lookahead in (1, 2):
            blocks, _ = output_distribution(RULES[name].step, model, model, (), lookahead)
            whole.append(all(len(block) > lookahead for block in blocks))
    assert all(whole) == RULES[name].accepts_equals


@pytest.mark.parametrize("name", declarable())
def test_the_table_says_whose_first_drafts_are_drawn_from_q(name: str) -> None:
    """Such a draft is kept with sum min(p, q) at most; others are kept more often somewhere."""
    abc = Vocabulary("abc")
    hashed = [[hashed_model(abc, f"{key}{which}") for which in "pq"] for key in range(3)]
    flat = [iid_model(abc, row) for row in (["4/5", "1/10", "1/10"], ["1/3"] * 3)]
    kept, bounds = [], []
    for target, drafter in (*hashed, flat):
        blocks, _ = output_distribution(RULES[name].step, target, drafter, (0, 1, 0), 1)
        kept.append(1 - accepted_lengths(blocks)[0])
        bounds.append(overlap(target.next_token((0, 1, 0)), drafter.next_token((0, 1, 0))))
    within = all(share <= bound for share, bound in zip(kept, bounds, strict=True))
    assert within == RULES[name].draws_from_q


@pytest.mark.parametrize("name", ["union", "tli"])
def test_the_table_says_which_rules_never_draft_what_the_target_lacks(name: str) -> None:
    """The first draft is always kept if q is p on shared tokens, and only those are drafted."""
    target = iid_model(Vocabulary("ab"), ["2/3", "1/3"])
    drafter = iid_model(Vocabulary("abx"), ["1/3", "1/6", "1/2"])
    blocks, _ = output_distribution(RULES[name].step, target, drafter, (), 1)
    kept = 1 - accepted_lengths(blocks)[0]
    assert kept == (1 if RULES[name].restricts else Fraction(1, 2))


def test_coins_go_with_a_verification_of_drafts_that_are_given() -> None:
    with pytest.raises(ValueError, match="coins = 'jointly': expected with `verify`"):
        replace(RULES["tli"], coins="jointly")


@pytest.mark.parametrize("name", RULES)
def test_what_a_rule_lacks_is_not_applicable(name: str) -> None:
    rule, report = RULES[name], AlgorithmReport(name, cases=1, refuted=1)
    sampled = [f"{name}: nothing was sampled"] * rule.sampled
    assert list(report.problems) == sampled
    assert all_rules.unsampled(report) == ("not run" if rule.sampled else "n/a")


def test_published_rules_that_are_lossy_are_refuted() -> None:
    lossy = [rule for rule in TRIED.values() if not rule.lossless]
    assert {rule.name for rule in lossy} == {"companion-published", "algorithm-5-printed"}
    for rule in lossy:
        found = [check_case(rule, case) for case in cases_of("quick") if case.lookahead == 1]
        assert sum(report.refuted for report in found) >= 5
        right = replace(rule, step=standard.step)
        assert not sum(check_case(right, case).refuted for case in cases_of("quick")[:40])
        assert AlgorithmReport(rule.name, cases=5).problems == (
            f"{rule.name}: published as it is, and not refuted",
        )


def test_nothing_checked_is_not_ok() -> None:
    assert not AlgorithmReport("standard").ok


def test_an_empty_block_is_an_error_not_a_pass() -> None:
    report = prove(lambda target, drafter, context, lookahead, chance: (), only=[TOY_PAIRS])
    assert report.proved == 0
    assert "empty block" in str(report.raised[0][1])


def test_accepted_lengths() -> None:
    assert accepted_lengths({(0, 1, 2): 0.5, (1,): 0.5}) == (0.5, 0, 0.5)


@pytest.mark.deep
def test_a_rule_that_draws_for_ever_is_stopped_once() -> None:
    def never_ends(target, drafter, context, lookahead, chance):
        while not chance.accept(Fraction(1, 2), "again"):
            pass
        return (0,)

    report = prove(never_ends)
    assert len(report.raised) == 1
    assert "random decisions on one path" in str(report.raised[0][1])


def keeps_state(lengths):
    def step(target, drafter, context, lookahead, chance):
        return standard.step(target, drafter, context, next(lengths) % 2 * lookahead, chance)

    return step


def draws_now_and_then(rng):
    """Wrong in one of a hundred blocks, from a generator of its own."""

    def step(target, drafter, context, lookahead, chance):
        block = standard.step(target, drafter, context, lookahead, chance)
        return block[:1] if rng.random() < 0.01 else block

    return step


def two_threads(target, drafter, context, lookahead, chance):
    drawn = {}
    threads = [
        Thread(target=lambda i=i: drawn.update({i: chance.draw(target.next_token(context), "t")}))
        for i in (0, 1)
    ]
    for thread in random.sample(threads, 2):
        thread.start()
        thread.join()
    return (drawn[0],)


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    "step",
    [
        keeps_state(itertools.count()),
        draws_now_and_then(np.random.default_rng(1)),
        two_threads,
    ],
    ids=["state", "numpy, rarely", "threads"],
)
def test_a_rule_that_is_no_function_of_chance_is_not_judged(step) -> None:
    report = prove(step)
    assert (report.proved, report.refuted, report.raised) == (0, (), ())
    _, error = report.outside
    assert "no function of chance: of two runs with the same choices" in str(error)


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("seed", [None, 0])
def test_a_rule_that_never_asks_chance_is_not_judged(seed) -> None:
    def from_numpy(target, drafter, context, lookahead, chance):
        p = target.next_token(context).astype(float)
        return (int(np.random.default_rng(seed).choice(len(p), p=p)),)

    report = prove(from_numpy, only=[TOY_PAIRS])
    assert (report.proved, report.refuted, report.raised) == (0, (), ())
    assert "takes no decision from chance: it asked for nothing" in str(report.outside[1])


@pytest.mark.deep
def test_a_rule_that_asks_somewhere_is_judged_everywhere() -> None:
    """Without drafts it takes the likeliest token: a bug, and a function of chance."""

    def no_last_draw(target, drafter, context, lookahead, chance):
        if len(target.vocabulary) == 2:
            return (int(np.argmax(target.next_token(context))),)
        return standard.step(target, drafter, context, lookahead, chance)

    report = prove(no_last_draw, only=[TOY_PAIRS])
    assert report.outside is None
    assert report.proved
    assert {len(found.case.pair.target.vocabulary) for found in report.refuted} == {2}


def test_a_rule_may_ask_nothing_where_all_is_certain() -> None:
    def lazy(target, drafter, context, lookahead, chance):
        p = target.next_token(context)
        return (
            (int(np.argmax(p)),)
            if max(p) == 1
            else autoregressive.step(target, drafter, context, lookahead, chance)
        )

    report = prove(lazy, only=[TOY_PAIRS])
    assert report.proved == len(rule_cases("quick", True, [TOY_PAIRS]))
    assert report.outside is None


@pytest.mark.deep
def test_very_long_blocks_are_an_error_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_TEXTS", 2_000)
    report = prove(lambda *case: (*standard.step(*case), *[0] * 40))
    assert len(report.raised) == 1
    assert "more than 2,000 texts of 42 tokens" in str(report.raised[0][1])


def test_a_rule_that_raises_on_some_paths_is_not_proved_there() -> None:
    def some(*case):
        block = standard.step(*case)
        if len(block) == 2:
            raise GeneratorExit
        return block

    report = prove(some, only=[TOY_PAIRS])
    assert report.refuted == ()
    assert {type(error) for _, error in report.raised} == {GeneratorExit}


def test_a_rule_may_draw_from_a_list() -> None:
    def listed(target, drafter, context, lookahead, chance):
        return (chance.draw(list(target.next_token(context)), "target[0]"),)

    assert prove(listed, only=[TOY_PAIRS]).proved > 50


def test_a_rule_that_cannot_read_what_can_be_read_has_failed() -> None:
    def unread(target, drafter, context, lookahead, chance):
        raise UntokenisableError("cannot tokenise 'ab'")

    report = prove(unread, same_vocabulary=False, only=[TOY_PAIRS])
    assert (report.proved, report.not_applicable) == (0, 16)
    assert len(report.raised) == len(rule_cases("quick", False, [TOY_PAIRS])) - 16


@pytest.mark.deep
def test_an_error_on_unreadable_vocabularies_is_still_an_error() -> None:
    def fails(target, drafter, context, lookahead, chance):
        drafter.vocabulary.ids[target.vocabulary.tokens[0]]
        return standard.step(target, target, context, lookahead, chance)

    report = prove(fails, same_vocabulary=False, only=[TOY_PAIRS])
    assert report.not_applicable == 0
    assert {type(error) for _, error in report.raised} == {KeyError}


@pytest.fixture
def small_job(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: RULES[name] for name in ("standard", "autoregressive")}
    monkeypatch.setattr(main_job, "TRIED", few)
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


@pytest.mark.deep
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


@pytest.fixture
def nothing_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    def check_case(rule: Rule, case: Case) -> AlgorithmReport:
        return AlgorithmReport(rule.name, cases=1)

    monkeypatch.setattr(main_job, "check_case", check_case)


@pytest.mark.usefixtures("small_job")
def test_an_error_gives_up_what_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(target, drafter, context, lookahead, chance):
        raise RuntimeError("broken step")

    broken = replace(RULES["standard"], step=fails)
    monkeypatch.setattr(main_job, "TRIED", {"standard": broken})
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


def test_reports_of_parts_add_up() -> None:
    counts = ("cases", "paths", "not_applicable", "loops", "acceptances", "seconds", "refuted")
    one = AlgorithmReport("slem", **{name: 2**i for i, name in enumerate(counts)}, failures=("a",))
    both = one + replace(one, failures=("b",))
    assert [getattr(both, name) for name in counts] == [2 ** (i + 1) for i in range(len(counts))]
    assert both.failures == ("a", "b")


def test_pairs_without_blocks_have_no_measured_acceptance(monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign that is decided early may leave some out."""
    monkeypatch.setattr("specref.verification.main_job.run", lambda *given, **options: None)
    _, acceptance = sample("standard", 1_000, 0.1, seed=1)
    assert acceptance == ()


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


@pytest.mark.parametrize("profile", main_job.TRIALS)
def test_blocks_of_each_profile_certify_its_distance_and_not_one_ten_times_smaller(profile):
    trials, eps = main_job.TRIALS[profile], main_job.EPS[profile]
    for name in ("standard", "slrs"):
        for distance, enough in ((eps, True), (eps / 10, False)):
            campaign = Campaign(eps=distance)
            for pair in sampled_pairs(name):
                arguments = (pair.target, pair.drafter, (), main_job.LOOP_LOOKAHEAD)
                campaign.case(*arguments, algorithm=name, name=pair.name, mutants={})
            needed = [campaign.needed(case) for case in campaign.cases]
            assert [number <= trials for number in needed] == [enough] * len(needed)


@pytest.mark.usefixtures("small_job", "nothing_proved")
def test_each_case_is_told_once_and_seconds_are_those_of_the_work(monkeypatch):
    told: list[str] = []
    # A clock that goes on by one second a look: each job takes one second.
    looks = itertools.count()
    monkeypatch.setattr(main_job, "time", SimpleNamespace(perf_counter=lambda: float(next(looks))))
    reports = verify(advance=told.append).reports
    cases = len(cases_of("quick"))
    assert told == ["standard"] * cases + ["autoregressive"] * cases
    jobs = -(-cases // main_job.CASES_IN_A_JOB)
    assert [report.seconds for report in reports] == [
        jobs + bool(report.monte_carlo) for report in reports
    ]
    assert next(looks) == 2 * sum(report.seconds for report in reports)
