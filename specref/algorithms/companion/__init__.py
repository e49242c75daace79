"""Companion-guided verification: the published rule, and rules that are lossless."""

from specref.algorithms.companion.companion import predictable_step, step

__all__ = ["predictable_step", "step"]
