"""The groups of cases, written by hand: one for each question."""

from specref.contrib.vectors.groups.by_text import SPELLED
from specref.contrib.vectors.groups.by_token import MAPPED
from specref.contrib.vectors.groups.joint import JOINT
from specref.contrib.vectors.groups.more_drafts import MORE_DRAFTS
from specref.contrib.vectors.groups.one_draft import NO_DRAFTS, ONE_DRAFT
from specref.contrib.vectors.groups.same_vocabulary import SAME
from specref.contrib.vectors.groups.shared import SHARED

VERIFICATIONS = (*ONE_DRAFT, *NO_DRAFTS, *MORE_DRAFTS, *JOINT)
ITERATIONS = (*SAME, *MAPPED, *SPELLED, *SHARED)
__all__ = ["ITERATIONS", "VERIFICATIONS"]
