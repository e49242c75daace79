"""What all models with a cache refuse, and that they hold no rows until they read some."""

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from proofs_tests.helpers.torch.models import POSITIONS, llama
from proofs_tests.helpers.torch.threads import single_thread
from specref.torch_backend.models.cached import CachedModel
from specref.torch_backend.models.trees import TreeModel

one_thread = pytest.fixture(autouse=True, scope="module")(single_thread)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "rows is empty: expected at least one"),
        ([[1], []], rf"rows\[1\] has 0 tokens: expected 1 to {POSITIONS}"),
        ([[1] * (POSITIONS + 1)], rf"rows\[0\] has 65 tokens: expected 1 to {POSITIONS}"),
        ([[1, 6, 7]], r"rows\[0\]\[2\] = 7: expected a token id below 7"),
        ([[0], [0, -1]], r"rows\[1\]\[1\] = -1: expected a token id below 7"),
    ],
)
def test_bad_rows_are_named(rows: list[list[int]], message: str) -> None:
    for read in (CachedModel(llama()).logits, TreeModel(llama()).begin):
        with pytest.raises(ValueError, match=f"^{message}$"):
            read(rows)


@pytest.mark.parametrize("kind", [CachedModel, TreeModel])
def test_a_model_that_has_read_nothing_has_no_rows_to_drop(
    kind: type[CachedModel | TreeModel],
) -> None:
    model = kind(llama())
    model.select([])
    with pytest.raises(IndexError):
        model.select([0])
    assert model.forwards == 0
