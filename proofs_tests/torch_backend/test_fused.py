"""Fused verification: on a CPU in Triton's interpreter, compiled where there is CUDA.

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
    LOOKAHEAD,
    critical,
    differing,
    differing_logits,
    drawn,
    edges,
    logits,
    on,
    together,
)
from proofs_tests.helpers.torch.laws import LAST
from specref.adapters.torch_backend import load_fused_verify
from specref.algorithms import standard, union
from specref.conformance.public import check
from specref.torch_backend import fused
from specref.torch_backend.fused import kernels, verify, verify_logits
from specref.torch_backend.validation import NO_DRAFT
from specref.torch_backend.verification.chains import Coins

pytestmark = pytest.mark.usefixtures("undiagnosed")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "CHUNK_BYTES", 2 * torch.float64.itemsize)
    monkeypatch.setattr(fused, "SPLITS", 2)


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("not_run (no CUDA)")
    return str(request.param)


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_blocks_are_those_of_the_eager_rule(
    dtype: torch.dtype, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused, "CHUNK_BYTES", 2 * dtype.itemsize)
    assert differing(drawn(dtype=dtype), device) == []


def test_certain_drafts_need_no_laws(device: str) -> None:
    p, _, tokens, coins = drawn()
    assert differing((p, None, tokens, coins), device) == []


def test_lens_say_what_padding_says(device: str) -> None:
    p, q, tokens, coins = drawn()
    lens = (tokens != NO_DRAFT).sum(dim=1)
    filled = tokens.masked_fill(tokens == NO_DRAFT, 1).int()
    assert differing((p, q, filled, coins), device, lens=lens.int()) == []


def test_strides_are_followed(device: str) -> None:
    p, q, tokens, coins = drawn(8)
    apart = [one.repeat_interleave(2, -1)[:, :, ::2] for one in (p, q)]
    assert differing((*apart, tokens, coins), device) == []
    assert differing((p[:1].expand(8, -1, -1), q.flip(0), tokens, coins), device) == []


def test_positions_may_be_far_apart(device: str) -> None:
    """Past 2^31 entries in all; what of them is not read takes no memory on a CPU."""
    p, _, tokens, coins = on(device, drawn(8, torch.bfloat16))
    apart = torch.empty(LOOKAHEAD * 2**30 + p[:, 0].numel(), dtype=p.dtype, device=device)
    far = apart.as_strided(p.shape, (p.shape[2], 2**30, 1))
    for rule, laws in ((verify, p), (verify_logits, p.log())):
        found = rule(far.copy_(laws), None, tokens, coins=coins)
        assert all(map(torch.equal, found, rule(laws, None, tokens, coins=coins)))


def test_without_drafts_or_rows(device: str) -> None:
    p, q, _, coins = drawn(4)
    none = torch.empty(4, 0, dtype=torch.int64), Coins(torch.empty(4, 0), coins.final)
    for laws in (None, q[:, :0]):
        assert differing((p[:, :1], laws, *none), device) == []
    few = Coins(coins.accept[:0], coins.final[:0])
    assert differing((p[:0], q[:0], torch.empty(0, LOOKAHEAD).long(), few), device) == []


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("u", [0.0, LAST])
def test_ends_of_the_coins(dtype: torch.dtype, u: float, device: str) -> None:
    given = edges(dtype, u)
    assert differing(given, device) == []
    p, q, tokens, coins = on(device, given)
    found, counts = verify(p, q, tokens, coins=coins)
    assert counts.tolist() == [1, 2, 2 if u == 0 else 1, 1]
    assert {*found.flatten().tolist()} <= {2, 3, NO_DRAFT}


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize(
    ("step", "name"), [(standard.step, "order 1, zeros"), (union.step, "partly shared")]
)
def test_the_law_is_that_of_the_eager_rule(step: Any, name: str, device: str) -> None:
    """Each threshold of a coin is within 2^-40 of the eager one."""
    given = together(critical(step, name))
    assert len(given[0]) > 100
    assert differing(given, device) == []


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_blocks_of_logits_are_those_of_their_laws(temperature: float, device: str) -> None:
    """In float64 no coin of these is within rounding of a threshold."""
    p, q, tokens, coins = logits()
    for laws in (q, None):
        assert differing_logits((p, laws, tokens, coins), device, temperature) == []


@pytest.mark.deep(one_in=2)
def test_logits_without_drafts(device: str) -> None:
    p, q, _, coins = logits()
    few = Coins(coins.accept[:, :0], coins.final)
    for laws in (None, q[:, :0]):
        assert differing_logits((p[:, :1], laws, torch.empty(18, 0).long(), few), device) == []


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_low_precision_logits(dtype: torch.dtype, device: str) -> None:
    """Widened before arithmetic, then in float32: the same blocks but near thresholds."""
    p, q, tokens, coins = logits()
    assert differing_logits((p.to(dtype), q.to(dtype), tokens, coins), device) == []


# Planted bugs: one expression of a copy of the kernels is another.

BUGS = {
    "accepts p = 0 at u = 0": ("uniforms < ratio", "uniforms <= ratio"),
    "weight 0 at u = 0": ("ends > point", "ends >= point"),
    "one coin for chunk and token": ("chunk, uniform = first", "chunk, _ = first"),
    "q of the position before": (
        "read(q, row, position, token",
        "read(q, row, position * 0, token",
    ),
    "bonus from a residual": (
        "token < tl.where(rejected == NO_DRAFT, 0, size)",
        "position < q.lines",
    ),
    "residual is p": ("tl.maximum(law - drafted, 0.0)", "law"),
    "residual is |p - q|": ("tl.maximum(law - drafted, 0.0)", "tl.abs(law - drafted)"),
    "residual of certain drafts is p": ("token == rejected, 0.0", "token == rejected, law"),
    "empty residual": ("tl.reduce(excess, 0, larger) > 0", "tl.reduce(excess, 0, larger) >= 0"),
}
BUGS_OF_LOGITS = {
    "temperature of 1": (" * tl.full((), inverse, logits.dtype)", ""),
    "-inf - -inf": ('tl.where(largest == float("-inf"), 0.0, largest)', "largest"),
    "sums of two scales": (
        "total * scaled_exp(largest, most, inverse) + summed",
        "total + summed",
    ),
    "splits of two scales": ("total * scaled_exp(largest, most[:, None], inverse)", "total"),
}


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    def plant(right: str, wrong: str) -> None:
        source, file = Path(kernels.__file__).read_text(), tmp_path / "planted_kernels.py"
        assert source.count(right) == 1
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


EXACT = ["smoke/answers", "smoke/no-drafts", "smoke/one-hot", "replay/edge"]
SAMPLED = ["smoke", "replay", "boundary", "joint/wide", "joint/eos", "independence/rows-wide"]


@pytest.mark.deep
def test_the_kit_finds_nothing(device: str) -> None:
    """With small batches in the interpreter, which takes one row after the other."""
    if device == "cuda":
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
    p, q, tokens, coins = on("cuda", drawn())
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
