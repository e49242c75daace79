"""One campaign of a check: blocks in, and two verdicts out, on their law and on dependence."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from specref.conformance.batch import BrokenContractError
from specref.conformance.bugs import bugs_of
from specref.conformance.contract import Ints
from specref.conformance.dependence import dependence
from specref.conformance.fixtures import NO_TOKEN, Place, Teeth
from specref.conformance.sampling import Sampler
from specref.conformance.stepping import until_end
from specref.conformance.trial_report import TrialReport, misfit, trials_needed
from specref.losslessness.bets import log_mean
from specref.losslessness.campaign import Campaign
from specref.losslessness.cases import CampaignCase
from specref.losslessness.collection import View
from specref.losslessness.shares import evidence_threshold
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo import Entry

FIRST_BATCH, LARGEST_BATCH = 1_800, 1 << 16


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
    """The bets at a place, made once: campaigns adopt them."""
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
    """How often each block occurs.

    Examples
    --------
    >>> tallied(np.array([[1, -1], [0, 2], [1, -1]]))
    Counter({(1,): 2, (0, 2): 1})
    """
    rows, times = np.unique(blocks, axis=0, return_counts=True)
    pairs = zip(rows.tolist(), times.tolist(), strict=True)
    return Counter({tuple(x for x in row if x >= 0): count for row, count in pairs})


@dataclass
class Trial:
    """A campaign over the places of a fixture, watched for its law and for dependence apart.

    Parameters
    ----------
    teeth : Teeth
    alpha : float
        The chance of a false alarm: a quarter each for the law by bets, the law by distance,
        dependence by bets, and dependence whatever the law.
    algorithm : str
        Whose accepted lengths are expected.
    tokens : int, optional
        Blocks are texts of so many tokens: the view "stream".
    mutants : mapping
        The library; by default the bugs of the algorithm.
    tolerance : float
    """

    teeth: Teeth
    alpha: float
    algorithm: str = "standard"
    tokens: int | None = None
    mutants: Mapping[str, Entry] | None = None
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        view: View = "boundary" if self.tokens is None else "stream"
        campaign = Campaign(alpha=self.alpha / 2, eps=None, view=view, tolerance=self.tolerance)
        mutants = bugs_of(self.algorithm) if self.mutants is None else self.mutants
        declared = (self.algorithm, self.tokens, self.tolerance, tuple(mutants.items()))
        self.cases = [
            campaign.adopt(declared_case(self.teeth.target, self.teeth.drafter, place, *declared))
            for place in self.teeth.places
        ]
        self.campaign = campaign
        self.law = self.dependence = -math.inf
        self.blocks: list[Counter[Tokens]] = [Counter() for _ in self.teeth.places]
        self.kept: list[Counter[int]] = [Counter() for _ in self.teeth.places]

    def run(
        self,
        sampler: Sampler,
        trials: int,
        rng: np.random.Generator,
        advance: Callable[[int], None] = lambda trials: None,
    ) -> TrialReport:
        """Draw until the law is decided, or `trials` are done.

        Dependence alone does not end it: a wrong law makes blocks look dependent, too, and
        decides a little later. Dependent blocks make the law look wrong in turn: once either is
        decided, more calls tell whether blocks depend on each other whatever their law.
        """
        started, size, done = time.perf_counter(), FIRST_BATCH, 0
        while done < trials and not self._decided():
            place, blocks, drafts = sampler(self._whole(min(size, trials - done)), rng)
            for index, case in enumerate(self.cases):
                here = place == index
                self._count(index, blocks[here], drafts[here])
                self._add(case, blocks[here])
            self._look()
            advance(len(place))
            done, size = done + len(place), min(2 * size, LARGEST_BATCH)
        found = self._report(time.perf_counter() - started)
        if found.report.impossible or not (found.lossy or found.dependent):
            return found
        size, threshold = len(self.teeth.target.vocabulary), evidence_threshold(self.alpha / 2)
        shared = dependence(sampler, size, rng, threshold)
        return replace(found, shared=shared / math.log(10))

    def needed(self, tv: float) -> int:
        """Trials, over all places, after which any law at distance `tv` is found."""
        return trials_needed([case.tree.law for case in self.cases], tv, self.campaign.alpha)

    def _whole(self, trials: int) -> int:
        """Fewer trials, equally many pairs at every place; all of them if there are too few."""
        return trials - trials % (2 * len(self.cases)) or trials

    def _add(self, case: CampaignCase, blocks: Ints) -> None:
        try:
            self.campaign.add(case, blocks)
        except ValueError as error:
            raise BrokenContractError(f"on {case.name}: {error}") from None

    def _count(self, index: int, blocks: Ints, drafts: Ints) -> None:
        self.blocks[index] += tallied(blocks)
        kept = (blocks[:, : drafts.shape[1]] == drafts) & (drafts != NO_TOKEN)
        for k, count in enumerate(np.logical_and.accumulate(kept, axis=1).sum(axis=0).tolist(), 1):
            self.kept[index][k] += count
        self.kept[index][0] += int((drafts[:, 0] != NO_TOKEN).sum())

    def _look(self) -> None:
        families = self.campaign.evidence.families()
        self.dependence = max(self.dependence, log_mean(families.pop("lag")))
        rest = np.array([log_mean(wealth) for wealth in families.values()])
        self.law = max(self.law, log_mean(rest))

    def _decided(self) -> bool:
        enough = self.law >= evidence_threshold(self.alpha / 2)
        return enough or self.campaign.impossible is not None

    def _report(self, seconds: float) -> TrialReport:
        report = self.campaign.report()
        misfits = {case.name: misfit(case.counts, case.tree.p) for case in self.cases}
        return TrialReport(
            report=report,
            law=self.law / math.log(10),
            dependence=self.dependence / math.log(10),
            threshold=evidence_threshold(self.alpha / 2) / math.log(10),
            far=any(found.estimate > found.threshold for found in report.intervals),
            worst=max(report.intervals, key=lambda interval: misfits[interval.case]),
            hits=self._hits(),
            kept=dict(zip(self.teeth.places, self.kept, strict=True)),
            blocks=dict(zip(self.teeth.places, self.blocks, strict=True)),
            seconds=seconds,
            laws=tuple(case.tree.law for case in self.cases),
            allowances=tuple(self.tolerance * case.tree.length for case in self.cases),
            after_eos=self.campaign.impossible is not None and self._after_eos(),
        )

    def _after_eos(self) -> bool:
        places = zip(self.teeth.places, self.blocks, strict=True)
        drawn = [(place, block) for place, found in places for block in found]
        cut = [(place, until_end(self.teeth, block)) for place, block in drawn]
        return cut != drawn and all(self._possible(*one) for one in cut)

    def _possible(self, place: Place, block: Tokens) -> bool:
        before = ((*place.context, *block[:length]) for length in range(len(block)))
        rows = map(self.teeth.target.next_token, before)
        return all(row[token] > 0 for row, token in zip(rows, block, strict=True))

    def _hits(self) -> dict[str, int]:
        bonus = total = 0
        for place, counts in zip(self.teeth.places, self.blocks, strict=True):
            if not place.lookahead:
                continue  # a row without drafts has neither
            total += sum(counts.values())
            bonus += sum(n for block, n in counts.items() if len(block) > place.lookahead)
        return {"bonus": bonus, "residual": total - bonus}


__all__ = ["Trial", "TrialReport", "declared_case", "tallied"]
