"""The result of `specref prove --all` as a document."""

from rich.text import Text

from specref.report.document import Document, Heading, Kind, Part
from specref.report.layout import Column, Prose, Table
from specref.verification import AlgorithmReport, Verification
from specref.verification.exact import LOOP_LOOKAHEAD, LOOP_PATHS, LOOP_TOKENS
from specref.verification.reports import TRIED

SHOWN_FAILURES = 5
SHOWN_PAIRS = {"same vocabulary #0": "one", "two vocabularies #0": "two"}


def verification_document(verification: Verification) -> Document:
    """One row for each algorithm, its measured acceptance, and what the columns mean."""
    failures = [line for report in verification.reports for line in report.problems]
    shown = [Prose(f"failed: {failure}", "red") for failure in failures[:SHOWN_FAILURES]]
    rest = [Prose(f"failed: {failure}", "red") for failure in failures[SHOWN_FAILURES:]]
    if rest:
        shown.append(Prose(f"… and {len(rest)} more"))
    verdict = "every check holds" if verification.ok else f"{len(failures)} checks failed"
    parts: list[Part] = [
        *(Heading("Proofs and samples"), checks_table(verification), ""),
        *(checks_legend(verification), ""),
        *(Heading("Acceptance"), acceptance_table(verification), ""),
        *(acceptance_legend(verification), *shown, Prose(verdict, "bold")),
    ]
    kind: Kind = "good" if verification.ok else "bad"
    return Document("specref prove --all", kind, verdict.capitalize(), parts, rest)


def checks_table(verification: Verification) -> Table:
    """What was proved and sampled of each rule."""
    columns = [
        *(Column("rule"), Column("lossless")),
        *(Column(name, right=True) for name in ("cases", "n/a", "paths", "loops", "accept")),
        Column("sampled", opens=True),
        *(Column(name, right=True) for name in ("TV ≥", "alpha", "blocks", "s")),
    ]
    return Table(columns, [_checks_row(report) for report in verification.reports])


def _checks_row(report: AlgorithmReport) -> list[Text | str]:
    if TRIED[report.algorithm].lossless:
        exact = _marked("proved", bool(report.cases and not report.failures))
    else:
        exact = _marked(f"refuted ×{report.refuted}", report.refuted > 0)
    numbers = (report.cases, report.not_applicable, report.paths, report.loops, report.acceptances)
    sampled: list[Text | str] = [unsampled(report), "", "", ""]
    if (campaign := report.monte_carlo) is not None:
        sampled = [
            _marked(f"TV ≤ {campaign.eps:g}", report.sampled_ok),
            f"{campaign.detectable:.4f}",
            f"{campaign.alpha:g}",
            f"{campaign.trials:,}",
        ]
    seconds = f"{report.seconds:.1f}"
    return [report.algorithm, exact, *map("{:,}".format, numbers), *sampled, seconds]


def unsampled(report: AlgorithmReport) -> str:
    """The cell of a rule that has no sampled blocks."""
    return "not run" if TRIED[report.algorithm].sampled else "n/a"


def _marked(what: str, holds: bool) -> Text:
    return Text(what, "green") if holds else Text("FAILED", "red")


def checks_legend(verification: Verification) -> Prose:
    """What the columns of `checks_table` mean."""
    return Prose(
        f"{verification.pairs} toy pairs, profile {verification.profile}, seed "
        f"{verification.seed}. lossless: proved on all its cases, or, of a rule that is published "
        "and lossy, on how many it is refuted; cases: exact proofs of one iteration; n/a: "
        "vocabularies the rule is not defined for, a listing that divides 0 by 0, or a rule that "
        "is not sampled; paths: random paths enumerated; loops: exact proofs of the first "
        f"{LOOP_TOKENS} decoded tokens, where an iteration has at most {LOOP_PATHS} paths; "
        "accept: formula equals the enumerated distribution of accepted tokens, or of the first "
        "acceptance, where there is one. sampled: one campaign on blocks of the rule; a sampler "
        "at 'TV ≥' from the target on any of its pairs is found with probability 0.999; alpha: "
        "chance of a false positive in the campaign; blocks: on its pairs together.",
        "dim",
    )


def acceptance_table(verification: Verification) -> Table:
    """Sampled acceptance of each rule beside its formulas."""
    columns = [Column("algorithm"), Column("pair")]
    for quantity in ("accepted", "length"):
        columns.append(Column(quantity, right=True, opens=True))
        columns += [Column(title, right=True) for title in ("exact interval", "formula")]
    rows = [
        (
            report.algorithm,
            SHOWN_PAIRS[measured.case],
            *_with_interval(measured.rate, measured.rate_interval, measured.rate_formula),
            *_with_interval(measured.mean, measured.mean_interval, measured.mean_formula),
        )
        for report in verification.reports
        for measured in report.acceptance
        if measured.case in SHOWN_PAIRS
    ]
    return Table(columns, rows, keys=2)


def _with_interval(
    value: float, interval: tuple[float, float], formula: float
) -> list[Text | str]:
    low, high = interval
    colour = "green" if low <= formula <= high else "red"
    return [f"{value:.4f}", f"[{low:.4f}, {high:.4f}]", Text(f"{formula:.4f}", colour)]


def acceptance_legend(verification: Verification) -> Prose:
    """What the columns of `acceptance_table` mean."""
    every = [measured for report in verification.reports for measured in report.acceptance]
    agreeing = sum(measured.agrees for measured in every)
    names = ", ".join(f"{vocabularies}: {name}" for name, vocabularies in SHOWN_PAIRS.items())
    return Prose(
        f"The same blocks, lookahead {LOOP_LOOKAHEAD}. pair: with one or two vocabularies "
        f"({names}). accepted: how often the first draft was, with its Clopper–Pearson interval; "
        "length: mean number of accepted tokens, Dvoretzky–Kiefer–Wolfowitz–Massart. All "
        f"intervals of an algorithm hold together with probability 1 - alpha. {agreeing} of "
        f"{len(every)} sampled pairs agree with their formulas; --json has them all.",
        "dim",
    )
