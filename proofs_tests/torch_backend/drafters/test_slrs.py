"""SLRS with byte-level drafters: psi is what the theory says, and blocks are the target's."""

import random
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor

from proofs_tests.helpers.torch.drafting import (
    Path,
    drafted,
    joint_error,
    laws_of,
    softmax,
    table_law,
    tiny_llama,
    toy_vocabulary,
)
from specref.algorithms.lookahead import until_determined
from specref.algorithms.text.push_forward import psi as psi_of_the_theory
from specref.models import Model
from specref.torch_backend.drafters import slrs
from specref.torch_backend.drafters.byte_laws import END, OTHER, ByteLaws
from specref.torch_backend.drafters.slrs import SlrsDrafter, first_token, psi
from specref.torch_backend.models.trees import TreeModel
from specref.torch_backend.shaping import shape_logits
from specref.torch_backend.validation import NO_DRAFT, OUTSIDE, validate
from specref.torch_backend.vocabularies.trie import ByteTrie
from specref.vocabulary import Vocabulary

SEEDS = range(24)
ALPHABET = b"abc"
SHARP = 1e-9


def doubles(numbers: Any) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def random_tokens(seed: int, complete: bool = True) -> list[bytes]:
    """Target tokens of one to four letters; complete: with every letter."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abc", k=rng.randint(2, 4))) for _ in range(rng.randint(1, 7))]
    letters = ["a", "b", "c"] if complete else ["b"]
    return [word.encode() for word in dict.fromkeys([*words, *letters])]


def law_after(text: bytes, seed: int) -> Tensor:
    """The law of a, b, c, END after a text."""
    return table_law(tuple(text), len(ALPHABET) + 1, seed)


def table(trie: ByteTrie, seed: int, other: float = 0.0) -> Tensor:
    """The laws at every inner node, with some mass of OTHER."""
    laws = torch.zeros(len(trie.inner), 258, dtype=torch.float64)
    for row, node in enumerate(trie.inner.tolist()):
        laws[row, [*ALPHABET, END]] = law_after(trie.prefixes[node], seed) * (1 - other)
    laws[:, OTHER] = other
    return laws


def enumerated(tokens: Sequence[bytes], seed: int, other: float = 0.0) -> dict[bytes, float]:
    """{first longest match, b"$" for EOS at once, b"" for none: its probability}, text by text."""
    law: dict[bytes, float] = {}

    def follow(text: bytes, weight: float) -> None:
        if any(token[: len(text)] == text and token != text for token in tokens):
            *letters, end = (law_after(text, seed) * (1 - other)).tolist()
            for letter, mass in zip(ALPHABET, letters, strict=True):
                follow(text + bytes([letter]), weight * mass)
            found = b"$" if not text else longest(text)
            law[found] = law.get(found, 0.0) + weight * end
            weight *= other
        law[longest(text)] = law.get(longest(text), 0.0) + weight

    def longest(text: bytes) -> bytes:
        return max((token for token in tokens if text.startswith(token)), key=len, default=b"")

    follow(b"", 1.0)
    return law


def reached(text: bytes, seed: int) -> float:
    """The probability that drafted bytes start with a text."""
    weight = 1.0
    for length in range(len(text)):
        weight *= float(law_after(text[:length], seed)[ALPHABET.index(text[length])])
    return weight


def by_differences(tokens: Sequence[bytes], seed: int, nearest: bool = True) -> list[float]:
    """R(t) less the sum of R over the nearest tokens below t, or (wrong) over all of them."""
    below = {
        token: [other for other in tokens if other != token and other.startswith(token)]
        for token in tokens
    }
    if nearest:
        below = {
            token: [t for t in under if not any(t in below[s] for s in under)]
            for token, under in below.items()
        }
    return [
        reached(token, seed) - sum(reached(other, seed) for other in below[token])
        for token in tokens
    ]


def psi_row(tokens: Sequence[bytes], seed: int, other: float = 0.0) -> Tensor:
    trie = ByteTrie({token: index for index, token in enumerate(tokens)})
    return psi(trie, table(trie, seed, other), len(tokens) + 1, eos=len(tokens))


@pytest.mark.parametrize("seed", SEEDS)
def test_psi_is_that_of_the_theory(seed: int) -> None:
    tokens = random_tokens(seed)
    target = Vocabulary([*tokens, b"$"], eos=b"$")
    letters = Vocabulary([b"a", b"b", b"c", b"$"], eos=b"$")

    def next_token(context: Sequence[int]) -> Any:
        return np.array(law_after(bytes(ALPHABET[i] for i in context), seed).tolist())

    expected = psi_of_the_theory(target, Model(letters, next_token), (), 5, until_determined)
    np.testing.assert_allclose(psi_row(tokens, seed).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("complete", [True, False])
def test_psi_is_what_enumeration_gives(seed: int, complete: bool) -> None:
    tokens = random_tokens(seed, complete)
    law = enumerated(tokens, seed, other=0.05)
    row = psi_row(tokens, seed, other=0.05).tolist()
    expected = [law.get(token, 0.0) for token in tokens] + [law[b"$"]]
    np.testing.assert_allclose(row, expected, atol=1e-12)
    assert abs(1 - sum(row) - law.get(b"", 0.0)) < 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_psi_is_reach_less_that_of_the_nearest_descendants(seed: int) -> None:
    tokens = random_tokens(seed)
    row = psi_row(tokens, seed)[:-1].tolist()
    np.testing.assert_allclose(row, by_differences(tokens, seed), atol=1e-12)


def test_subtracting_all_descendants_is_rejected() -> None:
    chained = [seed for seed in SEEDS if len(nested(random_tokens(seed))) > 0]
    assert chained, "no vocabulary has a token below a token below a token"
    for seed in chained:
        tokens = random_tokens(seed)
        wrong = by_differences(tokens, seed, nearest=False)
        row = psi_row(tokens, seed)[:-1].tolist()
        assert not np.allclose(row, wrong, atol=1e-6)


def nested(tokens: Sequence[bytes]) -> list[tuple[bytes, ...]]:
    return [
        chain
        for chain in product(tokens, repeat=3)
        if len(set(chain)) == 3 and chain[2].startswith(chain[1]) and chain[1].startswith(chain[0])
    ]


def boxes(trie: ByteTrie, laws: Tensor) -> Iterator[tuple[list[tuple[float, float]], str]]:
    """The coins of every way through the tree, as one interval for each byte drawn."""
    pending: list[tuple[list[tuple[float, float]], bytes]] = [([], b"")]
    while pending:
        box, text = pending.pop()
        row = int(trie.rows[trie.nodes[text]])
        if row < 0:
            yield box, text.decode()
            continue
        ends = laws[row].cumsum(0)
        for symbol in laws[row].nonzero()[:, 0].tolist():
            interval = (float(ends[symbol] - laws[row, symbol]), float(ends[symbol]))
            longer = text + bytes([symbol]) if symbol < END else b"?"
            if longer in trie.nodes:
                pending.append(([*box, interval], longer))
            else:
                yield [*box, interval], text.decode()


def sampled_law(trie: ByteTrie, laws: Tensor, eos: int) -> dict[int, float]:
    """The law of `first_token`, from the volumes of coins with one outcome."""
    law: dict[int, float] = {}
    for box, _ in boxes(trie, laws):
        unused = [0.5] * (trie.depth - len(box))
        corners = [
            [low + (high - low) * side for low, high in box] + unused
            for side in (SHARP, 0.5, 1 - SHARP)
        ]
        outcomes = {first_token(trie, laws, doubles(coins), eos) for coins in corners}
        assert len(outcomes) == 1, "the outcome changes where the drafter's law does not"
        volume = float(np.prod([high - low for low, high in box]))
        token = outcomes.pop()
        law[token] = law.get(token, 0.0) + volume
    return law


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_the_token_drawn_has_the_law_psi(seed: int) -> None:
    tokens = random_tokens(seed, complete=seed % 2 == 0)
    trie = ByteTrie({token: index for index, token in enumerate(tokens)})
    laws, eos = table(trie, seed, other=0.05), len(tokens)
    law, row = sampled_law(trie, laws, eos), psi(trie, laws, eos + 1, eos)
    for token in range(eos + 1):
        assert abs(law.get(token, 0.0) - float(row[token])) < 1e-12
    assert abs(law.get(OUTSIDE, 0.0) - (1 - float(row.sum()))) < 1e-12


# Models: the laws at the nodes, and whole iterations.

LETTERS = toy_vocabulary(b"c", b"a", b"b")
TARGET = toy_vocabulary(b"b", b"ab", b"a", b"aba")
EOS = 4
CONTEXT = [1, 0, 2]
BYTES = [1, 2, 2, 1]


def model(use_cache: bool = True) -> TreeModel:
    return TreeModel(tiny_llama(len(LETTERS), seed=4), use_cache)


def target_law(context: Sequence[int]) -> Tensor:
    return table_law(context, len(TARGET), seed=1)


def soft(logits: Tensor) -> Tensor:
    return shape_logits(logits, temperature=3.0)


def shaped(logits: Tensor) -> Tensor:
    return shape_logits(logits, temperature=0.8, top_p=0.9)


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("shape", [softmax, shaped], ids=["softmax", "shaped"])
@pytest.mark.parametrize("nodes", [1, 2, 512])
@pytest.mark.parametrize("use_cache", [True, False])
def test_laws_at_the_nodes_are_those_of_single_texts(
    use_cache: bool, nodes: int, shape: Any
) -> None:
    drafter, plain = model(use_cache), tiny_llama(len(LETTERS), seed=4)
    trie = ByteTrie(TARGET.by_bytes | {b"ca": 7, b"cbaa": 8})
    laws = ByteLaws(drafter, LETTERS, trie, shape, nodes)
    rows = [[1], [1, 0, 2], [1, 0], [1, 0, 2, 2, 1], [0]]
    for contexts in zip(rows, rows[::-1], strict=True):
        for context, found in zip(contexts, laws(contexts), strict=True):
            for row, node in enumerate(trie.inner.tolist()):
                text = [LETTERS.by_bytes[bytes([byte])] for byte in trie.prefixes[node]]
                with torch.no_grad():
                    q = shape(plain(torch.tensor([[*context, *text]])).logits[0, -1])
                assert (found[row, [ord("c"), ord("a"), ord("b"), END]] - q).abs().max() < 1e-9
    assert drafter.forwards == 5 * (1 + -(-(len(trie.inner) - 1) // nodes))


def test_nodes_that_the_drafter_cannot_spell_are_not_read() -> None:
    trie = ByteTrie(TARGET.by_bytes | {b"axb": 7, b"axbb": 8})
    drafter = model()
    ByteLaws(drafter, LETTERS, trie, softmax, 512)([[1, 0]])
    assert drafter.reads == 2 + len({b"a", b"ab"})


@pytest.mark.parametrize("nodes", [0, -1])
def test_a_forward_needs_a_node(nodes: int) -> None:
    message = rf"^nodes_per_forward = {nodes}: expected at least 1$"
    with pytest.raises(ValueError, match=message):
        ByteLaws(model(), LETTERS, ByteTrie(TARGET.by_bytes), softmax, nodes)
    with pytest.raises(ValueError, match=message):
        SlrsDrafter(model(), TARGET, LETTERS, softmax, nodes)


@pytest.mark.parametrize("more", [-1, 1])
def test_a_drafter_whose_logits_are_not_over_its_vocabulary_is_refused(more: int) -> None:
    size = len(LETTERS)
    other = TreeModel(tiny_llama(size + more, seed=4))
    message = (
        f"^the model has logits for {size + more} ids, the vocabulary {size}: pass size to "
        r"TokenVocabulary\.from_tokenizer$"
    )
    with pytest.raises(ValueError, match=message):
        ByteLaws(other, LETTERS, ByteTrie(TARGET.by_bytes), softmax, 512)([[1]])


def coin_rows(laws: Tensor, trie: ByteTrie) -> list[tuple[list[float], float]]:
    """The middle of every box of coins of one token, filled up to the tree's depth."""
    rows = []
    for box, _ in boxes(trie, laws):
        coins = [(low + high) / 2 for low, high in box] + [0.5] * (trie.depth - len(box))
        rows.append((coins, float(np.prod([high - low for low, high in box]))))
    return rows


