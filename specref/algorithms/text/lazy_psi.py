"""psi by certified bounds: the drafter's tree is grown only as far as a comparison needs.

SLRS asks for psi(t) in order to compare it with one known number: u < p / psi is psi < p / u, and
v < 1 - psi / p is psi < p (1 - v). Texts that are drafted so far, and what their continuations can
still become, bound psi from both sides; each forward of the drafter tightens the bounds, and
where none is left to be made they are equal. So every comparison comes out as with psi itself.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple, cast

import numpy as np

from specref.algorithms.lookahead import LookaheadRule, fixed
from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.vocabulary import Text, Tokens, Vocabulary


class Bounds(NamedTuple):
    """Bounds of a probability: lower <= it <= upper."""

    lower: Probability
    upper: Probability


class Node(NamedTuple):
    """A leaf of the tree: drafts whose continuations are not expanded, or that have none.

    * `settled`: Target tokens that the text starts with, however it goes on.
    * `rest`: The text after them.
    * `complete`: Whether drafting ends here; then `settled` is all of it.
    * `weight`: The probability of the drafts.
    """

    settled: Tokens
    rest: Text
    complete: bool
    weight: Probability


class DraftTree:
    """The tree of the drafter's texts, and the bounds of psi at its present size.

    * `vocabulary`: The target's. If it normalises, nothing is settled before drafting ends.
    * `context`: What the drafter conditions on: ids of its own vocabulary.
    * `lookahead`: Passed to `rule`.
    * `rule`: When to stop drafting.
    * `forwards`: How many of the drafter's laws were asked for, no context twice.
    * `nodes`: {drafts: Node}, the ends of the tree as it is; their weights sum to 1.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        drafter: Model,
        context: Tokens = (),
        lookahead: int = 1,
        rule: LookaheadRule = fixed,
    ) -> None:
        self.vocabulary, self.drafter, self.context = vocabulary, drafter, context
        self.forwards = 0
        self._stop = rule(vocabulary, drafter.vocabulary, lookahead)
        empty = drafter.vocabulary.tokens[0][:0]
        self.nodes: dict[Tokens, Node] = {}
        self.nodes[()] = self._node((), (), empty, Fraction(1))

    def expand(self, drafts: Tokens) -> None:
        """Ask for the drafter's law after these drafts, one of `nodes`: one forward."""
        node = self.nodes.pop(drafts)
        self.forwards += 1
        for token, probability in enumerate(self.drafter.next_token((*self.context, *drafts))):
            if probability > 0:
                longer = (*drafts, token)
                text = cast(Any, node.rest) + self.drafter.vocabulary.tokens[token]
                weight = node.weight * probability
                self.nodes[longer] = self._node(longer, node.settled, text, weight)

    def follow(self, drafts: Tokens) -> None:
        """Expand the way to drafts whose laws are known because they were drafted."""
        for length in range(len(drafts)):
            if drafts[:length] in self.nodes:
                self.expand(drafts[:length])

    def bounds(self, prefix: Tokens, token: int) -> Iterator[Bounds]:
        """Bounds of psi(token | prefix), one forward between each two, the last of them equal.

        Best first: the forward is made at the likeliest drafts that leave it open whether the
        text starts with `prefix`, or with `prefix` and `token`.

        * `prefix`: Target tokens that a drafted text can start with.
        * `token`: A target token.
        """
        self.vocabulary.check((*prefix, token))
        while True:
            bounds, undecided = self._measure(prefix, token)
            yield bounds
            if bounds.lower == bounds.upper:
                return
            self.expand(max(undecided, key=lambda drafts: self.nodes[drafts].weight))

    def known(self, prefix: Tokens) -> Probabilities:
        """The lower bounds of psi(. | prefix), without a forward.

        * returns: Its entries are the `lower` that `bounds` would begin with.
        """
        depth = len(prefix)
        reachable = [node for node in self.nodes.values() if self._can_start(node, prefix)]
        total = self._possible(sum([node.weight for node in reachable]), prefix)
        row = np.full(len(self.vocabulary), 0 * total)
        for node in reachable:
            if node.settled[:depth] == prefix and len(node.settled) > depth:
                row[node.settled[depth]] += node.weight
        lower: Probabilities = row / total
        return lower

    def _node(self, drafts: Tokens, settled: Tokens, text: Text, weight: Probability) -> Node:
        vocabulary = self.vocabulary
        complete = self._stop(drafts) or self.drafter.vocabulary.ends(drafts)
        if complete:
            return Node((*settled, *vocabulary.encode(text)), text[:0], True, weight)
        while vocabulary.normalise is None and not vocabulary.is_undetermined(text):
            token = vocabulary.first_token(text)
            settled, text = (*settled, token), text[len(vocabulary.tokens[token]) :]
        return Node(settled, text, False, weight)

    def _measure(self, prefix: Tokens, token: int) -> tuple[Bounds, list[Tokens]]:
        """The present bounds, and the drafts whose continuations can tighten them."""
        longer, depth = (*prefix, token), len(prefix)
        undecided: list[Tokens] = []
        inside: Probability = 0
        maybe, other, total = inside, inside, inside
        for drafts, node in self.nodes.items():
            if not self._can_start(node, prefix):
                continue
            total += node.weight
            if node.settled[: depth + 1] == longer:
                inside += node.weight
            elif self._can_start(node, longer):
                maybe += node.weight
                undecided.append(drafts)
            elif node.settled[:depth] == prefix:
                other += node.weight
            else:
                undecided.append(drafts)
        lower = inside / self._possible(total, prefix)
        if not (undecided and inside + maybe):
            return Bounds(lower, lower), []
        upper = (inside + maybe) / (inside + maybe + other)
        return Bounds(lower, max(lower, upper)), undecided

    def _possible(self, total: Probability, prefix: Tokens) -> Probability:
        if not total:
            raise ValueError(f"prefix = {prefix}: no drafted text starts with these tokens")
        return total

    def _can_start(self, node: Node, tokens: Tokens) -> bool:
        """Whether a text from here on may start with these tokens."""
        settled = len(node.settled)
        if node.settled[: len(tokens)] != tokens[:settled]:
            return False
        return len(tokens) <= settled or (
            not node.complete and self._fits(node.rest, tokens[settled:])
        )

    def _fits(self, text: Text, tokens: Tokens) -> bool:
        """Whether some continuation of an undetermined text may start with these tokens."""
        if self.vocabulary.normalise is not None:
            return True
        for token in tokens:
            spelled = cast(Any, self.vocabulary.tokens[token])
            if spelled.startswith(text):
                return True
            if not cast(Any, text).startswith(spelled):
                return False
            if self.vocabulary.first_token(text) != token:
                return False
            text = text[len(spelled) :]
        return True


def is_less(bounds: Iterable[Bounds], number: Probability) -> bool:
    """Whether a probability is less than a number, from as many of its bounds as that takes."""
    for lower, upper in bounds:
        if upper < number:
            return True
        if lower >= number:
            return False
    raise ValueError(f"bounds end before they decide whether the probability is < {number}")
