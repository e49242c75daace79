"""Whole generations: greedy text, rows and seeds, ends, models left alone, bad input."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor

from proofs_tests.helpers.torch.generations import arguments, greedy, prompts
from proofs_tests.helpers.torch.models import MODELS, POSITIONS, gpt2, llama
from specref.torch_backend import (
    METHODS,
    Coins,
    Drafter,
    Drafts,
    Generation,
    Iteration,
    generate,
    uniforms,
)
from specref.torch_backend import generation as generation_module
from specref.torch_backend import loop as loop_module
from specref.torch_backend.loop import Text
from specref.torch_backend.methods import DRAFTERS
from specref.torch_backend.models.slotted import Slots


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_greedy_text_is_the_targets(method: str, use_cache: bool) -> None:
    """Also where no row is beside another, or nothing may be drafted."""
    given = arguments(method) | {"temperature": 0, "max_new_tokens": 12, "use_cache": use_cache}
    for rows, lookahead in ((prompts(3, 5), 3), (prompts(1, 5), 3), (prompts(3, 5), 0)):
        found = generate(**given, prompts=rows, seeds=range(len(rows)), lookahead=lookahead)
        assert found.tokens == tuple(greedy(given["target"], row, 12) for row in rows)
        assert found.target_forwards <= 12


def test_greedy_notices_a_cache_that_is_not_cropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Slots, "crop", lambda self, lengths: None)
    target, drafter = gpt2(1).double(), gpt2(2).double()
    found = generate(target, drafter, [[1, 2]], temperature=0, max_new_tokens=10, seeds=[0])
    assert found.tokens[0] != greedy(target, [1, 2], 10)


def together_and_alone(method: str) -> list[Generation]:
    given, rows, seeds = arguments(method), prompts(5, 5), [11, 12, 13, 14, 15]
    given |= {"max_new_tokens": 12, "temperature": 0.8, "eos": [2], "lookahead": 3}
    alone = [
        generate(**given, prompts=[row], seeds=[seed])
        for row, seed in zip(rows, seeds, strict=True)
    ]
    return [generate(**given, prompts=rows, seeds=seeds), *alone]


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("method", METHODS)
def test_a_row_does_not_depend_on_those_beside_it(method: str) -> None:
    together, *alone = together_and_alone(method)
    assert together.tokens == tuple(one.tokens[0] for one in alone)
    assert together.iterations == tuple(one.iterations[0] for one in alone)


def test_coins_by_place_in_the_batch_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    row_coins = loop_module.row_coins

    def wrong(seeds: Tensor, iteration: int, lookahead: int) -> Coins:
        return row_coins(seeds + torch.arange(len(seeds)), iteration, lookahead)

    monkeypatch.setattr(loop_module, "row_coins", wrong)
    together, *alone = together_and_alone("standard")
    assert together.tokens != tuple(one.tokens[0] for one in alone)


def test_rows_with_one_seed_differ_by_their_seed_alone() -> None:
    given = arguments("standard")
    found = generate(**given, prompts=[[1, 2]] * 3, seeds=[7, 8, 7], max_new_tokens=20)
    assert found.tokens[0] == found.tokens[2] != found.tokens[1]


def test_lookahead_0_is_autoregressive() -> None:
    rows = {"prompts": prompts(4), "seeds": range(4), "max_new_tokens": 9}
    found = generate(**arguments("standard"), **rows, lookahead=0)
    assert found.tokens == generate(**arguments("autoregressive"), **rows).tokens
    assert found.drafter_forwards == 0
    assert found.target_forwards == 9
    assert all(i == Iteration(0, 0, 1) for i in found.log)


def ends_well(method: str, eos: Sequence[int], most: int) -> bool:
    """Never too long, and at most one EOS, at the end; shorter only because of it."""
    rows = {"prompts": prompts(40, 5), "seeds": range(40)}
    found = generate(**arguments(method), **rows, max_new_tokens=most, eos=eos)
    logged = [sum(i.emitted for i in log) for log in found.iterations]
    assert logged == [len(tokens) for tokens in found.tokens]
    return all(
        len(tokens) <= most
        and not set(eos) & set(tokens[:-1])
        and (len(tokens) == most or tokens[-1] in eos)
        for tokens in found.tokens
    )


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("method", ["standard", "slem", "autoregressive"])
@pytest.mark.parametrize("eos", [[], [3], [2, 3]])
@pytest.mark.parametrize("most", [1, 2, 7, 10])
def test_ends(method: str, eos: list[int], most: int) -> None:
    assert ends_well(method, eos, most)


def test_tokens_after_the_end_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    append = Text.append
    monkeypatch.setattr(Text, "append", lambda *arguments: append(*arguments[:3], frozenset()))
    assert not ends_well("standard", [2, 3], 10)


def test_an_end_of_sequence_in_the_prompt_ends_nothing() -> None:
    found = generate(**arguments("standard"), prompts=[[3, 3]], seeds=[1], eos=3, max_new_tokens=1)
    assert found.emitted == 1


def batches(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Which model was called with how many rows; filled by what is generated later."""
    found: list[tuple[str, int]] = []
    for name in ("target", "drafter"):

        def counted(*, name: str = name, forward: Any = given[name].forward, **others: Any) -> Any:
            found.append((name, len(others["input_ids"])))
            return forward(**others)

        monkeypatch.setattr(given[name], "forward", counted)
    return found


