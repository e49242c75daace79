"""Drafting by n-grams, without a draft model: where drafts come from, and the rule for them."""

from specref.algorithms.ngrams.ngrams import (
    DRAFTS,
    QUERY,
    expected_accepted,
    learning_free,
    match,
    proposals,
    step,
    trie,
)

__all__ = [
    "DRAFTS",
    "QUERY",
    "expected_accepted",
    "learning_free",
    "match",
    "proposals",
    "step",
    "trie",
]
