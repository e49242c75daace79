"""``specref write``: a test file for somebody's sampler, ready for pytest."""

import sys
from pathlib import Path
from typing import NoReturn

import click

from specref.algorithms import ALGORITHMS
from specref.cli.claims import claim_option, read_claims
from specref.cli.group import HOLDS
from specref.cli.loading import load_function
from specref.conformance.contract import Contract, capabilities_of
from specref.report.machine import check_destination, write_json

CONTRACTS = [str(contract) for contract in Contract if contract != Contract.TREE]
TEMPLATE = '''"""Whether {function} is lossless: one test for each check of specref.

Run with:  pytest {file} --specref-profile standard
"""

import specref
from {module} import {function}


@specref.parametrize({function}, {options})
def test_{function}_is_lossless(check):
    check()
'''


@click.command("write")
@click.argument("target")
@click.option("--contract", type=click.Choice(CONTRACTS), default="verify", show_default=True)
@click.option(
    "--algorithm", type=click.Choice(tuple(ALGORITHMS)), help="The rule that it declares."
)
@claim_option
@click.option(
    "--output", metavar="FILE", help="By default test_FUNCTION_specref.py; - for stdout."
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def write_command(
    target: str,
    contract: str,
    algorithm: str | None,
    claim: tuple[str, ...],
    output: str | None,
    force: bool,
) -> NoReturn:
    """Write a pytest file that judges YOUR sampler.

    TARGET is MODULE:FUNCTION, or FILE.py:FUNCTION; then the test is written beside the file.

    \b
    Examples:
      specref write samplers:verify --algorithm standard
      specref write src/sampler.py:verify --claim ragged=false
      specref write samplers:verify --output - | less
    """
    claims = read_claims(claim)
    capabilities_of(load_function(target, "target"), **claims)
    module, folder, function = _importable(target)
    file = output or str(folder / f"test_{function}_specref.py")
    if Path(file).exists() and not force:
        raise ValueError(f"{file} is there already: --force replaces it")
    check_destination(file)
    options = {"contract": contract} | ({"algorithm": algorithm} if algorithm else {}) | claims
    words = ", ".join(f"{name}={_literal(value)}" for name, value in options.items())
    text = TEMPLATE.format(module=module, function=function, options=words, file=file)
    write_json(file, text.rstrip("\n"))
    if file != "-":
        click.echo(f"wrote {file}; run: pytest {file}")
    sys.exit(HOLDS)


def _importable(target: str) -> tuple[str, Path, str]:
    """The module that a test can import, the folder to write it in, and the function."""
    module, _, function = target.rpartition(":")
    if not module.endswith(".py"):
        return module, Path(), function
    file = Path(module)
    if not file.stem.isidentifier():
        raise ValueError(f"target = {target!r}: expected a file that a test can import by name")
    return file.stem, file.parent, function


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
