"""Writing the files, all or nothing, and checking that they are what would be written."""

import json
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from specref.contrib.vectors.building import PUBLISHED, RETIRED, build_file, disagreement
from specref.contrib.vectors.flags import NOTES
from specref.report.forms import TEXT, Schema, listed, record, ref, table
from specref.vectors.reading import (
    FOLDER,
    IDS,
    POLICIES,
    SCHEMA_VERSION,
    Record,
    fingerprint,
    read_published,
)

ID = r"^[a-z]+/[a-z]+(-[a-z]+)*/[0-9]{3}$"
BOTH = (listed(ref("exact_law")), listed(ref("float_law")))
OUTCOME: dict[str, Schema] = {
    "accepted": ref("whole"),
    "count": ref("whole"),
    "last": {"enum": ["residual", "bonus"]},
    "law": ref("exact_law"),
    "tokens": record(inverse=ref("block"), descending=ref("block"), race=ref("block")),
}
HEAD: dict[str, Schema] = {
    "id": {"type": "string", "pattern": ID},
    "comment": TEXT,
    "cites": listed(TEXT),
    "flags": listed({"enum": list(NOTES)}),
}
DEFINITIONS: dict[str, Schema] = {
    "whole": {"type": "integer", "minimum": 0},
    "rational": {"type": "string", "pattern": "^(0|[1-9][0-9]*)/[1-9][0-9]*$"},
    "double": {"type": "number", "minimum": 0},
    "uniform": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    "block": listed(ref("whole")),
    "exact_law": listed(ref("rational")),
    "float_law": listed(ref("double")),
    "laws": record(exact=BOTH[0], float64=BOTH[1]),
    "model": record(
        tokens=listed(TEXT),
        eos={"type": ["string", "null"]},
        order={"enum": [0, 1]},
        exact=table(ref("exact_law"), "^[0-9]*$"),
        float64=table(ref("float_law"), "^[0-9]*$"),
    ),
    "draw": record(site=TEXT, law=ref("exact_law"), choice=ref("whole"), u=ref("uniform")),
    "accept": record(
        site=TEXT, probability=ref("rational"), choice={"type": "boolean"}, u=ref("uniform")
    ),
    "verify": record(
        ("either",),
        level={"const": "verify"},
        **HEAD,
        precision={"enum": ["float16", "float32", "float64"]},
        p=ref("laws"),
        q={"oneOf": [{"type": "null"}, ref("laws")]},
        draft_tokens=listed({"type": "integer", "minimum": -1}),
        coins=record(
            accept=listed(ref("uniform")), final=ref("uniform"), race=listed(ref("double"))
        ),
        expected=record(**OUTCOME),
        either=listed(record(policies=listed({"enum": list(POLICIES)}), **OUTCOME)),
    ),
    "step": record(
        level={"const": "step"},
        **HEAD,
        target=ref("model"),
        drafter=ref("model"),
        context=ref("block"),
        lookahead=ref("whole"),
        law=table(ref("rational"), "^[0-9]+( [0-9]+)*$"),
        replays=listed(
            record(
                sites=listed({"oneOf": [ref("draw"), ref("accept")]}),
                weight=ref("rational"),
                tokens=ref("block"),
            )
        ),
    ),
}


def build_schema() -> Schema:
    """The schema of a whole file of vectors."""
    note = record(mechanism=TEXT, effect=TEXT, links=listed(TEXT))
    file = record(
        algorithm={"enum": list(PUBLISHED)},
        schema={"const": "schema.json"},
        schema_version={"const": SCHEMA_VERSION},
        spec_version={"type": "string", "pattern": r"^1\.[0-9]+$"},
        generator=record(
            name=TEXT, source=TEXT, cases_sha256={"type": "string", "pattern": "^[0-9a-f]{64}$"}
        ),
        notes=table(note, "^[A-Z][A-Za-z]+$"),
        retired=table(TEXT, ID),
        cases=listed({"oneOf": [ref("verify"), ref("step")]}),
    )
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "specref test vectors",
    }
    return {**head, **file, "$defs": DEFINITIONS}


def write(folder: Path, executor: Executor | None = None) -> list[str]:
    """Build every file and put it in a folder; nothing is replaced unless all are ready.

    * `executor`: Builds the files.
    * returns: The names of the files.
    * raises `ValueError`: A published id is gone or stands for another case, ids are new and the
      spec version is not, or float64 does not decide a case.
    * raises `OSError`: The folder cannot be written to.
    """
    files = build_files(executor)
    texts = {**json_texts(files), IDS: ids_text(published_before(folder), files)}
    folder.mkdir(parents=True, exist_ok=True)
    for name in texts:
        if (folder / name).is_dir():
            raise IsADirectoryError(f"{folder / name} is a folder: expected a file, or nothing")
    unfinished = {name: folder / f".{name}.{os.getpid()}" for name in texts}
    try:
        for name, path in unfinished.items():
            path.write_text(texts[name], encoding="utf-8", newline="\n")
        for name, path in unfinished.items():
            path.replace(folder / name)
    finally:
        for path in unfinished.values():
            path.unlink(missing_ok=True)
    return list(texts)


