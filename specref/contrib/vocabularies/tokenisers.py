"""The tokenisers of real vocabularies, built from their tokens with the libraries' classes.

If decode(encode(s)) == s for all texts, no two texts have the same ids: the round trip implies
injectivity. The converse is false: a tokeniser that adds BOS, and writes it when it decodes, gives
no text back and confuses no two.
"""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from specref.contrib.vocabularies.files import VocabularyNotInstalledError
from specref.contrib.vocabularies.vocabulary import RealVocabulary

SENTENCES = (
    "The quick brown fox jumps over the lazy dog.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.",
    "Les naïfs ægithales hâtifs pondant à Noël où il gèle.",
    "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "한국어 문장 하나와 日本語の文がひとつ。",
    "def f(x):\n\treturn x  # two spaces\r\n",
    "a ▁ b",
    "a   b",
)
LETTERS = (*range(0x20, 0x7F), *range(0xA1, 0x250), *range(0x370, 0x530), *range(0x1E00, 0x1F00))


@dataclass(frozen=True)
class RoundTrip:
    """How many texts a tokeniser returns unchanged, and how many it confuses.

    * `returned`: For how many decode(encode(s)) == s.
    * `confused`: How many have the same ids as an earlier one: the tokeniser is not injective.
    * `example`: Two texts with the same ids, of the shortest.
    """

    texts: int
    returned: int
    confused: int
    example: tuple[str, str] | None


def round_trip(
    encode: Callable[[str], Sequence[int]],
    decode: Callable[[Sequence[int]], str],
    texts: Sequence[str],
) -> RoundTrip:
    """Encode and decode distinct texts, and compare their ids.

    * raises `ValueError`: A text is repeated.
    """
    if len(set(texts)) < len(texts):
        raise ValueError("texts: expected distinct ones")
    first: dict[tuple[int, ...], str] = {}
    returned, pairs = 0, []
    for text in texts:
        ids = tuple(encode(text))
        returned += decode(ids) == text
        if first.setdefault(ids, text) != text:
            pairs.append((first[ids], text))
    shortest = min(pairs, key=lambda pair: len("".join(pair)), default=None)
    return RoundTrip(len(texts), returned, len(pairs), shortest)


def probing_texts() -> list[str]:
    """Texts that differ in spaces, in composition and in case only."""
    letters = (chr(code) for code in LETTERS if unicodedata.category(chr(code)) != "Cn")
    return list(dict.fromkeys(text for one in (*SENTENCES, *letters) for text in _forms(one)))


def _forms(text: str) -> Iterator[str]:
    yield text
    if len(text) == 1:
        yield unicodedata.normalize("NFD", text)
        return
    for form in ("NFD", "NFKC"):
        yield unicodedata.normalize(form, text)
    yield from (f" {text}", f"  {text}", f"{text} ", text.upper(), f"\n{text}")


Encode: TypeAlias = Callable[[str], Sequence[int]]
Decode: TypeAlias = Callable[[Sequence[int]], str]
Build: TypeAlias = Callable[[RealVocabulary], tuple[Encode, Decode]]

BOS = "<|begin_of_text|>"
GPT2_WORDS = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA_3_WORDS = QWEN2_WORDS.replace(r"|\p{N}|", r"|\p{N}{1,3}|")


class Tokeniser(NamedTuple):
    """How a tokeniser is built: from which published vocabulary, by which class."""

    vocabulary: str
    made_by: str
    build: Build

    def codec(self, vocabulary: RealVocabulary) -> tuple[Encode, Decode]:
        """Encode and decode, with the class's own flags.

        * raises `VocabularyNotInstalledError`: The package of the class is not installed.
        """
        try:
            return self.build(vocabulary)
        except ModuleNotFoundError as error:
            raise VocabularyNotInstalledError(f"{error.name} is not installed") from None


def merges_of(strings: Sequence[str]) -> list[tuple[str, str]]:
    """Every pair of tokens that makes a token, in the order of what they make."""
    ids = _numbered(strings)
    merges: list[tuple[str, str]] = []
    for string in strings:
        halves = ((string[:cut], string[cut:]) for cut in range(1, len(string)))
        pairs = [pair for pair in halves if pair[0] in ids and pair[1] in ids]
        merges += sorted(pairs, key=lambda pair: (ids[pair[0]], ids[pair[1]]))
    return merges


def _numbered(strings: Sequence[str]) -> dict[str, int]:
    return {string: index for index, string in enumerate(strings)}


def _text_strings(vocabulary: RealVocabulary) -> list[str]:
    tokens = vocabulary.tokens
    return [tokens[id_].string for id_ in sorted(tokens) if tokens[id_].spelled is not None]


def _tiktoken(words: str) -> Build:
    def build(vocabulary: RealVocabulary) -> tuple[Encode, Decode]:
        tokens = vocabulary.tokens.items()
        encoding = import_module("tiktoken").Encoding(
            vocabulary.name,
            pat_str=words,
            mergeable_ranks={t.spelled: i for i, t in tokens if t.spelled is not None},
            special_tokens={t.string: i for i, t in tokens if t.spelled is None},
        )
        return encoding.encode_ordinary, encoding.decode

    return build


def _qwen2(vocabulary: RealVocabulary) -> tuple[Encode, Decode]:
    strings = _text_strings(vocabulary)
    build = import_module("transformers").Qwen2Tokenizer
    return _codec(build(vocab=_numbered(strings), merges=merges_of(strings)))


def _llama(vocabulary: RealVocabulary) -> tuple[Encode, Decode]:
    strings = vocabulary.strings
    build = import_module("transformers").LlamaTokenizer
    ids, merges = _numbered(strings), merges_of(strings)
    return _codec(build(vocab=ids, merges=merges, add_bos_token=True))


def _llama_3(vocabulary: RealVocabulary) -> tuple[Encode, Decode]:
    kit, strings = import_module("tokenizers"), _text_strings(vocabulary)
    model = kit.models.BPE(_numbered(strings), merges_of(strings), ignore_merges=True)
    tokenizer = kit.Tokenizer(model)
    tokenizer.add_special_tokens([BOS])
    split = kit.pre_tokenizers.Split(kit.Regex(LLAMA_3_WORDS), "isolated")
    byte_level = kit.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = kit.pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = kit.decoders.ByteLevel()
    tokenizer.post_processor = kit.processors.TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, tokenizer.token_to_id(BOS))]
    )
    build = import_module("transformers").PreTrainedTokenizerFast
    return _codec(build(tokenizer_object=tokenizer, bos_token=BOS))


def _codec(tokenizer: Any) -> tuple[Encode, Decode]:
    return tokenizer.encode, tokenizer.decode


TOKENISERS: Mapping[str, Tokeniser] = MappingProxyType(
    {
        "GPT-2": Tokeniser("gpt2", "tiktoken", _tiktoken(GPT2_WORDS)),
        "Qwen2": Tokeniser("qwen2", "tiktoken", _tiktoken(QWEN2_WORDS)),
        "Qwen2, NFC": Tokeniser("qwen2", "transformers.Qwen2Tokenizer", _qwen2),
        "Llama-3.1": Tokeniser("llama-3.1", "tiktoken", _tiktoken(LLAMA_3_WORDS)),
        "Llama-3.1, BOS": Tokeniser("llama-3.1", "transformers.PreTrainedTokenizerFast", _llama_3),
        "Mixtral": Tokeniser("mixtral-8x22b", "transformers.LlamaTokenizer", _llama),
        "vicuna": Tokeniser("vicuna", "transformers.LlamaTokenizer", _llama),
    }
)
