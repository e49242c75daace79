"""One program, four readings: exact, sampled, replayed, traced."""

import inspect
import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proofs_tests.helpers.bugs import planted
from specref import Exact, Replayed, Sampled, Traced, Vocabulary, chance, exact_distribution
from specref.chance import (
    OutsideChanceError,
    Request,
    TooManyPathsError,
    enumerate_paths,
    shown,
)
from specref.distributions import as_distribution, total_variation
from specref.models import hashed_model
from specref.rules import RULES
from specref.strategies import distributions, iterations, model_pairs

LAST_UNIFORM = 1 - 2**-53
READINGS = [Exact(), Sampled(np.random.default_rng(0)), Replayed([0]), Traced(Exact())]
SAMPLES, ALPHA = 5_000, 1e-9


class Fixed:
    """A source of uniforms that always says the same."""

    def __init__(self, uniform):
        self.uniform = uniform

    def random(self):
        return self.uniform


def two_draws(reading):
    """A program whose second site depends on its first draw."""
    first = reading.draw(as_distribution(["1/2", "0", "1/3", "1/6"]), "first")
    if first == 2:
        return (first, reading.accept(Fraction(1, 4), "second"))
    return (first,)


def test_exact_distribution_weighs_every_path():
    assert exact_distribution(two_draws) == {
        (0,): Fraction(1, 2),
        (2, False): Fraction(1, 4),
        (2, True): Fraction(1, 12),
        (3,): Fraction(1, 6),
    }


def test_paths_come_in_order_and_can_be_replayed():
    paths = list(enumerate_paths(two_draws))
    assert [path.choices for path in paths] == [(0,), (2, 0), (2, 1), (3,)]
    for path in paths:
        assert two_draws(Replayed(path.choices)) == path.outcome
        assert two_draws(Exact(path.choices)) == path.outcome


def test_exact_records_what_is_left_open():
    reading = Exact((2,), Fraction(1, 3))
    assert two_draws(reading) == (2, False)
    assert reading.choices == [2, 0]
    assert reading.weight == Fraction(1, 4)
    assert reading.unexplored == [((2, 1), Fraction(1, 12))]


def test_the_first_path_has_all_the_weight():
    reading = Exact()
    assert reading.weight == 1
    assert reading.draw(as_distribution(["1/4", "3/4"]), "here") == 0
    assert reading.weight == Fraction(1, 4)


@given(iterations(model_pairs()))
def test_weights_of_all_paths_sum_to_1(case):
    *arguments, lookahead = case
    step = RULES["standard"].step
    paths = list(enumerate_paths(lambda reading: step(*arguments, lookahead, reading)))
    assert sum(path.weight for path in paths) == 1
    assert all(path.weight > 0 for path in paths)
    assert len({path.choices for path in paths}) == len(paths)


def test_floats_are_enumerated_too():
    law = exact_distribution(lambda reading: reading.draw(np.array([0.25, 0.0, 0.75]), "draw"))
    assert law == {0: 0.25, 2: 0.75}


@pytest.mark.parametrize("most", [0, 1, 3])
def test_too_many_paths(most):
    with pytest.raises(ValueError, match=f"more than max_paths = {most} random paths"):
        exact_distribution(two_draws, max_paths=most)


def test_just_enough_paths():
    assert len(exact_distribution(two_draws, max_paths=4)) == 4


def test_endless_program():
    def endless(reading):
        while reading.accept(Fraction(1), "again"):
            pass

    with pytest.raises(
        ValueError, match=r"more than 1000 random decisions on one path \(at again\)"
    ):
        exact_distribution(endless)


def test_an_endless_program_that_hides_the_error_is_still_endless():
    def hides(reading):
        try:
            while reading.accept(Fraction(1), "again"):
                pass
        except ValueError:
            return 0

    with pytest.raises(TooManyPathsError, match="more than 1000 random decisions"):
        exact_distribution(hides)


HALF = Fraction(1, 2)


