"""Which rows the cross-check has, and how many tokens each of them gets."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
import torch

from specref.contrib.real_models import planted
from specref.contrib.real_models.generating import LOOKAHEAD, Generator
from specref.contrib.real_models.planted import Planted
from specref.contrib.real_models.settings import Setting
from specref.torch_backend.drafters.drafts import Drafts
from specref.torch_backend.drafters.mapped import MappedDrafter
from specref.torch_backend.methods import AUTOREGRESSIVE, BLOCK

Profile: TypeAlias = Literal["quick", "record"]
Spoil: TypeAlias = Callable[[Drafts], Drafts]

PLAIN = Setting()
OTHERS = (Setting(temperature=0.7), Setting(top_k=50), Setting(top_p=0.9))
LENIENT = 0.25
BATCH, LENGTH = 16, 32
"""One batch has the tokens of a row of the quick profile. The larger the faster: on one core a
token of the published pairs took half the time in batches of 32 that it took in batches of 8."""


@dataclass(frozen=True)
class Sizes:
    """How much a profile does.

    * `plain`, `others`: Tokens of a row at temperature 1, and at other settings.
    * `bug`: Of a row with a planted bug, at most.
    * `timed`, `length`: Prompts that every path is timed on, and the tokens of each text.
    * `planted`: Bugs by method; None for all of `BUGS_OF`.
    """

    plain: int
    others: int
    bug: int
    timed: int = 0
    length: int = 48
    planted: Mapping[str, tuple[str, ...]] | None = None


EARLY = ("bonus from q",)
EARLY_OF = MappingProxyType({"standard": EARLY, "tli": EARLY})
"""A bug that was found within 256 tokens on each of the published pairs."""

PROFILES: Mapping[Profile, Sizes] = MappingProxyType(
    # One text at a time is slow: with more, timing would take longer than all rows.
    {
        "quick": Sizes(500, 0, 1_000, 1, 12, EARLY_OF),
        "record": Sizes(5_000, 1_000, 5_000, 8),
    }
)


@dataclass(frozen=True)
class Case:
    """A row of the table.

    * `bug`: Of `BUGS`; None for the rule as it is.
    """

    pair: str
    method: str
    setting: Setting = PLAIN
    bug: str | None = None
    device: str = "cpu"
    dtype: str = "float32"
    lookahead: int = LOOKAHEAD

    def __str__(self) -> str:
        bug = f", planted: {self.bug}" if self.bug else ""
        return f"{self.pair}, {self.method}, {self.setting}{bug}"

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> "Case":
        """From what `dataclasses.asdict` made of one."""
        return cls(**{**stored, "setting": Setting(**stored["setting"])})

    def stored(self) -> dict[str, Any]:
        """As it goes into JSON."""
        return asdict(self)

    def tokens(self, sizes: Sizes) -> int:
        """How many it is to have."""
        if self.bug is not None:
            return sizes.bug
        return sizes.plain if self.setting == PLAIN else sizes.others


def cases_of(pair: str, methods: tuple[str, ...], sizes: Sizes, **where: Any) -> list[Case]:
    """The rows of a pair: its methods, other settings of them, and bugs that stand in them."""
    cases = [Case(pair, method, PLAIN, **where) for method in methods]
    if sizes.bug:
        planted = BUGS_OF if sizes.planted is None else sizes.planted
        bugs = [(method, bug) for method in methods for bug in planted.get(method, ())]
        cases += [Case(pair, method, PLAIN, bug, **where) for method, bug in bugs]
    if sizes.others:
        cases += [Case(pair, method, one, **where) for one in OTHERS for method in methods]
    return cases


BUGS: Mapping[str, Callable[[], Planted]] = MappingProxyType(
    {
        "residual is p": planted.residual_is_p,
        "bonus from q": planted.bonus_from_q,
        "row before": planted.row_before,
        "lenient": lambda: planted.lenient(LENIENT),
        "first failure": planted.first_failure,
        "sharper": planted.sharper,
        "permuted head": dict,  # it stands in the drafter: see `spoiled`
    }
)
RULES = ("residual is p", "bonus from q", "row before", "lenient")
BUGS_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        AUTOREGRESSIVE: ("sharper",),
        "standard": RULES,
        BLOCK: ("first failure",),
        "tli": ("permuted head", *RULES),
        "slem": ("lenient",),
        "slrs": ("lenient",),
    }
)


def spoiled(case: Case, generator: Generator) -> Spoil | None:
    """What becomes of drafts under a bug of the drafter."""
    if case.bug != "permuted head":
        return None
    assert isinstance(generator.drafter, MappedDrafter)
    return permuted_head(generator.drafter, np.random.default_rng(0))


def permuted_head(drafter: MappedDrafter, rng: np.random.Generator) -> Spoil:
    """Declare the law of another order of the shared tokens than that they are drawn by.

    Transformers prunes the drafter's head in the order in which `get_vocab()` lists the shared
    tokens, and reads it by their ids. Here the order of the list is drawn.
    """
    by_id = torch.tensor(sorted(set(drafter.images.tolist())), device=drafter.images.device)
    order = torch.from_numpy(rng.permutation(len(by_id))).to(by_id.device)
    listed = by_id[order]

    def spoil(drafts: Drafts) -> Drafts:
        assert drafts.laws is not None
        laws = torch.zeros_like(drafts.laws)
        laws[..., by_id] = drafts.laws[..., listed]
        return Drafts(drafts.tokens, laws, drafts.forwards)

    return spoil
