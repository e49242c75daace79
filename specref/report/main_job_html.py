"""The result of `specref verify` as a page."""

from specref.report.main_job import (
    acceptance_legend,
    acceptance_table,
    checks_legend,
    checks_table,
)
from specref.report.page import again, as_html, cards, element, html_page, section, verdict_box
from specref.verification import Verification


def verification_html(verification: Verification, command: str = "") -> str:
    """A page with what was proved and sampled of each rule, and the command that repeats it."""
    reports = verification.reports
    failures = [line for report in reports for line in report.problems]
    headline = f"{len(failures)} checks failed" if failures else "Every check holds"
    listed = [element("p", failure) for failure in failures]
    cases, paths = (sum(getattr(one, name) for one in reports) for name in ("cases", "paths"))
    return html_page(
        "specref verify",
        element("h1", "specref verify"),
        verdict_box("bad" if failures else "good", headline, *listed),
        cards(
            [
                ("", f"{len(reports)}", "rules"),
                ("", f"{verification.pairs}", f"toy pairs, profile {verification.profile}"),
                ("", f"{cases:,}", "exact proofs of one iteration"),
                ("", f"{paths:,}", "random paths enumerated"),
                ("", f"{verification.seed}", "seed"),
            ]
        ),
        section(
            "Proofs and samples",
            as_html(checks_table(verification)),
            element("p", checks_legend(verification).text, class_="soft"),
        ),
        section(
            "Acceptance",
            as_html(acceptance_table(verification)),
            element("p", acceptance_legend(verification).text, class_="soft"),
        ),
        section("Run it again", *again(command, ("seed", f"{verification.seed}"))),
    )
