"""Exact laws after one draft: in large vocabularies, and at temperatures that people type."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from specref.arrays import Floats
from specref.conformance.checks.check import DRAFTS, intercepted, not_applicable, untried
from specref.conformance.checks.probed import FEW_RUNS, SPREAD, ExactCase, compared, exact
from specref.conformance.judge import Judge
from specref.conformance.status import Outcome, Status
from specref.conformance.strata.calling import ABSENT, ODD_TEMPERATURES
from specref.contracts.calling import Verifier
from specref.contracts.errors import MEMORY, told_sizes
from specref.contracts.process_state import bounded_memory
from specref.contracts.ragged import RaggedContract
from specref.models import Model
from specref.probing.blocks import ProbedBlock, completed_block
from specref.probing.probe import Probed, probe_verify
from specref.vocabulary import Tokens, Vocabulary


class Ids(NamedTuple):
    """Three ids, and the laws of target and drafter over them."""

    ids: tuple[int, int, int]
    laws: tuple[list[float], list[float]] = SPREAD


VOCABULARIES = {
    # The last id of 8 bits, the first of a second block of 1,024, the last of all.
    "vocabulary": Ids((255, 1_024, 1_026)),
    # Of three blocks of many; the second draft is one that 16 bits with a sign do not hold.
    "vocabulary-32k": Ids((20_000, 32_770, 1_023)),
    # Of which 16 bits keep less, more than 2^17 of them; one draft, since runs take long.
    "vocabulary-128k": Ids((131_079, 40_000, 65_537), ([0.5, 0.25, 0.25], [1.0, 0, 0])),
}
THREE = Vocabulary("abc")
FEW = 10_000
"""So many ids at most are in the calls of smoke that no implementation may refuse."""


def probed_vocabulary(given: Ids, judge: Judge) -> Outcome:
    """The exact joint distribution with three possible tokens of a large vocabulary."""
    if judge.unprobed:
        return not_applicable(f"cannot be probed, even after one draft: {judge.unprobed}")
    ids, laws = given
    size, possible = max(ids) + 1, list(ids)
    p, q = np.zeros((2, size)), np.zeros((1, size))
    p[:, possible], q[:, possible] = laws
    # Over the possible tokens, and one that stands for all others.
    named_as = f"lookahead 1, tokens 0, 1 and 2 are {', '.join(map(str, ids))} of {size:,}"
    names = {token: name for name, token in enumerate(ids)}
    four = Vocabulary("abcd")
    target = Model(four, lambda context: np.append(p[0, possible], 0))
    drafter = Model(four, lambda context: np.append(q[0, possible], 0))

    def named(block: Tokens) -> Tokens:
        return tuple(names.get(token, len(ids)) for token in block)

    def after(draft: int) -> tuple[Tokens, float, Probed]:
        found = probe_verify(judge.implementation, p, q, (draft,), **_few_runs(judge))
        law: dict[Tokens, float] = {}
        for block, chance in found.distribution.items():
            law[named(block)] = law.get(named(block), 0.0) + chance
        cells = tuple(
            replace(one, outcome=named(one.outcome)) if isinstance(one.outcome, tuple) else one
            for one in found.cells
        )
        return (names[draft],), q[0, draft], replace(found, distribution=law, cells=cells)

    def blocks() -> ProbedBlock:
        with bounded_memory():
            return completed_block(map(after, drafted), target, (), len(p))

    drafted = [token for token in ids if q[0, token]]
    found = intercepted(judge, blocks, judge.limits.most)
    if size > FEW and any(map(told_of_memory, found.failures)):
        return untried(f"{told_sizes((size, 1, 1))} (not enough memory)")
    return compared(found, judge, ExactCase(target, drafter, (), 1), named_as)


def told_of_memory(failure: str) -> bool:
    """Whether what was raised is lack of memory."""
    return failure.startswith("MemoryError") or any(one in failure.lower() for one in MEMORY)


def _few_runs(judge: Judge) -> dict[str, Any]:
    kind = type(judge.verifier)
    how = {"capabilities": judge.capabilities, "max_runs": FEW_RUNS}
    return {**how, "kind": kind, "known": judge.repeats}


def probed_temperatures(judge: Judge) -> Outcome:
    """The exact joint distribution at temperatures that are no powers of two."""
    if "temperature" not in judge.verifier.keywords:
        return not_applicable(f"{ABSENT} temperature")
    found = {f"{heat:g}": probed_temperature(heat, judge) for heat in ODD_TEMPERATURES}
    for heat, outcome in found.items():
        if outcome.status != Status.PASSED:
            return replace(outcome, message=f"temperature {heat}: {outcome.message}")
    worst = max(found.values(), key=lambda one: float(one.evidence["total_variation"]))
    return replace(worst, message=f"temperature {', '.join(found)}: {worst.message}")


def probed_temperature(heat: float, judge: Judge) -> Outcome:
    """The same at one temperature."""
    p, q = np.array([SPREAD[0]] * 2), np.array([SPREAD[1]])
    target, drafter = Model(THREE, lambda context: p[0]), Model(THREE, lambda context: q[0])
    how = {**_few_runs(judge), "kind": at_temperatures([heat], type(judge.verifier))}

    def after(draft: int) -> tuple[Tokens, float, Probed]:
        return (draft,), q[0, draft], probe_verify(judge.implementation, p, q, (draft,), **how)

    found = intercepted(judge, lambda: completed_block(map(after, (0, 1)), target, (), len(p)))
    case = ExactCase(target, drafter, (), 1)
    return compared(found, judge, case, f"temperature {heat:g}, lookahead 1")


def at_temperatures(heats: Sequence[float], kind: type[Verifier]) -> type[Verifier]:
    """A verifier of the contract `ragged` whose requests have these temperatures in turn."""

    def temperatures(self: Verifier, requests: int) -> Floats:
        return np.resize(np.array(heats), requests)

    return type(f"{kind.__name__}AtTemperatures", (kind,), {"temperatures": temperatures})


CHECKS = (
    *(
        exact(f"joint/probed-{name}", DRAFTS, partial(probed_vocabulary, given), large=True)
        for name, given in VOCABULARIES.items()
    ),
    exact("joint/probed-temperatures", RaggedContract, probed_temperatures),
)
