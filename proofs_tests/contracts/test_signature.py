"""Names, annotations and defaults decide what a function is given, and reports say what it is."""

import re
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import special

from specref.conformance.options import CheckOptions
from specref.conformance.public import check
from specref.conformance.suite import prepare
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.signature import by_position, law_kinds, of_arrays
from specref.contracts.table import GENERATE, RAGGED, STEP, TREE, VERIFY
from specref.contracts.verify import sample_batch
from specref.examples import correct

SMOKE = ["smoke", "boundary/forbidden", "joint/wide", "joint/batch-of-one", "joint/probed"]


normal = partial(special.softmax, axis=-1)


def on_logits(target_logits: Any, draft_logits: Any, draft_tokens: Any, *, rng: Any) -> Any:
    return correct.verify(normal(target_logits), normal(draft_logits), draft_tokens, rng=rng)


def on_logprobs(log_probs: Any, draft_logprobs: Any, draft_ids: Any, *, rng: Any) -> Any:
    return correct.verify(np.exp(log_probs), np.exp(draft_logprobs), draft_ids, rng=rng)


def on_both(target_logits: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    return correct.verify(normal(target_logits), draft_probs, draft_tokens, rng=rng)


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize(
    ("verify", "told"),
    [
        (on_logits, ["it is given logits: parameters target_logits, draft_logits"]),
        (on_logprobs, ["it is given log-probabilities: parameters log_probs, draft_logprobs"]),
        (
            on_both,
            [
                "it is given logits: parameter target_logits",
                "it is given probabilities: parameter draft_probs",
            ],
        ),
        (correct.verify, []),
    ],
)
def test_a_right_sampler_gets_what_its_names_say(verify: Any, told: list[str]) -> None:
    report = check(verify, only=SMOKE)
    assert report.exit_code == 0, report
    assert list(report.told) == told


@pytest.mark.usefixtures("undiagnosed")
def test_a_wrong_one_is_lossy_all_the_same() -> None:
    def shifted(target_logits: Any, draft_logits: Any, draft_tokens: Any, *, rng: Any) -> Any:
        return on_logits(2 * target_logits, draft_logits, draft_tokens, rng=rng)

    assert check(shifted, only=["joint/probed"]).lossy


def test_log_probabilities_are_normalised_and_logits_are_not() -> None:
    batch = sample_batch(CHAIN_FIXTURES["wide"], 3, np.random.default_rng(1))
    p, q = (
        Verifier(on_logprobs, Capabilities(inputs="logits")).read(name, laws)
        for name, laws in (
            ("target_probs", batch.target_probs),
            ("draft_probs", batch.draft_probs),
        )
    )
    assert np.allclose(np.exp(p).sum(-1), 1)
    assert np.allclose(np.exp(q).sum(-1), 1)
    logits = Verifier(on_logits, Capabilities(inputs="logits")).read(
        "target_probs", batch.target_probs
    )
    assert not np.allclose(np.exp(logits).sum(-1), 1)


def test_a_claim_decides_where_names_are_of_the_contract_or_of_formulas() -> None:
    for verify in (correct.verify, lambda p, q, x: None, lambda a, b, c: None):
        assert set(law_kinds(verify, "logits").values()) == {"logits"}
        claims, told = by_position(
            verify, VERIFY.positional, Capabilities(inputs="logits"), {"inputs"}
        )
        assert (claims.inputs, told) == ("logits", ())


@pytest.mark.parametrize(
    ("verify", "claim", "line"),
    [
        (on_logits, "probs", r"\(--declare inputs=logits\)"),
        (lambda target_pmf, draft_pmf, drafts: None, "logits", r"\(--declare inputs=probs\)"),
    ],
)
def test_names_that_contradict_a_claim_stop_with_the_line_to_type(
    verify: Any, claim: str, line: str
) -> None:
    with pytest.raises(ValueError, match=line):
        check(verify, inputs=claim)


@pytest.mark.parametrize(
    ("contract", "function"),
    [
        (VERIFY, lambda draft_probs, target_probs, draft_tokens: None),
        (VERIFY, lambda draft_tokens, target, draft: None),
        (TREE, lambda target_probs, draft_tokens, draft_probs, parents: None),
        (TREE, lambda target_probs, draft_probs, draft_tokens, bonus_probs: None),
        (TREE, lambda target_probs, draft_probs, draft_tokens, lengths: None),
        (STEP, lambda draft_model, target_model, context, gamma: None),
        (GENERATE, lambda drafter, target, prompt, n: None),
    ],
)
def test_another_order_is_no_verdict(contract: Any, function: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"expected .*target"):
        contract.read(function, Capabilities(), ())


class Tensor:
    """As torch's, for annotations."""


Tensor.__module__ = "torch"
DEVICE = Tensor()


def annotated(p: "torch.Tensor", q: "torch.Tensor | None", drafts: "torch.Tensor") -> None:  # noqa: F821
    ...


def by_default(p: Any, q: Any, drafts: Any, *, device: Any = DEVICE) -> None: ...


def with_a_class(p: Tensor, q: Tensor, drafts: Tensor) -> None: ...


def of_numpy(p: np.ndarray, q: "np.ndarray | torch.Tensor", drafts: Any) -> None: ...  # noqa: F821


def test_annotations_and_defaults_of_torch_ask_for_tensors() -> None:
    for function in (annotated, by_default, with_a_class):
        claims, told = of_arrays(function, Capabilities(), ())
        assert claims.arrays == "torch"
        assert told[0].startswith("it is given tensors: ")
        with pytest.raises(ValueError, match=r"--declare arrays=torch"):
            of_arrays(function, Capabilities(), {"arrays"})
    assert of_arrays(of_numpy, Capabilities(), ()) == (Capabilities(), ())


@pytest.mark.parametrize(
    ("name", "wanted"), [("rng", "torch.Generator"), ("generator", "np.random.Generator")]
)
def test_another_generator_than_is_given_is_refused(name: str, wanted: str) -> None:
    function = SimpleNamespace(f=eval(f"lambda p, q, x, {name}: None")).f
    function.__annotations__ = {name: wanted}
    with pytest.raises(ValueError, match=f"{name} is annotated {wanted}: name it"):
        of_arrays(function, Capabilities(), ())


SIZES = re.compile(r"(\w+) \((?:\w+, )?(\w+) \[(.*)\]\)")


def flat(
    draft_token_ids: Any, num_draft_tokens: Any, target_logits: Any, draft_probs: Any
) -> Any: ...


def with_bonus(
    draft_token_ids: Any, cu_num_draft_tokens: Any, target_probs: Any, bonus_probs: Any
) -> Any: ...


def unnamed(p: Any, q: Any, x: Any, tree: Any) -> Any: ...


SAMPLERS = [(correct.verify, VERIFY), (flat, RAGGED), (with_bonus, RAGGED)]


def said_of(line: str) -> tuple[str, str, int]:
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
    said = [said_of(line) for line in judge.passed if "[" in line]
    assert said
    assert said == [(n, str(passed[n].dtype), passed[n].ndim) for n, _, _ in said]
    assert {line.split()[0] for line in judge.passed} == set(passed)


def test_what_a_name_does_not_say_is_told_as_a_guess() -> None:
    judge, _ = prepare(unnamed, CheckOptions(contract=TREE))
    guessed = [one for one in judge.passed if "by its place" in one]
    assert guessed == ["x (taken as draft_tokens by its place, int64 [B, N])"]
