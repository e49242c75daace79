"""A test function for somebody's sampler that becomes one pytest item for each check."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from specref.conformance.checks import Check
from specref.conformance.contract import Contract
from specref.conformance.expectations import Expectation
from specref.conformance.judge import PATIENCE, Judge, Profile
from specref.conformance.suite import prepare
from specref.losslessness.statistics import ALPHA

MARK = "specref"
OF_THE_RUN = ("seed", "profile")
DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "algorithm": None,
        "only": None,
        "detect_tv": None,
        "alpha": ALPHA,
        "trials": None,
        "patience": PATIENCE,
    }
)
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Subject:
    """An implementation, and how a test wants it judged."""

    implementation: Callable[..., Any]
    contract: str
    name: str
    expected: tuple[Expectation, ...]
    options: Mapping[str, Any]
    claims: Mapping[str, Any]

    def prepare(self, seed: int, profile: Profile) -> tuple[Judge, tuple[Check, ...]]:
        """Its judge, and the checks of its contract."""
        judge, asked = prepare(
            self.implementation,
            self.contract,
            profile=profile,
            seed=seed,
            advance=lambda trials: None,
            claims=self.claims,
            **self.options,
        )
        return judge, tuple(check for check in asked if self.contract in check.contracts)

    def call(self, check: str, seed: int, profile: Profile) -> str:
        """The Python that runs one check again."""
        function = getattr(self.implementation, "__qualname__", "").split(".")[0]
        module = getattr(self.implementation, "__module__", None)
        known = module and function == getattr(self.implementation, "__qualname__", None)
        options = {k: v for k, v in self.options.items() if v != DEFAULTS[k] and k != "only"}
        words = {"contract": self.contract, **options, **self.claims, "only": [check]}
        words |= {"seed": seed} | ({"profile": profile} if "detect_tv" not in options else {})
        arguments = ", ".join(f"{key}={value!r}" for key, value in words.items())
        lines = ["import specref"] + [f"from {module} import {function}"] * bool(known)
        name = function if known else self.name
        return "\n".join([*lines, f"print(specref.check({name}, {arguments}))"])


def parametrize(
    implementation: Callable[..., Any],
    *,
    contract: Contract | str = Contract.VERIFY,
    algorithm: str | None = None,
    expected_failures: Mapping[str, str] | None = None,
    only: Sequence[str] | None = None,
    detect_tv: float | None = None,
    alpha: float = ALPHA,
    trials: int | None = None,
    patience: float | None = PATIENCE,
    name: str | None = None,
    **claims: Any,
) -> Callable[[F], F]:
    """Make one pytest item of each check of the contract, called as the check: ``joint/wide``.

    The test takes an argument `check` and calls it. Seed and profile are those of the run
    (``--specref-seed``, ``--specref-profile``).

    Parameters
    ----------
    implementation, contract, algorithm, only, detect_tv, alpha, trials, patience, **claims
        As for `specref.check`.
    expected_failures : mapping, optional
        {id of a check: reason}; come before those of ``--specref-expected``.
    name : str, optional
        What files of expected failures call it; by default its ``__name__``. With several
        decorators on one test, ids start with it.

    Raises
    ------
    ImportError
        pytest is not installed.
    TypeError, ValueError
        As for `specref.check`.

    Examples
    --------
    >>> from specref.conformance.implementations.reference import verify
    >>> @parametrize(verify, only=["boundary"])
    ... def test_reference(check):
    ...     check()
    """
    import pytest

    for word in OF_THE_RUN:
        if word in claims:
            raise TypeError(f"{word} is an option of the run, --specref-{word}, not of one test")
    given = (algorithm, only, detect_tv, alpha, trials, patience)
    subject = Subject(
        implementation,
        str(contract),
        name or str(getattr(implementation, "__name__", type(implementation).__name__)),
        tuple(Expectation(*pair) for pair in (expected_failures or {}).items()),
        dict(zip(DEFAULTS, given, strict=True)),
        claims,
    )
    subject.prepare(0, "quick")
    return pytest.mark.specref.with_args(subject)
