"""Exact probing: laws recovered from other people's code equal the enumerated ones.

Nothing here is random: every law is compared with the one that enumeration in fractions gives,
for right samplers and for planted bugs, within the bound that probing itself declares.
"""

import copy
import itertools
import math
import random
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from specref.adapters import reference
from specref.algorithms.trees import topdown
from specref.contracts.capabilities import Capabilities, capable
from specref.contracts.fixtures import tree_place
from specref.contracts.tree import TreeVerifier, as_verifier
from specref.distributions import total_variation
from specref.models import iid_model
from specref.probing import edge_events, probe, probe_block, probe_verify
from specref.probing.blocks import probe_trees
from specref.probing.probe import MAX_PATHS, MAX_RUNS
from specref.probing.program import Program
from specref.probing.source import EscapedError
from specref.probing.tracing import traced_cells
from specref.statistics.campaign.levels import total_variation_test
from specref.vocabulary import Vocabulary
from specref.zoo import FIXTURES, MUTANTS
from specref.zoo.parts.standard import speculative

EXACT = 1e-6
W = np.array([0.1, 0.2, 0.0, 0.3, 0.4])
BUGS = {
    "lenience-5-4": {"lenience": 1.25},
    "residual-is-p": {"residual_is_p": True},
    "shared-u": {"shared": True},
}


def torch() -> Any:
    return pytest.importorskip("torch", reason="not_run (torch is not installed)")


# How a uniform is drawn: (rng, how many) -> something to index.
def scalars(rng, n):
    return [rng.random() for _ in range(n)]


def vector(rng, n):
    return rng.random((1, n))[0]


def uniform(rng, n):
    return rng.uniform(0, 2, size=n) / 2


def legacy(rng, n):
    return np.random.rand(n)  # noqa: NPY002


def python(rng, n):
    return [random.random() for _ in range(n)]


def rand(rng, n):
    return torch().rand(n, dtype=torch().float64)


def rand_items(rng, n):
    return [torch().rand(1).item() for _ in range(n)]


def rand_like(rng, n):
    return torch().rand_like(torch().empty(2, n))[1]


def uniform_(rng, n):
    return torch().empty(n).uniform_()


def floats(rng, n):
    return [float(u) for u in rng.random(n)]


# How a token is drawn: (weights, rng) -> token.
def choice(w, rng):
    return rng.choice(len(w), p=w / w.sum())


def multinomial(w, rng):
    return rng.multinomial(1, w / w.sum()).argmax()


def inverse(w, rng):
    u = rng.random() * w.sum()
    return next(i for i, end in enumerate(np.cumsum(w)) if u < end)


def searchsorted(w, rng):
    cdf = np.cumsum(w / w.sum())
    return np.searchsorted(cdf / cdf[-1], rng.random(), side="right")


def race(w, rng):
    with np.errstate(divide="ignore"):
        return np.argmin(rng.exponential(size=len(w)) / w)


def gumbel(w, rng):
    with np.errstate(divide="ignore"):
        return np.argmax(np.log(w) - np.log(-np.log(rng.random(len(w)))))


def gumbel_noise(w, rng):
    with np.errstate(divide="ignore"):
        return (np.log(w) + rng.gumbel(size=w.shape)).argmax()


def scalar_gumbel(w, rng):
    noise = [-math.log(-math.log(rng.random())) for _ in w]
    return max((i for i in range(len(w)) if w[i]), key=lambda i: math.log(w[i]) + noise[i])


def torch_multinomial(w, rng):
    return torch().multinomial(torch().from_numpy(w), 1).item()


def exponential_(w, rng):
    noise = torch().empty(len(w), dtype=torch().float64).exponential_()
    return torch().from_numpy(w).div_(noise).argmax(dim=-1)


def torch_gumbel(w, rng):
    noise = -torch().rand(1, len(w)).clamp_(min=1e-12).log_().neg_().log_()
    return (torch().from_numpy(w).log() + noise[0]).max(dim=-1).indices


def gumbel_softmax(w, rng):
    return torch().nn.functional.gumbel_softmax(torch().from_numpy(w).log()).argmax()


def categorical(w, rng):
    return torch().distributions.Categorical(torch().from_numpy(w)).sample()


def sampler(uniforms, last, *, lenience=1.0, residual_is_p=False, shared=False):
    """A plain verification of one row, with bugs that can be switched on."""

    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        p, q, drafts = target_probs[0], draft_probs[0], draft_tokens[0]
        coins = list(uniforms(rng, len(drafts)))
        block, weights = [], p[len(drafts)]
        for i, x in enumerate(drafts):
            if not coins[0 if shared else i] < lenience * p[i, x] / q[i, x]:
                weights = p[i] if residual_is_p else np.maximum(p[i] - q[i], 0)
                break
            block.append(x)
        block.append(int(last(weights, rng)))
        return np.array([block + [-1] * (len(drafts) + 1 - len(block))]), np.array([len(block)])

    return verify


PAIRS = [
    (scalars, choice),
    (scalars, inverse),
    (vector, searchsorted),
    (vector, race),
    (vector, gumbel),
    (uniform, gumbel_noise),
    (legacy, multinomial),
    (python, choice),
    (rand, torch_multinomial),
    (rand_items, choice),
    (rand_like, exponential_),
    (uniform_, torch_gumbel),
    (rand, categorical),
]
SEARCHED = [(floats, choice), (floats, race)]


