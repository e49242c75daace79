"""What README and docs say is run: code blocks, commands, the architecture table."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from proofs_tests.pages import console_blocks
from proofs_tests.pages.console_blocks import (
    PAGES,
    ROOT,
    SHELL,
    Command,
    commands,
    commands_of,
    run_page,
)
from specref.cli import main
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


ENGINES = ("vLLM", "SGLang", "LMDeploy", "TensorRT-LLM")


def skip_without(page: Path, code: list[str]) -> None:
    for package, words in NEEDED.items():
        if find_spec(package) is None and any(one in line for line in code for one in words):
            pytest.skip(f"not_run ({page.name}: {package} is not installed)")


def runnable(page: Path) -> list[Command]:
    return [command for command in commands(page) if not command.not_run]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_blocks_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    python = [block for block in console_blocks.blocks(page) if block["language"] == "python"]
    run = [block["text"] for block in python if not left_out(block)]
    skip_without(page, run)
    for text in run:
        assert names_after(text), f"a block of {page.name} defines nothing"


def left_out(block: re.Match[str]) -> str:
    """Why a Python block is not run; empty if it is."""
    return "; ".join(one.text for one in console_blocks.markers(block) if one.kind == "not run")


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        pytest.param(page, left_out(block), id=f"{page.stem}: {left_out(block)}")
        for page in PAGES
        for block in console_blocks.blocks(page)
        if block["language"] == "python" and left_out(block)
    ],
)
def test_python_blocks_that_are_not_run_say_why(page: Path, reason: str) -> None:
    assert len(reason.split()) > 1
    for block in console_blocks.blocks(page):
        compile(block["text"] if left_out(block) == reason else "", "block", "exec")
    pytest.skip(f"not_run ({page.name}: {reason})")


def names_after(code: str) -> set[str]:
    namespace: dict = {}
    exec(compile(code, "block", "exec"), namespace)
    return namespace.keys() - {"__builtins__"}


def test_a_block_that_is_wrong_is_noticed() -> None:
    with pytest.raises(AssertionError):
        names_after("assert 1 + 1 == 3")


SLOW = ("checkpoints", "ci", "everywhere", "low-precision", "scaling", "trophies", "vectors")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.deep] * (page.stem in SLOW), id=page.stem)
        for page in PAGES
        if runnable(page)
    ],
)
def test_commands_do_what_the_page_says(page: Path) -> None:
    skip_without(page, [command.line for command in runnable(page)])
    assert [ran.problem for ran in run_page(page) if ran.problem] == []


@pytest.mark.parametrize("page", ["checkpoints", "ci", "everywhere", "scaling", "vectors"])
def test_what_a_slow_page_shows_is_printed(page: str) -> None:
    """Its other commands, and the page low-precision, are left to `make deep`."""
    ran = run_page(ROOT / "docs" / f"{page}.md", shown=True)
    assert ran
    assert [one.problem for one in ran if one.problem] == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param(command.line, command.not_run, id=f"{page.stem}: {command.line}")
        for page in PAGES
        for command in commands(page)
        if command.not_run
    ],
)
def test_commands_that_are_not_run_say_why(line: str, reason: str) -> None:
    assert len(reason.split()) > 1, line
    pytest.skip(f"not_run ({line}: {reason})")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_command_and_no_marker_is_overlooked(page: Path) -> None:
    for block in console_blocks.blocks(page):
        if block["language"] not in (*SHELL, "python"):
            assert not re.search(r"^(\$ )?(specref|python -m|pytest|make) ", block["text"], re.M)
        for marker in console_blocks.markers(block):
            lines = [command.line for command in commands_of(block)]
            python = block["language"] == "python" and marker.kind == "not run"
            assert (
                python
                or marker.kind == "file"
                or any(one.startswith(marker.start) for one in lines)
            )
        assert len(console_blocks.markers(block)) == block["markers"].count("<!-- ")


TIME = re.compile(r"\b\d+ (s|min)\b|\bminutes\b")


def untold(page: Path) -> list[str]:
    """Starts of commands that a page runs in part, without saying how long the whole takes."""
    return [
        marker.start
        for block in console_blocks.blocks(page)
        for marker in console_blocks.markers(block)
        if marker.kind == "run with"
        and marker.text.endswith(" whole")
        and not any(
            TIME.search(command.comment)
            for command in commands_of(block)
            if command.line.startswith(marker.start)
        )
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_how_long_a_command_takes_is_said_where_it_is_read(page: Path) -> None:
    assert untold(page) == []


def test_a_duration_in_a_comment_alone_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- run with -x (a): 5 seconds whole -->\n```sh\na b   # fast\nc   # 5 s\n```\n"
    )
    assert untold(page) == ["a"]
    page.write_text(page.read_text().replace("# fast", "# fast, 5 s"))
    assert untold(page) == []


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


def code_of(page: Path) -> list[str]:
    inline = re.findall(r"`(specref [^`]+)`", page.read_text())
    return [*(command.line for command in commands(page)), *inline]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_exist(page: Path) -> None:
    shown = re.findall(r"^specref ([\w-]+)", "\n".join(code_of(page)), flags=re.MULTILINE)
    assert set(shown) <= set(main.commands)


def test_the_table_of_algorithms_shows_files_with_steps() -> None:
    table = (ROOT / "README.md").read_text().split("\n## Algorithms\n")[1].split("\n## ")[0]
    shown = set(re.findall(r"\((specref/algorithms/[^)]*\.py)\)", table))
    assert len(shown) == 16
    for file in shown:
        assert re.search(r"^def \w*step\(", (ROOT / file).read_text(), flags=re.MULTILINE), file


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for link, _, anchor in re.findall(r"\]\(([^)#:]*)(#([^)]+))?\)", page.read_text()):
        there = page.parent / link if link else page
        assert there.exists(), link
        assert not anchor or there.suffix != ".md" or anchor in anchors(there), (link, anchor)


def anchors(page: Path) -> set[str]:
    """Names of headings, as the site and forges write them, and of marked places.

    Examples
    --------
    >>> anchors(ROOT / "SECURITY.md")
    {'security'}
    """
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    titles = [
        re.sub(r"\[(.*?)\]\(.*?\)", r"\1", one) for one in re.findall(r"^#+ (.*)", text, re.M)
    ]
    slugs = {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in titles}
    return slugs | set(re.findall(r'id="([^"]+)"', text))


def test_readme_rule_is_lossless() -> None:
    _, rule, *_ = blocks(ROOT / "README.md", "python")
    namespace: dict = {}
    exec(compile(rule, "README", "exec"), namespace)
    report = prove(namespace["my_step"])
    assert report.proved > 50
    assert not report.refuted
    assert not report.raised


def test_tests_of_your_own_fail_for_lossy_rules_and_samplers() -> None:
    """With alpha 1e-9; a drafter without verification is found in each of 20 seeds.

    The sampler that draws from p after a rejection is found without random numbers, and shrunk.
    """
    (page,) = blocks(ROOT / "docs" / "tests.md", "python")
    namespace: dict = {}
    exec(compile(page, "tests.md", "exec"), namespace)
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


def unexplained(page: Path) -> list[str]:
    """Targets MODULE:FUNCTION of a page that are neither installed nor said to be a file.

    A comment above a block, which a reader does not see, says nothing to them.
    """
    text = page.read_text()
    return [
        module
        for block in console_blocks.blocks(page)
        for command in commands_of(block)
        for module in re.findall(r"(?<![\w./'])([a-z_][\w.]*):[a-z_]\w*", command.line)
        if find_spec(module.split(".")[0]) is None
        and not (ROOT / "specref" / f"{module.replace('.', '/')}.py").exists()
        and module != "process"  # a command comes after it
        and f"{module.removesuffix('.py')}.py"
        not in re.sub(r"<!--.*?-->", "", text[: block.start()])
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_say_which_files_are_the_readers(page: Path) -> None:
    assert unexplained(page) == []


def test_a_file_that_is_not_said_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Ask:\n\n```sh\nspecref check engine:verify\nspecref prove specref.x:y\n```\n")
    assert unexplained(page) == ["engine"]
    page.write_text(f"<!-- file: engine.py -->\n{page.read_text()}")
    assert unexplained(page) == ["engine"]
    page.write_text(f"In `engine.py`:\n\n{page.read_text()}")
    assert unexplained(page) == []
