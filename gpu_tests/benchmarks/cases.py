"""What verification is timed on: sizes, random laws, and the bytes that must be moved."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product, starmap
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from specref.torch_backend import Coins, draw, row_coins, shape_logits, verify

Input: TypeAlias = Literal["probabilities", "logits"]
Variant: TypeAlias = Literal["eager", "compiled", "fused", "fused graph"]
Block: TypeAlias = tuple[Tensor, Tensor]
Rule: TypeAlias = Callable[[Tensor, Tensor, Tensor, Coins], Block]
INT64 = FLOAT64 = 8
LARGE = 152_064
SPREAD_OF_P, SPREAD_OF_Q = 2.0, 0.5


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    batch: int
    lookahead: int
    vocabulary: int
    dtype: str
    input: Input
    variant: Variant

    @property
    def numbers(self) -> tuple[int, int, int]:
        """What a problem is drawn for."""
        return self.batch, self.lookahead, self.vocabulary


@dataclass(frozen=True)
class Sizes:
    """What is measured, and for how long; `compiled` are the cases that are compiled as well.

    `fused` are those of the kernels of `torch_backend.fused`, launched and as a CUDA graph.
    """

    batches: tuple[int, ...] = (1, 16, 64)
    lookaheads: tuple[int, ...] = (4, 8)
    vocabularies: tuple[int, ...] = (32_000, LARGE)
    dtypes: tuple[str, ...] = ("float32", "bfloat16")
    compiled: Callable[[Case], bool] = lambda case: False
    fused: Callable[[Case], bool] = lambda case: False
    repetitions: int = 50
    seconds: float = 2.0
    buffer: int = 1 << 30

    @property
    def lines(self) -> list[Case]:
        """All cases, those of the same numbers one after the other."""
        numbers = self.batches, self.lookaheads, self.vocabularies
        cases = starmap(Case, product(*numbers, self.dtypes, get_args(Input), get_args(Variant)))
        return [case for case in cases if self._measured(case)]

    def _measured(self, case: Case) -> bool:
        wanted = {"eager": always, "compiled": self.compiled}.get(case.variant, self.fused)
        return wanted(case)

    @property
    def steps(self) -> int:
        """How many steps a measurement has."""
        return len(self.lines)


def _is_large(case: Case) -> bool:
    """The batches whose figure is to be reached."""
    return (case.batch, case.vocabulary) == (64, LARGE)


def always(case: Case) -> bool:
    return True


def _is_largest(case: Case) -> bool:
    """One of each dtype: a compilation takes much longer than what it is for."""
    return (*case.numbers, case.input) == (64, 4, LARGE, "probabilities")


SIZES: Mapping[str, Sizes] = MappingProxyType(
    {
        "cpu": Sizes(compiled=_is_largest, repetitions=7, seconds=1.0, buffer=1 << 28),
        "cuda": Sizes(compiled=_is_large, fused=always),
    }
)
TINY = Sizes((1, 2), (2,), (300,), repetitions=2, buffer=1 << 20)


@dataclass(frozen=True)
class Problem:
    """A batch to verify: float32 logits of p and q, drafts from q, and coins."""

    target: Tensor
    drafter: Tensor
    tokens: Tensor
    coins: Coins

    @classmethod
    def drawn(cls, case: Case, device: str, seed: int) -> "Problem":
        """Normal logits; q's are p's with noise."""
        rng = torch.Generator(device).manual_seed(seed)

        def normal(rows: int) -> Tensor:
            shape = case.batch, rows, case.vocabulary
            return torch.randn(shape, generator=rng, device=device)

        target = normal(case.lookahead + 1).mul_(SPREAD_OF_P)
        drafter = normal(case.lookahead).mul_(SPREAD_OF_Q).add_(target[:, :-1])
        uniforms = torch.rand(drafter.shape[:2], generator=rng, device=device)
        seeds = torch.arange(case.batch, device=device) + seed
        coins = row_coins(seeds, 0, case.lookahead)
        return cls(target, drafter, draw(drafter.softmax(-1), uniforms), coins)

    def call(self, case: Case) -> Callable[[], Block]:
        """The call that is timed."""
        rule = rule_of(case.input, case.variant.startswith("fused"))
        if case.variant == "compiled":
            torch.compiler.reset()
            rule = torch.compile(rule, dynamic=False)
        given = [self.target, self.drafter]
        if case.input == "probabilities":
            given = [logits.softmax(-1) for logits in given]
        p, q = (rows.to(getattr(torch, case.dtype)) for rows in given)
        run = partial(rule, p, q, self.tokens, self.coins)
        return captured(run) if case.variant == "fused graph" else run


def captured(run: Callable[[], Block]) -> Callable[[], Block]:
    """The same work as one CUDA graph, which the host submits at once."""
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        block = run()

    def replay() -> Block:
        graph.replay()
        return block

    return replay


def from_probabilities(p: Tensor, q: Tensor, tokens: Tensor, coins: Coins) -> Block:
    return verify(p, q, tokens, coins=coins)


def from_logits(target: Tensor, drafter: Tensor, tokens: Tensor, coins: Coins) -> Block:
    return verify(shape_logits(target), shape_logits(drafter), tokens, coins=coins)


def rule_of(given: Input, fused: bool) -> Rule:
    """What verifies probabilities or logits, by Triton's kernels or by torch's."""
    if not fused:
        return from_logits if given == "logits" else from_probabilities
    from specref.torch_backend.fused import verify, verify_logits

    rule = verify_logits if given == "logits" else verify
    return lambda p, q, tokens, coins: rule(p, q, tokens, coins=coins)


FLOOR: Mapping[Input, str] = MappingProxyType(
    {"probabilities": "needed rows", "logits": "all rows"}
)
"""What times are held against. For logits: what a rule reads that does not stop early."""


def floors(case: Case, counts: list[int]) -> dict[str, int]:
    """Bytes that are read and written for blocks of these lengths, each once, by two measures.

    *All rows* has every row of both models. *Needed rows* has of logits the rows up to where
    verification stopped; of probabilities the row of p there, that of q after a rejection, and p
    and q of each accepted draft. Both have the ids and coins of the drafts that were judged, the
    coin of the last token, and the output.

    Examples
    --------
    >>> case = Case(2, 4, 1000, "bfloat16", "probabilities", "eager")
    >>> floors(case, [5, 2])["needed rows"] - (1000 * 2 + 4 * 4) - (2 * 1000 * 2 + 1 * 4)
    208
    >>> floors(case, [5, 2])["all rows"] - 2 * 9 * 1000 * 2
    208
    """
    itemsize: int = getattr(torch, case.dtype).itemsize
    needed = others = 0
    for count in counts:
        kept, rejected = count - 1, count <= case.lookahead
        if case.input == "logits":
            needed += (2 * kept + 1 + rejected) * case.vocabulary
        else:
            needed += (1 + rejected) * case.vocabulary + 2 * kept
        judged = (kept + rejected) * (INT64 + FLOAT64) + FLOAT64
        others += judged + (case.lookahead + 2) * INT64
    rows = len(counts) * (2 * case.lookahead + 1) * case.vocabulary
    return {
        "all rows": rows * itemsize + others,
        "needed rows": needed * itemsize + others,
    }
