"""The command line, called in this process."""

from click.testing import CliRunner, Result

from specref.cli import main


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))
