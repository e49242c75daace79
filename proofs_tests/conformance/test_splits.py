"""In which situations a sampler is wrong is found out by the kit, and said in the report."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specref
from proofs_tests.helpers.corpus import (
    RECORD,
    counts,
    is_right,
    loaded,
    mutants,
    read,
    table,
)
from specref.conformance import splits, suite
from specref.conformance.explaining import seeded_in
from specref.conformance.judge import Judge
from specref.conformance.options import CheckOptions
from specref.conformance.row_situations import LENGTHS, SITUATIONS, with_one_draft
from specref.conformance.splits import Split, by_lookahead, drawn_for_all, split, two_rows
from specref.conformance.status import CheckResult, Stage, Status
from specref.conformance.suite import prepare
from specref.conformance.summary import summarize
from specref.contracts.table import contract_named
from specref.examples.correct import verify as correct

BY_NAME = {one.name: one for one in mutants()}


def judge_of(verify: Any, contract: str = "verify") -> Judge:
    judge, _ = prepare(verify, CheckOptions(contract=contract_named(contract)))
    return judge


def split_of(verify: Any, contract: str = "verify", **how: Any) -> Split:
    found = split(judge_of(verify, contract), **how)
    assert found is not None
    return found


def changed(line: str, instead: str, folder: Path) -> Any:
    """`WITH_TEMPERATURE`, or another source, where a line is another."""
    source = IN_TORCH if line in IN_TORCH else WITH_TEMPERATURE
    assert source.count(line) == 1
    library = "import torch" if source is IN_TORCH else "import numpy as np"
    text = [library, *source.replace(line, instead).splitlines()]
    return loaded(text, "changed", "verify", folder)


def test_of_blocks_that_depend_on_each_other_two_rows_are_enough(tmp_path: Path) -> None:
    one = BY_NAME["verify_vec_05_uniform_per_column"]
    verify = loaded(one.source, one.name, one.function, tmp_path)
    found = split_of(verify, one.contract, depends=True)
    assert found.text.startswith("only beside other rows")
    assert (found.wrong, found.right) == (("two-rows",), ("alone",))
    assert found.decision is not None
    assert "rng." in one.source[int(found.decision.number.rpartition(":")[2]) - 1]


def test_one_draft_is_tried_where_two_are_usual() -> None:
    less = {one.name: with_one_draft(one) for one in SITUATIONS}
    second = less["second-row"]
    assert second is not None
    assert (second.drafts, second.before, second.after) == (1, 1, None)
    assert {name for name, one in less.items() if one is None} == {
        "no-drafts", "no-drafts-hot", "no-drafts-second",
        *(one.name for one in SITUATIONS if one.features & LENGTHS),
        *(one.name for one in SITUATIONS if one.branching),
    }  # fmt: skip


@pytest.mark.deep
@pytest.mark.parametrize("base", read()["bases"])
def test_a_right_sampler_is_right_in_all_situations(base: str, tmp_path: Path) -> None:
    one = next(one for one in mutants() if one.base == base)
    found = split_of(loaded(read()["bases"][base], base, one.function, tmp_path), one.contract)
    assert (found.text, found.wrong) == ("", ())
    assert len(found.right) >= 7


class Hidden:
    """A sampler whose random numbers come from where nothing is intercepted."""

    def __init__(self, verify: Any) -> None:
        self.verify = verify
        self.__name__ = self.__qualname__ = "hidden"

    def __call__(self, target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        seed = int(1e9 * abs(rng.normal())) + int(1e9 * abs(rng.normal()))
        own = np.random.Generator(np.random.Philox(seed))
        return self.verify(target_probs, draft_probs, draft_tokens, rng=own)


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("verify_loop_14_one_hot_uniform", "only where draft_probs is None (nothing seen in"),
        ("verify_vec_06_q_forgotten", "one row alone is enough, with one draft"),
    ],
)
def test_where_nothing_is_intercepted_blocks_are_drawn(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splits, "BLOCKS", 500)
    one = BY_NAME[name]
    found = split_of(Hidden(loaded(one.source, name, one.function, tmp_path)))
    assert said in found.text
    assert found.decision is None


def test_the_record_is_of_the_corpus() -> None:
    """Its counts are those of its rows, and at least four in five are named rightly."""
    record = json.loads(RECORD.read_text())
    assert [one["name"] for one in record["mutants"]] == [one.name for one in mutants()]
    assert record["counts"] == counts(record["mutants"])
    assert sum(one["right"] for one in record["mutants"]) >= 0.8 * len(record["mutants"])


def test_a_wrong_name_or_a_line_without_a_number_is_not_right() -> None:
    one = BY_NAME["verify_loop_01_p_row_before"]
    said = "verify_loop.py:33: accept[1] keeps draft 0 with 0.4"
    assert is_right(one, said, "", [33, 32])
    assert not is_right(one, said.replace("accept", "residual"), "", [33, 32])
    assert not is_right(one, said, "", [25, 20])
    situated = BY_NAME["verify_loop_14_one_hot_uniform"]
    assert is_right(situated, "", "only where draft_probs is None (right: one row alone)", [])
    assert not is_right(situated, said, "one row alone is enough, with one draft", [33, 32])


@pytest.mark.deep
def test_the_record_is_what_the_kit_says() -> None:
    assert list(table()) == json.loads(RECORD.read_text())["mutants"]


WITH_TEMPERATURE = """
def softmax(logits):
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def verify(
    *, draft_token_ids, num_draft_tokens, target_logits, draft_probs, temperature, rng
):
    blocks, at = [], 0
    for row, (count, heat) in enumerate(zip(num_draft_tokens, temperature)):
        logits, block = target_logits[at + row : at + row + count + 1], []
        p = softmax(logits / heat)
        for i, x in enumerate(draft_token_ids[at : at + count]):
            q = np.eye(p.shape[1])[x] if draft_probs is None else draft_probs[at + i]
            if rng.random() * q[x] >= p[i, x]:
                left = np.maximum(p[i] - q, 0)
                block.append(rng.choice(len(q), p=left / left.sum()))
                break
            block.append(x)
        else:
            block.append(rng.choice(p.shape[1], p=p[count]))
        blocks.append(block)
        at += count
    return blocks
