"""One campaign of a check: judges the law of the blocks, and separately their independence."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from specref.arrays import NO_TOKEN, Floats, Ints
from specref.conformance.diagnosis.laws import bugs_of
from specref.conformance.differences import Difference, seen_on
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import Fixture, Place
from specref.contracts.sampling import Sampler, until_end
from specref.models import Model
from specref.rules import DEFAULT
from specref.statistics.campaign.bets import log_mean
from specref.statistics.campaign.campaign import Campaign, View
from specref.statistics.campaign.evidence import CampaignCase
from specref.statistics.campaign.least import Least, least_on, most_off
from specref.statistics.campaign.levels import BETA
from specref.statistics.campaign.planning import bound_share, evidence_threshold, trials_to_detect
from specref.statistics.campaign.verdict import CampaignReport, Interval
from specref.vocabulary import Tokens
from specref.zoo import Entry


@dataclass(frozen=True)
class TrialReport:
    """The result of one campaign of a check.

    * `law`, `dependence`: log10 of the evidence against the law of blocks, and against their
      independence.
    * `worst`: The total variation at the place where blocks fit the target's law least.
    * `least`: What the law is off by there at least, about.
    * `most_off`: Of texts the token at a position that is off most there, in words.
    * `hits`: How often a block with drafts ended in a "residual" or a "bonus" token.
    * `kept`: {place: {k: how often the first k drafts were kept, for k = 0 if there was one}}.
    * `laws`: The target's law of completed blocks at each place.
    * `allowances`: Total variation that is not held against the sampler there.
    * `after_eos`: Whether the only impossible tokens are those after an EOS.
    * `shared`: log10 of the evidence that rows depend on each other whatever their law; computed
      only after law or dependence was decided.
    * `lengths`: {tokens: how many blocks have so many}, of those at places with drafts.
    * `looks`: Trials, and log10 of the evidence against the law of blocks as it was after so many;
      `law` is the highest.
    """

    report: CampaignReport
    law: float
    dependence: float
    threshold: float
    far: bool
    worst: Interval
    least: Least
    most_off: str
    hits: Mapping[str, int]
    kept: Mapping[Place, Mapping[int, int]]
    blocks: Mapping[Place, Mapping[Tokens, int]]
    seconds: float
    laws: tuple[Floats, ...] = field(repr=False, compare=False)
    allowances: tuple[float, ...] = ()
    after_eos: bool = False
    shared: float = -math.inf
    lengths: Mapping[int, int] = field(default_factory=dict)
    difference: Difference = field(default_factory=dict, repr=False, compare=False)
    looks: tuple[tuple[int, float], ...] = ()

    def needed(self, tv: float) -> int | None:
        """Trials, over all places, after which any law at distance `tv` is found.

        None if no number is enough, because so large a distance is tolerated.
        """
        beyond = tv - max(self.allowances)
        return trials_needed(self.laws, beyond, self.report.alpha) if beyond > 0 else None

    @property
    def lossy(self) -> bool:
        """Whether blocks are provably not independent draws from the target's law."""
        return self.far or self.report.impossible is not None or self.law >= self.threshold

    @property
    def dependent(self) -> bool:
        """Whether bets on repetitions of earlier tokens, at the target's odds, have won."""
        return self.dependence >= self.threshold or self.sharing

    @property
    def sharing(self) -> bool:
        """Whether blocks are provably not independent, whatever their law."""
        return self.shared >= self.threshold


def trials_needed(laws: Sequence[Floats], tv: float, alpha: float) -> int:
    """Trials, over all places, with which a campaign finds any law at distance `tv`."""
    share = bound_share(alpha, 1, len(laws))
    each = max(trials_to_detect(law, tv, share, BETA) for law in laws)
    return len(laws) * (each + each % 2)


def misfit(counts: Floats, p: Floats) -> float:
    """The likelihood-ratio statistic of counted tokens against p, minus its expectation.

    Examples
    --------
    >>> misfit(np.array([[50.0, 50.0]]), np.array([[0.5, 0.5]]))
    -1.0
    >>> round(misfit(np.array([[60.0, 40.0]]), np.array([[0.5, 0.5]])), 2)
    3.03
    """
    expected = counts.sum(axis=1, keepdims=True) * p
    seen = (counts > 0) & (p > 0)
    deviance = 2 * (counts[seen] * np.log(counts[seen] / expected[seen])).sum()
    return float(deviance - ((expected > 0).sum() - (expected > 0).any(axis=1).sum()))


