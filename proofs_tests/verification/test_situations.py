"""Bugs that act in one situation: the toy pairs prove the rule, the situations refute it."""

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from fractions import Fraction
from typing import NamedTuple

import pytest

from proofs_tests.helpers.recorded_cases import RECORD, recorded
from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.algorithms.standard import acceptance
from specref.distributions import Probabilities, corrected, is_exact
from specref.models import Model, iid_model, table_model
from specref.proofs import is_lossless
from specref.report.machine import as_json
from specref.report.rules import rule_record
from specref.verification import (
    SITUATIONS,
    InterruptedProofError,
    RuleReport,
    prove,
    rule_cases,
    rules,
)
from specref.verification import situations as every
from specref.verification.rules import Refutation
from specref.verification.situations import situations
from specref.vocabulary import Tokens, Vocabulary


class Place(NamedTuple):
    """Where a draft is verified."""

    p: Probabilities
    q: Probabilities
    token: int
    position: int
    context: Tokens
    lookahead: int
    target: Model
    first_q: Probabilities

    @property
    def ratio(self) -> Fraction:
        return self.p[self.token] / self.q[self.token]

    @property
    def residual_size(self) -> int:
        return int(sum(self.p > self.q))

    @property
    def possible(self) -> int:
        return int(sum(self.p > 0)) - 2

    @property
    def was_equal(self) -> bool:
        before = self.target.next_token(self.context)
        return bool((before == self.first_q).all())

    @property
    def eos(self) -> int | None:
        eos = self.target.vocabulary.eos
        return None if eos is None else self.target.vocabulary.ids[eos]


def planted(condition: Callable[[Place], bool]) -> Step:
    """Where the condition holds, a rejected draft is followed by a token of p."""

    def step(target, drafter, context, lookahead, chance):
        block: Tokens = ()
        drafts = standard.draft(drafter, context, lookahead, chance)
        for i, (token, q) in enumerate(drafts):
            p = target.next_token((*context, *block))
            if not chance.accept(acceptance(p, q, token), f"accept[{i}]"):
                place = Place(p, q, token, i, context, lookahead, target, drafts[0].q)
                acts = condition(place)
                return (*block, chance.draw(p if acts else corrected(p, q), "residual"))
            block = (*block, token)
            if target.vocabulary.ends(block):
                return block
        return (*block, chance.draw(target.next_token((*context, *block)), "bonus"))

    return step


last_of_six = planted(lambda at: at.position == 5)
unseen = planted(
    lambda at: (
        len(at.p) >= 2000
        or at.lookahead > 16
        or len(at.context) == 200
        or 0 < at.p[at.token] < Fraction(1, 10**15)
        or Fraction(613, 1000) < at.ratio < Fraction(615, 1000)
    )
)
"""Lossy in five places where no case of `specref prove` leads."""


def smallest(row: Probabilities) -> Fraction:
    return min(entry for entry in row if entry)


