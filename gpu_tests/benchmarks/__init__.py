"""Verification and generation against their references, side by side in one run."""
