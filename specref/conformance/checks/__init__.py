"""The checks, one file for each stage."""

from specref.conformance.checks import (
    acceptance,
    boundary,
    drafting,
    engines,
    everywhere,
    greedy,
    identical,
    independence,
    joint,
    long_texts,
    loops,
    probed,
    probed_rows,
    replay,
    reporting,
    situations,
    smoke,
    strata,
    texts,
    trees,
    vocabularies,
)
from specref.conformance.checks.check import Check

CHECKS: tuple[Check, ...] = (
    *smoke.CHECKS,
    *engines.SMOKE,
    *replay.CHECKS,
    *boundary.CHECKS,
    *greedy.CHECKS,
    *trees.GREEDY,
    *joint.CHECKS,
    *boundary.COSTLY,
    *everywhere.CHECKS,
    *trees.JOINT,
    *vocabularies.CHECKS,
    *drafting.CHECKS,
    *acceptance.CHECKS,
    *trees.ACCEPTANCE,
    *reporting.CHECKS,
    *loops.CHECKS,
    *independence.CHECKS,
    *identical.CHECKS,
    *trees.INDEPENDENCE,
    *strata.CHECKS,
    *situations.CHECKS,
    *texts.CHECKS,
    *engines.CHECKS,
    *long_texts.CHECKS,
    # Last: a sampler that keeps state may keep numbers that were handed out while probing.
    *probed.CHECKS,
    *probed_rows.CHECKS,
)

__all__ = ["CHECKS", "Check"]
