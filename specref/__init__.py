"""The executable specification of lossless speculative decoding."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from specref.chance import Exact, Replayed, Sampled, Traced, exact_distribution
from specref.models import Model
from specref.vocabulary import Vocabulary

if TYPE_CHECKING:
    from specref.conformance.contract import Capabilities, Contract, capable
    from specref.conformance.parametrize import parametrize
    from specref.conformance.suite import Report, check
    from specref.losslessness import Proof, completed, is_lossless

__version__ = "0.1.0"

__all__ = [
    "Capabilities",
    "Contract",
    "Exact",
    "Model",
    "Proof",
    "Replayed",
    "Report",
    "Sampled",
    "Traced",
    "Vocabulary",
    "capable",
    "check",
    "completed",
    "exact_distribution",
    "is_lossless",
    "parametrize",
]

# These need SciPy or more: imported only when they are asked for.
_LATER = {
    "Capabilities": "conformance.contract",
    "Contract": "conformance.contract",
    "Proof": "losslessness",
    "Report": "conformance.suite",
    "capable": "conformance.contract",
    "check": "conformance.suite",
    "completed": "losslessness",
    "is_lossless": "losslessness",
    "parametrize": "conformance.parametrize",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'specref' has no attribute {name!r}")
    return getattr(import_module(f"specref.{_LATER[name]}"), name)
