"""What a report says that each parameter of a sampler is given is what it is given."""

import re
from typing import Any

import numpy as np
import pytest

from specref.conformance.options import CheckOptions
from specref.conformance.suite import prepare
from specref.contracts.table import RAGGED, TREE, VERIFY
from specref.examples.correct import verify as correct

SIZES = re.compile(r"(\w+) \((?:\w+, )?(\w+) \[(.*)\]\)")


def flat(
    draft_token_ids: Any, num_draft_tokens: Any, target_logits: Any, draft_probs: Any
) -> Any: ...


def with_bonus(
    draft_token_ids: Any, cu_num_draft_tokens: Any, target_probs: Any, bonus_probs: Any
) -> Any: ...


def unnamed(p: Any, q: Any, x: Any, tree: Any) -> Any: ...


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


def test_what_a_name_does_not_say_is_told_as_a_guess() -> None:
    judge, _ = prepare(unnamed, CheckOptions(contract=TREE))
    guessed = [one for one in judge.passed if "by its place" in one]
    assert guessed == ["x (taken as draft_tokens by its place, int64 [B, N])"]
