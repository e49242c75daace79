"""Checks without sampling error: randomness intercepted, and every branch of the code followed."""

import numpy as np

from specref.conformance.checks.check import (
    Check,
    failed,
    not_applicable,
    passed,
)
from specref.conformance.checks.smoke import VERIFY
from specref.conformance.contract import Floats
from specref.conformance.judge import Judge
from specref.conformance.probing import edge_events, probe_block
from specref.conformance.status import Outcome, Status
from specref.vocabulary import Tokens
from specref.zoo import FIXTURES

EXACT = 1e-6
LESS = (2.0**-52, 1.5e-7)


def probed(judge: Judge) -> Outcome:
    """The exact joint law of the completed block on a fixture, if all calls can be interpreted."""
    if _low(judge):
        return not_applicable("low precision: the law is not exact")
    pair = FIXTURES["c"]
    found = probe_block(
        judge.implementation,
        pair.target,
        pair.drafter,
        pair.context,
        pair.lookahead,
        capabilities=judge.capabilities,
    )
    if found.uninterpreted:
        return not_applicable(f"cannot be probed: {found.uninterpreted}")
    numbers = {"total_variation": found.total_variation, "error_bound": found.error_bound}
    if found.failures:
        worst = max(found.failures, key=lambda name: found.failures[name])
        return failed(f"raises {worst} with probability {found.failures[worst]:.2g}", **numbers)
    if found.total_variation > EXACT + found.error_bound:
        return failed(f"TV {found.total_variation:.6f} from the target, exactly", **numbers)
    return passed(f"TV {found.total_variation:.1e} from the target, without sampling", **numbers)


def _low(judge: Judge) -> bool:
    return judge.capabilities.dtype in ("float16", "bfloat16")


def zero_coin(judge: Judge) -> Outcome:
    """A uniform of exactly 0, or the last below 1, lets no impossible token through."""
    p = np.array([[0.0, 0.5, 0.5, 0.0], [0.0, 0.25, 0.25, 0.5]])
    q = np.array([[0.5, 0.5, 0.0, 0.0]])
    return _edges(judge, p, q, (0,))


def empty_residual(judge: Judge) -> Outcome:
    """A rejection by rounding alone, with nothing left of (p - q)+, still gives a token of p.

    p is below q by the rounding of float64, and by that of float32, in which many samplers count.
    """
    q = np.array([[0.25, 0.25, 0.5, 0.0]])
    for less in LESS if judge.capabilities.dtype == "float64" else LESS[1:]:
        p = np.array([[0.25 * (1 - less), 0.25, 0.5, 0.0], [0.25, 0.25, 0.5, 0.0]])
        outcome = _edges(judge, p, q, (0,))
        if outcome.status != Status.PASSED:
            break
    return outcome


def _edges(judge: Judge, p: Floats, q: Floats, drafts: Tokens) -> Outcome:
    events = edge_events(judge.implementation, p, q, drafts, capabilities=judge.capabilities)
    if not events:
        return passed("nothing impossible at the ends of any uniform that could be intercepted")
    return failed(str(events[0]), events=[str(event) for event in events])


CHECKS = (
    Check("boundary/zero-coin", VERIFY, zero_coin),
    Check("boundary/empty-residual", VERIFY, empty_residual),
    Check("joint/probed", VERIFY, probed),
)
