"""Toy engines of the contract ``text``: right ones, and one planted bug each."""

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from specref.contracts.text import Engine, Respond, Text
from specref.models import Model, as_float, hashed_model
from specref.vocabulary import Tokens, Vocabulary

ABC = Vocabulary("abc")
LAW, GUESS = as_float(hashed_model(ABC, "p")), as_float(hashed_model(ABC, "q"))
ENDING = as_float(hashed_model(Vocabulary("abc", eos="c"), "p"))
PROMPT: Tokens = (0, 1)
Row = Sequence[float]


@cache
def row(model: Model, context: Tokens) -> Row:
    return tuple(map(float, model.next_token(context)))


def warmed(p: Row, temperature: float) -> Row:
    weights = [x ** (1 / temperature) for x in p]
    return [x / sum(weights) for x in weights]


def draw(p: Row, rng: random.Random) -> int:
    return rng.choices(range(len(p)), p)[0]


def kept(p: float, q: float) -> float:
    return p / q


def residual(p: Row, q: Row) -> Row:
    rest = [max(x - y, 0.0) for x, y in zip(p, q, strict=True)]
    return rest if any(rest) else p


@dataclass(frozen=True)
class Speculating:
    """Standard speculative decoding with holes, whose context is a cache of its own.

    Attributes
    ----------
    ratio : callable
        (p, q) of a draft -> the chance of acceptance, if below 1.
    rest : callable
        (p, q) -> weights of the token after a rejection.
    bonus_lost : bool
        The bonus token is in the cache and not in the text.
    behind : bool
        After a rejection the target misses the last token of its cache.
    warm : float
        The temperature that drafts are drawn at, and not verified at.
    """

    law: Model = LAW
    guess: Model = GUESS
    lookahead: int = 2
    ratio: Callable[[float, float], float] = kept
    rest: Callable[[Row, Row], Row] = residual
    bonus_lost: bool = False
    behind: bool = False
    warm: float = 1.0
    counting: bool = True

    def __call__(self, prompt: Tokens, budget: int, seed: int) -> Text:
        rng, cache_, text = random.Random(seed), list(prompt), list[int]()
        proposed = accepted = 0
        while len(text) < budget and not self.law.vocabulary.ends(text):
            for _ in range(min(self.lookahead, budget - len(text))):
                p, q = (row(one, tuple(cache_)) for one in (self.law, self.guess))
                draft = draw(warmed(q, self.warm) if self.warm != 1 else q, rng)
                proposed += 1
                if rng.random() * q[draft] >= self.ratio(p[draft], q[draft]) * q[draft]:
                    token = draw(self.rest(p, q), rng)
                    text.append(token)
                    cache_ = [*cache_[: len(cache_) - self.behind], token]
                    break
                accepted += 1
                text.append(draft)
                cache_.append(draft)
                if self.law.vocabulary.ends(text):
                    break
            else:
                if len(text) < budget:
                    token = draw(row(self.law, tuple(cache_)), rng)
                    cache_.append(token)
                    text += [] if self.bonus_lost else [token]
        return Text(tuple(text), *((proposed, accepted) if self.counting else ()))


def sampling(law: Model = LAW, temperature: float = 1.0) -> Respond:
    """Plain mode: a token at a time, each by a coin of its own."""

    def plain(prompt: Tokens, budget: int, seed: int) -> Text:
        rng, text = random.Random(seed), list[int]()
        while len(text) < budget and not law.vocabulary.ends(text):
            p = row(law, (*prompt, *text))
            text.append(draw(p if temperature == 1 else warmed(p, temperature), rng))
        return Text(tuple(text))

    return plain


def matching(prompt: Tokens, budget: int, seed: int) -> Text:
    """Exact matching with the coins of plain mode: its text under the same seed."""
    text = sampling()(prompt, budget, seed).tokens
    guessed = [
        max(range(3), key=row(GUESS, (*prompt, *text[:i])).__getitem__) for i in range(len(text))
    ]
    return Text(text, len(text), sum(x == y for x, y in zip(text, guessed, strict=True)))


def engine(speculative: Respond, **options: object) -> Engine:
    """An engine at one prompt, with the law of the target."""
    known = {"law": LAW, "drafter": GUESS} | options
    return Engine(speculative, [PROMPT], **known)  # type: ignore[arg-type]


LOSSY: dict[str, Respond] = {
    "bonus token lost": Speculating(bonus_lost=True),
    "residual is p": Speculating(rest=lambda p, q: p),
    "cache behind after a rejection": Speculating(behind=True),
    "drafter at another temperature": Speculating(warm=4.0),
    "accepts with q / p": Speculating(ratio=lambda p, q: q / p if p else 1.0),
}


def misbehaving() -> Engine:
    """Raises under seed 1, dies under seed 2, never answers under seed 3; else it is right."""

    def text(prompt: Tokens, budget: int, seed: int) -> Text:
        if seed == 1:
            raise MemoryError("no more")
        if seed == 2:
            os.kill(os.getpid(), signal.SIGSEGV)
        if seed == 3:
            time.sleep(600)
        print("printed")
        return Speculating()(prompt, budget, seed)

    return engine(text, plain=sampling())
