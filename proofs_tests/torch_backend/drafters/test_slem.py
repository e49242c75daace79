"""SLEM across tokenisers: proposals go on with the text, and blocks are the target's."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor

from proofs_tests.helpers.torch.drafting import (
    Law,
    TableModel,
    completed,
    distance,
    softmax,
    table_law,
    tiny_llama,
    toy_vocabulary,
)
from proofs_tests.helpers.torch.laws import matched_laws
from proofs_tests.helpers.torch.tokenizers import EXACT, KINDS, vocabulary
from specref.torch_backend.drafters.slem import SlemDrafter, realigned
from specref.torch_backend.models.cached import CachedModel
from specref.torch_backend.randomness import DRAFT, Coins, uniforms
from specref.torch_backend.shaping import draw
from specref.torch_backend.validation import NO_DRAFT
from specref.torch_backend.verification.chains import verify_matching
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary

SEED = torch.tensor([0])


class ScriptedModel:
    """A `CachedModel` that says the tokens of a script, row by row."""

    positions, device = 1 << 20, torch.device("cpu")

    def __init__(self, size: int, *scripts: Sequence[int]) -> None:
        self.size, self.scripts, self.forwards, self.at = size, scripts, 0, 0
        self.rows: list[list[int]] = []

    def logits(self, rows: Sequence[Sequence[int]]) -> Tensor:
        self.rows, self.at = [list(row) for row in rows], 0
        return self._last()

    def extend(self, tokens: Tensor) -> Tensor:
        return self._last()

    def _last(self) -> Tensor:
        logits = torch.full((len(self.rows), 1, self.size), -torch.inf)
        for row, script in enumerate(self.scripts):
            logits[row, 0, script[min(self.at, len(script) - 1)]] = 0
        self.at, self.forwards = self.at + 1, self.forwards + 1
        return logits


def proposal(
    target: TokenVocabulary,
    drafter: TokenVocabulary,
    context: Sequence[int],
    script: Sequence[int],
) -> list[int]:
    model: Any = ScriptedModel(len(drafter), script)
    drafts = SlemDrafter(model, target, drafter, softmax).draft([context], len(script), SEED, 0)
    assert drafts.matching
    assert drafts.forwards == len(script)
    row: list[int] = drafts.tokens[0].tolist()
    return row


@pytest.mark.parametrize("drafter", EXACT)
@pytest.mark.parametrize("target", EXACT)
def test_proposals_are_the_text_that_was_drafted(target: str, drafter: str) -> None:
    words, other = vocabulary(target), vocabulary(drafter)
    for before, after in (("the cat", " sat on a mat."), ("the c", "at.\nthe"), ("", "the mat")):
        context = words.encode(before.encode())[0]
        script = other.spell(after.encode())[0]
        tokens = proposal(words, other, context, script)
        assert words.continuation(context, tokens) == after.encode()


def test_proposals_are_the_targets_own_reading() -> None:
    words, letters = vocabulary("byte-level"), vocabulary("bytes")
    before, after = b"the mat" + b" sat the" * 9 + b" cat", b" mat the cat"
    context = words.encode(before)[0]
    tokens = proposal(words, letters, context, letters.encode(after)[0])
    assert tokens == words.encode(before + after)[0][len(context) :]
    context = [*context[:-1], *words.encode(b" ")[0], *words.encode(b"c")[0]]
    tokens = proposal(words, letters, context, letters.encode(b" at the")[0])
    assert tokens == words.encode(b"c at the")[0][1:]


@pytest.mark.parametrize("target", EXACT)
def test_a_lossy_drafter_proposes_what_is_left_of_the_text(target: str) -> None:
    words, other = vocabulary(target), vocabulary("wordpiece")
    context = words.encode(b"the cat")[0]
    script = other.encode(b"SAT on,")[0]
    tokens = proposal(words, other, context, script)
    said = words.continuation(context, [t for t in tokens if words.spelled[t] is not None])
    assert said == (b" sat on" if target == "unigram" else b" sat on,")  # it has no comma


@pytest.mark.parametrize("drafter", KINDS)
def test_the_drafter_reads_the_text_of_the_context(drafter: str) -> None:
    words, other = vocabulary("byte-level"), vocabulary(drafter)
    model: Any = ScriptedModel(len(other), [5])
    context = [words.by_bytes[bytes([byte])] for byte in b"the cat on a mat"]
    SlemDrafter(model, words, other, softmax).draft([context], 1, SEED, 0)
    assert model.rows == [other.encode(b"the cat on a mat")[0]]


@pytest.mark.parametrize("kind", ["byte-level", "unigram", "sentencepiece"])
def test_the_context_is_never_read_again(kind: str) -> None:
    """However its tokens split the text, what follows is exactly the drafted text."""
    words, rng = vocabulary(kind), random.Random(7)
    usable = [
        t for t, piece in enumerate(words.spelled) if piece and set(piece) <= set(b"the cam")
    ]
    moved = 0
    for _ in range(300):
        context = rng.choices(usable, k=rng.randint(1, 20))
        text = b"".join(words.spelled[t] or b"" for t in rng.choices(usable, k=4))
        tokens = realigned(words, context, text, 16)
        assert words.continuation(context, tokens) == text
        again = words.encode(words.text(context) + text)[0][len(context) :]
        moved += words.continuation(context, again) != text
    assert moved > 0, "tokenising the context again was to be told from this"


def test_a_drafted_eos_is_proposed_and_ends_the_row() -> None:
    words, other = vocabulary("byte-level"), vocabulary("unigram")
    assert other.eos is not None
    script = [*other.encode(b" cat")[0], other.eos, *other.encode(b" mat")[0]]
    tokens = proposal(words, other, words.encode(b"the")[0], script)
    assert tokens == [*words.encode(b" cat")[0], words.eos]


def test_there_are_as_many_columns_as_the_longest_proposal_needs() -> None:
    letters, words = vocabulary("bytes"), vocabulary("byte-level")
    assert words.eos is not None
    cat, mat = (words.encode(text)[0] for text in (b" cat", b" mat mat"))
    model: Any = ScriptedModel(len(words), [*cat, words.eos], [words.eos], mat)
    drafter = SlemDrafter(model, letters, words, softmax)
    contexts = [letters.encode(b"the")[0]] * 3
    drafts = drafter.draft(contexts, 2, torch.tensor([1, 2, 3]), 0)
    eos, none = letters.eos, NO_DRAFT
    assert drafts.tokens.tolist() == [
        [*letters.encode(b" cat")[0], eos, none, none, none],
        [eos, *[none] * 7],
        letters.encode(b" mat mat")[0],
    ]
    nothing: Any = ScriptedModel(len(words), [words.roles["pad"]])
    assert SlemDrafter(nothing, letters, words, softmax).draft(
        contexts[:1], 2, SEED, 0
    ).tokens.shape == (1, 0)


def test_a_half_character_of_the_context_is_finished_or_nothing_is_proposed() -> None:
    words, other = vocabulary("bytes"), vocabulary("unigram")
    context = words.encode("at é".encode())[0][:-1]
    accents = other.encode("é".encode())[0]
    assert proposal(words, other, context, accents) == words.encode(b"\xa9")[0]
    assert proposal(words, other, context, other.encode(b"at a mat")[0]) == []


def test_a_half_character_that_is_drafted_is_left_out() -> None:
    words, other = vocabulary("unigram"), vocabulary("bytes")
    script = other.encode(" catü".encode())[0][:-1]
    tokens = proposal(words, other, words.encode(b"the")[0], script)
    assert words.continuation((), tokens) == b" cat"


def test_drafts_are_the_drafters_own_draws() -> None:
    """With one vocabulary, what is proposed is what its law and coins give."""
    letters = toy_vocabulary(*[bytes([97 + i]) for i in range(6)], eos=False)
    model, plain = tiny_llama(6), CachedModel(tiny_llama(6), use_cache=False)
    drafter = SlemDrafter(CachedModel(model), letters, letters, softmax)
    contexts = [[0, 3], [1, 2, 5]]
    for iteration in range(3):
        drafts = drafter.draft(contexts, 4, torch.tensor([5, 6]), iteration)
        coins, rows = uniforms(torch.tensor([5, 6]), iteration, DRAFT, 4), contexts
        for i in range(4):
            tokens = draw(softmax(plain.logits(rows)[:, -1].double()), coins[:, i])
            assert drafts.tokens[:, i].tolist() == tokens.tolist()
            rows = [[*row, token] for row, token in zip(rows, tokens.tolist(), strict=True)]
        contexts = [row[: len(row) - iteration] for row in rows]


# Blocks.

WORDS = toy_vocabulary(b"a", b"b", b"ab")
PLAIN = toy_vocabulary(b"b", b"a")
EOS = 3


def target(context: Sequence[int]) -> Tensor:
    return table_law(context, len(WORDS), seed=1)


def reread(context: Sequence[int]) -> Tensor:
    """The target's law after a context that is tokenised again: a planted bug."""
    ended = EOS in context
    return target(context if ended else WORDS.encode(WORDS.text(context))[0])


