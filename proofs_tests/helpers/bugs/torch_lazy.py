"""Bugs of lazy SLRS, to be planted: what the tests must reject."""

from typing import Any

import pytest
import torch
from torch import Tensor

from proofs_tests.helpers.torch.lazy import PADDED, WAITING
from specref.torch_backend.drafters import slrs
from specref.torch_backend.drafters.lazy_verification import Decisions
from specref.torch_backend.drafters.settling import Settling
from specref.torch_backend.drafters.slrs import Drafting, Path


def forget_ancestors(patch: pytest.MonkeyPatch) -> None:
    """An upper bound without what is above the token in the tree."""
    patch.setattr(Settling, "reachable", lambda self, n, t: self.trie.owners[n] == t)


def forget_shorter_tokens(patch: pytest.MonkeyPatch) -> None:
    """An upper bound without texts that may leave the tree for a shorter token."""

    def wrong(self: Settling, nodes: Tensor, tokens: Tensor) -> Tensor:
        place = self._place[tokens]
        return (self._first[nodes] < place) & (place <= self._last[nodes])

    patch.setattr(Settling, "reachable", wrong)


def residual_by_difference(patch: pytest.MonkeyPatch) -> None:
    """Keep the first proposal by (p - psi)+, not divided by p - l."""
    propose = Decisions._propose

    def wrong(self: Decisions, rows: Tensor) -> None:
        propose(self, rows)
        self.room[rows] = self.room[rows].where(self.refusals[rows] > 0, 1)

    patch.setattr(Decisions, "_propose", wrong)


def known_since(patch: pytest.MonkeyPatch) -> None:
    """Divide by p less the l of when a proposal is judged, not of when it was made."""
    share = Decisions._share

    def wrong(self: Decisions, rows: Tensor, psi: Tensor) -> Tensor:
        lower, _ = self.bounds.of(*self.question(rows))
        self.room[rows] = (self.chance[rows] - lower).clamp(min=1e-300)
        return share(self, rows, psi)

    patch.setattr(Decisions, "_share", wrong)


def text_kept(patch: pytest.MonkeyPatch) -> None:
    """A draft starts with what was written beyond the one before."""
    follow, step = Drafting._follow, Drafting._draw

    def following(self: Drafting, path: Any, token: int, code: int, mass: float) -> None:
        drafter, target, count = self.reader.drafter, self.reader.target, len(path.drafts)
        text = getattr(path, "text", b"") + (drafter.spelled[token] or b"")
        follow(self, path, token, code, mass)
        settled = len(path.drafts) > count
        piece = target.spelled[path.drafts[-1]] if settled and path.drafts[-1] >= 0 else None
        path.beyond = drafter.spell(text[len(piece or b"") :])[0] if settled else []
        path.text = b"" if settled else text

    def drawing(self: Drafting, rows: list[int]) -> None:
        draw = slrs.draw
        beyond = [(getattr(self.paths[row], "beyond", None) or [-1])[0] for row in rows]

        def given(laws: Tensor, coins: Tensor) -> Tensor:
            tokens = torch.tensor(beyond)
            if (free := tokens < 0).any():
                tokens[free] = draw(laws[free], coins[free])
            return tokens

        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(slrs, "draw", given)
            step(self, rows)

    patch.setattr(Drafting, "_follow", following)
    patch.setattr(Drafting, "_draw", drawing)


def rest_of_prompt_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Bytes of the prompt that wait for the rest of a character are lost."""
    start = Path.__init__
    patch.setattr(Path, "__init__", lambda self, room, rest, laws: start(self, room, b"", laws))


def rest_of_drafts_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Bytes of a draft that wait for the rest of a character are lost."""
    restart = Path.restart
    patch.setattr(Path, "restart", lambda self, ids, rest: restart(self, ids, b""))


def special_is_eos(patch: pytest.MonkeyPatch) -> None:
    """Any special token is EOS where a token would start."""
    init = Settling.__init__

    def wrong(self: Settling, *arguments: Any) -> None:
        init(self, *arguments)
        self._special, self._eos = 0, self._special + self._eos

    patch.setattr(Settling, "__init__", wrong)


BUGS = residual_by_difference, known_since, text_kept, forget_ancestors, forget_shorter_tokens
READING_BUGS = (
    (rest_of_prompt_forgotten, WAITING),
    (rest_of_drafts_forgotten, WAITING),
    (special_is_eos, PADDED),
)
