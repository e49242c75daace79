"""The record of the cross-check: a JSON file that is written after every batch, and goes on."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from specref.contrib.real_models.plan import Case
from specref.contrib.real_models.tally import COUNT_ALPHA, Place, Tally
from specref.report.machine import as_json, write_json

VERSION = 1
MODELS = "models"
"""The part with digests of the folders' files, by pair and role."""
DIGITS = 10


class Record:
    """Rows of the table, read from a file if it exists.

    * `rows`: {case: tally}
    * `parts`: What else is recorded, by name.
    * raises `ValueError`: The file is no such record.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        stored = self._stored()
        self.parts: dict[str, Any] = stored["parts"]
        self.rows = {Case.read(one["case"]): Tally.read(one["sums"]) for one in stored["rows"]}
        self.made_with: list[str] = stored["made_with"]

    def _stored(self) -> dict[str, Any]:
        if not self.path.exists():
            return {"version": VERSION, "made_with": [], "parts": {}, "rows": []}
        try:
            stored: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
            known = stored["version"] == VERSION and {"rows", "parts", "made_with"} <= set(stored)
        except (ValueError, KeyError, TypeError):
            known = False
        if not known:
            raise ValueError(
                f"record = {self.path}: it is no record of this command, version {VERSION}: "
                "expected one, or a file that does not exist"
            )
        return stored

    def tally(self, case: Case) -> Tally:
        """The sums of a row, which begins if it is not there."""
        return self.rows.setdefault(case, Tally())

    def check_models(self, pair: str, digests: Mapping[str, str]) -> None:
        """Raise `ValueError` if the rows of a pair are of other files; else note these.

        * `digests`: Of the models' files, by role; none are compared if it is empty.
        """
        known = self.parts.get(MODELS, {}).get(pair, digests)
        for role, digest in digests.items():
            if known[role] != digest:
                raise ValueError(
                    f"record = {self.path}: its rows of {pair} are of another {role}, or of files "
                    "that have changed since: expected another --record"
                )
        if digests:
            self.parts.setdefault(MODELS, {})[pair] = dict(digests)

    def write(self) -> None:
        """Write all, or nothing."""
        rows = [
            {"case": case.stored(), "figures": figures(case, tally), "sums": _short(asdict(tally))}
            for case, tally in self.rows.items()
            if tally.tokens
        ]
        head = {"version": VERSION, "made_with": self.made_with, "parts": self.parts}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(str(self.path), _by_lines(head, rows))


def _by_lines(head: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """JSON with a line for each row, which a difference of two versions shows."""
    lines = (json.dumps(json.loads(as_json(row))) for row in rows)
    joined = ",\n".join(lines)
    return f'{json.dumps(head)[:-1]}, "rows": [\n{joined}\n]}}'


def figures(case: Case, tally: Tally) -> Mapping[str, Any]:
    """What the table shows of a row."""
    return {
        "verdict": verdict(case, tally),
        "tokens": tally.tokens,
        "z": round(tally.z, 2),
        "log10_evidence": round(tally.peak, 2),
        "found_at": tally.found_at,
        "acceptance_off_at": tally.counts_off_at,
        "detected_mixture": tally.detected_mixture,
        "decided_twice": {
            "blocks": tally.decided.iterations,
            "different": tally.decided.different,
            "unexplained": tally.decided.unexplained,
        },
        "detected_bugs": tally.detected_bugs,
        "shaped_twice": {"rows": tally.shaped, "different": tally.misshaped},
        "tokens_per_iteration": round(tally.tokens / max(tally.iterations, 1), 3),
        "tokens_per_second": round(tally.tokens / max(tally.seconds, 1e-9), 2),
        "acceptance": [
            {
                "reached": place.reached,
                "accepted": place.accepted,
                "expected": [round(place.least, 1), round(place.most, 1)],
                "interval": place.interval,
                "alpha": COUNT_ALPHA,
                **_against_exact_match(place),
            }
            for place in tally.places
        ],
    }


def _against_exact_match(place: Place) -> Mapping[str, Any]:
    """On the same drafts: what exact match accepts, and how much more SLRS does at least."""
    if place.gained is None:
        return {}
    mean, error = place.gained
    matched = round(place.matched / place.compared, 4)
    return {
        "same_drafts": {
            "drafts": place.compared,
            "exact_match": matched,
            "slrs_more": round(mean, 4),
            "error": round(error, 4),
        }
    }


def verdict(case: Case, tally: Tally) -> str:
    """Of a clean row what was found, if anything; of a planted bug if it was found."""
    if case.bug is not None and not tally.lossy:
        return "not found yet" if tally.counts_off_at is None else "found by acceptance"
    if case.bug is not None:
        return "found"
    if tally.lossy:
        return "LOSSY"
    if tally.misshaped:
        return "filters differ"
    if tally.decided.unexplained:
        return "decides otherwise"
    if tally.counts_off_at is not None:
        return "acceptance off"
    return "nothing found"


def _short(value: Any) -> Any:
    """Numbers as short as what they are used for needs."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    return [_short(one) for one in value] if isinstance(value, list) else value
