"""Strata of functions of two models: blocks of one call, and texts of many iterations."""

import itertools
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from specref.arrays import Bools, Ints
from specref.conformance.strata.campaign import Campaign, Found, Tokens, played
from specref.conformance.strata.contexts import hashed_pair, pairs_along, vocabulary_of
from specref.conformance.strata.laws import ORDINARY, USUAL, drawn_pool
from specref.conformance.strata.shape import Box, told
from specref.conformance.strata.stratum import most_pairs
from specref.contracts.contract import Subject
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import Fixture, Place
from specref.contracts.sampling import Steps, check_end, giver
from specref.vocabulary import Tokens as Text

IN_TURN = 16
"""Tokens that calls of one shape may return in the first round."""


class CallShape(NamedTuple):
    """The shape of a call of a function of two models.

    Attributes
    ----------
    vocabulary : int
    context : int
        The tokens of the context.
    asked : int
        The last argument: the lookahead, or the tokens to generate.
    text : bool
        Whether it generates a text.
    """

    vocabulary: int
    context: int
    asked: int
    text: bool = False

    @property
    def sizes(self) -> Mapping[str, int]:
        context, asked = ("prompt", "budget") if self.text else ("context", "lookahead")
        return {"V": self.vocabulary, context: self.context, asked: self.asked}

    @property
    def parts(self) -> Mapping[str, int | str]:
        return self.sizes

    @property
    def fewest(self) -> int:
        """The fewest tokens that it returns, unless the text ends."""
        return self.asked if self.text else 1

    @property
    def most(self) -> int:
        """The most tokens that it returns."""
        return self.asked if self.text else self.asked + 1

    @property
    def cells(self) -> int:
        """The numbers in the laws after each of its tokens."""
        return 2 * self.vocabulary * self.most

    def __str__(self) -> str:
        return told(self)


def call_shapes(
    vocabularies: Iterable[int],
    contexts: Iterable[int],
    asked: Iterable[int],
    *,
    text: bool = False,
) -> tuple[CallShape, ...]:
    """Every combination.

    Examples
    --------
    >>> [str(one) for one in call_shapes([8], [3], [1, 20], text=True)]
    ['V 8, prompt 3, budget 1', 'V 8, prompt 3, budget 20']
    """
    sizes = itertools.product(vocabularies, contexts, asked)
    return tuple(CallShape(*one, text) for one in sizes)


@dataclass(frozen=True)
class CallPlace(Place):
    """The place of one call, named by its shape: its context may be long.

    Attributes
    ----------
    shape : CallShape
    turn : int
        How many pairs of laws further on the models are that are given.
    """

    shape: CallShape
    turn: int = 0

    @property
    def name(self) -> str:
        return str(self.shape)


@dataclass(frozen=True)
class CallStratum:
    """One kind of situation of functions of two models.

    Attributes
    ----------
    name : str
    shapes : tuple of CallShape
    targets, drafters : tuple of str
        The families of laws; see `laws`.
    ends : bool
        Whether the last token of the vocabulary ends a text; inside of a context it may come.
    related : bool
        Whether contexts resemble those before them; see `Calling`.
    memory : int or None
        How many tokens of the context the laws depend on; None for all.
    box : Box or None
        Of what more shapes are drawn, by the seed.
    cost : float
        Factor on the tokens.
    """

    name: str
    shapes: tuple[CallShape, ...]
    targets: tuple[str, ...] = ORDINARY
    drafters: tuple[str, ...] = USUAL
    ends: bool = False
    related: bool = False
    memory: int | None = None
    box: Box | None = None
    cost: float = 0.7

    def with_drawn(self, rng: np.random.Generator) -> "CallStratum":
        """The stratum with shapes of its box."""
        if self.box is None:
            return self
        drawn = (CallShape(size, other, asked) for size, asked, other in self.box.drawn(rng))
        text = any(shape.text for shape in self.shapes)
        shapes = (*self.shapes, *(shape._replace(text=text) for shape in drawn))
        return replace(self, shapes=shapes, box=None)


@dataclass(frozen=True, eq=False)
class TextTokens(Tokens):
    """The tokens of calls of one shape; `drafts` is the last position that a call may have.

    Attributes
    ----------
    context : ndarray of int, shape (tokens,)
        How many tokens come before each, prompt included.
    again : ndarray of bool, shape (tokens,)
        Whether the token before it comes twice in a row.
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
    """The tokens of calls at these places, the first of them with this number.

    Examples
    --------
    >>> place = CallPlace((1, 1), 4, CallShape(4, 2, 4))
    >>> found = text_tokens([place, place], [(0, 3), (2,)], 3, 7)
    >>> found.position.tolist(), found.context.tolist(), found.again.tolist(), found.call.tolist()
    ([0, 1, 0], [2, 3, 2], [True, False, True], [7, 7, 8])
    """
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


class Calling:
    """Calls a function of two models in a stratum.

    Contexts are drawn for each call. If they are related, one in seven is drawn, so that its last
    third is its first. It comes again, then with what was returned and two tokens more, with other
    models, with another first token, and with its first two tokens exchanged; then its first
    quarter alone, over and over.

    Attributes
    ----------
    pools : dict
        {vocabulary: its pairs of laws}.
    """

    def __init__(
        self,
        stratum: CallStratum,
        function: Callable[..., Any],
        timeout: float | None,
        rng: np.random.Generator,
    ) -> None:
        self.stratum, self.timeout, self.rng = stratum, timeout, rng
        self.give = giver(function)
        laws = (stratum.targets, stratum.drafters)
        sizes = dict.fromkeys(shape.vocabulary for shape in stratum.shapes)
        self.pools = {size: drawn_pool(rng, size, most_pairs(size), *laws) for size in sizes}
        self.models = {
            (size, turn): hashed_pair(
                pool.turned(turn), vocabulary_of(size, ends=stratum.ends), stratum.memory
            )
            for size, pool in self.pools.items()
            for turn in range(1 + stratum.related)
        }
        self._places = {shape: self._of_shape(shape) for shape in stratum.shapes}
        self._returned: dict[CallShape, Text] = {}

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
        """So many contexts, and what it returns after them.

        Raises
        ------
        BrokenContractError
            It raises, goes on after EOS, or returns no tokens, too many or too few.
        """
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


def run_calls(
    stratum: CallStratum,
    subject: Subject,
    alpha: float,
    tokens: int,
    cells: int,
    rng: np.random.Generator,
    advance: Callable[[int], None] = lambda trials: None,
    seconds: float | None = None,
) -> Found:
    """Call a function of two models in a stratum until it has decided, or enough was drawn.

    Parameters
    ----------
    tokens, cells, seconds
        As for `played`.

    Raises
    ------
    BrokenContractError
        It raises, goes on after EOS, or returns no tokens, too many or too few.
    """
    calling = Calling(stratum, subject.function, subject.timeout, rng)
    campaign = Campaign(stratum.shapes, calling.pools, subject.capabilities, PLACES)

    def ask(shape: CallShape, calls: int) -> TextTokens:
        places, texts = calling.texts(shape, calls)
        pairs = len(calling.pools[shape.vocabulary].p)
        return text_tokens(places, texts, pairs, campaign.calls, stratum.memory)

    def turns(shape: CallShape) -> int:
        return max(1, IN_TURN // shape.most)

    return played(campaign, stratum.shapes, ask, turns, alpha, tokens, cells, advance, seconds)
