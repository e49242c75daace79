"""Proofs for every p and q as a page: regions, and rows at which a rule is lossy."""

from collections.abc import Sequence

from specref.proofs.everywhere import Everywhere, Witness
from specref.proofs.everywhere.rows import Rows
from specref.proofs.reached import Unreached
from specref.report.charts import bars
from specref.report.everywhere import (
    MOST_CONDITIONS,
    counts,
    nowhere_else,
    raises,
    row_name,
    sentence,
    spelled,
)
from specref.report.everywhere_table import LEGEND, answer_rows, size, summary, unexpected, where
from specref.report.page import (
    Markup,
    again,
    as_html,
    element,
    facts,
    html_page,
    section,
    table,
    verdict_box,
)
from specref.report.rules import never_ran, sum_of
from specref.verification.everywhere import Answer
from specref.vocabulary import Vocabulary

ABOUT = (
    "The question is about all rows of p and q over these vocabularies: zeros, ties, equal rows "
    "and point masses included. Nothing is said of other numbers of tokens, nor of floats, "
    "kernels and random number generators."
)
UNIFORM = "Rows that are not named are uniform."
HEADLINES = {
    "lossless": ("good", "Lossless for every p and q"),
    "lossy": ("bad", "Lossy"),
    "open": ("open", "Neither proved nor refuted"),
}


def everywhere_html(
    name: str,
    found: Sequence[Everywhere],
    left_out: Sequence[str],
    command: str = "",
    unseen: Unreached | None = None,
) -> str:
    """A page with the verdict for each pair of vocabularies, and rows at which it is lossy."""
    verdicts = [one.verdict for one in found]
    worst = next((one for one in ("lossy", "open", "lossless") if one in verdicts), "open")
    kind, headline = HEADLINES[worst]
    if worst == "lossy" and all(raises(one) for one in found if one.lossy):
        headline = "It raises an error at some rows"
    return html_page(
        f"specref: {name}",
        element("h1", name, " under specref prove --everywhere"),
        verdict_box(
            kind,
            headline,
            *(element("p", sentence(one)) for one in found),
            *(element("p", f"not applicable to {one}") for one in left_out),
            element("p", never_ran(unseen)),
            element("p", ABOUT, class_="soft"),
        ),
        *(part for one in found for part in _proof(one)),
        section("Run it again", *again(command)),
    )


def _proof(found: Everywhere) -> list[Markup]:
    box = f"{spelled(found)}, lookahead {found.lookahead}"
    lossless = found.regions - found.lossy
    regions = [
        (f"{number:,}", [(kind, float(number))], name)
        for name, number, kind in (
            ("lossless at all rows", lossless, "expected"),
            ("not lossless at some rows", found.lossy, "observed"),
            ("pieces that are open", found.open, "open"),
        )
    ]
    told = "; ".join(f"{name}: {number}" for number, _, name in regions)
    return [
        section(
            f"Over {box}",
            bars(
                [(name, number, lengths) for number, lengths, name in regions],
                f"Regions over {box}: {told}",
                "Regions: sets of rows on which all paths run alike, summed over completed blocks",
            ),
            element("p", counts(found), class_="soft"),
        ),
        section("Rows at which it is lossy", *_witness(found, found.witness))
        if found.witness
        else Markup(),
    ]


def _witness(found: Everywhere, witness: Witness) -> list[str]:
    conditions = witness.conditions[:MOST_CONDITIONS]
    more = len(witness.conditions) - len(conditions)
    lines = [*conditions, *([f"and {more} more"] if more else [])]
    rows = rows_table(witness.rows, found.target, found.drafter)
    said = facts([("where", "; ".join(lines) or nowhere_else(found))])
    if witness.error or witness.proof is None:
        return [said, rows, element("p", f"There the rule raises {witness.error}.")]
    proof = witness.proof
    off = proof.difference
    assert off is not None
    picture = bars(
        [
            ("the target's", str(off.expected), [("expected", float(off.expected))]),
            ("this rule's", str(off.output), [("observed", float(off.output))]),
        ],
        f"{off}",
        f"Probability of {off.tokens}",
    )
    distance = facts([("total variation", f"{proof.total_variation} of the completed block")])
    return [
        said,
        rows,
        distance,
        element("div", picture, class_="pictures"),
        *(element("p", line.strip()) for line in sum_of(off, witness.shares)),
        element("h3", "A path, decision by decision"),
        element("pre", witness.trace),
    ]


def rows_table(rows: Rows, target: Vocabulary, drafter: Vocabulary) -> Markup:
    """The rows of p and q at which something was found."""
    cells = (
        (row_name(row, target, drafter), ", ".join(map(str, law))) for row, law in rows.items()
    )
    return table(("row", "probabilities"), cells, ("name", "wide"), UNIFORM)


def everywhere_table_html(answers: Sequence[Answer], command: str = "") -> str:
    """A page with a row for each rule, and where the lossy ones are lossy."""
    wrong = [answer for answer in answers if not answer.as_known]
    undecided = sum(answer.verdict in ("open", "not run") for answer in answers)
    headline = f"{len(wrong)} answers are not as known" if wrong else "Every answer is as known"
    if undecided and not wrong:
        headline = f"{undecided} of {len(answers)} are open, the others as known"
    lossy = [answer for answer in answers if answer.verdict == "lossy"]
    rows = (
        (one.box.rule, size(one.box), f"{one.box.lookahead}", one.total_variation,
         one.witness, where(one, ""))
        for one in lossy
    )  # fmt: skip
    titles = ("rule", "tokens", "n", "TV", "at a witness", "where")
    told = [element("p", summary(answers)), *(element("p", line) for line in unexpected(answers))]
    return html_page(
        "specref verify --everywhere",
        element("h1", "specref verify --everywhere"),
        verdict_box("bad" if wrong else "open" if undecided else "good", headline, *told),
        section(
            "Rules, for every p and q",
            as_html(answer_rows(answers)),
            element("p", LEGEND, class_="soft"),
        ),
        section(
            "Where the lossy ones are lossy",
            table(titles, rows, ("name", "name", "number", "name", "wide", "wide"), UNIFORM),
        )
        if lossy
        else "",
        section("Run it again", *again(command)),
    )
