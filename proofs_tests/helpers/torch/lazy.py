"""Full psi by enumeration, and every random path of lazy SLRS: what its verdicts are judged by.

Psi is summed over the drafter's token paths, with none of the code that is tested. Paths are found
by replay: the program runs with a plan for its first choices, what it draws from is written down,
and every later choice branches. Draws are chosen by a plan instead of a coin. Verdicts toss coins
at both ends of each side of the share that full psi gives, of which a path's weight is made; that
they come out as with full psi is asserted.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import pytest
import torch
from torch import Tensor

from proofs_tests.helpers.torch.drafting import softmax, table_law, tiny_llama, toy_vocabulary
from proofs_tests.helpers.torch.paths import FromUniforms
from specref.torch_backend import SlrsDrafter, TokenVocabulary, TreeModel, shape_logits
from specref.torch_backend import loop as loop_module
from specref.torch_backend.drafters import lazy_verification, slrs
from specref.torch_backend.drafters.drafts import Drafts
from specref.torch_backend.drafters.mapped import inverse
from specref.torch_backend.randomness import ACCEPT, DRAFT, FINAL, KEEP, RESIDUAL
from specref.torch_backend.validation import OUTSIDE
from specref.torch_backend.verification import chains
from specref.torch_backend.vocabularies.contexts import Reader
from specref.torch_backend.vocabularies.token_vocabulary import id_map

Pair = tuple[TokenVocabulary, TokenVocabulary]

LETTERS = toy_vocabulary(b"b", b"a")
OVERLAPPING = toy_vocabulary(b"ab", b"a", b"b", b"ba")
TARGET = toy_vocabulary(b"b", b"ab", b"a", b"abb")
WAITING = (
    toy_vocabulary(b"\xc3", b"a", b"\xa9"),
    toy_vocabulary("é".encode(), b"a", b"\xa9"),
)
PADDED = (
    TARGET,
    replace(LETTERS, strings=(*LETTERS.strings, "<pad>"), spelled=(*LETTERS.spelled, None)),
)
DRAFTERS = MappingProxyType({"bytes": LETTERS, "overlapping tokens": OVERLAPPING})
PROMPT = (1, 0)


def few(logits: Tensor) -> Tensor:
    """Laws with zeros."""
    return shape_logits(logits, temperature=0.8, top_p=0.8)


def words(rng: random.Random, count: int, longest: int) -> list[bytes]:
    return ["".join(rng.choices("ab", k=rng.randint(1, longest))).encode() for _ in range(count)]


def random_pair(seed: int) -> Pair:
    """Target tokens of one to four letters, drafter tokens of one to three, with twins."""
    rng = random.Random(seed)
    target = dict.fromkeys([*words(rng, rng.randint(2, 6), 4), b"b"])
    drafter = dict.fromkeys([*words(rng, rng.randint(1, 4), 3), b"a", b"b"])
    pieces = [*target, b"b"] if seed % 3 == 0 else target
    return toy_vocabulary(*pieces, eos=seed % 2 == 0), toy_vocabulary(*drafter)


def model_of(vocabulary: TokenVocabulary, seed: int = 0, positions: int = 256) -> Any:
    return tiny_llama(len(vocabulary), seed, positions)


def lazy(drafter: TokenVocabulary, width: int = 1, shape: Any = softmax) -> SlrsDrafter:
    return SlrsDrafter(TreeModel(model_of(drafter, 4)), TARGET, drafter, shape, width)


def table(tokens: Sequence[int]) -> Tensor:
    return table_law((*PROMPT, *tokens), len(TARGET), seed=1)


def verified(drafter: SlrsDrafter, lookahead: int, seeds: Tensor) -> tuple[Drafts, Tensor, Tensor]:
    """One iteration after the prompt: drafts, tokens and counts."""
    drafts = drafter.draft([PROMPT] * len(seeds), lookahead, seeds, 0)
    known = drafts.tokens.clamp(min=0).tolist()
    p = torch.stack([torch.stack([table(row[:k]) for k in range(lookahead + 1)]) for row in known])
    coins = loop_module.row_coins(seeds, 0, lookahead)
    assert drafts.verifier is not None
    tokens, counts, _ = drafts.verifier.verify(p, drafts.tokens, coins)
    return drafts, tokens, counts


Tokens: TypeAlias = tuple[int, ...]
Law: TypeAlias = dict[Tokens, float]
SPAN, SITES, ITERATIONS = 64, 8, 8
EDGE, NEGLIGIBLE = 1e-7, 1e-13


class FullPsi:
    """Psi after contexts of a target, from a drafter's plain forwards, each context once.

    Attributes
    ----------
    asked : set of tuple of int
        The contexts, in the drafter's tokens, that its law was asked for.
    """

    def __init__(
        self, model: Any, target: TokenVocabulary, drafter: TokenVocabulary, shape: Any
    ) -> None:
        self.model, self.target, self.drafter, self.shape = model, target, drafter, shape
        self.pieces = [piece for piece in target.spelled if piece]
        self.asked: set[Tokens] = set()
        self.law, self.after = cache(self._law), cache(self._after)

    def _law(self, ids: Tokens) -> list[float]:
        self.asked.add(ids)
        with torch.no_grad():
            law: list[float] = self.shape(self.model(torch.tensor([ids])).logits[0, -1]).tolist()
        return law

    def _after(self, ids: Tokens, text: bytes = b"") -> Mapping[int, float]:
        """{target token or OUTSIDE: the probability that the text starts with it}."""
        law: Counter[int] = Counter()
        for token, mass in enumerate(self.law(ids)):
            piece = self.drafter.spelled[token]
            longer = text + (piece or b"")
            if piece and any(one.startswith(longer) and one != longer for one in self.pieces):
                rest = self.after((*ids, token), longer) if mass else {}
                law.update({first: mass * share for first, share in rest.items()})
            else:
                law[self.first(longer, token == self.drafter.eos)] += mass
        return law

    def first(self, text: bytes, ended: bool) -> int:
        """The longest target token that starts a text."""
        if ended and not text:
            return OUTSIDE if self.target.eos is None else self.target.eos
        found = max((one for one in self.pieces if text.startswith(one)), key=len, default=b"")
        return self.target.by_bytes[found] if found else OUTSIDE

    def view(self, prompt: Sequence[int], tokens: Sequence[int]) -> Tokens:
        """What the drafter reads of a prompt and the tokens that follow it."""
        ids = id_map(self.target, self.drafter)
        read = Reader(self.target, self.drafter, inverse(ids, self.drafter))
        read([prompt])
        return tuple(read([[*prompt, *tokens]])[0])


class Choice(NamedTuple):
    """A random choice that was made: where, what of, and with what probability."""

    key: tuple[int, int, int]
    chosen: Any
    weight: float
    others: tuple[Any, ...]


@dataclass
class Plans(FromUniforms):
    """Stands in for coins and draws; the seed of a row is the number of its plan."""

    plans: Sequence[Mapping[tuple[int, int, int], Any]]
    drawn: list[dict[tuple[int, int, int], tuple[list[float], int]]] = field(init=False)

    def __post_init__(self) -> None:
        self.drawn = [{} for _ in self.plans]

    def uniforms(self, seeds: Tensor, iteration: int, site: int, count: int) -> Tensor:
        if site in (DRAFT, RESIDUAL, FINAL):
            start = ((seeds * ITERATIONS + iteration) * SITES + site) * SPAN
            return (start[:, None] + torch.arange(count)).double()
        rows = [
            [self.plans[seed].get((iteration, site, index), EDGE) for index in range(count)]
            for seed in seeds.tolist()
        ]
        return torch.tensor(rows, dtype=torch.float64).view(len(rows), count)

    def draw(self, weights: Tensor, names: Tensor) -> Tensor:
        rows = zip(weights.tolist(), names.long().tolist(), strict=True)
        return torch.tensor([self._drawn(law, name) for law, name in rows])

    def _drawn(self, law: list[float], name: int) -> int:
        name, index = divmod(name, SPAN)
        name, site = divmod(name, SITES)
        seed, iteration = divmod(name, ITERATIONS)
        key = iteration, site, index
        likely = [token for token, mass in enumerate(law) if mass > NEGLIGIBLE]
        chosen = self.plans[seed].get(key)
        if chosen is None:
            chosen = random.Random(f"{key} {len(self.plans)} {seed}").choice(likely)
        self.drawn[seed][key] = law, chosen
        return int(chosen)

    @contextmanager
    def used(self) -> Iterator[None]:
        """The modules that are tested take their choices from here."""
        with pytest.MonkeyPatch.context() as patch:
            for module in (slrs, lazy_verification):
                patch.setattr(module, "uniforms", self.uniforms)
            for module in (slrs, lazy_verification, chains):
                patch.setattr(module, "draw", self.draw)
            patch.setattr(loop_module, "row_coins", self.row_coins)
            yield


class Run(NamedTuple):
    """What one plan came to: of each iteration, its drafts and its block."""

    iterations: list[tuple[Tokens, Tokens]]

    @property
    def tokens(self) -> Tokens:
        """All that was emitted."""
        return tuple(token for _, block in self.iterations for token in block)


@dataclass(frozen=True)
class Choices:
    """The random choices of runs after a prompt, with their probabilities by full psi.

    Attributes
    ----------
    full : FullPsi
    target : callable
        The target's law after a prompt and tokens.
    prompt : tuple of int
    depth : int
        The length of the longest target token.
    coins : int
        How many coins are tossed on each side of a share, 1 or 2.
    """

    full: FullPsi
    target: Callable[[Tokens], Sequence[float]]
    prompt: Tokens
    depth: int
    coins: int = 2

    def of(self, run: Run, plans: Plans, number: int) -> list[Choice]:
        """In an order in which none depends on a later one."""
        found, before = list[Choice](), Tokens()
        for iteration, (drafts, block) in enumerate(run.iterations):
            found += self._iteration(iteration, before, drafts, block, plans, number)
            before += block
        return found

    def _iteration(
        self,
        iteration: int,
        before: Tokens,
        drafts: Tokens,
        block: Tokens,
        plans: Plans,
        number: int,
    ) -> Iterator[Choice]:
        plan, drawn = plans.plans[number], plans.drawn[number]
        for k, draft in enumerate(drafts):
            for step in range(self.depth):
                if (key := (iteration, DRAFT, k * self.depth + step)) in drawn:
                    yield _draw(key, *drawn[key])
            p, psi = self._laws(before + block[:k])
            share = 0.0 if draft < 0 else min(1.0, p[draft] / psi[draft])
            yield (verdict := self._verdict((iteration, ACCEPT, k), share, plan))
            if verdict.chosen >= share:
                assert (iteration, RESIDUAL, 0) in drawn, "accepted against full psi"
                yield from self._proposals(iteration, p, psi, plan, drawn)
                return
        assert (iteration, RESIDUAL, 0) not in drawn, "rejected against full psi"
        if (key := (iteration, FINAL, 0)) in drawn:
            yield _draw(key, *drawn[key])

    def _proposals(
        self, iteration: int, p: Any, psi: Any, plan: Any, drawn: Any
    ) -> Iterator[Choice]:
        index = 0
        while (key := (iteration, RESIDUAL, index)) in drawn:
            weights, token = drawn[key]
            yield _draw(key, weights, token)
            share = max(0.0, p[token] - psi.get(token, 0.0)) / weights[token]
            yield (verdict := self._verdict((iteration, KEEP, index), share, plan))
            index += 1
            refused = (iteration, RESIDUAL, index) in drawn
            assert refused == (verdict.chosen >= share), "kept or refused against full psi"

    def _laws(self, tokens: Tokens) -> tuple[Sequence[float], Mapping[int, float]]:
        return self.target(tokens), self.full.after(self.full.view(self.prompt, tokens))

    def _verdict(self, key: tuple[int, int, int], share: float, plan: Mapping[Any, Any]) -> Choice:
        """Coins at the lower end of each side, or further up; they have equal parts of it."""
        sides, share = {}, min(share, 1.0)
        if share > NEGLIGIBLE:
            assert share > 2 * EDGE
            coins = (EDGE, share * (1 - EDGE))[: self.coins]
            sides |= dict.fromkeys(coins, share / self.coins)
        if 1 - share > EDGE:
            share = share if share > NEGLIGIBLE else 0.0
            coins = (share + (1 - share) * EDGE, (1 + share) / 2)[: self.coins]
            sides |= dict.fromkeys(coins, (1 - share) / self.coins)
        coin = plan.get(key, EDGE)
        return Choice(key, coin, sides[coin], tuple(c for c in sides if c != coin))


def _draw(key: tuple[int, int, int], law: Sequence[float], chosen: int) -> Choice:
    others = [t for t, mass in enumerate(law) if mass > NEGLIGIBLE and t != chosen]
    return Choice(key, chosen, law[chosen] / sum(law), tuple(others))


def runs(
    choices: Choices, run: Callable[[int], Sequence[Run]], batch: int = 4096
) -> Iterator[tuple[Run, float]]:
    """Every path and its weight; `run` takes so many seeds from 0 on."""
    pending: list[dict[tuple[int, int, int], Any]] = [{}]
    while pending:
        plans = Plans(pending[:batch])
        del pending[:batch]
        with plans.used():
            results = run(len(plans.plans))
        for number, result in enumerate(results):
            found, weight = choices.of(result, plans, number), 1.0
            plan = plans.plans[number]
            for place, choice in enumerate(found):
                weight *= choice.weight
                if choice.key not in plan:
                    before = {one.key: one.chosen for one in found[:place]}
                    pending += [before | {choice.key: other} for other in choice.others]
            yield result, weight


def law_of(paths: Iterator[tuple[Run, float]]) -> tuple[Law, int]:
    """The law of what is emitted, and how many paths there were."""
    law: Counter[Tokens] = Counter()
    number = 0
    for run, weight in paths:
        law[run.tokens] += weight
        number += 1
    return dict(law), number
