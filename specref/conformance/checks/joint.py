"""Stage joint: whether the joint law of the completed block is the target's.

By campaigns, by enumeration of every random path, and proved or refuted for every p and q.
"""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specref.chance import (
    Chance,
    Exact,
    OutsideChanceError,
    TooManyPathsError,
    exact_distribution,
)
from specref.conformance.checks.check import (
    Check,
    failed,
    inconclusive,
    not_applicable,
    passed,
    sampled,
)
from specref.conformance.differences import difference
from specref.conformance.judge import Judge
from specref.conformance.status import Finding, Outcome, Status
from specref.conformance.trial import Trial, TrialReport
from specref.contracts.fixtures import CHAIN_FIXTURES, TREE_FIXTURES, WITH, Fixture, Place
from specref.contracts.functions import TWO_VOCABULARIES, StepContract
from specref.contracts.sampling import AFTER_EOS, read_tokens, until_end
from specref.contracts.timeout import within
from specref.contracts.tree import TreeContract
from specref.contracts.verify import Alone, Blocks, IdlePairs, VerifyContract
from specref.laws import Law
from specref.models import Model
from specref.proofs.exact import proof
from specref.tracebacks import own_traceback
from specref.vocabulary import Tokens

ROUNDING = 1e-9
COARSE, USELESS = 4, 0.5
BLOCKS = (VerifyContract, StepContract)
REPEATED = "; siblings may repeat there (repeats=false if they never do)"


def outcome_of(judge: Judge, found: TrialReport, tv: float | None = None) -> Outcome:
    """The outcome of a campaign about the law of blocks or texts.

    `tv` is the distance to be detected, instead of the judge's.
    """
    tv = judge.detect_tv if tv is None else tv
    report, evidence = found.report, facts(found)
    if found.lossy:
        only = Finding.DEPENDENCE if found.sharing and not report.impossible else None
        return failed(_finding(found), only, **evidence)
    if found.dependent:
        return inconclusive(
            "the distribution is not judged: blocks depend on each other", **evidence
        )
    detectable = report.detectable or 1.0
    limited = judge.options.seconds is not None
    if (limited and detectable > USELESS) or (judge.trials is not None and detectable > tv):
        needed, worst = found.needed(tv), found.worst
        reached = "nothing" if detectable == 1 else f"only TV ≥ {detectable:.3f}"
        bounded = worst.upper - worst.lower < 1
        distance = f", and {worst} at {worst.case}" if bounded else ""
        enough = (
            f"takes {needed:,} trials"
            if needed
            else f"would never be, with tolerance {report.tolerance:g}"
        )
        return inconclusive(
            f"{report.trials:,} trials are too few: {reached} would be detected (TV {tv:g} "
            f"{enough}); evidence 10^{found.law:z.1f}, where "
            f"10^{found.threshold:.1f} decides{distance}",
            needed=needed,
            **evidence,
        )
    return passed(f"{report.trials:,} trials; TV ≥ {detectable:.3f} would be detected", **evidence)


def _finding(found: TrialReport) -> str:
    report = found.report
    if report.impossible:
        return f"impossible: {report.impossible}" + f"; {AFTER_EOS}" * found.after_eos
    if found.sharing:
        return (
            f"{sharing(found)}. Whether the distribution of one block is the target's cannot be "
            "told from dependent ones"
        )
    worst = found.worst
    most = f"; most of all {found.most_off}" if found.most_off else ""
    return (
        f"the distribution is not the target's: {found.least} at {worst.case}, evidence "
        f"10^{found.law:.0f} after {report.trials:,} trials{most}"
    )


def sharing(found: TrialReport) -> str:
    """Message: rows depend on each other, whatever their law."""
    return (
        "rows of a call resemble each other: they share random numbers, or a decision is made "
        "for the whole batch, or the distribution changes from call to call; evidence "
        f"10^{found.shared:.0f}"
    )


def facts(found: TrialReport) -> dict[str, object]:
    """The numbers of a campaign, as evidence of an outcome."""
    report = found.report
    return {
        "trials": report.trials,
        "alpha": report.alpha * 2,
        "detectable_tv": report.detectable,
        "log10_evidence": found.law,
        "log10_threshold": found.threshold,
        "looks": found.looks,
        "log10_dependence_whatever_the_law": None if math.isinf(found.shared) else found.shared,
        "tv": {interval.case: (interval.estimate, interval.lower, interval.upper)
               for interval in report.intervals},
        "suspects": [suspect.component for suspect in report.suspects] if found.lossy else [],
        "hits": dict(found.hits),
        "lengths": dict(found.lengths),
        "difference": found.difference,
        "seconds": found.seconds,
    }  # fmt: skip


