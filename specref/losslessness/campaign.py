"""A campaign: one anytime-valid test of a black-box sampler, over all its cases and runs.

Evidence is one e-process. Its components (known bugs, tilted features, Dirichlet mixtures, lag
bets) are summed in logarithms over every token of every case, and averaged once. Half of alpha
pays for it; the other half for a total-variation test whose power is proved.
"""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from specref.losslessness import bets, large
from specref.losslessness.acceptance import compare_lengths
from specref.losslessness.cases import CampaignCase, declare, impossible_traces
from specref.losslessness.interval import interval, needed_trials
from specref.losslessness.statistics import ALPHA
from specref.losslessness.tree import as_blocks, check_ids, walk
from specref.losslessness.verdict import (
    AcceptanceResult,
    CampaignReport,
    Interval,
    Suspect,
    Verdict,
    describe,
)
from specref.models import Model
from specref.theory import accepted_length_distribution
from specref.vocabulary import Tokens
from specref.zoo import MUTANTS, Entry

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
View: TypeAlias = Literal["boundary", "stream", "trace"]
EPS = 0.02
SUSPECTS = 5


class Campaign:
    """Collects samples, bets on every token, and gives a verdict at any time.

    Parameters
    ----------
    alpha : float
        The chance that a lossless sampler is ever called LOSSY, in the whole campaign.
    eps : float, optional
        LOSSLESS_WITHIN_EPS needs a provable bound on total variation of at most this. None:
        only look for bugs; what is not LOSSY stays INCONCLUSIVE.
    view : {"boundary", "stream", "trace"}
        What is seen: blocks; only text; or blocks with their drafts. The last takes for
        granted that the rule is standard speculative decoding with the drafter's own q:
        other lossless rules do what that one never does, and are called LOSSY.
    tolerance : float
        Total variation at each token that is not held against the sampler (for low precision;
        a token that the target excludes still decides). Dirichlet bets are left out if it is
        not 0.
    seed : int, optional
        Reported with the verdict.

    Raises
    ------
    ValueError
        A parameter is out of range.

    Examples
    --------
    >>> from specref.models import hashed_model
    >>> from specref.simulate import simulate
    >>> from specref.vocabulary import Vocabulary
    >>> abc = Vocabulary("abc")
    >>> target, drafter = hashed_model(abc, "p"), hashed_model(abc, "q")
    >>> campaign = Campaign(seed=1)
    >>> case = campaign.case(target, drafter, lookahead=1)
    >>> rng = np.random.default_rng(1)
    >>> blocks = simulate("standard", target, drafter, lookahead=1, trials=200_000, rng=rng)
    >>> campaign.add(case, blocks.blocks)
    >>> str(campaign.report().verdict)
    'LOSSLESS_WITHIN_EPS'
    """

    def __init__(
        self,
        *,
        alpha: float = ALPHA,
        eps: float | None = EPS,
        view: View = "boundary",
        tolerance: float = 0.0,
        seed: int | None = None,
    ) -> None:
        for name, value in (("alpha", alpha), ("eps", 0.5 if eps is None else eps)):
            if not 0 < value < 1:
                raise ValueError(f"{name} = {value}: expected a number in (0, 1)")
        if not 0 <= tolerance < 1:
            raise ValueError(f"tolerance = {tolerance}: expected a number in [0, 1)")
        if view not in ("boundary", "stream", "trace"):
            raise ValueError(f"view = {view!r}: expected boundary, stream or trace")
        self.alpha, self.eps, self.view, self.tolerance = alpha, eps, view, tolerance
        self.seed = seed
        self.cases: list[CampaignCase] = []
        self.impossible: str | None = None
        self.stopped: str | None = None
        self.peak = -math.inf
        self._at_peak: dict[str, Floats] = {}
        self._library: dict[tuple[str, float], float] = {}
        self._tilts = np.zeros(large.TILT_SHAPE)
        self._lag = np.zeros((2, len(bets.STAKES)))
        self._observer = large.Observer(tolerance)
        self._looks = 0
        self._too_far = False
        self._started = time.perf_counter()

    def case(
        self,
        target: Model,
        drafter: Model,
        context: Tokens = (),
        lookahead: int = 1,
        *,
        algorithm: str = "standard",
        name: str | None = None,
        mutants: Mapping[str, Entry] = MUTANTS,
        tokens: int | None = None,
    ) -> CampaignCase:
        """Declare a toy pair that the sampler will be run on.

        Parameters
        ----------
        target, drafter : Model
        context : tuple of int
        lookahead : int
        algorithm : str
            What the sampler claims to be, for accepted lengths and the clean law.
        name : str, optional
            For the report.
        mutants : mapping
            {id: Entry}: the library of known bugs to bet on.
        tokens : int, optional
            In the view "stream": how many tokens each text has.
        """
        name = name or f"case {len(self.cases)}"
        text_length = lookahead + 1 if tokens is None else tokens
        self._check_case(name, algorithm, text_length)
        case = declare(
            name,
            target,
            drafter,
            context,
            lookahead,
            algorithm,
            mutants,
            text_length if self.view == "stream" else None,
            self.tolerance,
        )
        # A bug that is first bet on now gets the average wealth of the others: like moving
        # money between bets, that keeps their average what it is.
        wealth = self._wealth_by_bug()
        average = bets.log_mean(np.array(list(wealth.values()) or [0.0]))
        self._library |= {key: wealth.get(key, average) for key in case.library}
        self.cases.append(case)
        return case

    def _check_case(self, name: str, algorithm: str, text_length: int) -> None:
        if name in [case.name for case in self.cases]:
            raise ValueError(f"name = {name!r}: the campaign has a case of that name")
        if text_length < 1:
            raise ValueError(f"tokens = {text_length}: expected at least 1")
        if self.view == "trace" and algorithm != "standard":
            raise ValueError(f"algorithm = {algorithm!r}: the view trace knows standard only")

    def add(
        self,
        case: CampaignCase,
        blocks: Sequence[Tokens] | Ints,
        drafts: Sequence[Tokens] | Ints | None = None,
    ) -> None:
        """Count blocks, in the order in which the sampler produced them.

        Parameters
        ----------
        case : CampaignCase
            From `case`.
        blocks : list of tuple, or ndarray of int, shape (trials, longest)
            Target token ids, padded with -1.
        drafts : ndarray of int, shape (trials, lookahead), optional
            In the view "trace": what was drafted, padded with -1.

        Raises
        ------
        TypeError
            Tokens are not integers.
        ValueError
            A block is empty, too long, or has a token id out of range; or the view is
            "trace" and `drafts` is missing.
        """
        if not any(case is declared for declared in self.cases):
            raise ValueError(f"case {case.name!r} is of another campaign")
        array = as_blocks(blocks)
        if not len(array):
            return
        nodes, bad = walk(case.tree, array)
        if self.view == "stream":
            case.check_texts(array)
        if self.view == "trace":
            self._trace(case, array, nodes, drafts)
        if len(bad):
            self._impossible(case, array[bad[0]])
        fresh, lag = case.count(array, nodes, bad)
        self._bet(case, fresh)
        self._lag += lag
        self._look()

    def observe(
        self, p: Floats, token: int, q: Floats | None = None, position: int = 0, last: bool = False
    ) -> None:
        """Bet on one token of a sampler with any vocabulary, in time O(V) and no memory of it.

        Parameters
        ----------
        p : ndarray, shape (V,)
            The target's law given everything before the token.
        token : int
        q : ndarray, shape (V,), optional
            The drafter's law there; without it fewer bets are made.
        position : int
            In the block.
        last : bool
            Whether it is the bonus position, after all drafts.

        Raises
        ------
        ValueError
            Wrong shapes, or a token id out of range.
        """
        if self._observer.observe(p, token, q, position, last):
            self._look()
        elif self.impossible is None:
            self.impossible = describe((), token, f"observation {self._observer.tokens}")

    @property
    def decided_lossy(self) -> bool:
        """Whether evidence, an impossible token, or an earlier report has decided already."""
        enough = self.peak >= -math.log(self.alpha / 2)
        return self.impossible is not None or enough or self._too_far

    def report(self) -> CampaignReport:
        """The verdict so far. Each call is a look; the interval pays for every one.

        The evidence may be looked at whenever one likes. The interval, and the
        total-variation test that goes with it, hold for looks at trial numbers that were not
        chosen from the counts, and for independent blocks of one law.

        Returns
        -------
        CampaignReport

        Raises
        ------
        ValueError
            Nothing was added or observed, and nothing stopped the sampler.
        """
        self._look()
        self._looks += 1
        seen = [case for case in self.cases if case.trials]
        if not (seen or self._observer.tokens or self.stopped):
            raise ValueError("campaign is empty: add blocks, or observe tokens, before a report")
        share = self._share()
        intervals = tuple(
            interval(
                case.name,
                case.tree,
                case.counts,
                case.trials,
                share,
                impossible=case.impossible,
                allowance=self.tolerance * case.tree.length,
            )
            for case in seen
        )
        verdict = self._verdict(intervals)
        needed = None
        if verdict == Verdict.INCONCLUSIVE and self.eps is not None:
            needed = max((self.needed(case) or 0 for case in self.cases), default=None)
        return CampaignReport(
            verdict=verdict,
            trials=sum(case.trials for case in seen),
            tokens=int(sum(case.counts.sum() for case in seen)) + self._observer.tokens,
            alpha=self.alpha,
            eps=self.eps,
            tolerance=self.tolerance,
            view=self.view,
            log10_evidence=math.inf if self.impossible else self.peak / math.log(10),
            impossible=self.impossible,
            intervals=intervals,
            suspects=self._suspects(),
            acceptance=tuple(self._acceptance(case) for case in seen if _has_lengths(self, case)),
            needed=needed,
            seed=self.seed,
            seconds=time.perf_counter() - self._started,
            stopped=self.stopped,
        )

    def needed(self, case: CampaignCase) -> int | None:
        """Trials on a case that certify a lossless sampler within `eps`, 9 times in 10."""
        if self.eps is None:
            return None
        return needed_trials(case.tree, self.eps, self._share())

    def _share(self) -> float:
        # Half of alpha is for the interval: over the looks so far (at least one), all cases,
        # and both of its ends.
        look = max(1, self._looks)
        return self.alpha / 2 * 6 / (math.pi * look) ** 2 / max(1, len(self.cases)) / 2

    def _verdict(self, intervals: tuple[Interval, ...]) -> Verdict:
        too_far = any(found.estimate > found.threshold for found in intervals)
        self._too_far |= too_far
        if self.decided_lossy:
            return Verdict.LOSSY
        if self.stopped:
            return Verdict.INCONCLUSIVE
        # Tokens that were only observed have no interval, and cannot be certified.
        complete = len(intervals) == len(self.cases) > 0 and not self._observer.tokens
        eps = self.eps
        if complete and eps is not None and all(found.upper <= eps for found in intervals):
            return Verdict.LOSSLESS_WITHIN_EPS
        return Verdict.INCONCLUSIVE

    def _bet(self, case: CampaignCase, fresh: Floats) -> None:
        node, token = np.nonzero(fresh)
        won = case.log_bets[:, node, token] @ fresh[node, token]
        for key, gain in zip(case.library, won.tolist(), strict=True):
            self._library[key] = self._library.get(key, 0.0) + gain
        self._tilts += bets.tilt_evidence(fresh, case.tilts, case.tree.position)

    def _look(self) -> None:
        families = self._families()
        total = bets.log_mean(np.array([bets.log_mean(f) for f in families.values()]))
        if total >= self.peak:
            self.peak, self._at_peak = total, families

    def _families(self) -> dict[str, Floats]:
        # Every family counts from the start, with a wealth of 1 while it has nothing to bet on:
        # a family that joined later would change the weights of the others.
        dirichlet = np.zeros(len(bets.CONCENTRATIONS))
        for case in self.cases if not self.tolerance else ():
            dirichlet += bets.dirichlet_evidence(case.counts, case.tree.p)
        return {
            "library": np.array(list(self._wealth_by_bug().values()) or [0.0]),
            "tilt": (self._tilts + self._observer.tilts).ravel(),
            "lag": (self._lag + self._observer.lag).ravel(),
            "pointwise": self._observer.library.ravel(),
            "dirichlet": dirichlet,
        }

    def _wealth_by_bug(self) -> dict[tuple[str, float], float]:
        declared = (key for case in self.cases for key in case.library)
        return dict.fromkeys(declared, 0.0) | self._library

    def _suspects(self) -> tuple[Suspect, ...]:
        best: dict[str, float] = {}
        library = list(self._wealth_by_bug()) or [("no bug", 0.0)]
        for family, values in self._at_peak.items():
            for index, value in enumerate(values.tolist()):
                name = f"{family}: {large.label(family, index, library)}"
                best[name] = max(value, best.get(name, -math.inf))
        ranked = sorted(best.items(), key=lambda item: -item[1])[:SUSPECTS]
        return tuple(Suspect(name, value / math.log(10)) for name, value in ranked)

    def _impossible(self, case: CampaignCase, block: Ints) -> None:
        tokens = tuple(int(token) for token in block[block >= 0])
        if self.impossible is None:
            self.impossible = f"block {tokens} on {case.name}: the target excludes it"

    def _trace(
        self, case: CampaignCase, blocks: Ints, nodes: Ints, drafts: Sequence[Tokens] | Ints | None
    ) -> None:
        expected = (len(blocks), case.tree.lookahead)
        if drafts is None or np.shape(drafts) != expected:
            shape = None if drafts is None else np.shape(drafts)
            raise ValueError(f"drafts has shape {shape}: the view trace expects {expected}")
        drafted = as_blocks(drafts, "drafts")
        check_ids(drafted, case.tree.p.shape[1], "drafts")
        wrong = impossible_traces(case.tree, blocks, nodes, drafted)
        if len(wrong) and self.impossible is None:
            block, draft = blocks[wrong[0]].tolist(), drafted[wrong[0]].tolist()
            self.impossible = f"block {block} from drafts {draft} on {case.name}: no such path"

    def _acceptance(self, case: CampaignCase) -> AcceptanceResult:
        tree = case.tree
        law = accepted_length_distribution(
            case.algorithm, tree.target, tree.drafter, tree.context, tree.lookahead
        )
        alpha = self.alpha * 6 / (math.pi * self._looks) ** 2 / len(self.cases)
        return compare_lengths(case.name, case.lengths, [float(x) for x in law], alpha)


def _has_lengths(campaign: Campaign, case: CampaignCase) -> bool:
    # An accepted EOS ends a block without a last token of its own.
    return campaign.view != "stream" and case.tree.target.vocabulary.eos is None
