"""The checks, one file for each stage; a check is an id, the contracts it is for, a function."""

from specref.conformance.checks import (
    acceptance,
    boundary,
    drafting,
    independence,
    joint,
    loops,
    probed,
    replay,
    reporting,
    smoke,
    texts,
    vocabularies,
)
from specref.conformance.checks.check import Check

CHECKS: tuple[Check, ...] = (
    *smoke.CHECKS,
    *replay.CHECKS,
    *boundary.CHECKS,
    *joint.CHECKS,
    *vocabularies.CHECKS,
    *drafting.CHECKS,
    *acceptance.CHECKS,
    *reporting.CHECKS,
    *loops.CHECKS,
    *independence.CHECKS,
    *texts.CHECKS,
    # Last: numbers that were handed out while probing may stay in a sampler that keeps state.
    *probed.CHECKS,
)

__all__ = ["CHECKS", "Check"]
