"""The JSON Schema (draft 2020-12) of what `--json` writes, made of the dataclasses of results.

A wheel ships a file for each kind of report, for programs in other languages; this writes them:

    python -m specref.report.schema FOLDER

Objects have the fields that are listed and no others, but for the ``evidence`` of a check, which
may have more: those that are listed have that form. Floats that are not finite are strings.
"""

import inspect
import json
import re
import sys
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from specref.conformance.status import Finding, Status
from specref.conformance.summary import Summary
from specref.contracts.capabilities import Capabilities
from specref.contracts.table import CONTRACTS
from specref.contrib.checkpoints.report import Verified
from specref.contrib.engines.board_report import Row
from specref.contrib.speed.report import SpeedRow
from specref.pairs import Profile
from specref.proofs.everywhere.comparison import Relation
from specref.proofs.everywhere.proof import Verdict
from specref.proofs.reached import Unreached
from specref.report.everywhere import FORMAT
from specref.report.listing import SECTIONS
from specref.report.machine import write_json
from specref.statistics.campaign.planning import Plan
from specref.vectors.results import Result
from specref.vectors.schema import Schema, listed, record, ref, table
from specref.verification import Enumerated, Verification
from specref.verification.everywhere import Answer
from specref.zoo.planning import MutantPlan

TEXT: Schema = {"type": "string"}
YES: Schema = {"type": "boolean"}
WHOLE, FLOAT, PROBABILITY, SECONDS = map(ref, ("whole", "float", "probability", "seconds"))
IDS, TOKENS = listed(TEXT), listed(WHOLE)
FRACTION: Schema = {"type": "string", "pattern": "^-?[0-9]+(/[0-9]+)?$"}


def one_of(*values: object) -> Schema:
    return {"enum": list(values)}


def optional(form: Schema) -> Schema:
    return {"anyOf": [form, {"type": "null"}]}


def said(text: str, form: Schema) -> Schema:
    """A form, and what it means."""
    return {"description": text, **form}


