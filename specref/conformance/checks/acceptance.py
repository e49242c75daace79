"""Stage acceptance: accepted lengths follow the closed form, neither longer nor shorter."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from specref.conformance.checks.check import Check, failed, not_applicable, not_run, passed
from specref.conformance.checks.joint import BLOCKS
from specref.conformance.judge import Judge
from specref.conformance.status import Finding, Outcome
from specref.contracts.fixtures import CHAIN_FIXTURES, Fixture, Place
from specref.contracts.verify import VerifyContract
from specref.models import as_float
from specref.rules import RULES, Rule
from specref.statistics.campaign.acceptance import compare_lengths, lower_rate
from specref.statistics.campaign.verdict import AcceptanceResult, Conformance
from specref.theory import block


def closed_form(name: str, judge: Judge) -> Outcome:
    """Accepted lengths follow the law of the declared rule: inflation is as wrong as deflation."""
    declared = judge.declared
    if declared is None:
        return not_applicable("declares no rule (rule='standard', for example)")
    if declared.accepted_lengths is None:
        return not_applicable(
            f"no closed form of the accepted lengths of {declared.name} is known"
        )
    if judge.blocks(name).sharing:
        return not_run(f"blocked by independence/rows-{name}: lengths are of dependent blocks")
    results = judge.blocks(name).report.acceptance
    if not results:
        return not_applicable(
            "an accepted EOS ends a block: lengths do not tell what was accepted"
        )
    allowance = judge.capabilities.tolerance * judge.fixture(name).lookahead
    fitting = [
        rule.name for rule in others(declared) if _fits(rule, name, judge, results, allowance)
    ]
    for result in results:
        if deviates(result, allowance):
            return failed(
                f"accepted lengths are {result.conformance} at {result.case}: mean "
                f"{result.mean:.4f}, closed form {result.expected:.4f}"
                + "".join(f"; they are those of {rule!r}" for rule in fitting),
                mean=result.mean,
                expected=result.expected,
            )
    means = ", ".join(f"{result.mean:.3f} (formula {result.expected:.3f})" for result in results)
    also = "".join(f"; {rule!r} would fit, too" for rule in fitting)
    return passed(f"mean accepted length {means}{also}")


def deviates(result: AcceptanceResult, allowance: float) -> bool:
    """Whether accepted lengths deviate by more than the claimed tolerance allows."""
    wrong = result.conformance != Conformance.CONFORMS
    return wrong and abs(result.largest_gap) > result.allowed_gap + allowance


def others(declared: Rule) -> list[Rule]:
    """The other rules with a closed form that are given drafts, if this rule is given drafts.

    Examples
    --------
    >>> [rule.name for rule in others(RULES["block"])], others(RULES["tli"])
    (['standard'], [])
    """
    given = [rule for rule in RULES.values() if rule.verify and rule.accepted_lengths]
    return [rule for rule in given if declared.verify and rule != declared]


def _fits(
    rule: Rule, name: str, judge: Judge, results: Sequence[AcceptanceResult], allowance: float
) -> bool:
    """Whether the accepted lengths are also consistent with the law of another rule."""
    fixture, lengths = judge.fixture(name), rule.accepted_lengths
    assert lengths is not None, "only rules with a closed form are compared"
    seen = [(place, blocks) for place, blocks in judge.blocks(name).blocks.items() if blocks]
    for (place, blocks), result in zip(seen, results, strict=True):
        law = lengths(fixture.target, fixture.drafter, place.context, place.lookahead)
        counts = np.zeros(fixture.lookahead + 1, dtype=np.int64)
        for tokens, times in blocks.items():
            counts[len(tokens) - 1] += times
        found = compare_lengths(place.name, counts, [float(x) for x in law], judge.options.alpha)
        if abs(found.largest_gap) > result.allowed_gap + allowance:
            return False
    return True


def bound(name: str, judge: Judge) -> Outcome:
    """No lossless rule keeps the first k drafts more often than block verification does.

    That is sum min(p, q) for k = 1. Above it, drafts are not from the declared q, or the output
    is not the target's.
    """
    found, fixture = judge.blocks(name), judge.fixture(name)
    if found.sharing:
        return not_run(f"blocked by independence/rows-{name}: lengths are of dependent blocks")
    alpha = judge.level / sum(place.lookahead for place in fixture.places)
    for place, kept in found.kept.items():
        for k, most in enumerate(_most_kept(fixture, place), 1):
            least = lower_rate(kept[k], kept[0], alpha)
            if least > most + k * judge.capabilities.tolerance + 1e-12:
                return failed(
                    f"{kept[k] / kept[0]:.4f} of blocks kept {k} drafts at {place.name}, surely "
                    f"more than {most:.4f}, the most that a lossless rule keeps: drafts not from "
                    "q, or a lossy rule",
                    kept=kept[k],
                    drafted=kept[0],
                    bound=most,
                )
    return passed("no drafts kept more often than a lossless rule can")


def _most_kept(fixture: Fixture, place: Place) -> list[float]:
    """P(the first k drafts are accepted) under block verification, for k = 1 to the lookahead."""
    target, drafter = as_float(fixture.target), as_float(fixture.drafter)
    rows = block.draft_rows(target, drafter, place.context, place.lookahead)
    survival = [float(x) for x in block.survival(target, place.context, rows)[1:]]
    return survival + [0.0] * (place.lookahead - len(survival))


CHECKS = tuple(
    check
    for name in CHAIN_FIXTURES
    for check in (
        Check(
            f"acceptance/{name}",
            BLOCKS,
            partial(closed_form, name),
            finding=Finding.ACCEPTANCE,
            law=True,
        ),
        Check(
            f"acceptance/bound-{name}",
            VerifyContract,
            partial(bound, name),
            statistical=True,
            law=True,
        ),
    )
)
