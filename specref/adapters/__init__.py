"""Adapters to public implementations; each needs its package, and raises if it is missing.

Examples
--------
>>> from specref.adapters import IMPLEMENTATIONS
>>> IMPLEMENTATIONS["reference"].not_run is None
True
"""

from specref.lazy import public_names

__all__, __getattr__ = public_names(__file__)
