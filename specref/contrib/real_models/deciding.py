"""The listings of `specref.algorithms` in float64, on the loop's own random numbers and real rows.

A block of the loop was decided in float32, by a cached pass. Here the listing of its rule decides
it again, from p by the judge, q as declared, and the same random numbers. Where the two blocks
differ, a decision was nearer to its border than rounding is large, or something is wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import torch

from specref.algorithms import block, slem, standard
from specref.algorithms.standard import Draft
from specref.arrays import Floats
from specref.chance import Chance
from specref.contrib.real_models.generating import Proposal
from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.torch_backend import Coins, row_coins
from specref.vocabulary import Tokens, Vocabulary

NEAR = 1e-4
"""How far from its border a decision is safe from rounding: probabilities of a cached pass in
float32 are off by 1e-5 relatively, and so are sums of them over a vocabulary."""
SHOWN = 20
TINY = 1e-300
"""A probability of 0 may divide nothing."""


@dataclass
class Decided:
    """How many blocks were decided twice.

    * `iterations`, `different`, `unexplained`: Unexplained is a difference although no decision
      was within `NEAR` of its border, nor within what rounding moves across a filter's cut.
    * `examples`: The first differences, and all that are unexplained.
    """

    iterations: int = 0
    different: int = 0
    unexplained: int = 0
    examples: list[str] = field(default_factory=list)

    def add(
        self,
        emitted: Tokens,
        listed: Tokens,
        margin: tuple[float, str],
        undecided: Callable[[], float] = float,
    ) -> None:
        """One block: what the loop emitted, and what the listing says.

        * `undecided`: The probability that rounding may move across a filter's cut.
        """
        self.iterations += 1
        if emitted == listed:
            return
        self.different += 1
        explained = margin[0] <= NEAR or margin[0] <= NEAR + undecided()
        self.unexplained += not explained
        if not explained or len(self.examples) < SHOWN:
            self.examples.append(
                f"{emitted} where the listing has {listed}: {margin[1]} is {margin[0]:.1e} from "
                f"its border{'' if explained else ', UNEXPLAINED'}"
            )


class FromCoins(Chance):
    """Decides by the random numbers of one row and iteration, and keeps the narrowest decision.

    * `coins`: Of the row alone: `accept` of shape (1, K) and `final`.
    * `drafted`: How many drafts there are: the sample after them spends `final`.
    * `narrowest`: How far a number was from changing a decision, and where.
    """

    def __init__(self, coins: Coins, drafted: int) -> None:
        assert coins.final is not None
        self.accepts, self.final = coins.accept[0].tolist(), float(coins.final[0])
        self.drafted, self.narrowest = drafted, (np.inf, "nothing")

    def draw(self, probabilities: Probabilities, site: str) -> int:
        """By an inverse CDF; laws of real rows sum to 1 up to rounding."""
        return self._by_inverse(np.asarray(probabilities, dtype=np.float64), site)

    def choose(self, weights: Sequence[Probability], site: str) -> int:
        return self._by_inverse(np.asarray(weights, dtype=np.float64), site)

    def _by_inverse(self, probabilities: Floats, site: str) -> int:
        ends = np.cumsum(probabilities)
        point = self._number(site) * ends[-1]
        token = int(np.searchsorted(ends, point, side="right"))
        token = min(token, int(np.flatnonzero(probabilities)[-1]))  # if the point is rounded up
        start = ends[token] - probabilities[token]
        self._note(min(point - start, ends[token] - point), site)
        return token

    def accept(self, probability: Probability, site: str) -> bool:
        number = self._number(site)
        self._note(abs(number - float(probability)), site)
        return bool(number < probability)

    def accept_within(self, least: float, most: float, site: str) -> bool | None:
        """As `accept`, by bounds of the probability; None where they leave it open."""
        number = self._number(site)
        self._note(min(abs(number - least), abs(number - most)), site)
        return True if number < least else False if number >= most else None

    def _number(self, site: str) -> float:
        name, _, place = site.removesuffix("]").partition("[")
        if name in ("residual", "bonus") or int(place) >= self.drafted:
            return self.final
        number: float = self.accepts[int(place)]
        return number

    def _note(self, margin: float, site: str) -> None:
        self.narrowest = min(self.narrowest, (float(margin), site))


@dataclass(frozen=True)
class Facts:
    """What a block was decided by.

    * `laws`: p after some first tokens of the block, as far as known.
    * `row`, `drafted`: Of the proposal.
    * `undecided`: The most that rounding may move across a filter's cut in one of `laws`.
    """

    laws: Mapping[Tokens, Floats]
    proposal: Proposal | None
    row: int
    drafted: int
    seed: int
    iteration: int
    ends: frozenset[int]
    undecided: Callable[[], float]

    @property
    def size(self) -> int:
        return len(self.laws[()])


def decide(method: str, facts: Facts, emitted: Tokens, decided: Decided) -> None:
    """Let the listing of a method decide a block, and compare.

    Of SLRS, whose law psi is of a tree of drafts, the drafts that are kept are decided, and the
    bonus; a block is left out where the bounds of psi leave it open.
    """
    columns = 0 if facts.proposal is None else facts.proposal.drafts.tokens.shape[1]
    coins = row_coins(torch.tensor([facts.seed]), facts.iteration, columns)
    chance = FromCoins(coins, facts.drafted)
    target = Model(_vocabulary(facts.size, facts.ends), lambda context: facts.laws[context])
    listed: Tokens | None
    try:
        if method == "slrs":
            listed = _by_bounds(target, facts, chance, emitted)
        else:
            listed = LISTINGS[method](target, facts, chance)
    except KeyError as error:  # it has gone on where the loop has stopped
        listed = (*error.args[0], -1)
    if listed is not None:
        decided.add(emitted, listed, chance.narrowest, facts.undecided)


def _by_bounds(target: Model, facts: Facts, chance: FromCoins, emitted: Tokens) -> Tokens | None:
    """The block of SLRS; its token after a rejection is the loop's, whatever that is."""
    kept: Tokens = ()
    if facts.proposal is not None and facts.proposal.psi is not None:
        tokens = facts.proposal.drafts.tokens[facts.row, : facts.drafted].tolist()
        psi = facts.proposal.psi[:, facts.row, : facts.drafted].T.tolist()
        for place, (token, (lower, upper)) in enumerate(zip(tokens, psi, strict=True)):
            if token < 0:
                break
            p = float(target.next_token(kept)[token])
            least, most = (min(1.0, p / max(x, TINY)) for x in (upper, lower))
            accepted = chance.accept_within(least, most, f"accept[{place}]")
            if accepted is None:
                return None
            if not accepted:
                return (*kept, *emitted[len(kept) : len(kept) + 1])
            kept = (*kept, token)
            if token in facts.ends:
                return kept
    return (*kept, chance.draw(target.next_token(kept), "bonus"))


