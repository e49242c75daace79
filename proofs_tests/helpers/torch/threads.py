"""How many threads torch has while tests run."""

from collections.abc import Iterator

import torch


def single_thread() -> Iterator[None]:
    """A fixture: more threads only wait for each other on models and batches this small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