def names(values):
    return [f"{uniforms.__name__}-{last.__name__}" for uniforms, last in values]


def distance(verify, fixture, step):
    """From the enumerated law of a step; probing must know its own error."""
    probed = probe_block(verify, fixture.target, fixture.drafter, (), fixture.lookahead)
    assert probed.uninterpreted is None
    law = {key: float(weight) for key, weight in fixture.output(step).items()}
    assert total_variation(probed.output, law) <= probed.error_bound <= EXACT
    exact = total_variation(law, {k: float(w) for k, w in fixture.continued().items()})
    assert abs(probed.total_variation - exact) <= probed.error_bound
    return probed


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize(("uniforms", "last"), PAIRS, ids=names(PAIRS))
def test_right_samplers_are_lossless_exactly(uniforms, last):
    verify = sampler(uniforms, last)
    probed = distance(verify, FIXTURES["c"], speculative())
    assert probed.total_variation <= EXACT
    assert {one.way for one in probed.by_drafts.values()} == {"traced"}
    assert probed.assumptions == ()


@pytest.mark.deep(one_in=32)
@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.parametrize(("uniforms", "last"), PAIRS, ids=names(PAIRS))
def test_planted_bugs_have_their_exact_distance(uniforms, last, bug):
    probed = distance(sampler(uniforms, last, **BUGS[bug]), FIXTURES["c"], MUTANTS[bug].step)
    assert probed.total_variation > 0.01


@pytest.mark.deep
@pytest.mark.parametrize(("uniforms", "last"), SEARCHED, ids=names(SEARCHED))
@pytest.mark.parametrize("bug", [None, "residual-is-p"])
def test_untraced_samplers_are_searched(uniforms, last, bug):
    step = MUTANTS[bug].step if bug else speculative()
    probed = distance(sampler(uniforms, last, **BUGS.get(bug, {})), FIXTURES["m"], step)
    assert (probed.total_variation > 0.01) == bool(bug)
    assert {one.way for one in probed.by_drafts.values()} == {"searched"}
    assert "stratified probes" in probed.assumptions[0]


@pytest.mark.parametrize("name", ["wide", "deep", "eos"])
def test_larger_fixtures(name):
    probed = distance(sampler(vector, inverse), FIXTURES[name], speculative())
    assert probed.total_variation <= EXACT


def test_uniform_that_rejected_is_used_again():
    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        p, q, drafts = target_probs[0], draft_probs[0], draft_tokens[0]
        for i, x in enumerate(drafts):
            u = rng.random()
            if u >= p[i, x] / q[i, x]:
                residual = np.maximum(p[i] - q[i], 0)
                last = np.searchsorted(np.cumsum(residual / residual.sum()), u, side="right")
                block = [*drafts[:i], min(last, 4)]
                return np.array([block + [-1] * (2 - i)]), np.array([i + 1])
        return np.array([[*drafts, rng.choice(5, p=p[-1])]]), np.array([3])

    probed = distance(verify, FIXTURES["wide"], MUTANTS["recovery-reuses-accept-u"].step)
    assert probed.total_variation > 0.01


# Coins as an argument.
@capable(rule="standard", recovery="inverse")
def by_inverse_cdf(target_probs, draft_probs, draft_tokens, *, coins, number=lambda u: u):
    p, q, drafts = target_probs[0], draft_probs[0], draft_tokens[0]
    block, weights = [], p[-1]
    for i, x in enumerate(drafts):
        if not number(coins.accept[0, i]) < p[i, x] / q[i, x]:
            weights = np.maximum(p[i] - q[i], 0)
            break
        block.append(x)
    ends = np.cumsum(weights)
    block.append(int((ends <= number(coins.final[0]) * ends[-1]).sum()))
    return np.array([block + [-1] * (len(drafts) + 1 - len(block))]), np.array([len(block)])


def without_residual(target_probs, draft_probs, draft_tokens, *, coins):
    tokens, counts = reference.verify(
        target_probs, draft_probs, draft_tokens, rng=None, coins=coins
    )
    for row, count in enumerate(counts):
        p = target_probs[row, count - 1]
        weights = np.where(p > 0, p, 1e-300)
        tokens[row, count - 1] = np.argmin(coins.race[row] / weights)
    return tokens, counts


@pytest.mark.deep
def test_coins_raced_as_the_reference_does():
    probed = distance(reference.verify, FIXTURES["m"], speculative())
    assert {call.name for call in probed.calls} == {"coins.accept", "coins.race"}


@pytest.mark.deep
def test_coins_with_a_planted_bug():
    probed = distance(without_residual, FIXTURES["m"], MUTANTS["residual-is-p"].step)
    assert probed.total_variation > 0.01


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(("number", "way"), [(lambda u: u, "traced"), (float, "searched")])
def test_coins_with_an_inverse_cdf(number, way):
    verify = partial(by_inverse_cdf, number=number)
    verify.__qualname__ = "by_inverse_cdf"
    probed = distance(verify, FIXTURES["m"], speculative())
    assert {one.way for one in probed.by_drafts.values()} == {way}


