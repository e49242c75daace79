"""psi of real drafters by expansion, and acceptance from it, beside theory and the backend."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import numpy as np
import torch
from torch import Tensor

from gpu_tests.benchmarks.slrs_acceptance import (
    Key,
    Laws,
    accepted,
    match_acceptance,
    text_acceptance,
    token_acceptance,
)
from gpu_tests.benchmarks.slrs_expansion import Expansion, Law, Reading
from gpu_tests.benchmarks.slrs_temperature import MeasuredPair, Sizes
from gpu_tests.pairs import Models, card_entries
from specref import Model, Vocabulary
from specref.models import hashed_model
from specref.rules import RULES
from specref.theory import acceptance, decompositions, psi, until_determined
from specref.torch_backend.drafters.lazy_verification import LazyVerifier
from specref.torch_backend.shaping import shape_logits
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary
from specref.vocabulary import Tokens

END, LOOKAHEAD = b"$", 6
TARGET = Vocabulary([b"a", b"b", b"ab", b"abb", b"ba", END], eos=END)
DRAFTERS = (
    Vocabulary([END, b"a", b"b"], eos=END),
    Vocabulary([b"a", b"b", b"ab", b"bb", END], eos=END),
    Vocabulary([b"ba", b"a", END, b"b", b"bba"], eos=END),
)
built = pytest.mark.skipif(not card_entries(), reason="not_run (fixtures/models is not built)")


def as_tokens(vocabulary: Vocabulary) -> TokenVocabulary:
    """The same tokens as the torch backend has them: EOS is special and writes nothing."""
    pieces: Sequence[Any] = vocabulary.tokens
    spelled = tuple(None if piece == END else piece for piece in pieces)
    eos = vocabulary.ids[END]
    return TokenVocabulary(tuple(piece.decode() for piece in pieces), spelled, {"eos": eos}, None)


def logits_of(model: Model) -> Callable[[Sequence[Tokens]], Tensor]:
    """What `Reading` gives, from a model in fractions."""

    def logits(paths: Sequence[Tokens]) -> Tensor:
        rows = [[float(q) for q in model.next_token(path)] for path in paths]
        return torch.tensor(rows, dtype=torch.float64).log()

    return logits


def expanded(drafter: Model, tolerance: float = 0.0, at_once: int = 256) -> Law:
    """psi of a toy drafter by expansion, at one temperature."""
    vocabularies = as_tokens(TARGET), as_tokens(drafter.vocabulary)
    shape = partial(torch.softmax, dim=-1)
    return Expansion(*vocabularies, [shape], tolerance, at_once)(logits_of(drafter))


def exact_psi(drafter: Model) -> Tensor:
    law = psi(TARGET, drafter, (), LOOKAHEAD, until_determined)
    return torch.tensor([float(mass) for mass in law], dtype=torch.float64)


def by_decompositions(drafter: Model) -> Tensor:
    """Planted: psi as the mass of the exact decompositions of each token."""

    def mass(path: Tokens) -> Fraction:
        laws = [drafter.next_token(path[:k])[token] for k, token in enumerate(path)]
        return Fraction(np.prod(np.array(laws, dtype=object)))

    ways = [decompositions(token, drafter.vocabulary) for token in TARGET.tokens]
    masses = [float(sum(mass(tuple(way)) for way in each)) for each in ways]
    return torch.tensor(masses, dtype=torch.float64)


@pytest.mark.parametrize("vocabulary", DRAFTERS)
def test_expansion_is_psi(vocabulary: Vocabulary) -> None:
    for seed in range(5):
        drafter = hashed_model(vocabulary, f"q {seed}")
        found, expected = expanded(drafter), exact_psi(drafter)
        torch.testing.assert_close(found.known[0], expected, rtol=0, atol=1e-12)
        assert float(found.open) == 0
        planted = by_decompositions(drafter)
        assert float((planted - expected).abs().max()) > 1e-3


@pytest.mark.parametrize("vocabulary", DRAFTERS)
def test_bounds_hold_at_every_stage(vocabulary: Vocabulary) -> None:
    read_by_tolerance = []
    for tolerance in (0.9, 0.5, 0.2, 0.1, 0.01, 0.0):
        drafters = [hashed_model(vocabulary, f"q {seed}") for seed in range(5)]
        found = [bounded(drafter, tolerance) for drafter in drafters]
        read_by_tolerance.append(sum(law.nodes for law in found))
    assert read_by_tolerance == sorted(read_by_tolerance)
    assert read_by_tolerance[0] < read_by_tolerance[-1]


def bounded(drafter: Model, tolerance: float) -> Law:
    """An expansion, path by path, whose bounds are those of psi and of acceptance."""
    p, expected = torch.full((len(TARGET),), 1 / len(TARGET)).double(), exact_psi(drafter)
    law = expanded(drafter, tolerance, at_once=1)
    known, left = law.known[0], float(law.open)
    assert left <= tolerance
    assert bool((known <= expected + 1e-12).all())
    assert float(known.sum()) + left == pytest.approx(1)
    low, high = text_acceptance(p, known, left)
    assert low - 1e-12 <= token_acceptance(p, expected) <= high + 1e-12
    low, high = match_acceptance(p, known, left)
    assert low - 1e-12 <= float((p * expected).sum()) <= high + 1e-12
    return law


@pytest.mark.parametrize("vocabulary", DRAFTERS)
def test_acceptance_is_that_of_theory(vocabulary: Vocabulary) -> None:
    noticed = [missed(vocabulary, f"{seed}") for seed in range(5)]
    assert max(slrs for slrs, _ in noticed) > 1e-3
    assert max(slem for _, slem in noticed) > 1e-3


def missed(vocabulary: Vocabulary, key: str) -> tuple[float, float]:
    """Check the rates of a pair; by how much planted ones of SLRS and SLEM miss theirs."""
    target, drafter = hashed_model(TARGET, f"p {key}"), hashed_model(vocabulary, f"q {key}")
    p = torch.tensor([[float(mass) for mass in target.next_token(())]], dtype=torch.float64)
    q = torch.zeros(1, len(TARGET)).double()
    for token, mass in zip(vocabulary.tokens, drafter.next_token(()), strict=True):
        if token in TARGET.ids:
            q[0, TARGET.ids[token]] = float(mass)
    submitted = {"union": q, "tli": q / q.sum()}

    def rates(law: Law) -> dict[str, float]:
        found = accepted(Laws(p, submitted, law), [1.0])
        assert all(interval.low == interval.high for interval in found.values())
        return {of.method: interval.low for of, interval in found.items()}

    expected = {
        method: float(RULES[method].acceptance_rate(target, drafter, (), LOOKAHEAD))
        for method in ("union", "tli", "slem")
    }
    lengths = acceptance.slrs(target, drafter, (), LOOKAHEAD, until_determined)
    expected["slrs"] = float(acceptance.rate(lengths))
    exact = Law(exact_psi(drafter)[None], torch.zeros(1), 0)
    assert rates(exact) == pytest.approx(expected, abs=1e-12)
    planted = exact._replace(known=by_decompositions(drafter)[None])
    wrong = rates(planted)
    return abs(wrong["slrs"] - expected["slrs"]), abs(wrong["slem"] - expected["slem"])


@pytest.fixture(scope="module")
def measured() -> MeasuredPair:
    """A real pair whose drafter writes bytes."""
    return MeasuredPair(Models("cpu").pair("byte-level"), Sizes(temperatures=(0.0, 1.0)))


@built
@torch.inference_mode()
def test_laws_are_those_of_the_backend(measured: MeasuredPair) -> None:
    """Psi is within the backend's bounds, to 1e-5: the models' float32, read in other batches."""
    context = measured.contexts()[0][0]
    laws = measured.laws(context)
    drafter = measured.pair.drafts_by("slrs", partial(shape_logits, temperature=1.0))
    verifier = drafter.draft([context], 1, torch.tensor([1]), 0).verifier
    assert isinstance(verifier, LazyVerifier)
    psi, zero = laws.psi.known[1].double(), torch.zeros(1, dtype=torch.int64)
    bounds = [verifier.bounds.of(zero, zero + token) for token in range(len(psi))]
    lower, upper = (torch.cat(side) for side in zip(*bounds, strict=True))
    assert within(psi, lower, upper)
    assert not within(psi.roll(1), lower, upper)
    union, tli = (laws.submitted[name][1].double() for name in ("union", "tli"))
    torch.testing.assert_close(tli, union / union.sum(), rtol=0, atol=1e-6)
    assert laws.psi.known[0].tolist().count(1.0) == 1
    at = accepted(laws, (0.0, 1.0))
    assert at[Key("slem", 0.0, 0.0)] == at[Key("slrs", 0.0, 0.0)]
    torch.testing.assert_close(laws.p.sum(1), torch.ones(2).double())


def within(psi: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor) -> bool:
    return bool(((lower - psi < 1e-5) & (psi - upper < 1e-5)).all())


@built
@torch.inference_mode()
def test_reading_is_the_model(measured: MeasuredPair) -> None:
    reading = Reading(measured.pair.drafter, (256, 100, 101))
    paths = [(102, 103), (), (102,), (110,)]
    alone = [
        measured.pair.drafter(input_ids=torch.tensor([[256, 100, 101, *path]])).logits[0, -1]
        for path in paths
    ]
    torch.testing.assert_close(reading(paths), torch.stack(alone), rtol=0, atol=1e-4)
    swapped = torch.stack(alone[::-1])
    assert float((reading(paths) - swapped).abs().max()) > 0.1
