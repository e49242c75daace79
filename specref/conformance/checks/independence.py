"""Stage independence: rows of a batch, and one call after another, share no randomness."""

from functools import partial

from specref.conformance.checks.check import Check, failed, not_run, passed
from specref.conformance.checks.joint import BLOCKS, sharing
from specref.conformance.judge import Judge
from specref.conformance.status import Finding, Outcome
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.statistics.campaign.lags import LAGS


def rows_independent(name: str, judge: Judge) -> Outcome:
    """Bet that a token repeats the one some rows before, or follows its rank.

    If the law is wrong, such bets win without any dependence; then only evidence that holds for
    any law counts.
    """
    found = judge.blocks(name)
    if found.sharing:
        return failed(sharing(found), log10_evidence=found.shared)
    if found.dependent and found.lossy:
        return not_run(f"blocked by joint/{name}: the bets take the target's law for granted")
    if found.dependent:
        named = [s.component for s in found.report.suspects if s.component.startswith("lag")]
        return failed(
            f"rows depend on each other: evidence 10^{found.dependence:.0f}; a token "
            + (named[0].removeprefix("lag: ") if named else "follows an earlier one"),
            log10_evidence=found.dependence,
        )
    lags = ", ".join(map(str, LAGS))
    return passed(
        f"{found.report.trials:,} blocks, no token depends on those {lags} blocks before"
    )


CHECKS = tuple(
    Check(
        f"independence/rows-{name}",
        BLOCKS,
        partial(rows_independent, name),
        statistical=True,
        finding=Finding.DEPENDENCE,
        law=True,
    )
    for name in CHAIN_FIXTURES
)