def live(found: Generation) -> list[int]:
    """How many rows take part in each iteration."""
    lengths = [len(log) for log in found.iterations]
    return [sum(length > i for length in lengths) for i in range(max(lengths))]


def ending(given: dict[str, Any]) -> Generation:
    """Eight texts, which one in eight tokens of the vocabulary ends."""
    ends = range(3, given["target"].config.vocab_size, 8)
    others = {"prompts": prompts(8, 5), "seeds": range(8), "max_new_tokens": 20, "lookahead": 2}
    return generate(**given, **others, eos=[*ends])


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("method", DRAFTERS)
def test_finished_rows_leave_both_batches(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """Also in the forwards that lazy verification takes, after those of the target."""
    given = arguments(method)
    called = batches(given, monkeypatch)
    found = ending(given)
    rows, iteration = live(found), 0
    for name, count in called:
        verifies = method == "slrs" and name == "drafter" and iteration > 0
        verifies = verifies and count == rows[iteration - 1]
        assert verifies or count == rows[iteration]
        iteration += name == "target"
    assert rows[-1] < rows[0] == 8
    assert found.target_forwards == len(rows)


class FedForever:
    """Tells a drafter of no end: it drafts for finished rows too."""

    def __init__(self, drafter: Drafter) -> None:
        self.drafter, self.rows = drafter, list[int]()

    def draft(
        self, contexts: Sequence[Sequence[int]], lookahead: int, seeds: Tensor, iteration: int
    ) -> Drafts:
        if not self.rows:
            self.rows, self.contexts, self.seeds = list(range(len(seeds))), [*contexts], seeds
        for row, context in zip(self.rows, contexts, strict=True):
            self.contexts[row] = context
        drafts = self.drafter.draft(self.contexts, lookahead, self.seeds, iteration)
        laws = None if drafts.laws is None else drafts.laws[self.rows]
        return Drafts(drafts.tokens[self.rows], laws, drafts.forwards)

    def select(self, rows: Sequence[int]) -> None:
        self.rows = [self.rows[row] for row in rows]


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("method", ["standard", "union", "tli", "slem"])
def test_drafts_for_finished_rows_change_no_text(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """And cost what those of the others do: they are noticed in the drafter's batches."""
    given = arguments(method)
    called = batches(given, monkeypatch)
    found = ending(given)
    read = sum(count for name, count in called if name == "drafter")
    called.clear()
    monkeypatch.setattr(
        generation_module, "DRAFTERS", {method: lambda pair: FedForever(DRAFTERS[method](pair))}
    )
    fed = ending(given)
    assert (fed.tokens, fed.iterations) == (found.tokens, found.iterations)
    assert {count for name, count in called if name == "drafter"} == {8}
    assert sum(count for name, count in called if name == "drafter") > read


def test_models_are_untouched() -> None:
    given = arguments("standard")
    target, drafter = given["target"].train(), given["drafter"].train()
    target.transformer.h[0].eval()
    before = [copy.deepcopy(model.state_dict()) for model in (target, drafter)]
    flags = [[m.training for m in model.modules()] for model in (target, drafter)]
    configs = [(m.config.to_dict(), m.generation_config.to_dict()) for m in (target, drafter)]
    random_state = torch.get_rng_state()
    trained = generate(**given, prompts=[[1, 2]], seeds=[3], max_new_tokens=9)
    assert torch.equal(torch.get_rng_state(), random_state)
    for model, state, flag, config in zip((target, drafter), before, flags, configs, strict=True):
        assert all(torch.equal(tensor, state[key]) for key, tensor in model.state_dict().items())
        assert [module.training for module in model.modules()] == flag
        assert (model.config.to_dict(), model.generation_config.to_dict()) == config
    target.eval(), drafter.eval()
    assert (
        generate(**given, prompts=[[1, 2]], seeds=[3], max_new_tokens=9).tokens == trained.tokens
    )


def test_training_is_restored_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    given = arguments("standard")
    given["target"].train()
    monkeypatch.setattr(loop_module, "verify", None)
    with pytest.raises(TypeError):
        generate(**given, prompts=[[1, 2]], seeds=[3], max_new_tokens=9)
    assert given["target"].training


def test_text_is_encoded() -> None:
    given = arguments("tli")
    others = {"seeds": [1], "max_new_tokens": 6}
    ids = given["tokenizer"].encode("the cat")
    assert len(ids) < len("the cat")
    text = generate(**given, prompts=["the cat"], **others)
    assert text.tokens == generate(**given, prompts=[ids], **others).tokens


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"target": "a/model"}, "target = 'a/model': expected a causal language model"),
        ({"drafter": 3}, "drafter = 3: expected a causal language model of Transformers$"),
        ({"drafter": None}, "drafter is None: method 'standard' expects a model$"),
        ({"prompts": [[1], [2, 7]]}, r"prompts\[1\]\[1\] = 7: expected a token id below 7$"),
        ({"prompts": [[1], [1] * 60]}, r"prompts\[1\] has 60 tokens, .* at most 64 together"),
        ({"tokenizer": "t", "prompts": ["a"]}, "tokenizer = 't': expected a tokenizer of Trans"),
        ({"seeds": [1]}, "seeds has 1 entries: expected 2, one for each prompt$"),
        ({"method": "medusa"}, f"method = 'medusa': expected one of {', '.join(METHODS)}$"),
        ({"verification": "joint"}, "verification = 'joint': expected token or block$"),
        ({"lookahead": -1}, "lookahead = -1: expected an integer >= 0$"),
        ({"max_new_tokens": 0}, "max_new_tokens = 0: expected an integer >= 1$"),
        ({"temperature": -0.5}, "temperature = -0.5"),
        ({"top_k": 0}, "top_k = 0"),
        ({"top_p": 1.5}, "top_p = 1.5"),
        ({"eos": 7}, r"eos\[0\] = 7: expected a token id below 7$"),
    ],
)
def test_bad_input_is_named(wrong: dict[str, Any], message: str) -> None:
    """Each argument is looked at; what else is refused of it, `test_methods` has."""
    given = arguments("standard") | {"prompts": [[1], [2]], "seeds": [1, 2], "max_new_tokens": 8}
    with pytest.raises((ValueError, TypeError), match=message):
        generate(**(given | wrong))


