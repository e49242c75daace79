"""What it takes to prove or refute rules for every p and q.

    python -m proofs_tests.helpers.recorded_proofs [BOX…]

writes the record again, and puts boxes on it. What is not on record is not compared: on it are
proofs that took less than half a second when they were chosen, and whose regions are the same with
the oldest NumPy.

Each line has the verdict, and what was counted: regions, lossy and open ones, charts, flips and
paths; questions, those that samples and known clauses answered, and calls of z3; the conditions
and rows of a refutation. A change of a proof's way is noticed, though its verdict be the same. The
record is the same with the lowest and the newest versions of packages.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from specref.proofs.everywhere import is_lossless_everywhere
from specref.proofs.everywhere.proof import Witness
from specref.verification.everywhere import Box, boxes_of, escalation
from specref.vocabulary import Vocabulary
from specref.zoo import ALL

RECORD = Path(__file__).with_name("recorded_proofs.json")


def boxes() -> dict[str, Box]:
    """Of the rules, in the profile quick, and of the steps of the zoo."""
    steps = [entry for entry in ALL.values() if entry.is_step]
    asked = (*boxes_of("quick"), *(box for entry in steps for box in escalation(entry)))
    return {told(box): box for box in asked}


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
    parser = argparse.ArgumentParser()
    parser.add_argument("more", nargs="*", help="boxes to put on record, too")
    known, asked = json.loads(RECORD.read_text()), boxes()
    names = [*(name for name in known if name in asked), *parser.parse_args().more]
    lines = [f"{json.dumps(name)}: {json.dumps(taken(asked[name]))}" for name in names]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
