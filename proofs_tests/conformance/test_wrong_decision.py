"""The first wrong decision of a sampler is named, with the line that makes it."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import specref
from specref.algorithms import block
from specref.algorithms.standard import Draft
from specref.chance import Sampled
from specref.contracts.tree import GivenRows
from specref.examples import correct


def lenient_kept(p: Any, q: Any, x: int, rng: Any) -> bool:
    return bool(rng.random() * q[x] < p[x] * 1.25)  # here


def draw_from_p(p: Any, q: Any, rng: Any) -> int:
    ends = p.cumsum()
    return int((ends <= rng.random() * ends[-1]).sum())  # here


def draw_bonus_of_q(p: Any, q: Any, rng: Any) -> int:
    ends = q.cumsum()
    return int((ends <= rng.random() * ends[-1]).sum())  # here


def draw(weights: Any, rng: Any) -> int:
    ends = np.cumsum(np.asarray(weights, dtype=float))
    return int((ends <= rng.random() * ends[-1]).sum())


def walking(
    kept: Callable[..., bool] = lambda p, q, x, rng: bool(rng.random() * q[x] < p[x]),
    rest: Callable[..., int] = lambda p, q, rng: draw(np.maximum(p - q, 0), rng),
    last: Callable[..., int] = lambda p, q, rng: draw(p, rng),
) -> Callable[..., Any]:
    """A sampler that goes from draft to draft; by default it is lossless."""

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        batch, lookahead = draft_tokens.shape
        tokens = np.full((batch, lookahead + 1), -1)
        for row in range(batch):
            for i in range(lookahead + 1):
                p, x = target_probs[row, i], draft_tokens[row, i] if i < lookahead else -1
                if x < 0:
                    tokens[row, i] = last(p, draft_probs[row, max(i - 1, 0)], rng)
                    break
                q = draft_probs[row, i]
                if not kept(p, q, x, rng):
                    tokens[row, i] = rest(p, q, rng)
                    break
                tokens[row, i] = x
        return tokens, (tokens >= 0).sum(axis=1)

    return verify


def blockwise(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    rows, lookahead = draft_tokens.shape
    tokens = np.full((rows, lookahead + 1), -1)
    for row, (p, q) in enumerate(zip(target_probs, draft_probs, strict=True)):
        kept = tuple(int(x) for x in draft_tokens[row] if x >= 0)
        target = GivenRows({kept[:i]: law for i, law in enumerate(p[: len(kept) + 1])})
        drafts = [Draft(x, law) for x, law in zip(kept, q, strict=False)]
        found = block.verify(target, (), drafts, Sampled(rng))
        tokens[row, : len(found)] = found
    return tokens, (tokens >= 0).sum(axis=1)


def argmax_first(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    rows, lookahead = draft_tokens.shape
    tokens = np.full((rows, lookahead + 1), -1)
    for row in range(rows):
        uniform, drafts = rng.random(lookahead), draft_tokens[row][draft_tokens[row] >= 0]
        for i, (p, x) in enumerate(zip(target_probs[row], (*drafts, -1), strict=False)):
            if x >= 0 and uniform[i] * draft_probs[row, i, x] < p[x]:
                tokens[row, i] = x
                continue
            rest = p if x < 0 else np.maximum(p - draft_probs[row, i], 0)
            rest, first = rest / rest.sum(), x >= 0 and i == 0
            tokens[row, i] = rest.argmax() if first else rng.choice(len(p), p=rest)  # here
            break
    return tokens, (tokens >= 0).sum(axis=1)


def line_of(function: Callable[..., Any], mark: str = "# here") -> int:
    lines, start = inspect.getsourcelines(function)
    return start + next(n for n, line in enumerate(lines) if mark in line)


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    ("part", "name", "guilty"),
    [
        ("kept", "accept[0]", lenient_kept),
        ("rest", "residual[0]", draw_from_p),
        ("last", "bonus", draw_bonus_of_q),
    ],
)
def test_the_line_of_the_wrong_decision_is_named(
    part: str, name: str, guilty: Callable[..., Any]
) -> None:
    report = specref.check(walking(**{part: guilty}), one_hot=False, only=["joint/probed"])
    wrong = report.results[-1].evidence["decision"]
    assert wrong["name"] == name
    assert int(wrong["compared"].rpartition(":")[2]) == line_of(guilty)
    assert wrong["text"] in " ".join(str(report).split())


def test_numbers_for_drafts_that_are_not_reached_are_not_those_of_the_residual() -> None:
    """No number decides the token here; one does at the second draft, in the same line."""
    report = specref.check(argmax_first, one_hot=False, only=["joint/probed"])
    wrong = report.results[-1].evidence["decision"]
    assert wrong["name"] == "residual[0]"
    assert "no random number decides it, as one does after other drafts" in wrong["said"]
    assert int(wrong["compared"].rpartition(":")[2]) == line_of(argmax_first)


def stuck(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, generator: Any) -> Any:
    import torch

    rows, lookahead = draft_tokens.shape
    tokens = torch.full((rows, lookahead + 1), -1)
    for row in range(rows):
        for i in range(lookahead + 1):
            p, x = target_probs[row, i], int(draft_tokens[row, i]) if i < lookahead else -1
            if x < 0:
                tokens[row, i] = torch.multinomial(p, 1, generator=generator)
                break
            q = draft_probs[row, i]
            if not torch.rand((), generator=generator, dtype=p.dtype) * q[x] < p[x]:  # here
                tokens[row, i] = (p - q).argmax()
                break
            tokens[row, i] = x
    return tokens, (tokens >= 0).sum(1)


def test_the_seed_of_a_generator_is_no_number_that_the_code_draws() -> None:
    """No number decides the token; the last one that the code itself draws is named."""
    pytest.importorskip("torch")
    (result,) = specref.check(stuck, one_hot=False, arrays="torch", only=["joint/probed"]).failures
    wrong = result.evidence["decision"]
    assert wrong["name"] == "residual[0]"
    assert int(wrong["number"].rpartition(":")[2]) == line_of(stuck)


def test_a_lossless_sampler_has_no_wrong_decision() -> None:
    report = specref.check(correct.verify, only=["joint/probed"])
    assert "decision" not in report.results[-1].evidence


def test_joint_verification_is_compared_with_its_own_law() -> None:
    """Block verification keeps drafts by other probabilities, and is as lossless."""
    bug = walking(rest=draw_from_p)
    report = specref.check(bug, one_hot=False, algorithm="block", only=["joint/probed"])
    assert report.exit_code == 1
    assert "block verification has" in report.results[-1].evidence["decision"]["said"]
    rightly = specref.check(blockwise, one_hot=False, algorithm="block", only=["joint/probed"])
    assert rightly.exit_code == 0
    assert specref.check(blockwise, one_hot=False, only=["joint/probed"]).exit_code == 0


def drafting(
    accept: float = 1.0, rest: str = "(p - q)+", bonus: str = "p"
) -> Callable[..., tuple[int, ...]]:
    """A step that drafts by itself; by default it is lossless."""

    def step(
        target: Any, drafter: Any, context: Any, lookahead: int, *, rng: Any
    ) -> tuple[int, ...]:
        drafts: list[tuple[int, Any]] = []
        for _ in range(lookahead):
            q = drafter.next_token((*context, *(x for x, _ in drafts)))
            drafts.append((draw(q, rng), q))
        block: tuple[int, ...] = ()
        for x, q in drafts:
            p = target.next_token((*context, *block))
            if not rng.random() * q[x] < accept * p[x]:
                left = p if rest == "p" else np.maximum(p - q, 0)
                return (*block, draw(left, rng))
            block = (*block, x)
        last = target.next_token((*context, *block))
        return (*block, draw(q if bonus == "q" else last, rng))

    return step


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    ("planted", "name", "guilty", "mark"),
    [
        ({"accept": 1.3}, "accept[0]", drafting, "if not rng.random() * q[x]"),
        ({"rest": "p"}, "residual[0]", draw, "return int("),
        ({"bonus": "q"}, "bonus", draw, "return int("),
    ],
)
def test_the_wrong_decision_of_a_step_is_named(
    planted: dict[str, Any], name: str, guilty: Callable[..., Any], mark: str
) -> None:
    asked: Any = {"contract": "step", "only": ["joint/probed", "joint/probed-1-draft"]}
    assert specref.check(drafting(), **asked).exit_code == 0
    for result in specref.check(drafting(**planted), **asked).failures:
        wrong = result.evidence["decision"]
        assert wrong["name"] == name
        assert int(wrong["compared"].rpartition(":")[2]) == line_of(guilty, mark)


def flat(one_uniform: bool, bonus_for_all: bool) -> Callable[..., Any]:
    """A sampler of flat arrays in NumPy that is given the bonus token, with a planted bug."""

    def verify(
        *, draft_token_ids, cu_num_draft_tokens, max_spec_len, target_probs, draft_probs,
        bonus_token_ids, rng,
    ):  # fmt: skip
        out = np.full((len(cu_num_draft_tokens), max_spec_len + 1), -1)
        start = 0
        for row, end in enumerate(cu_num_draft_tokens):
            uniform = rng.random(end - start)  # the line that is named
            for n, at in enumerate(range(start, end)):
                x, p, q = draft_token_ids[at], target_probs[at], draft_probs[at]
                if uniform[0 if one_uniform else n] * q[x] < p[x]:
                    out[row, n] = x
                    continue
                residual = np.maximum(p - q, 0)
                drawn = rng.choice(len(p), p=residual / residual.sum())
                out[row, n] = bonus_token_ids[row] if bonus_for_all else drawn
                break
            else:
                out[row, end - start] = bonus_token_ids[row]
            start = end
        return out

    return verify


@pytest.mark.parametrize(
    ("bug", "said"), [((True, False), "accept[1]"), ((False, True), "residual[0]")]
)
def test_a_token_that_a_sampler_is_given_is_named_where_it_decides_alone(
    bug: tuple[bool, bool], said: str
) -> None:
    report = specref.check(flat(*bug), contract="ragged", one_hot=False, only=["joint/probed"])
    (result,) = report.failures
    decision = result.evidence["decision"]
    assert f": {said}" in decision["text"]
    if bug[1]:
        assert decision["number"] == "bonus_token_ids"
    else:
        assert int(decision["number"].rpartition(":")[2]) == line_of(flat, "is named")
