"""Small checkpoints whose next-token distribution is prescribed, to judge engines on."""

from specref.contrib.checkpoints.building import LAW_FILE, WRITERS, build
from specref.contrib.checkpoints.fidelity import TOLERANCE, Fidelity, compare
from specref.contrib.checkpoints.law import (
    NAMED,
    Law,
    as_law,
    as_laws,
    load_laws,
    named_pair,
    shaped,
)
from specref.contrib.checkpoints.weights import ARCHITECTURES

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
