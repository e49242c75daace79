"""A real vocabulary: what its file writes for each token, and what each token writes.

Two of them have something in common, under either identity. Timor et al. 2025 print |T ∩ D| for
pairs of models; the counts are those of the strings that vocabulary files hold. One file writes a
space as 'Ġ' and another as '▁': then tokens with spaces have no string in common, although they
write the same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from specref.vocabulary import Vocabulary


class DuplicateBytesError(ValueError):
    """Two tokens write the same bytes, so that bytes do not tell which token is meant."""


class Token(NamedTuple):
    """A token of a vocabulary file.

    * `string`: As the vocabulary's file writes it: `get_vocab()` of Transformers.
    * `spelled`: What it writes; None for special tokens.
    """

    string: str
    spelled: bytes | None


@dataclass(frozen=True)
class RealVocabulary:
    """The tokens of a file under two identities, which give different counts.

    *By string*, tokens are the same if their files write the same: that is what published
    counts compare, and it depends on how a file encodes spaces and bytes. *By bytes*, they are
    the same if they write the same bytes into a text; special tokens write none.

    * raises `ValueError`: Two tokens have one string, or there are none.
    """

    name: str
    tokens: Mapping[int, Token]

    def __post_init__(self) -> None:
        if not self.tokens:
            raise ValueError(f"{self.name} has no tokens: expected at least one")
        repeated = _first_repeated((id_, token.string) for id_, token in self.tokens.items())
        if repeated:
            raise ValueError(
                f"{self.name}: tokens {repeated[0]} and {repeated[1]} have one string"
            )

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def strings(self) -> list[str]:
        """The strings of the file, by id."""
        return [self.tokens[id_].string for id_ in sorted(self.tokens)]

    @property
    def spelled(self) -> list[bytes]:
        """The bytes of each token that writes any, by id; with duplicates."""
        written = (self.tokens[id_].spelled for id_ in sorted(self.tokens))
        return [data for data in written if data is not None]

    def by_string(self) -> Vocabulary:
        """The vocabulary of the file's strings, special tokens among them."""
        return Vocabulary(self.strings)

    def by_bytes(self, *, merge: bool = False) -> Vocabulary:
        """The vocabulary of byte strings, without special tokens.

        * `merge`: Whether tokens that write the same bytes become one. Then a decomposition stands
          for all choices among them.
        * raises `DuplicateBytesError`: Two tokens write the same, as 'A' and '<0x41>' do, and
          `merge` is false.
        """
        if not merge:
            pairs = ((i, self.tokens[i].spelled) for i in sorted(self.tokens))
            repeated = _first_repeated((i, data) for i, data in pairs if data is not None)
            if repeated:
                one, other = (f"{i} {self.tokens[i].string!r}" for i in repeated)
                raise DuplicateBytesError(
                    f"{self.name}: tokens {one} and {other} write the same bytes "
                    f"{self.tokens[repeated[0]].spelled!r}: compare strings, or merge them"
                )
        return Vocabulary(dict.fromkeys(self.spelled))


def _first_repeated(named: Iterable[tuple[int, object]]) -> tuple[int, int] | None:
    seen: dict[object, int] = {}
    for id_, value in named:
        if value in seen:
            return seen[value], id_
        seen[value] = id_
    return None


@dataclass(frozen=True)
class Overlap:
    """The tokens that a target and a drafter have in common.

    * `size`: |T|, the target's special tokens among them.
    * `strings`: |T ∩ D| by string.
    * `mistaken`: Those of them that do not write the same bytes.
    * `spellings`: |T ∩ D| by bytes: byte strings, each counted once.
    * `named`: The same where a special token is taken to write its name, as in `get_vocab()`.
    """

    target: str
    drafter: str
    size: int
    strings: int
    mistaken: int
    spellings: int
    named: int

    @property
    def share_of_strings(self) -> Fraction:
        """|T ∩ D| / |T| by string: TLI's acceptance of a uniform target and drafter."""
        return Fraction(self.strings, self.size)

    @property
    def share_of_spellings(self) -> Fraction:
        """|T ∩ D| / |T| by bytes."""
        return Fraction(self.spellings, self.size)


def overlap(target: RealVocabulary, drafter: RealVocabulary) -> Overlap:
    """Count what two vocabularies have in common, by string and by bytes."""
    written = {token.string: token.spelled for token in target.tokens.values()}
    shared = [token for token in drafter.tokens.values() if token.string in written]
    return Overlap(
        target=target.name,
        drafter=drafter.name,
        size=len(target),
        strings=len(shared),
        mistaken=sum(token.spelled != written[token.string] for token in shared),
        spellings=len({*target.spelled} & {*drafter.spelled}),
        named=len(_with_names(target) & _with_names(drafter)),
    )


def _with_names(vocabulary: RealVocabulary) -> set[bytes]:
    return {
        token.string.encode() if token.spelled is None else token.spelled
        for token in vocabulary.tokens.values()
    }
