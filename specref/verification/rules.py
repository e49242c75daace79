"""A user's rule in all situations: proved, refuted, not applicable, or failing."""

import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from specref.algorithms.decoding import Step
from specref.chance import MAX_PATHS, OutsideChanceError, TooManyPathsError
from specref.chance import Step as Decision
from specref.distributions import Probability
from specref.pairs import Case, Profile
from specref.proofs.exact import (
    Difference,
    asks_chance,
    check_step,
    output_distribution,
    proof,
    shares_of,
    trace_to,
)
from specref.proofs.reached import Unreached, watched
from specref.spoiled import unspoiled
from specref.tracebacks import own_line
from specref.verification.situations import TOY_PAIRS, Situation, situations
from specref.vocabulary import Tokens, UntokenisableError

Verdict: TypeAlias = Literal[
    "proved", "refuted", "raised", "endless", "too large", "not applicable", "outside"
]
MAX_TEXTS = 100_000
MOST_PATHS = 2_000
"""The most random paths of a case beside the toy pairs; beyond, it is not judged."""
CASES_IN_A_JOB = 32
JUDGED, FAILED = ("proved", "refuted"), ("raised", "endless")


@dataclass(frozen=True)
class Witness:
    """How a rule differs: by how much, first where, of what that is the sum, and a traced path."""

    total_variation: Probability
    difference: Difference
    block: Tokens
    steps: tuple[Decision, ...]
    shares: tuple[tuple[str, Probability], ...]


@dataclass(frozen=True)
class Result:
    """The result of a rule on a case.

    * `verdict`: "endless" is an error after which other cases are not worth a try; "too large"
      says that a limit was reached that is lower than that of toy pairs.
    * `asked`: Whether the rule took a decision from its chance.
    """

    verdict: Verdict
    paths: int = 0
    asked: bool = False
    witness: Witness | None = None
    error: BaseException | None = None


