"""What two real vocabularies have in common, under both identities.

Timor et al. 2025 print |T ∩ D| for pairs of models; the counts are those of the strings that
vocabulary files hold. One file writes a space as 'Ġ' and another as '▁': then tokens with spaces
have no string in common, although they write the same.
"""

from dataclasses import dataclass
from fractions import Fraction

from specref.contrib.vocabularies.vocabulary import RealVocabulary


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
