"""Adapters to public implementations; each needs its package and says so when it is absent.

Examples
--------
>>> IMPLEMENTATIONS["reference"].not_run is None
True
"""

from specref.conformance.implementations.known import Deviation
from specref.conformance.implementations.needs import NotInstalledError
from specref.conformance.implementations.registry import IMPLEMENTATIONS, Implementation

__all__ = ["IMPLEMENTATIONS", "Deviation", "Implementation", "NotInstalledError"]
