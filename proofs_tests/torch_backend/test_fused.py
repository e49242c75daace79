"""Fused verification: compiled on CUDA, or in Triton's interpreter.

Blocks are those of the eager rule, whose law is proved elsewhere, coin by coin: on dyadic laws,
whose sums are exact in any order, and on both sides of every threshold of its coins. Chunks are
of 2 tokens, so that rows have several. The kit's sampled checks, on CUDA, have alpha 1e-9 and
find a total variation of 0.1 with a probability of 0.999.
"""

import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("triton", reason="not_run (no triton)")

import torch

from proofs_tests.helpers.torch.fused_batches import (
    DEVICE,
    LOOKAHEAD,
    critical,
    differing,
    differing_logits,
    drawn,
    edges,
    kernels_needed,
    logits,
    placed,
    together,
)
from proofs_tests.helpers.torch.laws import LAST
from specref.adapters.torch_backend import load_fused_verify
from specref.algorithms import standard, union
from specref.conformance.public import check
from specref.torch_backend import fused
from specref.torch_backend.fused import verify, verify_logits
from specref.torch_backend.validation import NO_DRAFT
from specref.torch_backend.verification.chains import Coins

kernels_needed()
pytestmark = pytest.mark.usefixtures("undiagnosed")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "CHUNK_BYTES", 2 * torch.float64.itemsize)
    monkeypatch.setattr(fused, "SPLITS", 2)


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_blocks_are_those_of_the_eager_rule(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused, "CHUNK_BYTES", 2 * dtype.itemsize)
    assert differing(drawn(dtype=dtype)) == []


def test_certain_drafts_need_no_laws() -> None:
    p, _, tokens, coins = drawn()
    assert differing((p, None, tokens, coins)) == []


def test_lens_say_what_padding_says() -> None:
    p, q, tokens, coins = drawn()
    lens = (tokens != NO_DRAFT).sum(dim=1)
    filled = tokens.masked_fill(tokens == NO_DRAFT, 1).int()
    assert differing((p, q, filled, coins), lens=lens.int()) == []


def test_strides_are_followed() -> None:
    p, q, tokens, coins = drawn(8)
    apart = [one.repeat_interleave(2, -1)[:, :, ::2] for one in (p, q)]
    assert differing((*apart, tokens, coins)) == []
    assert differing((p[:1].expand(8, -1, -1), q.flip(0), tokens, coins)) == []


def test_positions_may_be_far_apart() -> None:
    """Past 2^31 entries in all; what of them is not read takes no memory on a CPU."""
    p, _, tokens, coins = placed(drawn(8, torch.bfloat16))
    apart = torch.empty(LOOKAHEAD * 2**30 + p[:, 0].numel(), dtype=p.dtype, device=DEVICE)
    far = apart.as_strided(p.shape, (p.shape[2], 2**30, 1))
    for rule, laws in ((verify, p), (verify_logits, p.log())):
        found = rule(far.copy_(laws), None, tokens, coins=coins)
        assert all(map(torch.equal, found, rule(laws, None, tokens, coins=coins)))


def test_without_drafts_or_rows() -> None:
    p, q, _, coins = drawn(4)
    none = torch.empty(4, 0, dtype=torch.int64), Coins(torch.empty(4, 0), coins.final)
    for laws in (None, q[:, :0]):
        assert differing((p[:, :1], laws, *none)) == []
    few = Coins(coins.accept[:0], coins.final[:0])
    assert differing((p[:0], q[:0], torch.empty(0, LOOKAHEAD).long(), few)) == []


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("u", [0.0, LAST])
def test_ends_of_the_coins(dtype: torch.dtype, u: float) -> None:
    given = edges(dtype, u)
    assert differing(given) == []
    p, q, tokens, coins = placed(given)
    found, counts = verify(p, q, tokens, coins=coins)
    assert counts.tolist() == [1, 2, 2 if u == 0 else 1, 1]
    assert {*found.flatten().tolist()} <= {2, 3, NO_DRAFT}


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize(
    ("step", "name"), [(standard.step, "order 1, zeros"), (union.step, "partly shared")]
)
def test_the_law_is_that_of_the_eager_rule(step: Any, name: str) -> None:
    """Each threshold of a coin is within 2^-40 of the eager one."""
    given = together(critical(step, name))
    assert len(given[0]) > 100
    assert differing(given) == []


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_blocks_of_logits_are_those_of_their_laws(temperature: float) -> None:
    """In float64 no coin of these is within rounding of a threshold."""
    p, q, tokens, coins = logits()
    for laws in (q, None):
        assert differing_logits((p, laws, tokens, coins), temperature) == []


