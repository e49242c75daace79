"""Small checkpoints whose next-token law is prescribed, to judge engines on."""

from specref.checkpoints.building import LAW_FILE, WRITERS, build
from specref.checkpoints.fidelity import TOLERANCE, Fidelity, compare
from specref.checkpoints.law import Law, as_law, as_laws, load_laws
from specref.checkpoints.named import NAMED, named_pair
from specref.checkpoints.shaping import shaped
from specref.checkpoints.weights import ARCHITECTURES

__all__ = [
    "ARCHITECTURES",
    "LAW_FILE",
    "NAMED",
    "TOLERANCE",
    "WRITERS",
    "Fidelity",
    "Law",
    "as_law",
    "as_laws",
    "build",
    "compare",
    "load_laws",
    "named_pair",
    "shaped",
]
