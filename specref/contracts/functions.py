"""The contracts of functions that are not given drafts: of two models, a drafter, or a log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, Protocol

import numpy as np

from specref.arrays import Floats
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import RANDOMNESS, Contract, ModelContract, Subject
from specref.contracts.fixtures import Fixture, Place
from specref.contracts.sampling import TEXT, Sampler, Steps, generate_call, read_tokens, step_call
from specref.models import Model
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
        call = step_call(subject.function, fixture)
        given = subject.timeout, subject.advance
        if isinstance(fixture, TwoVocabularies):  # a draft may be several tokens of the target
            return Steps(call, fixture, fixture.longest, *given)
        return Steps(call, fixture, fixture.lookahead + 1, *given, drafted=True)

    def blocks(self, subject: Subject, fixture: Fixture) -> Sampler:
        return self.calls(subject, fixture)

    def texts(self, subject: Subject, fixture: Fixture, tokens: int) -> Sampler:
        """A sampler of texts of so many tokens, made of consecutive blocks."""
        call = step_call(subject.function, fixture)

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
        call = generate_call(subject.function, fixture, tokens)
        return Steps(call, fixture, tokens, subject.timeout, subject.advance)


GENERATE = GenerateContract(
    "generate", Generate, ("target", "drafter", "context", "tokens"), RANDOMNESS
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