def slrs_paths(drafter: SlrsDrafter, context: Sequence[int], reading: list[int]) -> list[Path]:
    """All drafts of two tokens, from the boxes of their coins."""
    laws, paths = ByteLaws(model(), LETTERS, drafter.trie, soft, 512), []
    for first, weight in coin_rows(laws([reading])[0], drafter.trie):
        token = first_token(drafter.trie, laws([reading])[0], doubles(first), EOS)
        piece = TARGET.spelled[token] if token >= 0 else None
        if piece is None:
            coins = [([*first, *[0.5] * drafter.trie.depth], weight)]
        else:
            longer = laws([[*reading, *(LETTERS.by_bytes[bytes([byte])] for byte in piece)]])[0]
            coins = [
                ([*first, *second], weight * other)
                for second, other in coin_rows(longer, drafter.trie)
            ]
        drafts = drafted(drafter, slrs, context, doubles([row for row, _ in coins]), 2)
        for tokens, rows, (_, mass) in zip(drafts.tokens, laws_of(drafts), coins, strict=True):
            paths.append(Path(tuple(tokens.tolist()), rows, mass))
    return paths


def merged(paths: Sequence[Path]) -> list[Path]:
    """One path for each sequence of tokens: their laws are the same."""
    found: dict[tuple[int, ...], Path] = {}
    for path in paths:
        same = found.get(path.tokens, Path(path.tokens, path.laws, 0.0))
        assert (same.laws - path.laws).abs().max() < 1e-12
        found[path.tokens] = Path(path.tokens, path.laws, same.weight + path.weight)
    return list(found.values())


