"""What checks ask of samplers at a seed, and what they say of these.

    python -m proofs_tests.helpers.recorded

writes the record again: of the tables of strata, and of the subjects. Each line of these has the
status of a check, how many calls it made, a digest of the arguments of these, and one of its
message and evidence. A change of any of them changes what earlier verdicts, detectable distances
and counts of false alarms were of. It is made with the bugs, and the share of alpha,
that are on record: what is added to the zoo or to the checks changes no line of it.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from proofs_tests.helpers.bugs.verifiers import BUGS, clean
from proofs_tests.helpers.engines import LOSSY, Speculating, engine, sampling
from specref.adapters import reference
from specref.algorithms import standard
from specref.arrays import Floats, Ints
from specref.chance import Sampled
from specref.conformance import trial
from specref.conformance.checks import CHECKS
from specref.conformance.options import CheckOptions
from specref.conformance.strata.loops import LOOP_STRATA
from specref.conformance.strata.table import STEP_STRATA, STRATA, TEXT_STRATA, TREE_STRATA
from specref.conformance.suite import prepare
from specref.contracts.table import contract_named
from specref.models import Model
from specref.report.machine import as_json
from specref.theory.metrics import METRICS
from specref.vocabulary import Tokens
from specref.zoo import ALL
from specref.zoo.batch_loops import as_generate, batched

RECORD = Path(__file__).with_name("recorded.json")
PASSING = {"at", "decision", "explanation"}


def lasting(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence without the lines of the sampler, and without words on what is seen elsewhere."""
    return {name: value for name, value in evidence.items() if name not in PASSING}


class Subject(NamedTuple):
    """What is checked, under which contract, by which checks."""

    contract: str
    implementation: Callable[..., Any]
    only: tuple[str, ...] | None = None
    trials: int = 200
    claims: Mapping[str, Any] = MappingProxyType({})


def drafted(drafter: Model, context: Tokens, lookahead: int, rng: np.random.Generator) -> Any:
    """Drafts, with the laws that they come from."""
    tokens: Tokens = ()
    rows = []
    for _ in range(lookahead):
        rows.append(np.array(drafter.next_token((*context, *tokens)), dtype=np.float64))
        tokens = (*tokens, int(rng.choice(len(rows[-1]), p=rows[-1])))
    return tokens, np.array(rows)


def generated(
    target: Model, drafter: Model, context: Tokens, tokens: int, rng: np.random.Generator
) -> Tokens:
    """Text by standard speculative decoding with two drafts."""
    text, chance = (), Sampled(rng)
    while len(text) < tokens and not target.vocabulary.ends(text):
        text += standard.step(target, drafter, (*context, *text), 2, chance)
    return text[:tokens]


def by_argmax(p: Floats, q: Floats | None, drafts: Ints, *, rng: Any) -> tuple[Ints, Ints]:
    """At temperature 0: drafts are kept while they are the argmax."""
    best, rows = p.argmax(axis=2), np.arange(len(drafts))
    kept = np.logical_and.accumulate(drafts == best[:, :-1], axis=1).sum(axis=1)
    tokens = np.pad(
        np.where(np.arange(drafts.shape[1]) < kept[:, None], drafts, -1), ((0, 0), (0, 1))
    )
    tokens[:, -1] = -1
    tokens[rows, kept] = best[rows, kept]
    return tokens, kept + 1


def step_by_argmax(
    target: Model, drafter: Model, context: Tokens, lookahead: int, rng: np.random.Generator
) -> Tokens:
    """The same for models, one draft after the other."""
    block: Tokens = ()
    for place in range(lookahead + 1):
        after = (*context, *block)
        block += (int(np.argmax(target.next_token(after))),)
        ended = target.vocabulary.ends(block) or place == lookahead
        if ended or block[-1] != int(np.argmax(drafter.next_token(after))):
            break
    return block


def of_logits(p: Floats, q: Floats | None, drafts: Ints, *, rng: Any) -> tuple[Ints, Ints]:
    """Rows are given as logits in float32."""
    return clean(softmax(p), None if q is None else softmax(q), drafts, rng=rng)


def softmax(logits: Floats) -> Floats:
    weights = np.exp(logits.astype(np.float64) - logits.max(axis=2, keepdims=True))
    return weights / weights.sum(axis=2, keepdims=True)


