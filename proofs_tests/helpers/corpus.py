"""Samplers with one changed line: what a report names of each, and the record of it.

The corpus was written by somebody who did not know the kit, and is frozen: `corpus.json` has four
samplers, and lines that replace one of theirs. Reports were then improved on it, so the record
shows what they name of these samplers, and no rate for others.

    python -m proofs_tests.helpers.corpus    writes docs/records/corpus.json (on a core, an hour)
"""

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import specref
from specref.conformance.options import Profile
from specref.conformance.report import Report
from specref.conformance.summary import shown_first

HERE = Path(__file__).resolve()
RECORD = HERE.parents[2] / "docs" / "records" / "corpus.json"
BELOW = "answer is invalid when this random number is below"
SIBLINGS = r"accept\[1\]|only where (a node has siblings|siblings come without draft_probs)"
"""The acceptance of a second sibling, or the situation."""
SITUATIONS: Mapping[str, str] = {
    "a draft has token id 0": r"accept\S+ keeps draft 0 with 0\.0000",
    "the last draft of a row is refused": r"residual\[1\]",
    "draft_probs is None": r"only where draft_probs is None|siblings come without draft_probs",
    "a row has fewer drafts than K": r"only .*in rows with fewer drafts than others",
    "a draft was refused": r"answer is invalid when this random number reaches",
    "several rows in a batch": r"only (in rows after the first of a call|beside other rows)",
    "all drafts of a row were accepted, or it has none": BELOW,
    "a temperature below 1": r"only at temperatures below 1 \(",
    "requests with different temperatures": r"only after rows with another temperature",
    "requests after the first": r"only in rows after the first of a call",
    "a request without drafts at a temperature other than 1": (
        r"only in rows without drafts, at a temperature other than 1"
    ),
    "the accepted path is not the first branch": r"accept\[1\]\[0\]|below siblings",
    "rows of a batch with different trees": r"only in rows with another tree than the first",
    "siblings drawn from a draft law": r"only where a node has siblings",
    "a second sibling": SIBLINGS,
    "a second sibling, mostly where draft_probs is None": SIBLINGS,
    "a second sibling where draft_probs is None, or where p > 2 q for some token": SIBLINGS,
    "two siblings refused": r"after 2 siblings were rejected",
    "all nodes of a chain accepted": BELOW,
}
"""{the situation in which a mutant is wrong: what a report has to say}."""


@dataclass(frozen=True)
class Mutant:
    """One sampler with a changed line; see `corpus.json`."""

    name: str
    base: str
    function: str
    contract: str
    line: int
    becomes: str
    decision: str
    what: str

    @property
    def source(self) -> list[str]:
        lines = list(read()["bases"][self.base])
        lines[self.line - 1] = self.becomes
        return lines


@cache
def read() -> dict[str, Any]:
    """The frozen file."""
    found: dict[str, Any] = json.loads(HERE.with_name("corpus.json").read_text())
    return found


def mutants() -> tuple[Mutant, ...]:
    """All of them."""
    return tuple(Mutant(**one) for one in read()["mutants"])


def loaded(source: list[str], name: str, function: str, folder: Path) -> Callable[..., Any]:
    """A function of a file that is written to a folder."""
    path = folder / f"{name}.py"
    path.write_text("\n".join(source) + "\n")
    spec = spec_from_file_location(f"corpus_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    verify: Callable[..., Any] = getattr(module, function)
    return verify


def checked(one: Mutant, folder: Path, profile: Profile) -> Report:
    """The report on a mutant."""
    verify = loaded(one.source, one.name, one.function, folder)
    with chdir(folder):
        return specref.check(verify, contract=one.contract, profile=profile, name=one.name)


def row(one: Mutant, report: Report, profile: str) -> dict[str, Any]:
    """What a report says of a mutant, and whether that is right."""
    shown = shown_first(report)
    evidence: Mapping[str, Any] = {} if shown is None else shown.evidence
    decision, split = evidence.get("decision"), evidence.get("split", {}).get("text", "")
    lines = [] if decision is None else [number(decision[key]) for key in ("compared", "number")]
    text = "" if decision is None else decision["text"]
    return {
        "name": one.name,
        "contract": one.contract,
        "decision": one.decision,
        "found": report.exit_code == 1,
        "profile": profile,
        "check": "" if shown is None else shown.id,
        "said": text,
        "split": split,
        "right": is_right(one, text, split, lines),
        "changed_line_named": one.line in lines,
    }


def number(place: str) -> int:
    """The line of "file:line"; 0 without one."""
    return int(place.rpartition(":")[2] or 0)


def is_right(one: Mutant, text: str, split: str, lines: list[int]) -> bool:
    """Whether the wrong decision is named, with a line that draws a number, or the situation."""
    situation = one.decision.removeprefix("situation: ")
    if situation != one.decision:
        return bool(re.search(SITUATIONS[situation], f"{text}\n{split}"))
    named = f": {one.decision}" in text
    return named and any("rng." in one.source[line - 1] for line in lines if line)


def table() -> Iterator[dict[str, Any]]:
    """A row for each mutant: smoke first, and all checks where it finds nothing."""
    with tempfile.TemporaryDirectory() as folder:
        for one in mutants():
            for profile in ("smoke", "quick"):
                report = checked(one, Path(folder), profile)
                if report.exit_code == 1:
                    break
            yield row(one, report, profile)
            print(json.dumps(one.name), file=sys.stderr)


def counts(rows: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Of each base: how many there are, were found, are named rightly, and at the changed line."""
    bases = Counter(one.base for one in mutants())
    return {
        base: {
            "mutants": number_of,
            **{
                key: sum(one[key] for one in rows if one["name"].startswith(f"{base}_"))
                for key in ("found", "right", "changed_line_named")
            },
        }
        for base, number_of in bases.items()
    }


if __name__ == "__main__":
    ROWS = list(table())
    COMMAND = "python -m proofs_tests.helpers.corpus"
    found = {"command": COMMAND, "counts": counts(ROWS), "mutants": ROWS}
    RECORD.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
