"""A campaign: one anytime-valid test of a black-box sampler, over all its cases and runs.

Half of alpha pays for the evidence, an e-process that bets on every token; the other half for a
total-variation test whose power is proved.
"""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

from numpy.typing import ArrayLike

from specref.arrays import Floats, Ints
from specref.models import Model
from specref.statistics.campaign.acceptance import compare_lengths
from specref.statistics.campaign.evidence import STANDARD, Bug, CampaignCase, Evidence, declare
from specref.statistics.campaign.least import least_on
from specref.statistics.campaign.levels import ALPHA
from specref.statistics.campaign.planning import (
    LOOKS,
    bound_share,
    evidence_threshold,
    interval,
    needed_trials,
)
from specref.statistics.campaign.prefix_tree import (
    as_blocks,
    as_drafts,
    fitted,
    impossible_traces,
    walk,
)
from specref.statistics.campaign.verdict import (
    AcceptanceResult,
    CampaignReport,
    Interval,
    Verdict,
    describe,
)
from specref.vocabulary import Tokens

View: TypeAlias = Literal["boundary", "stream", "trace"]
EPS = 0.02


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
        granted that the rule is standard speculative decoding with the draft model's own q:
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

    Attributes
    ----------
    cases : list of CampaignCase
    evidence : Evidence
    impossible : str or None
        The first event that the target excludes.
    stopped : str or None
        Why the sampler could not go on.

    Examples
    --------
    >>> import numpy as np
    >>> from specref.models import hashed_model
    >>> from specref.tables import simulate
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
        if view not in get_args(View):
            raise ValueError(f"view = {view!r}: expected boundary, stream or trace")
        self.alpha, self.eps, self.seed = alpha, eps, seed
        self.view, self.tolerance = view, tolerance
        self.cases: list[CampaignCase] = []
        self.evidence = Evidence(tolerance)
        self.impossible: str | None = None
        self.stopped: str | None = None
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
        algorithm: str = STANDARD,
        name: str | None = None,
        mutants: Mapping[str, Bug] | None = None,
        tokens: int | None = None,
    ) -> CampaignCase:
        """Declare a toy pair that the sampler will be run on.

        Parameters
        ----------
        target, drafter : Model
        context : tuple of int
        lookahead : int
        algorithm : str
            What the sampler claims to be, for numbers of accepted tokens and the clean
            distribution.
        name : str, optional
            For the report.
        mutants : mapping, optional
            {id: bug}: the known bugs to bet on, such as `zoo.MUTANTS`. Without them less is
            bet on: what is LOSSY may need more blocks, and has no suspects of that name. Those
            that crash on the pair, or have too many random paths there, are in the case's
            `left_out`.
        tokens : int, optional
            In the view "stream": how many tokens each text has.
        """
        name = name or f"case {len(self.cases)}"
        length = lookahead + 1 if tokens is None else tokens
        self._check_case(name, algorithm)
        if length < 1:
            raise ValueError(f"tokens = {length}: expected at least 1")
        text = length if self.view == "stream" else None
        return self._take(
            declare(
                name, target, drafter, context, lookahead, algorithm,
                mutants or {}, text, self.tolerance,
            )
        )  # fmt: skip

    def adopt(self, case: CampaignCase) -> CampaignCase:
        """Declare the same case as another campaign, without computing its bets again.

        Parameters
        ----------
        case : CampaignCase
            Of a campaign with the same tolerance, and the same use of texts. What was counted
            on it there does not count here.

        Returns
        -------
        CampaignCase
            To `add` to.
        """
        self._check_case(case.name, case.algorithm)
        if case.tolerance != self.tolerance:
            raise ValueError(f"case.tolerance = {case.tolerance}: expected {self.tolerance}")
        if (case.tokens is None) == (self.view == "stream"):
            raise ValueError(f"case.tokens = {case.tokens}: not for the view {self.view}")
        return self._take(case.emptied())

    def _check_case(self, name: str, algorithm: str) -> None:
        if name in [case.name for case in self.cases]:
            raise ValueError(f"name = {name!r}: the campaign has a case of that name")
        if self.view == "trace" and algorithm != STANDARD:
            raise ValueError(f"algorithm = {algorithm!r}: the view trace knows {STANDARD} only")

    def _take(self, case: CampaignCase) -> CampaignCase:
        self.evidence.declare(case)
        self.cases.append(case)
        return case

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
        self._count(case, blocks, drafts)
        self.evidence.look(self.cases)

    def add_all(self, samples: Iterable[tuple[CampaignCase, Sequence[Tokens] | Ints]]) -> None:
        """Count blocks of several cases, and look at the evidence once all are counted.

        For blocks that the sampler produced in another order than that of `samples`: between
        two cases the evidence is none that it had at any time.
        """
        for case, blocks in samples:
            self._count(case, blocks, None)
        self.evidence.look(self.cases)

    def _count(
        self,
        case: CampaignCase,
        blocks: Sequence[Tokens] | Ints,
        drafts: Sequence[Tokens] | Ints | None,
    ) -> None:
        if not any(case is declared for declared in self.cases):
            raise ValueError(f"case {case.name!r} is of another campaign")
        array = fitted(as_blocks(blocks), case.tree.length)
        if not len(array):
            return
        nodes, bad = walk(case.tree, array)
        if self.view == "stream":
            case.check_texts(array)
        if self.view == "trace":
            drafted = as_drafts(case.tree, drafts, len(array))
            wrong = impossible_traces(case.tree, array, nodes, drafted)
            if len(wrong):
                block, draft = array[wrong[0]].tolist(), drafted[wrong[0]].tolist()
                self.exclude(f"block {block} from drafts {draft} on {case.name}: no such path")
        if len(bad):
            block = tuple(token for token in array[bad[0]].tolist() if token >= 0)
            self.exclude(f"block {block} on {case.name}: the target excludes it")
        self.evidence.bet(case, *case.count(array, nodes, bad))

    def exclude(self, event: str) -> None:
        """Note an event that the target excludes; the first one is reported."""
        if self.impossible is None:
            self.impossible = event

    def observe(
        self,
        p: ArrayLike,
        token: int,
        q: ArrayLike | None = None,
        position: int = 0,
        last: bool = False,
    ) -> None:
        """Bet on one token of a sampler with any vocabulary, in time O(V) and no memory of it.

        Parameters
        ----------
        p : array_like, shape (V,)
            The target's distribution given everything before the token. A sum within 1e-6 of 1 is
            taken for single precision, and divided by.
        token : int
        q : array_like, shape (V,), optional
            The draft model's distribution there; without it fewer bets are made.
        position : int
            In the block.
        last : bool
            Whether it is the bonus position, after all drafts.

        Raises
        ------
        TypeError
            Rows that are no numbers, or a token, position or last of another type.
        ValueError
            Wrong shapes, or a token id out of range.
        """
        if self.evidence.observer.observe(p, token, q, position, last):
            self.evidence.look(self.cases)
        else:
            self.exclude(describe((), token, f"observation {self.evidence.observer.tokens}"))

    @property
    def peak(self) -> float:
        """The logarithm of the evidence, its highest."""
        return self.evidence.peak

    def wealth(self) -> dict[str, Floats]:
        """The log-wealth of every bet as it is now, by family."""
        return self.evidence.families(self.cases)

    @property
    def decided_lossy(self) -> bool:
        """Whether evidence, an impossible token, or an earlier report has decided already."""
        enough = self.peak >= evidence_threshold(self.alpha)
        return self.impossible is not None or enough or self._too_far

    def report(self) -> CampaignReport:
        """The verdict. Each call is a look; the interval pays for every one.

        The evidence may be evaluated whenever one likes. The interval, and the
        total-variation test that goes with it, hold for looks at trial numbers that were not
        chosen from the counts, and for independent blocks of one distribution.

        Returns
        -------
        CampaignReport

        Raises
        ------
        ValueError
            Nothing was added or observed, and nothing stopped the sampler.
        """
        seen = [case for case in self.cases if case.trials]
        if not (seen or self.evidence.observer.tokens or self.stopped):
            raise ValueError("campaign is empty: add blocks, or observe tokens, before a report")
        self.evidence.look(self.cases)
        self._looks += 1
        intervals = tuple(
            interval(
                case.name,
                case.tree,
                case.counts,
                case.trials,
                self._share(self._looks),
                impossible=case.impossible,
                allowance=self.tolerance * case.tree.length,
            )
            for case in seen
        )
        verdict, needed, least = self._verdict(intervals), None, None
        if verdict == Verdict.LOSSY and seen:
            found = (least_on(c.tree, c.counts, c.trials, c.impossible) for c in seen)
            least = max(found, key=lambda one: one.sure)
        if verdict == Verdict.INCONCLUSIVE and self.eps is not None:
            needed = max((self.needed(case) or 0 for case in self.cases), default=None)
        return CampaignReport(
            verdict=verdict,
            trials=sum(case.trials for case in seen),
            tokens=int(sum(c.counts.sum() for c in seen)) + self.evidence.observer.tokens,
            alpha=self.alpha,
            eps=self.eps,
            tolerance=self.tolerance,
            view=self.view,
            log10_evidence=math.inf if self.impossible else self.peak / math.log(10),
            impossible=self.impossible,
            intervals=intervals,
            suspects=self.evidence.suspects(),
            acceptance=self._acceptance(seen),
            needed=needed,
            seed=self.seed,
            seconds=time.perf_counter() - self._started,
            stopped=self.stopped,
            left_out=sum(len(case.left_out) for case in self.cases),
            least=least,
        )

    def needed(self, case: CampaignCase) -> int | None:
        """Trials on a case that certify a lossless sampler within `eps`, 9 times in 10.

        That is at the next report, which has a smaller share of alpha than the last.
        """
        if self.eps is None:
            return None
        return needed_trials(case.tree, self.eps, self._share(self._looks + 1))

    def _share(self, look: int) -> float:
        return bound_share(self.alpha, look, len(self.cases))

    def _verdict(self, intervals: tuple[Interval, ...]) -> Verdict:
        self._too_far |= any(found.estimate > found.threshold for found in intervals)
        if self.decided_lossy:
            return Verdict.LOSSY
        if self.stopped:
            return Verdict.INCONCLUSIVE
        # Tokens that were only observed have no interval, and cannot be certified.
        complete = len(intervals) == len(self.cases) > 0 and not self.evidence.observer.tokens
        eps = self.eps
        if complete and eps is not None and all(found.upper <= eps for found in intervals):
            return Verdict.LOSSLESS_WITHIN_EPS
        return Verdict.INCONCLUSIVE

    def _acceptance(self, seen: Sequence[CampaignCase]) -> tuple[AcceptanceResult, ...]:
        """Accepted lengths, where blocks show them: an accepted EOS adds no token of its own."""
        if self.view == "stream":
            return ()
        alpha = self.alpha / (LOOKS * self._looks**2) / max(1, len(self.cases))
        return tuple(
            compare_lengths(case.name, case.lengths, case.accepted, alpha)
            for case in seen
            if case.accepted is not None and case.tree.target.vocabulary.eos is None
        )
