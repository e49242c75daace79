"""Verification in floating point: which decisions rounding can change."""
