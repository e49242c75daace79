"""The main job as tables for people."""

from rich.console import Group, RenderableType
from rich.text import Text

from specref.report.layout import Column, Prose, Table
from specref.statistics.campaign.acceptance import MeasuredAcceptance
from specref.statistics.campaign.verdict import CampaignReport
from specref.verification import AlgorithmReport, Verification
from specref.verification.exact import LOOP_LOOKAHEAD, LOOP_PATHS, LOOP_TOKENS
from specref.verification.table import TRIED

SHOWN_FAILURES = 5
SHOWN_PAIRS = {"same vocabulary #0": "one", "two vocabularies #0": "two"}


def verification_table(verification: Verification) -> RenderableType:
    """One row for each algorithm, its measured acceptance, and what the columns mean."""
    failures = [line for report in verification.reports for line in report.problems]
    verdict = "every check holds" if verification.ok else f"{len(failures)} checks failed"
    return Group(
        _checks(verification),
        "",
        _checks_legend(verification),
        "",
        _acceptance(verification),
        "",
        _acceptance_legend(verification),
        *_failure_lines(failures),
        Prose(verdict, "bold"),
    )


def _checks(verification: Verification) -> Table:
    columns = [
        *(Column("rule"), Column("lossless")),
        *(Column(name, right=True) for name in ("cases", "n/a", "paths", "loops", "accept")),
        Column("sampled", opens=True),
        *(Column(name, right=True) for name in ("TV ≥", "alpha", "blocks", "s")),
    ]
    return Table(columns, [_checks_row(report) for report in verification.reports])


def _checks_row(report: AlgorithmReport) -> list[Text | str]:
    sampled = report.monte_carlo
    numbers = (report.cases, report.not_applicable, report.paths, report.loops, report.acceptances)
    return [
        report.algorithm,
        _exact(report),
        *map("{:,}".format, numbers),
        *([unsampled(report), "", "", ""] if sampled is None else _sampled(report, sampled)),
        f"{report.seconds:.1f}",
    ]


def _exact(report: AlgorithmReport) -> Text:
    if TRIED[report.algorithm].lossless:
        return _marked("proved", bool(report.cases and not report.failures))
    return _marked(f"refuted ×{report.refuted}", report.refuted > 0)


def unsampled(report: AlgorithmReport) -> str:
    """What is said of a rule that has no sampled blocks."""
    return "not run" if TRIED[report.algorithm].machine else "n/a"


def _marked(what: str, holds: bool) -> Text:
    return Text(what, "green") if holds else Text("FAILED", "red")


def _sampled(report: AlgorithmReport, sampled: CampaignReport) -> list[Text | str]:
    return [
        _marked(f"TV ≤ {sampled.eps:g}", report.sampled_ok),
        f"{sampled.detectable:.4f}",
        f"{sampled.alpha:g}",
        f"{sampled.trials:,}",
    ]


def _checks_legend(verification: Verification) -> Prose:
    return Prose(
        f"{verification.pairs} toy pairs, profile {verification.profile}, seed "
        f"{verification.seed}. lossless: proved on all its cases, or, of a rule that is published "
        f"and lossy, on how many it is refuted; cases: exact proofs of one iteration; n/a: "
        f"vocabularies the rule is not defined for, a listing that divides 0 by 0, or no "
        f"batched twin; paths: random paths "
        f"enumerated; loops: exact proofs of the first {LOOP_TOKENS} decoded tokens, where "
        f"an iteration has at most {LOOP_PATHS} paths; accept: "
        f"formula equals the enumerated law of the accepted length, or of the first acceptance, "
        f"where there is one. sampled: one campaign on blocks of the batched twin; a sampler at "
        f"'TV ≥' from the target on any of its pairs is found with probability 0.999; alpha: "
        f"chance of a false alarm in the campaign; blocks: on its pairs together.",
        "dim",
    )


def _acceptance(verification: Verification) -> Table:
    columns = [Column("algorithm"), Column("pair")]
    for quantity in ("accepted", "length"):
        columns.append(Column(quantity, right=True, opens=True))
        columns += [Column(title, right=True) for title in ("exact interval", "formula")]
    rows = [
        (report.algorithm, *_acceptance_row(measured))
        for report in verification.reports
        for measured in report.acceptance
        if measured.case in SHOWN_PAIRS
    ]
    return Table(columns, rows, keys=2)


def _acceptance_row(measured: MeasuredAcceptance) -> list[Text | str]:
    rate = _beside(measured.rate, measured.rate_interval, measured.rate_formula)
    mean = _beside(measured.mean, measured.mean_interval, measured.mean_formula)
    return [SHOWN_PAIRS[measured.case], *rate, *mean]


def _beside(value: float, interval: tuple[float, float], formula: float) -> list[Text | str]:
    low, high = interval
    colour = "green" if low <= formula <= high else "red"
    return [f"{value:.4f}", f"[{low:.4f}, {high:.4f}]", Text(f"{formula:.4f}", colour)]


def _acceptance_legend(verification: Verification) -> Prose:
    every = [measured for report in verification.reports for measured in report.acceptance]
    agreeing = sum(measured.agrees for measured in every)
    names = ", ".join(f"{vocabularies}: {name}" for name, vocabularies in SHOWN_PAIRS.items())
    return Prose(
        f"The same blocks, lookahead {LOOP_LOOKAHEAD}. pair: with one or two vocabularies "
        f"({names}). accepted: how often the first draft was, with its Clopper–Pearson interval; "
        f"length: mean accepted length, Dvoretzky–Kiefer–Wolfowitz–Massart. All intervals of an "
        f"algorithm hold together with probability 1 - alpha. {agreeing} of {len(every)} sampled "
        f"pairs agree with their formulas; --json has them all.",
        "dim",
    )


def _failure_lines(failures: list[str]) -> list[Prose]:
    lines = [Prose(f"failed: {failure}", "red") for failure in failures[:SHOWN_FAILURES]]
    hidden = len(failures) - len(lines)
    return [*lines, Prose(f"… and {hidden} more")] if hidden else lines
