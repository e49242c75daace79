"""Attacks on the verdicts of `specref check`: samplers that were written without its fixtures.

Run: python -m proofs_tests.pages.attack --json docs/attack.json --markdown docs/attack.md
The second, on the other contracts too: `--second` and `docs/attack-second`.
"""
