"""The zoo under the kit: every mutant is killed, every control passes, checks kill their witness.

Stages that can be put to it in little time; all of them are `specref zoo`. Statistical checks
spend alpha 1e-9 on each entry: 300 of them fail by chance with probability below 1e-6.
Seeds are fixed.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from specref.contrib.selftest.kill_matrix import Matrix, Row, kill_matrix
from specref.zoo import ALL

DETECT_TV = 0.2
STAGES = ("smoke", "replay", "boundary", "joint", "independence", "end-to-end")
# One mutant that each check fails; the full matrix is `specref zoo`.
WITNESSES = {
    "smoke/answers": "returns-nothing",
    "smoke/batch-of-one": "squeezes-batch-of-one",
    "smoke/no-drafts": "needs-a-draft",
    "smoke/one-hot": "needs-draft-probs",
    "smoke/inputs-unchanged": "writes-into-target-probs",
    "smoke/deterministic": "ignores-its-generator",
    "smoke/large-vocabulary": "ids-in-fifteen-bits",
    "boundary/tiny": "ratio-in-float16",
    "boundary/rare-draft": "coarse-uniforms",
    "independence/identical-rows": "spread-uniforms",
    "independence/identical-rows-bare": "numbers-come-round",
    "acceptance/reported": "counts-bonus-as-accepted",
}


def entries() -> Iterator[Any]:
    """The ids of all; batched loops are judged in situations."""
    for id_, entry in ALL.items():
        yield pytest.param(id_, marks=[pytest.mark.strata] if entry.generate_batch else ())


@pytest.mark.deep(one_in=240)
@pytest.mark.parametrize("id_", list(entries()))
def test_mutants_are_killed_and_controls_pass(id_: str) -> None:
    stages = ("acceptance",) if ALL[id_].stage == "reporting" else STAGES
    (row,) = kill_matrix([id_], stages=stages, detect_tv=DETECT_TV, first=True).rows
    assert row.problem is None


@pytest.mark.deep(one_in=12)
@pytest.mark.parametrize("check", WITNESSES)
def test_witnesses_are_killed_by_their_check(check: str) -> None:
    stage = check.split("/")[0]
    (row,) = kill_matrix([WITNESSES[check]], stages=[stage], detect_tv=DETECT_TV).rows
    assert check in row.killers


def test_results_do_not_depend_on_the_executor() -> None:
    ids = [id_ for id_, entry in ALL.items() if entry.stage == "reporting"][:2]
    with ThreadPoolExecutor(2) as executor:
        there = kill_matrix(ids, stages=["acceptance"], executor=executor)
    here = kill_matrix(ids, stages=["acceptance"])
    assert [row.killers for row in there.rows] == [row.killers for row in here.rows]
    assert all(row.killers for row in here.rows)


@pytest.mark.parametrize(
    ("asked", "whole"),
    [
        ({}, True),
        ({"ids": list(ALL)}, False),
        ({"stages": STAGES}, False),
        ({"first": True}, False),
    ],
)
def test_a_matrix_is_whole_if_nothing_is_left_out(
    asked: dict, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_run(id_: str, **options: object) -> Row:
        return Row(id_, (), frozenset(), None)

    monkeypatch.setattr("specref.contrib.selftest.kill_matrix.row_of", not_run)
    assert kill_matrix(**asked).whole is whole


def row(lossless: bool, killers: tuple[str, ...]) -> Row:
    wanted = next(entry for entry in ALL.values() if entry.lossless == lossless)
    return Row(wanted.id, killers, frozenset({"smoke/answers", "joint/wide"}), None)


def test_a_surviving_mutant_a_failing_control_and_an_idle_check_are_problems() -> None:
    survivor, failing = row(False, ()), row(True, ("joint/wide",))
    killed, passing = row(False, ("smoke/answers",)), row(True, ())
    assert Matrix((survivor, failing), 0, 0.1, whole=False).problems == (
        f"mutant {survivor.entry.id} survives",
        f"control {failing.entry.id} fails joint/wide",
    )
    assert Matrix((killed, passing), 0, 0.1).problems == (
        "check joint/wide is idle: it fails no mutant",
    )
    assert Matrix((killed, passing), 0, 0.1, whole=False).problems == ()


def test_mutants_and_controls_are_counted_apart() -> None:
    rows = (
        row(False, ()),
        row(False, ("joint/wide",)),
        row(False, ("joint/wide",)),
        row(True, ()),
    )
    found = Matrix((*rows, row(True, ("joint/wide",)), row(True, ()), row(True, ())), 0, 0.1)
    assert found.counts == {"mutants": 3, "killed": 2, "controls": 4, "passed": 3}


def test_mutants_that_a_fixture_alone_passes_are_missed_there() -> None:
    killed, found, survivor = (
        row(False, ("smoke/answers",)),
        row(False, ("joint/wide",)),
        row(False, ()),
    )
    missed = Matrix((killed, found, survivor), 0, 0.1).missed
    assert missed == {"wide": (killed.entry.id,), "deep": (), "eos": ()}


@pytest.mark.deep
def test_the_first_killer_is_enough_if_asked() -> None:
    id_ = "always-accept-u0"
    ((all_of_them,), (first,)) = (
        kill_matrix([id_], stages=["boundary"], first=first).rows for first in (False, True)
    )
    assert len(all_of_them.killers) > 2
    assert first.killers == all_of_them.killers[:1]


@pytest.mark.deep
def test_the_first_failure_is_had_without_the_other_pairs_and_the_proof_for_all_laws() -> None:
    ((all_of_them,), (first,)) = (
        kill_matrix(["tli-q-permuted"], stages=["joint"], detect_tv=0.3, first=first).rows
        for first in (False, True)
    )
    assert (first.variation, all_of_them.variation) == (pytest.approx(1 / 33), 0.35)
    assert "joint/everywhere" in all_of_them.asked - first.asked
    assert first.killers == ("joint/exact-permuted",)


def test_an_unknown_id_is_refused() -> None:
    with pytest.raises(ValueError, match="ids has 'no-such-bug': not in the zoo"):
        kill_matrix(["no-such-bug"])


@pytest.mark.deep
@pytest.mark.parametrize("id_", ["inverted-ratio", "accept-with-p"])
def test_steps_that_can_verify_given_drafts_are_judged_row_by_row(id_: str) -> None:
    (row,) = kill_matrix([id_], stages=["boundary"], detect_tv=DETECT_TV).rows
    assert any(check.startswith("boundary/") for check in row.killers)