@pytest.fixture(scope="module")
def two_tokens() -> list[Path]:
    drafter = SlrsDrafter(model(), TARGET, LETTERS, soft)
    return merged(slrs_paths(drafter, CONTEXT, BYTES))


def test_declared_laws_are_sampled(two_tokens: list[Path]) -> None:
    """The law of (t_1, t_2) from the coins' volumes is psi(t_1) psi(t_2 | t_1)."""
    assert abs(sum(path.weight for path in two_tokens) - 1) < 1e-9
    for path in two_tokens:
        declared = 1.0
        for token, law in zip(path.tokens, path.laws, strict=True):
            declared *= float({NO_DRAFT: 1.0, OUTSIDE: 1 - law.sum()}.get(token, law[token]))
        assert abs(path.weight - declared) < 1e-9


def test_blocks_are_the_targets(two_tokens: list[Path]) -> None:
    assert joint_error(two_tokens, target_law, CONTEXT, EOS) < 1e-9


def test_a_declared_law_of_exact_spellings_is_lossy(two_tokens: list[Path]) -> None:
    """R(t), the probability that the text starts with t, is no law of the first token."""
    wrong = [Path(path.tokens, starts_with(path), path.weight) for path in two_tokens]
    assert joint_error(wrong, target_law, CONTEXT, EOS) > 1e-3


