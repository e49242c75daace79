"""SLRS on drafted paths: lossless with any kernel, and how much it accepts."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_tests.helpers.blocks import evaluations
from specref import Vocabulary, exact_distribution, is_lossless
from specref.algorithms import path_slrs
from specref.algorithms.text.path_kernels import (
    Drafting,
    canonical,
    path_acceptance,
    posterior,
    uniform,
)
from specref.chance import Sampled
from specref.models import hashed_model, iid_model
from specref.strategies import (
    contexts,
    distributions,
    heterogeneous_pairs,
    iterations,
    non_injective_pairs,
)
from specref.theory import fixed, psi, until_determined


def skewed(seed):
    """A kernel of weights that have to do with nothing; some paths have none."""

    def rule(drafting):
        alike = uniform(drafting)

        def kernel(token):
            weights = {path: hash((seed, path, token)) % 4 for path in alike(token)}
            total = sum(weights.values())
            if not total:
                return alike(token)
            return {path: Fraction(weight, total) for path, weight in weights.items()}

        return kernel

    return rule


KERNELS = st.sampled_from([canonical, uniform, posterior, *map(skewed, range(9))])
SMALL = iterations(heterogeneous_pairs(max_tokens=3), max_lookahead=2)


def path_step(kernel, rule=until_determined):
    def step(*case):
        return path_slrs.step(*case, kernel=kernel, rule=rule)

    return step


@given(SMALL, KERNELS)
def test_paths_are_lossless_with_any_kernel(case, kernel):
    assert is_lossless(path_step(kernel), *case)


@given(iterations(heterogeneous_pairs(max_tokens=3), 1) | iterations(non_injective_pairs(3), 1))
def test_paths_are_lossless_with_fixed_lookahead_and_texts_that_are_normalised(case):
    assert is_lossless(path_step(canonical, fixed), *case)


@given(SMALL, KERNELS)
def test_at_most_two_paths_are_read(case, kernel):
    assert evaluations(path_step(kernel), case) <= 2


@st.composite
def draftings(draw):
    """(p, a drafting of at least one draft): what a kernel is for."""
    target, drafter = draw(heterogeneous_pairs(longest=3))
    lookahead = draw(st.sampled_from([1, 2, 3]))
    context = draw(contexts(drafter.vocabulary))
    stop = until_determined(target.vocabulary, drafter.vocabulary, lookahead)
    p = draw(distributions(len(target.vocabulary)))
    law = psi(target.vocabulary, drafter, context, lookahead, until_determined)
    return p, law, Drafting(target.vocabulary, drafter, context, stop)


def on_both_sides(p, drafting, kernel):
    """Whether some token has a path with p kappa > Q and one with p kappa < Q."""
    signs = {}
    paths = [(drafting.token(path), path) for path in drafting.paths()]
    given = [(token, path) for token in range(len(p)) for path in kernel(token)]
    for token, path in {*paths, *given}:
        weight = drafting.weight(path)
        submitted = p[token] * kernel(token).get(path, 0)
        signs.setdefault(token, set()).add((submitted > weight) - (submitted < weight))
    return any({-1, 1} <= found for found in signs.values())


@given(draftings(), KERNELS)
def test_paths_accept_at_most_what_psi_does_and_as_much_iff_no_token_is_on_both_sides(
    case, kernel_rule
):
    p, law, drafting = case
    kernel = kernel_rule(drafting)
    most = np.minimum(p, law).sum()
    accepted = path_acceptance(p, drafting, kernel)
    assert accepted <= most
    assert (accepted == most) == (not on_both_sides(p, drafting, kernel))


@given(draftings())
def test_the_conditional_law_accepts_as_much_as_psi(case):
    p, law, drafting = case
    assert path_acceptance(p, drafting, posterior(drafting)) == np.minimum(p, law).sum()


@given(draftings(), KERNELS)
def test_where_p_is_psi_only_the_conditional_law_does(case, kernel_rule):
    _, law, drafting = case
    kernel, best = kernel_rule(drafting), posterior(drafting)
    same = all(
        {path: k for path, k in kernel(token).items() if k} == best(token)
        for token in np.flatnonzero(law)
    )
    assert (path_acceptance(law, drafting, kernel) == 1) == same


def test_other_kernels_can_accept_as_much(counterexample):
    """Equality does not make a kernel the conditional law."""

    def holds(case):
        p, law, drafting = case
        kernel, best = uniform(drafting), posterior(drafting)
        if path_acceptance(p, drafting, kernel) < np.minimum(p, law).sum():
            return True
        tokens = np.flatnonzero(np.minimum(p, law))
        return all(kernel(token) == best(token) for token in tokens)

    assert counterexample(draftings(), holds)


def test_paths_are_accepted_as_often_as_the_formula_says():
    target = hashed_model(Vocabulary(["a", "b", "ab"]), "p")
    drafter = hashed_model(Vocabulary("ab"), "q")
    stop = until_determined(target.vocabulary, drafter.vocabulary, 2)
    drafting = Drafting(target.vocabulary, drafter, (), stop)
    for kernel in (canonical, uniform, posterior):
        blocks = exact_distribution(
            lambda chance: path_slrs.step(target, drafter, (), 2, chance, kernel=kernel)  # noqa: B023
        )
        accepted = sum(weight for block, weight in blocks.items() if len(block) == 2)
        assert accepted == path_acceptance(target.next_token(()), drafting, kernel(drafting))


def halved(drafting):
    """A kernel of total mass 1/2."""
    kernel = uniform(drafting)
    return lambda token: {path: k / 2 for path, k in kernel(token).items()}


def swapped(drafting):
    """A kernel that gives the paths of another token."""
    kernel, size = uniform(drafting), len(drafting.vocabulary)
    return lambda token: kernel((token + 1) % size)


COIN = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
BIASED = iid_model(Vocabulary("ab"), ["1/4", "3/4"])


def test_a_kernel_that_is_not_normalised_is_named():
    with pytest.raises(
        ValueError, match=r"kernel\([01]\) = .*: expected probabilities that sum to 1"
    ):
        path_step(halved)(COIN, BIASED, (), 1, Sampled(np.random.default_rng(0)))


def test_a_kernel_of_another_tokens_paths_is_named():
    with pytest.raises(ValueError, match=r"kernel\([01]\) has path .*, whose first token is [01]"):
        path_step(swapped)(COIN, BIASED, (), 1, Sampled(np.random.default_rng(0)))


def test_a_kernel_that_is_not_normalised_is_lossy(monkeypatch):
    monkeypatch.setattr(path_slrs, "checked", lambda law, drafting: law)
    assert is_lossless(path_step(uniform), COIN, BIASED)
    assert not is_lossless(path_step(halved), COIN, BIASED)


def test_p_in_the_place_of_the_residual_is_lossy(monkeypatch, counterexample):
    def of_p(p, law, drafting, known, chance):
        return chance.draw(p, "residual")

    monkeypatch.setattr(path_slrs, "residual", of_p)
    assert counterexample(SMALL, lambda case: is_lossless(path_step(uniform), *case))
