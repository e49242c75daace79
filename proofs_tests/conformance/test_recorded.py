"""What a check asks of a sampler at a seed, and what it says of it, does not change unnoticed."""

import json
from dataclasses import replace

import pytest

from proofs_tests.helpers import recorded as helper
from proofs_tests.helpers.recorded import KNOWN, RECORD, SUBJECTS, TABLES, recorded, tables
from specref.conformance.checks import acceptance, drafting
from specref.conformance.strata.table import STRATA
from specref.contracts.table import CONTRACTS

QUICK = ("verify, lenient", "step, greedy")
"""Of many checks, in two seconds."""


@pytest.mark.strata
@pytest.mark.parametrize(
    "subject",
    [pytest.param(one, marks=() if one in QUICK else pytest.mark.deep) for one in SUBJECTS],
)
def test_checks_ask_and_say_what_is_on_record(subject: str) -> None:
    """A check, a bug or a stratum that is not on record yet changes nothing of what is."""
    record = json.loads(RECORD.read_text())
    known, found = record[subject], recorded(subject, record[KNOWN])
    assert {one: found.get(one) for one in known} == known


def test_strata_are_those_on_record(monkeypatch) -> None:
    known = json.loads(RECORD.read_text())[TABLES]
    assert {name: one for name, one in tables().items() if name in known} == known
    first, *others = STRATA
    monkeypatch.setattr(helper, "STRATA", (replace(first, cost=2 * first.cost), *others))
    found = tables()
    assert {name for name in known if found[name] != known[name]} == {first.name}


def test_other_arguments_and_other_words_are_not_on_record(monkeypatch) -> None:
    known = json.loads(RECORD.read_text())
    monkeypatch.setattr(drafting, "SHAPES", drafting.SHAPES[1:])
    assert recorded("drafter", known[KNOWN]) != known["drafter"]
    monkeypatch.setattr(acceptance, "LOGS", acceptance.LOGS[:1])
    assert recorded("metrics", known[KNOWN]) != known["metrics"]


def test_all_contracts_are_on_record() -> None:
    assert {one.contract for one in SUBJECTS.values()} == {*CONTRACTS}
