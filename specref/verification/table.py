"""The rules of the main job: those that are to be proved, and those that are to be refuted."""

from collections.abc import Mapping
from types import MappingProxyType

from specref.rules import RULES, Rule
from specref.zoo.standard.printed import algorithm_5

PRINTED = Rule(
    "algorithm-5-printed",
    ("Timor et al. 2025, Algorithm 5, line 12 as printed",),
    algorithm_5,
    lossless=False,
)
TRIED: Mapping[str, Rule] = MappingProxyType({**RULES, PRINTED.name: PRINTED})
