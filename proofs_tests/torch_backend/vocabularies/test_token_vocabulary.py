"""Vocabularies of tokenizers by id and by bytes, intersections, and contexts across them."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models
from transformers import AutoTokenizer, ByT5Tokenizer

from proofs_tests.helpers.torch.drafting import toy_vocabulary
from proofs_tests.helpers.torch.tokenizers import (
    EOS,
    EXACT,
    KINDS,
    UNKNOWN,
    byte_level,
    unigram,
    vocabulary,
    wrapped,
)
from specref.torch_backend.drafters.mapped import inverse
from specref.torch_backend.vocabularies.contexts import Reader, opening, read
from specref.torch_backend.vocabularies.spelling import strings_by_id
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary, id_map

FIXTURES = Path(__file__).parents[3] / "fixtures" / "models"
TEXT = "the cat sat on a mat\nat the mat."


def token(words: TokenVocabulary, string: str) -> int:
    return words.strings.index(string)


# One vocabulary.


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_get_vocab_does_not_matter(kind: str) -> None:
    tokenizer = KINDS[kind]()
    assert list(tokenizer.get_vocab()) != list(tokenizer.get_vocab())
    first, second = (TokenVocabulary.from_tokenizer(tokenizer) for _ in range(2))
    assert first == second
    assert list(first.strings) == tokenizer.convert_ids_to_tokens(range(len(first)))


def test_reading_get_vocab_in_its_order_is_rejected() -> None:
    tokenizer = byte_level()
    assert tuple(tokenizer.get_vocab()) != strings_by_id(tokenizer)


@pytest.mark.parametrize("kind", EXACT)
def test_bytes_of_tokens_are_what_the_tokenizer_decodes(kind: str) -> None:
    tokenizer, words = KINDS[kind](), vocabulary(kind)
    assert words.exact
    for text in (TEXT, "the", " the", "a é b" if kind != "bytes" else "日本"):
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert words.text(ids).decode() == tokenizer.decode(ids) == text


@pytest.mark.parametrize("kind", EXACT)
def test_encoding_text_and_spelling_it_come_back(kind: str) -> None:
    words = vocabulary(kind)
    ids, rest = words.encode(TEXT.encode())
    assert (words.text(ids), rest) == (TEXT.encode(), b"")
    for cut in range(len(TEXT)):
        ends = words.spell(TEXT[cut:].encode())[0]
        assert words.continuation(ids, ends) == TEXT[cut:].encode()


def test_byte_level_strings_are_bytes() -> None:
    words = vocabulary("byte-level")
    assert words.spelled[token(words, "Ġcat")] == b" cat"
    assert words.spelled[token(words, "Ã")] == b"\xc3"
    assert {piece for piece in words.spelled if piece and len(piece) == 1} == {
        bytes([byte]) for byte in range(256)
    }


def test_sentencepiece_strings_are_text_and_byte_fallbacks() -> None:
    words = vocabulary("sentencepiece")
    assert words.space_first
    assert words.spelled[token(words, "▁cat")] == b" cat"
    assert words.spelled[token(words, "<0xC3>")] == b"\xc3"
    assert words.spelled[token(words, "é")] == "é".encode()
    assert words.by_bytes[b"A"] == token(words, "A") > token(words, "<0x41>")


def test_a_word_piece_starts_after_a_space_or_goes_on() -> None:
    words = vocabulary("wordpiece")
    assert not words.exact
    pieces = [words.spelled[token(words, string)] for string in ("cat", "##s", ".")]
    assert pieces == [b" cat", b"s", b"."]
    ids = words.encode(b"The CATS, on.")[0]
    assert words.text(ids) == b"the cats, on."
    assert words.continuation(ids[:1], ids[1:]) == b" cats, on."


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_have_roles_and_no_bytes(kind: str) -> None:
    words = vocabulary(kind)
    assert words.eos == words.roles["eos"] == token(words, EOS)
    assert all(words.spelled[index] is None for index in words.roles.values())
    assert ("unk" in words.roles) == (UNKNOWN in words.strings)
    assert words.text([*words.roles.values()]) == b""


def test_ids_without_a_token_and_tokens_that_are_added() -> None:
    tokenizer = byte_level()
    tokenizer.add_tokens(["naïve", AddedToken("<tool>", special=True)])
    words = TokenVocabulary.from_tokenizer(tokenizer, size=300)
    assert len(words) == 300
    assert words.spelled[token(words, "naïve")] == "naïve".encode()
    assert words.spelled[token(words, "<tool>")] is None
    assert (words.strings[-1], words.spelled[-1]) == (None, None)
    with pytest.raises(ValueError, match="size = 9: expected at least"):
        TokenVocabulary.from_tokenizer(tokenizer, size=9)


def test_added_tokens_beyond_the_model_are_left_out() -> None:
    """As in Gemma 3, whose tokenizer lists an image token that the model of text lacks."""
    tokenizer = byte_level()
    ordinary = max(tokenizer.backend_tokenizer.get_vocab(with_added_tokens=False).values()) + 1
    tokenizer.add_special_tokens({"bos_token": "<bos>"})
    assert tokenizer.bos_token_id >= ordinary
    words = TokenVocabulary.from_tokenizer(tokenizer, size=ordinary)
    assert len(words) == ordinary
    assert set(words.roles) == set()
    assert words.encode(b"the<bos> cat") == (words.encode(b"the cat"))
    with pytest.raises(ValueError, match=f"size = {ordinary - 1}: expected at least {ordinary}"):
        TokenVocabulary.from_tokenizer(tokenizer, size=ordinary - 1)


def test_the_tokens_before_a_text_are_found() -> None:
    from tokenizers.processors import TemplateProcessing

    tokenizer = byte_level()
    backend = tokenizer.backend_tokenizer
    backend.post_processor = TemplateProcessing(
        single=f"{EOS} $A {EOS}", special_tokens=[(EOS, backend.token_to_id(EOS))]
    )
    words = TokenVocabulary.from_tokenizer(tokenizer)
    assert words.start == (words.eos,)
    ids, _ = read(words.encode(b"the")[0], words, words)
    assert ids == [words.eos, *words.encode(b"the")[0]]


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        (lambda: ByT5Tokenizer(), "ByT5Tokenizer: expected a fast one"),
        (lambda: wrapped(Tokenizer(models.BPE({"a": 0}, []))), "expected a decoder"),
    ],
)
def test_a_tokenizer_without_known_decoder_is_named(tokenizer: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TokenVocabulary.from_tokenizer(tokenizer())


def test_an_unknown_decoder_is_named() -> None:
    backend = Tokenizer(models.BPE({"a": 0}, []))
    backend.decoder = decoders.CTC()
    with pytest.raises(ValueError, match=r"decoders \['CTC'\]: expected ByteLevel"):
        TokenVocabulary.from_tokenizer(wrapped(backend))


# Two vocabularies.


def shared(target: TokenVocabulary, drafter: TokenVocabulary, identity: Any) -> dict[Any, Any]:
    ids = id_map(target, drafter, identity).tolist()
    assert len(ids) == len(drafter)
    return {drafter.strings[d]: target.strings[t] for d, t in enumerate(ids) if t >= 0}


def test_identity_by_bytes() -> None:
    pairs = shared(vocabulary("byte-level"), vocabulary("sentencepiece"), "bytes")
    assert pairs["▁cat"] == "Ġcat"
    assert pairs["é"] == "Ã©"
    assert pairs["<0xC3>"] == "Ã"
    assert pairs["A"] == pairs["<0x41>"] == "A"
    assert pairs[EOS] == EOS
    assert UNKNOWN not in pairs


def test_identity_by_string_has_false_matches() -> None:
    target, drafter = vocabulary("byte-level"), vocabulary("sentencepiece")
    pairs = shared(target, drafter, "string")
    assert "▁cat" not in pairs
    assert pairs["é"] == "é"
    assert target.spelled[token(target, "é")] == b"\xe9"
    assert pairs["<pad>"] == "<pad>"


@pytest.mark.parametrize("identity", ["bytes", "string"])
def test_eos_is_eos_whatever_it_is_called(identity: Any) -> None:
    names, pieces = ("a", EOS, "</s>"), (b"a", None, None)
    target = TokenVocabulary(names, pieces, {"eos": 2}, None)
    drafter = TokenVocabulary((EOS, "a"), (None, b"a"), {"eos": 0}, None)
    assert id_map(target, drafter, identity).tolist() == [2, 0]
    assert inverse(id_map(target, drafter, identity), drafter)[2] == 0
    endless = TokenVocabulary(names, pieces, {}, None)
    assert id_map(endless, drafter).tolist() == [-1, 0]


def test_an_unknown_identity_is_named() -> None:
    with pytest.raises(ValueError, match="identity = 'text': expected bytes or string"):
        id_map(vocabulary("bytes"), vocabulary("bytes"), "text")  # type: ignore[arg-type]


def test_a_map_in_the_order_of_get_vocab_is_rejected() -> None:
    """Transformers' TLI: columns in the order of the drafter's `get_vocab()`."""
    target, tokenizer = vocabulary("byte-level"), unigram()
    drafter = TokenVocabulary.from_tokenizer(tokenizer)
    unsorted = [
        target.strings.index(s) if s in target.strings else -1 for s in tokenizer.get_vocab()
    ]
    assert id_map(target, drafter, "string").tolist() != unsorted


# Contexts.


def reader(target: TokenVocabulary, drafter: TokenVocabulary) -> Reader:
    return Reader(target, drafter, inverse(id_map(target, drafter), drafter))


@pytest.mark.parametrize("drafter", EXACT)
@pytest.mark.parametrize("target", EXACT)
def test_a_context_is_the_same_text_at_once_and_token_by_token(target: str, drafter: str) -> None:
    words, other = vocabulary(target), vocabulary(drafter)
    ids = words.encode(TEXT.encode())[0]
    assert other.text(read(ids, words, other)[0]) == TEXT.encode()
    rows = reader(words, other)
    for length in range(1, len(ids) + 1):
        seen = rows([ids[:length]])[0]
        assert other.text(seen) == words.text(ids[:length])


@pytest.mark.parametrize("drafter", ["bytes", "byte-level", "sentencepiece"])
def test_half_characters_are_spelled_in_bytes(drafter: str) -> None:
    words, other = vocabulary("bytes"), vocabulary(drafter)
    rows, data = reader(words, other), "a 日本é".encode()
    ids = words.encode(data)[0]
    for length in range(1, len(ids) + 1):
        assert other.text(rows([ids[:length]])[0]) == data[:length]


def test_half_characters_wait_where_they_cannot_be_spelled() -> None:
    words, other = vocabulary("bytes"), vocabulary("unigram")
    ids, rows = words.encode("at é".encode())[0], reader(words, other)
    texts = [other.text(rows([ids[:length]])[0]).decode() for length in range(1, len(ids) + 1)]
    assert texts == ["a", "at", "at ", "at ", "at é"]
    assert read(ids[:-1], words, other)[1] == b"\xc3"


def test_what_waits_is_not_mended_by_what_comes_later() -> None:
    words, other = vocabulary("bytes"), vocabulary("unigram")
    assert words.eos is not None
    letter, first, second = (words.by_bytes[byte] for byte in (b"a", b"\xc3", b"\xa9"))
    for between, text in ((letter, b"aa"), (words.eos, b"a")):
        rows, ids = reader(words, other), [letter, first, between, second]
        texts = [other.text(rows([ids[:length]])[0]) for length in range(1, 5)]
        assert texts[-1] == text


def test_no_replacement_character_is_ever_read() -> None:
    words, data = vocabulary("bytes"), b"a\xc3\xffb\xe6\x97"
    ids = words.encode(data)[0]
    for kind in KINDS:
        other = vocabulary(kind)
        rows = reader(words, other)
        for length in range(1, len(ids) + 1):
            assert "\ufffd".encode() not in other.text(rows([ids[:length]])[0])


def test_eos_and_other_special_tokens_of_a_context() -> None:
    words, other = vocabulary("byte-level"), vocabulary("unigram")
    assert words.eos is not None
    the, pad = words.encode(b"the")[0], words.roles["pad"]
    ids, rest = read([*the, words.eos, pad, *the], words, other)
    the_other = other.encode(b"the")[0]
    assert (ids, rest) == ([*the_other, other.eos, *the_other], b"")
    rows = reader(words, other)
    rows([the])
    assert rows([[*the, words.eos, pad]]) == [[*the_other, other.eos]]


def test_an_empty_context_is_read_as_something() -> None:
    words = vocabulary("byte-level")
    assert reader(words, words)([[]]) == [[words.eos]]
    assert opening(toy_vocabulary(b"a", eos=False)) == 0


def test_rows_that_do_not_go_on_are_read_anew() -> None:
    words, other = vocabulary("byte-level"), vocabulary("unigram")
    rows, (the, cat) = reader(words, other), (words.encode(t)[0] for t in (b"the", b" cat"))
    rows([the, cat])
    assert other.text(rows([[*the, *cat], the])[0]) == b"the cat"
    assert other.text(rows([[*the, *cat], the])[1]) == b"the"
    assert [other.text(row) for row in rows([cat])] == [b" cat"]


@pytest.mark.parametrize("stays", [0, 1])
def test_a_row_that_stays_is_read_on(stays: int) -> None:
    """Its new letters one by one; a reader that is told nothing reads it anew, as a word."""
    letters, words = vocabulary("bytes"), vocabulary("byte-level")
    texts = [letters.encode(text)[0] for text in (b"the", b"cat")]
    told, untold = reader(letters, words), reader(letters, words)
    for rows in (told, untold):
        rows([text[:1] for text in texts])
    told.select([stays])
    anew = reader(letters, words)([texts[stays]])
    assert told([texts[stays]]) != anew == untold([texts[stays]])


# The fixtures.


@pytest.mark.parametrize(
    "name", ["target", "drafter_bpe1k", "drafter_bytes", "drafter_unigram", "drafter_wordpiece"]
)
def test_fixture_tokenizers_come_back(name: str) -> None:
    if not (FIXTURES / name / "tokenizer.json").exists():
        pytest.skip("not_run (fixtures/models is not built)")
    words = TokenVocabulary.from_tokenizer(AutoTokenizer.from_pretrained(FIXTURES / name))
    text = "def total(values):\n    return sum(values) / 2  # the mean\n"
    ids, rest = words.encode(text.encode())
    lost = " ".join(text.replace("(", " ( ").split()) if name == "drafter_wordpiece" else text
    assert rest == b""
    if words.exact:
        assert words.text(ids).decode() == text
        assert words.text(words.spell(text.encode())[0]).decode() == text
    else:
        assert words.text(ids).decode().replace(" ", "") == lost.replace(" ", "")


def test_vocabularies_are_equal_if_their_tokens_are_whatever_reads_them() -> None:
    """Two tokenizers that read alike are two objects."""
    one, other = vocabulary("sentencepiece"), vocabulary("sentencepiece")
    assert one.tokenizer is not other.tokenizer
    assert one == other
    changes: dict[str, Any] = {
        "strings": (*one.strings[1:], "?"),
        "spelled": (*one.spelled[1:], b"?"),
        "roles": {},
        "exact": not one.exact,
        "start": (0, *one.start),
        "space_first": not one.space_first,
    }
    for name, value in changes.items():
        assert one != replace(other, **{name: value}), name
    assert set(changes) | {"tokenizer"} == {each.name for each in fields(TokenVocabulary)}


def test_logits_over_other_ids_are_refused() -> None:
    words = vocabulary("bytes")
    words.check_logits(torch.zeros(2, len(words)))
    with pytest.raises(ValueError, match=f"logits for {len(words) + 1} ids, the vocabulary"):
        words.check_logits(torch.zeros(2, len(words) + 1))
