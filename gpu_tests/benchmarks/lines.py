"""What generation is timed on: who generates how much, by which method, over which pair."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

OURS, THEIRS, BY_ID = "specref", "Transformers", "Transformers, vocabulary by id"
PAIRS = (
    "homogeneous",
    "large intersection",
    "small intersection",
    "non-injective",
    "byte-level",
)
PLAIN, LOOKUP, TOKEN, BLOCK = "autoregressive", "prompt lookup", "token", "block"


@dataclass(frozen=True)
class Line:
    """One row of the table: who generates what."""

    pair: str
    method: str
    temperature: float
    implementation: str
    batch: int
    prompts: int
    new_tokens: int
    lookahead: int
    verification: str = TOKEN


class Way(NamedTuple):
    """A method, and the lookaheads at which it is timed; in batches at the last of these."""

    method: str
    temperature: float
    lookaheads: tuple[int, ...] = (4,)
    verification: str = TOKEN


OVER_ONE = (
    Way(PLAIN, 1.0),
    Way(PLAIN, 0.0),
    Way("standard", 1.0, (2, 4)),
    Way("standard", 1.0, verification=BLOCK),
)
OVER_TWO = (
    Way("slem", 0.0, (2, 4)),
    Way("slem", 1.0),
    Way("tli", 0.0, (2, 4)),
    Way("tli", 1.0, (2, 4)),
    Way("tli", 1.0, verification=BLOCK),
    Way("union", 1.0),
    Way("slrs", 1.0),
)


@dataclass(frozen=True)
class Sizes:
    """How much is generated."""

    prompts: int
    new_tokens: int
    repetitions: int
    batch: int = 16
    pairs: tuple[str, ...] = PAIRS

    @property
    def lines(self) -> list[Line]:
        """All rows, those of one method and temperature one after the other."""
        return [line for pair in self.pairs for line in self._of_pair(pair)]

    @property
    def steps(self) -> int:
        """How many steps a measurement has."""
        return len(self.lines) * (1 + self.repetitions)

    def _of_pair(self, pair: str) -> Iterator[Line]:
        for way in OVER_ONE if pair == "homogeneous" else OVER_TWO:
            lines = [self._line(pair, way, lookahead) for lookahead in way.lookaheads]
            for line in lines:
                yield line
                yield from (replace(line, implementation=peer) for peer in _peers(line))
            yield replace(lines[-1], batch=self.batch, prompts=self.batch)

    def _line(self, pair: str, way: Way, lookahead: int) -> Line:
        given = pair, way.method, way.temperature, OURS, 1, self.prompts, self.new_tokens
        return Line(*given, lookahead, way.verification)


SIZES: Mapping[str, Sizes] = MappingProxyType(
    {
        "cpu": Sizes(prompts=4, new_tokens=24, repetitions=5),
        "cuda": Sizes(prompts=4, new_tokens=32, repetitions=3),
    }
)
TINY = Sizes(1, 3, 1, batch=2, pairs=("homogeneous",))


def _peers(line: Line) -> tuple[str, ...]:
    """Transformers samples with TLI, never with SLEM, and has neither union nor SLRS.

    Its drafts are verified one by one, and its greedy text is that of SLEM.
    """
    if line.verification == BLOCK or line.method in ("union", "slrs"):
        return ()
    if line.method == "tli":
        return (THEIRS, BY_ID) if line.temperature else ()
    return () if (line.method, line.temperature) == ("slem", 1.0) else (THEIRS,)
