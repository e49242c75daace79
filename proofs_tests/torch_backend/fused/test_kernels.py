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
from specref.torch_backend.fused import kernels, launch, verify, verify_logits
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

    def compiled(
        kernel: Any, grid: Any, device: torch.device, *given: Any, **constants: Any
    ) -> None:
        found[kernel.__name__] = kernel.warmup(*given, grid=grid, **constants).asm

    monkeypatch.setattr(fused, "launch", compiled)
    monkeypatch.setattr(triton.runtime.driver, "_active", Hopper())
    return found


def asked(
    kind: str, dtype: torch.dtype, size: int, step: int = 1, rows: int = 4, lookahead: int = 4
) -> None:
    """Launch every kernel of a rule, with ragged rows."""
    with torch.device("meta"):
        p, q = (
            torch.empty(rows, n, size, dtype=dtype)[..., ::step]
            for n in (lookahead + 1, lookahead)
        )
        given = p, q, torch.empty(rows, lookahead, dtype=torch.int64)
        coins = Coins(torch.empty(rows, lookahead), torch.empty(rows))
        lens = torch.empty(rows, dtype=torch.int32)
    rule = verify_logits if kind == "logits" else verify
    rule(*given, lens=lens, coins=coins)


WIDE = r"ld\.global\S*\.v4\.b32"
NARROW = r"ld\.global\.b16"
TO_JUDGE, TO_DRAW = 2, 1
"""Wide loads of a thread for a chunk of 8 KiB, where a program has 8 warps, or 16."""


def loads(asm: dict[str, Any], pattern: str) -> int:
    return len(re.findall(pattern, asm["ptx"]))


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("size", [152_064, 50_257])
def test_kernels_read_16_bytes_at_once(compiled: dict[str, Any], size: int) -> None:
    """Both laws to be judged, also where lines begin anywhere; and p where a token is drawn."""
    asked("logits", torch.bfloat16, size)
    assert loads(compiled["judge"], WIDE) >= 2 * TO_JUDGE
    assert loads(compiled["draw_last"], WIDE) >= 2 * TO_DRAW
    asked("probs", torch.bfloat16, size)
    assert loads(compiled["draw_last"], WIDE) >= 2 * TO_DRAW


def test_what_lies_apart_is_read_one_by_one(compiled: dict[str, Any]) -> None:
    asked("logits", torch.bfloat16, 16 * 1024, step=2)
    assert not any(loads(asm, WIDE) for asm in compiled.values())
    assert all(loads(asm, NARROW) for asm in compiled.values())


ARRIVAL = r"bar\.sync[^;]*;(?:(?!bar\.sync).)*atom\.global\.gpu\.acq_rel\.add\.u32.*?bar\.sync"


def ordered(asm: dict[str, Any]) -> bool:
    """Whether a program's stores come before its arrival, and its loads after it, on a GPU."""
    return bool(re.search(ARRIVAL, asm["ptx"], re.DOTALL))


def test_arrivals_are_ordered_for_the_whole_device(compiled: dict[str, Any]) -> None:
    """A barrier of all threads, the counter with both orders, a barrier again."""
    asked("logits", torch.float32, 152_064)
    assert [name for name, asm in compiled.items() if ordered(asm)] == ["judge", "draw_last"]
    for right, wrong in (("acq_rel", "relaxed"), (".gpu.", ".cta."), ("bar.sync", "nop")):
        assert not ordered({"ptx": compiled["judge"]["ptx"].replace(right, wrong)})


DUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
KERNELS = ("judge", "draw_last")
REGISTERS = 64
"""Of a thread at most: beside each other run 4 programs that judge, each of which reads 8 KiB, or
2 that draw and read 16 KiB. Some 20 KiB a multiprocessor keep an H100's memory busy."""


def used(cubin: bytes, folder: Path) -> dict[str, int]:
    """What a kernel takes of a multiprocessor: registers, and bytes of stack and local memory."""
    (folder / "kernel.cubin").write_bytes(cubin)
    command = [str(DUMP), "-res-usage", str(folder / "kernel.cubin")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {
        name: int(re.search(rf"\b{name}:(\d+)", said)[1]) for name in ("REG", "STACK", "LOCAL")
    }


@pytest.mark.skipif(not DUMP.is_file(), reason="not_run (this Triton has no cuobjdump)")
@pytest.mark.parametrize("kind", ["probs", "logits"])
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
    assert tuple(compiled) == KERNELS
    for name, asm in compiled.items():
        found = used(asm["cubin"], tmp_path)
        record_property("figure", f"sm_90: {name}, {kind}, {dtype}, V = {size}: {found}")
        assert found["LOCAL"] == found["STACK"] == 0
        assert found["REG"] <= REGISTERS


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("lookahead", [0, 1, 7])
@pytest.mark.parametrize("rows", [1, 2])
def test_shapes_at_the_edges_compile(compiled: dict[str, Any], rows: int, lookahead: int) -> None:
    for kind in ("logits", "probs"):
        compiled.clear()
        asked(kind, torch.bfloat16, 1_000, rows=rows, lookahead=lookahead)
        assert tuple(compiled) == KERNELS


@pytest.mark.deep
def test_a_spill_would_be_seen(compiled: dict[str, Any], tmp_path: Path, monkeypatch: Any) -> None:
    """With chunks of 64 KiB a draw no longer fits into registers."""
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


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_what_cannot_be_launched(device: str) -> None:
    """Kernels that were made to be compiled do not run on a CPU."""
    with pytest.raises(ValueError, match=f"on {device}: expected cuda, or cpu with TRITON"):
        launch(kernels.judge, (1,), torch.device(device))


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
    assert len(files) > 20
    assert not [path for path in files if any(map(needs_triton, names_at_import(path)))]
    assert any(map(needs_triton, names_at_import(own / "kernels.py")))
    assert any(map(needs_triton, names_at_import(Path(__file__))))
