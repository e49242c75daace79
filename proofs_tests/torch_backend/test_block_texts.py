"""Whole texts over two vocabularies, drafts verified by block: their joint law is the target's.

Nothing is sampled: every path of the coins is a row of one batch, after prompts of two lengths,
and the law of the texts that come out is compared with that of the target's logits.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from torch import Tensor

from proofs_tests.helpers.torch.models import shaped
from proofs_tests.helpers.torch.paths import ChosenCoins, Law, Path
from proofs_tests.helpers.torch.two_vocabularies import (
    EOS,
    TARGET,
    Tli,
    TwoVocabularies,
    Union,
    arguments,
    law_after,
)
from specref.distributions import total_variation
from specref.torch_backend import Coins, Generation, generate
from specref.torch_backend import loop as loop_module
from specref.torch_backend.drafters import mapped
from specref.torch_backend.drafters.drafts import Drafts
from specref.torch_backend.drafters.mapped import MappedDrafter
from specref.torch_backend.loop import Text
from specref.torch_backend.verification import trees
from specref.vocabulary import Tokens

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
    return Plan(rows, coins, asked, [dict(texts(law, length)) for law in targets])


def after(prompt: Tokens, p: Law, shaping: Mapping[str, Any]) -> Law:
    """The target's law of what follows a prompt."""
    return lambda context: shaped(p(prompt + context), **shaping)


def texts(p: Law, length: int, text: Tokens = (), weight: float = 1) -> Iterator[Any]:
    """Each text of the target, up to EOS, with its probability."""
    if len(text) == length or text[-1:] == (EOS,):
        yield text, weight
        return
    law = p(text)
    for token in np.flatnonzero(law).tolist():
        yield from texts(p, length, (*text, token), weight * law[token])


def driven(monkeypatch: pytest.MonkeyPatch, planned: Plan) -> Generation:
    """What is generated with the coins of the paths."""
    monkeypatch.setattr(mapped, "uniforms", planned.coins.uniforms)
    monkeypatch.setattr(loop_module, "row_coins", planned.coins.row_coins)
    return generate(**planned.asked)


def off(planned: Plan, generation: Generation) -> float:
    """Total variation from the target's law of texts, after the prompt where it is larger."""
    found: list[Counter[Tokens]] = [Counter() for _ in PROMPTS]
    for (number, path), tokens in zip(planned.rows, generation.tokens, strict=True):
        found[number][tokens] += path.weight
    return float(max(map(total_variation, found, planned.expected)))


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("method", "length", "lookahead"), [("union", 4, 2), ("tli", 4, 3)])
def test_law_of_texts_is_the_targets(
    monkeypatch: pytest.MonkeyPatch, method: str, length: int, lookahead: int, shape: str
) -> None:
    """And every path has the tokens, and the accepted lengths, that its coins decide."""
    planned = plan(method, length, lookahead, shape)
    generation = driven(monkeypatch, planned)
    assert off(planned, generation) < EXACT
    assert sum(path.weight for _, path in planned.rows) == pytest.approx(2, abs=EXACT)
    for row, (_, path) in enumerate(planned.rows):
        assert generation.tokens[row] == path.tokens
        found = [(one.accepted, one.emitted) for one in generation.iterations[row]]
        assert found == [(block.accepted, len(block.tokens)) for block in path.blocks]


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
    assert off(planned, driven(monkeypatch, planned)) > LOSSY
