"""A user's rule over the toy pairs: proved, refuted, not applicable, or failing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from specref.algorithms import Step
from specref.chance import OutsideChanceError, TooManyPathsError
from specref.distributions import Probability
from specref.models import Model
from specref.pairs import Case, Profile
from specref.proofs.exact import (
    Difference,
    asks_chance,
    check_step,
    output_distribution,
    proof,
    trace_to,
)
from specref.verification.exact import cases_of
from specref.vocabulary import Tokens, UntokenisableError

MAX_TEXTS = 100_000


@dataclass(frozen=True)
class Refutation:
    """A case on which a rule is lossy: the smallest difference, and a traced path to it."""

    case: Case
    total_variation: Probability
    difference: Difference
    block: Tokens
    trace: str


@dataclass(frozen=True)
class RuleReport:
    """The results of one rule over the toy pairs.

    Attributes
    ----------
    proved : int
        Cases on which the rule is exactly lossless.
    refuted : tuple of Refutation
        Smallest case first.
    raised : tuple of (Case, Exception)
        Cases on which the rule failed.
    not_run : int
        Cases left out because their pairs have two vocabularies.
    paths : int
        Random paths enumerated.
    not_applicable : int
        Cases on which the rule raised `UntokenisableError`, and one tokeniser really cannot
        read a text of the other: vocabularies that the rule is not defined for.
    outside : (Case, OutsideChanceError) or None
        Where the rule was seen to be no function of its chance; or that it never asks for
        anything, and a case on which it differs from the target. Then nothing is proved, nor
        refuted.
    """

    proved: int
    refuted: tuple[Refutation, ...]
    raised: tuple[tuple[Case, BaseException], ...]
    not_run: int
    paths: int
    not_applicable: int = 0
    outside: tuple[Case, OutsideChanceError] | None = None


def prove(
    step: Step,
    profile: Profile = "quick",
    *,
    same_vocabulary: bool = True,
    advance: Callable[[str], None] = lambda case: None,
) -> RuleReport:
    """Prove or refute a user's rule over the toy pairs.

    Parameters
    ----------
    step : callable
        (target, drafter, context, lookahead, chance) -> block.
    profile : {"quick", "standard", "thorough"}
    same_vocabulary : bool
        Only pairs over one vocabulary; otherwise all of them.
    advance : callable
        Told after each case.

    Raises
    ------
    TypeError
        `step` is no function of five arguments.

    Examples
    --------
    >>> from specref.algorithms import slem, standard
    >>> report = prove(standard.step)
    >>> report.proved, report.refuted, report.raised
    (68, (), ())
    >>> report = prove(slem.step, same_vocabulary=False)
    >>> report.proved, report.raised, report.not_applicable
    (138, (), 16)
    """
    check_step(step)
    chosen = rule_cases(profile, same_vocabulary)
    tally = _Tally(step)
    for case in chosen:
        tally.add(case)
        advance(str(case))
        if tally.endless or tally.outside:
            break
    return tally.report(len(cases_of(profile)) - len(chosen))


def rule_cases(profile: Profile, same_vocabulary: bool) -> tuple[Case, ...]:
    """The cases of a profile, or those over one vocabulary.

    Examples
    --------
    >>> len(rule_cases("quick", True)), len(rule_cases("quick", False))
    (68, 154)
    """
    every = cases_of(profile)
    return tuple(case for case in every if case.pair.same_vocabulary or not same_vocabulary)


class _Tally:
    """Counts what a rule does, case by case."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.proved, self.paths, self.not_applicable = 0, 0, 0
        self.refuted: list[Refutation] = []
        self.raised: list[tuple[Case, BaseException]] = []
        self.endless, self.asked = False, False
        self.outside: tuple[Case, OutsideChanceError] | None = None

    def add(self, case: Case) -> None:
        try:
            found, paths = _refute(self.step, case)
            self.asked = self.asked or paths > 1 or asks_chance(self.step, *_arguments(case))
        except KeyboardInterrupt:
            raise
        except OutsideChanceError as error:
            self.outside = case, error
        except BaseException as error:  # a user's rule may raise anything
            if isinstance(error, UntokenisableError) and not case.pair.by_text:
                self.not_applicable += 1
            else:
                # A traceback would keep every frame of the rule alive.
                self.raised.append((case, error.with_traceback(None)))
                self.endless = isinstance(error, TooManyPathsError)
        else:
            self.refuted += found
            self.proved, self.paths = self.proved + (not found), self.paths + paths

    def report(self, not_run: int) -> RuleReport:
        if self.refuted and not (self.asked or self.outside):
            lossy = self.refuted[0]
            error = OutsideChanceError(
                "takes no decision from chance: it asked for nothing in any case, and returned "
                f"{lossy.block} where {lossy.difference}"
            )
            self.outside = lossy.case, error
        if self.outside:
            return RuleReport(0, (), (), not_run, self.paths, outside=self.outside)
        refuted, raised = tuple(self.refuted), tuple(self.raised)
        return RuleReport(self.proved, refuted, raised, not_run, self.paths, self.not_applicable)


def _arguments(case: Case) -> tuple[Model, Model, Tokens, int]:
    return case.pair.target, case.pair.drafter, case.context, case.lookahead


def _refute(step: Step, case: Case) -> tuple[Sequence[Refutation], int]:
    arguments = _arguments(case)
    blocks, paths = output_distribution(step, *arguments)
    proved = proof(blocks, case.pair.target, case.context, paths, MAX_TEXTS)
    difference = proved.difference
    if difference is None:
        return [], paths
    block, trace = trace_to(difference.tokens, step, *arguments)
    refutation = Refutation(case, proved.total_variation, difference, block, str(trace))
    return [refutation], paths