FIRST_BATCH, LARGEST_BATCH = 1_800, 1 << 16
LARGEST_CODE = 1 << 62


@cache
def declared_case(
    target: Model,
    drafter: Model,
    place: Place,
    algorithm: str,
    tokens: int | None,
    tolerance: float,
    mutants: tuple[tuple[str, Entry], ...],
) -> CampaignCase:
    """The bets at a place, computed once and shared by campaigns."""
    view: View = "boundary" if tokens is None else "stream"
    campaign = Campaign(eps=None, view=view, tolerance=tolerance)
    return campaign.case(
        target,
        drafter,
        place.context,
        place.lookahead,
        algorithm=algorithm,
        name=place.name,
        mutants=dict(mutants),
        tokens=tokens,
    )


def tallied(blocks: Ints) -> Counter[Tokens]:
    """How often each block occurs; in the order of blocks."""
    base, width = int(blocks.max(initial=0)) + 2, blocks.shape[1]
    if base**width > LARGEST_CODE:
        rows, times = np.unique(blocks, axis=0, return_counts=True)
    else:  # numbers are sorted much faster than rows, in the same order
        digits = base ** np.arange(width)[::-1]
        codes, times = np.unique((blocks + 1) @ digits, return_counts=True)
        rows = codes[:, None] // digits % base - 1
    pairs = zip(rows.tolist(), times.tolist(), strict=True)
    return Counter({tuple(x for x in row if x >= 0): count for row, count in pairs})


