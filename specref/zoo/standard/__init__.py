"""Mutants of standard speculative decoding, and look-alikes that are lossless."""
