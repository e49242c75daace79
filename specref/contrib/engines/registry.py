"""The implementations that can be judged by name."""

from collections.abc import Callable
from functools import partial
from typing import Any

from specref.adapters.implementation import Deviation, Implementation
from specref.adapters.needs import NotInstalledError
from specref.contracts.contract import Contract
from specref.contracts.table import ENGINE, GENERATE, RAGGED, STEP, TREE, VERIFY
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
    vllm,
)
from specref.contrib.engines.checkouts import remedy


def _generate(path: str, **options: Any) -> Callable[..., Any]:
    from specref.contrib.engines.transformers_generate import Generate

    return Generate(path, **options)  # type: ignore[arg-type]


def _transformers(
    name: str, text: str, known: tuple[Deviation, ...] = (), greedy: bool = False, **options: Any
) -> Implementation:
    return Implementation(
        name=f"transformers-generate-{name}",
        contract=GENERATE,
        text=f"Hugging Face Transformers generate, {text}",
        make=partial(_generate, name.split("-")[0], **options),
        packages=("torch", "tokenizers", "transformers"),
        remedy=transformers.REMEDY,
        greedy=greedy,
        rule=RULES.get(name),
        known=known,
    )


def _engine(
    module: Any, name: str, text: str, known: tuple[Deviation, ...] = (), **options: Any
) -> Implementation:
    """A whole engine, from a module with `load_engine`, `PACKAGES` and `REMEDY`.

    The option `greedy` is one of `load_engine`, too.
    """
    return Implementation(
        name,
        ENGINE,
        text,
        partial(module.load_engine, **options),
        module.PACKAGES,
        module.REMEDY,
        options.get("greedy", False),
        known=known,
    )


def _ragged(
    module: Any, name: str, text: str, greedy: bool = False, apart: tuple[str, ...] = ()
) -> Implementation:
    """A sampler of an engine, from a module with `load_verify`, `PACKAGES` and `REMEDY`."""
    make = partial(module.load_verify, greedy=greedy)
    return Implementation(
        name, RAGGED, text, make, module.PACKAGES, module.REMEDY, greedy, apart=apart
    )


def _text(path: str, **options: Any) -> Callable[..., Any]:
    from specref.contrib.engines.transformers_text import load_engine

    return load_engine(path, **options)


def _transformers_text(
    name: str, text: str, known: tuple[Deviation, ...] = (), **options: Any
) -> Implementation:
    return Implementation(
        f"transformers-text-{name}",
        ENGINE,
        f"Hugging Face Transformers generate on a checkpoint, {text}",
        partial(_text, name.split("-")[0], **options),
        ("torch", "tokenizers", "transformers"),
        transformers.REMEDY,
        options.get("greedy", False),
        known=known,
    )


BY_ARGMAX: dict[str, Any] = {"greedy": True, "law": "ending"}
# Both orders of the two leave the same tokens of the laws that are known.
NUCLEUS = {"temperature": 0.8, "top_p": 0.75}
TOP_K: dict[str, Any] = {"law": "ending", "settings": {"temperature": 0.8, "top_k": 2}}
WIDE = {"temperature": 1.5, "top_p": 0.9}  # what is looked up is left


def _github(
    name: str,
    repository: str,
    text: str,
    contract: Contract,
    make: Callable[[], Callable[..., Any]],
    packages: tuple[str, ...] = ("torch", "transformers"),
    known: tuple[Deviation, ...] = (),
    greedy: bool = False,
) -> Implementation:
    return Implementation(
        f"github-{name}",
        contract,
        f"{repository}, {text}",
        make,
        packages,
        remedy(repository),
        greedy,
        known=known,
        apart=(repository,),
    )


def _unreached(
    name: str, contract: Contract, text: str, why: str, *packages: str
) -> Implementation:
    """One that is named, and said not to be judged."""

    def make() -> Callable[..., Any]:
        raise NotInstalledError(why)

    return Implementation(name, contract, text, make, packages, why)


