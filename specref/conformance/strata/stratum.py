"""A stratum: one kind of situation, and the campaign of bets on the tokens that it yields."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from specref.arrays import NO_TOKEN, Bools, Floats, Ints
from specref.conformance.strata.calling import Called
from specref.conformance.strata.endings import ending_pool
from specref.conformance.strata.laws import (
    AGAIN,
    FEATURES,
    ORDINARY,
    USUAL,
    WORDS,
    Pool,
    drawn_pool,
    of_each,
)
from specref.conformance.strata.shape import Shape, Sized
from specref.contracts.batch import Batch
from specref.contracts.capabilities import Capabilities
from specref.contracts.timeout import Deadline, within
from specref.statistics.features import FeatureSums

POOL_CELLS, MOST_CELLS, MOST_PAIRS, ROWS = 1 << 20, 1 << 20, 42, 64
WARM_UP = Shape(4, 1, 1)
SUSPECT, LONGER = math.log(100), 4
"""From this evidence on a campaign goes on for so many times its tokens, unless it decides."""
NAMES = (*FEATURES, AGAIN)
PLACES: Mapping[str, Callable[["Tokens"], Bools]] = MappingProxyType(
    {
        "anywhere": lambda at: np.ones_like(at.row, dtype=bool),
        "at position 0": lambda at: at.position == 0,
        "from position 1": lambda at: at.position > 0,
        "from position 3": lambda at: at.position > 2,
        "after all drafts": lambda at: at.position == at.drafts,
        "in row 0": lambda at: at.row == 0,
        "in the last row": lambda at: at.row == at.rows - 1,
        "in odd rows": lambda at: at.row % 2 == 1,
        "from row 8": lambda at: at.row >= 8,
        "from row 64": lambda at: at.row >= 64,
        "from row 256": lambda at: at.row >= 256,
        "from row 1,024": lambda at: at.row >= 1_024,
        "in rows with fewer drafts": lambda at: at.drafts < at.lookahead,
        "in the first call": lambda at: at.call == 0,
        "in odd calls": lambda at: at.call % 2 == 1,
    }
)


@dataclass(frozen=True)
class Stratum:
    """One kind of situation.

    Attributes
    ----------
    name : str
    shapes : tuple of Shape
        Of the calls, in turn.
    targets, drafters : tuple of str
        The families of laws; see `laws`.
    way : str
        How the sampler is called; see `calling`.
    laws : bool
        Whether `draft_probs` are passed.
    padding : int
        How many of the last ids have no probability.
    ragged : bool
        Whether some rows have fewer drafts, if the sampler takes that.
    endings : bool
        Whether the laws are those of `endings` instead.
    pairs : int or None
        How many pairs of laws there are, if not as many as usual.
    after : int
        How many calls there are before.
    cost : float
        Factor on the calls, and on the numbers that are passed.
    alone : bool
        Whether it is never one of a pair of strata.
    """

    name: str
    shapes: tuple[Shape, ...]
    targets: tuple[str, ...] = ORDINARY
    drafters: tuple[str, ...] = USUAL
    way: str = "plain"
    laws: bool = True
    padding: int = 0
    ragged: bool = True
    endings: bool = False
    pairs: int | None = None
    after: int = 0
    cost: float = 1.0
    alone: bool = False


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of answers to calls of one shape, and where each of them is.

    Attributes
    ----------
    token, pair, position, drafts : ndarray of int, shape (tokens,)
        The token, the pair of laws at its position, that position, the drafts of its row.
    row, call : ndarray of int, shape (tokens,)
        The row of its call, and the number of the call in the stratum.
    rows, lookahead : int
        Of every call.
    """

    token: Ints
    pair: Ints
    position: Ints
    drafts: Ints
    row: Ints
    call: Ints
    rows: int
    lookahead: int