def on_fixture(name: str, judge: Judge) -> Outcome:
    """A campaign over single iterations, of trees at all places of a fixture."""
    if why := judge.refusal(name):
        return not_applicable(why)
    outcome = outcome_of(judge, judge.blocks(name))
    if outcome.status == Status.FAILED and WITH in outcome.message:
        return replace(outcome, message=outcome.message + REPEATED)
    return outcome


def one_hot(judge: Judge) -> Outcome:
    """A sequential test with drafts declared as certain, however they were drawn."""
    if not judge.capabilities.one_hot:
        return not_applicable("does not take draft_probs=None")
    return outcome_of(judge, judge.blocks("wide", one_hot=True))


def small_batches(kind: type[Blocks], name: str, judge: Judge) -> Outcome:
    """Batches of one or two rows, in which nothing dilutes what is wrong with them.

    Few trials, for distances four times as large as elsewhere.
    """
    fixture = judge.fixture(name)
    if why := kind.refusal(fixture, judge.capabilities):
        return not_applicable(why)
    trial = Trial(fixture, judge.level, judge.rule, tolerance=judge.capabilities.tolerance)
    tv = min(COARSE * judge.detect_tv, 0.5)
    rng = judge.rng(f"{kind.key}/{name}")
    wanted = judge.trials // COARSE**2 if judge.trials else trial.needed(tv)
    trials = max(1, int(kind.cost * wanted))
    sampler = kind(judge.verifier, fixture)
    found = trial.run(sampler, trials, rng, judge.advance, judge.seconds)
    if found.dependent and not found.lossy:
        return failed(
            f"blocks depend on earlier ones: evidence 10^{found.dependence:.0f}",
            Finding.DEPENDENCE,
        )
    return outcome_of(judge, found, tv)


def exact(judge: Judge) -> Outcome:
    """Every random path enumerated, for functions that take `chance`: a proof in fractions."""
    if "chance" not in judge.keywords:
        return not_applicable("takes no chance: cannot be enumerated")
    places = [
        (fixture, place)
        for fixture in CHAIN_FIXTURES.values()
        for place in fixture.drafted().places
    ]
    for fixture, place in places:
        problem = refuted(judge, fixture, place, place.lookahead + 1)
        if problem:
            return problem
    return passed(f"{len(places)} cases proved by enumeration")


def refuted(judge: Judge, fixture: Fixture, place: Place, longest: int) -> Outcome | None:
    """The outcome if one iteration at a place is not proved lossless, else None."""

    def run(chance: Chance) -> Tokens:
        models = fixture.target, fixture.drafter
        raw = judge.implementation(*models, place.context, place.lookahead, chance=chance)
        return read_tokens(raw, longest, fixture)

    def enumerated() -> Law | TooManyPathsError | OutsideChanceError:
        try:
            blocks = exact_distribution(run)
        except (TooManyPathsError, OutsideChanceError) as error:
            return error
        found = proof(blocks, fixture.target, place.context, len(blocks))
        if found.total_variation > ROUNDING and len(blocks) == 1 < len(found.expected):
            chance = Exact()
            if run(chance) and not chance.requests:
                return OutsideChanceError("takes no decision from chance: it asked for nothing")
        return blocks

    blocks = within(judge.timeout, enumerated)
    if isinstance(blocks, TooManyPathsError):
        return not_applicable(str(blocks))
    if isinstance(blocks, OutsideChanceError):
        return inconclusive(f"{fixture.name}, {place.name}: {blocks}")
    found = proof(blocks, fixture.target, place.context, len(blocks))
    if found.total_variation <= ROUNDING:
        return None
    cut = _until_end(fixture, blocks)
    rest = proof(cut, fixture.target, place.context, len(blocks))
    why = f"; {AFTER_EOS}" if rest.total_variation <= ROUNDING else ""
    return failed(
        f"{fixture.name}, {place.name}: TV {found.total_variation} exactly; "
        f"{found.difference}{why}",
        total_variation=str(found.total_variation),
        difference=difference(
            found.output,
            found.expected,
            fixture.target,
            fixture.drafter,
            place.context,
            place.lookahead,
            place=f"{fixture.name}, {place.name}",
        ),
    )


def _until_end(fixture: Fixture, blocks: Law) -> Law:
    cut: Law = {}
    for block, weight in blocks.items():
        shorter = until_end(fixture, block)
        cut[shorter] = cut.get(shorter, 0) + weight
    return cut


CHECKS = (
    Check("joint/exact", StepContract, exact, law=True),
    *(
        sampled(f"joint/{name}", BLOCKS, partial(on_fixture, name), weight=3)
        for name in CHAIN_FIXTURES
    ),
    sampled("joint/batch-of-one", VerifyContract, partial(small_batches, Alone, "wide"), weight=4),
    sampled(
        "joint/beside-idle", VerifyContract, partial(small_batches, IdlePairs, "wide"), weight=4
    ),
    sampled("joint/one-hot", VerifyContract, one_hot),
)
OF_TREES = tuple(
    sampled(f"joint/{name}", TreeContract, partial(on_fixture, name)) for name in TREE_FIXTURES
)


