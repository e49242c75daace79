"""Where drafter tokens lead from a node of the target's prefix tree: by pieces, and by hand."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor

from proofs_tests.helpers.torch.lazy import PADDED, WAITING, Pair, random_pair
from specref.torch_backend.drafters import settling
from specref.torch_backend.drafters.settling import Settling
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary

TWINS = TokenVocabulary(("a", "ab", "b"), (b"a", b"ab", b"b"), {}, None)
BYTES = TokenVocabulary(("a", "<0x61>", "b"), (b"a", b"a", b"b"), {}, None)
PAIRS = [*map(random_pair, range(12)), WAITING, PADDED, (TWINS, BYTES)]


def by_hand(pair: Pair, start: bytes, token: int) -> bytes | int | None:
    """The text, if a token may be longer than it; otherwise the token that it starts with."""
    target, drafter = pair
    if token == drafter.eos and not start:
        return target.eos
    piece = drafter.spelled[token]
    text = start + (piece or b"")
    longer = any(len(one) > len(text) and one.startswith(text) for one in target.by_bytes)
    if piece is not None and longer:
        return text
    starting = [one for one in target.by_bytes if text.startswith(one)]
    return target.by_bytes[max(starting, key=len)] if starting else None


def read(settled: Settling, code: int) -> bytes | int | None:
    if code < settled.end:
        return settled.trie.prefixes[code]
    return None if code == settled.end else code - settled.end - 1


def agrees(pair: Pair) -> bool:
    """Whether every drafter token is in one piece of every inner node, and the right one."""
    target, drafter = pair
    settled = Settling(target, drafter)
    nodes, tokens = target.trie.inner.nonzero()[:, 0].tolist(), torch.arange(len(drafter))
    pieces = settled.pieces(nodes)
    columns = [settled.codes(pieces, tokens[t].expand(len(nodes))) for t in tokens]
    expanded = pieces.codes.repeat_interleave(pieces.lengths).view(len(nodes), -1)
    codes = torch.empty_like(expanded)
    codes[:, settled.order] = expanded
    within = (codes < settled.end).nonzero().tolist()
    found = zip(pieces.open_of.tolist(), pieces.tokens.tolist(), pieces.places, strict=True)
    opened = {(of, token): int(place) for of, token, place in found}
    starts = [target.trie.prefixes[node] for node in nodes]
    return (
        torch.stack(columns, 1).equal(codes)
        and opened == {(of, token): int(codes[of, token]) for of, token in within}
        and all(
            read(settled, int(codes[row, token])) == by_hand(pair, start, token)
            for row, start in enumerate(starts)
            for token in range(len(drafter))
        )
    )


def test_every_token_leads_where_it_does_by_hand() -> None:
    assert all(map(agrees, PAIRS))


def siblings_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The children of a prefix all start where the first does."""

    def wrong(tree: Any, own: Tensor) -> tuple[Tensor, Tensor]:
        first, below = ranges(tree, own)
        first[1:] = first[tree.parents] + own[tree.parents]
        return first, below

    ranges = settling._ranges
    patch.setattr(settling, "_ranges", wrong)


def eos_forgotten(patch: pytest.MonkeyPatch) -> None:
    """EOS is a special token like others."""
    init = Settling.__init__

    def wrong(self: Settling, *arguments: Any) -> None:
        init(self, *arguments)
        self._special, self._eos = self._special + self._eos, 0

    patch.setattr(Settling, "__init__", wrong)


@pytest.mark.parametrize("bug", [siblings_forgotten, eos_forgotten])
def test_bugs_are_found(bug: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    assert not all(map(agrees, PAIRS))
