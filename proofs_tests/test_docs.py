"""What README and docs say is run: code blocks, commands, the architecture table."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from proofs_tests.pages import console_blocks, redirects
from proofs_tests.pages import words as prose
from proofs_tests.pages.console_blocks import (
    PAGES,
    ROOT,
    Command,
    commands,
    run_page,
)
from specref.examples import lossy
from specref.statistics import InconclusiveWarning
from specref.verification import prove

# Packages that not every machine has, and what asks for them.
NEEDED = {
    "torch": ("torch", "transformers"),
    "mlx_lm": ("mlx_lm", "planted:"),
    "xllamacpp": ("--format gguf",),
    "jsonschema": ("jsonschema",),
}


def skip_without(page: Path, code: list[str]) -> None:
    for package, words in NEEDED.items():
        if find_spec(package) is None and any(one in line for line in code for one in words):
            pytest.skip(f"not_run ({page.name}: {package} is not installed)")


def runnable(page: Path) -> list[Command]:
    return [command for command in commands(page) if not command.not_run]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for read in ("docs", "fixtures", "proofs_tests", "specref"):  # what is written stays here
        (tmp_path / read).symlink_to(ROOT / read)
    monkeypatch.chdir(tmp_path)
    python = [block for block in console_blocks.blocks(page) if block["language"] == "python"]
    run = [block["text"] for block in python if not left_out(block)]
    skip_without(page, run)
    for text in run:
        assert names_after(text), f"a block of {page.name} defines nothing"


def left_out(block: re.Match[str]) -> str:
    """Why a Python block is not run; empty if it is."""
    return "; ".join(one.text for one in console_blocks.markers(block) if one.kind == "not run")


def names_after(code: str) -> set[str]:
    namespace: dict = {}
    exec(compile(code, "block", "exec"), namespace)
    return namespace.keys() - {"__builtins__"}


def test_a_block_that_is_wrong_is_noticed() -> None:
    with pytest.raises(AssertionError):
        names_after("assert 1 + 1 == 3")


COMMANDS = [
    pytest.param(page, marks=[pytest.mark.deep] * (page.stem != "README"), id=page.stem)
    for page in PAGES
    if runnable(page)
]
"""Those of docs are left to `make deep`, where they take minutes."""


@pytest.mark.parametrize("page", COMMANDS)
def test_commands_do_what_the_page_says(page: Path) -> None:
    skip_without(page, [command.line for command in runnable(page)])
    assert [ran.problem for ran in run_page(page) if ran.problem] == []


@pytest.mark.deep
@pytest.mark.parametrize(
    "page",
    ["tests-and-ci", "prove-a-rule", "check-an-engine", "time-and-power", "other-languages"],
)
def test_what_a_slow_page_shows_is_printed(page: str) -> None:
    """Its other commands, and other such pages, are left to `make deep`."""
    ran = run_page(ROOT / "docs" / f"{page}.md", shown=True)
    assert ran
    assert [one.problem for one in ran if one.problem] == []


PAGE = """
<!-- run with two (echo one) -->: a marker that is none

```console
$ echo first   # exit code 0
first
$ false
…
$ printf 'a\\nb\\nc\\n'
x
…
y
```

<!-- not run (touch): reasons of its own -->
```sh
touch never
echo one > kept
cat kept && exit 3   # exit code 3: as it says
```
"""


def test_wrong_outputs_and_exit_codes_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    ran = run_page(page)
    assert [one.problem.split(":")[0].split(" prints")[0] for one in ran if one.problem] == [
        "false",
        "printf 'a\\nb\\nc\\n'",
    ]
    assert [one.not_run for one in commands(page) if one.not_run] == ["reasons of its own"]


def test_update_writes_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert console_blocks.update(page)
    assert page.read_text() == PAGE.replace("\nx\n…\ny\n", "\na\n…\nc\n")
    assert "false: exit code 1, expected 0" in capsys.readouterr().err
    assert not console_blocks.update(page)


def test_private_words_and_long_sentences_are_noticed() -> None:
    short, long = "A sentence is short. " * 20, "one " * 31 + "word. "
    assert prose.read("`coins` and [a name](laws.md#law)").banned == ()
    assert [word for word, _ in prose.read("| a coin | so far |").banned] == ["coin", "so far"]
    assert list(prose.read(short + long).complaints()) == []
    shares = list(prose.read(short + long * 2).complaints())
    assert shares == ["9% of sentences have over 30 words: at most 8%"]
    (mean,) = prose.read(("one " * 19 + "word. ") * 20).complaints()
    assert mean == "sentences have 20.0 words on average: at most 18"


def test_an_old_address_leads_to_a_page_that_is_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no such page"):
        redirects.write(tmp_path)
    for new in redirects.MOVED.values():
        page = tmp_path / f"{new}.html"
        page.parent.mkdir(exist_ok=True)
        page.touch()
    redirects.write(tmp_path)
    assert 'url=../prove-a-rule.html"' in (tmp_path / "generated" / "prove.html").read_text()


@pytest.mark.deep
def test_the_rule_of_the_tutorial_is_lossless() -> None:
    rule, *_ = blocks(ROOT / "docs" / "prove-a-rule.md", "python")
    namespace: dict = {}
    exec(compile(rule, "prove-a-rule.md", "exec"), namespace)
    report = prove(namespace["my_step"])
    assert report.proved > 50
    assert not report.refuted
    assert not report.raised


@pytest.mark.deep
def test_tests_of_your_own_fail_for_lossy_rules_and_samplers() -> None:
    """With alpha 1e-9; a drafter without verification is found in each of 20 seeds.

    The sampler that draws from p after a rejection is found without random numbers, and shrunk.
    """
    (page,) = blocks(ROOT / "docs" / "tests-and-ci.md", "python")
    namespace: dict = {}
    exec(compile(page, "tests-and-ci.md", "exec"), namespace)
    with pytest.warns(InconclusiveWarning):
        namespace["test_black_box"]()
    namespace["test_rule"]()
    namespace["test_sampler_exactly"]()

    def unverified(target, drafter, context, lookahead, chance):
        return namespace["standard"].step(drafter, drafter, context, lookahead, chance)

    right = namespace["simulate"]
    namespace["my_step"] = unverified
    namespace["simulate"] = lambda name, p, q, *rest, **more: right(name, q, q, *rest, **more)
    with pytest.raises(AssertionError):
        namespace["test_rule"]()
    with pytest.raises(AssertionError, match="LOSSY"):
        namespace["test_black_box"]()
    namespace["verify"] = lossy.verify
    with pytest.raises(AssertionError, match=r"TV 0\.25, .*: block \(0, 0\) has") as found:
        namespace["test_sampler_exactly"]()
    shrunk = " ".join("".join(found.value.__notes__).split())
    assert "[['1/2', '1/2']]), RowsModel(" in shrunk
    assert "[['1', '0']]), (), 1" in shrunk
