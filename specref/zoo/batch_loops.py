"""Mutants and controls of batched decode loops: what a row gets that belongs to another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from specref.algorithms import standard
from specref.algorithms.standard import Draft
from specref.chance import Chance, Sampled
from specref.distributions import Probabilities, top_p, with_temperature
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo.entry import Entry, GenerateBatch, Setting
from specref.zoo.loops import Reseeded
from specref.zoo.parts.standard import residual_or_p

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


Drafts = list[list[Draft]]


def with_rejected(loop: BatchLoop, row: Row, zeroed: bool = False) -> Tokens:
    """A row's context with what it rejected, up to the fullest row of each iteration."""
    seen = row.context
    for block, drafts, longest in zip(row.blocks, row.drafts, row.longest, strict=True):
        tail = drafts[len(block) - 1 : longest - 1]
        seen = (*seen, *block[:-1], *((0,) * len(tail) if zeroed else tail), block[-1])
    return seen


def padded(loop: BatchLoop, row: Row) -> Tokens:
    """A row's context after padding up to the longest prompt."""
    longest = max(len(one.context) for one in loop.live)
    return (*(0,) * (longest - len(row.context)), *row.whole)


def before(loop: BatchLoop, row: Row) -> Row:
    """The row in the slot before."""
    return loop.live[loop.live.index(row) - 1]


def with_last_of_row_before(loop: BatchLoop, row: Row) -> Tokens:
    last = before(loop, row).text[-1:]
    return (*row.whole[:-1], *last) if row.text and last else row.whole


def first_of_another(loop: BatchLoop, row: Row) -> Tokens:
    """Of a row that came late, in its first iteration, the context of the first slot."""
    return loop.live[0].whole if row.had_slot and not row.text else row.whole


def with_bonus_of_next(
    loop: BatchLoop, seen: list[Tokens], drafts: Drafts, blocks: list[Tokens], chance: Chance
) -> list[Tokens]:
    full = [at for at, block in enumerate(blocks) if len(block) > len(drafts[at]) > 0]
    moved = list(blocks)
    for at, other in zip(full, [*full[1:], *full[:1]], strict=True):
        moved[at] = (*blocks[at][:-1], blocks[other][-1])
    return moved


def cut_with_residual(
    loop: BatchLoop, seen: list[Tokens], drafts: Drafts, blocks: list[Tokens], chance: Chance
) -> list[Tokens]:
    fewest, found = min(map(len, blocks)) - 1, []
    for row, context, given, block in zip(loop.live, seen, drafts, blocks, strict=True):
        if len(block) - 1 > fewest < len(given):
            p = loop.read(loop.target, row).next_token((*context, *block[:fewest]))
            block = (*block[:fewest], chance.draw(residual_or_p(p, given[fewest].q), "residual"))
        found.append(block)
    return found


def cut_to_shortest(
    loop: BatchLoop, seen: list[Tokens], drafts: Drafts, blocks: list[Tokens], chance: Chance
) -> list[Tokens]:
    return [block[: min(map(len, blocks))] for block in blocks]


def padded_texts(loop: BatchLoop) -> tuple[Tokens, ...]:
    longest = max(len(row.text) for row in loop.rows)
    return tuple((*row.text, *(0,) * (longest - len(row.text))) for row in loop.rows)


def one_more_than_slowest(loop: BatchLoop) -> int:
    kept = [len(row.blocks[-1]) - 1 for row in loop.live if row.blocks]
    return min([loop.lookahead, *(1 + one for one in kept)])


