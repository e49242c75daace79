"""In which situations a sampler is wrong: the splits that a person would try next, tried here.

The exact law of the block of one row is worked out where that row is alone, with two drafts, and
where one thing or two are otherwise: no `draft_probs`, no drafts, other rows before it, another
temperature. What is wrong there, and right with less, is what the sampler is wrong in. Where its
random numbers cannot be intercepted, the blocks are drawn, and compared with those of the rule.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np

from specref.arrays import NO_TOKEN, Ints
from specref.conformance.checks.check import few_threads, intercepted
from specref.conformance.checks.loops import told as told_of_loops
from specref.conformance.checks.probed_rows import at_temperatures
from specref.conformance.diagnosis.laws import laws_compared
from specref.conformance.diagnosis.ranking import ExactBlocks, same_laws
from specref.conformance.explaining import differ, seeded_in
from specref.conformance.judge import Judge
from specref.conformance.report import Report
from specref.conformance.row_situations import (
    ALONE,
    BETWEEN,
    BY_NAME,
    COOLER,
    FIRST_ROW,
    HOTTER,
    LAST_ROW,
    ONE_DRAFT,
    SITUATIONS,
    TOGETHER,
    Asked,
    Situation,
    asked_in,
    blocks_of,
    models,
    possible,
    stacked,
    with_one_draft,
)
from specref.conformance.scheduling import in_a_copy
from specref.conformance.status import FIRST, CheckResult, Finding, Status, drafts_of
from specref.conformance.summary import shown_first
from specref.conformance.time_limit import EXPLAINED
from specref.conformance.wrong_decision import (
    WrongDecision,
    raising,
    shared,
    short,
    wrong_decision,
)
from specref.contracts.batch import Batch
from specref.contracts.calling import Verifier
from specref.contracts.contract import BatchContract, ignored
from specref.contracts.errors import BrokenContractError, UntriedError
from specref.contracts.functions import GenerateBatchContract
from specref.contracts.ragged import RaggedContract
from specref.contracts.timeout import Deadline, HungError, within
from specref.distributions import push_forward
from specref.probing.blocks import completed_block
from specref.probing.points import Point
from specref.probing.probe import Probed, batch_program, probe_program
from specref.probing.source import Given
from specref.vocabulary import Tokens

EXACT, RUNS, OF_TWO, SECONDS, STOPPED = 1e-6, 2_000, 3, 30.0, 10.0
"""A distance that rounding explains; runs for one law, and a factor for that of two rows; seconds
for all situations, and after which a copy of the process that goes on is stopped."""
MOST_SAID, COUNTED = 3, 2.0
"""Situations that are named, and seconds to count the random numbers of two rows."""
BLOCKS, SAMPLED, CHUNK, LONGER = 2_000, 0.6, 100, 4
"""Blocks, and seconds for them, of a situation whose laws cannot be worked out; how many are drawn
at once; and how many times as many of a row alone. So what is wrong there, too, is seen there."""
FOR_ALL = "are not independent: as many random numbers are drawn for two of them as for one"
SHARED = "are not independent: one random number decides in two of them"
ROWS, SEED = "rows", "generator"
"""What a decision is named that is not one of a row."""
ELSEWHERE = "; traced at other p and q than in the table"
Found = TypeVar("Found")
LOCATED = (Finding.LAW, Finding.DEPENDENCE, Finding.CONTRACT)


@dataclass(frozen=True)
class Tried:
    """What was found in a situation.

    * `wrong`: None: it was not tried, for want of time.
    * `blocks`: How many were drawn, where random numbers cannot be intercepted.
    * `laws`: Those of the block, where known bugs have one.
    """

    situation: Situation
    wrong: bool | None
    decision: WrongDecision | None = None
    blocks: int = 0
    laws: tuple[ExactBlocks, ...] = ()


def tried(one: Situation, judge: Judge, until: float, most: int = BLOCKS) -> Tried:
    """The law of the block in a situation, compared with the target's: exactly, if it can be.

    Else of `most` blocks that are drawn.
    """
    kind = type(judge.verifier)
    heated = (
        at_temperatures(one.heats, kind) if isinstance(judge.contract, RaggedContract) else kind
    )
    verifier = heated(judge.implementation, judge.capabilities, judge.timeout)
    found: list[tuple[Asked, Probed]] = []
    for asked in asked_in(one, judge):
        program = batch_program(verifier, verifier.shaped(asked.batch), RUNS, (asked.row,))
        law = in_time(partial(probe_program, program, known=judge.repeats), judge, until)
        if law is None:
            return Tried(one, None)
        if law.uninterpreted:
            return drawn_in(one, judge, verifier, law, most)
        found.append((asked, law))
    for _, probed in found:
        for error in probed.failures:
            return Tried(one, True, raising(error, probed))
    if not off(one, found):
        return Tried(one, False)
    given = (asked.verified(probed) for asked, probed in found)
    decision = wrong_decision(one for one in given if one is not None)
    return Tried(one, True, decision, laws=tuple(blocks_of(one, found)))


def drawn_in(
    one: Situation, judge: Judge, verifier: Verifier, unknown: Probed, most: int
) -> Tried:
    """Blocks that are drawn in a situation, compared with as many that its rule draws."""
    rng, until = judge.rng(f"splits/{one.name}"), time.perf_counter() + SAMPLED * most / BLOCKS
    asked = list(asked_in(one, judge))
    rule = [each.verified(unknown) for each in asked]
    weights = np.array([each.weight for each in asked])
    row, rows = asked[0].row, len(asked[0].batch)
    ours: list[Ints] = []
    theirs: list[Ints] = []
    while len(ours) < most and time.perf_counter() < until:
        chosen = rng.choice(len(asked), size=min(CHUNK, most), p=weights / weights.sum())
        calls, deadline = stacked([asked[n].batch for n in chosen]), Deadline()
        run = partial(verifier.answers, calls, rows, rng, deadline)
        try:
            tokens = within(judge.timeout, run, deadline).tokens[row::rows]
        except HungError:
            return Tried(one, None)
        except BrokenContractError:
            return Tried(one, True, blocks=len(ours) + len(chosen))
        ours += list(tokens)
        for verified in (rule[n] for n in chosen):
            if verified is None:
                return Tried(one, None)
            theirs.append(drawn_from(verified.right, rng, tokens.shape[1]))
    return Tried(one, differ([np.array(ours), np.array(theirs)]), blocks=len(ours))


def drawn_from(law: Mapping[Tokens, float], rng: np.random.Generator, width: int) -> Ints:
    """A block by its law, in a row of so many columns."""
    shares = np.array(list(law.values()))
    block = list(law)[int(rng.choice(len(law), p=shares / shares.sum()))]
    return np.array([*block, *[NO_TOKEN] * (width - len(block))], dtype=np.int64)


def in_time(law: Callable[[], Found], judge: Judge, until: float) -> Found | None:
    """A law, or what else is asked for, unless it takes too long."""
    left = until - time.perf_counter()
    try:
        return intercepted(judge, law, left) if left > 0 else None
    except (UntriedError, HungError):
        return None


def off(one: Situation, found: Sequence[tuple[Asked, Probed]]) -> bool:
    """Whether the completed block has not the target's law; of certain drafts, after any."""
    target, _ = models(one)
    length = 1 + (len(one.branching) or one.drafts)
    weighted = [(asked.drafts, asked.weight, probed) for asked, probed in found]
    groups = [[(d, 1.0, p)] for d, _, p in weighted] if one.certain else [weighted]
    laws = (completed_block(group, target, (), length) for group in groups)
    return any(law.total_variation > EXACT + law.error_bound for law in laws)


