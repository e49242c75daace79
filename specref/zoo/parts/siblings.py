"""Several drafts of one token, in parts: how they are drafted, changed, and verified.

With no part replaced, `judging` is recursive rejection. A draft is a `Node`, which carries the law
that it is declared to come from, given its elder siblings; one rule serves the positions of
`multi_draft.step` and the nodes of a tree that is drafted at once.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from specref.algorithms import multi_draft
from specref.algorithms.decoding import Step
from specref.algorithms.standard import acceptance
from specref.algorithms.trees.multi_draft import PositionRule, Verdict
from specref.algorithms.trees.siblings import draw, remaining
from specref.algorithms.trees.topdown import Branching, Node, Tree, Verify
from specref.chance import Chance
from specref.distributions import Probabilities, Probability, corrected, normalise
from specref.models import Model, iid_model
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo.fixtures import FIXTURES, ExactFixture, by_name
from specref.zoo.parts.standard import one_hot

Propose: TypeAlias = Callable[[Probabilities, int, Chance, str], Tree]
Judge: TypeAlias = Callable[[Probabilities, Tree, Chance], tuple[int, Node | None]]


def _pair(name: str, source: ExactFixture, branching: Branching) -> ExactFixture:
    options = {"branching": branching}
    return ExactFixture(name, source.target, source.drafter, len(branching), options=options)


def _s1() -> ExactFixture:
    abc = Vocabulary("abc")
    p, q = ["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"]
    return ExactFixture("s1", iid_model(abc, p), iid_model(abc, q), 1)


# `branching` is how many siblings there are at each depth.
PAIRS: Mapping[str, ExactFixture] = by_name(
    _pair("s1", _s1(), (2,)),
    _pair("m", FIXTURES["m"], (2,)),
    _pair("m3", FIXTURES["m"], (3,)),
    _pair("c", FIXTURES["c"], (2, 2)),
    _pair("eos", FIXTURES["eos"], (2, 1)),
)


# How siblings are drafted.


def drawn(q: Probabilities, drafts: int, chance: Chance, site: str) -> Tree:
    """Siblings without replacement, with what q had left for each."""
    return sequentially(q, draw(q, drafts, chance, site, replacement=False))


def drawn_independently(q: Probabilities, drafts: int, chance: Chance, site: str) -> Tree:
    """Siblings with replacement."""
    return tuple(Node(x, q, ()) for x in draw(q, drafts, chance, site, replacement=True))


def top(q: Probabilities, drafts: int, chance: Chance, site: str) -> Tree:
    """The likeliest tokens, declared as drawn without replacement."""
    return sequentially(q, ranked(q, drafts))


def top_is_certain(q: Probabilities, drafts: int, chance: Chance, site: str) -> Tree:
    """The likeliest tokens, declared as certain."""
    return certain(top(q, drafts, chance, site))


def top_and_one(q: Probabilities, drafts: int, chance: Chance, site: str) -> Tree:
    """The likeliest but one as certain, then a draw from what q has left."""
    others = q
    for token in ranked(q, drafts - 1):
        others = remaining(others, token)
    return (*top_is_certain(q, drafts - 1, chance, site), *drawn(others, 1, chance, site))


def two_drafters(q: Probabilities, drafts: int, chance: Chance, site: str) -> Tree:
    """By turns from q and from q with its ids reversed, each declared."""
    laws = [q[::-1] if j % 2 else q for j in range(drafts)]
    return tuple(Node(chance.draw(law, f"{site}[{j}]"), law, ()) for j, law in enumerate(laws))


def ranked(q: Probabilities, drafts: int) -> list[int]:
    """The likeliest tokens that q can draw, ties by id."""
    tokens = map(int, np.flatnonzero(q))
    return sorted(tokens, key=lambda token: (-q[token], token))[:drafts]


def sequentially(q: Probabilities, tokens: Sequence[int]) -> Tree:
    """Tokens declared as drawn in this order, without replacement."""
    declared = []
    for token in tokens:
        declared.append(Node(token, q, ()))
        q = remaining(q, token)
    return tuple(declared)


# How they are verified.


def ratio(p: Probabilities, node: Node) -> Probability:
    """min(1, p' / q)."""
    return acceptance(p, node.q, node.token)


def judging(
    *,
    submit: Callable[[Probabilities, Tree], Tree] = lambda p, siblings: siblings,
    likely: Callable[[Probabilities, Node], Probability] = ratio,
    left: Callable[[Probabilities, Node], Probabilities] = lambda p, node: corrected(p, node.q),
    last: Callable[[Probabilities, Probabilities, Tree], Probabilities] = (
        lambda first, p, siblings: normalise(p)
    ),
) -> Judge:
    """Recursive rejection in which some parts are replaced.

    * `submit`: (p, siblings) -> siblings as they are verified.
    * `likely`: (P, sibling) -> the probability that it is accepted; P is what the rejections so
      far have left of p.
    * `left`: (P, sibling) -> P after its rejection.
    * `last`: (p, P, siblings) -> the law of the token if all are rejected.
    * returns: (p, siblings, chance) -> a token, and the accepted sibling or None.

    >>> pair = PAIRS["m3"]
    >>> clean = partial(multi_draft.step, drafts=3)
    >>> FIXTURES["m"].blocks(clean) == pair.blocks(at_positions(judging()))
    True
    """

    def judge(p: Probabilities, siblings: Tree, chance: Chance) -> tuple[int, Node | None]:
        first, siblings = p, submit(p, siblings)
        for j, node in enumerate(siblings):
            if chance.accept(likely(p, node), f"accept[{j}]"):
                return node.token, node
            p = left(p, node)
        return chance.draw(last(first, p, siblings), "last"), None

    return judge


def changed(change: Callable[[Tree], Tree]) -> Judge:
    """Recursive rejection of other siblings than those that were drafted."""
    return judging(submit=lambda p, siblings: change(siblings) if siblings else siblings)


def one_draw(fresh: bool) -> Judge:
    """One draw of the target, accepted if it is a sibling; else it, or a fresh one, is emitted."""

    def judge(p: Probabilities, siblings: Tree, chance: Chance) -> tuple[int, Node | None]:
        token = chance.draw(p, "target")
        node = next((node for node in siblings if node.token == token), None)
        again = node is None and fresh and siblings
        return chance.draw(p, "last") if again else token, node

    return judge


def rule_of(judge: Judge, propose: Propose = drawn) -> PositionRule:
    """A rule of `multi_draft.step`."""

    def rule(
        p: Probabilities, q: Probabilities, drafts: int, chance: Chance, depth: int
    ) -> Verdict:
        token, node = judge(p, propose(q, drafts, chance, f"draft[{depth}]"), chance)
        return Verdict(token, node is not None)

    return rule


def at_positions(judge: Judge, propose: Propose = drawn) -> Step:
    """`multi_draft.step` with this rule."""
    return partial(step, rule=rule_of(judge, propose))


def step(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    rule: PositionRule,
    branching: Branching = (2,),
) -> Tokens:
    """`multi_draft.step`, with as many drafts as the root of a tree has children."""
    case = target, drafter, context, lookahead, chance
    return multi_draft.step(*case, drafts=branching[0], rule=rule)


def at_nodes(judge: Judge) -> Verify:
    """Verification of a tree from its root down: the children of an accepted node are next."""

    def verify(target: Model, context: Tokens, tree: Tree, chance: Chance) -> Tokens:
        found = judge(target.next_token(context), tree, chance)
        return descended(verify, target, context, *found, chance)

    return verify


def descended(
    verify: Verify, target: Model, context: Tokens, token: int, node: Node | None, chance: Chance
) -> Tokens:
    """A token; after an accepted sibling what a rule emits below it, if the text goes on."""
    if node is None or target.vocabulary.ends((token,)):
        return (token,)
    return (token, *verify(target, (*context, token), node.children, chance))


# How siblings are changed before they are verified.


def certain(siblings: Tree) -> Tree:
    """Every sibling as if nothing else could have been drafted: q = 1."""
    return tuple(node._replace(q=one_hot(node.token, node.q)) for node in siblings)


def eldest_law(siblings: Tree) -> Tree:
    """Every sibling as if it had been drawn first."""
    return tuple(node._replace(q=siblings[0].q) for node in siblings)


def distinct(siblings: Tree) -> Tree:
    """The first of equal siblings, with its children."""
    first = {node.token: node for node in reversed(siblings)}
    return tuple(node for node in siblings if first[node.token] is node)


def likeliest_first(siblings: Tree) -> Tree:
    """Siblings by probability, declared as if drawn in that order."""
    q, tokens = siblings[0].q, {node.token for node in siblings}
    return sequentially(q, [token for token in ranked(q, len(q)) if token in tokens])


def best_first(p: Probabilities, siblings: Tree) -> Tree:
    """The largest p / q first."""
    return tuple(sorted(siblings, key=lambda node: -p[node.token] / node.q[node.token]))


# What the target's law becomes.


def of_target(p: Probabilities, node: Node) -> Probability:
    """P, in place of the ratio."""
    chance: Probability = p[node.token]
    return chance


def unchanged(p: Probabilities, node: Node) -> Probabilities:
    """P, as if the sibling had not been there."""
    return p


def zeroed(p: Probabilities, node: Node) -> Probabilities:
    """P without the rejected token, and no q taken from the others."""
    others = remaining(p, node.token)
    return others if others.any() else p


def not_renormalised(p: Probabilities, node: Node) -> Probabilities:
    """(p' - q)+."""
    excess = np.maximum(p - node.q, 0)
    return excess if excess.any() else p


def of_the_last(first: Probabilities, p: Probabilities, siblings: Tree) -> Probabilities:
    """norm((p - q)+), q that of the last sibling."""
    return corrected(first, siblings[-1].q) if siblings else first


def of_k_seq(first: Probabilities, p: Probabilities, siblings: Tree) -> Probabilities:
    """The residual of k-SEQ with rho = 1; what would be below 0 is cut off."""
    if not siblings:
        return first
    kept = np.minimum(first, siblings[0].q)
    tries = sum((1 - kept.sum()) ** j for j in range(len(siblings)))
    excess = np.maximum(first - kept * tries, 0)
    return normalise(excess) if excess.any() else first
