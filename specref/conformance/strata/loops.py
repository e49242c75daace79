"""Strata of batched loops: each adds one thing in which the rows of a call may differ.

So which of them are wrong, and which are right, says when a loop is wrong.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from specref.arrays import Bools, Floats, Ints
from specref.conformance.strata.calls import (
    CallPlace,
    TextTokens,
    hashed_pair,
    text_tokens,
    vocabulary_of,
)
from specref.conformance.strata.laws import Pool
from specref.conformance.strata.shape import CallShape
from specref.conformance.strata.stratum import Drawing, Stratum, pools
from specref.contracts.contract import Subject
from specref.contracts.fixtures import Fixture
from specref.contracts.functions import NEUTRAL, BatchCaller
from specref.contracts.timeout import within
from specref.distributions import top_p, with_temperature
from specref.models import Model
from specref.vocabulary import Tokens

SAME, SETTINGS = ("same",), "settings"
"""Of a drafter that is the target, all drafts are accepted: no row is ahead of another. The way
of calling in which rows have settings of their own."""


ACCEPTANCE, JUDGED = "batch-acceptance", 4
"""Where rows accept different numbers of drafts, they also end one after another, if none has EOS:
so the first tokens alone are judged there, before a loop of up to five drafts has ended one."""


def stratum(
    name: str, v: Sequence[int], rows: Sequence[int], budget: int, **more: Any
) -> Stratum[CallShape]:
    """A stratum of prompts of 3 tokens and more."""
    shapes = tuple(CallShape(size, 3, budget, True, batch) for size in v for batch in rows)
    return Stratum(name, shapes, kind=CallShape, **{"cost": 0.5, "ragged": False, **more})


SHARP = {"targets": ("zipf", "steep"), "drafters": SAME, "way": SETTINGS}
EVERY = {"ragged": True, "ends": True}
LOOP_STRATA: tuple[Stratum[CallShape], ...] = (
    stratum("batch-of-one", [8], [1], 16),
    stratum("batch-in-step", [8], [2, 5], 16, drafters=SAME),
    stratum("batch-prompts", [8], [2, 5], 16, drafters=SAME, ragged=True),
    stratum(ACCEPTANCE, [8], [2, 4], 24, cost=0.25),
    stratum("batch-endings", [8], [2, 5], 24, drafters=SAME, ends=True),
    stratum("batch-settings", [8], [2, 5], 12, **SHARP),
    stratum("batch-settings-endings", [8], [2, 5], 24, ends=True, **SHARP),
    stratum("batch-all", [8, 12], [2, 5, 9], 24, **EVERY),
    stratum("batch-of-many", [8], [24, 70], 12, **EVERY),
    stratum("batch-long", [8], [3], 160, **EVERY),
    stratum("batch-vocabulary-hundreds", [257, 1_000], [4], 12, ragged=True),
)
SAID: Mapping[str, str] = MappingProxyType(
    {
        "prompts": "prompts differ in length",
        "acceptance": "rows accept different numbers of drafts",
        "endings": "a row ends before another",
        "settings": "rows have different settings",
    }
)
"""In what the rows of a stratum may differ, in words."""
SEVERAL, LATER = "with several rows", "in rows after the first"
WAYS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {"temperature": (1.0, 0.5, 1.0, 2.0), "top_p": (1.0, 1.0, 0.7, 1.0)}
)
"""The settings that rows have in turn; the order is drawn."""
LONGER_PROMPT = 7
"""How many tokens longer a prompt may be than the shortest, where lengths differ."""


def of_batches(given: Stratum[Any]) -> bool:
    """Whether a stratum is one of batched loops."""
    return bool(given.kind is CallShape and given.shapes[0].batch)


def differences(given: Stratum[CallShape]) -> frozenset[str]:
    """In what rows of a stratum may differ; empty where there is one.

    Examples
    --------
    >>> sorted(differences(LOOP_STRATA[0])), sorted(differences(LOOP_STRATA[4]))
    ([], ['endings', 'rows'])
    """
    found = {
        "rows": True,
        "prompts": given.ragged,
        "acceptance": given.drafters != SAME,
        "endings": given.ends,
        "settings": given.way == SETTINGS,
    }
    several = any(shape.batch > 1 for shape in given.shapes)
    return frozenset(name for name, holds in found.items() if holds and several)


def when(failed: Iterable[str], later: bool = False) -> str:
    """When a loop is wrong, in words, by the strata that it fails; empty if there are none.

    * `later`: Whether the first row of a call is right where others are wrong.

    Examples
    --------
    >>> when(["batch-endings", "batch-all"]), when(["batch-of-one"]), when([])
    ('only when a row ends before another', 'with one row alone, too', '')
    >>> when(["batch-in-step"], later=True)
    'only in rows after the first'
    """
    wrong = [differences(one) for one in LOOP_STRATA if one.name in set(failed)]
    least = [one for one in wrong if not any(other < one for other in wrong)]
    if not all(least):
        return "with one row alone, too"
    ways = (" and ".join(said for one, said in SAID.items() if one in found) for found in least)
    said = ", or ".join(dict.fromkeys(f"when {way}" if way else SEVERAL for way in ways))
    more = said.removeprefix(SEVERAL)
    said = LATER + f", {more}" * bool(more) if later else said
    return f"only {said}" * bool(least)


FIRST_ROW = "in row 0"
PLACES: Mapping[str, Callable[[TextTokens], Bools]] = MappingProxyType(
    {
        "anywhere": lambda at: np.ones_like(at.row, dtype=bool),
        FIRST_ROW: lambda at: at.row == 0,
        LATER: lambda at: at.row > 0,
        "in the last row": lambda at: at.row == at.rows - 1,
        "from row 16": lambda at: at.row >= 16,
        "at position 0": lambda at: at.position == 0,
        "from position 1": lambda at: at.position > 0,
        "from position 5": lambda at: at.position > 4,
        "after a token that came twice": lambda at: at.again,
        "in the first call": lambda at: at.call == 0,
    }
)


def with_settings(pool: Pool, settings: Iterable[tuple[float, ...]]) -> Pool:
    """The pairs of a pool under each of some temperatures and top-p, one after the other."""

    def row(p: Floats, heat: float, mass: float) -> Floats:
        heated = p if heat == 1 else with_temperature(p, heat)
        return heated if mass == 1 else top_p(heated, mass)

    both = [[[row(p, *one) for p in rows] for one in settings] for rows in (pool.p, pool.q)]
    return Pool(*(np.concatenate(side) for side in both))


class Loops(Drawing[CallShape]):
    """Calls a function of the contract ``generate-batch`` in a stratum."""

    places = PLACES
    each_timed = True

    def __init__(
        self, given: Stratum[CallShape], subject: Subject, rng: np.random.Generator
    ) -> None:
        super().__init__(given, subject.timeout, rng)
        self.claims, self.call = subject.capabilities, BatchCaller(subject.function)
        taken = self.call.settings if given.way == SETTINGS else ()
        ways = zip(*(WAYS[one] if one in taken else [1.0] * 4 for one in NEUTRAL), strict=True)
        self.settings, known = list(dict.fromkeys(ways)), pools(given, rng)
        self.pairs = {size: len(pool.p) for size, pool in known.items()}
        self.models = {
            size: hashed_pair(pool, vocabulary_of(size, ends=given.ends))
            for size, pool in known.items()
        }
        self.pools = {size: with_settings(pool, self.settings) for size, pool in known.items()}

    def turns(self, shape: CallShape) -> int:
        return max(1, 8 // shape.batch)

    def ask(self, shape: CallShape, calls: int, first: int) -> TextTokens:
        made = [self._asked(shape, number) for number in range(first, first + calls)]
        arrays: dict[str, Any] = {
            one.name: np.concatenate([getattr(call, one.name) for call in made])
            for one in fields(TextTokens)
            if one.name not in ("rows", "lookahead")
        }
        return replace(made[0], **arrays)

    def answered(self, shape: CallShape) -> tuple[Model, list[CallPlace], list[Tokens], Ints]:
        """One call: the target and the contexts, the text after each, and its settings' number."""
        size, rows = shape.vocabulary, shape.batch
        more = self.rng.integers(1 + LONGER_PROMPT * self.stratum.ragged, size=rows).tolist()
        known = size - self.stratum.ends
        ids = [self.rng.integers(known, size=shape.context + n).tolist() for n in more]
        places = [CallPlace(tuple(one), shape.asked, shape) for one in ids]
        way = self.rng.permutation(np.arange(rows) % len(self.settings))
        settings = {
            name: [self.settings[one][at] for one in way] for at, name in enumerate(NEUTRAL)
        }
        fixture = Fixture(self.stratum.name, *self.models[size], tuple(places))
        contexts = [place.context for place in places]
        ask = partial(self.call, fixture, contexts, shape.asked, self.rng, settings)
        return fixture.target, places, within(self.timeout, ask), way

    def _asked(self, shape: CallShape, number: int) -> TextTokens:
        """The tokens of one call."""
        _, places, texts, way = self.answered(shape)
        size, rows = shape.vocabulary, shape.batch
        if self.stratum.name == ACCEPTANCE:
            texts = [text[:JUDGED] for text in texts]
        found = text_tokens(places, texts, self.pairs[size], 0)
        row = np.arange(rows).repeat([len(text) for text in texts])
        pair = found.pair + self.pairs[size] * way[row]
        return replace(found, row=row, pair=pair, call=np.full_like(row, number), rows=rows)
