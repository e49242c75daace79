"""What is asked of a sampler that has failed, so that its failure is explained."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import cycle, islice
from types import FrameType
from typing import Any

import numpy as np

from specref.arrays import Floats, Ints
from specref.conformance.checks.check import Check, few_threads
from specref.conformance.judge import Judge
from specref.conformance.status import (
    CheckResult,
    Finding,
    Outcome,
    Stage,
    Status,
    blocker,
)
from specref.conformance.trial import tallied
from specref.conformance.wrong_decision import WrongDecision, short
from specref.contracts.batch import Batch
from specref.contracts.contract import ModelContract
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import CHAIN_FIXTURES, Place
from specref.contracts.functions import (
    BatchCaller,
    DrafterContract,
    GenerateBatchContract,
    GenerateContract,
    StepContract,
)
from specref.contracts.sampling import giver, until_end
from specref.contracts.timeout import Deadline, within
from specref.contracts.verify import VerifyContract
from specref.distributions import Probabilities
from specref.models import Model, as_float
from specref.statistics import TwoSample
from specref.statistics.campaign.verdict import Verdict
from specref.vocabulary import Tokens

CALLS, SECONDS, ROWS, DRAFTS, SIZE = 500, 2.0, 8, 3, 6
"""Calls beside neighbours of each kind, and seconds for all; the shape of a call."""
ALPHA = 1e-6
"""The chance that one comparison finds a difference where there is none."""
KEPT, REJECTED = ("kept", "otherwise kept"), ("rejected", "otherwise rejected")


def depends_on_others(judge: Judge) -> str:
    """What of other rows a row's block depends on, in words; empty if nothing was seen."""
    claims = judge.capabilities
    if not isinstance(judge.contract, VerifyContract) or claims.batch == 1 or claims.greedy:
        return ""
    blocks = drawn(judge)
    apart = {
        pair: differ([blocks[kind] for kind in pair])
        for pair in (KEPT, REJECTED, (KEPT[0], REJECTED[0]))
    }
    calls = f"{min(map(len, blocks.values()))} calls of each"
    if apart[KEPT] or apart[REJECTED]:
        return (
            "a row's block depends on other rows' distributions or drafts: next to rows with "
            f"others, of which as many are kept, it has another distribution ({calls})"
        )
    if apart[KEPT[0], REJECTED[0]]:
        return (
            "a row's block depends on other rows' verdicts: next to rows whose drafts are all "
            f"kept it has another distribution than next to rows of which none is ({calls})"
        )
    return ""


def differ(both: list[Ints]) -> bool:
    """Whether two samples of blocks have different laws."""
    least = min(map(len, both))
    if not least:
        return False
    test = TwoSample(alpha=ALPHA, eps=None)
    test.add(both[0][:least], both[1][:least])
    return test.report().verdict == Verdict.LOSSY


