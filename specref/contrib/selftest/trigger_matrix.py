"""The matrix of triggers: which situations are judged, and by which stratum."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

from specref.conformance.options import CheckOptions
from specref.conformance.status import Stage, Status
from specref.conformance.suite import prepare
from specref.contracts.contract import Contract
from specref.contrib.selftest.triggered import ALL, Bugs, bugs_at

WANTED = 0.95
Key = tuple[str, str]


@dataclass(frozen=True)
class TriggerRow:
    """What finds a bug that acts in one situation.

    Attributes
    ----------
    trigger, bug : str
        Their ids.
    killers : tuple of str
        The checks of strata that fail it; only the first, unless all were asked for.
    elsewhere : str
        The first other check that fails it, where no stratum was asked to, or none does.
    """

    trigger: str
    bug: str
    killers: tuple[str, ...]
    elsewhere: str = ""

    @property
    def found(self) -> bool:
        """Whether a run of checks fails it."""
        return bool(self.killers or self.elsewhere)


@dataclass(frozen=True)
class TriggerMatrix:
    """The rows of all triggers and base bugs that were tried."""

    rows: tuple[TriggerRow, ...]
    seed: int

    @property
    def missed(self) -> tuple[Key, ...]:
        """The (trigger, bug) that no check fails."""
        return tuple((row.trigger, row.bug) for row in self.rows if not row.found)

    @property
    def share(self) -> float:
        """The share that some check fails."""
        return 1 - len(self.missed) / len(self.rows)

    @property
    def by_trigger(self) -> Mapping[str, tuple[TriggerRow, ...]]:
        """The rows of each trigger."""
        found: dict[str, list[TriggerRow]] = {}
        for row in self.rows:
            found.setdefault(row.trigger, []).append(row)
        return {trigger: tuple(rows) for trigger, rows in found.items()}


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

    Parameters
    ----------
    triggers, bugs : sequence of str, optional
        Some of them; all by default.
    seed : int
    every : bool
        Whether all strata are tried, not only as many as it takes to find a bug.
    executor : concurrent.futures.Executor, optional
        Runs the rows; results do not depend on it.
    advance : callable
        Told each trigger when one of its rows is done.

    Raises
    ------
    ValueError
        An unknown id.

    Examples
    --------
    >>> trigger_matrix(["one-draft"], ["accepts-every-draft"]).rows[0].killers
    ('strata/one-draft',)
    """
    known = (
        {one.id for bugs_ in ALL.values() for one in bugs_.triggers},
        {one.id for known in ALL.values() for at in known.triggers for one in bugs_at(known, at)},
    )
    for name, given, ids in zip(("triggers", "bugs"), (triggers, bugs), known, strict=True):
        for id_ in given or ():
            if id_ not in ids:
                raise ValueError(f"{name} has {id_!r}: expected some of {', '.join(sorted(ids))}")
    keys = [
        (trigger.id, bug.id)
        for known_ in ALL.values()
        for trigger in known_.triggers
        for bug in bugs_at(known_, trigger)
        if (triggers is None or trigger.id in triggers) and (bugs is None or bug.id in bugs)
    ]
    work = partial(trigger_row, seed=seed, every=every)
    rows = []
    for row in executor.map(work, keys) if executor else map(work, keys):
        rows.append(row)
        advance(row.trigger)
    return TriggerMatrix(tuple(rows), seed)


def bugs_of(trigger: str) -> Bugs:
    """The bugs among which a trigger is, by its id.

    Examples
    --------
    >>> str(bugs_of("tree-row-0").contract)
    'tree'
    """
    return next(one for one in ALL.values() if any(trigger == x.id for x in one.triggers))


def trigger_row(key: Key, seed: int = 0, every: bool = False) -> TriggerRow:
    """The row of one trigger and one base bug."""
    known = bugs_of(key[0])
    trigger = next(one for one in known.triggers if one.id == key[0])
    bug = next(one for one in bugs_at(known, trigger) if one.id == key[1])
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
