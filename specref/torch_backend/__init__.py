"""Speculative decoding in torch: an independent implementation, without the rest of specref."""

from specref.torch_backend.drafters.drafts import Drafter, Drafts, StandardDrafter
from specref.torch_backend.drafters.mapped import TliDrafter, UnionDrafter
from specref.torch_backend.drafters.slem import SlemDrafter
from specref.torch_backend.drafters.slrs import SlrsDrafter
from specref.torch_backend.generation import Decoder, generate
from specref.torch_backend.methods import METHODS
from specref.torch_backend.models.cached import CachedModel
from specref.torch_backend.models.trees import TreeModel
from specref.torch_backend.randomness import Coins, row_coins, uniforms
from specref.torch_backend.shaping import draw, shape_logits
from specref.torch_backend.statistics import Generation, Iteration
from specref.torch_backend.verification.block import verify_block
from specref.torch_backend.verification.chains import (
    NO_DRAFT,
    OUTSIDE,
    validate,
    verify,
    verify_matching,
)
from specref.torch_backend.verification.trees import NO_NODE, ROOT, validate_tree, verify_tree
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary

LazySlrsDrafter = SlrsDrafter  # its name when another one read psi in full

__all__ = [
    "METHODS",
    "NO_DRAFT",
    "NO_NODE",
    "OUTSIDE",
    "ROOT",
    "CachedModel",
    "Coins",
    "Decoder",
    "Drafter",
    "Drafts",
    "Generation",
    "Iteration",
    "LazySlrsDrafter",
    "SlemDrafter",
    "SlrsDrafter",
    "StandardDrafter",
    "TliDrafter",
    "TokenVocabulary",
    "TreeModel",
    "UnionDrafter",
    "draw",
    "generate",
    "row_coins",
    "shape_logits",
    "uniforms",
    "validate",
    "validate_tree",
    "verify",
    "verify_block",
    "verify_matching",
    "verify_tree",
]
