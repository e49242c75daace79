"""The main job: every algorithm over the family of toy pairs, proved, compared and sampled."""

from specref.lazy import public_names

__all__, __getattr__ = public_names(__file__)
