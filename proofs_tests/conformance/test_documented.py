"""Numbers of the kit that docs/judge-your-sampler.md says are those of the code."""

import math

from proofs_tests.pages.console_blocks import ROOT
from specref.conformance import further
from specref.conformance.checks import identical
from specref.conformance.checks import strata as situations
from specref.conformance.checks.check import RARE_EDGE
from specref.conformance.diagnosis import ranking
from specref.conformance.strata.table import STRATA


def test_numbers_of_the_judge_page_are_those_of_the_code() -> None:
    page = " ".join((ROOT / "docs" / "judge-your-sampler.md").read_text().split())
    rows, calls, sizes = zip(*identical.SIZES, strict=True)
    numbers = situations.MANY_ROWS * (situations.MANY_DRAFTS + 1) * situations.MANY_IDS
    said = (
        f"until there are {further.BLOCKS:,} in all, or for {further.SECONDS:g} s",
        f"at least {ranking.ENOUGH:,} blocks were seen",
        f"({calls[0]} calls of {rows[0]:,}, {calls[1]:,} of {rows[1]}, {calls[2]} of {rows[2]}, "
        f"and {calls[3]} of {rows[3]} over {sizes[3]:,} tokens)",
        f"One more call, of more than 2^{int(math.log2(numbers))} numbers",
        f"if the chance is below {RARE_EDGE:g},",
        f"what comes after {max(one.after for one in STRATA):,} calls",
    )
    for words in said:
        assert words in page, words
