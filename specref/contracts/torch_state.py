"""The state of torch that a call depends on: set for the call, and restored afterwards."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import torch

from specref.contracts.timeout import deadline_here
from specref.contracts.turns import turn

_LOCK = threading.Lock()
_before: dict[object, int] = {}


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: with more, tensors of a few numbers take many times longer.

    If several callers overlap, each restores, on leaving, what was there before the first one.
    A call that does not return in time has left.

    Examples
    --------
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    caller, thread = object(), threading.get_ident()
    with _LOCK:
        _before[caller] = next(iter(_before.values()), torch.get_num_threads())

    def leave() -> None:
        with _LOCK:
            threads = _before.pop(caller, None)
            alone = not _before
        if threads is not None and (alone or threading.get_ident() == thread):
            torch.set_num_threads(threads)

    with deadline_here().releasing(leave):
        torch.set_num_threads(1)
        yield


@contextmanager
def seeded(rng: np.random.Generator, device: str = "cpu") -> Iterator[None]:
    """Seed torch's global generators from `rng`, and use one thread; undo both on leaving.

    Only one call at a time, as for `calling.global_randomness`.

    Parameters
    ----------
    rng : numpy.random.Generator
        One number is drawn from it.
    device : str
        The device whose generator is restored too.

    Examples
    --------
    >>> def draw():
    ...     with seeded(np.random.default_rng(3)):
    ...         return float(torch.rand(1))
    >>> before = torch.random.get_rng_state()
    >>> draw() == draw(), bool((before == torch.random.get_rng_state()).all())
    (True, True)
    """
    seed = int(rng.integers(2**63))

    def begin() -> Callable[[], None]:
        kind = torch.device(device).type
        devices, kind = ([], "cuda") if kind == "cpu" else ([torch.device(device)], kind)
        stack = ExitStack()
        stack.enter_context(torch.random.fork_rng(devices, device_type=kind))
        seed_all(seed)
        return stack.close

    with turn(begin), one_thread():
        yield


def seed_all(seed: int) -> None:
    """Seed torch's global generators.

    Without an accelerator `torch.manual_seed` formats a stack trace for each kind that there
    could be, which takes longer than many a call of user code.

    Parameters
    ----------
    seed : int

    Examples
    --------
    >>> seed_all(3)
    >>> float(torch.rand(1)) == float(torch.rand(1, generator=torch.Generator().manual_seed(3)))
    True
    """
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)
