"""What a user can choose from: claims, checks, contracts, registered names and rules.

Texts are those of docstrings, in tables their first sentence.
"""

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias

from rich.console import Group, RenderableType
from rich.text import Text

from specref import adapters
from specref.conformance.checks import CHECKS, Check
from specref.conformance.status import MEANINGS, address_of_bug, address_of_finding
from specref.contracts.capabilities import FLAGS, WORDS, Capabilities
from specref.contracts.contract import Contract
from specref.contracts.table import CONTRACTS
from specref.report.forms import Ids, attributes
from specref.report.layout import Column, Table
from specref.rule import Rule
from specref.rules import RULES
from specref.zoo import ALL
from specref.zoo.entry import PLACES, Entry


@dataclass(frozen=True)
class ClaimRow:
    """What ``--declare`` takes."""

    name: str
    values: str
    default: str
    text: str


@dataclass(frozen=True)
class CheckRow:
    """What ``--only`` takes."""

    id: str
    stage: str
    contracts: Ids
    statistical: Annotated[bool, "Whether it spends a share of alpha."]
    text: str


@dataclass(frozen=True)
class ContractRow:
    """What ``--contract`` takes."""

    name: str
    parameters: Ids
    text: str


@dataclass(frozen=True)
class NameRow:
    """What is judged by its name."""

    name: str
    contract: str
    installed: bool
    missing: Annotated[Ids, "Packages that it lacks."]
    remedy: Annotated[str, "The command that installs it."]
    text: str


@dataclass(frozen=True)
class RuleRow:
    """What ``--rule`` takes."""

    name: str
    contracts: Annotated[Ids, "Under which it may be declared."]
    papers: Ids
    vocabularies: str
    lossless: bool
    parts: Annotated[Mapping[str, bool], "{part: whether specref has it for this rule}."]
    text: str


@dataclass(frozen=True)
class FindingRow:
    """What a report may say."""

    name: str
    text: str
    address: str


@dataclass(frozen=True)
class BugRow:
    """What a diagnosis may name."""

    name: str
    rule: str
    lossless: bool
    formula: str
    text: Annotated[str, "How it shows."]
    fix: str
    seen_in: Ids
    address: str


def claims(contract: Contract | None = None) -> list[ClaimRow]:
    """Every claim: its values, its default, and its meaning."""
    described = attributes(Capabilities)
    return [
        ClaimRow(one.name, _values(one.name, kind), _word(one.default), text)
        for one in fields(Capabilities)
        for kind, text in [described[one.name]]
    ]


def checks(contract: Contract | None = None) -> list[CheckRow]:
    """Every check: its stage, its contracts, whether it is statistical, and what it asks."""

    def row(one: Check) -> CheckRow:
        text = _summary(getattr(one.ask, "func", one.ask))
        contracts = sorted(map(str, one.contracts))
        return CheckRow(one.id, str(one.stage), contracts, one.statistical, text)

    return [row(one) for one in CHECKS if contract is None or contract in one.contracts]


def contracts(contract: Contract | None = None) -> list[ContractRow]:
    """Every contract: how an implementation is called, and what it takes and gives."""
    return [
        ContractRow(
            str(one), [*one.positional, *one.by_name], _summary(one.protocol).partition(": ")[2]
        )
        for one in CONTRACTS.values()
        if contract in (None, one)
    ]


def names(contract: Contract | None = None) -> list[NameRow]:
    """Every registered implementation, what is missing of it, and how to install that."""
    return [
        NameRow(
            one.name, str(one.contract), not one.missing, list(one.missing), one.remedy, one.text
        )
        for one in adapters.IMPLEMENTATIONS.values()
        if contract in (None, one.contract)
    ]


def rules(contract: Contract | None = None) -> list[RuleRow]:
    """Every rule: the contracts under which it may be declared, and its parts."""
    return [
        RuleRow(
            rule.name,
            [str(one) for one in CONTRACTS.values() if one.takes_rule(rule)],
            list(rule.papers),
            rule.vocabularies,
            rule.lossless,
            {name: has(rule) for name, has in PARTS.items()},
            _summary(listing_of(rule)),
        )
        for rule in RULES.values()
        if contract is None or contract.takes_rule(rule)
    ]


