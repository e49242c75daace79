"""A test for each sentence on small shapes; what is asked, and what is said of the rest."""

from fractions import Fraction
from itertools import combinations, product
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
from specref.proofs.everywhere.comparison import Gap
from specref.report.document import markdown
from specref.report.dominance import (
    Told,
    answer,
    answer_sentence,
    answers_record,
    comparison_record,
    dominance_document,
    sentence,
    told,
)
from specref.rules import RULES
from specref.verification.dominance import (
    DECLARED,
    FORMULAS,
    LEFT_OUT,
    ONE_VOCABULARY,
    OPTIMUM_OF_TWO,
    STOPPED,
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


def asked(left, right, target=TWO_TOKENS, drafter=None, *sizes: int) -> Answered:
    return ask(Question(left, right, target, drafter or target, *(sizes or (1,))), 0, 60)


@pytest.mark.deep
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


@pytest.mark.deep
@pytest.mark.parametrize(("rule", "formula"), DECLARED)
def test_rules_accept_what_their_formulas_say(rule: str, formula: str) -> None:
    rows = (TWO_TOKENS,) if RULES[rule].same_vocabulary else LARGER
    answer = asked(rule, formula, *rows)
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


@pytest.mark.deep
def test_the_formula_of_another_rule_is_refuted() -> None:
    answer = asked("tli", "min(p, q), 0 for what the draft model lacks", *PARTLY)
    said = answer_sentence(answer)
    assert said.startswith(
        "What tli accepts is not min(p, q), 0 for what the draft model lacks: at "
    )


@pytest.mark.deep
def test_seconds_are_those_that_the_question_took(monkeypatch):
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


@pytest.mark.deep
def test_a_lossy_rule_is_called_so_before_what_it_accepts() -> None:
    def lossy(target: Model, drafter: Model, context: Any, lookahead: int, chance: Chance) -> Any:
        return (chance.draw(drafter.next_token(context), "draw"),)

    right = RULES["autoregressive"].step
    found = compare_everywhere(lossy, right, "ab", lookahead=1)
    assert answer("mine", "autoregressive", found).split(": ")[0].endswith(", but mine is lossy")
    found = compare_everywhere(right, right, "ab", lookahead=1)
    assert answer("mine", "autoregressive", found).startswith("Yes: ")


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


def test_every_pair_of_lossless_rules_is_asked_on_the_smallest_shape() -> None:
    smallest = {
        frozenset((one.left, one.right))
        for one in questions_of("thorough")
        if one.target == one.drafter == TWO_TOKENS and (one.lookahead, one.iterations) == (1, 1)
    }
    lossless = [name for name, rule in RULES.items() if rule.lossless and name != "autoregressive"]
    assert {frozenset(pair) for pair in combinations(lossless, 2)} <= smallest


def test_what_is_not_run_is_not_open_in_the_table() -> None:
    names = [name for name in ONE_VOCABULARY if name != "standard"]
    answers = [
        Answered(Question("standard", name, *PARTLY, 1), None, note="why") for name in names
    ]
    page = markdown(dominance_document(list(map(told, answers)), "command"))
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


def test_many_rules_of_one_shape_are_a_table_too() -> None:
    relations = {
        "autoregressive": "more", "block": "equal", "optimal": "less", "k-seq": "neither",
    }  # fmt: skip
    rows = [
        Told(Question("standard", name, TWO_TOKENS, TWO_TOKENS, 1), relation, name)
        for name, relation in relations.items()
    ]
    lines = markdown(dominance_document(rows, "command")).splitlines()
    start = lines.index("## Over 2 tokens, lookahead 1") + 2
    table = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[start : start + 7]]
    assert table[2] == ["standard", "autoregressive", "block", "optimal", "k-seq"]
    assert table[3:] == [
        ["autoregressive", "", "", "standard", ""],
        ["block", "", "standard", "", ""],
        ["optimal", "standard", "", "", ""],
        ["k-seq", "", "", "", "standard"],
    ]
    assert not any(
        line.startswith("|") for line in markdown(dominance_document(rows[:2], "c")).splitlines()
    )


def test_ctrl_c_keeps_what_was_found_and_the_page_says_so() -> None:
    questions = [
        Question("standard", one, TWO_TOKENS, TWO_TOKENS, 1) for one in ("autoregressive", "tli")
    ]

    def stop(answer: Answered) -> None:
        raise KeyboardInterrupt

    answers = ask_all(questions, advance=stop)
    assert [one.note for one in answers] == ["", STOPPED]
    assert answers[1].seconds == 0
    page = markdown(dominance_document(list(map(told, answers)), "command"))
    assert page.count("\n* ") == 2 + len(LEFT_OUT)
    assert page.index("## One rule never accepts fewer") < page.index("## Open")
    assert "standard and tli: not run: interrupted." in page
    assert answers_record(answers)[1]["comparisons"] == []


DIFFERING = (
    ("standard", "recursive-rejection", THREE_TOKENS, THREE_TOKENS, 1),
    ("standard", "k-seq", TWO_TOKENS, TWO_TOKENS, 1),
    ("standard", "block", TWO_TOKENS, TWO_TOKENS, 2),
    ("union", "tli", *PARTLY, 1),
    ("standard", "autoregressive", TWO_TOKENS, TWO_TOKENS, 1, 2),
    ("greedy-block", "standard", TWO_TOKENS, TWO_TOKENS, 2, 2),
)


@pytest.mark.deep
@pytest.mark.parametrize("given", DIFFERING)
def test_rows_of_a_witness_are_as_it_says(given: tuple[Any, ...]) -> None:
    """By enumeration of the expected number of accepted drafts or of tokens, at these rows."""
    question = Question(*given)
    found = ask(question, 0, 60).found
    gaps = [(gap, sign) for gap, sign in ((found.more, 1), (found.less, -1)) if gap]
    assert gaps
    for gap, sign in gaps:
        left, right = (
            expected_drafts(step_of(name), question, gap)
            for name in (question.left, question.right)
        )
        assert (left, right) == (gap.left, gap.right)
        assert (left - right) * sign > 0


def expected_drafts(step: Step, question: Question, gap: Gap) -> Fraction:
    def model(letter: str, tokens: tuple[str, ...]) -> Model:
        given = {row.context: law for row, law in gap.rows.items() if row.letter == letter}
        uniform = [Fraction(1, len(tokens))] * len(tokens)
        return Model(Vocabulary(tokens), lambda context: given.get(tuple(context), uniform))

    models = model("p", question.target), model("q", question.drafter)

    def program(chance: Chance) -> tuple[int, ...]:
        traced = Traced(chance)
        block = step(*models, (), question.lookahead, traced)
        owed = [decision.site for decision in traced.steps].count("modified")
        return tuple(block)[: max(len(block) - 1 - owed, 0)]

    def text(chance: Chance) -> tuple[int, ...]:
        text: tuple[int, ...] = ()
        carried: greedy_block.Modifications = ()
        for _ in range(question.iterations):
            if step is greedy_block.step:
                block, carried = greedy_block.iterate(
                    *models, text, question.lookahead, chance, carried
                )
            else:
                block = tuple(step(*models, text, question.lookahead, chance))
            text += block
        return text

    paths = enumerate_paths(program if question.iterations == 1 else text)
    return sum((path.weight * len(path.outcome) for path in paths), start=Fraction(0))
