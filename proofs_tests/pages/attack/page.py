"""The record of the attack as a table of the terminal, and as a page."""

from collections.abc import Mapping, Sequence
from typing import Any

from proofs_tests.helpers.attack.lossless import LOSSLESS
from proofs_tests.helpers.attack.lossy import LOSSY

COMMAND = (
    "python -m proofs_tests.pages.attack --workers 2 \\\n  --json attack.json --markdown attack.md"
)
DISTANCE = 0.02  # what a lossy sampler promises in its situation

# Why a lossy sampler passed or a lossless one failed; a test holds these to the record.
REASONS: Mapping[str, str] = {
    "uniforms_of_16_bits": "no set that is bet on knows which ids the CDF hides between two "
    "multiples of 2^-16; sets by id or p keep their mass; `strata/laws-fine` has 5,003 ids.",
    "path_for_float32": "without `--claim dtype=float32` or `--dtype float32` arrays are float64 "
    "in all default checks.",
    "offsets_that_overlap": "first tokens are compared over calls for being equal; here a last "
    "token tells whether the next call's draft is kept, which nothing bets on.",
    "seeds_of_16_bits": "equal rows lie at no fixed distance, and distances are what is looked "
    "at; nothing counts pairs of equal rows of a call (birthdays).",
    "calls_counted_in_15_bits": "no check makes 32,768 calls and compares them with the first; "
    "`strata/late-calls` begins after 20,000 and looks at laws.",
    "scratch_of_all_threads": "calls come one after the other: no check calls from several "
    "threads at once.",
}


def missed(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["expected"] == "lossy" and row["verdict"] != "failed"]


def alarms(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["expected"] == "lossless" and row["verdict"] != "passed"]


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A line for each sampler, 80 columns wide but for long ids of checks."""
    head = f"{'sampler':29} {'expected':8} {'verdict':9} {'found by':27} {'s':>3}"
    lines = [
        f"{row['sampler']:29} {row['expected']:8} {row['verdict']:9} {check_of(row):27} "
        f"{row['seconds']:3.0f}"
        for row in rows
    ]
    return "\n".join([head, *lines, summary(rows)])


def check_of(row: Mapping[str, Any]) -> str:
    return row["failed"][0][0] if row["failed"] else ""


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    lossy = [row for row in rows if row["expected"] == "lossy"]
    lossless = [row for row in rows if row["expected"] == "lossless"]
    return (
        f"{len(lossy) - len(missed(rows))} of {len(lossy)} lossy samplers judged failed; "
        f"{len(lossless) - len(alarms(rows))} of {len(lossless)} lossless ones passed."
    )


def page(record: Mapping[str, Any]) -> str:
    rows = record["rows"]
    lossy = [row for row in rows if row["expected"] == "lossy"]
    lossless = [row for row in rows if row["expected"] == "lossless"]
    near = [
        row["sampler"]
        for row in lossy
        if row["tv"] is not None and row["tv"] - 4 * row["error"] < DISTANCE
    ]
    return "\n".join(
        [
            "# An attack on the verdicts",
            "",
            f"{len(LOSSLESS)} lossless and {len(LOSSY)} lossy samplers of the contract `verify` "
            "were written from the README,",
            "[judge-your-sampler.md](judge-your-sampler.md) and `specref list checks`, without a "
            "look at the code of the strata,",
            "the fixtures, the zoo or its triggers, and were not changed after the kit had judged "
            "them. They are in",
            "[lossless.py](../proofs_tests/helpers/attack/lossless.py) and "
            "[lossy.py](../proofs_tests/helpers/attack/lossy.py). Default checks, seed "
            f"{record['seed']}, of the kit at {record['revision']}.",
            "",
            f"**{summary(rows)}**",
            "",
            *unjudged(record),
            "<!-- not run: an hour of CPU time; test_page.py judges some of its rows again -->",
            "```sh",
            COMMAND,
            "```",
            "",
            "Authors of a kit and of an attack on it read the same papers, and its documentation "
            "names most",
            "kinds of situation that are judged: the share of bugs found here is not that of "
            "bugs in the wild.",
            "A first run missed 11 of the 39 lossy samplers that it judged. Five of these are "
            "found now, by checks",
            "that were added because of them. So is a sixth, `end_of_turn_never_recovered`, "
            "which alone was judged",
            "again when `strata/vocabulary-ends` was there.",
            "A [second attack](attack-second.md) has samplers of all contracts.",
            "",
            *section(
                "Misses", missed(rows), f"None of the {len(lossy)} that were judged.", REASONS
            ),
            *section(
                "False alarms",
                alarms(rows),
                f"None of the {len(lossless)} that were judged.",
                REASONS,
            ),
            "## Lossy samplers",
            "",
            "*TV* is a lower estimate, ± one standard error, of the total variation in the "
            "situation beside the",
            "sampler: the change of the probability of one event, drawn directly. A sampler was "
            "judged until a",
            "check failed.",
            "",
            *(
                [
                    "Not four standard errors above "
                    f"{DISTANCE}, so not shown to be that far off: " + ", ".join(near) + ".",
                    "",
                ]
                if near
                else []
            ),
            "| sampler | what is wrong | TV | found by | finding | CPU s |",
            "|---|---|---|---|---|---|",
            *(
                f"| {row['sampler']} | {row['what']} | {distance_of(row)} | "
                f"{check_of(row) or '**missed**'} | {finding_of(row)} | {row['seconds']:.0f} |"
                for row in lossy
            ),
            "",
            "## Lossless samplers",
            "",
            "Why each is lossless is said in the second column; "
            "`proofs_tests/attack/test_samplers.py` compares",
            "the joint law of their blocks with the target's on a small case, by samples.",
            "",
            "| sampler | why it is lossless | verdict | failed checks | CPU s |",
            "|---|---|---|---|---|",
            *(
                f"| {row['sampler']} | {row['what']} | {row['verdict']} | "
                f"{', '.join(f[0] for f in row['failed'])} | {row['seconds']:.0f} |"
                for row in lossless
            ),
            "",
        ]
    )


def unjudged(record: Mapping[str, Any]) -> list[str]:
    """What the record lacks: an interrupted run says so."""
    if record["complete"]:
        return []
    names = ", ".join(record["not_judged"])
    return [
        "The record is not complete; at its commit the command below goes on with a copy. "
        f"Not judged so far: {names or 'none'}.",
        "",
    ]


def distance_of(row: Mapping[str, Any]) -> str:
    if row["tv"] is None:
        return "not measured"
    return f"{row['tv']:.3f} ± {row['error']:.3f}"


def finding_of(row: Mapping[str, Any]) -> str:
    return row["failed"][0][1] if row["failed"] else ""


def section(
    title: str, rows: Sequence[Mapping[str, Any]], none: str, reasons: Mapping[str, str]
) -> list[str]:
    lines = [f"* `{row['sampler']}`: {reasons.get(row['sampler'], '')}" for row in rows]
    return [f"## {title}", "", *(lines or [none]), ""]
