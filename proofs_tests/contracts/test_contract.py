"""Every kind of misbehaviour is a named failure with its row; nothing crashes the judge."""

import inspect
import random
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.bugs.verifiers import clean, from_coins, watched
from specref.conformance.checks.smoke import SIZE
from specref.conformance.public import check
from specref.conformance.report import Report
from specref.conformance.status import Finding, Status
from specref.contracts.batch import Batch, read_answer
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import Contract
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.signature import accepted_keywords
from specref.contracts.table import CONTRACTS, contracts_of, signed
from specref.contracts.timeout import TIMEOUT
from specref.contracts.verify import sample_batch
from specref.pytest_plugin.parametrize import parametrize
from specref.vectors.running import run as run_vectors

pytestmark = pytest.mark.usefixtures("undiagnosed")

Answered = Callable[[Any, Any, Any, Any, Any], Any]


class Unspeakable(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise ValueError("no words")


def answering(change: Answered) -> Callable[..., Any]:
    """The clean verifier, and then something done to its answer."""

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        answer = clean(target_probs, draft_probs, draft_tokens, rng=rng)
        return change(*answer, target_probs, draft_probs, draft_tokens)

    return verify


def with_values(array: Any, where: Any, value: Any) -> Any:
    array = array.copy()
    array[where] = value
    return array


def raised(error: BaseException) -> Any:
    raise error


def raise_if(condition: Any, error: BaseException) -> None:
    if np.any(condition):
        raise error


OOM = RuntimeError("out of memory\nand more")
ANSWERS: dict[str, tuple[Answered, str]] = {
    "raises": (lambda t, n, p, q, x: raised(OOM), r"raised RuntimeError at row 0: out of memory$"),
    "exits": (lambda t, n, p, q, x: raised(SystemExit(3)), r"raised SystemExit at row 0: 3"),
    "raises at token 3": (
        lambda t, n, p, q, x: (raise_if(x == 3, KeyError("3")), (t, n))[1],
        r"raised KeyError at row \d+: '3'",
    ),
    "raises in batches": (
        lambda t, n, p, q, x: (raise_if(len(x) > 1, TypeError("one row")), (t, n))[1],
        r"raised TypeError in a batch of \d+: one row",
    ),
    "raises without words": (
        lambda t, n, p, q, x: raised(Unspeakable()),
        r"raised Unspeakable at row 0: its message cannot be shown",
    ),
    "None": (lambda t, n, p, q, x: None, r"returned None: expected a pair \(tokens, counts\)"),
    "tokens alone": (lambda t, n, p, q, x: t, r"returned a ndarray: expected a pair"),
    "three": (lambda t, n, p, q, x: (t, n, n), r"returned a tuple of 3: expected a pair"),
    "two letters": (lambda t, n, p, q, x: "ab", r"returned a str: expected a pair"),
    "no bonus column": (
        lambda t, n, p, q, x: (t[:, :-1], n),
        r"tokens has shape \((\d+), \d\): expected \(\1, \d\)",
    ),
    "counts in a column": (
        lambda t, n, p, q, x: (t, n[:, None]),
        r"counts has shape \((\d+), 1\): expected \(\1,\)",
    ),
    "ragged lists": (
        lambda t, n, p, q, x: ([row[:k] for row, k in zip(t.tolist(), n, strict=True)], n),
        r"tokens (cannot be read as an array|has dtype|has shape)",
    ),
    "floats": (
        lambda t, n, p, q, x: (t.astype(np.float32), n),
        r"tokens has dtype float32: expected integers",
    ),
    "NaN": (
        lambda t, n, p, q, x: (with_values(t.astype(np.float64), np.s_[-1, 1], np.nan), n),
        r"tokens\[\d+, 1\] = nan: expected integers",
    ),
    "bools": (lambda t, n, p, q, x: (t, n > 1), r"counts has dtype bool: expected integers"),
    "objects": (lambda t, n, p, q, x: (t.astype(object), n), r"tokens has dtype object"),
    "id too large": (
        lambda t, n, p, q, x: (with_values(t, np.s_[-1, 0], p.shape[2]), n),
        r"tokens\[\d+, 0\] = (\d+): expected 0 <= id < \1, or -1",
    ),
    "id too small": (
        lambda t, n, p, q, x: (np.where(t < 0, -2, t), n),
        r"tokens\[\d+, \d\] = -2: expected 0 <= id",
    ),
    "unsigned padding": (
        lambda t, n, p, q, x: (t.astype(np.uint64), n),
        r"tokens\[\d+, \d\] = 18446744073709551615: out of range",
    ),
    "padded with 0": (
        lambda t, n, p, q, x: (np.maximum(t, 0), n),
        r"counts\[\d+\] = \d but tokens\[\d+\] = \[.*\]: expected \d tokens?, then -1 in the",
    ),
    "counts of accepted": (
        lambda t, n, p, q, x: (t, n - 1),
        r"counts\[\d+\] = \d.*expected (1 to|\d tokens?, then)",
    ),
    "no token": (
        lambda t, n, p, q, x: (with_values(t, -1, -1), with_values(n, -1, 0)),
        r"counts\[\d+\] = 0: expected 1 to",
    ),
    "more than drafts and one": (
        lambda t, n, p, q, x: (np.maximum(t, 0), np.full_like(n, t.shape[1])),
        r"counts\[\d+\] = \d: expected 1 to",
    ),
    "other tokens than drafts": (
        lambda t, n, p, q, x: (np.where(t >= 0, (t + (n[:, None] > 1)) % p.shape[2], -1), n),
        r"tokens\[\d+\] = \[.*\]: expected its drafts \[.*\] up to the last token",
    ),
}


def first_failure(report: Report) -> Any:
    assert report.exit_code == 1
    assert report.finding == Finding.CONTRACT
    assert not report.lossy
    return report.failures[0]


def test_the_clean_verifier_passes() -> None:
    report = check(clean, only=["smoke"])
    assert report.failures == ()
    assert report.exit_code == 0


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("tensors", [False, True])
def test_a_wrong_answer_is_a_named_failure(name: str, tensors: bool) -> None:
    change, message = ANSWERS[name]
    verify = answering(change)
    asked = {"only": ["smoke/answers"], "arrays": "torch" if tensors else "numpy"}
    failure = first_failure(check(in_torch(verify) if tensors else verify, **asked))
    if name == "tokens alone" and tensors:
        message = "returned a Tensor"
    assert_matches(message, failure.message)


@pytest.mark.parametrize("short", [True, False])
def test_too_many_tokens_tell_of_padding_where_a_row_has_fewer_drafts(short: bool) -> None:
    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, lens: Any) -> Any:
        drafts = draft_tokens.shape[1]
        wrong = (lens < drafts) == short
        counts = np.where(wrong, drafts + 2 - short, 1)
        tokens = np.where(np.arange(drafts + 1) < counts[:, None], 0, -1)
        return tokens, counts

    message = first_failure(check(verify, only=["smoke/answers"])).message
    assert ("--declare ragged=false" in message) == short, message