def matching_law(p: Any, context: Sequence[int], proposed: Sequence[int]) -> Law:
    """The law of the block that `verify_matching` makes of a proposal."""
    laws = torch.stack([p([*context, *proposed[:i]]) for i in range(len(proposed) + 1)])
    tokens = torch.tensor([proposed], dtype=torch.int64)
    (law,) = matched_laws(matching, laws[None], None, tokens)
    return law


def matching(p: Tensor, q: None, tokens: Tensor, coins: Coins) -> tuple[Tensor, Tensor]:
    return verify_matching(p, tokens, coins=coins)


def block_error(p: Any, context: Sequence[int], proposed: Sequence[int]) -> float:
    blocks, length = matching_law(p, context, proposed), len(proposed) + 1
    own = completed({(): 1.0}, target, context, length, EOS)
    return distance(completed(blocks, target, context, length, EOS), own)


def proposals(context: Sequence[int]) -> set[tuple[int, ...]]:
    """What a drafter that reads the text proposes, for many seeds."""
    model: Any = TableModel(len(PLAIN), seed=2)
    drafter = SlemDrafter(model, WORDS, PLAIN, softmax)
    drafts = drafter.draft([context] * 60, 3, torch.arange(60), 0)
    return {tuple(t for t in row if t != NO_DRAFT) for row in drafts.tokens.tolist()}


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("context", [[0, 1], [2], [0, 1, 2]])
def test_blocks_are_the_targets(context: list[int]) -> None:
    found = proposals(context)
    assert len(found) > 5
    assert any(EOS in tokens for tokens in found)
    for tokens in found:
        assert block_error(target, context, tokens) < 1e-9


def test_a_target_that_reads_its_context_again_is_rejected() -> None:
    assert WORDS.encode(WORDS.text([0, 1]))[0] == [2]
    assert any(block_error(reread, [0, 1], tokens) > 1e-3 for tokens in proposals([0, 1]))


def test_lookbehind_is_at_least_1() -> None:
    with pytest.raises(ValueError, match="lookbehind = 0: expected at least 1"):
        SlemDrafter(CachedModel(tiny_llama(4)), WORDS, WORDS, softmax, lookbehind=0)
