"""``specref write``: a test file for somebody's sampler, ready for pytest."""

import sys
from pathlib import Path
from typing import NoReturn

import click

from specref.cli.group import HOLDS
from specref.cli.loading import load_function
from specref.conformance.contract import Contract
from specref.report.machine import check_destination, write_json

CONTRACTS = [str(contract) for contract in Contract if contract != Contract.TREE]
TEMPLATE = '''"""Whether {function} is lossless: one test for each check of specref.

Run with:  pytest {file} --specref-profile standard
"""

import specref
from {module} import {function}


@specref.parametrize({function}, contract="{contract}"{algorithm})
def test_{function}_is_lossless(check):
    check()
'''


@click.command("write")
@click.argument("target", metavar="MODULE:FUNCTION")
@click.option("--contract", type=click.Choice(CONTRACTS), default="verify", show_default=True)
@click.option("--algorithm", help="The rule that it declares, such as standard.")
@click.option(
    "--output", metavar="FILE", help="By default test_FUNCTION_specref.py; - for stdout."
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def write_command(
    target: str, contract: str, algorithm: str | None, output: str | None, force: bool
) -> NoReturn:
    """Write a pytest file that judges YOUR sampler.

    \b
    Examples:
      specref write samplers:verify --algorithm standard
      specref write samplers:verify --output - | less
    """
    load_function(target, "target")
    module, _, function = target.rpartition(":")
    if module.endswith(".py"):
        raise ValueError(f"target = {target!r}: expected MODULE:FUNCTION, which a test can import")
    file = output or f"test_{function}_specref.py"
    if Path(file).exists() and not force:
        raise ValueError(f"{file} is there already: --force replaces it")
    check_destination(file)
    rule = f', algorithm="{algorithm}"' if algorithm else ""
    text = TEMPLATE.format(
        module=module, function=function, contract=contract, algorithm=rule, file=file
    )
    write_json(file, text.rstrip("\n"))
    if file != "-":
        click.echo(f"wrote {file}; run: pytest {file}")
    sys.exit(HOLDS)
