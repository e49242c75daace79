"""Adapters of small samplers: what they hand over, and the exact laws of what was found.

Everything is exact: randomness is intercepted, nothing is drawn. Functions of others are judged
where they are installed or cloned; twins of their signatures, right and wrong, everywhere.
"""

import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proofs_tests.pages import console_blocks
from specref import Model, Vocabulary, exact_distribution, is_lossless
from specref.adapters import IMPLEMENTATIONS, NotInstalledError
from specref.adapters.checkouts import from_checkout
from specref.algorithms import standard
from specref.conformance.suite import check
from specref.distributions import total_variation
from specref.probing import probe

torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")
pytestmark = pytest.mark.usefixtures("undiagnosed")

TROPHIES = console_blocks.ROOT / "docs" / "trophies.md"
AB = Vocabulary("ab")
EVEN = Model(AB, lambda context: ["1/2", "1/2"])
TURNING = Model(AB, lambda context: [0, 1] if context[-1:] == (0,) else [1, 0])
LEANING = Model(AB, lambda context: ["1/4", "3/4"] if context[-1:] == (0,) else ["1/2", "1/2"])


def on_the_page(name: str) -> Callable[..., Any]:
    """A function of a Python block of docs/trophies.md."""
    for block in console_blocks.blocks(TROPHIES):
        if block["language"] == "python" and f"def {name}(" in block["text"]:
            space: dict[str, Any] = {}
            exec(block["text"], space)
            return space[name]  # type: ignore[no-any-return]
    raise AssertionError(f"no block of the page has {name}")


def law(name: str, target: Model, drafter: Model, context: tuple[int, ...], number: int) -> Any:
    """The exact law of what a registered function returns."""
    run, rng = IMPLEMENTATIONS[name].load(), np.random.default_rng(1)
    run(target, drafter, context, number, rng)  # models are made, which draws numbers
    probed = probe(lambda: run(target, drafter, context, number, rng))
    assert probed.uninterpreted is None
    assert not probed.failures
    return probed.distribution


def needs(*names: str) -> None:
    for name in names:
        if reason := IMPLEMENTATIONS[name].not_run:
            pytest.skip(f"{name}: {reason}")


@pytest.mark.parametrize("number", [1, 2])
def test_capped(number: int) -> None:
    needs("sequential-speculative-decoding-capped")
    q = Model(AB, lambda context: ["9/10", "1/10"] if context else ["1/2", "1/2"])
    for kind, lossless in (("standard", True), ("naive", True), ("capped", number == 1)):
        blocks = law(f"sequential-speculative-decoding-{kind}", EVEN, q, (), number)
        whole = completed_by(EVEN, blocks, number + 1)
        expected = dict.fromkeys(whole, 2.0 ** -(number + 1))
        assert (total_variation(whole, expected) < 1e-6) == lossless
    if number == 2:
        step = on_the_page("capped_of_two")
        listed = exact_distribution(lambda chance: step(EVEN, q, (), 2, chance))
        assert total_variation(blocks, as_floats(listed)) < 1e-6


def test_capped_raises() -> None:
    needs("sequential-speculative-decoding-capped")
    p, q = (Model(Vocabulary("abc"), lambda context, row=row: row) for row in
            (["1/5", "3/10", "1/2"], ["1/2", "1/2", 0]))  # fmt: skip
    run = IMPLEMENTATIONS["sequential-speculative-decoding-capped"].load()
    with pytest.raises(RuntimeError, match="nan"):
        [run(p, q, (), 1, np.random.default_rng(seed)) for seed in range(30)]  # half of them


def test_rotalabs() -> None:
    needs("rotalabs-accel")
    report = check(IMPLEMENTATIONS["rotalabs-accel"].load(), only=["joint/probed"])
    assert "TV 0.100926" in str(report.results[0].message)


@pytest.mark.parametrize("number", [1, 2])
def test_csaq(number: int) -> None:
    needs("csaq-quant")
    first = dict.fromkeys((0, 1), 0.0)
    for text, mass in law("csaq-quant", LEANING, LEANING, (1,), number).items():
        first[text[0]] += mass
    assert first == pytest.approx({0: 0.25, 1: 0.75}, abs=1e-6)  # p = q = (1/2, 1/2)
    step = on_the_page("next_row")
    listed = exact_distribution(lambda chance: step(LEANING, LEANING, (1,), number, chance))
    assert sum(mass for text, mass in listed.items() if text[0] == 0) == Fraction(1, 4)


def test_litgpt() -> None:
    needs("litgpt-step", "litgpt-generate")
    assert law("litgpt-generate", TURNING, EVEN, (0,), 3) == {(0, 1, 0): 1.0}  # not (1, 0, 1)
    blocks = law("litgpt-step", TURNING, EVEN, (0,), 1)
    assert completed_by(TURNING, blocks, 2, (0,)) == pytest.approx({(1, 0): 1})


