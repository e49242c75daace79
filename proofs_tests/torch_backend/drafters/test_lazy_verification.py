"""Lazy SLRS: verdicts are those of full psi with the same coins, and so are texts."""

from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor

from proofs_tests.helpers.bugs.torch_lazy import BUGS, READING_BUGS, text_kept
from proofs_tests.helpers.torch.drafting import softmax, table_law
from proofs_tests.helpers.torch.lazy import (
    PADDED,
    PROMPT,
    WAITING,
    FullPsi,
    Pair,
    few,
    model_of,
    random_pair,
)
from specref.torch_backend import row_coins
from specref.torch_backend.drafters import settling
from specref.torch_backend.drafters.lazy_verification import Decisions, LazyVerifier
from specref.torch_backend.drafters.slrs import SlrsDrafter
from specref.torch_backend.models.trees import TreeModel
from specref.torch_backend.validation import NO_DRAFT, OUTSIDE


def proposals(patch: pytest.MonkeyPatch) -> list[list[tuple[int, float, float]]]:
    """Filled with each row's proposals: the token, p - l there, and its coin."""
    propose, found = Decisions._propose, list[list[tuple[int, float, float]]]()

    def noted(self: Decisions, rows: Tensor) -> None:
        known = self.bounds.known(self.searches[rows] + self.kept[rows])
        propose(self, rows)
        found.extend([] for _ in range(len(self.token) - len(found)))
        room = self.chance[rows] - known.gather(1, self.token[rows, None])[:, 0]
        columns = self.token[rows], room, self.coin[rows]
        for row, *one in zip(rows.tolist(), *(c.tolist() for c in columns), strict=True):
            found[row].append((one[0], one[1], one[2]))

    patch.setattr(Decisions, "_propose", noted)
    return found


def expected(
    full: FullPsi, drafts: Sequence[int], p: Tensor, coins: Sequence[float], proposed: Any
) -> list[int]:
    """A block by full psi: the coins' verdicts, and the first proposal that they keep."""
    block: list[int] = []
    for draft, coin, law in zip(drafts, coins, p.tolist(), strict=False):
        psi = full.after(full.view(PROMPT, block))
        if draft == NO_DRAFT:
            return block
        if draft >= 0 and coin < law[draft] / psi[draft]:
            block.append(draft)
            continue
        kept = (
            token
            for token, room, v in proposed
            if v < max(0.0, law[token] - psi.get(token, 0.0)) / room
        )
        return [*block, next(kept, OUTSIDE)]
    return block


def compared(
    pair: Pair, shape: Any, width: int, seed: int = 0, lookahead: int = 3, rows: int = 60
) -> tuple[list[list[int]], list[list[int]], int]:
    """Blocks by full psi, and as found, without bonus tokens; and how many refusals there were."""
    target, drafter = pair
    model = model_of(drafter, seed)
    full = FullPsi(model, target, drafter, shape)
    slrs = SlrsDrafter(TreeModel(model), target, drafter, shape, width)
    seeds, p = torch.arange(rows), law_rows(rows, lookahead, len(target))
    with pytest.MonkeyPatch.context() as patch:
        proposed = proposals(patch)
        drafts = slrs.draft([PROMPT] * rows, lookahead, seeds, seed)
        coins = row_coins(seeds, seed, lookahead)
        assert drafts.verifier is not None
        tokens, counts, _ = drafts.verifier.verify(p, drafts.tokens, coins)
    given = zip(drafts.tokens.tolist(), p, coins.accept.tolist(), proposed, strict=True)
    blocks = [expected(full, *row) for row in given]
    found = [
        row[: count - (not made)]
        for row, count, made in zip(tokens.tolist(), counts.tolist(), proposed, strict=True)
    ]
    return blocks, found, sum(max(0, len(made) - 1) for made in proposed)


def law_rows(rows: int, lookahead: int, size: int) -> Tensor:
    laws = [[table_law((row, k), size) for k in range(lookahead + 1)] for row in range(rows)]
    return torch.stack([torch.stack(row) for row in laws])


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("shape", [softmax, few], ids=["softmax", "top-p"])
@pytest.mark.parametrize("seed", range(4))
def test_blocks_are_those_of_full_psi_with_the_same_coins(
    seed: int, shape: Any, width: int
) -> None:
    blocks, found, _ = compared(random_pair(seed), shape, width, seed)
    assert found == blocks


def test_proposals_are_refused() -> None:
    """What is compared has refusals."""
    assert sum(compared(random_pair(seed), softmax, 1, seed)[2] for seed in range(4)) > 0


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("bug", [b for b in BUGS if b is not text_kept], ids=lambda b: b.__name__)
def test_the_same_coins_reject(bug: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    results = [compared(random_pair(seed), softmax, 1, seed) for seed in range(4)]
    assert any(blocks != found for blocks, found, _ in results)


def test_codes_that_were_forgotten_are_learned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when too many pieces are kept."""
    monkeypatch.setattr(settling, "MOST_KEPT", 0)
    blocks, found, _ = compared(random_pair(1), softmax, 1, 1)
    assert found == blocks


def hot(logits: Tensor) -> Tensor:
    """Laws by which every token is drafted now and then."""
    return softmax(logits / 4)


def held(pair: Pair, rows: int = 40, lookahead: int = 3) -> bool:
    """Whether drafting bounds the psi of every draft after those before it."""
    target, drafter = pair
    model = model_of(drafter)
    full = FullPsi(model, target, drafter, hot)
    slrs = SlrsDrafter(TreeModel(model), target, drafter, hot)
    drafts = slrs.draft([PROMPT] * rows, lookahead, torch.arange(rows), 0)
    assert isinstance(drafts.verifier, LazyVerifier)
    bounds, searches = drafts.verifier.bounds, torch.arange(rows * lookahead)
    sides = [bounds.of(searches, searches * 0 + token) for token in range(len(target))]
    low, high = (
        torch.stack(side, 1).view(rows, lookahead, -1) for side in zip(*sides, strict=True)
    )
    for row, tokens in enumerate(drafts.tokens.tolist()):
        for k in range(sum(token != NO_DRAFT for token in tokens)):
            psi = full.after(full.view(PROMPT, tokens[:k]))
            exact = low.new_tensor([psi.get(token, 0.0) for token in range(len(target))])
            if not ((low[row, k] <= exact + 1e-12) & (exact <= high[row, k] + 1e-12)).all():
                return False
    return True


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("pair", [WAITING, PADDED], ids=["bytes that wait", "special tokens"])
def test_what_the_drafter_cannot_spell(pair: Pair) -> None:
    """Bytes within a character wait, over the prompt and drafts; what is no text ends a draft."""
    assert held(pair)
    blocks, found, _ = compared(pair, hot, 1)
    assert found == blocks


@pytest.mark.parametrize(("bug", "pair"), READING_BUGS, ids=lambda b: getattr(b, "__name__", ""))
def test_what_the_drafter_cannot_spell_rejects(
    bug: Any, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    assert not held(pair)
