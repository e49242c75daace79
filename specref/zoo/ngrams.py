"""Mutants of learning-free batched speculation: other ways to verify k deterministic drafts.

They sit beside the kit's zoo, in `zoo.beside` and not in `zoo.ALL`: the clean rule is
`ngrams.step`, which no contract of the kit calls. Each comes with the smallest case that refutes
it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import numpy as np

from specref.algorithms import Step, ngrams, slem
from specref.algorithms.ngram_drafts import Propose
from specref.chance import Chance
from specref.distributions import normalise
from specref.models import Model, iid_model
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo.entry import Described


@dataclass(frozen=True)
class Case:
    """A target without memory, and the drafts of every context.

    Attributes
    ----------
    p : tuple of str
        Next-token probabilities.
    drafts : tuple of tuple of int
    total_variation : Fraction
        Of the completed block from the target's law, exact.
    """

    p: tuple[str, ...]
    drafts: tuple[Tokens, ...]
    total_variation: Fraction

    @property
    def target(self) -> Model:
        """The target, over the first letters of the alphabet."""
        return iid_model(Vocabulary("abcdefgh"[: len(self.p)]), self.p)

    @property
    def lookahead(self) -> int:
        """The longest draft."""
        return max(map(len, self.drafts))

    def propose(self, context: Tokens, lookahead: int) -> tuple[Tokens, ...]:
        """The drafts, whatever the context."""
        return tuple(draft[:lookahead] for draft in self.drafts)


@dataclass(frozen=True, kw_only=True)
class NGramEntry(Described):
    """A verification of deterministic drafts that departs from `ngrams.step` in one place.

    Attributes
    ----------
    step : callable
        As `ngrams.step`, with its keyword `propose`.
    case : Case
        The smallest that refutes it.
    """

    step: Step
    case: Case


def independent_rows(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    propose: Propose | None = None,
) -> Tokens:
    """Each row of the batch is matched with draws of its own; the longest block wins.

    Examples
    --------
    >>> from specref import is_lossless
    >>> case = NGRAMS["independent-draws-per-row"].case
    >>> is_lossless(lambda *arguments: independent_rows(*arguments, propose=case.propose),
    ...             case.target, case.target).difference
    Difference(tokens=(0,), output=Fraction(3, 4), expected=Fraction(1, 2))
    """
    drafts = ngrams.proposals(drafter, context, lookahead, propose) or ((),)
    return max((slem.match(target, context, draft, chance) for draft in drafts), key=len)


def sequential_coins(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    propose: Propose | None = None,
) -> Tokens:
    """Toss a coin p(x) for one child x of the trie after another, p never renormalised."""
    node = ngrams.trie(ngrams.proposals(drafter, context, lookahead, propose))
    block: Tokens = ()
    while node and not target.vocabulary.ends(block):
        p, site = target.next_token((*context, *block)), f"accept[{len(block)}]"
        token = next((x for x in node if chance.accept(p[x], site)), None)
        if token is None:
            rest = np.where(np.isin(np.arange(len(p)), list(node)), p * 0, p)
            return (*block, chance.draw(normalise(rest) if rest.any() else p, "residual"))
        node, block = node[token], (*block, token)
    if target.vocabulary.ends(block):
        return block
    return (*block, chance.draw(target.next_token((*context, *block)), "bonus"))


NGRAMS: Mapping[str, NGramEntry] = MappingProxyType(
    {
        entry.id: entry
        for entry in (
            NGramEntry(
                "independent-draws-per-row",
                "randomness",
                formula="row r is matched with its own draws from p; the longest row wins",
                symptom="Drafted tokens come out too often, the more rows share them.",
                hint="Draw once for each distinct prefix, and walk the trie of the drafts.",
                cites=("arXiv:2411.03786", "foundation-model-stack/fms-extras#12"),
                step=independent_rows,
                case=Case(("1/2", "1/2"), ((0,), (0,)), Fraction(1, 4)),
                note="The paper is greedy, where all rows draw the same; one row is lossless.",
            ),
            NGramEntry(
                "draft-coins-not-renormalised",
                "accept",
                formula="accept x_r with probability p(x_r), r = 1, 2, …; else p without them",
                symptom="Later rows come out too rarely, tokens in no row too often.",
                hint="Accept x_r with probability p(x_r) / (1 - p(x_1) - … - p(x_{r-1})).",
                step=sequential_coins,
                case=Case(("1/2", "1/4", "1/4"), ((0,), (1,)), Fraction(1, 8)),
                note="One row is lossless.",
            ),
        )
    }
)
