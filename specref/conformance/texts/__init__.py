"""Whole texts: several iterations, long chains, argmax decoding."""
