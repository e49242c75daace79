"""A program in any language as an implementation of the contract ``verify``."""

import shlex
import weakref
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

import numpy as np

from specref.arrays import Floats, Ints
from specref.coins import Coins
from specref.contracts.timeout import TIMEOUT
from specref.probing.numpy_random import is_intercepted
from specref.probing.source import CannotInterpretError
from specref.process.messages import batch_fields, coin_fields, read_blocks
from specref.process.session import CLAIMS, Session

SEEDS = 2**53
KEYWORDS = {"coins": "coins", "seed": "rng"}


class Process:
    """A program that gets batches as JSON lines, and can be judged like a function.

    `check`, `probe_block` and the others accept it like a function: it has the
    parameters `coins`, `rng` or both if the program takes random numbers or a seed, and carries
    the capabilities that the program declares. A program that ends is restarted for the next
    request; one that hangs is killed, and not asked again.

    Parameters
    ----------
    command : str
        The program and its arguments, quoted as for a shell; no shell is used.
    folder : Path, optional
        Its working directory; by default the current one.
    timeout : float or None
        Seconds for each answer. A timeout of `check` applies in addition.

    Attributes
    ----------
    declared : Declaration
        What the program declares about itself.

    Raises
    ------
    CannotStartError
        It cannot be started, or does not answer `start` as specified in docs/other-languages.md.
    ValueError
        The command is empty, its quotes do not match, or `timeout` is not positive.

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

    specref_claimable = CLAIMS
    specref_as_text = True

    def __init__(
        self, command: str, folder: Path | None = None, timeout: float | None = TIMEOUT
    ) -> None:
        if timeout is not None and not timeout > 0:
            raise ValueError(
                f"timeout = {timeout}: expected a positive number of seconds, or None"
            )
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ValueError(f"command = {command!r}: {error}") from None
        if not words:
            raise ValueError(f"command = {command!r}: expected a program")
        self.command = command
        self._session = Session(command, words, folder or Path.cwd(), timeout)
        weakref.finalize(self, self._session.close)
        self.declared = self._session.start()
        self.specref_capabilities = self.declared.capabilities
        self.__signature__ = _signature(self.declared.takes)
        self.__name__ = f"Process({command!r})"

    def __repr__(self) -> str:
        return self.__name__

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
        """Let the program verify a batch: see `Verify`.

        Raises
        ------
        BrokenContractError, EndedError, SamplerError
            There is no answer, or no valid one.
        TypeError
            An array is not a NumPy array, or `rng` or `coins` is missing.
        ValueError
            The program was closed.
        """
        arrays = {"target_probs": target_probs, "draft_tokens": draft_tokens}
        for name, array in (arrays | {"draft_probs": draft_probs, "lens": lens}).items():
            optional = array is None and name in ("draft_probs", "lens")
            if not optional and not isinstance(array, np.ndarray):
                kind = type(array).__name__
                raise TypeError(f"{name} is a {kind}: expected an array of NumPy")
        lens = (draft_tokens >= 0).sum(axis=1) if lens is None else lens
        fields = batch_fields(target_probs, draft_probs, draft_tokens, lens)
        fields |= self._randomness(rng, coins)
        message = self._session.ask("verify", fields)
        return read_blocks(message, len(draft_tokens), draft_tokens.shape[1] + 1)

    def close(self) -> None:
        """Send `stop`, and kill the program if it does not end at once, or is busy.

        It is not restarted: later calls raise.
        """
        self._session.close()

    def _randomness(self, rng: np.random.Generator | None, coins: Coins | None) -> dict[str, Any]:
        for name, value in {"seed": rng, "coins": coins}.items():
            if name in self.declared.takes and value is None:
                raise TypeError(f"{KEYWORDS[name]} is missing: the program takes {name}")
        if self.declared.takes == ("seed",) and rng is not None and is_intercepted(rng):
            raise CannotInterpretError(f"{self.command!r} draws its own numbers, from a seed")
        fields: dict[str, Any] = {}
        if rng is not None and "seed" in self.declared.takes:
            fields["seed"] = int(rng.integers(SEEDS))
        if coins is not None and "coins" in self.declared.takes:
            fields |= coin_fields(coins)
        return fields


def _signature(takes: tuple[str, ...]) -> Signature:
    """The parameters that the kit looks for."""
    positional = ("target_probs", "draft_probs", "draft_tokens")
    named = (*(KEYWORDS[one] for one in takes), "lens")
    return Signature(
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in positional]
        + [Parameter(name, Parameter.KEYWORD_ONLY) for name in named]
    )
