"""Batched loops: every mutant fails a stratum of its own, right loops none, and reports say when.

Alpha is 1e-9 a run, as everywhere; `test_right_loops_seldom_fail` counts false positives.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from specref.conformance.options import CheckOptions
from specref.conformance.public import check
from specref.conformance.report import Report
from specref.conformance.status import Status
from specref.conformance.strata.loops import LOOP_STRATA
from specref.conformance.suite import prepare
from specref.conformance.summary import summarize
from specref.contracts.table import GENERATE_BATCH
from specref.examples.batched_loop import generate
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo.batch_loops import CONTROLS, ENTRIES, as_generate, batched

pytestmark = [pytest.mark.strata, pytest.mark.usefixtures("undiagnosed")]
LOOPS = {one.id: as_generate(one.generate_batch) for one in ENTRIES if one.generate_batch}
RIGHT = {
    "clean": as_generate(batched()),
    **{one.id: as_generate(one.generate_batch) for one in CONTROLS if one.generate_batch},
}
ONE_BY_ONE = [f"strata/{one.name}" for one in LOOP_STRATA[:7]]
"""The strata that differ in one thing from one another."""
KILLERS = {
    name: at
    for at, names in {
        ("batch-acceptance", "only when rows accept different numbers of drafts"): (
            "offset-of-fullest-row zeroed-keys-attended fewest-commit-with-residual"
        ),
        ("batch-prompts", "only when prompts differ in length"): "padding-attended",
        ("batch-in-step", "only with several rows"): (
            "last-token-of-row-before batch-decodes-greedily bonus-written-to-row-before"
        ),
        ("batch-in-step", "only in rows after the first"): (
            "slot-keeps-its-cache late-row-reads-another"
        ),
        ("batch-settings", "only in rows after the first, when rows have different settings"): (
            "top-p-of-first-row"
        ),
        ("batch-settings", "only when rows have different settings"): "temperature-of-row-before",
        (
            "batch-settings-endings",
            "only in rows after the first, when a row ends before another and rows have different "
            "settings",
        ): "settings-stay-in-slot",
        ("batch-endings", "only when a row ends before another"): (
            "text-written-to-next-row padding-returned-after-end"
        ),
    }.items()
    for name in names.split()
}
"""The stratum that each mutant fails, and what a report says of when it is wrong."""


TOKENS = 1_200
"""Of each stratum: enough for every mutant here, at this seed."""


def judged(function: Any, *only: str, **options: Any) -> Report:
    return check(function, contract=GENERATE_BATCH, only=list(only), **options)


@pytest.mark.deep(one_in=28)
@pytest.mark.parametrize("name", KILLERS)
def test_a_mutant_fails_the_stratum_of_its_situation(name: str) -> None:
    id_, when = KILLERS[name]
    asked = dict.fromkeys(("batch-of-one", "batch-in-step", id_))
    report = judged(LOOPS[name], *(f"strata/{one}" for one in asked), trials=TOKENS)
    failed = {one.id for one in report.failures}
    assert f"strata/{id_}" in failed
    assert "strata/batch-of-one" not in failed
    assert summarize(report).headline.split(":")[0].endswith(when)


@pytest.mark.deep
@pytest.mark.usefixtures("few_blocks")
def test_rows_that_share_random_numbers_depend_on_each_other() -> None:
    report = judged(LOOPS["loop-rows-share-random-numbers"], "end-to-end/eos", trials=1_800)
    assert [one.finding for one in report.failures] == ["dependent blocks"]


@pytest.mark.deep
@pytest.mark.parametrize("name", RIGHT)
def test_right_loops_pass(name: str) -> None:
    report = judged(RIGHT[name], "smoke", "replay", *ONE_BY_ONE, trials=TOKENS)
    assert report.exit_code == 0, report
    assert not report.failures


def test_every_mutant_is_named_here() -> None:
    assert {*KILLERS, "loop-rows-share-random-numbers"} == LOOPS.keys()


@pytest.mark.deep
def test_right_loops_seldom_fail() -> None:
    """At 0.05 for the stratum, 5 of 100 seeds may fail; more than 12 have probability 0.0015."""
    judge, _ = prepare(RIGHT["clean"], CheckOptions(contract=GENERATE_BATCH))
    reports = (
        judged(RIGHT["clean"], "strata/batch-all", alpha=0.05 * judge.checks, seed=s, trials=600)
        for s in range(100)
    )
    failed = sum(bool(report.failures) for report in reports)
    print(failed)
    assert failed <= 12


def test_the_example_passes_and_has_the_same_texts_in_any_batch() -> None:
    asked = ("smoke", "replay/batch-order", "strata/batch-all")
    report = judged(generate, *asked, trials=TOKENS)
    assert {one.id for one in report.results if one.status == Status.PASSED} >= set(asked[1:])
    assert report.exit_code == 0


def with_seeds_by_slot(
    target: Model, drafter: Model, contexts: Sequence[Tokens], tokens: int, *, seeds: Sequence[int]
) -> Any:
    """Texts whose random numbers depend on the place of a row, too."""
    return generate(
        target, drafter, contexts, tokens, seeds=[seed + row for row, seed in enumerate(seeds)]
    )


def test_a_text_that_depends_on_its_place_is_no_law_that_is_off() -> None:
    report = judged(
        with_seeds_by_slot, "replay/batch-order", "strata/batch-in-step", detect_tv=0.2
    )
    (one,) = report.failures
    assert one.id == "replay/batch-order"
    assert one.finding == "broken contract"
    assert one.evidence["row"] in range(6)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([[0, 1, 2]], "returned 1 texts: expected 2, one a context"),
        ([[0, 1, 2], [0, 1]], "row 1 has 2 tokens: expected 3"),
        ([[0, 1, 2, 0], [0, 1, 2]], "row 0: returned more than 3 tokens"),
        ([[0, 1, 99], [0, 1, 2]], "row 0: token 2 is 99"),
        (7, "returned a int: expected a text for each context"),
        ([7, [0, 1, 2]], "row 0 is 7: expected token ids"),
    ],
)
def test_an_answer_that_is_none_names_its_row(answer: Any, said: str) -> None:
    from specref.contracts.errors import BrokenContractError
    from specref.contracts.fixtures import CHAIN_FIXTURES
    from specref.contracts.functions import read_texts

    with pytest.raises(BrokenContractError, match=said):
        read_texts(answer, 2, 3, CHAIN_FIXTURES["wide"])
    padded = read_texts(np.array([[0, 3, -1], [1, 2, 0]]), 2, 3, CHAIN_FIXTURES["eos"])
    assert padded == [(0, 3), (1, 2, 0)]