def other_site(reading, call):
    return reading.accept(HALF, "even" if call % 2 else "odd") and reading.accept(HALF, "last")


def other_weights(reading, call):
    return reading.accept(HALF, "first") and reading.accept(Fraction(1, 2 + call % 3), "second")


def fewer(reading, call):
    return reading.accept(HALF, "first") and (call % 2 or reading.accept(HALF, "second"))


def other_outcome(reading, call):
    return reading.accept(HALF, "first"), call % 2


def nothing_asked(reading, call):
    return call % 2


def counting(program):
    """The program, told how often it was called before: state that is kept."""
    calls = iter(range(10**6))
    return lambda reading: program(reading, next(calls))


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (other_weights, r"choices \(first = 1\), one asked at second of .* asked at second of"),
        (fewer, r"choices \(first = 1\), one (asked at|returned)"),
        (other_outcome, r"choices \(first = 0\), one returned \(False, 0\) .* \(False, 1\)"),
        (
            nothing_asked,
            "takes no decision from chance: .* returned 0 in one run and 1 in another",
        ),
    ],
)
def test_no_function_of_chance_has_no_distribution(program, words):
    with pytest.raises(OutsideChanceError, match=words):
        exact_distribution(counting(program))


def test_questions_on_a_prefix_are_compared_without_a_second_run():
    with pytest.raises(OutsideChanceError, match=r"asked at second .* returned 1"):
        list(enumerate_paths(counting(lambda reading, call: fewer(reading, call // 2))))
    assert len(list(enumerate_paths(counting(other_outcome)))) == 2


def test_the_first_32_paths_and_every_16th_are_run_twice():
    runs = []

    def program(reading):
        path = tuple(reading.accept(HALF, "a") for _ in range(7))
        runs.append(path)
        return path

    paths = [path.outcome for path in enumerate_paths(program, twice=True)]
    again = [number for number, path in enumerate(paths) if runs.count(path) == 2]
    assert again == [*range(32), *range(32, 128, 16)]
    assert len(runs) == len(paths) + len(again)


def test_a_second_run_that_asks_for_more_is_refused():
    """Told by its question, not by what it returns."""

    def program(reading, call):
        answer = reading.accept(HALF, "first")
        if call % 2:
            reading.accept(HALF, "second")
        return answer

    with pytest.raises(OutsideChanceError, match=r"returned False .*asked at second of \(1/2"):
        list(enumerate_paths(counting(program), twice=True))


@pytest.mark.parametrize(("size", "more"), [(8, ""), (9, ", …")])
def test_a_question_shows_eight_weights(size, more):
    row = ", ".join([f"1/{size}"] * 8)
    assert str(Request((Fraction(1, size),) * size, "draft")) == f"draft of ({row}{more})"


@pytest.mark.parametrize("size", [12, 13])
def test_rows_of_up_to_twelve_are_shown_whole(size):
    row = [Fraction(1, 2), *[0] * (size - 2), Fraction(1, 2)]
    long = f"0: 1/2, {size - 1}: 1/2, otherwise 0"
    assert shown(row) == (", ".join(map(str, row)) if size == 12 else long)


def test_a_million_paths_are_enumerated_by_default():
    assert inspect.signature(exact_distribution).parameters["max_paths"].default == 1_000_000
    assert inspect.signature(enumerate_paths).parameters["max_paths"].default == 1_000_000


def test_names_of_sites_and_rounding_are_no_difference():
    assert exact_distribution(counting(other_site)) == {False: Fraction(3, 4), True: 0.25}

    def rounded(reading, call):
        return reading.accept(0.5 + 1e-15 * (call % 2), "a"), reading.accept(0.25, "b")

    assert len(exact_distribution(counting(rounded))) == 4


def test_constants_are_functions_of_chance():
    assert exact_distribution(lambda reading: "always") == {"always": 1}


def test_a_question_that_was_refused_is_no_choice():
    def tries(reading):
        try:
            reading.draw([Fraction(3, 2)], "bad")
        except ValueError:
            return reading.accept(HALF, "good"), reading.accept(HALF, "again")

    assert len(exact_distribution(tries)) == 4


def test_chance_cannot_be_asked_after_its_run():
    kept = []

    def asks_an_old_one(reading):
        kept.append(reading)
        return kept[0].accept(HALF, "old")

    with pytest.raises(OutsideChanceError, match="asked at old after its run had ended"):
        exact_distribution(asks_an_old_one)


def test_a_program_that_has_not_run_yet_is_an_error():
    def yields(reading):
        yield reading.accept(HALF, "first")

    with pytest.raises(TypeError, match="returned a generator, which has not run yet"):
        exact_distribution(yields)


def test_limit_on_sites_can_be_reached_exactly(monkeypatch):
    monkeypatch.setattr(chance, "MAX_SITES", 3)

    def tosses(count):
        return lambda reading: [reading.accept(Fraction(1), "toss") for _ in range(count)] and 0

    assert exact_distribution(tosses(3)) == {0: 1}
    with pytest.raises(ValueError, match="more than 3 random decisions"):
        exact_distribution(tosses(4))


@pytest.mark.parametrize("reading", READINGS, ids=lambda reading: type(reading).__name__)
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, -0.5, 1.0], "draw at here: probability -0.5 of token 1"),
        ([1.0, math.nan], "draw at here: probability nan of token 1"),
        ([0.0, 0.0], "draw at here: probabilities are all zero, nothing to draw from"),
        ([0.5, 0.4], r"draw at here: probabilities sum to 0\.9, expected 1"),
        ([Fraction(1, 2), Fraction(1, 3)], "draw at here: probabilities sum to 5/6, expected 1"),
        ([Fraction(1), Fraction(1, 10**30)], "draw at here: probabilities sum to"),
    ],
)
def test_bad_draw(reading, weights, message):
    weights = np.array(weights, dtype=object if isinstance(weights[0], Fraction) else float)
    with pytest.raises(ValueError, match=message):
        reading.draw(weights, "here")


