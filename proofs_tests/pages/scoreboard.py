"""The scoreboard as a page, docs/records/scoreboard.md, which `benchmarks/engines.py` writes."""

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from specref.contrib.engines.board_report import FOUND, PASSED, Row, summary

BEFORE = "several, with `--share`, put together by hand"
DISTANCE = re.compile(r"TV ≥ ([\d.e-]+)")
PAGE = """\
# Scoreboard

specref installed these engines from PyPI, and clones (`github-…`,
[how](../check-an-engine-sampler.md#small-packages-and-clones)), and tested them with their
adapters (`specref list names`). There is a row for each way in which an engine speculates.

`passed`: no check failed; a difference as large as the power would be detected with probability
0.999. `LOSSY, known`: lossy, for the reason at the link. `inconclusive`, `not_exercised` and
`not_run` are no verdict on the engine. `wrong log-probabilities`: those that a server reports
([what was found](trophies.md#servers-of-llamacpp-and-mlx-lm-log-probabilities)); its evidence says
what came of its texts. Other settings, models and devices than the adapter's were
not tested.

{table}

{summary}.

Power is of the check that compares whole texts where there is one. `exact distribution` is the
total variation of the completed block from the target's, with all randomness intercepted. MB is
what the installation added to the packages that were there (`shared`: nothing); later rows of a
package have that of its first. With `--share` all engines see torch and Transformers of one
environment. Rows that one command judged, also where it was interrupted and went on, are of one
run. A run without a verdict does not replace one on the same version:

{runs}

| path | evidence | command | date |
|---|---|---|---|
{evidence}
{others}
*Written by `make engines`, or `python -m proofs_tests.benchmarks.engines` with `--only mlx-lm
--again`, `--again` (all; after an interruption it goes on) or `--join other.json`, from
[scoreboard.json](scoreboard.json). Rows that were recorded in other words are told in today's.*"""
TODAY: Mapping[str, str] = MappingProxyType(
    {
        "exact law": "exact distribution",
        "no law is judged": "no distribution is judged",
        "plain mode": "non-speculative decoding",
        "would have been found": "would be detected",
        "The drafter's": "The draft model's",
    }
)
"""{words of the record: words of the page}."""


def stronger_than(row: Row, before: Sequence[Row]) -> tuple[Row, ...]:
    """Of earlier rows that passed, as this one did, of the same version: those with more power.

    >>> from dataclasses import replace
    >>> row = Row("a", "a", "text", "passed", "", package="a 1", power="TV ≥ 0.1 to 0.4, by check")
    >>> powers = "TV ≥ 0.3", "TV ≥ 0.4; exact law within 1e-08", "", "TV ≥ 0.04"
    >>> before = [replace(row, power=power) for power in powers]
    >>> [one.power for one in stronger_than(row, [*before, replace(before[0], package="a 0")])]
    ['TV ≥ 0.04']
    """
    same = [one for one in before if (one.path, one.package) == (row.path, row.package)]
    same = [one for one in same if one.verdict == row.verdict == PASSED]
    stronger = [one for one in same if _distance(one) < _distance(row)]
    return tuple(sorted(stronger, key=_distance, reverse=True))


def _distance(row: Row) -> float:
    """What the check with the most power would have found: later rows have more checks."""
    found = DISTANCE.search(row.power)
    return float(found.group(1)) if found else math.inf


def board_page(
    rows: Sequence[Row],
    stronger: Sequence[Row] = (),
    undecided: Sequence[Row] = (),
    sections: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The page of a record, as Markdown.

    * `stronger`: Earlier rows with more power.
    * `undecided`: What came of later runs that gave no verdict.
    * `sections`: {path: the anchor of what trophies.md says of it}.
    """
    lines = [
        "| engine, version | MB | path | contract | verdict | power | minutes |",
        "|---|---|---|---|---|---|---|",
        *(
            _line(
                row.package or row.engine, _size(row),
                f"`{row.path}`", row.contract, _linked(row, sections), today(row.power),
                _minutes(row) if row.seconds else "",
            )
            for row in rows
        ),
    ]  # fmt: skip
    told = [
        _line(
            f"`{row.path}`",
            today(row.evidence),
            f"`{row.command}`" if row.command else "",
            row.date,
        )
        for row in rows
    ]
    return PAGE.format(
        table="\n".join(lines), summary=summary(rows), runs="\n".join(_runs(rows)),
        evidence="\n".join(told), others="\n".join([*_stronger(stronger), *_undecided(undecided)]),
    )  # fmt: skip


def today(told: str) -> str:
    """What a row of the record says, in the words of today.

    >>> today("TV ≥ 0.05; exact law within 4e-08")
    'TV ≥ 0.05; exact distribution within 4e-08'
    """
    for old, new in TODAY.items():
        told = told.replace(old, new)
    return told


def _linked(row: Row, sections: Mapping[str, str]) -> str:
    """The verdict, with a link to what was found."""
    if row.verdict not in FOUND or row.path not in sections:
        return row.verdict
    return f"[{row.verdict}](trophies.md#{sections[row.path]})"


def _size(row: Row) -> str:
    """The megabytes that pip added, if it did."""
    if not row.package or "/" in row.package:
        return ""
    return f"{row.megabytes}" if row.megabytes else "shared"


def _minutes(row: Row) -> str:
    return f"{row.seconds / 60:.1f}" if row.seconds >= 3 else "<0.1"


def _runs(rows: Sequence[Row]) -> list[str]:
    """The runs that rows come from."""
    counts: dict[str, list[Row]] = {}
    for row in rows:
        counts.setdefault(row.run, []).append(row)
    return [
        "| run | paths | minutes of judging |",
        "|---|---|---|",
        *(
            _line(run or BEFORE, f"{len(found)}", f"{sum(one.seconds for one in found) / 60:.0f}")
            for run, found in sorted(counts.items())
        ),
    ]


def _stronger(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    return [
        "\nThe same versions, judged before with more power:\n",
        "| engine, version | path | verdict | power | minutes | run |",
        "|---|---|---|---|---|---|",
        *(
            _line(
                row.package, f"`{row.path}`", row.verdict, today(row.power), _minutes(row),
                row.run or f"{BEFORE}, {row.date}",
            )
            for row in rows
        ),
        "",
    ]  # fmt: skip


def _undecided(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    return [
        "\nLater runs that gave no verdict on the version above:\n",
        "| path | verdict | evidence | minutes | run |",
        "|---|---|---|---|---|",
        *(
            _line(f"`{row.path}`", row.verdict, today(row.evidence), _minutes(row), row.run)
            for row in rows
        ),
        "",
    ]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '¦') for cell in cells)} |"
