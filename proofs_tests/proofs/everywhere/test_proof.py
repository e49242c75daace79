"""Proofs for all rows: rules of the project, planted bugs, coverage, budgets, determinism.

Random rows have fixed seeds; no test is statistical.
"""

import gc
import io
import itertools
import pickle
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import z3
from rich.console import Console

from proofs_tests.helpers.bugs.everywhere.attacks import ATTACKS, vectorised
from proofs_tests.helpers.bugs.everywhere.planted import PLANTED, in_corner, over_accepting
from specref import Vocabulary, is_lossless
from specref.algorithms import autoregressive, block, standard, union
from specref.chance import OutsideChanceError, TooManyPathsError
from specref.proofs.everywhere import (
    NotForAllError,
    is_lossless_everywhere,
    proof,
    signs,
    slices,
    walk,
)
from specref.proofs.everywhere.number import ACCIDENT, Reading
from specref.proofs.everywhere.polynomials import product_of
from specref.proofs.everywhere.rows import Chart, Row, Sample, Space, spelled_rows
from specref.proofs.everywhere.slices import LongerBlockError
from specref.proofs.everywhere.solver import Counts, Solver
from specref.report.everywhere import everywhere_document, everywhere_record, sentence
from specref.rules import RULES
from specref.zoo.standard.printed import algorithm_5

FACES = [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(2, 7)]


@pytest.mark.deep
@pytest.mark.parametrize("name", [n for n, r in RULES.items() if r.lossless and n != "k-seq"])
def test_rules_are_lossless_for_every_row_of_two_tokens(name: str) -> None:
    found = is_lossless_everywhere(RULES[name].step, "ab", lookahead=1, budget=120)
    assert found.verdict == "lossless"
    assert found.open == found.lossy == 0
    assert found.bits >= 100


@pytest.mark.deep
def test_eos_ends_outcomes() -> None:
    ending = Vocabulary("a$", eos="$")
    assert is_lossless_everywhere(standard.step, ending, lookahead=2, budget=60)


def random_value(rng: random.Random) -> Fraction:
    return rng.choice(FACES) if rng.random() < 0.5 else Fraction(rng.randint(1, 96), 97)


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("step", [standard.step, block.step, RULES["tli"].step])
def test_every_row_is_in_a_region_of_every_outcome(step) -> None:
    """Rows with zeros, ties and point masses, wherever the target says the outcome."""
    found = is_lossless_everywhere(step, "ab", lookahead=1)
    rng = random.Random(7)
    rows = [Row(letter, context) for letter in "pq" for context in ((), (0,), (1,))]
    for _ in range(60):
        drawn = {row: random_value(rng) for row in rows}
        if rng.random() < 0.3:
            drawn[rows[3]] = drawn[rows[0]]
        for one in found.slices:
            assert is_covered(one, drawn)


def is_covered(one, drawn) -> bool:
    said = Fraction(1)
    for index, token in enumerate(one.outcome):
        value = drawn[Row("p", one.outcome[:index])]
        said *= value if token == 0 else 1 - value
    if said == 0:
        return True
    return any(holds(covered, one.space, drawn) for covered in one.lossless)


def holds(covered, space, drawn) -> bool:
    # Variables are numbered in the order in which the rows were asked for, over all outcomes.
    def value(v: int) -> Fraction:
        return drawn[space.variables[v][0]]

    try:
        here = all(form.at(value) == value(v) for v, form in covered.equations) and all(
            signs.of((x > 0) - (x < 0)) & allowed
            for polynomial, allowed in covered.clauses
            for x in [polynomial.at(value)]
        )
    except ZeroDivisionError:
        return False
    return here and all(any(holds(one, space, drawn) for one in part) for part in covered.parts)


