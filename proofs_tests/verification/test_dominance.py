"""A test for each sentence on small shapes; what is asked, and what is said of the rest."""

import json
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from specref import Vocabulary
from specref.algorithms import greedy_block
from specref.algorithms.decoding import Step
from specref.chance import Chance, Traced, enumerate_paths
from specref.models import Model, hashed_model
from specref.pairs import Profile
from specref.proofs.everywhere import compare_everywhere
from specref.proofs.everywhere.acceptance import Verified
from specref.report.dominance import (
    answer_sentence,
    answers_record,
    comparison_record,
    dominance_page,
    sentence,
)
from specref.rules import RULES
from specref.verification.dominance import (
    BY_TOKEN,
    DECLARED,
    FORMULAS,
    LEFT_OUT,
    ONE_VOCABULARY,
    OPTIMUM_OF_TWO,
    STOPPED,
    TWO_VOCABULARIES,
    Answered,
    Question,
    ask,
    ask_all,
    questions_of,
    step_of,
)
from specref.zoo import ALL

TWO_TOKENS = ("a", "b")
THREE_TOKENS = ("a", "b", "c")
PARTLY = THREE_TOKENS, ("b", "c", "d")
LARGER = ("a", "b"), ("a", "b", "ab")
PAGE = Path(__file__).parents[2] / "docs" / "dominance.md"
RECORD = json.loads(PAGE.with_suffix(".json").read_text())
SIDES = ("rule", "against")
WITH_ROWS = [
    one
    for one in RECORD["answers"]
    if one["comparisons"] and one["against"] in RULES
    for found in one["comparisons"]
    if found["more"] or found["less"]
]
SECONDS = 0.2
"""Of the processor, when the record was made: what took longer is not proved again here."""
QUICK = [one for one in RECORD["answers"] if one["comparisons"] and one["seconds"] < SECONDS]


def named(one: dict[str, Any]) -> str:
    rows = f"{''.join(one['target'])}-{''.join(one['drafter'])}"
    sizes = f"{rows}-{one['lookahead']}-{one['iterations']}"
    return f"{one['rule']}-{one['against']}-{sizes}"


