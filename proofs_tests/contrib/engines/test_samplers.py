"""Adapters of small samplers: what they hand over, and the exact laws of what was found.

Everything is exact: randomness is intercepted, nothing is drawn. Functions of others are judged
where they are installed or cloned; twins of their signatures, right and wrong, everywhere.
"""

import random
import sys
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from proofs_tests.pages import console_blocks
from specref import Model, Vocabulary, exact_distribution, is_lossless
from specref.adapters import IMPLEMENTATIONS, NotInstalledError
from specref.algorithms import standard
from specref.conformance.greedy import greedy_text
from specref.conformance.public import check
from specref.contracts.capabilities import capabilities_of
from specref.contrib.engines import (
    candidates,
    csaq,
    economize,
    feifeibear,
    hsd,
    jaymody,
    litgpt,
    lookahead,
    lucidrains,
    mini_infer,
    romsto,
    rotalabs_accel,
    seqspecdecod,
    sequoia,
    sglang,
    ssd,
)
from specref.contrib.engines.checkouts import from_checkout
from specref.distributions import total_variation
from specref.models import hashed_model
from specref.probing import probe

torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")
pytestmark = pytest.mark.usefixtures("undiagnosed")

TROPHIES = console_blocks.ROOT / "docs" / "records" / "trophies.md"
AB = Vocabulary("ab")
EVEN = Model(AB, lambda context: ["1/2", "1/2"])
TURNING = Model(AB, lambda context: [0, 1] if context[-1:] == (0,) else [1, 0])
LEANING = Model(AB, lambda context: ["1/4", "3/4"] if context[-1:] == (0,) else ["1/2", "1/2"])


def on_the_page(name: str) -> Callable[..., Any]:
    """A function of a Python block of docs/records/trophies.md."""
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


@pytest.mark.parametrize("number", [1, 2])
def test_hsd(number: int) -> None:
    needs("github-hsd-chain")
    run, step = IMPLEMENTATIONS["github-hsd-chain"].load(), on_the_page("uncapped")
    target, drafter = (Model(AB, lambda context, p=p: p) for p in (["3/4", "1/4"], ["1/2", "1/2"]))
    blocks: dict[Any, float] = {}
    drafts = [(x, y)[:number] for x in range(2) for y in range(number)]
    for given in drafts:
        p, q = np.full((1, number + 1, 2), [0.75, 0.25]), np.full((1, number, 2), 0.5)
        probed = probe(
            lambda p=p, q=q, given=given: tuple(
                run(p, q, np.array([given]), rng=np.random.default_rng(1))[0][0].tolist()
            )
        )
        assert probed.uninterpreted is None
        for padded, mass in probed.distribution.items():
            block = tuple(x for x in padded if x >= 0)
            blocks[block] = blocks.get(block, 0) + mass / len(drafts)
    whole = completed_by(target, blocks, number + 1)
    expected = completed_by(target, {(): 1.0}, number + 1)
    assert total_variation(whole, expected) == pytest.approx((number - 1) / 16, abs=1e-6)
    if number == 2:
        listed = exact_distribution(lambda chance: step(target, drafter, (), 2, chance))
        assert total_variation(blocks, as_floats(listed)) < 1e-6


def test_ssd() -> None:
    needs("github-ssd", "github-ssd-defaults")
    step = on_the_page("argmax_kept")
    assert is_lossless(step, LEANS_TO_B, EVEN, lookahead=1).total_variation == Fraction(1, 8)
    given = torch.tensor([[[0.25, 0.75]] * 2]).log(), torch.tensor([[[0.5, 0.5]]]).log()
    for name, first in (("github-ssd", 0.75), ("github-ssd-defaults", 0.875)):
        run, found = IMPLEMENTATIONS[name].load(), 0.0
        for x in range(2):
            blocks = probe(
                lambda run=run, x=x: run(*given, torch.tensor([[x]]))[0][0, :1].tolist()
            )
            found += blocks.distribution.get((1,), 0) / 2
        assert found == pytest.approx(first, abs=1e-6), name


def test_sequoia() -> None:
    """After b comes a, surely, and b is the second draft of three in four."""
    needs("github-sequoia")
    run, step = IMPLEMENTATIONS["github-sequoia"].load(), on_the_page("written_first")
    target = Model(AB, lambda context: [1, 0] if context else [0, 1])
    drafter = Model(AB, lambda context: ["3/4", "1/4"])
    assert is_lossless(step, target, drafter, lookahead=1).total_variation == Fraction(3, 4)
    blocks = Counter(run(target, drafter, (), 1, np.random.default_rng(x)) for x in range(200))
    assert {*blocks} == {(0, 0), (1, 0)}
    assert 120 < blocks[0, 0] < 180


