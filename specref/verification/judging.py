"""What a rule does on one case: a result that can be sent from one process to another."""

import pickle
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from specref.algorithms.decoding import Step
from specref.chance import MAX_PATHS, OutsideChanceError, TooManyPathsError
from specref.chance import Step as Decision
from specref.distributions import Probability
from specref.pairs import Case
from specref.proofs.exact import (
    Difference,
    asks_chance,
    output_distribution,
    proof,
    shares_of,
    trace_to,
)
from specref.spoiled import unspoiled
from specref.tracebacks import own_line
from specref.vocabulary import Tokens, UntokenisableError

Verdict: TypeAlias = Literal[
    "proved", "refuted", "raised", "endless", "too large", "not applicable", "outside"
]
MAX_TEXTS = 100_000


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