def on_two_vocabularies(name: str, judge: Judge) -> Outcome:
    """A campaign over single iterations, if the declared rule reads such vocabularies."""
    rules = TWO_VOCABULARIES[name].rules
    if judge.capabilities.rule not in rules:
        return not_applicable(f"a fixture for rules {', '.join(rules)}")
    return outcome_of(judge, judge.blocks(name))


def exact_of_two(name: str, judge: Judge) -> Outcome:
    """Every random path enumerated, for functions that take `chance`."""
    fixture = TWO_VOCABULARIES[name]
    if judge.capabilities.rule not in fixture.rules:
        return not_applicable(f"a fixture for rules {', '.join(fixture.rules)}")
    if "chance" not in judge.keywords:
        return not_applicable("takes no chance: cannot be enumerated")
    problem = refuted(judge, fixture, fixture.places[0], fixture.longest)
    return problem or passed("proved by enumeration")


OF_TWO_VOCABULARIES = tuple(
    check
    for name in TWO_VOCABULARIES
    for check in (
        Check(f"joint/exact-{name}", StepContract, partial(exact_of_two, name), law=True),
        sampled(f"joint/{name}", StepContract, partial(on_two_vocabularies, name)),
    )
)


if TYPE_CHECKING:
    from specref.proofs.everywhere import Everywhere

LETTERS = ("a", "b")
LOOKAHEADS = (1, 2)
BUDGET = 4.0
MOST_CONDITIONS = 4


def everywhere(judge: Judge) -> Outcome:
    """Whether an iteration is lossless whatever p and q are, as far as a few seconds go."""
    if "chance" not in judge.keywords:
        return not_applicable("not exercised: takes no chance")
    # Imported where it is needed: other checks start without it.
    from specref.proofs.everywhere.rows import spelled_rows
    from specref.proofs.everywhere.solver import is_installed

    if not is_installed():
        return not_applicable("not exercised: z3 is not installed; pip install z3-solver")
    proved: list[str] = []
    bits: list[int] = []
    rest = ""
    for lookahead in LOOKAHEADS:
        found = within(judge.timeout, partial(_asked, judge, lookahead))
        if isinstance(found, str):
            rest = f"not exercised: {found}"
        elif found.witness and not found.witness.error:
            return _witnessed(found)
        elif found.witness:
            at = spelled_rows(found.witness.rows, found.target, found.drafter)
            rest = f"not exercised: raises {found.witness.error} at {at}"
        elif not found:
            rest = f"not exercised to the end: {found.open} pieces are open after {BUDGET:g} s"
        else:
            proved.append(f"{found.regions} regions at lookahead {lookahead}")
            bits.append(found.bits)
            continue
        rest += f", at lookahead {lookahead}"
        break
    if not proved:
        return not_applicable(rest)
    said = f"proved for every p and q over {len(LETTERS)} tokens: {', '.join(proved)}"
    said += f"; error of the identity tests <= 2^-{min(bits) - len(bits) + 1}"
    return passed(said + f"; {rest}" * bool(rest))


def _asked(judge: Judge, lookahead: int) -> "Everywhere | str":
    """What is found; or why the function cannot be run with numbers that stand for all rows."""
    from specref.proofs.everywhere import is_lossless_everywhere

    def step(
        target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        raw: Any = judge.implementation(target, drafter, context, lookahead, chance=chance)
        return tuple(map(int, raw))

    try:
        return is_lossless_everywhere(
            step, LETTERS, lookahead=lookahead, budget=BUDGET, seed=judge.options.seed
        )
    except (OutsideChanceError, TooManyPathsError, TypeError, ValueError) as error:
        return f"{error}{_line(error)}"
    except Exception as error:  # of the function, which may need other tokens or floats
        return f"raised {type(error).__name__}: {error}{_line(error)}"


def _line(error: Exception) -> str:
    own = own_traceback(error)
    if own is None:
        return ""
    return f" (line {own.tb_lineno} of {Path(own.tb_frame.f_code.co_filename).name})"


def _witnessed(found: "Everywhere") -> Outcome:
    from specref.proofs.everywhere.rows import spelled_rows

    witness = found.witness
    assert witness is not None
    rows = spelled_rows(witness.rows, found.target, found.drafter)
    some = witness.conditions[:MOST_CONDITIONS]
    where = f" where {', '.join(some)}" + ", …" * (len(witness.conditions) > len(some))
    return failed(
        f"lossy{where if some else ''}: TV {witness.distance} at {rows}, others uniform "
        f"({len(LETTERS)} tokens, lookahead {found.lookahead})",
        total_variation=str(witness.distance),
        conditions=list(witness.conditions),
        rows=rows,
        trace=witness.trace,
    )


EVERYWHERE = (Check("joint/everywhere", StepContract, everywhere, law=True),)
