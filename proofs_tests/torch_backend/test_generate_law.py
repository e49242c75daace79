"""The joint law of generated texts is the target's: coin by coin, and sampled.

Sampled laws: alpha 1e-9 for each campaign of 16,384 texts of up to four tokens of five. Power:
any total variation of 0.08 is found 999 times in 1,000, and 0.027 (the root of 12 / n) typically.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor
from transformers import PreTrainedModel

from proofs_tests.helpers.torch.models import as_model, laws, shaped, small
from proofs_tests.helpers.torch.paths import (
    ChosenCoins,
    Generator,
    JointGenerator,
    Path,
    check_taken,
    off,
    texts,
)
from specref.statistics import Campaign, Verdict
from specref.torch_backend import (
    NO_DRAFT,
    CachedModel,
    Coins,
    Drafts,
    Generation,
    StandardDrafter,
    generate,
    uniforms,
)
from specref.torch_backend import loop as loop_module
from specref.torch_backend.drafters import drafts as drafts_module
from specref.torch_backend.loop import Loop, Rules
from specref.torch_backend.models.slotted import Slots
from specref.torch_backend.randomness import ACCEPT, DRAFT
from specref.vocabulary import Tokens, Vocabulary

PROMPT, EOS = (0, 1), 4
SIZE, LENGTH, LOOKAHEAD = 5, 4, 2
TEXTS, BATCH = 16_384, 4096
SHAPES: Mapping[str, dict[str, Any]] = {
    "T 1": {},
    "T 0.7, top-k 3": {"temperature": 0.7, "k": 3},
    "T 0.7, top-p 0.9": {"temperature": 0.7, "mass": 0.9},
    "T 1.5, top-k 4, top-p 0.95": {"temperature": 1.5, "k": 4, "mass": 0.95},
}
GENERATORS = {"token": Generator, "block": JointGenerator}
PAIRS = [("llama", "llama"), ("gpt2", "gpt2"), ("gpt2", "llama")]


def options(shape: Mapping[str, Any]) -> dict[str, Any]:
    names = {"temperature": "temperature", "k": "top_k", "mass": "top_p"}
    return {names[name]: value for name, value in shape.items()}


def pair(names: tuple[str, str]) -> tuple[PreTrainedModel, PreTrainedModel]:
    return small(names[0], 4, SIZE), small(names[1], 3, SIZE)


def driven(
    monkeypatch: pytest.MonkeyPatch,
    names: tuple[str, str],
    shape: Mapping[str, Any],
    length: int = LENGTH,
    lookahead: int = LOOKAHEAD,
    verification: str = "token",
) -> tuple[list[Path], Generation]:
    target, drafter = pair(names)
    p, q = laws(target, PROMPT, length), laws(drafter, PROMPT, length)
    generator = GENERATORS[verification](
        lambda context: shaped(p[context], **shape),
        lambda context: shaped(q[context], **shape),
        lookahead,
        length,
        EOS,
    )
    paths = list(generator.paths())
    coins = ChosenCoins(paths, lookahead)
    monkeypatch.setattr(drafts_module, "uniforms", coins.uniforms)
    monkeypatch.setattr(loop_module, "row_coins", coins.row_coins)
    generation = generate(
        target,
        drafter,
        [PROMPT] * len(paths),
        seeds=range(len(paths)),
        verification=verification,
        lookahead=lookahead,
        max_new_tokens=length,
        eos=EOS,
        **options(shape),
    )
    return paths, generation


def expected(
    names: tuple[str, str], shape: Mapping[str, Any], length: int = LENGTH
) -> dict[Tokens, float]:
    rows = laws(pair(names)[0], PROMPT, length)
    return dict(texts(lambda context: shaped(rows[context], **shape), length, EOS))


@pytest.mark.deep(one_in=16)
@pytest.mark.parametrize("lookahead", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_law_of_texts_is_the_targets(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, str], shape: str, lookahead: int
) -> None:
    """Joint law of four tokens, EOS included, over all paths; and what is logged of each."""
    paths, generation = driven(monkeypatch, names, SHAPES[shape], lookahead=lookahead)
    check_paths(paths, generation, expected(names, SHAPES[shape]))


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("lookahead", [2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_law_of_texts_verified_by_block(
    monkeypatch: pytest.MonkeyPatch, shape: str, lookahead: int
) -> None:
    arguments = monkeypatch, PAIRS[1], SHAPES[shape], LENGTH, lookahead
    paths, generation = driven(*arguments, verification="block")
    check_paths(paths, generation, expected(PAIRS[1], SHAPES[shape]))


@pytest.mark.deep
def test_law_of_longer_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five tokens, at lookahead 3, in 19,523 rows of one batch."""
    paths, generation = driven(monkeypatch, PAIRS[1], {}, LENGTH + 1, 3)
    check_paths(paths, generation, expected(PAIRS[1], {}, LENGTH + 1))


def check_paths(paths: Sequence[Path], generation: Generation, law: dict[Tokens, float]) -> None:
    check_taken(paths, generation)
    assert sum(path.weight for path in paths) == pytest.approx(1, abs=1e-12)
    assert off(paths, generation.tokens, law) < 1e-12


def keep_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Slots, "crop", lambda self, lengths: None)


def bonus_from_the_row_before(monkeypatch: pytest.MonkeyPatch) -> None:
    verify = loop_module.verify

    def wrong(p: Tensor, *arguments: Tensor, **others: Any) -> tuple[Tensor, Tensor]:
        return verify(torch.cat([p[:, :-1], p[:, -2:-1]], 1), *arguments, **others)

    monkeypatch.setattr(loop_module, "verify", wrong)


