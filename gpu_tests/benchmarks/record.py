"""The recorded benchmarks: measured into JSON, and the page that is rendered from it.

Run: python -m gpu_tests.benchmarks.record --output docs/records/benchmarks.json
     --markdown docs/records/benchmarks.md
"""

import datetime
import json
import os
import platform
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import click
import torch
import transformers
from rich.progress import track

from fixtures.model_pairs.storing import read_card
from gpu_tests.benchmarks import cases, generation, lines, verification
from gpu_tests.benchmarks.page import render
from specref.contracts.process_state import one_thread
from specref.contrib.engines.calling_generate import errors_only
from specref.report.machine import check_destination, write_json

MODULES: Mapping[str, Any] = {"verification": verification, "generation": generation}
SIZES: Mapping[str, Mapping[str, Any]] = {"verification": cases.SIZES, "generation": lines.SIZES}
DEVICES = ("cpu", "cuda")
NO_CUDA, NOT_ASKED = "not_run (no CUDA)", "not_run (not asked for)"
Part: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str]


def measure(part: str, device: str, sizes: Any, seed: int) -> Part:
    """One part of the record, measured on this machine."""
    module, load = MODULES[part], [os.getloadavg()[0]]
    steps = module.steps(device, sizes, seed)
    rows = module.rows(list(track(steps, f"{part}, {device}", sizes.steps)))
    machine = this_machine(device) | {"load_average": [*load, os.getloadavg()[0]]}
    return {"part": part, "device": device, "seed": seed, "machine": machine, "rows": rows}


def unmeasured(part: str, device: str, sizes: Any) -> Part:
    """The rows of a part that is not measured, with the reason."""
    possible = device == "cpu" or torch.cuda.is_available()
    status = {"status": NOT_ASKED if possible else NO_CUDA}
    rows = [asdict(line) | status for line in sizes.lines]
    return {"part": part, "device": device, "seed": None, "machine": None, "rows": rows}


def this_machine(device: str) -> dict[str, Any]:
    """What figures depend on."""
    cuda = torch.cuda.get_device_name() if device == "cuda" else None
    target = read_card()["models"]["target"]
    return {
        "device": cuda or processor(),
        "threads": torch.get_num_threads(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "target_steps": target["recipe"]["steps"],
        "target_sha256": target["sha256"]["model.safetensors"],
    }


def processor() -> str:
    """The name of the processor, as far as the system tells it."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} ({len(names)} cores)" if names else platform.machine()


def read_measured(file: Path) -> dict[Key, Part]:
    """The measured parts of a record, none if there is no file."""
    parts = json.loads(file.read_text())["parts"] if file.exists() else []
    return {(part["part"], part["device"]): part for part in parts if part["machine"]}


def write_record(file: Path, wanted: Collection[Key], seed: int) -> None:
    """Measure what is wanted and possible; the rest stays as it was. Written part by part."""
    keys = list(product(MODULES, DEVICES))
    parts = {key: unmeasured(*key, SIZES[key[0]][key[1]]) for key in keys}
    parts |= read_measured(file)
    for part, device in keys:
        possible = device == "cpu" or torch.cuda.is_available()
        if possible and (part, device) in wanted:
            sizes = SIZES[part][device]
            parts[part, device] = measure(part, device, sizes, seed)
        write_json(str(file), as_text(parts.values()))


def as_text(parts: Iterable[Part]) -> str:
    """JSON with each row on a line.

    Examples
    --------
    >>> print(as_text([{"seed": 1, "rows": [{"a": 1}, {"a": 2}]}]))
    {"parts": [
    {"seed": 1, "rows": [
    {"a": 1},
    {"a": 2}
    ]}
    ]}
    """
    texts = []
    for part in parts:
        head = json.dumps({name: value for name, value in part.items() if name != "rows"})
        rows = ",\n".join(map(json.dumps, part["rows"]))
        texts.append(f'{head[:-1]}, "rows": [\n{rows}\n]}}')
    return '{"parts": [\n' + ",\n".join(texts) + "\n]}"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--output", type=click.Path(path_type=Path), help="JSON file to write.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Page to write.")
@click.option("--from-json", type=click.Path(exists=True, path_type=Path), help="Only render it.")
@click.option("--part", "parts", multiple=True, default=MODULES, type=click.Choice([*MODULES]))
@click.option("--device", "devices", multiple=True, default=DEVICES, type=click.Choice(DEVICES))
@click.option("--seed", default=1, show_default=True)
def main(
    output: Path | None,
    markdown: Path | None,
    from_json: Path | None,
    parts: tuple[str, ...],
    devices: tuple[str, ...],
    seed: int,
) -> None:
    """Measure; what is not measured now stays as it is in the output file."""
    source = output or from_json
    if source is None or (output and from_json):
        raise click.UsageError("expected one of --output and --from-json")
    if output:
        check_destination(str(output))
        if set(devices) == {"cuda"} and not torch.cuda.is_available():
            click.echo(NO_CUDA, err=True)
            sys.exit(2)
        with errors_only(), one_thread():
            write_record(output, set(product(parts, devices)), seed)
    if markdown:
        record = json.loads(source.read_text())
        if not isinstance(record, dict) or "parts" not in record:
            raise click.UsageError(f"{source} is no record of this command")
        write_json(str(markdown), render(record))


if __name__ == "__main__":
    main()
