"""Adapters to public implementations; each needs its package and says so when it is absent.

Examples
--------
>>> IMPLEMENTATIONS["reference"].not_run is None
True
"""

from specref.adapters.known import Deviation
from specref.adapters.needs import NotInstalledError
from specref.adapters.registry import IMPLEMENTATIONS, Implementation

__all__ = ["IMPLEMENTATIONS", "Deviation", "Implementation", "NotInstalledError"]
