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

Engines that were installed from PyPI, and clones (`github-…`,
[how](../check-an-engine-sampler.md#small-packages-and-clones)), tested with their adapters
(`specref list names`). There is a row for each way in which an engine speculates. Written from
[scoreboard.json](scoreboard.json) by the command that does it all again:

<!-- not run: it installs engines, one after the other; minutes to an hour -->
```sh
make engines                                               # what is not yet on the record
python -m proofs_tests.benchmarks.engines --only mlx-lm --again
python -m proofs_tests.benchmarks.engines --again          # all; after an interruption it goes on
python -m proofs_tests.benchmarks.engines --join other.json   # the rows of another record
```

`passed` says: nothing was found, where a difference as large as the power would have been, 999
times in 1,000. `LOSSY, known` is lossy for a reason that [trophies.md](trophies.md) has: the link.
`inconclusive`, `not_exercised` and `not_run` say nothing of the engine. Of other settings, models
and devices than the adapter's nothing is said.

{table}

{summary}.

Power is of the check that compares whole texts where there is one; `exact distribution`, in
earlier rows `exact law`, is the total variation of the completed block from the target's, with
all randomness intercepted. MB is what the installation added to the packages that were there
(`shared`: nothing, the package was among them); later rows of a package have that of its first.
With `--share` all engines see torch and Transformers of one environment. Rows that one command
judged, also where it was interrupted and went on, are of one run. A run without a verdict does
not replace one on the same version:

{runs}

| path | evidence | command | date |
|---|---|---|---|
{evidence}
{others}"""


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
                f"`{row.path}`", row.contract, _linked(row, sections), row.power,
                _minutes(row) if row.seconds else "",
            )
            for row in rows
        ),
    ]  # fmt: skip
    told = [
        _line(f"`{row.path}`", row.evidence, f"`{row.command}`" if row.command else "", row.date)
        for row in rows
    ]
    return PAGE.format(
        table="\n".join(lines), summary=summary(rows), runs="\n".join(_runs(rows)),
        evidence="\n".join(told), others="\n".join([*_stronger(stronger), *_undecided(undecided)]),
    )  # fmt: skip


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
                row.package, f"`{row.path}`", row.verdict, row.power, _minutes(row),
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
            _line(f"`{row.path}`", row.verdict, row.evidence, _minutes(row), row.run)
            for row in rows
        ),
        "",
    ]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '¦') for cell in cells)} |"
