"""Known bugs are named, unknown ones are not, and a fit is refused no oftener than stated."""

import math
from collections import Counter
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest

from proofs_tests.helpers.bugs.outside import BUGS
from proofs_tests.helpers.diagnosed import CASES, drawn, observe, of_fixture
from specref import exact_distribution
from specref.algorithms import standard
from specref.conformance.diagnosis import Laws, Observed, diagnose
from specref.conformance.diagnosis.laws import CaseLaws, bugs_of, compared_with, law_of
from specref.conformance.diagnosis.likelihood import LEAK, tabulate, universal, weigh
from specref.models import hashed_model, iid_model
from specref.rules import RULES
from specref.statistics.campaign.levels import total_variation_test
from specref.vocabulary import Vocabulary
from specref.zoo import ALL, CONTROLS, FIXTURES, MUTANTS

LAWS = Laws()
EVERYTHING = {**MUTANTS, **CONTROLS}
ALL_LAWS = Laws(EVERYTHING)
TWINS = {"best-of-two", "residual-is-p"}
NAMES = ("always-accept-u0", "residual-is-p", "bonus-argmax")

INVENTED = ("square-root-ratio", "bonus-squared", "nine-tenths")


def shortened(observed, length):
    """The same blocks cut off, as by an implementation without a bonus token."""
    cut = Counter()
    for block, count in observed.blocks.items():
        cut[block[:length]] += count
    return replace(observed, blocks=dict(cut))


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_named_first(name):
    """Fixed seed; alpha 1e-6 for each that its true law is said not to fit, so 1e-4 in all."""
    diagnosis = diagnose(observe(MUTANTS[name].step, 20_000, seed=1), LAWS)
    best = diagnosis.candidates[0]
    assert name in best.ids, diagnosis
    assert set(best.ids) == (TWINS if name in TWINS else {name})
    assert best.fits
    assert diagnosis.known
    assert not diagnosis.clean_fits
    assert best.log10_ratio > 1
    assert best.log10_over_clean > 6


@pytest.mark.parametrize("strength", [0.3, 0.1])
@pytest.mark.parametrize("name", ["residual-is-q", "always-accept-u0", "bonus-wrong-row"])
def test_a_bug_in_some_blocks_is_named_with_its_share(name, strength):
    cases = observe(MUTANTS[name].step, 20_000, seed=2, strength=strength)
    diagnosis = diagnose(cases, LAWS)
    best = diagnosis.candidates[0]
    assert best.ids == (name,)
    assert best.strengths == (pytest.approx(strength, rel=0.2),)
    # Code that has the bug has it in every block.
    assert best.resembles
    assert not best.fits
    assert not diagnosis.known
    assert str(diagnosis).startswith("Resembles a known bug")
    assert "a share of the blocks" in str(diagnosis)


def test_half_of_one_bug_can_be_another():
    """norm(|p - q|) is half norm((p - q)+) and half norm((q - p)+), and a block has one."""
    wide = FIXTURES["wide"]
    both, reverse, clean = (
        exact_distribution(
            lambda chance, step=step: step(wide.target, wide.drafter, (), wide.lookahead, chance)
        )
        for step in (
            MUTANTS["residual-abs"].step,
            MUTANTS["residual-reversed"].step,
            standard.step,
        )
    )
    blocks = both.keys() | reverse.keys() | clean.keys()
    assert all(2 * both.get(b, 0) == reverse.get(b, 0) + clean.get(b, 0) for b in blocks)
    cases = observe(MUTANTS["residual-abs"].step, 20_000, seed=16, strength=0.4)
    best = diagnose(cases, LAWS).candidates[0]
    assert best.ids == ("residual-abs", "residual-reversed")
    assert best.strengths == (pytest.approx(0.4, rel=0.1), pytest.approx(0.2, rel=0.1))
    whole = diagnose(observe(MUTANTS["residual-abs"].step, 20_000, seed=16), LAWS)
    assert whole.candidates[0].ids == ("residual-abs",)


@pytest.mark.parametrize("trials", [2_000, 20_000, 200_000])
def test_a_clean_sampler_has_nothing_to_diagnose(trials):
    """Alpha 1e-6 for each."""
    diagnosis = diagnose(observe(standard.step, trials, seed=3), LAWS)
    assert diagnosis.clean_fits
    assert diagnosis.tokens_fit
    assert str(diagnosis).startswith("No known bug is named: ")