@cache
def _vocabulary(size: int, ends: frozenset[int]) -> Vocabulary:
    return Vocabulary(map(str, range(size)), eos=str(min(ends)) if ends else None)


def _drafts(facts: Facts) -> list[Draft]:
    if facts.proposal is None:
        return []
    drafts, row = facts.proposal.drafts, facts.row
    assert drafts.laws is not None
    tokens = drafts.tokens[row, : facts.drafted].tolist()
    laws = drafts.laws[row, : facts.drafted].double().cpu().numpy()
    return [Draft(t if t >= 0 else None, q) for t, q in zip(tokens, laws, strict=True)]


def _matched(target: Model, facts: Facts, chance: Chance) -> Tokens:
    proposal: Tokens = ()
    if facts.proposal is not None:
        proposal = tuple(facts.proposal.drafts.tokens[facts.row, : facts.drafted].tolist())
    return slem.match(target, (), proposal, chance)


def _verified(
    verify: Callable[..., Tokens], target: Model, facts: Facts, chance: Chance
) -> Tokens:
    return verify(target, (), _drafts(facts), chance)


Listing: TypeAlias = Callable[[Model, Facts, Chance], Tokens]
LISTINGS: Mapping[str, Listing] = MappingProxyType(
    {
        "autoregressive": _matched,
        **dict.fromkeys(("standard", "union", "tli"), partial(_verified, standard.verify)),
        "slem": _matched,
        "block": partial(_verified, block.verify),
    }
)
