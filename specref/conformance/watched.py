"""Which contexts a function of models asks about: that explains a failure found otherwise.

Every token of a text needs the model's row after all tokens before it. A function that never asks
about that context has taken another row: after a stale token, without the bonus token, of another
position. It is no verdict: rows may be kept from earlier calls, or come from elsewhere.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from specref.conformance.judge import Judge
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import CHAIN_FIXTURES, Fixture
from specref.contracts.functions import DrafterContract, GenerateContract, StepContract
from specref.contracts.sampling import giver, until_end
from specref.contracts.timeout import Deadline, within
from specref.distributions import Probabilities
from specref.models import Model, as_float
from specref.vocabulary import Tokens

CALLS, SECONDS, LENGTH, LOOKAHEAD, SHOWN = 120, 2.0, 24, 4, 8
"""Calls, seconds for them, tokens and drafts that each asks for, tokens of a context in words."""


class Watched(Model):
    """A model that notes what it is asked about; a new one for each call remembers nothing."""

    def __init__(self, given: Model) -> None:
        super().__init__(given.vocabulary, given.next_token)
        self.asked: list[Tokens] = []

    def next_token(self, context: Sequence[int]) -> Probabilities:
        """The distribution after a context, which is noted."""
        row = super().next_token(context)
        self.asked.append(tuple(map(int, context)))
        return row


@dataclass(frozen=True)
class Seen:
    """A text, and what the model was asked about in the call that gave it."""

    who: str
    context: Tokens
    text: Tokens
    asked: tuple[Tokens, ...]

    def own(self, position: int) -> Tokens:
        """All tokens before one."""
        return (*self.context, *self.text[:position])

    @property
    def missing(self) -> int | None:
        """The position of the first token whose own context was never asked about."""
        found = (i for i in range(len(self.text)) if self.own(i) not in self.asked)
        return next(found, None)

    def told(self, position: int) -> str:
        """What was asked about instead, and which calls belong to the tokens before."""
        own, before = self.own(position), [self.asked.index(self.own(i)) for i in range(position)]
        drawn = [self.own(i) for i in range(len(self.text))]
        # Rather a context that is none of this text's, and the first after the token before it.
        later = [*self.asked[before[-1] + 1 :], *self.asked] if before else self.asked
        others = [c for c in later if c not in drawn] or list(later)
        about = ", nor about anything else"
        if others:
            nearest = min(others, key=lambda other: apart(own, other))
            about = f", but about {shortened(nearest)}"
        calls = ", ".join(str(1 + call) for call in before)
        whose = f"; the tokens before it have calls {calls} of the {self.who}" * bool(before)
        return (
            f"for the token at position {position} after {shortened(own)} the {self.who} was "
            f"never asked about {shortened(own)}{about}{whose}"
        )


def apart(own: Tokens, other: Tokens) -> int:
    """How many tokens have to be changed, left out or put in.

    Examples
    --------
    >>> apart((0, 1, 2), (0, 2)), apart((0, 1, 2), (0, 1, 3)), apart((1,), (1, 2, 3))
    (1, 1, 2)
    """
    row = list(range(len(other) + 1))
    for i, token in enumerate(own, 1):
        before, row[0] = row[0], i
        for j, there in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (token != there))
    return row[-1]


def shortened(context: Tokens) -> str:
    """The end of a context, in words.

    Examples
    --------
    >>> shortened((0, 1)), shortened(tuple(range(20)))
    ('(0, 1)', '(…, 12, 13, 14, 15, 16, 17, 18, 19)')
    """
    if len(context) <= SHOWN:
        return str(context)
    return f"(…, {', '.join(map(str, context[-SHOWN:]))})"


def asked_elsewhere(judge: Judge) -> str:
    """About which context a failed function of models asks instead of a token's own, in words.

    Empty if it asks about each token's own, is none of models, or cannot be called.
    """
    if not isinstance(judge.contract, (GenerateContract, StepContract, DrafterContract)):
        return ""
    seen: list[Seen] = []
    deadline = Deadline()

    def watch() -> None:
        until = time.perf_counter() + SECONDS
        for one in watching(judge):
            seen.append(one)
            deadline.restart()
            if time.perf_counter() > until:
                break

    with suppress(BrokenContractError):  # what it gave before it raised is as good
        within(judge.timeout, watch, deadline)
    found = [(len(one.own(at)), one, at) for one in seen if (at := one.missing) is not None]
    if not found:
        return ""
    _, shortest, position = min(found, key=lambda one: one[0])
    return f"{shortest.told(position)} (so in {len(found)} of {len(seen)} calls)"


def watching(judge: Judge) -> Iterator[Seen]:
    """Calls on fixtures, each with models of its own."""
    give, rng = giver(judge.implementation), judge.rng("watched")
    fixtures = [judge.fixture(name) for name in CHAIN_FIXTURES]
    places = [(fixture, place) for fixture in fixtures for place in fixture.places]
    for number in range(CALLS):
        fixture, place = places[number % len(places)]
        target, drafter = (Watched(as_float(m)) for m in (fixture.target, fixture.drafter))
        if isinstance(judge.contract, DrafterContract):
            drafts, _ = give((drafter, place.context, LOOKAHEAD), rng)
            yield seen_of("drafter", fixture, place.context, drafts, drafter)
            continue
        asked = LENGTH if isinstance(judge.contract, GenerateContract) else place.lookahead
        text = give((target, drafter, place.context, asked), rng)
        yield seen_of("target", fixture, place.context, text, target)


def seen_of(who: str, fixture: Fixture, context: Tokens, raw: Any, model: Watched) -> Seen:
    """What a call has returned, and asked about."""
    text = until_end(fixture, tuple(np.asarray(raw, dtype=np.int64).tolist()))
    return Seen(who, context, text, tuple(model.asked))
