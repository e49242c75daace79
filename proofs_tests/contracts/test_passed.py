"""What a report says that each parameter of a sampler is given is what it is given."""

import re
from typing import Any

import numpy as np
import pytest

from specref.conformance.options import CheckOptions
from specref.conformance.public import check
from specref.conformance.suite import prepare
from specref.contracts.capabilities import Capabilities
from specref.contracts.passed import parameters_passed
from specref.contracts.table import RAGGED, VERIFY
from specref.examples.correct import verify as correct

SIZES = re.compile(r"(\w+) \((?:\w+, )?(\w+) \[(.*)\]\)")


def flat(
    draft_token_ids: Any, num_draft_tokens: Any, target_logits: Any, draft_probs: Any
) -> Any: ...


def with_bonus(
    draft_token_ids: Any, cu_num_draft_tokens: Any, target_probs: Any, bonus_probs: Any
) -> Any: ...


SAMPLERS = [(correct, VERIFY), (flat, RAGGED), (with_bonus, RAGGED)]


def told(line: str) -> tuple[str, str, int]:
    """A parameter, its dtype, and how many dimensions it has."""
    found = SIZES.fullmatch(line)
    assert found
    name, dtype, sizes = found.groups()
    return name, dtype, len(sizes.split(", "))


@pytest.mark.parametrize(("function", "contract"), SAMPLERS)
def test_what_is_said_is_what_is_passed(function: Any, contract: Any) -> None:
    judge, _ = prepare(function, CheckOptions(contract=contract))
    batch = contract.sample(judge.fixture("wide"), 8, np.random.default_rng(1))
    given, named = judge.verifier.arguments(batch, np.random.default_rng(2))
    passed = dict(zip((line.split()[0] for line in judge.passed), given, strict=False)) | named
    said = [told(line) for line in judge.passed if "[" in line]
    assert said
    assert said == [(n, str(passed[n].dtype), passed[n].ndim) for n, _, _ in said]
    assert {line.split()[0] for line in judge.passed} == set(passed)


def test_dimensions_follow_a_parameter_for_the_bonus_token() -> None:
    shapes = [parameters_passed(one, RAGGED, Capabilities())[2] for one in (flat, with_bonus)]
    assert shapes == ["target_logits (float64 [sum+B, V])", "target_probs (float64 [sum, V])"]


def test_a_report_says_it_first() -> None:
    report = check(correct, only=["smoke/answers"], dtype="float32")
    (line,) = [one for one in report.heading if one.startswith("your parameters")]
    assert line.startswith("your parameters: target_probs (float32 [B, K+1, V]), draft_probs")


def test_a_name_that_does_not_say_logits_is_told_to_be_given_them() -> None:
    (first, *_) = parameters_passed(
        lambda p, q, drafts: None, VERIFY, Capabilities(inputs="logits")
    )
    assert first == "p (logits, float64 [B, K+1, V])"