@dataclass(frozen=True)
class Found:
    """What a stratum has shown.

    Attributes
    ----------
    log10_evidence, log10_threshold : float
    worst : str
        The feature and the place with the most evidence, in words.
    shift : float
        The observed shift of that feature: a mean over tokens.
    impossible : str
        The first token with p = 0; empty if there was none.
    calls, rows, tokens : int
    before : int
        Earlier calls, as far as they were counted.
    detectable : float
        The shift of any of the features, anywhere, that would have been found.
    by_shape : mapping
        The same for the tokens of each shape alone.
    dtype : str
    """

    log10_evidence: float
    log10_threshold: float
    worst: str
    shift: float
    impossible: str
    calls: int
    rows: int
    tokens: int
    before: int
    detectable: float
    by_shape: Mapping[Sized, float]
    dtype: str

    @property
    def lossy(self) -> bool:
        """Whether the law is not the target's."""
        return bool(self.impossible) or self.log10_evidence >= self.log10_threshold


def most_pairs(size: int) -> int:
    """How many pairs of laws there are over so many tokens, if nothing else is said."""
    return max(4, min(MOST_PAIRS, POOL_CELLS // size))


def pools(stratum: Stratum, shapes: Sequence[Shape], rng: np.random.Generator) -> dict[int, Pool]:
    """Pairs of laws for each size of the vocabulary."""
    sizes = dict.fromkeys(shape.vocabulary for shape in shapes)
    if stratum.endings:
        return {size: ending_pool(rng, size, stratum.pairs or most_pairs(size)) for size in sizes}
    return {
        size: drawn_pool(
            rng,
            size,
            stratum.pairs or most_pairs(size),
            stratum.targets,
            stratum.drafters,
            min(stratum.padding, size // 2),
        )
        for size in sizes
    }


def drawn(shape: Shape, pool: Pool, rng: np.random.Generator, *, ragged: bool) -> Batch:
    """A batch whose rows have laws of the pool, any pair at any position.

    Its `place` says which pair: shape (B, K + 1). One row in four is shorter if it may be. In the
    rows of laws after the last draft, the last token is certain, as in `draw_batch`.
    """
    size, most, rows = shape.vocabulary, shape.lookahead, shape.batch
    pair = rng.integers(len(pool.p), size=(rows, most + 1))
    lens = np.full(rows, most)
    if ragged:
        shorter = rng.random(rows) < 0.25
        lens[shorter] = rng.integers(most, size=int(shorter.sum()))
    drafts = pool.drafted(pair[:, :most].ravel(), rng).reshape(rows, most)
    p, q = pool.p[pair], pool.q[pair[:, :most]]
    missing = np.arange(most) >= lens[:, None]
    if missing.any():
        p[:, 1:][missing] = q[missing] = np.arange(size) == size - 1
        drafts[missing] = NO_TOKEN
    return Batch(p, q, drafts, lens, pair)


def tokens_of(batch: Batch, blocks: Ints, rows: int, call: int) -> Tokens:
    """The tokens of a batch that was cut into calls of so many rows, the first numbered `call`."""
    row, position = np.nonzero(blocks >= 0)
    return Tokens(
        blocks[row, position],
        batch.place[row, position],
        position,
        batch.lens[row],
        row % rows,
        call + row // rows,
        rows,
        batch.draft_tokens.shape[1],
    )


class Seen:
    """The tokens of each pair of a pool that were emitted before.

    Parameters
    ----------
    pool : Pool

    Examples
    --------
    >>> pool = drawn_pool(np.random.default_rng(1), 4, 1, ["flat"])
    >>> again, chance = Seen(pool).add(np.zeros(4, dtype=np.int64), np.array([2, 2, 0, 2]))
    >>> again.tolist(), chance.tolist()
    ([False, True, False, True], [0.0, 0.25, 0.25, 0.5])
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.before = np.zeros(pool.p.shape, dtype=bool)
        self.mass = np.zeros(len(pool.p))

    def add(self, pair: Ints, token: Ints) -> tuple[Bools, Floats]:
        """Whether each token was emitted before, and how probable it was that it would be."""
        new = ~self.before[pair, token]
        (open_,) = new.nonzero()
        _, first = np.unique((pair * self.pool.size + token)[open_], return_index=True)
        new[:] = False
        new[open_[first]] = True
        won = np.where(new, self.pool.p[pair, token], 0.0)
        chance = np.zeros(len(token))
        for one, here in of_each(pair):
            more = won[here]
            total = self.mass[one] + more.cumsum()
            chance[here] = total - more
            self.mass[one] = total[-1]
        self.before[pair, token] = True
        return ~new, np.clip(chance, 0, 1)


class Campaign:
    """Bets on the tokens of a stratum: in each feature, at each place, and in each shape.

    Parameters
    ----------
    shapes : sequence of Shape
    pools : mapping
        {vocabulary: its pool}.
    claims : Capabilities
    places : mapping
        {name: tokens -> which of them are there}; the first is everywhere.
    """

    def __init__(
        self,
        shapes: Sequence[Sized],
        pools: Mapping[int, Pool],
        claims: Capabilities,
        places: Mapping[str, Callable[[Any], Bools]] = PLACES,
    ) -> None:
        self.dtype, self.places = claims.dtype, places
        self.pools, self.seen = pools, {size: Seen(pool) for size, pool in pools.items()}
        self.index = {shape: len(places) + i for i, shape in enumerate(dict.fromkeys(shapes))}
        self.sums = FeatureSums((len(places) + len(self.index), len(NAMES)), claims.tolerance)
        self.impossible = ""
        self.calls = self.rows = self.before = 0

    def add(self, shape: Sized, tokens: Tokens) -> None:
        """Bet on the tokens of a call."""
        pool = self.pools[shape.vocabulary]
        chance = pool.p[tokens.pair, tokens.token]
        for at in np.flatnonzero(chance <= 0)[:1].tolist():
            self.impossible = self.impossible or (
                f"row {tokens.row[at]}: token {tokens.token[at]} at position "
                f"{tokens.position[at]} has p = 0 ({shape})"
            )
        again, seen = self.seen[shape.vocabulary].add(tokens.pair, tokens.token)
        values = np.column_stack([pool.features(tokens.pair, tokens.token), again])
        mean = np.column_stack([pool.mean[tokens.pair], seen])
        variance = np.column_stack([pool.variance[tokens.pair], seen * (1 - seen)])
        chosen = np.zeros((len(self.places) + len(self.index), len(again)), dtype=bool)
        for index, place in enumerate(self.places.values()):
            chosen[index] = place(tokens)
        chosen[self.index[shape]] = True
        self.sums.add(values, mean, variance, chosen)

    def decided(self, alpha: float) -> bool:
        """Whether what it has found so far is lossy."""
        return bool(self.impossible) or self.sums.log_evidence >= -math.log(alpha)

    @property
    def longer(self) -> int:
        """How many times the usual number of tokens are drawn, by the evidence so far.

        When evidence is weighed is free: that it ever reaches 1 / alpha has probability alpha.
        """
        return LONGER if self.sums.log_evidence >= SUSPECT else 1

    def found(self, alpha: float) -> Found:
        """The evidence so far, and the shifts that so many tokens would have shown."""
        sums = self.sums
        (place, chosen), more = sums.most
        where = [*self.places, *(f"with {shape}" for shape in self.index)][place]
        detectable = sums.detectable(alpha)
        # A feature that is the same for all possible tokens shifts by impossible ones alone.
        shifts = np.where(sums.variance > 0, detectable, 0.0)
        return Found(
            sums.log_evidence / math.log(10),
            -math.log10(alpha),
            f"too {'many' if more else 'few'} tokens {WORDS[NAMES[chosen]]}, {where}",
            float(sums.excess[place, chosen] / max(sums.tokens[place, chosen], 1)),
            self.impossible,
            self.calls,
            self.rows,
            int(sums.tokens[0, 0]),
            self.before,
            float(shifts[0].max()),
            {shape: float(shifts[index].max()) for shape, index in self.index.items()},
            self.dtype,
        )


def run(
    stratum: Stratum,
    shapes: Sequence[Shape],
    verifier: Called,
    alpha: float,
    before: int,
    tokens: int,
    cells: int,
    rng: np.random.Generator,
    advance: Callable[[int], None] = lambda trials: None,
    seconds: float | None = None,
    most_before: float | None = None,
    laws: Mapping[int, Pool] | None = None,
) -> Found:
    """Call a sampler in a stratum until it has decided, or enough was drawn.

    Parameters
    ----------
    before : int
        How often the sampler was called before; up to `stratum.after` calls are made first, and
        nothing is bet on their tokens.
    tokens : int
        After so many it ends, at the end of a round of its shapes; after more where it suspects.
    cells : int
        After so many numbers in laws it ends in any case, at the end of a round; or as above.
    seconds : float, optional
        If given, they end it instead, after at least one round; calls before are not counted.
    most_before : float, optional
        Seconds after which there are no more calls before.
    laws : mapping, optional
        {vocabulary: its pairs of laws}; drawn by default.
    """
    known = pools(stratum, shapes, rng) if laws is None else laws
    warm = drawn_pool(rng, WARM_UP.vocabulary, 4)
    (spare,) = rng.spawn(1)  # what follows must not depend on how many calls there were before
    claims = verifier.capabilities
    ragged = claims.ragged and stratum.ragged
    campaign, passed, deadline = Campaign(shapes, known, claims), 0, Deadline()
    campaign.before = before
    # Small batches are called more often, so that every shape has its share of the rows.
    most = min(ROWS, max(shape.batch for shape in shapes))
    turns = {shape: max(1, most // shape.batch) for shape in shapes}
    in_turn = sum(shape.cells * calls for shape, calls in turns.items())

    def ask(shape: Shape, calls: int) -> None:
        batch = drawn(
            shape._replace(batch=shape.batch * calls), known[shape.vocabulary], rng, ragged=ragged
        )
        given = batch if stratum.laws else batch.without_q()
        cuts = [slice(i * shape.batch, (i + 1) * shape.batch) for i in range(calls)]
        answers = [verifier.answer(given[cut], rng, deadline=deadline) for cut in cuts]
        blocks = np.concatenate([answer.tokens for answer in answers])
        campaign.add(shape, tokens_of(batch, blocks, shape.batch, campaign.calls))
        campaign.calls, campaign.rows = campaign.calls + calls, campaign.rows + len(batch)
        advance(len(batch))

    def rounds() -> Found:
        nonlocal passed
        begun = time.perf_counter()
        warming = drawn(WARM_UP._replace(batch=stratum.after), warm, rng, ragged=ragged)
        for call in range(before, stratum.after):
            if most_before is not None and time.perf_counter() - begun > most_before:
                break
            verifier.raw(warming[call : call + 1], spare)
            campaign.before = call + 1
            deadline.restart()
        # Each round is as long as those before it together, so that evidence is weighed seldom.
        done, round_, begun = 0, 1, time.perf_counter()
        while True:
            for shape, calls in turns.items():
                together = max(1, MOST_CELLS // shape.cells)
                for start in range(0, calls * round_, together):
                    ask(shape, min(together, calls * round_ - start))
            done, passed = done + round_, passed + in_turn * round_
            seen = int(campaign.sums.tokens[0, 0])
            lossy = campaign.decided(alpha)
            more = campaign.longer
            left = min(
                (more * tokens - seen) * done / max(seen, 1), (more * cells - passed) / in_turn
            )
            if seconds is not None:
                spent = time.perf_counter() - begun
                left = math.floor((seconds - spent) * done / spent)
            if lossy or left <= 0:
                return campaign.found(alpha)
            round_ = min(done, math.ceil(left))

    return within(verifier.timeout, rounds, deadline)
