"""Strata of functions of two models: blocks of one call, and texts of many iterations.

The laws of their models depend on every token of the context, or on the last ones alone.
"""

import zlib
from array import array
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from specref.arrays import Bools, Floats, Ints
from specref.conformance.strata.campaign import Tokens
from specref.conformance.strata.laws import Pool
from specref.conformance.strata.shape import CallShape
from specref.conformance.strata.stratum import Drawing, Stratum, pools
from specref.contracts.contract import Subject
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import Fixture, Place
from specref.contracts.sampling import Steps, check_end, giver
from specref.contracts.tree import numbered
from specref.models import Model
from specref.vocabulary import Tokens as Text
from specref.vocabulary import Vocabulary

IN_TURN = 16
"""Tokens that calls of one shape may return in the first round."""


class Hashed(Model):
    """A model with one of given laws after each context, chosen by a hash of the whole context.

    Contexts that differ in any token, or in their length, have laws that are no more alike than
    any two of those given. A sampler that forgets some of the context reads another law. With
    `memory` that holds for the last tokens alone, and texts repeat.

    * `memory`: The law is chosen by so many tokens, the last ones; by all, if it is left out.
    """

    def __init__(self, vocabulary: Vocabulary, rows: Floats, memory: int | None = None) -> None:
        super().__init__(vocabulary, self._row)
        self.memory = memory
        self.rows: list[Floats] = [np.array(row) for row in rows]
        for row in self.rows:
            row.setflags(write=False)

    def next_token(self, context: Sequence[int]) -> Floats:
        """The law after a context, which is not remembered: few contexts come twice."""
        return self._row(context)

    def _row(self, context: Sequence[int]) -> Floats:
        if len(context) and not 0 <= min(context) <= max(context) < len(self.rows[0]):
            self.vocabulary.check(tuple(context), "context")
        if self.memory is not None:
            context = context[max(0, len(context) - self.memory) :]
        return self.rows[zlib.crc32(as_bytes(context)) % len(self.rows)]


def as_bytes(tokens: Sequence[int]) -> bytes:
    """Token ids as the bytes that are hashed."""
    return array("I", tokens).tobytes()


def pairs_along(context: Text, text: Text, pairs: int, memory: int | None = None) -> Iterator[int]:
    """Which of so many pairs of laws each token of a text is drawn from, after a context."""
    if memory is not None:
        whole = (*context, *text)
        for end in range(len(context), len(whole)):
            yield zlib.crc32(as_bytes(whole[max(0, end - memory) : end])) % pairs
        return
    state = zlib.crc32(as_bytes(context))
    for token in text:
        yield state % pairs
        state = zlib.crc32(as_bytes((token,)), state)


def vocabulary_of(size: int, *, ends: bool) -> Vocabulary:
    """A vocabulary of so many tokens, the last of which may end a text."""
    tokens = numbered(size).tokens
    return Vocabulary(tokens, eos=tokens[-1]) if ends else numbered(size)


def hashed_pair(
    pool: Pool, vocabulary: Vocabulary, memory: int | None = None
) -> tuple[Hashed, Hashed]:
    """Target and drafter with the pairs of a pool: after each context both have the same pair."""
    return Hashed(vocabulary, pool.p, memory), Hashed(vocabulary, pool.q, memory)


@dataclass(frozen=True)
class CallPlace(Place):
    """The place of one call, named by its shape: its context may be long.

    * `turn`: How many pairs of laws further on the models are that are given.
    """

    shape: CallShape
    turn: int = 0

    @property
    def name(self) -> str:
        return str(self.shape)


@dataclass(frozen=True, eq=False)
class TextTokens(Tokens):
    """The tokens of calls of one shape; `drafts` is the last position that a call may have.

    * `context`: How many tokens come before each, prompt included.
    * `again`: Whether the token before it comes twice in a row.
    """

    context: Ints
    again: Bools


PLACES: Mapping[str, Callable[[TextTokens], Bools]] = MappingProxyType(
    {
        "anywhere": lambda at: np.ones_like(at.row, dtype=bool),
        "at position 0": lambda at: at.position == 0,
        "from position 1": lambda at: at.position > 0,
        "from position 3": lambda at: at.position > 2,
        "from position 5": lambda at: at.position > 4,
        "at the last position": lambda at: at.position == at.drafts,
        "after fewer than 3 tokens": lambda at: at.context < 3,
        "after 5 tokens and more": lambda at: at.context >= 5,
        "after 40 tokens and more": lambda at: at.context >= 40,
        "after 256 tokens and more": lambda at: at.context >= 256,
        "after 512 tokens and more": lambda at: at.context >= 512,
        "after a token that came twice": lambda at: at.again,
        "in the first call": lambda at: at.call == 0,
        "in odd calls": lambda at: at.call % 2 == 1,
    }
)