def all_rows(p, q, drafts, *, rng):
    """All positions at once in NumPy; the noise of a row serves every position."""
    ratios = (p[:, :-1] / q)[0, np.arange(2), drafts[0]]
    count = int(np.cumprod(rng.random(2) < ratios).sum())
    rows = np.concatenate([np.maximum(p[0, :-1] - q[0], 0), p[0, -1:]])
    with np.errstate(divide="ignore"):
        last = (rng.standard_exponential(rows.shape[1]) / rows).argmin(axis=1)
    block = [*drafts[0, :count], last[count]]
    return np.array([block + [-1] * (2 - count)]), np.array([count + 1])


def all_rows_in_torch(p, q, drafts, *, generator=None):
    """All positions at once, as engines do, each with noise of its own."""
    t = torch()
    p, q, drafts = t.from_numpy(p).float(), t.from_numpy(q).float(), t.from_numpy(drafts)
    lookahead = q.shape[1]
    picked = [rows[:, :lookahead].gather(2, drafts[..., None])[..., 0] for rows in (p, q)]
    accepted = t.rand(1, lookahead, generator=generator) < picked[0] / picked[1]
    count = accepted.int().cumprod(dim=1).sum(dim=1)
    noise = t.empty_like(q).exponential_(generator=generator)
    recovered = ((p[:, :lookahead] - q).clamp(min=0) / noise).argmax(dim=-1)
    bonus = t.multinomial(p[:, lookahead], 1, generator=generator)
    last = t.cat([recovered, bonus], dim=1).gather(1, count[:, None])
    tokens = t.cat([drafts, drafts[:, :1]], dim=1).scatter(1, count[:, None], last)
    tokens[t.arange(lookahead + 1) > count[:, None]] = -1
    return tokens, count + 1


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(
    ("verify", "way"), [(all_rows_in_torch, "traced"), (all_rows, "searched")]
)
def test_all_positions_at_once(verify, way):
    p = np.array([[0.1, 0.3, 0.2, 0.4], [0.2, 0.1, 0.3, 0.4], [0.125, 0.375, 0.25, 0.25]])
    q = np.array([[0.4, 0.1, 0.4, 0.1], [0.1, 0.6, 0.1, 0.2]])
    probed = probe_verify(verify, p, q, (0, 1))
    expected = probe_verify(sampler(scalars, choice), p, q, (0, 1)).distribution
    assert total_variation(probed.distribution, expected) <= probed.error_bound <= EXACT
    assert (probed.way, len(expected)) == (way, 9)


# The public implementation.
@pytest.fixture(scope="module")
def transformers():
    pytest.importorskip("transformers", reason="not_run (transformers is not installed)")
    from specref.contrib.engines.transformers import load_verify

    return load_verify()


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("name", ["c", "wide", "deep"])
def test_transformers_is_lossless_to_rounding(transformers, name):
    fixture = FIXTURES[name]
    probed = probe_block(transformers, fixture.target, fixture.drafter, (), fixture.lookahead)
    assert probed.uninterpreted is None
    assert probed.total_variation + probed.error_bound <= EXACT
    assert {"torch.rand_like", "torch.multinomial"} <= {call.name for call in probed.calls}
    assert {one.way for one in probed.by_drafts.values()} == {"traced"}


def test_transformers_accepts_an_impossible_draft_at_0(transformers):
    """`r <= p / q` holds for p = 0 where torch.rand_like gives exactly 0: 2^-24 of the time."""
    p, q = np.array([[0.0, 0.5, 0.5], [0.2, 0.3, 0.5]]), np.array([[0.5, 0.5, 0.0]])
    event, *others = edge_events(transformers, p, q, (0,))
    assert (event.value, event.chance, event.call.name) == (0.0, 2**-24, "torch.rand_like")
    assert "token 0 at position 0 has target probability 0" in str(event)
    assert not others
    law = probe_verify(transformers, p, q, (0,)).distribution
    assert math.isclose(sum(w for block, w in law.items() if block[0] == 0), 2**-24)


# Single draws.
@pytest.mark.parametrize("last", [scalar_gumbel, gumbel_softmax])
def test_one_draw(last):
    rng, law = np.random.default_rng(1), {(0,): 0.1, (1,): 0.2, (3,): 0.3, (4,): 0.4}
    probed = probe(lambda: (last(W.copy(), rng),))
    assert total_variation(probed.distribution, law) <= probed.error_bound <= EXACT


@pytest.mark.parametrize(
    ("dtype", "bits"), [("float64", 53), ("float32", 24), ("float16", 11), ("bfloat16", 8)]
)
def test_the_grid_of_uniforms_is_counted(dtype, bits):
    t = torch()

    def strict_and_not():
        u, half = t.rand(2, dtype=getattr(t, dtype)), t.tensor(0.5, dtype=getattr(t, dtype))
        return (int(u[0] < half), int(u[1] <= half))

    law = probe(strict_and_not).distribution
    assert law[1, 0] + law[1, 1] == 0.5
    assert math.isclose(law[0, 1] + law[1, 1], 0.5 + (2.0**-bits if bits < 30 else 0))


def test_rare_tokens_are_found_by_tracing_and_may_be_missed_by_search():
    """What `Probed.assumption` means: an interval of 1/2000 between probes stays unseen."""
    rng, w = np.random.default_rng(1), np.array([0.462, 5e-4, 0.5375])
    assert probe(lambda: (inverse(w, rng),)).distribution[1,] == pytest.approx(5e-4)
    searched = probe(lambda: (int(0.462 <= float(rng.random()) < 0.4625),))
    assert searched.way == "searched"
    assert searched.assumption
    assert searched.distribution == {(0,): 1.0}


