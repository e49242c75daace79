"""What generation is timed on: who generates how much, by which method, over which pair."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

OURS, THEIRS, BY_ID = "specref", "Transformers", "Transformers, vocabulary by id"
PAIRS = (
    "homogeneous",
    "large intersection",
    "small intersection",
    "non-injective",
    "byte-level",
)
PLAIN = "autoregressive"
OVER_ONE = ((PLAIN, 1.0), (PLAIN, 0.0), ("standard", 1.0))
OVER_TWO = (("slem", 0.0), ("slem", 1.0), ("tli", 1.0), ("union", 1.0), ("lazy-slrs", 1.0))


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


@dataclass(frozen=True)
class Sizes:
    """How much is generated; SLRS with psi in full has its own."""

    prompts: int
    new_tokens: int
    repetitions: int
    slow_new_tokens: int
    batch: int = 16
    lookahead: int = 4
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
        work = self.prompts, self.new_tokens, self.lookahead
        for method, temperature in OVER_ONE if pair == "homogeneous" else OVER_TWO:
            for implementation in (OURS, *_peers(method, temperature)):
                yield Line(pair, method, temperature, implementation, 1, *work)
            batch = Line(pair, method, temperature, OURS, self.batch, *work)
            yield replace(batch, prompts=self.batch)
        if pair == "byte-level":
            yield Line(pair, "slrs", 1.0, OURS, 1, 1, self.slow_new_tokens, self.lookahead)


SIZES: Mapping[str, Sizes] = MappingProxyType(
    {
        "cpu": Sizes(prompts=4, new_tokens=24, repetitions=3, slow_new_tokens=6),
        "cuda": Sizes(prompts=4, new_tokens=64, repetitions=5, slow_new_tokens=32),
    }
)


def _peers(method: str, temperature: float) -> tuple[str, ...]:
    """Transformers samples with TLI, never with SLEM, and has neither union nor SLRS."""
    if method == "tli":
        return (THEIRS, BY_ID)
    nobody = method in ("union", "lazy-slrs") or (method, temperature) == ("slem", 1.0)
    return () if nobody else (THEIRS,)
