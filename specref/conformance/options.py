"""The options of a run of checks; judge and report both hold them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from specref.conformance.strata.shape import Shape
from specref.contracts.capabilities import Claims, Dtype
from specref.contracts.contract import Contract
from specref.contracts.table import contract_named
from specref.contracts.timeout import TIMEOUT
from specref.contracts.verify import VERIFY
from specref.statistics.campaign.levels import ALPHA

if TYPE_CHECKING:
    from specref.conformance.checks import Check
    from specref.conformance.report import Report
    from specref.conformance.status import CheckResult

Profile: TypeAlias = Literal["quick", "standard", "thorough", "smoke"]
LONGER = (
    *(f"joint/probed-{n}-drafts" for n in (3, 4, 6, 7, 8, 9, 33)),
    *(f"joint/probed-vocabulary-{size}" for size in ("32k", "128k")),
)
"""Exact laws that the profile smoke leaves out: of a sampler in torch they take longer than all
others together, and other lengths and sizes are among those."""
LEAST = Shape(2, 1, 1)
DETECT_TV: dict[Profile, float] = {
    "smoke": 0.05,
    "quick": 0.05,
    "standard": 0.02,
    "thorough": 0.01,
}


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The options of `check`: attributes are its keyword arguments, but for `on_…` and `executor`.

    Attributes
    ----------
    name, version : str
        Of the implementation, for the report.
    claims : mapping
        Fields of `Capabilities`.
    """

    contract: Contract = VERIFY
    algorithm: str | None = None
    expected_failures: Mapping[str, str] = field(default_factory=dict)
    only: Sequence[str] | None = None
    skip: Sequence[str] = ()
    profile: Profile = "quick"
    detect_tv: float | None = None
    alpha: float = ALPHA
    seed: int = 0
    trials: int | None = None
    seconds: float | None = None
    time_limit: float | None = None
    timeout: float | None = TIMEOUT
    blocking: bool = True
    exitfirst: bool = False
    name: str = ""
    version: str = ""
    claims: Mapping[str, Any] = field(default_factory=dict)
    shapes: tuple[Shape, ...] = ()
    dtypes: tuple[Dtype, ...] = ()
    strict: bool = False
    texts: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "contract", contract_named(self.contract))
        if self.time_limit is not None and self.seconds is None:
            object.__setattr__(self, "seconds", self.time_limit)
        for refusal in self._refusals():
            raise ValueError(refusal)

    def _refusals(self) -> Iterator[str]:
        """What is wrong with the values, in words."""
        contract = f"under the contract {self.contract}"
        if self.profile not in DETECT_TV:
            yield f"profile = {self.profile!r}: expected one of {get_args(Profile)}"
        for label, value in (("alpha", self.alpha), ("detect_tv", self.tv)):
            if not 0 < value < 1:
                yield f"{label} = {value}: expected a number in (0, 1)"
        if self.seed < 0:
            yield f"seed = {self.seed}: expected at least 0"
        if self.timeout is not None and not self.timeout > 0:
            yield f"timeout = {self.timeout}: expected a positive number of seconds, or None"
        if self.trials is not None and self.trials < 1:
            yield f"trials = {self.trials}: expected at least 1"
        if self.seconds is not None:
            limit = "seconds" if self.time_limit is None else "time_limit"
            if self.time_limit not in (None, self.seconds):
                both = f"time_limit = {self.time_limit:g}, seconds = {self.seconds:g}"
                yield f"{both}: expected one of them"
            if not 0 < self.seconds < math.inf:
                yield f"{limit} = {self.seconds}: expected a positive number"
            for label in ("trials", "detect_tv"):
                if (value := getattr(self, label)) is not None:
                    both = f"{limit} = {self.seconds:g}, {label} = {value:g}"
                    yield f"{both}: expected one of them"
        if self.shapes and not self.contract.shaped:
            yield f"shapes = {self.shapes}: expected none {contract}"
        for index, shape in enumerate(self.shapes):
            for label, size, least in zip(shape._fields, shape, LEAST, strict=True):
                if size < least:
                    yield f"shapes[{index}]: {label} = {size}: expected at least {least}"
            if "batch" not in self.contract.shaped and shape.batch != 1:
                yield f"shapes[{index}]: batch = {shape.batch}: expected 1 {contract}"
        if self.dtypes and "batch" not in self.contract.shaped:
            yield f"dtypes = {self.dtypes}: expected none {contract}"
        for dtype in self.dtypes:
            if dtype not in get_args(Dtype):
                yield f"dtypes has {dtype!r}: expected some of {get_args(Dtype)}"
        if self.dtypes and not self.shapes:
            yield f"dtypes = {self.dtypes}: expected shapes, too"

    @property
    def tv(self) -> float:
        """The distance that every statistical check detects."""
        return DETECT_TV[self.profile] if self.detect_tv is None else self.detect_tv


class ClaimsOfCheck(Claims, total=False):
    """The claims that `check` takes as keywords, and the former name of `timeout`."""

    patience: float | None


def timeout_of(timeout: float | None, claims: ClaimsOfCheck) -> float | None:
    """The timeout of a call; its former name, `patience`, is removed from `claims`."""
    if "patience" not in claims:
        return timeout
    if timeout != TIMEOUT:
        raise TypeError("patience is the former name of timeout: expected one of them")
    return claims.pop("patience")


@dataclass(frozen=True)
class Listener:
    """Callbacks for trials, checks, results and reports as they come; see `check`."""

    advance: Callable[[int], None] = lambda trials: None
    on_start: "Callable[[Check], None]" = lambda one: None
    on_result: "Callable[[CheckResult], None]" = lambda result: None
    on_report: "Callable[[Report], None]" = lambda report: None
