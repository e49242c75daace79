"""How often the kit says that a bug which it does not know fits one that it knows.

Samplers are judged by the stages joint and acceptance, as `specref check` does it, with the
blocks that are drawn on after a conviction. Bugs of the zoo are put to the contract ``step``, from
their exact laws: once with the whole library, to see whether they are named, and once without
them, their twins, and the same at other parameters. Bugs outside the zoo are put to ``verify``.
Run: python -m proofs_tests.benchmarks.open_set
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from proofs_tests.helpers.bugs.outside import BUGS
from specref.conformance.checks import CHECKS
from specref.conformance.diagnosis import Candidate, Diagnosis, Laws, Observed, diagnose
from specref.conformance.diagnosis.laws import CaseLaws, compared_with, law_of
from specref.conformance.judge import Judge
from specref.conformance.options import CheckOptions
from specref.conformance.status import Stage, Status
from specref.conformance.suite import laws_compared, observed
from specref.contracts.capabilities import capabilities_of
from specref.contracts.contract import Contract, Subject
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.table import STEP, VERIFY
from specref.distributions import total_variation
from specref.proofs.exact import completed
from specref.statistics.campaign.acceptance import binomial_interval
from specref.verification.exact import DrawnFromLaws
from specref.zoo import MUTANTS, OPERATORS

RULE, ALPHA = "standard", 0.05
STAGES = (Stage.JOINT, Stage.ACCEPTANCE)


@dataclass(frozen=True)
class Asked:
    """What is said of a bug: with it in the library, or not."""

    name: str
    diagnosis: Diagnosis | None

    @property
    def first(self) -> Candidate | None:
        """The first candidate, if the sampler was convicted by its law."""
        return self.diagnosis.candidates[0] if self.diagnosis else None

    @property
    def named(self) -> bool:
        """Whether the bug is the first candidate, and fits."""
        return bool(self.first and self.first.fits and self.name in self.first.ids)

    @property
    def wrong(self) -> tuple[str, ...]:
        """The candidates that are said to fit, and are not the bug."""
        found = self.diagnosis.candidates if self.diagnosis else ()
        return tuple(c.title for c in found if c.fits and self.name not in c.ids)

    @property
    def resembling(self) -> str:
        """What it is said to resemble."""
        if not (self.first and self.first.resembles):
            return ""
        return self.first.title


def seen(implementation: Callable[..., Any], contract: Contract, seed: int) -> list[Observed]:
    """The blocks that a diagnosis would be made of; none if no law or length is failed."""
    statistical = sum(one.statistical and contract in one.contracts for one in CHECKS)
    subject = Subject(implementation, capabilities_of(implementation))
    judge = Judge(subject, CheckOptions(contract=contract, seed=seed), checks=statistical)
    asked = [one for one in CHECKS if one.stage in STAGES and one.statistical]
    results = [one.run(judge) for one in asked if contract in one.contracts]
    failed = any(result.status == Status.FAILED for result in results)
    return observed(judge, draw_on=True) if failed else []


def outside(names: Iterable[str], seed: int) -> Iterator[Asked]:
    """Bugs outside the zoo, with the whole library."""
    for name in names:
        blocks = seen(BUGS[name].verify(), VERIFY, seed)
        yield Asked(name, diagnose(blocks, laws_compared(RULE)) if blocks else None)


def inside(names: Iterable[str], seed: int) -> Iterator[tuple[Asked, Asked]]:
    """Bugs of the zoo: with the whole library, and left out of it."""
    for name in names:
        blocks = seen(DrawnFromLaws(LIBRARY[name].step), STEP, seed)
        if not blocks:
            yield Asked(name, None), Asked(name, None)
            continue
        whole = diagnose(blocks, laws_compared(RULE))
        twins = next((set(c.ids) for c in whole.candidates if name in c.ids), {name})
        out = twins | {other for other in LIBRARY if family(other) == family(name)}
        rest = {other: entry for other, entry in LIBRARY.items() if other not in out}
        yield Asked(name, whole), Asked(name, diagnose(blocks, Fewer(rest)))


def family(name: str) -> str:
    """The bug without its parameter; `target-temperature-missing` is one of many."""
    return name.split(" at ")[0]


class Fewer(Laws):
    """The laws of the library, for some of its entries."""

    def of(self, observed: Observed) -> CaseLaws:
        """Those of a case."""
        known = laws_compared(RULE).of(observed)
        laws = {name: law for name, law in known.entries.items() if name in self.entries}
        return CaseLaws(known.clean, laws)


def variation(name: str) -> float:
    """The largest total variation of the completed block at a place of the kit."""
    found = []
    for fixture in CHAIN_FIXTURES.values():
        for place in fixture.places:
            case = fixture.target, fixture.drafter, place.context, place.lookahead
            law = law_of(BUGS[name].step, Observed("place", *case, {(0,): 1}))
            length = place.lookahead + 1
            emitted, text = (
                completed(blocks, fixture.target, place.context, length)
                for blocks in (law, {(): 1.0})
            )
            found.append(float(total_variation(emitted, text)))
    return max(found)


def rate(title: str, hits: int, total: int) -> str:
    """A share and its exact 95 % interval."""
    if not total:
        return f"{title}: none"
    low, high = binomial_interval(hits, total, ALPHA)
    return f"{title}: {hits} of {total}, {hits / total:.1%} [{low:.1%}, {high:.1%}]"


def line(asked: Asked, more: str = "") -> str:
    """A row of the table."""
    trials = asked.diagnosis.trials if asked.diagnosis else 0
    said = "; ".join(asked.wrong) or asked.resembling or "-"
    kind = "WRONG" if asked.wrong else "resembles" if asked.resembling else ""
    return f"{asked.name:<34}{more:>8}{trials:>10,}  {kind:<10} {said}"


LIBRARY = compared_with(RULE)
KNOWN = (*MUTANTS, *OPERATORS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    print(f"seed {seed}; outside the zoo: TV, blocks, and what is said with the whole library")
    strangers = []
    for asked in outside(BUGS, seed):
        strangers.append(asked)
        print(line(asked, f"{variation(asked.name):.3f}"), flush=True)
    print("\nof the zoo: blocks, and what is said with the bug left out of the library")
    pairs = []
    for whole, without in inside(KNOWN, seed):
        pairs.append((whole, without))
        print(line(without), "" if whole.named else f"NOT NAMED: {whole.first}", flush=True)
    print()
    for title, group in (
        ("outside the zoo, wrong fits", strangers),
        ("left out of the library, wrong fits", [without for _, without in pairs]),
    ):
        convicted = [asked for asked in group if asked.diagnosis]
        print(rate(title, sum(bool(asked.wrong) for asked in convicted), len(convicted)))
        print(rate("  resembling", sum(bool(a.resembling) for a in convicted), len(convicted)))
    convicted = [whole for whole, _ in pairs if whole.diagnosis]
    print(rate("in the library, named", sum(whole.named for whole in convicted), len(convicted)))
    met = sum(bool(asked.diagnosis) for asked in strangers)
    print(
        f"failed: {met} of {len(strangers)} outside, {len(convicted)} of {len(pairs)} of the zoo"
    )


if __name__ == "__main__":
    main()