def result_of(step: Step, case: Case, max_paths: int = MAX_PATHS) -> Result:
    """Prove or refute one case, or tell why neither can be done.

    * `max_paths`: Where to give up. A limit below the usual one makes a case "too large" rather
      than an error.
    """
    pair = case.pair
    arguments = pair.target, pair.drafter, case.context, case.lookahead
    try:
        with unspoiled():
            blocks, paths = output_distribution(step, *arguments, max_paths)
            found = proof(blocks, pair.target, case.context, paths, MAX_TEXTS)
            difference = found.difference
            witness = None
            if difference is not None:
                block, trace = trace_to(difference.tokens, step, *arguments)
                steps = tuple(replace(one, site=str(one.site)) for one in trace.steps)
                shares = shares_of(difference, step, *arguments)
                witness = Witness(found.total_variation, difference, block, steps, shares)
            asked = paths > 1 or asks_chance(step, *arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's rule may raise anything
        if where := own_line(error):
            error.add_note(where)
        # A traceback would keep every frame of the rule alive.
        return Result(_kind(error, case, max_paths), error=error.with_traceback(None))
    return Result("refuted" if witness else "proved", paths, asked, witness)


def _kind(error: BaseException, case: Case, max_paths: int) -> Verdict:
    if isinstance(error, OutsideChanceError):
        return "outside"
    if isinstance(error, UntokenisableError) and not case.pair.by_text:
        return "not applicable"
    if isinstance(error, TooManyPathsError):
        return "endless" if max_paths == MAX_PATHS else "too large"
    return "raised"


class DescribedError(Exception):
    """The name of an error's type, and its message, in place of an error that cannot be sent."""


def sent(result: Result) -> Result:
    """The result as a worker process returns it."""
    error = result.error
    if error is None or _arrives(error):
        return result
    described = DescribedError(type(error).__name__, str(error))
    for note in notes_of(error):
        described.add_note(note)
    return replace(result, error=described)


def received(result: Result) -> Result:
    """The result as it was before it was sent, but for the type of a user's own error."""
    if not isinstance(result.error, DescribedError):
        return result
    name, message = result.error.args
    error = type(name, (Exception,), {})(message)
    for note in notes_of(result.error):
        error.add_note(note)
    return replace(result, error=error)


def notes_of(error: BaseException) -> tuple[str, ...]:
    """What was noted about an error: the line of the rule that it comes from."""
    return tuple(getattr(error, "__notes__", ()))


def _arrives(error: BaseException) -> bool:
    """Whether it can be read where the user's modules are not imported."""
    if type(error).__module__.partition(".")[0] not in ("builtins", "specref"):
        return False
    try:
        other = pickle.loads(pickle.dumps(error))
    except Exception:
        return False
    return type(other) is type(error) and str(other) == str(error)


@dataclass(frozen=True)
class Refutation:
    """A case on which a rule is lossy: the smallest difference, and a traced path to it."""

    case: Case
    total_variation: Probability
    difference: Difference
    block: Tokens
    steps: tuple[Decision, ...]
    shares: tuple[tuple[str, Probability], ...]

    @property
    def trace(self) -> str:
        """The decisions of the path, a line each."""
        return "\n".join(map(str, self.steps))


@dataclass(frozen=True)
class Enumerated:
    """What was enumerated of a situation.

    Attributes
    ----------
    situation : str
    vocabularies, contexts, lookaheads : tuple of int
        Sizes of the target's vocabulary, lengths of initial contexts, and lookaheads, of the
        cases that were proved or refuted.
    smallest : Fraction or None
        The smallest positive probability of the first row of a target or draft model there.
    pairs, cases : int
        How many pairs and cases those are.
    proved, paths : int
        How many of the cases were proved, and the random paths of all.
    raised, not_applicable, too_large, not_run : int
        Cases without a verdict: the rule failed, or is not defined for the vocabularies; there
        are too many paths; or the run ended before.
    """

    situation: str
    vocabularies: tuple[int, ...]
    contexts: tuple[int, ...]
    lookaheads: tuple[int, ...]
    smallest: Fraction | None
    pairs: int
    cases: int
    proved: int
    paths: int
    raised: int
    not_applicable: int
    too_large: int
    not_run: int


@dataclass(frozen=True)
class RuleReport:
    """The results of one rule.

    * `proved`: Cases on which the rule is exactly lossless; `enumerated` tells which.
    * `refuted`: Smallest case first.
    * `raised` (tuple of (Case, Exception)): Cases on which the rule failed.
    * `not_run`: Cases left out because their pairs have two vocabularies.
    * `paths`: Random paths enumerated.
    * `not_applicable`: Cases on which the rule raised `UntokenisableError`, and one tokeniser
      really cannot read a text of the other: vocabularies that the rule is not defined for.
    * `outside` (Case, OutsideChanceError) or None: Where the rule was seen to be no function of
      its chance; or that it never asks for anything, and a case on which it differs from the
      target. Then nothing is proved, nor refuted.
    * `enumerated`: What the words "proved" and "refuted" are about: one row for each situation.
    * `never_ran`: Lines of the rule's file, of functions that it may call, that ran on no path of
      any case; None if that was not watched: no source, or workers that may be on other machines.
    """

    proved: int
    refuted: tuple[Refutation, ...]
    raised: tuple[tuple[Case, BaseException], ...]
    not_run: int
    paths: int
    not_applicable: int = 0
    outside: tuple[Case, OutsideChanceError] | None = None
    enumerated: tuple[Enumerated, ...] = ()
    never_ran: Unreached | None = None

    @property
    def too_large(self) -> int:
        """The cases that have too many paths to be judged."""
        return sum(row.too_large for row in self.enumerated)

    @property
    def cut_off(self) -> int:
        """The cases that were not reached."""
        return sum(row.not_run for row in self.enumerated)


class InterruptedProofError(KeyboardInterrupt):
    """Ctrl-C during `prove`; carries the report of the results so far."""

    def __init__(self, report: RuleReport) -> None:
        super().__init__()
        self.report = report


def prove(
    step: Step,
    profile: Profile = "quick",
    *,
    same_vocabulary: bool = True,
    only: Collection[str] | None = None,
    executor: Executor | None = None,
    advance: Callable[[str], None] = lambda case: None,
) -> RuleReport:
    """Prove or refute a user's rule over the toy pairs, and in the situations they leave out.

    Parameters
    ----------
    step : callable
        `(target, drafter, context, lookahead, chance)` -> block.
    profile : {"quick", "standard", "thorough"}
    same_vocabulary : bool
        Only pairs over one vocabulary; otherwise all of them.
    only : collection of str, optional
        Names of some situations, such as "toy pairs"; all by default.
    executor : concurrent.futures.Executor, optional
        Threads, processes, or any other that can be sent `step`. Of a rule that is a function of
        its chance, the result does not depend on it, but for the types of errors that are the
        rule's own.
    advance : callable
        Told after each case.

    Raises
    ------
    TypeError
        `step` is no function of five arguments, or the executor's workers cannot import it.
    ValueError
        No such situation.
    InterruptedProofError
        After Ctrl-C.

    Examples
    --------
    >>> from specref.algorithms import slem, standard
    >>> report = prove(standard.step, only=["toy pairs", "lookaheads"])
    >>> report.proved, report.refuted, report.raised
    (94, (), ())
    >>> [row.lookaheads for row in report.enumerated if row.situation == "lookaheads"]
    [(3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)]
    >>> report = prove(slem.step, same_vocabulary=False, only=["toy pairs"])
    >>> report.proved, report.raised, report.not_applicable
    (138, (), 16)
    """
    check_step(step)
    chosen = situations(profile, same_vocabulary, only)
    every = sum(len(situation.cases) for situation in situations(profile, False, only))
    tallies = [_Tally(situation) for situation in chosen]
    pending = ((tally, case) for tally in tallies for case in tally.situation.cases)
    names = [situation.name for situation in chosen]
    with watched(step, executor) as (seen, never_ran):
        try:
            results = _results(seen, profile, same_vocabulary, names, executor)
            for (tally, case), result in zip(pending, results, strict=False):
                tally.results.append((case, result))
                advance(str(case))
        except KeyboardInterrupt as stop:
            found = replace(_report(tallies, every), never_ran=never_ran())
            raise InterruptedProofError(found) from stop
        return replace(_report(tallies, every), never_ran=never_ran())


def rule_cases(
    profile: Profile, same_vocabulary: bool, only: Collection[str] | None = None
) -> tuple[Case, ...]:
    """The cases of a profile, or those over one vocabulary, or in some situations."""
    chosen = situations(profile, same_vocabulary, only)
    return tuple(case for situation in chosen for case in situation.cases)


class _Tally:
    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.results: list[tuple[Case, Result]] = []

    def row(self) -> Enumerated:
        judged = [(case, result) for case, result in self.results if result.verdict in JUDGED]
        some = [case for case, _ in judged]
        verdicts = [result.verdict for _, result in self.results]
        return Enumerated(
            self.situation.name,
            _values(len(case.pair.target.vocabulary) for case in some),
            _values(len(case.context) for case in some),
            _values(case.lookahead for case in some),
            min(map(_smallest, some), default=None),
            len({case.pair.name for case in some}),
            len(some),
            verdicts.count("proved"),
            sum(result.paths for _, result in judged),
            sum(verdict in FAILED for verdict in verdicts),
            verdicts.count("not applicable"),
            verdicts.count("too large"),
            len(self.situation.cases) - len(self.results),
        )


def _values(sizes: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(sizes)))


