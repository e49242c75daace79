"""What a check is given: the implementation, how it is called, and how sure one has to be."""

import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from specref.conformance.batch import Batch
from specref.conformance.calling import Verifier
from specref.conformance.contract import TREE_RULES, Capabilities, Contract, accepted_keywords
from specref.conformance.drawing import sample_batch
from specref.conformance.fixtures import TEETH, Place, Teeth
from specref.conformance.sampling import (
    Blocks,
    Iterations,
    Sampler,
    Steps,
    generate_call,
    step_call,
)
from specref.conformance.stepping import read_tokens
from specref.conformance.trees.batch import TreeVerifier
from specref.conformance.trees.drawing import sample_trees
from specref.conformance.trees.places import GROVES, Grove
from specref.conformance.trees.sampling import Trees
from specref.conformance.trial import Trial, TrialReport
from specref.losslessness.statistics import ALPHA
from specref.vocabulary import Tokens
from specref.zoo import fixtures_for

Profile: TypeAlias = Literal["quick", "standard", "thorough"]
DETECT_TV: dict[Profile, float] = {"quick": 0.05, "standard": 0.02, "thorough": 0.01}
PATIENCE = 60.0
TEXT = 4
AUTOMATIC = "standard"


@dataclass(frozen=True)
class TwoVocabularies:
    """A fixture, the rules that read its vocabularies, and the longest block on it."""

    teeth: Teeth
    rules: tuple[str, ...]
    longest: int


def _two_vocabularies() -> dict[str, TwoVocabularies]:
    found: dict[str, TwoVocabularies] = {}
    for rule in ("union", "tli", "slem", "slrs"):
        for fixture in fixtures_for(rule).values():
            place = Place(fixture.context, fixture.lookahead)
            name = fixture.name.replace(" ", "-")
            teeth = Teeth(name, fixture.target, fixture.drafter, (place,))
            rules = found[name].rules if name in found else ()
            found[name] = TwoVocabularies(teeth, (*rules, rule), fixture.length)
    return found


TWO_VOCABULARIES = _two_vocabularies()


