"""Rules that were written in order to be called proved: how each is judged.

Six of them are called proved: each leaves the box of what is claimed, and the page names it.
"""

import pytest

from proofs_tests.helpers.bugs.everywhere.attacks import ATTACKS
from specref.proofs.everywhere import is_lossless_everywhere


def outcome(name: str) -> str:
    try:
        found = is_lossless_everywhere(ATTACKS[name].step, "ab", lookahead=1, budget=60)
    except (TypeError, ValueError):
        return "error"
    return {"lossless": "proved"}.get(found.verdict, found.verdict)


@pytest.mark.deep(one_in=96)
@pytest.mark.parametrize("name", ATTACKS)
def test_what_comes_of_it(name: str) -> None:
    assert outcome(name) == ATTACKS[name].comes


@pytest.mark.deep
def test_another_seed_refutes_a_rule_that_knows_the_prime_of_seed_0() -> None:
    found = is_lossless_everywhere(ATTACKS["known prime"].step, "ab", lookahead=1, seed=1)
    assert found.verdict == "lossy"
