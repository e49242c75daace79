"""The adapters: what they hand to the libraries is what the models and vocabularies say."""

import functools
import inspect
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from proofs_tests.contrib.engines.conftest import taking
from specref.adapters import IMPLEMENTATIONS, NotInstalledError
from specref.adapters.needs import require, title
from specref.cli import main
from specref.conformance.public import check
from specref.contracts.capabilities import capabilities_of
from specref.models import hashed_model
from specref.vocabulary import Vocabulary

pytestmark = pytest.mark.usefixtures("undiagnosed")

TESTS = Path(__file__).parents[2]
ABC = Vocabulary("abc")
TARGET, DRAFTER = hashed_model(ABC, "p"), hashed_model(ABC, "q")


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_names_and_titles() -> None:
    assert {"reference", "transformers", "vllm"} <= set(IMPLEMENTATIONS)
    assert all(one.name == name for name, one in IMPLEMENTATIONS.items())
    assert len({one.title for one in IMPLEMENTATIONS.values()}) == len(IMPLEMENTATIONS)


def test_a_package_that_is_imported_by_another_name_is_named() -> None:
    assert title("an adapter", ["_pytest"]) == f"an adapter (pytest {pytest.__version__})"


@pytest.mark.parametrize("name", [name for name, one in IMPLEMENTATIONS.items() if one.packages])
def test_without_its_packages_it_is_not_run_and_says_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = IMPLEMENTATIONS[name]
    monkeypatch.setitem(sys.modules, one.packages[0], None)
    assert one.not_run == f"not_run ({one.packages[0]} is not installed)"
    with pytest.raises(NotInstalledError) as error:
        one.load()
    assert str(error.value) == f"{one.packages[0]} is not installed: {one.remedy}"
    assert one.remedy
    assert IMPLEMENTATIONS["reference"].not_run is None


