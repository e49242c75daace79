"""Transformers' `generate` and ours on the same pairs and prompts: verdicts side by side.

Evidence (alpha 1e-9) and acceptance of first drafts (1e-6), against our own sum min(p, q), as in
`test_generations`. Transformers' TLI under sampling is lossy as shipped: the order in which
a fast tokenizer lists its vocabulary, which is drawn anew in each call, permutes the q that it
verifies with. That an order of hundreds of tokens is drawn that hides this has no probability
worth a number. Listed by id nothing is found, nor in its other paths.
"""

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import math
from typing import NamedTuple

import numpy as np

from gpu_tests.acceptance import Acceptance, acceptance
from gpu_tests.betting import ALPHA, log10_evidence
from gpu_tests.hugging import Path, draws, texts_by_transformers
from gpu_tests.lab import Figure, Lab
from gpu_tests.recording import Draws

LOSSY = -math.log10(ALPHA)
PATHS: dict[Path, tuple[str, str]] = {
    "ar": ("homogeneous", "autoregressive"),
    "pld": ("homogeneous", "autoregressive"),
    "sd": ("homogeneous", "standard"),
    "tli, sorted": ("large intersection", "tli"),
    "tli": ("large intersection", "tli"),
}


class Judged(NamedTuple):
    """A row of the table."""

    tokens: int
    evidence: float
    first: Acceptance | None

    @property
    def lossy(self) -> bool:
        return self.evidence >= LOSSY

    def __str__(self) -> str:
        verdict = "LOSSY" if self.lossy else "nothing found"
        first = f"; {self.first}" if self.first else ""
        return f"{verdict}, {self.tokens:,} tokens, evidence 10^{self.evidence:.1f}{first}"


def judged(found: Draws, device: str) -> Judged:
    return Judged(len(found.tokens), log10_evidence(found, device), next(acceptance(found), None))


def theirs(lab: Lab, path: Path) -> Judged:
    name, method = PATHS[path]
    pair, (count, tokens) = lab.pair(name), lab.sizes.texts
    prompts = pair.prompts(count)
    texts = texts_by_transformers(pair, path, prompts, tokens, np.random.default_rng(3))
    return judged(draws(pair, method, prompts, texts), lab.device)


@pytest.mark.parametrize(
    "path",
    [*(pytest.param(path, marks=pytest.mark.deep) for path in ("ar", "pld")), "sd", "tli, sorted"],
)
def test_nothing_is_found_in_transformers(lab: Lab, path: Path, figure: Figure) -> None:
    row = theirs(lab, path)
    figure(f"transformers, {path}: {row}")
    assert not row.lossy
    assert row.first is None or row.first.conforms


def test_tli_of_transformers_is_lossy_as_shipped(lab: Lab, figure: Figure) -> None:
    row = theirs(lab, "tli")
    figure(f"transformers, tli as shipped: {row}")
    assert row.lossy
    assert row.first is not None
    assert row.first.accepted > row.first.high


@pytest.mark.parametrize(
    "name", [pytest.param("autoregressive", marks=pytest.mark.deep), "standard", "tli"]
)
def test_nothing_is_found_in_ours(lab: Lab, name: str, figure: Figure) -> None:
    row = judged(lab.record(name), lab.device)
    figure(f"ours, {name}: {row}")
    assert not row.lossy
    assert row.first is None or row.first.conforms
