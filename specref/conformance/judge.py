"""The judge that checks are given: an implementation, how to call it, and its error budget."""

import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from specref.conformance.options import CheckOptions
from specref.conformance.strata.calling import Called, called
from specref.conformance.strata.campaign import Found
from specref.conformance.time_limit import TimeLimit
from specref.conformance.trial import Trial, TrialReport
from specref.contracts.batch import Batch
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities, explicit_claims
from specref.contracts.contract import Subject, ignored
from specref.contracts.errors import Limits
from specref.contracts.fixtures import Fixture, Place
from specref.contracts.sampling import TEXT, Sampler
from specref.contracts.signature import accepted_keywords
from specref.contracts.text import Journal
from specref.contracts.timeout import patience
from specref.rule import Rule
from specref.rules import DEFAULT, RULES
from specref.vocabulary import Tokens

LARGE_CALLS = 2
"""Times what one large call may take: for all of one size in a check, on a busy machine, too."""


@dataclass(frozen=True)
class ExactLaw:
    """The law of the blocks that were emitted in a check whose sampler was probed."""

    id: str
    blocks: Mapping[Tokens, float]
    error_bound: float


@dataclass
class Judge:
    """One implementation, how it is judged, and the results that checks share.

    * `further`: {fixture: counts of blocks} that were drawn later for the diagnosis.
    * `further_sizes`: {fixture: how many of them were drawn at once}.
    * `calls_made`: How often it was called in strata.
    * `first`: What the tokens of the first call of all have shown.
    * `seconds`: How long the next check may draw; None: as much as its power needs.
    * `first_drafts`: How many first drafts of long texts were kept, and how many there were, once
      counted.
    * `left_out`: {claim: why}: claims that held by default, until the implementation raised there.
    * `untried`: What the check that runs could not try.
    * `endless`: Why no more ends of uniforms are searched for; empty if they are.
    * `traced`: Whether a law was probed that is none of `exact_laws`.
    * `unprobed`: Why the law after one draft could not be probed; empty if it was, or was not
      tried.
    """

    subject: Subject
    options: CheckOptions
    checks: int = 1
    advance: Callable[[int], None] = lambda trials: None
    memo: dict[str, TrialReport] = field(default_factory=dict, repr=False)
    further: dict[str, Mapping[Place, Counter[Tokens]]] = field(default_factory=dict, repr=False)
    further_sizes: dict[str, list[int]] = field(default_factory=dict, repr=False)
    calls_made: int = 0
    first: Found | None = None
    seconds: float | None = None
    first_drafts: tuple[int, int] | None = None
    journal: Journal | None = None
    explained: bool = False
    told: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    untried: list[str] = field(default_factory=list)
    limits: Limits = field(default_factory=Limits)
    endless: str = ""
    unprobed: str = ""
    limit: TimeLimit = field(default_factory=TimeLimit)
    exact_laws: list[ExactLaw] = field(default_factory=list, repr=False)
    traced: bool = False

    @property
    def implementation(self) -> Callable[..., Any]:
        return self.subject.function

    @property
    def declared(self) -> Rule | None:
        """The rule that the implementation declares."""
        return None if self.capabilities.rule is None else RULES[self.capabilities.rule]

    @property
    def repeats(self) -> bool:
        """Whether equal random numbers are known to give equal blocks: a law was probed."""
        return self.traced or any(one.blocks for one in self.exact_laws)

    @property
    def capabilities(self) -> Capabilities:
        return self.subject.capabilities

    def may_leave_out(self, claim: str) -> bool:
        """Whether a claim holds, and by default alone."""
        claimed = explicit_claims(self.implementation, self.options.claims)
        return claim not in claimed and bool(getattr(self.capabilities, claim))

    def leave_out(self, claim: str, why: str) -> None:
        """Go on without a claim that held by default."""
        self.left_out[claim] = why
        less: dict[str, Any] = {claim: False}
        claims = replace(self.capabilities, **less)
        self.subject = replace(self.subject, capabilities=claims)

    def begin(self) -> None:
        """Forget what the check before could not try, and what its large calls took."""
        self.untried.clear()
        self.limits.spent.clear()
        each = patience(self.timeout) if self.options.seconds is None else None
        self.limits.most = None if each is None else LARGE_CALLS * each

    @property
    def timeout(self) -> float | None:
        return self.subject.timeout

    @property
    def contract(self) -> Any:
        """The contract; its kind is one of `Check.kinds` of the check."""
        return self.options.contract

    @property
    def detect_tv(self) -> float:
        """Every statistical check detects any law at this distance, 999 times in 1,000."""
        return self.options.tv

    @property
    def trials(self) -> int | None:
        """Trials of each statistical check, instead of as many as the distance needs."""
        return self.options.trials

    @property
    def level(self) -> float:
        """The chance that a lossless sampler fails one statistical check."""
        return self.options.alpha / self.checks

    @property
    def rule(self) -> str:
        """The rule whose accepted lengths are expected: the declared one, or a default."""
        return self.capabilities.rule or self.contract.default_rule

    @property
    def fixtures(self) -> tuple[str, ...]:
        """The names of the fixtures on which blocks are drawn."""
        return tuple(name for name in self.contract.fixtures if not self.refusal(name))

    @property
    def keywords(self) -> frozenset[str]:
        """The named parameters that the implementation has."""
        return accepted_keywords(self.implementation)

    @property
    def verifier(self) -> Verifier:
        """A verifier, which calls the implementation of a contract of batches."""
        verifier: Verifier = self.contract.verifier(self.subject)
        verifier.limits = self.limits
        return verifier

    def called(self, way: str = "plain", claims: Capabilities | None = None) -> Called:
        """A verifier that calls in one way, maybe with other claims."""
        kind = called(way, type(self.verifier))
        verifier = kind(self.implementation, claims or self.capabilities, self.timeout)
        verifier.limits = self.limits
        return verifier

    def refusal(self, name: str) -> str:
        """Why the implementation is not tried on a fixture; empty if it is."""
        return str(self.contract.refusal(name, self.capabilities))

    def rng(self, name: str) -> np.random.Generator:
        """A generator that depends on the seed and on a name alone."""
        return np.random.default_rng([self.options.seed, zlib.crc32(name.encode())])

    def fixture(self, name: str) -> Fixture:
        """A fixture, with the places that the implementation takes."""
        fixture: Fixture = self.contract.fixture(name, self.capabilities)
        return fixture

    def sample(self, name: str, size: int, key: str) -> Batch:
        """A batch with rows of every place of a fixture."""
        batch: Batch = self.contract.sample(self.fixture(name), size, self.rng(key))
        return batch

    def certain(self, size: int, key: str) -> Batch:
        """A batch without `draft_probs`."""
        return self.sample(self.contract.one_hot_fixture, size, key).without_q()

    def blocks(self, name: str, *, one_hot: bool = False) -> TrialReport:
        """The campaign over single iterations on a fixture."""
        key = f"blocks/{name}" + "/one-hot" * one_hot
        if key not in self.memo:
            sampler = self.one_iteration(name, one_hot=one_hot)
            trial = self._trial(self.fixture(name))
            self.memo[key] = trial.run(sampler, *self._drawing(key, trial))
        return self.memo[key]

    def texts(self, name: str) -> TrialReport:
        """The campaign over the first tokens of whole texts on a fixture, at one place."""
        fixture = self.fixture(name).only(1)
        sampler = self.contract.texts(self.subject, fixture, TEXT)
        return self.texts_of(name, sampler, fixture)

    def texts_of(self, name: str, sampler: Sampler, fixture: Fixture) -> TrialReport:
        """The campaign over the first tokens of texts of a sampler, kept by a name."""
        key = f"texts/{name}"
        if key not in self.memo:
            trial = self._trial(fixture, TEXT)
            self.memo[key] = trial.run(sampler, *self._drawing(key, trial))
        return self.memo[key]

    def one_call(self, name: str) -> tuple[int, ...]:
        """One block or text of a function of models, always with the same randomness."""
        one = self.calls(self.fixture(name).only(0))
        return tuple(one(1, self.rng("one call"))[1][0].tolist())

    def calls(self, fixture: Fixture) -> Sampler:
        """A sampler that calls a function of models once at each place."""
        sampler: Sampler = self.contract.calls(self.subject, fixture)
        return sampler

    def one_iteration(self, name: str, *, one_hot: bool = False) -> Sampler:
        """A sampler of single iterations on a fixture."""
        without = {"one_hot": True} if one_hot else {}
        sampler: Sampler = self.contract.blocks(self.subject, self.fixture(name), **without)
        return sampler

    def _drawing(
        self, key: str, trial: Trial
    ) -> tuple[int, np.random.Generator, Callable[[int], None], float | None]:
        """How much a campaign draws, from which randomness, who is told, and for how long.

        It does not run it: a check should reach the sampler in few frames (test_walks).
        """
        counted = ignored if self.contract.counts_calls else self.advance
        trials = self.trials or trial.needed(self.detect_tv)
        return trials, self.rng(key), counted, self.seconds

    def _trial(self, fixture: Fixture, tokens: int | None = None) -> Trial:
        bets = tokens is None and self.contract.bets_on_bugs
        return Trial(
            fixture,
            self.level,
            self.rule if self.contract.bets_on_bugs else DEFAULT,
            tokens,
            **({} if bets else {"mutants": {}}),
            tolerance=self.capabilities.tolerance,
        )

    def needed(self, name: str) -> int:
        """How many texts the power of this run needs on a fixture."""
        return self.trials or self._trial(self.fixture(name).only(1), TEXT).needed(self.detect_tv)
