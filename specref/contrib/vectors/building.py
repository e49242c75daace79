"""The published files as data, ready for JSON.

The cases of an algorithm, with their ids, are of the groups that are written by hand.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple

from specref.chance import Step
from specref.contrib.vectors import deciding
from specref.contrib.vectors.deciding import Outcome, Replay, alternatives, decide, precision
from specref.contrib.vectors.flags import NOTES, Iteration, step_flags, verify_flags
from specref.contrib.vectors.groups import Case, Row, StepCase, Toy, VerifyCase, row
from specref.contrib.vectors.groups.iterations import BY_TEXT, BY_TOKEN, ITERATIONS, ONE_VOCABULARY
from specref.contrib.vectors.groups.verifications import VERIFICATIONS
from specref.rules import RULES
from specref.vectors.reading import SCHEMA_VERSION, Record, digest

RETIRED: Mapping[str, str] = MappingProxyType({})
PUBLISHED = (*ONE_VOCABULARY, *BY_TOKEN, *BY_TEXT)


def cases(algorithm: str) -> list[Case]:
    """Every case of an algorithm that is not retired."""
    cites = (RULES[algorithm].papers[0],)
    found: list[Case] = []
    for group in VERIFICATIONS:
        p = tuple(map(row, group.p))
        q = None if group.q is None else tuple(map(row, group.q))
        for n, coins in enumerate(group.coins if algorithm in group.rules else ()):
            id_ = f"{algorithm}/{group.slug}/{n + 1:03d}"
            race = coins.race or _noise(len(p[0]), f"{group.slug}/{n}")
            given = (p, q, group.drafts, replace(coins, race=race))
            found.append(VerifyCase(id_, algorithm, group.comment, cites, *given))
    for pair in ITERATIONS:
        models = pair.target, pair.drafter
        for n, place in enumerate(pair.places if algorithm in pair.algorithms else ()):
            id_ = f"{algorithm}/{pair.slug}/{n + 1:03d}"
            found.append(StepCase(id_, algorithm, pair.comment, cites, *models, *place))
    return [case for case in found if case.id not in RETIRED]


def _noise(size: int, key: str) -> tuple[float, ...]:
    """Numbers from 1/64 to 4, all different."""
    picks: dict[int, None] = {}
    for n in range(16):
        picks |= dict.fromkeys(hashlib.blake2b(f"{key}/{n}".encode()).digest())
    return tuple((1 + pick) / 64 for pick in picks)[:size]


GENERATOR = "specref vectors --write"


def build_file(algorithm: str) -> Record:
    """The file of an algorithm.

    * raises `ValueError`: Float64 does not decide a case, or two cases have one id.
    """
    found = [build_case(case) for case in cases(algorithm)]
    ids = [one["id"] for one in found]
    if len(set(ids)) < len(ids):
        raise ValueError(f"{algorithm}: two cases have the id {max(ids, key=ids.count)}")
    used = {flag for one in found for flag in one["flags"]}
    return {
        "algorithm": algorithm,
        "schema": "schema.json",
        "schema_version": SCHEMA_VERSION,
        "spec_version": SPEC_VERSION,
        "generator": {
            "name": GENERATOR,
            "source": f"specref/algorithms/{algorithm}.py",
            "cases_sha256": digest(found),
        },
        "notes": {
            name: {"mechanism": note.mechanism, "effect": note.effect, "links": note.links}
            for name, note in NOTES.items()
            if name in used
        },
        "retired": {id_: why for id_, why in RETIRED.items() if id_.split("/")[0] == algorithm},
        "cases": found,
    }


def build_case(case: Case) -> Record:
    """The record of a case: its numbers, its outcome, and its flags."""
    return _verify(case) if isinstance(case, VerifyCase) else _step(case)


def _verify(case: VerifyCase) -> Record:
    outcome = decide(case)
    others = alternatives(case, outcome)
    record: Record = {
        **_head(case, "verify", verify_flags(case, outcome)),
        "precision": precision(case, outcome),
        "p": laws(case.p),
        "q": None if case.q is None else laws(case.q),
        "draft_tokens": list(case.drafts),
        "coins": {
            "accept": list(case.coins.accept),
            "final": case.coins.final,
            "race": list(case.coins.race),
        },
        "expected": expected(outcome),
    }
    if others:
        record["either"] = [
            {"policies": list(names), **expected(one)} for names, one in others.items()
        ]
    return record


def _head(case: Case, level: str, true: list[str]) -> Record:
    return {
        "id": case.id,
        "level": level,
        "comment": case.comment,
        "cites": list(case.cites),
        "flags": true,
    }


def expected(outcome: Outcome) -> Record:
    """An outcome as a record: its law, and the block that each way of drawing gives."""
    return {
        "accepted": outcome.accepted,
        "count": outcome.accepted + 1,
        "last": outcome.last,
        "law": rationals(outcome.law),
        "tokens": {name: list(block) for name, block in outcome.tokens.items()},
    }


def _step(case: StepCase) -> Record:
    found = deciding.paths(case)
    blocks, chosen = deciding.law(found), deciding.replays(found)
    return {
        **_head(case, "step", step_flags(Iteration(case, list(blocks), chosen))),
        "target": model(case.target),
        "drafter": model(case.drafter),
        "context": list(case.context),
        "lookahead": case.lookahead,
        "law": {" ".join(map(str, one)): rational(weight) for one, weight in blocks.items()},
        "replays": [replay(one) for one in chosen],
    }


def model(toy: Toy) -> Record:
    """A model as tables: the row of the last token of a context, or of the empty one."""
    keys = ["" if last is None else str(last) for last in toy.rows]
    rows = {name: dict(zip(keys, of, strict=True)) for name, of in laws(toy.rows.values()).items()}
    return {"tokens": list(toy.tokens), "eos": toy.eos, "order": toy.order, **rows}


def replay(one: Replay) -> Record:
    """A random path: every decision in its order, and the block."""
    return {
        "sites": [site(step) for step in one.steps],
        "weight": rational(one.weight),
        "tokens": list(one.block),
    }


def site(step: Step) -> Record:
    """A decision: its law, the choice, and a uniform that leads to it."""
    exact: Record = {"law": rationals(step.weights)}
    if deciding.is_accept(step):
        exact = {"probability": rational(step.weights[1])}
    return {"site": step.site, **exact, "choice": step.choice, "u": deciding.uniform(step)}


def rational(number: Any) -> str:
    """A fraction as "a/b", whole numbers as well."""
    exact = Fraction(number)
    return f"{exact.numerator}/{exact.denominator}"


def rationals(numbers: Iterable[Any]) -> list[str]:
    """Fractions as "a/b"."""
    return list(map(rational, numbers))


def laws(rows: Iterable[Row]) -> Record:
    """Rows as fractions and as the nearest doubles."""
    both = [(rationals(row), list(map(float, row))) for row in rows]
    return {"exact": [exact for exact, _ in both], "float64": [near for _, near in both]}


class Edition(NamedTuple):
    """The first `ids` lines of ``published.txt``, and their SHA-256: neither ever changes."""

    ids: int
    sha256: str


EDITIONS: Mapping[str, Edition] = MappingProxyType(
    {"1.0": Edition(336, "26b928542aca20318659deeaf4796a1634cf28aa8708a7c710587bd7a9bc6c89")}
)
SPEC_VERSION = max(EDITIONS, key=lambda version: EDITIONS[version].ids)


def sha256(lines: Sequence[str]) -> str:
    """The SHA-256 of lines, each with its line feed."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def disagreement(lines: Sequence[str]) -> str:
    """Why lines of ``published.txt`` are not those of the editions; "" if they are."""
    for version, (ids, known) in EDITIONS.items():
        if sha256(lines[:ids]) != known:
            return f"the first {ids} ids are not those of spec version {version}"
    if len(lines) > EDITIONS[SPEC_VERSION].ids:
        return f"{len(lines)} ids: they need a spec version of their own, {sha256(lines)}"
    return ""
