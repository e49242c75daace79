"""Published files read back: their cases, and each case as a call of the contract ``verify``."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from specref.conformance.batch import Batch
from specref.conformance.contract import Floats
from specref.conformance.vectors.building import SCHEMA_VERSION, Record, digest
from specref.losslessness.coins import Coins


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

    Raises
    ------
    ValueError
        There is no such file, it is no file of this schema, or its cases were changed.
    """
    path = folder / f"{algorithm}.json"
    if not path.exists():
        raise ValueError(f"no vectors at {path}")
    try:
        file = json.loads(path.read_text(encoding="utf-8"))
        version, cases = file["schema_version"], file["cases"]
        promised = file["generator"]["cases_sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no file of vectors: {error!r}") from None
    if version != SCHEMA_VERSION:
        raise ValueError(f"{path} has schema version {version}: expected {SCHEMA_VERSION}")
    if digest(cases) != promised:
        raise ValueError(f"{path}: its cases are not those that it was published with")
    return list(cases)


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
