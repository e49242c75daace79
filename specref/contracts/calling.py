"""Calls user code with given randomness, and checks its answers."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from typing import Any

import numpy as np

from specref.arrays import Floats
from specref.coins import Coins
from specref.contracts.batch import (
    Answer,
    Batch,
    draw_batch_coins,
    joined,
    read_answer,
    usual,
    valid,
)
from specref.contracts.capabilities import Capabilities
from specref.contracts.errors import (
    LARGE,
    BrokenContractError,
    Limits,
    UntriedError,
    is_memory,
    stumbled,
)
from specref.contracts.process_state import bounded_memory, global_randomness
from specref.contracts.signature import GENERATORS, NAMED, accepted_keywords, law_kinds, of_some
from specref.contracts.timeout import Deadline, described, patience, within
from specref.supervised import end_a_copy_of

SHIFTS = {"target_probs": (2.0, -1.5, 0.5), "draft_probs": (-1.0, 1.0, 3.0)}
TENSORS = "--declare arrays=torch"
"""What gives a function tensors of torch, not arrays."""


def as_logits(name: str, laws: Floats, scale: float = 1.0) -> Floats:
    """The logarithms of laws, -inf for 0, plus a number for each position.

    The number repeats every three positions, and is never the same for target and draft: code
    that takes the exponential of a logit for a probability, without normalising, is wrong.

    Examples
    --------
    >>> halves = np.array([[[0.5, 0.5, 0.0]]])
    >>> as_logits("target_probs", halves).round(3).tolist()
    [[[1.307, 1.307, -inf]]]
    >>> as_logits("draft_probs", halves).round(3).tolist()
    [[[-1.693, -1.693, -inf]]]
    """
    shift = scale * np.resize(SHIFTS[name], laws.shape[1])
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(laws) + shift[:, None])


class Verifier:
    """An implementation of the contract ``verify``, called batch by batch.

    * `copies`: Whether it is given copies of laws; else the laws of a batch serve one call.
    * `short_rows`: What to do about too many tokens in a row with fewer drafts than others.
    * `sizes_named`: Whether a user asked for the sizes of the calls; else large ones may fail.
    * `sizes`: Those of the last call, as `Batch.sizes`.
    * `temperatures_met`: What requests had so far, if it is given temperatures.
    * `of_some`: Whether only some requests of a call have a generator of their own.
    * `needed`: Claims of situations that the contract is about: to raise there is a violation.
    """

    copies: bool = True
    needed: frozenset[str] = frozenset()
    sizes_named: bool = False
    short_rows: str = (
        "this row has fewer drafts than others, and draft_tokens holds -1 after them: stop at the "
        "first -1 (or, if rows always have equally many: --declare ragged=false)"
    )

    def __init__(
        self,
        implementation: Callable[..., Any],
        capabilities: Capabilities,
        timeout: float | None = None,
    ) -> None:
        self.implementation, self.capabilities = implementation, capabilities
        self.timeout = timeout
        self.keywords = self.keywords_of(implementation)
        self.of_some = of_some(implementation)
        self.kinds = self.kinds_of(implementation, capabilities.inputs)
        self.limits, self.sizes = Limits(), (0, 0, 0)
        self.temperatures_met: set[float] = set()

    @staticmethod
    def keywords_of(implementation: Callable[..., Any]) -> frozenset[str]:
        """What it is given by name."""
        return accepted_keywords(implementation)

    @staticmethod
    def kinds_of(implementation: Callable[..., Any], inputs: str) -> Mapping[str, str]:
        """{parameter: whether its laws are passed as they are, as logits or as logprobs}."""
        return law_kinds(implementation, inputs)

    def shaped(self, batch: Batch) -> Batch:
        """A batch in the form of the contract."""
        return batch

    @property
    def own_randomness(self) -> bool:
        """Whether it draws from global generators."""
        return "coins" not in self.keywords and not self.only_generators

    @property
    def only_generators(self) -> frozenset[str]:
        """Those among its parameters that leave nothing to the global generators."""
        return self.keywords & GENERATORS - ({"generators"} if self.of_some else set())

    def __call__(
        self, batch: Batch, rng: np.random.Generator, coins: Coins | None = None
    ) -> Answer:
        """The answer to a batch, in chunks as large as the implementation takes."""
        deadline = Deadline()
        return within(self.timeout, lambda: self.answer(batch, rng, coins, deadline), deadline)

    def answer(
        self,
        batch: Batch,
        rng: np.random.Generator,
        coins: Coins | None = None,
        deadline: Deadline | None = None,
    ) -> Answer:
        """As `__call__`, for callers that run it within a deadline of their own."""
        step = self.capabilities.batch or max(1, len(batch))
        batch, deadline, parts = self.shaped(batch), deadline or Deadline(), []
        for start in range(0, len(batch), step):
            chunk = batch if len(batch) <= step else batch[start : start + step]
            own = None if coins is None else deepcopy(coins[start : start + step])
            self._asks(chunk, deadline)
            with self._explained(chunk, rng, own):
                arguments, keywords = self.arguments(chunk, rng, own)
                with self.around_call(chunk, rng):
                    raw = self.implementation(*arguments, **keywords)
                parts.append(self.read_answer(self.returned(raw), chunk))
            deadline.restart()
        return parts[0] if len(parts) == 1 and coins is None else joined(parts)

    def answers(
        self, batch: Batch, rows: int, rng: np.random.Generator, deadline: Deadline
    ) -> Answer:
        """The answers to calls of so many rows each, cut from a batch; as from `answer` for each.

        They are checked together, which takes less time where calls are small and many. So if one
        hangs, nothing is said of the answers before it.
        """
        rows = min(rows, self.capabilities.batch or rows)
        batch = self.shaped(batch)
        parts = [batch[first : first + rows] for first in range(0, len(batch), rows)]
        copies: list[Answer] = []

        def read_each() -> list[Answer]:
            found = []
            for copied, part in zip(copies, parts, strict=False):
                with self._explained(part, rng):
                    found.append(self.read_answer(Answer(*copied), part))
            return found

        try:
            for part in parts:
                self._asks(part, deadline)
                with self._explained(part, rng):
                    raw = self.raw(part, rng)
                    copied = usual(raw, part)
                    copies.append(self.read_answer(raw, part) if copied is None else copied)
                deadline.restart()
        except BrokenContractError:
            read_each()  # what an earlier call did wrong comes first
            raise
        found = joined(copies)
        return found if valid(found, batch) else joined(read_each())

    def _asks(self, batch: Batch, deadline: Deadline) -> None:
        """Note what is asked, and refuse what is larger than what could not be tried."""
        self.sizes, large = batch.sizes, self.is_large(batch)
        if error := self.limits.why_not(self.sizes):
            why = f"no smaller than {error.situation}: {error.why}"
            raise UntriedError(f"not asked: {why}", batch.told_sizes(), error.why, by_size=True)
        if large and (why := self.limits.spent_up(self.sizes)):
            raise UntriedError(f"took {why}", batch.told_sizes(), why, by_size=True)
        deadline.ask(batch.told_sizes, patience(self.timeout) if large else None)

    def is_large(self, batch: Batch) -> bool:
        """Whether a call is so large that no contract makes an implementation take it."""
        return not self.sizes_named and batch.target_probs.size > LARGE

    @contextmanager
    def _explained(
        self, batch: Batch, rng: np.random.Generator, coins: Coins | None = None
    ) -> Iterator[None]:
        """Whatever user code raises in here, or answers, is a broken contract, or not tried."""
        try:
            yield
            return
        except BrokenContractError as error:
            broken = error
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # user code may raise anything
            broken = self._raised(error, batch, rng, coins)
            broken.__cause__ = error
        if broken.row is not None and broken.row < len(batch):
            broken.evidence |= batch.facts(broken.row)
        raise broken

    @contextmanager
    def around_call(self, batch: Batch, rng: np.random.Generator) -> Iterator[None]:
        """Around a call: the memory and the time of a large one, and its randomness.

        With coins it should need no other randomness, but it may draw some all the same.
        """
        large = self.is_large(batch)
        started = time.perf_counter()
        with ExitStack() as around:
            if large and self.capabilities.device == "cpu":
                around.enter_context(bounded_memory())
            around.callback(end_a_copy_of, os.getpid())
            if not self.only_generators:
                own = rng if self.own_randomness else deepcopy(rng)
                around.enter_context(global_randomness(own))
            yield
        if large:
            self.limits.spend(batch.sizes, time.perf_counter() - started)

    def _raised(
        self, error: BaseException, batch: Batch, rng: np.random.Generator, coins: Coins | None
    ) -> BrokenContractError:
        """What it means that user code raised in a call."""
        if is_memory(error) and self.is_large(batch):
            told = f"raised {described(error)}"
            return UntriedError(told, batch.told_sizes(), "not enough memory", by_size=True)
        row = self._offender(batch, rng, coins, type(error))
        where = f"in a batch of {len(batch)}" if row is None else f"at row {row}"
        told, why = f"raised {described(error, where)}", f"raises {type(error).__name__}"
        alone = row is not None and not hasattr(batch, "parents")
        asked = batch[row : (row or 0) + 1] if alone else batch
        if one := stumbled(asked, lambda batch: self.raises(batch, rng)):
            if one.claim in self.needed:
                return BrokenContractError(f"{told}, only {one.said}: declare {one.hint}", row)
            return UntriedError(f"{told} ({one.hint})", one.said, why, claim=one.claim, row=row)
        if way := self.optional_way(batch, rng):
            return UntriedError(told, way, why, row=row)
        return BrokenContractError(f"{told}{self.hint(error)}", row)

    def optional_way(self, batch: Batch, rng: np.random.Generator) -> str:
        """The way of calling, in words, if it is optional and a call raises by it alone."""
        return ""

    def hint(self, error: BaseException) -> str:
        """A hint at a claim, or at a missing parameter; may be empty."""
        if isinstance(error, KeyError) and set(error.args) & set(NAMED):
            return " (what is passed by name has to be a parameter of its own, not in **keywords)"
        if self.capabilities.arrays == "numpy" and "ndarray" in described(error):
            return f" ({TENSORS} for tensors)"
        return ""

    def raises(self, batch: Batch, rng: np.random.Generator) -> bool:
        """Whether a call raises now."""
        try:
            self.raw(batch, rng)
        except BaseException:  # user code may raise anything
            return True
        return False

    def raw(self, batch: Batch, rng: np.random.Generator, coins: Coins | None = None) -> Any:
        """The unchecked result of one call."""
        arguments, keywords = self.arguments(batch, rng, coins)
        with self.around_call(batch, rng):
            raw = self.implementation(*arguments, **keywords)
        return self.returned(raw)

    def returned(self, raw: Any) -> Any:
        """What a call returned, before it is read; ways of calling look at it, or keep it."""
        return raw

    def arguments(
        self, batch: Batch, rng: np.random.Generator, coins: Coins | None = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of one call: copies, since user code may change them; see `copies`."""
        batch = self.shaped(batch)
        given = tuple(self._given(name, values) for name, values in batch.arguments.items())
        keywords = self.randomness(batch, rng, coins)
        if "lens" in self.keywords:
            keywords["lens"] = self.array(batch.lens)
        return given, keywords

    def randomness(
        self, batch: Batch, rng: np.random.Generator, coins: Coins | None
    ) -> dict[str, Any]:
        """The coins and generators that the implementation names."""
        keywords: dict[str, Any] = {}
        if "coins" in self.keywords:
            keywords["coins"] = draw_batch_coins(batch, rng) if coins is None else coins
        if "rng" in self.keywords:
            keywords["rng"] = rng
        if "generator" in self.keywords:
            keywords["generator"] = self.generator(rng)
        if "generators" in self.keywords:
            own = {row: self.generator(rng, row) for row in range(0, len(batch), 1 + self.of_some)}
            keywords["generators"] = own if self.of_some else list(own.values())
        return keywords

    def generator(self, rng: np.random.Generator, request: int = 0) -> Any:
        """A `torch.Generator` with a seed of its own, for the call or for one of its requests."""
        import torch

        generator = torch.Generator(device=self.capabilities.device)
        return generator.manual_seed(int(rng.integers(2**63)))

    def read_answer(self, raw: Any, batch: Batch) -> Answer:
        """What an implementation returned, checked and converted."""
        return read_answer(raw, batch, self.short_rows)

    def read(self, name: str, values: Floats) -> Floats:
        """Laws as the implementation gets them, rounded or as logits; converted to float64."""
        given = self._given(name, values)
        exact = given.double().cpu() if hasattr(given, "cpu") else given
        return np.asarray(exact, dtype=np.float64)

    def _given(self, name: str, values: Any) -> Any:
        kind = self.kinds.get(name, "probs")
        if values is not None and kind != "probs":
            logits = kind == "logits"
            values = self.logits(name, values) if logits else as_logits(name, values, scale=0)
        return self.array(values)

    def logits(self, name: str, laws: Floats) -> Floats:
        """The logits that stand for laws."""
        return as_logits(name, laws)

    def array(self, values: Any) -> Any:
        """An array as the implementation takes it: its dtype, its device, its kind."""
        if values is None:
            return None
        if self.capabilities.arrays == "numpy":
            if values.dtype.kind == "f":
                return values.astype(self.capabilities.dtype, copy=self.copies)
            return values.copy()
        import torch

        shared = values.dtype.kind == "f" and not self.copies
        tensor = torch.from_numpy(np.ascontiguousarray(values) if shared else values.copy()).to(
            self.capabilities.device
        )
        dtype = getattr(torch, self.capabilities.dtype)
        return tensor.to(dtype) if tensor.is_floating_point() else tensor

    def _offender(
        self,
        batch: Batch,
        rng: np.random.Generator,
        coins: Coins | None,
        kind: type[BaseException],
    ) -> int | None:
        """The row that raises on its own, found by bisection; None if there is none."""

        def raises(low: int, high: int) -> bool:
            rows = slice(low, high)
            try:
                self.raw(batch[rows], rng, None if coins is None else coins[rows])
            except BaseException as error:  # as above
                return isinstance(error, kind)
            return False

        low, high = 0, len(batch)
        while high - low > 1:
            middle = (low + high) // 2
            if raises(low, middle):
                high = middle
            elif raises(middle, high):
                low = middle
            else:
                return None
        return low if len(batch) == 1 or raises(low, high) else None