@pytest.mark.parametrize("name", INVENTED)
def test_an_invented_bug_is_unlike_anything_known(name):
    """Power: the least evidence against a known bug is about 10^177, and 10^6 is enough."""
    diagnosis = diagnose(observe(BUGS[name].step, 200_000, seed=4), LAWS)
    assert not diagnosis.known
    assert not diagnosis.resembling
    assert not diagnosis.clean_fits
    assert str(diagnosis).startswith("Unlike anything known")


def test_a_misfit_on_one_case_is_a_misfit():
    """60,000 blocks that the bug explains, and 300 of another bug: pooled, they are outvoted."""
    *explained, last = observe(MUTANTS["residual-is-p"].step, 90_000, seed=17)
    law = law_of(MUTANTS["bonus-argmax"].step, last)
    other = replace(last, blocks=drawn(law, 300, np.random.default_rng(1)))
    assert diagnose([*explained, last], LAWS).known
    diagnosis = diagnose([*explained, other], LAWS)
    assert set(diagnosis.candidates[0].ids) == TWINS
    assert not diagnosis.known
    assert not diagnosis.resembling
    assert diagnosis.candidates[0].log10_against > 20


def test_few_blocks_are_not_enough_to_say_that_a_bug_fits():
    diagnosis = diagnose(observe(MUTANTS["residual-is-q"].step, 2_000, seed=18), LAWS)
    best = diagnosis.candidates[0]
    assert best.ids == ("residual-is-q",)
    assert best.strengths == (1,)
    assert best.resembles
    assert not diagnosis.known
    assert "Fewer than 20,000 blocks are too few to say that it fits." in str(diagnosis)


@pytest.mark.deep(one_in=14)
@pytest.mark.parametrize("name", CONTROLS)
def test_lossless_look_alikes_are_not_called_bugs(name):
    cases = observe(CONTROLS[name].step, 20_000, seed=6)
    diagnosis = diagnose(cases, LAWS)
    assert diagnosis.tokens_fit
    assert diagnosis.clean_fits or not diagnosis.known
    best = diagnose(cases, ALL_LAWS).candidates[0]
    assert diagnosis.clean_fits or (name in best.ids and best.lossless)


@pytest.mark.parametrize(
    "names",
    [
        {"residual-is-q"},
        {"target-row-off-by-one"},
        # min(p, q) + (1 - overlap) norm((q - p)+) = q: without a bonus token, one law.
        {"always-accept-u0", "residual-reversed"},
    ],
    ids=min,
)
def test_other_lengths_are_judged_by_next_tokens(names):
    step = MUTANTS[min(names)].step
    cases = [shortened(case, 2) for case in observe(step, 20_000, seed=7)]
    diagnosis = diagnose(cases, LAWS)
    assert diagnosis.basis == "next tokens"
    assert set(diagnosis.candidates[0].ids) == names
    assert diagnosis.resembling
    assert str(diagnosis).startswith("Resembles a known bug")
    assert "Lengths aside" in str(diagnosis)


def test_other_lengths_of_a_clean_sampler_are_no_bug():
    cases = [shortened(case, 1) for case in observe(standard.step, 20_000, seed=8)]
    diagnosis = diagnose(cases, LAWS)
    assert diagnosis.tokens_fit
    assert not diagnosis.clean_fits
    assert not diagnosis.known


def test_a_stray_block_is_held_against_a_bug_without_excluding_it():
    first, *others = observe(MUTANTS["threshold-accept"].step, 20_000, seed=9)
    law = LAWS.of(first).entries["threshold-accept"]
    stray = next(block for block in LAWS.of(first).clean if block not in law)
    before = diagnose([first, *others], LAWS).candidates[0]
    once, often = (
        diagnose([replace(first, blocks={**first.blocks, stray: n}), *others], LAWS)
        for n in (1, 20)
    )
    assert once.candidates[0].ids == ("threshold-accept",)
    assert once.candidates[0].fits
    assert once.candidates[0].log10_over_clean < before.log10_over_clean - 4
    bug = next(c for c in often.candidates if c.ids == ("threshold-accept",))
    assert not bug.fits or bug.strengths != (1,)


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("basis", ["blocks", "next tokens"])
@pytest.mark.parametrize("source", ["clean", *NAMES])
def test_evidence_against_the_truth_has_mean_at_most_one(basis, source):
    """Over every pair of blocks; the best component alone, unpaid for, has a larger mean."""
    case = of_fixture(FIXTURES["m"], {(0,): 1})
    known = LAWS.of(case)
    few = CaseLaws(known.clean, {name: known.entries[name] for name in NAMES})
    truth, row = (few.clean, 0)
    if source != "clean":
        truth, row = few.entries[source], NAMES.index(source) + 1
    paid = unpaid = 0.0
    for pair in combinations_with_replacement(truth, 2):
        chance = truth[pair[0]] * truth[pair[1]] * (1 + (pair[0] != pair[1]))
        table = tabulate([replace(case, blocks=Counter(pair))], [few], NAMES, basis)
        weighed = weigh(table, 2)
        paid += chance * math.exp(weighed.whole[row])
        assert weighed.against[row] <= weighed.whole[row]
        likelihood = (table.counts * np.log(table.law(1.0)[row])).sum()
        unpaid += chance * math.exp(universal(table).max() - likelihood)
    assert paid < 1 + 10 * LEAK
    assert unpaid > 1.1


