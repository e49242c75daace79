"""The decode loop: draft, one forward of the target, verify, until every row is finished."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import torch
from torch import Tensor

from specref.torch_backend.drafters.drafts import Drafter, Drafts, Shape
from specref.torch_backend.models.cached import CachedModel
from specref.torch_backend.randomness import Coins, row_coins
from specref.torch_backend.shaping import sent
from specref.torch_backend.statistics import Generation, Iteration
from specref.torch_backend.validation import NO_DRAFT, padded_drafts
from specref.torch_backend.verification.block import verify_block
from specref.torch_backend.verification.chains import verify, verify_matching

Block: TypeAlias = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Rules:
    """The settings of a generation, the same for all rows.

    * `shape`: From the target's logits to p.
    * `lookahead`: The drafts of an iteration, at most.
    * `eos`: The tokens that end a text.
    * `clipped`: Whether the drafter is asked for no more drafts than the longest room. Not where
      drafts depend on the lookahead: then a row's text would depend on the rows beside it.
    * `jointly`: Whether drafts with laws are accepted jointly, by `verify_block`.
    """

    shape: Shape
    lookahead: int
    max_new_tokens: int
    eos: frozenset[int] = frozenset()
    clipped: bool = True
    jointly: bool = False


@dataclass
class Text:
    """One row: its tokens so far, the first `prompt` of them given, and its iterations."""

    tokens: list[int]
    prompt: int
    log: list[Iteration] = field(default_factory=list)

    @property
    def new(self) -> tuple[int, ...]:
        """The tokens that were generated."""
        return tuple(self.tokens[self.prompt :])

    def append(self, block: list[int], drafted: int, eos: frozenset[int]) -> None:
        """Take a block, up to the first token that ends the text."""
        ends = (place for place, token in enumerate(block, 1) if token in eos)
        emitted = next(ends, len(block))
        self.tokens += block[:emitted]
        self.log.append(Iteration(drafted, len(block) - 1, emitted))


class Loop:
    """Generates the texts of a batch; a row's coins do not depend on the other rows.

    A row with r tokens left to generate submits r - 1 drafts at most, so that no block is longer
    than what is left. Rows that are finished leave the batches of both models. Without a drafter,
    tokens are sampled from the target. Seeds are on the target's device.
    """

    def __init__(
        self,
        target: CachedModel,
        drafter: Drafter | None,
        prompts: Sequence[Sequence[int]],
        seeds: Tensor,
        rules: Rules,
    ) -> None:
        self.target, self.drafter, self.rules, self.seeds = target, drafter, rules, seeds
        self.texts = [Text(list(prompt), len(prompt)) for prompt in prompts]
        self.live = list(range(len(self.texts)))
        self.drafter_forwards = 0

    @torch.inference_mode()
    def run(self) -> Generation:
        """Iterate until every text is finished."""
        started, forwards, iteration = time.perf_counter(), self.target.forwards, 0
        while self.live:
            self._iterate(iteration)
            iteration += 1
        return Generation(
            tokens=tuple(text.new for text in self.texts),
            iterations=tuple(tuple(text.log) for text in self.texts),
            target_forwards=self.target.forwards - forwards,
            drafter_forwards=self.drafter_forwards,
            seconds=time.perf_counter() - started,
        )

    def _iterate(self, iteration: int) -> None:
        texts = [self.texts[row] for row in self.live]
        drafts = self._drafts(iteration)
        contexts = [text.tokens for text in texts]
        logits = self.target.logits(contexts, drafts.tokens.shape[1] + 1, drafts.tokens)
        drafted = (drafts.tokens != NO_DRAFT).sum(1)
        tokens, counts = self._verify(self.rules.shape(logits), drafts, drafted, iteration)
        broken = logits.amax((1, 2)).isnan()
        results = torch.cat([torch.stack([broken, counts, drafted], 1), tokens], 1).tolist()
        self.target.settle()
        for row, text, result in zip(self.live, texts, results, strict=True):
            nan, count, submitted, *block = result
            if nan:
                raise ValueError(
                    f"target: its logits for prompts[{row}] have NaN: expected numbers"
                )
            text.append(block[:count], submitted, self.rules.eos)
        self._retire()

    def _drafts(self, iteration: int) -> Drafts:
        """The drafts of the live rows, no more than a row has room for."""
        room = [self._left(self.texts[row]) - 1 for row in self.live]
        if self.drafter is None or not self.rules.lookahead or not max(room):
            none = torch.empty(len(self.live), 0, dtype=torch.int64, device=self.target.device)
            return Drafts(none, None, 0)
        contexts = [self.texts[row].tokens for row in self.live]
        most = min(self.rules.lookahead, max(room)) if self.rules.clipped else self.rules.lookahead
        drafts = self.drafter.draft(contexts, most, self.seeds, iteration)
        self.drafter_forwards += drafts.forwards
        return self._fitted(drafts, room)

    def _fitted(self, drafts: Drafts, room: list[int]) -> Drafts:
        """Drafts without those beyond the room of a row or after an EOS."""
        columns = min(drafts.tokens.shape[1], max(room))
        tokens, laws = drafts.tokens[:, :columns].to(self.target.device), drafts.laws
        if min(room) < columns:
            tokens = padded_drafts(tokens, sent(room, tokens.device))[:, :-1]
        if self.rules.eos:
            ended = torch.stack([tokens == eos for eos in sorted(self.rules.eos)]).any(0)
            tokens = tokens.masked_fill(ended.cumsum(1) > ended.long(), NO_DRAFT)
        laws = None if laws is None else laws[:, :columns].to(self.target.device)
        return replace(drafts, tokens=tokens, laws=laws)

    def _verify(self, p: Tensor, drafts: Drafts, drafted: Tensor, iteration: int) -> Block:
        coins = row_coins(self.seeds, iteration, drafts.tokens.shape[1])
        if drafts.verifier is not None:
            verified = drafts.verifier.verify(p, drafts.tokens, coins)
            self.drafter_forwards += verified.forwards
            return verified.tokens, verified.counts
        if not drafts.matching:
            rule = verify_block if self.rules.jointly else verify
            return rule(p, drafts.laws, drafts.tokens, coins=coins)
        assert coins.final is not None
        # The token after the last draft of a row spends `final`, however long other rows are.
        final = coins.final[:, None]
        accept = torch.cat([coins.accept, final], 1).scatter_(1, drafted[:, None], final)[:, :-1]
        return verify_matching(p, drafts.tokens, coins=Coins(accept, coins.final))

    def _left(self, text: Text) -> int:
        ended = len(text.tokens) > text.prompt and text.tokens[-1] in self.rules.eos
        return 0 if ended else self.rules.max_new_tokens + text.prompt - len(text.tokens)

    def _retire(self) -> None:
        kept = [place for place, row in enumerate(self.live) if self._left(self.texts[row])]
        if kept and len(kept) < len(self.live):
            self.seeds = self.seeds[sent(kept, self.seeds.device)]
            for batch in (self.target, self.drafter):
                if batch is not None:
                    batch.select(kept)
        self.live = [self.live[place] for place in kept]
