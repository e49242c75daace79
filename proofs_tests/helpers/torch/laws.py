"""Exact laws of batched verification: the thresholds of its coins, bisected in one batch."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple
from unittest import mock

import torch
from torch import Tensor

from specref.algorithms import union
from specref.algorithms.decoding import Step
from specref.chance import exact_distribution
from specref.distributions import Probability
from specref.models import Model
from specref.pairs import toy_pairs
from specref.torch_backend.randomness import Coins
from specref.torch_backend.verification.chains import NO_DRAFT, OUTSIDE
from specref.vocabulary import Tokens

Verify = Callable[[Tensor, Tensor | None, Tensor, Coins], tuple[Tensor, Tensor]]
Law = dict[Tokens, float]
CELLS = 1 << 53
LAST = 1 - 2.0**-53


class Drafted(NamedTuple):
    """What a step hands to its verification: target tokens (None: outside), and their laws."""

    tokens: tuple[int | None, ...]
    laws: tuple[tuple[Probability, ...], ...] | None


class Row(NamedTuple):
    """One row of a batch."""

    target: Model
    context: Tokens
    drafted: Drafted


class Case(NamedTuple):
    """All drafts in one context, with their probabilities."""

    target: Model
    context: Tokens
    drafts: Mapping[Drafted, Probability]


def drafted(
    step: Step, target: Model, drafter: Model, context: Tokens, lookahead: int
) -> Mapping[Drafted, Probability]:
    """The law of what a step hands to its verification, by enumeration."""

    def verified(target, context, drafts, chance):
        return Drafted(tuple(one.token for one in drafts), tuple(tuple(one.q) for one in drafts))

    def matched(target, context, proposal, chance):
        return Drafted(tuple(proposal), None)

    module = sys.modules[step.__module__]
    name, spy = ("match", matched) if hasattr(module, "match") else ("verify", verified)
    with mock.patch.object(module, name, spy):
        return exact_distribution(lambda chance: step(target, drafter, context, lookahead, chance))


def batch(rows: Sequence[Row]) -> tuple[Tensor, Tensor | None, Tensor]:
    """Arguments of `verify` in float64, over the largest vocabulary; what is not read is NaN."""
    most = max(len(one.drafted.tokens) for one in rows)
    size = max(len(one.target.vocabulary) for one in rows)
    p = torch.full((len(rows), most + 1, size), torch.nan, dtype=torch.float64)
    q = torch.full((len(rows), most, size), torch.nan, dtype=torch.float64)
    tokens = torch.full((len(rows), most), NO_DRAFT)
    for row, (target, context, (ids, laws)) in enumerate(rows):
        for i in range(len(ids) + 1):
            if None not in ids[:i]:
                _fill(p[row, i], target.next_token((*context, *ids[:i])))
        for i, token in enumerate(ids):
            tokens[row, i] = OUTSIDE if token is None else token
            if laws:
                _fill(q[row, i], laws[i])
    return p, q if rows[0].drafted.laws is not None else None, tokens


def outputs(verify: Verify, laws_of: Callable[..., list[Law]], cases: Sequence[Case]) -> list[Law]:
    """For each case, the law of the block over all drafts; an accepted EOS ends a block."""
    rows = [Row(one.target, one.context, drafts) for one in cases for drafts in one.drafts]
    laws = iter(laws_of(verify, *batch(rows)))
    return [_averaged(one, laws) for one in cases]


def _averaged(case: Case, laws: Iterator[Law]) -> Law:
    found: Law = {}
    for weight, law in zip(case.drafts.values(), laws, strict=False):
        for block, chance in law.items():
            ends = (n for n in range(1, len(block)) if case.target.vocabulary.ends(block[:n]))
            shorter = block[: next(ends, len(block))]
            found[shorter] = found.get(shorter, 0.0) + float(weight) * chance
    return found


def _fill(row: Tensor, law: Sequence[Probability]) -> None:
    row[:] = 0
    row[: len(law)] = torch.tensor([float(mass) for mass in law], dtype=torch.float64)


def ragged_batch() -> tuple[Tensor, Tensor, Tensor, Coins]:
    """Rows of 0 to 3 drafts that a step makes, OUTSIDE among them, with coins."""
    pair = next(pair for pair in toy_pairs("quick") if pair.name == "partly shared")
    drafts = drafted(union.step, pair.target, pair.drafter, (), 3)
    p, q, tokens = batch([Row(pair.target, (), one) for one in drafts for _ in range(12)])
    assert q is not None
    tokens[::7] = NO_DRAFT
    generator = torch.Generator().manual_seed(3)
    uniforms = torch.rand(len(p), 4, generator=generator, dtype=torch.float64)
    return p, q, tokens, Coins(uniforms[:, :3], final=uniforms[:, 3])


def verified_laws(verify: Verify, p: Tensor, q: Tensor | None, tokens: Tensor) -> list[Law]:
    """The laws of the blocks of `verify`: acceptance thresholds, then break points of `final`."""
    accepts = accept_chances(verify, p, q, tokens)
    ends = token_ends(verify, p, q, tokens)
    return [_law(*row) for row in zip(tokens.tolist(), accepts, ends, strict=True)]


def block_laws(verify: Verify, p: Tensor, q: Tensor | None, tokens: Tensor) -> list[Law]:
    """The same of block verification, where the last success decides, whatever is before it."""
    lasts = accept_chances(verify, p, q, tokens, others=LAST)
    ends = token_ends(verify, p, q, tokens)
    return [_law_by_lasts(*row) for row in zip(tokens.tolist(), lasts, ends, strict=True)]


def matched_laws(verify: Verify, p: Tensor, q: None, tokens: Tensor) -> list[Law]:
    """The laws of the blocks of `verify_matching`: break points position by position."""
    rows, most = tokens.shape
    coins = torch.zeros(rows, most + 1, dtype=torch.float64)
    reached = torch.ones(rows, dtype=torch.float64)
    ended = torch.nn.functional.pad(tokens, (0, 1), value=NO_DRAFT)
    laws: list[Law] = [{} for _ in range(rows)]
    for i, draft in enumerate(ended.unbind(1)):
        starts, ends = _samples(verify, p, tokens, coins, i)
        chance = reached[:, None] * (ends - starts)
        for row, token in (chance > 0).nonzero().tolist():
            if token != draft[row]:
                laws[row][(*tokens[row, :i].tolist(), token)] = float(chance[row, token])
        known = draft.clamp(min=0)[:, None]
        reached = chance.gather(1, known)[:, 0] * (draft >= 0)
        coins[:, i] = starts.gather(1, known)[:, 0]
    return laws


def _samples(
    verify: Verify, p: Tensor, tokens: Tensor, coins: Tensor, i: int
) -> tuple[Tensor, Tensor]:
    """Where the sample at position i begins and ceases to be token v, after the given coins."""
    rows, size = len(p), p.shape[2]
    p, tokens, tried = (t.repeat_interleave(size, 0) for t in (p, tokens, coins))

    def at_most(u: Tensor) -> Tensor:
        tried[:, i] = u
        found, _ = verify(p, None, tokens, Coins(tried[:, :-1], tried[:, -1]))
        return found[:, i] <= torch.arange(size).repeat(rows)

    ends = (cells(at_most, rows * size).double() / CELLS).view(rows, size)
    return torch.nn.functional.pad(ends[:, :-1], (1, 0)), ends


def accept_chances(
    verify: Verify, p: Tensor, q: Tensor | None, tokens: Tensor, others: float = 0.0
) -> list[list[float]]:
    """How likely draft i is accepted by its coin, if all other coins are `others`."""
    (rows, most), position = tokens.shape, torch.arange(tokens.shape[1])
    repeated = [None if t is None else t.repeat_interleave(most, 0) for t in (p, q, tokens)]
    here = torch.eye(most, dtype=torch.bool).repeat(rows, 1)
    final = torch.zeros(rows * most, dtype=torch.float64)

    def accepted(u: Tensor) -> Tensor:
        accept = torch.where(here, u[:, None], others)
        _, counts = verify(*repeated, Coins(accept, final))
        return counts > position.repeat(rows) + 1

    return (cells(accepted, rows * most).double() / CELLS).view(rows, most).tolist()


def token_ends(
    verify: Verify, p: Tensor, q: Tensor | None, tokens: Tensor
) -> list[list[list[float]]]:
    """Where token v ends in `final`, if the first k drafts are accepted and no more."""
    (rows, most), size = tokens.shape, p.shape[2]
    tries = (most + 1) * size
    repeated = [None if t is None else t.repeat_interleave(tries, 0) for t in (p, q, tokens)]
    kept = torch.arange(most + 1).repeat_interleave(size).repeat(rows)[:, None]
    token = torch.arange(size).repeat(rows * (most + 1))
    accept = torch.where(torch.arange(most) < kept, 0.0, torch.tensor(LAST, dtype=torch.float64))

    def at_most(u: Tensor) -> Tensor:
        found, _ = verify(*repeated, Coins(accept, u))
        return found.gather(1, kept)[:, 0] <= token

    ends = cells(at_most, rows * tries).double() / CELLS
    return ends.view(rows, most + 1, size).tolist()


def _law(tokens: list[int], accepts: list[float], ends: list[list[float]]) -> Law:
    drafts = _without_padding(tokens)
    stops = [1 - accept for accept in accepts[: len(drafts)]] + [1.0]
    return _spread(drafts, [prod(accepts[:kept]) * stop for kept, stop in enumerate(stops)], ends)


def _law_by_lasts(tokens: list[int], lasts: list[float], ends: list[list[float]]) -> Law:
    drafts = _without_padding(tokens)
    lasts = [1.0, *lasts[: len(drafts)]]
    chances = [
        last * prod(1 - other for other in lasts[kept + 1 :]) for kept, last in enumerate(lasts)
    ]
    return _spread(drafts, chances, ends)


def _without_padding(tokens: list[int]) -> list[int]:
    return tokens[: tokens.index(NO_DRAFT)] if NO_DRAFT in tokens else tokens


def _spread(drafts: list[int], chances: list[float], ends: list[list[float]]) -> Law:
    """The law of blocks, of how likely each number of drafts is kept, and of each last token."""
    law: Law = {}
    for kept, chance in enumerate(chances):
        start = 0.0
        for token, end in enumerate(ends[kept] if chance else ()):
            if end > start:
                law[(*drafts[:kept], token)] = chance * (end - start)
            start = end
    return law


def cells(holds: Callable[[Tensor], Tensor], rows: int) -> Tensor:
    """For how many uniforms, multiples of 2^-53, a predicate holds that holds up to a point."""
    low, high = torch.zeros(rows, dtype=torch.int64), torch.full((rows,), CELLS)
    for _ in range(54):
        middle = (low + high) // 2
        yes = holds(middle.clamp(max=CELLS - 1).double() / CELLS)
        open_ = low < high
        low = torch.where(open_ & yes, middle + 1, low)
        high = torch.where(open_ & ~yes, middle, high)
    return low
