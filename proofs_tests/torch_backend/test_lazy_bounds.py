"""Lazy SLRS: bounds hold psi, all kinds of drafters, little is read, and bad input is named."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor

from proofs_tests.helpers.bugs.torch_lazy import forget_ancestors, forget_shorter_tokens
from proofs_tests.helpers.torch.drafting import (
    softmax,
    toy_vocabulary,
)
from proofs_tests.helpers.torch.generations import prompts
from proofs_tests.helpers.torch.lazy import (
    LETTERS,
    OVERLAPPING,
    PROMPT,
    TARGET,
    FullPsi,
    Pair,
    few,
    lazy,
    model_of,
    random_pair,
    table,
    verified,
    words,
)
from proofs_tests.helpers.torch.models import gpt2, llama
from proofs_tests.helpers.torch.tokenizers import byte_level, unigram, word_piece
from specref.algorithms.lookahead import until_determined
from specref.algorithms.text.push_forward import psi as psi_of_the_theory
from specref.models import Model
from specref.torch_backend import generate, generation, methods, row_coins
from specref.torch_backend.drafters.psi_bounds import LawTrees, PsiBounds
from specref.torch_backend.drafters.settling import Settling
from specref.torch_backend.drafters.slrs import SlrsDrafter
from specref.torch_backend.models.trees import TreeModel
from specref.torch_backend.validation import NO_DRAFT, OUTSIDE
from specref.vocabulary import Vocabulary

SEEDS = range(12)


def stages(pair: Pair, seed: int, shape: Any) -> Sequence[tuple[Tensor, Tensor, Tensor]]:
    """Lower and upper bounds of one psi, from its root until all is read; and psi itself."""
    target, drafter = pair
    model, rng = model_of(drafter, seed), random.Random(seed)
    trees = LawTrees(TreeModel(model), drafter, shape, [[0, 1]])
    bounds = PsiBounds(Settling(target, drafter), 1, len(target))
    full = FullPsi(model, target, drafter, shape).after((0, 1))
    psi = torch.tensor([full.get(t, 0.0) for t in range(len(target))], dtype=torch.float64)
    zero, found = torch.zeros(1, dtype=torch.int64), []
    bounds.absorb(zero, zero, zero, zero + 1.0, trees.roots)
    while True:
        pairs = [bounds.of(zero, zero + token) for token in range(len(target))]
        lower, upper = (torch.cat(list(side)) for side in zip(*pairs, strict=True))
        found.append((lower, upper, psi))
        wide = (lower < upper).nonzero()[:, 0].tolist()
        if not wide:
            assert not len(bounds.frontier.mass)
            return found
        taken = bounds.take(zero, zero + rng.choice(wide), rng.randint(1, 3))
        nodes, laws = trees.grow(
            [0] * len(taken.mass), taken.parent.tolist(), taken.token.tolist()
        )
        bounds.absorb(taken.search, torch.tensor(nodes), taken.place, taken.mass, laws)


def hold(pair: Pair, seed: int, shape: Any) -> bool:
    """At every stage lower <= psi <= upper, and psi in the end."""
    found = stages(pair, seed, shape)
    lower, upper, psi = found[-1]
    return (
        all(bool(((low - psi < 1e-12) & (psi - up < 1e-12)).all()) for low, up, psi in found)
        and torch.equal(lower, upper)
        and float((lower - psi).abs().max()) < 1e-12
    )


@pytest.mark.parametrize("shape", [softmax, few], ids=["softmax", "top-p"])
@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_hold_psi(seed: int, shape: Any) -> None:
    assert hold(random_pair(seed), seed, shape)


def test_bounds_tighten() -> None:
    for seed in SEEDS:
        for before, after in pairwise(stages(random_pair(seed), seed, softmax)):
            assert (after[0] >= before[0]).all()
            assert (after[1] <= before[1] + 1e-12).all()


def test_the_likeliest_continuations_are_taken_first() -> None:
    settling = Settling(TARGET, OVERLAPPING)
    bounds, zero = PsiBounds(settling, 1, len(TARGET)), torch.zeros(1, dtype=torch.int64)
    law = torch.tensor([[0.2, 0.5, 0.1, 0.1, 0.1]], dtype=torch.float64)  # ab, a, b, ba, EOS
    bounds.absorb(zero, zero, zero, zero + 1.0, law)
    taken = [bounds.take(zero, zero + TARGET.by_bytes[b"abb"], 1).mass.item() for _ in range(2)]
    assert taken == [0.5, 0.2]
    assert not len(bounds.frontier.mass)


@pytest.mark.parametrize("bug", [forget_ancestors, forget_shorter_tokens])
def test_bounds_reject(bug: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError):
        assert all(hold(random_pair(seed), seed, softmax) for seed in SEEDS)


@pytest.mark.parametrize("seed", range(4))
def test_psi_of_bytes_is_that_of_the_theory(seed: int) -> None:
    """Timor et al. 2025, Theorem 3.2, as the specification has it, over texts of five bytes."""
    pieces = [*dict.fromkeys([*words(random.Random(seed), 5, 4), b"a", b"b"])]
    target = toy_vocabulary(*pieces)
    *_, (lower, _, _) = stages((target, LETTERS), seed, softmax)
    law = FullPsi(model_of(LETTERS, seed), target, LETTERS, softmax).law
    letters = Vocabulary([b"b", b"a", b"$"], eos=b"$")
    drafter = Model(letters, lambda context: np.array(law((0, 1, *context))))
    texts = Vocabulary([*pieces, b"$"], eos=b"$")
    psi = psi_of_the_theory(texts, drafter, (), 5, until_determined)
    np.testing.assert_allclose(lower.numpy(), psi.astype(float), atol=1e-12)


def given(drafter: Any, **others: Any) -> dict[str, Any]:
    tokenizer = byte_level()
    return {
        "target": gpt2(1, size=len(tokenizer)).double(),
        "drafter": llama(2, size=len(drafter)).double(),
        "tokenizer": tokenizer,
        "drafter_tokenizer": drafter,
        "method": "slrs",
        "prompts": prompts(3, 5),
        "seeds": [5, 6, 7],
        "max_new_tokens": 8,
        **others,
    }


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("drafter", [byte_level(False), unigram(fallback=True), word_piece()])
def test_every_kind_of_drafter(drafter: Any) -> None:
    """Normalising ones too; caches do not change what is generated."""
    found, plain = (generate(**given(drafter, use_cache=cached)) for cached in (True, False))
    assert found.tokens == plain.tokens
    assert found.drafter_forwards == plain.drafter_forwards


def test_fewer_contexts_are_read_than_psi_takes() -> None:
    """Psi takes the drafter's law at every inner node, for every draft that is verified."""
    drafter, built = byte_level(False), list[Any]()
    reads, begin, grow = list[int](), TreeModel.begin, TreeModel.grow

    def build(pair: Any) -> Any:
        built.append(methods.DRAFTERS["slrs"](pair))
        return built[-1]

    def begun(self: TreeModel, rows: Any) -> Tensor:
        reads.append(len(rows))
        return begin(self, rows)

    def grown(self: TreeModel, parents: Any, tokens: Any) -> list[Tensor]:
        reads.extend(map(len, tokens))
        return grow(self, parents, tokens)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generation, "DRAFTERS", {"slrs": build})
        patch.setattr(TreeModel, "begin", begun)
        patch.setattr(TreeModel, "grow", grown)
        found = generate(**given(drafter))
    (slrs,) = built
    assert slrs.reads == sum(reads)
    verified = sum(min(i.prefix + 1, i.drafted) for i in found.log)
    assert slrs.reads < verified * int(slrs.trie.inner.sum()) / 2


