"""Proofs for every p and q over small vocabularies: rules are run as they are, once a region."""

from specref.proofs.everywhere.number import NotForAllError
from specref.proofs.everywhere.proof import Everywhere, Witness, is_lossless_everywhere

__all__ = ["Everywhere", "NotForAllError", "Witness", "is_lossless_everywhere"]
