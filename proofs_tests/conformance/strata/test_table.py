"""The tables of strata: one name each, and words for every family of laws."""

from proofs_tests.pages import strata as pages
from specref.conformance.strata import laws
from specref.conformance.strata.table import STEP_STRATA, STRATA, TEXT_STRATA, TREE_STRATA


def test_every_family_is_described() -> None:
    assert list(pages.TARGETS) == list(laws.TARGETS)
    assert list(pages.DRAFTERS) == list(laws.DRAFTERS)


def test_names_are_of_one_stratum() -> None:
    names = [
        one.name for table in (STRATA, STEP_STRATA, TEXT_STRATA, TREE_STRATA) for one in table
    ]
    assert len(names) == len(set(names))
