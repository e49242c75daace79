"""The work of ``specref prove``: one rule or all, proved or refuted, and the report written."""

import sysconfig
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

import click

from specref.algorithms.decoding import Step
from specref.chance import OutsideChanceError, TooManyPathsError
from specref.cli.cluster import Run
from specref.cli.group import (
    HOLDS,
    INTERRUPTED,
    MISUSED,
    VIOLATED,
    leave,
    misused,
    progress,
    refuse_given,
)
from specref.cli.loading import Loaded, load_function
from specref.contracts.signature import accepted_keywords
from specref.contracts.table import contracts_of
from specref.pairs import Profile
from specref.proofs.everywhere import Everywhere, NotForAllError, is_lossless_everywhere
from specref.proofs.everywhere.comparison import Comparison, compare_everywhere
from specref.proofs.everywhere.pristine import Pristine
from specref.proofs.everywhere.proof import BUDGET, SEARCHED, first_runs
from specref.proofs.everywhere.solver import is_installed
from specref.proofs.everywhere.watch import Watch
from specref.proofs.exact import check_step
from specref.proofs.reached import watched
from specref.report.all_rules import answers_document, verification_document, within_docs
from specref.report.dominance import (
    answers_record,
    comparison_document,
    comparison_record,
    dominance_document,
    told,
)
from specref.report.everywhere import (
    enlarged,
    everywhere_document,
    everywhere_record,
    listed,
    witness_record,
)
from specref.report.machine import as_json, write_json
from specref.report.rules import first_error, outside_chance, rule_document, rule_record
from specref.rules import RULES
from specref.spoiled import SpoiledError
from specref.verification import (
    InterruptedProofError,
    RuleReport,
    cases_of,
    prove,
    rule_cases,
    verify,
)
from specref.verification.dominance import BUDGET as OF_CLAIMS
from specref.verification.dominance import ask_all, questions_of
from specref.verification.everywhere import STOPPED, TWO, boxes_of, larger_box, prove_boxes
from specref.verification.main_job import TRIED
from specref.vocabulary import UntokenisableError, Vocabulary

TOY = ("profile", "only")
"""Options without --everywhere alone."""
EVERYWHERE = ("against", "iterations", "tokens", "lookahead", "budget", "save")
"""Options with it alone."""
LETTERS = "abcdefghij"
JUDGES = (NotForAllError, OutsideChanceError, TooManyPathsError)
"""Errors that are not the rule's own."""
PACKAGE = Path(__file__).parent.parent


def prove_rule(
    rule: str,
    profile: Profile,
    everywhere: bool,
    budget: float,
    run: Run,
    pairs: str,
    only: tuple[str, ...],
    against: str | None,
    iterations: int,
    tokens: int,
    lookahead: int,
    save: str | None,
) -> NoReturn:
    """Prove or refute a rule, and leave with the exit code."""
    if everywhere:
        refuse_given(TOY, "without --everywhere")
    else:
        refuse_given(EVERYWHERE, "with --everywhere")
    step = load_function(rule, "rule")
    try:
        check_step(step)
    except TypeError as error:
        misused(f"{rule}: {error}{_judged_by(rule, step)}")
    if everywhere:
        if not 2 <= tokens <= len(LETTERS):
            raise ValueError(f"tokens = {tokens}: expected 2 to {len(LETTERS)}")
        if lookahead < 0:
            raise ValueError(f"lookahead = {lookahead}: expected an integer >= 0")
        kind: Literal["one", "two"] = "one" if pairs in ("same", "one") else "two"
        if against:
            _alone_with_against(save, run)
            known = RULES.get(against)
            other = known.step if known else load_function(against, "against")
            size = tokens, lookahead, iterations
            compare_rules((rule, against), (step, other), *size, kind, budget, run)
        if iterations > 1:
            raise ValueError(f"iterations = {iterations}: expected 1 without --against")
        prove_everywhere(rule, step, tokens, lookahead, kind, budget, save, run)
    if pairs in ("one", "two"):
        raise ValueError(f"pairs = {pairs!r}: expected same or all without --everywhere")
    same, interrupted = pairs == "same", False
    cases = progress(len(rule_cases(profile, same, only or None)), "cases")
    try:
        with run.executor() as pool, cases as advance:
            report = prove(
                Loaded(rule, step),
                profile,
                same_vocabulary=same,
                only=only or None,
                executor=pool,
                advance=lambda case: advance(1, case),
            )
    except InterruptedProofError as stop:
        report, interrupted = stop.report, True
    run.deliver(rule_document(rule, report), as_json(rule_record(rule, report)))
    if interrupted:
        click.echo("interrupted", err=True)
        leave(INTERRUPTED)
    if report.outside:
        misused(f"{rule}: {outside_chance(report)}")
    if report.refuted:
        leave(VIOLATED)
    if report.raised:
        hint = "" if same else " (for one vocabulary: --pairs same)"
        sampled = _judged_by(rule, step) if "rng" in accepted_keywords(step) else ""
        misused(f"{rule} raised {first_error(report)}{hint}{sampled}")
    if not report.proved:
        misused(f"{rule}: nothing was proved, {_why_nothing(report)}")
    leave(HOLDS)


