"""A contract: how an implementation is called, on which fixtures, and what is sampled from it.

Contracts are objects, listed in `specref.contracts.table`. A contract has fixtures and samplers
for the checks. Checks apply to kinds of contracts: those that verify batches, those whose
functions take two models.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from specref.contracts.batch import Batch
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.contracts.fixtures import CHAIN_FIXTURES, Fixture
from specref.contracts.sampling import Sampler, Steps
from specref.contracts.signature import (
    NAMED,
    PLACES,
    Read,
    by_position,
    models_in_order,
    of_arrays,
)
from specref.rule import Rule
from specref.rules import DEFAULT, RULES

RANDOMNESS = ("chance", "rng")


def ignored(trials: int) -> None:
    """Trials are not counted."""


@dataclass(frozen=True)
class Subject:
    """An implementation, its capabilities, the timeout of a call in seconds, and who counts.

    `advance` is called with 1 after each call of a function of models.
    """

    function: Callable[..., Any]
    capabilities: Capabilities
    timeout: float | None = None
    advance: Callable[[int], None] = ignored


@dataclass(frozen=True)
class Contract(ABC):
    """How an implementation is called.

    * `positional`, `by_name`: Parameters that are passed by position, and those passed by name if
      they exist.
    * `default_rule`: The rule whose accepted lengths are expected if none is declared.
    * `bets_on_bugs`: Whether campaigns bet on the known bugs of the declared rule.
    * `coarse_tv`: The default distance to detect for registered packages, which are slow.
    * `ruled`: Whether implementations may declare a rule.
    * `shaped`: The sizes that a user may choose: of "vocabulary", "lookahead" and "batch".
    * `tried_on`: Where distances are detected, for reports.
    * `rows_said`: What rows of p and q in a report are, where that needs saying.
    * `of_engines`: Whether implementations are engines: with models of their own, and asked for
      texts alone.
    * `counts_calls`: Whether its samplers call `Subject.advance`.
    * `quick_checks`: What ``specref check --installed`` asks, as for `CheckOptions.only`; all
      checks if empty.
    * `timed`: Whether these checks draw for so many seconds, since calls are slow, and not until a
      distance is detected.
    """

    name: str
    protocol: type
    positional: tuple[str, ...]
    by_name: tuple[str, ...] = ()
    fixtures: ClassVar[Mapping[str, Fixture]] = CHAIN_FIXTURES
    default_rule: ClassVar[str] = DEFAULT
    bets_on_bugs: ClassVar[bool] = True
    coarse_tv: ClassVar[float | None] = None
    programs: ClassVar[bool] = False
    written: ClassVar[bool] = True
    shaped: ClassVar[tuple[str, ...]] = ()
    tried_on: ClassVar[str] = "on the test cases"
    rows_said: ClassVar[str] = ""
    trees: ClassVar[bool] = False
    ruled: ClassVar[bool] = True
    of_engines: ClassVar[bool] = False
    counts_calls: ClassVar[bool] = False
    quick_checks: ClassVar[tuple[str, ...]] = ()
    timed: ClassVar[bool] = False

    def __str__(self) -> str:
        return self.name

    def takes_rule(self, rule: Rule) -> bool:
        """Whether implementations may declare a rule."""
        return self.ruled and rule.lossless and rule.tree == self.trees

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that may be declared."""
        return tuple(rule.name for rule in RULES.values() if self.takes_rule(rule))

    def refusal(self, name: str, capabilities: Capabilities) -> str:
        """Why an implementation is not tried on a fixture; empty if it is tried."""
        return ""

    def read(
        self, function: Callable[..., Any], capabilities: Capabilities, explicit: Iterable[str]
    ) -> Read:
        """The claims with those that its names, annotations and defaults make, and what is told.

        `explicit`: the names of what was claimed, and does not hold by default alone. What says
        something else than a claim, or than what the contract passes, is a `ValueError`; so is
        what lacks something that the contract judges it by, if it is no `TypeError`.
        """
        return capabilities, ()

    def fixture(self, name: str, capabilities: Capabilities) -> Fixture:
        """A fixture, reduced to the places that an implementation takes."""
        return CHAIN_FIXTURES[name].drafted()

    def takes(self, signature: inspect.Signature) -> bool:
        """Whether a function with this signature can be called as the contract calls it."""
        passed = [name for name in self.by_name if name in signature.parameters]
        if self.by_name == RANDOMNESS:
            passed = passed[:1]
        try:
            signature.bind(*self.positional, **dict.fromkeys(passed))
        except TypeError:
            return False
        return True

    def lacks(self, signature: inspect.Signature) -> str:
        """Why a function that is meant for it, by some names, cannot be called; else empty."""
        return ""

    def names(self, signature: inspect.Signature) -> bool:
        """Whether the first parameters have the same names as in the contract."""
        places = [one for one in signature.parameters.values() if one.kind in PLACES]
        return tuple(one.name for one in places[: len(self.positional)]) == self.positional

    def owns(self, signature: inspect.Signature) -> bool:
        """Whether a function with this signature is meant for the contract, by its names alone."""
        required = (
            one.name
            for one in signature.parameters.values()
            if one.kind in PLACES and one.default is one.empty and one.name not in NAMED
        )
        return tuple(required) == self.positional

    @property
    def passed(self) -> str:
        """The passed parameters, for messages."""
        if self.by_name == RANDOMNESS:
            also = f", and by name {' or else '.join(RANDOMNESS)}"
        else:
            also = f", and by name any of {', '.join(self.by_name)}" if self.by_name else ""
        return f"({', '.join(self.positional)}){also}"


