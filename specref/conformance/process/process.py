"""A program in any language as an implementation of the contract ``verify``."""

import shlex
import threading
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

import numpy as np

from specref.conformance.batch import BrokenContractError
from specref.conformance.contract import Floats, Ints
from specref.conformance.judge import PATIENCE
from specref.conformance.patience import HungError
from specref.conformance.probing.calls import CannotInterpretError
from specref.conformance.probing.generator import ProbedGenerator
from specref.conformance.process.declared import Declaration, read_declaration
from specref.conformance.process.errors import CannotStartError, EndedError, SamplerError
from specref.conformance.process.messages import (
    batch_fields,
    coin_fields,
    read_blocks,
    read_message,
    request,
)
from specref.conformance.process.running import Running
from specref.losslessness.coins import Coins

SEEDS = 2**53
KEYWORDS = {"coins": "coins", "seed": "rng"}


class Process:
    """A program that is sent batches as JSON lines, to be judged like a function.

    `check`, `probe_block` and the rest of the kit take it as they take a function: it has the
    parameters `coins`, `rng` or both if the program takes coins or a seed, and carries the
    capabilities that the program declares. A program that ends is started anew for the next
    request; one that hangs is killed, and not asked again.

    Parameters
    ----------
    command : str
        The program and its arguments, quoted as for a shell; there is none.
    folder : Path, optional
        Where it is started; by default the current one.
    patience : float or None
        Seconds for each answer. Whoever keeps the time elsewhere, as `check` does, adds to it.

    Attributes
    ----------
    declared : Declaration
        What the program says of itself.

    Raises
    ------
    CannotStartError
        It cannot be started, or does not answer `start` as docs/runner-contract.md has it.
    ValueError
        The command is empty, or its quotes do not match.

    Examples
    --------
    >>> import sys
    >>> with Process(f"{sys.executable} -m specref.examples.harnesses.sampler") as program:
    ...     p = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    ...     print(program.declared)
    ...     program(p, p[:, :1], np.array([[1]]), rng=np.random.default_rng(1))
    my-sampler (Python)
    (array([[1, 0]]), array([2]))
    """

    def __init__(
        self, command: str, folder: Path | None = None, patience: float | None = PATIENCE
    ) -> None:
        self.command, self.words = command, _split(command)
        self.folder, self.patience = folder or Path.cwd(), patience
        self._lock, self._id = threading.Lock(), 0
        self._hung: HungError | None = None
        self._running: Running | None = None
        self.declared = self._start()
        self.specref_capabilities = self.declared.capabilities
        self.__signature__ = _signature(self.declared.takes)
        self.__name__ = f"Process({command!r})"

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(
        self,
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        *,
        rng: np.random.Generator | None = None,
        coins: Coins | None = None,
        lens: Ints | None = None,
    ) -> tuple[Any, Any]:
        """Have the program verify a batch: see `Verify`.

        Raises
        ------
        BrokenContractError, EndedError, SamplerError
            There is no answer, or none that can be read.
        TypeError
            `rng` or `coins` is missing.
        """
        lens = (draft_tokens >= 0).sum(axis=1) if lens is None else lens
        fields = batch_fields(target_probs, draft_probs, draft_tokens, lens)
        fields |= self._randomness(rng, coins)
        message = self._ask("verify", fields)
        return read_blocks(message, len(draft_tokens), draft_tokens.shape[1] + 1)

    def close(self) -> None:
        """Send `stop`, and kill the program if it does not end at once, or is being asked."""
        if self._running:
            busy = self._lock.locked()
            self._running.close(b"" if busy else request(self._id + 1, "stop"))
            self._running = None

    def _randomness(self, rng: np.random.Generator | None, coins: Coins | None) -> dict[str, Any]:
        for name, value in {"seed": rng, "coins": coins}.items():
            if name in self.declared.takes and value is None:
                raise TypeError(f"{KEYWORDS[name]} is missing: the program takes {name}")
        if self.declared.takes == ("seed",) and isinstance(rng, ProbedGenerator):
            raise CannotInterpretError(f"{self.command!r} draws its own numbers, from a seed")
        fields: dict[str, Any] = {}
        if rng is not None and "seed" in self.declared.takes:
            fields["seed"] = int(rng.integers(SEEDS))
        if coins is not None and "coins" in self.declared.takes:
            fields |= coin_fields(coins)
        return fields

    def _ask(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            if self._hung:
                raise self._hung
            if self._running is None:
                self._start()
            return self._exchanged(name, fields)

    def _start(self) -> Declaration:
        self._running, self._id = Running(self.words, self.folder), -1
        try:
            return read_declaration(self._exchanged("start", {}))
        except (BrokenContractError, EndedError, SamplerError) as error:
            self._discard()
            said = "answered with the error: " * isinstance(error, SamplerError)
            raise CannotStartError(f"{self.command!r}, asked to start, {said}{error}") from None

    def _exchanged(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        assert self._running is not None
        self._id += 1
        line = request(self._id, name, **fields)
        try:
            return read_message(self._running.ask(line, self.patience), self._id)
        except SamplerError:
            raise
        except BaseException as error:  # whatever is written now answers nothing
            self._hung = error if isinstance(error, HungError) else None
            self._discard()
            raise

    def _discard(self) -> None:
        if self._running:
            self._running.close()
            self._running = None


def _split(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"command = {command!r}: {error}") from None
    if not words:
        raise ValueError(f"command = {command!r}: expected a program")
    return words


def _signature(takes: tuple[str, ...]) -> Signature:
    """The parameters that the kit looks for."""
    positional = ("target_probs", "draft_probs", "draft_tokens")
    named = (*(KEYWORDS[one] for one in takes), "lens")
    return Signature(
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in positional]
        + [Parameter(name, Parameter.KEYWORD_ONLY) for name in named]
    )
