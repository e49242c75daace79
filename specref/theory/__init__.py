"""Closed forms: acceptance, psi, lookahead rules, decompositions. No chance anywhere."""

from specref.theory.acceptance import (
    acceptance_by_position,
    acceptance_rate,
    accepted_length_distribution,
    expected_tokens,
)
from specref.theory.counting import Spellings, decompositions, spellings
from specref.theory.lookahead import at_most_n_max, fixed, n_max, until_determined
from specref.theory.push_forward import conditional_psi, proposals, psi, psi_iid

__all__ = [
    "Spellings",
    "acceptance_by_position",
    "acceptance_rate",
    "accepted_length_distribution",
    "at_most_n_max",
    "conditional_psi",
    "decompositions",
    "expected_tokens",
    "fixed",
    "n_max",
    "proposals",
    "psi",
    "psi_iid",
    "spellings",
    "until_determined",
]
