"""``specref init``: a test file for a user's sampler, or a program around one."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

import click

from specref.cli.completion import targets
from specref.cli.group import HOLDS, leave
from specref.cli.loading import load_function
from specref.cli.options import declare_option, read_claims, rule_option
from specref.cli.targets import full_name
from specref.conformance.suite import fitting
from specref.contracts.capabilities import capabilities_of
from specref.contracts.table import CONTRACTS, VERIFY, signed
from specref.report.machine import STDOUT, check_destination, write_json

WRITTEN = [one.name for one in CONTRACTS.values() if one.written]
HARNESSES = "specref.examples.harnesses"
SUFFIXES = {
    "cpp": ".cpp",
    "rust": ".rs",
    "swift": ".swift",
    "javascript": ".js",
    "go": ".go",
    "python": ".py",
}
TEMPLATE = '''"""Whether {function} is lossless: one test for each check of specref.

Run with:  {run} --specref-profile standard
"""

import specref
from {module} import {function}


@specref.parametrize({function}, {options})
def test_{function}_is_lossless(check):
    check()
'''


@click.command("init")
@click.argument("target", required=False, shell_complete=targets)
@click.option(
    "--language",
    type=click.Choice(tuple(SUFFIXES)),
    help="Print a program to start from, for `specref check process:COMMAND`; no TARGET.",
)
@click.option("--contract", type=click.Choice(WRITTEN), help="By default verify.")
@rule_option
@declare_option
@click.option(
    "--output",
    metavar="FILE",
    help="By default test_FUNCTION_specref.py, or stdout for a program; - for stdout.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def init_command(
    target: str | None,
    language: str | None,
    contract: str | None,
    rule: str | None,
    declare: tuple[str, ...],
    output: str | None,
    force: bool,
) -> NoReturn:
    """Write a pytest file for YOUR sampler, or a program in another language.

    TARGET is MODULE:FUNCTION, or FILE.py:FUNCTION; then the test is written beside the file.
    examples.correct:verify and examples.lossy:verify come with the package. Takes a second or two.

    \b
    Examples:
      specref init samplers:verify --rule standard
      specref init src/sampler.py:verify --declare ragged=false
      specref init samplers:verify --output - | less
      specref init --language rust --output sampler.rs
    """
    _check_language(target, language, bool(contract or rule or declare))
    if language:
        _write(harness(language), output or STDOUT, force)
        leave(HOLDS)
    kind = contract or str(VERIFY)
    file, text = _test_of(full_name(str(target)), kind, rule, read_claims(declare), output)
    _write(text, file, force)
    if file != STDOUT:
        click.echo(f"wrote {file}; run: pytest {file}")
    leave(HOLDS)


def _check_language(target: str | None, language: str | None, described: bool) -> None:
    if (target is None) == (language is None):
        raise ValueError("expected TARGET or --language, and not both")
    if language and described:
        raise ValueError(
            "--contract, --rule and --declare are for the test of a TARGET: a program says "
            "what it is when it answers `start`"
        )


def harness(language: str) -> str:
    """A program that speaks docs/other-languages.md, to be filled in."""
    return (files(HARNESSES) / f"sampler{SUFFIXES[language]}").read_text(encoding="utf-8")


def _write(text: str, file: str, force: bool) -> None:
    if Path(file).exists() and not force:
        raise ValueError(f"{file} is there already: --force replaces it")
    check_destination(file)
    write_json(file, text.rstrip("\n"))


def _test_of(
    target: str,
    contract: str,
    algorithm: str | None,
    claims: Mapping[str, Any],
    output: str | None,
) -> tuple[str, str]:
    sampler = load_function(target, "target")
    rule = {"algorithm": algorithm} if algorithm else {}
    fitting(capabilities_of(sampler, **{"rule": algorithm, **claims}).rule, CONTRACTS[contract])
    signed(sampler, CONTRACTS[contract])
    module, folder, function = _importable(target)
    file = output or str(folder / f"test_{function}_specref.py")
    options = {"contract": contract, **rule, **claims}
    words = ", ".join(
        f'{name}="{value}"' if isinstance(value, str) else f"{name}={value!r}"
        for name, value in options.items()
    )
    run = "pytest" if file == STDOUT else f"pytest {file}"
    return file, TEMPLATE.format(module=module, function=function, options=words, run=run)


def _importable(target: str) -> tuple[str, Path, str]:
    """The module that a test can import, the folder to write it in, and the function."""
    module, _, function = target.rpartition(":")
    if not module.endswith(".py"):
        return module, Path(), function
    file = Path(module)
    if not file.stem.isidentifier():
        raise ValueError(f"target = {target!r}: expected a file that a test can import by name")
    return file.stem, file.parent, function
