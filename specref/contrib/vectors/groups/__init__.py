"""The groups of cases, written by hand: one for each question."""

from specref.contrib.vectors.groups.iterations import MAPPED, SAME, SHARED, SPELLED
from specref.contrib.vectors.groups.verifications import JOINT, MORE_DRAFTS, NO_DRAFTS, ONE_DRAFT

VERIFICATIONS = (*ONE_DRAFT, *NO_DRAFTS, *MORE_DRAFTS, *JOINT)
ITERATIONS = (*SAME, *MAPPED, *SPELLED, *SHARED)
__all__ = ["ITERATIONS", "VERIFICATIONS"]
