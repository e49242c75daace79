"""The table of rules for every p and q: what is asked, and that verdicts are compared."""

from fractions import Fraction

import pytest

from specref import Vocabulary, exact_distribution
from specref.algorithms.companion import companion, rejecting
from specref.models import Model, iid_model
from specref.report.everywhere_table import everywhere_page, summary
from specref.rules import RULES
from specref.verification.everywhere import (
    PRINTED,
    STOPPED,
    Answer,
    Box,
    boxes_of,
    freely_guided,
    prove_box,
    prove_boxes,
)

LETTERS = ("a", "b")


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
    assert asked["standard"] - asked["quick"] == {(2, 3), (3, 2)}
    assert asked["thorough"] - asked["standard"] == {(4, 1)}


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


def test_a_vocabulary_that_cannot_be_read_is_not_applicable() -> None:
    answer = prove_box(Box("slem", ("a", "b", "c"), ("b", "c", "d"), 1), 0, 20)
    assert answer.verdict == "n/a"


def test_a_verdict_against_the_tables_is_told() -> None:
    known = Box("standard", LETTERS, LETTERS, 1)
    assert not Answer(known, "lossy").as_known
    assert Answer(known, "open").as_known
    assert not Answer(Box(PRINTED, LETTERS, LETTERS, 1), "proved").as_known


def test_the_page_has_a_row_for_each_answer() -> None:
    boxes = [Box("slem", LETTERS, LETTERS, 1), Box("companion-published", LETTERS, LETTERS, 1)]
    answers = prove_boxes(boxes, budget=60)
    page = everywhere_page(answers, "command")
    assert summary(answers) == "1 proved, 1 lossy"
    assert page.count("| slem |") == 1
    assert page.count("| companion-published |") == 2


def test_ctrl_c_keeps_what_was_found() -> None:
    boxes = [Box("slem", LETTERS, LETTERS, 1), Box("standard", LETTERS, LETTERS, 1)]

    def stop(answer: Answer) -> None:
        raise KeyboardInterrupt

    answers = prove_boxes(boxes, budget=60, advance=stop)
    assert [answer.verdict for answer in answers] == ["proved", "not run"]
    assert answers[1].note == STOPPED
