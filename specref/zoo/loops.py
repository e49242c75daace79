"""Mutants and controls of the decode loop: budget, end of text, and what iterations share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np

from specref.algorithms import autoregressive, standard
from specref.algorithms.decoding import Step
from specref.chance import Chance, Traced
from specref.distributions import Probability
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo.entry import Entry, Generate
from specref.zoo.fixtures import ExactFixture, by_name, hashed_fixture
from specref.zoo.standard.context import without_eos


@dataclass
class Loop:
    """The state of a decode loop: its arguments, and the blocks and drafts so far."""

    target: Model
    drafter: Model
    context: Tokens
    lookahead: int
    tokens: int
    chance: Chance
    blocks: list[Tokens] = field(default_factory=list)
    drafts: list[Tokens] = field(default_factory=list)

    @property
    def text(self) -> Tokens:
        return sum(self.blocks, ())

    @property
    def ended(self) -> bool:
        return self.target.vocabulary.ends(self.text)

    def iterate(
        self,
        target: Model | None = None,
        drafter: Model | None = None,
        context: Tokens | None = None,
        lookahead: int | None = None,
        step: Step = standard.step,
    ) -> None:
        """One iteration, with some arguments replaced; records its block and drafts."""
        traced = Traced(self.chance)
        block = step(
            target or self.target,
            drafter or self.drafter,
            (*self.context, *self.text) if context is None else context,
            self.lookahead if lookahead is None else lookahead,
            traced,
        )
        drafted = (s.choice for s in traced.steps if s.site.startswith("draft"))
        self.blocks.append(block)
        self.drafts.append(tuple(map(int, drafted)))


def complete(loop: Loop) -> bool:
    """Whether the budget is used up, or the text has ended."""
    return len(loop.text) >= loop.tokens or loop.ended


def looped(
    iterate: Callable[[Loop], None] = Loop.iterate,
    *,
    done: Callable[[Loop], bool] = complete,
    cut: bool = True,
) -> Generate:
    """A decode loop in which some parts are replaced.

    * `iterate`: Loop -> None: adds a block.
    * `done`: Loop -> bool, asked before every iteration.
    * `cut`: Whether the text is cut to the budget.

    >>> from specref.chance import Replayed
    >>> from specref.models import iid_model
    >>> model = iid_model(Vocabulary("ab"), ["1/3", "2/3"])
    >>> looped()(model, model, (), 1, 3, Replayed([0, True, 1, 1, True, 0]))
    (0, 1, 1)
    """

    def generate(
        target: Model, drafter: Model, context: Tokens, lookahead: int, tokens: int, chance: Chance
    ) -> Tokens:
        loop = Loop(target, drafter, context, lookahead, tokens, chance)
        while not done(loop):
            iterate(loop)
        return loop.text[:tokens] if cut else loop.text

    return generate


class Reseeded(Chance):
    """A reading in which every site has one uniform for the whole text, read by inverse CDF.

    >>> from fractions import Fraction
    >>> from specref.chance import exact_distribution
    >>> fair = np.array([Fraction(1, 2)] * 2)
    >>> def twice(chance):
    ...     same = Reseeded(chance)
    ...     return same.draw(fair, "bonus"), same.draw(fair, "bonus")
    >>> exact_distribution(twice)
    {(0, 0): Fraction(1, 2), (1, 1): Fraction(1, 2)}
    """

    def __init__(self, inner: Chance) -> None:
        self.inner = inner
        self.cells: dict[str, tuple[Probability, Probability]] = {}

    def choose(self, weights: Sequence[Probability], site: str) -> int:
        low, high = self.cells.get(site, (0, 1))
        edges = pairwise(accumulate(weights, initial=0 * weights[0]))
        cells = [(max(low, a), min(high, b)) for a, b in edges]
        widths = np.array([max(b - a, 0 * b) for a, b in cells])
        choice = self.inner.draw(widths / widths.sum(), site)
        self.cells[site] = cells[choice]
        return choice


# The keys were found by search: every mutant that can show on a fixture does.
TEXTS: Mapping[str, ExactFixture] = by_name(
    hashed_fixture("loop", 16, Vocabulary("abc"), None, 1, (0,), 3),
    hashed_fixture("loop, EOS", 16, Vocabulary(["a", "b", "$"], eos="$"), None, 1, (0,), 3),
)


def forgetful(model: Model, tokens: int) -> Model:
    """The model without the first tokens of its context."""
    return Model(model.vocabulary, lambda context: model.next_token(context[tokens:]))


def burdened(model: Model, junk: Tokens) -> Model:
    """The model with tokens before its context that are not in the text."""
    return Model(model.vocabulary, lambda context: model.next_token((*junk, *context)))


def after_reset(loop: Loop) -> None:
    """An iteration of a target whose state was emptied at the latest rejection."""
    rejected = [k for k, block in enumerate(loop.blocks) if len(block) <= loop.lookahead]
    kept = len(sum(loop.blocks[: rejected[-1] + 1], loop.context)) if rejected else 0
    loop.iterate(target=forgetful(loop.target, kept))


def without_bonus_tokens(loop: Loop) -> None:
    """An iteration in a context that lacks all bonus tokens."""
    seen = sum((block[: loop.lookahead] for block in loop.blocks), loop.context)
    loop.iterate(context=seen)


def adapted(loop: Loop) -> None:
    """One draft more after a fully accepted block, one less after another."""
    n = loop.lookahead
    for block, drafts in zip(loop.blocks, loop.drafts, strict=True):
        n = n + 1 if len(block) > len(drafts) else max(1, n - 1)
    loop.iterate(lookahead=n)


def without_speculation(loop: Loop) -> None:
    """Speculative and plain iterations in turn."""
    if len(loop.blocks) % 2:
        loop.iterate(step=autoregressive.step)
    else:
        loop.iterate()


def reseeded(
    target: Model, drafter: Model, context: Tokens, lookahead: int, tokens: int, chance: Chance
) -> Tokens:
    """The clean loop, on coins that start anew with every iteration."""
    return looped()(target, drafter, context, lookahead, tokens, Reseeded(chance))


ENTRIES = (
    Entry(
        "budget-overshot",
        "length",
        formula="the budget is compared with the text between iterations only",
        symptom="Texts are up to n tokens too long.",
        hint="Cut the last block to what is left of the budget.",
        generate=looped(cut=False),
        cites=("ohdearquant/lattice#242", "ohdearquant/lattice#245"),
    ),
    Entry(
        "budget-counts-iterations",
        "length",
        formula="as many iterations as tokens were asked for",
        symptom="Texts are up to n + 1 times too long.",
        hint="Count tokens.",
        generate=looped(
            done=lambda loop: len(loop.blocks) >= loop.tokens or loop.ended, cut=False
        ),
    ),
    Entry(
        "end-tested-once-per-block",
        "length",
        formula="EOS is looked for at the end of a block only",
        symptom="Texts run on past an accepted end.",
        hint="Cut every block at the first token that ends the text.",
        generate=looped(
            lambda loop: loop.iterate(without_eos(loop.target), without_eos(loop.drafter))
        ),
        cites=("huggingface/transformers#48039", "LostRuins/koboldcpp#1276"),
        blind=frozenset({"loop"}),
        note="Needs a vocabulary with EOS.",
    ),
    Entry(
        "rejected-eos-finishes",
        "length",
        formula="a drafted EOS finishes the text, accepted or not",
        symptom="Texts break off without EOS.",
        hint="Finish on emitted tokens, not on drafted ones.",
        generate=looped(
            done=lambda loop: (
                complete(loop) or loop.target.vocabulary.ends((loop.drafts or [()])[-1])
            )
        ),
        cites=("openvinotoolkit/openvino.genai#3293",),
        blind=frozenset({"loop"}),
        note="Needs a vocabulary with EOS.",
    ),
    Entry(
        "state-reset-after-rejection",
        "context",
        formula="after a rejection the target's state is emptied: p(. | later tokens only)",
        symptom="Exact up to the first rejection; then the prompt is forgotten.",
        hint="Roll a recurrent state back to the number of accepted tokens, or recompute it.",
        generate=looped(after_reset),
    ),
    Entry(
        "bonus-token-not-fed",
        "context",
        formula="the next iteration's context lacks the bonus token",
        symptom="After a fully accepted block the text repeats or skips a token.",
        hint="Feed the bonus token to both models before the next draft.",
        generate=looped(without_bonus_tokens),
    ),
    Entry(
        "reseeded-each-iteration",
        "randomness",
        formula="every iteration has the same random numbers, site by site",
        symptom="First block exact; later blocks repeat its luck.",
        hint="Advance the generator from iteration to iteration.",
        generate=reseeded,
    ),
)
CONTROLS = (
    Entry(
        "lookahead-fits-budget",
        "length",
        formula="the lookahead is at most what is left of the budget, less one",
        symptom="The last blocks are shorter.",
        hint="The lookahead depends on emitted tokens alone.",
        generate=looped(
            lambda loop: loop.iterate(
                lookahead=min(loop.lookahead, loop.tokens - len(loop.text) - 1)
            )
        ),
        lossless=True,
    ),
    Entry(
        "lookahead-adapts",
        "length",
        formula="n + 1 drafts after a fully accepted block, n - 1 after another",
        symptom="The lookahead depends on what was accepted.",
        hint="It depends on earlier iterations alone, whose random numbers are not used again.",
        generate=looped(adapted),
        cites=("huggingface/transformers",),
        lossless=True,
    ),
    Entry(
        "drafter-remembers-rejected",
        "context",
        formula="the draft model's state holds the drafts of the iteration before, rejected or "
        "not",
        symptom="Looks like target-cache-not-rolled-back; acceptance decays.",
        hint="q is arbitrary as long as it is the distribution of x; only the target's context "
        "matters.",
        generate=looped(
            lambda loop: loop.iterate(drafter=burdened(loop.drafter, (loop.drafts or [()])[-1]))
        ),
        cites=("vllm-project/vllm#47926",),
        lossless=True,
    ),
    Entry(
        "speculation-on-and-off",
        "length",
        formula="every other iteration is a plain target draw",
        symptom="Two rules write one text.",
        hint="Each is lossless in every context, so any sequence of them is.",
        generate=looped(without_speculation),
        lossless=True,
    ),
)
