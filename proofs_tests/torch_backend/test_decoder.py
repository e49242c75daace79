"""What is prepared once for many batches leaves no trace of former texts; block verification."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from proofs_tests.helpers.torch.generations import arguments, greedy, prompts
from proofs_tests.helpers.torch.models import gpt2
from proofs_tests.helpers.torch.tokenizers import wrapped
from specref.torch_backend import METHODS, Decoder, StandardDrafter, TokenVocabulary, generate
from specref.torch_backend import loop as loop_module
from specref.torch_backend.methods import DECLARING, DRAFTERS

SHAPE = {"temperature": 0.8, "top_k": 20, "top_p": 0.95}
TEXTS: dict[str, Any] = {"max_new_tokens": 10, "lookahead": 3, "eos": [2]}
BATCHES = ((3, 5), (3, 6), (1, 7), (5, 8), (3, 5))


def others_of_a_size(rows: int, first: int) -> dict[str, Any]:
    """Prompts that differ between batches of the same size, and their seeds."""
    return {"prompts": prompts(first + rows, 5)[:rows], "seeds": range(first, first + rows)}


def one_by_one(method: str, **others: Any) -> list[Any]:
    """Each batch by a call of its own."""
    given = arguments(method) | SHAPE | others
    return [generate(**given, **others_of_a_size(rows, first), **TEXTS) for rows, first in BATCHES]


def by_a_decoder(method: str, **others: Any) -> list[Any]:
    """All batches by one decoder, one after the other."""
    decoder = Decoder(**arguments(method) | SHAPE | others)
    return [decoder.generate(**others_of_a_size(rows, first), **TEXTS) for rows, first in BATCHES]


def texts(generations: list[Any]) -> list[Any]:
    return [
        (one.tokens, one.iterations, one.target_forwards, one.drafter_forwards)
        for one in generations
    ]


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("method", METHODS)
def test_a_decoder_gives_what_single_calls_give(method: str) -> None:
    """Tokens, iterations and forwards, whatever batches were before."""
    found = texts(by_a_decoder(method))
    assert found == texts(one_by_one(method))
    assert found[0] == found[-1] != found[1]


def test_what_is_kept_of_former_texts_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A drafter that takes as many rows as it holds for its own is right while it holds none."""
    expected = texts(one_by_one("standard"))
    draft, select = StandardDrafter.draft, StandardDrafter.select

    def trusting(self: Any, contexts: Any, lookahead: int, seeds: Tensor, iteration: int) -> Any:
        if not iteration and len(self.model._rows) == len(contexts):
            self.model._rows, self.model._pending = [[*context] for context in contexts], None
        return draft(self, contexts, lookahead, seeds, iteration)

    def keeping(self: Any, rows: Any) -> None:
        if len(rows):
            select(self, rows)

    monkeypatch.setattr(StandardDrafter, "draft", trusting)
    assert texts(by_a_decoder("standard")) == expected
    monkeypatch.setattr(StandardDrafter, "select", keeping)
    assert texts(one_by_one("standard")) == expected != texts(by_a_decoder("standard"))


def test_an_error_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"prompts": prompts(3, 5), "seeds": range(3), **TEXTS}
    decoder = Decoder(**arguments("tli"))
    with monkeypatch.context() as patch:
        patch.setattr(loop_module, "verify", None)
        with pytest.raises(TypeError):
            decoder.generate(**given)
    assert decoder.generate(**given).tokens == generate(**arguments("tli"), **given).tokens


@pytest.mark.parametrize("advised", [decoders.Fuse, decoders.WordPiece])
@pytest.mark.parametrize("method", ["tli", "slem"])
def test_what_is_advised_for_words_without_a_decoder_works(advised: Any, method: str) -> None:
    words = {"<eos>": 0, "<pad>": 1, "<unk>": 2, "the": 3, "cat": 4, "sat": 5}
    backend = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = wrapped(backend, unk_token="<unk>")
    given = {
        "target": gpt2(1, size=6).double(),
        "drafter": gpt2(2, size=6).double(),
        "tokenizer": tokenizer,
        "drafter_tokenizer": tokenizer,
        "method": method,
    }
    texts: dict[str, Any] = {"prompts": ["the cat"], "temperature": 0, "max_new_tokens": 6}
    with pytest.raises(ValueError, match=f"{advised.__name__}\\(\\)"):
        generate(**given, **texts, seeds=[0])
    tokenizer.backend_tokenizer.decoder = advised()
    found = generate(**given, **texts, seeds=[0])
    assert found.tokens == (greedy(given["target"], [3, 4], 6),)


@pytest.mark.deep
def test_tokenizers_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read, calls = TokenVocabulary.from_tokenizer, []
    monkeypatch.setattr(
        TokenVocabulary, "from_tokenizer", lambda *given: calls.append(given) or read(*given)
    )
    by_a_decoder("slem")
    assert len(calls) == 2
    one_by_one("slem")
    assert len(calls) == 2 + 2 * len(BATCHES)


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("method", DECLARING)
def test_blocks_with_every_drafter_that_declares_its_laws(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Greedy text is the target's; rows are those of single prompts; the joint rule is used."""
    rows, calls = prompts(4, 5), []
    rule = loop_module.verify_block

    def counted(*given: Any, **others: Any) -> tuple[Tensor, Tensor]:
        calls.append(given)
        return rule(*given, **others)

    monkeypatch.setattr(loop_module, "verify_block", counted)
    given = arguments(method) | {"verification": "block"}
    found = generate(**given, prompts=rows, temperature=0, max_new_tokens=12, seeds=[0] * 4)
    assert found.tokens == tuple(greedy(given["target"], row, 12) for row in rows)
    together = generate(**given, prompts=rows, seeds=range(4), **TEXTS)
    for row, seed in zip(rows, range(4), strict=True):
        alone = generate(**given, prompts=[row], seeds=[seed], **TEXTS)
        assert alone.tokens[0] == together.tokens[seed]
    assert calls


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("method", DRAFTERS)
def test_declaring_methods_are_those_that_declare(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Laws come with the drafts of these methods, and with no others."""
    declared: list[bool] = []
    verify = loop_module.Loop._verify

    def seen(self: Any, p: Tensor, drafts: Any, *others: Any) -> Any:
        if drafts.tokens.shape[1]:
            declared.append(drafts.laws is not None)
        return verify(self, p, drafts, *others)

    monkeypatch.setattr(loop_module.Loop, "_verify", seen)
    generate(**arguments(method), prompts=prompts(2, 5), seeds=[1, 2], **TEXTS)
    assert declared
    assert set(declared) == {method in DECLARING}
