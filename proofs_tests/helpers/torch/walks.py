"""Rows and trees as decoding makes them, every logit beside the model's plain forward."""

import random
from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from specref.torch_backend.models.cached import CachedModel
from specref.torch_backend.models.trees import TreeModel

VOCABULARY = 7
LONG = 50  # rows that are longer are cut back


def plain(model: PreTrainedModel, rows: list[list[int]], last: int) -> Tensor:
    """No cache and no mask: causal attention does not see what stands to the right."""
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    with torch.no_grad():
        logits = model(ids, use_cache=False).logits
    ends = zip(logits, map(len, rows), strict=True)
    return torch.stack([row[end - last : end] for row, end in ends])


def error(found: Tensor, expected: Tensor) -> float:
    """The largest difference, of the largest logit; infinite where one is NaN."""
    gap = float((found - expected).abs().max() / expected.abs().max())
    return gap if gap >= 0 else float("inf")


class Walk:
    """Rows that are drafted, kept in part, cut back and dropped, as in decoding and beyond it."""

    def __init__(
        self, model: PreTrainedModel, rows: int, seed: int, use_cache: bool = True
    ) -> None:
        self.model, self.cached = model, CachedModel(model, use_cache)
        self.random = random.Random(seed)
        self.rows = [self.tokens(self.random.randint(1, 9)) for _ in range(rows)]

    def tokens(self, count: int) -> list[int]:
        return [self.random.randrange(VOCABULARY) for _ in range(count)]

    def verify(self, lookahead: int = 3) -> float:
        """Drafts from outside, read together with what the rows grew by."""
        drafts = [self.tokens(lookahead) for _ in self.rows]
        found = self.cached.logits(self.rows, lookahead + 1, torch.tensor(drafts))
        return error(found, plain(self.model, self.grow(drafts), lookahead + 1))

    def draft(self, lookahead: int = 3) -> float:
        """Token after token."""
        drafts = [self.tokens(lookahead) for _ in self.rows]
        columns = torch.tensor(drafts)
        found = [self.cached.logits(self.rows)]
        found += [self.cached.extend(columns[:, i : i + 1]) for i in range(lookahead)]
        return error(torch.cat(found, 1), plain(self.model, self.grow(drafts), lookahead + 1))

    def grow(self, drafts: list[list[int]]) -> list[list[int]]:
        """Keep some of the drafts and one more token, or go back; return the rows with drafts."""
        whole = [row + draft for row, draft in zip(self.rows, drafts, strict=True)]
        kept = [self.random.randint(0, len(draft)) for draft in drafts]
        self.rows = [
            row + draft[:count] + self.tokens(1)
            for row, draft, count in zip(self.rows, drafts, kept, strict=True)
        ]
        self.rows = [
            row if len(row) < LONG else row[: self.random.randint(1, 40)] for row in self.rows
        ]
        return whole

    def drop(self) -> None:
        kept = sorted(self.random.sample(range(len(self.rows)), len(self.rows) - 1))
        self.rows = [self.rows[row] for row in kept]
        self.cached.select(kept)

    def run(self, steps: int) -> float:
        worst = 0.0
        for step in range(steps):
            worst = max(worst, self.verify() if step % 2 else self.draft())
            if step % 10 == 9 and len(self.rows) > 2:
                self.drop()
        return worst


class TreeWalk:
    """Random trees after random contexts, every node beside a plain forward of its path."""

    def __init__(self, model: PreTrainedModel, rows: int, seed: int, use_cache: bool = True):
        self.plain, self.model = model, TreeModel(model, use_cache)
        self.random, self.worst = random.Random(seed), 0.0
        self.contexts = [self.tokens(self.random.randint(1, 9)) for _ in range(rows)]
        self.begin()

    def tokens(self, count: int) -> list[int]:
        return [self.random.randrange(VOCABULARY) for _ in range(count)]

    def begin(self) -> None:
        self.texts = [[list(context)] for context in self.contexts]
        found = self.model.begin(self.contexts)
        self.compare([[text] for text in self.contexts], list(found[:, None]))

    def grow(self, most: int = 6) -> None:
        counts = [self.random.randint(0, most) for _ in self.texts]
        counts[self.random.randrange(len(counts))] = most
        parents: list[list[int]] = [[] for _ in self.texts]
        tokens = [self.tokens(count) for count in counts]
        for texts, above, ids in zip(self.texts, parents, tokens, strict=True):
            for token in ids:
                above.append(self.random.randrange(len(texts)))
                texts.append([*texts[above[-1]], token])
        found = self.model.grow(parents, tokens)
        new = [texts[len(texts) - n :] for texts, n in zip(self.texts, counts, strict=True)]
        self.compare(new, found)

    def go_on(self) -> None:
        """Contexts that are some node's text and more, or that share less, or are unrelated."""
        chosen = [self.random.choice(texts) for texts in self.texts]
        kept = [
            text[: self.random.randint(0, len(text))]
            if len(text) > 30 or self.random.random() < 0.3
            else text
            for text in chosen
        ]
        self.contexts = [text + self.tokens(self.random.randint(0, 3)) or [1] for text in kept]
        self.begin()

    def drop(self) -> None:
        kept = sorted(self.random.sample(range(len(self.texts)), len(self.texts) - 1))
        self.contexts = [self.contexts[row] for row in kept]
        self.texts = [self.texts[row] for row in kept]
        self.model.select(kept)

    def compare(self, texts: Sequence[list[list[int]]], found: Sequence[Tensor]) -> None:
        for rows, logits in zip(texts, found, strict=True):
            assert logits.shape == (len(rows), VOCABULARY)
            if rows:
                self.worst = max(self.worst, error(logits, plain(self.plain, rows, 1)[:, 0]))

    def run(self, iterations: int = 6) -> float:
        for iteration in range(iterations):
            for _ in range(3):
                self.grow()
            if iteration % 2 and len(self.texts) > 2:
                self.drop()
                self.grow()
            self.go_on()
        return self.worst
