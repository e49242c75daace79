"""SLRS by bounds of psi: the same law, decision for decision, with fewer forwards."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_tests.benchmarks.lazy_slrs import STEPS, Asked, both, toys
from proofs_tests.helpers.blocks import evaluations
from specref import Vocabulary, exact_distribution, is_lossless
from specref.algorithms import lazy_slrs, slrs
from specref.algorithms.text.lazy_psi import Bounds, DraftTree, is_less
from specref.algorithms.text.lazy_slrs import decide
from specref.chance import Chance, Exact
from specref.distributions import total_variation
from specref.models import as_float, iid_model, table_model
from specref.proofs.exact import output_distribution
from specref.strategies import (
    contexts,
    distributions,
    heterogeneous_pairs,
    iterations,
    lookaheads,
    non_injective_pairs,
)
from specref.theory import conditional_psi, fixed, proposals, until_determined

RULES = st.sampled_from([fixed, until_determined])
PAIRS = heterogeneous_pairs(longest=3) | non_injective_pairs(max_tokens=3)


@st.composite
def questions(draw):
    """(tree arguments, a prefix that can be drafted, a token): what to know of psi."""
    target, drafter = draw(PAIRS)
    arguments = (target.vocabulary, drafter, draw(contexts(drafter.vocabulary)))
    arguments = (*arguments, draw(lookaheads(3)), draw(RULES))
    tokens = draw(st.sampled_from(sorted(proposals(*arguments))))
    prefix = tokens[: draw(st.sampled_from([0, 0, 1, 2]))]
    return arguments, prefix, draw(st.sampled_from(range(len(target.vocabulary))))


def exact_psi(arguments, prefix, token):
    return conditional_psi(*arguments)[prefix][token]


class HalfTheFrontier(DraftTree):
    """Upper bounds that count on undecided texts to be split evenly."""

    def _measure(self, prefix, token):
        (lower, upper), undecided = super()._measure(prefix, token)
        return Bounds(lower, lower + (upper - lower) * Fraction(1, 2)), undecided


class OnlySpellings(DraftTree):
    """Forgets that a shorter token is first where a longer one does not come about."""

    def _fits(self, text, tokens):
        return self.vocabulary.tokens[tokens[0]].startswith(text)


class ShareOfAll(DraftTree):
    """Forgets to condition on the prefix."""

    def _measure(self, prefix, token):
        (lower, upper), undecided = super()._measure(prefix, token)
        total = sum(n.weight for n in self.nodes.values() if self._can_start(n, prefix))
        return Bounds(lower * total, upper * total), undecided


class SettledAtOnce(DraftTree):
    """Takes the longest match so far for the first token, though it can still grow."""

    def _node(self, drafts, settled, text, weight):
        node = super()._node(drafts, settled, text, weight)
        return node._replace(settled=(*node.settled, *self.vocabulary.encode(node.rest)))


def certified(tree, question):
    """Whether bounds hold, tighten with every forward, and end exact."""
    arguments, prefix, token = question
    tree, value = tree(*arguments), exact_psi(*question)
    assert tree.known(prefix)[token] == next(tree.bounds(prefix, token)).lower
    low, high = 0, 1
    for count, (lower, upper) in enumerate(tree.bounds(prefix, token)):
        if not low <= lower <= value <= upper <= high or tree.forwards != count:
            return False
        low, high = lower, upper
    return low == high == value


@given(questions())
def test_bounds_hold_tighten_and_end_exact(question):
    assert certified(DraftTree, question)


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("tree", [HalfTheFrontier, OnlySpellings, ShareOfAll, SettledAtOnce])
def test_uncertified_bounds_are_rejected(tree, counterexample):
    assert counterexample(questions(), lambda question: certified(tree, question))


GRID = [Fraction(i, 12) for i in range(12)]


class OneUniform(Chance):
    """All decisions from a single uniform: what is left of it after one is for the next."""

    def __init__(self, uniform):
        self.left = uniform

    def choose(self, weights, site):
        for branch, weight in enumerate(weights):
            if self.left < weight:
                self.left /= weight
                return branch
            self.left -= weight
        raise AssertionError("a uniform is below 1")


def uniforms(breaks):
    """A grid, the points where a decision changes, and points next to them."""
    near = [point + step for point in breaks for step in (-Fraction(1, 10**9), 0)]
    return [u for u in [*GRID, *near] if 0 <= u < 1]


def decided_alike(bounds, rates, uniform, number, expected):
    """Whether revealing a uniform and comparing psi with a number both give what is expected."""
    revealed = decide(rates, OneUniform(uniform), "accept[0]")
    return revealed == is_less(bounds, number) == expected


def acceptances_are_those_of_psi(tree, case):
    """u < p / psi, at every u."""
    (arguments, prefix, token), p = case
    value, bounds = exact_psi(*case[0]), list(tree(*arguments).bounds(prefix, token))
    rates = [Bounds(min(1, p / high), min(1, p / low) if low else 1) for low, high in bounds]
    return all(
        decided_alike(bounds, rates, u, p / u if u else 2, u * value < p)
        for u in uniforms([p / value])
    )


def refusals_are_those_of_psi(tree, case):
    """v < (1 - psi / p)+, at every v."""
    (arguments, prefix, token), p = case
    value, bounds = exact_psi(*case[0]), list(tree(*arguments).bounds(prefix, token))
    rates = [Bounds(max(0, 1 - high / p), max(0, 1 - low / p)) for low, high in bounds]
    return all(
        decided_alike(bounds, rates, v, p * (1 - v), v < 1 - value / p)
        for v in uniforms([1 - value / p])
    )


TWELFTHS = st.sampled_from([Fraction(i, 12) for i in range(1, 13)])
POSSIBLE = st.tuples(questions(), TWELFTHS).filter(lambda case: exact_psi(*case[0]) > 0)


@given(POSSIBLE)
def test_every_acceptance_is_that_of_psi(case):
    assert acceptances_are_those_of_psi(DraftTree, case)


@given(st.tuples(questions(), TWELFTHS))
def test_every_refusal_is_that_of_psi(case):
    assert refusals_are_those_of_psi(DraftTree, case)


@pytest.mark.parametrize("holds", [acceptances_are_those_of_psi, refusals_are_those_of_psi])
def test_uncertified_decisions_are_rejected(holds, counterexample):
    assert counterexample(POSSIBLE, lambda case: holds(HalfTheFrontier, case))


def test_a_prefix_that_is_not_drafted_is_named():
    vocabulary = Vocabulary("ab")
    tree = DraftTree(vocabulary, iid_model(vocabulary, [1, 0]))
    with pytest.raises(ValueError, match=r"prefix = \(1,\): no drafted text starts"):
        list(tree.bounds((1,), 0))
    with pytest.raises(ValueError, match=r"tokens\[0\] = 2: expected 0 <= id < 2"):
        list(tree.bounds((), 2))


def test_bounds_that_do_not_decide_are_named():
    with pytest.raises(ValueError, match=r"bounds end before they decide .* < 0\.5"):
        is_less([Bounds(0, 1)], 0.5)
    with pytest.raises(ValueError, match=r"accept\[0\] end with 0 <= probability <= 1"):
        decide([Bounds(0, 1)], Exact(), "accept[0]")


ITERATIONS = iterations(heterogeneous_pairs(max_tokens=3) | non_injective_pairs(max_tokens=3))


@given(ITERATIONS, RULES, st.sampled_from(sorted(STEPS)))
def test_blocks_have_the_law_of_slrs(case, rule, verified):
    lazy, full = (
        output_distribution(lambda *case: step(*case, rule=rule), *case)[0]  # noqa: B023
        for step in STEPS[verified]
    )
    assert lazy == full


@pytest.mark.deep
def test_uncertified_bounds_are_lossy(counterexample, monkeypatch):
    monkeypatch.setattr(lazy_slrs, "DraftTree", HalfTheFrontier)
    assert counterexample(ITERATIONS, lambda case: is_lossless(lazy_slrs.step, *case))


def test_floats_have_the_same_law():
    for pair in toys()[:4]:
        target, drafter = as_float(pair.target), as_float(pair.drafter)
        laws = [
            exact_distribution(lambda chance: step(target, drafter, (), 2, chance))  # noqa: B023
            for step in STEPS["all tokens"]
        ]
        assert total_variation(*laws) < 1e-12


def one_round(keep):
    """Algorithm 3 whose residual proposes x ~ p once, and then draws from norm((p - psi)+)."""

    def step(target, drafter, context, lookahead, chance):
        tokens, rows = slrs.propose(target, drafter, context, lookahead, chance, fixed)
        p, row = target.next_token(context), rows[()]
        if tokens and chance.accept(min(1, p[tokens[0]] / row[tokens[0]]), "accept[0]"):
            return tokens[:1]
        token = chance.draw(p, "residual")
        if chance.accept(max(0, keep(p[token], row[token])), "keep"):
            return (token,)
        return (chance.draw(slrs.corrected(p, row), "rest"),)

    return step


@given(ITERATIONS)
def test_one_round_of_rejection_from_p_is_the_residual(case):
    assert is_lossless(one_round(lambda p, value: 1 - value / p), *case)


def test_keeping_by_the_excess_alone_is_rejected(counterexample):
    step = one_round(lambda p, value: p - value)
    assert counterexample(ITERATIONS, lambda case: is_lossless(step, *case))


@given(st.integers(1, 5).flatmap(lambda size: st.tuples(*[distributions(size)] * 2)))
def test_rejection_from_p_takes_two_evaluations(rows):
    """A round keeps with probability sum (p - psi)+ = 1 - sum min(p, psi): 1 + (1 - a)/(1 - a)."""
    p, row = rows
    submitted, proposed = np.flatnonzero(row), np.flatnonzero(p)
    kept = sum(p[x] * max(0, 1 - row[x] / p[x]) for x in proposed)
    rejected = sum(row[x] * (1 - min(1, p[x] / row[x])) for x in submitted)
    assert kept == rejected == 1 - np.minimum(p, row).sum()


@given(ITERATIONS)
def test_at_most_two_evaluations_are_expected(case):
    assert evaluations(lazy_slrs.single_token_step, case) <= 2


@pytest.mark.deep
@pytest.mark.parametrize("verified", sorted(STEPS))
def test_at_most_half_of_the_forwards(verified):
    """Drafting included; exact, over the toy pairs of the benchmark and lookahead 1 to 3."""
    sums = [both(toys(), STEPS[verified], lookahead, fixed) for lookahead in (1, 2, 3)]
    lazy, full = map(sum, zip(*sums, strict=True))
    assert lazy <= full / 2


@given(questions())
def test_no_context_is_asked_for_twice(question):
    arguments, prefix, token = question
    asked, full = Asked(arguments[1]), Asked(arguments[1])
    tree = DraftTree(arguments[0], asked, *arguments[2:])
    list(tree.bounds(prefix, token))
    list(tree.bounds((), 0))
    proposals(arguments[0], full, *arguments[2:])
    assert tree.forwards == len(asked.contexts)
    assert asked.contexts <= full.contexts


def test_a_text_that_goes_on_may_still_start_with_the_tokens_read_so_far():
    """ "ab" is undetermined ("abc" may come), and starts with a, b all the same."""
    target = iid_model(Vocabulary(["a", "b", "abc", "c"]), ["1/4"] * 4)
    drafter = iid_model(Vocabulary("abc"), ["1/2", "1/4", "1/4"])
    for step in (lazy_slrs.step, lazy_slrs.single_token_step):
        assert is_lossless(step, target, drafter, (), 3)
    arguments = (target.vocabulary, drafter, (), 3, fixed)
    for prefix in ((), (0,), (0, 1)):
        for token in range(4):
            assert certified(DraftTree, (arguments, prefix, token))


def test_a_text_that_no_token_starts_alone_cannot_start_another_token():
    """After "a" comes "b" alone: "a" has no tokens, and does not start with c."""
    target = Vocabulary(["ab", "c"])
    drafter = table_model(Vocabulary("abc"), {(0,): [0, 1, 0]}, ["1/2", 0, "1/2"])
    arguments = (target, drafter, (), 2, until_determined)
    for token in range(2):
        assert [*DraftTree(*arguments).bounds((), token)][-1].lower == Fraction(1, 2)
