"""Pinned fractions, computed once by an independent program: `fixtures/pins.json`."""

from fractions import Fraction

import numpy as np
import pytest

from proofs_tests.helpers.bugs import planted
from proofs_tests.helpers.published import PINS, models
from specref import is_lossless
from specref.algorithms import standard
from specref.distributions import total_variation
from specref.proofs import output_distribution
from specref.rules import RULES

MUTANTS = {
    "residual := p (no adjustment)": planted.residual_is_target,
    "lenience 1/2, residual (p-q)+": planted.lenient,
    "lenience 1/2, residual (p-q/2)+": planted.lenient_with_its_residual,
    "greedy match under sampling": planted.argmax_match,
    "drop drafts with q<1/4": planted.unlikely_draft_dropped,
    "draft from top-3 of q, verify with raw q": planted.top_3_drafted_raw_q_tested,
    "argmax draft verified with soft q": planted.argmax_drafted_soft_q_tested,
    "one uniform shared by the whole block": planted.one_coin,
    "bonus token := argmax": planted.argmax_bonus,
}


def case_name(case):
    return " ".join(str(case[key]) for key in ("inst", "gamma", "mutant") if key in case)


@pytest.mark.parametrize("pin", PINS["single_path"], ids=case_name)
def test_token_verification(pin):
    target, drafter = models(pin["inst"])
    blocks, _ = output_distribution(standard.step, target, drafter, (), pin["gamma"])
    assert {target.vocabulary.decode(block): str(weight) for block, weight in blocks.items()} == (
        pin["emitted"]
    )
    law = RULES["standard"].accepted_lengths(target, drafter, (), pin["gamma"])
    assert [str(weight) for weight in law] == pin["tau_law"]
    assert str(sum(length * weight for length, weight in enumerate(law))) == pin["E_tau"]


@pytest.mark.parametrize("pin", PINS["coupling"], ids=case_name)
def test_acceptance_of_rejection_sampling_and_of_exact_match(pin):
    pair = models(pin["inst"])
    assert str(RULES["standard"].acceptance_rate(*pair)) == pin["one_minus_tv"]
    assert str(RULES["slem"].acceptance_rate(*pair)) == pin["independent_match"]


FIRST_TOKEN = [pin for pin in PINS["mutants"] if "law" in pin]
JOINT = [pin for pin in PINS["mutants"] if "law" not in pin]


@pytest.mark.parametrize("pin", FIRST_TOKEN, ids=case_name)
def test_first_token_law_of_a_mutant(pin):
    target, drafter = models(pin["inst"])
    blocks, _ = output_distribution(MUTANTS[pin["mutant"]], target, drafter, (), 1)
    law = np.full(len(target.vocabulary), Fraction(0))
    for block, weight in blocks.items():
        law[block[0]] += weight
    assert list(map(str, law)) == pin["law"]
    assert str(total_variation(law, target.next_token(()))) == pin["TV"]


@pytest.mark.parametrize("pin", JOINT, ids=case_name)
def test_joint_distance_of_a_mutant(pin):
    proof = is_lossless(MUTANTS[pin["mutant"]], *models(pin["inst"]), (), pin["gamma"])
    assert str(proof.total_variation) == pin["TV"]
    assert {len(tokens) for tokens in proof.output} == {pin["horizon"]}


def test_every_mutant_is_pinned():
    assert {pin["mutant"] for pin in PINS["mutants"]} == MUTANTS.keys()