@dataclass
class Trial:
    """A campaign over the places of a fixture; law and dependence are judged separately.

    * `alpha`: The chance of a false alarm: a quarter each for the law by bets, the law by
      distance, dependence by bets, and dependence whatever the law.
    * `tokens`: The length of texts, if blocks are texts (the view "stream").
    """

    fixture: Fixture
    alpha: float
    algorithm: str = DEFAULT
    tokens: int | None = None
    mutants: Mapping[str, Entry] | None = None
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        view: View = "boundary" if self.tokens is None else "stream"
        campaign = Campaign(alpha=self.alpha / 2, eps=None, view=view, tolerance=self.tolerance)
        mutants = bugs_of(self.algorithm) if self.mutants is None else self.mutants
        declared = (self.algorithm, self.tokens, self.tolerance, tuple(mutants.items()))
        self.cases = [
            campaign.adopt(
                declared_case(self.fixture.target, self.fixture.drafter, place, *declared)
            )
            for place in self.fixture.places
        ]
        self.campaign = campaign
        self.law = self.dependence = -math.inf
        self.looks: list[tuple[int, float]] = []
        self.blocks: list[Counter[Tokens]] = [Counter() for _ in self.fixture.places]
        self.kept: list[Counter[int]] = [Counter() for _ in self.fixture.places]

    def run(
        self,
        sampler: Sampler,
        trials: int,
        rng: np.random.Generator,
        advance: Callable[[int], None] = lambda trials: None,
        seconds: float | None = None,
        *,
        first: int = FIRST_BATCH,
        most: int = LARGEST_BATCH,
        probe: bool = True,
    ) -> TrialReport:
        """Draw until the law is decided, or `trials` were drawn; if `seconds` are given, they end.

        Dependence alone does not end it: a wrong law makes blocks look dependent, too, and
        decides a little later. Dependent blocks make the law look wrong in turn: once either is
        decided, more calls tell whether blocks depend on each other whatever their law.

        The first look comes after `first` trials, each other one after twice as many, but at most
        `most`. Without `probe` those further calls are not made.
        """
        threshold, pairs = evidence_threshold(self.alpha / 2), 2 * len(self.cases)
        started, done = time.perf_counter(), 0
        size = first if seconds is None else pairs
        while self.law < threshold and self.campaign.impossible is None:
            wanted = min(size, trials - done)
            if seconds is not None:
                spent = time.perf_counter() - started
                wanted = min(size, int((seconds - spent) / spent * done)) if done else size
            if wanted < (1 if seconds is None else pairs):
                break
            # Equally many pairs at every place, unless there are too few trials for that.
            place, blocks, drafts = sampler(wanted - wanted % pairs or wanted, rng)
            for index, case in enumerate(self.cases):
                here = place == index
                self._count(index, blocks[here], drafts[here])
                try:
                    self.campaign.add(case, blocks[here])
                except ValueError as error:
                    raise BrokenContractError(f"on {case.name}: {error}") from None
            families = self.campaign.wealth()
            self.dependence = max(self.dependence, log_mean(families.pop("lag")))
            law = log_mean(np.array([log_mean(wealth) for wealth in families.values()]))
            self.law = max(self.law, law)
            advance(len(place))
            done, size = done + len(place), min(2 * size, most)
            self.looks.append((done, law / math.log(10)))
        found = self._report(time.perf_counter() - started)
        if not probe or found.report.impossible or not (found.lossy or found.dependent):
            return found
        shared = dependence(sampler, len(self.fixture.target.vocabulary), rng, threshold)
        return replace(found, shared=shared / math.log(10))

    def needed(self, tv: float) -> int:
        """Trials, over all places, that find any law at distance `tv`."""
        return trials_needed([case.tree.law for case in self.cases], tv, self.campaign.alpha)

    def _count(self, index: int, blocks: Ints, drafts: Ints) -> None:
        self.blocks[index] += tallied(blocks)
        kept = (blocks[:, : drafts.shape[1]] == drafts) & (drafts != NO_TOKEN)
        for k, count in enumerate(np.logical_and.accumulate(kept, axis=1).sum(axis=0).tolist(), 1):
            self.kept[index][k] += count
        self.kept[index][0] += int((drafts[:, 0] != NO_TOKEN).sum())

    def _report(self, seconds: float) -> TrialReport:
        report = self.campaign.report()
        misfits = {case.name: misfit(case.counts, case.tree.p) for case in self.cases}
        worst = max(report.intervals, key=lambda interval: misfits[interval.case])
        there = next(one for one in self.cases if one.name == worst.case)
        off = there.tree, there.counts, there.trials - there.impossible
        shown = next((i for i, one in enumerate(self.cases) if one.impossible), None)
        if shown is None:
            shown = self.cases.index(there)
        return TrialReport(
            report=report,
            law=self.law / math.log(10),
            dependence=self.dependence / math.log(10),
            threshold=evidence_threshold(self.alpha / 2) / math.log(10),
            far=any(found.estimate > found.threshold for found in report.intervals),
            worst=worst,
            least=least_on(there.tree, there.counts, there.trials, there.impossible),
            most_off="" if self.tokens is None else most_off(*off),
            hits=self._hits(),
            kept=dict(zip(self.fixture.places, self.kept, strict=True)),
            blocks=dict(zip(self.fixture.places, self.blocks, strict=True)),
            seconds=seconds,
            laws=tuple(case.tree.law for case in self.cases),
            allowances=tuple(self.tolerance * case.tree.length for case in self.cases),
            after_eos=self.campaign.impossible is not None and self._after_eos(),
            lengths=self._lengths(),
            difference=seen_on(
                self.cases[shown],
                self.blocks[shown],
                drafter_known=self.fixture.drafter_known,
            ),
            looks=tuple(self.looks),
        )

    def _after_eos(self) -> bool:
        places = zip(self.fixture.places, self.blocks, strict=True)
        drawn = [(place, block) for place, found in places for block in found]
        cut = [(place, until_end(self.fixture, block)) for place, block in drawn]
        return cut != drawn and all(self._possible(*one) for one in cut)

    def _possible(self, place: Place, block: Tokens) -> bool:
        before = ((*place.context, *block[:length]) for length in range(len(block)))
        rows = map(self.fixture.target.next_token, before)
        return all(row[token] > 0 for row, token in zip(rows, block, strict=True))

    def _lengths(self) -> dict[int, int]:
        lengths: Counter[int] = Counter()
        for place, counts in zip(self.fixture.places, self.blocks, strict=True):
            if place.lookahead and self.tokens is None:
                for block, times in counts.items():
                    lengths[len(block)] += times
        return dict(sorted(lengths.items()))

    def _hits(self) -> dict[str, int]:
        bonus = total = 0
        for place, counts in zip(self.fixture.places, self.blocks, strict=True):
            if not place.lookahead:
                continue  # a row without drafts has neither
            total += sum(counts.values())
            bonus += sum(n for block, n in counts.items() if len(block) > place.lookahead)
        return {"bonus": bonus, "residual": total - bonus}


