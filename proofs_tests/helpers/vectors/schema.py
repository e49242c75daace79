"""As much of JSON Schema (draft 2020-12) as the schema of the vectors uses."""

import re

from proofs_tests.helpers.vectors.files import SCHEMA

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def misfits(value, schema):
    """What of a value the schema refuses, each as (keyword, what it asks, the value).

    Draft 2020-12, as much of it as the schema uses; an unknown keyword is a `KeyError`.
    """
    if "type" in schema and not is_type(value, schema["type"], schema):
        return [("type", schema["type"], str(value)[:200])]
    found = []
    for keyword, rule_ in schema.items():
        if keyword in WITHIN:
            found += WITHIN[keyword](value, rule_)
        elif not KEYWORDS[keyword](value, rule_, schema):
            found.append((keyword, rule_, str(value)[:200]))
    return found


def is_type(value, names, schema):
    return any(is_one_type(value, name) for name in ([names] if isinstance(names, str) else names))


def is_one_type(value, name):
    if name in ("integer", "number"):
        kinds = (int,) if name == "integer" else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def in_properties(value, properties):
    names = value.keys() & properties.keys()
    return [one for name in names for one in misfits(value[name], properties[name])]


def in_patterns(value, patterns):
    return [
        one
        for name, item in value.items()
        for pattern, schema in patterns.items()
        if re.search(pattern, name)
        for one in misfits(item, schema)
    ]


def in_items(value, schema):
    return [one for item in value for one in misfits(item, schema)]


def in_reference(value, name):
    return misfits(value, SCHEMA["$defs"][name.removeprefix("#/$defs/")])


def nothing_else(value, allowed, schema):
    patterns = schema.get("patternProperties", {})
    names = value.keys() - schema.get("properties", {}).keys()
    return all(any(re.search(pattern, name) for pattern in patterns) for name in names)


def fits_one(value, schemas, schema):
    return sum(not misfits(value, one) for one in schemas) == 1


def says_nothing(value, text, schema):
    return True


KEYWORDS = {
    "type": is_type,
    "const": lambda value, one, schema: value == one,
    "enum": lambda value, some, schema: value in some,
    "pattern": lambda value, pattern, schema: bool(re.search(pattern, value)),
    "minimum": lambda value, least, schema: value >= least,
    "exclusiveMaximum": lambda value, most, schema: value < most,
    "required": lambda value, names, schema: set(names) <= value.keys(),
    "additionalProperties": nothing_else,
    "oneOf": fits_one,
    "$schema": says_nothing,
    "$defs": says_nothing,
    "title": says_nothing,
}
WITHIN = {
    "properties": in_properties,
    "patternProperties": in_patterns,
    "items": in_items,
    "$ref": in_reference,
}