def test_integers_from_uniforms():
    rng = np.random.default_rng(1)
    law = probe(lambda: (int(rng.random() * 3), rng.integers(2), rng.choice([5, 6]))).distribution
    assert len(law) == 12
    assert all(weight == pytest.approx(1 / 12, abs=1e-12) for weight in law.values())


def test_draws_without_replacement():
    rng = np.random.default_rng(1)
    law = probe(lambda: tuple(rng.choice(3, 2, replace=False, p=[0.5, 0.25, 0.25]))).distribution
    assert law[0, 1] == pytest.approx(0.25)
    assert law[1, 0] == pytest.approx(1 / 6)
    whole = probe(lambda: tuple(rng.choice(3, 3, replace=False, p=[0.5, 0.25, 0.25]))).distribution
    assert whole == pytest.approx({(*two, 3 - sum(two)): weight for two, weight in law.items()})
    two = torch().tensor([0.5, 0.25, 0.25])
    again = probe(lambda: tuple(torch().multinomial(two, 2))).distribution
    assert total_variation(law, again) <= 1e-12


def test_counts_and_choices():
    rng = np.random.default_rng(1)
    # NumPy gives the last value whatever the other probabilities leave.
    law = probe(lambda: (rng.multinomial(1, [0.25, 0.0, 0.25]).argmax(),)).distribution
    assert law == pytest.approx({(0,): 0.25, (2,): 0.75})
    law = probe(lambda: (rng.binomial(2, 0.25), random.choices("12", [1, 3])[0])).distribution
    assert law[0, 1] == pytest.approx(9 / 64)
    assert law[2, 2] == pytest.approx(3 / 64)


def test_integers_that_are_no_seeds_are_searched():
    rng = np.random.default_rng(1)
    probed = probe(lambda: (int(rng.integers(2**53) / 2**53 < 0.05),))
    assert probed.way == "searched"
    assert probed.distribution == pytest.approx({(0,): 0.95, (1,): 0.05})


def test_seeds_are_spread_evenly():
    """The middles of 16 parts of all that a seed may be, whichever other runs there are."""
    rng, seeds = np.random.default_rng(0), set()

    def sampler():
        seeds.add(int(rng.integers(2**63)) / 2**63)
        return int(rng.random() < 0.25)

    probed = probe(sampler)
    assert probed.uninterpreted is None
    assert {(k + 0.5) / 16 for k in range(16)} <= seeds


def test_seeds_are_named():
    t, rng = torch(), np.random.default_rng(1)

    def seeded():
        generator = t.Generator().manual_seed(int(rng.integers(2**63)))
        return (t.rand(1, generator=generator) < 0.25,)

    probed = probe(seeded)
    assert probed.distribution == {(0,): 0.75, (1,): 0.25}
    assert "seeds drawn by Generator.integers" in str(probed.assumption)


def test_comparisons_that_flip_twice_are_searched():
    """log(u - 1/2) < log(1/4) holds for u in (1/2, 3/4), and is NaN below."""
    rng = np.random.default_rng(1)
    probed = probe(lambda: (int(np.log(rng.random(1) - 0.5)[0] < math.log(0.25)),))
    assert probed.way == "searched"
    assert probed.distribution == pytest.approx({(0,): 0.75, (1,): 0.25})


def test_functions_of_a_number_of_one_sign_are_traced():
    """Up to 0 at an end of what is known of the number, which has its sign then."""
    rng = np.random.default_rng(1)

    def near_the_middle():
        u = rng.random()
        below = u <= 0.5
        return (int(below), int(abs(u - 0.5 if below else 0.5 - u) < 0.125))

    probed = probe(near_the_middle)
    assert probed.way == "traced"
    law = {(0, 0): 0.375, (0, 1): 0.125, (1, 0): 0.375, (1, 1): 0.125}
    assert probed.distribution == pytest.approx(law, abs=1e-12)
    assert probe(lambda: (int(abs(rng.random() - 0.5) < 0.125),)).way == "searched"


def test_copies_are_the_same_numbers():
    rng = np.random.default_rng(1)

    def copied():
        u = rng.random(2)
        twin = copy.deepcopy(u)
        return (u[0] < 0.25, twin[0] < 0.25)

    assert probe(copied).distribution == {(0, 0): 0.75, (1, 1): 0.25}


def test_bernoulli():
    t = torch()
    law = probe(lambda: tuple(t.bernoulli(t.tensor([0.25, 0.5], dtype=t.float64)))).distribution
    assert law == {(0, 0): 0.375, (0, 1): 0.375, (1, 0): 0.125, (1, 1): 0.125}


# What cannot be interpreted is named.
def noise_twice(rng):
    noise = rng.standard_exponential(3)
    return (np.argmin(noise / W[:2].repeat(2)[:3]), np.argmin(noise / W[1:4:2].repeat(2)[:3]))


