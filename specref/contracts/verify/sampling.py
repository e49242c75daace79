"""Samplers of the contract ``verify``: mixed batches, small batches, texts."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from specref.arrays import NO_TOKEN, Ints
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.contracts.fixtures import Fixture
from specref.contracts.sampling import Batches, Drawn, until_eos
from specref.contracts.timeout import Deadline
from specref.contracts.verify.drawing import draw_batch

FEW = 64
"""Requests of one call that go on together."""
AT_ONCE = 256
"""Rows that are drawn at once for small calls; even, so that no pair is cut."""


def cut(place: Ints) -> Sequence[Ints]:
    """Places for batches that are cut into calls."""
    return np.split(place, range(AT_ONCE, len(place), AT_ONCE))


class Blocks(Batches):
    """One iteration of the contract ``verify``, rows of all places mixed in each batch.

    Attributes
    ----------
    cost : float
        Factor on trials: with so many more, a place with drafts gets its equal share.
    key : str
        The name of the randomness of its campaigns.
    rows : int or None
        Of each call; None for all of a batch.
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

    Attributes
    ----------
    whole : bool
        Whether rows whose texts are complete are asked for more, which is left out.
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