@dataclass(frozen=True)
class Split:
    """In which situations a sampler is wrong.

    * `text`: One sentence; empty if the situations do not tell.
    * `decision`: The first wrong decision in the situation with the fewest features.
    * `known`: The bugs that have the law of the block in that situation.
    * `place`: Where in a call a row has to be, if one that is alone is wrong and others are not.
    """

    text: str
    wrong: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    decision: WrongDecision | None = None
    known: tuple[str, ...] = ()
    place: str = ""

    @property
    def evidence(self) -> dict[str, Any]:
        more = {"known": list(self.known), "place": self.place}
        return {"text": self.text, "wrong": list(self.wrong), "right": list(self.right), **more}


def located(report: Report, judge: Judge, copied: bool) -> Report:
    """A report whose first failure says in which situations it comes about, and its decision.

    They are tried in a copy of this process, if the code can be `copied`. Where checks were asked
    for by their ids, nothing else is tried.
    """
    if isinstance(judge.contract, GenerateBatchContract):
        return told_of_loops(report)
    shown, claims = shown_first(report), judge.capabilities
    if (
        shown is None
        or shown.finding not in LOCATED
        or shown.status != Status.FAILED
        or report.options.only
        or not isinstance(judge.contract, BatchContract)
        or claims.greedy
        or claims.dtype in ("float16", "bfloat16")
        or any(one.finding == Finding.UNANSWERED for one in report.results)
    ):
        return report
    if of_lookaheads := by_lookahead(report.results, shown.id):
        return with_evidence(report, shown, {**shown.evidence, "split": of_lookaheads})

    def work() -> Split | None:
        judge.advance = ignored
        with few_threads():
            depends = shown.finding == Finding.DEPENDENCE
            if depends and shown.evidence.get("between") == "calls":
                return Split("", decision=seeded_in(judge))
            return split(judge, of_one_row=shown.id in FIRST, depends=depends)

    found = in_a_copy(work, SECONDS + STOPPED) if copied else work()
    if found is None:
        return report
    more: dict[str, Any] = {"split": found.evidence} if found.text or found.right else {}
    if found.decision is not None:
        decided = found.decision
        if decided.name not in (ROWS, SEED):
            decided = replace(decided, said=f"{decided.said}{ELSEWHERE}")
        more["decision"] = {**asdict(decided), "text": str(decided)}
    # A chain tells more than siblings, of which an earlier one decides what a later one gets.
    chain = judge.contract.trees and ALONE.name in found.wrong
    evidence = {**shown.evidence, **more} if chain else {**more, **shown.evidence}
    return with_evidence(report, shown, evidence)


