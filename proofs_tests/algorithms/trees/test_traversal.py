"""Traversal verification: block verification on one branch, and how much it accepts.

That it is lossless is shown in `test_trees`, for both rules.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog

from proofs_tests.helpers.published import models
from proofs_tests.helpers.tree_cases import (
    LESS,
    Case,
    accepted,
    cases,
    expected,
    law,
    prefixes,
    proved,
)
from specref import Vocabulary, exact_distribution
from specref.algorithms import block, traversal
from specref.algorithms.trees import topdown
from specref.algorithms.trees.topdown import Node
from specref.chance import Exact, Replayed, Traced
from specref.distributions import as_distribution
from specref.models import hashed_model, table_model
from specref.proofs import completed
from specref.theory.trees import siblings

F = Fraction
AB, ABC = Vocabulary("ab"), Vocabulary("abc")
S1 = models("S1")


@given(cases(((), (1,), (1, 1), (1, 1, 1))))
def test_one_branch_is_verified_as_by_block(case):
    target, drafter, context, branching, _ = case
    alone = exact_distribution(
        lambda chance: block.step(target, drafter, context, len(branching), chance)
    )
    assert law(traversal, case) == alone


@given(cases(replacement=True))
def test_accepts_every_prefix_at_least_as_often_with_replacement(case):
    more, fewer = (accepted(case, rule) for rule in ("traversal", "topdown"))
    assert all(more[prefix] >= weight for prefix, weight in fewer.items())


@pytest.mark.deep
def test_accepts_more_on_most_models():
    """100 hashed pairs of four tokens, branching (2, 2): strictly more for 72, less for none."""
    vocabulary, strict = Vocabulary("abcd"), 0
    for seed in range(100):
        pair = (hashed_model(vocabulary, f"{role} {seed}") for role in "pq")
        case = Case(*pair, (), (2, 2), True)
        more, fewer = (accepted(case, rule) for rule in ("traversal", "topdown"))
        assert all(more[prefix] >= weight for prefix, weight in fewer.items())
        strict += sum(more.values()) > sum(fewer.values())
    assert strict == 72


@given(cases(replacement=False))
def test_accepts_every_prefix_at_least_as_often_for_three_tokens(case):
    """Seen, not proved: without replacement it is false for four."""
    more, fewer = (accepted(case, rule) for rule in ("traversal", "topdown"))
    assert all(more[prefix] >= weight for prefix, weight in fewer.items())


def left(p, q, survival):
    """What a node with two children emits itself, without replacement."""
    stages = siblings(F(1), survival * p, q, 2, False)
    return sum((stage.due for stage in stages if not stage.q.any()), 0 * p)


def test_three_tokens_on_a_grid():
    """Two siblings below a node with any a: no x is accepted less than a times as with a = 1."""
    rows = [
        as_distribution([F(w, 3) for w in weights])
        for weights in itertools.product(range(4), repeat=3)
        if sum(weights) == 3
    ]
    for p, q, survival in itertools.product(rows, rows, (F(1, 3), F(2, 3), F(9, 10))):
        assert (left(p, q, survival) <= survival * left(p, q, F(1))).all()


def test_accepts_less_without_replacement():
    """Four tokens, branching (1, 2): 1/225 of a token less, seen by enumeration too."""
    lengths = [expected(LESS, rule) for rule in ("topdown", "traversal")]
    assert lengths[0] - lengths[1] == F(1, 225)
    for rule, found in zip((topdown, traversal), lengths, strict=True):
        assert sum(len(tokens) * w for tokens, w in law(rule, LESS).items()) == found
        assert proved(rule, LESS)
    more, fewer = (accepted(LESS, rule) for rule in ("traversal", "topdown"))
    assert [prefix for prefix in fewer if fewer[prefix] > more[prefix]] == [(0, 3)]
    again = LESS._replace(replacement=True)
    assert expected(again, "traversal") > expected(again, "topdown")


def most(case):
    """The greatest expected accepted length of a lossless rule, by linear programming.

    Given a tree, a rule keeps one of its texts and adds a token, with a probability for each.
    Those of each tree sum to its own, and what comes out, completed by the target, is its law.
    """
    target, drafter, context, branching, replacement = case

    def drafted(chance):
        return frozenset(
            prefixes(topdown.draft(drafter, context, branching, chance, replacement=replacement))
        )

    drafts = exact_distribution(drafted)
    longest = len(branching) + 1
    texts = completed({(): F(1)}, target, context, longest)
    possible = {text[:k] for text in texts for k in range(longest + 1)}
    tokens = range(len(target.vocabulary))
    choices = [(d, x, y) for d in drafts for x in d for y in tokens if (*x, y) in possible]
    outcomes = {outcome: i for i, outcome in enumerate((*drafts, *texts))}
    sums = np.zeros((len(outcomes), len(choices)))
    for column, (tree, x, y) in enumerate(choices):
        sums[outcomes[tree], column] = 1
        for text, weight in completed({(*x, y): F(1)}, target, context, longest).items():
            sums[outcomes[text], column] = weight
    gains = [-len(x) for _, x, _ in choices]
    wanted = [float(weight) for weight in (*drafts.values(), *texts.values())]
    return -linprog(gains, A_eq=sums, b_eq=wanted).fun


MOST = [
    ("A", (2,), True, "8/9", "7/9"),
    ("A", (2, 1), False, "17/9", "16/9"),
    ("A", (2, 1), True, "131/81", "38/27"),
    ("A", (1, 2), False, "4/3", "4/3"),
    ("A", (1, 2), True, "35/27", "34/27"),
    ("C", (1, 2), False, "7/6", "154/135"),
    ("C", (2, 1), False, "241/135", "5/3"),
]


@pytest.mark.parametrize(("instance", "branching", "replacement", "bound", "accepts"), MOST)
def test_what_a_lossless_rule_may_accept(instance, branching, replacement, bound, accepts):
    case = Case(*models(instance), (), branching, replacement)
    assert str(expected(case, "traversal") - 1) == accepts
    assert most(case) == pytest.approx(float(F(bound)), abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_no_lossless_rule_accepts_more_of_one_branch(seed):
    pair = (hashed_model(AB, f"{role} branch {seed}") for role in "pq")
    case = Case(*pair, (), (1, 1, 1), False)
    assert most(case) == pytest.approx(float(expected(case, "traversal") - 1), abs=1e-9)


def test_pinned_coins():
    """Siblings c, a of S1 with b below: a = 1/3, and 1/5 once b is refused; then 1, no coin."""
    q = S1[1].next_token(())
    below, rest = as_distribution([0, "1/3", "2/3"]), as_distribution(["1/3", "2/3", 0])
    tree = (Node(2, q, (Node(1, below, ()),)), Node(0, rest, (Node(1, q, ()),)))
    chance = Traced(Replayed([0, 0, 2]))
    assert traversal.verify(S1[0], (), tree, chance) == (0, 1, 2)
    asked = [(step.site, str(step.weight)) for step in chance.steps]
    assert asked == [("accept[0][0]", "2/3"), ("accept[0]", "4/5"), ("bonus", "1/6")]


def test_nothing_is_read_below_what_the_target_excludes():
    """Its contexts could be impossible: the table has no row for them."""
    target = table_model(ABC, {(): [0, 0, 1], (2,): [1, 0, 0], (2, 0): [0, 1, 0]})
    q = as_distribution(["1/2", 0, "1/2"])
    tree = (Node(0, q, (Node(0, q, ()),)), Node(2, q, (Node(0, q, ()),)))
    blocks = exact_distribution(lambda chance: traversal.verify(target, (), tree, chance))
    assert blocks == {(2, 0, 1): F(1)}


def test_an_equal_law_is_never_refused():
    """p = q: a = 1 and (p - q)+ = 0, but the first child is accepted."""
    same = hashed_model(ABC, "same")
    chance = Traced(Exact())
    tokens = traversal.step(same, same, (), 2, chance, branching=(2, 2))
    assert len(tokens) == 3
