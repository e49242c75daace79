"""What there is to choose from: claims, checks, contracts, registered names and rules.

Texts are those of docstrings, in tables their first sentence.
"""

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any, TypeAlias

from rich.console import Group, RenderableType
from rich.text import Text

from specref.algorithms import ALGORITHMS
from specref.conformance.checks import CHECKS
from specref.conformance.contract import (
    BY_NAME,
    FLAGS,
    POSITIONAL,
    SIGNATURES,
    WORDS,
    Capabilities,
    Contract,
)
from specref.conformance.implementations import IMPLEMENTATIONS
from specref.conformance.trees.rules import RULES
from specref.report.layout import Column, Table

Row: TypeAlias = Mapping[str, Any]


def claims(contract: Contract | None = None) -> list[Row]:
    """Every claim: its values, the one that holds if nothing is said, and what it means.

    Examples
    --------
    >>> next(row for row in claims() if row["name"] == "batch")["values"]
    'int or none'
    """
    described = attributes(Capabilities)
    return [
        {
            "name": one.name,
            "values": _values(one.name, described[one.name][0]),
            "default": _word(one.default),
            "text": described[one.name][1],
        }
        for one in fields(Capabilities)
    ]


def checks(contract: Contract | None = None) -> list[Row]:
    """Every check: its stage, its contracts, whether it is statistical, and what it asks."""
    return [
        {
            "id": one.id,
            "stage": str(one.stage),
            "contracts": sorted(map(str, one.contracts)),
            "statistical": one.statistical,
            "text": _summary(getattr(one.ask, "func", one.ask)),
        }
        for one in CHECKS
        if contract is None or contract in one.contracts
    ]


def contracts(contract: Contract | None = None) -> list[Row]:
    """Every contract: how an implementation is called, and what it takes and gives."""
    return [
        {
            "name": str(one),
            "parameters": [*POSITIONAL[one], *BY_NAME[one]],
            "text": _summary(kind).partition(": ")[2],
        }
        for one, kind in SIGNATURES.items()
        if contract in (None, one)
    ]


def names(contract: Contract | None = None) -> list[Row]:
    """Every registered implementation; what is missing of it, and how to install that."""
    return [
        {
            "name": one.name,
            "contract": str(one.contract),
            "installed": not one.missing,
            "missing": list(one.missing),
            "remedy": one.remedy,
            "text": one.text,
        }
        for one in IMPLEMENTATIONS.values()
        if contract in (None, one.contract)
    ]


def rules(contract: Contract | None = None) -> list[Row]:
    """Every rule that may be declared: of trees, or of all other contracts that draft."""
    chains = [Contract.VERIFY, Contract.STEP, Contract.GENERATE]
    told: list[tuple[str, Callable[..., Any], list[Contract]]] = [
        *((name, rule, chains) for name, rule in ALGORITHMS.items()),
        *((name, rule, [Contract.TREE]) for name, rule in RULES.items()),
    ]
    return [
        {
            "name": name,
            "contracts": [str(one) for one in whose],
            "text": _summary(sys.modules[rule.__module__]),
        }
        for name, rule, whose in told
        if contract is None or contract in whose
    ]


SECTIONS: Mapping[str, Callable[[Contract | None], list[Row]]] = MappingProxyType(
    {
        "claims": claims,
        "checks": checks,
        "contracts": contracts,
        "names": names,
        "rules": rules,
    }
)


def attributes(kind: type) -> dict[str, tuple[str, str]]:
    """{name: (type, text)} from the section Attributes of a docstring.

    Examples
    --------
    >>> attributes(Capabilities)["repeats"]
    ('bool', 'Siblings of a tree may repeat: they were drawn with replacement.')
    """
    lines = inspect.getdoc(kind).partition("----------\n")[2]  # type: ignore[union-attr]
    found = re.findall(r"^(\w+) : (.*)\n((?:    .*\n?)+)", lines, flags=re.MULTILINE)
    return {name: (kind, " ".join(text.split())) for name, kind, text in found}


def _values(name: str, kind: str) -> str:
    if name in FLAGS:
        return "true, false"
    return ", ".join(map(_word, WORDS[name])) if name in WORDS else kind.replace("None", "none")


def _word(value: object) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _summary(described: object) -> str:
    """The first paragraph of a docstring, in one line."""
    text = inspect.getdoc(described) or ""
    return " ".join(text.partition("\n\n")[0].split())


def listing(sections: Sequence[str], contract: Contract | None = None) -> RenderableType:
    """A table for each section."""
    tables: list[RenderableType] = []
    for section in sections:
        rows = SECTIONS[section](contract)
        tables += [Text(section, "bold"), _table(TABLES[section], rows), ""]
    return Group(*tables)


def listing_record(sections: Sequence[str], contract: Contract | None = None) -> dict[str, Any]:
    """The same as a record, with the texts in full."""
    return {section: SECTIONS[section](contract) for section in sections}


Cell: TypeAlias = Callable[[Row], str]


def _sentence(row: Row) -> str:
    return re.split(r"(?<=[.])\s+(?=[A-Z])", row["text"])[0].removesuffix(".")


def _default_first(row: Row) -> str:
    others = (value for value in re.split(", | or ", row["values"]) if value != row["default"])
    return ", ".join([row["default"], *others])


def _asked(row: Row) -> str:
    return _sentence(row) + (" (statistical)" if row["statistical"] else "")


def _installed(row: Row) -> str:
    missing = "" if row["installed"] else f" (not installed: {row['remedy']})"
    return f"{row['text']}{missing}"


def _listed(key: str) -> Cell:
    return lambda row: ", ".join(row[key])


def _plain(key: str) -> Cell:
    return lambda row: str(row[key])


TABLES: Mapping[str, Mapping[str, Cell]] = MappingProxyType(
    {
        "claims": {
            "claim": _plain("name"),
            "default, other values": _default_first,
            "meaning": _sentence,
        },
        "checks": {
            "check": _plain("id"),
            "contracts": _listed("contracts"),
            "what it asks": _asked,
        },
        "contracts": {
            "contract": _plain("name"),
            "parameters": _listed("parameters"),
            "what it is": _sentence,
        },
        "names": {
            "name": _plain("name"),
            "contract": _plain("contract"),
            "what it is": _installed,
        },
        "rules": {
            "rule": _plain("name"),
            "contracts": _listed("contracts"),
            "what it is": _sentence,
        },
    }
)


def _table(cells: Mapping[str, Cell], rows: Sequence[Row]) -> Table:
    columns = [Column(title, folds=index > 0) for index, title in enumerate(cells)]
    return Table(columns, [[cell(row) for cell in cells.values()] for row in rows])