def with_evidence(report: Report, shown: CheckResult, evidence: Mapping[str, Any]) -> Report:
    """The report with other evidence of one result."""
    told = replace(shown, evidence=evidence)
    return replace(report, results=tuple(told if one is shown else one for one in report.results))


def by_lookahead(results: Iterable[CheckResult], shown: str) -> dict[str, Any]:
    """With how many drafts the exact law is wrong, and right; nothing if not with more alone."""
    laws = {
        count: one.status
        for one in results
        if (count := drafts_of(one.id)) and one.status in (Status.PASSED, Status.FAILED)
    }
    wrong = sorted(count for count, status in laws.items() if status == Status.FAILED)
    right = sorted(count for count, status in laws.items() if status == Status.PASSED)
    if shown in FIRST or not (drafts_of(shown) and wrong and right) or right[0] > wrong[0]:
        return {}
    below, above = ([x for x in right if (x < wrong[0]) is side] for side in (True, False))
    also = f"; and with {listed(above)}, of which others may be refused" if above else ""
    text = f"only with {listed(wrong)} drafts (right with {listed(below)}{also})"
    return {"text": text, "wrong": [], "right": [], "lookaheads": wrong}


def listed(names: Sequence[object], last: str = "and") -> str:
    """Names or numbers in words; `last` is the word before the last.

    Examples
    --------
    >>> listed([7]), listed([1, 2, 3]), listed(["here", "there"], "or")
    ('7', '1, 2 and 3', 'here or there')
    """
    *others, end = map(str, names)
    return f"{', '.join(others)} {last} {end}" if others else end


