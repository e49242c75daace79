"""A batched decode loop of standard speculative decoding in parts: rows, slots and a queue."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from specref.algorithms import standard
from specref.algorithms.standard import Draft
from specref.chance import Chance, Sampled
from specref.distributions import Probabilities, Probability, top_p, with_temperature
from specref.models import Model
from specref.vocabulary import Tokens

Setting: TypeAlias = tuple[Probability, Probability]
"""A temperature, and the mass of top-p."""
GenerateBatch: TypeAlias = Callable[..., tuple[Tokens, ...]]
"""(target, drafter, contexts, lookahead, tokens, chance, settings of rows) -> texts."""
NEUTRAL: Setting = (1, 1)
LOOKAHEAD = 2


@dataclass
class Row:
    """A request and its iterations: what was emitted, drafted, and emitted at most by any row."""

    context: Tokens
    setting: Setting
    had_slot: tuple["Row", ...] = ()
    blocks: list[Tokens] = field(default_factory=list)
    drafts: list[Tokens] = field(default_factory=list)
    longest: list[int] = field(default_factory=list)

    @property
    def text(self) -> Tokens:
        return sum(self.blocks, ())

    @property
    def whole(self) -> Tokens:
        return (*self.context, *self.text)


class BatchLoop:
    """The state of a batched loop; its methods from `seen` on are the parts that are replaced.

    * `rows`: All requests. `live`: those in the slots, in order. `left`: those that have ended.
    """

    slots: int | None = None

    def __init__(
        self, models: tuple[Model, Model], rows: list[Row], lookahead: int, tokens: int
    ) -> None:
        self.target, self.drafter = models
        self.rows, self.lookahead, self.tokens = rows, lookahead, tokens
        self.live: list[Row] = []
        self.left: list[Row] = []

    def seen(self, row: Row) -> Tokens:
        """The context that both models read of a row."""
        return row.whole

    def setting(self, row: Row) -> Setting:
        """What a row's probabilities go through."""
        return row.setting

    def decided(
        self, seen: list[Tokens], drafts: list[list[Draft]], blocks: list[Tokens], chance: Chance
    ) -> list[Tokens]:
        """The blocks that are written."""
        return blocks

    def written(self, slot: int) -> Row:
        """The row that the block of a slot is written to."""
        return self.live[slot]

    def most_drafts(self) -> int:
        return self.lookahead

    def shared(self, chance: Chance) -> Chance:
        """The chance of all rows in a phase of an iteration."""
        return chance

    def order(self) -> list[Row]:
        """The rows as they come into slots."""
        return list(self.rows)

    def texts(self) -> tuple[Tokens, ...]:
        return tuple(row.text for row in self.rows)

    def read(self, model: Model, row: Row) -> Model:
        """A model through the setting of a row."""
        heat, mass = self.setting(row)

        def next_token(context: Tokens) -> Probabilities:
            p = model.next_token(context)
            p = p if heat == 1 else with_temperature(p, heat)
            return p if mass == 1 else top_p(p, mass)

        return Model(model.vocabulary, next_token)

    def done(self, row: Row) -> bool:
        return len(row.text) >= self.tokens or self.target.vocabulary.ends(row.text)

    def run(self, chance: Chance) -> tuple[Tokens, ...]:
        """Fill the slots and iterate until every row has ended."""
        waiting = self.order()
        while waiting or self.live:
            while waiting and len(self.live) < (self.slots or len(self.rows)):
                waiting[0].had_slot = tuple(self.left[-1:])
                self.live.append(waiting.pop(0))
            self.iterate(chance)
            self.left += filter(self.done, self.live)
            self.live = [row for row in self.live if not self.done(row)]
        return self.texts()

    def iterate(self, chance: Chance) -> None:
        """Draft, verify and write, each for all rows in the slots."""
        rows, most, drawing = self.live, self.most_drafts(), self.shared(chance)
        seen = [self.seen(row) for row in rows]
        room = [max(0, min(most, self.tokens - len(row.text) - 1)) for row in rows]
        drafts = [
            standard.draft(self.read(self.drafter, row), context, count, drawing)
            for row, context, count in zip(rows, seen, room, strict=True)
        ]
        verifying = self.shared(chance)
        blocks = [
            standard.verify(self.read(self.target, row), context, given, verifying)
            for row, context, given in zip(rows, seen, drafts, strict=True)
        ]
        blocks = self.decided(seen, drafts, blocks, chance)
        for slot, (block, given) in enumerate(zip(blocks, drafts, strict=True)):
            row = self.written(slot)
            row.blocks.append(block)
            row.drafts.append(tuple(token or 0 for token, _ in given))
            row.longest.append(max(map(len, blocks)))


def batched(**parts: Any) -> GenerateBatch:
    """A batched loop in which some parts are replaced; each is given the loop first.

    Examples
    --------
    >>> from specref.chance import Replayed
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> model = iid_model(Vocabulary("ab"), ["1/3", "2/3"])
    >>> chance = Replayed([0, 1, True, 1, True, 0])  # drafts of both rows come first
    >>> batched()(model, model, [(), (1,)], 1, 2, chance)
    ((0, 1), (1, 0))
    """

    def generate(
        target: Model,
        drafter: Model,
        contexts: Sequence[Tokens],
        lookahead: int,
        tokens: int,
        chance: Chance,
        settings: Sequence[Setting] = (),
    ) -> tuple[Tokens, ...]:
        given = settings or [NEUTRAL] * len(contexts)
        rows = [Row(*one) for one in zip(contexts, given, strict=True)]
        loop = BatchLoop((target, drafter), rows, lookahead, tokens)
        for name, part in parts.items():
            setattr(loop, name, partial(part, loop) if callable(part) else part)
        return loop.run(chance)

    return generate


def as_generate(loop: GenerateBatch, lookahead: int = LOOKAHEAD) -> Callable[..., Any]:
    """A loop as a function of the contract ``generate-batch``."""

    def generate(
        target: Model,
        drafter: Model,
        contexts: Sequence[Tokens],
        tokens: int,
        *,
        rng: np.random.Generator,
        temperature: Sequence[float],
        top_p: Sequence[float],
    ) -> tuple[Tokens, ...]:
        settings = list(zip(temperature, top_p, strict=True))
        return loop(target, drafter, contexts, lookahead, tokens, Sampled(rng), settings)

    return generate