def test_more_is_read_in_a_forward_with_a_larger_width() -> None:
    forwards = []
    for width in (1, 64):
        slrs = lazy(OVERLAPPING, width)
        drafts, *_ = verified(slrs, 3, torch.arange(200))
        forwards.append(slrs.model.forwards - drafts.forwards)
    assert 0 < forwards[1] < forwards[0]


def test_a_token_outside_is_rejected() -> None:
    """A target without "a": its text is no token."""
    target, drafter = toy_vocabulary(b"b", b"bb"), LETTERS
    slrs = SlrsDrafter(TreeModel(model_of(drafter, 4)), target, drafter, softmax)
    drafts = slrs.draft([[0]] * 40, 2, torch.arange(40), 0)
    outside, p = drafts.tokens[:, 0] == OUTSIDE, torch.full((40, 3, 3), 1 / 3)
    assert outside.any()
    assert (drafts.tokens[outside, 1] == NO_DRAFT).all()
    coins = row_coins(torch.arange(40), 0, 2)
    assert drafts.verifier is not None
    tokens, counts, _ = drafts.verifier.verify(p, drafts.tokens, coins)
    assert (counts[outside] == 1).all()
    assert (tokens[outside, 0] >= 0).all()


def test_rows_without_room_have_fewer_drafts() -> None:
    model = TreeModel(model_of(LETTERS, positions=12))
    slrs = SlrsDrafter(model, TARGET, LETTERS, softmax)
    lengths = range(1, 30)
    drafts = slrs.draft([[0] * length for length in lengths], 4, torch.arange(29), 0)
    drafted = (drafts.tokens != NO_DRAFT).sum(1)
    assert drafted.min() >= 1
    assert drafted[8] < 4


def test_logits_that_are_no_numbers_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verification comes to an end, and the loop names the row."""
    options = given(byte_level(False))
    with torch.no_grad():
        options["target"].lm_head.weight[3] = torch.nan
    with pytest.raises(ValueError, match=r"target: its logits for prompts\[0\] have NaN"):
        generate(**options)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"width": 0}, "width = 0: expected at least 1"),
        ({"target": toy_vocabulary()}, "tokens: expected at least one"),
        ({"drafter": toy_vocabulary()}, "tokens: expected at least one"),
    ],
)
def test_bad_input_is_named(wrong: dict[str, Any], message: str) -> None:
    options = {"target": TARGET, "drafter": LETTERS, "shape": softmax, **wrong}
    with pytest.raises(ValueError, match=message):
        SlrsDrafter(TreeModel(model_of(LETTERS)), **options)


def test_a_missing_coin_is_named() -> None:
    slrs, seeds = lazy(LETTERS), torch.tensor([1])
    drafts, coins = slrs.draft([PROMPT], 1, seeds, 0), row_coins(seeds, 0, 1)
    assert drafts.verifier is not None
    with pytest.raises(ValueError, match=r"coins.final is None: expected a tensor"):
        drafts.verifier.verify(table(())[None, None], drafts.tokens, coins._replace(final=None))


def test_logits_of_another_size_are_named() -> None:
    slrs = SlrsDrafter(TreeModel(model_of(TARGET)), TARGET, LETTERS, softmax)
    with pytest.raises(ValueError, match="the model has logits for 5 ids, the vocabulary 3"):
        slrs.draft([[0]], 2, torch.tensor([1]), 0)


def test_positions_that_hold_no_token_are_named() -> None:
    slrs = SlrsDrafter(TreeModel(model_of(LETTERS, positions=2)), TARGET, LETTERS, softmax)
    with pytest.raises(ValueError, match="most = 0: expected at least one position"):
        slrs.draft([[0]], 2, torch.tensor([1]), 0)
