"""`specref list`: everything that can be named, and nothing else."""

import json
from dataclasses import fields
from typing import Any

import pytest
from click.testing import CliRunner, Result

from proofs_tests.helpers.command import assert_fits
from specref.adapters import IMPLEMENTATIONS
from specref.cli import main
from specref.conformance.checks import CHECKS
from specref.contracts.capabilities import Capabilities
from specref.contracts.table import CONTRACTS, TREE
from specref.rules import RULES, declarable

COLUMNS = 80


def listed(*arguments: str, columns: int = COLUMNS) -> Result:
    return CliRunner().invoke(main, ["list", *arguments], env={"COLUMNS": str(columns)})


def record(*arguments: str) -> dict[str, list[dict[str, Any]]]:
    text = listed(*arguments, "--json", "-").stdout
    assert_fits("list", text)
    found: dict[str, list[dict[str, Any]]] = json.loads(text)
    return found


def test_everything_is_listed() -> None:
    found = record()
    assert [row["name"] for row in found["claims"]] == [f.name for f in fields(Capabilities)]
    assert [row["id"] for row in found["checks"]] == [one.id for one in CHECKS]
    assert {row["name"] for row in found["contracts"]} == set(CONTRACTS)
    assert [row["name"] for row in found["names"]] == list(IMPLEMENTATIONS)
    assert [row["name"] for row in found["rules"]] == list(RULES)
    assert all(row["text"] for rows in found.values() for row in rows)
    for row, one in zip(found["checks"], CHECKS, strict=True):
        assert row["stage"] == str(one.stage)
        assert row["statistical"] == one.statistical
        assert set(row["contracts"]) == {str(contract) for contract in one.contracts}


def test_values_can_be_claimed_and_texts_are_those_of_the_docstring() -> None:
    rows = {row["name"]: row for row in record("claims")["claims"]}
    assert rows["inputs"]["values"] == "probs, logits"
    assert rows["greedy"]["values"] == "true, false"
    assert rows["greedy"]["default"] == "false"
    assert rows["batch"]["values"] == "int or none"
    for row in rows.values():
        assert row["text"][:40] in " ".join(str(Capabilities.__doc__).split())


@pytest.mark.parametrize("columns", [80, 120])
def test_tables_fit_and_no_name_is_cut(columns: int) -> None:
    output = listed(columns=columns).output
    assert max(map(len, output.splitlines())) <= columns
    found = record()
    for section in ("claims", "contracts", "names", "rules"):
        assert all(row["name"] in output for row in found[section])
    assert all(one.id in output for one in CHECKS)
    words = {word for rows in found.values() for row in rows for word in row["text"].split()}
    long = [word for word in words if len(word) > 14 and "`" not in word]
    assert long
    cut = [word for word in long if word.rstrip(".") not in output and word in IN_TABLES]
    assert not cut


IN_TABLES = {"assistant_tokenizer,", "_speculative_sampling", "prompt_lookup_num_tokens"}


def test_sections_and_a_contract_are_chosen() -> None:
    assert list(record("rules", "names")) == ["rules", "names"]
    assert list(record("capabilities", "adapters")) == ["claims", "names"]  # as pages call them
    trees = record("--contract", "tree")
    assert {row["id"] for row in trees["checks"]} == {
        one.id for one in CHECKS if TREE in one.contracts
    }
    assert [row["name"] for row in trees["rules"]] == list(declarable(tree=True))
    assert {row["contract"] for row in trees["names"]} == {"tree"}
    assert [row["name"] for row in trees["contracts"]] == ["tree"]
    assert trees["contracts"][0]["parameters"][3] == "parents"
    output = listed("checks", "--contract", "tree").output
    assert "joint/siblings" in output
    assert "joint/wide" not in output


def test_what_is_not_installed_says_how(monkeypatch: Any) -> None:
    monkeypatch.setitem(__import__("sys").modules, "vllm", None)
    row = next(row for row in record("names")["names"] if row["name"] == "vllm")
    assert not row["installed"]
    assert "vllm" in row["missing"]
    assert "not installed: pip install vllm" in " ".join(listed("names").output.split())
    assert next(row for row in record("names")["names"])["installed"]
