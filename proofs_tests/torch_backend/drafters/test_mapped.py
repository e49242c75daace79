"""TLI and union over two vocabularies: the declared law is the sampled law, and blocks are p's."""

from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor

from proofs_tests.helpers.torch.drafting import (
    Path,
    TableModel,
    draft_paths,
    drafted,
    joint_error,
    laws_of,
    softmax,
    table_law,
    tiny_llama,
    toy_vocabulary,
)
from specref.torch_backend.drafters import mapped
from specref.torch_backend.drafters.mapped import MappedDrafter, TliDrafter, UnionDrafter
from specref.torch_backend.models.cached import CachedModel
from specref.torch_backend.shaping import draw, shape_logits
from specref.torch_backend.validation import NO_DRAFT, OUTSIDE, validate
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary

TARGET = toy_vocabulary(b"a", b"b", b"ab", "é".encode())
DRAFTER = toy_vocabulary(b"b", b"x", b"a", b"a", b"\xc3")
EOS, DRAFTER_EOS = 4, 5
CONTEXT = (0, 1, 2)
DRAFTERS = [TliDrafter, UnionDrafter]


def sharp(logits: Tensor) -> Tensor:
    return shape_logits(logits, temperature=0.7, top_k=3, top_p=0.95)


def build(kind: type[MappedDrafter], shape: Any = softmax, **options: Any) -> MappedDrafter:
    model: Any = TableModel(len(DRAFTER), **options)
    return kind(model, TARGET, DRAFTER, shape)


def target(context: Sequence[int]) -> Tensor:
    return table_law(context, len(TARGET), seed=1)


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("shape", [softmax, sharp], ids=["softmax", "shaped"])
@pytest.mark.parametrize("kind", DRAFTERS)
def test_declared_laws_are_sampled_and_blocks_are_the_targets(
    kind: type[MappedDrafter], shape: Any
) -> None:
    paths = draft_paths(build(kind, shape), mapped, CONTEXT, 2)
    assert abs(sum(path.weight for path in paths) - 1) < 1e-12
    assert joint_error(paths, target, CONTEXT, EOS) < 1e-9


