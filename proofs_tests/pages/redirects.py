"""Where the pages went that had another name: links to the old ones still lead there."""

from collections.abc import Mapping
from pathlib import Path

MOVED: Mapping[str, str] = {
    "algorithms": "choose-an-algorithm",
    "architecture": "generated/overview",
    "attack": "records/attacks",
    "benchmarks": "records/benchmarks",
    "checkpoints": "check-an-engine",
    "ci": "tests-and-ci",
    "companion": "records/companion",
    "companions_measured": "records/companions_measured",
    "dominance": "generated/records/dominance",
    "engines": "check-an-engine-sampler",
    "engines-text": "check-an-engine",
    "everywhere": "proofs-for-all-p-and-q",
    "everywhere_rules": "records/everywhere_rules",
    "everywhere_zoo": "generated/records/everywhere_zoo",
    "install": "index",
    "json-reports": "formats",
    "judge-your-sampler": "check-a-sampler",
    "multi-draft": "records/multi-draft",
    "ngrams": "records/ngrams",
    "pictures": "losslessness",
    "runner-contract": "other-languages",
    "scaling": "time-and-power",
    "scoreboard": "records/scoreboard",
    "slrs": "records/slrs",
    "statistics": "how-verdicts-work",
    "strata": "checks",
    "strategies": "tests-and-ci",
    "tests": "tests-and-ci",
    "trees": "trees-and-loops",
    "triage": "debug-a-failure",
    "triggers": "records/triggers",
    "trophies": "findings",
    "upstream-reports": "records/upstream-reports",
    "vectors": "other-languages",
    "vocabularies": "records/vocabularies",
    "zoo": "generated/records/zoo",
    "records/dominance": "generated/records/dominance",
    "records/everywhere_zoo": "generated/records/everywhere_zoo",
    "records/zoo": "generated/records/zoo",
    "generated/prove": "prove-a-rule",
    "generated/oracle": "index",
    "generated/real-models": "two-models",
}
"""{old page: new page}."""
PAGE = """<!doctype html>
<meta charset="utf-8">
<title>Moved</title>
<meta http-equiv="refresh" content="0; url={there}">
<p>This page is now <a href="{there}">{new}</a>.</p>
"""


def write(site: Path) -> None:
    """Write a page at each old address that leads to the new one.

    * `site`: The folder of the site.
    * raises `FileNotFoundError`: A page that is named as the new one is not on the site.
    """
    for old, new in MOVED.items():
        target = site / f"{new}.html"
        if not target.exists():
            raise FileNotFoundError(f"{old} is said to be {new} now, and there is no such page")
        there = "../" * old.count("/") + f"{new}.html"
        (site / f"{old}.html").write_text(PAGE.format(there=there, new=new), encoding="utf-8")