@pytest.mark.deep(one_in=2)
def test_logits_without_drafts() -> None:
    p, q, _, coins = logits()
    few = Coins(coins.accept[:, :0], coins.final)
    for laws in (None, q[:, :0]):
        assert differing_logits((p[:, :1], laws, torch.empty(18, 0).long(), few)) == []


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_low_precision_logits(dtype: torch.dtype) -> None:
    """Widened before arithmetic, then in float32: the same blocks but near thresholds."""
    p, q, tokens, coins = logits()
    assert differing_logits((p.to(dtype), q.to(dtype), tokens, coins)) == []


# Planted bugs: one expression of a copy of the kernels is another.

BUGS = {
    "accepts p = 0 at u = 0": ("uniform < ratio", "uniform <= ratio"),
    "weight 0 at u = 0": ("ends > point", "ends >= point"),
    "one coin for chunk and token": ("chosen, uniform = first", "chosen, _ = first"),
    "q of the position before": ("law_of(q, row, position", "law_of(q, row, position * 0"),
    "bonus from a residual": (
        "if draft != NO_DRAFT:\n            # The",
        "if position < q.lines:\n            # The",
    ),
    "residual is p": ("tl.maximum(law - drafted, 0.0)", "law"),
    "residual is |p - q|": ("tl.maximum(law - drafted, 0.0)", "tl.abs(law - drafted)"),
    "residual of certain drafts is p": ("== draft, 0.0, law)", "== draft, law, law)"),
    "empty residual": ("tl.reduce(excess, 0, larger) > 0", "tl.reduce(excess, 0, larger) >= 0"),
    "goes on after a rejection": ("tl.atomic_max(", "tl.atomic_min("),
    "stops one position earlier": ("lookahead - position).to", "lookahead - position + 1).to"),
    "the first chunk draws": ("arrive(work.drawing + row) == chunks - 1", "chunk == 0"),
    "tokens of another row's 16 bytes": ("(token >= 0) & (token < size)", "token < size"),
}
BUGS_OF_LOGITS = {
    "temperature of 1": (" * tl.full((), inverse, logits.dtype)", ""),
    "-inf - -inf": ('tl.where(largest == float("-inf"), 0.0, largest)', "largest"),
    "sums of two scales": ("totals * scaled_exp(largest, most, inverse), 0", "totals, 0"),
    "masses of two scales": ("totals * scaled_exp(largest, most, inverse)).to", "totals).to"),
    "the first split judges": ("arrive(counter) == splits - 1", "split == 0"),
}
SAME = {
    "programs in the opposite order": (
        "program = tl.program_id(0)",
        "program = tl.num_programs(0) - 1 - tl.program_id(0)",
    ),
    "aligned where that is said": ("tl.multiple_of(place, lanes)", "(place // lanes * lanes)"),
}


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def plant(right: str, wrong: str, times: int = 1) -> None:
        source, file = Path(fused.kernels.__file__).read_text(), tmp_path / "planted_kernels.py"
        assert source.count(right) == times
        file.write_text(source.replace(right, wrong))
        spec: Any = spec_from_file_location(file.stem, file)
        module = module_from_spec(spec)
        monkeypatch.setitem(sys.modules, file.stem, module)
        spec.loader.exec_module(module)
        monkeypatch.setattr(fused, "kernels", module)

    return plant


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_give_other_blocks(bug: str, plant: Callable[[str, str], None]) -> None:
    plant(*BUGS[bug])
    p, _, tokens, coins = drawn()
    cases = edges(), edges(u=LAST), drawn(), (p, None, tokens, coins)
    assert any(map(differing, cases))


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("bug", BUGS_OF_LOGITS)
def test_planted_bugs_of_logits(bug: str, plant: Callable[[str, str], None]) -> None:
    plant(*BUGS_OF_LOGITS[bug])
    p, q, tokens, coins = logits()
    assert any(differing_logits((p, laws, tokens, coins), temperature=0.5) for laws in (None, q))


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(("same", "times"), [(name, 1 + ("program" in name)) for name in SAME])
def test_blocks_stay_the_same(same: str, times: int, plant: Callable[..., None]) -> None:
    """Programs may run in any order; and where entries are called aligned they are."""
    plant(*SAME[same], times)
    p, q, tokens, coins = logits()
    assert differing_logits((p, q, tokens, coins)) == []
    p, q, tokens, coins = drawn(8, torch.float32)
    assert differing((p, q, tokens, coins)) == []
    assert differing((p[:1].expand(8, -1, -1), q.flip(0), tokens, coins)) == []