def test_a_divisor_of_a_token_that_was_not_drafted_is_a_condition() -> None:
    """Dividing by every q raises where one is 0, though another token was drafted."""
    found = is_lossless_everywhere(vectorised, "ab", lookahead=1)
    assert found.verdict == "lossy"
    assert "ZeroDivisionError" in str(found.witness.error)
    assert ATTACKS["division"].step is vectorised


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    ("raising", "wrong", "said"),
    [(True, True, "lossy, or raises, at"), (True, False, "raises at"), (False, True, "lossy at")],
)
def test_a_verdict_says_raises_of_regions_that_raise_alone(raising, wrong, said):
    def step(target, drafter, context, lookahead, chance):
        p, q = target.next_token(context), drafter.next_token(context)
        if raising and q[0] < p[0] / 5:
            raise RuntimeError("few")
        return (chance.draw(q if wrong and q[0] > Fraction(9, 10) else p, "token"),)

    found = is_lossless_everywhere(step, "ab", lookahead=1)
    assert sentence(found).startswith(f"{said} some rows of {found.lossy} of ")


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(("limit", "regions", "paths"), [(-1, 2, 4), (Fraction(9, 10), 4, 6)])
def test_regions_and_paths_are_counted_lossy_ones_too(limit, regions: int, paths: int) -> None:
    """For each of two outcomes: where q is drawn from, and where p is, if it ever is."""

    def step(target, drafter, context, lookahead, chance):
        p, q = target.next_token(context), drafter.next_token(context)
        return (chance.draw(q if q[0] > limit else p, "token"),)

    found = is_lossless_everywhere(step, "ab", lookahead=1)
    assert (found.regions, found.lossy, found.paths) == (regions, 2, paths)


def with_errors_that_cancel(first, second):
    """Half of the time too often a by d where the first condition holds; else too seldom."""

    def step(target, drafter, context, lookahead, chance):
        p = target.next_token(context)
        d = np.array([p[0] * p[1] / 2, -p[0] * p[1] / 2])
        if chance.accept(Fraction(1, 2), "which"):
            return (chance.draw(p + d if first(target, drafter) else p, "one"),)
        return (chance.draw(p - d if second(target, drafter) else p, "other"),)

    return step


@pytest.mark.deep
def test_claims_of_beginnings_are_added_up_only_where_all_hold() -> None:
    """Each half is wrong on rows of its own; where both are, or neither, the rule is lossless."""

    def one(target, drafter):
        return target.next_token((0,))[0] > Fraction(1, 2)

    def other(target, drafter):
        return drafter.next_token((1,))[0] > Fraction(2, 3)

    assert is_lossless_everywhere(with_errors_that_cancel(one, one), "ab")
    found = is_lossless_everywhere(with_errors_that_cancel(one, other), "ab")
    assert found.verdict == "lossy"
    after_a, after_b = Row("p", (0,)), Row("q", (1,))
    uniform = [Fraction(1, 2)] * 2
    rows = found.witness.rows
    assert (rows.get(after_a, uniform)[0] > Fraction(1, 2)) != (
        rows.get(after_b, uniform)[0] > Fraction(2, 3)
    )
    (lossy,) = {len(one.lossy) for one in found.slices}
    assert lossy >= 2
    rng = random.Random(7)
    variables = [Row("p", ()), after_a, after_b, Row("p", (1,)), Row("q", ()), Row("q", (0,))]
    for _ in range(60):
        drawn = {row: random_value(rng) for row in variables}
        wrong = (drawn[after_a] > Fraction(1, 2)) != (drawn[after_b] > Fraction(2, 3))
        if 0 < drawn[variables[0]] < 1:
            assert [is_covered(one, drawn) for one in found.slices] == [not wrong] * 2


def right_at(value):
    """Right where the first entry of p is 0, 1 or this value, and nowhere else."""

    def step(target, drafter, context, lookahead, chance):
        first, second = target.next_token(context)
        slip = first * second * (first - value) * Fraction(1, 2)
        return (chance.draw([first + slip, second - slip], "token"),)

    return step


def test_a_region_is_lossy_by_a_gap_at_its_sample() -> None:
    """A rule that is right at the rows that are looked at first is asked at others."""
    wrong = is_lossless_everywhere(right_at(Fraction(2)), "ab")
    (sample,) = {region.sample.value(0) for part in wrong.slices for region in part.lossy}
    found = is_lossless_everywhere(right_at(sample), "ab")
    regions = [region for part in found.slices for region in part.lossy]
    assert found.verdict == "lossy"
    assert len(regions) >= 2
    for region in regions:
        first, second = region.sample.row(Row("p", ()))
        slip = first * second * (first - sample) / 2
        assert slip != 0
        assert region.gap == {(0,): slip, (1,): -slip}[region.outcome]


def test_what_the_budget_leaves_is_open() -> None:
    found = is_lossless_everywhere(standard.step, "abc", lookahead=2, budget=1e-9)
    assert (found.verdict, found.regions) == ("open", 0)
    assert found.open == 27
    assert not found


