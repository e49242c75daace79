"""The page of SLRS: measured into JSON, rendered from it with its figures.

Run: python -m gpu_tests.benchmarks.slrs_page --output docs/slrs.json --markdown docs/slrs.md
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import click
from transformers.utils import logging

from gpu_tests.benchmarks.slrs_plots import plot_bounds, plot_growth, plot_temperature
from gpu_tests.benchmarks.slrs_record import MODULES, defaults, read_record, write_record
from gpu_tests.benchmarks.slrs_sections import blocks, bounds, growth, temperature
from gpu_tests.benchmarks.slrs_verdict import verdict
from specref.contracts.torch_state import one_thread
from specref.report.machine import check_destination, write_json

Record: TypeAlias = Mapping[str, dict[str, Any]]
PAGE = """\
# SLRS: when text is worth its psi

Generated from [slrs.json](slrs.json) by

<!-- not run: gpu_tests/test_slrs_page.py runs it -->
```sh
python -m gpu_tests.benchmarks.slrs_page --from-json docs/slrs.json --markdown docs/slrs.md
```

which with `--output docs/slrs.json` measures first. {machine}

String-level rejection sampling (Timor et al. 2025, Algorithm 3) is for drafters with any
vocabulary. The drafter writes text; the target reads it, here by longest match; its first token
t is the draft. psi(t) is the probability that t is the first token that the target reads in a
drafted text, however the drafter spells it. t is accepted with probability min(1, p(t) / psi(t)),
else replaced by a draw from norm((p - psi)+); so a draft is accepted with probability
sum min(p, psi), and what comes out
[has the target's law](losslessness.md). The difficulty is psi: a sum over all sequences of drafter
tokens, *paths*, that write such a text.

## Growth: how many ways there are to spell a token

{growth}

## Bounds: what need not be computed

{bounds}

## Temperature: acceptance of one draft

{temperature}

## Block verification across vocabularies

{blocks}

## When to use which

{verdict}
"""


def render(record: Record) -> str:
    """Write the page, without its last line's end."""
    return PAGE.format(
        machine=_machines(record),
        growth=growth(record["growth"]),
        bounds=bounds(record),
        temperature=temperature(record["temperature"]),
        blocks=blocks(record["blocks"]),
        verdict=verdict(record),
    ).rstrip("\n")


def _machines(record: Record) -> str:
    found = [record[part]["machine"] for part in MODULES]
    dates = sorted({machine["date"] for machine in found})
    versions = {(machine["torch"], machine["transformers"]) for machine in found}
    named = " and ".join(f"torch {torch}, Transformers {other}" for torch, other in versions)
    return f"Measured {' to '.join(dict.fromkeys([dates[0], dates[-1]]))} on a CPU, with {named}."


def draw(record: Record, folder: Path) -> None:
    """Write the figures."""
    rows = {part: record[part]["rows"] for part in MODULES}
    plot_growth(rows["growth"], folder / "slrs_growth.png")
    plot_bounds(rows["bounds"], rows["generation"], folder / "slrs_bounds.png")
    plot_temperature(rows["temperature"], folder / "slrs_temperature.png")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--output", type=click.Path(path_type=Path), help="JSON file to write.")
@click.option("--from-json", type=click.Path(exists=True, path_type=Path), help="Only render it.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Page; figures go beside it.")
@click.option("--part", "parts", multiple=True, default=MODULES, type=click.Choice([*MODULES]))
@click.option("--from", "downloads", multiple=True, help="Where vocabularies were downloaded.")
def main(
    output: Path | None,
    from_json: Path | None,
    markdown: Path | None,
    parts: Sequence[str],
    downloads: Sequence[str],
) -> None:
    """Measure; what is not measured now stays as it is in the output file."""
    source = output or from_json
    if source is None or (output and from_json):
        raise click.UsageError("expected one of --output and --from-json")
    if output:
        check_destination(str(output))
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        sizes = defaults()
        sizes["growth"] = replace(sizes["growth"], downloads=tuple(downloads))
        with one_thread():
            write_record(output, parts, sizes)
    if markdown:
        record = read_record(source)
        write_json(str(markdown), render(record))
        draw(record, markdown.parent)


if __name__ == "__main__":
    main()
