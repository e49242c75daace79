"""The rows of the cross-check: how many tokens each gets, and the JSON file that keeps them.

It is written after every batch, and goes on.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from specref.contrib.real_models.generating import LOOKAHEAD
from specref.contrib.real_models.planted import BUGS_OF
from specref.contrib.real_models.settings import Setting
from specref.contrib.real_models.tally import COUNT_ALPHA, Place, Tally
from specref.report.machine import as_json, write_json

PLAIN = Setting()
OTHERS = (Setting(temperature=0.7), Setting(top_k=50), Setting(top_p=0.9))
BATCH, LENGTH = 16, 32
"""One batch has the tokens of a row of the quick profile. The larger the faster: on one core a
token of the published pairs took half the time in batches of 32 that it took in batches of 8."""


@dataclass(frozen=True)
class Sizes:
    """How much a profile does.

    * `plain`, `others`: Tokens of a row at temperature 1, and at other settings.
    * `bug`: Of a row with a planted bug, at most.
    * `timed`, `length`: Prompts that every path is timed on, and the tokens of each text.
    * `planted`: Bugs by method; None for all of `BUGS_OF`.
    """

    plain: int
    others: int
    bug: int
    timed: int = 0
    length: int = 48
    planted: Mapping[str, tuple[str, ...]] | None = None


EARLY = ("bonus from q",)
EARLY_OF = MappingProxyType({"standard": EARLY, "tli": EARLY})
"""A bug that was found within 256 tokens on each of the published pairs."""

PROFILES: Mapping[str, Sizes] = MappingProxyType(
    # One text at a time is slow: with more, timing would take longer than all rows.
    {
        "quick": Sizes(500, 0, 1_000, 1, 12, EARLY_OF),
        "record": Sizes(5_000, 1_000, 5_000, 8),
    }
)


@dataclass(frozen=True)
class Case:
    """A row of the table.

    * `bug`: Of `BUGS`; None for the rule as it is.
    """

    pair: str
    method: str
    setting: Setting = PLAIN
    bug: str | None = None
    device: str = "cpu"
    dtype: str = "float32"
    lookahead: int = LOOKAHEAD

    def __str__(self) -> str:
        bug = f", planted: {self.bug}" if self.bug else ""
        return f"{self.pair}, {self.method}, {self.setting}{bug}"

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> "Case":
        """From what `dataclasses.asdict` made of one."""
        return cls(**{**stored, "setting": Setting(**stored["setting"])})

    def tokens(self, sizes: Sizes) -> int:
        """How many it is to have."""
        if self.bug is not None:
            return sizes.bug
        return sizes.plain if self.setting == PLAIN else sizes.others


def cases_of(pair: str, methods: tuple[str, ...], sizes: Sizes, **where: Any) -> list[Case]:
    """The rows of a pair: its methods, other settings of them, and bugs that stand in them."""
    cases = [Case(pair, method, PLAIN, **where) for method in methods]
    if sizes.bug:
        planted = BUGS_OF if sizes.planted is None else sizes.planted
        bugs = [(method, bug) for method in methods for bug in planted.get(method, ())]
        cases += [Case(pair, method, PLAIN, bug, **where) for method, bug in bugs]
    if sizes.others:
        cases += [Case(pair, method, one, **where) for one in OTHERS for method in methods]
    return cases


VERSION = 1
MODELS = "models"
"""The part with digests of the folders' files, by pair and role."""
DIGITS = 10


class Record:
    """Rows of the table, read from a file if it exists.

    * `rows`: {case: tally}
    * `parts`: What else is recorded, by name.
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
            {"case": asdict(case), "figures": figures(case, tally), "sums": _short(asdict(tally))}
            for case, tally in self.rows.items()
            if tally.tokens
        ]
        head = {"version": VERSION, "made_with": self.made_with, "parts": self.parts}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # A line for each row, which a difference of two versions shows.
        lines = ",\n".join(json.dumps(json.loads(as_json(row))) for row in rows)
        write_json(str(self.path), f'{json.dumps(head)[:-1]}, "rows": [\n{lines}\n]}}')


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
