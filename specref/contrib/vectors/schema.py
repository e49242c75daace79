"""The JSON schema of the files (draft 2020-12): nothing optional is missing, nothing is extra."""

from specref.contrib.vectors.collecting import PUBLISHED
from specref.contrib.vectors.notes import NOTES
from specref.report.forms import TEXT, Schema, listed, record, ref, table
from specref.vectors.reading import POLICIES, SCHEMA_VERSION

ID = r"^[a-z]+/[a-z]+(-[a-z]+)*/[0-9]{3}$"
BOTH = (listed(ref("exact_law")), listed(ref("float_law")))
OUTCOME: dict[str, Schema] = {
    "accepted": ref("whole"),
    "count": ref("whole"),
    "last": {"enum": ["residual", "bonus"]},
    "law": ref("exact_law"),
    "tokens": record(inverse=ref("block"), descending=ref("block"), race=ref("block")),
}
HEAD: dict[str, Schema] = {
    "id": {"type": "string", "pattern": ID},
    "comment": TEXT,
    "cites": listed(TEXT),
    "flags": listed({"enum": list(NOTES)}),
}
DEFINITIONS: dict[str, Schema] = {
    "whole": {"type": "integer", "minimum": 0},
    "rational": {"type": "string", "pattern": "^(0|[1-9][0-9]*)/[1-9][0-9]*$"},
    "double": {"type": "number", "minimum": 0},
    "uniform": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    "block": listed(ref("whole")),
    "exact_law": listed(ref("rational")),
    "float_law": listed(ref("double")),
    "laws": record(exact=BOTH[0], float64=BOTH[1]),
    "model": record(
        tokens=listed(TEXT),
        eos={"type": ["string", "null"]},
        order={"enum": [0, 1]},
        exact=table(ref("exact_law"), "^[0-9]*$"),
        float64=table(ref("float_law"), "^[0-9]*$"),
    ),
    "draw": record(site=TEXT, law=ref("exact_law"), choice=ref("whole"), u=ref("uniform")),
    "accept": record(
        site=TEXT, probability=ref("rational"), choice={"type": "boolean"}, u=ref("uniform")
    ),
    "verify": record(
        ("either",),
        level={"const": "verify"},
        **HEAD,
        precision={"enum": ["float16", "float32", "float64"]},
        p=ref("laws"),
        q={"oneOf": [{"type": "null"}, ref("laws")]},
        draft_tokens=listed({"type": "integer", "minimum": -1}),
        coins=record(
            accept=listed(ref("uniform")), final=ref("uniform"), race=listed(ref("double"))
        ),
        expected=record(**OUTCOME),
        either=listed(record(policies=listed({"enum": list(POLICIES)}), **OUTCOME)),
    ),
    "step": record(
        level={"const": "step"},
        **HEAD,
        target=ref("model"),
        drafter=ref("model"),
        context=ref("block"),
        lookahead=ref("whole"),
        law=table(ref("rational"), "^[0-9]+( [0-9]+)*$"),
        replays=listed(
            record(
                sites=listed({"oneOf": [ref("draw"), ref("accept")]}),
                weight=ref("rational"),
                tokens=ref("block"),
            )
        ),
    ),
}


def build_schema() -> Schema:
    """The schema of a whole file of vectors."""
    note = record(mechanism=TEXT, effect=TEXT, links=listed(TEXT))
    file = record(
        algorithm={"enum": list(PUBLISHED)},
        schema={"const": "schema.json"},
        schema_version={"const": SCHEMA_VERSION},
        spec_version={"type": "string", "pattern": r"^1\.[0-9]+$"},
        generator=record(
            name=TEXT,
            source=TEXT,
            cases_sha256={"type": "string", "pattern": "^[0-9a-f]{64}$"},
        ),
        notes=table(note, "^[A-Z][A-Za-z]+$"),
        retired=table(TEXT, ID),
        cases=listed({"oneOf": [ref("verify"), ref("step")]}),
    )
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "specref test vectors",
    }
    return {**head, **file, "$defs": DEFINITIONS}
