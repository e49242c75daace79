"""Calls functions of the contract ``ragged``: flattens batches, and pads the answers."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from specref.arrays import NO_TOKEN, Floats, Ints
from specref.coins import Coins, race_winner
from specref.contracts.batch import Answer, Batch
from specref.contracts.calling import Verifier
from specref.contracts.errors import BrokenContractError
from specref.contracts.ragged.parameters import BONUS, named
from specref.contracts.verify.drawing import draw_tokens

TEMPERATURES = (0.5, 2.0, 1.0, 0.75, 1.5)
"""Of the requests of a call in turn; in less than double precision the first three alone."""
UNROUNDED = 3
"""How many of them are powers of two, which round no logits: a row that is moved has its law."""


class RaggedVerifier(Verifier):
    """An implementation of the contract ``ragged``; it is given the parameters that it names."""

    @staticmethod
    def keywords_of(implementation: Callable[..., Any]) -> frozenset[str]:
        return named(implementation)

    @staticmethod
    def kinds_of(implementation: Callable[..., Any], inputs: str) -> Mapping[str, str]:
        return dict.fromkeys(("target_probs", "draft_probs"), inputs)  # as `read` gives them

    def arguments(
        self, batch: Batch, rng: np.random.Generator, coins: Coins | None = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of one call, all by name: arrays of all requests, without padding."""
        random = self.randomness(batch, rng, coins)
        p, q, lens, rows = batch.target_probs, batch.draft_probs, batch.lens, np.arange(len(batch))
        columns = np.arange(p.shape[1])
        drafted = columns[:-1] < lens[:, None]
        of_target = columns < (lens if self.keywords & set(BONUS) else lens + 1)[:, None]
        temperature = self.temperatures(len(batch)) * (not self.capabilities.greedy)
        if "temperature" in self.keywords:
            self.temperatures_met.update(temperature.tolist())

        @cache
        def top() -> tuple[Ints, Floats] | tuple[None, None]:
            return (None, None) if q is None else likeliest(q[drafted])

        def logits(kind: str, laws: Floats) -> Floats:
            scale = np.where(temperature > 0, temperature, 1.0)
            hot = scale if "temperature" in self.keywords else np.ones_like(scale)
            return self.logits(kind, laws) * hot[:, None, None]

        made: Mapping[str, Callable[[], Any]] = {
            "draft_token_ids": lambda: batch.draft_tokens[drafted],
            "num_draft_tokens": lambda: lens,
            "cu_num_draft_tokens": lambda: lens.cumsum(),
            "target_probs": lambda: p[of_target],
            "target_logits": lambda: logits("target_probs", p)[of_target],
            "draft_probs": lambda: None if q is None else q[drafted],
            "draft_logits": lambda: None if q is None else logits("draft_probs", q)[drafted],
            "draft_top_ids": lambda: top()[0],
            "draft_top_probs": lambda: top()[1],
            "bonus_token_ids": lambda: self._bonus(
                p[rows, lens], temperature, rng, random.get("coins")
            ),
            "bonus_probs": lambda: p[rows, lens],
            "bonus_logits": lambda: logits("target_probs", p)[rows, lens],
            "temperature": lambda: temperature,
        }
        given = {name: self.array(made[name]()) for name in made if name in self.keywords}
        if "max_spec_len" in self.keywords:
            given["max_spec_len"] = int(lens.max(initial=0))
        return (), {**given, **random}

    def randomness(
        self, batch: Batch, rng: np.random.Generator, coins: Coins | None
    ) -> dict[str, Any]:
        found = super().randomness(batch, rng, coins)
        if "seeds" in self.keywords:
            found["seeds"] = self.array(self.seeds(len(batch), rng))
        return found

    def temperatures(self, requests: int) -> Floats:
        """Of each request."""
        double = self.capabilities.dtype == "float64"
        return np.resize(TEMPERATURES if double else TEMPERATURES[:UNROUNDED], requests)

    def seeds(self, requests: int, rng: np.random.Generator) -> Ints:
        """One for each request."""
        return np.array([rng.integers(2**63) for _ in range(requests)])

    def _bonus(
        self, laws: Floats, temperature: Floats, rng: np.random.Generator, coins: Coins | None
    ) -> Ints:
        """What an engine's ordinary sampler would draw; by the coins, if there are any."""
        greedy, likeliest = temperature == 0, laws.argmax(axis=1)
        if greedy.all():
            return np.asarray(likeliest)
        return np.where(greedy, likeliest, self._sampled_bonus(laws, rng, coins))

    def _sampled_bonus(self, laws: Floats, rng: np.random.Generator, coins: Coins | None) -> Ints:
        if coins is None:
            return draw_tokens(laws, rng)
        if self.capabilities.recovery != "inverse":
            return race_winner(laws, coins.race)
        ends = laws.cumsum(axis=1)
        return np.asarray((ends <= (coins.final * ends[:, -1])[:, None]).sum(axis=1))

    def read_answer(self, raw: Any, batch: Batch) -> Answer:
        try:
            return super().read_answer(padded(raw, batch), batch)
        except BrokenContractError as error:
            row = f", [{error.row}] = {batch.lens[error.row]}" if error.row is not None else ""
            told = f"{error} (num_draft_tokens = {brief(batch.lens)}{row})"
            retold = BrokenContractError(told, error.row)
            retold.evidence |= error.evidence
            raise retold from None