@dataclass
class Judge:
    """One implementation under one contract, and the results that checks share.

    Attributes
    ----------
    detect_tv : float
        Every statistical check draws enough to find any law at this distance, 999 times in
        1,000.
    alpha : float
        The chance that a lossless sampler fails a statistical check, over all of them.
    checks : int
        How many share `alpha`.
    memo : dict
        Campaigns that checks share.
    further : dict
        {fixture: counted blocks} that were drawn after them, for a diagnosis.
    """

    implementation: Callable[..., Any]
    contract: Contract
    capabilities: Capabilities
    detect_tv: float = DETECT_TV["quick"]
    alpha: float = ALPHA
    seed: int = 0
    patience: float | None = PATIENCE
    checks: int = 1
    trials: int | None = None
    advance: Callable[[int], None] = lambda trials: None
    memo: dict[str, TrialReport] = field(default_factory=dict, repr=False)
    further: dict[str, Mapping[Place, Counter[Tokens]]] = field(default_factory=dict, repr=False)

    @property
    def algorithm(self) -> str:
        """Whose accepted lengths are expected, if none is declared those of the plainest rule."""
        return self.capabilities.rule or (TREE_RULES[0] if self.reads_trees else AUTOMATIC)

    @property
    def reads_trees(self) -> bool:
        """Whether it verifies trees."""
        return self.contract == Contract.TREE

    @property
    def fixtures(self) -> tuple[str, ...]:
        """The names of those that blocks are drawn on; of trees, those that it takes."""
        groves = tuple(name for name in GROVES if not self.untaken(name))
        return groves if self.reads_trees else tuple(TEETH)

    def untaken(self, name: str) -> str:
        """Why it does not take the trees of a grove; empty if it does."""
        if GROVES[name].one_hot and not self.capabilities.one_hot:
            return "does not take draft_probs=None"
        if GROVES[name].eos is not None and not self.capabilities.ragged:
            return "does not take ragged batches, as they are below EOS"
        return ""

    @property
    def keywords(self) -> frozenset[str]:
        """The named parameters that the implementation has."""
        return accepted_keywords(self.implementation)

    @property
    def verifier(self) -> Verifier:
        """The implementation of the contract ``verify`` or ``tree``."""
        kind = TreeVerifier if self.reads_trees else Verifier
        return kind(self.implementation, self.capabilities, self.patience)

    def rng(self, name: str) -> np.random.Generator:
        """Randomness of a check: of the seed and the check's name alone."""
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def teeth(self, name: str) -> Teeth:
        """A fixture, with batches as ragged as the implementation takes them."""
        if name in TWO_VOCABULARIES:
            return TWO_VOCABULARIES[name].teeth
        teeth = GROVES[name] if name in GROVES else TEETH[name]
        if isinstance(teeth, Grove) and not self.capabilities.repeats:
            teeth = teeth.distinct()
        if isinstance(teeth, Grove) and not self.capabilities.empty_trees:
            teeth = teeth.planted()
        if self.contract not in (Contract.VERIFY, Contract.TREE):
            return teeth.drafted()
        return teeth if self.capabilities.ragged else teeth.even()

    def sample(self, name: str, size: int, key: str) -> Batch:
        """A batch with rows of every place of a fixture."""
        teeth, rng = self.teeth(name), self.rng(key)
        if isinstance(teeth, Grove):
            return sample_trees(teeth, size, rng)
        return sample_batch(teeth, size, rng)

    def certain(self, size: int, key: str) -> Batch:
        """A batch whose drafts come without laws."""
        one_hot = [name for name, grove in GROVES.items() if grove.one_hot]
        return self.sample(one_hot[0] if self.reads_trees else "wide", size, key).without_q()

    def blocks(self, name: str, *, one_hot: bool = False) -> TrialReport:
        """The campaign over single iterations on a fixture."""
        key = f"blocks/{name}" + "/one-hot" * one_hot
        return self._run(key, self.one_iteration(name, one_hot=one_hot), self.teeth(name), None)

    def texts(self, name: str) -> TrialReport:
        """The campaign over the first tokens of whole texts on a fixture, at one place."""
        teeth = self.teeth(name).only(1)
        sampler: Sampler
        if self.contract == Contract.VERIFY:
            sampler = Iterations(self.verifier, teeth, TEXT)
        elif self.contract == Contract.STEP:
            sampler = Steps(
                _texts_of_steps(self.implementation, teeth), teeth, TEXT, self.patience
            )
        else:
            call = generate_call(self.implementation, teeth, TEXT)
            sampler = Steps(call, teeth, TEXT, self.patience)
        return self._run(f"texts/{name}", sampler, teeth, TEXT)

    def one_call(self, name: str) -> tuple[int, ...]:
        """One block or text, from functions of models; always the same randomness."""
        teeth = self.teeth(name)
        longest = teeth.lookahead + 1 if self.contract == Contract.STEP else TEXT
        if self.contract == Contract.STEP:
            call = step_call(self.implementation, teeth)
        else:
            call = generate_call(self.implementation, teeth, TEXT)
        one = Steps(call, teeth.only(0), longest, self.patience)
        return tuple(one(1, self.rng("one call"))[1][0].tolist())

    def one_iteration(self, name: str, *, one_hot: bool = False) -> Sampler:
        """What draws single iterations on a fixture."""
        teeth = self.teeth(name)
        if isinstance(teeth, Grove):
            return Trees(self.verifier, teeth)
        if self.contract == Contract.VERIFY:
            return Blocks(self.verifier, teeth, one_hot=one_hot)
        call = step_call(self.implementation, teeth)
        special = TWO_VOCABULARIES.get(name)
        longest = special.longest if special else teeth.lookahead + 1
        return Steps(call, teeth, longest, self.patience)

    def _run(self, key: str, sampler: Sampler, teeth: Teeth, tokens: int | None) -> TrialReport:
        if key not in self.memo:
            bare = tokens is not None or self.reads_trees
            trial = Trial(
                teeth,
                self.alpha / self.checks,
                AUTOMATIC if self.reads_trees else self.algorithm,
                tokens,
                **({"mutants": {}} if bare else {}),
                tolerance=self.capabilities.tolerance,
            )
            trials = self.trials or trial.needed(self.detect_tv)
            self.memo[key] = trial.run(sampler, trials, self.rng(key), self.advance)
        return self.memo[key]


def _texts_of_steps(implementation: Callable[..., Any], teeth: Teeth) -> Callable[..., Any]:
    call = step_call(implementation, teeth)

    def text(place: Any, rng: np.random.Generator) -> tuple[int, ...]:
        tokens: tuple[int, ...] = ()
        while len(tokens) < TEXT and not teeth.target.vocabulary.ends(tokens):
            here = replace(place, context=(*place.context, *tokens))
            tokens += read_tokens(call(here, rng), teeth.lookahead + 1, teeth)
        return tokens[:TEXT]

    return text
