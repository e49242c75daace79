"""The commands that README.md and docs/*.md show: run as a reader would, outputs compared.

Run from the root of a checkout, to write what is printed into the blocks:

    python -m proofs_tests.pages.console_blocks --update [PAGE…]

Lines of `sh` blocks, and lines of `console` blocks after `$ `, are commands; what follows one in a
`console` block is what it prints, with `…` alone on a line for what is left out. A command leaves
with 0, unless a comment behind it says `exit code N`. HTML comments above a block say the rest:

* `<!-- file: samplers.py -->`: the block is this file, for the commands of all pages;
* `<!-- not run: reason -->`: no line of the block is run;
* `<!-- not run (specref zoo): reason -->`: no line that starts like this;
* `<!-- run with --only smoke (specref check): reason -->`: lines that start like this are run with
  these options behind them.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "records").glob("*.md")),
]
BLOCK = re.compile(
    r"(?P<markers>(?:^<!--[^\n]*-->\n+)*)"
    r"^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    flags=re.MULTILINE | re.DOTALL,
)
MARKER = re.compile(
    r"<!-- (?P<kind>file|not run|run with)(?P<options>[^:(]*)"
    r"(?:\((?P<start>[^)]*)\))?: (?P<text>.*?) -->"
)
LEFT_OUT = "…"
COLUMNS = "80"
SHELL = ("sh", "console")
TIMEOUT = 240
# What differs between two runs: times, at the end of a line or as such, versions, and with the
# width of the times, where lines are folded.
CHANGING = (
    (re.compile(r"\b\d+\.\d s\b"), ""),
    (re.compile(r" \d+\.\d$", flags=re.MULTILINE), ""),
    (re.compile(r"specref \d+\.\d+\.\d+\S*:"), "specref:"),
    (re.compile(r"─+"), "─"),
    # As many as there was time for.
    (re.compile(r"by [\d,]+ blocks"), "by blocks"),
)


@dataclass(frozen=True)
class Marker:
    """What a comment above a block says.

    * `kind`: {"file", "not run", "run with"}
    * `options`: Of ``run with``.
    * `start`: How the lines start that it is about; empty for all.
    * `text`: The reason, or the name of the file.
    """

    kind: str
    options: str
    start: str
    text: str


@dataclass(frozen=True)
class Command:
    """A line of a block.

    * `line`: As it is printed, without its comment.
    * `expected`: What it prints; None in a block that does not say.
    * `not_run`: Why it is not run, if so.
    * `more`: Options that it is run with.
    """

    line: str
    comment: str
    expected: tuple[str, ...] | None
    not_run: str
    more: str

    @property
    def exit_code(self) -> int:
        """What it leaves with."""
        told = re.search(r"exit code (\d)", self.comment)
        return int(told[1]) if told else 0


@dataclass(frozen=True)
class Ran:
    """A command that was run: what it left with and printed."""

    command: Command
    exit_code: int
    printed: str
    errors: str

    @cached_property
    def problem(self) -> str:
        """What is not as the page says, or nothing."""
        if self.exit_code != self.command.exit_code:
            return (
                f"{self.command.line}: exit code {self.exit_code}, expected "
                f"{self.command.exit_code}\n{self.printed}{self.errors}"
            )
        if self.command.expected is None or agrees(self.command.expected, self.printed):
            return ""
        return f"{self.command.line} prints\n{self.printed}\nexpected\n" + "\n".join(
            self.command.expected
        )


def blocks(page: Path) -> Iterator[re.Match[str]]:
    """The fenced blocks of a page, with the comments above each."""
    return BLOCK.finditer(page.read_text(encoding="utf-8"))


def markers(block: re.Match[str]) -> list[Marker]:
    """What the comments above a block say."""
    found = MARKER.finditer(block["markers"])
    return [
        Marker(one["kind"], one["options"].strip(), one["start"] or "", one["text"])
        for one in found
    ]


def files() -> dict[str, str]:
    """{name: text} of the files that the pages show."""
    named: dict[str, str] = {}
    for page in PAGES:
        for block in blocks(page):
            for one in markers(block):
                if one.kind == "file":
                    for name in one.text.split(", "):
                        named[name] = named.get(name, "") + block["text"]
    return named


def commands(page: Path) -> list[Command]:
    """Every command of a page, in order."""
    return [
        command
        for block in blocks(page)
        if block["language"] in SHELL
        for command in commands_of(block)
    ]


def commands_of(block: re.Match[str]) -> list[Command]:
    """The commands of a block."""
    said = markers(block)
    text = block["text"].replace("\\\n", " ")
    if block["language"] == "console":
        parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
        shown = [(lines[0], lines[1:]) for lines in map(str.splitlines, parts)]
    else:
        shown = [(line, None) for line in text.splitlines() if line.split("#")[0].strip()]
    return [_command(line, printed, said) for line, printed in shown]


def _command(line: str, printed: Sequence[str] | None, said: list[Marker]) -> Command:
    code, _, comment = line.partition(" # ")
    code = re.sub(r"  +", " ", code).strip()
    about = [one for one in said if code.startswith(one.start)]
    return Command(
        code,
        comment,
        None if printed is None else tuple(printed),
        next((one.text for one in about if one.kind == "not run"), ""),
        " ".join(one.options for one in about if one.kind == "run with"),
    )


def run_page(page: Path, shown: bool = False) -> list[Ran]:
    """The commands of a page, run one after the other in a folder with the files of all pages.

    * `shown`: Only those whose output the page shows.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files().items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return [
            run(one, folder)
            for one in commands(page)
            if not one.not_run and (one.expected is not None or not shown)
        ]


