"""Token ids as bytes: their prefix tree, and what two tokenisers have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from specref.torch_backend.vocabularies.spelling import (
    FALLBACK,
    decoder_types,
    split_unfinished,
    strings_by_id,
    token_bytes,
)

Identity: TypeAlias = Literal["bytes", "string"]
ROLES = ("bos", "eos", "pad", "unk", "cls", "sep", "mask")
OVERLAP = 16


class ByteTrie:
    """Every prefix of every token, the root first, then by length and then by bytes.

    * `prefixes`, `nodes`: What each node spells; and the node of each prefix.
    * `owners`, shape (N,): The longest token that starts what the node spells, -1 for none:
      T(text)_1 of a text that leaves the tree at this node.
    * `parents`, `symbols`, shape (N - 1,): Of each node but the root: the node above it, and the
      byte that leads from there.
    * `inner`, shape (N,): Whether it has children.
    * raises `ValueError`: There are no tokens, or one is empty.

    >>> trie = ByteTrie({b"a": 0, b"ab": 1, b"abba": 2})
    >>> trie.prefixes, trie.owners.tolist()
    ((b'', b'a', b'ab', b'abb', b'abba'), [-1, 0, 1, 1, 2])
    >>> trie.parents.tolist(), trie.inner.tolist()
    ([0, 1, 2, 3], [True, True, True, True, False])
    """

    def __init__(self, tokens: Mapping[bytes, int]) -> None:
        if not tokens or b"" in tokens:
            raise ValueError("tokens: expected at least one, and none that is empty")
        prefixes = {token[:end] for token in tokens for end in range(len(token) + 1)} | {b""}
        self.tokens = dict(tokens)
        self.prefixes = tuple(sorted(prefixes, key=lambda prefix: (len(prefix), prefix)))
        self.nodes = {prefix: node for node, prefix in enumerate(self.prefixes)}

    @cached_property
    def depth(self) -> int:
        """The length of the longest token."""
        return len(self.prefixes[-1])

    @cached_property
    def parents(self) -> Tensor:
        return torch.tensor([self.nodes[prefix[:-1]] for prefix in self.prefixes[1:]])

    @cached_property
    def symbols(self) -> Tensor:
        return torch.tensor([prefix[-1] for prefix in self.prefixes[1:]])

    @cached_property
    def owners(self) -> Tensor:
        owners = [-1]
        for prefix in self.prefixes[1:]:
            owners.append(self.tokens.get(prefix, owners[self.nodes[prefix[:-1]]]))
        return torch.tensor(owners)

    @cached_property
    def inner(self) -> Tensor:
        return torch.bincount(self.parents, minlength=len(self.prefixes)) > 0

    @cached_property
    def levels(self) -> tuple[slice, ...]:
        """The nodes of each length, 0 to `depth`."""
        counts = [0] * (self.depth + 1)
        for prefix in self.prefixes:
            counts[len(prefix)] += 1
        ends = torch.tensor(counts).cumsum(0).tolist()
        return tuple(slice(e - count, e) for e, count in zip(ends, counts, strict=True))

    def greedy(self, data: bytes) -> list[int] | None:
        """Tokens by longest match from the left, or None where no token matches.

        >>> trie = ByteTrie({b"a": 0, b"ab": 1, b"abba": 2})
        >>> trie.greedy(b"aab"), trie.greedy(b"abb")
        ([0, 1], None)
        """
        ids, start = [], 0
        while start < len(data):
            owner, end = -1, start
            while data[start : end + 1] in self.nodes and end < len(data):
                end += 1
                if data[start:end] in self.tokens:
                    owner, after = self.tokens[data[start:end]], end
            if owner < 0:
                return None
            ids.append(owner)
            start = after
        return ids


@dataclass(frozen=True)
class TokenVocabulary:
    """The tokens of a tokeniser by id: their strings, their bytes, their roles.

    Attributes
    ----------
    strings : tuple of str or None
        As the tokeniser lists them; None for an id that has no token.
    spelled : tuple of bytes or None
        What a token writes; None for special tokens and for ids without a token.
    roles : mapping from str to int
        The special tokens that are known by a role: eos, bos, pad, unk, cls, sep, mask.
    tokenizer : transformers tokenizer
        Encodes and decodes text.
    exact : bool
        Whether the bytes of tokens, joined, are the text. False for WordPiece: a piece that
        starts a word is given one space before it (a punctuation mark none), a piece that
        continues one ("##") none; other white space, and often case, is lost.
    start : tuple of int
        The special tokens that the tokeniser puts before a text.
    space_first : bool
        Whether it adds a space at the start of a text, as SentencePiece does.
    """

    strings: tuple[str | None, ...]
    spelled: tuple[bytes | None, ...]
    roles: Mapping[str, int]
    tokenizer: Any = field(compare=False, repr=False)
    exact: bool = True
    start: tuple[int, ...] = ()
    space_first: bool = False

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, size: int | None = None) -> "TokenVocabulary":
        """Read a fast tokenizer of Transformers; the order of its `get_vocab()` is ignored.

        Parameters
        ----------
        tokenizer : PreTrainedTokenizerFast
            Byte-level BPE, SentencePiece (Unigram or BPE, with or without byte fallback),
            WordPiece, or plain strings.
        size : int, optional
            How many ids the model has. Where these are more than the tokenizer's, the others
            have no string: no text maps to them. Added tokens beyond them are left out.

        Raises
        ------
        ValueError
            The tokenizer has no decoder that is understood, or `size` is too small.

        Examples
        --------
        >>> from tokenizers import Tokenizer, decoders, models
        >>> from transformers import PreTrainedTokenizerFast
        >>> backend = Tokenizer(models.BPE({"é": 0, "Ġa": 1, "<e>": 2}, []))
        >>> backend.decoder = decoders.ByteLevel()
        >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<e>")
        >>> vocabulary = TokenVocabulary.from_tokenizer(tokenizer, size=4)
        >>> vocabulary.spelled, dict(vocabulary.roles)
        ((b'\\xe9', b' a', None, None), {'eos': 2})
        """
        strings = strings_by_id(tokenizer, size)
        spelled = token_bytes(tokenizer, strings)
        roles = {role: getattr(tokenizer, f"{role}_token_id", None) for role in ROLES}
        special = set(tokenizer.all_special_ids)
        bare, full = (tokenizer.encode("a", add_special_tokens=flag) for flag in (False, True))
        starting = takewhile(special.__contains__, full)
        return cls(
            strings,
            spelled,
            {role: at for role, at in roles.items() if at is not None and at < len(strings)},
            tokenizer,
            exact="WordPiece" not in decoder_types(tokenizer),
            start=tuple(index for index in starting if index < len(strings)),
            space_first=b"".join(spelled[index] or b"" for index in bare) == b" a",
        )

    def __len__(self) -> int:
        return len(self.strings)

    @property
    def eos(self) -> int | None:
        """The token that ends a text."""
        return self.roles.get("eos")

    @cached_property
    def by_bytes(self) -> dict[bytes, int]:
        """{bytes: token}: of several, not a byte fallback ("<0x41>"), then the lowest id."""
        fallback = [bool(string and FALLBACK.fullmatch(string)) for string in self.strings]
        tokens: dict[bytes, int] = {}
        for index in sorted(range(len(self)), key=lambda index: (fallback[index], index)):
            piece = self.spelled[index]
            if piece is not None:
                tokens.setdefault(piece, index)
        return tokens

    @cached_property
    def trie(self) -> ByteTrie:
        """The prefix tree of `by_bytes`."""
        return ByteTrie(self.by_bytes)

    def check_logits(self, logits: Tensor) -> None:
        """Raise `ValueError` unless a model's logits are over these ids."""
        if logits.shape[-1] != len(self):
            raise ValueError(
                f"the model has logits for {logits.shape[-1]} ids, the vocabulary {len(self)}: "
                "correct the model's config.vocab_size, or the size that was given"
            )

    def text(self, ids: Sequence[int]) -> bytes:
        """The bytes that tokens write at the start of a text; special tokens write none."""
        if not self.exact:
            return self._decode(ids).encode()
        data = b"".join(self.spelled[index] or b"" for index in ids)
        return data[1:] if self.space_first and data[:1] == b" " else data

    def continuation(self, seen: Sequence[int], ids: Sequence[int]) -> bytes:
        """The bytes that tokens write after `seen`."""
        if self.exact:
            return b"".join(self.spelled[index] or b"" for index in ids)
        before = self._decode(seen[-OVERLAP:])
        after = self._decode([*seen[-OVERLAP:], *ids])
        same = takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
        return after[sum(1 for _ in same) :].encode()

    def encode(self, data: bytes) -> tuple[list[int], bytes]:
        """Tokenise a text; an unfinished character at its end is spelled, or is the rest."""
        whole, tail = split_unfinished(data)
        try:
            ids = self._encode(whole.decode())
        except UnicodeDecodeError:
            ids = self.spell(whole)[0]
        ends, rest = self.spell(tail)
        return ids + ends, rest

    def spell(self, data: bytes) -> tuple[list[int], bytes]:
        """Tokenise a fragment: by longest match of bytes, else by the tokenizer.

        Returns
        -------
        list of int, bytes
            The tokens, and the unfinished character at the end that has none. Never U+FFFD:
            bytes that are no UTF-8 and that the vocabulary lacks are left out.
        """
        ids = self.trie.greedy(data)
        if ids is not None:
            return ids, b""
        whole, tail = split_unfinished(data)
        ids = self.trie.greedy(whole)
        return (self._encode(whole.decode(errors="ignore")) if ids is None else ids), tail

    def _encode(self, text: str) -> list[int]:
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        return [index for index in ids if index < len(self)]

    def _decode(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=True)
        return text


