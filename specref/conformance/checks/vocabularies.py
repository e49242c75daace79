"""Stage joint for drafters with another vocabulary: union, TLI, SLEM and SLRS."""

from functools import partial

from specref.conformance.checks.check import Check, not_applicable, passed
from specref.conformance.checks.joint import outcome_of, refuted
from specref.conformance.judge import Judge
from specref.conformance.status import Outcome
from specref.contracts.functions import TWO_VOCABULARIES, StepContract


def on_fixture(name: str, judge: Judge) -> Outcome:
    """A campaign over single iterations, if the declared rule reads such vocabularies."""
    rules = TWO_VOCABULARIES[name].rules
    if judge.capabilities.rule not in rules:
        return not_applicable(f"a fixture for rules {', '.join(rules)}")
    return outcome_of(judge, judge.blocks(name))


def exact(name: str, judge: Judge) -> Outcome:
    """Every random path enumerated, for functions that take `chance`."""
    fixture, rules = TWO_VOCABULARIES[name], TWO_VOCABULARIES[name].rules
    if judge.capabilities.rule not in rules:
        return not_applicable(f"a fixture for rules {', '.join(rules)}")
    if "chance" not in judge.keywords:
        return not_applicable("takes no chance: cannot be enumerated")
    problem = refuted(judge, fixture, fixture.places[0], TWO_VOCABULARIES[name].longest)
    return problem or passed("proved by enumeration")


CHECKS = tuple(
    check
    for name in TWO_VOCABULARIES
    for check in (
        Check(f"joint/exact-{name}", StepContract, partial(exact, name), law=True),
        Check(
            f"joint/{name}", StepContract, partial(on_fixture, name), statistical=True, law=True
        ),
    )
)