def asked(left, right, target=TWO_TOKENS, drafter=None, *sizes: int) -> Answered:
    return ask(Question(left, right, target, drafter or target, *(sizes or (1,))), 0, 60)


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize(
    ("left", "right", "rows", "relation"),
    [
        ("standard", "autoregressive", (TWO_TOKENS, TWO_TOKENS, 1), "more"),
        ("standard", "block", (TWO_TOKENS, TWO_TOKENS, 1), "equal"),
        ("standard", "block", (TWO_TOKENS, TWO_TOKENS, 2), "less"),
        ("standard", "greedy-block", (TWO_TOKENS, TWO_TOKENS, 1), "equal"),
        ("standard", "recursive-rejection", (THREE_TOKENS, THREE_TOKENS, 1), "less"),
        ("standard", "matching", (THREE_TOKENS, THREE_TOKENS, 1), "neither"),
        ("recursive-rejection", "top-drafts", (THREE_TOKENS, THREE_TOKENS, 1), "neither"),
        ("block", "topdown", (TWO_TOKENS, TWO_TOKENS, 2), "neither"),
        ("companion", "standard", (TWO_TOKENS, TWO_TOKENS, 2), "less"),
        ("topdown", "traversal", (TWO_TOKENS, TWO_TOKENS, 1), "equal"),
        ("standard", "slem", (TWO_TOKENS, TWO_TOKENS, 1), "more"),
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


@pytest.mark.deep
def test_greedy_block_verification_emits_fewer_tokens_than_standard_in_two_iterations() -> None:
    """At some rows, though it accepts at least as many drafts in one, for all rows."""
    question = Question("greedy-block", "standard", TWO_TOKENS, TWO_TOKENS, 2, 2)
    said = answer_sentence(ask(question, 0, 60))
    assert said.startswith(
        "Neither of greedy-block and standard emits at least as many tokens in 2 iterations as "
        "the other for every p and q over 2 tokens, lookahead 2: greedy-block emits more at "
    )


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize(("rule", "formula"), DECLARED)
def test_rules_accept_what_their_formulas_say(rule: str, formula: str) -> None:
    rows = (TWO_TOKENS,) if RULES[rule].same_vocabulary else LARGER
    answer = asked(rule, formula, *rows)
    assert answer.found is not None
    assert answer.found.relation == "equal"
    assert f"What {rule} accepts is {formula}, for every p and q" in answer_sentence(answer)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("rule", "formula"), [*DECLARED, ("optimal", OPTIMUM_OF_TWO)])
def test_rules_accept_at_given_rows_what_their_formulas_say(rule: str, formula: str, seed) -> None:
    names = (TWO_TOKENS,) * 2 if RULES[rule].same_vocabulary else LARGER[::-1]
    target, drafter = (hashed_model(Vocabulary(one), f"{i} {seed}") for i, one in enumerate(names))
    closed, tokens = FORMULAS[formula], range(len(names[0]))
    lookahead = min(closed.longest, 2)
    texts = [text for n in range(1, lookahead + 1) for text in product(tokens, repeat=n)]
    groups = [texts] if closed.total else [[text] for text in texts]
    accepted = Verified(RULES[rule].step).sums(target, drafter, lookahead, groups)
    assert accepted == closed.sums(target, drafter, lookahead, groups)
    assert any(accepted)


def test_the_formula_of_another_rule_is_refuted() -> None:
    answer = asked("tli", "min(p, q), 0 for what the drafter lacks", *PARTLY)
    said = answer_sentence(answer)
    assert said.startswith("What tli accepts is not min(p, q), 0 for what the drafter lacks: at ")


def test_seconds_are_those_that_the_question_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings = iter((3.0, 5.125))
    clock = SimpleNamespace(process_time=lambda: next(readings))
    monkeypatch.setattr("specref.verification.dominance.time", clock)
    assert asked("autoregressive", "standard").seconds == 2.12


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
    profiles: tuple[Profile, ...] = ("quick", "standard", "thorough")
    for profile in profiles:
        for question in questions_of(profile):
            assert question.left in RULES
            assert question.right in (FORMULAS if question.is_formula else RULES)
    thorough = questions_of("thorough")
    for tokens, lookahead in ((TWO_TOKENS, 3), (THREE_TOKENS, 2)):
        assert Question("block", "standard", tokens, tokens, lookahead) in thorough


def test_profiles_ask_more() -> None:
    def sizes(profile: Profile) -> set[tuple[int, int, int]]:
        return {
            (len(one.target), one.lookahead, one.iterations)
            for one in questions_of(profile)
            if {one.left, one.right} == {"standard", "block"}
        }

    assert sizes("quick") == {(2, 1, 1)}
    assert sizes("standard") == {(2, 1, 1), (2, 2, 1), (3, 1, 1)}
    assert sizes("thorough") - sizes("standard") == {(2, 3, 1), (3, 2, 1), (2, 1, 2), (2, 2, 2)}


def test_every_pair_of_lossless_rules_is_asked_on_a_common_shape() -> None:
    asked = {frozenset((one.left, one.right)) for one in questions_of("thorough")}
    lossless = [name for name, rule in RULES.items() if rule.lossless and name != "autoregressive"]
    for pair in combinations(lossless, 2):
        assert frozenset(pair) in asked, pair
    smallest = {
        frozenset((one.left, one.right))
        for one in questions_of("thorough")
        if one.target == one.drafter == TWO_TOKENS and (one.lookahead, one.iterations) == (1, 1)
    }
    assert {frozenset(pair) for pair in combinations(lossless, 2)} <= smallest


def test_lists_of_rules_are_those_of_the_table() -> None:
    assert BY_TOKEN == ("standard", "block", "greedy-block")
    assert TWO_VOCABULARIES == ("union", "tli", "slem", "slrs", "block-slrs")


def test_what_is_not_run_is_not_open_in_the_table() -> None:
    names = [name for name in ONE_VOCABULARY if name != "standard"]
    answers = [
        Answered(Question("standard", name, *PARTLY, 1), None, note="why") for name in names
    ]
    page = dominance_page(answers, "command")
    assert "| rule | not run |" in page
    assert "open |" not in page


def test_a_rule_whose_drafts_are_not_drawn_from_q_can_accept_more_than_greedy_block() -> None:
    found = compare_everywhere(ALL["one-hot-q-argmax-draft"].step, step_of("greedy-block"), "ab")
    assert found.more is not None


@pytest.mark.deep
def test_free_estimates_are_among_the_rows_of_a_witness() -> None:
    """Of a companion, which are after longer texts than drafts have."""
    said = answer_sentence(asked("companion", "companion-rejecting", TWO_TOKENS, None, 2))
    assert said.startswith("Neither of companion and companion-rejecting accepts at least as many")


@pytest.mark.deep
def test_many_rules_of_one_shape_are_a_table_too() -> None:
    names = [name for name in ONE_VOCABULARY if name not in ("standard", "k-seq", "traversal")]
    answers = [asked("standard", name) for name in names]
    lines = dominance_page(answers, "command").splitlines()
    start = lines.index("### Over 2 tokens, lookahead 1") + 2
    table = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[start : start + 6]]
    assert table[0] == [
        "rule", "accepts at least as many as", "as many as", "at most as many as",
    ]  # fmt: skip
    assert table[2] == [
        "standard",
        "ngrams, companion, companion-rejecting",
        "block, greedy-block",
        "recursive-rejection, matching, top-drafts, spechub, optimal, topdown",
    ]
    assert table[3:] == [
        ["block", "", "standard", ""],
        ["greedy-block", "", "standard", ""],
        ["recursive-rejection", "standard", "", ""],
    ]
    assert not any(line.startswith("|") for line in dominance_page(answers[:2], "c").splitlines())


