"""The words of the guides: the field's terms, and sentences that are read once.

Run from the root of a checkout, as `make docs` does for each guide:

    python -m proofs_tests.pages.words [PAGE…]

Code, formulas and headings are left out; sentence lengths leave out tables, too. Records, the
ledger of claims and the glossary, which defines what is private, are not guides.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
NO_GUIDES = ("claims.md", "glossary.md")
BANNED: Mapping[str, str] = {
    r"laws?": "distribution, probabilities",
    r"sub-laws?": "sub-distribution",
    r"coins?": "random number",
    r"strat(?:um|a)": "situation",
    r"drafters?": "draft model",
    r"kit": "specref, the checks",
    r"twins?": "independent implementation, vectorised simulator",
    r"plain mode": "non-speculative decoding",
    r"false alarms?": "false positive",
    r"witness(?:es)?": "counterexample",
    r"accepted lengths?": "number of accepted tokens",
    r"told apart": "distinguished",
    r"by the machine": "depending on the machine",
    r"on top": "extra",
    r"says? so": "reports it",
    r"so far": "(leave it out, or give the date)",
    r"besides?": "next to, also",
    r"dearer": "more expensive",
    r"is another thing": "differs",
    r"nothing is said": "is not tested",
    r"what came of": "results of",
    r"kept drafts?": "accepted draft tokens",
    r"looked at": "evaluated",
    r"ways? of calling": "call patterns",
    r"would have been found": "would be detected",
    r"surely found": "detected with probability 0.999",
    r"in public code so": "in public code",
    r"who(?:ever)? does not": "a sampler that does not",
    r"as ever": "unchanged",
    r"mended": "fixed",
}
"""{pattern of a private word or idiom: what to write}."""
MEAN, LONG, SHARE = 18.0, 30, 0.08
"""The most words of a sentence on average; what is a long one, and the share that may be."""
FEWEST = 20
"""Sentences of a page from which on shares are counted."""
FENCE = re.compile(r"^( *)```.*?^\1```$", flags=re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$", flags=re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", flags=re.DOTALL)
TAG = re.compile(r"<[^>\n]+>")
CODE = re.compile(r"(`+).+?\1", flags=re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
WORD = re.compile(r"[\w'’.,:/+=-]*\w[\w'’.,:/+=-]*")


@dataclass(frozen=True)
class Reading:
    """How a page reads.

    * `sentences`: How many words each has.
    """

    banned: tuple[tuple[str, str], ...]
    sentences: tuple[int, ...]

    @property
    def mean(self) -> float:
        """The words of a sentence on average."""
        return sum(self.sentences) / max(len(self.sentences), 1)

    @property
    def long(self) -> float:
        """The share of long sentences."""
        return sum(n > LONG for n in self.sentences) / max(len(self.sentences), 1)

    def complaints(self) -> Iterator[str]:
        """What is wrong with it."""
        for word, better in self.banned:
            yield f"'{word}' is a private word here: write {better}"
        if len(self.sentences) < FEWEST:
            return
        if self.mean > MEAN:
            yield f"sentences have {self.mean:.1f} words on average: at most {MEAN:.0f}"
        if self.long > SHARE:
            yield f"{self.long:.0%} of sentences have over {LONG} words: at most {SHARE:.0%}"


def read(text: str) -> Reading:
    """Read a page.

    * `text`: Markdown.

    >>> read("# Laws\\n\\nThe `law` of a [coin](coins.md) is fair. It lands.").banned
    (('coin', 'random number'),)
    >>> read("| a coin |\\n\\nOne two three. Four five:\\n\\n* six\\n* seven eight\\n").sentences
    (3, 2, 1, 2)
    """
    shown = displayed(text)
    words = [
        (found[0], better)
        for pattern, better in BANNED.items()
        for found in re.finditer(rf"\b{pattern}\b", shown, flags=re.IGNORECASE)
    ]
    return Reading(tuple(words), tuple(lengths(shown)))


def displayed(text: str) -> str:
    """What a reader sees of Markdown but for headings; code is a word."""
    for pattern, with_ in (
        *((FENCE, "\n"), (COMMENT, ""), (CODE, "CODE"), (TAG, ""), (FORMULA, "x")),
        (LINK, r"\1"),
    ):
        text = pattern.sub(with_, text)
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def lengths(shown: str) -> Iterator[int]:
    """How many words each sentence has that is in no table; an item of a list is a paragraph."""
    prose = "\n".join("" if line.startswith("|") else line for line in shown.splitlines())
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[*-]|\d+\.) )", prose):
        for sentence in re.split(r"(?<=[.?!])\s+(?=\S)", paragraph.strip()):
            if count := len(WORD.findall(sentence.lstrip("*->0123456789. "))):
                yield count


def guides() -> list[Path]:
    """README and the pages of docs."""
    pages = sorted((ROOT / "docs").glob("*.md"))
    return [ROOT / "README.md", *(page for page in pages if page.name not in NO_GUIDES)]


def main() -> None:
    """Say what is wrong with each page, and how long its sentences are."""
    wrong = False
    for page in [Path(one) for one in sys.argv[1:]] or guides():
        reading = read(page.read_text(encoding="utf-8"))
        print(f"{page.name}: {reading.mean:.1f} words, {reading.long:.0%} long")
        for complaint in reading.complaints():
            print(f"  {complaint}")
            wrong = True
    sys.exit(wrong)


if __name__ == "__main__":
    main()
