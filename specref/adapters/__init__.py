"""Adapters to public implementations; each needs its package, and raises if it is missing.

Examples
--------
>>> IMPLEMENTATIONS["reference"].not_run is None
True
"""

from specref.adapters.known import Deviation
from specref.adapters.needs import NotInstalledError
from specref.adapters.registry import IMPLEMENTATIONS, Implementation

__all__ = ["IMPLEMENTATIONS", "Deviation", "Implementation", "NotInstalledError"]