def test_kernels_are_judged_by_name_on_a_gpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")
    pytest.importorskip("triton", reason="not_run (triton is not installed)")
    fused = IMPLEMENTATIONS["torch-backend-fused"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert fused.not_run == "not_run (no CUDA)"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert capabilities_of(fused.load()).device == "cuda"


HEAVY = {
    *("torch", "transformers", "tokenizers", "vllm", "openvino", "openvino_genai", "triton"),
    *("mlx", "mlx_lm", "mlx_vlm", "xllamacpp", "gguf", "safetensors", "onnx", "onnxruntime_genai"),
}


def test_importing_the_registry_imports_no_library() -> None:
    code = "import sys; from specref.contrib.engines import registry; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert "specref.contrib.engines.registry" in loaded
    assert not HEAVY & {name.partition(".")[0] for name in loaded.split()}


def test_evidence_of_known_deviations_names_tests() -> None:
    for one in IMPLEMENTATIONS.values():
        for deviation in one.known:
            place, name = deviation.evidence.split(" ")[0].split("::")
            assert f"def {name}(" in (TESTS.parent / place).read_text(), deviation


def rejection_sample(
    draft_token_ids,
    num_draft_tokens,
    max_spec_len,
    cu_num_draft_tokens,
    draft_probs,
    target_probs,
    bonus_token_ids,
    sampling_metadata,
):
    """A twin of vLLM's older function in plain Python: it knows only what it is handed."""
    import torch

    assert sampling_metadata.all_random != sampling_metadata.all_greedy
    assert draft_token_ids.dtype == cu_num_draft_tokens.dtype == torch.int32
    assert target_probs.is_contiguous()
    x = draft_token_ids.long()
    at = torch.arange(len(x))
    p, q = target_probs, draft_probs
    if sampling_metadata.all_greedy:
        assert not sampling_metadata.temperature.any()
        p, q = torch.eye(p.shape[1])[p.argmax(dim=1)], None
    if q is None:
        q = torch.eye(p.shape[1])[x]
    rejected = (torch.rand(len(x)) >= p[at, x] / q[at, x]).tolist()
    residual = (p - q).clamp(min=0)
    residual = torch.where(residual.any(dim=1, keepdim=True), residual, p)
    instead = torch.multinomial(residual, 1)[:, 0].tolist() if len(x) else []
    out = torch.full((len(num_draft_tokens), max_spec_len + 1), -1, dtype=torch.int32)
    ends, drafts, last = cu_num_draft_tokens.tolist(), x.tolist(), bonus_token_ids.tolist()
    for row, (end, count) in enumerate(zip(ends, num_draft_tokens, strict=True)):
        start, kept = end - count, 0
        while kept < count and not rejected[start + kept]:
            kept += 1
        end_token = instead[start + kept] if kept < count else last[row][0]
        out[row, : kept + 1] = torch.tensor([*drafts[start : start + kept], end_token])
    return out


def rejection_sample_of_logits(
    draft_token_ids,
    num_draft_tokens,
    max_spec_len,
    cu_num_draft_tokens,
    draft_probs,
    target_logits,
    bonus_token_ids,
    sampling_metadata,
    synthetic_mode=False,
    synthetic_conditional_rates=None,
    use_fp64_gumbel=False,
    fly_window_size=None,
    fly_entropy_threshold=None,
    fly_entropy_top_k=3,
):
    """The same with the parameters of 0.33.0."""
    return rejection_sample(
        draft_token_ids,
        num_draft_tokens,
        max_spec_len,
        cu_num_draft_tokens,
        draft_probs,
        target_logits.softmax(dim=-1),
        bonus_token_ids,
        sampling_metadata,
    )


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """vLLM with a function of one's own; nothing of the package itself."""
    pytest.importorskip("torch", reason="not_run (torch is not installed)")

    def install(function: Any) -> None:
        for name in ("vllm", "vllm.v1", "vllm.v1.sample", "vllm.v1.sample.rejection_sampler"):
            module = ModuleType(name)
            module.__spec__ = ModuleSpec(name, None)
            monkeypatch.setitem(sys.modules, name, module)
        sys.modules["vllm.v1.sample.rejection_sampler"].rejection_sample = function

    return install


@pytest.mark.deep
@pytest.mark.parametrize("function", [rejection_sample, rejection_sample_of_logits])
def test_vllm_is_handed_what_its_function_takes(function: Any, vllm: Any) -> None:
    """The adapter, with a function that is right: 3,000 trials find a distance of 0.1.

    It is called on the CPU where there is no CUDA.
    """
    vllm(function)
    report = check(
        IMPLEMENTATIONS["vllm"].load(),
        contract="ragged",
        only=["smoke/answers", "smoke/no-drafts", "smoke/one-hot", "boundary", "joint/wide"],
        trials=3_000,
    )
    assert not report.failures, report
    assert report.counts["passed"] > 8


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(
    ("function", "name"),
    [(rejection_sample, "draft_probs"), (rejection_sample_of_logits, "target_logits")],
)
def test_vllm_with_a_planted_bug_is_found(function: Any, name: str, vllm: Any) -> None:
    @functools.wraps(function)
    def with_tokens_backwards(**given):
        return function(**{**given, name: given[name].flip(1)})

    vllm(with_tokens_backwards)
    wrong = IMPLEMENTATIONS["vllm"].load()
    assert check(wrong, contract="ragged", only=["joint/wide"], trials=3_000).failures


def test_greedy_requests_of_vllm_are_compared_with_argmax(vllm: Any) -> None:
    @functools.wraps(rejection_sample)
    def with_the_last_of_tokens(**given):
        return rejection_sample(**{**given, "target_probs": given["target_probs"].flip(1)})

    for function, failed in ((rejection_sample, False), (with_the_last_of_tokens, True)):
        vllm(function)
        greedy = IMPLEMENTATIONS["vllm-greedy"].load()
        report = check(greedy, contract="ragged", only=["boundary/greedy-ties"])
        assert report.exit_code == failed, report


def with_an_option(*, lenient=False, **given): ...


@functools.wraps(rejection_sample_of_logits)
def that_needs_cuda(**given):
    raise RuntimeError("0 active drivers ([]). There should only be one.")


TAKEN = {*inspect.signature(rejection_sample).parameters}
UNSUITED = {
    taking("draft_token_ids", "target_logits", "temperature", "seed"): (
        "rejection_sample has unknown parameters, temperature, seed"
    ),
    taking(*TAKEN - {"draft_probs"}): "rejection_sample has no parameter draft_probs",
    taking(*TAKEN - {"target_probs"}): (
        "rejection_sample has 0 of target_probs and target_logits, expected one"
    ),
    with_an_option: "rejection_sample has unknown parameters, lenient, given",
    that_needs_cuda: "rejection_sample on cpu cannot be called",
}


@pytest.mark.parametrize("function", UNSUITED)
def test_another_vllm_is_not_run(function: Any, vllm: Any, monkeypatch: Any) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    vllm(function)
    assert IMPLEMENTATIONS["vllm"].not_run == f"not_run ({UNSUITED[function]})"
    result = CliRunner().invoke(main, ["check", "vllm"])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"not_run ({UNSUITED[function]}")


