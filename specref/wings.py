"""Five open tables: commands, contracts, checks, implementations and rules that others bring.

A wing is a part that the core does without. It is known here by names alone, and nothing of it is
imported before somebody asks for it: the core imports no wing. The wings of this package are
listed below, so that a checkout that is not installed has them; those of other packages are entry
points of theirs, in the group ``specref.TABLE``, and come after::

    [project.entry-points."specref.rules"]
    mine = "my_package.rules:RULE"

What an entry names is one thing (a `Rule`, a `Check`, a `Contract`, an `Implementation`, a click
command), or a tuple of such things. Each table has a module of its own there, which imports the
type from where it is defined (`specref.rule`), and not the table (`specref.rules`): that is being
made then. Two more tables have functions whose text `specref doctor` shows, and the forms of JSON
reports.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar

T = TypeVar("T")

Table: TypeAlias = Literal[
    "commands", "contracts", "checks", "implementations", "rules", "doctor", "reports"
]
OWN: dict[Table, dict[str, str]] = {
    "commands": {
        "vectors": "specref.contrib.vectors.command:vectors_command",
        "zoo": "specref.contrib.selftest.command:zoo_command",
        "plan speed": "specref.contrib.speed.command:plan_speed_command",
        "psi": "specref.contrib.vocabularies.psi_command:psi_command",
        "vocabularies": "specref.contrib.vocabularies.command:vocabularies_command",
        "check engines": "specref.contrib.engines.board:check_engines",
        "build-model": "specref.contrib.checkpoints.command:build_model_command",
        "cross-check": "specref.contrib.real_models.cross_check:cross_check_command",
        "compare": "specref.contrib.compare.command:compare_command",
        "collect": "specref.contrib.compare.collect_command:collect_command",
        "check server": "specref.contrib.compare.check_command:check_server",
    },
    "implementations": {"engines": "specref.contrib.engines.registry:ALL"},
    "reports": {
        "engines": "specref.contrib.engines.board_report:REPORTS",
        "checkpoints": "specref.contrib.checkpoints.command:REPORTS",
        "speed": "specref.contrib.speed.command:REPORTS",
        "psi": "specref.contrib.vocabularies.psi_command:REPORTS",
        "selftest": "specref.contrib.selftest.kills_report:REPORTS",
        "compare": "specref.contrib.compare.report:REPORTS",
    },
    "doctor": {"published models": "specref.contrib.real_models.conversion:what_is_there"},
}
COMMANDS_OF_WINGS = {
    "vectors": "Run the published test vectors on YOUR sampler, or build them.",
    "zoo": "Run the checks against the library of known bugs.",
    "psi": "Count the token sequences that spell TEXT, and the forwards that psi takes.",
    "vocabularies": "Count the vocabulary tables of Timor et al. 2025 again.",
    "build-model": "Write small checkpoints with known probabilities, for any engine.",
    "cross-check": "Test generation with two models, method by method, against the target.",
    "collect": "Collect sequences from an OpenAI-compatible server, for `specref compare`.",
    "compare": "Compare sequences of a system with and without speculation.",
}
"""Those listed above in a sentence, so that `specref --help` imports none of them."""


@cache
def registered(table: Table) -> dict[str, EntryPoint]:
    """The entries of a table, by name; an entry of this package hides another of its name."""
    group = f"specref.{table}"
    own = {name: EntryPoint(name, at, group) for name, at in OWN.get(table, {}).items()}
    brought = {one.name: one for one in entry_points(group=group)}
    return {**own, **brought, **own}  # ours first, and ours where two have one name


def loaded(table: Table) -> Iterator[Any]:
    """What the entries of a table name, imported now.

    * raises `ImportError`, `AttributeError`: An entry names what is not there; the message says
      which.
    """
    for entry in registered(table).values():
        found = entry.load()
        yield from found if isinstance(found, tuple) else (found,)


def table_of(
    table: Table, *own: T, name: Callable[[Any], str] = attrgetter("name")
) -> Mapping[str, T]:
    """A table by names: the core's own things, then those that entries bring.

    * raises `ValueError`: Two of them have one name.
    """
    found: dict[str, T] = {}
    for one in (*own, *loaded(table)):
        if name(one) in found:
            raise ValueError(f"{table}: two are named {name(one)!r}; rename that of your package")
        found[name(one)] = one
    return MappingProxyType(found)
