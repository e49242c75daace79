"""The open tables: a package that is installed brings things to each, by entry points."""

import subprocess
import sys
from pathlib import Path

MODULES = {
    "rules": """
from specref.algorithms import autoregressive
from specref.rule import Rule

one = Rule("NAME", ("of nobody",), autoregressive.step, vocabularies="two")
""",
    "contracts": """
from dataclasses import replace

from specref.contracts.verify import VERIFY

one = replace(VERIFY, name="NAME")
""",
    "checks": """
from specref.conformance.checks.check import Check
from specref.conformance.status import Outcome, Status
from specref.contracts.contract import Contract

one = Check("smoke/NAME", Contract, lambda judge: Outcome(Status.PASSED, "asked"))
""",
    "implementations": """
from specref.adapters.implementation import Implementation
from specref.contracts.verify import VERIFY
from specref.examples.correct import verify

one = Implementation("NAME", VERIFY, "a sampler", lambda: verify)
""",
    "commands": """
import click


@click.command()
def one():
    click.echo("brought")
""",
}
TABLES = """
from specref.adapters import IMPLEMENTATIONS
from specref.contracts.table import CONTRACTS
from specref.rules import RULES
print([next(reversed(one)) for one in (RULES, CONTRACTS, IMPLEMENTATIONS)])
from specref import check
(result,) = check(IMPLEMENTATIONS["mine"].load(), only=["smoke/mine"]).results
print(result.id, result.message)
"""


def printed(folder: Path, name: str, *arguments: str) -> str:
    """What a new process prints that finds a package there, with one thing for each table."""
    metadata = folder / "brought-1.0.dist-info"
    metadata.mkdir()
    for table, module in MODULES.items():
        (folder / f"of_{table}.py").write_text(module.replace("NAME", name))
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "".join(f"[specref.{table}]\n{name} = of_{table}:one\n" for table in MODULES)
    )
    program = f"import sys; sys.path.insert(0, {str(folder)!r})\n"
    command = [sys.executable, "-c", program + arguments[0], *arguments[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


def test_a_package_brings_to_every_table(tmp_path: Path) -> None:
    assert printed(tmp_path, "mine", TABLES).splitlines() == [
        "['mine', 'mine', 'mine']",
        "smoke/mine asked",
    ]


def test_a_package_brings_a_command(tmp_path: Path) -> None:
    run = "from specref.cli import main; main(prog_name='specref')"
    assert printed(tmp_path, "mine", run, "mine") == "brought\n"


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    said = printed(tmp_path, "standard", "import specref.rules").splitlines()[-1]
    assert said.startswith("ValueError: rules: two are named 'standard'; rename that of your")
