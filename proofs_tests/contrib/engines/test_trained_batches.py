"""Batched loops on our trained checkpoints: each row judged by passes of the target over it alone.

alpha is 1e-9. Power: some 400 tokens of 24 rows find temperature 0.6. Bugs of the cache are found
by greedy texts, and by rows that are others alone: they change too few nats for bets on surprise.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from fixtures.model_pairs.storing import MODELS
from proofs_tests.helpers.torch.slot_bugs import (
    as_the_fullest,
    first_rows,
    from_the_first,
    without_holes,
)
from specref.contracts.fixtures import Fixture, Place
from specref.contracts.functions import read_texts
from specref.contrib.engines.toys import load_torch_backend, load_transformers
from specref.contrib.real_models.entropy import EntropyMartingale, EntropyReport
from specref.contrib.real_models.judging import forced_logits
from specref.contrib.real_models.loading import load
from specref.contrib.real_models.settings import softmax
from specref.models import Model
from specref.torch_backend.models.slotted import Slots
from specref.vocabulary import Tokens, Vocabulary

ROWS, TOKENS, NEAR = 8, 24, 1e-3
NAMES = ("target", "drafter_bpe2k")


class Pair(NamedTuple):
    """Both models of the contract, what computes them, and prompts of 3 to 17 tokens."""

    fixture: Fixture
    models: dict[Model, Any]
    prompts: list[Tokens]


@pytest.fixture(scope="module")
def pair() -> Pair:
    loaded = [load(MODELS / name, "model") for name in NAMES]
    size = int(loaded[0].model.config.vocab_size)
    names = [str(token) for token in range(size)]
    vocabulary = Vocabulary(names, eos=names[loaded[0].model.config.eos_token_id])

    def model_of(one: Any) -> Model:
        return Model(vocabulary, lambda context: softmax(forced(one.model, [context], [(0,)])[0]))

    target, drafter = map(model_of, loaded)
    text = "def parse(self, source, filename='<unknown>'):\n    return compile(source, filename)"
    ids = tuple(loaded[0].tokenizer.encode(text))
    prompts = [ids[start : start + 3 + 2 * start] for start in range(ROWS)]
    fixture = Fixture("trained", target, drafter, tuple(Place(one, 1) for one in prompts))
    computed = {target: loaded[0].model, drafter: loaded[1].model}
    return Pair(fixture, computed, prompts)


def forced(model: Any, prompts: Sequence[Tokens], texts: Sequence[Tokens]) -> np.ndarray:
    rows: np.ndarray = forced_logits(model, prompts, texts).numpy()
    return rows


def texts_of(function: Any, pair: Pair, prompts: Sequence[Tokens], seed: int) -> list[Tokens]:
    """One call, its answer read as the contract reads it."""
    rng = np.random.default_rng(seed)
    rows = len(prompts)
    more = {"seeds": range(100 * seed, 100 * seed + rows)} if seeded(function) else {"rng": rng}
    raw = function(pair.fixture.target, pair.fixture.drafter, prompts, TOKENS, **more)
    return read_texts(raw, rows, TOKENS, pair.fixture)


def seeded(function: Any) -> bool:
    return "seeds" in function.__annotations__


def judged(function: Any, pair: Pair, calls: int = 3) -> EntropyReport:
    """Bets on every token of every row, by the target's passes over each row alone."""
    bets = EntropyMartingale()
    for seed in range(calls):
        texts = texts_of(function, pair, pair.prompts, seed)
        for prompt, text in zip(pair.prompts, texts, strict=True):
            rows = forced(pair.models[pair.fixture.target], [prompt], [text])
            for token, row in zip(text, rows, strict=True):
                bets.observe(softmax(row), token)
    return bets.report()


RIGHT: dict[str, Callable[..., Any]] = {
    "torch_backend": lambda models: load_torch_backend(models=models),
    "Transformers": lambda models: load_transformers(models=models),
}
GREEDY: dict[str, Callable[..., Any]] = {
    "torch_backend": lambda models: load_torch_backend(models=models, temperature=0.0),
    "Transformers": lambda models: load_transformers(models=models, greedy=True),
}


@pytest.mark.deep
@pytest.mark.parametrize("name", RIGHT)
def test_right_loops_pass(name: str, pair: Pair) -> None:
    report = judged(RIGHT[name](pair.models.__getitem__), pair)
    assert not report.lossy, report
    assert abs(report.z) < 5


def test_another_temperature_is_found(pair: Pair) -> None:
    cold = load_torch_backend(models=pair.models.__getitem__, temperature=0.6)
    assert judged(cold, pair).lossy


def changed_rows(pair: Pair) -> int:
    """Rows whose text is another one alone, or in another order."""
    generate = load_torch_backend(models=pair.models.__getitem__)
    ends, seeds = (pair.fixture.target, pair.fixture.drafter), range(ROWS)
    together = generate(*ends, pair.prompts, TOKENS, seeds=seeds)
    turned = generate(*ends, pair.prompts[::-1], TOKENS, seeds=seeds[::-1])[::-1]
    alone = [
        generate(*ends, [prompt], TOKENS, seeds=[seed])[0]
        for prompt, seed in zip(pair.prompts, seeds, strict=True)
    ]
    three = zip(together, turned, alone, strict=True)
    return sum(not list(a) == list(b) == list(c) for a, b, c in three)


@pytest.mark.deep
def test_rows_are_the_same_in_another_order_and_alone(pair: Pair) -> None:
    assert changed_rows(pair) == 0


def off_greedy(function: Any, pair: Pair) -> int:
    """Tokens that the target ranks below its likeliest one by more than rounding."""
    texts = texts_of(function, pair, pair.prompts, 0)
    rows = forced(pair.models[pair.fixture.target], pair.prompts, texts)
    chosen = rows[np.arange(len(rows)), [token for text in texts for token in text]]
    return int((chosen < rows.max(axis=1) - NEAR).sum())


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("name", GREEDY)
def test_greedy_batches_are_the_targets_argmax(name: str, pair: Pair) -> None:
    assert off_greedy(GREEDY[name](pair.models.__getitem__), pair) == 0


BUGS = {
    "crop": as_the_fullest,
    "append": without_holes,
    "append, positions": from_the_first,
    "select": first_rows,
}


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_of_the_cache_are_found(
    bug: str, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slots, bug.partition(",")[0], BUGS[bug])
    assert off_greedy(GREEDY["torch_backend"](pair.models.__getitem__), pair) > 0


@pytest.mark.deep
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_of_the_cache_change_rows(
    bug: str, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slots, bug.partition(",")[0], BUGS[bug])
    assert changed_rows(pair) > 0
