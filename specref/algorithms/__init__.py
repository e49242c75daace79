"""The algorithms, all with `step(target, drafter, context, lookahead, chance)`."""

from specref.lazy import public_names

__all__, __getattr__ = public_names(__file__, __name__)
