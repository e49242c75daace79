"""Ways of calling a verifier of batches: what is passed, in which memory, and what is kept."""

import inspect
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from specref.arrays import Bools, Floats, Ints
from specref.coins import Coins
from specref.conformance.greedy import departures, likeliest
from specref.conformance.strata.campaign import Tokens
from specref.contracts.batch import Answer, Batch, as_numpy, joined
from specref.contracts.calling import Verifier, as_logits
from specref.contracts.errors import BrokenContractError, to_blame
from specref.contracts.signature import GENERATORS
from specref.contracts.timeout import Deadline

OPTIONAL = ("coins", "lens")
KEPT = 4
ABSENT = "takes no"
"""How a refusal begins if an implementation has nothing that could be called in that way."""
FAR = 50.0
"""Beyond what exponentials of float32 can be taken of, above and below."""
TEMPERATURES = (0.125, 4.0, 1.0, 0.5, 0.0625)
"""Powers of two, which round no logits."""
ODD_TEMPERATURES = (0.1, 0.3, 0.7, 1.1)
"""Those that people type; not one of them has few binary digits."""
COLDEST, HOTTEST = 0.05, 2.0
BESIDE = 32
"""The most requests of a call beside greedy ones, these included."""


def in_turn(index: int, at: Tokens) -> Bools:
    """The tokens of rows that have the temperature of this index."""
    return np.asarray(at.row % (len(ODD_TEMPERATURES) + 1) == index)


class Called(Verifier):
    """A verifier that is called in one way; the plain way by itself.

    * `optional`: Whether an implementation need not take them so; then one that raises is not
      tried so.
    * `places`: {name: tokens -> which of them are there}: what is bet on besides the usual places.

    Notes
    -----
    Laws are not copied: a batch is for one call.
    """

    copies = False
    way: ClassVar[str] = "as the contract says"
    optional: ClassVar[bool] = False
    kind: ClassVar[type[Verifier]] = Verifier
    places: ClassVar[Mapping[str, Callable[[Tokens], Bools]]] = MappingProxyType({})

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.begin()

    def begin(self) -> None:
        """Remember nothing yet."""

    def refusal(self) -> str:
        """Why it cannot be called in this way; empty if it can."""
        return ""

    def optional_way(self, batch: Batch, rng: np.random.Generator) -> str:
        if not self.optional:
            return ""
        plain = self.kind(self.implementation, self.capabilities, self.timeout)
        blamed = to_blame(lambda: self.raises(batch, rng), lambda: plain.raises(batch, rng))
        return self.way if blamed else ""


