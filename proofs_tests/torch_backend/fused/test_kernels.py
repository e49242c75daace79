"""The Triton kernels as programs: compiled for a GPU that need not be there, and imported."""

import ast
import re
import sys
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
def compiled(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The PTX of every kernel that is launched, for compute capability 9.0; nothing runs."""
    found: dict[str, str] = {}

    def compiled(kernel: Any, grid: Any, *given: Any, **constants: Any) -> None:
        found[kernel.__name__] = kernel.warmup(*given, grid=grid, **constants).asm["ptx"]

    monkeypatch.setattr(fused, "launch", compiled)
    monkeypatch.setattr(triton.runtime.driver, "_active", Hopper())
    return found


@pytest.mark.parametrize("contiguous", [True, False])
def test_kernels_compile_and_read_16_bytes_at_once(
    compiled: dict[str, str], contiguous: bool
) -> None:
    rows, size = 4, 16 * 1024
    with torch.device("meta"):
        p, q = (torch.empty(rows, n, size, dtype=torch.bfloat16) for n in (5, 4))
        if not contiguous:
            p, q = p[..., ::2], q[..., ::2]
        given = p, q, torch.empty(rows, 4, dtype=torch.int64)
        coins = Coins(torch.empty(rows, 4), torch.empty(rows))
    verify_logits(*given, coins=coins)
    verify(*given, lens=given[2][:, 0], coins=coins)
    wide = {
        name: bool(re.search(r"ld\.global\S*\.v4\.b32", ptx)) for name, ptx in compiled.items()
    }
    assert wide == dict.fromkeys(("summarise", "sum_chunks", "draw_last"), contiguous)


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