def test_romsto() -> None:
    needs("github-romsto-drafter", "github-romsto-ngrams")
    texts = law("github-romsto-drafter", EVEN, LEANING, (0, 0), 3)
    assert texts == pytest.approx(dict.fromkeys(texts, 0.125), abs=1e-6)
    texts = law("github-romsto-ngrams", EVEN, EVEN, (0, 0), 3)
    drafted = sum(mass for text, mass in texts.items() if text[:2] == (0, 0))
    assert drafted == pytest.approx(3 / 8)  # after a, where the n-gram is (a, a): 3/4 for 1/2
    step = on_the_page("drawn_again")
    sure = Model(AB, lambda context: [1, 0])
    assert is_lossless(step, EVEN, sure, lookahead=1).total_variation == Fraction(1, 4)


def test_medusa() -> None:
    needs("github-medusa-nucleus", "github-medusa-typical", "github-eagle")
    p = torch.full((1, 2, 2), 0.5).log()
    given = p, None, torch.tensor([[0]]), torch.tensor([[-1]])
    firsts = {"eagle": 0.5, "medusa-nucleus": 0.75, "medusa-typical": 1.0}
    for name, first in firsts.items():
        run = IMPLEMENTATIONS[f"github-{name}"].load()
        blocks = probe(lambda run=run: run(*given)[0][0, :1].tolist()).distribution
        assert blocks.get((0,)) == pytest.approx(first), name


def as_floats(law: Any) -> dict[Any, float]:
    return {block: float(mass) for block, mass in law.items()}


def completed_by(model: Model, blocks: Any, length: int, context: Any = ()) -> dict[Any, float]:
    """Blocks extended by the model to so many tokens."""
    whole: dict[Any, float] = {}
    for block, mass in blocks.items():
        if len(block) >= length:
            whole[block] = whole.get(block, 0.0) + mass
            continue
        p = model.next_token((*context, *block))
        longer = {(*block, x): mass * float(p[x]) for x in range(len(p)) if p[x]}
        for text, part in completed_by(model, longer, length, context).items():
            whole[text] = whole.get(text, 0.0) + part
    return whole


def twin(residual: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """What mini-infer's function gets and gives."""

    def speculative_step(target_model, draft_model, prefix_ids, k_draft=3, temperature=0.0):
        ids, laws = prefix_ids, []
        for _ in range(k_draft):
            laws.append((draft_model(ids)[0][0, -1] / temperature).softmax(-1))
            ids = torch.cat([ids, torch.multinomial(laws[-1], 1)[None]], dim=1)
        rows = target_model(ids)[0][0, prefix_ids.shape[1] - 1 :].softmax(-1)
        drafts = ids[0, prefix_ids.shape[1] :].tolist()
        for at, x in enumerate(drafts):
            if not torch.rand(()) * laws[at][x] < rows[at][x]:
                last = torch.multinomial(residual(rows[at], laws[at]), 1)
                return [*drafts[:at], int(last)], at
        return [*drafts, int(torch.multinomial(rows[-1], 1))], k_draft

    return speculative_step


@pytest.mark.parametrize("lookahead", [1, 2])
def test_steps_are_handed_models_with_the_laws_asked_for(lookahead: int, install: Any) -> None:
    listed = exact_distribution(
        lambda chance: standard.step(LEANING, EVEN, (1, 0), lookahead, chance)
    )
    found = {}
    for name, residual in (("right", lambda p, q: (p - q).clamp(min=0)), ("p", lambda p, q: p)):
        install("mini_infer.speculative.verifier", speculative_step=twin(residual))
        blocks = law("mini-infer", LEANING, EVEN, (1, 0), lookahead)
        found[name] = total_variation(blocks, as_floats(listed))
    assert found["right"] < 1e-6
    assert found["p"] > 0.01


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda target, drafter: None, "speculative_step has unknown parameters, target, drafter"),
        (lambda target_model: None, "speculative_step has no parameter draft_model"),
    ],
)
def test_other_signatures_are_not_run(function: Any, reason: str, install: Any) -> None:
    install("mini_infer.speculative.verifier", speculative_step=function)
    assert str(IMPLEMENTATIONS["mini-infer"].not_run).startswith(f"not_run ({reason}")


def test_texts_end_with_eos() -> None:
    from specref.adapters.toy_steps import WithTuples, on_toys

    ends = Model(Vocabulary("abc", eos="c"), lambda context: ["1/2", "1/4", "1/4"])
    seen = []

    def decode(target, drafter, prompt, number):
        seen.append((prompt.tolist(), number))
        return [0, 2, 1]

    assert on_toys(decode)(ends, ends, (1,), 3, np.random.default_rng(1)) == (0, 2)
    assert seen == [([[3, 1]], 3)]

    def cached(target, drafter, prompt, number):
        whole = target(prompt).logits
        first = WithTuples(target)(prompt[:, :1])
        rest = WithTuples(target)(prompt[:, 1:], past_key_values=first.past_key_values)
        assert torch.equal(torch.cat([first.logits, rest.logits], dim=1), whole)
        return [0]

    assert on_toys(cached)(LEANING, EVEN, (1, 0), 1, np.random.default_rng(1)) == (0,)


