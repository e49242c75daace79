"""Bugs that are not in the library are not said to fit; those that are in it are named.

Blocks are drawn from exact laws at the places of the kit, as many as a diagnosis has after drawing
on. Fixed seeds.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.bugs.outside import BUGS
from proofs_tests.helpers.bugs.verifiers import clean
from proofs_tests.helpers.diagnosed import drawn
from specref.conformance.checks import CHECKS
from specref.conformance.diagnosis import Diagnosis, Laws, Observed, diagnose
from specref.conformance.diagnosis.laws import CaseLaws, Law, compared_with, law_of
from specref.conformance.public import check
from specref.conformance.status import Stage
from specref.conformance.suite import laws_compared
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.distributions import total_variation
from specref.proofs.exact import completed
from specref.statistics.campaign.levels import total_variation_test
from specref.zoo import MUTANTS, OPERATORS
from specref.zoo.verifier_operators import variants

RULE = "standard"
STAGES = (Stage.JOINT, Stage.ACCEPTANCE)
LIBRARY = compared_with(RULE)
KNOWN = (*MUTANTS, *OPERATORS)
BLOCKS = 200_000
MOST_WRONG = 0.05
SOME = KNOWN[::4]
PLACES = tuple(
    Observed(f"{name}, {place.name}", fixture.target, fixture.drafter, place.context,
             place.lookahead, {(0,): 1})
    for name, fixture in CHAIN_FIXTURES.items()
    for place in fixture.places
)  # fmt: skip


def family(name: str) -> str:
    """The bug without its parameter; `target-temperature-missing` is one of many."""
    return name.split(" at ")[0]


class Fewer(Laws):
    """The laws of the library, for some of its entries."""

    def of(self, observed: Observed) -> CaseLaws:
        """Those of a case."""
        known = laws_compared(RULE).of(observed)
        laws = {name: law for name, law in known.entries.items() if name in self.entries}
        return CaseLaws(known.clean, laws)


def variation(name: str) -> float:
    """The largest total variation of the completed block at a place of the kit."""
    found = []
    for place in PLACES:
        law, length = law_of(BUGS[name].step, place), place.lookahead + 1
        emitted, text = (
            completed(blocks, place.target, place.context, length) for blocks in (law, {(): 1.0})
        )
        found.append(float(total_variation(emitted, text)))
    return max(found)


def sampled(laws: Sequence[Law | None], seed: int) -> list[Observed]:
    rng, each = np.random.default_rng(seed), BLOCKS // len(PLACES)
    pairs = zip(PLACES, laws, strict=True)
    return [replace(place, blocks=drawn(law, each, rng)) for place, law in pairs if law]


@cache
def of_stranger(name: str) -> Diagnosis:
    laws = [law_of(BUGS[name].step, place) for place in PLACES]
    return diagnose(sampled(laws, list(BUGS).index(name)), laws_compared(RULE))


@cache
def of_known(name: str) -> tuple[Diagnosis, Diagnosis]:
    """With the bug in the library, and without it."""
    known = [laws_compared(RULE).of(place).entries.get(name) for place in PLACES]
    blocks = sampled(known, KNOWN.index(name))
    whole = diagnose(blocks, laws_compared(RULE))
    twins = next((set(c.ids) for c in whole.candidates if name in c.ids), {name})
    rest = {
        other: entry
        for other, entry in LIBRARY.items()
        if other not in twins and family(other) != family(name)
    }
    return whole, diagnose(blocks, Fewer(rest))


def test_bugs_outside_the_zoo_are_none_of_its_entries() -> None:
    assert not set(BUGS) & set(LIBRARY)


@pytest.mark.deep
@pytest.mark.parametrize("name", BUGS)
def test_bugs_outside_the_zoo_are_lossy_and_none_of_its_laws(name: str) -> None:
    assert variation(name) > 0.01
    laws = [law_of(BUGS[name].step, place) for place in PLACES]
    for other in LIBRARY:
        known = [laws_compared(RULE).of(place).entries.get(other) for place in PLACES]
        pairs = zip(laws, known, strict=True)
        apart = [total_variation(law, one) for law, one in pairs if one is not None]
        assert max(apart, default=1) > 0.005, other


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("name", BUGS)
def test_a_batched_bug_has_the_law_of_its_step(name: str) -> None:
    """Alpha 1e-9 each; power: 20,000 blocks find a law that is 0.06 away."""
    fixture, rng = CHAIN_FIXTURES["wide"], np.random.default_rng(3)
    place, verify = PLACES[0], BUGS[name].verify()
    assert place.lookahead == 2
    size, tokens = 20_000, range(5)
    p, q = (
        {c: np.array(model.next_token(c), dtype=float) for c in CONTEXTS}
        for model in (fixture.target, fixture.drafter)
    )
    first = rng.choice(5, size, p=q[()])
    second = np.zeros_like(first)
    for x in tokens:
        second[first == x] = rng.choice(5, (first == x).sum(), p=q[x,])
    after_one = np.array([p[x,] for x in tokens])
    after_two = np.array([[p[x, y] for y in tokens] for x in tokens])
    target = np.stack([np.tile(p[()], (size, 1)), after_one[first], after_two[first, second]], 1)
    drafter = np.stack([np.tile(q[()], (size, 1)), np.array([q[x,] for x in tokens])[first]], 1)
    emitted, counts = verify(target, drafter, np.stack([first, second], 1), rng=rng)
    seen_counts = Counter(
        tuple(row[:n]) for row, n in zip(emitted.tolist(), counts.tolist(), strict=True)
    )
    assert not total_variation_test(seen_counts, law_of(BUGS[name].step, place)).rejected


CONTEXTS = [(), *((x,) for x in range(5)), *((x, y) for x in range(5) for y in range(5))]


@pytest.mark.deep
def test_wrong_fits_of_bugs_outside_the_zoo_are_rare() -> None:
    wrong = [name for name in BUGS if of_stranger(name).known]
    assert len(wrong) <= MOST_WRONG * len(BUGS), wrong
    assert not any(of_stranger(name).clean_fits for name in BUGS)


@pytest.mark.deep
def test_wrong_fits_of_bugs_left_out_of_the_library_are_rare() -> None:
    wrong = [name for name in SOME if of_known(name)[1].known]
    assert len(wrong) <= MOST_WRONG * len(SOME), wrong


@pytest.mark.deep
def test_bugs_in_the_library_are_named() -> None:
    for name in SOME:
        best = of_known(name)[0].candidates[0]
        assert name in best.ids, name
        assert best.fits, name


@pytest.mark.deep
def test_what_the_kit_says_of_a_stranger_and_of_a_known_bug() -> None:
    """By the whole of `check`, at its own sample sizes. Each of these was called known once."""
    for name in ("square-root-ratio", "residual-squared", "residual-half-p"):
        report = check(BUGS[name].verify(), only=["joint/wide", "joint/deep", "joint/eos"])
        assert report.diagnosis is not None
        assert not report.diagnosis.known, report.diagnosis
        assert report.diagnosis.trials > 190_000
    asked = [one.id for one in CHECKS if one.stage in STAGES and one.statistical]
    assert check(BUGS["nine-tenths"].verify(rule=None), only=asked, seed=1).failures


def tempered(p: Any, temperature: float) -> Any:
    return p ** (1 / temperature) / (p ** (1 / temperature)).sum(axis=-1, keepdims=True)


def nucleus(p: Any) -> Any:
    """The likeliest tokens, up to the one that reaches 0.9."""
    order = np.argsort(-p, axis=-1, kind="stable")
    ranked = np.take_along_axis(p, order, -1)
    kept = ranked * (ranked.cumsum(axis=-1) - ranked < 0.9 - 1e-12)
    back = np.take_along_axis(kept, np.argsort(order, axis=-1), -1)
    return back / back.sum(axis=-1, keepdims=True)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("p_read", "q_read", "name"),
    [
        (partial(tempered, temperature=0.7), lambda q: q, "target-temperature-missing at 0.7"),
        (lambda p: p, partial(tempered, temperature=0.5), "verifier-temperature-of-q"),
        (nucleus, lambda q: q, "verifier-top-p at 0.9"),
    ],
)
def test_a_sampler_that_applies_parameters_itself_is_named(
    p_read: Any, q_read: Any, name: str
) -> None:
    def verify(p: Any, q: Any, drafts: Any, *, rng: Any) -> Any:
        return clean(p_read(p), q_read(q), drafts, rng=rng)

    report = check(verify, only=["joint/wide", "joint/deep", "joint/eos"], one_hot=False)
    assert report.diagnosis is not None
    assert report.diagnosis.known, report.diagnosis
    assert name in report.diagnosis.candidates[0].ids


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("entry", [*variants()][::4], ids=lambda entry: entry.id)
def test_parameters_in_the_verifier_are_lossy_and_told_apart(entry) -> None:
    law = [law_of(entry.step, place) for place in PLACES]
    clean = [laws_compared(RULE).of(place).clean for place in PLACES]
    apart = [total_variation(a, b) for a, b in zip(law, clean, strict=True)]
    assert max(apart) > 0.005
    best = diagnose(sampled(law, 5), laws_compared(RULE)).candidates[0]
    assert entry.id in best.ids
    assert best.fits


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("name", OPERATORS)
def test_parameters_in_the_verifier_are_no_other_bug(name: str) -> None:
    assert name not in MUTANTS
    assert OPERATORS[name].stage == "operator"
    assert of_known(name)[0].candidates[0].ids == (name,)
