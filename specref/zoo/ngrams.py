"""Mutants of learning-free batched speculation: other ways to verify k deterministic drafts.

The clean rule is `ngrams.step`. Each mutant comes with the smallest case that refutes it.
"""

import numpy as np

from specref.algorithms import ngrams, slem
from specref.algorithms.ngrams.drafts import Propose
from specref.chance import Chance
from specref.distributions import normalise
from specref.models import Model, iid_model
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo.entry import Entry, exactly
from specref.zoo.fixtures import ExactFixture


def given(name: str, p: tuple[str, ...], drafts: tuple[Tokens, ...]) -> ExactFixture:
    """A target without memory, over the first letters, and the drafts of every context."""

    def propose(context: Tokens, lookahead: int) -> tuple[Tokens, ...]:
        return tuple(draft[:lookahead] for draft in drafts)

    target = iid_model(Vocabulary("abcdefgh"[: len(p)]), p)
    return ExactFixture(name, target, target, max(map(len, drafts)), options={"propose": propose})


def independent_rows(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    propose: Propose | None = None,
) -> Tokens:
    """Each row of the batch is matched with draws of its own; the longest block wins."""
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
    """Accept one child x of the trie after another with p(x), which is never renormalised."""
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


ENTRIES = (
    Entry(
        "independent-draws-per-row",
        "randomness",
        rule="ngrams",
        formula="row r is matched with its own draws from p; the longest row wins",
        symptom="Drafted tokens come out too often, the more rows share them.",
        hint="Draw once for each distinct prefix, and walk the trie of the drafts.",
        cites=("arXiv:2411.03786", "foundation-model-stack/fms-extras#12"),
        step=independent_rows,
        case=given("equal rows", ("1/2", "1/2"), ((0,), (0,))),
        distances=exactly(**{"equal rows": "1/4"}),
        note="The paper is greedy, where all rows draw the same; one row is lossless.",
    ),
    Entry(
        "draft-coins-not-renormalised",
        "accept",
        rule="ngrams",
        formula="accept x_r with probability p(x_r), r = 1, 2, …; else p without them",
        symptom="Later rows come out too rarely, tokens in no row too often.",
        hint="Accept x_r with probability p(x_r) / (1 - p(x_1) - … - p(x_{r-1})).",
        step=sequential_coins,
        case=given("two rows", ("1/2", "1/4", "1/4"), ((0,), (1,))),
        distances=exactly(**{"two rows": "1/8"}),
        note="One row is lossless.",
    ),
)