def test_lookahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law is exact where the window begins with the first token of the prompt."""
    needs("github-lookahead", "github-lookahead-greedy")
    sampled, greedy = (lookahead.load_generate(greedy) for greedy in (False, True))
    target, lengths = hashed_model(AB, "p"), []
    from transformers import StoppingCriteriaList

    ended = StoppingCriteriaList.__call__

    def noted(self, input_ids, scores, **others):
        lengths.append(input_ids.shape[1])
        return ended(self, input_ids, scores, **others)

    monkeypatch.setattr(StoppingCriteriaList, "__call__", noted)
    text = greedy(target, EVEN, (0,), 60, np.random.default_rng(1))
    assert text == greedy_text(target, (0,), 60)
    sampled(target, EVEN, (0,), 60, np.random.default_rng(1))
    assert len(lengths) < 100  # passes of the model for 120 tokens
    monkeypatch.setattr(random, "choice", lambda tokens: tokens[0])
    texts = law("github-lookahead", target, EVEN, (0,), 5)
    assert total_variation(texts, completed_by(target, {(): 1.0}, 5, (0,))) < 1e-6


LEANS_TO_B = Model(AB, lambda context: ["1/4", "3/4"])


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


@pytest.mark.deep(one_in=2)
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


def of_another(a): ...


class Engine:
    _generate_speculative = of_another

    def _swap_to_verify(self): ...


@pytest.mark.parametrize(
    ("name", "modules"),
    [
        ("litgpt-step", {"litgpt.generate.speculative_decoding": "speculative_decoding"}),
        ("litgpt-generate", {"litgpt.generate.speculative_decoding": "generate"}),
        (
            "economize",
            {
                "economize.decoding.verifiers": "RejectionVerifier",
                "economize.decoding.protocols": "Draft",
                "economize.decoding.config": "DecodeConfig",
                "economize.decoding.selectors": "TopPSampler",
            },
        ),
        ("lucidrains", {"speculative_decoding": "speculative_decoding"}),
        ("csaq-quant", {"csaq.inference": "CSAQInferenceEngine"}),
        ("rotalabs-accel", {"rotalabs_accel.speculative.core": "verify_tokens"}),
        (
            "sequential-speculative-decoding-standard",
            {"seqspecdecod.standard_sd": "standard_speculative_step"},
        ),
    ],
)
def test_no_function_of_another_signature_is_called(
    name: str, modules: dict[str, str], install: Any
) -> None:
    for module, function in modules.items():
        install(module, **{function: Engine if name == "csaq-quant" else of_another})
    with pytest.raises(NotInstalledError, match=r"has unknown parameters, a$"):
        IMPLEMENTATIONS[name].load()


@pytest.mark.parametrize(
    ("load", "packages"),
    [
        (candidates.load_eagle, "torch transformers"),
        (csaq.load_generate, "csaq-quant"),
        (economize.load_verify, "economize"),
        (partial(feifeibear.load_generate, "speculative_sampling"), "torch transformers tqdm"),
        (jaymody.load_generate, "torch transformers tqdm"),
        (litgpt.load, "litgpt"),
        (lookahead.load_generate, "torch transformers"),
        (lucidrains.load_generate, "speculative-decoding beartype einops"),
        (hsd.load_verify, "torch transformers"),
        (mini_infer.load_step, "mini-infer"),
        (romsto.load_generate, "torch transformers termcolor"),
        (rotalabs_accel.load_verify, "rotalabs-accel"),
        (partial(seqspecdecod.load_step, "standard"), "sequential-speculative-decoding"),
        (sequoia.load_step, "torch transformers"),
        (sglang.load_verify, "torch triton"),
        (ssd.load_verify, "torch transformers"),
    ],
)
def test_a_loader_says_what_to_install(
    load: Callable[[], Any], packages: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        NotInstalledError, match=f"^torch is not installed: pip install {packages}$"
    ):
        load()


def test_texts_end_with_eos() -> None:
    from specref.contrib.engines.toys import WithTuples, on_toys

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


def rows(logits: Any) -> list[list[float]]:
    """The laws of a toy over two tokens; a third starts texts, and is never drawn."""
    assert logits.shape[0] == 1
    laws = logits[0].double().softmax(-1).numpy().round(6).tolist()
    assert all(law[2:] in ([], [0.0]) for law in laws)
    return [law[:2] for law in laws]


HALVES, LEANS = [0.5, 0.5], [0.25, 0.75]
ASKED = LEANING, EVEN, (1, 0)


def test_litgpt_is_handed_networks_with_a_cache(install: Any) -> None:
    """What was fed last at a position counts, as in its buffers."""

    def step(
        draft_model,
        target_model,
        token,
        input_pos,
        input_pos_maxp1,
        speculative_k,
        **sample_kwargs,
    ):
        assert (token.tolist(), input_pos.tolist(), input_pos_maxp1) == ([0], [2], 3)
        assert (speculative_k, sample_kwargs) == (2, {"temperature": 1.0})
        fed = torch.tensor([[0, 0, 1]]), torch.tensor([2, 3, 4])
        assert rows(target_model(*fed, 5)) == [LEANS, LEANS, HALVES]
        assert rows(draft_model(*fed, 5)) == [HALVES] * 3
        assert rows(target_model(torch.tensor([[1]]), torch.tensor([3]), 4)) == [HALVES]
        assert rows(target_model(torch.tensor([[1, 0]]), torch.tensor([3, 4]), 5))[1] == LEANS
        assert target_model.max_seq_length == 1003
        return torch.tensor([0, 1])

    def generate(
        draft_model, target_model, prompt, max_returned_tokens, temperature=1.0, top_k=None,
        top_p=1.0, stop_tokens=(), include_prompt=True, speculative_k=0,
    ):  # fmt: skip
        assert (prompt.tolist(), max_returned_tokens, speculative_k) == ([2, 1, 0], 7, 3)
        whole = prompt[None], torch.arange(3)
        assert rows(target_model(*whole, 3))[1:] == [HALVES, LEANS]
        assert rows(draft_model(*whole, 3)) == [HALVES] * 3
        return torch.cat([prompt, torch.tensor([0, 1, 1, 0])]), None

    install("litgpt.generate.speculative_decoding", speculative_decoding=step, generate=generate)
    rng = np.random.default_rng(1)
    assert IMPLEMENTATIONS["litgpt-step"].load()(*ASKED, 2, rng) == (0, 1)
    assert IMPLEMENTATIONS["litgpt-generate"].load()(*ASKED, 3, rng) == (0, 1, 1)


def test_economize_is_handed_drafts_and_a_sampler_that_changes_nothing(install: Any) -> None:
    drafts = torch.tensor([[0, 1], [2, 0], [1, -1], [3, 3]])
    p, q = torch.rand(4, 3, 4).log(), torch.tensor([0.5, 0.25, 0.0, 0.25]).expand(4, 2, 4).log()
    parents, seeds = torch.tensor([[-1, 0], [-1, -1], [-1, -1], [-1, 0]]), []

    class TopPSampler:
        def __init__(self, temperature, top_p, seed, device=None):
            assert (temperature, top_p) == (1, 1)
            seeds.append(seed)

    class RejectionVerifier:
        def __init__(self, config):
            assert config == {"verifier": "rejection"}

        def verify_batch(self, logits, draft, sampler, *others):
            assert torch.equal(logits, p)
            assert torch.equal(draft[0], drafts)
            assert (draft[1:3], others) == (([2, 2, 1, 2], None), (None, None))
            assert draft[3] is None or torch.allclose(draft[3], q.exp())
            assert isinstance(sampler, TopPSampler)
            return torch.tensor([2, 0, 1, 1]), torch.tensor([3, 0, 2, 0])

        def verify_tree(self, logits, draft, sampler):
            assert draft[2] is parents
            return [[0, 1], [], [0], [0]], torch.tensor([3, 0, 2, 0])

    install("economize.decoding.verifiers", RejectionVerifier=RejectionVerifier)
    install("economize.decoding.protocols", Draft=lambda *given: given)
    install("economize.decoding.config", DecodeConfig=dict)
    install("economize.decoding.selectors", TopPSampler=TopPSampler)
    lines, trees = (IMPLEMENTATIONS[f"economize{end}"].load() for end in ("", "-tree"))
    rng = np.random.default_rng(1)
    for tokens, counts in (
        lines(p, q, drafts, rng=rng),
        lines(p, None, drafts, rng=rng),
        trees(p, q, drafts, parents, rng=rng),
    ):
        assert tokens.tolist() == [[0, 1, 3], [0, -1, -1], [1, 2, -1], [3, 0, -1]]
        assert counts.tolist() == [3, 1, 2, 2]
    assert len({*seeds}) == 3
    assert 2**60 < max(seeds) < 2**63


def test_lucidrains_is_handed_networks(install: Any) -> None:
    def loop(
        net, small_net, prompt, seq_len, gamma=5, temperature=1.0, filter_thres=0.9, lenience=1.0,
        pad_id=0,
    ):  # fmt: skip
        assert (prompt.tolist(), seq_len, gamma) == ([[2, 1, 0]], 5, 3)
        assert (temperature, filter_thres) == (1, 0)
        for network, last in ((net, LEANS), (small_net, HALVES)):
            logits, (embeds, cache) = network(
                prompt, seq_start_pos=None, cache=None, return_cache=True
            )
            assert rows(logits)[1:] == [HALVES, last]
            assert (embeds.shape, cache) == ((1, 3, 1), None)
        return torch.tensor([[0, 1]]), 1.0

    install("speculative_decoding", speculative_decoding=loop)
    run = IMPLEMENTATIONS["lucidrains"].load()
    assert run(*ASKED, 2, np.random.default_rng(1)) == (0, 1)


def test_csaq_is_handed_two_models(install: Any) -> None:
    class CSAQInferenceEngine:
        def __init__(self, model, budget, verbose=True):
            assert (budget, verbose) == ({}, False)
            self._hooks = []

        def _swap_to_verify(self):
            raise AssertionError("swaps weights")

        def _generate_speculative(self, input_ids, max_new_tokens, lookahead, temperature, top_p):
            assert (input_ids.tolist(), max_new_tokens) == ([[2, 1, 0]], 2)
            assert (lookahead, temperature, top_p) == (3, 1, 1)
            self._build_hooks()
            assert self._hooks
            for swap, last in (
                (self._swap_to_verify, LEANS),
                (self._swap_to_draft, HALVES),
                (self._ensure_draft_state, HALVES),
            ):
                swap()
                first = self.model(input_ids[:, :2])
                assert rows(first.logits)[1:] == [HALVES]
                assert rows(self.model(input_ids[:, 2:], first.past_key_values).logits) == [last]
            return torch.tensor([[2, 1, 0, 0, 1]]), {}

    install("csaq.inference", CSAQInferenceEngine=CSAQInferenceEngine)
    run = IMPLEMENTATIONS["csaq-quant"].load()
    assert run(*ASKED, 2, np.random.default_rng(1)) == (0, 1)


def test_rotalabs_is_handed_q_of_the_drafts(install: Any) -> None:
    def verify_tokens(
        model, input_ids, draft_tokens, draft_probs, past_key_values, temperature=1.0, top_p=0.9,
        use_sampling=True,
    ):  # fmt: skip
        assert (input_ids.shape, past_key_values) == ((1, 1), None)
        assert draft_tokens.tolist() == [0, 1]
        assert draft_probs.tolist() == pytest.approx([0.125, 0.75])
        ids = torch.cat([input_ids, draft_tokens[None]], dim=1)
        out = model(ids, past_key_values=None, use_cache=True)
        assert out.logits[0].exp().tolist() == pytest.approx(np.array(p[0]))
        assert out.past_key_values is None
        return torch.tensor([0, 1, 0]), 2

    install("rotalabs_accel.speculative.core", verify_tokens=verify_tokens)
    run = IMPLEMENTATIONS["rotalabs-accel"].load()
    p, q = np.array([[HALVES, LEANS, HALVES]]), np.array([[[0.125, 0.875], [0.25, 0.75]]])
    tokens, counts = run(p, q, np.array([[0, 1]]), rng=np.random.default_rng(1))
    assert (tokens.tolist(), counts.tolist()) == ([[0, 1, 0]], [3])


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("standard", "standard_sd.standard_speculative_step"),
        ("naive", "naive_hsd.naive_hsd_step"),
        ("capped", "capped_hsd.capped_hsd_step"),
    ],
)
def test_sequential_steps_are_handed_toys(kind: str, place: str, install: Any) -> None:
    def step(
        draft_model, target_model, input_ids, gamma, draft_temperature=0.0, target_temperature=0.0
    ):
        assert (input_ids.tolist(), gamma) == ([[2, 1, 0]], 2)
        assert (draft_temperature, target_temperature) == (1, 1)
        assert rows(target_model(input_ids).logits)[1:] == [HALVES, LEANS]
        assert rows(draft_model(input_ids).logits)[1:] == [HALVES, HALVES]
        return torch.tensor([[2, 1, 0, 0, 1]]), 1, 1

    module, name = place.split(".")
    install(f"seqspecdecod.{module}", **{name: step})
    run = IMPLEMENTATIONS[f"sequential-speculative-decoding-{kind}"].load()
    assert run(*ASKED, 2, np.random.default_rng(1)) == (0, 1)
    assert run.specref_capabilities.rule == ("standard" if kind == "standard" else None)


@pytest.fixture
def cloned(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Functions of one's own in place of those of a clone."""

    def put(adapter: Any, **functions: Any) -> None:
        monkeypatch.setattr(adapter, "require", lambda packages, remedy: None)
        monkeypatch.setattr(
            adapter,
            "from_checkout",
            lambda repository, module, *names, **places: [functions[name] for name in names],
        )

    return put


