"""The checks, one file for each stage."""

from operator import attrgetter

from specref.conformance.checks import (
    acceptance,
    boundary,
    drafting,
    engines,
    greedy,
    independence,
    joint,
    long_texts,
    loops,
    probed,
    probed_rows,
    replay,
    smoke,
    strata,
    texts,
)
from specref.conformance.checks.check import Check
from specref.wings import table_of

_OWN: tuple[Check, ...] = (
    *smoke.CHECKS,
    *engines.SMOKE,
    *replay.CHECKS,
    *boundary.CHECKS,
    *greedy.CHECKS,
    *greedy.OF_TREES,
    *joint.CHECKS,
    *boundary.COSTLY,
    *joint.EVERYWHERE,
    *joint.OF_TREES,
    *joint.OF_TWO_VOCABULARIES,
    *drafting.CHECKS,
    *acceptance.CHECKS,
    *acceptance.OF_TREES,
    *acceptance.REPORTED,
    *acceptance.LOOPS,
    *independence.CHECKS,
    *independence.IDENTICAL,
    *independence.OF_TREES,
    *strata.CHECKS,
    *loops.CHECKS,
    *texts.CHECKS,
    *engines.CHECKS,
    *long_texts.CHECKS,
)
CHECKS: tuple[Check, ...] = (
    *table_of("checks", *_OWN, name=attrgetter("id")).values(),
    # Last: a sampler that keeps state may keep numbers that were handed out while probing.
    *probed.CHECKS,
    *probed_rows.CHECKS,
)

__all__ = ["CHECKS", "Check"]
