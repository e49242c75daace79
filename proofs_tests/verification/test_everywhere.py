"""The table of rules for every p and q: what is asked, and that verdicts are compared."""

import json
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from proofs_tests.helpers.recorded_proofs import RECORD, boxes, taken
from specref import Vocabulary, exact_distribution, is_lossless
from specref.algorithms import slem
from specref.algorithms.companion import companion, rejecting
from specref.distributions import total_variation
from specref.models import Model, hashed_model, iid_model, table_model
from specref.proofs.everywhere import is_lossless_everywhere
from specref.report.all_rules import answers_document, errors, summary
from specref.report.document import markdown
from specref.rules import RULES
from specref.theory.goodput import greedy_length
from specref.verification.everywhere import (
    BUDGET,
    PRINTED,
    STOPPED,
    Answer,
    Box,
    box_of,
    boxes_of,
    escalation,
    freely_guided,
    larger_box,
    prove_box,
    prove_boxes,
)
from specref.verification.questions import (
    EXACT_PRODUCTS,
    QUESTIONS,
    TYPICAL,
    UNWRITTEN,
    after_unwritten,
    on_face,
    products_on_face,
    with_companion,
)
from specref.zoo import ALL
from specref.zoo.entry import Entry

LETTERS = ("a", "b")
BOXES, WAYS = boxes(), json.loads(RECORD.read_text())


NOTHING: dict[str, Any] = {
    **dict.fromkeys(("regions", "lossy", "open", "equations", "paths", "calls", "bits"), 0),
    **dict.fromkeys(("total_variation", "witness", "right"), ""),
    "conditions": (),
    "seconds": 0.0,
}
"""What is counted of a box that was not run."""


def test_every_rule_is_asked_at_every_size() -> None:
    boxes = boxes_of("quick")
    asked = {(box.rule, len(box.target), box.lookahead) for box in boxes}
    for tokens, lookahead in ((2, 2), (3, 1)):
        assert {name for name, v, n in asked if (v, n) == (tokens, lookahead)} >= set(RULES)
    two = {box.rule for box in boxes if box.target != box.drafter}
    assert two == {n for n, r in RULES.items() if r.vocabularies != "one"} - {"autoregressive"}


def test_profiles_ask_more() -> None:
    asked = {
        profile: {
            (len(box.target), box.lookahead) for box in boxes_of(profile) if box.rule == "standard"
        }
        for profile in ("quick", "standard", "thorough")
    }
    assert asked["quick"] == {(2, 2), (3, 1)}
    assert asked["standard"] == asked["quick"] | {(2, 3), (3, 2)}
    assert asked["thorough"] == asked["standard"] | {(4, 1)}
    by_text = {
        profile: {box.lookahead for box in boxes_of(profile) if box.target != box.drafter}
        for profile in asked
    }
    assert by_text == {"quick": {1}, "standard": {2}, "thorough": {2}}


@pytest.mark.parametrize("step", [companion.predictable_step, rejecting.step])
def test_estimates_of_companions_are_numbers_of_their_own(step) -> None:
    """Each is asked of a row after a text that no draft has, another one for each estimate."""
    rows: dict[tuple[int, ...], list[Fraction]] = {}
    estimates: list[tuple[int, ...]] = []

    def next_token(context):
        text = tuple(context)
        if len(text) > 2:
            estimates.append(text)
        first = Fraction(7, 8) if len(text) > 2 else Fraction(2, 5)  # high estimates: all drafts
        return rows.setdefault(text, [first, 1 - first])

    p = iid_model(Vocabulary("ab"), ["1/3", "2/3"])

    def program(chance):
        estimates.clear()
        q = Model(Vocabulary("ab"), next_token)
        block = freely_guided(step, p, q, (), 2, chance)
        assert len(set(estimates)) == len(estimates) > 0
        return block

    assert exact_distribution(program)
    before = {text[:3] for text in rows if len(text) > 2}
    assert before == {(0, 0, 0)}
    texts = {text[3 : len(text) - text[::-1].index(1) - 1] for text in rows if len(text) > 2}
    assert texts == {(), (0,), (1,)}


@pytest.mark.parametrize(("rule", "verdict"), [("standard", "proved"), (PRINTED, "lossy")])
def test_verdicts(rule: str, verdict: str) -> None:
    answer = prove_box(Box(rule, LETTERS, LETTERS, 1), 0, 60)
    assert answer.verdict == verdict
    assert answer.as_known
    assert (answer.total_variation == "") == (verdict == "proved")


