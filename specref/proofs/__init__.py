"""Exact proofs: every random path enumerated, every distribution a fraction."""

from specref.laws import completed
from specref.proofs.exact import (
    Difference,
    Proof,
    is_lossless,
    is_lossless_loop,
    output_distribution,
)

__all__ = [
    "Difference",
    "Proof",
    "completed",
    "is_lossless",
    "is_lossless_loop",
    "output_distribution",
]
