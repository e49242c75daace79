"""Runs an implementation of verification over the published vectors."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, product
from typing import Any, Unpack

import numpy as np

from specref.conformance.scheduling import Workers, loaded
from specref.conformance.status import Status
from specref.contracts.batch import read_answer
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities, Claims, capabilities_of, explicit_claims
from specref.contracts.errors import BrokenContractError
from specref.contracts.table import VERIFY, signed
from specref.contracts.timeout import TIMEOUT, HungError, within
from specref.rules import DEFAULT
from specref.vectors.by_law import (
    LOW,
    NO_COINS,
    difference,
    expected_law,
    probed_law,
    question,
    unknown,
)
from specref.vectors.reading import DRAWS, POLICIES, PRECISIONS, as_batch, as_coins
from specref.vocabulary import Tokens

SHORT = {"NoDraft", "TruncatedDraft"}
CHUNK = 16


@dataclass(frozen=True)
class Result:
    """The result of one case.

    Attributes
    ----------
    status : Status
        Passed, failed, not applicable, or not run.
    expected : tuple of int
        The block.
    got : tuple of int or None
        None if there was none.
    note : str
        Why, as far as that is known.
    """

    id: str
    flags: tuple[str, ...]
    status: Status
    expected: Tokens
    got: Tokens | None = None
    note: str = ""

    @property
    def ran(self) -> bool:
        """Whether the case was run."""
        return self.status in (Status.PASSED, Status.FAILED)


@dataclass(frozen=True)
class Run:
    """The results of all cases, and the conventions that were assumed.

    * `last` ({"inverse", "descending", "race"}, or None): How the last token is drawn from coins.
      None: it takes no coins, and laws were compared.
    * `policies`: Legitimate conventions that differ from those of the vectors.
    * `fits`: The conventions under which every answer is right, as options; empty if there are
      none.
    """

    algorithm: str
    last: str | None
    policies: tuple[str, ...]
    dtype: str
    results: tuple[Result, ...]
    fits: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """{status: how many cases}."""
        return dict(Counter(str(result.status) for result in self.results))

    @property
    def reasons(self) -> dict[str, int]:
        """{why cases were not judged: how many}, the most frequent first."""
        left = (one.note for one in self.results if not one.ran and one.note)
        return dict(Counter(left).most_common())

    @property
    def failures(self) -> list[Result]:
        return [result for result in self.results if result.status == Status.FAILED]

    @property
    def exit_code(self) -> int:
        """0 if every case that applies passed, 1 if one failed, 2 if none or not all were run."""
        if self.failures:
            return 1
        return 0 if self.counts.get("passed") and not self.counts.get("not_run") else 2

    def __bool__(self) -> bool:
        return self.exit_code == 0


def run(
    implementation: Callable[..., Any],
    cases: Sequence[Mapping[str, Any]],
    *,
    algorithm: str = DEFAULT,
    last: str | None = None,
    policies: Sequence[str] = (),
    timeout: float | None = TIMEOUT,
    executor: Executor | None = None,
    load: Callable[[], Callable[..., Any]] | None = None,
    **claims: Unpack[Claims],
) -> Run:
    """Put every case of level ``verify`` to an implementation, each in a batch of its own.

    One that takes `coins` is given those of the case, and its block is compared. The randomness
    of any other is intercepted, and the exact law of its block is compared: cases that differ in
    coins alone are then one question, which is asked once.

    * `implementation`: Of the contract ``verify``.
    * `cases`: As `load_cases` returns them.
    * `algorithm`: The rule that the cases are of.
    * `last` ({"inverse", "descending", "race"}, optional): How it draws the last token from coins;
      by default what it claims as `recovery`, or ``inverse``.
    * `policies` (sequence of {"accept-up-to", "closed-cdf"}): Where it differs, legitimately.
    * `timeout`: Seconds for a call.
    * `executor`: Runs chunks of cases. The results do not depend on it, if what the implementation
      does depends on its arguments alone.
    * `load`: How its workers get the implementation; by default they import it by its name.
    * `**claims`: Fields of `Capabilities`.
    * raises `TypeError`: It is not of the contract, or cannot be sent to the executor.
    * raises `ImportError`: A worker cannot import it.
    * raises `ValueError`: `last`, a policy or a claim is unknown, or it takes no coins that the
      first two are about.

    Examples
    --------
    >>> from specref.adapters.reference import verify
    >>> from specref.vectors.reading import FOLDER, load_cases
    >>> cases = load_cases(FOLDER, "standard")
    >>> run(verify, cases).exit_code, run(verify, cases, last="inverse").exit_code
    (0, 1)
    """
    signed(implementation, VERIFY)
    claimed = capabilities_of(implementation, **claims)
    claimed, _ = VERIFY.read(implementation, claimed, explicit_claims(implementation, claims))
    if claimed.dtype not in PRECISIONS:
        raise ValueError(f"dtype = {claimed.dtype!r}: expected one of {', '.join(PRECISIONS)}")
    verifier = Verifier(implementation, claimed, timeout)
    wanted = [case for case in cases if case["level"] == "verify"]
    workers = None if executor is None else Workers(executor, load)
    if "coins" not in verifier.keywords:
        if last or policies:
            raise ValueError(
                "--last and --policy are for samplers that take random numbers: this has none"
            )
        by_law = partial(ByLaw, rule=algorithm)
        results = all_of(by_law, verifier, wanted, workers)
        return Run(algorithm, None, (), claimed.dtype, results)
    last = last or claimed.recovery or "inverse"
    if last not in DRAWS:
        raise ValueError(f"last = {last!r}: expected one of {', '.join(DRAWS)}")
    for policy in policies:
        if policy not in POLICIES:
            raise ValueError(f"policy {policy!r}: expected one of {', '.join(POLICIES)}")
    by_coins = partial(Trial, last=last, policies=tuple(policies))
    results = all_of(by_coins, verifier, wanted, workers)
    trial = by_coins(verifier)
    fits = fitting(trial, wanted, results)
    return Run(algorithm, last, trial.policies, claimed.dtype, results, fits)


@dataclass(frozen=True)
class Asked:
    """An implementation that cases are put to."""

    verifier: Verifier

    def until_hung(self, cases: Sequence[Mapping[str, Any]]) -> tuple[list[Result], bool]:
        """The result of each case until a call does not return, and whether one did not."""
        results: list[Result] = []
        for case in cases:
            if reason := self.not_applicable(case):
                results.append(self.result(case, Status.NOT_APPLICABLE, note=reason))
                continue
            try:
                results.append(self.judged(case))
            except BrokenContractError as error:
                results.append(self.result(case, Status.FAILED, note=str(error)))
                if isinstance(error, HungError):
                    return results, True
        return results, False

    @abstractmethod
    def judged(self, case: Mapping[str, Any]) -> Result:
        """The result of one case that applies.

        * raises `BrokenContractError`: It failed; `HungError`: the call did not return.
        """

    def expected(self, case: Mapping[str, Any]) -> Tokens:
        """The expected block, where coins decide one."""
        return ()

    def not_applicable(self, case: Mapping[str, Any]) -> str:
        """Why a case does not apply to the implementation; "" if it does."""
        claims, names = self.verifier.capabilities, list(PRECISIONS)
        if names.index(case["precision"]) > names.index(claims.dtype):
            return f"needs {case['precision']}"
        if case["q"] is None and not claims.one_hot:
            return "it is never called without draft_probs"
        if not claims.ragged and SHORT & set(case["flags"]):
            return "it never gets rows with fewer drafts"
        return ""

    def result(
        self, case: Mapping[str, Any], status: Status, got: Tokens | None = None, note: str = ""
    ) -> Result:
        flags = tuple(case["flags"])
        return Result(case["id"], flags, status, self.expected(case), got, note)


@dataclass(frozen=True)
class ByLaw(Asked):
    """An implementation without coins, and the rule that the cases are of."""

    rule: str
    questions: set[tuple[object, ...]] = field(default_factory=set)

    def not_applicable(self, case: Mapping[str, Any]) -> str:
        if reason := super().not_applicable(case):
            return reason
        if self.verifier.capabilities.dtype in LOW:
            return "low precision: the distribution is not exact"
        return NO_COINS if question(case) in self.questions else ""

    def judged(self, case: Mapping[str, Any]) -> Result:
        """The result of one case, and so of all that differ from it in coins alone."""
        self.questions.add(question(case))
        found = within(self.verifier.timeout, lambda: probed_law(self.verifier, case))
        if why := unknown(found):
            return self.result(
                case, Status.NOT_RUN, note=f"its distribution cannot be probed: {why}"
            )
        note = difference(found, expected_law(case, self.rule))
        return self.result(case, Status.FAILED if note else Status.PASSED, note=note)


@dataclass(frozen=True)
class Trial(Asked):
    """An implementation with coins, and the conventions that it keeps."""

    last: str
    policies: tuple[str, ...]

    def judged(self, case: Mapping[str, Any]) -> Result:
        got = self.answer(case)
        if got == self.expected(case):
            return self.result(case, Status.PASSED, got)
        return self.result(case, Status.FAILED, got, other_convention(case, got, self.policies))

    def expected(self, case: Mapping[str, Any]) -> Tokens:
        """The expected block, under the conventions of this implementation."""
        mine, usual = set(self.policies), case["expected"]
        either = case.get("either", ())
        kept = next((one for one in either if set(one["policies"]) == mine), usual)
        return tuple(kept["tokens"][self.last])

    def answer(self, case: Mapping[str, Any]) -> Tokens:
        """The block that the implementation returns."""
        batch, coins, rng = as_batch(case), as_coins(case), np.random.default_rng(0)
        verifier = self.verifier
        raw = within(verifier.timeout, lambda: verifier.raw(batch, rng, coins))
        answer = read_answer(raw, batch)
        return tuple(answer.tokens[0, : answer.counts[0]].tolist())


def all_of(
    ask: Callable[[Verifier], Asked],
    verifier: Verifier,
    cases: Sequence[Mapping[str, Any]],
    workers: Workers | None,
) -> tuple[Result, ...]:
    """The result of each case; those after a call that does not return are not run."""
    if workers is None:
        done = [ask(verifier).until_hung(cases)]
    else:
        payload = workers.payload(verifier.implementation)
        given = payload, verifier.capabilities, verifier.timeout
        submit = workers.executor.submit
        futures = [submit(in_worker, ask, *given, chunk) for chunk in chunks(cases)]
        done = [future.result() for future in futures]
    results = {one.id: one for found, _ in done for one in found}
    hung = {found[-1].id for found, stuck in done if stuck}
    after, why = False, "an earlier call did not return"
    ordered: list[Result] = []
    for case in cases:
        left = partial(ask(verifier).result, case, Status.NOT_RUN, note=why)
        ordered.append(left() if after or case["id"] not in results else results[case["id"]])
        after = after or case["id"] in hung
    return tuple(ordered)


def chunks(cases: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The cases in parts; those that differ in coins alone are together, in their order."""
    questions: dict[tuple[object, ...], list[Mapping[str, Any]]] = {}
    for case in cases:
        questions.setdefault(question(case), []).append(case)
    parts: list[list[Mapping[str, Any]]] = [[]]
    for together in questions.values():
        if len(parts[-1]) >= CHUNK:
            parts.append([])
        parts[-1] += together
    return parts