def test_jaymody_is_handed_rows_of_numpy(cloned: Any) -> None:
    def speculative_sampling(x, draft_model, target_model, N, K):  # noqa: N803
        assert (x.tolist(), N, K) == ([2, 1, 0], 2, 3)
        assert target_model(x)[1:].round(6).tolist() == [[*HALVES, 0], [*LEANS, 0]]
        assert draft_model(x)[1:].round(6).tolist() == [[*HALVES, 0]] * 2
        return np.array([2, 1, 0, 0, 1, 1])

    cloned(jaymody, speculative_sampling=speculative_sampling)
    run = IMPLEMENTATIONS["github-jaymody"].load()
    assert run(*ASKED, 2, np.random.default_rng(1)) == (0, 1)


@pytest.mark.parametrize("version", ["", "_v2"])
def test_feifeibear_is_handed_ids_from_1_on(version: str, cloned: Any) -> None:
    def loop(
        prefix, approx_model, target_model, max_len, gamma=4, temperature=1, top_k=0, top_p=0,
        verbose=False, random_seed=None,
    ):  # fmt: skip
        assert (prefix.tolist(), max_len, gamma) == ([[3, 2, 1]], 2, 3)
        for model, last in ((target_model, LEANS), (approx_model, HALVES)):
            laws = model(prefix).logits[0].double().softmax(-1).numpy().round(6).tolist()
            assert laws[1:] == [[0, *HALVES, 0], [0, *last, 0]]
        return torch.tensor([[3, 2, 1, 1, 2, 2]])

    name = f"speculative_sampling{version}"
    cloned(feifeibear, **{name: loop})
    run = feifeibear.load_generate(name)
    assert run(*ASKED, 2, np.random.default_rng(1)) == (0, 1)