def _why_nothing(report: RuleReport) -> str:
    if not report.enumerated:
        return "--only leaves no cases over one vocabulary (for two: --pairs all)"
    if report.too_large:
        return "every case has too many paths"
    return "it is not defined for any of these vocabularies"


def _judged_by(rule: str, step: Callable[..., Any]) -> str:
    commands = (f"specref check {rule} --contract {one}" for one in contracts_of(step))
    return "".join(f"; by samples: {command}" for command in commands)


def _alone_with_against(save: str | None, run: Run) -> None:
    if save:
        raise ValueError("save: expected without --against")
    if run.workers > 1:
        raise ValueError(f"workers = {run.workers}: expected 1 with --against")
    if run.cluster:
        raise ValueError(f"cluster = {run.cluster}: expected without --against")


def prove_all(
    profile: Profile,
    everywhere: bool,
    budget: float | None,
    run: Run,
    compare: bool,
    known_bugs: bool,
) -> NoReturn:
    """Prove every rule over toy pairs, or for every p and q, or compare them; and leave."""
    if budget is None:
        budget = OF_CLAIMS if compare else BUDGET
    if compare:
        if everywhere or known_bugs:
            raise ValueError("compare: expected without --everywhere and --known-bugs")
        verify_dominance(profile, budget, run)
    if everywhere:
        verify_everywhere(profile, known_bugs, budget, run)
    if known_bugs or run.markdown:
        name = "known-bugs" if known_bugs else "markdown"
        raise ValueError(f"{name}: expected with --everywhere")
    total = len(TRIED) * len(cases_of(profile))
    with run.executor() as pool, progress(total, "cases") as advance:
        verification = verify(profile, run.seed, lambda name: advance(1), pool)
    record = as_json(verification, ok=verification.ok)
    run.deliver(verification_document(verification), record, ("seed", f"{run.seed}"))
    leave(HOLDS if verification.ok else VIOLATED)


def verify_everywhere(profile: Profile, zoo: bool, budget: float, run: Run) -> NoReturn:
    require_z3()
    boxes = boxes_of(profile, zoo=zoo)
    unit = f"rules, at most {budget:g} s each"
    with run.executor() as pool, progress(len(boxes), unit) as advance:
        answers = prove_boxes(boxes, run.seed, budget, pool, lambda answer: advance(1))
        while zoo and not any(answer.note == STOPPED for answer in answers):
            again = {answer: box for answer in answers if (box := larger_box(answer))}
            if not again:
                break
            further = prove_boxes(tuple(again.values()), run.seed, budget, pool)
            answers = tuple(one for one in answers if one not in again) + further
    command = f"specref prove --all --everywhere --profile {profile}" + " --known-bugs" * zoo
    linked = run.markdown is not None and within_docs(run.markdown)
    told = answers_document(answers, f"{command} --markdown FILE", zoo=zoo, linked=linked)
    record = {"profile": profile, "seed": run.seed, "answers": answers}
    run.deliver(told, as_json(record))
    if any(answer.note == STOPPED for answer in answers):
        leave(INTERRUPTED)
    if any(answer.verdict == "open" for answer in answers):
        click.echo(f"some rules are open: try --budget {enlarged(budget):g}", err=True)
    leave(HOLDS if all(answer.as_known for answer in answers) else VIOLATED)


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


