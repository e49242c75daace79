"""Small tokenizers of every kind, and their vocabularies."""

from collections.abc import Callable
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary

EOS, PAD, UNKNOWN = "<eos>", "<pad>", "<unk>"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["the", "cat", "mat", "sat", "on", "a", "er", "é"]


class Shuffled(PreTrainedTokenizerFast):
    """Lists its vocabulary in another order at every call, as hash maps do."""

    calls = 0

    def get_vocab(self) -> dict[str, int]:
        items = sorted(super().get_vocab().items())
        self.calls += 1
        start = (7 * self.calls) % len(items)
        return dict(items[start:] + items[:start])


def wrapped(backend: Tokenizer, **roles: str) -> Any:
    kind: Any = Shuffled
    return kind(tokenizer_object=backend, eos_token=EOS, pad_token=PAD, **roles)


def byte_level(merges: bool = True) -> Any:
    """Byte-level BPE with merges for "the cat" and "mat", or single bytes."""
    pairs = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("a", "t"), ("c", "at"), ("Ġ", "cat")]
    pairs += [("m", "at"), ("Ġ", "mat"), ("Ã", "©")]
    pairs = pairs if merges else []
    names = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in pairs)]
    backend = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, pairs))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return wrapped(backend)


def unigram(space_first: bool = False, fallback: bool = False) -> Any:
    """Unigram over words and letters, with or without byte fallback."""
    pieces = [(UNKNOWN, 0.0)]
    if fallback:
        pieces += [(f"<0x{byte:02X}>", -20.0) for byte in range(256)]
    pieces += [("▁", -5.0), ("\n", -6.0), (".", -5.0), ("é", -6.0), ("A", -7.0)]
    pieces += [(f"▁{word}", -2.0) for word in WORDS]
    pieces += [(letter, -6.0) for letter in LETTERS] + [("at", -5.0)]
    backend = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=fallback))
    if space_first:
        backend.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
        space = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        backend.decoder = decoders.Sequence([*space, decoders.Strip(" ", 1, 0)])
    else:
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
        backend.decoder = decoders.Metaspace(prepend_scheme="never", split=False)
    return wrapped(backend, unk_token=UNKNOWN)


def word_piece() -> Any:
    """Lower-casing WordPiece over words and letters."""
    names = [UNKNOWN, ".", ",", *WORDS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    ids = {name: i for i, name in enumerate(dict.fromkeys(names))}
    backend = Tokenizer(models.WordPiece(ids, unk_token=UNKNOWN))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(cleanup=True)
    return wrapped(backend, unk_token=UNKNOWN)


KINDS: dict[str, Callable[[], Any]] = {
    "byte-level": byte_level,
    "bytes": lambda: byte_level(merges=False),
    "unigram": unigram,
    "sentencepiece": lambda: unigram(space_first=True, fallback=True),
    "wordpiece": word_piece,
}


EXACT = ["byte-level", "bytes", "unigram", "sentencepiece"]


def vocabulary(kind: str) -> TokenVocabulary:
    return TokenVocabulary.from_tokenizer(KINDS[kind]())
