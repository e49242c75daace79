"""Whole texts over two vocabularies, drafts verified by block: their joint law is the target's.

Nothing is sampled: every path of the coins is a row of one batch, after prompts of two lengths,
and the law of the texts that come out is compared with that of the target's logits.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from tokenizers import Tokenizer, decoders, models
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from proofs_tests.helpers.torch.models import shaped, small
from proofs_tests.helpers.torch.paths import (
    Choice,
    ChosenCoins,
    JointGenerator,
    Law,
    Path,
    check_taken,
    middle,
    off,
    texts,
)
from specref.distributions import Probabilities
from specref.torch_backend import Coins, Generation, generate
from specref.torch_backend import loop as loop_module
from specref.torch_backend.drafters import mapped
from specref.torch_backend.drafters.drafts import Drafts
from specref.torch_backend.drafters.mapped import MappedDrafter
from specref.torch_backend.loop import Text
from specref.torch_backend.validation import OUTSIDE
from specref.torch_backend.verification import trees
from specref.vocabulary import Tokens

# A target of the tokens "a", "b", "ab" and EOS, and a drafter of EOS, "b", "x" and "a"; methods
# by their definitions, with none of the code that is tested.

TARGET, DRAFTER, END = ("a", "b", "ab", "<e>"), ("<e>", "b", "x", "a"), "<e>"
EOS, SIZE = 3, 4
IMAGES = (EOS, 1, OUTSIDE, 0)
SHARED: Mapping[int, int] = MappingProxyType({0: 3, 1: 1, EOS: 0})
READ_AS: Mapping[int, Tokens] = MappingProxyType({0: (3,), 1: (1,), 2: (3, 1)})


def tokenizer(strings: Sequence[str]) -> Any:
    """It writes letters: none is merged."""
    backend = Tokenizer(models.BPE({string: i for i, string in enumerate(strings)}, []))
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=END)


@cache
def law_after(model: PreTrainedModel) -> Law:
    """The law of a model after any ids."""

    @cache
    def law(ids: Tokens) -> Probabilities:
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, -1]
        return np.asarray(logits.softmax(-1))

    return law


@dataclass(frozen=True)
class TwoVocabularies(JointGenerator):
    """A drafter with ids of its own, whose law is shaped; it reads the prompt as well."""

    prompt: Tokens
    shape: Mapping[str, Any]

    def read(self, context: Tokens) -> Tokens:
        return tuple(index for token in self.prompt + context for index in READ_AS[token])


class Union(TwoVocabularies):
    """Drafts are what the drafter says (Timor et al. 2025, Algorithm 1)."""

    def choices(self, read: Tokens) -> tuple[Probabilities, list[Choice]]:
        q = shaped(self.drafter(read), **self.shape)
        return declared(
            Choice(IMAGES[i], q[i], (middle(q, i),), (*read, i))
            for i in np.flatnonzero(q).tolist()
        )


class Tli(TwoVocabularies):
    """The drafter's law on shared tokens, renormalised (Timor et al. 2025, Algorithm 4)."""

    def choices(self, read: Tokens) -> tuple[Probabilities, list[Choice]]:
        mass = np.zeros(SIZE)
        mass[list(SHARED)] = self.drafter(read)[list(SHARED.values())]
        q = shaped(mass / mass.sum(), **self.shape)
        return declared(
            Choice(x, q[x], (middle(q, x),), (*read, SHARED[x]))
            for x in np.flatnonzero(q).tolist()
        )


def declared(choices: Iterable[Choice]) -> tuple[Probabilities, list[Choice]]:
    """The law of some ways to draw a target token, which may be `OUTSIDE`, and these."""
    law, found = np.zeros(SIZE), list(choices)
    for one in found:
        law[one.token] += one.weight if one.token != OUTSIDE else 0
    return law, found


def arguments(method: str) -> dict[str, Any]:
    """What `generate` is given."""
    return {
        "target": small("gpt2", 5, SIZE),
        "drafter": small("llama", 1, len(DRAFTER)),
        "tokenizer": tokenizer(TARGET),
        "drafter_tokenizer": tokenizer(DRAFTER),
        "method": method,
        "verification": "block",
        "eos": EOS,
    }


PROMPTS: tuple[Tokens, ...] = ((0, 2), (1,))
KINDS: Mapping[str, type[TwoVocabularies]] = MappingProxyType({"union": Union, "tli": Tli})
SHAPES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {"T 1": {}, "T 0.7, top-k 3": {"temperature": 0.7, "k": 3}}
)
NAMES = MappingProxyType({"temperature": "temperature", "k": "top_k"})
EXACT, LOSSY = 1e-12, 1e-6


class Plan(NamedTuple):
    """Rows, each the number of its prompt and a path; what is generated; the laws of texts."""

    rows: list[tuple[int, Path]]
    coins: ChosenCoins
    asked: dict[str, Any]
    expected: list[dict[Tokens, float]]