@pytest.mark.parametrize(("probability", "accepted"), [(1 + 2**-50, True), (-(2.0**-50), False)])
def test_a_float_that_rounding_took_out_of_the_unit_interval(probability, accepted):
    for seed in range(4):
        assert Sampled(np.random.default_rng(seed)).accept(probability, "here") == accepted
    assert exact_distribution(lambda chance: chance.accept(probability, "here")) == {accepted: 1}


@pytest.mark.parametrize("reading", READINGS, ids=lambda reading: type(reading).__name__)
@pytest.mark.parametrize("probability", [1 + 1e-8, -1e-8, Fraction(10**12 + 1, 10**12)])
def test_more_than_rounding_is_an_error(reading, probability):
    with pytest.raises(ValueError, match=r"is not in \[0, 1\]"):
        reading.accept(probability, "here")


@pytest.mark.parametrize("reading", READINGS, ids=lambda reading: type(reading).__name__)
@pytest.mark.parametrize("probability", [-0.1, 1.1, math.nan, Fraction(-1, 9), Fraction(10, 9)])
def test_bad_accept(reading, probability):
    with pytest.raises(ValueError, match=r"accept at here: probability .* is not in \[0, 1\]"):
        reading.accept(probability, "here")


UNIFORMS = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, LAST_UNIFORM])


def draws_possible_token(reading, case):
    p, uniform = case
    token = reading(Fixed(uniform)).draw(p, "draw")
    return token < len(p) and p[token] > 0


ROWS_AND_UNIFORMS = st.tuples(st.sampled_from([2, 3, 4]).flatmap(distributions), UNIFORMS)


@given(ROWS_AND_UNIFORMS)
def test_sampled_never_draws_the_impossible(case):
    p, uniform = case
    assert draws_possible_token(Sampled, case)
    assert draws_possible_token(Sampled, (p.astype(np.float64), uniform))


