"""Is a sampler lossless? Exact proofs, and tests on samples with stated error rates."""

from specref.losslessness.exact import (
    Difference,
    Proof,
    completed,
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
