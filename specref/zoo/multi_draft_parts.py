"""Several drafts of one token, in parts, and the pairs on which rules for them are told apart.

With no part replaced, `sibling_rule` is `multi_draft.recursive_rejection`. A draft carries the law
that it is declared to come from, given its elder siblings.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from specref.algorithms import Step, multi_draft
from specref.algorithms.multi_draft import Rule, Verdict
from specref.algorithms.siblings import draw, remaining
from specref.algorithms.standard import Draft, acceptance
from specref.algorithms.trees import Branching
from specref.chance import Chance
from specref.distributions import Probabilities, Probability, corrected
from specref.models import iid_model
from specref.vocabulary import Vocabulary
from specref.zoo.clean import one_hot
from specref.zoo.entry import Described
from specref.zoo.fixtures import FIXTURES, Fixture

Drafts: TypeAlias = list[Draft]
Propose: TypeAlias = Callable[[Probabilities, int, Chance, str], Drafts]


@dataclass(frozen=True)
class Branched(Fixture):
    """A pair, and how many siblings a tree has at each depth.

    Attributes
    ----------
    branching : tuple of int
    """

    branching: Branching = (2,)


@dataclass(frozen=True, kw_only=True)
class MultiDraftEntry(Described):
    """A rule for several drafts that departs from a clean one in one place.

    Attributes
    ----------
    clean : str
        The clean rule, within `specref.algorithms`.
    build : callable
        Branching -> step; rules without a tree have as many drafts as its root has children.
    distances : mapping
        {pair: total variation of the completed block}; empty for a control. 0 where it survives.
    """

    clean: str
    build: Callable[[Branching], Step]
    distances: Mapping[str, Probability] = field(default_factory=dict)


def _pair(name: str, source: Fixture, branching: Branching) -> Branched:
    lookahead = len(branching)
    return Branched(name, source.target, source.drafter, lookahead, branching=branching)


def _s1() -> Fixture:
    abc = Vocabulary("abc")
    p, q = ["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"]
    return Fixture("s1", iid_model(abc, p), iid_model(abc, q), 1)


_ALL = (
    _pair("s1", _s1(), (2,)),
    _pair("m", FIXTURES["m"], (2,)),
    _pair("m3", FIXTURES["m"], (3,)),
    _pair("c", FIXTURES["c"], (2, 2)),
    _pair("eos", FIXTURES["eos"], (2, 1)),
)
PAIRS: Mapping[str, Branched] = MappingProxyType({pair.name: pair for pair in _ALL})


def with_rule(rule: Rule) -> Callable[[Branching], Step]:
    """`multi_draft.step` with this rule, and as many drafts as the root has children."""
    return lambda branching: partial(multi_draft.step, drafts=branching[0], rule=rule)


def drawn(q: Probabilities, drafts: int, chance: Chance, site: str) -> Drafts:
    """Siblings without replacement, with what q had left for each."""
    return sequentially(q, draw(q, drafts, chance, site, replacement=False))


def drawn_independently(q: Probabilities, drafts: int, chance: Chance, site: str) -> Drafts:
    """Siblings with replacement."""
    return [Draft(token, q) for token in draw(q, drafts, chance, site, replacement=True)]


def sibling_rule(
    propose: Propose = drawn,
    *,
    submit: Callable[[Drafts], Drafts] = lambda drafts: drafts,
    left: Callable[[Probabilities, Draft], Probabilities] = lambda p, x: corrected(p, x.q),
    last: Callable[[Probabilities, Probabilities], Probabilities] = lambda p, q: p,
) -> Rule:
    """Recursive rejection in which some parts are replaced.

    Parameters
    ----------
    propose : callable
        (q, drafts, chance, site) -> drafts.
    submit : callable
        drafts -> drafts: what the verifier is given.
    left : callable
        (P, draft) -> P after its rejection.
    last : callable
        (P, q) -> the law of the token if all are rejected.

    Examples
    --------
    >>> pair = PAIRS["m3"]
    >>> clean, parts = (
    ...     with_rule(rule)(pair.branching)
    ...     for rule in (multi_draft.recursive_rejection, sibling_rule())
    ... )
    >>> pair.blocks(parts) == pair.blocks(clean)
    True
    """

    def rule(
        p: Probabilities, q: Probabilities, drafts: int, chance: Chance, depth: int
    ) -> Verdict:
        for j, x in enumerate(submit(propose(q, drafts, chance, f"draft[{depth}]"))):
            assert x.token is not None
            if chance.accept(acceptance(p, x.q, x.token), f"accept[{depth}][{j}]"):
                return Verdict(x.token, True)
            p = left(p, x)
        return Verdict(chance.draw(last(p, q), "residual"), False)

    return rule


def ranked(q: Probabilities, drafts: int) -> list[int]:
    """The likeliest tokens that q can draw, ties by id."""
    tokens = map(int, np.flatnonzero(q))
    return sorted(tokens, key=lambda token: (-q[token], token))[:drafts]


def sequentially(q: Probabilities, tokens: Sequence[int]) -> Drafts:
    """Tokens declared as drawn in this order, without replacement."""
    declared = []
    for token in tokens:
        declared.append(Draft(token, q))
        q = remaining(q, token)
    return declared


def certain(drafts: Drafts) -> Drafts:
    """Every draft as if nothing else could have been drafted: q = 1."""
    return [Draft(x.token, one_hot(x.token, x.q)) for x in drafts if x.token is not None]
