"""The contract ``verify``: drafts of a batch in, blocks out."""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from specref.arrays import NO_TOKEN, Floats, Ints
from specref.coins import Coins
from specref.contracts.batch import Batch
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import BatchContract, Subject
from specref.contracts.fixtures import Fixture, Rows, rows
from specref.contracts.sampling import Batches, Drawn, Sampler, until_eos
from specref.contracts.timeout import Deadline


def draw_tokens(probabilities: Floats, rng: np.random.Generator) -> Ints:
    """One token from each row, by inverse CDF."""
    return drawn_below(np.cumsum(probabilities, axis=1), rng)


def drawn_below(ends: Floats, rng: np.random.Generator) -> Ints:
    """One token from each row of cumulative sums."""
    u = rng.random(len(ends)) * ends[:, -1]
    return np.asarray(np.add.reduce(ends <= u[:, None], axis=1))


def draw_batch(
    fixture: Fixture, tables: Rows, node: Ints, place: Ints, rng: np.random.Generator
) -> Batch:
    """Draft from q after the given nodes; code that reads padding fails.

    The rows of p after that of the last draft put all mass on the last token, and so do those of
    q where there is no draft. If batches may be ragged, drafting ends with EOS.

    * `node` (ndarray of int, shape (B,)): The node in the tables of each row of the batch.
    * `place` (ndarray of int, shape (B,)): The index in `fixture.places` of each row.
    """
    size, most = tables.p.shape[1], fixture.lookahead
    p, q = np.zeros((len(node), most + 1, size)), np.zeros((len(node), most, size))
    p[..., -1] = q[..., -1] = 1
    drafts = np.full((len(node), most), NO_TOKEN)
    allowed = fixture.lookaheads[place]
    going: slice | Ints = slice(None)  # as an index, much cheaper than all rows in an array
    lens = np.zeros(len(node), dtype=np.int64)
    p[:, 0] = tables.p.take(node, axis=0)
    for i in range(most):
        more = np.flatnonzero(allowed > i)
        if len(more) < len(node):
            going = more if isinstance(going, slice) else going[more]
            allowed, node = allowed[more], node[more]
        if not len(node):
            break
        q[going, i] = tables.q.take(node, axis=0)
        drafts[going, i] = token = drawn_below(tables.ends.take(node, axis=0), rng)
        lens[going] = i + 1
        node = tables.child[node, token]
        p[going, i + 1] = tables.p.take(node, axis=0)
        if fixture.ragged and fixture.eos is not None:
            allowed[token == fixture.eos] = 0
    return Batch(p, q, drafts, lens, place)


def sample_batch(fixture: Fixture, size: int, rng: np.random.Generator) -> Batch:
    """A batch with rows of every place."""
    tables = rows(fixture, 0)
    place = np.arange(size) % len(fixture.places)
    return draw_batch(fixture, tables, tables.root[place], place, rng)


FEW = 64
"""Requests of one call that go on together."""
AT_ONCE = 256
"""Rows that are drawn at once for small calls; even, so that no pair is cut."""


def cut(place: Ints) -> Sequence[Ints]:
    """Places for batches that are cut into calls."""
    return np.split(place, range(AT_ONCE, len(place), AT_ONCE))


class Blocks(Batches):
    """One iteration of the contract ``verify``, rows of all places mixed in each batch.

    * `cost`: Factor on trials: with so many more, a place with drafts gets its equal share.
    * `rows`: Of each call; None for all of a batch.
    """

    cost: ClassVar[float] = 1.0
    key: ClassVar[str] = "Blocks"
    rows: ClassVar[int | None] = None

    def __init__(self, verifier: Verifier, fixture: Fixture, *, one_hot: bool = False) -> None:
        super().__init__(verifier, fixture, 0)
        self.one_hot = one_hot

    @classmethod
    def refusal(cls, fixture: Fixture, capabilities: Capabilities) -> str:
        """Why these batches are not tried; empty if they are."""
        return ""

    def _batch(self, place: Ints, rng: np.random.Generator, deadline: Deadline) -> Drawn:
        batch = draw_batch(self.fixture, self.tables, self.tables.root[place], place, rng)
        given = batch.without_q() if self.one_hot else batch
        if self.rows is None:
            answer = self.verifier.answer(given, rng, deadline=deadline)
        else:
            answer = self.verifier.answers(given, self.rows, rng, deadline)
        return place, until_eos(self.fixture, answer.tokens), batch.draft_tokens


class Alone(Blocks):
    """The same in batches of a single row, which code may treat specially."""

    key: ClassVar[str] = "Alone"
    rows: ClassVar[int | None] = 1

    def _places(self, trials: int) -> Sequence[Ints]:
        return cut(np.arange(trials) % len(self.fixture.places))


