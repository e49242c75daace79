"""What a campaign collects: its cases, the samples on them, and the bets on every token."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specref.losslessness.blocks import as_blocks, fitted
from specref.losslessness.cases import CampaignCase, declare
from specref.losslessness.evidence import Evidence
from specref.losslessness.traces import as_drafts, impossible_traces
from specref.losslessness.tree import walk
from specref.losslessness.verdict import describe
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo import MUTANTS, Entry

Ints = NDArray[np.int64]
View: TypeAlias = Literal["boundary", "stream", "trace"]


class Collection:
    """Cases, samples and bets; `Campaign` judges them.

    Attributes
    ----------
    cases : list of CampaignCase
    evidence : Evidence
    impossible : str or None
        The first event that the target excludes.
    """

    def __init__(self, view: View, tolerance: float) -> None:
        if not 0 <= tolerance < 1:
            raise ValueError(f"tolerance = {tolerance}: expected a number in [0, 1)")
        if view not in get_args(View):
            raise ValueError(f"view = {view!r}: expected boundary, stream or trace")
        self.view, self.tolerance = view, tolerance
        self.cases: list[CampaignCase] = []
        self.evidence = Evidence(self.cases, tolerance)
        self.impossible: str | None = None

    @property
    def peak(self) -> float:
        """The logarithm of the evidence, its highest so far."""
        return self.evidence.peak

    def case(
        self,
        target: Model,
        drafter: Model,
        context: Tokens = (),
        lookahead: int = 1,
        *,
        algorithm: str = "standard",
        name: str | None = None,
        mutants: Mapping[str, Entry] | None = None,
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
        mutants : mapping, optional
            {id: Entry}: the library of known bugs to bet on, by default `zoo.MUTANTS`. Those
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
                MUTANTS if mutants is None else mutants, text, self.tolerance,
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
        if self.view == "trace" and algorithm != "standard":
            raise ValueError(f"algorithm = {algorithm!r}: the view trace knows standard only")

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
        if not any(case is declared for declared in self.cases):
            raise ValueError(f"case {case.name!r} is of another campaign")
        array = fitted(as_blocks(blocks), case.tree.length)
        if not len(array):
            return
        nodes, bad = walk(case.tree, array)
        if self.view == "stream":
            case.check_texts(array)
        if self.view == "trace":
            self._trace(case, array, nodes, as_drafts(case.tree, drafts, len(array)))
        if len(bad):
            block = tuple(token for token in array[bad[0]].tolist() if token >= 0)
            self._exclude(f"block {block} on {case.name}: the target excludes it")
        self.evidence.bet(case, *case.count(array, nodes, bad))
        self.evidence.look()

    def _trace(self, case: CampaignCase, blocks: Ints, nodes: Ints, drafts: Ints) -> None:
        wrong = impossible_traces(case.tree, blocks, nodes, drafts)
        if len(wrong):
            block, draft = blocks[wrong[0]].tolist(), drafts[wrong[0]].tolist()
            self._exclude(f"block {block} from drafts {draft} on {case.name}: no such path")

    def _exclude(self, event: str) -> None:
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
            The target's law given everything before the token. A sum within 1e-6 of 1 is
            taken for single precision, and divided by.
        token : int
        q : array_like, shape (V,), optional
            The drafter's law there; without it fewer bets are made.
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
            self.evidence.look()
        else:
            self._exclude(describe((), token, f"observation {self.evidence.observer.tokens}"))