def starts_with(path: Path) -> Tensor:
    laws = path.laws.clone()
    for token, piece in enumerate(TARGET.spelled):
        for other, longer in enumerate(TARGET.spelled):
            if piece and longer and longer != piece and longer.startswith(piece):
                laws[:, token] += path.laws[:, other]
    return laws


def test_what_is_drafted_is_valid_for_verification() -> None:
    drafter = SlrsDrafter(model(), TARGET, LETTERS, soft)
    drafts = drafter.draft([CONTEXT] * 12, 3, torch.arange(12), 0)
    validate(torch.full((12, 4, 5), 1 / 5, dtype=torch.float64), laws_of(drafts), drafts.tokens)
    assert {OUTSIDE, NO_DRAFT, EOS} <= set(drafts.tokens.flatten().tolist())
    ended = (drafts.tokens[:, :-1] < 0) | (drafts.tokens[:, :-1] == EOS)
    assert (drafts.tokens[:, 1:][ended] == NO_DRAFT).all()
    assert drafts.forwards == 2 * 3


def test_rows_and_iterations_do_not_disturb_each_other() -> None:
    drafter = SlrsDrafter(model(), TARGET, LETTERS, soft)
    contexts = [[1, 0], [2], [4, 4, 4]]
    for iteration in range(3):
        together = drafter.draft(contexts, 2, torch.arange(3), iteration)
        for row, context in enumerate(contexts):
            fresh = SlrsDrafter(model(use_cache=False), TARGET, LETTERS, soft)
            alone = fresh.draft([context], 2, torch.tensor([row]), iteration)
            assert together.tokens[row].tolist() == alone.tokens[0].tolist()
            assert (laws_of(together)[row] - laws_of(alone)[0]).abs().max() < 1e-9
        contexts = [[*context, 1] for context in contexts]


def test_the_contexts_of_selected_rows_are_not_read_again() -> None:
    """Of three rows two stay, in another order: their last tokens are read, and the tree."""
    drafter = SlrsDrafter(model(), TARGET, LETTERS, soft)
    contexts = [[first, *[1] * 8] for first in (0, 1, 2)]
    drafter.draft(contexts, 1, torch.arange(3), 0)
    before = drafter.model.reads
    drafter.select([2, 0])
    drafter.draft([contexts[2], contexts[0]], 1, torch.arange(2), 0)
    assert drafter.model.reads == before + 2 * (1 + len({b"a", b"ab"}))


def test_a_drafter_with_few_positions_reads_the_end_of_the_text() -> None:
    few = TreeModel(tiny_llama(len(LETTERS), positions=9))
    drafter = SlrsDrafter(few, TARGET, LETTERS, softmax)
    for length in range(4, 16):
        laws = laws_of(drafter.draft([[2] * length], 2, torch.tensor([length]), 0))
        assert 0 < float(laws[0, 0].sum()) < 1 + 1e-12


def test_at_temperature_0_psi_is_certain() -> None:
    drafter = SlrsDrafter(model(), TARGET, LETTERS, lambda logits: shape_logits(logits, 0.0))
    drafts = drafter.draft([[2]], 1, torch.tensor([0]), 0)
    assert sorted(laws_of(drafts)[0, 0].tolist()) in ([0] * 4 + [1], [0] * 5)


def test_a_drafter_of_longer_tokens_is_named() -> None:
    named = r"drafter token 1 \(\"b'ab'\"\) spells 2 bytes: .* use lazy-slrs"
    with pytest.raises(ValueError, match=named):
        SlrsDrafter(model(), TARGET, TARGET, softmax)