def test_what_cannot_be_run_says_why() -> None:
    answer = prove_box(Box("union", LETTERS, LETTERS, -1), 0, 20)
    assert answer.verdict == "not run"
    assert "lookahead = -1" in answer.note
    assert answer == Answer(answer.box, "not run", **NOTHING, note=answer.note)


def test_a_vocabulary_that_cannot_be_read_is_not_applicable() -> None:
    answer = prove_box(Box("slem", ("a", "b", "c"), ("b", "c", "d"), 1), 0, 20)
    assert answer.verdict == "n/a"
    assert answer == Answer(answer.box, "n/a", **NOTHING, note=answer.note)


def test_a_verdict_against_the_tables_is_told() -> None:
    known = Box("standard", LETTERS, LETTERS, 1)
    assert not Answer(known, "lossy").as_known
    assert Answer(known, "open").as_known
    assert not Answer(Box(PRINTED, LETTERS, LETTERS, 1), "proved").as_known


def test_the_page_has_a_row_for_each_answer() -> None:
    boxes = [Box("slem", LETTERS, LETTERS, 1), Box("companion-published", LETTERS, LETTERS, 1)]
    answers = prove_boxes(boxes, budget=60)
    page = markdown(answers_document(answers, "command"))
    assert summary(answers) == "1 proved, 1 lossy"
    assert page.count("| slem |") == 1
    assert page.count("| companion-published |") == 2
    assert f"each proof: at most 2^-{answers[0].bits}." in page
    assert errors(answers[1:]) == []  # a refutation has no such error


def test_every_step_of_the_zoo_is_asked_and_how_if_not_as_it_is() -> None:
    steps = {one.id for one in ALL.values() if one.is_step}
    assert {box.rule for box in boxes_of("quick", zoo=True)} == steps
    assert set(QUESTIONS) < steps


STEPS = [entry for entry in ALL.values() if entry.is_step]


SLOW = ("k-seq-with-rho-1",)
"""Seconds, where most take tenths."""


@pytest.mark.deep(one_in=240)
@pytest.mark.parametrize(
    "entry",
    [pytest.param(one, id=one.id, marks=[pytest.mark.deep] * (one.id in SLOW)) for one in STEPS],
)
def test_a_step_of_the_zoo_is_proved_or_refuted_and_does_something(entry: Entry) -> None:
    """Where it is lossy, rows are shown: of a lossy region, or tried in a piece that is open."""
    answer = prove_box(box_of(entry), 0, BUDGET)
    while again := larger_box(answer):
        answer = prove_box(again, 0, BUDGET)
    assert answer.verdict == ("proved" if entry.lossless else "lossy")
    assert bool(answer.witness) == (answer.verdict == "lossy")
    assert answer.lossy or answer.open or entry.lossless


@pytest.mark.deep
def test_what_the_zoo_has_as_lossy_and_is_not_over_two_tokens_is_asked_again() -> None:
    """The residual of tokens, in block verification: a theorem over two, a bug over three."""
    answer = prove_box(box_of(ALL["block-tokenwise-residual"]), 0, 20)
    assert answer.verdict == "proved"
    assert answer.is_elsewhere
    again = larger_box(answer)
    assert again == Box("block-tokenwise-residual", ("a", "b", "c"), ("a", "b", "c"), 2)
    rows = {
        "p": {(0,): ["1/2", "1/2", 0]},
        "q": {(): [1, 0, 0], (0,): ["1/3", 0, "2/3"]},
    }
    uniform = ["1/3", "1/3", "1/3"]
    p, q = (table_model(Vocabulary("abc"), rows[letter], uniform) for letter in "pq")
    assert not is_lossless(again.step, p, q, (), again.lookahead)
    assert "what is proved here is that they are not: `block-tokenwise-residual`" in (
        markdown(answers_document([answer], "command", zoo=True))
    )


def test_a_bug_that_needs_a_longer_token_of_the_drafter_is_asked_there() -> None:
    tokens = escalation(ALL["tli-q-permuted"])
    assert [(one.target, one.drafter, one.lookahead) for one in tokens] == [
        (("a", "b", "c"), ("b", "c", "d"), 1),
        (("a", "b", "c"), ("b", "c", "d"), 2),
        (("a", "b"), ("b", "a"), 1),
    ]
    first = box_of(ALL["block-psi-given-more"])
    assert first == Box("block-psi-given-more", ("a", "b", "ab"), ("a", "b"), 1)
    second = larger_box(Answer(first, "proved"))
    assert second == Box("block-psi-given-more", ("a", "b"), ("a", "ab"), 1)
    third = larger_box(Answer(second, "open"))
    assert third == replace(first, lookahead=2)
    assert [larger_box(Answer(third, "open")), larger_box(Answer(first, "lossy"))] == [None, None]