ROUNDS, CALLS, ROWS, GROUP = 4, 128, 128, 8
SECONDS = 20.0
# Half of rho / (1 - rho^2), for features whose correlation is rho.
WEIGHTS = np.array([-0.2, 0.05, 0.2, 1.0, 4.0])


def dependence(sampler: Sampler, size: int, rng: np.random.Generator, threshold: float) -> float:
    """The log-evidence that the rows of a call, or consecutive calls, depend on each other.

    Many small calls of one shape are drawn, and the rows of each are split into two parts. If rows
    are independent, and calls are too, then the second parts could be exchanged between calls:
    every order of eight of them is as likely. The bet is on the order that was seen, where parts
    of one call resemble each other, over the mean of all 40,320 orders; its mean is 1 whatever the
    rows' laws, and they may differ by the place in the batch. So, unlike a bet at the target's
    odds, it cannot be won by a wrong law. It can by a law that changes from call to call.

    An e-process: if they do not, it ever reaches log(1 / alpha) with probability at most alpha.
    Calls are drawn in rounds, up to 512 of them, for as long as there is any evidence and it is
    below the threshold; at most for 20 s, and not after the contract is broken.
    """
    won, found, until = np.zeros(3 * len(WEIGHTS)), 0.0, time.perf_counter() + SECONDS
    for _ in range(ROUNDS):
        try:
            sums = _calls(sampler, size, rng, until)
        except BrokenContractError:
            break
        whole = sums[:, 0] + sums[:, 1]
        parts = (sums[:, 0], sums[:, 1]), (sums[:, 2], sums[:, 3]), (whole[:-1:2], whole[1::2])
        won += np.concatenate([wealth(x, y) for x, y in parts])
        found = log_mean(won)
        if not 0 < found < threshold or time.perf_counter() > until:
            break
    return found


def _calls(sampler: Sampler, size: int, rng: np.random.Generator, until: float) -> Floats:
    """Sums over the even, odd, first and last rows of each call; (calls, 4, features)."""
    rows = np.arange(ROWS)
    halves = np.array([rows % 2 == 0, rows % 2 == 1, rows < ROWS // 2, rows >= ROWS // 2])
    sums: list[Floats] = []
    while len(sums) < CALLS and not (sums and time.perf_counter() > until):
        _, blocks, _ = sampler(ROWS, rng)
        sums.append(halves[:, : len(blocks)] @ features(blocks, size))
    return np.array(sums)


def features(blocks: Ints, size: int) -> Floats:
    """The length, first token and last token of each block, one-hot encoded."""
    rows, counts = np.arange(len(blocks)), (blocks >= 0).sum(axis=1)
    lengths = np.eye(blocks.shape[1])[counts - 1]
    return np.hstack([lengths, np.eye(size)[blocks[:, 0]], np.eye(size)[blocks[rows, counts - 1]]])


def wealth(x: Floats, y: Floats) -> Floats:
    """The log-wealth of each weight over all complete groups of calls."""
    groups = len(x) // GROUP
    shape = (groups, GROUP, x.shape[-1])
    x, y = (part[: groups * GROUP].reshape(shape) for part in (x, y))
    x, y = (part - part.mean(axis=1, keepdims=True) for part in (x, y))
    # The scale of both parts together, so that no order of the second is preferred.
    scale = np.sqrt(((x**2).mean(axis=1, keepdims=True) + (y**2).mean(axis=1, keepdims=True)) / 2)
    x, y = (np.divide(p, scale, out=np.zeros_like(p), where=scale > 0) for p in (x, y))
    distance = ((x[:, :, None] - y[:, None]) ** 2).sum(axis=-1)
    scores = -WEIGHTS[:, None, None, None] * distance
    seen = np.trace(scores, axis1=-2, axis2=-1)
    return np.asarray((seen - log_mean_of_orders(scores)).sum(axis=1))


def log_mean_of_orders(scores: Floats) -> Floats:
    """log of the mean over all orders of exp(sum of scores[i, order[i]])."""
    n = scores.shape[-1]
    # For each set of columns: the sum over all assignments of them to the first rows.
    totals = [np.zeros(scores.shape[:-2])]
    for columns in range(1, 1 << n):
        row = columns.bit_count() - 1
        ways = [
            totals[columns ^ (1 << j)] + scores[..., row, j] for j in range(n) if columns >> j & 1
        ]
        totals.append(np.logaddexp.reduce(ways))
    return np.asarray(totals[-1] - math.lgamma(n + 1))
