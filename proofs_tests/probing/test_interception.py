"""Interception acts where the judged sampler runs, and nowhere else: threads, asyncio.

What a sampler keeps, where it hangs, and where it draws in threads of its own is said of it.
"""

import asyncio
import pickle
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.bugs.verifiers import BUGS
from specref.conformance.public import check
from specref.conformance.report import Report
from specref.conformance.status import Status
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.process_state import global_randomness
from specref.contracts.timeout import HungError, within
from specref.contracts.verify import sample_batch
from specref.examples.correct import verify
from specref.probing import probe

pytestmark = pytest.mark.usefixtures("undiagnosed")

PROBED = ["joint/probed"]
WAIT = 30


class Held:
    """A sampler with a generator of its own, and no other."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)

    def __call__(self, target_probs: Any, draft_probs: Any, draft_tokens: Any) -> Any:
        return verify(target_probs, draft_probs, draft_tokens, rng=self.rng)


def from_globals(target_probs: Any, draft_probs: Any, draft_tokens: Any) -> Any:
    rng: Any = SimpleNamespace(random=lambda shape: np.random.random_sample(shape))  # noqa: NPY002
    return verify(target_probs, draft_probs, draft_tokens, rng=rng)


def from_torch(target_probs: Any, draft_probs: Any, draft_tokens: Any) -> Any:
    torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")
    rng: Any = SimpleNamespace(random=lambda shape: torch.rand(shape, dtype=torch.float64).numpy())
    return verify(target_probs, draft_probs, draft_tokens, rng=rng)


@pytest.fixture(autouse=True)
def _all_is_put_back() -> Iterator[None]:
    yield
    assert type(np.random) is ModuleType
    assert type(random) is ModuleType


def quickly(implementation: Any, seed: int, **claims: Any) -> Report:
    """The checks that intercept randomness or compare runs, which interference upsets first."""
    only = ["smoke", "boundary", *PROBED]
    return check(implementation, seed=seed, only=only, **claims)


def assert_clean(reports: list[Report]) -> None:
    for report in reports:
        probed = next(result for result in report.results if result.id == "joint/probed")
        assert (report.exit_code, probed.status) == (0, Status.PASSED), str(report)


SAMPLERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "rng": (verify, {}),
    "held": (Held(), {"seeded": False}),
    "globals": (from_globals, {}),
    "torch": (from_torch, {}),
}


@pytest.mark.deep
@pytest.mark.parametrize("name", SAMPLERS)
def test_checks_of_one_sampler_in_three_threads_do_not_disturb_each_other(name: str) -> None:
    implementation, claims = SAMPLERS[name]
    with ThreadPoolExecutor(3) as pool:
        reports = list(pool.map(lambda seed: quickly(implementation, seed, **claims), range(4)))
    assert_clean(reports)


def test_a_lossy_sampler_is_found_in_every_thread_beside_correct_ones() -> None:
    bug = BUGS["residual is p"]()
    with ThreadPoolExecutor(3) as pool:
        asked, only = [bug, verify, from_globals], ["boundary/zero-coin", *PROBED]
        reports = list(pool.map(lambda one: check(one, seed=1, only=only), asked))
    assert_clean([report for one, report in zip(asked, reports, strict=True) if one is not bug])
    assert "joint/probed" in [result.id for result in reports[0].failures]


@pytest.mark.deep
def test_checks_in_asyncio() -> None:
    async def several() -> list[Report]:
        tasks = (asyncio.to_thread(quickly, one, 1) for one in (verify, from_globals, verify))
        return [*await asyncio.gather(*tasks), quickly(from_globals, 2)]

    assert_clean(asyncio.run(several()))


# What another thread sees while a run goes on.
def elsewhere(work: Callable[[], Any]) -> Any:
    """Do it in another thread, and wait."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(WAIT)


def during_a_run(work: Callable[[], Any]) -> list[Any]:
    """What another thread gets, once during each run of a probe."""
    found: list[Any] = []

    def judged() -> tuple[int]:
        coin = np.random.default_rng().random() < 0.25
        found.append(elsewhere(work))
        return (int(coin),)

    assert probe(judged).distribution == {(0,): 0.75, (1,): 0.25}
    assert len(found) > 10
    return found