def test_ctrl_c_keeps_what_was_found() -> None:
    boxes = [Box("slem", LETTERS, LETTERS, 1), Box("standard", LETTERS, LETTERS, 1)]

    def stop(answer: Answer) -> None:
        raise KeyboardInterrupt

    answers = prove_boxes(boxes, budget=60, advance=stop)
    assert [answer.verdict for answer in answers] == ["proved", "not run"]
    assert answers[1].note == STOPPED


@pytest.mark.deep(one_in=120)
@pytest.mark.parametrize("name", WAYS)
def test_proofs_take_what_is_on_record(name: str) -> None:
    """One seed gives one result, and the same way to it."""
    assert taken(BOXES[name]) == WAYS[name]


@pytest.mark.deep
def test_another_way_to_the_same_verdict_is_not_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heuristic: how many samples nearby are tried before z3 is asked."""
    monkeypatch.setattr("specref.proofs.everywhere.solver.NEIGHBOURS", 0)
    name = "standard, a,b and a,b, lookahead 2"
    found = taken(BOXES[name])
    assert found[0] == "lossless"
    assert found != WAYS[name]


def hashed(tokens: str, key: str) -> Model:
    return hashed_model(Vocabulary(tokens), key)


@pytest.mark.parametrize("tokens", ["ab", "abc"])
def test_the_bound_of_typical_acceptance_is_the_constant_over_few_tokens(tokens: str) -> None:
    for key in range(8):
        models = hashed(tokens, f"p {key}"), hashed(tokens, f"q {key}")
        laws = [
            exact_distribution(partial(step, *models, (), 2))
            for step in (TYPICAL.step, ALL["typical-acceptance"].step)
        ]
        assert laws[0] == laws[1]


def test_over_four_tokens_it_is_not() -> None:
    """0.3 exp(-H) = 0.082, and a token with 0.085 passes."""
    row = [Fraction(85, 1000), *[Fraction(305, 1000)] * 3]
    p = Model(Vocabulary("abcd"), lambda text: row)
    laws = [
        exact_distribution(partial(step, p, p, (), 1))
        for step in (TYPICAL.step, ALL["typical-acceptance"].step)
    ]
    assert laws[0] != laws[1]


@pytest.mark.parametrize("key", range(4))
def test_products_without_logarithms_are_those_of_the_zoo(key: int) -> None:
    p, q = hashed("ab", f"p {key}"), hashed("ab", f"q {key}")
    exact = exact_distribution(partial(products_on_face, p, q, (), 2))
    target = on_face(p)
    sure, free = target.next_token((0,)), target.next_token(())
    drafter = Model(q.vocabulary, lambda text: free if text else sure)
    entry = ALL["block-product-of-uniforms"].step
    rounded = exact_distribution(partial(entry, target, drafter, (), 2))
    assert total_variation(exact, rounded) < 1e-12
    assert all(isinstance(weight, Fraction) for weight in exact.values())


def test_where_a_logarithm_is_needed_it_is_said() -> None:
    p, q = hashed("ab", "p"), hashed("ab", "q")
    with pytest.raises(ValueError, match="expected 0 or 1, where no logarithm is needed"):
        exact_distribution(partial(EXACT_PRODUCTS, p, q, (), 2))


@pytest.mark.deep
def test_clean_rules_are_proved_where_their_mutants_are_asked() -> None:
    (shape,) = UNWRITTEN.shapes
    assert is_lossless_everywhere(partial(after_unwritten, slem.step), *shape)
    latencies = (0, 1, Fraction(3, 2))
    told = {"estimate": lambda alike: alike, "length": partial(greedy_length, latencies=latencies)}
    step = partial(with_companion, companion.predictable_step, told)
    assert is_lossless_everywhere(step, "ab", lookahead=1)


@pytest.mark.deep
def test_what_is_said_of_where_mutants_do_nothing() -> None:
    for name in ("independent-draws-per-row", "draft-coins-not-renormalised"):
        assert is_lossless_everywhere(ALL[name].step, "ab", lookahead=2)
        assert not is_lossless_everywhere(QUESTIONS[name].step, "ab", lookahead=1)
    entry = ALL["slem-context-retokenised"].step
    assert is_lossless_everywhere(entry, ("a", "aa"), ("a",), 1)
