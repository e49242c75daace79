"""Which of two rules accepts more, for every p and q, as a page."""

from collections.abc import Sequence

from specref.proofs.everywhere.comparison import Comparison, Gap, Relation
from specref.report.charts import bars
from specref.report.dominance import answer, answer_sentence, box, counts
from specref.report.everywhere import ABOUT, row_name
from specref.report.page import (
    Markup,
    again,
    cards,
    element,
    html_page,
    section,
    table,
    verdict_box,
)
from specref.verification.dominance import Answered

UNIFORM = "Rows that are not named are uniform."
RELATIONS: dict[Relation, str] = {
    "equal": "Equal",
    "more": "At least as much, and more somewhere",
    "at least": "At least as much",
    "at most": "At most as much",
    "less": "At most as much, and less somewhere",
    "neither": "Neither at least as much as the other",
    "open": "Open",
}


def comparison_html(
    left: str, right: str, found: Sequence[Comparison], left_out: Sequence[str], command: str = ""
) -> str:
    """A page that says which of two rules accepts more, with rows at which they differ."""
    proved = bool(found) and all(one.at_least.proved for one in found)
    kind = "bad" if any(one.less for one in found) else "good" if proved else "open"
    headlines = dict.fromkeys(RELATIONS[one.relation] for one in found)
    sections = (
        section(
            f"Over {box(one.target, one.drafter, one.lookahead)}",
            element("p", answer(left, right, one)),
            element("p", counts(left, right, one), class_="soft"),
            *(_gap(left, right, one, gap) for gap in (one.more, one.less) if gap),
        )
        for one in found
    )
    return html_page(
        f"specref: {left} against {right}",
        element("h1", f"{left} against {right}"),
        verdict_box(
            kind,
            "; ".join(headlines) or "Nothing was compared",
            element("p", f"What {left} accepts, against {right}."),
            *(element("p", f"not applicable to {one}") for one in left_out),
            element("p", ABOUT, class_="soft"),
        ),
        *sections,
        section("Run it again", *again(command)),
    )


def _gap(left: str, right: str, found: Comparison, gap: Gap) -> Markup:
    more, less = (left, right) if gap.left > gap.right else (right, left)
    does, what = ("emits", "tokens") if found.iterations > 1 else ("accepts", "accepted drafts")
    title = f"Rows at which {more} {does} more than {less}"
    numbers = (
        (left, str(gap.left), [("expected", float(gap.left))]),
        (right, str(gap.right), [("observed", float(gap.right))]),
    )
    label = f"{left}: {gap.left}; {right}: {gap.right}"
    return element(
        "div",
        element("h3", title),
        _rows(found, gap) if gap.rows else element("p", UNIFORM),
        bars(list(numbers), f"Expected {what}: {label}", f"Expected {what} there"),
    )


def _rows(found: Comparison, gap: Gap) -> Markup:
    cells = (
        (row_name(row, found.target, found.drafter), ", ".join(map(str, law)))
        for row, law in gap.rows.items()
    )
    return table(("row", "probabilities"), cells, ("name", "wide"), UNIFORM)


def dominance_html(answers: Sequence[Answered], command: str = "") -> str:
    """A page with an answer to each question: which rule accepts more, or how much it accepts."""
    counted: dict[str, int] = {}
    for one in answers:
        relation = "not run" if one.found is None else one.found.relation
        counted[relation] = counted.get(relation, 0) + 1
    refuted = [
        one for one in answers if one.question.is_formula and one.found
        and (one.found.more or one.found.less)
    ]  # fmt: skip
    undecided = counted.get("open", 0) + counted.get("not run", 0)
    kind = "bad" if refuted else "open" if undecided else "good"
    headline = (
        f"{len(refuted)} closed forms are refuted" if refuted
        else f"{undecided} of {len(answers)} questions are open" if undecided
        else f"All {len(answers)} questions are decided"
    )  # fmt: skip
    parts = [
        ("Pairs of rules", [x for x in answers if not _formula(x) and x.question.iterations == 1]),
        ("In two iterations", [x for x in answers if x.question.iterations > 1]),
        ("Closed forms", list(filter(_formula, answers))),
    ]
    return html_page(
        "specref prove --all --compare",
        element("h1", "specref prove --all --compare"),
        verdict_box(kind, headline, element("p", ABOUT, class_="soft")),
        cards(("", f"{number}", relation) for relation, number in counted.items()),
        *(section(title, _answers(some)) for title, some in parts if some),
        section("Run it again", *again(command)),
    )


def _formula(answer: Answered) -> bool:
    return answer.question.is_formula


def _answers(answers: Sequence[Answered]) -> Markup:
    rows = (
        (
            answer_sentence(one),
            "not run" if one.found is None else one.found.relation,
            f"{one.seconds:.1f}",
        )
        for one in answers
    )
    return table(("answer", "the first accepts", "s"), rows, ("wide", "name", "number"))
