"""Steps of the zoo: lossy or lossless as declared, on every fixture of their rule, exactly."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specref.algorithms.decoding import Step
from specref.algorithms.standard import Draft
from specref.chance import Sampled, exact_distribution
from specref.distributions import Probability, total_variation
from specref.models import Model, as_float, hashed_model
from specref.proofs import is_lossless
from specref.rules import RULES
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo import (
    ALL,
    OPERATORS,
    Entry,
    ExactFixture,
    fixtures_for,
    speculative,
    total_variation_on,
)
from specref.zoo.parts.by_token import TLI, UNION, Submission, each, submitted
from specref.zoo.parts.standard import verified
from specref.zoo.sampling_parameters import (
    NEUTRAL,
    PARAMETERS,
    Parameters,
    step,
    warped,
    with_parameters,
)
from specref.zoo.slem import matched

F = Fraction
BY_RULE = ("standard", "union", "tli", "slem", "slrs")
CLEAN = {**{name: RULES[name].step for name in BY_RULE}, "warped": step}
ENTRIES = [
    entry
    for entry in ALL.values()
    if entry.rule in CLEAN and entry.is_step and entry.id not in OPERATORS
]
ON_FIXTURES = [(algorithm, name) for algorithm in CLEAN for name in fixtures_for(algorithm)]
Matrix = Mapping[str, Mapping[str, Probability]]


def entries_for(rule: str) -> Mapping[str, Entry]:
    return {entry.id: entry for entry in ENTRIES if entry.rule == rule}


def named(entry: Entry) -> str:
    return entry.id


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return {
        entry.id: {
            name: total_variation_on(entry, fixture)
            for name, fixture in fixtures_for(entry.rule).items()
        }
        for entry in ENTRIES
    }


@pytest.mark.parametrize(("algorithm", "name"), ON_FIXTURES)
def test_the_clean_rule_is_lossless_and_drafts(algorithm: str, name: str) -> None:
    fixture = fixtures_for(algorithm)[name]
    blocks = fixture.blocks(CLEAN[algorithm])
    assert fixture.completed(blocks) == fixture.continued()
    assert max(map(len, blocks)) > 1


@pytest.mark.parametrize(("algorithm", "name"), ON_FIXTURES)
def test_without_a_patch_parts_make_the_clean_rule(algorithm: str, name: str) -> None:
    parts: dict[str, Step] = {
        "standard": speculative(),
        "union": verified(UNION),
        "tli": verified(TLI),
        "slem": matched(),
        "slrs": submitted(with_ending),
        "warped": with_parameters(PARAMETERS),
    }
    fixture = fixtures_for(algorithm)[name]
    assert fixture.blocks(parts[algorithm]) == fixture.blocks(CLEAN[algorithm])


def with_ending(s: Submission) -> list[Draft]:
    """All tokens of the text, and its end if longer texts start like it."""
    end = s.psi(s.tokens)
    return [*each(lambda s, before: s.psi(before))(s), *[Draft(None, end)] * bool(end.any())]


def test_mutants_are_lossy_and_know_their_blind_spots(matrix: Matrix) -> None:
    for entry in ENTRIES:
        found = matrix[entry.id]
        print(f"{entry.id:36}", *(f"{name} {float(tv):.4f}" for name, tv in found.items()))
        if not entry.lossless:
            assert {name for name, tv in found.items() if tv == 0} == entry.blind, entry.id
            assert any(found.values()), entry.id


def test_controls_are_lossless(matrix: Matrix) -> None:
    controls = [entry for entry in ENTRIES if entry.lossless]
    assert controls
    assert not any(any(matrix[entry.id].values()) for entry in controls)


@pytest.mark.parametrize("algorithm", [one for one in CLEAN if one != "standard"])
def test_mutants_of_an_algorithm_have_different_laws(algorithm: str) -> None:
    mutants = [entry for entry in entries_for(algorithm).values() if not entry.lossless]
    laws = [
        tuple(tuple(sorted(fixture.output(entry.step).items())) for fixture in fixtures.values())
        for fixtures in [fixtures_for(algorithm)]
        for entry in mutants
    ]
    assert len(set(laws)) == len(mutants)


@pytest.mark.parametrize("algorithm", BY_RULE)
def test_total_variation_is_that_of_the_proof(algorithm: str, matrix: Matrix) -> None:
    for name, f in fixtures_for(algorithm).items():
        for entry in entries_for(algorithm).values():
            proof = is_lossless(entry.step, f.target, f.drafter, f.context, f.lookahead)
            assert proof.total_variation == matrix[entry.id][name], entry.id


@pytest.mark.deep(one_in=10)
@pytest.mark.parametrize(("algorithm", "name"), ON_FIXTURES)
def test_floats_give_the_same_laws(algorithm: str, name: str) -> None:
    f = fixtures_for(algorithm)[name]
    plain = None if f.plain is None else as_float(f.plain)
    inexact = ExactFixture(
        name, as_float(f.target), as_float(f.drafter), f.lookahead, f.context, f.longest, plain
    )
    for entry in entries_for(algorithm).values():
        gap = total_variation(f.output(entry.step), inexact.output(entry.step))
        assert gap < 1e-9, entry.id


@pytest.mark.deep(one_in=16)
@pytest.mark.parametrize("entry", ENTRIES, ids=named)
def test_entries_sample_what_they_can_emit(entry: Entry) -> None:
    chance = Sampled(np.random.default_rng(5))
    for f in fixtures_for(entry.rule).values():

        def run(c: object, f: ExactFixture = f) -> Tokens:
            return tuple(entry.step(f.target, f.drafter, f.context, f.lookahead, c))  # type: ignore[arg-type]

        possible = set(exact_distribution(run))
        assert {run(chance) for _ in range(20)} <= possible


WORDS = Vocabulary(["a", "b", "ab"])
PAIRS: dict[str, list[tuple[Vocabulary, Vocabulary]]] = {
    "tokens": [
        (Vocabulary("abc"), Vocabulary("bxa")),
        (Vocabulary("ab"), Vocabulary("ba")),
        (Vocabulary("ab$", eos="$"), Vocabulary("$xb", eos="$")),
    ],
    "text": [
        (WORDS, Vocabulary("ba")),
        (Vocabulary("ab"), Vocabulary(["b", "a", "ba"])),
        (Vocabulary(["a", "b", "ab", "$"], eos="$"), Vocabulary("$ab", eos="$")),
    ],
    "same": [(Vocabulary("abcd"),) * 2, (Vocabulary("abc$", eos="$"),) * 2],
}
KIND = {
    **dict.fromkeys(("union", "tli"), "tokens"),
    **dict.fromkeys(("slem", "slrs"), "text"),
    **dict.fromkeys(("standard", "warped"), "same"),
}
CASES = st.tuples(
    st.integers(0, 2),
    st.integers(0, 10_000),
    st.integers(0, 2),
    st.lists(st.integers(0, 1), max_size=2),
)
Case = tuple[int, int, int, list[int]]


def holds(entry: Entry, case: Case) -> bool:
    which, key, lookahead, context = case
    pairs = PAIRS[KIND[entry.rule]]
    vocabularies = pairs[which % len(pairs)]
    target, drafter = (
        hashed_model(v, f"{r} {key}") for v, r in zip(vocabularies, "pq", strict=True)
    )
    plain = warped(target) if entry.rule == "warped" else None
    longest = 2 * lookahead + 2 if KIND[entry.rule] == "text" else lookahead + 1
    fixture = ExactFixture("any", target, drafter, lookahead, tuple(context), longest, plain)
    return total_variation_on(entry, fixture) == 0


@given(st.sampled_from([entry.id for entry in ENTRIES if entry.lossless]), CASES)
def test_controls_are_lossless_on_any_models(name: str, case: Case) -> None:
    assert holds(ALL[name], case)


RAISING = {"algorithm-5-as-printed"}
"""On ties it has nothing to draw from; `test_zoo` has that."""


@pytest.mark.deep(one_in=12)
@pytest.mark.parametrize(
    "entry", [e for e in ENTRIES if not e.lossless and e.id not in RAISING], ids=named
)
def test_the_same_search_refutes_every_mutant(entry: Entry, counterexample: object) -> None:
    case = counterexample(CASES, lambda case: holds(entry, case))  # type: ignore[operator]
    assert not holds(entry, case)


def test_parameters_do_what_they_are_called() -> None:
    row = np.array([F(1, 2), F(1, 4), F(1, 8), F(1, 8)])
    neutral = {"penalty": F(1), "temperature": F(1), "k": 9, "mass": F(1), "floor": F(0)}

    def applied(text: Tokens = (), **changed: object) -> list[F]:
        return list(Parameters(**{**neutral, **changed}).applied(row, text))  # type: ignore[arg-type]

    assert applied() == list(row) == list(NEUTRAL.applied(row, (0, 1)))
    assert applied((0, 0), penalty=F(1, 2)) == [F(1, 3), F(1, 3), F(1, 6), F(1, 6)]
    assert applied(temperature=F(1, 2)) == [F(8, 11), F(2, 11), F(1, 22), F(1, 22)]
    assert applied(k=2) == [F(2, 3), F(1, 3), 0, 0]
    assert applied(mass=F(4, 5)) == [F(4, 7), F(2, 7), F(1, 7), 0]
    assert applied(floor=F(1, 2)) == [F(2, 3), F(1, 3), 0, 0]
    assert applied(k=3, mass=F(4, 5)) == [F(4, 7), F(2, 7), F(1, 7), 0]
    assert applied(k=3, mass=F(4, 5), chained=True) == [F(2, 3), F(1, 3), 0, 0]


@pytest.mark.parametrize("name", fixtures_for("warped"))
def test_every_parameter_acts_on_the_fixtures(name: str, matrix: Matrix) -> None:
    fixture = fixtures_for("warped")[name]
    unwarped = Model(fixture.target.vocabulary, fixture.target.next_token)
    plain = ExactFixture(name, unwarped, unwarped, fixture.lookahead, fixture.context)
    assert total_variation(plain.continued(), fixture.continued()) > F(1, 5)
    for mutant in (
        "min-p-ignored",
        "penalty-ignored",
        "filters-chained",
        "target-temperature-twice",
    ):
        assert matrix[mutant][name] > 0