@pytest.mark.parametrize(
    ("step", "verdict"), [(algorithm_5, "lossy"), (standard.step, "open"), (union.step, "open")]
)
def test_rows_are_drawn_where_pieces_are_open(monkeypatch, step, verdict: str) -> None:
    """No piece is looked at in so short a time; the search has all the time that it needs."""
    monkeypatch.setattr(proof, "SEARCHED", 1e-12)
    found = is_lossless_everywhere(step, "ab", lookahead=2, budget=1e-9)
    assert (found.verdict, found.lossy, found.open) == (verdict, 0, 8)
    if verdict == "lossy":
        assert (
            sentence(found)
            == "lossy at rows that were tried; 0 regions, 8 open; 2 tokens, lookahead 2"
        )
        rows = found.witness.rows
        models = proof.models_of(Space(found.target, found.drafter, 0), rows)
        assert is_lossless(step, *models, (), 2).total_variation == found.witness.distance > 0


def test_ctrl_c_while_rows_are_drawn_keeps_what_was_found(monkeypatch) -> None:
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(proof, "random_rows", stop)
    found = is_lossless_everywhere(standard.step, "ab", lookahead=2, budget=1e-9)
    assert (found.interrupted, found.verdict, found.open) == (True, "open", 8)


@pytest.mark.deep
@pytest.mark.parametrize("step", [standard.step, algorithm_5, PLANTED["two corners"].step])
def test_one_seed_gives_one_record_whatever_runs_it(step) -> None:
    alone = is_lossless_everywhere(step, "ab", lookahead=2, seed=3)
    with ThreadPoolExecutor(2) as pool:
        apart = is_lossless_everywhere(step, "ab", lookahead=2, seed=3, executor=pool)
    assert record_of(alone) == record_of(apart)
    assert alone.flips > 0


def record_of(found) -> object:
    return replace(everywhere_record("rule", [found]).proofs[0], seconds=0)


def test_longer_blocks_than_were_met_first_are_waited_for_in_processes_too() -> None:
    """What a job raises in a process is raised here with its length."""
    longer = pickle.loads(pickle.dumps(LongerBlockError(3)))
    assert longer.args == (3,)


def test_until_open_stops_at_the_first_outcome_that_is_open() -> None:
    found = is_lossless_everywhere(standard.step, "ab", budget=1e-9, until_open=True)
    assert (found.verdict, len(found.slices), found.open) == ("open", 1, 4)


@pytest.mark.deep
def test_until_open_stops_each_job_of_an_executor() -> None:
    told: list[object] = []
    with ThreadPoolExecutor(1) as pool:
        asked = {"budget": 1e-9, "executor": pool, "advance": told.append}
        stopped, whole = (
            is_lossless_everywhere(standard.step, "ab", until_open=until_open, **asked)
            for until_open in (True, False)
        )
    assert (stopped.verdict, stopped.open) == (whole.verdict, whole.open) == ("open", 4)
    assert len(stopped.slices) < len(whole.slices) == 4
    assert told == [*stopped.slices, *whole.slices]


def in_a_corner(does):
    """Standard speculative decoding, but for a few rows."""

    def step(target, drafter, context, lookahead, chance):
        if in_corner(target, drafter):
            return does(target, chance)
        return standard.step(target, drafter, context, lookahead, chance)

    return step


def test_ctrl_c_between_outcomes_keeps_those_that_are_done() -> None:
    def stop(found) -> None:
        raise KeyboardInterrupt

    found = is_lossless_everywhere(standard.step, "ab", advance=stop)
    assert (found.interrupted, found.verdict, len(found.slices)) == (True, "open", 1)


@pytest.mark.deep
def test_where_a_rule_refuses_numbers_is_told_from_a_process_too() -> None:
    def converts(target, chance):
        return (int(target.next_token(())[0]),)

    with ThreadPoolExecutor(1) as pool, pytest.raises(NotForAllError) as refused:
        is_lossless_everywhere(in_a_corner(converts), "ab", executor=pool)
    assert refused.value.stack is not None
    assert "converts" in [frame.name for frame in refused.value.stack]


@pytest.mark.deep
def test_rows_at_which_a_lossy_rule_is_right() -> None:
    step = in_a_corner(lambda target, chance: (0,))
    found = is_lossless_everywhere(step, "ab")
    assert found.verdict == "lossy"
    rows = proof.rows_where_right(step, found)
    assert rows is not None
    assert spelled_rows(rows, found.target, found.drafter) == "uniform rows"
    assert is_lossless(step, *proof.models_of(Space(found.target, found.drafter, 0), rows), (), 1)


