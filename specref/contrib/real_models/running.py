"""The cross-check itself: batch after batch of every row, until each has its tokens."""

import math
import time
from collections.abc import Callable, Sequence
from statistics import median

from specref.contrib.real_models.generating import Generator
from specref.contrib.real_models.judging import judge
from specref.contrib.real_models.pairs import Pair
from specref.contrib.real_models.plan import BATCH, BUGS, LENGTH, Case, Sizes, spoiled
from specref.contrib.real_models.prompts import PROMPTS
from specref.contrib.real_models.record import Record
from specref.contrib.real_models.tally import Tally
from specref.torch_backend.models.configs import longest_text

PACE, WEIGHTS, LEAST = 0.2, 4e8, 0.01
"""Seconds a token, generated and judged, for so many weights in both models on one core, where no
row has told: the median of the published pairs' rows. A pair of tiny models takes the least."""
FEW = 4
"""Texts of the first batch of a planted bug; each later one has as many as there were so far."""
BUG_TOKENS = 512
"""After how many a planted bug is found, to say how long: most needed no more."""


def missing(record: Record, cases: Sequence[Case], sizes: Sizes) -> list[tuple[Case, int]]:
    """The rows that have too few tokens, and how many they lack; none of a bug that is found."""
    found = []
    for case in cases:
        tally = record.rows.get(case, Tally())
        lacking = case.tokens(sizes) - tally.tokens
        if lacking > 0 and not (case.bug is not None and tally.lossy):
            found.append((case, lacking))
    return found


def minutes(
    record: Record, lacking: Sequence[tuple[Case, int]], pair: Pair, timed: int = 0
) -> float:
    """How long some rows take, by the pace of those of the same pair, else by the models' sizes.

    * `timed`: Tokens of texts that are timed besides.
    """
    alike = {_where(case) for case, _ in lacking}
    told = [tally for case, tally in record.rows.items() if _where(case) in alike and tally.wall]
    paces = [tally.wall / tally.tokens for tally in told]
    weights = sum(one.model.num_parameters() for one in (pair.target, pair.drafter))
    usual = median(paces) if paces else max(LEAST, PACE * weights / WEIGHTS)
    needed = [min(tokens, BUG_TOKENS) if case.bug else tokens for case, tokens in lacking]
    return usual * (sum(needed) + timed) / 60


def _where(case: Case) -> tuple[str, str, str]:
    """What the pace of a row depends on."""
    return case.pair, case.device, case.dtype


def prompts_of(pair: Pair) -> list[list[int]]:
    """The prompts in the target's tokens.

    * raises `ValueError`: A prompt and its text are longer than a model can read.
    """
    rows = [pair.target.tokenizer.encode(prompt) for prompt in PROMPTS]
    for role, loaded in (("target", pair.target), ("drafter", pair.drafter)):
        room, longest = longest_text(loaded.model.config), max(map(len, rows)) + LENGTH
        if longest > room:
            raise ValueError(
                f"{role} {loaded.name} reads {room} tokens: expected {longest}, the longest "
                "prompt and its text"
            )
    return rows


def run_row(
    record: Record, case: Case, pair: Pair, tokens: int, advance: Callable[[int], None]
) -> None:
    """Generate and judge batches until a row has so many tokens, or its bug is found."""
    generator = Generator(pair, case.method, case.setting, case.lookahead)
    prompts, tally = prompts_of(pair), record.tally(case)
    planted = BUGS[case.bug]() if case.bug else {}
    spoil = spoiled(case, generator)
    while tally.tokens < tokens and not (case.bug is not None and tally.lossy):
        started, before = time.perf_counter(), tally.tokens
        # Some bugs are found in a few texts; of a rule, no more than it lacks.
        texts = min(BATCH, math.ceil((tokens - before) / LENGTH))
        texts = min(texts, max(FEW, tally.texts)) if case.bug is not None else texts
        numbers = range(tally.texts, tally.texts + texts)
        rows = [prompts[number % len(prompts)] for number in numbers]
        made = generator(rows, numbers, LENGTH, planted, spoil)
        judge(tally, made, case.method, case.setting, pair.target)
        tally.wall += time.perf_counter() - started
        record.write()
        advance(tally.tokens - before)
