"""Is a sampler lossless? Tests on samples, with stated error rates."""

from specref.lazy import public_names

__all__, __getattr__ = public_names(__file__)