def test_search_on_the_wrong_side_is_rejected(counterexample):
    def holds(case):
        return draws_possible_token(planted.LeftSearch, case)

    assert counterexample(ROWS_AND_UNIFORMS, holds)


@given(st.lists(st.integers(0, 8), min_size=1, max_size=4), st.integers(0, 15))
def test_sampled_is_the_inverse_cdf(counts, numerator):
    """Sixteenths are exact in floats, so the boundaries are exact too."""
    p = np.array([*counts, 0], dtype=object) * Fraction(1, 16)
    p[-1] = 1 - p.sum()
    assume(p[-1] >= 0)
    token = Sampled(Fixed(numerator / 16)).draw(p, "draw")
    assert sum(p[:token]) <= Fraction(numerator, 16) < sum(p[: token + 1])


def test_uniform_that_rounds_up_to_the_total():
    """0.1 * 3 + 0.7 sums to just below 1, or above: the last uniform must stay inside."""
    for weights in ([0.1, 0.1, 0.1, 0.7], [0.7, 0.1, 0.1, 0.1, 0.0], [1 - 1e-10, 0.0]):
        token = Sampled(Fixed(LAST_UNIFORM)).draw(np.array(weights), "draw")
        assert token == max(t for t, weight in enumerate(weights) if weight > 0)


@pytest.mark.parametrize(
    ("probability", "uniform", "accepted"),
    [
        (0, 0.0, False),
        (1, LAST_UNIFORM, True),
        (0.5, 0.5, False),
        (0.5, np.nextafter(0.5, 0), True),
        (Fraction(1, 3), 1 / 3, True),
        (Fraction(2**-53), 0.0, True),
    ],
)
def test_accepts_iff_uniform_is_below(probability, uniform, accepted):
    assert Sampled(Fixed(uniform)).accept(probability, "accept") == accepted


def test_replay_reads_every_choice():
    replayed = Replayed([2, 1])
    assert two_draws(replayed) == (2, True)
    assert replayed.unused == []


def test_replay_without_choices():
    with pytest.raises(ValueError, match="replay at second: no choice left"):
        two_draws(Replayed([2]))


@pytest.mark.parametrize("choice", [1, 4, -1])
def test_replay_of_the_impossible(choice):
    message = rf"replay at first: choice {choice} is impossible, expected one of \[0, 2, 3\]"
    with pytest.raises(ValueError, match=message):
        two_draws(Replayed([choice]))


def test_trace_names_sites_weights_and_choices():
    traced = Traced(Replayed([2, 0]))
    two_draws(traced)
    assert [(step.site, step.choice, step.weight) for step in traced.steps] == [
        ("first", 2, Fraction(1, 3)),
        ("second", False, Fraction(3, 4)),
    ]
    assert str(traced).splitlines() == [
        "first        2    with probability 1/3 from (1/2, 0, 1/3, 1/6)",
        "second       no   with probability 3/4",
    ]


@given(iterations(model_pairs()))
def test_trace_does_not_change_the_law(case):
    *arguments, lookahead = case
    step = RULES["standard"].step

    def traced_step(reading):
        traced = Traced(reading)
        block = step(*arguments, lookahead, traced)
        return block, math.prod([entry.weight for entry in traced.steps])

    paths = list(enumerate_paths(traced_step))
    assert all(path.outcome[1] == path.weight for path in paths)


def test_sampled_floats_can_be_traced():
    traced = Traced(Sampled(np.random.default_rng(7)))
    traced.accept(np.float64(0.5), "accept[0]")
    assert str(traced).startswith("accept[0]")


def rejection_threshold(outcomes):
    """Largest plausible TV of an empirical law, with false-alarm probability ALPHA.

    E[TV] <= sqrt((k - 1) / n) / 2, and one sample moves TV by at most 1/n (McDiarmid).
    """
    return math.sqrt((outcomes - 1) / SAMPLES) / 2 + deviation()


def deviation():
    return math.sqrt(math.log(1 / ALPHA) / (2 * SAMPLES))