def form_of(kind: Any) -> Schema:
    """The form of a type as `machine.as_json` writes it: records are dataclasses.

    Examples
    --------
    >>> form_of(tuple[bool, ...])
    {'type': 'array', 'items': {'type': 'boolean'}}
    """
    simple = {bool: YES, str: TEXT, int: {"type": "integer"}, float: FLOAT, Fraction: FRACTION}
    if kind in simple:
        return simple[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (known,) = (one for one in inner if one is not type(None))
        return optional(form_of(known))
    if origin is Literal:
        return one_of(*inner)
    if origin is tuple and inner[-1] is ...:
        return listed(form_of(inner[0]))
    if origin is tuple:
        return {**listed(form_of(inner[0])), "minItems": len(inner), "maxItems": len(inner)}
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return one_of(*(one.value for one in kind))
    if isinstance(kind, type) and is_dataclass(kind):
        hints, told = get_type_hints(kind), attributes(kind)
        forms = {one.name: form_of(hints[one.name]) for one in fields(kind)}
        return record(**{x: said(told[x], y) if x in told else y for x, y in forms.items()})
    raise TypeError(f"kind = {kind!r}: expected a dataclass, or a type of its fields")


def attributes(kind: type) -> dict[str, str]:
    """{name: what the docstring of a class says of this attribute, or of several together}.

    Examples
    --------
    >>> attributes(Capabilities)["batch"]
    'The largest batch it takes; None for any.'
    >>> attributes(Row)["path"]
    'engine, path, contract: The path is the registered name.'
    """
    _, _, body = (inspect.getdoc(kind) or "").partition("Attributes\n----------\n")
    found = re.findall(r"^([\w, ]+) :[^\n]*\n((?:    [^\n]*\n?)+)", body, flags=re.MULTILINE)
    told = {names: " ".join(text.replace("``", "`").split()) for names, text in found}
    return {
        name: f"{names}: {text}" if "," in names else text
        for names, text in told.items()
        for name in names.split(", ")
    }


DIFFERING = record(
    tokens=TOKENS,
    expected=PROBABILITY,
    observed=said("Of an exact law what it has.", PROBABILITY),
    count=said(
        "Null where the law is exact; no whole number if the target continued blocks.",
        optional(FLOAT),
    ),
)
DEFINITIONS: dict[str, Schema] = {
    "whole": {"type": "integer", "minimum": 0},
    "float": {"anyOf": [{"type": "number"}, one_of("inf", "-inf", "nan")]},
    "probability": {"anyOf": [{"type": "number", "minimum": 0}, FRACTION]},
    "seconds": {"type": "number", "minimum": 0},
    "row": {
        "anyOf": [
            listed(PROBABILITY),
            record(size=WHOLE, positive=WHOLE, entries=table(PROBABILITY, "^[0-9]+$")),
        ]
    },
    "differing": DIFFERING,
    "difference": record(
        place=TEXT,
        context=TOKENS,
        lookahead=WHOLE,
        of=one_of("blocks", "texts"),
        trials=said("Null where the law is exact.", optional(WHOLE)),
        blocks=said("At most 8, the furthest off first.", listed(ref("differing"))),
        others=said(
            "Sums over all other blocks.",
            record(number=WHOLE, expected=PROBABILITY, observed=PROBABILITY),
        ),
        first_tokens=said("At most 8, the furthest off first.", listed(ref("differing"))),
        rows=said(
            "p and q after each prefix of the first of the blocks; q is null where no draft may "
            "come, or the drafter is not known. Of more than 12 tokens only the size of the row, "
            "how many entries are positive, and the largest ones, by token.",
            listed(record(prefix=TOKENS, p=ref("row"), q=optional(ref("row")))),
        ),
    ),
    "witness": record(
        format=one_of(FORMAT),
        rule=TEXT,
        target=IDS,
        drafter=IDS,
        eos=optional(TEXT),
        lookahead=WHOLE,
        rows=said("Other rows are uniform.", listed(ref("law"))),
        conditions=said("Where the rule is lossy like this.", IDS),
        total_variation=said("Null where the rule raises.", optional(FRACTION)),
        error=optional(TEXT),
    ),
    "law": record(of=one_of("p", "q"), after=TOKENS, row=listed(FRACTION)),
}
EVIDENCE: dict[str, Schema] = {
    "trials": said("Blocks or texts that were drawn.", WHOLE),
    "alpha": said("The chance of a false alarm in this check.", FLOAT),
    "detectable_tv": said(
        "A law that is so far off would have been found, 999 times in 1,000.", optional(FLOAT)
    ),
    "usual_tv": said("A law about so far off is usually found.", FLOAT),
    "log10_evidence": said("Of the evidence against the law, its highest.", FLOAT),
    "log10_threshold": said("Where that decides.", FLOAT),
    "decision": said(
        "The first decision that the rule makes otherwise, and its line.",
        record(name=TEXT, drafts=listed(WHOLE), said=TEXT, compared=TEXT, number=TEXT, text=TEXT),
    ),
    "split": said(
        "In which situations it is wrong, and in which it is right, of the failure shown first.",
        record(text=TEXT, wrong=listed(TEXT), right=listed(TEXT)),
    ),
    "explanation": said("Why it may have come about, of the first failure.", TEXT),
    "looks": said(
        "How it grew: trials, and log10 of the evidence after so many; of two modes of "
        "an engine the highest until then.",
        listed({"type": "array", "prefixItems": [WHOLE, FLOAT], "items": False, "minItems": 2}),
    ),
    "log10_dependence_whatever_the_law": said(
        "Of the evidence that rows depend on each other; null if that was not asked.",
        optional(FLOAT),
    ),
    "tv": said(
        "The total variation by place: estimate, lower and upper bound.",
        table({**listed(FLOAT), "minItems": 3, "maxItems": 3}),
    ),
    "suspects": said("The bets that won most.", IDS),
    "hits": said("How blocks with drafts ended.", record(bonus=WHOLE, residual=WHOLE)),
    "lengths": said("How many blocks with drafts had so many tokens.", table(WHOLE, "^[0-9]+$")),
    "difference": said("Where the law is furthest off.", ref("difference")),
    "seconds": said("Of drawing.", SECONDS),
    "needed": said(
        "Trials, drafts or tokens that decide; null if no number does.", optional(WHOLE)
    ),
    "total_variation": said(
        "From the target, exactly; a fraction where it was enumerated.", PROBABILITY
    ),
    "error_bound": said("By how much `total_variation` may be off.", FLOAT),
    "detectable_shift": said("The shift that would have been found in a stratum.", FLOAT),
    "not_tried": said("What could not be tried, and why.", IDS),
    "tried": said("The shapes of a stratum.", TEXT),
    "by_shape": said("{shape: the shift that would have been found}.", table(optional(FLOAT))),
    "pair": said("The pair of models of a stratum.", TEXT),
    "calls": WHOLE,
    "tokens": WHOLE,
    "rows": said(
        "Rows that were drawn in a stratum; of `joint/everywhere`, the rows at which the "
        "rule is lossy.",
        {"type": ["integer", "string"]},
    ),
    "conditions": said("Where a rule is lossy like this.", IDS),
    "trace": said("A random path, decision by decision.", TEXT),
    "texts": said("Texts that an engine gave.", WHOLE),
    "proposed": said("Drafts that it says it had; null if it does not say.", optional(WHOLE)),
    "accepted": said("Drafts that it says it kept.", WHOLE),
    "taken": said("Texts of an earlier run.", WHOLE),
    "printed": said("The first line that it printed to standard output.", TEXT),
    "mean": said("Of accepted lengths.", FLOAT),
    "expected": said("By the closed form of the declared rule.", FLOAT),
    "kept": said("Drafts that were kept.", WHOLE),
    "drafted": said("Drafts that there were.", WHOLE),
    "bound": said("The share that no lossless rule exceeds.", FLOAT),
    "chance": said("Of an edge, for each draw.", FLOAT),
    "per_million_tokens": said("The same with all draws that a token takes.", FLOAT),
    "events": said("All edges that were met.", IDS),
    "distance": said("Between rows of a call that are alike.", WHOLE),
    "resemblance": said("How much more alike they are than independent ones, as a mean.", FLOAT),
    "row": said("Of the batch.", WHOLE),
    "block": said("What that row gave.", listed({"type": "integer"})),
    "draft_tokens": said("Of that row; -1 is none.", listed({"type": "integer"})),
    "lens": said("Its drafts.", WHOLE),
    "parents": said("Of its tree.", listed({"type": "integer"})),
    "target_probs": said("Its rows of p; left out for large vocabularies.", listed(listed(FLOAT))),
    "draft_probs": said("Its rows of q.", optional(listed(listed(FLOAT)))),
    "accept": said(
        "Its coins for acceptance; of `replay/edge-coins` the one that all of them were.",
        {"anyOf": [listed(FLOAT), FLOAT]},
    ),
    "race": said("Its coins for the last token; likewise.", {"anyOf": [listed(FLOAT), FLOAT]}),
    "log": said("What a figure was to be made of.", IDS),
    "hung": said("A call did not return in time.", one_of(True)),
    "traceback": said(
        "Of what the implementation raised, or where it was, in its own frames.", IDS
    ),
}
CANDIDATE = record(
    ids=said("Bugs of the zoo that the data do not tell apart.", IDS),
    strengths=said("For each 1, or the share of blocks that it touches.", listed(FLOAT)),
    log10_ratio=said("Of the likelihood ratio to the next.", FLOAT),
    fits=YES,
    resembles=YES,
    stage=TEXT,
    cites=said("Where it was seen in public.", IDS),
    hint=TEXT,
    addresses=said("{bug: where it is described}.", table(TEXT)),
)
REPORT = record(
    specref=said("The version.", TEXT),
    implementation=TEXT,
    version=said("Of the implementation; empty if not known.", TEXT),
    contract=one_of(*CONTRACTS),
    capabilities=said("What it claims.", form_of(Capabilities)),
    seed={"type": "integer"},
    alpha=said("The chance that a lossless sampler fails, over all checks.", FLOAT),
    detect_tv=said("The total variation that was to be found.", FLOAT),
    verdict=said("In a line.", TEXT),
    summary=said("What is said first, in lines.", form_of(Summary)),
    finding=said("The gravest of all.", optional(form_of(Finding))),
    address=said("Where that finding is described.", optional(TEXT)),
    lossy=said("Whether that is about the law.", YES),
    exit_code=one_of(0, 1, 2),
    complete=said("False until the last check, and after an interruption.", YES),
    counts=said("Checks by status.", record(**{str(one): WHOLE for one in Status})),
    told=said("What its names, annotations and defaults say that it is given.", IDS),
    parameters=said("What each of its parameters is given.", IDS),
    warnings=IDS,
    not_tried=said("{what could not be tried, and why: ids of checks}.", table(IDS)),
    strata=said(
        "The checks of strata once more, with what was tried.",
        listed(
            record(
                id=TEXT,
                status=form_of(Status),
                tried=optional(EVIDENCE["tried"]),
                detectable_shift=optional(FLOAT),
                by_shape=optional(EVIDENCE["by_shape"]),
            )
        ),
    ),
    not_applicable=record(
        other_contracts=said("How many checks belong to other contracts.", WHOLE),
        switched_off=said("{reason: ids} of checks that do not apply.", table(IDS)),
    ),
    results=said(
        "The checks, in order.",
        listed(
            record(
                id=said("`stage/name`.", {"type": "string", "pattern": "^[a-z-]+/[a-z0-9-]+$"}),
                status=form_of(Status),
                finding=optional(form_of(Finding)),
                message=TEXT,
                seconds=SECONDS,
                evidence=ref("evidence"),
            )
        ),
    ),
    diagnosis=said(
        "The known bugs that may explain a failure.",
        optional(record(known=YES, text=TEXT, candidates=listed(CANDIDATE))),
    ),
    seconds=SECONDS,
    python=said("The version.", TEXT),
)
DEFINITIONS |= {
    "evidence": said(
        "Numbers, by check; there may be more than these.",
        {"type": "object", "properties": EVIDENCE},
    ),
    "report": REPORT,
}
NOT_RUN = record(implementation=TEXT, status=one_of("not_run"), reason=TEXT)
NEVER_RAN = said(
    "Lines of the rule's file of which nothing ran, and lines of which a part did not.",
    optional(form_of(Unreached)),
)
PROOF = record(
    rule=TEXT,
    never_ran=NEVER_RAN,
    proved=said("Cases that were proved.", WHOLE),
    not_applicable=said("Cases with a text that a tokeniser cannot read.", WHOLE),
    not_run=said("Cases over two vocabularies, without --pairs all.", WHOLE),
    paths=said("Random paths that were enumerated.", WHOLE),
    too_large=said("Cases that were not judged.", WHOLE),
    cut_off=said("Cases that were not reached.", WHOLE),
    outside_chance=said("Why the rule cannot be judged, if it cannot.", optional(TEXT)),
    enumerated=said("What was enumerated, by situation.", listed(form_of(Enumerated))),
    refuted=said(
        "The counterexamples, the smallest first.",
        listed(
            record(
                case=TEXT,
                total_variation=FRACTION,
                difference=TEXT,
                block=TOKENS,
                shares=said(
                    "What the probability of `difference` is the sum of: the verdicts on drafts "
                    "and the last draw that lead there.",
                    listed(record(branch=TEXT, probability=FRACTION)),
                ),
                trace=IDS,
            )
        ),
    ),
    raised=listed(record(case=TEXT, type=TEXT, error=TEXT)),
)
EVERYWHERE = record(
    rule=TEXT,
    never_ran=NEVER_RAN,
    not_applicable=said("Pairs of vocabularies that the rule cannot read.", IDS),
    proofs=listed(
        record(
            verdict=one_of(*get_args(Verdict)),
            target=IDS,
            drafter=IDS,
            lookahead=WHOLE,
            outcomes=said("Completed blocks that there are.", WHOLE),
            regions=said("Sets of rows on which all paths run alike, over all outcomes.", WHOLE),
            lossy=said("Regions with rows at which the rule is lossy.", WHOLE),
            open=said("Pieces of which nothing is known.", WHOLE),
            with_equations=said("Pieces on which an equation holds.", WHOLE),
            paths=WHOLE,
            flips=said("Conditions that were flipped.", WHOLE),
            solver_calls=WHOLE,
            error_bits=said("Numbers were told apart rightly, but for 2^-bits.", WHOLE),
            seconds=SECONDS,
            witness=optional(ref("witness")),
        )
    ),
)
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
DEFINITIONS |= {"claim": CLAIM, "gap": GAP, "comparison": COMPARISON}
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
    claims=said(
        "What --declare takes.",
        listed(record(name=TEXT, values=TEXT, default=TEXT, text=TEXT)),
    ),
    checks=said(
        "What --only takes.",
        listed(
            record(
                id=TEXT,
                stage=TEXT,
                contracts=IDS,
                statistical=said("Whether it spends a share of alpha.", YES),
                text=TEXT,
            )
        ),
    ),
    contracts=said("What --contract takes.", listed(record(name=TEXT, parameters=IDS, text=TEXT))),
    names=said(
        "What is judged by its name.",
        listed(
            record(
                name=TEXT,
                contract=TEXT,
                installed=YES,
                missing=said("Packages that it lacks.", IDS),
                remedy=said("The command that installs it.", TEXT),
                text=TEXT,
            )
        ),
    ),
    rules=said(
        "What --rule takes.",
        listed(
            record(
                name=TEXT,
                contracts=said("Under which it may be declared.", IDS),
                papers=IDS,
                vocabularies=TEXT,
                lossless=YES,
                parts=said("{part: whether specref has it for this rule}.", table(YES)),
                text=TEXT,
            )
        ),
    ),
    findings=said("What a report may say.", listed(record(name=TEXT, text=TEXT, address=TEXT))),
    bugs=said(
        "What a diagnosis may name.",
        listed(
            record(
                name=TEXT,
                rule=TEXT,
                lossless=YES,
                formula=TEXT,
                text=said("How it shows.", TEXT),
                fix=TEXT,
                seen_in=IDS,
                address=TEXT,
            )
        ),
    ),
)
PSI = record(
    text=TEXT,
    identity=said("What of a token is compared.", one_of("string", "bytes")),
    vocabulary=said("Its name, and how large it is.", TEXT),
    decompositions=said("How many token sequences spell the text.", WHOLE),
    possible=said("How many ways there are to cut the text.", WHOLE),
    n_max=said("The most tokens that one of them has.", WHOLE),
    forwards=said("Contexts at which all their masses need the drafter.", WHOLE),
    listed=said("Decompositions, those of long tokens first.", listed(IDS)),
    left_out=said("Decompositions that are not listed.", WHOLE),
)
VECTORS = record(
    implementation=TEXT,
    algorithm=TEXT,
    last=said("How the last token is drawn from coins; null: laws were compared.", optional(TEXT)),
    policies=said("Conventions that differ from those of the vectors.", IDS),
    dtype=TEXT,
    fits=said("The options under which every answer is right, if any; or empty.", TEXT),
    counts=said("Cases by status.", table(WHOLE)),
    results=listed(form_of(Result)),
)
BOARD: dict[str, Schema] = {
    "rows": listed(form_of(Row)),
    "stronger": said("On the scoreboard: earlier rows with more power.", listed(form_of(Row))),
    "undecided": said("On the scoreboard: later runs without a verdict.", listed(form_of(Row))),
    "unfinished": said("On the scoreboard: the run that was interrupted, if one was.", TEXT),
}
PROFILE = form_of(Profile)
SEED: Schema = {"type": "integer"}
KINDS: Mapping[str, tuple[str, Schema]] = {
    "check": (
        "specref check TARGET",
        {"anyOf": [ref("report"), record(reports=listed(ref("report"))), NOT_RUN]},
    ),
    "engines": ("specref check --installed", record(**BOARD)),
    "prove": ("specref prove RULE", PROOF),
    "prove-everywhere": ("specref prove RULE --everywhere", EVERYWHERE),
    "prove-against": (
        "specref prove RULE --everywhere --against OTHER",
        record(**AGAINST, not_applicable=UNREAD),
    ),
    "verify": (
        "specref verify",
        record(**form_of(Verification)["properties"], ok=said("Whether every check holds.", YES)),
    ),
    "verify-everywhere": (
        "specref verify --everywhere",
        record(profile=PROFILE, seed=SEED, answers=listed(form_of(Answer))),
    ),
    "verify-dominance": (
        "specref verify --dominance",
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
    "zoo": (
        "specref zoo",
        record(
            seed=SEED,
            detect_tv=FLOAT,
            counts=record(mutants=WHOLE, killed=WHOLE, controls=WHOLE, passed=WHOLE),
            problems=said("What is not as it should be.", IDS),
            idle=said("Checks that fail no mutant.", IDS),
            missed_by_fixture=said("{fixture: mutants that its campaign passes}.", table(IDS)),
            rows=listed(
                record(
                    id=TEXT,
                    rule=TEXT,
                    stage=said("Where it departs from the rule.", TEXT),
                    lossless=said("Whether it is a control.", YES),
                    formula=TEXT,
                    cites=said("Where it was seen in public.", IDS),
                    total_variation=said("The largest on the pairs of its rule.", optional(FLOAT)),
                    killers=said("Checks that fail it.", IDS),
                    survives=said("Checks that pass it.", IDS),
                )
            ),
        ),
    ),
    "zoo-triggers": (
        "specref zoo --triggers",
        record(
            seed=SEED,
            share=said("Of the bugs that were found.", FLOAT),
            missed=listed(listed(TEXT)),
            rows=listed(
                record(
                    trigger=said("The situation in which the bug acts.", TEXT),
                    kind=TEXT,
                    bug=TEXT,
                    killers=said("Strata that fail it.", IDS),
                    elsewhere=said(
                        "The check that fails it, where no stratum does.", optional(TEXT)
                    ),
                )
            ),
        ),
    ),
    "build-model": (
        "specref build-model --law LAW --out FOLDER",
        record(
            folders=said("{name of a law: its folder}.", table(TEXT)),
            formats=IDS,
            architecture=TEXT,
            verified=said(
                "With --verify, each engine on each checkpoint.",
                listed(
                    record(
                        **form_of(Verified)["properties"],
                        status=one_of("passed", "failed", "not_run"),
                    )
                ),
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
    "plan-speed": (
        "specref plan speed",
        record(
            acceptance=said(
                "Of a draft: one for all positions, or one for each.", listed(FRACTION)
            ),
            cost=said("The time of a draft over that of a target pass.", FRACTION),
            operations_ratio=said("The same for arithmetic operations.", FRACTION),
            best_lookahead=WHOLE,
            is_faster=said("Whether any lookahead is faster than none.", YES),
            rows=listed(form_of(SpeedRow)),
        ),
    ),
    "psi": ("specref psi TEXT", PSI),
    "vectors": ("specref vectors --run TARGET", VECTORS),
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