def assert_matches(pattern: str, text: str) -> None:
    assert re.search(pattern, text), f"{text!r} does not say {pattern!r}"


def in_torch(verify: Callable[..., Any]) -> Callable[..., Any]:
    """The same verifier, between tensors."""
    torch = pytest.importorskip("torch")

    def tensor(value: Any) -> Any:
        known = isinstance(value, np.ndarray) and value.dtype.kind in "iufb"
        return torch.from_numpy(value) if known and value.dtype != np.uint64 else value

    def wrapped(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        q = None if draft_probs is None else draft_probs.numpy()
        raw = verify(target_probs.numpy(), q, draft_tokens.numpy(), rng=rng)
        return tuple(map(tensor, raw)) if isinstance(raw, tuple) else tensor(raw)

    return wrapped


@pytest.mark.parametrize("row", [0, 700, 4095])
def test_the_offending_row_is_found_in_a_large_batch(row: int) -> None:
    batch = sample_batch(CHAIN_FIXTURES["wide"], 4096, np.random.default_rng(1))
    marked = batch.target_probs.copy()
    marked[row] = [0.125, 0.125, 0.25, 0.25, 0.25]
    verify = watched(lambda p, q, drafts: raise_if(p[:, 0, 0] == 0.125, ZeroDivisionError()))
    given = Batch(marked, batch.draft_probs, batch.draft_tokens, batch.lens, batch.place)
    verifier = Verifier(verify, Capabilities(), TIMEOUT)
    with pytest.raises(BrokenContractError, match=f"ZeroDivisionError at row {row}$") as caught:
        verifier(given, np.random.default_rng(1))
    assert caught.value.row == caught.value.evidence["row"] == row
    assert caught.value.evidence["draft_tokens"] == batch.draft_tokens[row].tolist()
    assert caught.value.evidence["target_probs"] == marked[row].tolist()


def test_a_call_that_hangs_is_a_named_failure() -> None:
    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        time.sleep(30)

    report = check(verify, only=["smoke/answers", "joint/wide"], timeout=0.2)
    assert report.exit_code == 2
    assert report.finding == Finding.UNANSWERED
    assert report.verdict == (
        "NOT ANSWERED in time (smoke/answers); no check found a wrong distribution"
    )
    hung, blocked = report.results
    called = re.fullmatch(
        r"did not return within 0.2 s \((.*)\); it is still running", hung.message
    )
    assert called
    assert re.fullmatch(r"[\d,]+ rows, \d drafts, \d tokens(, without draft_probs)?", called[1])
    assert hung.evidence["hung"]
    assert "time.sleep(30)" in "\n".join(hung.traceback)
    assert "specref" not in "\n".join(hung.traceback)
    assert blocked.message == "blocked by smoke/answers"


MUTATED = ("target_probs", "draft_probs", "draft_tokens", "lens", "coins.accept", "coins.race")


@pytest.mark.parametrize("name", MUTATED)
def test_a_changed_argument_is_a_named_failure(name: str) -> None:
    def verify(
        target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any, coins: Any, lens: Any
    ) -> Any:
        answer = clean(target_probs, draft_probs, draft_tokens, rng=rng)
        given = {"target_probs": target_probs, "draft_probs": draft_probs, "lens": lens}
        given |= {"draft_tokens": draft_tokens, "coins.accept": coins.accept}
        given["coins.race"] = coins.race
        if given[name] is not None:
            given[name][2] += 1
        return answer

    report = check(verify, only=["smoke/inputs-unchanged"])
    failure = first_failure(report)
    assert_matches(rf"^{name}\[2.*\] was .* and is .* after the call", failure.message)


@pytest.mark.parametrize("name", ["target_probs", "draft_probs", "draft_tokens"])
def test_a_changed_tensor_is_a_named_failure(name: str) -> None:
    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        answer = in_torch(clean)(target_probs, draft_probs, draft_tokens, rng=rng)
        given = {"target_probs": target_probs, "draft_probs": draft_probs}
        changed = given.get(name, draft_tokens)
        if changed is not None:
            changed[2] += 1
        return answer

    failure = first_failure(check(verify, only=["smoke/inputs-unchanged"], arrays="torch"))
    assert failure.message.startswith(f"{name}[2")


def test_changing_arguments_deceives_no_other_check() -> None:
    # Whoever overwrites the drafts and lengths with what it emitted would look right.
    def verify(
        target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any, lens: Any
    ) -> Any:
        tokens = np.zeros((len(lens), draft_tokens.shape[1] + 1), dtype=np.int64)
        draft_tokens[:], lens[:] = 0, draft_tokens.shape[1]
        return tokens, lens + 1

    assert first_failure(check(verify, only=["smoke/answers"])).message.startswith("counts[")


KEPT = np.random.default_rng(5)
OWN = {"unseeded": np.random.default_rng, "kept": lambda: KEPT}


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("name", OWN)
def test_randomness_of_its_own_is_a_named_failure(name: str) -> None:
    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        return clean(target_probs, draft_probs, draft_tokens, rng=OWN[name]())

    report = check(verify, only=["smoke"])
    assert [failure.id for failure in report.failures] == ["smoke/deterministic"]
    assert_matches(
        r"row \d+ is \[.*\], then \[.*\] under the same seed", report.failures[0].message
    )
    assert check(verify, only=["smoke"], seeded=False).failures == ()


# Ways to be given randomness: parameters, how they become a NumPy generator, arrays, and claims.


def by_rng(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    return clean(target_probs, draft_probs, draft_tokens, rng=rng)


def by_coins(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, coins: Any) -> Any:
    return clean(target_probs, draft_probs, draft_tokens, rng=from_coins(coins))


def by_both(
    target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any, coins: Any, lens: Any
) -> Any:
    assert (lens == (draft_tokens >= 0).sum(axis=1)).all()
    return clean(target_probs, draft_probs, draft_tokens, rng=from_coins(coins))


def by_global(target_probs: Any, draft_probs: Any, draft_tokens: Any) -> Any:
    seed = np.random.randint(2**31)  # noqa: NPY002
    return clean(target_probs, draft_probs, draft_tokens, rng=np.random.default_rng(seed))


def by_python(target_probs: Any, draft_probs: Any, draft_tokens: Any, lens: Any) -> Any:
    rng = np.random.default_rng(random.getrandbits(60))
    return clean(target_probs, draft_probs, draft_tokens, rng=rng)


def by_torch(target_probs: Any, draft_probs: Any, draft_tokens: Any) -> Any:
    import torch

    rng = np.random.default_rng(int(torch.randint(2**60, (1,))))
    return clean(target_probs, draft_probs, draft_tokens, rng=rng)


def by_generator(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, generator: Any) -> Any:
    import torch

    rng = np.random.default_rng(int(torch.randint(2**60, (1,), generator=generator)))
    return clean(target_probs, draft_probs, draft_tokens, rng=rng)


WAYS = (by_rng, by_coins, by_both, by_global, by_python, by_torch, by_generator)
CLAIMS = ({}, {"batch": 1}, {"batch": 5, "dtype": "float32"}, {"ragged": False, "one_hot": False})


def even_only(verify: Callable[..., Any]) -> Callable[..., Any]:
    """Raises for what it does not claim."""
    names = accepted_keywords(verify)

    def strict(target_probs: Any, draft_probs: Any, draft_tokens: Any, **given: Any) -> Any:
        assert (draft_tokens >= 0).all()
        assert draft_probs is not None
        return verify(target_probs, draft_probs, draft_tokens, **given)

    strict.__signature__ = inspect.signature(verify)  # type: ignore[attr-defined]
    assert accepted_keywords(strict) == names
    return strict


def limited(verify: Callable[..., Any], rows: int) -> Callable[..., Any]:
    """Raises for larger batches."""

    def strict(target_probs: Any, draft_probs: Any, draft_tokens: Any, **given: Any) -> Any:
        assert len(draft_tokens) <= rows
        return verify(target_probs, draft_probs, draft_tokens, **given)

    strict.__signature__ = inspect.signature(verify)  # type: ignore[attr-defined]
    return strict


ASKED = (
    "smoke",
    "replay/permuted",
    "boundary/equal-rows",
    "boundary/disjoint",
    "boundary/certain",
    "boundary/forbidden",
    "boundary/tiny",
    "boundary/ragged",
    "joint/eos",
)


def adapted(way: Callable[..., Any], claims: dict[str, Any]) -> Callable[..., Any]:
    way = even_only(way) if not claims.get("ragged", True) else way
    return limited(way, claims["batch"]) if "batch" in claims else way


@pytest.mark.deep(one_in=32)
@pytest.mark.parametrize("claims", CLAIMS, ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_be_called_passes(way: Callable[..., Any], claims: dict[str, Any]) -> None:
    # A clean sampler fails with probability at most 1e-9; so few trials leave the law open.
    if way in (by_torch, by_generator):
        pytest.importorskip("torch")
    only = ["smoke", "joint/eos"] if claims.get("batch") == 1 else ASKED
    report = check(adapted(way, claims), only=only, trials=200, **claims)
    assert report.failures == ()
    assert {r.id for r in report.results if r.status == Status.INCONCLUSIVE} == {"joint/eos"}
    if not claims.get("ragged", True):
        assert status(report, "smoke/no-drafts") == Status.NOT_APPLICABLE
        assert status(report, "smoke/one-hot") == Status.NOT_APPLICABLE


def status(report: Report, id_: str) -> Status:
    return next(result.status for result in report.results if result.id == id_)


@pytest.mark.parametrize("way", WAYS)
def test_the_same_seed_repeats_every_way(way: Callable[..., Any]) -> None:
    if way in (by_torch, by_generator):
        pytest.importorskip("torch")
    batch = sample_batch(CHAIN_FIXTURES["wide"], SIZE, np.random.default_rng(1))
    verifier = Verifier(way, Capabilities(), TIMEOUT)
    first, second, other = (verifier(batch, np.random.default_rng(s)).tokens for s in (1, 1, 2))
    assert (first == second).all()
    assert (first != other).any()


def test_global_generators_are_put_back() -> None:
    torch = pytest.importorskip("torch")
    before = np.random.get_state()[1], torch.get_rng_state()  # noqa: NPY002
    check(by_global, only=["smoke/answers"])
    check(by_torch, only=["smoke/answers"])
    assert (before[0] == np.random.get_state()[1]).all()  # noqa: NPY002
    assert (before[1] == torch.get_rng_state()).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_probabilities_are_cast_and_put_on_the_device(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    seen: list[Any] = []

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, generator: Any) -> Any:
        seen.append((target_probs.dtype, draft_tokens.dtype, generator.device.type))
        p, q = target_probs.double(), None if draft_probs is None else draft_probs.double()
        return in_torch(clean)(p, q, draft_tokens, rng=np.random.default_rng(1))

    check(verify, only=["smoke/answers"], arrays="torch", dtype=dtype)
    assert set(seen) == {(getattr(torch, dtype), torch.int64, "cpu")}


@pytest.mark.parametrize(
    ("claims", "error", "message"),
    [({"batch": 0}, ValueError, "batch = 0: expected"), ({"speed": 9}, TypeError, "speed")],
)
def test_a_claim_that_means_nothing_is_refused(
    claims: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        check(clean, **claims)


def test_only_declared_parameters_are_passed() -> None:
    assert accepted_keywords(lambda p, q, x, **rest: None) == frozenset()
    assert accepted_keywords(lambda p, q, x, lens, temperature=1: None) == {"lens"}
    assert accepted_keywords(min) == frozenset()
    with pytest.raises(TypeError, match="expected a function"):
        accepted_keywords(3)  # type: ignore[arg-type]


def test_tensors_that_numpy_cannot_read_are_a_named_failure() -> None:
    torch = pytest.importorskip("torch")
    batch = sample_batch(CHAIN_FIXTURES["wide"], 8, np.random.default_rng(1))
    tokens = torch.zeros((8, 3), dtype=torch.bfloat16)
    with pytest.raises(BrokenContractError, match="tokens cannot be read as an array"):
        read_answer((tokens, tokens[:, 0]), batch)


SIX = V, T, S, G, D, M = tuple(
    CONTRACTS[name] for name in ("verify", "tree", "step", "generate", "drafter", "metrics")
)
CALLABLE: list[tuple[Callable[..., Any], tuple[Contract, ...]]] = [
    # As documented: one contract takes each, though others have as many arguments.
    (lambda target_probs, draft_probs, draft_tokens, *, rng: 0, (V,)),
    (lambda target_probs, draft_probs, draft_tokens, rng: 0, (V,)),
    (lambda target_probs, draft_probs, draft_tokens, *, coins, lens: 0, (V,)),
    (lambda target_probs, draft_probs, draft_tokens, generator: 0, (V,)),
    (lambda target_probs, draft_probs, draft_tokens: 0, (V,)),
    (lambda target_probs, draft_probs, draft_tokens, top_k=0, *, rng: 0, (V,)),
    (lambda target_probs, draft_probs, draft_tokens, parents, *, rng: 0, (T,)),
    (lambda target_probs, draft_probs, draft_tokens, parents=None, *, rng: 0, (V, T)),
    (lambda target, drafter, context, lookahead, rng: 0, (S,)),
    (lambda target, drafter, context, lookahead, chance: 0, (S,)),
    (lambda target, drafter, context, lookahead, *, chance: 0, (S,)),
    (lambda target, drafter, context, lookahead: 0, (S,)),
    (lambda target, drafter, context, tokens, rng: 0, (G,)),
    (lambda drafter, context, lookahead, rng: 0, (D,)),
    (lambda log: 0, (M,)),
    # Other names: whatever calls with as many.
    (lambda p, q, x, *, rng: 0, (V, D)),
    (lambda p, q, x, parents, *, rng: 0, (T, S, G)),
    (lambda target, drafter, context, n, rng: 0, (T, S, G)),
    (lambda p, q, x, parents=None: 0, (V, T, S, G, D)),
    (lambda *arguments, **keywords: 0, (V, T, S, G, D, M)),
    (min, (V, T, S, G, D, M)),
    # What no contract passes, or passes otherwise.
    (lambda: 0, ()),
    (lambda p, q: 0, ()),
    (lambda p, q, x, *, rng, temperature: 0, ()),
    (lambda p, q, x, *, rng, temperature=1: 0, (V, D)),
    (lambda p, q, x, rng, /: 0, ()),
    (lambda p, q, x, /, *, rng: 0, (V, D)),
    (lambda p, q, x, *, parents, rng: 0, ()),
    (lambda target, drafter, context, lookahead, rng, chance: 0, ()),
    (lambda target, drafter, context, lookahead, coins: 0, ()),
    (lambda a, b, c, d, e, f: 0, ()),
]  # fmt: skip


@pytest.mark.parametrize(("function", "fitting"), CALLABLE, ids=range(len(CALLABLE)))
def test_a_function_is_judged_by_the_contracts_that_can_call_it(
    function: Callable[..., Any], fitting: tuple[Contract, ...]
) -> None:
    for contract in SIX:
        if contract in fitting:
            signed(function, contract)
            continue
        with pytest.raises(
            TypeError, match=f"contract {contract} gives .* fits(, by .* alone)?$"
        ) as refused:
            signed(function, contract)
        named = [one for one in SIX if f"--contract {one}" in str(refused.value)]
        assert set(named) <= set(fitting)
        assert bool(named) == bool(fitting)


def test_of_several_contracts_those_are_named_whose_words_it_uses() -> None:
    assert contracts_of(lambda p, q, x, parents, *, rng: 0) == (T,)
    assert contracts_of(lambda target, drafter, context, n, rng: 0) == (S, G)
    assert contracts_of(lambda p, q: 0) == ()
    assert contracts_of(lambda p, q, drafts, x, rng: 0) == (T,)


def test_no_contract_fits_by_the_number_of_parameters_that_are_something_else() -> None:
    with pytest.raises(TypeError, match="no contract fits"):
        signed(lambda target_probs, draft_probs, draft_tokens, bonus_probs: 0, V)
    with pytest.raises(TypeError, match="fits, by the number of its parameters alone"):
        signed(lambda a, b, c, d: 0, V)


def test_what_cannot_be_called_is_never_called_lossy() -> None:
    def two(p: Any, q: Any) -> Any:
        raise AssertionError("called")

    words = (
        r"two takes \(p, q\): contract verify gives \(target_probs, draft_probs, draft_tokens\), "
        "and by name any of rng, coins, lens, generator, generators; no contract fits"
    )
    with pytest.raises(TypeError, match=words):
        check(two)
    with pytest.raises(TypeError, match=words):
        parametrize(two)
    with pytest.raises(TypeError, match=words):
        run_vectors(two, [])


def test_the_row_that_is_named_is_the_one_that_is_wrong() -> None:
    """The last token of a row is no draft, and is not asked to be."""
    laws = np.full((2, 3, 4), 0.25)
    drafts = np.array([[1, 2], [1, 2]])
    batch = Batch(laws, laws[:, :2], drafts, np.array([2, 2]), np.array([0, 0]))
    tokens = np.array([[3, -1, -1], [3, 0, -1]])
    with pytest.raises(
        BrokenContractError, match=r"tokens\[1\] = \[3, 0, -1\]: expected its"
    ) as e:
        read_answer((tokens, np.array([1, 2])), batch)
    assert e.value.row == 1
    tokens[1] = [1, 0, -1]
    assert read_answer((tokens, np.array([1, 2])), batch).counts.tolist() == [1, 2]