def declares_other_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is declared is flatter than what is sampled, as if the temperature were forgotten."""
    draft = StandardDrafter.draft

    def wrong(self: StandardDrafter, *arguments: Any) -> Drafts:
        found = draft(self, *arguments)
        assert found.laws is not None
        laws = found.laws**0.7
        return Drafts(found.tokens, laws / laws.sum(-1, keepdim=True), found.forwards)

    monkeypatch.setattr(StandardDrafter, "draft", wrong)


def context_of_another_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laws are declared for the row that they were not computed for."""
    draft = StandardDrafter.draft

    def wrong(self: StandardDrafter, *arguments: Any) -> Drafts:
        found = draft(self, *arguments)
        assert found.laws is not None
        return Drafts(found.tokens, found.laws.roll(1, 0), found.forwards)

    monkeypatch.setattr(StandardDrafter, "draft", wrong)


BUGS = [keep_rejected, bonus_from_the_row_before, declares_other_laws, context_of_another_row]


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_paths_reject(
    monkeypatch: pytest.MonkeyPatch, bug: Callable[[pytest.MonkeyPatch], None]
) -> None:
    bug(monkeypatch)
    paths, generation = driven(monkeypatch, PAIRS[1], {})
    assert off(paths, generation.tokens, expected(PAIRS[1], {})) > 1e-6


Sampler: TypeAlias = Callable[[range], Generation]


def judged(names: tuple[str, str], shape: Mapping[str, Any], sampler: Sampler) -> Verdict:
    vocabulary = Vocabulary("abcde", eos="e")
    longest = LENGTH + LOOKAHEAD
    models = (as_model(model, vocabulary, PROMPT, longest, shape) for model in pair(names))
    campaign = Campaign(eps=None, view="stream", seed=1)
    case = campaign.case(*models, (), LOOKAHEAD, tokens=LENGTH, mutants={})
    for first in range(0, TEXTS, BATCH):
        campaign.add(case, sampler(range(first, first + BATCH)).tokens)
        if campaign.decided_lossy:
            break
    report = campaign.report()
    print(report)
    return report.verdict


def standard(names: tuple[str, str], shape: Mapping[str, Any]) -> Sampler:
    """Seeds in, texts out."""
    return lambda seeds: generate(
        *pair(names),
        [PROMPT] * len(seeds),
        seeds=seeds,
        lookahead=LOOKAHEAD,
        max_new_tokens=LENGTH,
        eos=EOS,
        **options(shape),
    )


@pytest.mark.deep
def test_sampled_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is found; but if drafts are judged by the random numbers that they were drawn by."""
    sampler = standard(PAIRS[2], SHAPES["T 0.7, top-p 0.9"])
    assert judged(PAIRS[2], SHAPES["T 0.7, top-p 0.9"], sampler) == Verdict.INCONCLUSIVE
    monkeypatch.setattr(drafts_module, "DRAFT", ACCEPT)
    assert judged(PAIRS[1], {}, standard(PAIRS[1], {})) == Verdict.LOSSY


class Guesses:
    """Proposes 0 to `lookahead` tokens from a uniform law, declared or not."""

    def __init__(self, declared: bool) -> None:
        self.declared = declared

    def draft(
        self, contexts: Sequence[Sequence[int]], lookahead: int, seeds: Tensor, iteration: int
    ) -> Drafts:
        coins = uniforms(seeds, iteration, DRAFT, lookahead + 1)
        lengths = (coins[:, -1:] * (lookahead + 1)).long()
        tokens = (coins[:, :-1] * SIZE).long()
        tokens = tokens.masked_fill(torch.arange(lookahead) >= lengths, NO_DRAFT)
        laws = torch.full((*tokens.shape, SIZE), 1 / SIZE) if self.declared else None
        return Drafts(tokens, laws, 0)

    def select(self, rows: Sequence[int]) -> None:
        """There is nothing to drop."""


def guessed(declared: bool) -> Sampler:
    """At temperature 1, from the target of the second pair."""
    rules = Rules(lambda logits: logits.softmax(-1), LOOKAHEAD, LENGTH, frozenset([EOS]))

    def sample(seeds: range) -> Generation:
        target, prompts = CachedModel(pair(PAIRS[1])[0]), [PROMPT] * len(seeds)
        return Loop(target, Guesses(declared), prompts, torch.tensor(seeds), rules).run()

    return sample


@pytest.mark.deep
@pytest.mark.parametrize("declared", [True, False])
def test_guesses_of_any_length_have_no_finding(declared: bool) -> None:
    """Exact match, and the standard rule, in batches whose rows have 0 to 2 drafts."""
    assert judged(PAIRS[1], {}, guessed(declared)) == Verdict.INCONCLUSIVE


@pytest.mark.deep
def test_guesses_reject_one_coin_for_all_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    row_coins = loop_module.row_coins

    def wrong(seeds: Tensor, iteration: int, lookahead: int) -> Coins:
        coins = row_coins(seeds, iteration, lookahead)
        assert coins.final is not None
        return Coins(coins.final[:, None].expand(-1, lookahead), coins.final)

    monkeypatch.setattr(loop_module, "row_coins", wrong)
    assert judged(PAIRS[1], {}, guessed(False)) == Verdict.LOSSY
