"""The exact part of the main job: proofs of one iteration, of the loop, and of acceptance."""

import bisect
import itertools

import numpy as np

from specref.algorithms.decoding import Step
from specref.chance import OutsideChanceError, TooManyPathsError
from specref.distributions import Probability, push_forward
from specref.laws import Law
from specref.models import Model
from specref.pairs import Case, Pair, Profile, cases, toy_pairs
from specref.proofs.exact import Proof, is_lossless_loop, output_distribution, proof
from specref.proofs.lazy import Enumerator, ReadableModel
from specref.rule import Rule
from specref.verification.reports import AlgorithmReport
from specref.vocabulary import Tokens

LOOP_TOKENS = 3
LOOP_LOOKAHEAD = 2
LOOP_PATHS = 400
"""The most random paths of an iteration whose loop is proved, too."""


def applies(rule: Rule, pair: Pair) -> bool:
    """Whether a rule is defined for the vocabularies of a pair."""
    if rule.same_vocabulary:
        return pair.same_vocabulary
    return pair.by_text or not rule.by_text


def cases_of(profile: Profile) -> tuple[Case, ...]:
    """The cases of a profile."""
    return tuple(cases(toy_pairs(profile), profile))


def check_case(rule: Rule, case: Case) -> AlgorithmReport:
    """Prove one case: the completed block, the decode loop, the accepted lengths.

    Of a rule that is published and lossy, only one iteration is tried.
    """
    if not applies(rule, case.pair):
        return AlgorithmReport(rule.name, not_applicable=1)
    if not rule.lossless:
        return _refuted(rule, case)
    blocks, proved = _proof(rule, case)
    failures = [] if proved else [f"{case}: lossy, {proved.difference}"]
    starting = case.lookahead == LOOP_LOOKAHEAD and not case.context
    with_loop = starting and proved.paths <= LOOP_PATHS
    if with_loop:
        arguments = (case.pair.target, case.pair.drafter, case.context, case.lookahead)
        loop = is_lossless_loop(rule.step, *arguments, length=LOOP_TOKENS)
        failures += [] if loop else [f"{case}: decode loop lossy, {loop.difference}"]
    # An accepted EOS ends a block without a token of its own: lengths would not tell.
    with_acceptance = case.pair.target.vocabulary.eos is None and bool(
        rule.accepted_lengths or (rule.accepts_first and case.lookahead)
    )
    if with_acceptance:
        failures += _acceptance_failures(rule, blocks, case)
    return AlgorithmReport(
        rule.name, 1, proved.paths, 0, int(with_loop), int(with_acceptance), tuple(failures)
    )


def _proof(rule: Rule, case: Case) -> tuple[Law, Proof]:
    arguments = (case.pair.target, case.pair.drafter, case.context, case.lookahead)
    blocks, paths = output_distribution(rule.step, *arguments)
    return blocks, proof(blocks, case.pair.target, case.context, paths)


def _refuted(rule: Rule, case: Case) -> AlgorithmReport:
    """A case that refutes a rule, or does not; not applicable where its listing divides by 0."""
    try:
        _, proved = _proof(rule, case)
    except (OutsideChanceError, TooManyPathsError):
        raise
    except ValueError:
        return AlgorithmReport(rule.name, not_applicable=1)
    return AlgorithmReport(rule.name, 1, proved.paths, refuted=int(not proved))


def _acceptance_failures(rule: Rule, blocks: Law, case: Case) -> list[str]:
    pair, counted = case.pair, accepted_lengths(blocks)
    formula: tuple[Probability, ...]
    if rule.accepted_lengths:
        formula = rule.accepted_lengths(pair.target, pair.drafter, case.context, case.lookahead)
    else:
        assert rule.accepts_first is not None
        rows = (model.next_token(case.context) for model in (pair.target, pair.drafter))
        formula, counted = (rule.accepts_first(*rows),), (1 - counted[0],)
    return [] if formula == counted else [f"{case}: acceptance {counted} not {formula}"]


def accepted_lengths(blocks: dict[Tokens, Probability]) -> tuple[Probability, ...]:
    """The law of the accepted length, from blocks that end with one token of their own."""
    law = push_forward(blocks, lambda block: len(block) - 1)
    return tuple(law.get(length, 0) for length in range(max(law) + 1))


MAX_PATHS = 200_000


class DrawnFromLaws:
    """The contract ``step``, from a step's law in each context: enumerated once, then drawn.

    * `step`: (target, drafter, context, lookahead, chance) -> block.
    """

    def __init__(self, step: Step) -> None:
        self.step = step
        self._laws: dict[tuple[int, int, Tokens, int], tuple[list[Tokens], list[float]]] = {}
        self._models: list[Model] = []

    def __call__(
        self,
        target: Model,
        drafter: Model,
        context: Tokens,
        lookahead: int,
        rng: np.random.Generator,
    ) -> Tokens:
        key = id(target), id(drafter), context, lookahead
        if key not in self._laws:
            self._models += [target, drafter]  # so that their ids stay theirs
            models = ReadableModel(target), ReadableModel(drafter)
            law = Enumerator(MAX_PATHS).law(self.step, *models, context, lookahead)
            self._laws[key] = list(law), list(itertools.accumulate(map(float, law.values())))
        blocks, ends = self._laws[key]
        return blocks[bisect.bisect_right(ends, rng.random() * ends[-1])]
