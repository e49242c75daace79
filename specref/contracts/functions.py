"""The contracts of functions that are not given drafts: of two models, a drafter, or a log."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np

from specref.arrays import NO_TOKEN, Floats
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import RANDOMNESS, Contract, ModelContract, Subject
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import Fixture, Place
from specref.contracts.sampling import (
    TEXT,
    Drawn,
    Sampler,
    Steps,
    batch_sizes,
    call_of_models,
    check_end,
    giver,
    read_tokens,
)
from specref.contracts.signature import parameters_of
from specref.contracts.timeout import Deadline, user_code, within
from specref.models import Model, as_float
from specref.theory.metrics import Iteration
from specref.vocabulary import Tokens
from specref.zoo import FIXTURES_OF
from specref.zoo.fixtures import TEXT_FIXTURES, TOKEN_FIXTURES


@dataclass(frozen=True)
class TwoVocabularies(Fixture):
    """A pair of models with two vocabularies.

    * `rules`: The rules that take such vocabularies.
    * `longest`: The largest number of tokens of a block.
    """

    rules: tuple[str, ...] = ()
    longest: int = 1


def _two_vocabularies() -> dict[str, TwoVocabularies]:
    found: dict[str, TwoVocabularies] = {}
    for rule, pairs in FIXTURES_OF.items():
        two = pairs is TOKEN_FIXTURES or pairs is TEXT_FIXTURES
        for pair in pairs.values() if two else ():
            name = pair.name.replace(" ", "-")
            rules = (*found[name].rules, rule) if name in found else (rule,)
            places = (Place(pair.context, pair.lookahead),)
            found[name] = TwoVocabularies(
                name, pair.target, pair.drafter, places, rules=rules, longest=pair.length
            )
    return found


TWO_VOCABULARIES: Mapping[str, TwoVocabularies] = MappingProxyType(_two_vocabularies())


class Step(Protocol):
    """Contract ``step``: a context in, one block out; the implementation drafts itself.

    The last parameter is `rng`, or `chance` (then every random path can be enumerated).
    """

    def __call__(
        self,
        target: Model,
        drafter: Model,
        context: Tokens,
        lookahead: int,
        rng: np.random.Generator,
    ) -> Tokens: ...


class StepContract(ModelContract):
    shaped: ClassVar[tuple[str, ...]] = ("vocabulary", "lookahead")
    quick_checks: ClassVar[tuple[str, ...]] = (
        "smoke",
        "joint/wide",
        "joint/deep",
        "joint/eos",
        "joint/probed",
        "joint/probed-ending",
    )

    def fixture(self, name: str, capabilities: Capabilities) -> Fixture:
        """A fixture, which may have two vocabularies."""
        return TWO_VOCABULARIES.get(name) or super().fixture(name, capabilities)

    def calls(self, subject: Subject, fixture: Fixture) -> Steps:
        """A sampler that calls the function once for each trial."""
        call = call_of_models(subject.function, fixture)
        given = subject.timeout, subject.advance
        if isinstance(fixture, TwoVocabularies):  # a draft may be several tokens of the target
            return Steps(call, fixture, fixture.longest, *given)
        return Steps(call, fixture, fixture.lookahead + 1, *given, drafted=True)

    def blocks(self, subject: Subject, fixture: Fixture) -> Sampler:
        return self.calls(subject, fixture)

    def texts(self, subject: Subject, fixture: Fixture, tokens: int) -> Sampler:
        """A sampler of texts of so many tokens, made of consecutive blocks."""
        call = call_of_models(subject.function, fixture)

        def text(place: Place, rng: np.random.Generator) -> Tokens:
            found: Tokens = ()
            while len(found) < tokens and not fixture.target.vocabulary.ends(found):
                here = replace(place, context=(*place.context, *found))
                found += read_tokens(call(here, rng), place.lookahead + 1, fixture)
            return found[:tokens]

        return Steps(text, fixture, tokens, subject.timeout, subject.advance)


STEP = StepContract("step", Step, ("target", "drafter", "context", "lookahead"), RANDOMNESS)


class Generate(Protocol):
    """Contract ``generate``: a context in, `tokens` tokens out (fewer only after EOS)."""

    def __call__(
        self, target: Model, drafter: Model, context: Tokens, tokens: int, rng: np.random.Generator
    ) -> Tokens: ...


class GenerateContract(ModelContract):
    coarse_tv: ClassVar[float | None] = 0.15
    quick_checks: ClassVar[tuple[str, ...]] = (
        "smoke",
        "end-to-end/greedy",
        "end-to-end/markov",
        "end-to-end/wide",
        "end-to-end/probed",
        "end-to-end/probed-12-tokens",
    )

    def calls(self, subject: Subject, fixture: Fixture) -> Steps:
        """A sampler of one text at a time."""
        return self.texts(subject, fixture, TEXT)

    def texts(self, subject: Subject, fixture: Fixture, tokens: int) -> Steps:
        """A sampler of the first tokens of texts."""
        call = call_of_models(subject.function, fixture, tokens)
        return Steps(call, fixture, tokens, subject.timeout, subject.advance)


GENERATE = GenerateContract(
    "generate", Generate, ("target", "drafter", "context", "tokens"), RANDOMNESS
)


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


class Drafter(Protocol):
    """Contract ``drafter``: drafts, and the distributions that they are declared to come from."""

    def __call__(
        self, drafter: Model, context: Tokens, lookahead: int, rng: np.random.Generator
    ) -> tuple[Tokens, Floats]:
        """Draft up to `lookahead` tokens; q has a row for each."""
        ...


class DrafterContract(Contract):
    """The contract ``drafter``; nothing is verified."""

    ruled: ClassVar[bool] = False


DRAFTER = DrafterContract("drafter", Drafter, ("drafter", "context", "lookahead"), RANDOMNESS)


class Reported(Protocol):
    """Contract ``metrics``: a log of iterations in, the figure that it is said to be out."""

    def __call__(self, log: Sequence[Iteration]) -> object:
        """The figure that `Capabilities.metric` names."""
        ...


class MetricsContract(Contract):
    """The contract ``metrics``; nothing is verified."""

    ruled: ClassVar[bool] = False


METRICS = MetricsContract("metrics", Reported, ("log",))