@pytest.mark.deep
def test_a_rule_that_was_right_nowhere_has_no_such_rows() -> None:
    def tosses(target, drafter, context, lookahead, chance):
        return (int(chance.accept(Fraction(1, 2), "toss")),)

    found = is_lossless_everywhere(tosses, "ab")
    assert (found.verdict, proof.rows_where_right(tosses, found)) == ("lossy", None)


@pytest.mark.parametrize("wrong_with_fractions", [True, False])
def test_a_rule_that_asks_what_kind_of_numbers_it_has_is_refused(wrong_with_fractions) -> None:
    def asks(target, drafter, context, lookahead, chance):
        if isinstance(target.next_token(context)[0], Fraction) == wrong_with_fractions:
            return (0,)
        return autoregressive.step(target, drafter, context, lookahead, chance)

    with pytest.raises(NotForAllError, match="does something else with fractions"):
        is_lossless_everywhere(asks, "ab")


def test_a_rule_that_is_right_once_its_regions_are_done_is_refused() -> None:
    """Its witness would be one at which it is lossless."""
    done = list[Any]()

    def changes(target, drafter, context, lookahead, chance):
        if len(done) < 2:
            return (int(chance.accept(Fraction(1, 2), "toss")),)
        return autoregressive.step(target, drafter, context, lookahead, chance)

    with pytest.raises(NotForAllError, match="at some rows it is lossless with fractions"):
        is_lossless_everywhere(changes, "ab", advance=done.append)
    assert len(done) == 2


def test_limits_on_paths_and_decisions(monkeypatch) -> None:
    with monkeypatch.context() as few:
        few.setattr(slices, "MAX_PATHS", 1)
        with pytest.raises(TooManyPathsError, match="more than 1 paths for one outcome"):
            is_lossless_everywhere(standard.step, "ab")
    monkeypatch.setattr(walk, "MAX_SITES", 1)
    with pytest.raises(TooManyPathsError, match="more than 1 random decisions on one path"):
        is_lossless_everywhere(standard.step, "ab")


@pytest.mark.deep
def test_an_empty_block_on_few_rows_is_a_witness() -> None:
    found = is_lossless_everywhere(in_a_corner(lambda target, chance: ()), "ab")
    assert found.witness.error == "ValueError: step returned an empty block in context ()"


@pytest.mark.deep
def test_what_the_solver_does_not_know_is_open(monkeypatch) -> None:
    monkeypatch.setattr("z3.Solver.check", lambda self, *clauses: z3.unknown)
    found = is_lossless_everywhere(block.step, "ab", lookahead=2)
    assert (found.verdict, found.lossy) == ("open", 0)
    assert found.open > 0


def test_a_rule_that_spends_the_budget_is_left_open() -> None:
    def slow(target, drafter, context, lookahead, chance):
        ends = time.process_time() + 0.01
        while time.process_time() < ends:
            pass
        return standard.step(target, drafter, context, lookahead, chance)

    found = is_lossless_everywhere(slow, "ab", budget=0.1)
    assert (found.verdict, found.lossy) == ("open", 0)
    assert found.open > 0


@pytest.mark.deep
def test_fewer_calls_of_the_solver_than_a_fifth_of_the_flips() -> None:
    found = is_lossless_everywhere(standard.step, "abc", lookahead=2)
    assert found
    assert found.flips >= 5 * found.counts.calls


def test_a_wrong_sum_of_weights_is_seen_by_value_and_by_residue() -> None:
    """A rule that is wrong by 1e-30 in one outcome."""

    def almost(target, drafter, context, lookahead, chance):
        first = chance.draw(target.next_token(context), "target")
        if first == 0 and chance.accept(Fraction(1, 10**30), "slip"):
            first = 1
        return (first,)

    found = is_lossless_everywhere(almost, "ab", lookahead=1)
    assert found.verdict == "lossy"
    assert 0 < found.witness.proof.total_variation <= Fraction(1, 10**30)


