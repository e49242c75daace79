"""The judge: p of every token from one uncached pass over its text, in float64, by NumPy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from specref.contrib.real_models.bets import Rows, log_bets
from specref.contrib.real_models.generating import Made, Proposal
from specref.contrib.real_models.settings import Setting
from specref.contrib.real_models.tally import Tally, mixture_gains
from specref.torch_backend.methods import BLOCK
from specref.torch_backend.statistics import Iteration

HEAD = 4096
"""Bets are made on so many tokens, the likeliest by p + q, and on all others as one: of a
vocabulary of 262,144 that is 1 % of the work, and the others have little mass to tell apart."""
CUT = 1e-3
"""Logits of a cached and an uncached pass differ by less in float32: how near a filter's cut a
token must be for rounding to explain that one of them keeps it."""


@dataclass(frozen=True)
class Spot:
    """A token of a text: where it is in its block, and what was drafted there.

    Attributes
    ----------
    index : int
        In the text.
    position, drafted, prefix : int
        In the block; how many drafts that had, and how many of them were kept.
    proposal : Proposal or None
    row : int
        Of the proposal.
    """

    index: int
    position: int
    drafted: int
    prefix: int
    proposal: Proposal | None
    row: int

    @property
    def is_draft(self) -> bool:
        """Whether a draft was verified here, all before it being accepted."""
        return self.position < self.drafted


@torch.inference_mode()
def forced_logits(model: torch.nn.Module, prompt: Sequence[int], text: Sequence[int]) -> Tensor:
    """The logits that each token of a text was to be drawn by, from a pass without a cache."""
    ids = torch.tensor([[*prompt, *text]], device=next(model.parameters()).device)
    found = model(input_ids=ids, use_cache=False, logits_to_keep=len(text) + 1).logits
    logits: Tensor = found[0, :-1]
    return logits


def judge(tally: Tally, made: Made, method: str, setting: Setting, model: torch.nn.Module) -> None:
    """Add a batch to a tally."""
    generation = made.generation
    for number, (prompt, text) in enumerate(zip(made.prompts, generation.tokens, strict=True)):
        logits = forced_logits(model, prompt, text)
        spots = list(_spots(number, generation.iterations[number], made.proposals))
        _judge_text(tally, logits, text, spots, method, setting)
        if method == BLOCK:
            _count_blocks(tally, prompt, text, spots, setting, model)
    tally.texts += len(made.prompts)
    tally.iterations += len(generation.log)
    tally.target_forwards += generation.target_forwards
    tally.seconds += generation.seconds


def _spots(number: int, log: Sequence[Iteration], proposals: Sequence[Proposal]) -> Iterator[Spot]:
    index = 0
    for iteration, one in enumerate(log):
        proposal = proposals[iteration] if iteration < len(proposals) and one.drafted else None
        row = proposal.rows.index(number) if proposal is not None else 0
        for position in range(one.emitted):
            yield Spot(index, position, one.drafted, one.prefix, proposal, row)
            index += 1


def _judge_text(
    tally: Tally,
    logits: Tensor,
    text: Sequence[int],
    spots: Sequence[Spot],
    method: str,
    setting: Setting,
) -> None:
    rows: list[Rows] = []
    for spot in spots:
        row, token = logits[spot.index].double().cpu().numpy(), text[spot.index]
        law = setting.law(row)
        if law[token] <= 0:
            if row[token] > row[law > 0].min() - CUT:
                tally.at_cut += 1
            else:
                tally.impossible.append(f"token {token} after {tally.tokens + len(rows)} tokens")
            continue
        p = torch.from_numpy(law)
        q = _declared(spot, p)
        if spot.is_draft and method != BLOCK:
            _count(tally, spot, p, q)
        rows.append(coarse(p, q, token, not spot.is_draft))
    if rows:
        _bet(tally, Rows(*map(torch.stack, zip(*rows, strict=True))))


def coarse(p: Tensor, q: Tensor, token: int, last: bool, head: int = HEAD) -> Rows:
    """The laws of one token over the likeliest ids and of all others as one, which comes last.

    Examples
    --------
    >>> p, q = torch.tensor([[0.4, 0.1, 0.3, 0.2], [0.1, 0.5, 0.3, 0.1]])
    >>> coarse(p, q, 3, False, head=2)
    Rows(p=tensor([0.1000, 0.3000, 0.6000]), q=tensor([0.5000, 0.3000, 0.2000]), \
tokens=tensor(2), last=tensor(False))
    """
    ids = (p + q).topk(min(head, len(p))).indices.sort().values
    place = int(torch.searchsorted(ids, token))
    inside = place < len(ids) and int(ids[place]) == token
    return Rows(
        _gathered(p, ids),
        _gathered(q, ids),
        torch.tensor(place if inside else len(ids)),
        torch.tensor(last),
    )


def _gathered(law: Tensor, ids: Tensor) -> Tensor:
    """A law over some ids and all others."""
    kept = law[ids]
    return torch.cat([kept, (law.sum() - kept.sum()).clamp(min=0)[None]])


def _bet(tally: Tally, rows: Rows) -> None:
    tiny = torch.finfo(rows.p.dtype).tiny
    log_p = rows.p.clamp(min=tiny).log()
    entropy = -(rows.p * log_p).sum(1)
    tally.gap += float((rows.at(log_p) + entropy).sum())
    tally.variance += float((rows.p * (log_p + entropy[:, None]) ** 2).sum())
    for p, q in zip(rows.p, rows.q, strict=True):
        if not torch.equal(p, q):
            tally.gains = (np.array(tally.gains) + mixture_gains(p, q)).tolist()
            tally.gained += 1
    tally.bet(log_bets(rows))


def _declared(spot: Spot, p: Tensor) -> Tensor:
    """The law that the draft was declared to come from.

    Exact match declares none: its drafts are certain, and its samples do not depend on them. What
    a verifier emits does, so given the draft it has not the law p; no law is bet on then.
    """
    if spot.proposal is None or spot.proposal.drafts.verifier is not None:
        return p
    drafts, at = spot.proposal.drafts, min(spot.position, spot.drafted - 1)
    if drafts.laws is not None:
        return drafts.laws[spot.row, at].double().cpu()
    certain = torch.zeros_like(p)
    token = int(drafts.tokens[spot.row, at])
    if token < 0:
        return p
    certain[token] = 1
    return certain


def _count(tally: Tally, spot: Spot, p: Tensor, q: Tensor) -> None:
    """A draft that was reached, against the probability that it is accepted."""
    assert spot.proposal is not None
    accepted, place = spot.position < spot.prefix, tally.place(spot.position)
    drafts, psi = spot.proposal.drafts, spot.proposal.psi
    token = int(drafts.tokens[spot.row, spot.position])
    if drafts.laws is not None:
        least = most = float(torch.minimum(p, q).sum())
    elif token < 0:
        least = most = 0.0
    elif psi is None:
        least = most = float(p[token])
    else:
        lower, upper = psi[:, spot.row, spot.position].tolist()
        least, most = (min(1.0, float(p[token]) / max(x, 1e-300)) for x in (upper, lower))
    place.add(accepted, least, most)


def _count_blocks(
    tally: Tally,
    prompt: Sequence[int],
    text: Sequence[int],
    spots: Sequence[Spot],
    setting: Setting,
    model: torch.nn.Module,
) -> None:
    """Blocks that are verified jointly: at least k drafts are kept with probability P_k.

    P_k = min(1, P_{k-1} p / q) given the first k drafts (Sun et al. 2024), the later ones
    averaged over: of each block the place in question is a bet of its own.
    """
    for spot in spots:
        if spot.position or spot.proposal is None:
            continue
        drafts = spot.proposal.drafts
        assert drafts.laws is not None
        ids = drafts.tokens[spot.row, : spot.drafted].tolist()
        logits = forced_logits(model, [*prompt, *text[: spot.index]], ids)
        survival = 1.0
        for position, (token, row) in enumerate(zip(ids, logits, strict=True)):
            p = setting.law(row.double().cpu().numpy())[token]
            q = float(drafts.laws[spot.row, position, token])
            survival = min(1.0, survival * float(p) / q)
            tally.place(position).add(position < spot.prefix, survival, survival)