def test_what_importing_vllm_raises_is_not_run(vllm: Any) -> None:
    vllm(rejection_sample)
    del sys.modules["vllm.v1.sample.rejection_sampler"].rejection_sample
    assert "cannot be imported" in str(IMPLEMENTATIONS["vllm"].not_run)


WARMUP, SAMPLER = "model_executor/warmup/jit_warmup", "v1/sample/rejection_sampler"
LAUNCHING = f"{WARMUP}_triton_helper"
# What vLLM's files import, and a kernel that is launched by what one of them has.
ALONE = {
    "__init__": "raise ImportError('many packages')",
    WARMUP: "class WarmupChoices: ...",
    LAUNCHING: """
from vllm import envs
from vllm.model_executor.warmup.jit_warmup import WarmupChoices
from vllm.platforms import current_platform
from vllm.triton_utils import HAS_TRITON, triton

def launched(kernel):
    return lambda *given: kernel[given[-1], ](*given[:-1])
""",
    SAMPLER: """
import torch
from vllm.config.model import PROCESSED_LOGPROBS_MODES
from vllm.logger import init_logger
from vllm.model_executor.warmup.jit_warmup_triton_helper import launched
from vllm.triton_utils import tl, triton
from vllm.v1.outputs import LogprobsLists, SamplerOutput

logger = init_logger(__name__)

@triton.jit
def kernel(p, q, x, u, kept, size):
    row = tl.program_id(0)
    at = row * size + tl.load(x + row)
    tl.store(kept + row, (tl.load(u + row) * tl.load(q + at) < tl.load(p + at)).to(tl.int32))

def rejection_sample(draft_token_ids, num_draft_tokens, max_spec_len, cu_num_draft_tokens,
                     draft_probs, target_logits, bonus_token_ids, sampling_metadata):
    p, x = target_logits.softmax(-1), draft_token_ids
    q = torch.eye(p.shape[1])[x.long()] if draft_probs is None else draft_probs
    kept = torch.zeros_like(x)
    launched(kernel)(p, q, x, torch.rand(len(x)), kept, p.shape[1], len(x))
    left = (p - q).clamp(min=0)
    last = torch.where(left.any(1, keepdim=True), left, p).multinomial(1)[:, 0]
    out = torch.full((len(num_draft_tokens), max_spec_len + 1), -1)
    starts = (cu_num_draft_tokens - torch.tensor(num_draft_tokens)).tolist()
    for row, (start, count) in enumerate(zip(starts, num_draft_tokens)):
        yes = kept[start : start + count].tolist()
        n = yes.index(0) if 0 in yes else count
        out[row, :n] = x[start : start + n]
        out[row, n] = bonus_token_ids[row, 0] if n == count else last[start + n]
    return out
""",
}


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str | None]:
    """Why vLLM cannot be judged, if its files are these."""
    torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")
    knobs = pytest.importorskip("triton", reason="not_run (triton is not installed)").knobs
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(knobs.runtime, "interpret", True)
    monkeypatch.syspath_prepend(tmp_path)

    def not_run(file: str = "", *change: str) -> str | None:
        for name, text in ALONE.items():
            path = tmp_path / "vllm" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace(*change) if name == file else text)
        return IMPLEMENTATIONS["vllm"].not_run

    return not_run


@pytest.mark.deep
def test_vllm_without_cuda_is_three_files_in_the_interpreter(alone: Any) -> None:
    before = {*sys.modules}
    assert alone() is None
    assert {one for one in sys.modules if one.split(".")[0] == "vllm"} <= before
    only = ["smoke/answers", "smoke/one-hot", "boundary/disjoint", "joint/wide"]
    verify = IMPLEMENTATIONS["vllm"].load()
    report = check(verify, contract="ragged", only=only, detect_tv=0.4)
    assert report.counts["passed"] == 4, report
    assert alone(SAMPLER, "< tl.load(p + at)", "< 0.5") is None
    wrong = IMPLEMENTATIONS["vllm"].load()
    assert check(wrong, contract="ragged", only=only[-1:], detect_tv=0.4).failures


