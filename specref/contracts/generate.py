"""The contract ``generate``: a context in, so many tokens out."""

from typing import ClassVar, Protocol

import numpy as np

from specref.contracts.contract import RANDOMNESS, ModelContract, Subject
from specref.contracts.fixtures import Fixture
from specref.contracts.model_calls import generate_call
from specref.contracts.sampling import TEXT, Steps
from specref.models import Model
from specref.vocabulary import Tokens


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
