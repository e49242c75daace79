"""``specref prove --everywhere``: a rule, proved or refuted for every p and q."""

import json
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NoReturn

from specref.algorithms.decoding import Step
from specref.chance import OutsideChanceError, TooManyPathsError
from specref.cli.cluster import Run
from specref.cli.group import HOLDS, INTERRUPTED, MISUSED, VIOLATED, leave, misused, progress
from specref.cli.loading import Loaded
from specref.proofs.everywhere import Everywhere, NotForAllError, is_lossless_everywhere
from specref.proofs.everywhere.pristine import Pristine
from specref.proofs.everywhere.proof import SEARCHED, first_runs, models_of
from specref.proofs.everywhere.rows import Space
from specref.proofs.everywhere.solver import is_installed
from specref.proofs.everywhere.watch import Watch
from specref.proofs.exact import is_lossless
from specref.proofs.reached import watched
from specref.report.everywhere import (
    FORMAT,
    everywhere_document,
    everywhere_record,
    listed,
    rows_of,
    witness_record,
)
from specref.report.machine import as_json, write_json
from specref.spoiled import SpoiledError
from specref.verification.everywhere import TWO
from specref.vocabulary import UntokenisableError, Vocabulary

LETTERS = "abcdefghij"
JUDGES = (NotForAllError, OutsideChanceError, TooManyPathsError)
"""Errors that are not the rule's own."""
PACKAGE = Path(__file__).parent.parent


def require_z3() -> None:
    """Leave with what to install if z3 is missing."""
    if not is_installed():
        misused("not_run: z3 is not installed; pip install z3-solver")


def vocabularies(tokens: int, pairs: Literal["one", "two"]) -> list[tuple[Vocabulary, Vocabulary]]:
    """The target's and the drafter's: one of so many tokens for both, or the small pairs."""
    if pairs == "two":
        return [(Vocabulary(target), Vocabulary(drafter)) for target, drafter in TWO]
    letters = Vocabulary(LETTERS[:tokens])
    return [(letters, letters)]


def prove_everywhere(
    rule: str,
    step: Step,
    tokens: int,
    lookahead: int,
    pairs: Literal["one", "two"],
    budget: float,
    save: str | None,
    run: Run,
) -> NoReturn:
    """Print what is proved for every p and q, and leave with the exit code of it."""
    require_z3()
    both = vocabularies(tokens, pairs)
    found: list[Everywhere] = []
    left_out: list[str] = []
    outcomes = sum(len(target) ** (lookahead + 1) for target, _ in both)
    unit = f"outcomes, at most {budget:g} s of CPU time a pair"
    with (
        Pristine(lambda length: step) as pristine,
        run.executor() as pool,
        progress(outcomes, unit) as advance,
        watched(Loaded(rule, step), pool) as (seen, unreached),
    ):
        for target, drafter in both:
            size = target, drafter, lookahead
            try:
                first_runs(step, *size, run.seed, Watch(budget), budget / SEARCHED)
            except UntokenisableError:
                left_out.append(f"{listed(target)} and {listed(drafter)}")
                continue
            except Exception as error:
                misused(f"{rule} {named(error)}")
            try:
                found.append(
                    is_lossless_everywhere(
                        seen,
                        *size,
                        seed=run.seed,
                        budget=budget,
                        executor=pool,
                        pristine=pristine,
                        advance=lambda one: advance(1),
                    )
                )
            except (TypeError, OutsideChanceError, TooManyPathsError, SpoiledError) as error:
                misused(f"{rule} {named(error)}")
            if found[-1].interrupted:
                break
        never = unreached()
    record = as_json(everywhere_record(rule, found, left_out, never))
    run.deliver(everywhere_document(rule, found, left_out, never, budget), record)
    lossy = next((one for one in found if one.witness), None)
    if save and lossy is not None:
        write_json(save, as_json(witness_record(rule, lossy), folder=str(Path.cwd())))
    if found and found[-1].interrupted:
        leave(INTERRUPTED)
    if lossy is not None:
        leave(VIOLATED)
    if not found:
        misused(f"{rule}: nothing was proved, it is not defined for any of these vocabularies")
    leave(HOLDS if all(found) else MISUSED)


def read_rows(path: str) -> Any:
    """The record of a witness, or None for a file of another format."""
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        return None
    return record if isinstance(record, dict) and record.get("format") == FORMAT else None


def replay_rows(record: Any, load: Callable[[str], Step]) -> NoReturn:
    """Run a rule again on the rows of a witness, with fractions."""
    target, drafter = (Vocabulary(record[name], record["eos"]) for name in ("target", "drafter"))
    models = models_of(Space(target, drafter, 0), rows_of(record))
    try:
        proof = is_lossless(load(record["rule"]), *models, (), record["lookahead"])
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a rule may raise anything
        print(f"{record['rule']} raises {type(error).__name__}: {error}")
        leave(VIOLATED)
    print(f"{record['rule']}: total variation {proof.total_variation}")
    if proof.difference:
        print(proof.difference)
    leave(HOLDS if proof else VIOLATED)


def named(error: Exception) -> str:
    """An error, with the line of the rule that it comes from."""
    own = frames_of_rule(error)
    where = f" (line {own[-1].lineno} of {Path(own[-1].filename).name})" if own else ""
    said = ": ".join([str(error), *getattr(error, "__notes__", [])])
    verb = "raised" if own and not isinstance(error, JUDGES) else "is refused:"
    return f"{verb} {type(error).__name__}{where}: {said}"


def frames_of_rule(error: Exception) -> list[traceback.FrameSummary]:
    """Where an error was raised in a rule; none if it was not raised in one."""
    frames = getattr(error, "stack", None) or traceback.extract_tb(error.__traceback__)
    return [f for f in frames if not (_of_libraries(f.filename) or _of_proofs(f.filename))]


def _of_libraries(file: str) -> bool:
    of_python = file.startswith(sysconfig.get_path("stdlib")) and "site-packages" not in file
    return of_python or "numpy" in file


def _of_proofs(file: str) -> bool:
    path = Path(file)
    if not path.is_relative_to(PACKAGE):
        return False
    return path.relative_to(PACKAGE).parts[0] not in ("algorithms", "zoo", "examples")