def id_map(
    target: TokenVocabulary, drafter: TokenVocabulary, identity: Identity = "bytes"
) -> Tensor:
    """The target token of each drafter token, shape (len(drafter),); -1 where the target lacks it.

    Identity is by equal bytes, of which special tokens have none; or by equal strings as the
    tokenisers list them, special tokens included, which is what published intersections count.
    Between tokenisers of different kinds strings miss equal texts ("Ġa" and "▁a") and equate
    different ones ("é" as a byte and as a letter). Either is lossless.

    Several drafter tokens may be one target token ("A" and "<0x41>"): sum their probabilities. Of
    several target tokens with the same bytes the map takes that of `by_bytes`. EOS is EOS,
    whatever they are called.

    * raises `ValueError`: Unknown `identity`.

    >>> target = TokenVocabulary(("a", "b", "</s>"), (b"a", b"b", None), {"eos": 2}, None)
    >>> names, pieces = ("<0x62>", "b", "x", "<e>"), (b"b", b"b", b"x", None)
    >>> id_map(target, TokenVocabulary(names, pieces, {"eos": 3}, None)).tolist()
    [1, 1, -1, 2]
    """
    if identity not in ("bytes", "string"):
        raise ValueError(f"identity = {identity!r}: expected bytes or string")
    known: Mapping[Any, int] = target.by_bytes
    pieces: Sequence[Any] = drafter.spelled
    if identity == "string":
        known = {string: index for index, string in enumerate(target.strings)}
        pieces = drafter.strings
    ids = [-1 if piece is None else known.get(piece, -1) for piece in pieces]
    if drafter.eos is not None:
        ids[drafter.eos] = -1 if target.eos is None else target.eos
    return torch.tensor(ids)
