"""Ids that end a text or a turn in published vocabularies."""

import numpy as np

from specref.arrays import Bools, Ints

# Llama 2, Gemma, Phi 3, GPT-2, Whisper, Llama 3, Qwen 2, o200k.
END_IDS = (
    *(1, 2, 106, 107, 32_000, 32_007, 50_256, 50_257),
    *(128_001, 128_009, 151_643, 151_645, 199_999, 200_020),
)


def end_ids(size: int) -> tuple[int, ...]:
    """The last two of a vocabulary of so many tokens, or as many as there are.

    Examples
    --------
    >>> end_ids(151_936), end_ids(50_257), end_ids(2)
    ((151643, 151645), (32007, 50256), (1,))
    """
    return tuple(one for one in END_IDS if one < size)[-2:]


def is_end_id(ids: Ints, rank: int) -> Bools:
    """Which of all ids is the last end id (rank 0), or the one before (rank 1).

    Examples
    --------
    >>> is_end_id(np.arange(3), 0).tolist(), is_end_id(np.arange(2), 1).tolist()
    ([False, False, True], [False, False])
    """
    known = end_ids(len(ids))[::-1]
    return np.asarray(ids == (known[rank] if rank < len(known) else -1))
