"""The bytes that each token of a fast tokenizer writes, by the kind of tokeniser."""

import codecs
import json
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

FALLBACK = re.compile(r"<0x([0-9A-Fa-f]{2})>")
SENTENCE_PIECE = {"Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"}


def split_unfinished(data: bytes) -> tuple[bytes, bytes]:
    """Split off the bytes at the end that only start a UTF-8 character.

    >>> split_unfinished("é".encode() * 2), split_unfinished("né".encode()[:-1])
    ((b'\\xc3\\xa9\\xc3\\xa9', b''), (b'n', b'\\xc3'))
    """
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    decoder.decode(data)
    tail = decoder.getstate()[0]
    return data[: len(data) - len(tail)], tail


def strings_by_id(tokenizer: Any, size: int | None = None) -> tuple[str | None, ...]:
    """Token strings by id, None where there is none; the order of `get_vocab()` is ignored.

    Added tokens that a model of `size` ids has no logits for are left out: it never says them.

    * raises `ValueError`: `size` is too small for what the tokenizer writes text with.
    """
    by_id = {index: string for string, index in tokenizer.get_vocab().items()}
    known = max(by_id, default=-1) + 1
    if size is not None and (needed := needed_ids(tokenizer)) > size:
        raise ValueError(f"size = {size}: expected at least {needed}, one more than the last id")
    return tuple(by_id.get(index) for index in range(known if size is None else size))


def needed_ids(tokenizer: Any) -> int:
    """How many ids a model needs for a tokenizer's tokens; those added to it do not count."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    return (
        max((index for index in tokenizer.get_vocab().values() if index not in added), default=-1)
        + 1
    )


def token_bytes(tokenizer: Any, strings: Sequence[str | None]) -> tuple[bytes | None, ...]:
    """The bytes that each token writes; None for special tokens.

    * raises `ValueError`: The tokenizer has no decoder, or one of an unknown kind.
    """
    added, special = tokenizer.added_tokens_decoder, set(tokenizer.all_special_ids)
    special |= {index for index, token in added.items() if token.special}
    spell = _speller(decoder_types(tokenizer))
    pieces: list[bytes | None] = []
    for index, string in enumerate(strings):
        if string is None or index in special:
            pieces.append(None)
        else:
            pieces.append((string.encode() if index in added else spell(string)) or None)
    return tuple(pieces)


def decoder_types(tokenizer: Any) -> set[str]:
    """The types of a tokenizer's decoders.

    * raises `ValueError`: It is no fast tokenizer, or has no decoder.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    name = type(tokenizer).__name__
    if backend is None:
        raise ValueError(f"tokenizer = {name}: expected a fast one (PreTrainedTokenizerFast)")
    if backend.decoder is None:
        raise ValueError(
            f"tokenizer = {name}: expected a decoder, which says how tokens make a text; set "
            "tokenizer.backend_tokenizer.decoder = tokenizers.decoders.Fuse() if they are joined "
            "as they are, or decoders.WordPiece() if by spaces"
        )
    state = json.loads(backend.decoder.__getstate__())
    return {decoder["type"] for decoder in state.get("decoders", [state])}


def _speller(decoders: set[str]) -> Callable[[str], bytes]:
    """A function from token strings to bytes, by the kind of tokeniser."""
    if "ByteLevel" in decoders:
        return _byte_level
    if "WordPiece" in decoders:
        return _word_piece
    if not decoders <= SENTENCE_PIECE:
        unknown = sorted(decoders - SENTENCE_PIECE)
        raise ValueError(
            f"tokenizer has decoders {unknown}: expected ByteLevel, WordPiece or "
            f"{', '.join(sorted(SENTENCE_PIECE))}"
        )
    spaced = bool(decoders & {"Metaspace", "Replace"})
    return lambda string: _sentence_piece(string, spaced, "ByteFallback" in decoders)


def _byte_level(string: str) -> bytes:
    # As in the tokenizers library: a string with any other character stands for itself.
    codes = [ALPHABET.get(character) for character in string]
    known = [code for code in codes if code is not None]
    return bytes(known) if len(known) == len(codes) else string.encode()


def _word_piece(string: str) -> bytes:
    if string.startswith("##"):
        return string[2:].encode()
    mark = len(string) == 1 and not string.isalnum()
    return string.encode() if mark else b" " + string.encode()


def _sentence_piece(string: str, spaced: bool, fallback: bool) -> bytes:
    byte = FALLBACK.fullmatch(string) if fallback else None
    if byte:
        return bytes([int(byte[1], 16)])
    return (string.replace("▁", " ") if spaced else string).encode()


def _alphabet() -> dict[str, int]:
    """The character that byte-level tokenisers write for each byte."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = sorted(set(range(256)) - set(printed))
    return {chr(byte): byte for byte in printed} | {
        chr(256 + place): byte for place, byte in enumerate(others)
    }


ALPHABET: Mapping[str, int] = MappingProxyType(_alphabet())
