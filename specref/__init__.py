"""The executable specification of lossless speculative decoding."""

from specref.chance import Exact, Replayed, Sampled, Traced, exact_distribution
from specref.losslessness import Proof, completed, is_lossless
from specref.models import Model
from specref.vocabulary import Vocabulary

__version__ = "0.1.0"

__all__ = [
    "Exact",
    "Model",
    "Proof",
    "Replayed",
    "Sampled",
    "Traced",
    "Vocabulary",
    "completed",
    "exact_distribution",
    "is_lossless",
]