@cache
def plan(method: str, length: int, lookahead: int, shape: str = "T 1") -> Plan:
    asked, shaping = arguments(method), SHAPES[shape]
    p, q = (law_after(asked[name]) for name in ("target", "drafter"))
    targets = [after(prompt, p, shaping) for prompt in PROMPTS]
    rows = [
        (number, path)
        for number, prompt in enumerate(PROMPTS)
        for path in KINDS[method](
            targets[number], q, lookahead, length, EOS, prompt, shaping
        ).paths()
    ]
    rows = [rows[place] for place in np.random.default_rng(1).permutation(len(rows))]
    asked |= {NAMES[name]: value for name, value in shaping.items()}
    asked |= {"lookahead": lookahead, "max_new_tokens": length, "seeds": range(len(rows))}
    asked |= {"prompts": [PROMPTS[number] for number, _ in rows]}
    coins = ChosenCoins([path for _, path in rows], lookahead)
    return Plan(rows, coins, asked, [dict(texts(law, length, EOS)) for law in targets])


def after(prompt: Tokens, p: Law, shaping: Mapping[str, Any]) -> Law:
    """The target's law of what follows a prompt."""
    return lambda context: shaped(p(prompt + context), **shaping)


def driven(monkeypatch: pytest.MonkeyPatch, planned: Plan) -> Generation:
    """What is generated with the coins of the paths."""
    monkeypatch.setattr(mapped, "uniforms", planned.coins.uniforms)
    monkeypatch.setattr(loop_module, "row_coins", planned.coins.row_coins)
    return generate(**planned.asked)


def farthest(planned: Plan, generation: Generation) -> float:
    """Total variation from the target's law of texts, after the prompt where it is larger."""
    rows = list(zip(planned.rows, generation.tokens, strict=True))
    found = []
    for prompt, law in enumerate(planned.expected):
        of_prompt = [(path, tokens) for (number, path), tokens in rows if number == prompt]
        found.append(off(*zip(*of_prompt, strict=True), law))
    return max(found)


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("method", "length", "lookahead"), [("union", 4, 2), ("tli", 4, 3)])
def test_law_of_texts_is_the_targets(
    monkeypatch: pytest.MonkeyPatch, method: str, length: int, lookahead: int, shape: str
) -> None:
    """And every path has the tokens, and the accepted lengths, that its coins decide."""
    planned = plan(method, length, lookahead, shape)
    generation = driven(monkeypatch, planned)
    assert farthest(planned, generation) < EXACT
    assert sum(path.weight for _, path in planned.rows) == pytest.approx(2, abs=EXACT)
    check_taken([path for _, path in planned.rows], generation)


def test_rows_are_of_all_kinds() -> None:
    """Texts that EOS ends, drafted or not, and rows that draft less than others do."""
    for method in KINDS:
        paths = [path for _, path in plan(method, 3, 2).rows]
        blocks = [block for path in paths for block in path.blocks]
        ended = [block for block in blocks if block.tokens[-1] == EOS]
        assert {block.accepted == len(block.tokens) for block in ended} == {True, False}
        assert {len(path.tokens) for path in paths} == {1, 2, 3}
        assert {len(block.accept) for block in blocks} == {0, 1, 2}
        assert {token for path in paths for token in path.tokens} == set(range(len(TARGET)))


# Planted bugs.


def residual_of_the_row_before(monkeypatch: pytest.MonkeyPatch) -> None:
    emptied = trees._emptied

    def wrong(given: Any) -> tuple[Tensor, Tensor]:
        laws, chances = emptied(given)
        return laws.roll(1, 0), chances

    monkeypatch.setattr(trees, "_emptied", wrong)


def drafted_end_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    verify_block = loop_module.verify_block

    def wrong(p: Tensor, q: Tensor, drafts: Tensor, *, coins: Coins) -> tuple[Tensor, Tensor]:
        accept = coins.accept.masked_fill(drafts == EOS, 0)
        return verify_block(p, q, drafts, coins=coins._replace(accept=accept))

    monkeypatch.setattr(loop_module, "verify_block", wrong)


def bonus_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    append = Text.append
    monkeypatch.setattr(
        Text, "append", lambda self, *given: append(self, *given[:-1], frozenset())
    )


def laws_of_the_row_before(monkeypatch: pytest.MonkeyPatch) -> None:
    draft = MappedDrafter.draft

    def wrong(*given: Any) -> Drafts:
        drafts = draft(*given)
        assert drafts.laws is not None
        return replace(drafts, laws=drafts.laws.roll(1, 0))

    monkeypatch.setattr(MappedDrafter, "draft", wrong)


BUGS = [
    laws_of_the_row_before,
    residual_of_the_row_before,
    drafted_end_is_accepted,
    bonus_after_the_end,
]


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.parametrize("method", KINDS)
def test_paths_reject(
    monkeypatch: pytest.MonkeyPatch, method: str, bug: Callable[[pytest.MonkeyPatch], None]
) -> None:
    bug(monkeypatch)
    planned = plan(method, 3, 2)
    assert farthest(planned, driven(monkeypatch, planned)) > LOSSY
