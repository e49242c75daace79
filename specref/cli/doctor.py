"""``specref doctor``: what is installed here, what it is for, and how to get the rest."""

import os
import platform
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.console import Group, RenderableType
from rich.text import Text

import specref
from specref.cli.group import HOLDS, VIOLATED, leave, show
from specref.cli.options import json_option
from specref.optional import CORE, PARTS, Package
from specref.report.layout import Column, Prose, Table
from specref.report.machine import as_json, write_json
from specref.wings import loaded

PROGRAMS = ("g++", "rustc", "go", "node", "swiftc")


@click.command("doctor")
@json_option
def doctor_command(json_file: str | None) -> NoReturn:
    """Show installed optional parts, and how to get the others.

    Takes a second or two, and a few more where torch is installed: it is asked for its devices.

    Exit codes: 0 what specref needs is installed, 1 a package that it needs is missing or older
    than declared. Optional parts may be missing.

    \b
    Examples:
      specref doctor
      specref doctor --json -
    """
    found = _examined()
    show(_report(found), json_file)
    if json_file:
        write_json(json_file, as_json(found))
    leave(HOLDS if found["complete"] else VIOLATED)


def _examined() -> dict[str, Any]:
    core = [_row(package) for package in CORE]
    parts = {
        name: {
            "gives": part.gives,
            "packages": [_row(package) for package in part.packages],
            "complete": all(package.state == "installed" for package in part.packages),
            "remedy": part.remedy,
        }
        for name, part in PARTS.items()
    }
    return {
        "complete": all(one["state"] == "installed" for one in core),
        "specref": {"version": specref.__version__, "folder": str(Path(specref.__file__).parent)},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "devices": _devices(),
        "core": core,
        "parts": parts,
        "programs": {name: shutil.which(name) for name in PROGRAMS},
    }


def _row(package: Package) -> dict[str, str | None]:
    return {name: getattr(package, name) for name in ("name", "least", "found", "state")}


def _devices() -> list[str]:
    """The devices that torch offers here; empty without torch."""
    try:
        torch: Any = import_module("torch")
    except (ImportError, OSError):  # OSError: a library of it is missing
        return []
    cuda = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return ["cpu", *cuda, *(["mps"] if torch.backends.mps.is_available() else [])]


def _report(found: dict[str, Any]) -> RenderableType:
    rows = [_cells("core", one) for one in found["core"]]
    for name, part in found["parts"].items():
        rows += [_cells(name, one) for one in part["packages"]]
    columns = [*map(Column, ("part", "package", "needed", "found"))]
    own = found["specref"]
    head = (
        f"specref {own['version']} in {own['folder']} · Python {found['python']} · "
        f"{found['platform']} · {found['cores']} cores · "
        f"devices of torch: {', '.join(found['devices']) or 'none, torch cannot be imported'}"
    )
    programs = [name if where else f"no {name}" for name, where in found["programs"].items()]
    lacking = [
        line
        for name, part in found["parts"].items()
        if not part["complete"]
        for line in (Prose(f"{name}, for {part['gives']}:"), Text(f"  {part['remedy']}"))
    ]
    bad = [one for one in found["core"] if one["state"] != "installed"]
    needed = " ".join(f"'{one['name']}>={one['least']}'" for one in bad)
    verdict = (
        Prose("all that specref needs is installed", "bold green")
        if found["complete"]
        else Prose(f"specref needs more: pip install {needed}", "bold red")
    )
    return Group(
        Prose(head, "dim"),
        Table(columns, rows),
        Prose(f"for samplers in other languages: {', '.join(programs)}", "dim"),
        *(Prose(told(), "dim") for told in loaded("doctor")),
        *lacking,
        verdict,
    )


def _cells(part: str, one: dict[str, str | None]) -> list[str]:
    state = "" if one["state"] == "installed" else f" ({one['state']})"
    return [part, str(one["name"]), f">= {one['least']}", f"{one['found'] or '-'}{state}"]