@pytest.mark.parametrize(("asked", "given"), [(2, 3), (5, 5)])
@pytest.mark.parametrize("ngrams", [False, True])
def test_romsto_is_asked_for_three_tokens_at_least(
    ngrams: bool, asked: int, given: int, cloned: Any
) -> None:
    def generate(inputs, target, gamma, logits_processor, max_gen_len, eos_tokens_id, **drafts):
        assert (inputs, gamma, logits_processor) == ([2, 1, 0], 3, ("processor", 1.0))
        assert (max_gen_len, eos_tokens_id) == (given, 2)
        assert rows(target(torch.tensor([inputs])).logits)[1:] == [HALVES, LEANS]
        assert target.config.max_position_embeddings >= 1_000
        if ngrams:
            assert drafts == {"ngramstorage": ("storage", 2, 2)}
        else:
            (drafter,) = drafts.values()
            assert rows(drafter(torch.tensor([inputs])).logits)[1:] == [HALVES, HALVES]
        return [0, 1, 1, 0, 1, 1], 0.5

    def by_drafter(
        inputs, drafter, target, gamma, logits_processor, max_gen_len, eos_tokens_id,
        skip_sample_adjustment=False,
    ):  # fmt: skip
        return generate(
            inputs, target, gamma, logits_processor, max_gen_len, eos_tokens_id, drafter=drafter
        )

    def by_ngrams(
        inputs, ngramstorage, target, gamma, logits_processor, max_gen_len, eos_tokens_id,
        filler_top_k=3, stop_if_unknown=False,
    ):  # fmt: skip
        return generate(
            inputs, target, gamma, logits_processor, max_gen_len, eos_tokens_id,
            ngramstorage=ngramstorage,
        )  # fmt: skip

    cloned(
        romsto,
        speculative_generate=by_drafter,
        ngram_assisted_speculative_generate=by_ngrams,
        MultinomialProcessor=lambda temperature: ("processor", temperature),
        OneLevelNGramStorage=lambda n, size: ("storage", n, size),
    )
    run = romsto.load_generate(ngrams)
    assert run(*ASKED, asked, np.random.default_rng(1)) == (0, 1, 1, 0, 1, 1)[:asked]


