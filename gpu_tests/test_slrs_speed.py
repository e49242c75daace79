"""The measurement of lazy SLRS: its rows, and the number of contexts that psi takes in full."""

import json

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from gpu_tests.benchmarks.slrs import BYTES, LAZY, Sizes, contexts_of_psi, measure
from gpu_tests.pairs import card_entries
from proofs_tests.helpers.torch.drafting import softmax, tiny_llama, toy_vocabulary
from proofs_tests.helpers.torch.lazy import FullPsi
from specref.torch_backend import SlrsDrafter, TreeModel

SMALL = Sizes((BYTES,), (1, 8), ("tli", "autoregressive"), 1, 4, lookahead=2, repetitions=1)


@pytest.mark.parametrize("pieces", [(b"a", b"b"), (b"ab", b"a", b"b", b"ba", b"bab")])
def test_contexts_of_psi_are_those_that_full_psi_asks_for(pieces: tuple[bytes, ...]) -> None:
    target, drafter = toy_vocabulary(b"a", b"abba", b"abab", b"bb", b"b"), toy_vocabulary(*pieces)
    model = tiny_llama(len(drafter))
    full = FullPsi(model, target, drafter, softmax)
    full.after((0,))
    slrs = SlrsDrafter(TreeModel(model), target, drafter, softmax)
    assert contexts_of_psi(slrs) == len(full.asked)


@pytest.mark.deep
def test_rows_are_of_every_line() -> None:
    if not card_entries():
        pytest.skip("not_run (fixtures/models is not built)")
    rows = measure(SMALL)
    assert json.loads(json.dumps(rows)) == rows
    methods = [(row["method"], row["width"]) for row in rows]
    expected = [(LAZY, 1), (LAZY, 8), ("tli", None), ("autoregressive", None)]
    assert methods == expected
    assert [row["emitted"] for row in rows] == [4, 4, 4, 4]
    for row in rows[:2]:
        assert 0 < row["contexts_per_token"] < row["whole_contexts_per_token"] / 10
    assert rows[-1]["drafter_forwards"] == 0