def in_worker(
    ask: Callable[[Verifier], Asked],
    payload: bytes,
    claims: Capabilities,
    timeout: float | None,
    cases: Sequence[Mapping[str, Any]],
) -> tuple[list[Result], bool]:
    """What `until_hung` returns, in a worker that loads the implementation."""
    return ask(Verifier(loaded(payload), claims, timeout)).until_hung(cases)


def outcomes(case: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The expected outcome, then those under other policies."""
    return [case["expected"], *case.get("either", ())]


def other_convention(case: Mapping[str, Any], got: Tokens, mine: Sequence[str]) -> str:
    """Which convention other than that with policies `mine` gives this block, in words."""
    for one in outcomes(case):
        draws = [name for name, block in one["tokens"].items() if tuple(block) == got]
        if draws:
            policies = "".join(f"--policy {name} " for name in one.get("policies", ()))
            without = " without --policy" if mine and not policies else ""
            return f"what {policies}--last {' or '.join(draws)}{without} expects"
    return ""


def fitting(trial: Trial, cases: Sequence[Mapping[str, Any]], results: Sequence[Result]) -> str:
    """The first conventions under which every answer is the expected one, as options."""
    pairs = [(case, one.got) for case, one in zip(cases, results, strict=True) if one.ran]
    for last, number in product(DRAWS, range(len(POLICIES) + 1)):
        for policies in combinations(POLICIES, number):
            other = Trial(trial.verifier, last, policies)
            if pairs and all(other.expected(case) == got for case, got in pairs):
                return " ".join([f"--last {last}", *(f"--policy {name}" for name in policies)])
    return ""
