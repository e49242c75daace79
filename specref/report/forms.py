"""The form of a type as JSON Schema (draft 2020-12), as `machine.as_json` writes its values.

Records are dataclasses or typed dictionaries. What a field means stands in the docstring of its
class or beside its type, as ``Annotated[int, "how many"]``; so does a form that its type does not
have.
"""

import inspect
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

Schema: TypeAlias = dict[str, Any]
Reports: TypeAlias = Mapping[str, tuple[str, Schema]]
"""{kind of JSON report: the command that writes it, its form}."""


def ref(name: str) -> Schema:
    """What `schema.DEFINITIONS` has under a name."""
    return {"$ref": f"#/$defs/{name}"}


def record(optional: Sequence[str] = (), /, **properties: Schema) -> Schema:
    """An object with these properties and no others."""
    required = [name for name in properties if name not in optional]
    closed: Schema = {"type": "object", "required": required, "properties": properties}
    return {**closed, "additionalProperties": False}


def listed(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def table(values: Schema, keys: str = ".*") -> Schema:
    return {"type": "object", "patternProperties": {keys: values}, "additionalProperties": False}


def one_of(*values: object) -> Schema:
    return {"enum": list(values)}


def optional(form: Schema) -> Schema:
    return {"anyOf": [form, {"type": "null"}]}


def said(text: str, form: Schema) -> Schema:
    """A form, and what it means."""
    return {"description": text, **form}


@dataclass(frozen=True, eq=False)  # hashed by identity, as unions of types ask for
class Form:
    """The form of a field whose type does not say it."""

    schema: Schema


TEXT: Schema = {"type": "string"}
YES: Schema = {"type": "boolean"}
FRACTION: Schema = {"type": "string", "pattern": "^-?[0-9]+(/[0-9]+)?$"}
WHOLE, FLOAT, PROBABILITY, SECONDS = map(ref, ("whole", "float", "probability", "seconds"))
IDS, TOKENS = listed(TEXT), listed(WHOLE)
SIMPLE: Mapping[Any, Schema] = {
    **{bool: YES, str: TEXT, int: {"type": "integer"}, float: FLOAT, Fraction: FRACTION},
}
Whole: TypeAlias = Annotated[int, Form(WHOLE)]
Seconds: TypeAlias = Annotated[float, Form(SECONDS)]
Exact: TypeAlias = Annotated[str, Form(FRACTION)]
"""A fraction, written "a/b"."""
Ids: TypeAlias = Sequence[str]


def form_of(kind: Any) -> Schema:
    """The form of a type.

    Examples
    --------
    >>> form_of(tuple[bool, ...])
    {'type': 'array', 'items': {'type': 'boolean'}}
    >>> form_of(Annotated[str | None, "a name"])["description"]
    'a name'
    """
    if kind in SIMPLE:
        return SIMPLE[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _annotated(*inner)
    if origin in (Union, types.UnionType):
        known = [form_of(one) for one in inner if one is not type(None)]
        form = known[0] if len(known) == 1 else {"anyOf": known}
        return optional(form) if type(None) in inner else form
    if origin is Literal:
        return one_of(*inner)
    if origin is tuple and inner[-1] is not ...:
        return {**listed(form_of(inner[0])), "minItems": len(inner), "maxItems": len(inner)}
    if origin in (tuple, Sequence):
        return listed(form_of(inner[0]))
    if origin in (Mapping, dict):
        return table(form_of(inner[1]))
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return one_of(*(one.value for one in kind))
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        return record(**{name: form_of(hint) for name, hint in hints.items()})
    if isinstance(kind, type) and is_dataclass(kind):
        return record(**_properties(kind))
    raise TypeError(f"kind = {kind!r}: expected a dataclass, or a type of its fields")


def _annotated(kind: Any, *notes: Any) -> Schema:
    given = [note.schema for note in notes if isinstance(note, Form)]
    form = given[-1] if given else form_of(kind)
    for note in notes:
        form = said(note, form) if isinstance(note, str) else form
    return form


def _properties(kind: type) -> dict[str, Schema]:
    hints, known = get_type_hints(kind, include_extras=True), attributes(kind)
    told = {name: text.replace("``", "`") for name, (_, text) in known.items()}
    forms = {one.name: form_of(hints[one.name]) for one in fields(kind)}
    return {x: said(told[x], y) if x in told else y for x, y in forms.items()}


def attributes(kind: type) -> dict[str, tuple[str, str]]:
    """{name: (type, what the docstring of a class says of this attribute, or of several)}.

    Examples
    --------
    >>> from specref.contracts.capabilities import Capabilities
    >>> attributes(Capabilities)["batch"]
    ('int or None', 'The largest batch it takes; None for any.')
    """
    _, _, body = (inspect.getdoc(kind) or "").partition("Attributes\n----------\n")
    found = re.findall(r"^([\w, ]+) : ([^\n]*)\n((?:    [^\n]*\n?)+)", body, flags=re.MULTILINE)
    return {
        name: (of, f"{names}: " * ("," in names) + " ".join(text.split()))
        for names, of, text in found
        for name in names.split(", ")
    }
