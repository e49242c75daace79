"""The Triton kernels as programs: compiled for a GPU that need not be there, and imported."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("triton", reason="not_run (no triton)")

import torch
import triton
from triton.backends.compiler import GPUTarget

from specref.torch_backend import fused
from specref.torch_backend.fused import kernels, verify, verify_logits
from specref.torch_backend.fused.interpreted import launch
from specref.torch_backend.verification.chains import Coins


class Hopper(SimpleNamespace):
    """As much of a driver as a compilation asks."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What every kernel that is launched becomes for compute capability 9.0; nothing runs."""
    found: dict[str, Any] = {}

    def compiled(kernel: Any, grid: Any, *given: Any, **constants: Any) -> None:
        found[kernel.__name__] = kernel.warmup(*given, grid=grid, **constants).asm

    monkeypatch.setattr(fused, "launch", compiled)
    monkeypatch.setattr(triton.runtime.driver, "_active", Hopper())
    return found


def asked(kind: str, dtype: torch.dtype, size: int, step: int = 1, rows: int = 4) -> None:
    """Launch every kernel of a rule, with ragged rows."""
    with torch.device("meta"):
        p, q = (torch.empty(rows, n, size, dtype=dtype)[..., ::step] for n in (5, 4))
        given = p, q, torch.empty(rows, 4, dtype=torch.int64)
        coins = Coins(torch.empty(rows, 4), torch.empty(rows))
    rule = verify_logits if kind == "logits" else verify
    rule(*given, lens=given[2][:, 0], coins=coins)


@pytest.mark.parametrize("contiguous", [True, False])
def test_kernels_read_16_bytes_at_once(compiled: dict[str, Any], contiguous: bool) -> None:
    for kind in ("logits", "probs"):
        asked(kind, torch.bfloat16, 16 * 1024, 1 if contiguous else 2)
    wide = {
        name: bool(re.search(r"ld\.global\S*\.v4\.b32", asm["ptx"]))
        for name, asm in compiled.items()
    }
    assert wide == dict.fromkeys(("summarise", "sum_chunks", "draw_last"), contiguous)


DUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
KERNELS = {
    "probs": ("sum_chunks", "draw_last"),
    "logits": ("summarise", "sum_chunks", "draw_last"),
}
REGISTERS = 128
"""Of a thread at most: 4 warps of 128 registers leave room for four programs beside each other."""


