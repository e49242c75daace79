"""Engines that have changed what an adapter calls: refused with the reason, never judged.

Stand-ins for the packages; nothing of the engines themselves is here.
"""

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proofs_tests.contrib.engines.conftest import taking
from specref.adapters import IMPLEMENTATIONS
from specref.contrib.checkpoints import WRITERS, named_pair
from specref.contrib.engines import onnxruntime_genai


class GenerationConfig:
    """Settings are attributes; like OpenVINO's, it takes any name by keyword."""

    def __init__(self, **names: object) -> None:
        self.do_sample, self.ignore_eos, self.eos_token_id = False, False, -1
        self.top_k, self.top_p, self.temperature = 50, 1.0, 1.0
        self.max_new_tokens = self.rng_seed = self.num_assistant_tokens = self.max_ngram_size = 0
        self.stop_token_ids: set[int] = set()


class WithoutASeed(GenerationConfig):
    def __init__(self, **names: object) -> None:
        super().__init__(**names)
        del self.rng_seed
        self.seed = 0


class SchedulerConfig:
    def __init__(self) -> None:
        self.enable_prefix_caching = True


class Counts:
    def get_num_accepted_tokens(self) -> int:
        return 0

    def get_num_draft_tokens(self) -> int:
        return 1


class LLMPipeline:
    def __init__(self, folder: Path, device: str, *, scheduler_config: Any, **own: Any) -> None:
        self.counts = Counts()

    def generate(self, prompt: Any, config: Any) -> SimpleNamespace:
        assert config.do_sample
        tokens = [[0] * config.max_new_tokens]
        return SimpleNamespace(tokens=tokens, extended_perf_metrics=self.counts)


class Strict(LLMPipeline):
    def __init__(self, folder: Path, device: str, *, scheduler: Any) -> None: ...


class Recounted(LLMPipeline):
    def __init__(self, *given: Any, **named: Any) -> None:
        self.counts = SimpleNamespace(accepted=0)  # type: ignore[assignment]


OPENVINO = {
    "GenerationConfig": GenerationConfig,
    "SchedulerConfig": SchedulerConfig,
    "LLMPipeline": LLMPipeline,
    "draft_model": lambda folder, device, **own: folder,
}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"GenerationConfig": WithoutASeed}, "WithoutASeed has no setting rng_seed"),
        ({"SchedulerConfig": object}, "object has no setting enable_prefix_caching"),
        ({"LLMPipeline": Strict}, "LLMPipeline cannot be called"),
        ({"LLMPipeline": Recounted}, "LLMPipeline cannot be called"),
        ({"draft_model": lambda folder: folder}, "LLMPipeline cannot be called"),
    ],
)
def test_openvino(
    change: dict[str, Any],
    reason: str | None,
    install: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install("openvino_genai", **{**OPENVINO, **change})
    install("openvino", Tensor=lambda rows: rows)
    monkeypatch.setitem(WRITERS, "openvino", lambda law, weights, folder: None)
    found = IMPLEMENTATIONS["openvino-genai"].not_run
    assert found == (reason and f"not_run ({reason})")


class Config:
    def __init__(self, folder: str) -> None: ...

    def overlay(self, text: str) -> None:
        assert json.loads(text)["model"]["draft"]


class GeneratorParams:
    """Unknown names raise, as in onnxruntime-genai."""

    speculative = ("max_draft_tokens", "ngram_size", "ngram_chained_lookup", "cooldown")

    def __init__(self, model: object) -> None: ...

    def set_search_options(self, max_length: int, random_seed: int) -> None: ...

    def set_speculative_options(self, **options: object) -> None:
        for name in options:
            if name not in self.speculative:
                raise RuntimeError(f"Unknown value {name!r}")

    def get_speculative_options(self) -> dict[str, float]:
        return dict.fromkeys(self.speculative, 0.0)


class WithTrees(GeneratorParams):
    speculative = (*GeneratorParams.speculative, "tree_depth")


class Renamed(GeneratorParams):
    speculative = ("ngram_size",)


class Unlisted(GeneratorParams):
    get_speculative_options = None  # type: ignore[assignment]


class Unseeded(GeneratorParams):
    def set_search_options(self, max_length: int) -> None: ...  # type: ignore[override]


class Generator:
    counts = ("draft_tokens_proposed", "draft_tokens_accepted")

    def __init__(self, model: object, params: GeneratorParams) -> None:
        self.tokens: list[int] = []

    def append_tokens(self, tokens: Any) -> None:
        self.tokens += list(tokens)

    def is_done(self) -> bool:
        return len(self.tokens) > 2

    def generate_next_token(self) -> None:
        self.tokens.append(0)

    def get_sequence(self, row: int) -> list[int]:
        return self.tokens

    def get_speculative_stats(self) -> dict[str, int]:
        return dict.fromkeys(self.counts, 0)


class Uncounted(Generator):
    counts = ("proposed", "accepted")


ONNX = {
    "Config": Config,
    "Model": lambda config: config,
    "GeneratorParams": GeneratorParams,
    "Generator": Generator,
}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"GeneratorParams": WithTrees}, "GeneratorParams has unknown options, tree_depth"),
        ({"GeneratorParams": Renamed}, "GeneratorParams has no option max_draft_tokens"),
        ({"GeneratorParams": Unlisted}, "Generator cannot be called"),
        ({"GeneratorParams": Unseeded}, "Generator cannot be called"),
        ({"Generator": Uncounted}, "Generator cannot be called"),
    ],
)
def test_onnxruntime(
    change: dict[str, Any],
    reason: str | None,
    install: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    install("onnxruntime_genai", **{**ONNX, **change})
    install("onnx")
    draft = {"model": {"decoder": {"filename": "model.onnx"}}}
    (tmp_path / "genai_config.json").write_text(json.dumps(draft))
    laws = named_pair("order-1").values()
    pair = onnxruntime_genai.Pair(*laws, tmp_path, tmp_path)
    monkeypatch.setattr(onnxruntime_genai, "on_pair", lambda modes, *given, **_: modes(pair))
    found = IMPLEMENTATIONS["onnxruntime-genai"].not_run
    assert found == (reason and f"not_run ({reason})")


LAWS = "candidate_logits", "new_logits"
RIGHT = *LAWS, "candidate_input_ids", "candidate_length"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (taking(*RIGHT), None),
        (taking(*RIGHT, "is_done_candidate"), None),
        (taking(*RIGHT, "lenience"), "_speculative_sampling has unknown parameters, lenience"),
        (
            taking(*LAWS, "candidate_ids", "candidate_length"),
            "_speculative_sampling has unknown parameters, candidate_ids",
        ),
        (
            taking(*LAWS, "candidate_input_ids"),
            "_speculative_sampling has no parameter candidate_length",
        ),
        (None, "transformers.generation.utils cannot be imported"),
    ],
)
def test_transformers(function: Any, reason: str | None, install: Callable[..., None]) -> None:
    pytest.importorskip("torch", reason="not_run (torch is not installed)")
    import_module("specref.contrib.engines.toys")  # with the library itself
    named = {"_speculative_sampling": function} if function else {}
    install("transformers.generation.utils", **named)
    assert IMPLEMENTATIONS["transformers"].not_run == (reason and f"not_run ({reason})")
