"""The fields of what `--json` writes, for docs/formats.md on the site, from the schemas."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from specref.report.schema import KINDS, read_schema

SEVERAL = """
An object [report](#the-object-report); where TARGET stands for several implementations, all of
them; or why there is none:
"""


def tables(kinds: Iterable[str] = tuple(KINDS)) -> str:
    """The commands and the files of their schemas, and the fields of each."""
    lines = ["| command | schema |\n|---|---|\n"]
    for kind in kinds:
        command, _ = KINDS[kind]
        lines.append(f"| `{command}` | [{kind}.json](generated/schemas/{kind}.json) |\n")
    known: set[str] = set()
    for kind in kinds:
        schema = read_schema(kind)
        lines.append(f"\n## {KINDS[kind][0]}\n")
        if "anyOf" in schema:
            lines.append(SEVERAL)
        forms = [schema, *schema.get("anyOf", ())]
        lines += [f"\n{table(one)}" for one in forms if "properties" in one]
        for name in named(schema):
            one = schema["$defs"][name]
            if "properties" in one and name not in known:
                said = f"{one['description']}\n\n" if "description" in one else ""
                lines.append(f"\n### The object {name}\n\n{said}{table(one)}")
                known.add(name)
    return "".join(lines)


def named(schema: Mapping[str, Any]) -> list[str]:
    """The definitions of a schema, in the order in which a reader meets them."""
    found = _references({**schema, "$defs": None})
    for name in found:
        found += [one for one in _references(schema["$defs"][name]) if one not in found]
    return found


def _references(form: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(re.findall(r"#/\$defs/(\w+)", json.dumps(form))))


def table(schema: Mapping[str, Any]) -> str:
    """A row for each field of an object, and of those in it."""
    rows = [f"| `{path}` | {kind} | {said} |\n" for path, kind, said in fields(schema, "")]
    return f"| field | type | meaning |\n|---|---|---|\n{''.join(rows)}"


def fields(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    """(path, type, meaning) of the fields of an object."""
    required = schema.get("required", schema["properties"])  # of evidence, none has to be there
    for name, form in schema["properties"].items():
        whole = f"{path}.{name}".lstrip(".")
        left_out = "" if name in required else "; may be missing"
        yield whole, type_of(form) + left_out, form.get("description", "").replace("|", "\\|")
        yield from inside(form, whole)


def inside(form: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    """The fields of what a field holds."""
    if "properties" in form:
        yield from fields(form, path)
    elif form.get("items"):
        yield from inside(form["items"], f"{path}[]")
    elif "patternProperties" in form:
        (values,) = form["patternProperties"].values()
        yield from inside(values, f"{path}.*")
    for one in form.get("anyOf", ()):
        yield from inside(one, path)


WORDS = {
    "string": "text",
    "boolean": "true or false",
    "integer": "whole number",
    "null": "null",
}
DEFINED = {
    "whole": "whole number",
    "float": "number",
    "seconds": "number",
    "probability": "number, or fraction",
    "row": "list of: number, or fraction; or object with `size`, `positive`, `entries`",
}


def type_of(form: Mapping[str, Any]) -> str:
    """The form of a value in words.

    >>> type_of({"anyOf": [{"enum": ["a", 1]}, {"type": "null"}]})
    '`"a"`, `1`; or null'
    >>> type_of({"type": "array", "items": {"$ref": "#/$defs/whole"}})
    'list of: whole number'
    """
    if "$ref" in form:
        name = form["$ref"].rpartition("/")[2]
        return DEFINED.get(name) or f"[{name}](#the-object-{name})"
    if "anyOf" in form:
        return "; or ".join(map(type_of, form["anyOf"]))
    if "enum" in form:
        return ", ".join(f"`{json.dumps(one)}`" for one in form["enum"])
    kind = form["type"]
    if isinstance(kind, list):
        return " or ".join(WORDS[one] for one in kind)
    if kind == "array":
        inner = form.get("prefixItems") or [form["items"]]
        return "list of: " + ", ".join(map(type_of, inner))
    if "patternProperties" in form:
        (values,) = form["patternProperties"].values()
        return f"object of: {type_of(values)}"
    if "pattern" in form and "/" in form["pattern"] and "0-9" in form["pattern"]:
        return "fraction" if "a-z" not in form["pattern"] else "text"
    return WORDS.get(kind, "object" if kind == "object" else "number")
