"""The bets of `specref.contrib.real_models.bets`, on all tokens of a device at once.

Texts have random numbers of their own, so products over all tokens of all texts have mean 1, and
so has their average over components: that it reaches 1 / alpha has probability at most alpha.
"""

import math
from collections.abc import Iterator

import torch

from gpu_tests.recording import Draws
from specref.contrib.real_models.bets import Rows, log_bets
from specref.contrib.real_models.tally import ALPHA

LOSSY = -math.log10(ALPHA)
NUMBERS = 1 << 24
"""Of p that are looked at at once: 8,192 rows of 2,048 tokens, 110 of 152,064."""


def log10_evidence(draws: Draws, device: str) -> float:
    """How strongly the bets say that the tokens are not drawn by p; infinite if p excludes one.

    Lossy, at level alpha, from `LOSSY` on.
    """
    total = torch.stack([log_bets(rows).sum(0) for rows in chunks(draws, device)]).sum(0)
    if total.isposinf().any():
        return math.inf
    return float(total.logsumexp(0) - math.log(len(total))) / math.log(10)


def chunks(draws: Draws, device: str) -> Iterator[Rows]:
    """The rows of some draws, some at a time, on a device."""
    count = max(1, NUMBERS // draws.p.shape[1])
    tensors = draws.p, draws.q, draws.tokens, ~draws.drafted
    for rows in zip(*(tensor.split(count) for tensor in tensors), strict=True):
        p, q, tokens, last = (tensor.to(device) for tensor in rows)
        p = p.double()
        yield Rows(p / p.sum(1, keepdim=True), q.double(), tokens, last)