def chain(cap: bool = True) -> Callable[..., Any]:
    """What HSD's function gets and gives; without `cap` its ratio is not capped at 1."""

    def _speculative_sampling(
        candidate_input_ids, candidate_logits, candidate_length, new_logits, is_done_candidate,
        HSD=False, return_probs=False, hist_lengths=(0,), approxi=False,  # noqa: N803
    ):  # fmt: skip
        assert (candidate_logits.shape[:2], HSD) == ((1, candidate_length), True)
        p, q = (one[0].softmax(-1) for one in (new_logits, candidate_logits))
        drafts = candidate_input_ids[0, -candidate_length:].tolist()
        ratio, kept, left = 1.0, 0, p[-1]
        for at, x in enumerate(drafts):  # block verification
            here = (min(1, ratio) * p[at] - q[at]).clamp(min=0)
            if at and torch.rand(()) < here.sum() / (here.sum() + 1 - min(1, ratio)):
                kept, left = at, here
            if not at:
                left = here
            ratio = (min(1, ratio) if cap else ratio) * float(p[at, x] / q[at, x])
        if torch.rand(()) < ratio:
            kept, left = len(drafts), p[-1]
        last = torch.multinomial(left, 1)
        return torch.tensor([[*drafts[:kept], int(last)]]), kept

    return _speculative_sampling


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("cap", [True, False])
def test_hsd_is_handed_a_chain(cap: bool, cloned: Any) -> None:
    cloned(hsd, _speculative_sampling=chain(cap))
    report = check(hsd.load_verify(), contract="verify", only=["joint/probed"])
    assert report.exit_code == (0 if cap else 1), report


