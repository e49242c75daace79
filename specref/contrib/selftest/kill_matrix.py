"""The kill matrix: every entry of the zoo under every check that can be put to it.

A mutant survives if no check fails it; a control fails if any does; a check is idle if it fails
nobody. Steps of a rule that the contract ``step`` knows are put to it through their exact laws,
and to ``verify`` where they can verify drafts that are given. Other steps, and loops that carry
something, are proved or refuted on the pairs of their rule, and put to ``tree`` where they verify
trees that are given. Decode loops, verifiers and figures are put to their own contract.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from specref.chance import Sampled
from specref.conformance.checks import CHECKS
from specref.conformance.options import CheckOptions
from specref.conformance.status import Stage, Status
from specref.conformance.suite import prepare
from specref.contracts.capabilities import Claims, capable
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.table import GENERATE, GENERATE_BATCH, METRICS, STEP, TREE, contract_named
from specref.contracts.tree import as_verifier as as_tree_verifier
from specref.models import Model
from specref.proofs.batches import is_jointly_lossless
from specref.proofs.lazy import DrawnFromLaws
from specref.rules import RULES
from specref.suggestions import did_you_mean
from specref.vocabulary import Tokens
from specref.zoo import ALL, Entry, fixtures_for, total_variation_on
from specref.zoo.batch_loops import as_generate
from specref.zoo.entry import Generate
from specref.zoo.parts.batched import as_verifier

BY_DRAFTS = ("accept", "residual", "bonus")
ROWWISE = ("smoke/", "replay/", "boundary/")
TEXT_LOOKAHEAD = 2
EXACT, RARE = "joint/exact", "boundary/rare-draft"
EVERYWHERE = "joint/everywhere"
TREES = ("boundary/greedy-tree", "joint/probed")
SAMPLED = ("joint/", "independence/", "iterations/")
# Of situations there is a matrix of its own: see `trigger_matrix`.
STAGES = tuple(stage for stage in Stage if stage != Stage.STRATA)
Advance = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """The result for one entry of the zoo.

    * `id`: Of the entry.
    * `killers`: The checks that find something wrong, the first of each stage being the cause: a
      failure, no answer, a situation in which it cannot be tried, or an edge too rare to fail for.
    * `asked`: The checks that were put to it.
    * `variation`: The largest exact total variation on the pairs of its rule, or on its own case;
      if the first failure is enough, that on the first pair where there is one.
    """

    id: str
    killers: tuple[str, ...]
    asked: frozenset[str]
    variation: float | None

    @property
    def entry(self) -> Entry:
        return ALL[self.id]

    @property
    def problem(self) -> str | None:
        """A surviving mutant, or a control that failed."""
        if self.entry.lossless and self.killers:
            return f"control {self.entry.id} fails {', '.join(self.killers)}"
        if not self.entry.lossless and not self.killers:
            return f"mutant {self.entry.id} survives"
        return None


@dataclass(frozen=True)
class Matrix:
    """All rows, and the problems of the kit or the zoo."""

    rows: tuple[Row, ...]
    seed: int
    detect_tv: float
    whole: bool = True

    @property
    def idle(self) -> tuple[str, ...]:
        """The checks that were put to a mutant of the whole zoo and fail none."""
        if not self.whole:
            return ()
        asked = {id_ for row in self.rows for id_ in row.asked if not row.entry.lossless}
        killing = {id_ for row in self.rows for id_ in row.killers if not row.entry.lossless}
        return tuple(one.id for one in CHECKS if one.id in asked - killing)

    @property
    def missed(self) -> Mapping[str, tuple[str, ...]]:
        """The killed mutants that each fixture alone would miss: its campaign passes them."""
        return {
            name: tuple(
                row.entry.id
                for row in self.rows
                if row.killers and f"joint/{name}" in row.asked - set(row.killers)
            )
            for name in CHAIN_FIXTURES
        }

    @property
    def problems(self) -> tuple[str, ...]:
        """One line each; none if the zoo is green."""
        rows = [row.problem for row in self.rows if row.problem]
        return (*rows, *(f"check {id_} is idle: it fails no mutant" for id_ in self.idle))

    @property
    def counts(self) -> Mapping[str, int]:
        """How many mutants and controls there are, and how many are as they should be."""
        mutants = [row for row in self.rows if not row.entry.lossless]
        controls = [row for row in self.rows if row.entry.lossless]
        return {
            "mutants": len(mutants),
            "killed": sum(bool(row.killers) for row in mutants),
            "controls": len(controls),
            "passed": sum(not row.killers for row in controls),
        }


def kill_matrix(
    ids: Sequence[str] | None = None,
    *,
    stages: Sequence[str] = STAGES,
    detect_tv: float = 0.05,
    seed: int = 0,
    first: bool = False,
    executor: Executor | None = None,
    advance: Advance = lambda id_: None,
) -> Matrix:
    """Put the checks to the zoo.

    * `detect_tv`: As in `check`. A mutant need not be that far from the target to be found.
    * `first`: Stop at the first check that fails an entry: enough to see whether mutants are
      killed.

    >>> matrix = kill_matrix(["counts-bonus-as-accepted"])
    >>> matrix.rows[0].killers
    ('acceptance/reported',)
    """
    for id_ in ids or ():
        if id_ not in ALL:
            raise ValueError(f"ids has {id_!r}: not in the zoo{did_you_mean(id_, ALL)}")
    options = {"detect_tv": detect_tv, "seed": seed}
    work = partial(row_of, options=options, stages=stages, first=first)
    asked, rows = list(ALL if ids is None else ids), []
    for row in executor.map(work, asked) if executor else map(work, asked):
        rows.append(row)
        advance(row.id)
    whole = ids is None and set(stages) == set(STAGES) and not first
    return Matrix(tuple(rows), seed, detect_tv, whole)


def row_of(id_: str, options: Mapping[str, Any], stages: Sequence[str], first: bool) -> Row:
    """The row of one entry."""
    entry = ALL[id_]
    killers: dict[str, None] = {}
    asked: set[str] = set()
    variation = variation_of(entry, first)
    if not _has_contract(entry):
        asked.add(EXACT)
        killers |= {} if variation == 0 else {EXACT: None}
    for implementation, wanted in _asked(entry, options, stages):
        judge, checks = prepare(implementation, wanted)
        # A proof for every p and q takes longer than what refutes most mutants on the pairs.
        for one in sorted(checks, key=lambda one: one.id == EVERYWHERE) if first else checks:
            if first and killers:
                break
            result = one.run(judge)
            if result.status != Status.NOT_APPLICABLE:
                asked.add(result.id)
                told = result.finding is not None or result.not_tried
                killers |= {result.id: None} if told else {}
    return Row(id_, tuple(killers), frozenset(asked), variation)


def variation_of(entry: Entry, first: bool) -> float | None:
    """The largest exact total variation of an entry, if it is a step or a loop that carries.

    The first that is not 0, if that is enough.
    """
    if not (entry.is_step or entry.iterate or entry.batch_step):
        return None
    pairs = [entry.case] if entry.case else fixtures_for(entry.rule).values()
    found: list[float] = []
    for fixture in pairs:
        if first and any(found):
            break
        try:
            if entry.batch_step is None:
                found.append(float(total_variation_on(entry, fixture)))
            else:
                case = fixture.target, fixture.drafter, [fixture.context] * 2, fixture.lookahead
                joint = is_jointly_lossless(entry.on(fixture), *case)
                found.append(float(joint.total_variation))
        except (ValueError, ZeroDivisionError):
            continue  # it crashes there
    return max(found, default=None)


def _has_contract(entry: Entry) -> bool:
    """Whether all checks of a contract can be put to an entry; the rest is proved or refuted."""
    if any((entry.make, entry.generate, entry.generate_batch, entry.figure)):
        return True
    # The kit knows the lengths that these rules accept, and samples their steps.
    known = entry.rule in RULES and RULES[entry.rule].sampled
    return entry.is_step and known and entry.case is None


def _asked(
    entry: Entry, options: Mapping[str, Any], stages: Sequence[str]
) -> Iterator[tuple[Callable[..., Any], CheckOptions]]:
    """What of an entry is judged, and by which checks."""
    whole = {**options, "only": [f"{stage}/" for stage in stages]}
    if entry.make is not None:
        # Controls are lossless in another way: their blocks and accepted lengths are their own.
        claims: Claims = {} if entry.lossless else {"rule": "standard", "recovery": "race"}
        wanted = CheckOptions(contract=contract_named(entry.contract), **whole)
        yield capable(**claims)(entry.make()), wanted
    elif entry.generate is not None:
        yield _generate(entry.generate), CheckOptions(contract=GENERATE, **whole)
    elif entry.generate_batch is not None:  # whose law is judged in situations
        whole["only"] = [*whole["only"], f"{Stage.STRATA}/"]
        yield as_generate(entry.generate_batch), CheckOptions(contract=GENERATE_BATCH, **whole)
    elif entry.figure is not None:
        metric = {"metric": entry.rule}
        yield entry.figure, CheckOptions(contract=METRICS, claims=metric, **whole)
    elif _has_contract(entry):
        yield from _asked_of_step(entry, options, stages)
    elif entry.verify_tree is not None:
        only = [id_ for id_ in TREES if id_.split("/")[0] in stages]
        if only:
            verify = as_tree_verifier(entry.verify_tree)
            yield verify, CheckOptions(contract=TREE, only=only, **options)


def _asked_of_step(
    entry: Entry, options: Mapping[str, Any], stages: Sequence[str]
) -> Iterator[tuple[Callable[..., Any], CheckOptions]]:
    step = {"contract": STEP, "algorithm": entry.rule, **options}
    yield entry.step, CheckOptions(only=[EXACT, f"{EXACT}-", EVERYWHERE], **step)
    # Controls are lossless in another way: their accepted lengths are their own.
    own = SAMPLED if entry.lossless else (*SAMPLED, "acceptance/")
    if only := [stage for stage in own if stage.rstrip("/") in stages]:
        yield DrawnFromLaws(entry.step), CheckOptions(only=only, **step)
    # Rows that are verified one by one take too long for checks of a hundred thousand.
    rowwise = [one.id for one in CHECKS if one.id.startswith(ROWWISE) and one.id != RARE]
    only = [id_ for id_ in rowwise if id_.split("/")[0] in stages]
    by_coins = RULES[entry.rule].coins is not None and entry.stage in BY_DRAFTS
    if only and by_coins and _verifies(entry):
        claims: Claims = {} if entry.lossless else {"rule": entry.rule, "recovery": "race"}
        verify = capable(**claims)(as_verifier(entry.step))
        yield verify, CheckOptions(only=only, **options)


def _verifies(entry: Entry) -> bool:
    """Whether a step can verify drafts that are given."""
    p = np.array([[[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.5, 0.25, 0.25]]])
    q = np.array([[[0.25, 0.5, 0.25], [0.5, 0.5, 0.0]]])
    try:
        for seed in range(50):
            rng = np.random.default_rng(seed)
            as_verifier(entry.step)(p, q, np.array([[1, 0]]), rng=rng)
    except ValueError:
        return False  # it asks for coins that a verifier does not have
    return True


def _generate(loop: Generate) -> Callable[..., Tokens]:
    def generate(
        target: Model, drafter: Model, context: Tokens, tokens: int, rng: np.random.Generator
    ) -> Tokens:
        return loop(target, drafter, context, TEXT_LOOKAHEAD, tokens, Sampled(rng))

    return generate
