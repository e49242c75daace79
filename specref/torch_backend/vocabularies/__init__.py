"""Tokens as bytes: what a tokenizer writes, prefix trees, contexts in another vocabulary."""
