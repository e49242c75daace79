"""Published files read back: their cases, and each case as a call of the contract ``verify``."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from specref.arrays import Floats
from specref.coins import Coins
from specref.contracts.batch import Batch

Record: TypeAlias = dict[str, Any]
SCHEMA_VERSION = 1
FOLDER = Path(__file__).parent / "v1"
IDS = "published.txt"
TALK = ("comment", "cites", "flags")
DRAWS = ("inverse", "descending", "race")
"""Ways to draw the last token from coins."""
POLICIES = ("accept-up-to", "closed-cdf")
"""Legitimate conventions that differ from those of the vectors."""
PRECISIONS = ("float16", "float32", "float64")


class GivenCoins(Coins):
    """Coins whose last uniform is a number of its own, not made from the race."""

    def __init__(self, accept: Floats, race: Floats, final: Floats) -> None:
        super().__init__(accept, race)
        object.__setattr__(self, "given", final)

    @property
    def final(self) -> Floats:
        """Uniforms in [0, 1) for the last token."""
        return np.asarray(self.__dict__["given"])


def load_cases(folder: Path, algorithm: str) -> list[Record]:
    """The cases of a file, unless they are not those that were published.

    * raises `ValueError`: There is no such file, it is no file of this schema or algorithm, or
      cases are changed, missing or new, as ``published.txt`` beside it has them.
    """
    path = folder / f"{algorithm}.json"
    if not path.exists():
        raise ValueError(f"no vectors at {path}")
    ids = read_published(folder).items()
    published = {id_: value for id_, value in ids if id_.startswith(f"{algorithm}/")}
    try:
        file = json.loads(path.read_text(encoding="utf-8"))
        wrong = _wrong(file, algorithm, published)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no file of vectors: {error!r}") from None
    if wrong:
        raise ValueError(f"{path}: {wrong}")
    return list(file["cases"])


def digest(cases: Sequence[Record]) -> str:
    """SHA-256 of cases as JSON without spaces and with sorted keys."""
    text = json.dumps(cases, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def fingerprint(case: Record) -> str:
    """The first 16 digits of the digest of a case without its words and flags."""
    return digest([{key: value for key, value in case.items() if key not in TALK}])[:16]


def read_published(folder: Path) -> dict[str, str]:
    """{id: fingerprint} of the cases that were published, none if there is no such file."""
    path = folder / IDS
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    published = {}
    for number, line in enumerate(lines, start=1):
        id_, space, value = line.partition(" ")
        if not space or id_ in published:
            raise ValueError(f"{IDS}, line {number}: {line!r}: expected a new id, and 16 digits")
        published[id_] = value
    return published


def _wrong(file: Record, algorithm: str, published: Mapping[str, str]) -> str:
    """What is wrong with a file; "" if nothing is."""
    version, found = file["schema_version"], file["algorithm"]
    if version != SCHEMA_VERSION:
        return f"schema version {version}: expected {SCHEMA_VERSION}"
    if found != algorithm:
        return f"its cases are of {found}: expected {algorithm}"
    if not published:
        return f"no {IDS} next to it has cases of {algorithm}"
    if wrong := _wrong_case(file["cases"], published):
        return wrong
    missing = published.keys() - {case["id"] for case in file["cases"]} - file["retired"].keys()
    if missing:
        return f"{min(missing)} was published, and is not there"
    if digest(file["cases"]) != file["generator"]["cases_sha256"]:
        return "its cases are not those that it was written with"
    return ""


def _wrong_case(cases: list[Record], published: Mapping[str, str]) -> str:
    seen = set()
    for case in cases:
        id_ = case["id"]
        if id_ not in published:
            return f"{id_} was never published"
        if id_ in seen:
            return f"{id_} is there twice"
        if fingerprint(case) != published[id_]:
            return f"{id_} is not the case that was published"
        seen.add(id_)
    return ""


def as_batch(case: Mapping[str, Any]) -> Batch:
    """A case as a batch of one row."""
    p = np.array([case["p"]["float64"]])
    drafts = np.array([case["draft_tokens"]], dtype=np.int64)
    shape = (*drafts.shape, p.shape[2])
    q = None if case["q"] is None else np.array(case["q"]["float64"]).reshape(shape)
    return Batch(p, q, drafts, (drafts >= 0).sum(axis=1), np.zeros(1, dtype=np.int64))


def as_coins(case: Mapping[str, Any]) -> GivenCoins:
    """The coins of a case, for a batch of one row."""
    given = case["coins"]
    accept, race, final = (
        np.array([given[name]], dtype=np.float64) for name in ("accept", "race", "final")
    )
    return GivenCoins(accept, race, final)
