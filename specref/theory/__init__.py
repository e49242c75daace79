"""Closed forms: acceptance, psi, lookahead rules, decompositions. No chance anywhere."""

from specref.algorithms.lookahead import at_most_n_max, fixed, n_max, until_determined
from specref.algorithms.text.push_forward import conditional_psi, proposals, psi, psi_iid
from specref.theory.acceptance import expected_tokens
from specref.theory.counting import Spellings, decompositions, spellings

__all__ = [
    "Spellings",
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
