"""The groups of cases, written by hand: one for each question."""

from specref.vectors.groups.by_text import SPELLED
from specref.vectors.groups.by_token import MAPPED
from specref.vectors.groups.joint import JOINT
from specref.vectors.groups.more_drafts import MORE_DRAFTS
from specref.vectors.groups.one_draft import NO_DRAFTS, ONE_DRAFT
from specref.vectors.groups.same_vocabulary import SAME
from specref.vectors.groups.shared import SHARED

VERIFICATIONS = (*ONE_DRAFT, *NO_DRAFTS, *MORE_DRAFTS, *JOINT)
ITERATIONS = (*SAME, *MAPPED, *SPELLED, *SHARED)
__all__ = ["ITERATIONS", "VERIFICATIONS"]