def detectable(outcomes):
    """A TV that the test misses with probability at most ALPHA."""
    return rejection_threshold(outcomes) + deviation()


def empirical_distance(program, uniforms, law):
    counts = {}
    for _ in range(SAMPLES):
        outcome = program(Sampled(uniforms))
        counts[outcome] = counts.get(outcome, 0) + 1 / SAMPLES
    return float(total_variation(counts, law))


def program_of(step):
    target, drafter = (hashed_model(Vocabulary("abc"), name) for name in ("target", "drafter"))
    return lambda reading: step(target, drafter, (), 1, reading)


@pytest.mark.parametrize("algorithm", ["standard", "slrs"])
def test_sampled_has_the_exact_distribution(algorithm):
    """Fixed seed; alpha 1e-9; a TV of 0.12 would be missed with probability 1e-9."""
    program = program_of(RULES[algorithm].step)
    law = exact_distribution(program)
    distance = empirical_distance(program, np.random.default_rng(2024), law)
    assert distance <= rejection_threshold(len(law))
    assert detectable(len(law)) < 0.12


def test_biased_uniforms_are_rejected():
    program = program_of(RULES["standard"].step)
    law = exact_distribution(program)
    biased = planted.SquaredUniforms(np.random.default_rng(2024))
    assert empirical_distance(program, biased, law) > rejection_threshold(len(law))


def test_biased_step_is_rejected():
    program, law = (program_of(step) for step in (planted.always_accepted, RULES["standard"].step))
    law = exact_distribution(law)
    assert total_variation(exact_distribution(program), law) > detectable(len(law))
    distance = empirical_distance(program, np.random.default_rng(2024), law)
    assert distance > rejection_threshold(len(law))


def test_weights_are_the_same_up_to_rounding_and_no_further():
    asked = chance.Request((0.0, 1.0), "a")
    for gap, same in ((chance.ROUNDING, True), (1.01 * chance.ROUNDING, False)):
        assert asked.same(chance.Request((gap, 1.0), "a")) is same


@pytest.mark.parametrize("size", [64, 65, 3_000])
def test_large_vectors_are_drawn_from_as_small_ones_are(size):
    """As if `choose` had been given the list, which is what small vectors are turned into."""
    rng = np.random.default_rng(size)
    p = rng.permutation(np.where(np.arange(size) < size // 2, 0, np.arange(size))) / 1.0
    p /= p.sum()
    for uniform in (0.0, *rng.random(20).tolist(), LAST_UNIFORM):
        token = Sampled(Fixed(uniform)).draw(p, "draw")
        assert token == Sampled(Fixed(uniform)).choose(p.tolist(), "draw")
        assert p[token] > 0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda p: np.where(np.arange(100) == 7, -p, p), ValueError, "of token 7"),
        (lambda p: np.where(np.arange(100) == 7, np.nan, p), ValueError, "nan of token 7"),
        (lambda p: p * 0, ValueError, "nothing to draw from"),
        (lambda p: p * 1.01, ValueError, "sum to 1.01"),
        (lambda p: p[None], TypeError, "not supported between"),
    ],
)
def test_large_vectors_that_are_no_law_are_refused_as_small_ones_are(change, error, message):
    with pytest.raises(error, match=message):
        Sampled(Fixed(0.5)).draw(change(np.full(100, 0.01)), "draw")


def test_two_requests_that_differ_late_are_not_shown_alike() -> None:
    weights = [[Fraction(1, 12)] * 11 + [last] for last in (Fraction(1, 12), Fraction(1, 24))]
    weights[1][10] += Fraction(1, 24)
    turns = itertools.count()

    def program(chance: Exact) -> int:
        return chance.draw(np.array(weights[next(turns) % 2], dtype=object), "noise")

    with pytest.raises(OutsideChanceError) as caught:
        exact_distribution(program)
    one, other = re.findall(r"asked at (noise of .*?)(?: and the other|$)", str(caught.value))
    assert one != other
