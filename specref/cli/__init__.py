"""The command line: verify, prove, plan, check, list, replay, write, zoo, psi, vocabularies,
vectors."""

import click

from specref import __version__
from specref.cli.check import check_command
from specref.cli.group import OneLineErrors
from specref.cli.list import list_command
from specref.cli.plan import plan_command
from specref.cli.prove import prove_command
from specref.cli.psi import psi_command
from specref.cli.replay import replay_command
from specref.cli.vectors import vectors_command
from specref.cli.verify import verify_command
from specref.cli.vocabularies import vocabularies_command
from specref.cli.write import write_command
from specref.cli.zoo import zoo_command

__all__ = ["main"]


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Executable specification of lossless speculative decoding.

    Exit codes: 0 everything holds, 1 a violation was found, 2 misuse or not run,
    130 interrupted.
    """


for _command in (
    verify_command,
    prove_command,
    plan_command,
    check_command,
    list_command,
    replay_command,
    write_command,
    zoo_command,
    psi_command,
    vocabularies_command,
    vectors_command,
):
    main.add_command(_command)
