"""The judge: p of every token from one uncached pass over its text, in float64, by NumPy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from specref.arrays import Floats
from specref.contrib.real_models.deciding import NEAR, Facts, decide
from specref.contrib.real_models.generating import Made, Proposal, ends_of
from specref.contrib.real_models.loading import Loaded
from specref.contrib.real_models.settings import Setting
from specref.contrib.real_models.tally import Rows, Tally, log_bets
from specref.torch_backend.methods import BLOCK
from specref.torch_backend.models.configs import FULL, check_cache, windows
from specref.torch_backend.statistics import Iteration

TOKENS = 32_768
"""Of texts that are read in one pass; their logits are 270 MB for 2,048 ids in float32."""
HEAD = 4096
"""Bets are made on so many tokens, the likeliest by p + q, and on all others as one: of a
vocabulary of 262,144 that is 1 % of the work, and the others have little mass to tell apart."""
SHAPED, SAME = 200, 1e-9
"""How many rows of logits of a row of the table are shaped twice, and the total variation within
which two laws of the same logits in float64 are one."""
CUT = 1e-3
"""Logits of a cached and an uncached pass differ by less in float32: how near a filter's cut a
token must be for rounding to explain that one of them keeps it."""


@torch.inference_mode()
def forced_logits(
    model: torch.nn.Module, prompts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]
) -> Tensor:
    """The logits that each token of each text was to be drawn by, one text after the other."""
    found, device = [], next(model.parameters()).device
    for batch in _batches(prompts, texts):
        whole = [[*prompt, *text] for prompt, text in batch]
        longest, first = max(map(len, whole)), min(len(prompt) for prompt, _ in batch) - 1
        # What stands to the right of a text is not attended to.
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in whole], device=device)
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=longest - first).logits
        for row, (prompt, text) in zip(logits, batch, strict=True):
            start = len(prompt) - 1 - first
            found.append(row[start : start + len(text)])
    return torch.cat(found)


def _batches(
    prompts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]
) -> Iterator[list[tuple[Sequence[int], Sequence[int]]]]:
    both = list(zip(prompts, texts, strict=True))
    step = max(1, TOKENS // max(len(prompt) + len(text) for prompt, text in both))
    for start in range(0, len(both), step):
        yield both[start : start + step]


@dataclass(frozen=True)
class Branch:
    """Tokens that were drafted after the first `start` tokens of a text."""

    start: int
    tokens: Sequence[int]


def branch_logits(
    model: torch.nn.Module, prompt: Sequence[int], text: Sequence[int], branches: Sequence[Branch]
) -> list[Tensor]:
    """The logits that the tokens of each branch were to be drawn by, and the token after them."""
    if not branches:
        return []
    if _reads_branches(model):
        return _in_one_pass(model, prompt, text, branches)
    return [
        forced_logits(model, [[*prompt, *text[: one.start]]], [[*one.tokens, 0]])
        for one in branches
    ]


def _reads_branches(model: Any) -> bool:
    """Whether a mask alone says what each token of a model sees, in all layers."""
    try:
        check_cache("model", model, trees=True)
    except ValueError:
        return False
    return set(windows(model.config)) == {FULL}


@torch.inference_mode()
def _in_one_pass(
    model: torch.nn.Module, prompt: Sequence[int], text: Sequence[int], branches: Sequence[Branch]
) -> list[Tensor]:
    """One pass over the text and all branches behind it, each of which sees its own context.

    Texts are short and blocks are many: a pass for each would read the same tokens again.
    """
    ids, places = [*prompt, *text], list(range(len(prompt) + len(text)))
    sees = torch.ones(len(ids), len(ids), dtype=torch.bool).tril()
    ends = np.cumsum([len(ids), *(len(one.tokens) for one in branches)]).tolist()
    sees = torch.nn.functional.pad(sees, (0, ends[-1] - len(ids), 0, ends[-1] - len(ids)))
    kept = []
    for one, (first, end) in zip(branches, pairwise(ends), strict=True):
        context, length = len(prompt) + one.start, end - first
        ids += one.tokens
        places += range(context, context + length)
        sees[first:end, :context] = True
        sees[first:end, first:end] = torch.ones(length, length, dtype=torch.bool).tril()
        kept += [context - 1, *range(first, end)]
    of = next(model.parameters())
    mask = torch.zeros(sees.shape, dtype=of.dtype).masked_fill_(~sees, torch.finfo(of.dtype).min)
    logits = model(
        input_ids=torch.tensor([ids], device=of.device),
        position_ids=torch.tensor([places], device=of.device),
        attention_mask=mask[None, None].to(of.device),
        use_cache=False,
        logits_to_keep=torch.tensor(kept, device=of.device),
    ).logits[0]
    return list(logits.split([len(one.tokens) + 1 for one in branches]))


@dataclass(frozen=True)
class Spot:
    """A token of a text: where it is in its block, and what was drafted there.

    * `position`, `drafted`, `prefix`: In the block; how many drafts that had, and how many of them
      were kept.
    * `row`: Of the proposal.
    """

    index: int
    position: int
    drafted: int
    prefix: int
    proposal: Proposal | None
    row: int
    iteration: int

    @property
    def is_draft(self) -> bool:
        """Whether a draft was verified here, all before it being accepted."""
        return self.position < self.drafted

    @property
    def drafts(self) -> list[int]:
        """The drafted tokens of its block."""
        assert self.proposal is not None
        found: list[int] = self.proposal.drafts.tokens[self.row, : self.drafted].tolist()
        return found


@dataclass(frozen=True, eq=False)
class Text:
    """A generated text, and what the judge says of it."""

    prompt: Sequence[int]
    tokens: Sequence[int]
    seed: int
    spots: list[Spot]
    laws: list[Floats]


def judge(tally: Tally, made: Made, method: str, setting: Setting, target: Loaded) -> None:
    """Add a batch to a tally."""
    generation = made.generation
    for number, (prompt, tokens) in enumerate(zip(made.prompts, generation.tokens, strict=True)):
        spots = list(_spots(number, generation.iterations[number], made.proposals))
        logits = forced_logits(target.model, [prompt], [tokens])
        rows = _on_host(logits)
        laws = [setting.law(row) for row in rows]
        if tally.shaped < SHAPED:
            _compare_filters(tally, setting, logits, laws)
        text = Text(prompt, tokens, made.seeds[number], spots, laws)
        _judge_text(tally, text, rows, method)
        starts = [spot for spot in spots if not spot.position]
        branches = _branches(text, starts, target.model) if method == BLOCK else {}
        for start in starts:
            branch = branches.get(start.index)
            _judge_block(tally, text, rows, start, branch, method, setting, target)
    tally.texts += len(made.prompts)
    tally.iterations += len(generation.log)
    tally.target_forwards += generation.target_forwards
    tally.seconds += generation.seconds
    tally.look()


def _compare_filters(
    tally: Tally, setting: Setting, logits: Tensor, laws: Sequence[Floats]
) -> None:
    """Shape the same logits by the loop's filters, in float64: rounding is no excuse there."""
    for row, law in zip(logits, laws, strict=True):
        found = setting.shape(row.double()).cpu().numpy()
        tally.shaped += 1
        tally.misshaped += bool(np.abs(found - law).sum() > 2 * SAME)


