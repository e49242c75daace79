"""Adapters of engines under `ragged`: judged with functions of their signatures, right and wrong.

Nothing of the packages themselves is here. Monte Carlo by fixed seeds: alpha 1e-9, and a distance
of 0.2 is found 999 times in 1,000; the planted bugs are farther off.
"""

from collections.abc import Callable
from typing import Any

import pytest

from specref.adapters import IMPLEMENTATIONS
from specref.conformance.public import check

torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytestmark = pytest.mark.usefixtures("undiagnosed")

ONLY = ["smoke/answers", "smoke/one-hot", "boundary/disjoint", "boundary/certain", "joint/wide"]
GREEDY = [
    f"boundary/greedy-{kind}" for kind in ("blocks", "one-hot", "ties", "large", "randomness")
]
LMDEPLOY = "lmdeploy.pytorch.backends.default.rejection_sampling"
FLASHSPEC = "flashspec.sampling.rejection"


def kept_and_last(p: Any, q: Any, drafts: Any, generator: Any = None) -> tuple[Any, Any]:
    """How many drafts of each row are kept, and what is drawn after a rejection; in torch."""
    x = drafts[..., None]
    q = torch.zeros_like(p[:, : x.shape[1]]).scatter(2, x, 1.0) if q is None else q
    of_p, of_q = p[:, : x.shape[1]].gather(2, x)[..., 0], q.gather(2, x)[..., 0]
    yes = torch.rand(of_p.shape, generator=generator) * of_q < of_p
    kept = yes.int().cumprod(dim=1).sum(dim=1)
    at = kept.clamp(max=x.shape[1] - 1), torch.arange(len(p))
    left = (p[at[1], at[0]] - q[at[1], at[0]]).clamp(min=0)
    left = torch.where(left.any(dim=1, keepdim=True), left, p[at[1], at[0]])
    return kept, torch.multinomial(left, 1, generator=generator)[:, 0]


class DefaultRejectionSamplingImpl:
    """What LMDeploy's class gets and gives."""

    neighbour = 0

    def forward(
        self, target_logits, draft_token_ids, bonus_token_ids, *, is_greedy, draft_probs=None
    ):
        p, q, drafts = target_logits.softmax(-1), draft_probs, draft_token_ids
        if is_greedy is not None:
            assert is_greedy.all()
            p, q = torch.nn.functional.one_hot(p.argmax(-1), p.shape[-1]).float(), None
        kept, last = kept_and_last(p, q, drafts)
        bonus = bonus_token_ids.roll(self.neighbour)
        last = torch.where(kept == drafts.shape[1], bonus, last)
        tokens = torch.cat([drafts, last[:, None]], dim=1).scatter(1, kept[:, None], last[:, None])
        return tokens.where(torch.arange(tokens.shape[1]) <= kept[:, None], -1), kept, last


class OfTheNeighbour(DefaultRejectionSamplingImpl):
    neighbour = 1


class WithAThreshold(DefaultRejectionSamplingImpl):
    def forward(self, *given, threshold=0.0): ...


class DraftsFirst(DefaultRejectionSamplingImpl):
    def forward(
        self, draft_token_ids, target_logits, bonus_token_ids, *, is_greedy, draft_probs=None
    ): ...


def laws_first(target_logprobs, draft_logprobs, draft_token_ids, *, generator=None): ...


def step(draft_token_ids, draft_logprobs, target_logprobs, *, generator=None):
    """What flashspec's `rejection_step` gets and gives."""
    p, q = (None if one is None else one.exp() for one in (target_logprobs, draft_logprobs))
    kept, last = kept_and_last(p, q, draft_token_ids, generator)
    bonus = torch.multinomial(p[:, -1], 1, generator=generator)[:, 0]
    return torch.stack([kept, torch.where(kept == draft_token_ids.shape[1], bonus, last)], dim=1)


def one_hot(draft_token_ids, target_logprobs, draft_len=None, *, generator=None):
    return step(draft_token_ids, None, target_logprobs, generator=generator)