BUGS: dict[str, dict[str, Callable[[Place], bool]]] = {
    "initial contexts": {
        "initial context of one token": lambda at: len(at.context) == 1,
        "initial context of three tokens": lambda at: len(at.context) == 3,
        "initial context above 200 tokens": lambda at: len(at.context) > 200,
    },
    "vocabulary sizes": {
        "six tokens and more": lambda at: len(at.p) >= 6,
        "V no multiple of 8, above 8": lambda at: len(at.p) > 8 and len(at.p) % 8 > 0,
        "ids of two bytes": lambda at: at.token >= 256,
    },
    "lookaheads": {
        "five drafts": lambda at: at.lookahead == 5,
        "the fifth draft": lambda at: at.position == 4,
        "eight drafts": lambda at: at.lookahead == 8,
    },
    "small p and q": {
        "p at most 1/100": lambda at: smallest(at.p) <= Fraction(1, 100),
        "q at most 1/100": lambda at: smallest(at.q) <= Fraction(1, 100),
        "p of the draft below 1e-8": lambda at: 0 < at.p[at.token] < 1e-8,
        "max p at least 19/20, below 1": lambda at: Fraction(19, 20) <= max(at.p) < 1,
        "p / q from 1/50 to 1/10": lambda at: Fraction(1, 50) < at.ratio < Fraction(1, 10),
        "p / q below 1/1000": lambda at: 0 < at.ratio < Fraction(1, 1000),
    },
    "EOS": {
        "EOS is id 0": lambda at: at.eos == 0,
        "p(EOS) < q(EOS)": lambda at: at.eos == at.token and at.position == 0 and at.ratio < 1,
        "EOS is the third draft": lambda at: at.eos == at.token and at.position == 2,
    },
    "residual sizes": {
        "residual of four tokens": lambda at: at.residual_size == 4,
        "residual of six tokens": lambda at: at.residual_size == 6,
    },
    "equal rows": {
        "p is q before the second draft": lambda at: at.position == 1 and at.was_equal,
    },
    "mixed": {
        "the three likeliest tokens tie": lambda at: len({*sorted(at.p)[-3:]}) == 1 < at.possible,
        "q has a denominator of 23": lambda at: at.q[at.token].denominator % 23 == 0,
    },
}


def size(found: Refutation) -> tuple[int, int, int]:
    """What is smallest in the counterexample that is shown."""
    case = found.case
    return case.lookahead, len(case.pair.target.vocabulary), len(case.context)


@pytest.mark.deep
def test_rules_are_tried_on_the_cases_on_record() -> None:
    assert recorded() == json.loads(RECORD.read_text())


def test_other_rows_are_not_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(every, "_either", lambda condition, model, other: other)
    (changed,) = recorded(["equal rows"]).values()
    number, rows = json.loads(RECORD.read_text())["equal rows"]
    assert changed[0] == number
    assert changed[1] != rows


SLOW = ("initial contexts",)
"""Seconds, where most take tenths."""


@pytest.mark.deep(one_in=24)
@pytest.mark.parametrize(
    ("situation", "name"),
    [
        pytest.param(situation, name, marks=[pytest.mark.deep] * (situation in SLOW))
        for situation in BUGS
        for name in BUGS[situation]
    ],
)
def test_a_bug_in_a_situation_is_refuted_there(situation: str, name: str) -> None:
    """On the toy pairs, which were all there was, each of them is proved."""
    report = prove(planted(BUGS[situation][name]), only=["toy pairs", situation])
    toy, other = report.enumerated
    assert (toy.proved, toy.cases, report.raised) == (68, 68, ())
    assert 0 < len(report.refuted) == other.cases - other.proved
    found = report.refuted[0]
    assert size(found) == min(map(size, report.refuted))
    assert found.difference.output != found.difference.expected
    assert found.total_variation > 0
    assert found.trace


@pytest.mark.deep
def test_what_no_case_meets_is_not_found_and_the_report_says_where_it_ends() -> None:
    """As docs/losslessness.md tells."""
    report = prove(unseen)
    assert (report.refuted, report.raised, report.too_large) == ((), (), 0)
    assert (
        report.proved
        == len(rule_cases("quick", True))
        == sum(row.proved for row in report.enumerated)
    )
    assert max(max(row.vocabularies) for row in report.enumerated) < 2000
    assert max(max(row.lookaheads) for row in report.enumerated) == 16
    assert not any(200 in row.contexts for row in report.enumerated)
    assert min(row.smallest for row in report.enumerated) == Fraction(1, 10**15)


