"""What a stratum has shown, as an outcome; and how many tokens it takes to show something."""

import math
from collections.abc import Sequence

from specref.conformance.checks.check import failed, inconclusive, passed
from specref.conformance.judge import Judge
from specref.conformance.status import Outcome
from specref.conformance.strata.campaign import Found
from specref.conformance.strata.laws import FEATURES
from specref.conformance.strata.shape import Sized
from specref.conformance.strata.shape import tried as values_of
from specref.statistics.features import tokens_to_detect

USELESS, LEAST = 0.5, 0.4
"""A stratum that would have shown nothing smaller is inconclusive; so none is planned for less."""


def tokens_needed(judge: Judge, level: float, places: int, cost: float) -> int:
    """Tokens of a stratum with bets at so many places, unless their number is given.

    Not fewer than show a shift of `LEAST`: a stratum that costs little is not useless therefore.
    """
    features = places * len(FEATURES)
    least = tokens_to_detect(LEAST, level, features)
    wanted = int(cost * tokens_to_detect(judge.detect_tv, level, features))
    return judge.trials or max(least, wanted)


def cells_needed(
    cells: float, judge: Judge, level: float, places: int, shapes: Sequence[Sized]
) -> int:
    """Numbers in laws after which a stratum ends: enough for `LEAST` of rows with one token each.

    Parameters
    ----------
    cells : float
        So many, if these are enough.
    """
    least = tokens_to_detect(LEAST, level, places * len(FEATURES))
    a_row = sum(one.cells / one.sizes["batch"] for one in shapes) / len(shapes)
    return math.ceil(cells if judge.trials else max(cells, least * a_row))


def scale(judge: Judge) -> float:
    """How many times more numbers smaller distances than 0.05 take."""
    return max(1.0, (0.05 / judge.detect_tv) ** 2)


def outcome_of(campaigns: Sequence[Found], judge: Judge) -> Outcome:
    """The outcome of campaigns in a stratum, one for each dtype."""
    detectable = max(found.detectable for found in campaigns)
    tokens, calls = (sum(getattr(f, n) for f in campaigns) for n in ("tokens", "calls"))
    tried = values_of(campaigns[0].by_shape)
    if heats := sorted({heat for found in campaigns for heat in found.temperatures}):
        tried += f"; temperature {', '.join(f'{one:g}' for one in heats)}"
    evidence = {
        "calls": calls,
        "rows": sum(found.rows for found in campaigns),
        "tokens": tokens,
        "alpha": judge.level,
        "detectable_shift": detectable,
        "tried": tried,
        "by_shape": {
            f"{shape}, {found.dtype}": shift
            for found in campaigns
            for shape, shift in found.by_shape.items()
        },
        "log10_evidence": max(found.log10_evidence for found in campaigns),
        "log10_threshold": campaigns[0].log10_threshold,
    }
    for found in campaigns:
        if found.impossible:
            return failed(f"impossible: {found.impossible}", **evidence)
        if found.lossy:
            return failed(
                f"tokens are not drawn from the target's rows: {found.worst}, by "
                f"{abs(found.shift):.3f} a token; evidence 10^{found.log10_evidence:.0f} after "
                f"{found.tokens:,} tokens",
                **evidence,
            )
    told = f"{tried}: {tokens:,} tokens, {calls:,} calls"
    if detectable > USELESS or not tokens:
        return inconclusive(f"{told}: too few to see much", **evidence)
    return passed(f"{told}; a shift ≥ {detectable:.2g} would have been found", **evidence)
