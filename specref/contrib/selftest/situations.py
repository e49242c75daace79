"""Triggers of steps, of texts and of trees: where a bug acts, in verification from the root down.

Drafts are a tree, of one branch for steps and texts. A bug departs from `topdown.verify` at the
decisions for which a trigger holds, and nowhere else. Every trigger with every bug is a mutant.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from specref.algorithms.decoding import Step
from specref.algorithms.standard import acceptance, draft
from specref.algorithms.trees.topdown import Node, Tree
from specref.chance import Chance
from specref.contrib.selftest.triggers import Trigger
from specref.distributions import Probabilities, Probability, corrected
from specref.models import Model
from specref.vocabulary import Tokens

LOOKAHEAD = 3
"""The drafts of an iteration of a text."""


@dataclass(frozen=True)
class Decision:
    """A draft to accept, or a last token to draw, as triggers see it.

    * `call`: How many calls there were before.
    * `asked`: The lookahead, or the tokens to generate; of trees the nodes of the row.
    * `ends`: Whether one of them ends a text.
    * `row`, `rows`: The row of the batch, and how many there are.
    * `laws`: Whether the laws of drafts were passed.
    * `context`: All tokens before, those of the call included.
    * `position`: How many of them are of the call.
    * `p`: The target's law after them.
    * `draft`: The one to accept, or the last that was refused; None where there are no drafts.
    """

    call: int
    asked: int
    size: int
    ends: bool = False
    row: int = 0
    rows: int = 1
    laws: bool = True
    context: Tokens = ()
    position: int = 0
    p: Probabilities | None = None
    siblings: Tree = ()
    draft: Node | None = None

    @property
    def top(self) -> float:
        """The largest probability of the target's law."""
        return 0.0 if self.p is None else float(self.p.max())

    @property
    def zeros(self) -> bool:
        """Whether the target excludes a token."""
        return self.p is not None and not self.p.all()

    @property
    def p_draft(self) -> float:
        """The target's probability of the draft; 1 if there is none."""
        return 1.0 if self.draft is None or self.p is None else float(self.p[self.draft.token])

    @property
    def q_draft(self) -> float:
        """The declared probability of the draft; 0 if there is none."""
        return 0.0 if self.draft is None else float(self.draft.q[self.draft.token])

    @property
    def elder(self) -> list[int]:
        """The tokens of the siblings before the draft."""
        nodes = itertools.takewhile(lambda node: node is not self.draft, self.siblings)
        return [node.token for node in nodes]

    @property
    def repeats(self) -> bool:
        """Whether an elder sibling has the token of the draft."""
        return self.draft is not None and self.draft.token in self.elder

    def said(self, size: int) -> bool:
        """Whether the last tokens, so many, came before in the same order."""
        last, whole = self.context[-size:], self.context
        return any(whole[i : i + size] == last for i in range(len(whole) - size))

    @property
    def prompt(self) -> int:
        """The tokens of the context that are not of the call."""
        return len(self.context) - self.position


@dataclass(frozen=True)
class Departure:
    """What a bug does at the decisions where a trigger holds.

    * `likely`: The probability that a draft is accepted -> another one.
    * `left`: (p, q) -> the law after a rejection.
    * `last`: The law of the last token -> another one.
    * `reads`: The context -> what the target is given instead.
    """

    id: str
    likely: Callable[[Probability], Probability] = lambda likely: likely
    left: Callable[[Probabilities, Probabilities], Probabilities] = corrected
    last: Callable[[Probabilities], Probabilities] = lambda p: p
    reads: Callable[[Tokens], Tokens] = lambda context: context


def _likeliest(p: Probabilities) -> Probabilities:
    return np.where(np.arange(len(p)) == p.argmax(), p.sum(), 0 * p)


CLEAN = Departure("clean")
BUGS = (
    Departure("accepts-every-draft", likely=lambda likely: 1),
    Departure("rejects-every-draft", likely=lambda likely: 0),
    Departure("residual-is-p", left=lambda p, q: p),
    Departure("last-token-is-argmax", last=_likeliest),
)
CALL_BUGS = (*BUGS, Departure("reads-two-tokens", reads=lambda context: context[-2:]))
TREE_BUGS = (*BUGS, Departure("reads-row-of-parent", reads=lambda context: context[:-1]))