def drawn(judge: Judge) -> dict[str, Ints]:
    """{kind of neighbours: blocks of one row beside them}, as many as there is time for."""
    rng, verifier = judge.rng("beside"), judge.called()
    rows = min(ROWS, judge.capabilities.batch or ROWS)
    p, q = rng.dirichlet(np.full(SIZE, 2.0), (2, DRAFTS + 1))
    blocks: dict[str, list[Ints]] = {kind: [] for kind in (*KEPT, *REJECTED)}
    until = time.perf_counter() + SECONDS
    with suppress(BrokenContractError):
        for kind in cycle(blocks):
            batch = beside(kind, rows, p, q[:DRAFTS], rng)
            blocks[kind].append(verifier(batch, rng).tokens[rows // 2])
            late = time.perf_counter() > until
            if kind == REJECTED[1] and (late or len(blocks[kind]) == CALLS):
                break
    empty = np.empty((0, DRAFTS + 1), dtype=np.int64)
    return {kind: np.array(found) if found else empty for kind, found in blocks.items()}


def beside(kind: str, rows: int, p: Floats, q: Floats, rng: np.random.Generator) -> Batch:
    """One row with these laws in the middle of others of one kind."""
    ids, half = np.arange(SIZE), SIZE // 2
    low, high = (np.where(chosen, 1 / half, 0.0) for chosen in (ids < half, ids >= half))
    other_p, other_q = {
        KEPT[0]: (low, low),
        KEPT[1]: (high, high),
        REJECTED[0]: (low, high),
        REJECTED[1]: (high, low),
    }[kind]
    target, draft = np.tile(other_p, (rows, DRAFTS + 1, 1)), np.tile(other_q, (rows, DRAFTS, 1))
    target[rows // 2], draft[rows // 2] = p, q
    uniforms = rng.random((rows, DRAFTS, 1))
    drafts = (uniforms > draft.cumsum(axis=2)).sum(axis=2).clip(max=SIZE - 1)
    return Batch(target, draft, drafts, np.full(rows, DRAFTS), np.zeros(rows, dtype=np.int64))


ASKING = (GenerateContract, GenerateBatchContract, StepContract, DrafterContract)
WATCHED_CALLS, WATCHED_SECONDS, LENGTH, LOOKAHEAD, SHOWN = 120, 2.0, 24, 4, 8
"""Calls, seconds for them, tokens and drafts that each asks for, tokens of a context in words."""


class Watched(Model):
    """A model that notes what it is asked about; a new one for each call remembers nothing."""

    def __init__(self, given: Model) -> None:
        super().__init__(given.vocabulary, given.next_token)
        self.asked: list[Tokens] = []

    def next_token(self, context: Sequence[int]) -> Probabilities:
        """The distribution after a context, which is noted."""
        row = super().next_token(context)
        self.asked.append(tuple(map(int, context)))
        return row


@dataclass(frozen=True)
class Seen:
    """A text, and what the model was asked about in the call that gave it."""

    who: str
    context: Tokens
    text: Tokens
    asked: tuple[Tokens, ...]

    def own(self, position: int) -> Tokens:
        """All tokens before one."""
        return (*self.context, *self.text[:position])

    @property
    def missing(self) -> int | None:
        """The position of the first token whose own context was never asked about."""
        found = (i for i in range(len(self.text)) if self.own(i) not in self.asked)
        return next(found, None)

    def told(self, position: int) -> str:
        """What was asked about instead, and which calls belong to the tokens before."""
        own, before = self.own(position), [self.asked.index(self.own(i)) for i in range(position)]
        drawn = [self.own(i) for i in range(len(self.text))]
        # Rather a context that is none of this text's, and the first after the token before it.
        later = [*self.asked[before[-1] + 1 :], *self.asked] if before else self.asked
        others = [c for c in later if c not in drawn] or list(later)
        about = ", nor about anything else"
        if others:
            nearest = min(others, key=lambda other: apart(own, other))
            about = f", but about {shortened(nearest)}"
        calls = ", ".join(str(1 + call) for call in before)
        whose = f"; the tokens before it have calls {calls} of the {self.who}" * bool(before)
        return (
            f"for the token at position {position} after {shortened(own)} the {self.who} was "
            f"never asked about {shortened(own)}{about}{whose}"
        )


def apart(own: Tokens, other: Tokens) -> int:
    """How many tokens have to be changed, left out or put in.

    Examples
    --------
    >>> apart((0, 1, 2), (0, 2)), apart((0, 1, 2), (0, 1, 3)), apart((1,), (1, 2, 3))
    (1, 1, 2)
    """
    row = list(range(len(other) + 1))
    for i, token in enumerate(own, 1):
        before, row[0] = row[0], i
        for j, there in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (token != there))
    return row[-1]


def shortened(context: Tokens) -> str:
    """The end of a context, in words.

    Examples
    --------
    >>> shortened((0, 1)), shortened(tuple(range(20)))
    ('(0, 1)', '(…, 12, 13, 14, 15, 16, 17, 18, 19)')
    """
    if len(context) <= SHOWN:
        return str(context)
    return f"(…, {', '.join(map(str, context[-SHOWN:]))})"


def asked_elsewhere(judge: Judge) -> str:
    """About which context a failed function of models asks instead of a token's own, in words.

    Empty if it asks about each token's own, is none of models, or cannot be called.
    """
    if not isinstance(judge.contract, ASKING):
        return ""
    seen: list[Seen] = []
    deadline = Deadline()

    def watch() -> None:
        until = time.perf_counter() + WATCHED_SECONDS
        for one in watching(judge):
            seen.append(one)
            deadline.restart()
            if time.perf_counter() > until:
                break

    with suppress(BrokenContractError):  # what it gave before it raised is as good
        within(judge.timeout, watch, deadline)
    found = [(len(one.own(at)), one, at) for one in seen if (at := one.missing) is not None]
    if not found:
        return ""
    _, shortest, position = min(found, key=lambda one: one[0])
    return f"{shortest.told(position)} (so in {len(found)} of {len(seen)} calls)"


def watching(judge: Judge) -> Iterator[Seen]:
    """Calls on fixtures, each with models of its own."""
    give, rng = giver(judge.implementation), judge.rng("watched")
    fixtures = map(judge.fixture, CHAIN_FIXTURES)
    places = [(fixture, place) for fixture in fixtures for place in fixture.places]
    for fixture, place in islice(cycle(places), WATCHED_CALLS):
        target, drafter = (Watched(as_float(m)) for m in (fixture.target, fixture.drafter))
        who, model, contexts = "target", target, [place.context]
        if isinstance(judge.contract, DrafterContract):
            drafts, _ = give((drafter, place.context, LOOKAHEAD), rng)
            who, model, texts = "drafter", drafter, [drafts]
        elif isinstance(judge.contract, GenerateBatchContract):
            contexts = [one.context for one in fixture.places]
            own = replace(fixture, target=target)
            texts = BatchCaller(judge.implementation)(own, contexts, LENGTH, rng)
        else:
            asked = LENGTH if isinstance(judge.contract, GenerateContract) else place.lookahead
            texts = [give((target, drafter, place.context, asked), rng)]
        for context, raw in zip(contexts, texts, strict=True):
            text = until_end(fixture, tuple(np.asarray(raw, dtype=np.int64).tolist()))
            yield Seen(who, context, text, tuple(model.asked))


Counts = Mapping[Place, Counter[Tokens]]
BLOCKS = 200_000
DRAWING_SECONDS = 20.0
LARGEST = 1 << 14
EXPLAINING, CHEAP = 10.0, 1.5
"""Seconds for strata that a failure blocks, and the most weight of one that is worth them."""


def explanation(result: CheckResult, judge: Judge) -> str:
    """Why the first failure of a law, or of independence, may have come about; empty if unknown.

    It is asked for once: other failures mostly have the same reason. The exact law of one row that
    is alone needs no other rows.
    """
    alone = result.exact and not isinstance(judge.contract, ModelContract)
    if judge.explained or result.status != Status.FAILED or not result.lossy or alone:
        return ""
    judge.explained = True
    with few_threads():
        return asked_elsewhere(judge) or depends_on_others(judge)


def explains(one: Check, before: Sequence[CheckResult]) -> bool:
    """Whether a blocked check may tell in which situations a sampler fails.

    Cheap strata may, if blocks are independent: their bets take that for granted. Each has its own
    share of alpha, whether it is blocked or not. Nothing that hangs is called again.
    """
    if one.stage != Stage.STRATA or one.weight > CHEAP:
        return False
    silent = {Finding.UNANSWERED, Finding.DEPENDENCE}
    return blocker(Stage.JOINT, before) is None and not any(r.finding in silent for r in before)


def explained(
    one: Check,
    judge: Judge,
    before: Sequence[CheckResult],
    run: Callable[[Check], CheckResult],
) -> CheckResult:
    """The result of a check that a failure blocks, if `explains`; not_run if time is short.

    All of them together have 10 s. What one has drawn when they end says nothing, unless it has
    decided by then.
    """
    spent = sum(result.seconds for result in before if result.stage == Stage.STRATA)
    given = min(EXPLAINING - spent, judge.limit.left())
    until, advance, late = time.perf_counter() + given, judge.advance, False
    seconds = 0.0

    def in_time(trials: int) -> None:
        nonlocal late
        advance(trials)
        late = time.perf_counter() > until
        if late:
            raise TimeoutError(f"{EXPLAINING:g} s are over")

    if given > 0:
        judge.advance = in_time
        try:
            result = run(one)
        finally:
            judge.advance = advance
        if not late:
            return result
        seconds = result.seconds
    why = (
        f"blocked by {blocker(one.stage, before)}; other situations were tried for "
        f"{EXPLAINING:g} s"
    )
    return one.result(Outcome(Status.NOT_RUN, why), seconds)


def further(judge: Judge, names: Sequence[str]) -> Mapping[str, Counts]:
    """More blocks on fixtures with a finished campaign: up to 200,000 in all, or for 20 s.

    They are drawn once and kept by the judge. Drawing stops if the sampler breaks its contract.
    """
    wanted = -(-BLOCKS // len(names)) if names else 0
    for name in names:
        if name not in judge.further:
            missing = wanted - judge.memo[f"blocks/{name}"].report.trials
            judge.further[name] = _drawn(judge, name, missing, DRAWING_SECONDS / len(names))
    return {name: judge.further[name] for name in names}


def _drawn(judge: Judge, name: str, missing: int, seconds: float) -> Counts:
    seen, places = judge.memo[f"blocks/{name}"], judge.fixture(name).places
    counts: dict[Place, Counter[Tokens]] = {place: Counter() for place in places}
    judge.further_sizes[name] = sizes = []
    sampler, rng = judge.one_iteration(name), judge.rng(f"further/{name}")
    speed, pair = seen.report.trials / max(seen.seconds, 1e-6), 2 * len(places)
    done, started, left = 0, time.perf_counter(), seconds
    while missing > done:
        size = min(missing - done, LARGEST, int(speed * left))
        if size < pair:
            break
        try:
            place, blocks, _ = sampler(size - size % pair, rng)
        except BrokenContractError:
            break
        for index, one in enumerate(places):
            counts[one] += tallied(blocks[place == index])
        sizes.append(len(place))
        done += len(place)
        spent = time.perf_counter() - started
        speed, left = done / spent, seconds - spent
    return counts


SEEDING = frozenset({"manual_seed", "manual_seed_all", "set_state", "set_rng_state", "seed"})
"""What torch, NumPy and Python call it."""
NUMPY = ("default_rng", "RandomState", "Generator")
"""Of `numpy.random`, which are compiled so that a profile does not have them."""
OURS = __name__.partition(".")[0] + "."
LIBRARIES = (OURS, "torch.", "numpy.", "random.")


def seeded_in(judge: Judge) -> WrongDecision | None:
    """The first line of the code itself where a generator is made or seeded in a call.

    None if there is none. Alone it proves nothing: it is asked for if calls share random numbers.
    """
    found: list[tuple[str, str]] = []

    def call() -> None:
        batch = judge.sample(judge.fixtures[0], 2, "seeding")
        arguments, keywords = judge.verifier.arguments(batch, judge.rng("seeding"))
        with noting(found):
            judge.implementation(*arguments, **keywords)

    with suppress(BrokenContractError):
        within(judge.timeout, call)
    if not found:
        return None
    name, where = found[0]
    return WrongDecision("generator", (), f"is seeded in the call ({name})", "", short(where))


@contextmanager
def noting(found: list[tuple[str, str]]) -> Iterator[None]:
    """Note what seeds a generator in this thread, and the line that asks for it."""
    kept = {name: getattr(np.random, name) for name in NUMPY}

    def told(name: str, frame: FrameType | None) -> None:
        place = of_user(frame)
        if place is not None:
            found.append((name, place))

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call" and argument.__name__ in SEEDING:
            told(argument.__name__, frame)
        elif event == "call" and frame.f_code.co_name in SEEDING:
            told(frame.f_code.co_name, frame.f_back)

    def noted(name: str) -> Any:
        def made(*arguments: Any, **keywords: Any) -> Any:
            if arguments or keywords:  # a generator with a seed of its own
                told(name, sys._getframe(1))
            return kept[name](*arguments, **keywords)

        return made

    before = sys.getprofile()
    try:
        for name in NUMPY:
            setattr(np.random, name, noted(name))
        sys.setprofile(profile)
        yield
    finally:
        sys.setprofile(before)
        for name, original in kept.items():
            setattr(np.random, name, original)


def of_user(frame: FrameType | None) -> str | None:
    """File and line, if code of the user is what calls."""
    if frame is None or f"{frame.f_globals.get('__name__')}.".startswith(LIBRARIES):
        return None
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
