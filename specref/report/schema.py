"""The JSON Schema (draft 2020-12) of what `--json` writes, made of the dataclasses of results.

A wheel ships a file for each kind of report, for programs in other languages; this writes them:

    python -m specref.report.schema FOLDER

Objects have the fields that are listed and no others, but for the ``evidence`` of a check, which
may have more: those that are listed have that form. Floats that are not finite are strings. What
wings write is in the table ``reports`` of `specref.wings`.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

from specref.pairs import Profile
from specref.proofs.everywhere.comparison import Relation
from specref.report.everywhere import EverywhereRecord, Law
from specref.report.forms import (
    FLOAT,
    FRACTION,
    IDS,
    SECONDS,
    TEXT,
    TOKENS,
    WHOLE,
    YES,
    Reports,
    Schema,
    form_of,
    listed,
    one_of,
    optional,
    record,
    ref,
    said,
    table,
)
from specref.report.kit_records import DEFINITIONS as OF_CHECKS
from specref.report.kit_records import NotRun, ReportRecord
from specref.report.listing import SECTIONS
from specref.report.machine import write_json
from specref.report.rules import RuleRecord
from specref.statistics.campaign.planning import Plan
from specref.vectors.running import Result
from specref.verification import Verification
from specref.verification.everywhere import Answer
from specref.wings import loaded
from specref.zoo.planning import MutantPlan

CLAIM = record(
    proved=YES,
    for_each_text=said("Of each accepted text, not only in expectation.", YES),
    regions=WHOLE,
    open=WHOLE,
    other_is=said("The verdict on the other rule, where it has to be lossless.", optional(TEXT)),
)
GAP = record(
    rows=said("Other rows are uniform.", listed(ref("law"))),
    left=said("Expected accepted drafts, or tokens of several iterations.", FRACTION),
    right=FRACTION,
    texts=said("Of a formula: what it is about.", listed(TOKENS)),
)
COMPARISON = record(
    relation=one_of(*get_args(Relation)),
    target=IDS,
    drafter=IDS,
    lookahead=WHOLE,
    iterations=WHOLE,
    at_least=ref("claim"),
    at_most=ref("claim"),
    more=said("Rows at which the rule accepts more.", optional(ref("gap"))),
    less=said("Rows at which it accepts less.", optional(ref("gap"))),
    solver_calls=WHOLE,
    error_bits=WHOLE,
    seconds=SECONDS,
)
DEFINITIONS: dict[str, Schema] = {
    **OF_CHECKS,
    "report": form_of(ReportRecord),
    "law": form_of(Law),
    "claim": CLAIM,
    "gap": GAP,
    "comparison": COMPARISON,
}
AGAINST: dict[str, Schema] = {
    "rule": TEXT,
    "against": TEXT,
    "comparisons": listed(ref("comparison")),
}
UNREAD = said("Pairs of vocabularies that one of the rules cannot read.", IDS)
PACKAGE = record(
    name=TEXT,
    least=said("The oldest version that will do.", TEXT),
    found=said("The version that is installed, if any.", optional(TEXT)),
    state=one_of("installed", "too old", "missing"),
)
DOCTOR = record(
    complete=said("Whether all that specref needs is installed.", YES),
    specref=record(version=TEXT, folder=TEXT),
    python=said("The version.", TEXT),
    platform=TEXT,
    cores=optional(WHOLE),
    devices=said("Those of torch; none without torch.", IDS),
    core=said("What specref needs.", listed(PACKAGE)),
    parts=said(
        "Optional parts, by name.",
        table(
            record(
                gives=said("What it is for.", TEXT),
                packages=listed(PACKAGE),
                complete=YES,
                remedy=said("The command that installs it.", TEXT),
            )
        ),
    ),
    programs=said(
        "{program: where it is}, for samplers in other languages.", table(optional(TEXT))
    ),
)
LISTING = record(
    tuple(SECTIONS),  # those that were asked for
    **{
        name: said(str(row.__doc__).replace("``", ""), listed(form_of(row)))
        for name, rows in SECTIONS.items()
        for row in get_args(get_type_hints(rows)["return"])
    },
)
VECTORS = record(
    implementation=TEXT,
    algorithm=TEXT,
    last=said(
        "How the last token is drawn from random numbers; null: distributions were compared.",
        optional(TEXT),
    ),
    policies=said("Conventions that differ from those of the vectors.", IDS),
    dtype=TEXT,
    fits=said("The options under which every answer is right, if any; or empty.", TEXT),
    counts=said("Cases by status.", table(WHOLE)),
    results=listed(form_of(Result)),
)
PROFILE, SEED = form_of(Profile), form_of(int)
KINDS: Reports = {
    "check": (
        "specref check TARGET",
        {
            "anyOf": [
                ref("report"),
                record(reports=listed(ref("report"))),
                form_of(NotRun),
            ]
        },
    ),
    "prove": ("specref prove RULE", form_of(RuleRecord)),
    "prove-everywhere": ("specref prove RULE --everywhere", form_of(EverywhereRecord)),
    "prove-against": (
        "specref prove RULE --everywhere --against OTHER",
        record(**AGAINST, not_applicable=UNREAD),
    ),
    "verify": (
        "specref prove --all",
        record(**form_of(Verification)["properties"], ok=said("Whether every check holds.", YES)),
    ),
    "verify-everywhere": (
        "specref prove --all --everywhere",
        record(profile=PROFILE, seed=SEED, answers=listed(form_of(Answer))),
    ),
    "verify-dominance": (
        "specref prove --all --compare",
        record(
            profile=PROFILE,
            seed=SEED,
            answers=listed(
                record(
                    **AGAINST,
                    target=IDS,
                    drafter=IDS,
                    lookahead=WHOLE,
                    iterations=WHOLE,
                    sentence=said("The answer in words.", TEXT),
                    seconds=SECONDS,
                )
            ),
        ),
    ),
    "doctor": ("specref doctor", DOCTOR),
    "list": ("specref list", LISTING),
    "plan": (
        "specref plan",
        record(
            alpha=FLOAT,
            rate=said("Blocks that you sample in a second.", FLOAT),
            plans=said(
                "By fixture: of a distance, or of a bug.",
                {"anyOf": [listed(form_of(Plan)), listed(form_of(MutantPlan))]},
            ),
        ),
    ),
    "vectors": ("specref vectors --run TARGET", VECTORS),
    **{kind: told for wing in loaded("reports") for kind, told in wing.items()},
}
"""{kind: the command that writes it, its form}."""


def read_schema(kind: str) -> Schema:
    """The schema of a kind of report, with the definitions that it uses.

    Raises
    ------
    ValueError
        There is no such kind.

    Examples
    --------
    >>> read_schema("prove")["properties"]["proved"]["description"]
    'Cases that were proved.'
    """
    if kind not in KINDS:
        raise ValueError(f"kind = {kind!r}: expected one of {', '.join(KINDS)}")
    command, form = KINDS[kind]
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{command} --json FILE",
        **form,
        "$defs": {name: DEFINITIONS[name] for name in sorted(_used(form))},
    }
    copied: Schema = json.loads(json.dumps(schema))
    return copied


def write_schemas(folder: Path) -> None:
    """Write a file for each kind of report."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        write_json(str(folder / f"{kind}.json"), json.dumps(read_schema(kind), indent=1))


def _used(form: Any) -> set[str]:
    """The names of all definitions that a form refers to, directly or not."""
    named = set(re.findall(r'"#/\$defs/([\w ]+)"', json.dumps(form)))
    return named.union(*(_used(DEFINITIONS[name]) for name in named))


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
