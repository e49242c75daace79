"""Several drafts, trees and greedy blocks in floats: rounding neither raises nor changes a law.

Laws are compared with an enumeration in the same floats, and with the exact law, to 1e-12; where
p and q are near each other to 1e-9, as k-SEQ is right to no less.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from proofs_tests.helpers.tree_cases import Case, iteration, shaped
from specref import Vocabulary
from specref.algorithms import greedy_block, traversal
from specref.algorithms.greedy_block import MOST, Modification, carry, extended, law
from specref.algorithms.trees import topdown
from specref.algorithms.trees.k_seq import k_seq_law, smallest_rho
from specref.algorithms.trees.multi_draft import k_seq, optimal
from specref.algorithms.trees.transport import coupling, optimal_acceptance
from specref.chance import Exact, enumerate_paths, exact_distribution
from specref.distributions import as_distribution, total_variation
from specref.models import as_float, hashed_model, iid_model
from specref.proofs import completed
from specref.theory import greedy_block as greedy_theory
from specref.theory import multi_draft as theory
from specref.theory import trees as tree_theory
from specref.theory.block import draft_rows

F = Fraction
AB, ABC, SEVEN = Vocabulary("ab"), Vocabulary("abc"), Vocabulary("abcdefg")
UNIFORM = np.full(7, 1 / 7)
NEARLY = [
    (np.array(p), np.array(p) * (1 - np.array(less) * 2.0**-52))
    for p in ([0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.2, 0.5, 0.3])
    for less in itertools.product((-1, 0, 1), repeat=3)
]


def models(p, q, vocabulary=None):
    return (iid_model(vocabulary or Vocabulary("abcdefg"[: len(p)]), row) for row in (p, q))


def equal_rows(count, size):
    rng = np.random.default_rng(11)
    return [UNIFORM, *rng.dirichlet(np.ones(size), count)]


def law_of_paths(step, case):
    return exact_distribution(lambda chance: step(*case, chance))


def first_blocks(case):
    """The law of a block of greedy block verification, by enumeration."""
    blocks = {}
    for (block, _), weight in law_of_paths(greedy_block.iterate, case).items():
        blocks[block] = blocks.get(block, 0) + weight
    return blocks


def is_law(weights):
    return all(w >= 0 for w in weights.values()) and sum(weights.values()) == pytest.approx(1)


EXTREMES = [
    ([1.0, 0.0], [1e-200, 1.0]),
    ([1.0, 0.0], [1e-120, 1.0]),
    ([0.5, 0.5], [5e-324, 1.0]),
    ([1e-200, 1.0], [1.0, 0.0]),
    ([1e-200, 1.0], [1e-100, 1.0]),
    ([1e-100, 1.0], [1e-200, 1.0]),
    ([5e-324, 1.0], [1.0, 5e-324]),
]


@pytest.mark.parametrize(("p", "q"), EXTREMES)
def test_greedy_block_verification_at_extreme_ratios(p, q):
    """Ratios beyond all floats, and beneath: nothing overflows, and the target's law comes out."""
    target, drafter = models(p, q)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        blocks = exact_distribution(
            lambda chance: greedy_block.step(target, drafter, (), 2, chance)
        )
        text = exact_distribution(
            lambda chance: greedy_block.decode(target, drafter, (), 2, 3, chance)
        )
    longest = max(map(len, blocks))
    assert (
        total_variation(
            completed(blocks, target, (), longest), completed({(): 1.0}, target, (), longest)
        )
        < 1e-12
    )
    assert total_variation(text, completed({(): 1.0}, target, (), 3)) < 1e-12


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("least", [1e-200, 1e-120, 5e-324])
def test_a_certain_token_that_is_hardly_drafted(least):
    """Four drafts, of which the modifications of several iterations act on each other."""
    target, drafter = models([1.0, 0.0], [least, 1.0])
    blocks = exact_distribution(lambda chance: greedy_block.step(target, drafter, (), 4, chance))
    assert sum(blocks.values()) == pytest.approx(1)
    assert {token for block in blocks for token in block} == {0}
    decoded = exact_distribution(
        lambda chance: greedy_block.decode(target, drafter, (), 4, 3, chance)
    )
    assert decoded == {(0,) * 3: pytest.approx(1)}


def ratio(p, q):
    return extended(np.array([p]), np.array([q]), 0)


def test_exact_ratios_have_no_end():
    huge = F(2) ** 2000
    assert ratio(huge, F(1, 2)) == 2 * huge
    assert carry(
        *models([1, 0], [1 / huge, 1 - 1 / huge]), (), (0,), (Modification(huge, 3),)
    ) == (Modification(huge**2, 3),)
    with np.errstate(all="raise"):
        assert ratio(1.0, 5e-324) == ratio(MOST, 0.5) == MOST
        assert ratio(0.0, 5e-324) == 0
        assert ratio(0.75, 0.5) == 1.5


def test_a_modification_without_a_law_by_rounding_is_not_applied():
    """P < 1 by rounding alone: p, and not P p; for exact numbers that is an error."""
    target, drafter = models([0.25, 0.75], [0.25, 0.75])
    assert (law(target, drafter, (), (Modification(0.5, 3),)) == [0.25, 0.75]).all()
    exact = models(["1/4", "3/4"], ["1/4", "3/4"])
    with pytest.raises(ValueError, match="nothing to draw from"):
        law(*exact, (), (Modification(F(1, 2), 3),))


def greedy_law(target, drafter, context, lookahead):
    rows = draft_rows(target, drafter, context, lookahead)
    return greedy_theory.block_law(target, context, rows)