def likeliest(laws: Floats) -> tuple[Ints, Floats]:
    """The S likeliest tokens of each law and their probabilities; S is the largest support.

    Examples
    --------
    >>> ids, values = likeliest(np.array([[0.0, 0.25, 0.75], [0.0, 1.0, 0.0]]))
    >>> ids.tolist(), values.tolist()
    ([[2, 1], [1, 0]], [[0.75, 0.25], [1.0, 0.0]])
    """
    most = max(1, int((laws > 0).sum(axis=1).max(initial=0)))
    ids = np.argsort(-laws, axis=1, kind="stable")[:, :most]
    return ids, np.take_along_axis(laws, ids, axis=1)


def padded(raw: Any, batch: Batch) -> Any:
    """(tokens, counts) as the contract ``verify`` has them; what cannot be read is left as it is.

    Parameters
    ----------
    raw : array, list of lists, or tuple of array and counts
        Without counts, a row ends at its first -1. With them, nothing after so many is read.

    Examples
    --------
    >>> from specref.contracts.ragged.contract import RAGGED
    >>> batch = RAGGED.sample(RAGGED.fixtures["wide"], 2, np.random.default_rng(1))
    >>> batch.draft_tokens.shape
    (2, 2)
    >>> [part.tolist() for part in padded([[4], [1, 3, 0]], batch)]
    [[[4, -1, -1], [1, 3, 0]], [1, 3]]
    >>> unset = np.array([[4, 7, 7], [1, 3, 7]])
    >>> [part.tolist() for part in padded((unset, [1, 2]), batch)]
    [[[4, -1, -1], [1, 3, -1]], [1, 2]]
    """
    tokens, counts = raw if isinstance(raw, tuple) and len(raw) == 2 else (raw, None)
    if isinstance(tokens, list) and all(isinstance(row, list) for row in tokens):
        most = max(1, *map(len, tokens))
        tokens = [[*row, *[NO_TOKEN] * (most - len(row))] for row in tokens]
    rows, columns = batch.draft_tokens.shape
    none = np.zeros(rows, dtype=np.int64)
    try:
        array, length = plain(tokens), None if counts is None else plain(counts)
    except Exception:  # arrays of user code may raise anything
        return tokens, none if counts is None else counts
    if array.ndim != 2 or len(array) != rows or array.dtype.kind not in "iu":
        return array, none if length is None else length
    if length is None:
        length = np.cumprod(array >= 0, axis=1).sum(axis=1)
    elif length.shape != (rows,) or length.dtype.kind not in "iu":
        return array, length
    else:
        array = np.where(np.arange(array.shape[1]) < length[:, None], array, NO_TOKEN)
    if (array[:, columns + 1 :] >= 0).any():
        return array, length
    missing = max(0, columns + 1 - array.shape[1])
    whole = np.pad(array, ((0, 0), (0, missing)), constant_values=NO_TOKEN)
    return whole[:, : columns + 1], length


def brief(lens: Ints) -> str:
    """How many drafts the first requests of a call have.

    Examples
    --------
    >>> brief(np.array([2, 0])), brief(np.arange(20))
    ('[2, 0]', '[0, 1, 2, 3, 4, 5, 6, 7, …]')
    """
    first = ", ".join(map(str, lens[:8].tolist()))
    return f"[{first}, …]" if len(lens) > 8 else f"[{first}]"


def plain(values: Any) -> Any:
    """An array of NumPy, from a tensor or anything that NumPy reads."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
