"""Samplers to try the conformance kit on: one that is right, and one with a public bug."""