def test_ctrl_c_keeps_what_was_found_and_the_page_says_so() -> None:
    questions = [
        Question("standard", one, TWO_TOKENS, TWO_TOKENS, 1) for one in ("autoregressive", "tli")
    ]

    def stop(answer: Answered) -> None:
        raise KeyboardInterrupt

    answers = ask_all(questions, advance=stop)
    assert [one.note for one in answers] == ["", STOPPED]
    assert answers[1].seconds == 0
    page = dominance_page(answers, "command")
    assert page.count("\n* ") == 2 + len(LEFT_OUT)
    assert "standard and tli: not run: interrupted." in page
    assert answers_record(answers)[1]["comparisons"] == []


def test_every_question_of_the_record_has_its_comparison() -> None:
    """Also where the rule that is named first does not accept more."""
    alone, several = (
        {
            found["relation"]
            for one in RECORD["answers"]
            for found in one["comparisons"]
            if (one["iterations"] > 1) == more
        }
        for more in (False, True)
    )
    assert alone == {"more", "equal", "less", "neither", "open"}
    assert several == {"equal", "neither", "open"}
    assert all(one["comparisons"] for one in RECORD["answers"])


def test_the_page_has_the_sentences_of_the_record() -> None:
    said = [line[2:] for line in PAGE.read_text().splitlines() if line.startswith("* ")]
    assert sorted(said) == sorted([*LEFT_OUT, *(one["sentence"] for one in RECORD["answers"])])
    asked = {
        (q.left, q.right, q.target, q.drafter, q.lookahead, q.iterations)
        for q in questions_of("thorough")
    }
    assert asked == {key_of(one) for one in RECORD["answers"]}


@pytest.mark.deep(one_in=80)
@pytest.mark.parametrize("one", WITH_ROWS, ids=named)
def test_rows_of_the_record_are_as_it_says(one: dict[str, Any]) -> None:
    """By enumeration of the expected number of accepted drafts or of tokens, at these rows."""
    (found,) = one["comparisons"]
    for gap, sign in ((found["more"], 1), (found["less"], -1)):
        if gap:
            left, right = (expected_drafts(step_of(one[side]), one, gap) for side in SIDES)
            assert (str(left), str(right)) == (gap["left"], gap["right"])
            assert (left - right) * sign > 0


@pytest.mark.deep(one_in=120)
@pytest.mark.parametrize("one", QUICK, ids=named)
def test_theorems_of_the_record_are_proved_again(one: dict[str, Any]) -> None:
    rows = key_of(one)[2:]
    assert answer_sentence(asked(one["rule"], one["against"], *rows)) == one["sentence"]


def key_of(one: dict[str, Any]) -> tuple[Any, ...]:
    rows = tuple(one["target"]), tuple(one["drafter"]), one["lookahead"], one["iterations"]
    return one["rule"], one["against"], *rows


def expected_drafts(step: Step, one: dict[str, Any], gap: dict[str, Any]) -> Fraction:
    def model(letter: str, tokens: list[str]) -> Model:
        given = {
            tuple(row["after"]): list(map(Fraction, row["row"]))
            for row in gap["rows"]
            if row["of"] == letter
        }
        uniform = [Fraction(1, len(tokens))] * len(tokens)
        return Model(Vocabulary(tokens), lambda context: given.get(tuple(context), uniform))

    models = model("p", one["target"]), model("q", one["drafter"])

    def program(chance: Chance) -> tuple[int, ...]:
        traced = Traced(chance)
        block = step(*models, (), one["lookahead"], traced)
        owed = [decision.site for decision in traced.steps].count("modified")
        return tuple(block)[: max(len(block) - 1 - owed, 0)]

    def text(chance: Chance) -> tuple[int, ...]:
        text: tuple[int, ...] = ()
        carried: greedy_block.Modifications = ()
        for _ in range(one["iterations"]):
            if step is greedy_block.step:
                block, carried = greedy_block.iterate(
                    *models, text, one["lookahead"], chance, carried
                )
            else:
                block = tuple(step(*models, text, one["lookahead"], chance))
            text += block
        return text

    paths = enumerate_paths(program if one["iterations"] == 1 else text)
    return sum((path.weight * len(path.outcome) for path in paths), start=Fraction(0))