def can_read(
    rule: str,
    steps: Sequence[Step],
    target: Vocabulary,
    drafter: Vocabulary,
    lookahead: int,
    seed: int,
    budget: float,
) -> bool:
    """Whether rules are defined for two vocabularies, by first runs; leaves if these raise."""
    try:
        for step in steps:
            least = Watch(budget), budget / SEARCHED
            first_runs(step, target, drafter, lookahead, seed, *least)
    except UntokenisableError:
        return False
    except Exception as error:
        misused(f"{rule} {named(error)}")
    return True


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
            if not can_read(rule, (step,), *size, run.seed, budget):
                left_out.append(f"{listed(target)} and {listed(drafter)}")
                continue
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


def compare_rules(
    names: tuple[str, str],
    steps: tuple[Step, Step],
    tokens: int,
    lookahead: int,
    iterations: int,
    pairs: Literal["one", "two"],
    budget: float,
    run: Run,
) -> NoReturn:
    """Print which of two rules accepts more, and leave with the exit code of it."""
    require_z3()
    both, either = vocabularies(tokens, pairs), " or ".join(names)
    found: list[Comparison] = []
    left_out: list[str] = []
    with progress(len(both), f"pairs, at most {budget:g} s a claim") as advance:
        for target, drafter in both:
            if not can_read(either, steps, target, drafter, lookahead, run.seed, budget):
                left_out.append(f"{listed(target)} and {listed(drafter)}")
                continue
            try:
                found.append(
                    compare_everywhere(
                        *steps,
                        target,
                        drafter,
                        lookahead,
                        seed=run.seed,
                        budget=budget,
                        iterations=iterations,
                    )
                )
                advance(1)
            except (TypeError, OutsideChanceError, TooManyPathsError) as error:
                misused(f"{either} {named(error)}")
            except Exception as error:
                if not frames_of_rule(error):
                    raise
                misused(f"{either} {named(error)}; rules that raise somewhere are not compared")
            if found[-1].interrupted:
                break
    record = {**comparison_record(*names, found), "not_applicable": left_out}
    run.deliver(comparison_document(*names, found, left_out, budget), as_json(record))
    if found and found[-1].interrupted:
        leave(INTERRUPTED)
    if any(one.less for one in found):
        leave(VIOLATED)
    if not found:
        misused(f"{either}: not defined for any of these vocabularies")
    leave(HOLDS if all(one.at_least.proved for one in found) else MISUSED)


def verify_dominance(profile: Profile, budget: float, run: Run) -> NoReturn:
    """Print which rules accept more than which, and what they accept in closed form."""
    require_z3()
    questions = questions_of(profile)
    unit = f"questions, at most {budget:g} s a claim"
    with run.executor() as pool, progress(len(questions), unit) as advance:
        answers = ask_all(questions, run.seed, budget, pool, lambda answer: advance(1))
    command = f"specref prove --all --compare --profile {profile} --budget {budget:g}"
    linked = run.markdown is not None and within_docs(run.markdown)
    shown = dominance_document([*map(told, answers)], f"{command} --markdown FILE", linked=linked)
    record = {"profile": profile, "seed": run.seed, "answers": answers_record(answers)}
    run.deliver(shown, as_json(record))
    if any(answer.note == STOPPED for answer in answers):
        leave(INTERRUPTED)
    known = [(one.question.is_formula, one.found) for one in answers]
    if any(found and is_formula and (found.more or found.less) for is_formula, found in known):
        leave(VIOLATED)
    decided = all(
        found and (found.relation == "equal" if is_formula else found.relation != "open")
        for is_formula, found in known
    )
    if not decided:
        click.echo(f"some questions are open: try --budget {enlarged(budget):g}", err=True)
    leave(HOLDS if decided else MISUSED)


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