RULES = {"sd": "standard", "sd-warm": "standard", "tli": "tli", "tli-sorted": "tli"}
ALL = (
    Implementation(
        "transformers",
        VERIFY,
        "Hugging Face Transformers _speculative_sampling",
        transformers.load_verify,
        transformers.PACKAGES,
        transformers.REMEDY,
        known=known.SAMPLER,
    ),
    _transformers("ar", "sampling without an assistant"),
    _transformers("sd", "assistant_model"),
    _transformers("sd-warm", "assistant_model, temperature 0.6", known.WARM, temperature=0.6),
    _transformers("tli", "assistant_tokenizer, sampling", known.TLI, anew=True),
    _transformers(
        "tli-sorted",
        "assistant_tokenizer that lists its vocabulary by id, sampling",
        known.TLI[-1:],
        order="sorted",
    ),
    _transformers("slem", "assistant_tokenizer, greedy", greedy=True),
    _transformers("pld", "prompt_lookup_num_tokens"),
    _engine(
        openvino_genai,
        "openvino-genai",
        "OpenVINO GenAI LLMPipeline, draft_model",
        known.OPENVINO,
    ),
    _engine(
        openvino_genai,
        "openvino-genai-lookup",
        "OpenVINO GenAI LLMPipeline, prompt_lookup",
        lookup=True,
    ),
    _engine(
        openvino_genai,
        "openvino-genai-greedy",
        "OpenVINO GenAI LLMPipeline, draft_model, greedy",
        **BY_ARGMAX,
    ),
    _engine(
        openvino_genai,
        "openvino-genai-lookup-greedy",
        "OpenVINO GenAI LLMPipeline, prompt_lookup, greedy",
        lookup=True,
        **BY_ARGMAX,
    ),
    _engine(
        openvino_genai,
        "openvino-genai-lookup-top-p",
        "OpenVINO GenAI LLMPipeline, prompt_lookup, temperature and top-p",
        lookup=True,
        settings=WIDE,
    ),
    _engine(
        openvino_genai,
        "openvino-genai-lookup-penalty",
        "OpenVINO GenAI LLMPipeline, prompt_lookup, repetition penalty",
        lookup=True,
        settings={"repetition_penalty": 1.3},
    ),
    _engine(onnxruntime_genai, "onnxruntime-genai", "onnxruntime-genai Generator, draft model"),
    _engine(
        onnxruntime_genai,
        "onnxruntime-genai-ngram",
        "onnxruntime-genai Generator, n-grams of the text",
        ngram_size=2,
    ),
    _engine(
        onnxruntime_genai,
        "onnxruntime-genai-ngram-chained",
        "onnxruntime-genai Generator, chained",
        ngram_size=2,
        ngram_chained_lookup=True,
    ),
    _engine(
        onnxruntime_genai,
        "onnxruntime-genai-greedy",
        "onnxruntime-genai Generator, draft model, greedy",
        **BY_ARGMAX,
    ),
    _engine(
        onnxruntime_genai,
        "onnxruntime-genai-ngram-greedy",
        "onnxruntime-genai Generator, n-grams of the text, greedy",
        ngram_size=2,
        **BY_ARGMAX,
    ),
    _engine(
        onnxruntime_genai,
        "onnxruntime-genai-top-p",
        "onnxruntime-genai Generator, draft model, temperature and top-p",
        settings=NUCLEUS,
    ),
    _engine(
        onnxruntime_genai,
        "onnxruntime-genai-penalty",
        "onnxruntime-genai Generator, draft model, repetition penalty",
        settings={"repetition_penalty": 3.0},
    ),
    _engine(
        onnxruntime_genai,
        "onnxruntime-genai-ngram-top-p",
        "onnxruntime-genai Generator, n-grams of the text, temperature and top-p",
        ngram_size=2,
        settings=WIDE,
    ),
    _engine(
        onnxruntime_genai,
        "onnxruntime-genai-ngram-penalty",
        "onnxruntime-genai Generator, n-grams of the text, repetition penalty",
        ngram_size=2,
        settings={"repetition_penalty": 1.3},
    ),
    Implementation(
        "flashspec",
        RAGGED,
        "flashspec rejection_step",
        flashspec.load_verify,
        flashspec.PACKAGES,
        flashspec.REMEDY,
    ),
    _ragged(lmdeploy, "lmdeploy", "LMDeploy rejection sampling"),
    _ragged(
        lmdeploy, "lmdeploy-greedy", "LMDeploy rejection sampling, greedy requests", greedy=True
    ),
    _ragged(vllm, "vllm", "vLLM rejection_sample", apart=("vllm",)),
    _ragged(
        vllm, "vllm-greedy", "vLLM rejection_sample, greedy requests", greedy=True, apart=("vllm",)
    ),
    _transformers_text("sd", "assistant_model"),
    _transformers_text("sd-top-p", "assistant_model, temperature and top-p", settings=NUCLEUS),
    _transformers_text("sd-top-k", "assistant_model, temperature and top-k", **TOP_K),
    _transformers_text(
        "sd-penalty",
        "assistant_model, repetition penalty",
        settings={"repetition_penalty": 3.0},
    ),
    _transformers_text("sd-greedy", "assistant_model, greedy", **BY_ARGMAX),
    _transformers_text("pld", "prompt_lookup_num_tokens"),
    _transformers_text(
        "pld-top-p", "prompt_lookup_num_tokens, temperature and top-p", settings=WIDE
    ),
    _transformers_text("pld-greedy", "prompt_lookup_num_tokens, greedy", **BY_ARGMAX),
    _transformers_text(
        "tli", "assistant_tokenizer, sampling", known.TLI_TEXT, law="two-vocabularies"
    ),
    _engine(
        llama_cpp,
        "llama-cpp-text-draft-simple",
        "llama.cpp, drafter's argmax against a draw of the target",
    ),
    _engine(
        llama_cpp,
        "llama-cpp-text-probabilistic",
        "llama.cpp, drafts drawn and kept by p / q",
        probabilistic=True,
    ),
    _engine(
        llama_cpp,
        "llama-cpp-text-draft-simple-top-p",
        "llama.cpp, drafter's argmax, temperature and top-p",
        settings=NUCLEUS,
    ),
    _engine(
        llama_cpp,
        "llama-cpp-text-draft-simple-top-k",
        "llama.cpp, drafter's argmax, temperature and top-k",
        **TOP_K,
    ),
    _engine(
        llama_cpp,
        "llama-cpp-text-probabilistic-min-p",
        "llama.cpp, drafts kept by p / q, min-p",
        probabilistic=True,
        settings={"min_p": 0.3},
    ),
    _engine(
        llama_cpp,
        "llama-cpp-text-probabilistic-penalty",
        "llama.cpp, drafts kept by p / q, repeat penalty",
        probabilistic=True,
        settings={"repeat_penalty": 3.0},
    ),
    _engine(
        llama_cpp,
        "llama-cpp-text-draft-simple-penalty",
        "llama.cpp, drafter's argmax, repeat penalty",
        settings={"repeat_penalty": 3.0},
    ),
    _engine(
        llama_cpp,
        "llama-cpp-text-ngram-simple",
        "llama.cpp, n-grams of the text",
        kind="ngram-simple",
    ),
    _engine(
        llama_cpp,
        "llama-cpp-text-ngram-cache",
        "llama.cpp, n-grams in a cache",
        kind="ngram-cache",
    ),
    *(
        _engine(llama_cpp, f"llama-cpp-text-{kind}", f"llama.cpp, {text}", kind=kind)
        for kind, text in (
            ("ngram-mod", "n-grams by their hash"),
            ("ngram-map-k", "n-grams counted from iteration to iteration"),
            ("ngram-map-k4v", "n-grams counted, four continuations each"),
        )
    ),
    *(
        _engine(
            llama_cpp,
            f"llama-cpp-text-greedy-{kind}",
            f"llama.cpp, temperature 0, {kind}",
            kind=kind,
            **BY_ARGMAX,
        )
        for kind in (
            *("draft-simple", "ngram-simple", "ngram-cache"),
            *("ngram-mod", "ngram-map-k", "ngram-map-k4v"),
        )
    ),
    _engine(
        llama_cpp,
        "llama-cpp-text-ngram-cache-penalty",
        "llama.cpp, n-grams in a cache, repeat penalty",
        kind="ngram-cache",
        settings={"repeat_penalty": 3.0},
    ),
    _engine(mlx_lm, "mlx-lm-text", "mlx-lm speculative_generate_step"),
    _engine(mlx_lm, "mlx-lm-text-greedy", "mlx-lm speculative_generate_step, greedy", **BY_ARGMAX),
    _engine(
        mlx_lm,
        "mlx-lm-text-min-p",
        "mlx-lm speculative_generate_step, min-p",
        settings={"min_p": 0.3},
    ),
    _engine(
        mlx_lm,
        "mlx-lm-text-penalty",
        "mlx-lm speculative_generate_step, repetition penalty",
        known.MLX_PENALTY,
        settings={"repetition_penalty": 3.0},
    ),
    Implementation(
        "mlx-dspark",
        VERIFY,
        "mlx-dspark _spec_sample_accept",
        mlx_dspark.load_verify,
        mlx_dspark.PACKAGES,
        mlx_dspark.REMEDY,
    ),
    Implementation(
        "sglang",
        RAGGED,
        "SGLang chain_speculative_sampling_triton",
        sglang.load_verify,
        sglang.PACKAGES,
        sglang.REMEDY,
        apart=(sglang.NAME,),
    ),
    Implementation(
        "sglang-block",
        RAGGED,
        "SGLang chain_speculative_sampling_triton, block verification",
        partial(sglang.load_verify, block=True),
        sglang.PACKAGES,
        sglang.REMEDY,
        apart=(sglang.NAME,),
    ),
    _unreached(
        "tensorrt-llm",
        RAGGED,
        "TensorRT-LLM",
        "its wheel needs CUDA; docs/check-an-engine-sampler.md has a block",
        "tensorrt_llm",
    ),
    *(
        Implementation(
            f"sequential-speculative-decoding-{kind}",
            STEP,
            f"sequential-speculative-decoding, {text}",
            partial(seqspecdecod.load_step, kind),
            seqspecdecod.PACKAGES,
            seqspecdecod.REMEDY,
            known=known.CAPPED if kind == "capped" else (),
        )
        for kind, text in (
            ("standard", "standard_speculative_step"),
            ("naive", "naive_hsd_step"),
            ("capped", "capped_hsd_step"),
        )
    ),
    Implementation(
        "rotalabs-accel",
        VERIFY,
        "rotalabs-accel verify_tokens",
        rotalabs_accel.load_verify,
        rotalabs_accel.PACKAGES,
        rotalabs_accel.REMEDY,
        known=known.ROTALABS,
    ),
    Implementation(
        "mini-infer",
        STEP,
        "mini-infer speculative_step",
        mini_infer.load_step,
        mini_infer.PACKAGES,
        mini_infer.REMEDY,
    ),
    Implementation(
        "economize",
        VERIFY,
        "economize RejectionVerifier, batches",
        economize.load_verify,
        economize.PACKAGES,
        economize.REMEDY,
    ),
    Implementation(
        "economize-tree",
        TREE,
        "economize RejectionVerifier, trees",
        partial(economize.load_verify, tree=True),
        economize.PACKAGES,
        economize.REMEDY,
    ),
    Implementation(
        "csaq-quant",
        GENERATE,
        "csaq-quant CSAQInferenceEngine",
        csaq.load_generate,
        csaq.PACKAGES,
        csaq.REMEDY,
        known=known.CSAQ,
    ),
    Implementation(
        "litgpt-step",
        STEP,
        "LitGPT speculative_decoding",
        litgpt.load,
        litgpt.PACKAGES,
        litgpt.REMEDY,
    ),
    Implementation(
        "litgpt-generate",
        GENERATE,
        "LitGPT speculative_decoding, its loop",
        partial(litgpt.load, loop=True),
        litgpt.PACKAGES,
        litgpt.REMEDY,
        known=known.LITGPT,
    ),
    Implementation(
        "lucidrains",
        GENERATE,
        "lucidrains speculative-decoding",
        lucidrains.load_generate,
        lucidrains.PACKAGES,
        lucidrains.REMEDY,
    ),
    _github(
        "jaymody",
        jaymody.REPOSITORY,
        "speculative_sampling",
        GENERATE,
        jaymody.load_generate,
        jaymody.PACKAGES,
    ),
    *(
        _github(
            f"feifeibear-{name}",
            feifeibear.REPOSITORY,
            function,
            GENERATE,
            partial(feifeibear.load_generate, function),
            feifeibear.PACKAGES,
        )
        for name, function in (
            ("google", "speculative_sampling"),
            ("deepmind", "speculative_sampling_v2"),
        )
    ),
    _github(
        "romsto-drafter",
        romsto.REPOSITORY,
        "speculative_generate",
        GENERATE,
        romsto.load_generate,
        romsto.PACKAGES,
    ),
    _github(
        "romsto-ngrams",
        romsto.REPOSITORY,
        "ngram_assisted_speculative_generate",
        GENERATE,
        partial(romsto.load_generate, ngrams=True),
        romsto.PACKAGES,
        known.ROMSTO,
    ),
    _github(
        "ssd",
        ssd.REPOSITORY,
        "verify",
        VERIFY,
        ssd.load_verify,
        known=known.SSD,
    ),
    _github(
        "ssd-defaults",
        ssd.REPOSITORY,
        "verify, with speculate=True and else the defaults of Config",
        VERIFY,
        partial(ssd.load_verify, jit=False),
        known=known.SSD_DEFAULTS,
    ),
    _github(
        "hsd-chain",
        hsd.REPOSITORY,
        "algorithm_clean, HSD",
        VERIFY,
        hsd.load_verify,
        known=known.HSD,
    ),
    _github(
        "hsd-tree",
        hsd.TREE,
        "evaluate_posterior of EAGLE-3H, hsd",
        TREE,
        partial(candidates.load_eagle, hsd.TREE, "EAGLE-3H", hsd=True),
    ),
    _github(
        "eagle",
        "SafeAILab/EAGLE",
        "evaluate_posterior",
        TREE,
        candidates.load_eagle,
    ),
    _github(
        "medusa-typical",
        "FasterDecoding/Medusa",
        "evaluate_posterior, typical",
        TREE,
        partial(candidates.load_medusa, "typical"),
        known=known.TYPICAL,
    ),
    _github(
        "medusa-nucleus",
        "FasterDecoding/Medusa",
        "evaluate_posterior, nucleus of all",
        TREE,
        partial(candidates.load_medusa, "nucleus"),
        known=known.NUCLEUS,
    ),
    _github(
        "sequoia",
        sequoia.REPOSITORY,
        "SpecTree.verify",
        STEP,
        sequoia.load_step,
        known=known.SEQUOIA,
    ),
    _github(
        "lookahead",
        lookahead.REPOSITORY,
        "jacobi_sample_multilevel",
        GENERATE,
        lookahead.load_generate,
    ),
    _github(
        "lookahead-greedy",
        lookahead.REPOSITORY,
        "jacobi_greedy_search_multilevel",
        GENERATE,
        partial(lookahead.load_generate, greedy=True),
        greedy=True,
    ),
)
