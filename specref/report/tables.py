"""Reports as tables for people."""

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from specref.conformance.verifier import VerifierReport
from specref.losslessness.planning import MutantPlan, Plan, typical_trials, typical_tv
from specref.losslessness.statistics import TestResult
from specref.losslessness.verdict import CampaignReport
from specref.verification import (
    LOOP_TOKENS,
    AlgorithmReport,
    Refutation,
    RuleReport,
    Verification,
)

SHOWN_FAILURES = 5


def verification_table(verification: Verification) -> RenderableType:
    """One row for each algorithm, and what the columns mean."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    for column in ("algorithm", "lossless"):
        table.add_column(column, no_wrap=True)
    for column in ("cases", "n/a", "paths", "loops", "accept"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("Monte Carlo", no_wrap=True)
    for column in ("TV ≥", "s"):
        table.add_column(column, justify="right", no_wrap=True)
    for report in verification.reports:
        table.add_row(*_verification_row(report))
    failures = [line for report in verification.reports for line in report.problems]
    verdict = "every check holds" if verification.ok else f"{len(failures)} checks failed"
    return Group(table, *_failure_lines(failures), _legend(verification), Text(verdict, "bold"))


def _verification_row(report: AlgorithmReport) -> list[str]:
    sampled = report.monte_carlo
    numbers = (report.cases, report.not_applicable, report.paths, report.loops, report.acceptances)
    return [
        report.algorithm,
        "[green]proved[/]" if report.cases and not report.failures else "[red]FAILED[/]",
        *map("{:,}".format, numbers),
        "not run" if sampled is None else _sampled(report, sampled),
        "" if sampled is None else f"{sampled.detectable:.3f}",
        f"{report.seconds:.1f}",
    ]


def _sampled(report: AlgorithmReport, sampled: CampaignReport) -> str:
    if report.sampled_ok:
        return f"[green]TV ≤ {sampled.eps:g}[/]"
    return f"[red]{sampled.verdict}, accepted lengths {sampled.conformance}[/]"


def _outcome(result: TestResult) -> str:
    return "[red]REJECTED[/]" if result.rejected else "[green]consistent[/]"


def _legend(verification: Verification) -> Text:
    sampled = [r.monte_carlo for r in verification.reports if r.monte_carlo is not None]
    trials = sum(report.trials for report in sampled)
    return Text(
        f"{verification.pairs} toy pairs, profile {verification.profile}. cases: exact proofs of "
        f"one iteration; n/a: vocabularies the algorithm is not defined for; paths: random paths "
        f"enumerated; loops: exact proofs of the first {LOOP_TOKENS} decoded tokens; accept: "
        f"formula equals the enumerated accepted-length law. Monte Carlo: {trials:,} "
        f"blocks of the batched twin, seed {verification.seed}, one campaign an algorithm, alpha "
        f"{sampled[0].alpha:g} each; 'TV ≥' would be found with probability 0.999.",
        "dim",
    )


def _failure_lines(failures: list[str]) -> list[Text]:
    lines = [Text(f"failed: {failure}", "red") for failure in failures[:SHOWN_FAILURES]]
    hidden = len(failures) - len(lines)
    return [*lines, Text(f"… and {hidden} more")] if hidden else lines


def rule_report(name: str, report: RuleReport) -> RenderableType:
    """The verdict on somebody's rule, with the smallest counterexample and its trace."""
    counted = Text(
        f"{name}: {report.proved} cases proved lossless, {len(report.refuted)} refuted, "
        f"{len(report.raised)} raised an error, {report.not_run} not run (two vocabularies: "
        f"--pairs all); {report.paths:,} paths"
    )
    if report.refuted:
        return Group(counted, _refutation(report.refuted[0]))
    if report.raised or not report.proved:
        return counted
    return Group(counted, Text("LOSSLESS on every case", "bold green"))


def _refutation(refutation: Refutation) -> RenderableType:
    case, pair = refutation.case, refutation.case.pair
    p, q = (model.next_token(()) for model in (pair.target, pair.drafter))
    lines = [
        f"smallest counterexample: {case}",
        f"  p = ({', '.join(map(str, p))}), q = ({', '.join(map(str, q))}) at the empty context",
        f"  total variation of the completed block: {refutation.total_variation}",
        f"  {refutation.difference}",
        f"  a path, block {refutation.block}:",
        *("    " + line for line in refutation.trace.splitlines()),
    ]
    return Group(Text("LOSSY", "bold red"), Text("\n".join(lines)))


def plan_table(
    plans: tuple[Plan, ...] | tuple[MutantPlan, ...],
    *,
    tv: float | None,
    trials: int | None,
    alpha: float,
    rate: float,
) -> RenderableType:
    """Blocks, distances and times, by fixture."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("fixture", no_wrap=True)
    mutants = [plan for plan in plans if isinstance(plan, MutantPlan)]
    for title in ("TV", "floor", "expected") if mutants else ("cells", "TV", "blocks"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    for plan in plans:
        table.add_row(*_plan_row(plan, rate))
    return Group(
        table,
        *(Text(line, "dim") for line in _plan_notes(bool(mutants), tv, trials)),
        Text(f"alpha {alpha:g} for the campaign; time at {rate:,.0f} blocks/s", "dim"),
    )


def _plan_row(plan: Plan | MutantPlan, rate: float) -> list[str]:
    if isinstance(plan, MutantPlan):
        blocks = plan.expected_trials
        cells = [f"{plan.tv:.4f}", f"{plan.floor:,.0f}", f"{blocks:,}"]
    else:
        blocks = plan.trials
        cells = [f"{plan.cells:,}", f"{plan.tv:.4g}", f"{blocks:,}"]
    return [plan.fixture, *cells, _duration(blocks / rate)]


def _plan_notes(mutants: bool, tv: float | None, trials: int | None) -> list[str]:
    if mutants:
        return [
            "floor: no test at this alpha needs fewer on average; expected: when the library's "
            "bet on the bug has won; floor 0: it does what the target excludes, and that is "
            "seen 999 times in 1,000."
        ]
    proved = "Proved, for any sampler, 999 times in 1,000."
    if tv is not None:
        return [proved, f"Typically a campaign needs {typical_trials(tv):,} (measured: 12 / TV²)."]
    if trials is not None:
        return [proved, f"Typically a campaign finds {typical_tv(trials):.4g} (measured)."]
    return ["Proved: a lossless sampler is certified 9 times in 10."]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def verifier_report(report: VerifierReport) -> RenderableType:
    """The verdict on somebody's verification function, case by case."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    table.add_column("case", no_wrap=True)
    for column in ("chi-square", "rejects above", "TV", "TV ≥"):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    for case in report.cases:
        result = case.result
        numbers = (result.statistic, result.threshold)
        distances = (result.total_variation, result.detectable)
        row = [f"{n:.1f}" for n in numbers] + [f"{d:.4f}" for d in distances]
        table.add_row(case.name, *row, _outcome(result))
    sentence = Text(
        f"{report.implementation}: joint law of the completed block, {report.trials:,} trials a "
        f"case, alpha {report.alpha:g} a case, seed {report.seed}, {report.seconds:.1f} s. A "
        f"law as far as 'TV ≥' from the target, spread evenly, is rejected with probability "
        f"0.999; a pass does not exclude smaller distances.",
        "dim",
    )
    verdict = Text("LOSSY", "bold red") if report.rejected else Text("consistent", "bold green")
    return Group(table, sentence, verdict)
