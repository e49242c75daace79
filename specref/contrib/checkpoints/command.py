"""``specref build-model``: small checkpoints whose next-token law is prescribed.

Its reports say which checkpoints were written, and how far engines are from their laws.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import NoReturn

import click
import numpy as np
from rich.console import Group, RenderableType

from specref.adapters.needs import NotInstalledError
from specref.cli.group import HOLDS, MISUSED, VIOLATED, leave, progress, show
from specref.cli.options import json_option, seed_option
from specref.contracts.timeout import described
from specref.contrib.checkpoints import ARCHITECTURES, NAMED, WRITERS, Law, build, compare
from specref.contrib.checkpoints.fidelity import TOLERANCE, Fidelity
from specref.contrib.checkpoints.law import load_laws, named_pair
from specref.contrib.engines.checkpoints import READERS
from specref.report.forms import (
    IDS,
    TEXT,
    Reports,
    form_of,
    listed,
    one_of,
    record,
    said,
    table,
)
from specref.report.layout import Column, Prose, Table
from specref.report.machine import as_json, check_folder, write_json


@dataclass(frozen=True)
class Verified:
    """One engine on one checkpoint.

    Attributes
    ----------
    checkpoint : str
        Target, draft model, or the folder of one alone.
    format, engine : str
    fidelity : Fidelity or None
        None if the engine was not run.
    reason : str
        Why it was not.
    """

    checkpoint: str
    format: str
    engine: str
    fidelity: Fidelity | None
    reason: str = ""

    @property
    def status(self) -> str:
        """``passed``, ``failed``, or ``not_run``."""
        if self.fidelity is None:
            return "not_run"
        return "passed" if self.fidelity.faithful else "failed"


def verified_report(rows: Sequence[Verified]) -> RenderableType:
    """A table of the engines, where a law is missed, and why engines were not run."""
    columns = [
        *(Column(name) for name in ("checkpoint", "engine")),
        *(Column(name, right=True) for name in ("contexts", "error", "impossible")),
        Column("status"),
    ]
    legend = (
        "error: the largest |computed - prescribed| probability of a token; impossible: the "
        "largest mass on tokens whose probability is 0."
    )
    reasons = {row.engine: row.reason for row in rows if row.fidelity is None}
    return Group(
        Table(columns, [_cells(row) for row in rows], keys=2),
        Prose(legend),
        *(Prose(f"{row.checkpoint}: {_missed(row)}") for row in rows if row.status == "failed"),
        *(Prose(f"{engine}: {reason}") for engine, reason in reasons.items()),
    )


def _cells(row: Verified) -> list[str]:
    if row.fidelity is None:
        return [row.checkpoint, row.engine, "", "", "", row.status]
    found = row.fidelity
    numbers = f"{found.contexts:,}", f"{found.largest:.0e}", f"{found.impossible:.0e}"
    return [row.checkpoint, row.engine, *numbers, row.status]


def _missed(row: Verified) -> str:
    found = row.fidelity
    assert found is not None
    return (
        f"{row.engine} is off by {found.largest:.2g} at token {found.token} after "
        f"{_ending(found.context)}; at most {TOLERANCE:g} is allowed"
    )


def _ending(context: Sequence[int]) -> str:
    ids = " ".join(map(str, context[-6:]))
    return f"(… {ids})" if len(context) > 6 else f"({ids})"


REPORTS: Reports = {
    "build-model": (
        "specref build-model --law LAW --out FOLDER",
        record(
            folders=said("{name of a law: its folder}.", table(TEXT)),
            formats=IDS,
            architecture=TEXT,
            verified=said(
                "With --verify, each engine on each checkpoint.",
                listed(
                    record(
                        **form_of(Verified)["properties"],
                        status=one_of("passed", "failed", "not_run"),
                    )
                ),
            ),
        ),
    ),
}


@click.command("build-model")
@click.option(
    "--law", "source", required=True, metavar="FILE|NAME", help=f"{', '.join(NAMED)}; or a file."
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    default=("hf",),
    show_default=True,
    help=f"{' or '.join(WRITERS)}; may be repeated.",
)
@click.option(
    "--architecture",
    default="llama",
    show_default=True,
    help=f"{' or '.join(ARCHITECTURES)}; formats but hf are for llama alone.",
)
@click.option("--out", required=True, metavar="DIR", help="A folder that does not exist.")
@click.option("--verify", is_flag=True, help="Load it in the engines that are installed.")
@seed_option
@json_option
def build_model_command(
    source: str,
    formats: tuple[str, ...],
    architecture: str,
    out: str,
    verify: bool,
    seed: int,
    json_file: str | None,
) -> NoReturn:
    """Write small checkpoints with known probabilities, for any engine.

    The law of the next token is a JSON file, or one of those that are built in; a file may hold
    two, of a target and a drafter, for folders of these names. A folder has law.json, and a Llama
    or GPT-2 for Transformers (mlx-lm reads the Llama, too), model.gguf for llama.cpp, model.onnx
    for onnxruntime-genai or openvino_model.xml for OpenVINO GenAI, in float32.

    With --verify, engines compute the probabilities of a text of 200 tokens that asks for every
    row of the law. It takes 1 to 10 seconds an engine. Exit code 1 if a probability is off by
    more than 1e-6, 2 if no engine that is installed reads a format.

    \b
    Examples:
      specref build-model --law lookback --out pair --verify
      specref build-model --law law.json --format gguf --format onnx --out pair
    """
    laws = load_laws(source) if Path(source).is_file() else named_pair(source)
    check_folder(str(Path(out).absolute().parent))
    formats = tuple(dict.fromkeys(formats))
    folders = build(laws, out, formats, architecture)
    told: list[RenderableType] = [
        Prose(f"{folder}: {architecture}, {_described(laws[key])}; {', '.join(formats)}")
        for key, folder in folders.items()
    ]
    rows = verified(laws, folders, formats, architecture, seed) if verify else []
    show(Group(*told, *([verified_report(rows)] if verify else [])), json_file)
    if json_file:
        record = {
            "folders": {key: str(folder) for key, folder in folders.items()},
            "formats": formats,
            "architecture": architecture,
            "verified": [{**vars(row), "status": row.status} for row in rows],
        }
        write_json(json_file, as_json(record))
    if any(row.status == "failed" for row in rows):
        leave(VIOLATED)
    passed = {(row.checkpoint, row.format) for row in rows if row.status == "passed"}
    wanted = {(key or folder.name, one) for key, folder in folders.items() for one in formats}
    leave(MISUSED if verify and passed != wanted else HOLDS)


def verified(
    laws: dict[str, Law],
    folders: dict[str, Path],
    formats: tuple[str, ...],
    architecture: str,
    seed: int,
) -> list[Verified]:
    """Every engine on every checkpoint that it can read."""
    asked = [
        (key, name)
        for key in folders
        for name, reader in READERS.items()
        if reader.format in formats and architecture in reader.architectures
    ]
    rows = []
    with progress(len(asked), "engines") as advance:
        for key, name in asked:
            reader, found, reason, version = READERS[name], None, "", ""
            try:
                probabilities = reader.load(folders[key])
                version = installed_version(reader.package)
                found = compare(laws[key], probabilities, np.random.default_rng(seed))
            except NotInstalledError as error:
                reason = str(error)
            except Exception as error:  # an engine may raise anything
                reason = f"raised {described(error)}"
            engine = f"{name} {version}".strip()
            rows.append(Verified(key or folders[key].name, reader.format, engine, found, reason))
            advance(1, name)
    return rows


def _described(law: Law) -> str:
    end = law.vocabulary.eos
    ending = "no EOS" if end is None else f"EOS {end!s}"
    return f"{len(law.vocabulary)} tokens, {ending}, back {law.back}"