@pytest.mark.parametrize("cuda", [True, False])
def test_vllm_is_imported_where_its_kernels_are_not_interpreted(
    cuda: bool, vllm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")
    vllm(rejection_sample)
    del sys.modules["vllm.v1.sample.rejection_sampler"].rejection_sample
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr("specref.contrib.engines.vllm.interpreting", lambda: cuda)
    with pytest.raises(NotInstalledError, match="rejection_sampler cannot be imported") as error:
        IMPLEMENTATIONS["vllm"].load()
    assert str(error.value).endswith("set TRITON_INTERPRET=1") != cuda


@pytest.mark.parametrize(
    ("file", "before", "after", "reason"),
    [
        (SAMPLER, "Logprobs", "Tree", "rejection_sampler.py cannot be imported"),
        (LAUNCHING, "platforms", "systems", "jit_warmup_triton_helper.py cannot be imported"),
        (SAMPLER, "def rejection_", "def ", f"{SAMPLER}.py has no rejection_sample"),
        (
            SAMPLER, "metadata):", "metadata, tree=None):",
            "rejection_sample has unknown parameters, tree",
        ),
        (SAMPLER, "launched(kernel)(", "launched(0)(", "rejection_sample on cpu cannot be called"),
    ],
)  # fmt: skip
def test_another_file_of_vllm_is_refused(
    file: str, before: str, after: str, reason: str, alone: Any
) -> None:
    assert alone(file, before, after) == f"not_run ({reason})"


@pytest.fixture
def transformers() -> SimpleNamespace:
    pytest.importorskip("torch", reason="not_run (torch is not installed)")
    pytest.importorskip("transformers", reason="not_run (transformers is not installed)")
    from specref.contrib.engines import toys, transformers, transformers_generate

    return SimpleNamespace(
        tokenizer=transformers_generate.toy_tokenizer,
        model=toys.ToyModel,
        load_verify=transformers.load_verify,
        generate=transformers_generate.Generate,
    )


# All of the stage but boundary/rare-draft, which asks for half a million rows.
BOUNDARY = [f"boundary/{name}" for name in ("e", "d", "c", "f", "t", "ragged")]
SOME = ["smoke/answers", "smoke/no-drafts", "smoke/one-hot", "boundary/z", "acceptance/wide"]


@pytest.mark.parametrize("more", [[], pytest.param(BOUNDARY, marks=pytest.mark.deep)])
def test_transformers_verifies_batches(transformers: SimpleNamespace, more: list[str]) -> None:
    only, known = [*SOME, *more], {"boundary/zero-coin": "r <= p / q"}
    report = check(transformers.load_verify(), only=only, trials=3_000, expected_failures=known)
    assert not report.failures, report
    assert report.counts["expected_failure"] == 1


@pytest.mark.parametrize(("coin", "symptom"), [(0.0, "kept"), (1 - 2.0**-24, "raises")])
def test_edge_coins(
    transformers: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, coin: float, symptom: str
) -> None:
    """float32 coins can be 0 and 1 - 2^-24, each once in 2^24 times."""
    import torch

    monkeypatch.setattr(torch, "rand_like", lambda like: torch.full_like(like, coin))
    verify = transformers.load_verify()
    if symptom == "kept":
        p = np.array([[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]])
        tokens, _ = verify(p, np.full((1, 1, 3), 1 / 3), np.array([[2]]), rng=rng())
        assert tokens[0, 0] == 2
        return
    # Rows that differ by the rounding of a logit: p <= q everywhere, p < q at the draft.
    q = np.array([[[0.25, 0.25, 0.5]]])
    p = np.concatenate([q, q], axis=1)
    p[0, 0, 0] *= 1 - 1.5e-7
    with pytest.raises(RuntimeError, match="inf"):
        verify(p, q, np.array([[0]]), rng=rng())


def test_toy_model_has_the_law_of_its_cache(transformers: SimpleNamespace) -> None:
    import torch

    model = transformers.model(TARGET, size=5).eval()
    with torch.no_grad():
        out = model.generate(
            torch.tensor([[3, 1]]),
            do_sample=False,
            max_new_tokens=4,
            pad_token_id=3,
            output_logits=True,
            return_dict_in_generate=True,
        )
    text = tuple(out.sequences[0, 1:].tolist())
    for length, logits in enumerate(out.logits, start=1):
        law = logits[0].softmax(dim=-1).double().numpy()
        expected = np.append(TARGET.next_token(text[:length]).astype(float), [0, 0])
        assert np.abs(law - expected).max() < 1e-6


def test_toy_tokenizer_reads_as_the_vocabulary(transformers: SimpleNamespace) -> None:
    vocabulary = Vocabulary(["a", "b", "ab", "bba", " ", "(", ".", "a.b"])
    tokenizer = transformers.tokenizer(vocabulary)
    generator = rng()
    for _ in range(200):
        tokens = tuple(generator.integers(len(vocabulary), size=8).tolist())
        text = vocabulary.decode(tokens)
        assert tuple(tokenizer(text)["input_ids"]) == vocabulary.encode(text)
        assert tokenizer.decode(list(tokens)) == text


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("path", ["sd", "tli"])
def test_randomness_is_of_the_rng_alone(transformers: SimpleNamespace, path: str) -> None:
    import torch

    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    generate = transformers.generate(path, order="sorted")
    texts = [generate(TARGET, DRAFTER, (), 30, rng(seed)) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert bool((torch.random.get_rng_state() == before).all())
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("path", ["ar", "sd", "pld", "tli", "slem"])
@pytest.mark.parametrize("tokens", [1, 2, 7])
def test_texts_have_the_length_asked_for(
    transformers: SimpleNamespace, path: str, tokens: int
) -> None:
    generate = transformers.generate(path, order="sorted")
    for context in ((), (0,), (2, 1, 0)):
        text = generate(TARGET, DRAFTER, context, tokens, rng())
        assert len(text) == tokens
        assert set(text) <= {0, 1, 2}
        for block in generate.blocks:
            assert 0 <= block.accepted <= block.drafted <= 4


@pytest.mark.deep(one_in=5)
@pytest.mark.parametrize("path", ["sd", "ar", "pld", "tli", "slem"])
def test_eos_ends_a_text(transformers: SimpleNamespace, path: str) -> None:
    ends = Vocabulary("abc", eos="c")
    target, drafter = hashed_model(ends, "p"), hashed_model(Vocabulary("abc"), "q")
    generate = transformers.generate(path, order="sorted")
    texts = [generate(target, drafter, (0, index % 2), 30, rng(index)) for index in range(12)]
    ended = [text for text in texts if 2 in text]
    assert ended or path == "slem"
    assert all(text.index(2) == len(text) - 1 for text in ended)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "medusa"}, "path = 'medusa'"),
        ({"path": "sd", "lookahead": 0}, "lookahead = 0"),
        ({"path": "sd", "temperature": 0}, "temperature = 0"),
        ({"path": "slem", "greedy": False}, "greedy = False"),
    ],
)
def test_bad_arguments(transformers: SimpleNamespace, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        transformers.generate(**arguments)


def test_bad_calls(transformers: SimpleNamespace) -> None:
    generate = transformers.generate("sd")
    with pytest.raises(ValueError, match="tokens = 0"):
        generate(TARGET, DRAFTER, (), 0, rng())
    with pytest.raises(ValueError, match=r"context\[1\] = 3"):
        generate(TARGET, DRAFTER, (0, 3), 2, rng())
    with pytest.raises(ValueError, match="another vocabulary"):
        generate(TARGET, hashed_model(Vocabulary("abd"), "q"), (), 2, rng())
    with pytest.raises(ValueError, match="size = 3"):
        transformers.model(TARGET, size=3)
    with pytest.raises(ValueError, match="vocabulary: expected one of str"):
        transformers.tokenizer(Vocabulary([b"a"]))


def test_require_names_what_is_missing() -> None:
    with pytest.raises(NotInstalledError, match="no_such_package is not installed: get it"):
        require(["numpy", "no_such_package"], "get it")