def text_tokens(
    places: Sequence[CallPlace],
    texts: Sequence[Text],
    pairs: int,
    call: int,
    memory: int | None = None,
) -> TextTokens:
    """The tokens of calls at these places, the first of them with this number."""
    columns: list[tuple[int, ...]] = []
    for number, (place, text) in enumerate(zip(places, texts, strict=True), call):
        whole, start = (*place.context, *text), len(place.context)
        for i, pair in enumerate(pairs_along(place.context, text, pairs, memory)):
            at = start + i
            again = at > 1 and whole[at - 1] == whole[at - 2]
            columns.append((text[i], (pair + place.turn) % pairs, i, number, at, again))
    token, pair_, position, calls, before, twice = np.array(columns).T
    last = places[0].shape.most - 1
    return TextTokens(
        token, pair_, position, np.full_like(token, last), np.zeros_like(token), calls, 1, last,
        before, twice == 1,
    )  # fmt: skip


class Calling(Drawing[CallShape]):
    """Calls a function of two models in a stratum.

    Contexts are drawn for each call. If they are related, one in seven is drawn, so that its last
    third is its first. It comes again, then with what was returned and two tokens more, with other
    models, with another first token, and with its first two tokens exchanged; then its first
    quarter alone, over and over. Each call is timed by itself.
    """

    places = PLACES
    each_timed = True

    def __init__(
        self, stratum: Stratum[CallShape], subject: Subject, rng: np.random.Generator
    ) -> None:
        super().__init__(stratum, subject.timeout, rng)
        self.claims, self.give = subject.capabilities, giver(subject.function)
        self.pools = pools(stratum, rng)
        self.models = {
            (size, turn): hashed_pair(
                pool.turned(turn), vocabulary_of(size, ends=stratum.ends), stratum.memory
            )
            for size, pool in self.pools.items()
            for turn in range(1 + stratum.related)
        }
        self._places = {shape: self._of_shape(shape) for shape in stratum.shapes}
        self._returned: dict[CallShape, Text] = {}

    def turns(self, shape: CallShape) -> int:
        return max(1, IN_TURN // shape.most)

    def ask(self, shape: CallShape, calls: int, first: int) -> TextTokens:
        places, texts = self.texts(shape, calls)
        pairs = len(self.pools[shape.vocabulary].p)
        return text_tokens(places, texts, pairs, first, self.stratum.memory)

    def _of_shape(self, shape: CallShape) -> Generator[CallPlace, Text | None, None]:
        """The places of calls of a shape; it is sent what the last call returned."""

        def at(context: Text, turn: int = 0) -> CallPlace:
            return CallPlace(context, shape.asked, shape, turn)

        while True:
            context = self._drawn(shape, shape.context)
            if not self.stratum.related:
                yield at(context)
                continue
            third, quarter = shape.context // 3, shape.context // 4
            context = (*context[: shape.context - third], *context[:third])
            first, second, *others = context
            yield at(context)
            text = (yield at(context)) or ()
            yield at((*context, *text, *self._drawn(shape, 2)))
            yield at(context, 1)
            yield at(((first + 1) % shape.vocabulary, second, *others))
            yield at((second, first, *others))
            yield at(context[:quarter] * 4)

    def _drawn(self, shape: CallShape, tokens: int) -> Text:
        """A context; where there is an EOS, one in two has it, but not as the last token."""
        ids = self.rng.integers(shape.vocabulary - self.stratum.ends, size=tokens)
        if self.stratum.ends and tokens > 1 and self.rng.random() < 0.5:
            ids[self.rng.integers(tokens - 1)] = shape.vocabulary - 1
        return tuple(ids.tolist())

    def texts(self, shape: CallShape, calls: int) -> tuple[tuple[CallPlace, ...], list[Text]]:
        """So many contexts, and what it returns after them."""
        coming = self._places[shape]
        if not self.stratum.related:
            places = tuple(next(coming) for _ in range(calls))
            return places, self._called(shape, places)
        met, texts = list[CallPlace](), list[Text]()
        for _ in range(calls):
            met.append(coming.send(self._returned.get(shape)))
            (self._returned[shape],) = self._called(shape, met[-1:])
            texts.append(self._returned[shape])
        return tuple(met), texts

    def _called(self, shape: CallShape, places: Sequence[CallPlace]) -> list[Text]:
        models = self.models[shape.vocabulary, places[0].turn]
        fixture = Fixture(self.stratum.name, *models, tuple(places))
        blocks = Steps(self._one, fixture, shape.most, self.timeout)(len(places), self.rng)[1]
        texts = [tuple(row[row >= 0].tolist()) for row in blocks]
        for text in texts:
            check_end(fixture, text, str(shape))
            if len(text) < shape.fewest and fixture.eos not in text:
                raise BrokenContractError(
                    f"returned {len(text)} tokens: expected {shape.fewest}"
                    + ", or fewer up to EOS" * self.stratum.ends
                    + f" ({shape})"
                )
        return texts

    def _one(self, place: Place, rng: np.random.Generator) -> Any:
        assert isinstance(place, CallPlace)
        models = self.models[place.shape.vocabulary, place.turn]
        return self.give((*models, place.context, place.shape.asked), rng)