def split(judge: Judge, of_one_row: bool = False, depends: bool = False) -> Split | None:
    """Try the situations; None if there is no time for the first.

    Of a law of one row with drafts and `draft_probs` that is known to be wrong, those of others
    say nothing. Where blocks are known to depend on each other, those of several rows come first.
    """
    until = time.perf_counter() + min(SECONDS, judge.limit.left(EXPLAINED))
    alone = tried(ALONE, judge, until, LONGER * BLOCKS)
    most = max(1, alone.blocks // LONGER) if alone.blocks else BLOCKS
    if alone.wrong is None:
        return None
    judge.traced = not alone.blocks
    if alone.wrong:
        less = tried(ONE_DRAFT, judge, until, LONGER * BLOCKS)
        enough = "with one draft" if less.wrong else "with two drafts; with one it is right"
        # That one row is enough is known where its exact law was the first to fail.
        text = "" if of_one_row and less.wrong else f"one row alone is enough, {enough}"
        place, fine = ("", ()) if alone.blocks else place_in_call(judge, until, bool(less.wrong))
        if place:
            text = f"{place} (right: {', '.join(NAMED[one] for one in fine)})"
        right = (*(() if less.wrong else ("one-draft",)), *fine)
        # Two drafts may take too many runs for an exact law where one does not.
        return Split(text, ("alone",), right, alone.decision or less.decision, place=place)
    together = judge.capabilities.batch != 1 and not of_one_row
    if depends and together and (both := two_rows(judge, until - SECONDS / 2, depends)).wrong:
        return told([alone, both], judge, until)
    asked = [one for one in SITUATIONS if possible(one, judge, of_one_row)]
    if depends:
        asked.sort(key=lambda one: one.before is None and one.after is None)
    wrong = {} if alone.blocks else at_once(asked, judge, until)
    found = [alone, *wrong.values()]
    if (
        not depends
    ):  # those first that one draft does not tell, and of all those with most features
        asked.sort(key=lambda one: (with_one_draft(one) is not None, -len(one.features)))
    for one in asked:
        if one not in wrong and not says_nothing(one, found) and not is_part(one, found):
            found.append(tried(one, judge, until, most))
    found += [two_rows(judge, until)] if together else []
    for one in BETWEEN:
        if not any(each.wrong for each in found) and possible(one, judge, of_one_row):
            found.append(tried(one, judge, until, most))
    said = told(found, judge, until)
    return said if said.wrong or not of_one_row else Split("")  # a bug of the fixture alone


def at_once(asked: Sequence[Situation], judge: Judge, until: float) -> dict[Situation, Tried]:
    """What is wrong with one draft already."""
    found: dict[Situation, Tried] = {}
    for one in asked:
        less = with_one_draft(one)
        if less is None or says_nothing(one, found.values()):
            continue
        if (so := tried(less, judge, until)).wrong:
            found[one] = so
    return found


def is_part(one: Situation, found: Iterable[Tried]) -> bool:
    """Whether a chain of drafts with all that is otherwise here, and more, is right."""
    chains = [each.situation for each in found if each.wrong is False]
    richer = (each for each in chains if not each.branching and one.features < each.features)
    return not one.branching and one.features != frozenset() and any(richer)


def says_nothing(one: Situation, found: Iterable[Tried]) -> bool:
    """Whether one with fewer features is wrong already."""
    return any(each.wrong and each.situation.features < one.features for each in found)


NAMED = {FIRST_ROW: "in rows that others come after", LAST_ROW: "in rows after others"}
PLACES = {
    (False, True): "only in the last row of a call",
    (True, False): "only in the first row of a call",
    (False, False): "only in a row that is alone in its call",
}
"""{whether a row is wrong with others after it, and with others before it: where it is}."""


def place_in_call(judge: Judge, until: float, less: bool) -> tuple[str, tuple[str, ...]]:
    """Where in a call a row is wrong that is wrong alone, and which rows are right.

    Nothing if all are wrong, or not all can be tried. With `less`, one draft is enough.
    """
    wrong = {}
    for name in (FIRST_ROW, LAST_ROW):
        one = BY_NAME[name]
        if not possible(one, judge):
            return "", ()
        wrong[name] = tried((less and with_one_draft(one)) or one, judge, until).wrong
    if None in wrong.values():
        return "", ()
    place = PLACES.get((bool(wrong[FIRST_ROW]), bool(wrong[LAST_ROW])), "")
    return place, tuple(name for name, so in wrong.items() if not so)


def two_rows(judge: Judge, until: float, known: bool = False) -> Tried:
    """Whether the blocks of two equal rows depend on each other: their exact joint law.

    Where it cannot be worked out, and they are `known` to, their random numbers are counted.
    """
    for asked in asked_in(TOGETHER, judge):
        rows = asked.batch[np.zeros(2, dtype=np.int64)]
        verifier = judge.verifier
        program = batch_program(verifier, verifier.shaped(rows), OF_TWO * RUNS, (0, 1))
        found = in_time(partial(probe_program, program, known=judge.repeats), judge, until)
        if found is None or found.failures or found.uninterpreted:
            if not known or (found and found.failures):
                return Tried(TOGETHER, None)
            late = time.perf_counter() + COUNTED
            number = in_time(partial(drawn_for_all, asked.batch, judge), judge, late)
            decision = WrongDecision(ROWS, asked.drafts, FOR_ALL, number=number or "")
            return Tried(TOGETHER, True if number else None, decision)
        joint = {_two(both): mass for both, mass in found.distribution.items()}
        first, second = (push_forward(joint, itemgetter(row)) for row in (0, 1))
        apart = (abs(joint.get((x, y), 0.0) - first[x] * second[y]) for x in first for y in second)
        if sum(apart) / 2 > EXACT + 3 * found.error_bound:
            decision = WrongDecision(ROWS, asked.drafts, SHARED, *shared(found, _two))
            return Tried(TOGETHER, True, decision)
    return Tried(TOGETHER, False)


def drawn_for_all(row: Batch, judge: Judge) -> str:
    """Where as many numbers are drawn for two equal rows as for one; empty if nowhere."""
    drawn: list[Counter[str]] = []
    for rows in (1, 2):
        batch = judge.verifier.shaped(row[np.zeros(rows, dtype=np.int64)])
        source = Given(Point({}, 0, 0).answer)
        batch_program(judge.verifier, batch, OF_TWO, range(rows))(source)
        drawn.append(Counter(r.call.where for r in source.requests if r.kind != "seed"))
    one, two = drawn
    return next((short(where) for where in one if one[where] == two[where]), "")


def _two(both: Tokens) -> tuple[Tokens, Tokens]:
    """The blocks of two rows."""
    middle = both.index(NO_TOKEN)
    return both[:middle], both[middle + 1 :]


def told(found: Sequence[Tried], judge: Judge, until: float) -> Split:
    """What situations tell: those that are wrong of which no part is wrong."""
    wrong = [one for one in found if one.wrong]
    names = {
        kind: tuple(one.situation.name for one in found if one.wrong is kind)
        for kind in (True, False)
    }
    least = [
        one
        for one in wrong
        if not any(other.situation.features < one.situation.features for other in wrong)
    ]
    said = listed([one.situation.said for one in least[:MOST_SAID]], "or") if least else ""
    heated = {one.situation.name for one in least} == {COOLER, HOTTER}
    said = "at T ≠ 1" if heated else said
    fine = [one for one in found if one.wrong is False]
    alone = "one row alone" + " at T = 1" * heated
    features = frozenset[str]().union(*(one.situation.features for one in least))
    parts = [one for one in fine[1:] if one.situation.features < features]
    named = parts[:MOST_SAID]
    more = len(fine) - 1 - len(named)
    rest = [f"{more} other situation{'s' * (more != 1)}"] * (more > 0)
    others = listed([alone, *(one.situation.said for one in named), *rest])
    drawn = [one.blocks for one in fine if one.blocks]
    how = f"nothing seen in {min(drawn):,} blocks or more" if drawn else "right"
    text = f"only {said} ({how}: {others})" if least else ""
    decision = next((one.decision for one in least if one.decision), None)
    known = next((bugs_in(one, judge, until) for one in least if one.laws), ())
    return Split(text, names[True], names[False], decision, known)


def bugs_in(one: Tried, judge: Judge, until: float) -> tuple[str, ...]:
    """The known bugs that have the law of the block in a situation, also with two drafts.

    Those come first that are about the decision that is wrong.
    """
    laws, compared = one.laws, laws_compared(judge.rule)
    known = same_laws(laws, compared)
    usual = BY_NAME[one.situation.name]
    if len(known) > 1 and usual.drafts > one.situation.drafts:
        laws += tried(usual, judge, until).laws
        known = same_laws(laws, compared)
    stage = "" if one.decision is None else one.decision.name.partition("[")[0]
    return tuple(sorted(known, key=lambda id_: compared.entries[id_].stage != stage))
