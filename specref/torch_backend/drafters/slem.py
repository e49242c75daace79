"""String-level exact match (SLEM): Timor et al. 2025, Algorithm 2, over real tokenisers.

The drafter writes text, the target's tokeniser reads it, and the target's own samples are kept
while they are what was read: lossless for every drafter and every way from text to tokens,
normalising tokenisers included. The context stays the target's ids as they are; to tokenise
them again would be lossy.
"""

from collections.abc import Sequence
from itertools import takewhile

import torch
from torch import Tensor

from specref.torch_backend.drafters.drafts import Drafts, Shape
from specref.torch_backend.models.cached import CachedModel
from specref.torch_backend.randomness import DRAFT, uniforms
from specref.torch_backend.shaping import draw, sent
from specref.torch_backend.validation import NO_DRAFT
from specref.torch_backend.vocabularies.contexts import last_run, opening, read, windowed
from specref.torch_backend.vocabularies.spelling import split_unfinished
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary

UTF8_CONTINUATION = bytes(range(0x80, 0xC0))


class SlemDrafter:
    """Drafts text, and proposes the target tokens that it becomes after the context.

    Parameters
    ----------
    model : CachedModel
        The draft model.
    target, drafter : TokenVocabulary
    shape : callable
        From the draft model's logits to the distribution that drafts are drawn from.
    lookbehind : int
        How many target tokens of the context are tokenised again together with the drafted
        text, to find where it starts; a token joined across that border is split there.

    Raises
    ------
    ValueError
        `lookbehind` < 1.

    Notes
    -----
    The whole context is decoded and encoded in every iteration, as the draft model's tokeniser
    would read it; the model reads again only where this differs from what it read before. A
    character that the context leaves unfinished, and that the draft model cannot spell, is left to
    the drafts: they are proposed if they start with it. What the drafts leave unfinished is
    not proposed.
    """

    def __init__(
        self,
        model: CachedModel,
        target: TokenVocabulary,
        drafter: TokenVocabulary,
        shape: Shape,
        lookbehind: int = 16,
    ) -> None:
        if lookbehind < 1:
            raise ValueError(f"lookbehind = {lookbehind}: expected at least 1")
        self.model, self.target, self.drafter, self.shape = model, target, drafter, shape
        self.lookbehind = lookbehind

    def draft(
        self, contexts: Sequence[Sequence[int]], lookahead: int, seeds: Tensor, iteration: int
    ) -> Drafts:
        """Draft `lookahead` tokens for every row, or up to EOS; propose what they become.

        `Drafts.tokens` has as many columns as the longest proposal: nothing is cut. It may be
        more than `lookahead`, where the target's tokens are the shorter ones, or none.

        Raises
        ------
        ValueError
            The draft model's logits are not of its vocabulary's size.
        """
        readings = [read(context, self.target, self.drafter) for context in contexts]
        seen = [ids or [opening(self.drafter)] for ids, _ in readings]
        coins = uniforms(seeds.to(self.model.device), iteration, DRAFT, lookahead)
        before = self.model.forwards
        drafted = self._drafted(seen, coins)
        proposals = [
            self.propose(contexts[row], seen[row], ids, readings[row][1])
            for row, ids in enumerate(drafted)
        ]
        width = max(map(len, proposals), default=0)
        padded = [tokens + [NO_DRAFT] * (width - len(tokens)) for tokens in proposals]
        tokens = sent(padded, self.model.device).view(len(padded), width)
        return Drafts(tokens, None, self.model.forwards - before)

    def select(self, rows: Sequence[int]) -> None:
        self.model.select(rows)

    def propose(
        self,
        context: Sequence[int],
        seen: Sequence[int],
        drafted: Sequence[int],
        unfinished: bytes = b"",
    ) -> list[int]:
        """The target tokens that follow a context if its text goes on as drafted.

        Parameters
        ----------
        context : sequence of int
            The target's tokens.
        seen, drafted : sequence of int
            The draft model's: what it read, and what it drafted after that.
        unfinished : bytes
            The end of the context that is not in `seen`, for `drafted` to start with.
        """
        text = self.drafter.continuation(seen, drafted)
        if not text.startswith(unfinished):
            return []
        tokens = realigned(self.target, context, text[len(unfinished) :], self.lookbehind)
        if self.target.eos is None or self.drafter.eos not in drafted:
            return tokens
        return [*tokens, self.target.eos]

    def _drafted(self, seen: Sequence[Sequence[int]], coins: Tensor) -> list[list[int]]:
        """Tokens of the drafter for every row, up to its EOS and with it."""
        drafts = torch.empty_like(coins, dtype=torch.int64)
        room = self.model.positions + 1 - coins.shape[1]
        for i in range(coins.shape[1]):
            if i:
                logits = self.model.extend(drafts[:, i - 1 : i])
            else:
                logits = self.model.logits([windowed(ids, room) for ids in seen])
            self.drafter.check_logits(logits)
            drafts[:, i] = draw(self.shape(logits[:, -1].double()), coins[:, i])
        return [upto(ids, self.drafter.eos) for ids in drafts.tolist()]


def realigned(
    vocabulary: TokenVocabulary, context: Sequence[int], text: bytes, lookbehind: int
) -> list[int]:
    """The tokens of a text after a context, whose own tokens stay as they are.

    The last `lookbehind` tokens of the context and the text are tokenised together; what follows
    the longest run of tokens that ends the context is the answer (Timor et al. 2025, section 3.2).
    Without such a run, or if the answer writes something else, the text is spelled alone, by
    longest match. A character that the text leaves unfinished is left out.

    >>> from tokenizers import Tokenizer, decoders, models
    >>> from transformers import PreTrainedTokenizerFast
    >>> backend = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2, "Ġ": 3}, [("a", "b")]))
    >>> backend.decoder = decoders.ByteLevel()
    >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    >>> vocabulary = TokenVocabulary.from_tokenizer(tokenizer)
    >>> realigned(vocabulary, [1, 0], b"bab", 16)  # not "ab", though "aba" ends as the context
    [1, 2]
    """
    recent = last_run(context, vocabulary)[-lookbehind:]
    window = b"".join(vocabulary.spelled[token] or b"" for token in recent)
    whole, _ = split_unfinished(window + text)
    follows = whole[len(window) :]
    tokens = vocabulary.encode(_readable(whole, vocabulary))[0]
    ends = range(min(len(recent), len(tokens)), 0, -1)
    overlap, end = max(((_common_end(recent, tokens[:end]), end) for end in ends), default=(0, 0))
    if overlap and (not vocabulary.exact or vocabulary.continuation((), tokens[end:]) == follows):
        return tokens[end:]
    return vocabulary.spell(follows)[0]


def upto(ids: list[int], token: int | None) -> list[int]:
    """A list up to a token, and with it; all of it without that token.

    >>> upto([3, 1, 2], 1), upto([3], 1)
    ([3, 1], [3])
    """
    return ids[: ids.index(token) + 1] if token in ids else ids


def _readable(data: bytes, vocabulary: TokenVocabulary) -> bytes:
    """A piece of a text as if one began there: no half character, no space that is added."""
    data = data.lstrip(UTF8_CONTINUATION)
    return data[1:] if vocabulary.space_first and data[:1] == b" " else data


def _common_end(left: Sequence[int], right: Sequence[int]) -> int:
    pairs = zip(reversed(left), reversed(right), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