@pytest.mark.parametrize("name", ["always-accept-u0", "residual-reversed", "bonus-argmax"])
def test_nothing_that_total_variation_rejects_is_said_to_fit(name):
    """The cruder test has a closed form; here it must never be the sharper one."""
    cases = observe(BUGS["square-root-ratio"].step, 200_000, seed=10)
    best = diagnose(cases, Laws({name: MUTANTS[name]})).candidates[0]
    rejected = []
    for case in cases:
        known = LAWS.of(case)
        law = {
            block: (1 - best.strengths[0]) * known.clean.get(block, 0)
            + best.strengths[0] * known.entries[name].get(block, 0)
            for block in {**known.clean, **known.entries[name]}
        }
        rejected.append(total_variation_test(case.blocks, law, alpha=1e-6).rejected)
    assert any(rejected)
    assert not best.fits


def test_an_entry_that_fails_on_a_case_says_nothing_there():
    v = Vocabulary("ab")
    same = iid_model(v, ["1/3", "2/3"])
    cases = observe(MUTANTS["algorithm-5-as-printed"].step, 20_000, seed=12)
    guarded = Observed("p = q", same, same, (), 1, {(0, 0): 1000, (0, 1): 2000, (1, 1): 6000})
    diagnosis = diagnose([*cases, guarded], LAWS)
    assert diagnosis.candidates[0].ids == ("algorithm-5-as-printed",)
    assert diagnosis.candidates[0].no_law_on == ("p = q",)
    assert "says nothing about p = q" in str(diagnosis)


def test_a_case_without_a_clean_law_is_left_out():
    ab, abc = Vocabulary("ab"), Vocabulary("abc")
    other = Observed("two", hashed_model(abc, "p"), hashed_model(ab, "q"), (), 1, {(0,): 5})
    alone = diagnose([other], LAWS)
    assert alone.candidates == ()
    assert not alone.known
    assert str(alone).startswith("Nothing can be compared")
    together = diagnose([other, *observe(standard.step, 2_000, seed=13)], LAWS)
    assert together.cases == len(CASES)
    assert together.clean_fits


def test_ranking_is_by_likelihood_and_text_is_complete():
    diagnosis = diagnose(observe(MUTANTS["stale-q-row"].step, 20_000, seed=15), LAWS)
    scores = [candidate.log10_over_clean for candidate in diagnosis.candidates]
    assert scores == sorted(scores, reverse=True)
    for one, next_one in zip(diagnosis.candidates, diagnosis.candidates[1:], strict=False):
        assert one.log10_ratio == pytest.approx(one.log10_over_clean - next_one.log10_over_clean)
    assert diagnosis.candidates[-1].log10_ratio == math.inf
    entry = MUTANTS["stale-q-row"]
    shown = str(diagnosis)
    assert all(text in shown for text in (entry.id, entry.symptom, entry.hint, *entry.cites))


def test_bugs_of_a_rule_with_joint_coins_are_those_declared_for_it() -> None:
    jointly = [rule.name for rule in RULES.values() if rule.coins == "jointly"]
    assert jointly
    for name in jointly:
        own = {entry.id: entry.lossless for entry in ALL.values() if entry.rule == name}
        assert compared_with(name).keys() == MUTANTS.keys() | own.keys()
        assert bugs_of(name).keys() == MUTANTS.keys() | {id_ for id_ in own if not own[id_]}
