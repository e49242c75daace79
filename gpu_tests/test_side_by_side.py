"""Transformers' `generate` on the pairs and prompts of `test_generations`, where ours is judged.

Evidence (alpha 1e-9) and acceptance of first drafts (1e-6), against our own sum min(p, q), as
there. Transformers' TLI under sampling is lossy as shipped: the order in which
a fast tokenizer lists its vocabulary, which is drawn anew in each call, permutes the q that it
verifies with. That an order of hundreds of tokens is drawn that hides this has no probability
worth a number. Listed by id nothing is found, nor in its other paths.

The paths run with `--deep`: proofs_tests' `test_transformers_generate` has the same verdicts on
toys, and `test_benchmarks` runs these paths. Last comes Transformers' verification, by the kit.
"""

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gpu_tests.benchmarks.contenders import Transformers
from gpu_tests.benchmarks.lines import BY_ID, LOOKUP, THEIRS, Line
from gpu_tests.judging import LOSSY, acceptance, log10_evidence, told
from gpu_tests.lab import Figure, Lab
from gpu_tests.pairs import LOOKAHEAD, prompts_of
from gpu_tests.prefixes import forced_laws
from gpu_tests.recording import Draws
from gpu_tests.sizes import PRETENDED
from specref import check
from specref.adapters import IMPLEMENTATIONS
from specref.contrib.engines.transformers import load_verify
from specref.contrib.real_models.pairs import Pair
from specref.contrib.real_models.speed import Timed
from specref.contrib.real_models.tally import Place
from specref.torch_backend import shape_logits
from specref.torch_backend.methods import DRAFTERS

PLAIN = "autoregressive"
PATHS = {
    PLAIN: ("homogeneous", PLAIN, THEIRS),
    LOOKUP: ("homogeneous", PLAIN, THEIRS),
    "standard": ("homogeneous", "standard", THEIRS),
    "tli, by id": ("large intersection", "tli", BY_ID),
    "tli": ("large intersection", "tli", THEIRS),
}


class Judged(NamedTuple):
    """A row of the table."""

    tokens: int
    evidence: float
    first: Place | None

    @property
    def lossy(self) -> bool:
        return self.evidence >= LOSSY

    def __str__(self) -> str:
        verdict = "LOSSY" if self.lossy else "nothing found"
        first = f"; first drafts: {told(self.first)}" if self.first else ""
        return f"{verdict}, {self.tokens:,} tokens, evidence 10^{self.evidence:.1f}{first}"


def judged(found: Draws, device: str) -> Judged:
    places = acceptance(found)
    return Judged(len(found.tokens), log10_evidence(found, device), places[0] if places else None)


def draws(
    pair: Pair, method: str, prompts: Sequence[Sequence[int]], texts: Sequence[Timed]
) -> Draws:
    """Tokens of some texts with p, and at the first draft of each block with a method's q."""
    model = pair.target.model
    p = forced_laws(model, prompts, [text.tokens for text in texts], shape_logits).cpu()
    q, kept = p.clone(), torch.zeros(len(p), dtype=torch.bool)
    starts, contexts, end = [], [], 0
    for prompt, text in zip(prompts, texts, strict=True):
        for part in text.blocks(len(prompt)):
            if part.drafted and method != PLAIN:
                starts.append(end + part.start)
                contexts.append([*prompt, *text.tokens[: part.start]])
                kept[starts[-1]] = part.accepted > 0
        end += len(text.tokens)
    drafted = torch.zeros_like(kept)
    if contexts:
        q[starts], drafted[starts] = _first_laws(pair, method, contexts), True
    tokens = torch.tensor([token for text in texts for token in text.tokens])
    return Draws(p, q, tokens, torch.zeros_like(tokens), drafted, kept)


def _first_laws(pair: Pair, method: str, contexts: Sequence[Sequence[int]]) -> Tensor:
    seeds = torch.zeros(len(contexts), dtype=torch.int64, device=pair.target.model.device)
    drafts = DRAFTERS[method](pair.for_methods(shape_logits)).draft(contexts, 1, seeds, 0)
    assert drafts.laws is not None
    return drafts.laws[:, 0].float().cpu()


def theirs(lab: Lab, path: str) -> Judged:
    (name, method, by), (count, tokens) = PATHS[path], lab.sizes.texts
    pair = lab.pair(name)
    prompts, rng = prompts_of(pair, count), np.random.default_rng(3)
    line = Line(name, LOOKUP if path == LOOKUP else method, 1.0, by, 1, count, tokens, LOOKAHEAD)
    generate = Transformers(pair, line).text
    texts = [generate(prompt, tokens, rng) for prompt in prompts]
    return judged(draws(pair, method, prompts, texts), lab.device)


@pytest.mark.deep
@pytest.mark.parametrize("path", [path for path in PATHS if path != "tli"])
def test_nothing_is_found_in_transformers(lab: Lab, path: str, figure: Figure) -> None:
    row = theirs(lab, path)
    figure(f"transformers, {path}: {row}")
    assert not row.lossy
    assert row.first is None or row.first.conforms


@pytest.mark.deep
def test_tli_of_transformers_is_lossy_as_shipped(lab: Lab, figure: Figure) -> None:
    row = theirs(lab, "tli")
    figure(f"transformers, tli as shipped: {row}")
    assert row.first is not None
    assert row.lossy or not lab.finds
    assert row.first.accepted > row.first.interval[1] or not lab.finds


KNOWN = {known.check: known.reason for known in IMPLEMENTATIONS["transformers"].known}


def test_transformers_on_cuda_is_lossless(cuda: str) -> None:
    """Alpha 1e-9; any law at total variation 0.2 is found 999 times in 1,000."""
    only = ["smoke/answers", "smoke", "boundary", "joint/wide", "joint/eos"]
    if cuda == PRETENDED:
        only = only[:1]
    report = check(
        load_verify(cuda),
        only=only,
        detect_tv=0.2,
        seed=11,
        expected_failures=KNOWN,
    )
    assert report.exit_code == 0, report