class IdlePairs(Blocks):
    """The same in batches of two rows, one of which has no draft: the second, then the first."""

    cost: ClassVar[float] = 1.5
    key: ClassVar[str] = "BesideIdle"
    rows: ClassVar[int | None] = 2

    @classmethod
    def refusal(cls, fixture: Fixture, capabilities: Capabilities) -> str:
        if fixture.ragged and capabilities.batch != 1:
            return ""
        return "does not take ragged batches"

    def _places(self, trials: int) -> Sequence[Ints]:
        lookaheads = [place.lookahead for place in self.fixture.places]
        idle = lookaheads.index(0)
        live = [index for index, lookahead in enumerate(lookaheads) if lookahead]
        pairs = np.array([pair for index in live for pair in ((index, idle), (idle, index))])
        return cut(pairs[np.arange(max(1, trials // 2)) % len(pairs)].ravel())


class Iterations(Batches):
    """Texts from repeated calls of the contract ``verify``; each row continues its own text.

    * `whole`: Whether rows whose texts are complete are asked for more, which is left out.
    """

    whole: ClassVar[bool] = False

    def __init__(self, verifier: Verifier, fixture: Fixture, tokens: int) -> None:
        super().__init__(verifier, fixture, tokens - 1)
        self.tokens = tokens

    def _batch(self, place: Ints, rng: np.random.Generator, deadline: Deadline) -> Drawn:
        texts = np.full((len(place), self.tokens + self.fixture.lookahead), NO_TOKEN)
        root = self.tables.root[place]
        node, length = root.copy(), np.zeros(len(place), dtype=np.int64)
        while (going := self._open(texts, length)).any():
            asked = np.flatnonzero(going | self.whole)
            here = np.where(going, node, root)[asked]
            batch = draw_batch(self.fixture, self.tables, here, place[asked], rng)
            answer = self.verifier.answer(batch, rng, deadline=deadline)
            blocks = until_eos(self.fixture, answer.tokens)
            for j in range(blocks.shape[1]):
                more = going[asked] & (blocks[:, j] >= 0) & (length[asked] < self.tokens)
                row, token = asked[more], blocks[more, j]
                texts[row, length[row]] = token
                length[row] += 1
                node[row] = self.tables.child[node[row], token]
        return place, texts[:, : self.tokens], np.full((len(place), 1), NO_TOKEN)

    def _open(self, texts: Ints, length: Ints) -> Any:
        going = length < self.tokens
        if self.fixture.eos is not None:
            going &= ~(texts == self.fixture.eos).any(axis=1)
        return going


class SameRows(Iterations):
    """The same, where a request has the same row of every call until all of these texts end."""

    whole: ClassVar[bool] = True

    def _places(self, trials: int) -> Sequence[Ints]:
        most = min(self.verifier.capabilities.batch or FEW, FEW)
        place = np.arange(trials) % len(self.fixture.places)
        return np.split(place, range(most, trials, most))


class Verify(Protocol):
    """Contract ``verify``: drafts of a batch in, blocks out.

    Takes whichever of `rng`, `coins`, `lens`, `generator` and `generators` are among its
    parameters; with none of them but `lens` it draws from the global generators of Python,
    NumPy or torch, which are seeded for each call.
    """

    def __call__(
        self,
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        *,
        rng: np.random.Generator = ...,
        coins: Coins = ...,
        lens: Ints = ...,
    ) -> tuple[Ints, Ints]:
        """Verify a batch.

        Parameters
        ----------
        target_probs : ndarray, shape (B, K + 1, V)
            Row i is the target's law after the first i drafts; its logits if `inputs` is
            claimed to be "logits", and so for `draft_probs`.
        draft_probs : ndarray, shape (B, K, V), or None
            The laws that drafts were drawn from. None: every draft is taken as certain.
        draft_tokens : ndarray of int, shape (B, K)
            -1 where a row has no draft.
        rng : numpy.random.Generator
            The only randomness, if it is a parameter. A `generator` is a `torch.Generator`;
            `generators` are one for each row. Annotated as a dict they are {row: generator} of
            every other row: the rest draws from the global generators.
        coins : Coins
            All randomness as numbers, if it is a parameter: float64 NumPy arrays, whatever
            the other arrays are.
        lens : ndarray of int, shape (B,)
            How many drafts each row has; 0 for some.

        Returns
        -------
        tokens : ndarray of int, shape (B, K + 1)
            Accepted drafts and one more token, padded with -1.
        counts : ndarray of int, shape (B,)
            How many tokens each row has.
        """
        ...


class VerifyContract(BatchContract):
    coarse_tv: ClassVar[float | None] = 0.1
    programs: ClassVar[bool] = True
    quick_checks: ClassVar[tuple[str, ...]] = (
        "smoke",
        "joint/wide",
        "joint/one-hot",
        "joint/probed",
        "boundary/zero-coin",
        "boundary/empty-residual",
        "boundary/greedy",
    )

    def sample(self, fixture: Fixture, size: int, rng: np.random.Generator) -> Batch:
        return sample_batch(fixture, size, rng)

    def blocks(self, subject: Subject, fixture: Fixture, *, one_hot: bool = False) -> Sampler:
        return Blocks(self.verifier(subject), fixture, one_hot=one_hot)

    def texts(self, subject: Subject, fixture: Fixture, tokens: int) -> Sampler:
        """A sampler of the first tokens of texts of several iterations."""
        return Iterations(self.verifier(subject), fixture, tokens)


VERIFY = VerifyContract(
    "verify",
    Verify,
    ("target_probs", "draft_probs", "draft_tokens"),
    ("rng", "coins", "lens", "generator", "generators"),
)
