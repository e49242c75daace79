"""What `generate` refuses before anything runs, each with the value; what is taken at the edge."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import numpy as np
import torch

from specref.torch_backend.methods import (
    as_eos,
    as_prompts,
    as_seeds,
    check_ids,
    check_method,
    check_models,
    check_numbers,
    check_pair,
    check_room,
)
from specref.torch_backend.models.configs import UNBOUNDED, longest_text

CPU = torch.device("cpu")


class Tokens:
    """A tokenizer as far as it is asked: letters, by their place in the alphabet."""

    def __init__(self, letters: str) -> None:
        self.letters = letters

    def __len__(self) -> int:
        return len(self.letters)

    def get_vocab(self) -> dict[str, int]:
        return {letter: index for index, letter in enumerate(self.letters)}

    def encode(self, text: str) -> list[int]:
        return [self.letters.index(letter) for letter in text]


def model(size: int = 3, **config: Any) -> Any:
    return SimpleNamespace(config=SimpleNamespace(vocab_size=size, **config))


ABC, ABCD = Tokens("abc"), Tokens("abcd")
OTHER = "method 'standard' expects one vocabulary (or use 'tli', 'slem' or 'slrs')"
LAWS = "the distributions of drafts are declared with standard, union, tli"
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    *(
        (
            lambda method=method: check_method(method, "block"),
            ValueError,
            f"verification = 'block': expected 'token' with method '{method}'; {LAWS}",
        )
        for method in ("slem", "slrs", "autoregressive")
    ),
    (lambda: check_numbers(1.0, 1), TypeError, "lookahead = 1.0: expected an integer"),
    (lambda: check_numbers(True, 1), TypeError, "lookahead = True: expected an integer"),
    (lambda: check_numbers(0, "1"), TypeError, "max_new_tokens = '1': expected an integer"),
    (
        lambda: check_pair("standard", model(), model(4), None, None),
        ValueError,
        f"drafter has 4 tokens and the target 3: {OTHER}",
    ),
    (
        lambda: check_pair("standard", model(), model(), ABC, Tokens("acb")),
        ValueError,
        f"drafter_tokenizer has other tokens than tokenizer: {OTHER}",
    ),
    (
        lambda: check_pair("tli", model(), model(), None, ABC),
        ValueError,
        "tokenizer is None: method 'tli' expects both tokenizers",
    ),
    (
        lambda: check_pair("slem", model(), model(), ABC, None),
        ValueError,
        "drafter_tokenizer is None: method 'slem' expects both tokenizers",
    ),
    (
        lambda: check_pair("tli", model(), model(4), ABCD, ABCD),
        ValueError,
        "tokenizer has 4 tokens: expected at most its model's 3",
    ),
    (
        lambda: check_pair("tli", model(4), model(), ABCD, ABCD),
        ValueError,
        "drafter_tokenizer has 4 tokens: expected at most its model's 3",
    ),
    (lambda: as_prompts("ab", ABC, 3), TypeError, "prompts = 'ab': expected a list of prompts"),
    (lambda: as_prompts([], ABC, 3), ValueError, "prompts is empty: expected at least one prompt"),
    (
        lambda: as_prompts([[1], []], None, 3),
        ValueError,
        "prompts[1] is empty: expected at least one token",
    ),
    (
        lambda: as_prompts(["a", ""], ABC, 3),
        ValueError,
        "prompts[1] is empty: expected at least one token",
    ),
    (
        lambda: as_prompts([[0], "ab"], None, 3),
        ValueError,
        "prompts[1] = 'ab': expected token ids, or a tokenizer",
    ),
    (lambda: check_ids("eos", [0, True], 3), TypeError, "eos[1] = True: expected a token id"),
    (
        lambda: check_ids("eos", [0, 2, 3], 3),
        ValueError,
        "eos[2] = 3: expected a token id below 3",
    ),
    (lambda: check_ids("eos", [-1], 3), ValueError, "eos[0] = -1: expected a token id below 3"),
    (
        lambda: check_room([[0], [0] * 5], 4, drafter=model(max_position_embeddings=8)),
        ValueError,
        "prompts[1] has 5 tokens, and max_new_tokens = 4: expected at most 8 together, the "
        "positions of the drafter",
    ),
    (lambda: as_eos("a", 3), TypeError, "eos[0] = 'a': expected a token id"),
    *(
        (
            lambda seeds=seeds: as_seeds(seeds, 1, CPU),
            TypeError,
            f"seeds = {seeds!r}: expected one integer for each prompt, in a list",
        )
        for seeds in (7, "7", None)
    ),
    (lambda: as_seeds([1, 2.0], 2, CPU), TypeError, "seeds[1] = 2.0: expected an integer"),
    (lambda: as_seeds([True], 1, CPU), TypeError, "seeds[0] = True: expected an integer"),
    *(
        (
            lambda seed=seed: as_seeds([0, seed], 2, CPU),
            ValueError,
            f"seeds[1] = {seed}: expected an integer of 64 bits, signed",
        )
        for seed in (2**63, -(2**63) - 1)
    ),
]


@pytest.mark.parametrize(
    ("call", "error", "message"), REFUSED, ids=[message[:40] for *_, message in REFUSED]
)
def test_bad_input_is_named(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        call()


def test_a_model_whose_rows_change_each_other_is_refused() -> None:
    mixing = SimpleNamespace(config=SimpleNamespace(vocab_size=7, model_type="cpmant"))
    with pytest.raises(ValueError, match="drafter: rows of a batch change each other's logits"):
        check_models(target=model(), drafter=mixing)


def test_what_is_at_the_edge_is_taken() -> None:
    for method in ("standard", "union", "tli"):
        check_method(method, "block")
    check_method("autoregressive", "token")
    check_numbers(0, 1)
    check_models(target=model(), drafter=None)
    check_pair("autoregressive", model(), None, None, None)
    check_pair("standard", model(), model(), ABC, None)
    check_pair("standard", model(), model(), ABC, Tokens("abc"))
    check_pair("tli", model(3), model(5), ABC, ABCD)
    check_room([[0] * 4], 4, target=model(max_position_embeddings=8), drafter=model())


def test_prompts_may_be_text_tensors_or_integers_of_any_kind() -> None:
    prompts = ["ba", [0, np.int32(2)], torch.tensor([1]), (2,)]
    rows = as_prompts(prompts, ABC, 3)
    assert rows == [[1, 0], [0, 2], [1], [2]]
    assert {type(token) for row in rows for token in row} == {int}


def test_one_id_or_several_end_a_text() -> None:
    assert as_eos(None, 3) == frozenset()
    assert as_eos(np.int64(2), 3) == {2}
    assert as_eos([0, 2], 3) == {0, 2}


def test_seeds_are_of_64_bits() -> None:
    ends = [-(2**63), 2**63 - 1]
    for seeds in (ends, torch.tensor(ends), tuple(map(np.int64, ends))):
        found = as_seeds(seeds, 2, CPU)
        assert found.tolist() == ends
        assert found.dtype == torch.int64


def test_a_model_without_a_longest_text_reads_any() -> None:
    assert longest_text(SimpleNamespace(max_position_embeddings=8)) == 8
    for config in (SimpleNamespace(), SimpleNamespace(max_position_embeddings=None)):
        assert longest_text(config) == UNBOUNDED == 2**31


@pytest.mark.parametrize("kind", ["longrope", "dynamic"])
def test_frequencies_that_change_with_the_text_end_it(kind: str) -> None:
    rope = {"rope_type": kind, "original_max_position_embeddings": 4}
    assert longest_text(SimpleNamespace(max_position_embeddings=8, rope_parameters=rope)) == 4
    without = SimpleNamespace(max_position_embeddings=8, rope_parameters={"rope_type": kind})
    assert longest_text(without) == 8
    without.original_max_position_embeddings = 5
    assert longest_text(without) == 5
    by_kind = {"full_attention": rope, "sliding_attention": {"rope_type": "default"}}
    assert longest_text(SimpleNamespace(max_position_embeddings=8, rope_parameters=by_kind)) == 4