PARTS: Mapping[str, Callable[[Rule], bool]] = MappingProxyType(
    {
        "accepted lengths": lambda rule: rule.accepted_lengths is not None,
        "first acceptance": lambda rule: bool(rule.accepted_lengths or rule.accepts_first),
        "twin": lambda rule: rule.sampled,
        "coins": lambda rule: rule.coins is not None,
        "vectors": lambda rule: rule.vectors,
    }
)


def listing_of(rule: Rule) -> object:
    """The object whose docstring describes a rule: its file, or the part its step is made with."""
    if isinstance(rule.step, partial):
        parts = (*rule.step.args, *rule.step.keywords.values())
        return next(part for part in parts if callable(part))
    return sys.modules[rule.step.__module__]


def bugs(contract: Contract | None = None) -> list[BugRow]:
    """Every planted bug by its rule and its place in an iteration; then lossless look-alikes."""
    rules, places = list(RULES), list(PLACES)

    def order(one: Entry) -> tuple[bool, int, int]:
        rule = rules.index(one.rule) if one.rule in rules else len(rules)
        return one.lossless, rule, places.index(one.stage)

    return [
        BugRow(
            *(one.id, one.rule, one.lossless, one.formula, one.symptom, one.hint),
            list(one.cites),
            address_of_bug(one.id),
        )
        for one in sorted(ALL.values(), key=order)
    ]


def findings(contract: Contract | None = None) -> list[FindingRow]:
    """Every finding: what it means, and what to do."""
    return [FindingRow(str(one), text, address_of_finding(one)) for one, text in MEANINGS.items()]


SECTIONS: Mapping[str, Callable[[Contract | None], Sequence[Any]]] = MappingProxyType(
    {
        "claims": claims,
        "checks": checks,
        "contracts": contracts,
        "names": names,
        "rules": rules,
        "findings": findings,
        "bugs": bugs,
    }
)


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
    tables: list[RenderableType] = []
    for section in sections:
        cells = TABLES[section]
        columns = [Column(title, folds=index > 0) for index, title in enumerate(cells)]
        rows = [[cell(row) for cell in cells.values()] for row in SECTIONS[section](contract)]
        tables += [Text(section, "bold"), Table(columns, rows), ""]
        if section == "contracts" and contract is not None:
            tables += [Text(signature(contract)), ""]
    return Group(*tables)


def signature(contract: Contract) -> str:
    """How a function is called under a contract, what its parameters are, and what it returns."""
    call = vars(contract.protocol).get("__call__")
    described = inspect.getdoc(call) or ""
    return f"{contract.passed}\n\n{inspect.getdoc(contract.protocol)}\n\n{described}"


def listing_record(sections: Sequence[str], contract: Contract | None = None) -> dict[str, Any]:
    """A record with the texts in full."""
    return {section: SECTIONS[section](contract) for section in sections}


Cell: TypeAlias = Callable[[Any], str]


def _sentence(row: Any) -> str:
    return re.split(r"(?<=[.])\s+(?=[A-Z])", row.text)[0].removesuffix(".")


def _default_first(row: ClaimRow) -> str:
    others = (value for value in re.split(", | or ", row.values) if value != row.default)
    return ", ".join([row.default, *others])


NAME: Cell = attrgetter("name")
TABLES: Mapping[str, Mapping[str, Cell]] = MappingProxyType(
    {
        "claims": {"claim": NAME, "default, other values": _default_first, "meaning": _sentence},
        "checks": {
            "check": attrgetter("id"),
            "contracts": lambda row: ", ".join(row.contracts),
            "what it asks": lambda row: _sentence(row) + " (statistical)" * row.statistical,
        },
        "contracts": {
            "contract": NAME,
            "parameters": lambda row: ", ".join(row.parameters),
            "what it is": _sentence,
        },
        "names": {
            "name": NAME,
            "contract": attrgetter("contract"),
            "what it is": lambda row: (
                row.text + ("" if row.installed else f" (not installed: {row.remedy})")
            ),
        },
        "rules": {
            "rule": NAME,
            "contracts": lambda row: ", ".join(row.contracts) or "none: refuted",
            "what it is": _sentence,
            "n/a": lambda row: ", ".join(name for name, has in row.parts.items() if not has),
        },
        "findings": {"finding": NAME, "meaning": attrgetter("text")},
        "bugs": {
            "bug": NAME,
            "rule": attrgetter("rule"),
            "how it shows": attrgetter("text"),
            "fix": lambda row: ("exact: " if row.lossless else "") + row.fix,
        },
    }
)
