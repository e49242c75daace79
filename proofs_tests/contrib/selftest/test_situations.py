"""Bugs of one situation: lossless where their trigger never holds, lossy where it does."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from specref import Vocabulary, exact_distribution, is_lossless
from specref.algorithms import autoregressive
from specref.algorithms.decoding import decode
from specref.algorithms.trees import topdown
from specref.chance import Sampled
from specref.contrib.selftest.situations import (
    BUGS,
    CALL_BUGS,
    LOOKAHEAD,
    STEPS,
    TEXTS,
    TREE_BUGS,
    TREES,
    Decision,
    Departure,
    chain,
    triggered_step,
    triggered_text,
    verified,
)
from specref.contrib.selftest.triggers import Trigger
from specref.models import Model, hashed_model, iid_model

ABC = Vocabulary("abc")
# Rows differ by context; after three tokens, too.
TARGET, DRAFTER = hashed_model(ABC, "target 1"), hashed_model(ABC, "drafter 2")
ALWAYS = Trigger("always", "mode", lambda at: True)
NEVER = Trigger("never", "mode", lambda at: False)
STARTS = ((), (0, 1, 2, 0))


@pytest.mark.parametrize("bug", CALL_BUGS, ids=lambda bug: bug.id)
def test_steps_depart_where_the_trigger_holds(bug: Departure) -> None:
    right, wrong = triggered_step(bug, NEVER), triggered_step(bug, ALWAYS)
    for context in STARTS:
        assert is_lossless(right, TARGET, DRAFTER, context, 2)
    assert not all(is_lossless(wrong, TARGET, DRAFTER, context, 2) for context in STARTS)


@pytest.mark.parametrize("bug", TREE_BUGS, ids=lambda bug: bug.id)
@pytest.mark.parametrize("replacement", [False, True])
def test_trees_depart_where_the_trigger_holds(bug: Departure, replacement: bool) -> None:
    def step(when: Trigger):
        def one(target, drafter, context, lookahead, chance):
            tree = topdown.draft(drafter, context, (2, 1), chance, replacement=replacement)
            return verified(bug, when, Decision(0, 4, 3), target, context, tree, chance)

        return one

    for context in STARTS:
        assert is_lossless(step(NEVER), TARGET, DRAFTER, context, 2)
    assert not all(is_lossless(step(ALWAYS), TARGET, DRAFTER, context, 2) for context in STARTS)


def test_without_departures_it_is_topdown() -> None:
    def law(verify) -> Mapping[tuple[int, ...], Fraction]:
        def one(chance):
            tree = topdown.draft(DRAFTER, (), (3, 2), chance, replacement=False)
            return verify(TARGET, (), tree, chance)

        return exact_distribution(one)

    at = Decision(0, 9, 3)
    assert law(topdown.verify) == law(lambda *rest: verified(BUGS[0], NEVER, at, *rest))


def test_texts_are_iterations_that_know_where_they_are() -> None:
    seen: list[Decision] = []
    spy = Trigger("spy", "mode", lambda at: seen.append(at) or False)
    generate = triggered_text(BUGS[0], spy)
    for call in range(2):
        text = generate(TARGET, DRAFTER, (2, 2), 6, Sampled(np.random.default_rng(call)))
        assert len(text) == 6
    assert {at.call for at in seen} == {0, 1}
    assert all(at.prompt == 2 and at.context[:2] == (2, 2) for at in seen)
    assert all(len(at.context) == 2 + at.position and at.asked == 6 for at in seen)
    assert max(at.position for at in seen) >= 5
    ends = Vocabulary(["a", "b", "$"], eos="$")
    last = iid_model(ends, [0, 0, 1])
    assert triggered_text(BUGS[0], NEVER)(
        last, last, (), 9, Sampled(np.random.default_rng(1))
    ) == (2,)


def test_texts_have_the_law_of_the_target() -> None:
    generate = triggered_text(BUGS[2], NEVER)
    pair = Model(ABC, lambda context: TARGET.next_token(context[-2:])), DRAFTER
    law = exact_distribution(lambda chance: generate(*pair, (0,), 2, chance))
    plain = exact_distribution(
        lambda chance: decode(autoregressive.step, *pair, (0,), 0, 2, chance)
    )
    assert law == plain


def decisions(asked: int, context: tuple[int, ...], branching: tuple[int, ...]) -> list[Decision]:
    """All that is decided in 30 runs on trees of one shape."""
    seen: list[Decision] = []
    spy = Trigger("spy", "mode", lambda at: seen.append(at) or False)
    for seed in range(30):
        chance = Sampled(np.random.default_rng(seed))
        pair = [
            iid_model(Vocabulary("abcde"), row)
            for row in ([0.95, 0.02, 0.02, 0.01, 0.0], [0.1, 0.1, 0.3, 0.4, 0.1])
        ]
        tree = topdown.draft(pair[1], context, branching, chance, replacement=True)
        at = Decision(seed, asked, 5, context=context, rows=3, row=seed % 3)
        verified(BUGS[1], spy, at, pair[0], context, tree, chance)
    return seen


def test_every_trigger_holds_somewhere_and_not_everywhere() -> None:
    few = decisions(1, (), (1,)) + decisions(4, (1, 2), (2, 1))
    many = decisions(20, (3, 3), (8, 1, 1, 1)) + decisions(8, (0,) * 41, (4,))
    base = [*few, *many, *decisions(70, (), (20,))]
    large = [
        replace(at, size=2_000, context=(*at.context, *(1,) * 1_100), rows=1_024, row=1_023)
        for at in base[:5]
    ]
    other = [
        replace(
            base[0], size=1_000, asked=501, ends=True, laws=False, rows=1, p=np.full(20, 0.05)
        ),
        replace(base[0], size=9, ends=True, context=(8, 0)),
        replace(base[0], size=65_600, ends=True, position=8),
        replace(base[0], rows=2_000, row=1_500, laws=False, position=16, asked=17),
        replace(base[0], draft=None, siblings=()),
        replace(base[0], rows=600, row=300, siblings=(), draft=None),
    ]
    sure = topdown.Node(0, np.array([0.95, 0.05, 0, 0, 0]), ())
    other.append(replace(base[0], siblings=(sure,), draft=sure))
    deep = [replace(base[0], position=k, asked=8) for k in (2, 3, 8)]
    everything = [*base, *large, *other, *deep]
    for when in (*STEPS, *TEXTS, *TREES):
        held = {bool(when.holds(at)) for at in everything}
        assert held == {True, False}, when.id


def test_ids_are_unique_and_kinds_known() -> None:
    known = [one.id for one in (*STEPS, *TEXTS, *TREES)]
    assert len(set(known)) == len(known)
    assert {one.kind for one in (*STEPS, *TEXTS, *TREES)} <= {
        "shape", "values", "ids", "mode", "call", "row",
    }  # fmt: skip
    assert LOOKAHEAD == 3


def test_a_chain_is_a_tree_of_one_branch() -> None:
    tree = chain(DRAFTER, (), 3, Sampled(np.random.default_rng(1)))
    depth = 0
    while tree:
        (node,) = tree
        tree, depth = node.children, depth + 1
    assert depth == 3
