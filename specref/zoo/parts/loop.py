"""The decode loop of standard speculative decoding in parts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np

from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.chance import Chance, Traced
from specref.distributions import Probability
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo.fixtures import ExactFixture, by_name, hashed_fixture

Generate: TypeAlias = Callable[[Model, Model, Tokens, int, int, Chance], Tokens]


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
