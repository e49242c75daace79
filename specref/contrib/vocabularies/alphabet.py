"""The bytes that the strings of vocabulary files stand for, by the kind of tokeniser."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

FALLBACK = re.compile(r"<0x([0-9A-Fa-f]{2})>")
SENTENCE_PIECE = {"Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"}


def _alphabet() -> dict[str, int]:
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = sorted(set(range(256)) - set(printed))
    return {chr(byte): byte for byte in printed} | {
        chr(256 + place): byte for place, byte in enumerate(others)
    }


BYTE_OF: Mapping[str, int] = MappingProxyType(_alphabet())
CHARACTER_OF: Mapping[int, str] = MappingProxyType({b: c for c, b in BYTE_OF.items()})


def byte_level(data: bytes) -> str:
    """Bytes as byte-level tokenisers write them in their files."""
    return "".join(CHARACTER_OF[byte] for byte in data)


def piece_bytes(string: str, *, fallback: bool, spaced: bool = True) -> bytes:
    """The bytes that a SentencePiece piece writes.

    * `fallback`: Whether <0x..> is a byte.
    * `spaced`: Whether '▁' is a space.
    """
    byte = FALLBACK.fullmatch(string) if fallback else None
    if byte:
        return bytes([int(byte[1], 16)])
    return (string.replace("▁", " ") if spaced else string).encode()


def byte_speller(decoder: Mapping[str, Any]) -> Callable[[str], bytes]:
    """A function from token strings to bytes, by the decoder that a `tokenizer.json` declares.

    * raises `ValueError`: A kind of decoder that is not known.
    """
    kinds = {part["type"] for part in decoder.get("decoders", [decoder])}
    if "ByteLevel" in kinds:
        return _byte_level_bytes
    if kinds == {"WordPiece"}:
        return _word_piece_bytes
    if not kinds <= SENTENCE_PIECE:
        raise ValueError(
            f"decoders {sorted(kinds - SENTENCE_PIECE)}: expected ByteLevel, WordPiece or "
            f"{', '.join(sorted(SENTENCE_PIECE))}"
        )
    spaced, fallback = bool(kinds & {"Metaspace", "Replace"}), "ByteFallback" in kinds
    return lambda string: piece_bytes(string, fallback=fallback, spaced=spaced)


def _byte_level_bytes(string: str) -> bytes:
    # As in the tokenizers library: a string with any other character stands for itself.
    codes = [BYTE_OF[character] for character in string if character in BYTE_OF]
    return bytes(codes) if len(codes) == len(string) else string.encode()


def _word_piece_bytes(string: str) -> bytes:
    # Words are joined by spaces, marks are not.
    mark = len(string) == 1 and not string.isalnum()
    return string[2:].encode() if string.startswith("##") else (" " * (not mark) + string).encode()