def _values(contract: str) -> tuple[Trigger, ...]:
    return (
        Trigger(f"{contract}-top-above-0.9", "values", lambda at: at.top > 0.9),
        Trigger(f"{contract}-top-below-0.1", "values", lambda at: at.top < 0.1),
        Trigger(f"{contract}-zeros-in-p", "values", lambda at: at.zeros),
        Trigger(f"{contract}-draft-p-below-0.01", "values", lambda at: at.p_draft < 0.01),
        Trigger(f"{contract}-draft-q-above-0.9", "values", lambda at: at.q_draft > 0.9),
        Trigger(f"{contract}-vocabulary-above-128", "shape", lambda at: at.size > 128),
        Trigger(f"{contract}-vocabulary-above-1024", "shape", lambda at: at.size > 1_024),
        Trigger(f"{contract}-odd-calls", "call", lambda at: at.call % 2 == 1),
    )


def _contexts(contract: str) -> tuple[Trigger, ...]:
    return (
        Trigger(f"{contract}-without-context", "shape", lambda at: not at.prompt),
        Trigger(f"{contract}-context-3-on", "shape", lambda at: at.prompt >= 3),
        Trigger(f"{contract}-after-5", "row", lambda at: len(at.context) >= 5),
        Trigger(f"{contract}-after-40", "row", lambda at: len(at.context) >= 40),
        Trigger(f"{contract}-after-512", "row", lambda at: len(at.context) >= 512),
        Trigger(f"{contract}-after-1024", "row", lambda at: len(at.context) >= 1_024),
        Trigger(
            f"{contract}-token-again",
            "ids",
            lambda at: len(at.context[-2:]) > len({*at.context[-2:]}),
        ),
        Trigger(f"{contract}-vocabulary-above-65536", "shape", lambda at: at.size > 65_536),
        Trigger(f"{contract}-ends", "ids", lambda at: at.ends),
        Trigger(f"{contract}-ends-late", "ids", lambda at: at.ends and at.position >= 8),
        Trigger(
            f"{contract}-eos-before",
            "ids",
            lambda at: at.ends and at.size - 1 in at.context[: at.prompt],
        ),
    )


STEPS = (
    Trigger("step-one-draft", "shape", lambda at: at.asked == 1),
    Trigger("step-four-drafts", "shape", lambda at: at.asked >= 4),
    Trigger("step-eight-drafts", "shape", lambda at: at.asked >= 8),
    Trigger("step-nine-drafts", "shape", lambda at: at.asked >= 9),
    Trigger("step-position-3-on", "row", lambda at: at.position >= 3),
    Trigger("step-last-positions", "row", lambda at: at.position >= at.asked - 1),
    *_contexts("step"),
    *_values("step"),
)
TEXTS = (
    Trigger("text-budget-of-1", "shape", lambda at: at.asked == 1),
    Trigger("text-budget-above-500", "shape", lambda at: at.asked > 500),
    Trigger("text-position-16-on", "row", lambda at: at.position >= 16),
    Trigger("text-last-token", "row", lambda at: at.position == at.asked - 1),
    Trigger("text-said-12-tokens", "ids", lambda at: at.said(12)),
    *_contexts("text"),
    *_values("text"),
)
TREES = (
    Trigger("tree-one-sibling", "shape", lambda at: len(at.siblings) == 1),
    Trigger("tree-four-siblings", "shape", lambda at: len(at.siblings) >= 4),
    Trigger("tree-eight-siblings", "shape", lambda at: len(at.siblings) >= 8),
    Trigger("tree-siblings-above-16", "shape", lambda at: len(at.siblings) > 16),
    Trigger("tree-fourth-sibling", "row", lambda at: bool(at.draft) and len(at.elder) >= 3),
    Trigger("tree-seventeenth-sibling", "row", lambda at: bool(at.draft) and len(at.elder) >= 16),
    Trigger("tree-token-again", "ids", lambda at: at.repeats),
    Trigger("tree-depth-2-on", "row", lambda at: at.position >= 2),
    Trigger("tree-depth-3-on", "row", lambda at: at.position >= 3),
    Trigger("tree-depth-5-on", "row", lambda at: at.position >= 5),
    Trigger("tree-nodes-above-6", "shape", lambda at: at.asked > 6),
    Trigger("tree-nodes-above-12", "shape", lambda at: at.asked > 12),
    Trigger("tree-nodes-above-64", "shape", lambda at: at.asked > 64),
    Trigger("tree-no-laws", "mode", lambda at: not at.laws),
    Trigger("tree-batch-of-1", "shape", lambda at: at.rows == 1),
    Trigger("tree-batch-3-to-8", "shape", lambda at: 3 <= at.rows <= 8),
    Trigger("tree-batch-600-to-1500", "shape", lambda at: 600 <= at.rows <= 1_500),
    Trigger("tree-row-0", "row", lambda at: at.row == 0),
    Trigger("tree-last-row", "row", lambda at: at.row == at.rows - 1),
    Trigger("tree-row-above-255", "row", lambda at: at.row >= 256),
    Trigger("tree-row-above-1023", "row", lambda at: at.row >= 1_024),
    *_values("tree"),
)


