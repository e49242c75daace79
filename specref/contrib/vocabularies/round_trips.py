"""Round trip and injectivity of tokenisers: the first implies the second, and not conversely.

If decode(encode(s)) == s for all texts, no two texts have the same ids. The converse is false: a
tokeniser that adds BOS, and writes it when it decodes, gives no text back and confuses no two.
"""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

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