NAMED = {
    "Generator.normal": lambda rng: (rng.normal() > 0,),
    "Generator.permutation": lambda rng: rng.permutation(3),
    "numpy.random.RandomState": lambda rng: (np.random.RandomState(1).rand() < 0.5,),
    "numpy.random.randn": lambda rng: (np.random.randn() > 0,),  # noqa: NPY002
    "random.shuffle": lambda rng: random.shuffle([1, 2, 3]),
    "random.Random": lambda rng: (random.Random(3).random() < 0.5,),
    "Generator.bit_generator": lambda rng: (rng.bit_generator.random_raw() % 2,),
    "torch.randn": lambda rng: (torch().randn(1) > 0,),
    "torch.randperm": lambda rng: torch().randperm(3),
    "torch.normal_": lambda rng: (torch().empty(1).normal_() > 0,),
    "Generator.choice": lambda rng: rng.choice(np.eye(2), axis=1)[0],
    "Generator.multinomial": lambda rng: rng.multinomial([1, 1], [0.5, 0.5])[0],
    "Generator.integers": lambda rng: rng.integers([2, 3]),
    "torch.randint": lambda rng: torch().randint(10**6, (2,)),
    "torch.rand": lambda rng: (torch().rand(1, dtype=torch().complex64).real < 0.5,),
    "Generator.random": lambda rng: (np.argmax(np.log(W[:2]) - np.log(rng.random(2))),),
    "Generator.exponential": lambda rng: (rng.exponential() < 5 - rng.exponential(),),
    "Generator.standard_exponential": noise_twice,
}


@pytest.mark.parametrize("name", NAMED)
def test_calls_without_a_reading_are_named(name):
    rng = np.random.default_rng(1)
    probed = probe(lambda: NAMED[name](rng))
    assert probed.uninterpreted is not None
    assert probed.uninterpreted.startswith(f"{name}, shape (")
    assert f"{__file__}:" in probed.uninterpreted
    assert (probed.way, probed.distribution) == ("none", {})


ROW = [0.25, 0.75]
CALLS = {
    "random([2])": lambda rng: rng.random([2]) < 0.5,
    "random(np.int64(2), 'float32')": lambda rng: rng.random(np.int64(2), "float32") < 0.5,
    "random(out=…)": lambda rng: rng.random(out=np.empty(2)) < 0.5,
    "uniform([…], […])": lambda rng: rng.uniform([0, -1], [1, 2]) < 0.5,
    "uniform(0, […])": lambda rng: rng.uniform(0, [1, 2]) < 0.5,
    "uniform(…, size)": lambda rng: rng.uniform([0, 0], 1, (1, 2))[0] < 0.5,
    "uniform()": lambda rng: [rng.uniform() < 0.5, rng.uniform(1, 3) < 1.5],
    "exponential([…])": lambda rng: rng.exponential([1, 2]) < 0.5,
    "standard_exponential(method)": lambda rng: rng.standard_exponential(1, method="inv") < 0.5,
    "gumbel([…])": lambda rng: [np.argmax(rng.gumbel([0, 0]) + np.log(ROW))],
    "gumbel(0, […])": lambda rng: rng.gumbel(0, [1, 2]) < 0,
    "choice([…], p)": lambda rng: [rng.choice([1, 0], p=ROW)],
    "choice(range)": lambda rng: [rng.choice(range(2))],
    "choice(…, replace=False)": lambda rng: rng.choice(2, 2, False, ROW),
    "choice([[…], […]])": lambda rng: rng.choice([[0, 1], [1, 0]]),
    "multinomial(…, size)": lambda rng: rng.multinomial(np.int64(1), ROW, (1, 2))[0, :, 0],
    "binomial([…], […])": lambda rng: rng.binomial([1, 2], ROW),
    "integers(bool)": lambda rng: [rng.integers(0, 2, dtype=bool)],
    "integers(2.0)": lambda rng: [rng.integers(2.0)],
    "integers(endpoint)": lambda rng: rng.integers(np.array(1), size=(2,), endpoint=True),
    "numpy.random.randint": lambda rng: [np.random.randint(2)],  # noqa: NPY002
    "numpy.random.choice": lambda rng: [np.random.choice([0, 1], p=ROW)],  # noqa: NPY002
    "numpy.random.uniform": lambda rng: np.random.uniform(0, [2]) < 0.5,  # noqa: NPY002
    "random.choices": lambda rng: random.choices([0, 1], ROW, k=2),
}  # fmt: skip


