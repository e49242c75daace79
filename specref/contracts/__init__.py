"""Contracts: how an implementation is called, and what it claims to be."""