class Bare(Called):
    """Without those of `coins` and `lens` that have defaults; for batches of equal lengths."""

    optional = True
    way = "without coins and lens"

    def _left_out(self) -> tuple[str, ...]:
        parameters = inspect.signature(self.implementation).parameters
        asked = [name for name in OPTIONAL if name in self.keywords]
        return tuple(n for n in asked if parameters[n].default is not inspect.Parameter.empty)

    def refusal(self) -> str:
        return "" if self._left_out() else "neither coins nor lens is an optional parameter"

    def arguments(
        self, batch: Batch, rng: np.random.Generator, coins: Coins | None = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given, keywords = super().arguments(batch, rng, coins)
        return given, {k: v for k, v in keywords.items() if k not in self._left_out()}

    @property
    def own_randomness(self) -> bool:
        return "coins" not in self.keywords - set(self._left_out()) and not self.only_generators


class Changed(Called, ABC):
    """With every array changed by `one`."""

    optional = True

    @abstractmethod
    def one(self, array: Any) -> Any:
        """The array to pass instead."""

    def arguments(
        self, batch: Batch, rng: np.random.Generator, coins: Coins | None = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given, keywords = super().arguments(batch, rng, coins)
        passed = tuple(self._changed(value) for value in given)
        return passed, {
            name: value if name in GENERATORS else self._changed(value)
            for name, value in keywords.items()
        }

    def _changed(self, value: Any) -> Any:
        return self.one(value) if hasattr(value, "dtype") else value


class ShortIds(Changed):
    """With token ids of 32 bits."""

    way = "with int32 ids"

    def one(self, array: Any) -> Any:
        if hasattr(array, "is_floating_point"):
            return array if array.is_floating_point() else array.int()
        return array if array.dtype.kind == "f" else array.astype(np.int32)


class Strided(Changed):
    """With arrays whose rows are not contiguous in memory."""

    way = "with strided arrays"

    def one(self, array: Any) -> Any:
        if hasattr(array, "is_floating_point"):
            return array.repeat_interleave(2, dim=-1)[..., ::2]
        return np.repeat(array, 2, axis=-1)[..., ::2]


class Transposed(Changed):
    """With arrays whose memory has columns first."""

    way = "with transposed arrays"

    def one(self, array: Any) -> Any:
        if hasattr(array, "is_floating_point"):
            return array.movedim(-1, 0).contiguous().movedim(0, -1)
        return np.asfortranarray(array)


class ReadOnly(Changed):
    """With arrays that cannot be written."""

    way = "with read-only arrays"

    def refusal(self) -> str:
        if self.capabilities.arrays != "numpy":
            return "tensors cannot be read-only"
        return "may change what it is given" if self.capabilities.in_place else ""

    def one(self, array: Any) -> Any:
        seen = array.view()
        seen.setflags(write=False)
        return seen


class Refilled(Changed):
    """With the same arrays in every call, filled anew; earlier answers are overwritten."""

    copies = True  # what it keeps is its own
    way = "with the same arrays filled anew"

    def begin(self) -> None:
        self._arrays: dict[tuple[Any, ...], Any] = {}
        self._turn = 0

    def arguments(
        self, batch: Batch, rng: np.random.Generator, coins: Coins | None = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        self._turn = 0
        return super().arguments(batch, rng, coins)

    def one(self, array: Any) -> Any:
        self._turn += 1
        key = self._turn, tuple(array.shape), str(array.dtype)
        known = self._arrays.setdefault(key, array)
        if known is not array:
            known[...] = array
        return known

    def returned(self, raw: Any) -> Any:
        answer = super().returned(raw)
        copied = deepcopy(answer)
        for part in answer if isinstance(answer, tuple | list) else ():
            with suppress(TypeError, ValueError, RuntimeError):  # of lists and read-only arrays
                part[...] = 0
        return copied


class Kept(Called):
    """With its last answers kept: later calls must not change them."""

    way = "with earlier answers kept"

    def begin(self) -> None:
        self._earlier: list[tuple[Any, Any]] = []

    def returned(self, raw: Any) -> Any:
        answer = super().returned(raw)
        for old, copied in self._earlier:
            if not _equal(old, copied):
                raise BrokenContractError("a later call changed the answer of an earlier one")
        self._earlier = [*self._earlier[1 - KEPT :], (answer, deepcopy(answer))]
        return answer


def _equal(one: Any, other: Any) -> bool:
    parts = zip(one, other, strict=True) if isinstance(one, tuple | list) else ()
    return all(np.array_equal(as_numpy(one), as_numpy(other)) for one, other in parts)


class LargeLogits(Called):
    """With logits far from 0: a model's divided by a low temperature, before any normalisation."""

    way = "with large logits"

    def refusal(self) -> str:
        if "logits" not in self.kinds.values():
            return f"{ABSENT} logits"
        kept = self.capabilities.dtype in ("float32", "float64")
        return "" if kept else f"{self.capabilities.dtype} has no digits left for such logits"

    def logits(self, name: str, laws: Floats) -> Floats:
        return as_logits(name, laws, FAR)


class OneTemperature(Called):
    """With the same temperature for all requests of a call, another one in the next."""

    way = "with one temperature for all requests"

    def begin(self) -> None:
        self._turns = itertools.cycle(TEMPERATURES)

    def refusal(self) -> str:
        return "" if "temperature" in self.keywords else f"{ABSENT} temperature"

    def temperatures(self, requests: int) -> Floats:
        """Of each request."""
        return np.full(requests, next(self._turns))


class OddTemperatures(Called):
    """With temperatures that are not powers of two, in turn; the last is drawn by the seed."""

    way = "with temperatures that are no powers of two"
    places = MappingProxyType(
        {
            **{
                f"at temperature {heat:g}": partial(in_turn, index)
                for index, heat in enumerate(ODD_TEMPERATURES)
            },
            "at the temperature that the seed drew": partial(in_turn, len(ODD_TEMPERATURES)),
        }
    )

    def begin(self) -> None:
        self._drawn: float | None = None

    def refusal(self) -> str:
        if "temperature" not in self.keywords:
            return f"{ABSENT} temperature"
        kept = self.capabilities.dtype in ("float32", "float64")
        return "" if kept else f"{self.capabilities.dtype} rounds logits at such temperatures"

    def arguments(
        self, batch: Batch, rng: np.random.Generator, coins: Coins | None = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if self._drawn is None:
            self._drawn = round(float(rng.uniform(COLDEST, HOTTEST)), 2)
        return super().arguments(batch, rng, coins)

    def temperatures(self, requests: int) -> Floats:
        """Of each request."""
        return np.resize([*ODD_TEMPERATURES, self._drawn], requests)


class BesideGreedy(Called):
    """With a request at temperature 0 beside each request, whose block is compared with argmax.

    * `departure`: The first block of a request at temperature 0 that argmax does not give; empty
      if none.
    """

    way = "with requests at temperature 0 in the call"

    def begin(self) -> None:
        self.departure, self._first = "", 0

    def refusal(self) -> str:
        if "temperature" not in self.keywords:
            return f"{ABSENT} temperature"
        if not self.capabilities.greedy_at_zero:
            return "does not claim greedy_at_zero=true"
        most = self.capabilities.batch
        return f"takes {most} requests a call: too few" if most and most < BESIDE else ""

    def temperatures(self, requests: int) -> Floats:
        """Of each request, the greedy ones included."""
        found = np.resize(TEMPERATURES, requests)
        found[self._first :: 2] = 0
        return found

    def answer(
        self,
        batch: Batch,
        rng: np.random.Generator,
        coins: Coins | None = None,
        deadline: Deadline | None = None,
    ) -> Answer:
        """The answer for the requests of the batch alone."""
        self._first = 1 - self._first
        pairs = np.arange(len(batch))[:, None].repeat(2, axis=1)
        pairs[:, self._first] = np.roll(pairs[:, 0], 1)  # the greedy one has another's laws
        every = batch[pairs.ravel()]
        coins = None if coins is None else coins[pairs.ravel()]
        answer = super().answer(every, rng, coins, deadline)
        greedy, tokens = every[self._first :: 2], answer.tokens[self._first :: 2]
        for row in departures(greedy, likeliest(self, greedy), tokens)[:1].tolist():
            block = [token for token in tokens[row].tolist() if token >= 0]
            self.departure = self.departure or (
                f"request {2 * row + self._first} of {len(every)}, at temperature 0, with drafts "
                f"{greedy.draft_tokens[row].tolist()}, is {block}, which argmax does not give"
            )
        others = slice(1 - self._first, None, 2)
        return Answer(answer.tokens[others], answer.counts[others])

    def answers(
        self, batch: Batch, rows: int, rng: np.random.Generator, deadline: Deadline
    ) -> Answer:
        """The answers to calls of so many rows each."""
        firsts = range(0, len(batch), rows)
        return joined([
            self.answer(batch[first : first + rows], rng, deadline=deadline) for first in firsts
        ])  # fmt: skip


class KeptGenerators(Called):
    """With the same `torch.Generator` objects in all calls, one for each request or for all."""

    way = "with the same torch.Generator in all calls"

    def begin(self) -> None:
        self._generators: dict[int, Any] = {}

    def refusal(self) -> str:
        taken = self.keywords & {"generator", "generators"}
        return "" if taken else f"{ABSENT} torch.Generator"

    def generator(self, rng: np.random.Generator, request: int = 0) -> Any:
        if request not in self._generators:
            self._generators[request] = super().generator(rng, request)
        return self._generators[request]


class SeedsInARow(Called):
    """With seeds that follow each other."""

    way = "with seeds that follow each other"

    def refusal(self) -> str:
        return "" if "seeds" in self.keywords else f"{ABSENT} seeds"

    def seeds(self, requests: int, rng: np.random.Generator) -> Ints:
        """One for each request."""
        return np.asarray(rng.integers(2**62) + np.arange(requests))


WAYS: Mapping[str, type[Called]] = MappingProxyType(
    {
        "plain": Called,
        "bare": Bare,
        "int32": ShortIds,
        "strided": Strided,
        "transposed": Transposed,
        "read-only": ReadOnly,
        "refilled": Refilled,
        "kept": Kept,
        "large-logits": LargeLogits,
        "one-temperature": OneTemperature,
        "beside-greedy": BesideGreedy,
        "odd-temperatures": OddTemperatures,
        "kept-generators": KeptGenerators,
        "seeds-in-a-row": SeedsInARow,
    }
)


def called(way: str, kind: type[Verifier]) -> type[Called]:
    """The class that calls in one way the functions of a contract with this verifier."""
    made: type[Called] = type(
        f"{WAYS[way].__name__}{kind.__name__}", (WAYS[way], kind), {"kind": kind}
    )
    return made
