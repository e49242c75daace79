"""A test for each sentence on small shapes; what is asked, and what is said of the rest."""

import pytest

from specref.report.dominance import (
    answer_sentence,
    answers_record,
    comparison_record,
    dominance_page,
    sentence,
)
from specref.rules import RULES
from specref.verification.dominance import (
    DECLARED,
    FORMULAS,
    STOPPED,
    Answered,
    Question,
    ask,
    ask_all,
    questions_of,
)

TWO_TOKENS = ("a", "b")
THREE_TOKENS = ("a", "b", "c")
PARTLY = THREE_TOKENS, ("b", "c", "d")
LARGER = ("a", "b"), ("a", "b", "ab")


def asked(left, right, target=TWO_TOKENS, drafter=None, lookahead=1) -> Answered:
    return ask(Question(left, right, target, drafter or target, lookahead), 0, 60)


@pytest.mark.parametrize(
    ("left", "right", "rows", "relation"),
    [
        ("standard", "block", (TWO_TOKENS, TWO_TOKENS, 1), "equal"),
        ("standard", "block", (TWO_TOKENS, TWO_TOKENS, 2), "less"),
        ("standard", "greedy-block", (TWO_TOKENS, TWO_TOKENS, 1), "equal"),
        ("standard", "autoregressive", (TWO_TOKENS, TWO_TOKENS, 1), "more"),
        ("standard", "recursive-rejection", (THREE_TOKENS, THREE_TOKENS, 1), "less"),
        ("standard", "matching", (THREE_TOKENS, THREE_TOKENS, 1), "neither"),
        ("recursive-rejection", "top-drafts", (THREE_TOKENS, THREE_TOKENS, 1), "neither"),
        ("union", "tli", (*PARTLY, 1), "less"),
        ("union", "slrs", (*LARGER, 1), "less"),
        ("slem", "slrs", (*LARGER, 1), "less"),
        ("tli", "slrs", (*LARGER, 1), "neither"),
    ],
)
def test_relations(left: str, right: str, rows, relation: str) -> None:
    answer = asked(left, right, *rows)
    assert answer.found is not None
    assert answer.found.relation == relation


@pytest.mark.parametrize(("rule", "formula"), DECLARED)
def test_rules_accept_what_their_formulas_say(rule: str, formula: str) -> None:
    rows = (TWO_TOKENS,) if RULES[rule].same_vocabulary else LARGER
    answer = asked(rule, formula, *rows)
    assert answer.found is not None
    assert answer.found.relation == "equal"
    assert f"What {rule} accepts is {formula}, for every p and q" in answer_sentence(answer)


def test_the_formula_of_another_rule_is_refuted() -> None:
    answer = asked("tli", "min(p, q), 0 for what the drafter lacks", *PARTLY)
    said = answer_sentence(answer)
    assert said.startswith("What tli accepts is not min(p, q), 0 for what the drafter lacks: at ")


def test_sentences_say_which_accepts_more_and_where() -> None:
    answer = asked("autoregressive", "standard")
    assert answer_sentence(answer) == (
        "standard accepts at least as many drafts as autoregressive in expectation, for every p "
        "and q over 2 tokens, lookahead 1 (4 regions, error of the identity tests <= 2^-125); "
        "more at uniform rows: 1 against 0."
    )
    assert answer.found is not None
    record = comparison_record("autoregressive", "standard", [answer.found])
    (one,) = record["comparisons"]
    assert one["relation"] == "less"
    assert one["less"] == {"rows": [], "left": "0", "right": "1", "texts": ()}
    assert one["at_most"]["other_is"] == "lossless"


def test_open_is_said() -> None:
    answer = ask(Question("block", "standard", TWO_TOKENS, TWO_TOKENS, 2), 0, 1e-9)
    said = answer_sentence(answer)
    assert said.startswith("Open for block and standard, for every p and q over 2 tokens")
    assert "a rule that has to be lossless is open" in said
    assert answer.found is not None
    assert sentence("block", "standard", answer.found).startswith("open for")


def test_what_cannot_be_asked_says_why() -> None:
    answer = asked("standard", "union", *PARTLY)
    assert answer.found is None
    assert "not run: ValueError" in answer_sentence(answer)


def test_questions_name_rules_and_formulas() -> None:
    for profile in ("quick", "standard", "thorough"):
        for question in questions_of(profile):
            assert question.left in RULES
            assert question.right in (FORMULAS if question.is_formula else RULES)
    thorough = questions_of("thorough")
    for tokens, lookahead in ((TWO_TOKENS, 3), (THREE_TOKENS, 2)):
        assert Question("block", "standard", tokens, tokens, lookahead) in thorough


def test_ctrl_c_keeps_what_was_found_and_the_page_says_so() -> None:
    questions = [Question("standard", one, TWO_TOKENS, TWO_TOKENS, 1) for one in ("block", "tli")]

    def stop(answer: Answered) -> None:
        raise KeyboardInterrupt

    answers = ask_all(questions, advance=stop)
    assert [one.note for one in answers] == ["", STOPPED]
    page = dominance_page(answers, "command")
    assert page.count("\n* ") == 2
    assert "standard and tli: not run: interrupted." in page
    assert answers_record(answers)[1]["comparisons"] == []
