"""docs/json-reports.md: the fields of what `--json` writes, from the schemas of the package.

Run from the root of a checkout, after `python -m specref.report.schema`:

    python -m proofs_tests.pages.json_reports
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from proofs_tests.pages.console_blocks import ROOT
from specref.report.schema import KINDS, read_schema

PAGE = ROOT / "docs" / "json-reports.md"
HEAD = """# JSON reports

What `--json FILE` writes, field by field, for people and for programs that read it. The tables
come from [JSON Schemas](../specref/report/schemas) (draft 2020-12), which are part of the package;
this page is written by `python -m proofs_tests.pages.json_reports`, and a test compares. Each
object has all fields of its table and no others, unless it says otherwise. The changelog names
each change.

Exact numbers are strings, `"3/8"`; floats are numbers, and `"inf"`, `"-inf"` or `"nan"` where they
are none. `[]` in a name is each entry of a list, `.*` each value of an object whose keys are data.

A report of `specref check` is written again after each check, with `"complete": false` until the
last. Here one is held against its schema, with the package `jsonschema`:

```python
import json

import specref
from jsonschema import Draft202012Validator
from specref.examples.correct import verify
from specref.report.kit import kit_record
from specref.report.machine import as_json
from specref.report.schema import read_schema

report = specref.check(verify, only=["smoke", "joint/probed"])
record = json.loads(as_json(kit_record(report)))  # or json.load of the file
Draft202012Validator(read_schema("check")).validate(record)
assert record["exit_code"] == 0
```

Statuses, findings and exit codes are in
[judge-your-sampler.md](judge-your-sampler.md#3-read-the-verdict). Of a case
of `specref check`, `specref replay CASE.json` writes what that does, with one check;
of rows that `specref prove` saved it writes none. No other command has `--json`.

| command | schema |
|---|---|
"""
SEVERAL = """
An object [report](#the-object-report); where TARGET stands for several implementations, all of
them; or why there is none:
"""


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    for kind, (command, _) in KINDS.items():
        lines.append(f"| `{command}` | [{kind}.json](../specref/report/schemas/{kind}.json) |\n")
    known: set[str] = set()
    for kind, (command, _) in KINDS.items():
        schema = read_schema(kind)
        lines.append(f"\n## {command}\n")
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

    Examples
    --------
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


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