EVALUATE = """
import random
import helpers
import torch

def evaluate_posterior(logits, candidates, logits_processor):
    path, depth, p = 0, 0, None
    while True:
        rows = [i for i in range(len(candidates))
                if (candidates[i, : depth + 1] == candidates[path, : depth + 1]).all()]
        p = logits_processor(None, logits[rows[0], depth]).softmax(-1)
        tried = set()
        for i in rows if depth + 1 < candidates.shape[1] else ():
            x = int(candidates[i, depth + 1])
            if x < 0 or x in tried:
                continue
            tried.add(x)
            if random.random() < p[x]:
                path, depth = i, depth + 1
                break
            p = helpers.without(p, x)
        else:
            return torch.tensor(path), depth, p
"""
HELPERS = """
def without(p, x):
    p = p.clone()
    p[x] = 0
    return p / p.sum()
"""


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with a function of EAGLE's signature, written here."""
    folder = tmp_path / "SafeAILab" / "EAGLE"
    (folder / "eagle" / "model").mkdir(parents=True)
    (folder / "eagle" / "model" / "utils.py").write_text(EVALUATE)
    (folder / "helpers.py").write_text(HELPERS)
    monkeypatch.setenv("SPECREF_GITHUB", str(tmp_path))
    return folder


@pytest.mark.parametrize(("line", "code"), [("", 0), ("    p[x] = 0", 1)])
def test_trees_are_handed_over_as_paths(line: str, code: int, clone: Path) -> None:
    (clone / "helpers.py").write_text(
        HELPERS.replace(line, "    p[x] = p[x]") if line else HELPERS
    )
    before = {*sys.modules}, [*sys.path]
    judged = IMPLEMENTATIONS["github-eagle"].load()
    left = [
        name for name in {*sys.modules} - before[0] if name.split(".")[0] in ("eagle", "helpers")
    ]
    assert (left, sys.path) == ([], before[1])
    report = check(judged, contract="tree", only=["smoke/answers", "joint/probed"])
    assert report.exit_code == code, report


def test_what_a_clone_lacks_is_named(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    eagle, romsto = IMPLEMENTATIONS["github-eagle"], IMPLEMENTATIONS["github-romsto-ngrams"]
    assert "romsto/Speculative-Decoding" in romsto.missing
    assert "SafeAILab/EAGLE" not in eagle.missing
    with pytest.raises(NotInstalledError, match=r"git clone .* \$SPECREF_GITHUB/romsto"):
        from_checkout("romsto/Speculative-Decoding", "sampling", "speculative_generate")
    with pytest.raises(NotInstalledError, match="no attribute 'absent'"):
        from_checkout("SafeAILab/EAGLE", "helpers", "absent")
    (clone / "eagle" / "model" / "utils.py").write_text("def evaluate_posterior(logits, k): ...")
    assert eagle.not_run == "not_run (evaluate_posterior has unknown parameters, k)"
    (clone / "eagle" / "model" / "utils.py").write_text("from gpt2 import net\nx = net")
    (found,) = from_checkout("SafeAILab/EAGLE", "eagle.model.utils", "x", absent=("gpt2.net",))
    assert found is None
    monkeypatch.delenv("SPECREF_GITHUB")
    assert eagle.not_run == "not_run (SafeAILab/EAGLE is not cloned)"


def test_what_cannot_be_judged_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "its verification is a method of an object that holds two engines; no adapter"
    assert IMPLEMENTATIONS["github-sequoia"].not_run == f"not_run ({why})"
    monkeypatch.setitem(sys.modules, "tensorrt_llm", None)
    tensorrt = IMPLEMENTATIONS["tensorrt-llm"]
    assert tensorrt.not_run == "not_run (tensorrt_llm is not installed)"
    assert tensorrt.remedy == "its wheel needs CUDA; docs/engines.md has a block"


def test_kernels_without_cuda_ask_for_the_interpreter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    knobs = pytest.importorskip("triton", reason="not_run (triton is not installed)").knobs
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(knobs.runtime, "interpret", False)
    path = tmp_path / "sglang" / "kernels" / "ops" / "speculative"
    path.mkdir(parents=True)
    (tmp_path / "sglang" / "__init__.py").write_text("raise ImportError('many packages')")
    monkeypatch.syspath_prepend(tmp_path)
    sglang = IMPLEMENTATIONS["sglang"]
    assert str(sglang.not_run).startswith("not_run (sglang is not installed, or has no kernels/")
    (path / "reject_sampling.py").write_text(
        "def chain_speculative_sampling_triton(predicts): ..."
    )
    assert sglang.not_run == "not_run (no CUDA, and TRITON_INTERPRET=1 is not set)"
    monkeypatch.setattr(knobs.runtime, "interpret", True)
    named = "not_run (chain_speculative_sampling_triton has no parameter accept_index"
    assert str(sglang.not_run).startswith(named)
