"""The matrix of triggers: bugs that act in one situation, and the checks that find them."""

import numpy as np
import pytest
from click.testing import CliRunner

from specref.cli import main
from specref.contrib.selftest import situations
from specref.contrib.selftest.trigger_matrix import (
    ALL,
    TriggerMatrix,
    TriggerRow,
    bugs_of,
    tree_verifier,
    trigger_matrix,
    triggers_document,
    triggers_record,
)
from specref.contrib.selftest.triggers import TRIGGERS, Trigger
from specref.report.document import markdown, page_of

pytestmark = pytest.mark.strata
MISSED = TriggerRow("row-0", "residual-is-p", ())
FOUND = TriggerRow("one-draft", "residual-is-p", ("strata/one-draft", "strata/no-laws"))
ELSEWHERE = TriggerRow("row-0", "accepts-every-draft", (), "joint/wide")


def test_ids_of_situations_are_unique_and_their_kinds_known() -> None:
    assert len({trigger.id for trigger in TRIGGERS}) == len(TRIGGERS)
    assert {trigger.kind for trigger in TRIGGERS} == {
        "shape", "values", "ids", "mode", "call", "row",
    }  # fmt: skip


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("trigger", ["one-draft", "odd-rows", "row-above-63", "padding"])
def test_every_bug_is_found_in_a_situation(trigger: str) -> None:
    matrix, known = trigger_matrix([trigger]), ALL["verify"]
    (at,) = (one for one in TRIGGERS if one.id == trigger)
    assert [row.bug for row in matrix.rows] == [bug.id for bug in known.at(at)]
    assert matrix.missed == ()


def test_bugs_of_one_situation_have_lines_of_their_own() -> None:
    row = TriggerRow("end-id-masked", "never-emits-it", ("strata/vocabulary-ends",))
    page = markdown(triggers_document(TriggerMatrix((row, FOUND), 0)))
    assert "| end-id-masked | never-emits-it | strata/vocabulary-ends |" in page.splitlines()


@pytest.mark.deep
def test_all_strata_that_find_a_bug_are_told() -> None:
    one, every = (
        trigger_matrix(["four-drafts"], ["last-token-is-argmax"], every=every).rows[0]
        for every in (False, True)
    )
    assert one.killers == every.killers[:1] == ("strata/many-drafts",)
    assert len(every.killers) > 1


def test_what_no_stratum_finds_is_looked_for_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    from specref.contrib.selftest import trigger_matrix as module

    monkeypatch.setattr(
        module,
        "failures",
        lambda verify, contract, stages, seed: iter(["joint/wide"] * (len(stages) > 1)),
    )
    assert trigger_matrix(["one-draft"], ["residual-is-p"]).rows[0].elsewhere == "joint/wide"


def test_what_is_missed_is_named() -> None:
    matrix = TriggerMatrix((MISSED, FOUND, ELSEWHERE), 7)
    assert matrix.missed == (("row-0", "residual-is-p"),)
    assert matrix.share == pytest.approx(2 / 3)
    page = markdown(triggers_document(matrix))
    assert "2 of 3 found (66.7%): 2 situations, seed 7" in page
    assert "| row-0 | residual-is-p | missed |" in page
    assert "| row-0 | accepts-every-draft | joint/wide |" in page
    assert "| one-draft | residual-is-p | strata/one-draft, strata/no-laws |" in page
    assert "* shape: `one-draft`" in page
    assert "Missed: `residual-is-p` at `row-0`." in page
    record = triggers_record(matrix)
    assert record.missed == matrix.missed
    assert [row.kind for row in record.rows] == ["row", "shape", "row"]


@pytest.mark.parametrize(
    ("found", "headline"), [(19, "Enough of them are found"), (18, "Too few of them are found")]
)
def test_one_of_twenty_may_be_missed(found: int, headline: str) -> None:
    matrix = TriggerMatrix((FOUND,) * found + (MISSED,) * (20 - found), 0)
    assert headline in page_of(triggers_document(matrix))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"triggers": ["row"]}, "triggers has 'row': expected some of"),
        ({"bugs": ["bug"]}, "bugs has 'bug': expected some of accepts-every-draft,"),
    ],
)
def test_unknown_ids_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trigger_matrix(**arguments)


def test_the_command_writes_the_page(tmp_path) -> None:
    page = tmp_path / "triggers.md"
    arguments = ["zoo", "--triggers", "odd-rows", "--markdown", str(page)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0
    assert "4 of 4 found (100.0%): 1 situations, seed 0" in result.output
    written = page.read_text()
    assert "* row: `odd-rows`" in written
    assert written.endswith("Missed: none.\n")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("trigger", "bug", "killer"),
    [
        ("step-eight-drafts", "reads-two-tokens", "strata/step-many-drafts"),
        ("text-after-40", "reads-two-tokens", "strata/text-prompts"),
        ("tree-batch-of-1", "accepts-every-draft", "strata/tree-batches-to-32"),
    ],
)
def test_other_contracts_have_situations_too(trigger: str, bug: str, killer: str) -> None:
    row = trigger_matrix([trigger], [bug]).rows[0]
    assert row.killers == (killer,)
    page = markdown(triggers_document(TriggerMatrix((row,), 0)))
    assert f"## Contract {bugs_of(trigger).contract}\n" in page
    assert "1 of 1 found (100.0%): 1 situations" in page


def test_a_bug_in_trees_sees_the_call_the_row_and_the_nodes() -> None:
    seen = set()

    def never(at: situations.Decision) -> bool:
        seen.add((at.call, at.asked, at.size, at.row, at.rows, at.laws))
        return False

    when = Trigger("never", "shape", never)
    verify = tree_verifier(situations.TREE_BUGS[0], when)
    p, rng = np.full((2, 4, 3), 1 / 3), np.random.default_rng(1)
    drafts, parents = np.array([[0, 0, 2], [1, -1, -1]]), np.array([[-1, 0, 1], [-1, -2, -2]])
    verify(p, None, drafts, parents, rng=rng)
    verify(p[:1], np.full((1, 3, 3), 1 / 3), drafts[:1], parents[:1], rng=rng)
    assert seen == {(0, 3, 3, 0, 2, False), (0, 1, 3, 1, 2, False), (1, 3, 3, 0, 1, True)}


def test_contracts_of_triggers_are_known() -> None:
    assert list(ALL) == ["verify", "step", "generate", "tree"]
    for contract, known in ALL.items():
        assert str(known.contract) == contract
        assert {str(bugs_of(one.id).contract) for one in known.triggers} == {contract}
