"""A stratum: one kind of situation, its batches, and the calls of a sampler in it."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from specref.arrays import NO_TOKEN, Ints
from specref.conformance.strata.calling import Called
from specref.conformance.strata.campaign import PLACES, Campaign, Found, Tokens, played
from specref.conformance.strata.laws import ORDINARY, USUAL, Pool, drawn_pool, ending_pool
from specref.conformance.strata.shape import Box, Shape
from specref.contracts.batch import Batch, joined
from specref.contracts.timeout import Deadline, within

POOL_CELLS, MOST_PAIRS, ROWS = 1 << 20, 42, 64
WARM_UP, DRAWN_CELLS = Shape(4, 1, 1), 1 << 17


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
    in_turn : bool
        Whether every other call has none.
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
    greedy_first : bool
        Whether all laws of the first call in each shape are certain; nothing is bet on it.
    steady : bool
        Whether all positions of a row have the same pair of laws.
    box : Box or None
        Of what more shapes are drawn, by the seed; their batches are as small as `DRAWN_CELLS`
        asks for.
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
    in_turn: bool = False
    padding: int = 0
    ragged: bool = True
    endings: bool = False
    pairs: int | None = None
    after: int = 0
    greedy_first: bool = False
    steady: bool = False
    box: Box | None = None
    cost: float = 1.0
    alone: bool = False

    def with_drawn(self, rng: np.random.Generator) -> "Stratum":
        """The stratum with shapes of its box."""
        if self.box is None:
            return self
        drawn = [
            Shape(
                size, lookahead, max(1, min(batch, DRAWN_CELLS // Shape(size, lookahead, 1).cells))
            )
            for size, lookahead, batch in self.box.drawn(rng)
        ]
        return replace(self, shapes=(*self.shapes, *drawn), box=None)


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


def drawn(
    shape: Shape, pool: Pool, rng: np.random.Generator, *, ragged: bool, steady: bool = False
) -> Batch:
    """A batch whose rows have laws of the pool, any pair at any position; or one at all of a row.

    Its `place` says which pair: shape (B, K + 1). One row in four is shorter if it may be. In the
    rows of laws after the last draft, the last token is certain, as in `draw_batch`.
    """
    size, most, rows = shape.vocabulary, shape.lookahead, shape.batch
    pair = rng.integers(len(pool.p), size=(rows, most + 1))
    if steady:
        pair[:] = pair[:, :1]
    lens = np.full(rows, most)
    if ragged:
        shorter = rng.random(rows) < 0.25
        lens[shorter] = rng.integers(most, size=int(shorter.sum()))
    drafts = pool.drafted(pair[:, :most].ravel(), rng).reshape(rows, most)
    p, q = pool.p.take(pair, axis=0), pool.q.take(pair[:, :most], axis=0)
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
    places = {**PLACES, **verifier.places}
    campaign, deadline = Campaign(shapes, known, claims, places), Deadline()
    campaign.before = before
    # Small batches are called more often, so that every shape has its share of the rows.
    most = min(ROWS, max(shape.batch for shape in shapes))
    several = tuple(dict.fromkeys(shapes))

    def ask(shape: Shape, calls: int) -> Tokens:
        whole = shape._replace(batch=shape.batch * calls)
        pool = known[shape.vocabulary]
        batch = drawn(whole, pool, rng, ragged=ragged, steady=stratum.steady)
        first, many = campaign.calls, calls if not stratum.in_turn else 1
        answers = []
        for call in range(0, calls, many):
            part = batch[call * shape.batch : (call + many) * shape.batch]
            with_laws = stratum.laws and not (stratum.in_turn and (first + call) % 2)
            given = part if with_laws else part.without_q()
            answers.append(verifier.answers(given, shape.batch, rng, deadline))
        tokens = joined(answers).tokens
        return tokens_of(batch, tokens, shape.batch, first)

    def work() -> Found:
        begun = time.perf_counter()
        warming = drawn(WARM_UP._replace(batch=stratum.after), warm, rng, ragged=ragged)
        for call in range(before, stratum.after):
            if most_before is not None and time.perf_counter() - begun > most_before:
                break
            verifier.raw(warming[call : call + 1], spare)
            campaign.before = call + 1
            deadline.restart()
        for shape in several if stratum.greedy_first else ():
            greedy = drawn_pool(spare, shape.vocabulary, 4, ("certain",), ("same",))
            verifier.raw(drawn(shape, greedy, spare, ragged=ragged), spare)
            deadline.restart()
        found = played(
            campaign,
            several,
            ask,
            lambda shape: max(1, most // shape.batch),
            alpha,
            tokens,
            cells,
            advance,
            seconds,
        )
        return replace(found, temperatures=frozenset(verifier.temperatures_met))

    return within(verifier.timeout, work, deadline)
