"""The words of docstrings that the site shows: those of public names and of the rules' listings.

What is in backticks, an example or the name of a parameter is a name of Python, and stays.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import specref
from proofs_tests.pages import api
from proofs_tests.pages.words import BANNED, ROOT
from specref.report.listing import SECTIONS, listing_of
from specref.rules import RULES

CODE = re.compile(r"``.+?``|`[^`]*`|:\w+:`[^`]*`", flags=re.DOTALL)
HEADER = re.compile(r"^[\w*]+(?:, [\w*]+)*(?: : .*)?$")
"""A parameter, an attribute or a type, above its indented description."""


def shown() -> Iterator[Any]:
    """Every module, class and function whose docstring the site has."""
    for path in ("specref", *api.MODULES):
        try:
            module = import_module(path)
        except ImportError:  # torch is optional
            continue
        yield module
        names = specref.__all__ if path == "specref" else api.own_names(module)
        for name in names:
            value = getattr(module, name)
            if inspect.ismodule(value) or inspect.isroutine(value) or inspect.isclass(value):
                yield value
            if inspect.isclass(value):
                yield from members(value)
    for rule in RULES.values():
        listing = listing_of(rule)
        closed = inspect.unwrap(rule.accepted_lengths or rule.accepts_first or rule.step)
        closed = getattr(closed, "func", closed)
        read = inspect.getclosurevars(closed).nonlocals.get("read")
        for one in (listing, read or closed):
            module = one if inspect.ismodule(one) else sys.modules[one.__module__]
            yield module
            yield from (x for x in vars(module).values() if is_of(x, module.__name__))


def is_of(value: Any, module: str) -> bool:
    """Whether a function or a class is defined in a module, whose listing a page has."""
    return hasattr(value, "__qualname__") and getattr(value, "__module__", "") == module


def members(shown_class: type) -> Iterator[Any]:
    """The public methods and properties that a class defines."""
    for name, value in vars(shown_class).items():
        function = getattr(value, "fget", None) or getattr(value, "__func__", value)
        if not name.startswith("_") and inspect.isroutine(function):
            yield function


def prose(docstring: str) -> Iterator[tuple[int, str]]:
    """(line, its words) of a docstring, without names, examples and headings.

    Examples
    --------
    >>> list(prose("A `law` of it.\\n\\ncoins : array\\n    The laws.\\n\\n>>> law()\\n'coin'\\n"))
    [(1, 'A  of it.'), (4, '    The laws.')]
    """
    lines = CODE.sub(blank, docstring).splitlines()
    example = False
    for number, line in enumerate(lines, 1):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        following = lines[number] if number < len(lines) else ""
        deeper = indent(following) > indent(line) and bool(following.strip())
        if example or not line.strip() or (deeper and HEADER.match(line.strip())):
            continue
        if " : " in line and HEADER.match(line.strip()):
            continue
        yield number, line


def blank(found: re.Match[str]) -> str:
    """The lines of what is left out."""
    return "\n" * found[0].count("\n")


def indent(line: str) -> int:
    """By how much a line is moved to the right."""
    return len(line) - len(line.lstrip())


def complaints(docstring: str) -> Iterator[tuple[int, str]]:
    """The line, and what to write instead, of each private word of a docstring."""
    for number, line in prose(docstring):
        for pattern, instead in BANNED.items():
            for found in re.finditer(rf"\b{pattern}\b", line, flags=re.IGNORECASE):
                yield number, f'"{found.group()}": write {instead}'


def listed() -> Iterator[tuple[str, str]]:
    """(section, text) of what `specref list` says: docstrings of checks among them.

    Those of adapters are literal strings, which `displayed` reads.
    """
    for name in SECTIONS.keys() - {"names"}:
        for row in SECTIONS[name](None):
            for field in ("text", "fix"):
                if isinstance(told := getattr(row, field, ""), str):
                    yield name, told


def all_complaints() -> Iterator[str]:
    """Of every docstring that is shown, with its address, and of all listings."""
    told: set[str] = set()
    for value in shown():
        docstring = getattr(value, "__doc__", None) or ""
        place = where(value)
        for line, complaint in complaints(docstring) if place else ():
            told.add(f"{place}: line {line}: {complaint}")
    for section, text in listed():
        told |= {f"specref list {section}: {text}: {found}" for _, found in complaints(text)}
    yield from sorted(told)


def where(value: Any) -> str:
    """The file and the name of what has a docstring; empty if it is not of specref."""
    try:
        path = Path(inspect.getsourcefile(inspect.unwrap(value)) or "")
    except TypeError:
        return ""
    if not path.is_relative_to(ROOT / "specref"):
        return ""
    return f"{path.relative_to(ROOT).as_posix()}: {getattr(value, '__qualname__', 'the module')}"