def _smallest(case: Case) -> Fraction:
    rows = case.pair.target.next_token(case.context), case.pair.drafter.next_token(())
    return min(Fraction(entry) for row in rows for entry in row if entry)


def _report(tallies: Sequence[_Tally], every: int) -> RuleReport:
    results = [one for tally in tallies for one in tally.results]
    refuted = sorted(
        (Refutation(case, **vars(one.witness)) for case, one in results if one.witness),
        key=lambda one: (
            one.case.lookahead,
            len(one.case.pair.target.vocabulary),
            len(one.case.context),
        ),
    )
    not_run = every - sum(len(tally.situation.cases) for tally in tallies)
    paths = sum(result.paths for _, result in results)
    errors = [(case, result.error) for case, result in results if result.error]
    outside = next(
        ((case, error) for case, error in errors if isinstance(error, OutsideChanceError)), None
    )
    if refuted and not outside and not any(result.asked for _, result in results):
        lossy = refuted[0]
        outside = (
            lossy.case,
            OutsideChanceError(
                "takes no decision from chance: it asked for nothing in any case, and returned "
                f"{lossy.block} where {lossy.difference}"
            ),
        )
    if outside:
        return RuleReport(0, (), (), not_run, paths, outside=outside)
    rows = tuple(tally.row() for tally in tallies)
    return RuleReport(
        sum(row.proved for row in rows),
        tuple(refuted),
        tuple(
            (case, result.error)
            for case, result in results
            if result.error and result.verdict in FAILED
        ),
        not_run,
        paths,
        sum(row.not_applicable for row in rows),
        None,
        rows,
    )


def _results(
    step: Step,
    profile: Profile,
    same_vocabulary: bool,
    names: Sequence[str],
    executor: Executor | None,
) -> Iterator[Result]:
    """The results case by case, up to one after which no other is of use."""
    count = len(rule_cases(profile, same_vocabulary, names))
    if executor is None:
        yield from _Job(step, profile, same_vocabulary, names, 0, count).results()
        return
    futures = [
        executor.submit(_Job(step, profile, same_vocabulary, names, start, start + CASES_IN_A_JOB))
        for start in range(0, count, CASES_IN_A_JOB)
    ]
    try:
        for future in futures:
            for result in map(received, future.result()):
                yield result
                if _ends(result):
                    return
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(
            f"step = {step!r}: expected a function of a module, which workers can import ({error})"
        ) from None
    finally:
        for future in futures:
            future.cancel()


@dataclass(frozen=True)
class _Job:
    """A step on some of the cases. Picklable if the step is, unlike models."""

    step: Step
    profile: Profile
    same_vocabulary: bool
    names: Sequence[str]
    start: int
    stop: int

    def __call__(self) -> list[Result]:
        return [sent(result) for result in self.results()]

    def results(self) -> Iterator[Result]:
        chosen = situations(self.profile, self.same_vocabulary, self.names)
        every = [(situation.name, case) for situation in chosen for case in situation.cases]
        for name, case in every[self.start : self.stop]:
            limit = MAX_PATHS if name == TOY_PAIRS else MOST_PATHS
            yield (result := result_of(self.step, case, limit))
            if _ends(result):
                return


def _ends(result: Result) -> bool:
    return result.verdict in ("endless", "outside")
