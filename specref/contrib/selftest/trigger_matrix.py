"""The matrix of triggers: which situations are judged, and by which stratum.

It is shown as a document and as a record.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from specref.arrays import Floats, Ints, one_hot_rows
from specref.chance import Sampled
from specref.conformance.options import CheckOptions
from specref.conformance.status import Stage, Status
from specref.conformance.suite import prepare
from specref.contracts.capabilities import capable
from specref.contracts.contract import Contract
from specref.contracts.table import GENERATE, STEP, TREE, VERIFY
from specref.contracts.tree import read
from specref.contrib.selftest import situations, triggers
from specref.contrib.selftest.situations import Decision, Departure
from specref.contrib.selftest.triggers import Trigger
from specref.report.document import Document, Heading, Kind, Part, bullets
from specref.report.forms import Ids
from specref.report.layout import Column, Prose, Table

BEFORE = ("smoke", "boundary", "joint")


@dataclass(frozen=True)
class Bugs:
    """The bugs and the triggers of a contract.

    * `made`: (bug, trigger) -> an implementation of the contract.
    * `elsewhere`: The stages that are asked what strata do not find.
    """

    contract: Contract
    triggers: Sequence[Trigger]
    bugs: Sequence[Any]
    made: Callable[[Any, Any], Callable[..., Any]]
    elsewhere: tuple[str, ...]

    def at(self, trigger: Trigger) -> Sequence[Any]:
        """The bugs that act where a trigger holds: its own, or those of all."""
        return trigger.bugs or self.bugs


def verifier(bug: triggers.BaseBug, when: Trigger) -> Callable[..., Any]:
    """A verifier of batches that has a bug in a situation, and is right elsewhere."""
    return capable(rule="standard", recovery="race")(triggers.triggered(bug, when))


def tree_verifier(bug: Departure, when: Trigger) -> Callable[..., tuple[Ints, Ints]]:
    """A verifier of trees, row by row; each counts its own calls."""
    calls = itertools.count()

    def verify(
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        parents: Ints,
        *,
        rng: np.random.Generator,
    ) -> tuple[Ints, Ints]:
        call, (rows, most, size) = next(calls), target_probs.shape
        q = one_hot_rows(draft_tokens, size) if draft_probs is None else draft_probs
        tokens = np.full((rows, most), -1)
        nodes = (draft_tokens >= 0).sum(axis=1).tolist()
        for row, above in enumerate(parents.tolist()):
            target, tree = read(target_probs[row], q[row], draft_tokens[row].tolist(), above)
            laws = draft_probs is not None
            at = Decision(call, nodes[row], size, row=row, rows=rows, laws=laws)
            block = situations.verified(bug, when, at, target, (), tree, Sampled(rng))
            tokens[row, : len(block)] = block
        return tokens, (tokens >= 0).sum(axis=1)

    return verify


ALL: Mapping[str, Bugs] = MappingProxyType(
    {
        one.contract.name: one
        for one in (
            Bugs(
                VERIFY, triggers.TRIGGERS, triggers.BASE_BUGS, verifier,
                (*BEFORE, "independence", "iterations"),
            ),
            Bugs(
                STEP, situations.STEPS, situations.CALL_BUGS, situations.triggered_step,
                BEFORE,
            ),
            Bugs(
                GENERATE, situations.TEXTS, situations.CALL_BUGS, situations.triggered_text,
                ("smoke", "end-to-end"),
            ),
            Bugs(
                TREE, situations.TREES, situations.TREE_BUGS, tree_verifier,
                BEFORE,
            ),
        )
    }
)  # fmt: skip


WANTED = 0.95
Key = tuple[str, str]


@dataclass(frozen=True)
class TriggerRow:
    """What finds a bug that acts in one situation.

    * `killers`: The checks of strata that fail it; only the first, unless all were asked for.
    * `elsewhere`: The first other check that fails it, where no stratum was asked to, or none
      does.
    """

    trigger: str
    bug: str
    killers: tuple[str, ...]
    elsewhere: str = ""


@dataclass(frozen=True)
class TriggerMatrix:
    """The rows of all triggers and base bugs that were tried."""

    rows: tuple[TriggerRow, ...]
    seed: int

    @property
    def missed(self) -> tuple[Key, ...]:
        """The (trigger, bug) that no check fails."""
        return tuple(
            (row.trigger, row.bug) for row in self.rows if not (row.killers or row.elsewhere)
        )

    @property
    def share(self) -> float:
        """The share that some check fails."""
        return 1 - len(self.missed) / len(self.rows)

    @property
    def triggers(self) -> list[str]:
        """Those that were tried."""
        return list(dict.fromkeys(row.trigger for row in self.rows))


def keys_of(triggers: Sequence[str] | None, bugs: Sequence[str] | None = None) -> list[Key]:
    """All triggers with all their bugs, or some of them; `ValueError` for an unknown id."""
    keys = [
        (trigger.id, bug.id)
        for known in ALL.values()
        for trigger in known.triggers
        for bug in known.at(trigger)
    ]
    ids = map(set, zip(*keys, strict=True))
    for name, given, known_ids in zip(("triggers", "bugs"), (triggers, bugs), ids, strict=True):
        for id_ in given or ():
            if id_ not in known_ids:
                some = ", ".join(sorted(known_ids))
                raise ValueError(f"{name} has {id_!r}: expected some of {some}")
    return [
        (trigger, bug)
        for trigger, bug in keys
        if (triggers is None or trigger in triggers) and (bugs is None or bug in bugs)
    ]


def trigger_matrix(
    triggers: Sequence[str] | None = None,
    bugs: Sequence[str] | None = None,
    *,
    seed: int = 0,
    every: bool = False,
    executor: Executor | None = None,
    advance: Callable[[str], None] = lambda id_: None,
) -> TriggerMatrix:
    """Put bugs that act in one situation to the checks.

    * `triggers`, `bugs`: Some of them; all by default.
    * `every`: Whether all strata are tried, not only as many as it takes to find a bug.
    """
    work = partial(trigger_row, seed=seed, every=every)
    rows = []
    keys = keys_of(triggers, bugs)
    for row in executor.map(work, keys) if executor else map(work, keys):
        rows.append(row)
        advance(row.trigger)
    return TriggerMatrix(tuple(rows), seed)


def bugs_of(trigger: str) -> Bugs:
    """The bugs among which a trigger is, by its id."""
    return next(one for one in ALL.values() if any(trigger == x.id for x in one.triggers))


def trigger_row(key: Key, seed: int = 0, every: bool = False) -> TriggerRow:
    """The row of one trigger and one base bug."""
    known = bugs_of(key[0])
    trigger = next(one for one in known.triggers if one.id == key[0])
    bug = next(one for one in known.at(trigger) if one.id == key[1])
    sampler, contract = known.made(bug, trigger), known.contract
    failing = failures(sampler, contract, (Stage.STRATA,), seed)
    killers = tuple(failing) if every else tuple(next(failing, "").split())
    rest = failures(sampler, contract, known.elsewhere, seed)
    return TriggerRow(*key, killers, "" if killers else next(rest, ""))


def failures(
    sampler: Callable[..., object], contract: Contract, stages: Sequence[str], seed: int
) -> Iterator[str]:
    """The ids of the checks that fail, one after the other."""
    options = CheckOptions(contract=contract, only=[f"{stage}/" for stage in stages], seed=seed)
    judge, checks = prepare(sampler, options)
    for one in checks:
        if one.run(judge).status == Status.FAILED:
            yield one.id


KINDS = {trigger.id: trigger.kind for one in ALL.values() for trigger in one.triggers}


def triggers_document(matrix: TriggerMatrix) -> Document:
    """What finds each bug in each situation; on pages, how much of each contract."""
    good = matrix.share >= WANTED
    told = Prose(total(matrix), "bold green" if good else "bold red")
    headline = "Enough of them are found" if good else "Too few of them are found"
    columns = [Column("situation"), Column("bug"), Column("found by", folds=True)]
    found = [
        (row.trigger, row.bug, ", ".join(row.killers) or row.elsewhere or "missed")
        for row in matrix.rows
    ]
    parts: list[Part] = [Table(columns, found), "", told]
    kind: Kind = "good" if good else "bad"
    more = [Prose(ABOUT), *_by_contract(matrix)]
    return Document("specref zoo --triggers", kind, headline, parts, more)


def total(matrix: TriggerMatrix) -> str:
    """How many were found."""
    found = len(matrix.rows) - len(matrix.missed)
    return (
        f"{found} of {len(matrix.rows)} found ({matrix.share:.1%}): {len(matrix.triggers)} "
        f"situations, seed {matrix.seed}"
    )


@dataclass(frozen=True)
class BugRecord:
    """What finds a bug that acts in one situation."""

    trigger: Annotated[str, "The situation in which the bug acts."]
    kind: str
    bug: str
    killers: Annotated[Ids, "Situations that fail it."]
    elsewhere: Annotated[str | None, "The check that fails it, where no situation does."]


@dataclass(frozen=True)
class TriggersRecord:
    """What ``specref zoo --triggers`` writes as JSON."""

    seed: int
    share: Annotated[float, "Of the bugs that were found."]
    missed: Sequence[Ids]
    rows: Sequence[BugRecord]


def triggers_record(matrix: TriggerMatrix) -> TriggersRecord:
    """The matrix with a record for each situation and bug."""
    rows = [
        BugRecord(row.trigger, KINDS[row.trigger], row.bug, row.killers, row.elsewhere)
        for row in matrix.rows
    ]
    return TriggersRecord(matrix.seed, matrix.share, matrix.missed, rows)


def _by_contract(matrix: TriggerMatrix) -> list[Part]:
    """Of each contract how many are found, its situations by kind, and what is missed."""
    parts: list[Part] = []
    for contract, known in ALL.items():
        rows = tuple(row for row in matrix.rows if bugs_of(row.trigger) is known)
        if not rows:
            continue
        part = TriggerMatrix(rows, matrix.seed)
        kinds: dict[str, list[str]] = {}
        for trigger in part.triggers:
            kinds.setdefault(KINDS[trigger], []).append(f"`{trigger}`")
        stages = " and ".join([", ".join(known.elsewhere[:-1]), known.elsewhere[-1]])
        told = f"{total(part)}. What no situation fails is put to the stages {stages}."
        missed = ", ".join(f"`{bug}` at `{trigger}`" for trigger, bug in part.missed)
        parts += [
            *(Heading(f"Contract {contract}"), Prose(told)),
            *bullets([f"{kind}: {', '.join(ids)}" for kind, ids in kinds.items()]),
            Prose(f"Missed: {missed or 'none'}."),
        ]
    return parts


ABOUT = (
    "A bug may act in one situation alone: at one batch size, for one kind of row, when something "
    "is not passed. Each situation was met by an implementation that is right everywhere else, "
    "with each of these bugs. It is found by the first situation that fails it or, where none "
    "does, "
    "by the first of the other checks that are named below."
)
