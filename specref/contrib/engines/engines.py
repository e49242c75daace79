"""The engines of the scoreboard: how each installs, and the registered names that judge it."""

from dataclasses import dataclass
from shutil import which

from specref.adapters.implementation import Implementation
from specref.adapters.registry import IMPLEMENTATIONS
from specref.contrib.engines import hsd, lookahead, sequoia, ssd


@dataclass(frozen=True)
class Installable:
    """An engine on PyPI, or a clone.

    * `name`: Its registered implementations are called so, or begin so.
    * `distribution`: The package whose version is that of the engine.
    * `requirements`: What pip installs; nothing where no adapter calls it.
    * `megabytes`: What the wheels were seen to be, without torch.
    * `alone`: Installed without dependencies but those that are listed: its models need many more.
    * `needs_cuda`: Not installed where there is no CUDA.
    * `slow`: Without CUDA its kernels run in Triton's interpreter: few checks.
    * `clone`: No package, but a clone ``OWNER/NAME``, or ``OWNER/NAME@COMMIT``, that is there
      already.
    """

    name: str
    distribution: str
    requirements: tuple[str, ...]
    megabytes: int
    alone: bool = False
    needs_cuda: bool = False
    slow: bool = False
    clone: str = ""

    @property
    def paths(self) -> tuple[Implementation, ...]:
        """The registered implementations."""
        start = f"{self.name}-"
        return tuple(
            one
            for key, one in IMPLEMENTATIONS.items()
            if key == self.name or key.startswith(start)
        )


# What LMDeploy imports before its rejection sampling is reached.
LMDEPLOY = (
    "mmengine-lite", "addict", "yapf", "platformdirs", "termcolor", "pyyaml", "pybase64",
)  # fmt: skip
CUDA = which("nvidia-smi") is not None
TORCH = ("torch", "transformers")
LIGHTNING = ("lightning", "lightning-utilities", "torchmetrics")
ALL = (
    Installable("transformers", "transformers", ("torch", "transformers"), 12),
    Installable("flashspec", "flashspec", ("torch", "flashspec"), 1, alone=True),
    Installable("mlx-lm", "mlx-lm", ("mlx-lm", "mlx[cpu]"), 12),
    Installable(
        "mlx-dspark",
        "mlx-dspark",
        (*TORCH, "mlx[cpu]", "mlx-lm", "mlx-vlm", "mlx-dspark"),
        52,
        alone=True,
    ),
    Installable("llama-cpp", "xllamacpp", ("xllamacpp", "gguf"), 34),
    Installable("openvino-genai", "openvino-genai", ("openvino-genai",), 66),
    Installable("onnxruntime-genai", "onnxruntime-genai", ("onnxruntime-genai", "onnx"), 49),
    Installable("lmdeploy", "lmdeploy", ("torch", "lmdeploy", *LMDEPLOY), 107, alone=True),
    Installable("sglang", "sglang", ("torch", "triton", "sglang"), 39, alone=True, slow=True),
    Installable(
        "sequential-speculative-decoding",
        "sequential-speculative-decoding",
        (*TORCH, "sequential-speculative-decoding"),
        1,
        alone=True,
    ),
    Installable("rotalabs-accel", "rotalabs-accel", (*TORCH, "rotalabs-accel"), 1, alone=True),
    Installable("mini-infer", "mini-infer", (*TORCH, "mini-infer"), 1, alone=True),
    Installable("economize", "economize", (*TORCH, "economize"), 1, alone=True),
    Installable("csaq-quant", "csaq-quant", (*TORCH, "tqdm", "csaq-quant"), 1, alone=True),
    Installable("litgpt", "litgpt", (*TORCH, *LIGHTNING, "litgpt"), 4, alone=True),
    Installable(
        "lucidrains",
        "speculative-decoding",
        (*TORCH, "beartype", "einops", "speculative-decoding"),
        1,
        alone=True,
    ),
    Installable("github-jaymody", "", (*TORCH, "tqdm"), 0, clone="jaymody/speculative-sampling"),
    Installable(
        "github-feifeibear", "", (*TORCH, "tqdm"), 0, clone="feifeibear/LLMSpeculativeSampling"
    ),
    Installable(
        "github-romsto", "", (*TORCH, "termcolor"), 0, clone="romsto/Speculative-Decoding"
    ),
    Installable("github-eagle", "", TORCH, 0, clone="SafeAILab/EAGLE"),
    Installable("github-medusa", "", TORCH, 0, clone="FasterDecoding/Medusa"),
    Installable("github-sequoia", "", TORCH, 0, clone=sequoia.REPOSITORY),
    Installable("github-ssd", "", TORCH, 0, clone=ssd.REPOSITORY),
    Installable("github-hsd-chain", "", TORCH, 0, clone=hsd.REPOSITORY),
    Installable("github-hsd-tree", "", TORCH, 0, clone=hsd.TREE),
    Installable("github-lookahead", "", TORCH, 0, clone=lookahead.REPOSITORY),
    Installable("tensorrt-llm", "tensorrt-llm", ("tensorrt-llm",), 0, needs_cuda=True),
    Installable("vllm", "vllm", ("torch", "triton", "vllm"), 336, alone=not CUDA, slow=True),
)
ENGINES = {one.name: one for one in ALL}
