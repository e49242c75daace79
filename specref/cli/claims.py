"""What an implementation declares, on the command line: ``--declare NAME=VALUE``."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import click

from specref.cli.completion import capabilities
from specref.cli.options import Option

WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "none": None}
declare_option = click.option(
    "--declare",
    cls=Option,
    former=("--claim",),
    multiple=True,
    metavar="NAME=VALUE",
    shell_complete=capabilities,
    help="A capability, such as ragged=false; `specref list claims` has all.",
)


def read_claims(pairs: Sequence[str]) -> dict[str, Any]:
    """Claims as NAME=VALUE; values are true, false, none, numbers or words.

    * raises `ValueError`: No equals sign.

    Examples
    --------
    >>> read_claims(["ragged=false", "batch=1", "dtype=float32"])
    {'ragged': False, 'batch': 1, 'dtype': 'float32'}
    """
    claims: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"--declare {pair!r}: expected NAME=VALUE, such as ragged=false")
        claims[name] = WORDS.get(value.lower(), value)
        if value.isdigit():
            claims[name] = int(value)
        elif name == "tolerance":
            with suppress(ValueError):  # what is no number is refused with the other claims
                claims[name] = float(value)
    return claims