def used(cubin: bytes, folder: Path) -> dict[str, int]:
    """What a kernel takes of a multiprocessor: registers, and bytes of stack and local memory."""
    (folder / "kernel.cubin").write_bytes(cubin)
    command = [str(DUMP), "-res-usage", str(folder / "kernel.cubin")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {
        name: int(re.search(rf"\b{name}:(\d+)", said)[1]) for name in ("REG", "STACK", "LOCAL")
    }


@pytest.mark.skipif(not DUMP.is_file(), reason="not_run (this Triton has no cuobjdump)")
@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize(
    "dtype",
    [
        torch.float32,
        torch.bfloat16,
        pytest.param(torch.float16, marks=pytest.mark.deep),
        pytest.param(torch.float64, marks=pytest.mark.deep),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "size", [152_064, *(pytest.param(n, marks=pytest.mark.deep) for n in (1, 50_257))]
)
def test_kernels_become_machine_code_without_spills(
    compiled: dict[str, Any],
    kind: str,
    dtype: torch.dtype,
    size: int,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    asked(kind, dtype, size)
    assert tuple(compiled) == KERNELS[kind]
    for name, asm in compiled.items():
        found = used(asm["cubin"], tmp_path)
        record_property("figure", f"sm_90: {name}, {kind}, {dtype}, V = {size}: {found}")
        assert found["LOCAL"] == found["STACK"] == 0
        assert found["REG"] <= REGISTERS


@pytest.mark.deep
def test_a_spill_would_be_seen(compiled: dict[str, Any], tmp_path: Path, monkeypatch: Any) -> None:
    """With chunks of 64 KiB the bonus's scan no longer fits into registers."""
    monkeypatch.setattr(fused, "CHUNK_BYTES", 64 * 1024)
    asked("probs", torch.bfloat16, 152_064)
    found = used(compiled["draw_last"]["cubin"], tmp_path)
    assert found["REG"] > REGISTERS or found["STACK"] or found["LOCAL"]


@pytest.mark.parametrize(
    ("broken", "error", "message"),
    [
        (
            {"coins": Coins(torch.zeros(1, 1), race=torch.ones(1, 2))},
            ValueError,
            "final is None",
        ),
        (
            {"coins": Coins(torch.zeros(1, 1), torch.zeros(1), torch.ones(1, 2))},
            ValueError,
            r"coins\.race is given: expected None",
        ),
        ({"draft_tokens": torch.zeros(1, 1)}, TypeError, "draft_tokens is of torch.float32"),
        (
            {"lens": torch.zeros(1, dtype=torch.int64, device="meta")},
            ValueError,
            "lens is on meta",
        ),
        ({"temperature": 0.0}, ValueError, "temperature = 0.0"),
    ],
)
def test_bad_arguments(broken: dict[str, Any], error: type[Exception], message: str) -> None:
    coins = Coins(torch.zeros(1, 1), final=torch.zeros(1))
    given = {"draft_tokens": torch.zeros(1, 1, dtype=torch.int64), "coins": coins} | broken
    rule = verify_logits if "temperature" in broken else verify
    with pytest.raises(error, match=message):
        rule(torch.ones(1, 2, 2), torch.ones(1, 1, 2), **given)


def test_errors_name_logits() -> None:
    coins, tokens = Coins(torch.zeros(1, 1), torch.zeros(1)), torch.zeros(1, 1).long()
    right, wrong = torch.zeros(1, 2, 2), torch.zeros(1, 2, 3)
    with pytest.raises(ValueError, match="target_logits has shape"):
        verify_logits(right[0], None, tokens, coins=coins)
    with pytest.raises(ValueError, match="draft_logits has shape"):
        verify_logits(right, wrong, tokens, coins=coins)
    with pytest.raises(ValueError, match="draft_logits is on meta"):
        verify_logits(right, wrong[:, :1, :2].to("meta"), tokens, coins=coins)


def test_what_cannot_be_launched() -> None:
    laws = kernels.Laws(torch.empty(1, 1, 2, device="meta"), 2, 2, 1, 1, None)
    with pytest.raises(TypeError, match=r"kernel = None: expected what triton\.jit makes"):
        launch(None, (1,), laws)
    with pytest.raises(ValueError, match="the laws are on meta: expected one of cpu, cuda"):
        launch(kernels.summarise, (1, 1, 1), laws)


def test_without_triton_an_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, fused.__name__)
    with pytest.raises(ImportError, match="needs Triton"):
        __import__(fused.__name__)


def names_at_import(path: Path) -> set[str]:
    top = ast.parse(path.read_text()).body
    whole = [alias.name for one in top if isinstance(one, ast.Import) for alias in one.names]
    parts = [(one.module, one.names) for one in top if isinstance(one, ast.ImportFrom)]
    return {*whole, *(f"{module}.{alias.name}" for module, names in parts for alias in names)}


def needs_triton(name: str) -> bool:
    return f"{name}.".startswith(("triton.", f"{fused.__name__}."))


def test_nothing_else_of_the_backend_imports_it() -> None:
    own = Path(fused.__file__).parent
    files = [path for path in own.parent.rglob("*.py") if path.parent != own]
    assert len(files) > 30
    assert not [path for path in files if any(map(needs_triton, names_at_import(path)))]
    assert any(map(needs_triton, names_at_import(own / "interpreted.py")))
    assert any(map(needs_triton, names_at_import(Path(__file__))))
