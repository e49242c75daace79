"""``specref``, ``python -m specref``: the command line, in a process under supervision."""

import os

from specref.supervised import NO_VERDICT, Notes, supervised

COMPLETING = "_SPECREF_COMPLETE"
"""Set by a shell that asks how words go on, or for the script that asks."""


def main() -> None:
    """Run a command, and leave with the verdict that it has written, or with 2."""
    supervised(_command)


def _command(notes: Notes) -> int:
    from specref.cli import main as commands  # the parent needs none of it

    if COMPLETING in os.environ:
        from click.shell_completion import add_completion_class

        from specref.cli.completion import WholeWords

        add_completion_class(WholeWords)
    try:
        commands(prog_name="specref", obj=notes)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else NO_VERDICT
    return NO_VERDICT


if __name__ == "__main__":
    main()