@pytest.fixture
def seeded():
    """The global generators with a seed, and as they were at the end."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    yield
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002


@pytest.mark.parametrize("made", [copy.deepcopy, lambda rng: rng.spawn(2)[1]])
def test_generators_made_of_one_are_probed_too(made):
    rng = np.random.default_rng(1)
    probed = probe(lambda: (int(made(rng).random() < 0.25), int(rng.random() < 0.5)))
    law = {(a, b): (0.375, 0.125)[a] for a in range(2) for b in range(2)}
    assert probed.distribution == law
    assert probed.way == "traced"


@pytest.mark.deep(one_in=4)
@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("name", CALLS)
def test_what_numpy_takes_is_taken_and_has_its_law(name):
    """Alpha 1e-9 each; power: 4,000 runs find a law over four outcomes that is 0.1 away."""

    def program():
        return tuple(int(x) for x in CALLS[name](rng))

    rng = np.random.default_rng(1)
    seen = Counter(program() for _ in range(4_000))
    probed = probe(program)
    assert (probed.failures, probed.uninterpreted) == ({}, None)
    assert not total_variation_test(seen, probed.distribution).rejected


def test_what_numpy_refuses_is_a_failure():
    rng = np.random.default_rng(1)
    for refused in (lambda: rng.integers(3, 3), lambda: rng.choice(2, p=[0.5, 0.6])):
        (failure,) = probe(refused).failures
        assert failure.startswith("ValueError: ")


def test_many_integers_of_a_long_range_are_named():
    rng = np.random.default_rng(1)
    probed = probe(lambda: rng.integers(10**6, size=2))
    assert "expected at most" in str(probed.uninterpreted)
    assert (probed.way, probed.distribution) == ("none", {})


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize(
    "below_a_quarter",
    [
        lambda u: np.log2(u) < -2,
        lambda u: np.log1p(u) < math.log1p(0.25),
        lambda u: np.exp(u) < math.exp(0.25),
        lambda u: np.sqrt(u) < 0.5,
        lambda u: u**2 < 1 / 16,
        lambda u: +u < 0.25,
        lambda u: u.item() < 0.25,
        lambda u: int(4 * u) == 0,
        lambda u: math.floor(4 * u) == 0,
        lambda u: np.floor(4 * u) == 0,
        lambda u: u < 0.25 and u != 0.125 and u == u,
        lambda u: bool(u) and u < 0.25,
    ],
)
def test_functions_of_a_number_have_their_law(below_a_quarter):
    rng = np.random.default_rng(1)
    probed = probe(lambda: (int(below_a_quarter(np.float64(rng.random()))),))
    assert probed.distribution == pytest.approx({(0,): 0.75, (1,): 0.25}, abs=1e-9)
    traced = probe(lambda: (int(below_a_quarter(rng.random(1)[0])),))
    assert traced.distribution == pytest.approx({(0,): 0.75, (1,): 0.25}, abs=1e-9)
    assert traced.way == "traced"


def draw64(n=1):
    return torch().rand(n, dtype=torch().float64)


def by_its_type(rng):
    u = rng.random()
    return isinstance(u, float) and 0.375 < u < 0.625


def asks_for_more(rng):
    u = rng.random()
    if isinstance(u, float):
        rng.random()
    return u < 0.25


# Uses of a number that no trace follows: (code, why, the probability of True).
UNTRACED = {
    "with itself": (
        lambda rng: (u := rng.random()) * 2 < u + 0.5, "two numbers made of one", 0.5,
    ),
    "float": (lambda rng: float(rng.random()) < 0.25, "is converted to a float", 0.25),
    "int": (lambda rng: int(rng.random() * 100) < 25, "is converted to an integer", 0.25),
    "int below 0": (lambda rng: int(rng.random() * 2 - 1.5) < 0, "converted to an integer", 0.25),
    "pole": (lambda rng: 1 / (rng.random() - 0.5) > 4, "that is not monotone", 0.25),
    "square": (lambda rng: (rng.random() - 0.5) ** 2 < 1 / 16, "that is not monotone", 0.5),
    "abs": (lambda rng: abs(rng.random() - 0.5) < 1 / 8, "that is not monotone", 0.25),
    "log below 0": (
        lambda rng: np.log(rng.random(1) - 0.5)[0] > -2, "NaN in places", 0.5 - math.exp(-2),
    ),
    "its type": (by_its_type, "which no trace leads to", 0.25),
    "more of its type": (asks_for_more, "a replay with numbers asks for others", 0.25),
    "tensor as float": (lambda rng: float(draw64()) < 0.25, "leaves torch", 0.25),
    "tensor as int": (lambda rng: int(draw64() * 4) < 1, "leaves torch", 0.25),
    "tensor elsewhere": (lambda rng: np.from_dlpack(draw64())[0] < 0.25, "leaves torch", 0.25),
    "tensor of int": (lambda rng: (draw64() * 4).long()[0] < 1, "to integers", 0.25),
    "sine": (lambda rng: draw64().sin()[0] < 0.5, "torch operation sin on", math.asin(0.5)),
}  # fmt: skip


@pytest.mark.deep(one_in=9)
@pytest.mark.parametrize("name", UNTRACED)
def test_what_cannot_be_traced_says_why_and_is_searched(name):
    code, why, chance = UNTRACED[name]
    rng = np.random.default_rng(1)
    probed = probe(lambda: (int(code(rng)),))
    assert probed.way == "searched"
    assert why in str(probed.untraced)
    assert probed.distribution == pytest.approx({(0,): 1 - chance, (1,): chance}, abs=1e-9)


def lost_before(rng):
    first, second, third = rng.exponential(size=3)
    won = first < second
    return won, (second if won else first) < third


def won_before(rng):
    first, second = rng.exponential(size=2)
    won = first < second
    return won, (first if won else second) < 1


def bounded_before(rng):
    u, v = rng.random(2)
    return u < 0.5, -np.log(u) < -np.log(v)


def raced_in_two_ways(rng):
    x, y = -np.log(rng.random(2)), -np.log1p(-rng.random(2))
    first = [a if a < 2 * b else 2 * b for a, b in (x, y)]
    return (first[0] < first[1],)


NO_RACES = {
    lost_before: "is used again after a race",
    won_before: "is compared with a number after a race",
    bounded_before: "a bounded number of",
    raced_in_two_ways: "race in two ways",
    lambda rng: (rng.exponential() < 5 - rng.exponential(),): "not in an exponential race",
    lambda rng: (rng.random() + rng.random() < 1,): "are combined",
}
"""Comparisons whose law is not that of a race of fresh noise."""


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(("code", "why"), NO_RACES.items())
def test_noise_that_something_is_known_of_has_no_exact_law(code, why):
    rng = np.random.default_rng(1)

    def program():
        return tuple(map(int, code(rng)))

    with pytest.raises(EscapedError, match=why):
        traced_cells(Program(lambda source: program(), program, MAX_RUNS), MAX_PATHS)
    probed = probe(program)
    assert (probed.way, probed.distribution) == ("none", {})
    assert "neither boxes nor a race" in str(probed.uninterpreted)


@pytest.mark.parametrize(
    ("draw", "below"),
    [
        (lambda t: t.uniform_(1, 3), 1.5),
        (lambda t: t.uniform_(-1), -0.5),
        (lambda t: t.uniform_(**{"from": -1}), -0.5),
        (lambda t: t.uniform_(to=2), 0.5),
        (lambda t: t.uniform_(0, 2), 0.5),
        (lambda t: t.uniform_(), 0.25),
    ],
)
def test_bounds_of_uniform_(draw, below):
    probed = probe(lambda: (int(draw(torch().empty(1, dtype=torch().float64)) < below),))
    assert probed.distribution == {(0,): 0.75, (1,): 0.25}
    assert probed.way == "traced"


def test_choices_by_cumulated_weights():
    probed = probe(lambda: tuple(random.choices(range(3), cum_weights=[1, 2, 4])))
    assert probed.distribution == {(0,): 0.25, (1,): 0.25, (2,): 0.5}


def test_no_exception_handler_hides_it():
    def careful():
        try:
            return (np.random.default_rng(1).normal() > 0,)
        except Exception:
            return (0,)

    assert "Generator.normal" in str(probe(careful).uninterpreted)


def test_randomness_from_elsewhere_is_noticed():
    probed = probe(lambda: (secrets.randbelow(2**60),))
    assert "not intercepted" in str(probed.uninterpreted)


@pytest.mark.parametrize("elsewhere", [True, False])
def test_drafts_after_the_first_show_what_is_not_intercepted(elsewhere):
    """Fewer runs are repeated there; replays of each path, or the search, still notice it."""
    kept, others = [], itertools.cycle([0.0, 0.5])

    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        draft, number = int(draft_tokens[0, 0]), rng.random()
        if draft and elsewhere:
            number = next(others)
        elif draft:
            kept.append(number)
            number = rng.random() if len(kept) % 3 else kept[-2]
        return np.array([[draft, int(number < 0.25)]]), np.array([2])

    pair = iid_model(Vocabulary("ab"), ["3/4", "1/4"])
    probed = probe_block(verify, pair, pair)
    told = "not intercepted" if elsewhere else "kept between calls"
    assert told in str(probed.uninterpreted)
    assert (0,) in probed.by_drafts


@pytest.mark.parametrize("weights", [[0.0, 0.0], [np.nan, 1.0], [-1.0, 2.0], [np.inf, 1.0]])
def test_torch_says_what_it_says_of_weights_that_it_refuses(weights):
    t = torch()
    probed = probe(lambda: t.multinomial(t.tensor([weights]), 1)[0])
    with pytest.raises(RuntimeError) as said:
        t.multinomial(t.tensor([weights]), 1)
    assert probed.failures == {f"RuntimeError: {said.value}": 1.0}


def test_block_with_an_uninterpreted_call():
    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        return np.array([[int(rng.normal() > 0), -1]]), np.array([1])

    fixture = FIXTURES["m"]
    probed = probe_block(verify, fixture.target, fixture.drafter)
    assert "Generator.normal" in str(probed.uninterpreted)
    assert (probed.output, probed.total_variation) == ({}, 1.0)
    assert str(probed) == f"not interpreted: {probed.uninterpreted}"


def test_a_trace_that_a_replay_contradicts_is_not_used():
    """Code that looks at the type of a number: it would be traced wrongly."""
    rng = np.random.default_rng(1)

    def suspicious():
        u = rng.random()
        return (int(u < 0.25) if isinstance(u, float) else 7,)

    probed = probe(suspicious)
    assert probed.way == "searched"
    assert "a replay with numbers gives" in str(probed.untraced)
    assert probed.distribution == pytest.approx({(0,): 0.75, (1,): 0.25})


def test_endless_code_is_given_up():
    rng = np.random.default_rng(1)

    def stubborn():
        tries = 1
        while rng.random() < 0.999:
            tries += 1
        return (tries,)

    probed = probe(stubborn, max_paths=20)
    assert "Generator.random" in str(probed.uninterpreted)
    assert "more than 10,000 numbers a run" in str(probed.uninterpreted)


def test_runs_are_limited():
    rng = np.random.default_rng(1)
    probed = probe(lambda: tuple(rng.choice(9, 9)), max_runs=300)
    assert probed.uninterpreted == "more than max_runs = 300 runs"


def test_calls_of_all_runs_are_limited():
    rng = np.random.default_rng(1)

    def stubborn():
        """Few runs are enough for its one cut, but each takes 40 calls."""
        return (sum(rng.random() < 0.5 for _ in range(40)) % 2,)

    probed = probe(stubborn, max_runs=300)
    assert re.fullmatch(
        r"more than 3,000 calls for numbers in \d\d runs", str(probed.uninterpreted)
    )


def test_trees_take_a_number_of_runs():
    p, q = (iid_model(Vocabulary("ab"), row) for row in ([0.25, 0.75], [0.5, 0.5]))
    verifier = TreeVerifier(as_verifier(topdown.verify), Capabilities())
    found = probe_trees(verifier, p, q, tree_place((), (2,)), max_runs=5)
    assert found.uninterpreted == "more than max_runs = 5 runs"


# Failures and edges.
def test_failures_have_a_probability():
    rng = np.random.default_rng(1)

    def fragile():
        if rng.random() < 0.25:
            raise ArithmeticError("nothing left")
        return (1,)

    probed = probe(fragile)
    assert probed.failures == {"ArithmeticError: nothing left": 0.25}
    assert probed.distribution == {(1,): 0.75}


def test_broken_answers_are_failures_and_lost_mass():
    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        return np.array([[9 if rng.random() < 0.5 else 1, -1]]), np.array([1])

    fixture = replace(FIXTURES["m"], lookahead=1)
    probed = probe_block(verify, fixture.target, fixture.drafter)
    assert [(text[:19], weight) for text, weight in probed.failures.items()] == [
        ("BrokenContractError", pytest.approx(0.5))
    ]
    # P(1) = 1/6 in the target: half of |1/2 - 1/6| + 5/6, and of the lost 1/2.
    assert probed.total_variation == pytest.approx(5 / 6)


def test_strict_comparisons_have_no_edges():
    p, q = np.array([[0.0, 1.0], [0.5, 0.5]]), np.array([[0.5, 0.5]])
    assert edge_events(sampler(scalars, choice), p, q, (0,)) == ()


def test_a_run_again_at_an_edge_draws_no_token_without_mass():
    """At 0 the sampler draws from weights that the cell had no draw of: the first is 0."""

    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        low = rng.random() < 2.0**-20
        last = int(rng.choice(3, p=[0.0, 0.5, 0.5])) if low else 2
        return np.array([[last, -1]]), np.array([1])

    p, q = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]), np.array([[0.5, 0.5, 0.0]])
    outcomes = {event.outcome for event in edge_events(verify, p, q, (0,))}
    assert outcomes == {(1,)}


# Where generators are found, and that all is put back.
class Holder:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)

    def __call__(self) -> tuple[int]:
        return (int(self.rng.random() < 0.25),)

    def method(self) -> tuple[int]:
        return (int(self.rng.random() < 0.25),)


GLOBAL = np.random.default_rng(1)
named_rand = np.random.rand


def inside() -> tuple[int]:
    return (int(np.random.default_rng().random() < 0.25),)


def of_a_class() -> tuple[int]:
    rng = np.random.Generator(np.random.PCG64(3))
    return (int(isinstance(rng, np.random.Generator) and rng.random() < 0.25),)


def of_the_module() -> tuple[int]:
    return (int(GLOBAL.random() < 0.25),)


def by_imported_name() -> tuple[int]:
    return (int(named_rand() < 0.25),)


HOLDERS = [Holder(), Holder().method, inside, of_a_class, of_the_module, by_imported_name]
HOLDERS += [lambda: of_the_module(), partial(lambda rng: (int(rng.random() < 0.25),), rng=GLOBAL)]


@pytest.mark.parametrize("function", HOLDERS)
def test_generators_are_found(function: Callable[[], tuple[int]]) -> None:
    assert probe(function).distribution == {(0,): 0.75, (1,): 0.25}


def test_everything_is_put_back():
    holder, state = Holder(), torch().get_rng_state()
    before = holder.rng, np.random.default_rng, np.random.Generator, random.random, GLOBAL
    probe(holder)
    probe(lambda: (torch().rand(1) < 0.5,))
    assert (holder.rng, np.random.default_rng, np.random.Generator) == before[:3]
    assert (random.random, GLOBAL) == before[3:]
    assert torch().equal(torch().get_rng_state(), state)


def test_where_a_call_was_made():
    rng = np.random.default_rng(1)
    (call,) = probe(lambda: (int(rng.random(2)[1] < 0.5),)).calls
    assert (call.name, call.shape) == ("Generator.random", (2,))
    assert call.where.startswith(f"{__file__}:")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"p_rows": np.ones(3)}, r"p_rows has shape \(3,\): expected \(2, V\)"),
        ({"q_rows": np.ones((2, 3))}, r"q_rows has shape \(2, 3\): expected \(1, 3\)"),
        ({"drafts": (3,)}, r"drafts\[0\] = 3: expected 0 <= id < 3"),
    ],
)
def test_bad_input(changed, message):
    given = {"p_rows": np.full((2, 3), 1 / 3), "q_rows": np.full((1, 3), 1 / 3), "drafts": (0,)}
    with pytest.raises(ValueError, match=message):
        probe_verify(sampler(scalars, choice), **(given | changed))


def test_what_is_the_same_for_all_numbers_needs_none_of_them() -> None:
    rng = np.random.default_rng(1)
    weights = np.array([0.0, 0.25, 0.0, 0.75])

    def raced() -> Iterator[int]:
        arrivals = np.log(weights / rng.exponential(size=4))
        yield int(np.argmax(arrivals))
        yield int(0 * rng.random() == 0)

    found = probe(raced)
    assert found.distribution == pytest.approx({(1, 1): 0.25, (3, 1): 0.75})
    assert len(found.cells) == 2
    assert found.error_bound < 1e-11  # nothing is taken to be nearly certain