def not_normalised(draft_token_ids, draft_logprobs, target_logprobs, *, generator=None):
    return step(draft_token_ids, draft_logprobs - 1, target_logprobs, generator=generator)


def with_an_option(draft_token_ids, draft_logprobs, target_logprobs, lenience=1.0): ...


@pytest.fixture
def install(install: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """As elsewhere, on a machine without CUDA."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    return install


STEPS = {"rejection_step": step, "rejection_step_onehot": one_hot}


@pytest.mark.parametrize(
    ("name", "module", "names"),
    [
        ("lmdeploy", LMDEPLOY, {"DefaultRejectionSamplingImpl": DefaultRejectionSamplingImpl}),
        ("flashspec", FLASHSPEC, STEPS),
    ],
)
def test_right_functions_pass(name: str, module: str, names: Any, install: Any) -> None:
    install(module, **names)
    report = check(IMPLEMENTATIONS[name].load(), contract="ragged", only=ONLY, detect_tv=0.2)
    assert report.exit_code == 0, report
    assert report.counts["passed"] == len(ONLY)


@pytest.mark.parametrize(
    ("function", "code"), [(DefaultRejectionSamplingImpl, 0), (OfTheNeighbour, 1)]
)
def test_greedy_requests_are_compared_with_argmax(function: Any, code: int, install: Any) -> None:
    install(LMDEPLOY, DefaultRejectionSamplingImpl=function)
    greedy = IMPLEMENTATIONS["lmdeploy-greedy"].load()
    report = check(greedy, contract="ragged", only=[*GREEDY, "joint/wide"])
    assert report.exit_code == code, report
    assert report.counts["not_applicable"] >= 1, "no distribution is judged"


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(
    ("name", "module", "names"),
    [
        ("lmdeploy", LMDEPLOY, {"DefaultRejectionSamplingImpl": OfTheNeighbour}),
        ("flashspec", FLASHSPEC, {**STEPS, "rejection_step": not_normalised}),
    ],
)
def test_planted_bugs_are_found(name: str, module: str, names: Any, install: Any) -> None:
    install(module, **names)
    report = check(IMPLEMENTATIONS[name].load(), contract="ragged", only=ONLY[-1:], detect_tv=0.2)
    assert report.exit_code == 1, report


@pytest.mark.parametrize(
    ("name", "module", "names", "reason"),
    [
        ("lmdeploy", LMDEPLOY, {}, f"{LMDEPLOY} cannot be imported"),
        (
            "lmdeploy", LMDEPLOY, {"DefaultRejectionSamplingImpl": WithAThreshold},
            "DefaultRejectionSamplingImpl.forward has unknown parameters, given, threshold",
        ),
        (
            "lmdeploy", LMDEPLOY, {"DefaultRejectionSamplingImpl": DraftsFirst},
            "DefaultRejectionSamplingImpl.forward begins with the parameters self, "
            "draft_token_ids, target_logits, bonus_token_ids, not with self, target_logits, "
            "draft_token_ids, bonus_token_ids",
        ),
        (
            "flashspec", FLASHSPEC, {**STEPS, "rejection_step": laws_first},
            "rejection_step begins with the parameters target_logprobs, not with draft_token_ids",
        ),
        ("flashspec", FLASHSPEC, {"rejection_step": step}, f"{FLASHSPEC} cannot be imported"),
        (
            "flashspec", FLASHSPEC, {**STEPS, "rejection_step": with_an_option},
            "rejection_step has unknown parameters, lenience",
        ),
        (
            "flashspec", FLASHSPEC, {**STEPS, "rejection_step": one_hot},
            "rejection_step has unknown parameters, draft_len",
        ),
    ],
)  # fmt: skip
def test_other_signatures_are_not_run(
    name: str, module: str, names: Any, reason: str, install: Any
) -> None:
    install(module, **names)
    assert IMPLEMENTATIONS[name].not_run == f"not_run ({reason})"