AB, SURE, EVEN = Vocabulary("ab"), [1, 0], ["1/2", "1/2"]
MANY = Vocabulary([chr(0x4E00 + token) for token in range(2000)])
UNSEEN = {
    "thin band": (iid_model(AB, ["307/1000", "693/1000"]), iid_model(AB, EVEN), (), 1),
    "length": (iid_model(AB, EVEN), iid_model(AB, SURE), (0,) * 200, 1),
    "drafts": (table_model(AB, {(): EVEN}, otherwise=SURE), iid_model(AB, SURE), (), 17),
    "small p": (
        iid_model(AB, [Fraction(1, 10**16), 1 - Fraction(1, 10**16)]),
        *(iid_model(AB, EVEN), (), 1),
    ),
    "tokens": (iid_model(MANY, [*EVEN, *[0] * 1998]), iid_model(MANY, [1, *[0] * 1999]), (), 1),
}


@pytest.mark.parametrize("place", UNSEEN)
def test_what_is_not_found_is_lossy(place: str) -> None:
    assert not is_lossless(unseen, *UNSEEN[place])
    assert is_lossless(standard.step, *UNSEEN[place])


def case_rows(name: str):
    """The rows of target and drafter that drafts of every length may lead to."""
    (situation,) = situations("quick", True, [name])
    for case in situation.cases:
        contexts = {case.context}
        for _ in range(case.lookahead):
            for context in contexts:
                p, q = (m.next_token(context) for m in (case.pair.target, case.pair.drafter))
                yield case, context, p, q
            contexts = {
                (*context, token)
                for context in contexts
                for token, mass in enumerate(case.pair.drafter.next_token(context))
                if mass and not case.pair.target.vocabulary.ends((token,))
            }


def test_each_situation_holds_what_it_promises() -> None:
    rows = {name: list(case_rows(name)) for name in SITUATIONS if name != "two vocabularies"}
    lengths = {len(case.context) for case, *_ in rows["initial contexts"]}
    assert lengths == {*range(1, 131), 255, 256, 257, 513, 1025}
    short = {case.context for case, *_ in rows["initial contexts"] if len(case.context) == 3}
    assert len(short) == 27
    sizes = {len(p) for _, _, p, _ in rows["vocabulary sizes"]}
    assert sizes >= {*range(6, 67), 128, 129, 256, 257, 1030}
    assert {24, 64} <= {sum(p > 0) for _, _, p, _ in rows["vocabulary sizes"]}
    rejected_ids = {
        token
        for *_, p, q in rows["vocabulary sizes"]
        for token in range(len(p))
        if 0 < q[token] > p[token]
    }
    assert max(rejected_ids) == 1029
    assert {256, 255} <= rejected_ids
    assert {case.lookahead for case, *_ in rows["lookaheads"]} == {*range(3, 17)}
    entries = [entry for *_, p, q in rows["small p and q"] for entry in (*p, *q) if 0 < entry < 1]
    assert min(entries) == Fraction(1, 10**15) == 1 - max(entries)
    ratios = [p[0] / q[0] for *_, p, q in rows["small p and q"] if p[0] and q[0]]
    for bound in (8, 10, 100, 1000, 10**6, 10**12):
        assert any(0 < ratio < Fraction(1, bound) for ratio in ratios)
    assert {eos_of(case) for case, *_ in rows["EOS"]} == {*"abc"}
    for depth in range(3):
        found = {
            (p[0] > q[0]) - (p[0] < q[0])
            for case, context, p, q in rows["EOS"]
            if eos_of(case) == "a" and len(context) - len(case.context) == depth
        }
        assert found == {-1, 0, 1}
    for depth, longest in enumerate((8, 4, 2)):
        found = {
            sum(p > q)
            for case, context, p, q in rows["residual sizes"]
            if len(context) - len(case.context) == depth
        }
        assert {*range(1, longest + 1)} <= found
    assert {True, False} == {bool((p == q).all()) for *_, p, q in rows["equal rows"]}
    assert all(1 in (max(p), max(q)) for *_, p, q in rows["sure rows"])
    assert all(is_exact(row) for found in rows.values() for *_, p, q in found for row in (p, q))


def eos_of(case) -> str:
    return case.pair.target.vocabulary.eos


