"""Generation on a pretended CUDA device: no device error, the CPU's texts, and few waits."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from proofs_tests.helpers.torch.generations import arguments
from proofs_tests.helpers.torch.pretend import Places, Pretender, placed
from specref.torch_backend import METHODS, generate
from specref.torch_backend.loop import Loop
from specref.torch_backend.models import configs, slotted
from specref.torch_backend.verification import chains

ROWS = [[1, 2, 3, 4], [5], [3, 2, 6, 0, 1, 2, 4]]
LOOKAHEAD = 3
RESULTS, SETTLED = ("loop.py", "_iterate"), ("cached.py", "settle")
# Of the second iteration, with all rows alive. What was drafted is settled by both models.
WAITS: Mapping[str, Mapping[tuple[str, str], int]] = MappingProxyType(
    {
        "standard": {RESULTS: 1, SETTLED: 2},
        "union": {RESULTS: 1, SETTLED: 2},
        "tli": {RESULTS: 1, SETTLED: 2},
        "slem": {RESULTS: 1, SETTLED: 2, ("slem.py", "_drafted"): 1},
        "autoregressive": {RESULTS: 1},
    }
)

CONFIGURATIONS = [
    ({"temperature": 1.0}, torch.float32, True),
    ({"temperature": 0.0}, torch.bfloat16, True),
    ({"temperature": 0.8, "top_k": 5, "top_p": 0.9}, torch.bfloat16, False),
    ({"temperature": 0.0, "lookahead": 1}, torch.float32, False),
]


def given(method: str, dtype: torch.dtype = torch.float64) -> dict[str, Any]:
    """Models, prompts of several lengths, an end."""
    models = tree_map_only(
        torch.nn.Module, lambda model: model.to(dtype).requires_grad_(False), arguments(method)
    )
    others = {"max_new_tokens": 7, "lookahead": LOOKAHEAD, "eos": [3]}
    return models | {"prompts": ROWS, "seeds": [1, 2, 3]} | others


@pytest.mark.deep(one_in=24)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("options", "dtype", "use_cache"), CONFIGURATIONS)
def test_texts_are_those_of_the_cpu(
    method: str, options: dict[str, Any], dtype: torch.dtype, use_cache: bool
) -> None:
    asked = given(method, dtype) | options | {"use_cache": use_cache}
    expected = generate(**asked)
    with Pretender():
        found = generate(**placed(asked))
    assert (found.tokens, found.iterations) == (expected.tokens, expected.iterations)
    assert len(set(found.tokens)) == len(ROWS)


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("method", ["standard", "union", "tli"])
def test_texts_of_block_verification_are_those_of_the_cpu(method: str) -> None:
    asked = given(method) | {"verification": "block"}
    with Pretender():
        found = generate(**placed(asked))
    assert found.tokens == generate(**asked).tokens


@pytest.mark.parametrize("bug", ["tokens", "masks"])
def test_a_tensor_that_stays_on_the_cpu_is_noticed(
    monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    monkeypatch.setattr(slotted, "sent" if bug == "tokens" else "moved", stays)
    with Pretender(), pytest.raises(RuntimeError, match="same device"):
        generate(**placed(given("standard")))


def stays(numbers: Any, device: Any) -> Tensor:
    return torch.as_tensor(numbers)


def iterations(method: str, monkeypatch: pytest.MonkeyPatch, *kinds: str) -> list[Places]:
    """What each iteration of the loop waits for, or copies to the device."""
    iterate, found = Loop._iterate, list[Places]()

    def counted(self: Loop, iteration: int) -> None:
        pretender.events.clear()
        iterate(self, iteration)
        found.append(pretender.events.places(*kinds))

    monkeypatch.setattr(Loop, "_iterate", counted)
    with Pretender() as pretender:
        generate(**placed(given(method) | {"max_new_tokens": 10, "eos": []}))
    return found


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("method", WAITS)
def test_waits_of_an_iteration(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """As many as `WAITS` says in the second, and in no other more."""
    found = iterations(method, monkeypatch, "wait")
    assert found[1] == WAITS[method]
    assert all(waits <= Counter(WAITS[method]) for waits in found)


def test_nothing_waits_between_drafting_and_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """The drafter settles before it drafts, and the target once the results are there."""
    iterate, found = Loop._iterate, list[list[str]]()

    def listed(self: Loop, iteration: int) -> None:
        pretender.events.clear()
        iterate(self, iteration)
        found.append([event.function for event in pretender.events if event.kind == "wait"])

    monkeypatch.setattr(Loop, "_iterate", listed)
    with Pretender() as pretender:
        generate(**placed(given("standard")))
    assert found[0] == ["_iterate", "settle"]
    assert found[1] == ["settle", "_iterate", "settle"]


@pytest.mark.deep
def test_waits_of_an_iteration_of_slrs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two for each step of drafting, one for each judgement, five where more is read.

    A step is a drafter's token, of which a target's token of at most 4 bytes takes 4 at most. A
    judgement accepts a draft, or a proposal, or finds that more must be read, or refuses after it;
    the last finds that nothing is open.
    """
    lazy, bounds, drafting = "lazy_verification.py", "psi_bounds.py", "slrs.py"
    for waits in iterations("slrs", monkeypatch, "wait"):
        drawn, read = waits[drafting, "_draw"], waits[lazy, "_read"]
        judged = waits[lazy, "judge"]
        most = Counter({RESULTS: 1, SETTLED: 1, (drafting, "_draw"): drawn})
        most |= {(lazy, "judge"): judged, (lazy, "_read"): read, (bounds, "take"): 3 * read}
        most |= {(bounds, "absorb"): drawn + read}
        assert waits <= most
        assert drawn <= 4 * LOOKAHEAD
        assert judged <= LOOKAHEAD + 2 + 2 * read


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("method", METHODS)
def test_copies_of_an_iteration_do_not_wait(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """The first is left out: it makes the tensors of the prefix tree."""
    found = iterations(method, monkeypatch, "blocking copy")
    assert len(found) > 2
    assert not any(found[1:])


def test_a_plain_copy_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slotted, "sent", lambda ids, to: torch.tensor(ids).long().to(to))
    found = iterations("standard", monkeypatch, "blocking copy")
    assert found[1] == {("slotted.py", "padded"): 2}


def reading(flags: Tensor) -> Tensor:
    """Asks for a number within verification."""
    assert flags.sum().item() >= 0
    return flags.long().cumprod(dim=1).sum(dim=1)


def test_a_wait_within_verification_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "_leading", reading)
    found = iterations("standard", monkeypatch, "wait")[1] - Counter(WAITS["standard"])
    assert found == {("chains.py", "verify"): 1}


@pytest.mark.deep
def test_masks_that_transformers_reads_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads those of two dimensions in every forward of a single token."""
    monkeypatch.setattr(configs, "MASKED", ())
    found = iterations("standard", monkeypatch, "wait")[1] - Counter(WAITS["standard"])
    assert found == {("slotted.py", "call"): LOOKAHEAD}