def _on_host(logits: Tensor) -> list[Floats]:
    return [row.double().cpu().numpy() for row in logits]


def _spots(number: int, log: Sequence[Iteration], proposals: Sequence[Proposal]) -> Iterator[Spot]:
    index = 0
    for iteration, one in enumerate(log):
        proposal = proposals[iteration] if iteration < len(proposals) and one.drafted else None
        row = proposal.rows.index(number) if proposal is not None else 0
        for position in range(one.emitted):
            yield Spot(index, position, one.drafted, one.prefix, proposal, row, iteration)
            index += 1


def _judge_text(tally: Tally, text: Text, logits: Sequence[Floats], method: str) -> None:
    rows: list[Rows] = []
    for spot, token, law, row in zip(text.spots, text.tokens, text.laws, logits, strict=True):
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
        rows.append(_coarse(p, q, token, not spot.is_draft))
    if rows:
        _bet(tally, Rows(*map(torch.stack, zip(*rows, strict=True))))


def _coarse(p: Tensor, q: Tensor, token: int, last: bool) -> Rows:
    """The laws of one token over the likeliest ids and of all others as one, which comes last."""
    ids = (p + q).topk(min(HEAD, len(p))).indices.sort().values
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
    tally.gain(rows)
    tally.bet(log_bets(rows))


def _declared(spot: Spot, p: Tensor) -> Tensor:
    """The law that the draft was declared to come from.

    Exact match declares none: its drafts are certain, and its samples do not depend on them. What
    a verifier emits does, so given the draft it has not the law p; no law is bet on then.
    """
    if spot.proposal is None or spot.proposal.by_drafter:
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
        place.compare(float(p[token]), least)
    place.add(accepted, least, most)


def _branches(text: Text, starts: Sequence[Spot], model: torch.nn.Module) -> dict[int, Tensor]:
    """What was drafted at the blocks of a text, and the logits there: {index: logits}."""
    drafted = [(start.index, start.drafts) for start in starts if start.proposal is not None]
    branches = [Branch(index, tokens) for index, tokens in drafted]
    logits = branch_logits(model, text.prompt, text.tokens, branches)
    return {one.start: rows for one, rows in zip(branches, logits, strict=True)}


def _judge_block(
    tally: Tally,
    text: Text,
    logits: Sequence[Floats],
    start: Spot,
    branch: Tensor | None,
    method: str,
    setting: Setting,
    target: Loaded,
) -> None:
    """Let the listing decide a block, too; of blocks verified jointly count the drafts.

    `logits` are of the whole text, `branch` those along the drafts of a block verified jointly.
    """
    length = sum(spot.iteration == start.iteration for spot in text.spots)
    emitted = tuple(text.tokens[start.index : start.index + length])
    laws = {emitted[:k]: text.laws[start.index + k] for k in range(length)}
    read = list(logits[start.index : start.index + length])
    if branch is not None:
        drafted, beside = start.drafts, _on_host(branch)
        laws |= {tuple(drafted[:k]): setting.law(row) for k, row in enumerate(beside)}
        read += beside
        _count_jointly(tally, start, drafted, laws)
    facts = Facts(
        laws,
        start.proposal,
        start.row,
        start.drafted if start.proposal is not None else 0,
        text.seed,
        start.iteration,
        ends_of(target.tokenizer),
        lambda: max(setting.undecided_mass(row, CUT, NEAR) for row in read),
    )
    decide(method, facts, emitted, tally.decided)


def _count_jointly(
    tally: Tally, start: Spot, drafted: Sequence[int], laws: dict[tuple[int, ...], Floats]
) -> None:
    """Of drafts that are verified jointly at least k are kept with probability A_k.

    A_k = min(1, A_{k-1} p / q) given the first k drafts (Sun et al. 2024), the later ones
    averaged over: of each block the place in question is a bet of its own.
    """
    assert start.proposal is not None
    assert start.proposal.drafts.laws is not None
    survival = 1.0
    for position, token in enumerate(drafted):
        p = laws[tuple(drafted[:position])][token]
        q = float(start.proposal.drafts.laws[start.row, position, token])
        survival = min(1.0, survival * float(p) / q)
        tally.place(position).add(position < start.prefix, survival, survival)
