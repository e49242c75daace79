"""What it takes to prove or refute rules for every p and q.

    python -m proofs_tests.helpers.recorded_proofs

writes the record again. Each line has the verdict, and what was counted: regions, lossy and open
ones, charts, flips and paths; questions, those that samples and known clauses answered, and calls
of z3; the conditions and rows of a refutation. A change of a proof's way is noticed, though its
verdict be the same. The record is the same with the lowest and the newest versions of packages.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from specref.proofs.everywhere import is_lossless_everywhere
from specref.proofs.everywhere.proof import Witness
from specref.verification.everywhere import Box
from specref.vocabulary import Vocabulary

RECORD = Path(__file__).with_name("recorded_proofs.json")
DOCS = Path(__file__).parents[2] / "docs"
LONGEST = {"rules": 0.5, "zoo": 0.2}
"""Seconds that a proof took when the pages were written."""
LEFT_OUT = (
    "tli",
    "recursive-rejection",
    "matching",
    "top-drafts",
    "bonus-on-shared-tokens",
    "target-pruned",
    "tli-draft-probs-dropped",
    "tli-context-in-pruned-ids",
    "siblings-matched-by-one-draw",
)
"""Their regions are others with NumPy 1.26 than with the newest."""


def boxes() -> dict[str, Box]:
    """Those of the pages."""
    return {told(box): box for name in LONGEST for box, _ in asked(name)}


def quick() -> dict[str, Box]:
    """Those that were proved or refuted soon."""
    return {
        told(box): box
        for name, longest in LONGEST.items()
        for box, seconds in asked(name)
        if 0 < seconds < longest and box.rule not in LEFT_OUT
    }


def asked(name: str) -> Iterator[tuple[Box, float]]:
    """The boxes of a page, and the seconds that they took."""
    for one in json.loads((DOCS / f"everywhere_{name}.json").read_text())["answers"]:
        yield Box(**{key: frozen(value) for key, value in one["box"].items()}), one["seconds"]


def frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def told(box: Box) -> str:
    rows = " and ".join(",".join(one) for one in (box.target, box.drafter))
    return f"{box.rule}, {rows}, lookahead {box.lookahead}" + f", eos {box.eos}" * bool(box.eos)


def taken(box: Box) -> list[Any]:
    """What is on record of a box."""
    target, drafter = (Vocabulary(one, box.eos) for one in (box.target, box.drafter))
    found = is_lossless_everywhere(
        *(box.step, target, drafter, box.lookahead), budget=600, until_open=True, plain=box.plain
    )
    counts, witness = found.counts, found.witness
    return [
        found.verdict,
        [found.regions, found.lossy, found.open, found.charts, found.flips, found.paths],
        [counts.questions, counts.samples, counts.implied, counts.calls],
        *([list(witness.conditions), shown(witness)] if witness else []),
    ]


def shown(witness: Witness) -> dict[str, str]:
    return {
        f"{row.letter}{row.context}": " ".join(map(str, row_))
        for row, row_ in witness.rows.items()
    }


def main() -> None:
    record: Mapping[str, Any] = {name: taken(box) for name, box in quick().items()}
    lines = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in record.items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
