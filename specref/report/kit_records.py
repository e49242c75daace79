"""What `specref check` writes as JSON: its records, and the forms of the evidence of checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from specref import __version__
from specref.conformance.diagnosis import Diagnosis
from specref.conformance.report import Report
from specref.conformance.status import (
    CheckResult,
    Finding,
    Status,
    address_of_bug,
    address_of_finding,
)
from specref.conformance.summary import Summary
from specref.contracts.capabilities import Capabilities
from specref.contracts.table import CONTRACTS
from specref.report.forms import (
    FLOAT,
    FRACTION,
    IDS,
    PROBABILITY,
    SECONDS,
    TEXT,
    TOKENS,
    WHOLE,
    Form,
    Ids,
    Schema,
    Seconds,
    listed,
    one_of,
    optional,
    record,
    ref,
    said,
    table,
)

DIFFERING = record(
    tokens=TOKENS,
    expected=PROBABILITY,
    observed=said("Of an exact distribution what it has.", PROBABILITY),
    count=said(
        "Null where the distribution is exact; no whole number if the target continued blocks.",
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
        trials=said("Null where the distribution is exact.", optional(WHOLE)),
        blocks=said("At most 8, the furthest off first.", listed(ref("differing"))),
        others=said(
            "Sums over all other blocks.",
            record(number=WHOLE, expected=PROBABILITY, observed=PROBABILITY),
        ),
        first_tokens=said("At most 8, the furthest off first.", listed(ref("differing"))),
        rows=said(
            "p and q after each prefix of the first of the blocks; q is null where no draft may "
            "come, or the draft model is not known. Of more than 12 tokens only the size of the "
            "row, how many entries are positive, and the largest ones, by token.",
            listed(record(prefix=TOKENS, p=ref("row"), q=optional(ref("row")))),
        ),
    ),
}
EVIDENCE: dict[str, Schema] = {
    "trials": said("Blocks or texts that were drawn.", WHOLE),
    "alpha": said("The chance of a false positive in this check.", FLOAT),
    "detectable_tv": said(
        "A distribution at that distance is detected with probability 0.999.", optional(FLOAT)
    ),
    "usual_tv": said("A distribution at about that distance is usually detected.", FLOAT),
    "log10_evidence": said("Of the evidence against the distribution, its highest.", FLOAT),
    "log10_threshold": said("Where that decides.", FLOAT),
    "decision": said(
        "The first decision that the rule makes otherwise, and its line.",
        record(
            name=TEXT,
            drafts=listed(WHOLE),
            said=TEXT,
            compared=TEXT,
            number=TEXT,
            apart=FLOAT,
            made=TEXT,
            text=TEXT,
        ),
    ),
    "split": said(
        "In which situations it is wrong, and in which it is right, of the failure shown first; "
        "with how many drafts; known bugs of the situation; and where in a call the row is.",
        record(
            ("known", "place", "lookaheads"),
            text=TEXT,
            wrong=listed(TEXT),
            right=listed(TEXT),
            known=listed(TEXT),
            place=TEXT,
            lookaheads=listed(WHOLE),
        ),
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
    "difference": said("Where the distribution is furthest off.", ref("difference")),
    "seconds": said("Of drawing.", SECONDS),
    "needed": said(
        "Trials, drafts or tokens that decide; null if no number does.", optional(WHOLE)
    ),
    "total_variation": said(
        "From the target, exactly; a fraction where it was enumerated.", PROBABILITY
    ),
    "error_bound": said("By how much `total_variation` may be off.", FLOAT),
    "detectable_shift": said("The shift that would be detected in a situation.", FLOAT),
    "not_tried": said("What could not be tried, and why.", IDS),
    "tried": said("The shapes of a situation.", TEXT),
    "by_shape": said("{shape: the shift that would be detected}.", table(optional(FLOAT))),
    "pair": said("The pair of models of a situation.", TEXT),
    "calls": WHOLE,
    "tokens": WHOLE,
    "rows": said(
        "Rows that were drawn in a situation; of `joint/everywhere`, the rows at which the "
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
    "mean": said("Of numbers of accepted tokens.", FLOAT),
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
        "Its random numbers for acceptance; of `replay/edge-coins` the one that all of them were.",
        {"anyOf": [listed(FLOAT), FLOAT]},
    ),
    "race": said(
        "Its random numbers for the last token; likewise.", {"anyOf": [listed(FLOAT), FLOAT]}
    ),
    "log": said("What a figure was to be made of.", IDS),
    "hung": said("A call did not return in time.", one_of(True)),
    "traceback": said(
        "Of what the implementation raised, or where it was, in its own frames.", IDS
    ),
}
DEFINITIONS["evidence"] = said(
    "Numbers, by check; there may be more than these.",
    {"type": "object", "properties": EVIDENCE},
)
Evidence: TypeAlias = Annotated[Mapping[str, Any], Form(ref("evidence"))]


@dataclass(frozen=True)
class ResultRecord:
    id: Annotated[
        str, "`stage/name`.", Form({"type": "string", "pattern": "^[a-z-]+/[a-z0-9-]+$"})
    ]
    status: Status
    finding: Finding | None
    message: str
    seconds: Seconds
    evidence: Evidence


@dataclass(frozen=True)
class StratumRecord:
    id: str
    status: Status
    tried: Annotated[str | None, Form(optional(EVIDENCE["tried"]))]
    detectable_shift: float | None
    by_shape: Annotated[Mapping[str, Any] | None, Form(optional(EVIDENCE["by_shape"]))]


@dataclass(frozen=True)
class NotApplicable:
    other_contracts: Annotated[int, "How many checks belong to other contracts.", Form(WHOLE)]
    switched_off: Annotated[Mapping[str, Ids], "{reason: ids} of checks that do not apply."]


@dataclass(frozen=True)
class CandidateRecord:
    ids: Annotated[Ids, "Bugs of the zoo that the data do not tell apart."]
    strengths: Annotated[Sequence[float], "For each 1, or the share of blocks that it touches."]
    log10_ratio: Annotated[float, "Of the likelihood ratio to the next."]
    fits: bool
    resembles: bool
    stage: str
    cites: Annotated[Ids, "Where it was seen in public."]
    hint: str
    addresses: Annotated[Mapping[str, str], "{bug: where it is described}."]


@dataclass(frozen=True)
class DiagnosisRecord:
    known: bool
    text: str
    candidates: Sequence[CandidateRecord]


@dataclass(frozen=True)
class ReportRecord:
    specref: Annotated[str, "The version."]
    implementation: str
    version: Annotated[str, "Of the implementation; empty if not known."]
    contract: Annotated[str, Form(one_of(*CONTRACTS))]
    capabilities: Annotated[Capabilities, "What it claims."]
    seed: int
    alpha: Annotated[float, "The chance that a lossless sampler fails, over all checks."]
    detect_tv: Annotated[float, "The total variation that was to be found."]
    verdict: Annotated[str, "In a line."]
    summary: Annotated[Summary, "What is said first, in lines."]
    finding: Annotated[Finding | None, "The gravest of all."]
    address: Annotated[str | None, "Where that finding is described."]
    lossy: Annotated[bool, "Whether that is about the distribution."]
    exit_code: Annotated[int, Form(one_of(0, 1, 2))]
    complete: Annotated[bool, "False until the last check, and after an interruption."]
    counts: Annotated[
        Mapping[str, int],
        "Checks by status.",
        Form(record(**{str(one): WHOLE for one in Status})),
    ]
    told: Annotated[Ids, "What its names, annotations and defaults say that it is given."]
    parameters: Annotated[Ids, "What each of its parameters is given."]
    warnings: Ids
    not_tried: Annotated[Mapping[str, Ids], "{what could not be tried, and why: ids of checks}."]
    strata: Annotated[
        Sequence[StratumRecord], "The checks of situations once more, with what was tried."
    ]
    not_applicable: NotApplicable
    results: Annotated[Sequence[ResultRecord], "The checks, in order."]
    diagnosis: Annotated[DiagnosisRecord | None, "The known bugs that may explain a failure."]
    seconds: Seconds
    python: Annotated[str, "The version."]


@dataclass(frozen=True)
class NotRun:
    implementation: str
    status: Literal["not_run"]
    reason: str


def record_of(report: Report) -> ReportRecord:
    return ReportRecord(
        specref=__version__,
        implementation=report.name,
        version=report.version,
        contract=str(report.contract),
        capabilities=report.capabilities,
        seed=report.seed,
        alpha=report.alpha,
        detect_tv=report.detect_tv,
        verdict=report.verdict,
        summary=report.summary,
        finding=report.finding,
        address=None if report.finding is None else address_of_finding(report.finding),
        lossy=report.lossy,
        exit_code=report.exit_code,
        complete=report.complete,
        counts=report.counts,
        told=report.told,
        parameters=report.passed_on,
        warnings=report.warnings,
        not_tried=report.not_tried,
        strata=list(map(_stratum, report.strata)),
        not_applicable=NotApplicable(report.other_contracts, report.switched_off),
        results=list(map(_result, report.results)),
        diagnosis=_diagnosis(report.diagnosis),
        seconds=report.seconds,
        python=report.python,
    )


def _result(result: CheckResult) -> ResultRecord:
    told = result.finding, result.message, result.seconds, dict(result.evidence)
    return ResultRecord(result.id, result.status, *told)


def _stratum(result: CheckResult) -> StratumRecord:
    told = (result.evidence.get(key) for key in ("tried", "detectable_shift", "by_shape"))
    return StratumRecord(result.id, result.status, *told)


def _diagnosis(diagnosis: Diagnosis | None) -> DiagnosisRecord | None:
    if diagnosis is None:
        return None
    candidates = [
        CandidateRecord(
            candidate.ids,
            candidate.strengths,
            candidate.log10_ratio,
            candidate.fits,
            candidate.resembles,
            candidate.stage,
            candidate.cites,
            candidate.hint,
            {id_: address_of_bug(id_) for id_ in candidate.ids},
        )
        for candidate in diagnosis.candidates
    ]
    return DiagnosisRecord(diagnosis.known, str(diagnosis), candidates)