def verify_of_ssd(lenience: float = 1.0) -> Callable[..., Any]:
    """What SSD's function gets and gives."""

    def verify(
        logits_p, logits_q, speculations, temperatures_target, temperatures_draft,
        cache_hits=None, sampler_x=None, async_fan_out=None, jit_speculate=False,
    ):  # fmt: skip
        assert jit_speculate
        assert temperatures_target.tolist() == [1] * len(logits_p)
        assert temperatures_draft.tolist() in ([1] * len(logits_p), [0] * len(logits_p))
        p, q, texts, last = logits_p.softmax(-1), logits_q.softmax(-1), [], []
        if not temperatures_draft.any():
            q = torch.zeros_like(q).scatter(2, logits_q.argmax(-1, keepdim=True), 1.0)
        for row, (before, *drafts) in enumerate(speculations.tolist()):
            kept, left = len(drafts), p[row, -1]
            for at, x in enumerate(drafts):
                if torch.rand(()) >= lenience * p[row, at, x] / q[row, at, x]:
                    kept, left = at, (p[row, at] - q[row, at]).clamp(min=0)
                    break
            texts.append([before, *drafts[:kept]])
            last.append(int(torch.multinomial(left, 1)))
        return texts, last

    return verify


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("lenience", [1.0, 1.25])
def test_ssd_is_handed_a_batch(lenience: float, cloned: Any) -> None:
    cloned(ssd, verify=verify_of_ssd(lenience))
    only = ["smoke/answers", "smoke/one-hot", "joint/probed"]
    report = check(ssd.load_verify(), contract="verify", only=only)
    assert report.exit_code == (0 if lenience == 1 else 1), report
    tokens, counts = ssd.load_verify()(
        torch.tensor([[[0.0, -torch.inf]]]), None, torch.zeros(1, 0, dtype=torch.long)
    )
    assert (tokens.tolist(), counts.tolist()) == ([[0]], [1])


def spec_tree(moved: bool = True) -> type:
    """What Sequoia's class gets and gives; without `moved` the last token is written first."""

    class SpecTree:
        def accept_step(self, parent_id): ...

        def verify(self, benchmark=False):
            rows = self.target_model_engine.inference(input_ids=self.tokens)[0].softmax(-1)
            path = [0]
            while True:
                p, q = rows[path[-1]], self.draft_logits[path[-1]].softmax(-1)
                for node in self.Successors[path[-1]]:
                    x = self.tokens[node]
                    if p[x] > self.r[node] * q[x]:
                        path.append(node)
                        break
                    p = self.residual_graph(p, q)
                    q = q.scatter(0, x, 0) / (1 - q[x])
                else:
                    break
            last, end = torch.multinomial(p, 1), len(path)
            for write in (True, False) if moved else (False, True):
                if write:
                    self.tokens[:end] = self.tokens[path]
                else:
                    self.tokens[end] = last
            return self.tokens[: end + 1], end, end, False

    return SpecTree


@pytest.mark.deep
@pytest.mark.parametrize("moved", [True, False])
def test_sequoia_is_handed_a_tree_of_siblings(moved: bool, cloned: Any) -> None:
    widths = Counter[int]()

    def sampling_without_replacement(sampling_logits, rand, num_samples, temperature):
        widths[num_samples] += 1
        return (rand.log() / sampling_logits.softmax(-1)).topk(num_samples).indices

    cloned(
        sequoia,
        SpecTree=spec_tree(moved),
        get_residual=lambda p, q: (p - q).clamp(min=0) / (p - q).clamp(min=0).sum(),
        sampling_without_replacement=sampling_without_replacement,
    )
    report = check(sequoia.load_step(), contract="step", only=["joint/wide"], detect_tv=0.4)
    assert report.exit_code == (0 if moved else 1), report
    assert widths.keys() == {1, 2}
    assert widths[1] > widths[2] > 0  # siblings, and then a draft after each


@pytest.mark.parametrize("greedy", [False, True])
def test_lookahead_is_handed_a_model_of_windows_and_guesses(greedy: bool, cloned: Any) -> None:
    config: dict[str, int] = {}
    target = hashed_model(AB, "p")

    def loop(self, input_ids, logits_processor=None, stopping_criteria=None, **model_kwargs):
        assert (input_ids.tolist(), logits_processor) == ([[1, 0, 1, 1, 0]], [])
        assert (config["LEVEL"], model_kwargs["attention_mask"].tolist()) == (3, [[1] * 5])
        given = self.prepare_inputs_for_generation(input_ids, **model_kwargs)
        given |= {"past_key_values": None, "guess_size": 2, "guess_tokens": None}
        made = self.jforward_multilevel(**given, past_tokens=[[0, 1], None], fill_level=0)
        assert (made.kvcache_len, made.step_len) == (5, 7)
        close(made.out_logits, [()])
        close(made.inp_logits[0], [(0,), (0, 1)])

        given |= {"past_key_values": [(made.past_key_values[0][0][:, :, :5],) * 2]}
        given |= {"input_ids": torch.tensor([[1]]), "guess_tokens": [0, 1, 1, 1]}
        made = self.jforward_multilevel(**given, past_tokens=[[0], [0, 1]], fill_level=1)
        assert (made.kvcache_len, made.step_len) == (6, 13)
        assert made.past_key_values[0][0].flatten().tolist()[5:] == [1, 0, 0, 1, 0, 1, 1, 1]
        close(made.out_logits, [(1,)])
        close(made.inp_logits[0], [(1, 0), (1, 0, 1)])
        close(made.guess_logits[0], [(1, 0), (1, 0, 1), (1, 1), (1, 1, 1)])
        kept = self._update_model_kwargs_for_generation(made, model_kwargs)
        assert kept.keys() > model_kwargs.keys()
        assert kept["past_key_values"] is made.past_key_values
        text = torch.cat([input_ids, torch.tensor([[1, 0]])], dim=1)
        assert [bool(stopping_criteria(ids, None)) for ids in (text[:, :-1], text)] == [0, 1]
        return text

    def close(logits: Any, paths: Any) -> None:
        laws = [[*target.next_token((1, 0, *path)), 0] for path in paths]
        assert np.allclose(logits.double().softmax(-1).numpy(), np.array(laws, float))

    names = ("jacobi_sample_multilevel", "jacobi_greedy_search_multilevel")
    cloned(lookahead, **dict.fromkeys(names, loop), CONFIG_MAP=config)
    run = lookahead.load_generate(greedy)
    assert capabilities_of(run).greedy == greedy
    assert run(target, EVEN, (1, 0), 2, np.random.default_rng(1)) == (1, 0)