"""
IN_TORCH = """
def verify(
    *, draft_token_ids: torch.Tensor, num_draft_tokens, target_logits, draft_probs, temperature,
    generator,
):
    counts = num_draft_tokens
    row = torch.repeat_interleave(torch.arange(len(counts)), counts)
    column = torch.arange(len(row)) - (counts.cumsum(0) - counts)[row]
    place = torch.arange(len(row)) + row
    ends = counts.cumsum(0) + torch.arange(len(counts))
    owner = torch.repeat_interleave(torch.arange(len(counts)), counts + 1)
    p = torch.softmax(target_logits / temperature[owner, None], 1)
    q = torch.zeros_like(p)
    if draft_probs is None:
        q[place, draft_token_ids] = 1
    else:
        q[place] = draft_probs
    u = torch.rand(len(row), generator=generator, dtype=p.dtype)
    accepted = torch.zeros(len(counts), int(counts.max()) + 1, dtype=torch.bool)
    accepted[row, column] = u * q[place, draft_token_ids] < p[place, draft_token_ids]
    kept = accepted.long().cumprod(1).sum(1)
    here = ends - counts + kept
    left = (p[here] - q[here]).clamp(min=0)
    last = torch.multinomial(left, 1, generator=generator)[:, 0]
    tokens = torch.full_like(accepted, -1, dtype=torch.int64)
    tokens[row, column] = torch.where(column < kept[row], draft_token_ids, -1)
    tokens[torch.arange(len(counts)), kept] = last
    return tokens, kept + 1