def test_names_of_pairs_are_unique() -> None:
    """Within a situation one name is one target and one drafter."""
    for situation in situations("standard", False):
        seen: dict[str, str] = {}
        for case in situation.cases:
            models = case.pair.target, case.pair.drafter
            rows = repr([[m.next_token(c).tolist() for c in ((), (0,), (1, 0))] for m in models])
            assert seen.setdefault(case.pair.name, rows) == rows


def test_larger_profiles_add_cases() -> None:
    quick, standard_ones = (
        set(map(str, rule_cases(name, False))) for name in ("quick", "standard")
    )
    assert quick < standard_ones


def test_a_name_that_is_no_situation_is_refused() -> None:
    with pytest.raises(ValueError, match="only has 'lookahead': expected some of toy pairs, "):
        prove(standard.step, only=["lookahead"])


class OwnError(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")


def fails_and_is_wrong(target, drafter, context, lookahead, chance):
    """For other processes."""
    if len(context) == 33:
        raise OwnError(33, "tokens")
    if len(context) == 34:
        raise ValueError("34 tokens")
    return last_of_six(target, drafter, context, lookahead, chance)


def record(report: RuleReport) -> str:
    return as_json(rule_record("step", report))


SOME = ("toy pairs", "initial contexts", "lookaheads")


@pytest.mark.deep
def test_the_result_does_not_depend_on_the_executor() -> None:
    serial = prove(fails_and_is_wrong, only=SOME)
    assert serial.refuted
    assert {type(error).__name__ for _, error in serial.raised} == {"OwnError", "ValueError"}
    told: list[str] = []
    with ThreadPoolExecutor(3) as threads:
        threaded = prove(fails_and_is_wrong, only=SOME, executor=threads, advance=told.append)
    assert record(threaded) == record(serial)
    assert told == list(map(str, rule_cases("quick", True, SOME)))
    with ProcessPoolExecutor(2) as processes:
        assert record(prove(fails_and_is_wrong, only=SOME, executor=processes)) == record(serial)
    assert record(prove(fails_and_is_wrong, only=SOME[:1])) != record(serial)


def test_a_step_that_workers_cannot_import_is_refused() -> None:
    def inner(*arguments):
        return standard.step(*arguments)

    with (
        ProcessPoolExecutor(1) as processes,
        pytest.raises(
            TypeError, match="expected a function of a module, which workers can import"
        ),
    ):
        prove(inner, only=["toy pairs"], executor=processes)


def test_what_is_found_survives_an_interrupt() -> None:
    told: list[str] = []

    def stops(case: str) -> None:
        told.append(case)
        if len(told) == 80:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedProofError) as stop:
        prove(standard.step, advance=stops)
    report = stop.value.report
    assert report.proved == 80
    assert report.cut_off == len(rule_cases("quick", True)) - 80
    assert [row.cases for row in report.enumerated][:3] == [68, 12, 0]


@pytest.mark.deep
def test_a_case_of_a_situation_with_too_many_paths_is_not_judged(monkeypatch):
    """Of the toy pairs it would be an error: all rules are proved there."""
    monkeypatch.setattr(rules, "MOST_PATHS", 40)
    report = prove(standard.step, only=["toy pairs", "lookaheads"])
    toy, long = report.enumerated
    assert (toy.proved, toy.too_large, report.raised) == (68, 0, ())
    assert long.too_large == report.too_large > 5
    assert long.cases == long.proved < len(situations("quick", True, ["lookaheads"])[0].cases)
    assert max(long.lookaheads) == 16


@pytest.mark.deep
def test_nothing_is_proved_of_a_rule_that_is_no_function_of_chance_in_one_situation() -> None:
    state = iter(range(10**6))

    def counts(target, drafter, context, lookahead, chance):
        if len(context) > 60:
            return (next(state) % 2,)
        return standard.step(target, drafter, context, lookahead, chance)

    report = prove(counts)
    assert (report.proved, report.refuted, report.enumerated) == (0, (), ())
    assert report.outside