def mlx(install: Any) -> SimpleNamespace:
    """As much of `mlx.core` as the adapter calls, by NumPy."""
    state: dict[str, Any] = {}

    def softmax(rows: Any, axis: int) -> Any:
        shares = np.exp(rows - rows.max(axis=axis, keepdims=True))
        return shares / shares.sum(axis=axis, keepdims=True)

    def seed(number: int) -> None:
        state["rng"] = np.random.default_rng(number)

    def categorical(logits: Any) -> Any:
        return np.asarray(state["rng"].choice(len(logits), p=softmax(logits.astype(float), -1)))

    random = SimpleNamespace(seed=seed, categorical=categorical)
    install("mlx.core", array=np.asarray, softmax=softmax, random=random)
    sys.modules["mlx"].core = sys.modules["mlx.core"]  # type: ignore[attr-defined]
    for name in ("mlx_lm", "mlx_vlm"):
        install(name)
    return SimpleNamespace(softmax=softmax, state=state)


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("rest", ["p - q", "p"])
def test_mlx_dspark_is_handed_rows(rest: str, install: Any) -> None:
    own = mlx(install)

    def _spec_sample_accept(v_logits, draft, q_probs, temperature, top_p=1.0, top_k=0):
        assert (len(v_logits), temperature) == (len(draft) + 1, 1)
        rng, p = own.state["rng"], own.softmax(v_logits.astype(float), -1)
        for at, x in enumerate(draft):
            if rng.random() * q_probs[at, x] >= p[at, x]:
                left = np.maximum(p[at] - q_probs[at], 0) if rest == "p - q" else p[at]
                return at, rng.choice(len(left), p=left / left.sum())
        return len(draft), rng.choice(len(p[-1]), p=p[-1])

    install("mlx_dspark.generate", _spec_sample_accept=_spec_sample_accept)
    only = ["smoke/answers", "smoke/one-hot", "smoke/no-drafts", "joint/wide"]
    judged = IMPLEMENTATIONS["mlx-dspark"].load()
    report = check(judged, contract="verify", only=only, detect_tv=0.2)
    assert report.exit_code == (0 if rest == "p - q" else 1), report