SAMPLED = ("smoke", "boundary", "joint", "independence", "iterations")
SUBJECTS: Mapping[str, Subject] = {
    "verify, without coins": Subject("verify", clean, SAMPLED),
    "verify": Subject("verify", reference.verify),
    "verify, lenient": Subject(
        "verify", BUGS["lenient"](), ("joint", "acceptance", "strata/one-draft")
    ),
    "verify, rows share noise": Subject(
        "verify", BUGS["rows share noise"](), ("smoke", "independence", "strata/batches-to-16")
    ),
    "verify, greedy": Subject("verify", by_argmax, claims={"greedy": True}),
    "verify, logits": Subject(
        "verify",
        of_logits,
        ("smoke", "boundary", "joint/wide", "acceptance/wide", "strata/large-logits"),
        claims={"inputs": "logits", "dtype": "float32", "tolerance": 1e-6},
    ),
    "ragged": Subject(
        "ragged",
        reference.verify_ragged,
        ("smoke", "boundary", "replay", "joint/wide", "strata/bare"),
    ),
    "tree": Subject("tree", reference.verify_tree),
    "step": Subject("step", reference.step),
    "step, greedy": Subject("step", step_by_argmax, claims={"greedy": True}),
    "generate": Subject("generate", generated),
    "generate-batch": Subject("generate-batch", as_generate(batched())),
    "drafter": Subject("drafter", drafted),
    "metrics": Subject("metrics", METRICS["acceptance_rate"]),
    "text": Subject("text", engine(Speculating(), plain=sampling()), trials=10_000),
    "text, lossy": Subject("text", engine(LOSSY["residual is p"]), trials=10_000),
}
TABLES = "strata, as the tables have them"
KNOWN = "what was known"
"""When the record was made: bugs that campaigns bet on, and how many checks share alpha."""
LARGE = 1 << 17
OF_A_RUN = ("seconds", "traceback")
LEFT_OUT = ("strata/late-calls", "strata/large-call")


def known_today() -> dict[str, Any]:
    """The bugs of the zoo, and the number of checks that share alpha under each contract."""
    sharing = {one.contract: sharing_alpha(one.contract) for one in SUBJECTS.values()}
    return {"bugs": " ".join(sorted(ALL)), "sharing": sharing}


def sharing_alpha(contract: str) -> int:
    return sum(one.statistical and one.is_for(contract_named(contract)) for one in CHECKS)


def recorded(subject: str, known: Mapping[str, Any]) -> dict[str, str]:
    """{check: what is on record of it}, with the bugs and the share of alpha of that time."""
    with patch.object(trial, "bugs_of", only_known(trial.bugs_of, known["bugs"].split())):
        return asked_and_said(subject, known)


def only_known(bugs_of: Callable[[str], Mapping[str, Any]], ids: Collection[str]) -> Any:
    return lambda rule: {id_: bug for id_, bug in bugs_of(rule).items() if id_ in ids}


def asked_and_said(subject: str, known: Mapping[str, Any]) -> dict[str, str]:
    contract, implementation, only, trials, claims = SUBJECTS[subject]
    calls: list[str] = []
    heard = implementation if contract == "text" else listening(implementation, calls)
    options = CheckOptions(
        contract=contract, only=only, trials=trials, seed=1, timeout=None, claims=claims
    )  # type: ignore[arg-type]
    judge, asked = prepare(heard, options)
    judge.checks = known["sharing"].get(contract, judge.checks)
    judge.calls_made = max(one.after for one in STRATA)
    found = {}
    for one in asked:
        if not one.is_for(judge.contract) or one.id in LEFT_OUT:
            continue
        calls.clear()
        result = one.run(judge)
        said = json.dumps(
            [rounded(result.message), rounded(json.loads(as_json(lasting(result.evidence))))]
        )
        found[one.id] = f"{result.status} {len(calls)} {digest(calls)} {digest([said])}"
    return found


def tables() -> dict[str, str]:
    """{stratum: a digest of its shapes, laws, ways and cost}."""
    return {
        one.name: digest([described(one)])
        for one in (*STRATA, *STEP_STRATA, *TEXT_STRATA, *LOOP_STRATA, *TREE_STRATA)
    }


def described(stratum: Any) -> str:
    """A stratum by its shapes and its cost, and by what is not as usual."""
    told = {
        one.name: getattr(stratum, one.name)
        for one in fields(stratum)
        if one.name in ("shapes", "cost") or getattr(stratum, one.name) != one.default
    }
    return repr(sorted((name, value) for name, value in told.items() if name != "kind"))


def listening(implementation: Callable[..., Any], calls: list[str]) -> Callable[..., Any]:
    """The same function, which notes what it is asked."""

    @wraps(implementation)
    def heard(*given: Any, **named: Any) -> Any:
        calls.append(" ".join(map(told, (*given, *named.values()))))
        return implementation(*given, **named)

    return heard


def told(value: Any) -> str:
    """Ids, and a digest of laws to three decimals if they are not large; only types of others."""
    if isinstance(value, np.ndarray):
        size = f"{value.dtype} {value.shape}"
        if value.dtype == np.float64 and value.size < LARGE:
            return f"{size} {hashlib.sha256((value.round(3) + 0.0).tobytes()).hexdigest()[:8]}"
        return f"{size} {value.tolist()}" if value.dtype.kind == "i" else size
    return repr(value) if isinstance(value, int | tuple | None) else type(value).__name__


def digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]


def rounded(value: Any) -> Any:
    """Numbers to two decimals: the last ones depend on versions and processors. No places."""
    match value:
        case str():
            return re.sub(r" at \S+:\d+", "", value)
        case bool() | int() | None:
            return value
        case float():
            return f"{value:.2f}"
        case Mapping():
            return {name: rounded(one) for name, one in value.items() if name not in OF_A_RUN}
        case _:
            return [rounded(one) for one in value]


def main() -> None:
    known = known_today()
    record = {KNOWN: known, TABLES: tables(), **{one: recorded(one, known) for one in SUBJECTS}}
    RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
