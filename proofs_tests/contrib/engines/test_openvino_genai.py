"""OpenVINO GenAI: its texts of the first drafts, number by number; what passes beside it.

Fixed seeds; the numbers of each text are those of its seed, so nothing here is left to chance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from specref.contracts.text import Engine
from specref.vocabulary import Tokens

pytest.importorskip("openvino_genai", reason="not_run (openvino_genai is not installed)")

from specref.conformance.public import check
from specref.conformance.status import Finding
from specref.contrib.engines.on_pairs import PROMPTS
from specref.contrib.engines.openvino_genai import load_engine

MODES = "speculative", "plain"
TEXTS, PROMPT = 1_000, PROMPTS[-1]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return load_engine()


def numbers(seed: int) -> Iterator[int]:
    """The 32-bit numbers of std::mt19937."""
    bits = np.random.MT19937()
    bits._legacy_seeding(seed)
    return map(int, bits.random_raw(64))


def drawn(p: Sequence[float], number: int) -> int:
    """A token by inversion in single precision."""
    ends = np.cumsum(np.asarray(p, np.float32), dtype=np.float32)
    return int((ends <= np.float32(number / 2**32) * ends[-1]).sum())


def text(engine: Engine, seed: int) -> tuple[Tokens, bool]:
    """Three tokens, as the published code says; and whether the only draft was rejected."""
    assert engine.law is not None
    assert engine.drafter is not None
    target, drafter = numbers(seed), numbers(seed)  # the same numbers
    first = drawn(engine.law.next_token(PROMPT), next(target))
    if first == engine.end:
        return (first,), False
    before = (*PROMPT, first)
    p, q = (model.next_token(before) for model in (engine.law, engine.drafter))
    x, t = drawn(q, next(drafter)), drawn(p, next(target))
    r = (next(target) * 101 >> 32) / 100
    after = drawn(engine.law.next_token((*before, x)), next(target))  # the row after the draft
    if np.float32(r) <= np.float32(q[x] / p[t]):
        return (first, x) if x == engine.end else (first, x, after), False
    return (first, after), True


def test_the_first_drafts_follow_the_published_code(engine: Engine) -> None:
    rejected = 0
    for seed in range(TEXTS):
        given, (wanted, lost) = engine(PROMPT, 3, seed), text(engine, seed)
        assert tuple(given.tokens[: len(wanted)]) == wanted  # type: ignore[union-attr]
        rejected += lost
    assert 250 < rejected < 450


def test_texts_end_at_eos() -> None:
    for lookup in (False, True):
        engine = load_engine(lookup=lookup)
        texts = [engine.mode(mode)(PROMPT, 4, seed).tokens for mode in MODES for seed in range(99)]
        assert all(engine.end not in text[:-1] for text in texts)
        assert any(len(text) < 4 and text[-1] == engine.end for text in texts)


@pytest.mark.parametrize("lookup", [False, True])
def test_plain_mode_has_the_law_and_lookup_passes(lookup: bool) -> None:
    report = check(load_engine(lookup=lookup), contract="text", detect_tv=0.2)
    by_id: dict[str, Any] = {one.id: one for one in report.results}
    assert by_id["smoke/texts-plain"].status == "passed"
    assert report.lossy != lookup
    assert by_id["end-to-end/texts"].evidence["accepted"] > 0


def test_settings_reach_the_engine() -> None:
    """The law without them is found not to be that of plain mode."""
    plainly = load_engine(lookup=True).law
    for settings in ({"temperature": 1.5, "top_p": 0.9}, {"repetition_penalty": 1.3}):
        engine = replace(load_engine(lookup=True, settings=settings), law=plainly, eos=None)
        report = check(engine, contract="text", detect_tv=0.2, only=["smoke"])
        assert report.finding == Finding.PLAIN, settings