def run(command: Command, folder: str) -> Ran:
    """One command, in 80 columns."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": COLUMNS, "PYTHONPATH": str(ROOT)}
    environment.pop("FORCE_COLOR", None)
    done = subprocess.run(
        ["bash", "-c", f"{command.line} {command.more}"],
        capture_output=True,
        cwd=folder,
        env=environment,
        text=True,
        timeout=TIMEOUT,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return Ran(command, done.returncode, done.stdout.replace(folder, "."), done.stderr)


def words(text: str) -> list[str]:
    """The words of an output, without what differs between two runs."""
    for pattern, usual in CHANGING:
        text = pattern.sub(usual, text)
    return text.split()


def agrees(expected: Sequence[str], printed: str) -> bool:
    """Whether a page shows what was printed, but for what it leaves out.

    >>> agrees(["one", "…", "3.1 s"], "one\\ntwo\\n4.5 s\\n"), agrees(["one"], "one\\ntwo\\n")
    (True, False)
    >>> agrees(["…", "two", "…"], "one\\ntwo\\nthree\\n"), agrees(["…", "four", "…"], "one\\n")
    (True, False)
    """
    found, pieces = words(printed), [[]]
    for word in words("\n".join(expected)):
        if word == LEFT_OUT:
            pieces.append([])
        else:
            pieces[-1].append(word)
    if len(pieces) == 1:
        return found == pieces[0]
    first, *middle, last = pieces
    place = len(first)
    if found[:place] != first:
        return False
    for piece in middle:
        starts = range(place, len(found) - len(piece) + 1)
        start = next((i for i in starts if found[i : i + len(piece)] == piece), None)
        if start is None:
            return False
        place = start + len(piece)
    return len(found) - len(last) >= place and found[len(found) - len(last) :] == last


def shown(command: Command, printed: str) -> list[str]:
    """What a page is to show of an output: as many lines at either end as it did.

    What is left out in several places stays as it is.
    """
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    expected = list(command.expected or ())
    if LEFT_OUT not in expected:
        return lines
    if expected.count(LEFT_OUT) > 1:
        return expected
    cut = expected.index(LEFT_OUT)
    after = len(expected) - cut - 1
    return [*lines[:cut], LEFT_OUT, *(lines[-after:] if after else ())]


def update(page: Path) -> bool:
    """Write what the commands of a page print into its `console` blocks; gives if it changed."""
    outputs: Mapping[Command, Ran] = {ran.command: ran for ran in run_page(page)}

    def rewritten(block: re.Match[str]) -> str:
        whole = block[0]
        if block["language"] != "console":
            return whole
        lines: list[str] = []
        parts = re.split(r"^\$ ", block["text"], flags=re.MULTILINE)[1:]
        for command, part in zip(commands_of(block), parts, strict=True):
            first, *printed = part.splitlines()
            ran = outputs.get(command)
            lines += [f"$ {first}", *(shown(command, ran.printed) if ran else printed)]
        return whole.replace(block["text"], "\n".join(lines) + "\n")

    before = page.read_text(encoding="utf-8")
    after = BLOCK.sub(rewritten, before)
    page.write_text(after, encoding="utf-8")
    for ran in outputs.values():
        if ran.exit_code != ran.command.exit_code:
            print(ran.problem, file=sys.stderr)
    return before != after


def main() -> None:
    """Update pages, or say what is not as they show it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("pages", nargs="*", type=Path)
    given = parser.parse_args()
    wrong = False
    for page in [page.resolve() for page in given.pages] or PAGES:
        if given.update:
            print(f"{page.name}: {'updated' if update(page) else 'as it was'}")
            continue
        for ran in run_page(page):
            wrong |= bool(ran.problem)
            print(ran.problem or f"{page.name}: {ran.command.line}")
        for one in commands(page):
            if one.not_run:
                print(f"{page.name}: {one.line}: not_run ({one.not_run})")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