def differences(folder: Path, executor: Executor | None = None) -> list[str]:
    """How the files of a folder differ from those that `write` would put there, in words."""
    files = build_files(executor)
    texts = json_texts(files)
    found = []
    for name, text in texts.items():
        path = folder / name
        if not path.exists():
            found.append(f"{name} is missing")
        elif path.read_bytes() != text.encode():
            found.append(f"{name} differs{_where(path.read_bytes(), text)}")
    extra = sorted({path.name for path in folder.iterdir()} - {*texts, IDS})
    return [*found, *_about_ids(folder, files), *(f"{name} is no file of these" for name in extra)]


def _about_ids(folder: Path, files: Mapping[str, Record]) -> list[str]:
    path = folder / IDS
    if not path.exists():
        return [f"{IDS} is missing"]
    try:
        text = ids_text(published_before(folder), files)
    except ValueError as error:
        return [str(error)]
    return [f"{IDS} differs"] * (path.read_bytes() != text.encode())


def build_files(executor: Executor | None = None) -> dict[str, Record]:
    """{algorithm: its file}, each built by the executor if there is one."""
    if executor is None:
        return {name: build_file(name) for name in PUBLISHED}
    futures = {name: executor.submit(build_file, name) for name in PUBLISHED}
    return {name: future.result() for name, future in futures.items()}


def json_texts(files: Mapping[str, Record]) -> dict[str, str]:
    """{file name: text} of the files and their schema."""
    texts = {f"{name}.json": laid_out(file) + "\n" for name, file in files.items()}
    return {**texts, "schema.json": laid_out(build_schema()) + "\n"}


def ids_text(published: Mapping[str, str], files: Mapping[str, Record]) -> str:
    """The new text of ``published.txt``: its old lines, and the new ids after them.

    * raises `ValueError`: As `write`.
    """
    built = {one["id"]: fingerprint(one) for file in files.values() for one in file["cases"]}
    _refuse(published.keys() - built.keys() - RETIRED.keys(), "was published, and must not go")
    moved = {id_ for id_ in published.keys() & built.keys() if published[id_] != built[id_]}
    _refuse(moved, "was published as another case: numbers that change get a new id")
    lines = [f"{id_} {value}" for id_, value in {**published, **built}.items()]
    if why := disagreement(lines):
        raise ValueError(f"{IDS}: {why}")
    return "".join(f"{line}\n" for line in lines)


def published_before(folder: Path) -> dict[str, str]:
    """As `read_published`; for a folder without ids, those of the package, whose order stays."""
    return read_published(folder) or read_published(FOLDER)


def _refuse(ids: Iterable[str], why: str) -> None:
    for id_ in sorted(ids):
        raise ValueError(f"{IDS}: {id_} {why}")


def _where(found: bytes, text: str) -> str:
    """The first case that is not the same, if that can be told."""
    try:
        cases = json.loads(found)["cases"]
    except (ValueError, KeyError, TypeError):
        return ""
    expected = json.loads(text).get("cases", [])
    for here, there in zip(cases, expected, strict=False):
        if here != there:
            return f", first at {there['id']}"
    return f": {len(cases)} cases, expected {len(expected)}" * (len(cases) != len(expected))


WIDTH = 100


def laid_out(value: Any, indent: int = 0, used: int = 0) -> str:
    """A value as JSON; lists and objects are broken where they are too long.

    * `indent`: Spaces before the lines of its parts, less two.
    * `used`: What stands before it on its own line.
    """
    line = json.dumps(value)
    if _is_flat(value) or indent + used + len(line) <= WIDTH:
        return line
    inside = indent + 2
    if isinstance(value, list):
        return _bracketed("[", [laid_out(item, inside) for item in value], "]", indent)
    parts = []
    for key, item in value.items():
        name = f"{json.dumps(key)}: "
        parts.append(name + laid_out(item, inside, len(name)))
    return _bracketed("{", parts, "}", indent)


def _is_flat(value: Any) -> bool:
    parts = value if isinstance(value, list) else ()
    return not isinstance(value, dict) and not any(isinstance(p, (dict, list)) for p in parts)


def _bracketed(opening: str, parts: list[str], closing: str, indent: int) -> str:
    """Parts between brackets: short ones side by side, as many as fit; long ones alone."""
    lines: list[str] = []
    for part in parts:
        together = f"{lines[-1]}, {part}" if lines else part
        if lines and "\n" not in together and indent + 2 + len(together) <= WIDTH:
            lines[-1] = together
        else:
            lines.append(part)
    inside = ",".join(f"\n{' ' * (indent + 2)}{line}" for line in lines)
    return f"{opening}{inside}\n{' ' * indent}{closing}"
