"""Causal language models with a key-value cache: one text a row, or a growing tree of them."""
