"""Each finding and each planted bug has an address, and the page there has it."""

import re
from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest

from proofs_tests.pages import site
from specref.conformance import status as findings
from specref.conformance.public import check
from specref.conformance.status import MEANINGS, Finding, address_of_bug, address_of_finding
from specref.examples.lossy import verify as lossy
from specref.report.kit import kit_record
from specref.zoo import ALL


def slugs(page: str) -> set[str]:
    """The ids that headings of a page have, as docutils makes them."""
    heads = re.findall(r"^##+ (.*)$", page, flags=re.MULTILINE)
    return {re.sub(r"[^a-z0-9]+", "-", one.lower()).strip("-") for one in heads}


@pytest.mark.parametrize(
    ("name", "page", "addresses"),
    [
        ("findings", site.findings_page(), [address_of_finding(one) for one in Finding]),
        ("bugs", site.bugs_page(), [address_of_bug(one) for one in ALL]),
    ],
)
def test_every_address_is_a_heading_of_its_page(
    name: str, page: str, addresses: list[str]
) -> None:
    assert {one.rpartition("#")[2] for one in addresses} <= slugs(page)
    assert {one.partition("#")[0].rpartition("/")[2] for one in addresses} == {f"{name}.html"}
    assert set(MEANINGS) == set(Finding)


@pytest.mark.usefixtures("few_blocks")
def test_a_report_says_where_its_finding_and_its_bug_are_described(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = check(lossy, one_hot=False, only=["smoke", "joint/probed"])
    unknown = str(report)
    assert "Docs: specref list findings" in unknown
    assert "build/" not in unknown
    monkeypatch.setattr(findings, "site", lambda: "https://x.example/docs")
    text = str(report)
    assert report.diagnosis is not None
    assert f"Docs: {address_of_finding(Finding.LAW)}" in text
    assert f"More: {address_of_bug(report.diagnosis.candidates[0].ids[0])}" in text
    record: Any = kit_record(report)
    assert record["address"] == address_of_finding(Finding.LAW)
    (first, *_) = record["diagnosis"]["candidates"]
    assert first["addresses"] == {one: address_of_bug(one) for one in first["ids"]}


def test_the_site_is_the_one_that_the_project_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    class Declared:
        def get_all(self, name: str) -> list[str]:
            return ["Source, https://x.example/code", "Documentation, https://x.example/docs/"]

    def unknown(name: str) -> Any:
        raise PackageNotFoundError

    declared = (lambda name: Declared(), "https://x.example/docs")
    for metadata, expected in (declared, (unknown, "build/site")):
        findings.site.cache_clear()
        monkeypatch.setattr(findings, "metadata", metadata)
        for id_ in ("x", "x at 5/4"):
            assert address_of_bug(id_) == f"{expected}/generated/bugs.html#x"
    findings.site.cache_clear()