def verified(
    bug: Departure,
    when: Trigger,
    at: Decision,
    target: Model,
    context: Tokens,
    tree: Tree,
    chance: Chance,
) -> Tokens:
    """`topdown.verify` with a bug that acts where a trigger holds.

    * `context`: What the target reads; `at.context` may be longer.
    """
    at = replace(at, p=target.next_token(context), siblings=tree, draft=None)
    held = [when.holds(replace(at, draft=node)) for node in tree] or [when.holds(at)]
    p = target.next_token((bug if any(held) else CLEAN).reads(context))
    for node, holds in zip(tree, held, strict=False):
        here = bug if holds else CLEAN
        likely = here.likely(acceptance(p, node.q, node.token))
        if chance.accept(likely, f"accept[{at.position}]"):
            if target.vocabulary.ends((node.token,)):
                return (node.token,)
            below = replace(
                at, context=(*at.context, node.token), position=at.position + 1, p=None
            )
            longer = (*context, node.token)
            rest = verified(bug, when, below, target, longer, node.children, chance)
            return (node.token, *rest)
        p = here.left(p, node.q)
    last = (bug if held[-1] else CLEAN).last(p)
    return (chance.draw(last / last.sum(), "residual" if tree else "bonus"),)


def chain(drafter: Model, context: Tokens, lookahead: int, chance: Chance) -> Tree:
    """Drafts as a tree of one branch."""
    tree: Tree = ()
    for token, q in draft(drafter, context, lookahead, chance)[::-1]:
        assert token is not None
        tree = (Node(token, q, tree),)
    return tree


def triggered_step(bug: Departure, when: Trigger) -> Step:
    """A step with a bug that acts where a trigger holds; each counts its own calls."""
    calls = itertools.count()

    def step(
        target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        words = target.vocabulary
        at = Decision(next(calls), lookahead, len(words), words.eos is not None, context=context)
        drafts = chain(drafter, context, lookahead, chance)
        return verified(bug, when, at, target, context, drafts, chance)

    return step


def triggered_text(bug: Departure, when: Trigger) -> Callable[..., Tokens]:
    """A decode loop with a bug that acts where a trigger holds; each counts its own texts."""
    calls = itertools.count()

    def generate(
        target: Model, drafter: Model, context: Tokens, tokens: int, chance: Chance
    ) -> Tokens:
        words = target.vocabulary
        text: Tokens = ()
        call = Decision(next(calls), tokens, len(words), words.eos is not None)
        while len(text) < tokens and not words.ends(text):
            whole = (*context, *text)
            at = replace(call, context=whole, position=len(text))
            drafts = chain(drafter, whole, LOOKAHEAD, chance)
            text += verified(bug, when, at, target, whole, drafts, chance)
        return text[:tokens]

    return generate
