"""The implementations that can be judged by name."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

from specref.adapters.implementation import Deviation, Implementation
from specref.adapters.needs import NotInstalledError
from specref.contracts.contract import Contract
from specref.contracts.table import ENGINE, GENERATE, GENERATE_BATCH, RAGGED, STEP, TREE, VERIFY
from specref.contrib.engines import (
    candidates,
    csaq,
    economize,
    feifeibear,
    flashspec,
    hsd,
    jaymody,
    known,
    litgpt,
    llama_cpp,
    lmdeploy,
    lookahead,
    lucidrains,
    mini_infer,
    mlx_dspark,
    mlx_lm,
    onnxruntime_genai,
    openvino_genai,
    romsto,
    rotalabs_accel,
    seqspecdecod,
    sequoia,
    sglang,
    ssd,
    transformers,
    transformers_text,
    vllm,
)
from specref.contrib.engines.checkouts import remedy

Known: TypeAlias = tuple[Deviation, ...]
Options: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, str, Options] | tuple[str, str, Options, Known]
"""(what its name ends in, what its text ends in, options, the failures that are expected)."""


def _of(
    module: Any,
    name: str,
    contract: Contract,
    text: str,
    load: str = "load_verify",
    *given: Any,
    known: Known = (),
    greedy: bool = False,
    apart: tuple[str, ...] = (),
    install: str = "",
    **options: Any,
) -> Implementation:
    """One of a module with `PACKAGES` and `REMEDY`; what else is given is for its `load`."""
    make = partial(getattr(module, load), *given, **options)
    install = install or module.REMEDY
    return Implementation(
        name, contract, text, make, module.PACKAGES, install, greedy, None, known, apart
    )


def _github(
    module: Any, name: str, text: str, contract: Contract, *given: Any, repository: str = "",
    **more: Any,
) -> Implementation:  # fmt: skip
    """One of a clone; the rest is as for `_of`."""
    place = repository or module.REPOSITORY
    told = f"github-{name}", contract, f"{place}, {text}"
    return _of(module, *told, *given, install=remedy(place), apart=(place,), **more)


def _engine(module: Any, name: str, text: str, *paths: Path) -> Iterator[Implementation]:
    """The paths of a whole engine; the option `greedy` is one of its `load_engine`, too."""
    for end, what, options, *expected in paths:
        greedy = options.get("greedy", False)
        make = partial(module.load_engine, **options)
        yield Implementation(
            name + end, ENGINE, text + what, make, module.PACKAGES, module.REMEDY, greedy,
            None, sum(expected, ()),
        )  # fmt: skip


def _later(module: str, load: str, *given: Any, **options: Any) -> Any:
    """What a function of a module gives that imports its packages as it is imported itself."""
    loading = import_module(f"specref.contrib.engines.{module}")
    return getattr(loading, load)(*given, **options)


def _transformers(
    name: str, contract: Contract, text: str, load: Callable[..., Any], *paths: Path
) -> Iterator[Implementation]:
    """The paths of `generate`: of toy models, and of checkpoints."""
    for end, what, options, *expected in paths:
        make = partial(load, end.split("-")[0], **options)
        greedy = end == "slem" or options.get("greedy", False)
        rule = RULES.get(end) if contract is GENERATE else None
        yield Implementation(
            name + end, contract, text + what, make, transformers_text.PACKAGES,
            transformers.REMEDY, greedy, rule, sum(expected, ()),
        )  # fmt: skip


def _unreached(
    name: str, contract: Contract, text: str, why: str, *packages: str
) -> Implementation:
    """One that is named, and said not to be judged."""

    def make() -> Callable[..., Any]:
        raise NotInstalledError(why)

    return Implementation(name, contract, text, make, packages, why)


RULES = {"sd": "standard", "sd-warm": "standard", "tli": "tli", "tli-sorted": "tli"}
BY_ARGMAX: Options = {"greedy": True, "law": "ending"}
# Both orders of the two leave the same tokens of the laws that are known.
NUCLEUS: Options = {"settings": {"temperature": 0.8, "top_p": 0.75}}
TOP_K: Options = {"law": "ending", "settings": {"temperature": 0.8, "top_k": 2}}
WIDE: Options = {"settings": {"temperature": 1.5, "top_p": 0.9}}  # what is looked up is left
MILD: Options = {"settings": {"repetition_penalty": 1.3}}
STRONG: Options = {"settings": {"repetition_penalty": 3.0}}
LLAMA_PENALTY: Options = {"settings": {"repeat_penalty": 3.0}}
MIN_P: Options = {"settings": {"min_p": 0.3}}
LOOKUP: Options = {"lookup": True}
NGRAMS: Options = {"ngram_size": 2}
DRAWN: Options = {"probabilistic": True}
PLAIN: Options = {}
LLAMA_KINDS = (
    "draft-simple", "ngram-simple", "ngram-cache", "ngram-mod", "ngram-map-k", "ngram-map-k4v",
)  # fmt: skip
ALL = (
    _of(
        transformers, "transformers", VERIFY, "Hugging Face Transformers _speculative_sampling",
        known=known.SAMPLER,
    ),
    *_transformers(
        "transformers-generate-", GENERATE, "Hugging Face Transformers generate, ",
        partial(_later, "transformers_generate", "Generate"),
        ("ar", "sampling without an assistant", PLAIN),
        ("sd", "assistant_model", PLAIN),
        ("sd-warm", "assistant_model, temperature 0.6", {"temperature": 0.6}, known.WARM),
        ("tli", "assistant_tokenizer, sampling", {"anew": True}, known.TLI),
        (
            "tli-sorted", "assistant_tokenizer that lists its vocabulary by id, sampling",
            {"order": "sorted"}, known.TLI[-1:],
        ),
        ("slem", "assistant_tokenizer, greedy", PLAIN),
        ("pld", "prompt_lookup_num_tokens", PLAIN),
    ),
    Implementation(
        "torch-backend-generate-batch", GENERATE_BATCH,
        "specref torch_backend generate, batches of toy models",
        partial(_later, "toys", "load_torch_backend"), transformers.PACKAGES, transformers.REMEDY,
    ),
    Implementation(
        "transformers-generate-batch-ar", GENERATE_BATCH,
        "Hugging Face Transformers generate, batches, sampling without an assistant",
        partial(_later, "toys", "load_transformers"), transformers.PACKAGES, transformers.REMEDY,
    ),
    _unreached(
        "transformers-generate-batch-sd",
        GENERATE_BATCH,
        "Hugging Face Transformers generate, batches, assistant_model",
        "assisted generation takes one prompt at a time; transformers-generate-sd judges it",
        "transformers",
    ),
    *_engine(
        openvino_genai, "openvino-genai", "OpenVINO GenAI LLMPipeline, ",
        ("", "draft_model", PLAIN, known.OPENVINO),
        ("-lookup", "prompt_lookup", LOOKUP),
        ("-greedy", "draft_model, greedy", BY_ARGMAX),
        ("-lookup-greedy", "prompt_lookup, greedy", LOOKUP | BY_ARGMAX),
        ("-lookup-top-p", "prompt_lookup, temperature and top-p", LOOKUP | WIDE),
        ("-lookup-penalty", "prompt_lookup, repetition penalty", LOOKUP | MILD),
    ),
    *_engine(
        onnxruntime_genai, "onnxruntime-genai", "onnxruntime-genai Generator, ",
        ("", "draft model", PLAIN),
        ("-ngram", "n-grams of the text", NGRAMS),
        ("-ngram-chained", "chained", {**NGRAMS, "ngram_chained_lookup": True}),
        ("-greedy", "draft model, greedy", BY_ARGMAX),
        ("-ngram-greedy", "n-grams of the text, greedy", NGRAMS | BY_ARGMAX),
        ("-top-p", "draft model, temperature and top-p", NUCLEUS),
        ("-penalty", "draft model, repetition penalty", STRONG),
        ("-ngram-top-p", "n-grams of the text, temperature and top-p", NGRAMS | WIDE),
        ("-ngram-penalty", "n-grams of the text, repetition penalty", NGRAMS | MILD),
    ),
    _of(flashspec, "flashspec", RAGGED, "flashspec rejection_step"),
    _of(lmdeploy, "lmdeploy", RAGGED, "LMDeploy rejection sampling"),
    _of(
        lmdeploy, "lmdeploy-greedy", RAGGED, "LMDeploy rejection sampling, greedy requests",
        "load_verify", True, greedy=True,
    ),
    _of(vllm, "vllm", RAGGED, "vLLM rejection_sample", apart=("vllm",)),
    _of(
        vllm, "vllm-greedy", RAGGED, "vLLM rejection_sample, greedy requests",
        "load_verify", True, greedy=True, apart=("vllm",),
    ),
    *_transformers(
        "transformers-text-", ENGINE, "Hugging Face Transformers generate on a checkpoint, ",
        transformers_text.load_engine,
        ("sd", "assistant_model", PLAIN),
        ("sd-top-p", "assistant_model, temperature and top-p", NUCLEUS),
        ("sd-top-k", "assistant_model, temperature and top-k", TOP_K),
        ("sd-penalty", "assistant_model, repetition penalty", STRONG),
        ("sd-greedy", "assistant_model, greedy", BY_ARGMAX),
        ("pld", "prompt_lookup_num_tokens", PLAIN),
        ("pld-top-p", "prompt_lookup_num_tokens, temperature and top-p", WIDE),
        ("pld-greedy", "prompt_lookup_num_tokens, greedy", BY_ARGMAX),
        ("tli", "assistant_tokenizer, sampling", {"law": "two-vocabularies"}, known.TLI_TEXT),
    ),
    *_engine(
        llama_cpp, "llama-cpp-text-", "llama.cpp, ",
        ("draft-simple", "drafter's argmax against a draw of the target", PLAIN),
        ("probabilistic", "drafts drawn and kept by p / q", DRAWN),
        ("draft-simple-top-p", "drafter's argmax, temperature and top-p", NUCLEUS),
        ("draft-simple-top-k", "drafter's argmax, temperature and top-k", TOP_K),
        ("probabilistic-min-p", "drafts kept by p / q, min-p", DRAWN | MIN_P),
        ("probabilistic-penalty", "drafts kept by p / q, repeat penalty", DRAWN | LLAMA_PENALTY),
        ("draft-simple-penalty", "drafter's argmax, repeat penalty", LLAMA_PENALTY),
        ("ngram-simple", "n-grams of the text", {"kind": "ngram-simple"}),
        ("ngram-cache", "n-grams in a cache", {"kind": "ngram-cache"}),
        ("ngram-mod", "n-grams by their hash", {"kind": "ngram-mod"}),
        ("ngram-map-k", "n-grams counted from iteration to iteration", {"kind": "ngram-map-k"}),
        (
            "ngram-map-k4v", "n-grams counted, four continuations each",
            {"kind": "ngram-map-k4v"},
        ),
        *(
            (f"greedy-{kind}", f"temperature 0, {kind}", {"kind": kind, **BY_ARGMAX})
            for kind in LLAMA_KINDS
        ),
        (
            "ngram-cache-penalty", "n-grams in a cache, repeat penalty",
            {"kind": "ngram-cache", **LLAMA_PENALTY},
        ),
    ),
    *_engine(
        mlx_lm, "mlx-lm-text", "mlx-lm speculative_generate_step",
        ("", "", PLAIN),
        ("-greedy", ", greedy", BY_ARGMAX),
        ("-min-p", ", min-p", MIN_P),
        ("-penalty", ", repetition penalty", STRONG, known.MLX_PENALTY),
    ),
    _of(mlx_dspark, "mlx-dspark", VERIFY, "mlx-dspark _spec_sample_accept"),
    _of(
        sglang, "sglang", RAGGED, "SGLang chain_speculative_sampling_triton",
        apart=(sglang.NAME,),
    ),
    _of(
        sglang, "sglang-block", RAGGED,
        "SGLang chain_speculative_sampling_triton, block verification",
        apart=(sglang.NAME,), block=True,
    ),
    _unreached(
        "tensorrt-llm",
        RAGGED,
        "TensorRT-LLM",
        "its wheel needs CUDA; docs/check-an-engine-sampler.md has a block",
        "tensorrt_llm",
    ),
    *(
        _of(
            seqspecdecod, f"sequential-speculative-decoding-{kind}", STEP,
            f"sequential-speculative-decoding, {text}", "load_step", kind,
            known=known.CAPPED if kind == "capped" else (),
        )
        for kind, text in (
            ("standard", "standard_speculative_step"),
            ("naive", "naive_hsd_step"),
            ("capped", "capped_hsd_step"),
        )
    ),
    _of(
        rotalabs_accel, "rotalabs-accel", VERIFY, "rotalabs-accel verify_tokens",
        known=known.ROTALABS,
    ),
    _of(mini_infer, "mini-infer", STEP, "mini-infer speculative_step", "load_step"),
    _of(economize, "economize", VERIFY, "economize RejectionVerifier, batches"),
    _of(economize, "economize-tree", TREE, "economize RejectionVerifier, trees", tree=True),
    _of(
        csaq, "csaq-quant", GENERATE, "csaq-quant CSAQInferenceEngine", "load_generate",
        known=known.CSAQ,
    ),
    _of(litgpt, "litgpt-step", STEP, "LitGPT speculative_decoding", "load"),
    _of(
        litgpt, "litgpt-generate", GENERATE, "LitGPT speculative_decoding, its loop", "load",
        known=known.LITGPT, loop=True,
    ),
    _of(lucidrains, "lucidrains", GENERATE, "lucidrains speculative-decoding", "load_generate"),
    _github(jaymody, "jaymody", "speculative_sampling", GENERATE, "load_generate"),
    *(
        _github(feifeibear, f"feifeibear-{name}", function, GENERATE, "load_generate", function)
        for name, function in (
            ("google", "speculative_sampling"),
            ("deepmind", "speculative_sampling_v2"),
        )
    ),
    _github(romsto, "romsto-drafter", "speculative_generate", GENERATE, "load_generate"),
    _github(
        romsto, "romsto-ngrams", "ngram_assisted_speculative_generate", GENERATE,
        "load_generate", known=known.ROMSTO, ngrams=True,
    ),
    _github(ssd, "ssd", "verify", VERIFY, known=known.SSD),
    _github(
        ssd, "ssd-defaults", "verify, with speculate=True and else the defaults of Config",
        VERIFY, known=known.SSD_DEFAULTS, jit=False,
    ),
    _github(hsd, "hsd-chain", "algorithm_clean, HSD", VERIFY, known=known.HSD),
    _github(
        candidates, "hsd-tree", "evaluate_posterior of EAGLE-3H, hsd", TREE, "load_eagle",
        hsd.TREE, "EAGLE-3H", repository=hsd.TREE, hsd=True,
    ),
    _github(
        candidates, "eagle", "evaluate_posterior", TREE, "load_eagle",
        repository="SafeAILab/EAGLE",
    ),
    _github(
        candidates, "medusa-typical", "evaluate_posterior, typical", TREE, "load_medusa",
        "typical", repository="FasterDecoding/Medusa", known=known.TYPICAL,
    ),
    _github(
        candidates, "medusa-nucleus", "evaluate_posterior, nucleus of all", TREE, "load_medusa",
        "nucleus", repository="FasterDecoding/Medusa", known=known.NUCLEUS,
    ),
    _github(sequoia, "sequoia", "SpecTree.verify", STEP, "load_step", known=known.SEQUOIA),
    _github(lookahead, "lookahead", "jacobi_sample_multilevel", GENERATE, "load_generate"),
    _github(
        lookahead, "lookahead-greedy", "jacobi_greedy_search_multilevel", GENERATE,
        "load_generate", True, greedy=True,
    ),
)  # fmt: skip
