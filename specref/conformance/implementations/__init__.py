"""Adapters to public implementations; each needs its package and says so when it is absent."""