ORDINARY: dict[str, Callable[[], Any]] = {
    "random.sample": lambda: tuple(random.sample(range(10**9), 2)),
    "random.random": random.random,
    "random.gauss": lambda: random.gauss(0, 1),
    "random.Random": lambda: random.Random().random(),
    "numpy.random.rand": lambda: float(np.random.rand()),  # noqa: NPY002
    "numpy.random.randn": lambda: float(np.random.randn()),  # noqa: NPY002
    "numpy.random.default_rng": lambda: float(np.random.default_rng().normal()),
    "numpy.random.RandomState": lambda: float(np.random.RandomState().rand()),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_other_threads_draw_as_ever(name: str) -> None:
    found = during_a_run(ORDINARY[name])
    assert len(set(found)) == len(found)
    assert not any(isinstance(value, bool) for value in found)


def test_other_threads_draw_from_torch_as_ever() -> None:
    torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")
    found: list[float] = []

    def judged() -> tuple[int]:
        coins = [
            bool(torch.rand(1) < 0.25),
            bool(torch.bernoulli(torch.tensor([0.5]))),
            bool(torch.multinomial(torch.tensor([0.5, 0.5]), 1)),
            bool(torch.randint(2, (1,)).sum()),
        ]
        found.append(elsewhere(lambda: float(torch.rand(1, dtype=torch.float64))))
        return (sum(coins),)

    torch.manual_seed(5)
    law = probe(judged).distribution
    assert law[0,] == pytest.approx(0.75 / 8)
    torch.manual_seed(5)
    # One stream, from which nobody else has drawn and which nobody has set back.
    assert found == [float(torch.rand(1, dtype=torch.float64)) for _ in found]


def test_other_threads_see_the_classes_of_the_modules() -> None:
    def seen() -> bool:
        rng, state = np.random.default_rng(5), random.Random(5)
        assert isinstance(rng, np.random.Generator)
        assert type(rng) is np.random.Generator
        assert rng.random() == pytest.approx(0.8050029237453802)
        assert pickle.loads(pickle.dumps(state)).random() == state.random()
        return True

    assert all(during_a_run(seen))


def test_a_module_can_be_given_back_while_it_is_asked() -> None:
    """A run in another thread may end after the module's method was found, before it starts."""
    asked = during_a_run(lambda: type(np.random).__getattribute__)
    assert type(np.random) is ModuleType
    assert asked[0](np.random, "default_rng") is np.random.default_rng


def test_a_generator_in_a_closure_is_itself_in_other_threads() -> None:
    rng, twin, found = np.random.default_rng(7), np.random.default_rng(7), []

    def judged() -> tuple[int]:
        coin = rng.random() < 0.25
        found.append(elsewhere(lambda: (float(rng.random()), float(rng.normal()))))
        return (int(coin),)

    assert probe(judged).distribution == {(0,): 0.75, (1,): 0.25}
    assert found == [(float(twin.random()), float(twin.normal())) for _ in found]


def test_a_class_imported_by_name_is_itself_in_other_threads() -> None:
    assert all(during_a_run(lambda: isinstance(np.random.default_rng(), Generator)))


Generator = np.random.Generator


def test_the_last_of_overlapping_probes_puts_everything_back() -> None:
    held = Held()
    before, inside = held.rng, [threading.Event() for _ in range(2)]
    first_is_done = threading.Event()

    def judged(index: int, wait_for: threading.Event) -> tuple[int]:
        inside[index].set()
        assert wait_for.wait(WAIT)
        return (int(held.rng.random() < 0.25),)

    def second() -> Any:
        assert inside[0].wait(WAIT)
        return probe(lambda: judged(1, first_is_done))

    with ThreadPoolExecutor(2) as pool:
        last = pool.submit(second)
        laws = [probe(lambda: judged(0, inside[1])).distribution]
        assert held.rng is not before
        first_is_done.set()
        laws.append(last.result(WAIT).distribution)
    assert laws == [{(0,): 0.75, (1,): 0.25}] * 2
    assert held.rng is before


# Threads of the sampler's own.
def in_a_thread(draw: Callable[..., Any]) -> Callable[..., Any]:
    def sampler(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        return elsewhere(lambda: draw(target_probs, draft_probs, draft_tokens, rng))

    return sampler


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    ("draw", "why"),
    [
        (
            lambda p, q, x, rng: verify(p, q, x, rng=rng),
            "called in another thread, where nothing is intercepted",
        ),
        (lambda p, q, x, rng: from_globals(p, q, x), "draws in another thread or library"),
        (lambda p, q, x, rng: from_torch(p, q, x), "draws in another thread or library"),
    ],
    ids=["rng", "globals", "torch"],
)
def test_draws_in_threads_of_its_own_cannot_be_probed(draw: Callable[..., Any], why: str) -> None:
    report = check(in_a_thread(draw), only=[*PROBED, "boundary/zero-coin"], seeded=False)
    assert {result.status for result in report.results} == {Status.NOT_APPLICABLE}
    probed = next(one for one in report.results if one.id in PROBED)
    assert "cannot be probed" in probed.message
    assert why in probed.message


def test_numbers_compared_in_a_thread_of_its_own_cannot_be_probed() -> None:
    rng = np.random.default_rng(1)

    def judged() -> tuple[int]:
        coin = rng.random()
        return (int(elsewhere(lambda: coin < 0.25)),)

    assert "used in another thread" in str(probe(judged).uninterpreted)


# Whoever hangs.
def hanging(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    if "Probed" in type(rng).__name__:
        threading.Event().wait(WAIT)
    return verify(target_probs, draft_probs, draft_tokens, rng=rng)


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("id_", ["boundary/zero-coin", "boundary/empty-residual", *PROBED])
def test_a_probe_that_hangs_is_left_behind(id_: str) -> None:
    started = time.monotonic()
    (result,) = check(hanging, only=[id_], timeout=0.3).results
    assert time.monotonic() - started < WAIT / 3
    assert result.evidence["hung"] is True
    assert "did not return within 0.3 s" in result.message
    assert type(np.random) is ModuleType
    assert_clean([quickly(verify, 1)])


def test_a_hung_run_gives_back_what_it_took_and_ends_at_its_next_draw() -> None:
    release, held, ended = threading.Event(), Held(), threading.Event()
    before = held.rng

    def judged() -> tuple[int]:
        mine = held.rng
        release.wait(WAIT)
        try:
            return (int(mine.random() < 0.25),)
        except SystemExit:
            ended.set()
            raise

    with pytest.raises(HungError):
        within(0.2, lambda: probe(judged))
    assert held.rng is before
    assert type(random) is ModuleType
    release.set()
    assert ended.wait(WAIT)
    assert 0 <= held.rng.random() < 1


@pytest.mark.deep
def test_time_counts_from_the_last_run() -> None:
    def slow(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        time.sleep(0.005)
        return verify(target_probs, draft_probs, draft_tokens, rng=rng)

    (result,) = check(slow, only=PROBED, timeout=0.5).results
    assert result.status == Status.PASSED
    assert result.seconds > 0.5


@pytest.mark.deep
def test_a_sampler_that_hangs_on_global_generators_blocks_nobody() -> None:
    release, before = threading.Event(), random.getstate()

    def stuck(target_probs: Any, draft_probs: Any, draft_tokens: Any) -> Any:
        release.wait(WAIT)
        return from_globals(target_probs, draft_probs, draft_tokens)

    started = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        hung = pool.submit(check, stuck, only=["smoke/answers"], timeout=1.0)
        time.sleep(0.2)
        # It waits for the other, which is no time of its own.
        report = pool.submit(check, from_globals, only=["smoke"], timeout=0.9).result(WAIT)
        assert hung.result(WAIT).results[0].evidence["hung"] is True
    assert report.exit_code == 0
    assert time.monotonic() - started < WAIT / 3
    assert random.getstate() == before
    release.set()
    time.sleep(0.1)
    assert random.getstate() == before


def test_global_generators_have_one_user_at_a_time() -> None:
    inside, most = [0], [0]

    def draw(seed: int) -> list[float]:
        with global_randomness(np.random.default_rng(seed)):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            found = []
            for _ in range(5):
                found.append(random.random())
                time.sleep(0.001)
            inside[0] -= 1
        return found

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(draw, [1, 2] * 10))
    assert most == [1]
    assert found == [found[0], found[1]] * 10


# Whoever keeps numbers.
class Keeper:
    """Decides by the uniform of the call before."""

    def __init__(self, kept: Any) -> None:
        self.kept = kept

    def __call__(self, target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        coin, self.kept = self.kept, rng.random()
        tokens, counts = verify(target_probs, draft_probs, draft_tokens, rng=rng)
        return (tokens, counts) if coin < 0.999 else (tokens.copy(), counts.copy())


class Buffer:
    """Draws a thousand uniforms at once, and uses them one by one."""

    def __init__(self) -> None:
        self.numbers: list[Any] = []

    def __call__(self, target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        given: Any = self
        self.rng = rng
        answer = verify(target_probs, draft_probs, draft_tokens, rng=given)
        del self.rng
        return answer

    def random(self, shape: Any) -> Any:
        number = int(np.prod(shape))
        if len(self.numbers) < number:
            self.numbers += list(self.rng.random(max(1000, number)))
        taken, self.numbers = self.numbers[:number], self.numbers[number:]
        return np.array(taken).reshape(shape)


class Cache:
    """Keeps tensors of torch's numbers for a second call."""

    def __init__(self) -> None:
        self.calls, self.numbers = 0, {}

    def __call__(self, target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        given: Any = self
        self.calls += 1
        return verify(target_probs, draft_probs, draft_tokens, rng=given)

    def random(self, shape: Any) -> Any:
        torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")
        shape = tuple(shape)
        if self.calls % 2 or shape not in self.numbers:
            self.numbers[shape] = torch.rand(shape, dtype=torch.float64)
        found = self.numbers[shape].numpy()
        assert found.dtype == object or not np.isnan(found).any()
        return found


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("make", [lambda: Keeper(0.5), Buffer, Cache])
def test_whoever_keeps_numbers_cannot_be_probed_and_is_told_so(make: Callable[[], Any]) -> None:
    keeper = make()
    (result,) = check(keeper, only=PROBED, seeded=False).results
    assert result.status == Status.NOT_APPLICABLE
    assert "between calls" in result.message
    # What is left of the probe is ordinary numbers.
    rng = np.random.default_rng(1)
    batch = sample_batch(CHAIN_FIXTURES["wide"], 40, rng)
    for _ in range(50):
        Verifier(keeper, Capabilities())(batch, rng)


def test_what_a_number_becomes_after_its_run() -> None:
    rng, kept = np.random.default_rng(1), []

    def judged() -> tuple[int]:
        kept.append(rng.random())
        return (int(kept[-1] < 0.25),)

    assert probe(judged).way == "traced"
    lazy = next(number for number in kept if not isinstance(number, float))
    assert 0 <= float(lazy) < 1
    assert lazy < 2
    assert not lazy < 0
    assert lazy + lazy > lazy
    assert float(1 - lazy) == 1 - float(lazy)
    assert int(lazy * 10) == int(float(lazy) * 10)
    assert bool(lazy)
    assert lazy <= float(lazy)


def test_a_tensor_that_is_kept_has_ordinary_numbers_afterwards() -> None:
    torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")
    kept = []

    def judged() -> tuple[int]:
        kept.append(torch.rand(3, 4))
        return (int(kept[-1][1, 2] < 0.25),)

    assert probe(judged).distribution == {(0,): 0.75, (1,): 0.25}
    assert all(((tensor >= 0) & (tensor < 1)).all() for tensor in kept)


def test_numbers_kept_after_their_runs_are_uniform() -> None:
    kept = []
    rng = np.random.default_rng(1)
    probe(lambda: (kept.append(rng.random(2_000)) or int(rng.random() < 0.5),))
    lazy = next(array for array in kept if array.dtype == object)
    values = np.array([float(one) for one in lazy])
    assert abs(values.mean() - 0.5) < 0.05
    assert abs((values < 0.1).mean() - 0.1) < 0.05


def test_a_generator_that_is_kept_is_an_ordinary_one_afterwards() -> None:
    kept = []

    def judged() -> tuple[int]:
        kept.append(np.random.default_rng(5))
        return (int(kept[-1].random() < 0.25),)

    assert probe(judged).distribution == {(0,): 0.75, (1,): 0.25}
    twin = np.random.default_rng(5)
    assert kept[-1].normal() == twin.normal()
    assert kept[-1].bit_generator.state == twin.bit_generator.state
    assert isinstance(kept[-1].spawn(1)[0].random(), float)


def test_seeding_in_a_run_changes_nothing_outside() -> None:
    def judged() -> tuple[int]:
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        return (int(random.random() < 0.25),)

    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    assert probe(judged).distribution == {(0,): 0.75, (1,): 0.25}
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002