@pytest.mark.parametrize("lookahead", [1, 2])
def test_the_law_of_a_greedy_block_of_equal_models(lookahead):
    """All is accepted: no block is shorter, and none has a negative probability."""
    for p in equal_rows(40, 7):
        weights = greedy_law(*models(p, p, SEVEN), (), lookahead)
        assert is_law(weights)
        assert sum(w for b, w in weights.items() if len(b) <= lookahead) < 1e-12


def test_the_law_of_a_greedy_block_of_other_models():
    rng = np.random.default_rng(12)
    for p, q in rng.dirichlet(np.ones(3), (60, 2)):
        case = (*models(p, q), (), 2)
        weights = greedy_law(*case)
        assert is_law(weights)
        assert total_variation(weights, first_blocks(case)) < 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_the_law_of_a_greedy_block_is_the_exact_one(seed):
    """Models that look at the context, and EOS; the exact law is that of all paths."""
    vocabulary = (ABC, Vocabulary("abc", eos="c"))[seed % 2]
    pair = [hashed_model(vocabulary, f"{role} floats {seed}") for role in "pq"]
    exact = greedy_law(*pair, (), 2)
    assert exact == first_blocks((*pair, (), 2))
    assert total_variation(greedy_law(*map(as_float, pair), (), 2), exact) < 1e-12


TREES = {"topdown": topdown, "traversal": traversal}


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("rule", TREES)
@pytest.mark.parametrize("branching", [(2,), (3,), (1, 2)])
@pytest.mark.parametrize("replacement", [False, True])
def test_trees_of_models_that_are_nearly_equal(rule, branching, replacement):
    """27 pairs that differ in the last bit: what is left may be positive where none is refused."""
    for p, q in NEARLY:
        case = Case(*models(p, q), (), branching, replacement)
        weights = tree_theory.block_law(
            *case[:4], rule=getattr(tree_theory, rule), replacement=replacement
        )
        assert is_law(weights)
        lengths = tree_theory.accepted_length_distribution(
            *case[:4], rule=getattr(tree_theory, rule), replacement=replacement
        )
        assert all(weight >= 0 for weight in lengths)
        assert sum(weight * k for k, weight in enumerate(lengths)) == pytest.approx(len(branching))


@pytest.mark.parametrize("rule", TREES)
@pytest.mark.parametrize("replacement", [False, True])
def test_their_laws_are_those_of_all_paths(rule, replacement):
    for p, q in NEARLY[::4]:
        case = Case(*models(p, q), (), (2,), replacement)
        blocks = law_of_paths(shaped(TREES[rule], case), iteration(case))
        weights = tree_theory.block_law(
            *case[:4], rule=getattr(tree_theory, rule), replacement=replacement
        )
        assert total_variation(weights, blocks) < 1e-12


@pytest.mark.parametrize("drafts", [1, 2, 3])
def test_k_seq_of_equal_models_takes_rho_1(drafts):
    for p in equal_rows(100, 5):
        assert smallest_rho(p, p, drafts) == 1
        assert theory.k_seq(p, p, drafts, 1.0) == pytest.approx(1)
        assert theory.k_seq(p, p, drafts, F(1)) == pytest.approx(1)


def test_k_seq_of_equal_models_emits_p():
    tokens = np.zeros(7)
    for path in enumerate_paths(lambda chance: k_seq(UNIFORM, UNIFORM, 2, chance, 0)):
        tokens[path.outcome.token] += path.weight
    assert tokens == pytest.approx(UNIFORM, abs=1e-9)


def test_k_seq_refuses_in_floats_what_it_refuses_in_fractions():
    """Rounding is forgiven to 1e-9, and not more."""
    p, q = np.array([0.5, 1 / 3, 1 / 6]), np.array([1 / 6, 1 / 3, 0.5])
    for rho in (1, 1.0, F(1), 1.49):
        with pytest.raises(ValueError, match="token 1 would be accepted"):
            k_seq_law(p, q, 2, rho)
    exact = as_distribution(["1/2", "1/3", "1/6"]), as_distribution(["1/6", "1/3", "1/2"])
    barely = F(3, 2) - F(1, 10**12)
    with pytest.raises(ValueError, match="token 1 would be accepted"):
        k_seq_law(*exact, 2, barely)
    assert theory.k_seq(p, q, 2, barely) == pytest.approx(0.75)
    with pytest.raises(TypeError, match=r"rho = 1\.5: expected an exact number, as p has"):
        k_seq_law(*exact, 2, 1.5)


@pytest.mark.parametrize("rho", [F(3, 2), 1.5, 2])
def test_k_seq_of_floats_is_of_floats(rho):
    p, q = np.array([0.5, 1 / 3, 1 / 6]), np.array([1 / 6, 1 / 3, 0.5])
    assert [row.dtype for row in k_seq_law(p, q, 2, rho)] == [np.float64] * 2


def test_the_optimal_rule_refuses_floats_whatever_was_asked_before():
    p, q = as_distribution(["1/2", "1/2"]), as_distribution(["1/4", "3/4"])
    floats = p.astype(np.float64), q.astype(np.float64)
    optimal(p, q, 2, Exact(), 0)
    for given in (floats, (p, floats[1]), (floats[0], q), (p, floats[1].astype(object))):
        with pytest.raises(TypeError, match="p or q has floats: expected Fractions"):
            optimal(*given, 2, Exact(), 0)


def test_the_flow_refuses_floats():
    p = as_distribution(["1/2", "1/2"])
    with pytest.raises(TypeError, match="p has floats"):
        coupling(p.astype(np.float64), {(0,): F(1)})
    with pytest.raises(TypeError, match="law has floats"):
        coupling(p, {(0,): 1.0})


def test_the_cut_of_floats():
    p = np.array([0.5, 0.5])
    assert optimal_acceptance(p, {(0,): 0.5, (1,): 0.5}).acceptance == pytest.approx(1)