def test_rules_that_keep_state_are_refused_with_two_runs() -> None:
    with pytest.raises(OutsideChanceError, match=r"of two runs .* returned \(0,\)"):
        is_lossless_everywhere(ATTACKS["every other call"].step, "ab")


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="budget = 0"):
        is_lossless_everywhere(standard.step, "ab", budget=0)
    with pytest.raises(TypeError, match="step takes"):
        is_lossless_everywhere(lambda target: (0,), "ab")


def test_without_z3_it_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr(proof, "is_installed", lambda: False)
    with pytest.raises(ModuleNotFoundError, match="pip install z3-solver"):
        is_lossless_everywhere(standard.step, "ab")


@pytest.mark.deep
def test_a_bug_where_the_drafter_has_a_zero_is_found() -> None:
    """The face q(a) = 0 is where a path with a positive weight divides, or does not exist."""

    def wrong_for_a_sure_drafter(target, drafter, context, lookahead, chance):
        q = drafter.next_token(context)
        if q[1] < 1:
            return standard.step(target, drafter, context, lookahead, chance)
        return (1,)

    found = is_lossless_everywhere(wrong_for_a_sure_drafter, "ab")
    assert found.verdict == "lossy"
    assert found.witness.rows[Row("q", ())] == [0, 1]


def test_completed_outcomes_are_all_texts() -> None:
    texts = proof.completed_outcomes(Vocabulary("ab$", eos="$"), 3)
    assert len(texts) == len(set(texts)) == 1 + 2 + 4 * 3
    assert texts == sorted(texts)
    assert list(itertools.product(range(2), repeat=2)) == proof.completed_outcomes(
        Vocabulary("ab"), 2
    )


def test_samples_satisfy_the_equations_of_their_chart() -> None:
    letters = Vocabulary("ab")
    space = Space(letters, letters, 0)
    p, q = (space.entries(Row(letter, ()))[0] for letter in "pq")
    (v,) = next(iter(p.powers)).variables
    chart = Chart(space, {v: q})
    sample = Sample(chart, {}, "key")
    assert p.at(sample.value) == q.at(sample.value)
    assert chart.leaves(Row("p", ()))[0][1] == chart.leaves(Row("q", ()))[0][1]


def test_a_chart_with_a_negative_entry_has_no_rows() -> None:
    letters = Vocabulary("ab")
    space = Space(letters, letters, 0)
    ((polynomial, _),) = space.entries(Row("p", ()))[0].powers.items()
    (v,) = polynomial.variables
    minus = product_of({(): -1})
    solver = Solver(Counts())
    assert solver.find(Chart(space, {v: minus}), (), [], "key") == "none"
    assert solver.find(Chart(space, {v: product_of({(): 1})}), (), [], "key") != "none"


@pytest.mark.deep
def test_a_proof_leaves_no_number_behind() -> None:
    """Also where comparisons were ties: 50 MB a proof were kept by rows in object arrays."""

    def readings() -> int:
        gc.collect()  # frees arrays
        gc.collect()  # frees what was in them
        return sum(type(one) is Reading for one in gc.get_objects())

    before = readings()
    proved = bool(is_lossless_everywhere(block.step, "abc", lookahead=1))
    assert proved
    assert readings() == before


def test_the_error_covers_that_the_modulus_may_be_no_prime() -> None:
    found = is_lossless_everywhere(standard.step, "ab", lookahead=0)
    for mistakes, bits in ((2**80, 126), (2**86, 126), (2**88, 124)):
        found.slices[0].mistakes = mistakes
        total = Fraction(sum(one.mistakes for one in found.slices), 2**ACCIDENT)
        assert found.bits == bits
        assert total + Fraction(1, 2**128) <= Fraction(1, 2**found.bits)


def shown(report: Any) -> str:
    console = Console(width=99, file=io.StringIO(), record=True)
    console.print(report)
    return console.export_text()


def test_a_witness_has_a_path_to_the_difference_and_what_makes_it() -> None:
    found = is_lossless_everywhere(over_accepting(lambda at: True), "ab")
    witness = found.witness
    off = witness.proof.difference
    assert off
    assert sum(share for _, share in witness.shares) == off.output > 0
    two = replace(witness, shares=(("accept[0] yes", off.output / 2), ("no", off.output / 2)))
    said = shown(everywhere_document("rule", [replace(found, witness=two)], []))
    assert f"{off.output} is the sum of" in said
    assert f"{off.output / 2} accept[0] yes" in said
    size = min(len(witness.block), len(off.tokens))
    assert witness.block[:size] == off.tokens[:size]
