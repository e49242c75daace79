"""Turns a test function for a sampler into one pytest item for each check."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, Unpack

from specref.conformance.case_files import Expectation
from specref.conformance.checks import Check
from specref.conformance.judge import Judge
from specref.conformance.options import CheckOptions, ClaimsOfCheck, Profile, timeout_of
from specref.conformance.suite import prepare
from specref.contracts.contract import Contract
from specref.contracts.table import contract_named
from specref.contracts.timeout import TIMEOUT
from specref.statistics.campaign.levels import ALPHA

MARK = "specref"
OF_THE_RUN = ("seed", "profile")
DEFAULTS = CheckOptions()
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Judged:
    """An implementation, and the options with which a test judges it."""

    implementation: Callable[..., Any]
    expected: tuple[Expectation, ...]
    options: CheckOptions

    @property
    def name(self) -> str:
        """Its name in files of expected failures."""
        return self.options.name

    def prepare(self, seed: int, profile: Profile) -> tuple[Judge, tuple[Check, ...]]:
        """Its judge, and the checks of its contract."""
        options = replace(self.options, seed=seed, profile=profile)
        judge, asked = prepare(self.implementation, options)
        return judge, tuple(check for check in asked if check.is_for(options.contract))

    def call(self, check: str, seed: int, profile: Profile) -> str:
        """Python code that runs one check again."""
        function = getattr(self.implementation, "__qualname__", "").split(".")[0]
        module = getattr(self.implementation, "__module__", None)
        known = module and function == getattr(self.implementation, "__qualname__", None)
        said = {one.name: getattr(self.options, one.name) for one in fields(self.options)}
        claims = said.pop("claims")
        words: dict[str, Any] = {"contract": str(said.pop("contract"))}
        words |= {
            name: value
            for name, value in said.items()
            if value != getattr(DEFAULTS, name) and name not in ("name", "only")
        }
        words |= {**claims, "only": [check], "seed": seed}
        words |= {"profile": profile} if self.options.detect_tv is None else {}
        arguments = ", ".join(f"{key}={value!r}" for key, value in words.items())
        lines = ["import specref"] + [f"from {module} import {function}"] * bool(known)
        name = function if known else self.name
        return "\n".join([*lines, f"print(specref.check({name}, {arguments}))"])


def parametrize(
    implementation: Callable[..., Any],
    *,
    contract: Contract | str = "verify",
    algorithm: str | None = None,
    expected_failures: Mapping[str, str] | None = None,
    only: Sequence[str] | None = None,
    detect_tv: float | None = None,
    alpha: float = ALPHA,
    trials: int | None = None,
    timeout: float | None = TIMEOUT,
    name: str | None = None,
    **claims: Unpack[ClaimsOfCheck],
) -> Callable[[F], F]:
    """Make one pytest item of each check of the contract, with its id: ``joint/wide``.

    The test takes an argument `check` and calls it. Seed and profile are those of the run
    (``--specref-seed``, ``--specref-profile``).

    Parameters
    ----------
    implementation, contract, algorithm, only, detect_tv, alpha, trials, timeout, **claims
        As for `specref.check`.
    expected_failures : mapping, optional
        {id of a check: reason}; take precedence over those of ``--specref-expected``.
    name : str, optional
        Its name in files of expected failures; by default its ``__name__``. With several
        decorators on one test, ids start with it.

    Raises
    ------
    ImportError
        pytest is not installed.
    TypeError, ValueError
        As for `specref.check`.

    Examples
    --------
    >>> from specref.adapters.reference import verify
    >>> @parametrize(verify, only=["boundary"])
    ... def test_reference(check):
    ...     check()
    """
    import pytest

    for word in OF_THE_RUN:
        if word in claims:
            raise TypeError(f"{word} is an option of the run, --specref-{word}, not of one test")
    options = CheckOptions(
        contract=contract_named(contract),
        algorithm=algorithm,
        only=only,
        detect_tv=detect_tv,
        alpha=alpha,
        trials=trials,
        timeout=timeout_of(timeout, claims),
        name=name or str(getattr(implementation, "__name__", type(implementation).__name__)),
        claims=claims,
    )
    expected = tuple(Expectation(*pair) for pair in (expected_failures or {}).items())
    tested = Judged(implementation, expected, options)
    tested.prepare(0, "quick")
    return pytest.mark.specref.with_args(tested)