def test_wrong_alignment_is_found(plant: Callable[..., None]) -> None:
    """A chunk that begins at token 0 of its line is at the middle of 16 bytes."""
    plant(*SAME["aligned where that is said"])
    plant("- begin % lanes", "")
    assert differing(drawn(8, torch.float32)) != []


EARLY = ("position + dropped <= lookahead", "position + dropped <= 2 * lookahead")


@pytest.mark.parametrize("bug", [None, EARLY])
def test_nothing_is_read_after_a_rejection(
    bug: tuple[str, str] | None, plant: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs run in order in the interpreter: of positions after the end no split arrives."""
    if DEVICE == "cuda":
        pytest.skip("not_run here (on a GPU programs overlap)")
    if bug:
        plant(*bug)
    run, arrived = fused.launch, []

    def noted(kernel: Any, *given: Any, **constants: Any) -> None:
        run(kernel, *given, **constants)
        arrived.append(given[5].judging.T)

    monkeypatch.setattr(fused, "launch", noted)
    p, q, tokens, coins = logits()
    _, counts = verify_logits(p, q, tokens, coins=coins)
    after = torch.arange(LOOKAHEAD + 1) >= counts[:, None]
    assert (arrived[0][~after] == fused.SPLITS).all()
    assert bool(arrived[0][after].any()) == bool(bug)


def test_lens_that_are_not_looked_at_are_found(plant: Callable[..., None]) -> None:
    plant("mask=position < length", "mask=position < lookahead")
    p, q, tokens, coins = drawn()
    lens = (tokens != NO_DRAFT).sum(dim=1)
    filled = tokens.masked_fill(tokens == NO_DRAFT, 1)
    assert differing((p, q, filled, coins), lens=lens) != []


EXACT = ["smoke/answers", "smoke/no-drafts", "smoke/one-hot", "replay/edge"]
SAMPLED = ["smoke", "replay", "boundary", "joint/wide", "joint/eos", "independence/rows-wide"]


@pytest.mark.deep
def test_the_kit_finds_nothing() -> None:
    """With small batches in the interpreter, which takes one row after the other."""
    if DEVICE == "cuda":
        for dtype in ("float64", "float32", "float16", "bfloat16"):
            report = check(load_fused_verify("cuda", dtype), only=SAMPLED, detect_tv=0.1)
            assert report.exit_code == 0, report
        return
    report = check(load_fused_verify(), only=EXACT, batch=64, timeout=600.0)
    assert report.exit_code == 0, report
    assert report.counts["passed"] == len(report.results)


@pytest.mark.deep
def test_the_kit_finds_a_planted_bug(plant: Callable[[str, str], None]) -> None:
    plant(*BUGS["accepts p = 0 at u = 0"])
    report = check(load_fused_verify(), only=["replay/edge"], blocking=False, timeout=600.0)
    assert [result.finding for result in report.results] == ["edge"], report


def test_verification_waits_for_nothing() -> None:
    if not torch.cuda.is_available():
        pytest.skip("not_run (no CUDA)")
    p, q, tokens, coins = placed(drawn())
    expected = [rule(p, q, tokens, coins=coins) for rule in (verify, verify_logits)]
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = [rule(p, q, tokens, coins=coins) for rule in (verify, verify_logits)]
        with pytest.raises(RuntimeError, match="synchronizing"):
            found[0][1].tolist()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for blocks, same in zip(found, expected, strict=True):
        assert all(map(torch.equal, blocks, same))