in_batches = partial(Entry, stage="batch")
ENTRIES = (
    in_batches(
        "offset-of-fullest-row",
        formula="p(. | context with d_(k+1) … d_m), k drafts kept here, m in the fullest row",
        symptom="Where rows keep different numbers of drafts, some read rejected ones.",
        hint="Roll each row back to its own number of accepted drafts.",
        generate_batch=batched(seen=with_rejected),
        cites=("Blaizzy/mlx-vlm#1155", "huggingface/transformers#32189"),
    ),
    in_batches(
        "zeroed-keys-attended",
        formula="the keys of rejected drafts are set to 0, and still attended to",
        symptom="Rows that accept fewer drafts than another drift.",
        hint="Mask rejected positions, or move the row's end back: a key of 0 has weight e^0.",
        generate_batch=batched(seen=partial(with_rejected, zeroed=True)),
        cites=("Blaizzy/mlx-vlm#2113",),
    ),
    in_batches(
        "padding-attended",
        formula="p(. | padding, context) in rows with a shorter prompt than the longest",
        symptom="Rows are wrong next to a longer prompt, and right alone.",
        hint="Mask padding, and count positions from each row's first token.",
        generate_batch=batched(seen=padded),
        cites=("Blaizzy/mlx-vlm#1542", "TransformerLensOrg/TransformerLens#1005"),
    ),
    in_batches(
        "last-token-of-row-before",
        formula="the token fed to an iteration is the last one of the row before",
        symptom="From the second iteration on rows continue each other.",
        hint="Gather last tokens by row, each at its own number of accepted drafts.",
        generate_batch=batched(seen=with_last_of_row_before),
        cites=("vllm-project/vllm#14645",),
    ),
    in_batches(
        "top-p-of-first-row",
        formula="the top-p of row 0 for all rows",
        symptom="Right where all requests ask for the same.",
        hint="Keep sampling parameters one a row, and repeat them by the row's positions.",
        generate_batch=batched(
            setting=lambda loop, row: (row.setting[0], loop.rows[0].setting[1])
        ),
        cites=("NVIDIA/TensorRT-LLM#12588",),
    ),
    in_batches(
        "temperature-of-row-before",
        formula="the temperature of row b - 1 for row b",
        symptom="Right where all requests ask for the same.",
        hint="Index settings by request.",
        generate_batch=batched(
            setting=lambda loop, row: (before(loop, row).setting[0], row.setting[1])
        ),
    ),
    in_batches(
        "settings-stay-in-slot",
        formula="when a row leaves, the others move up, and their settings do not",
        symptom="Right until a row ends before another.",
        hint="Move settings with their row.",
        generate_batch=batched(setting=lambda loop, row: loop.rows[loop.live.index(row)].setting),
        cites=("tenstorrent/vllm-tt-plugin#131",),
    ),
    in_batches(
        "batch-decodes-greedily",
        formula="argmax p in batches of more than one row",
        symptom="A request alone is sampled; next to others it is greedy.",
        hint="Sample in the batched path, too.",
        generate_batch=batched(
            setting=lambda loop, row: (0, 1) if len(loop.rows) > 1 else row.setting
        ),
        cites=("paiml/aprender#2027",),
    ),
    in_batches(
        "slot-keeps-its-cache",
        formula="p(. | text of the row that had the slot, context) in a slot that is used again",
        symptom="Requests that come late continue others that have ended.",
        hint="Clear a slot when its row leaves.",
        generate_batch=batched(
            seen=lambda loop, row: (*(x for one in row.had_slot for x in one.whole), *row.whole),
            slots=2,
        ),
        cites=("ggml-org/llama.cpp#27624",),
    ),
    in_batches(
        "late-row-reads-another",
        formula="the first iteration of a row that came late reads p and q of the first slot",
        symptom="The first tokens of requests that had to wait belong to another request.",
        hint="Look up a row's logits by its request, not by its place at the start.",
        generate_batch=batched(seen=first_of_another, slots=2),
        cites=("vllm-project/vllm#14645",),
    ),
    in_batches(
        "text-written-to-next-row",
        formula="after a row has left, the block of row b is written to row b + 1",
        symptom="Texts go on with another request's once a row has ended.",
        hint="Write by request, not by slot.",
        generate_batch=batched(
            written=lambda loop, slot: loop.live[(slot + bool(loop.left)) % len(loop.live)]
        ),
    ),
    in_batches(
        "bonus-written-to-row-before",
        formula="of rows that kept all drafts, the bonus token of the next one",
        symptom="The last token of a fully accepted block belongs to another request.",
        hint="Scatter bonus tokens by row.",
        generate_batch=batched(decided=with_bonus_of_next),
    ),
    in_batches(
        "fewest-commit-with-residual",
        formula="all rows keep the fewest accepted drafts, then draw from (p - q)+",
        symptom="A row that would have kept more gets a token that only a rejection may give.",
        hint="Cut a longer row after its next accepted draft.",
        generate_batch=batched(decided=cut_with_residual),
        cites=("jundot/omlx#3533",),
    ),
    in_batches(
        "loop-rows-share-random-numbers",
        formula="one random number for each site of an iteration, the same in all rows",
        symptom="Every row is exact; equal prompts get equal texts.",
        hint="Draw for each row.",
        generate_batch=batched(shared=lambda loop, chance: Reseeded(chance)),
        cites=("NVIDIA/TensorRT-LLM#19487", "vllm-project/vllm#50440"),
    ),
    in_batches(
        "padding-returned-after-end",
        formula="texts that have ended go on with token 0 up to the longest",
        symptom="Tokens after EOS.",
        hint="Cut each text at its own end.",
        generate_batch=batched(texts=padded_texts),
    ),
)
CONTROLS = (
    in_batches(
        "batch-cut-to-shortest-block",
        formula="all rows emit as many tokens as the row with the shortest block",
        symptom="One row's rejection cuts all; looks like fewest-commit-with-residual.",
        hint="A longer block ends with an accepted draft, and what is cut is drawn anew.",
        generate_batch=batched(decided=cut_to_shortest),
        cites=("Blaizzy/mlx-vlm#2113",),
        lossless=True,
    ),
    in_batches(
        "batch-lookahead-of-slowest-row",
        formula="the lookahead is one more than what the slowest row kept in the last iteration",
        symptom="A row's lookahead depends on what other rows accepted.",
        hint="It depends on earlier iterations alone.",
        generate_batch=batched(most_drafts=one_more_than_slowest),
        lossless=True,
    ),
    in_batches(
        "batch-of-two-slots",
        formula="two rows at once, the shortest prompts first; the others wait for a slot",
        symptom="Rows come late, and in another order.",
        hint="Texts are returned by request.",
        generate_batch=batched(
            order=lambda loop: sorted(loop.rows, key=lambda row: len(row.context)), slots=2
        ),
        lossless=True,
    ),
)
