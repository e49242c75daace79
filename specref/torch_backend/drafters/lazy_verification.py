"""Verification of drafts whose laws are only known by bounds, which are tightened as needed."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from specref.torch_backend.drafters.drafts import Verified
from specref.torch_backend.drafters.psi_bounds import LawTrees, PsiBounds
from specref.torch_backend.randomness import KEEP, RESIDUAL, Coins, uniforms
from specref.torch_backend.shaping import draw, sent
from specref.torch_backend.validation import NO_DRAFT
from specref.torch_backend.verification.chains import blocks_of


class Decisions:
    """The decisions that R rows wait for: to accept a draft, or to keep a proposal.

    A draft t is accepted iff u < p(t) / psi(t). After a rejection x is proposed from
    norm((p - l)+), l the lower bounds of psi as they are then, and kept iff
    v < (p - psi)+(x) / (p - l)(x); refused, another one is proposed by higher l. What is kept has
    the law norm((p - psi)+), whatever l is, and a refusal takes an l that rises: there are no more
    of them than forwards.

    Both shares fall with psi. So a coin below the share of its upper bound says yes, and one not
    below that of its lower bound no: with psi itself it would say the same.

    Row r has the psi `searches[r]` of its first draft, and the following ones of its next;
    proposals have the coins of `uniforms` for its seed and this iteration.
    """

    def __init__(
        self,
        bounds: PsiBounds,
        searches: Tensor,
        p: Tensor,
        drafts: Tensor,
        coins: Coins,
        seeds: Tensor,
        iteration: int,
    ) -> None:
        self.bounds, self.searches, self.p, self.coins = bounds, searches, p, coins
        self.seeds, self.iteration, self.proposals = seeds, iteration, 0
        self.drafts = torch.nn.functional.pad(drafts, (0, 1), value=NO_DRAFT)
        self.accepts = torch.nn.functional.pad(coins.accept, (0, 1))
        self.kept = torch.zeros_like(searches)
        self.refusals = torch.full_like(searches, -1)
        self.token, self.open = torch.empty_like(searches), torch.ones_like(searches).bool()
        self.coin, self.chance, self.room = (p.new_empty(len(p)).double() for _ in range(3))
        self._ask(torch.arange(len(p), device=p.device))

    def judge(self) -> tuple[int, list[int]]:
        """Decide what can be decided; return the number of open rows, and the undecided ones.

        The host waits once: what is open is known on the device alone, so all rows are asked.
        """
        rows = torch.arange(len(self.p), device=self.p.device)
        lower, upper = self.bounds.of(*self.question(rows))
        yes = self.coin < self._share(rows, upper)
        no = ~(self.coin < self._share(rows, lower))  # also of 0 / 0
        open_, accepting = self.open, self.refusals < 0
        accepted = open_ & yes & accepting
        self.open, self.kept = open_ & (~yes | accepting), self.kept + accepted
        verdicts = torch.stack([open_, accepted, open_ & no, open_ & ~yes & ~no])
        asked, accepts, refuses, undecided = verdicts.tolist()
        if any(accepts):
            self._ask(sent(_true(accepts), rows.device))
        if any(refuses):
            self._propose(sent(_true(refuses), rows.device))
        return sum(asked), _true(undecided)

    def question(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The psi and token that each row asks for; after the last draft, any."""
        place = self.kept[rows].clamp(max=max(0, self.drafts.shape[1] - 2))
        return self.searches[rows] + place, self.token[rows].clamp(min=0)

    def result(self) -> tuple[Tensor, Tensor]:
        """Tokens and counts, as `verify` returns them, when nothing is open."""
        assert self.coins.final is not None
        rows = torch.arange(len(self.p), device=self.p.device)
        bonus = draw(self.p[rows, self.kept], self.coins.final)
        last = torch.where(self.refusals < 0, bonus, self.token)[:, None]
        return blocks_of(self.drafts, self.kept, last)

    def _share(self, rows: Tensor, psi: Tensor) -> Tensor:
        """The probability of yes if psi has this value."""
        p = self.chance[rows]
        keep = (p - psi).clamp(min=0) / self.room[rows]
        return torch.where(self.refusals[rows] < 0, p / psi, keep)

    def _ask(self, rows: Tensor) -> None:
        """Turn to the next draft; there may be none."""
        token = self.drafts[rows, self.kept[rows]]
        chance = self.p[rows, self.kept[rows], token.clamp(min=0)].double()
        self.token[rows], self.open[rows] = token, token != NO_DRAFT
        self.chance[rows] = chance * (token >= 0)
        self.coin[rows] = self.accepts[rows, self.kept[rows]]

    def _propose(self, rows: Tensor) -> None:
        """Propose a token to end the block with."""
        self.refusals[rows] += 1
        self.proposals += 1  # of a row; at most
        law = self.p[rows, self.kept[rows]].double()
        excess = (law - self.bounds.known(self.searches[rows] + self.kept[rows])).clamp_(min=0)
        left = excess.amax(1) > 0
        # Rounding may leave nothing of p - psi: then p is drawn from, and kept.
        weights = torch.where(left[:, None], excess, law)
        token = draw(weights, self._fresh(RESIDUAL, rows))
        self.token[rows], self.open[rows] = token, left
        self.chance[rows] = law.gather(1, token[:, None])[:, 0]
        self.room[rows] = weights.gather(1, token[:, None])[:, 0]
        self.coin[rows] = self._fresh(KEEP, rows)

    def _fresh(self, site: int, rows: Tensor) -> Tensor:
        """The coins of some rows for their proposals."""
        fresh = uniforms(self.seeds[rows], self.iteration, site, self.proposals)
        return fresh.gather(1, self.refusals[rows, None])[:, 0]


@dataclass
class LazyVerifier:
    """Verifies the drafts of an iteration, with one forward of the drafter for all open rows.

    Trees and bounds as drafting left them, with bounds of `lookahead` psi for each row; of each
    row at most `width` continuations are read in a forward.
    """

    trees: LawTrees
    bounds: PsiBounds
    lookahead: int
    seeds: Tensor
    iteration: int
    width: int

    @torch.inference_mode()
    def verify(self, p: Tensor, drafts: Tensor, coins: Coins) -> Verified:
        here, before = self.seeds.device, self.trees.model.forwards
        if coins.final is None:
            raise ValueError("coins.final is None: expected a tensor, for the bonus token")
        local = Coins(coins.accept.to(here), coins.final.to(here))
        searches = torch.arange(len(drafts), device=here) * self.lookahead
        decisions = Decisions(
            self.bounds, searches, p.to(here), drafts.to(here), local, self.seeds, self.iteration
        )
        while True:
            asked, undecided = decisions.judge()
            if not asked:
                break
            if len(undecided) == asked:
                self._read(*decisions.question(sent(undecided, here)))
        tokens, counts = (one.to(p.device) for one in decisions.result())
        return Verified(tokens, counts, self.trees.model.forwards - before)

    def _read(self, searches: Tensor, tokens: Tensor) -> None:
        """Read the drafter after the likeliest continuations that may become these tokens."""
        found = self.bounds.take(searches, tokens, self.width)
        search, parents, ids, places = torch.stack(found[:-1]).tolist()
        rows = [one // self.lookahead for one in search]
        nodes, laws = self.trees.grow(rows, parents, ids)
        self.bounds.absorb(found.search, sent(nodes, laws.device), places, found.mass, laws)


def _true(flags: Sequence[bool]) -> list[int]:
    return [row for row, flag in enumerate(flags) if flag]
