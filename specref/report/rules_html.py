"""The verdict on a user's rule as a page: the counterexample coin by coin, or what was proved."""

from specref.chance import shown
from specref.report.charts import bars, legend
from specref.report.page import (
    Markup,
    again,
    as_html,
    element,
    facts,
    html_page,
    joined,
    section,
    table,
    verdict_box,
)
from specref.report.rules import counts, enumerated_table, first_error, never_ran, not_enumerated
from specref.report.rules import outside_chance as decided_elsewhere
from specref.verification import Refutation, RuleReport


def rule_html(name: str, report: RuleReport, command: str = "") -> str:
    """A page with the verdict, the smallest counterexample, and the situations."""
    parts = [element("h1", name, " under specref prove"), _verdict(report)]
    if report.refuted:
        parts += _counterexample(report.refuted[0])
    tried = as_html(enumerated_table(report)), element("p", not_enumerated(report), class_="soft")
    parts.append(section("What was enumerated", *tried))
    return html_page(f"specref: {name}", *parts, section("Run it again", *again(command)))


def _verdict(report: RuleReport) -> Markup:
    told = joined(element("p", one) for one in (counts(report), never_ran(report.never_ran)))
    if report.outside:
        why = element("p", decided_elsewhere(report))
        return verdict_box("open", "Neither proved nor refuted", why)
    if report.refuted:
        return verdict_box("bad", "Lossy", told)
    if report.raised:
        why = element("p", f"first error: {first_error(report)}")
        return verdict_box("open", "It raised an error: nothing is said", told, why)
    if not report.proved:
        return verdict_box("open", "Nothing was proved", told)
    if report.cut_off:
        return verdict_box("open", "No difference so far", told)
    some = report.not_applicable or report.too_large
    judged = " that was judged" if some else ""
    unseen = f"; {report.never_ran}" if report.never_ran else ""
    words = f"Lossless on every case{judged}, by exact enumeration{unseen}"
    return verdict_box("good", words, told)


def _counterexample(refutation: Refutation) -> list[Markup]:
    pair, difference = refutation.case.pair, refutation.difference
    start = refutation.case.context if pair.same_vocabulary else ()
    p, q = (model.next_token(start) for model in (pair.target, pair.drafter))
    out, expected = float(difference.output), float(difference.expected)
    wrong = bars(
        [
            ("the target's", str(difference.expected), [("expected", expected)]),
            ("this rule's", str(difference.output), [("observed", out)]),
        ],
        f"{difference}",
        f"Probability of {difference.tokens}",
    )
    rows = [
        (
            f"token {token}",
            f"p = {p[token]}, q = {q[token]}",
            [("expected", float(p[token])), ("observed", float(q[token]))],
        )
        for token in range(len(p))
        if pair.same_vocabulary and (p[token] or q[token])
    ]
    laws = bars(
        rows,
        f"p = ({shown(p)}), q = ({shown(q)})",
        joined((f"After {start}: ", legend("p, the target's row", "q, the drafter's"))),
    )
    steps = ((step.site, step.said, step.likely) for step in refutation.steps)
    return [
        section(
            "The smallest counterexample",
            facts(
                [
                    ("case", str(refutation.case)),
                    ("p, q", f"({shown(p)}), ({shown(q)})"),
                    ("total variation", f"{refutation.total_variation} of the completed block"),
                    ("difference", str(difference)),
                ]
            ),
            element("div", wrong, laws if rows else "", class_="pictures"),
            table(
                ("branch", f"its share of {difference.output}"),
                ((branch, str(share)) for branch, share in refutation.shares),
                ("name", "name"),
            )
            if len(refutation.shares) > 1
            else "",
        ),
        section(
            f"A path to the block {refutation.block}, decision by decision",
            table(("asked", "came out", "how likely that was"), steps, ("name", "name", "wide")),
        ),
    ]
