"""Campaign plans as tables."""

from rich.console import Group, RenderableType

from specref.report.layout import Column, Prose, Table
from specref.statistics.campaign.planning import Plan, typical_trials, typical_tv
from specref.zoo.planning import MutantPlan


def plan_table(
    plans: tuple[Plan, ...] | tuple[MutantPlan, ...],
    *,
    tv: float | None,
    trials: int | None,
    alpha: float,
    rate: float,
) -> RenderableType:
    """Blocks, distances and times, by fixture."""
    mutants = any(isinstance(plan, MutantPlan) for plan in plans)
    numbers = ("TV", "floor", "expected") if mutants else ("cells", "TV", "blocks")
    columns = [Column("fixture"), *(Column(title, right=True) for title in (*numbers, "time"))]
    return Group(
        Table(columns, [_plan_row(plan, rate) for plan in plans]),
        "",
        *(Prose(line, "dim") for line in _plan_notes(mutants, tv, trials)),
        Prose(f"alpha {alpha:g} for the campaign; time at {rate:,.0f} blocks/s", "dim"),
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
    proved = (
        "Cells: completed blocks that the target can produce; more need more blocks (your own "
        "pair: specref.statistics.plan_distance). Proved, for any sampler, 999 times in 1,000."
    )
    if tv is not None:
        return [proved, f"Typically a campaign needs {typical_trials(tv):,} (measured: 12 / TV²)."]
    if trials is not None:
        return [proved, f"Typically a campaign finds {typical_tv(trials):.4g} (measured)."]
    return ["Proved: a lossless sampler is certified 9 times in 10."]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