def test_another_mlx_dspark_is_not_run(install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mlx(install)
    install("mlx_dspark.generate", _spec_sample_accept=of_another)
    found = IMPLEMENTATIONS["mlx-dspark"].not_run
    assert found == "not_run (_spec_sample_accept has unknown parameters, a)"
    monkeypatch.setitem(sys.modules, "mlx_vlm", None)
    assert IMPLEMENTATIONS["mlx-dspark"].not_run == "not_run (mlx_vlm is not installed)"


@pytest.mark.parametrize(
    ("adapter", "load", "names"),
    [
        (ssd, ssd.load_verify, ("verify",)),
        (hsd, hsd.load_verify, ("_speculative_sampling",)),
        (lookahead, lookahead.load_generate, ("jacobi_sample_multilevel", "CONFIG_MAP")),
    ],
)
def test_no_function_of_another_clone_is_called(
    adapter: Any, load: Any, names: tuple[str, ...], cloned: Any
) -> None:
    cloned(adapter, **dict.fromkeys(names, of_another))
    with pytest.raises(NotInstalledError, match=r"has unknown parameters, a$"):
        load()


def test_no_tree_of_another_class_is_verified(cloned: Any) -> None:
    functions = dict.fromkeys(("get_residual", "sampling_without_replacement"), of_another)
    made = SimpleNamespace(verify=of_another, accept_step=of_another)
    cloned(sequoia, SpecTree=made, **functions)
    with pytest.raises(NotInstalledError, match=r"SpecTree.verify has unknown parameters, a$"):
        sequoia.load_step()
    cloned(sequoia, SpecTree=spec_tree(), **functions)
    with pytest.raises(NotInstalledError, match="sampling_without_replacement has unknown"):
        sequoia.load_step()


@pytest.mark.parametrize("sampling", ["typical", "nucleus"])
def test_medusa_is_handed_paths_and_its_token_is_drawn_after_the_kept(
    sampling: str, cloned: Any
) -> None:
    """Nodes 0 and 1 below the root, 2 below 0; after each node another token is certain."""
    p = torch.eye(5)[None, [4, 1, 2, 3]].log()

    def evaluate_posterior(
        logits, candidates, temperature, posterior_threshold=0.3, posterior_alpha=0.09,
        top_p=0.8, sampling="typical", fast=True,
    ):  # fmt: skip
        assert (temperature, top_p, sampling) == (1, 1, asked)
        assert candidates.tolist() == [[0, 2, 0], [0, 1, 3]]  # 0 after the end of the shorter
        assert logits.exp().argmax(dim=-1)[1].tolist() == [4, 1, 3]
        assert logits.exp().argmax(dim=-1)[0, :2].tolist() == [4, 2]
        return torch.tensor(1), kept

    asked = sampling
    cloned(candidates, evaluate_posterior=evaluate_posterior)
    run = candidates.load_medusa(sampling)
    x, parents = torch.tensor([[1, 2, 3]]), torch.tensor([[-1, -1, 0]])
    for kept, block in ((2, [1, 3, 3, -1]), (1, [1, 1, -1, -1]), (0, [4, -1, -1, -1])):
        tokens, counts = run(p, None, x, parents)
        assert (tokens.tolist(), counts.tolist()) == ([block], [kept + 1])


@pytest.mark.parametrize("block", [False, True])
def test_sglang_is_handed_chains(block: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    drafts, p, q = torch.tensor([[1, 2], [3, 0]]), torch.rand(6, 4), torch.rand(4, 4)

    def kernel(
        predicts, accept_index, accept_token_num, candidates, retrive_index, retrive_next_token,
        retrive_next_sibling, uniform_samples, uniform_samples_for_final_sampling, target_probs,
        draft_probs, threshold_single, threshold_acc, deterministic, block_verification,
    ):  # fmt: skip
        assert predicts.tolist() == [0] * 6
        assert candidates[:, 1:].tolist() == drafts.tolist()
        assert accept_index.tolist() == retrive_index.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert torch.equal(target_probs, p.view(2, 3, 4))
        assert torch.equal(draft_probs, q.view(2, 2, 4))
        coins = torch.cat([uniform_samples.flatten(), uniform_samples_for_final_sampling])
        assert (uniform_samples.shape, len({*coins.tolist()})) == ((2, 3), 8)
        assert ((coins >= 0) & (coins < 1)).all()
        assert (threshold_single, threshold_acc, deterministic) == (1, 1, True)
        assert block_verification == block
        accept_token_num[:] = torch.tensor([2, 0])
        predicts[:4] = torch.tensor([1, 2, 3, 1])

    monkeypatch.setattr(sglang, "imported_alone", lambda *given: kernel)
    monkeypatch.setattr(sglang, "require", lambda *given: None)
    monkeypatch.setitem(
        sys.modules, "triton", SimpleNamespace(knobs=SimpleNamespace(runtime=INTERPRETING))
    )
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    verify = sglang.load_verify(block)
    assert verify.specref_capabilities.rule == ("block" if block else "standard")
    tokens, counts = verify(
        draft_token_ids=drafts.view(-1),
        num_draft_tokens=torch.tensor([2, 2]),
        target_probs=p,
        draft_probs=q,
        generator=torch.Generator().manual_seed(1),
    )
    assert (tokens.tolist(), counts.tolist()) == ([[1, 2, 3], [1, 0, 0]], [3, 1])


INTERPRETING = SimpleNamespace(interpret=True)


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


@pytest.mark.deep(one_in=2)
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
    (clone / "eagle" / "model" / "utils.py").write_text("from a.b.c import d\nx = d")
    places = {"absent": ("a.b.c.d",), "under": "eagle/model"}
    assert from_checkout("SafeAILab/EAGLE", "utils", "x", **places) == (None,)
    assert not {name for name in sys.modules if name.startswith("a.")}
    with pytest.raises(NotInstalledError, match="SafeAILab/EAGLE has no folder src"):
        from_checkout("SafeAILab/EAGLE", "utils", "x", under="src")
    monkeypatch.delenv("SPECREF_GITHUB")
    assert eagle.not_run == "not_run (SafeAILab/EAGLE is not cloned)"


def test_what_cannot_be_judged_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt_llm", None)
    tensorrt = IMPLEMENTATIONS["tensorrt-llm"]
    assert tensorrt.not_run == "not_run (tensorrt_llm is not installed)"
    assert tensorrt.remedy == "its wheel needs CUDA; docs/check-an-engine-sampler.md has a block"


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
