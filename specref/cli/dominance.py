"""``prove --everywhere --against`` and ``prove --all --compare``: which rule accepts more."""

from typing import Literal, NoReturn

import click

from specref.algorithms.decoding import Step
from specref.chance import OutsideChanceError, TooManyPathsError
from specref.cli.cluster import Run
from specref.cli.everywhere import frames_of_rule, named, require_z3, vocabularies
from specref.cli.group import HOLDS, INTERRUPTED, MISUSED, VIOLATED, leave, misused, progress
from specref.pairs import Profile
from specref.proofs.everywhere.comparison import Comparison, compare_everywhere
from specref.proofs.everywhere.proof import SEARCHED, first_runs
from specref.proofs.everywhere.watch import Watch
from specref.report.dominance import (
    answers_record,
    comparison_document,
    comparison_record,
    dominance_document,
    told,
)
from specref.report.everywhere import enlarged, listed
from specref.report.everywhere_table import within_docs
from specref.report.machine import as_json
from specref.verification.dominance import STOPPED, ask_all, questions_of
from specref.vocabulary import UntokenisableError


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
    both = vocabularies(tokens, pairs)
    found: list[Comparison] = []
    left_out: list[str] = []
    with progress(len(both), f"pairs, at most {budget:g} s a claim") as advance:
        for target, drafter in both:
            try:
                for step in steps:
                    least = Watch(budget), budget / SEARCHED
                    first_runs(step, target, drafter, lookahead, run.seed, *least)
            except UntokenisableError:
                left_out.append(f"{listed(target)} and {listed(drafter)}")
                continue
            except Exception as error:
                misused(f"{' or '.join(names)} {named(error)}")
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
                misused(f"{' or '.join(names)} {named(error)}")
            except Exception as error:
                if not frames_of_rule(error):
                    raise
                told = f"{' or '.join(names)} {named(error)}"
                misused(f"{told}; rules that raise somewhere are not compared")
            if found[-1].interrupted:
                break
    record = {**comparison_record(*names, found), "not_applicable": left_out}
    run.deliver(comparison_document(*names, found, left_out, budget), as_json(record))
    if found and found[-1].interrupted:
        leave(INTERRUPTED)
    if any(one.less for one in found):
        leave(VIOLATED)
    if not found:
        misused(f"{' or '.join(names)}: not defined for any of these vocabularies")
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
