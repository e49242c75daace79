"""The main job as tables for people."""

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from specref.losslessness.acceptance import MeasuredAcceptance
from specref.losslessness.verdict import CampaignReport
from specref.verification import AlgorithmReport, Verification
from specref.verification.exact import LOOP_LOOKAHEAD, LOOP_TOKENS

WIDTH = 100
SHOWN_FAILURES = 5
SHOWN_PAIRS = {"same vocabulary #0": "one", "two vocabularies #0": "two"}


def verification_table(verification: Verification) -> RenderableType:
    """One row for each algorithm, its measured acceptance, and what the columns mean."""
    failures = [line for report in verification.reports for line in report.problems]
    verdict = "every check holds" if verification.ok else f"{len(failures)} checks failed"
    return Group(
        _checks(verification),
        _checks_legend(verification),
        _acceptance(verification),
        _acceptance_legend(verification),
        *_failure_lines(failures),
        Text(verdict, "bold"),
    )


def _checks(verification: Verification) -> Table:
    table = _table("algorithm", "lossless")
    for column in ("cases", "n/a", "paths", "loops", "accept"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("sampled", no_wrap=True)
    for column in ("TV ≥", "alpha", "blocks", "s"):
        table.add_column(column, justify="right", no_wrap=True)
    for report in verification.reports:
        table.add_row(*_checks_row(report))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _checks_row(report: AlgorithmReport) -> list[str]:
    sampled = report.monte_carlo
    numbers = (report.cases, report.not_applicable, report.paths, report.loops, report.acceptances)
    return [
        report.algorithm,
        "[green]proved[/]" if report.cases and not report.failures else "[red]FAILED[/]",
        *map("{:,}".format, numbers),
        *(["not run", "", "", ""] if sampled is None else _sampled(report, sampled)),
        f"{report.seconds:.1f}",
    ]


def _sampled(report: AlgorithmReport, sampled: CampaignReport) -> list[str]:
    passed = report.sampled_ok
    return [
        f"[green]TV ≤ {sampled.eps:g}[/]" if passed else "[red]FAILED[/]",
        f"{sampled.detectable:.4f}",
        f"{sampled.alpha:g}",
        f"{sampled.trials:,}",
    ]


def _checks_legend(verification: Verification) -> Text:
    return Text(
        f"{verification.pairs} toy pairs, profile {verification.profile}, seed "
        f"{verification.seed}. cases: exact proofs of one iteration; n/a: vocabularies the "
        f"algorithm is not defined for; paths: random paths enumerated; loops: exact proofs of "
        f"the first {LOOP_TOKENS} decoded tokens; accept: formula equals the enumerated law of "
        f"the accepted length. sampled: one campaign on blocks of the batched twin; a sampler "
        f"at 'TV ≥' from the target on any of its pairs is found with probability 0.999; "
        f"alpha: chance of a false alarm in the campaign; blocks: on its pairs together.",
        "dim",
    )


def _acceptance(verification: Verification) -> Table:
    table = _table("algorithm", "pair")
    for quantity in ("accepted", "length"):
        for column in (quantity, "exact interval", "formula"):
            table.add_column(column, justify="right", no_wrap=True)
    for report in verification.reports:
        for measured in report.acceptance:
            if measured.case in SHOWN_PAIRS:
                table.add_row(report.algorithm, *_acceptance_row(measured))
    return table


def _acceptance_row(measured: MeasuredAcceptance) -> list[str]:
    rate = _beside(measured.rate, measured.rate_interval, measured.rate_formula)
    mean = _beside(measured.mean, measured.mean_interval, measured.mean_formula)
    return [SHOWN_PAIRS[measured.case], *rate, *mean]


def _beside(value: float, interval: tuple[float, float], formula: float) -> list[str]:
    low, high = interval
    colour = "green" if low <= formula <= high else "red"
    return [f"{value:.4f}", f"[{low:.4f}, {high:.4f}]", f"[{colour}]{formula:.4f}[/]"]


def _acceptance_legend(verification: Verification) -> Text:
    every = [measured for report in verification.reports for measured in report.acceptance]
    agreeing = sum(measured.agrees for measured in every)
    names = ", ".join(f"{vocabularies}: {name}" for name, vocabularies in SHOWN_PAIRS.items())
    return Text(
        f"The same blocks, lookahead {LOOP_LOOKAHEAD}. pair: with one or two vocabularies "
        f"({names}). accepted: how often the first draft was, with its Clopper–Pearson interval; "
        f"length: mean accepted length, Dvoretzky–Kiefer–Wolfowitz–Massart. All intervals of an "
        f"algorithm hold together with probability 1 - alpha. {agreeing} of {len(every)} sampled "
        f"pairs agree with their formulas; --json has them all.",
        "dim",
    )


def _failure_lines(failures: list[str]) -> list[Text]:
    lines = [Text(f"failed: {failure}", "red") for failure in failures[:SHOWN_FAILURES]]
    hidden = len(failures) - len(lines)
    return [*lines, Text(f"… and {hidden} more")] if hidden else lines