class BatchContract(Contract):
    """A contract of functions that verify a batch of drafts.

    * `one_hot_fixture`: The fixture for drafts without laws.
    * `laws_optional`: Whether the laws of any batch may be left out.
    * `kind`: The class that calls implementations and checks their answers.
    """

    one_hot_fixture: ClassVar[str] = "wide"
    laws_optional: ClassVar[bool] = True
    kind: ClassVar[type[Verifier]] = Verifier
    shaped: ClassVar[tuple[str, ...]] = ("vocabulary", "lookahead", "batch")

    def fixture(self, name: str, capabilities: Capabilities) -> Fixture:
        """A fixture, with ragged batches if the implementation takes them."""
        return CHAIN_FIXTURES[name] if capabilities.ragged else CHAIN_FIXTURES[name].even()

    def read(
        self, function: Callable[..., Any], capabilities: Capabilities, explicit: Iterable[str]
    ) -> Read:
        claims, told = by_position(function, self.positional, capabilities, explicit)
        claims, also = of_arrays(function, claims, explicit)
        return claims, (*told, *also)

    def fewest_drafts(self, capabilities: Capabilities) -> int:
        """The least number of drafts of a row."""
        return 0

    def verifier(self, subject: Subject) -> Verifier:
        """A verifier of the contract's kind for an implementation."""
        return self.kind(subject.function, subject.capabilities, subject.timeout)

    @abstractmethod
    def sample(self, fixture: Fixture, size: int, rng: np.random.Generator) -> Batch:
        """A batch with rows of every place."""

    @abstractmethod
    def blocks(self, subject: Subject, fixture: Fixture, *, one_hot: bool = False) -> Sampler:
        """A sampler of single iterations."""


class ModelContract(Contract):
    """A contract of functions of a target and a drafter."""

    counts_calls: ClassVar[bool] = True
    timed: ClassVar[bool] = True

    def read(
        self, function: Callable[..., Any], capabilities: Capabilities, explicit: Iterable[str]
    ) -> Read:
        models_in_order(function)
        return capabilities, ()

    @abstractmethod
    def calls(self, subject: Subject, fixture: Fixture) -> Steps:
        """A sampler that calls the function once for each trial."""

    @abstractmethod
    def texts(self, subject: Subject, fixture: Fixture, tokens: int) -> Sampler:
        """A sampler of the first tokens of whole texts."""
