"""Cases of tree verification: a pair, a branching, how siblings are drawn; and their laws."""

from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from specref import Vocabulary, is_lossless
from specref.algorithms.decoding import Step
from specref.algorithms.trees.topdown import Branching, Node, Tree
from specref.distributions import Probability
from specref.models import Model, table_model
from specref.proofs import Proof, is_lossless_loop, output_distribution
from specref.strategies import contexts, model_pairs, vocabularies
from specref.theory import trees as theory
from specref.theory.block import tokens_emitted
from specref.vocabulary import Tokens

SMALL: tuple[Branching, ...] = ((), (2,), (2, 1), (1, 2), (3,))
BRANCHINGS: tuple[Branching, ...] = (*SMALL, (2, 2), (2, 1, 1))


class Case(NamedTuple):
    """One iteration: the models, what came before, and the shape of the tree."""

    target: Model
    drafter: Model
    context: Tokens
    branching: Branching
    replacement: bool


@st.composite
def cases(
    draw: st.DrawFn,
    branchings: tuple[Branching, ...] = BRANCHINGS,
    *,
    eos: bool = True,
    replacement: bool | None = None,
) -> Case:
    """Vocabularies of up to three tokens; context-dependent models, or one model twice."""
    target, drafter = draw(model_pairs(vocabularies(max_tokens=3, eos=eos)))
    context = draw(contexts(target.vocabulary, 1))
    drawn: SearchStrategy[bool] = st.booleans() if replacement is None else st.just(replacement)
    return Case(target, drafter, context, draw(st.sampled_from(branchings)), draw(drawn))


def shaped(rule: Any, case: Case) -> Step:
    """The step of an algorithm, or a step like it, for the tree of a case."""
    step: Step = partial(
        getattr(rule, "step", rule), branching=case.branching, replacement=case.replacement
    )
    return step


def iteration(case: Case) -> tuple[Model, Model, Tokens, int]:
    """What is left to be passed to a shaped step."""
    return case.target, case.drafter, case.context, len(case.branching)


def law(rule: Any, case: Case) -> dict[Tokens, Probability]:
    """The exact law of one block."""
    return output_distribution(shaped(rule, case), *iteration(case))[0]


def proved(rule: Any, case: Case) -> Proof:
    """Whether an algorithm is lossless for this case."""
    return is_lossless(shaped(rule, case), *iteration(case))


def looped(rule: Any, case: Case, length: int) -> Proof:
    """Whether the decode loop is lossless."""
    return is_lossless_loop(shaped(rule, case), *iteration(case), length=length)


def length(blocks: dict[Tokens, Probability]) -> Probability:
    """The expected number of tokens."""
    return sum(len(block) * weight for block, weight in blocks.items())


def accepted(case: Case, rule: str) -> dict[Tokens, Probability]:
    """W, in closed form."""
    return theory.accepted_prefixes(
        *case[:4], rule=getattr(theory, rule), replacement=case.replacement
    )


def expected(case: Case, rule: str) -> Probability:
    """Tokens of one iteration, in closed form."""
    return tokens_emitted(accepted(case, rule), case[0].vocabulary)


def top_tree(drafter: Model, context: Tokens, branching: Branching) -> Tree:
    """The likeliest tokens after each node: not drawn, so their laws are one-hot, and not q."""
    if not branching or drafter.vocabulary.ends(context):
        return ()
    q = drafter.next_token(context)
    certain = np.eye(len(q), dtype=int) * Fraction(1)
    return tuple(
        Node(token, certain[token], top_tree(drafter, (*context, token), branching[1:]))
        for token in sorted(range(len(q)), key=lambda token: (-q[token], token))[: branching[0]]
    )


def prefixes(tree: Tree, start: Tokens = ()) -> set[Tokens]:
    """The distinct texts along its branches, with the empty one."""
    found = {start}
    for node in tree:
        found |= prefixes(node.children, (*start, node.token))
    return found


ABCD = Vocabulary("abcd")
# The target begins with a 5/6 of the time, the drafter always.
LESS = Case(
    table_model(ABCD, {(): ["5/6", "1/6", 0, 0]}, [0, "1/6", "1/3", "1/2"]),
    table_model(ABCD, {(): [1, 0, 0, 0]}, ["2/3", "1/6", 0, "1/6"]),
    (),
    (1, 2),
    False,
)
