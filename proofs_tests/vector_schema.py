"""As much of JSON Schema (draft 2020-12) as the schema of the vectors uses."""

import re

from proofs_tests.vector_files import SCHEMA

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def fits(value, schema):
    """Draft 2020-12, as much of it as the schema uses; an unknown keyword is an error."""
    for keyword, rule_ in schema.items():
        check = KEYWORDS[keyword]
        assert check(value, rule_, schema), (keyword, rule_, str(value)[:200])


def is_type(value, names, schema):
    return any(is_one_type(value, name) for name in ([names] if isinstance(names, str) else names))


def is_one_type(value, name):
    if name in ("integer", "number"):
        kinds = (int,) if name == "integer" else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def fits_properties(value, properties, schema):
    for name in value.keys() & properties.keys():
        fits(value[name], properties[name])
    return True


def fits_patterns(value, patterns, schema):
    for name, item in value.items():
        for pattern, one in patterns.items():
            if re.search(pattern, name):
                fits(item, one)
    return True


def nothing_else(value, allowed, schema):
    patterns = schema.get("patternProperties", {})
    names = value.keys() - schema.get("properties", {}).keys()
    return all(any(re.search(pattern, name) for pattern in patterns) for name in names)


def fits_items(value, items, schema):
    for item in value:
        fits(item, items)
    return True


def fits_one(value, schemas, schema):
    return sum(does_fit(value, one) for one in schemas) == 1


def does_fit(value, schema):
    try:
        fits(value, schema)
    except (AssertionError, AttributeError):
        return False
    return True


def fits_reference(value, name, schema):
    fits(value, SCHEMA["$defs"][name.removeprefix("#/$defs/")])
    return True


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
    "properties": fits_properties,
    "patternProperties": fits_patterns,
    "additionalProperties": nothing_else,
    "items": fits_items,
    "oneOf": fits_one,
    "$ref": fits_reference,
    "$schema": says_nothing,
    "$defs": says_nothing,
    "title": says_nothing,
}
