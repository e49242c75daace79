"""The contract ``generate-batch``: several contexts in one call, and a text after each."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np

from specref.arrays import NO_TOKEN
from specref.contracts.contract import ModelContract, Subject
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import Fixture, Place
from specref.contracts.sampling import (
    TEXT,
    Drawn,
    Sampler,
    Steps,
    batch_sizes,
    check_end,
    giver,
    read_tokens,
)
from specref.contracts.signature import parameters_of
from specref.contracts.timeout import Deadline, user_code, within
from specref.models import Model, as_float
from specref.vocabulary import Tokens

MOST_ROWS = 16
"""Rows of the calls whose texts are judged on fixtures; some have fewer."""
SEEDS, MODELS = 1 << 62, 16
NEUTRAL: Mapping[str, float] = MappingProxyType({"temperature": 1.0, "top_p": 1.0})
"""What a row's settings are where they change nothing."""


class GenerateBatch(Protocol):
    """Contract ``generate-batch``: contexts in, after each `tokens` tokens (fewer only after EOS).

    By name it is given what it takes of `rng`; `seeds`, one for each context: then a text depends
    on its context and seed alone; `temperature` and `top_p`, one for each, which the target's
    distribution goes through in that order.
    """

    def __call__(
        self,
        target: Model,
        drafter: Model,
        contexts: Sequence[Tokens],
        tokens: int,
        rng: np.random.Generator,
    ) -> Sequence[Sequence[int]]: ...


class BatchCaller:
    """Calls a function of the contract, and reads its texts."""

    def __init__(self, function: Callable[..., Any]) -> None:
        names = parameters_of(function)
        self.seeded = "seeds" in names
        self.settings = tuple(name for name in NEUTRAL if name in names)
        self._give, self._floats = giver(function), lru_cache(MODELS)(as_float)

    def __call__(
        self,
        fixture: Fixture,
        contexts: Sequence[Tokens],
        tokens: int,
        rng: np.random.Generator,
        settings: Mapping[str, Sequence[float]] = MappingProxyType({}),
        seeds: Sequence[int] | None = None,
    ) -> list[Tokens]:
        """The text after each context.

        * raises `BrokenContractError`: It raises, or a row is no text of so many tokens.
        """
        rows = len(contexts)
        given: dict[str, Any] = {
            name: list(settings.get(name, [NEUTRAL[name]] * rows)) for name in self.settings
        }
        if self.seeded:
            given["seeds"] = list(seeds or rng.integers(SEEDS, size=rows).tolist())
        models = self._floats(fixture.target), self._floats(fixture.drafter)
        with user_code(lambda what: f"{what} ({rows} contexts, {tokens} tokens)"):
            raw = self._give((*models, list(contexts), tokens), rng, **given)
            return read_texts(raw, rows, tokens, fixture)


def read_texts(raw: Any, rows: int, tokens: int, fixture: Fixture) -> list[Tokens]:
    """Check and convert what a function returned; rows may be padded with -1 at their end.

    Examples
    --------
    >>> from specref.contracts.fixtures import CHAIN_FIXTURES
    >>> read_texts([[0, 1], [2]], 2, 2, CHAIN_FIXTURES["wide"])
    Traceback (most recent call last):
        ...
    specref.contracts.errors.BrokenContractError: row 1 has 1 tokens: expected 2
    """
    try:
        texts = list(raw.tolist() if hasattr(raw, "tolist") else raw)
    except TypeError:
        raise BrokenContractError(
            f"returned a {type(raw).__name__}: expected a text for each context"
        ) from None
    if len(texts) != rows:
        raise BrokenContractError(f"returned {len(texts)} texts: expected {rows}, one a context")
    return [_row(text, row, tokens, fixture) for row, text in enumerate(texts)]


def _row(raw: Any, row: int, tokens: int, fixture: Fixture) -> Tokens:
    try:
        ids = list(raw.tolist() if hasattr(raw, "tolist") else raw)
        while ids and ids[-1] == NO_TOKEN:
            ids.pop()
        text = read_tokens(ids, tokens, fixture)
    except BrokenContractError as error:
        raise BrokenContractError(f"row {row}: {error}") from None
    except TypeError:
        raise BrokenContractError(f"row {row} is {raw!r}: expected token ids") from None
    check_end(fixture, text, f"row {row}")
    if len(text) < tokens and text[-1] != fixture.eos:
        ends = ", or fewer up to EOS" * (fixture.eos is not None)
        raise BrokenContractError(f"row {row} has {len(text)} tokens: expected {tokens}{ends}")
    return text


class GenerateBatchContract(ModelContract):
    coarse_tv: ClassVar[float | None] = 0.15
    written: ClassVar[bool] = False

    def calls(self, subject: Subject, fixture: Fixture) -> Steps:
        """A sampler of one text at a time: a batch of one row."""
        caller = BatchCaller(subject.function)

        def call(place: Place, rng: np.random.Generator) -> Tokens:
            return caller(fixture, [place.context], TEXT, rng)[0]

        return Steps(call, fixture, TEXT, subject.timeout, subject.advance)

    def texts(self, subject: Subject, fixture: Fixture, tokens: int) -> Sampler:
        """A sampler of texts of all places in turn, two of each, in calls of 1 to 16 rows."""
        caller = BatchCaller(subject.function)

        def sample(trials: int, rng: np.random.Generator) -> Drawn:
            # Rows that share noise show where neighbours have equal places, and different ones.
            place, deadline = (np.arange(trials) // 2) % len(fixture.places), Deadline()
            contexts = [fixture.places[index].context for index in place.tolist()]
            blocks = np.full((trials, tokens), NO_TOKEN)

            def draw() -> None:
                start = 0
                for rows in batch_sizes(trials, MOST_ROWS):
                    given = contexts[start : start + rows]
                    for row, text in enumerate(caller(fixture, given, tokens, rng), start):
                        blocks[row, : len(text)] = text
                    start += rows
                    deadline.restart()
                    subject.advance(rows)

            within(subject.timeout, draw, deadline)
            return place, blocks, np.full((trials, 1), NO_TOKEN)

        return sample


GENERATE_BATCH = GenerateBatchContract(
    "generate-batch",
    GenerateBatch,
    ("target", "drafter", "contexts", "tokens"),
    ("rng", "seeds", *NEUTRAL),
)
