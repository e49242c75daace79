"""torch's operations as NumPy says them are those of torch; what torch compiles is probed, too."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")

from specref import check  # noqa: E402
from specref.probing.probe import probe  # noqa: E402
from specref.probing.source import EscapedError  # noqa: E402
from specref.probing.torch_tracing import OPERATIONS  # noqa: E402

X = np.array([[0.5, 0.25, 2.0], [1.5, 0.75, 0.125]])
Y = np.array([[0.25, 0.25, 3.0], [1.25, 1.0, 0.5]])
ROW = np.array([0.25, 0.5, 0.5, 1.0])
MASK = Y > X
IDS = np.array([[2, 0], [1, 1]])
LAST = np.array([2, 0, 2])
NAMED: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    **{
        name: [((X, Y), {})]
        for name in ("lt", "le", "gt", "ge", "mul", "div", "maximum", "minimum")
    },
    **{name: [((X, Y), {}), ((X, Y), {"alpha": 2})] for name in ("add", "sub", "rsub")},
    **{name: [((X,), {})] for name in ("reciprocal", "neg", "log", "log2", "log1p", "exp")},
    **{name: [((X,), {})] for name in ("expm1", "sqrt", "clone")},
    "pow": [((X, 2), {}), ((X, Y), {})],
    "clamp": [
        ((X, 0.3), {}),
        ((X,), {"max": 0.8}),
        ((X, 0.3, 0.8), {}),
        ((X,), {"min": 0.3, "max": None}),
        ((-X,), {"min": None, "max": -0.3}),
    ],
    "clamp_min": [((X, 0.3), {})],
    "where": [((MASK, X, Y), {})],
    "masked_fill": [((X, MASK, -1.0), {})],
    **{
        name: [((X,), {}), ((X, 0), {}), ((X, -1, True), {}), ((X, 1), {"keepdim": False})]
        for name in ("argmax", "argmin")
    },
    **{
        name: [((X, 0), {}), ((X, -1), {}), ((X, 1, True), {}), ((X, 1), {"keepdim": True})]
        for name in ("max", "min")
    },
    "searchsorted": [
        ((ROW, X), {}),
        ((ROW, X), {"right": True}),
        ((ROW, X), {"side": "right"}),
        ((ROW, X), {"side": "left"}),
    ],
    "index_select": [((X, 1, LAST), {}), ((X, 0, np.array([1, 1])), {})],
    "gather": [((X, 1, IDS), {})],
    "index_put": [
        ((X, [np.array([1, 0]), np.array([2, 1])], ROW[:2]), {}),
        ((X, [np.array([1])], Y[:1]), {"accumulate": False}),
    ],
    "scatter": [
        ((X, 1, IDS, Y), {}),
        ((X, 0, np.array([[1, 0]]), Y), {}),
        ((X, -1, IDS, 7.0), {}),
    ],
    "repeat": [((ROW, [2]), {}), ((X, [2, 1, 3]), {})],
    "roll": [((X, [1], [1]), {}), ((X, [-1, 1], [0, 1]), {}), ((ROW, [2]), {})],
    "_unsafe_view": [((X, [3, 2]), {}), ((X, [-1]), {})],
    "flip": [((X, [1]), {}), ((X, [0, 1]), {})],
    "cat": [(([X, Y],), {}), (([X, Y], 1), {}), (([X, Y],), {"dim": -1})],
    "stack": [(([X, Y],), {}), (([X, Y], 1), {}), (([X, Y],), {"dim": 2})],
}
CASES = [(name, *case) for name, cases in NAMED.items() for case in cases]


def tensors(value: Any) -> Any:
    if isinstance(value, list) and any(isinstance(one, np.ndarray) for one in value):
        return [tensors(one) for one in value]
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize(("name", "arguments", "options"), CASES)
def test_an_operation_is_that_of_torch(
    name: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    theirs = getattr(torch.ops.aten, name)(*map(tensors, arguments), **options)
    ours = OPERATIONS[name](*arguments, **options)
    pairs = zip(theirs, ours, strict=True) if isinstance(theirs, tuple) else [(theirs, ours)]
    for expected, found in pairs:
        assert np.shape(found) == tuple(expected.shape)
        np.testing.assert_allclose(np.asarray(found, dtype=float), expected.double(), rtol=1e-15)


IN_PLACE: dict[str, Callable[[], tuple[Any, Any]]] = {
    "copy": lambda: (OPERATIONS["copy"](X, ROW[:3]), np.tile(ROW[:3], (2, 1))),
    "fill": lambda: (OPERATIONS["fill"](X, 7.0), np.full((2, 3), 7.0)),
    "zero": lambda: (OPERATIONS["zero"](X), np.zeros((2, 3))),
    "_to_copy": lambda: (OPERATIONS["_to_copy"](X), X),
    "index": lambda: (OPERATIONS["index"](X, [None, LAST]), X[:, LAST]),
    "index of rows": lambda: (OPERATIONS["index"](X, [np.array([1, 0])]), X[::-1]),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_what_is_written_has_the_shape_of_where_it_goes(name: str) -> None:
    found, expected = IN_PLACE[name]()
    np.testing.assert_array_equal(found, expected)


def test_every_operation_is_tried() -> None:
    assert set(NAMED) | {name.split(" of ")[0] for name in IN_PLACE} == set(OPERATIONS)


def test_numbers_are_not_added_up_in_place() -> None:
    with pytest.raises(EscapedError, match=r"torch\.index_put adds numbers"):
        OPERATIONS["index_put"](X, [np.array([0, 0])], Y, accumulate=True)


def test_one_cdf_at_a_time_is_searched() -> None:
    with pytest.raises(EscapedError, match=r"torch\.searchsorted in many rows"):
        OPERATIONS["searchsorted"](np.stack([ROW, ROW]), X)


def test_an_empty_tensor_of_numbers_is_no_other_empty_tensor() -> None:
    def drawn() -> tuple[int, ...]:
        none = torch.rand(0)
        where, out = torch.zeros(0, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
        out[where] = where
        return (int(torch.rand(()) < 0.25) + int(out[0]) + len(none),)

    found = probe(drawn)
    assert (found.way, found.untraced) == ("traced", None)
    assert found.distribution == {(0,): 0.75, (1,): 0.25}


ROOT = Path(__file__).resolve().parents[2]


def core(p: Any, q: Any, drafts: Any, lossy: bool) -> tuple[Any, Any]:
    rows, place = torch.arange(len(drafts)), torch.arange(drafts.shape[1] + 1)
    x, given = drafts.clamp(min=0)[..., None], drafts >= 0
    ratio = p[:, :-1].gather(2, x)[..., 0] / q.gather(2, x)[..., 0]
    kept = ((torch.rand(drafts.shape) < ratio) & given).long().cumprod(1).sum(1)
    q = torch.cat([q, torch.zeros_like(p[:, :1])], 1)[rows, kept]
    rejected = kept < given.sum(1)
    left = p[rows, kept] - q * (rejected & (not lossy))[:, None]
    last = torch.multinomial(left.clamp(min=0), 1)
    tokens = torch.cat([drafts, -torch.ones_like(last)], 1)
    after = torch.where(place == kept[:, None], last, -1)
    return torch.where(place < kept[:, None], tokens, after), kept + 1


def sampler(before: bool, lossy: bool) -> Callable[..., Any]:
    """Compiled before the first call, or in it."""
    compiled = [torch.compile(core, backend="eager")] if before else []

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any) -> tuple[Any, Any]:
        if not compiled:
            compiled.append(torch.compile(core, backend="eager"))
        answer: tuple[Any, Any] = compiled[0](target_probs, draft_probs, draft_tokens, lossy)
        return answer

    return verify


def test_the_law_of_a_compiled_sampler_is_exact() -> None:
    p, q = torch.tensor([[[0.25, 0.75], [0.5, 0.5]]]), torch.tensor([[[0.5, 0.5]]])
    found = {}
    for lossy in (False, True):
        verify = sampler(lossy, lossy)
        probed = probe(lambda verify=verify: blocks(verify(p, q, torch.tensor([[0]]))))
        assert probed.uninterpreted is None
        found[lossy] = {block: round(mass, 6) for block, mass in probed.distribution.items()}
    assert found[False] == {(0, 0): 0.25, (0, 1): 0.25, (1,): 0.5}
    assert found[True] == {(0, 0): 0.25, (0, 1): 0.25, (0,): 0.125, (1,): 0.375}


@pytest.mark.deep
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("lossy", [False, True])
def test_a_compiled_sampler_is_probed(before: bool, lossy: bool) -> None:
    report = check(
        sampler(before, lossy), arrays="torch", dtype="float32", one_hot=False,
        only=["joint/probed"],
    )  # fmt: skip
    assert (report.exit_code, report.lossy) == (int(lossy), lossy), report


def blocks(answer: tuple[Any, Any]) -> tuple[int, ...]:
    tokens, counts = answer
    return tuple(tokens[0, : int(counts[0])].tolist())


ALONE = """
import sys, torch
from proofs_tests.probing.test_torch_tracing import core, sampler
from specref import check

def plain(target_probs, draft_probs, draft_tokens):
    return core(target_probs, draft_probs, draft_tokens, lossy=False)

asked = {"arrays": "torch", "dtype": "float32", "one_hot": False, "only": ["joint/probed"]}
assert check(plain, **asked).exit_code == 0
assert "torch._dynamo" not in sys.modules
assert check(sampler(False, lossy=True), **asked).lossy
assert "torch._dynamo" in sys.modules
"""


@pytest.mark.deep
def test_the_compiler_is_imported_by_what_is_compiled_alone() -> None:
    subprocess.run([sys.executable, "-c", ALONE], cwd=ROOT, check=True)