def test_a_prompt_may_fill_the_positions() -> None:
    """The text ends where the models' positions do; drafts beyond are not asked for."""
    for name in MODELS:
        target, drafter = MODELS[name](1).double(), MODELS[name](2).double()
        rows = [[1] * (POSITIONS - 8), [2]]
        found = generate(target, drafter, rows, seeds=[1, 2], max_new_tokens=8, temperature=0)
        assert found.tokens == tuple(greedy(target, row, 8) for row in rows)


def test_coins_of_the_loop_are_those_of_the_seed() -> None:
    """One token of a uniform law, by hand: FINAL at lookahead 0."""
    target = llama(size=4)
    with torch.no_grad():
        target.lm_head.weight.zero_()
    found = generate(target, None, [[1]], seeds=[9], max_new_tokens=5, method="autoregressive")
    coins = [uniforms(torch.tensor([9]), iteration, 2, 1).item() for iteration in range(5)]
    assert found.tokens[0] == tuple(int(coin * 4) for coin in coins)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_target_that_says_nan_is_named(temperature: float) -> None:
    target = llama(1)
    with torch.no_grad():
        target.lm_head.weight[3] = torch.nan
    with pytest.raises(ValueError, match=r"target: its logits for prompts\[0\] have NaN"):
        generate(target, llama(2), [[1, 2]], temperature=temperature, max_new_tokens=8, seeds=[0])


@pytest.mark.parametrize("method", ["standard", "union", "tli"])
def test_nobody_drafts_more_than_there_is_room_for(method: str) -> None:
    """With 5 tokens to go at most 4 drafts fit; texts are those of a lookahead that fits."""
    given, rows = arguments(method), prompts(2, 5)
    found, fitting = (
        generate(**given, prompts=rows, seeds=[3, 4], max_new_tokens=5, lookahead=lookahead)
        for lookahead in (40, 4)
    )
    assert found.tokens == fitting.tokens
    assert found.drafter_forwards == fitting.drafter_forwards
