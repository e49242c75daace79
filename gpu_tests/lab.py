"""A device with the trained pairs on it; what is generated once is kept for every test."""

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, TypeAlias

from gpu_tests.blocks import Blocks, held_out_blocks
from gpu_tests.pairs import CASES, Models, prompts_of
from gpu_tests.recording import Record, record
from gpu_tests.sizes import PRETENDED, SIZES
from specref.contrib.real_models import planted
from specref.contrib.real_models.pairs import Pair
from specref.contrib.real_models.planted import Planted

Figure: TypeAlias = Callable[[str], None]
SHARES: Mapping[str, float] = MappingProxyType({"cpu": 0.75, PRETENDED: 0.75, "cuda": 0.1})
BUG_SEED = 10_000
VARIANT = 4


class Lab:
    """Everything that tests share on a device.

    * `share`: Of the drafts that the bug "lenient" accepts unseen.
    * `finds`: Whether sizes are enough to find bugs; on a pretended device these run, no more.
    * `record`: The texts of a case, by its name in `CASES`.
    * `buggy`: Fewer texts of it, with a bug of `planted`, both by name.
    * `blocks`: Blocks on the pair of a case.
    """

    def __init__(self, device: str) -> None:
        self.device, self.sizes, self.share = device, SIZES[device], SHARES[device]
        self.models, self.finds = Models(device), device != PRETENDED
        self.record, self.buggy = cache(self._record), cache(self._buggy)
        self.blocks = cache(self._blocks)

    def pair(self, name: str, *dtype: Any) -> Pair:
        """A pair by its name in the card."""
        return self.models.pair(name, *dtype)

    def iterations(self, name: str) -> int:
        """How many a record has at least."""
        case, sizes = CASES[name], self.sizes
        return sizes.iterations // VARIANT if case.variant else sizes.iterations

    def _record(self, name: str) -> Record:
        seeds = self.sizes.seeds(CASES[name].method, self.iterations(name))
        return self._generate(name, seeds, 0)

    def _buggy(self, name: str, bug: str) -> Record:
        function = getattr(planted, bug)
        functions = function(self.share) if bug == "lenient" else function()
        return self._generate(name, self.sizes.planted, BUG_SEED, functions)

    def _blocks(self, name: str) -> list[Blocks]:
        case = CASES[name]
        return held_out_blocks(self.pair(case.pair), case.method, self.sizes.blocks)

    def _generate(
        self, name: str, seeds: int, seed: int, planted: Planted = MappingProxyType({})
    ) -> Record:
        case, sizes = CASES[name], self.sizes
        pair = self.pair(case.pair, case.dtype)
        rows = prompts_of(pair, sizes.prompts) * seeds
        return record(pair, case, rows, sizes.tokens, seed=seed, planted=planted)
