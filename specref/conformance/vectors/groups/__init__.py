"""What is tried, written by hand: one group a question."""

from specref.conformance.vectors.groups.by_text import SPELLED
from specref.conformance.vectors.groups.by_token import MAPPED
from specref.conformance.vectors.groups.iterations import CITES, StepGroup
from specref.conformance.vectors.groups.joint import JOINT
from specref.conformance.vectors.groups.more_drafts import MORE_DRAFTS
from specref.conformance.vectors.groups.one_draft import NO_DRAFTS, ONE_DRAFT
from specref.conformance.vectors.groups.same_vocabulary import SAME
from specref.conformance.vectors.groups.shared import SHARED
from specref.conformance.vectors.groups.verifications import Coins, Group

VERIFICATIONS = (*ONE_DRAFT, *NO_DRAFTS, *MORE_DRAFTS, *JOINT)
ITERATIONS = (*SAME, *MAPPED, *SPELLED, *SHARED)
__all__ = ["CITES", "ITERATIONS", "VERIFICATIONS", "Coins", "Group", "StepGroup"]