"""
FORGOTTEN: tuple[tuple[str, str, str], ...] = (
    ("logits / heat", "logits", "accept"),
    ("p[i] - q, 0", "softmax(logits[i]) - q, 0", "residual"),
    ("p=p[count])", "p=softmax(logits[count]))", "bonus"),
    ("target_logits / temperature[owner, None]", "target_logits", "accept"),
    ("p[here] - q", "torch.softmax(target_logits, 1)[here] - q", "residual"),
)


@pytest.mark.deep(one_in=12)
@pytest.mark.parametrize(("line", "instead", "decision"), FORGOTTEN)
def test_a_forgotten_temperature_is_told_as_such(
    line: str, instead: str, decision: str, tmp_path: Path
) -> None:
    """At its line, only at T ≠ 1, with a cause about temperature: rounding is none."""
    right, wrong = (changed(line, one, tmp_path) for one in (line, instead))
    # Where checks are named, situations are not tried.
    others = [one.id for one in suite.CHECKS if one.id != "joint/probed"]
    asked: dict[str, Any] = {"contract": "ragged", "profile": "smoke", "skip": others}
    assert specref.check(right, **asked).passed
    report = specref.check(wrong, **asked)
    (shown,) = report.failures
    summary = summarize(report)
    assert shown.evidence["decision"]["name"].startswith(decision)
    assert "changed.py:" in shown.evidence["decision"]["compared"]
    assert shown.evidence["split"]["text"].startswith("only at T ≠ 1")
    cause = " ".join(" ".join(summary.cause).split())
    assert "temperature" in cause
    assert "rounding" not in cause


INDEXED: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    (
        "softmax(logits / heat)",
        "softmax(logits / np.repeat(temperature, max(num_draft_tokens) + 1)"
        "[at + row : at + row + count + 1, None])",
        "only after rows with fewer drafts and another temperature",
        "accept[0]",
        (),
    ),
    (
        "p=p[count])",
        "p=softmax(target_logits[min(at + row + count, len(target_logits) - 2)] / heat))",
        "only in the last row of a call (right: in rows that others come after)",
        "bonus",
        (),
    ),
    (
        "left = np.maximum(p[i] - q, 0)",
        "left = p[i] if draft_probs is None else np.maximum(p[i] - q, 0)",
        "only where draft_probs is None",
        "residual[0]",
        ("residual-is-p",),
    ),
)
"""Lines of which an index, or what is done without laws, is wrong: where, and what is known."""


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(("line", "instead", "only", "decision", "known"), INDEXED)
def test_a_wrong_index_is_led_to_its_rows_and_its_line(
    line: str, instead: str, only: str, decision: str, known: tuple[str, ...], tmp_path: Path
) -> None:
    found = split_of(changed(line, instead, tmp_path), "ragged")
    assert found.text.startswith(only)
    assert found.decision is not None
    assert found.decision.name == decision
    assert "changed.py:" in found.decision.compared
    assert set(known) <= set(found.known[:1])


def test_a_right_sampler_with_temperatures_is_right_in_all_situations(tmp_path: Path) -> None:
    found = split_of(changed("logits / heat", "logits / heat", tmp_path), "ragged")
    assert (found.text, found.wrong, found.known, found.place) == ("", (), (), "")
    assert {"after-short-other-heat", "after-long-other-heat"} <= set(found.right)


def wrong_between(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    """Reads p backwards in rows that are neither the first nor the last."""
    target_probs = target_probs.copy()
    target_probs[1:-1] = target_probs[1:-1, :, ::-1]
    return correct(target_probs, draft_probs, draft_tokens, rng=rng)


def test_what_takes_three_rows_is_told_as_such() -> None:
    found = split_of(wrong_between)
    assert found.text.startswith("only in rows between two others")
    assert "alone" in found.right
    assert found.wrong == ("between",)


ROW_OF_FIRST = "np.maximum(p[0] - (q if draft_probs is None else draft_probs[at]), 0)"
READ: tuple[tuple[str, str, str, str], ...] = (
    ("np.maximum(p[i] - q, 0)", ROW_OF_FIRST, "residual[1]", "(p - q)+ of position 0"),
    ("np.maximum(p[i] - q, 0)", "p[i] + 0 * q", "residual[0]", "p of position 0"),
    ("p=p[count])", "p=p[count - 1])", "bonus", "p of position 1"),
    ("np.maximum(p[i] - q, 0)", "np.sqrt(np.maximum(p[i] - q, 0))", "residual[0]", ""),
    ("p=p[count])", "p=p[: count + 1].mean(0))", "bonus", ""),
)
"""What is drawn from another row, and what from none: the decision, and what is named."""


@pytest.mark.deep(one_in=5)
@pytest.mark.parametrize(("line", "instead", "decision", "made"), READ)
def test_the_row_that_is_read_instead_is_named(
    line: str, instead: str, decision: str, made: str, tmp_path: Path
) -> None:
    found = split_of(changed(line, instead, tmp_path), "ragged")
    assert found.decision is not None
    assert (found.decision.name, found.decision.made) == (decision, made)


def exact_results(wrong: set[int], right: set[int]) -> list[CheckResult]:
    """Of exact laws of so many drafts."""
    outcomes = {**dict.fromkeys(wrong, Status.FAILED), **dict.fromkeys(right, Status.PASSED)}
    names = {1: "joint/probed-1-draft", 2: "joint/probed"}
    ids = {n: names.get(n, f"joint/probed-{n}-drafts") for n in outcomes}
    return [CheckResult(ids[n], Stage.JOINT, s, "", {}, 0.0) for n, s in outcomes.items()]


def test_with_how_many_drafts_it_is_wrong_is_told() -> None:
    found = by_lookahead(exact_results({7, 8}, {1, 2, 6, 33}), "joint/probed-7-drafts")
    assert found["text"].startswith("only with 7 and 8 drafts (right with 1, 2 and 6; and with 33")
    assert found["lookaheads"] == [7, 8]
    assert not by_lookahead(exact_results({1, 7}, {2}), "joint/probed-7-drafts")
    assert not by_lookahead(exact_results({2}, {1}), "joint/probed")
    assert not by_lookahead(exact_results({7}, {1}), "joint/wide")


def reseeded(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    """Every call draws the same numbers."""
    return correct(target_probs, draft_probs, draft_tokens, rng=np.random.default_rng(5))


def test_the_line_that_seeds_a_generator_in_each_call_is_named() -> None:
    line = reseeded.__code__.co_firstlineno + 2
    for verify, where in ((reseeded, f"test_splits.py:{line}"), (correct, "")):
        found = seeded_in(judge_of(verify))
        assert (found is None) is (not where)
        assert found is None or found.number.endswith(where)
        assert np.random.default_rng.__name__ == "default_rng"


def noisy(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    """Of one draft; what comes last in all rows is decided by one noise."""
    rows, drafts = np.arange(len(draft_tokens)), draft_tokens[:, 0]
    p, q = target_probs[rows, 0, drafts], draft_probs[rows, 0, drafts]
    kept = (rng.random(len(rows)) * q < p).astype(np.int64)
    law = np.where(kept[:, None], target_probs[:, 1], target_probs[:, 0] - draft_probs[:, 0])
    noise = rng.standard_exponential((1, law.shape[1]))
    last = (law.clip(min=0) / noise).argmax(1)
    tokens = np.full(target_probs.shape[:2], -1)
    tokens[rows, 0], tokens[rows, kept] = drafts, last
    return tokens, kept + 1


def test_noise_that_all_rows_have_is_named_with_its_line() -> None:
    found = split_of(noisy, depends=True)
    assert found.decision is not None
    assert "as many random numbers are drawn for two" in found.decision.said
    line = noisy.__code__.co_firstlineno + 6
    assert found.decision.number.endswith(f"test_splits.py:{line}")


def test_noise_is_counted_where_the_law_of_two_rows_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in torch, where a run takes a hundred times as long."""
    counted = False

    def only_counted(work: Any, judge: Any, until: float) -> Any:
        nonlocal counted
        counted = work.func is drawn_for_all
        return work() if counted else None

    monkeypatch.setattr("specref.conformance.splits.in_time", only_counted)
    judge = judge_of(noisy)
    found = two_rows(judge, 0.0, known=True)
    assert counted
    assert found.decision is not None
    assert found.decision.number.endswith(f"test_splits.py:{noisy.__code__.co_firstlineno + 6}")
    assert two_rows(judge, 0.0).wrong is None
