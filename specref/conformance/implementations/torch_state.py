"""The state of torch that a call depends on: set for the call, and put back afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: with more, tensors of a few numbers take many times longer.

    Examples
    --------
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def seeded(rng: np.random.Generator, device: str = "cpu") -> Iterator[None]:
    """Seed torch's global generators from `rng`, and use one thread; undo both on leaving.

    Parameters
    ----------
    rng : numpy.random.Generator
        One number is drawn from it.
    device : str
        The device whose generator is put back too.

    Examples
    --------
    >>> def draw():
    ...     with seeded(np.random.default_rng(3)):
    ...         return float(torch.rand(1))
    >>> before = torch.random.get_rng_state()
    >>> draw() == draw(), bool((before == torch.random.get_rng_state()).all())
    (True, True)
    """
    kind = torch.device(device).type
    devices, kind = ([], "cuda") if kind == "cpu" else ([torch.device(device)], kind)
    with torch.random.fork_rng(devices, device_type=kind), one_thread():
        torch.manual_seed(int(rng.integers(2**63)))
        yield
