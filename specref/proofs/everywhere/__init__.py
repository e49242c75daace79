"""Proofs for every p and q over small vocabularies: rules are run as they are, once a region."""

from specref.proofs.everywhere.acceptance import Formula
from specref.proofs.everywhere.comparison import Comparison, compare_everywhere
from specref.proofs.everywhere.number import NotForAllError
from specref.proofs.everywhere.proof import Everywhere, Witness, is_lossless_everywhere

__all__ = [
    "Comparison",
    "Everywhere",
    "Formula",
    "NotForAllError",
    "Witness",
    "compare_everywhere",
    "is_lossless_everywhere",
]