@pytest.mark.parametrize("kind", DRAFTERS)
def test_what_is_drafted_is_valid_for_verification(kind: type[MappedDrafter]) -> None:
    coins = torch.rand(64, 3, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    drafts = drafted(build(kind), mapped, CONTEXT, coins, 3)
    laws = laws_of(drafts)
    p = torch.full((64, 4, len(TARGET)), 1 / len(TARGET), dtype=torch.float64)
    validate(p, laws, drafts.tokens)
    assert (drafts.tokens == EOS).any()
    assert drafts.forwards == 3
    ended = (drafts.tokens[:, :-1] == EOS) | (drafts.tokens[:, :-1] < 0)
    assert (drafts.tokens[:, 1:][ended] == NO_DRAFT).all()
    assert (laws[:, 1:][ended] == 0).all()


def test_tli_projects_then_shapes() -> None:
    q = table_law((2, 0, 2, 0), len(DRAFTER))  # "ab" is spelled: the drafter has no such token
    mass = torch.stack([q[2] + q[3], q[0], q[1] * 0, q[1] * 0, q[DRAFTER_EOS]])
    for shape in (softmax, sharp):
        drafts = drafted(build(TliDrafter, shape), mapped, CONTEXT, torch.zeros(1, 1).double(), 1)
        torch.testing.assert_close(laws_of(drafts)[0, 0], shape(mass.log()), atol=1e-12, rtol=0)


def test_union_shapes_then_projects() -> None:
    q = sharp(table_law((2, 0, 2, 0), len(DRAFTER)).log())
    mass = torch.stack([q[2] + q[3], q[0], q[1] * 0, q[1] * 0, q[DRAFTER_EOS]])
    drafts = drafted(build(UnionDrafter, sharp), mapped, CONTEXT, torch.zeros(1, 1).double(), 1)
    torch.testing.assert_close(laws_of(drafts)[0, 0], mass, atol=1e-12, rtol=0)


def test_a_draft_outside_the_target_ends_the_row() -> None:
    coins = torch.full((1, 3), 0.3, dtype=torch.float64)
    drafts = drafted(build(UnionDrafter, allowed=[1, 4]), mapped, CONTEXT, coins, 3)
    assert drafts.tokens.tolist() == [[OUTSIDE, NO_DRAFT, NO_DRAFT]]


def test_tli_drafts_nothing_where_no_shared_token_has_mass() -> None:
    coins = torch.full((2, 3), 0.3, dtype=torch.float64)
    drafts = drafted(build(TliDrafter, allowed=[1, 4]), mapped, CONTEXT, coins, 3)
    assert (drafts.tokens == NO_DRAFT).all()
    assert (laws_of(drafts) == 0).all()


@pytest.mark.parametrize("kind", DRAFTERS)
def test_an_empty_intersection_drafts_nothing(kind: type[MappedDrafter]) -> None:
    other = toy_vocabulary(b"x", b"y", eos=False)
    model: Any = TableModel(len(other))
    drafter = kind(model, TARGET, other, softmax)
    drafts = drafter.draft([[0], [1]], 2, torch.tensor([0, 1]), 0)
    assert drafts.tokens.tolist() == [[NO_DRAFT] * 2] * 2
    assert laws_of(drafts).shape == (2, 2, len(TARGET))
    assert drafts.forwards == 0


class Unnormalised(TliDrafter):
    """Declares q' before it is renormalised."""

    def pick(self, logits: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        tokens, drafted, law = super().pick(logits, uniforms)
        return tokens, drafted, law * logits.softmax(-1)[:, self.shared].sum(-1, keepdim=True)


class OneOfTwins(TliDrafter):
    """Declares the mass of one of the drafter's tokens that are one target token."""

    def pick(self, logits: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        tokens, drafted, law = super().pick(logits, uniforms)
        single = torch.zeros_like(law)
        single[:, self.images] = logits.softmax(-1)[:, self.shared]
        return tokens, drafted, single / single.sum(-1, keepdim=True)


class Permuted(TliDrafter):
    """Maps ids right and laws in another order: Transformers' `get_vocab()` defect."""

    def pick(self, logits: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        tokens, drafted, law = super().pick(logits, uniforms)
        shared = sorted(set(self.images.tolist()))
        law[:, shared] = law[:, shared[1:] + shared[:1]]
        return tokens, drafted, law


class Forgetful(UnionDrafter):
    """Draws again when a draft is outside, but declares the law of the first draw."""

    def pick(self, logits: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        _, _, law = super().pick(logits, uniforms)
        tokens = draw(law, uniforms)
        return tokens, self.back[tokens], law


@pytest.mark.parametrize("mutant", [Unnormalised, OneOfTwins, Permuted, Forgetful])
def test_a_law_that_is_not_sampled_from_is_rejected(mutant: type[MappedDrafter]) -> None:
    with pytest.raises(AssertionError, match="not the sampled law"):
        draft_paths(build(mutant), mapped, CONTEXT, 1)


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("mutant", [Unnormalised, Permuted])
def test_such_a_law_is_lossy(mutant: type[MappedDrafter]) -> None:
    right = draft_paths(build(TliDrafter), mapped, CONTEXT, 1)
    coins = torch.tensor([[0.5]], dtype=torch.float64)
    laws = laws_of(drafted(build(mutant), mapped, CONTEXT, coins, 1))
    wrong = [Path(path.tokens, laws[0], path.weight) for path in right]
    assert joint_error(right, target, CONTEXT, EOS) < 1e-9
    assert joint_error(wrong, target, CONTEXT, EOS) > 1e-3


def relabelled(size: int, extra: int) -> tuple[Any, Any, TokenVocabulary, TokenVocabulary]:
    """A model, and itself under permuted ids beside `extra` ids that are almost never said."""
    own = tiny_llama(size)
    other = tiny_llama(size + extra)
    order = torch.randperm(size + extra, generator=torch.Generator().manual_seed(3))[:size]
    other.load_state_dict(own.state_dict() | dict(other_embeddings(own, other, order)))
    pieces = [bytes([97 + i]) for i in range(size)]
    names = [bytes([48 + i]) for i in range(size + extra)]
    for piece, index in zip(pieces, order.tolist(), strict=True):
        names[index] = piece
    return own, other, toy_vocabulary(*pieces, eos=False), toy_vocabulary(*names, eos=False)


def other_embeddings(own: Any, other: Any, order: Tensor) -> Any:
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        weight = torch.zeros_like(other.state_dict()[name])
        weight[order] = own.state_dict()[name]
        yield name, weight


def relabelled_gap(kind: type[MappedDrafter], use_cache: bool) -> float:
    """How far q' is from p, over several iterations with rejections between them."""
    own, other, vocabulary, names = relabelled(7, 4)
    drafter = kind(CachedModel(other, use_cache), vocabulary, names, softmax)
    reference, contexts, gap = CachedModel(own, use_cache=False), [[0, 3], [1, 2, 5]], 0.0
    for iteration in range(4):
        drafts = drafter.draft(contexts, 3, torch.tensor([5, 6]), iteration)
        assert (drafts.tokens >= 0).all()
        texts = [row + more for row, more in zip(contexts, drafts.tokens.tolist(), strict=True)]
        p = softmax(reference.logits([text[:-1] for text in texts], last=3))
        gap = max(gap, float((laws_of(drafts) - p).abs().max()))
        contexts = [text[: len(text) - iteration % 3] for text in texts]
    return gap


class ReadsTargetIds(TliDrafter):
    """Goes on from the target's id where the drafter has another."""

    def pick(self, logits: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        tokens, _, law = super().pick(logits, uniforms)
        return tokens, tokens, law


@pytest.mark.parametrize("use_cache", [True, False])
def test_a_relabelled_target_is_accepted_everywhere(use_cache: bool) -> None:
    assert relabelled_gap(TliDrafter, use_cache) < 1e-6


@pytest.mark.parametrize("mutant", [ReadsTargetIds, Permuted])
def test_a_relabelled_target_shows_wrong_ids(mutant: type[MappedDrafter]) -> None:
    assert relabelled_gap(mutant, True) > 0.01


def test_a_drafter_with_few_positions_reads_the_end_of_the_text() -> None:
    model = CachedModel(tiny_llama(len(DRAFTER), positions=12))
    drafter = TliDrafter(model, TARGET, DRAFTER, softmax)
    for length in range(8, 30):
        drafts = drafter.draft([[0] * length], 4, torch.tensor([length]), 0)
        assert abs(float(laws_of(drafts)[0, 0].sum()) - 1) < 1e-12


def test_logits_of_another_size_are_named() -> None:
    model: Any = TableModel(len(DRAFTER) + 2)
    with pytest.raises(ValueError, match="logits for 8 ids, the vocabulary 6: correct"):
        TliDrafter(model, TARGET, DRAFTER, softmax).draft([[0]], 1, torch.tensor([0]), 0)
