"""Stage acceptance: accepted lengths equal to the closed form, in both directions."""

from functools import partial

import numpy as np
from scipy import stats

from specref.conformance.checks.check import Check, failed, not_applicable, passed
from specref.conformance.checks.joint import BLOCKS
from specref.conformance.contract import Contract
from specref.conformance.fixtures import TEETH
from specref.conformance.judge import Judge
from specref.conformance.status import Outcome
from specref.losslessness.verdict import Conformance
from specref.models import as_float


def closed_form(name: str, judge: Judge) -> Outcome:
    """Accepted lengths follow the law of the declared rule: inflation is as wrong as deflation."""
    if judge.capabilities.rule is None:
        return not_applicable("declares no rule (rule='standard', for example)")
    results = judge.blocks(name).report.acceptance
    if not results:
        return not_applicable(
            "an accepted EOS ends a block: lengths do not tell what was accepted"
        )
    allowance = judge.capabilities.tolerance * judge.teeth(name).lookahead
    wrong = [
        result
        for result in results
        if result.conformance != Conformance.CONFORMS
        and abs(result.largest_gap) > result.allowed_gap + allowance
    ]
    for result in wrong[:1]:
        return failed(
            f"accepted lengths are {result.conformance} at {result.case}: mean "
            f"{result.mean:.4f}, closed form {result.expected:.4f}",
            mean=result.mean,
            expected=result.expected,
        )
    means = ", ".join(f"{result.mean:.3f} (formula {result.expected:.3f})" for result in results)
    return passed(f"mean accepted length {means}")


def bound(name: str, judge: Judge) -> Outcome:
    """No lossless rule keeps a first draft more often than sum min(p, q).

    Above it, drafts are not from the declared q, or the output is not the target's.
    """
    found, teeth = judge.blocks(name), judge.teeth(name)
    alpha = judge.alpha / judge.checks / len(teeth.places)
    for place, (kept, drafted) in found.first_accepted.items():
        p, q = (as_float(m).next_token(place.context) for m in (teeth.target, teeth.drafter))
        most = float(np.minimum(p, q).sum())
        least = float(stats.beta.ppf(alpha, kept, drafted - kept + 1)) if kept else 0.0
        if least > most + judge.capabilities.tolerance + 1e-12:
            return failed(
                f"{kept / drafted:.4f} of first drafts were kept at {place.name}, surely more "
                f"than sum min(p, q) = {most:.4f}: drafts not from q, or a lossy rule",
                kept=kept,
                drafted=drafted,
                bound=most,
            )
    return passed("at most sum min(p, q) of first drafts kept")


CHECKS = tuple(
    check
    for name in TEETH
    for check in (
        Check(f"acceptance/{name}", BLOCKS, partial(closed_form, name), lossy=False),
        Check(
            f"acceptance/bound-{name}",
            frozenset({Contract.VERIFY}),
            partial(bound, name),
            statistical=True,
        ),
    )
)
