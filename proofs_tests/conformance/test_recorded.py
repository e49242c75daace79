"""What a check asks of a sampler at a seed, and what it says of it, does not change unnoticed."""

import json
from dataclasses import replace

import pytest

from proofs_tests.helpers import recorded as helper
from proofs_tests.helpers.recorded import RECORD, SUBJECTS, TABLES, recorded, tables
from specref.conformance.checks import drafting, reporting
from specref.conformance.strata.table import STRATA
from specref.contracts.table import CONTRACTS


@pytest.mark.deep(one_in=3)
@pytest.mark.strata
@pytest.mark.parametrize("subject", SUBJECTS)
def test_checks_ask_and_say_what_is_on_record(subject: str) -> None:
    known, found = json.loads(RECORD.read_text())[subject], recorded(subject)
    changed = {one for one in {**known, **found} if known.get(one) != found.get(one)}
    assert not changed, {one: (known.get(one), found.get(one)) for one in sorted(changed)}


def test_strata_are_those_on_record(monkeypatch) -> None:
    known = json.loads(RECORD.read_text())[TABLES]
    assert tables() == known
    first, *others = STRATA
    monkeypatch.setattr(helper, "STRATA", (replace(first, cost=2 * first.cost), *others))
    assert {name for name, one in tables().items() if one != known[name]} == {first.name}


def test_other_arguments_and_other_words_are_not_on_record(monkeypatch) -> None:
    known = json.loads(RECORD.read_text())
    monkeypatch.setattr(drafting, "SHAPES", drafting.SHAPES[1:])
    assert recorded("drafter") != known["drafter"]
    monkeypatch.setattr(reporting, "LOGS", reporting.LOGS[:1])
    assert recorded("metrics") != known["metrics"]


def test_all_contracts_are_on_record() -> None:
    assert {one.contract for one in SUBJECTS.values()} == {*CONTRACTS}
