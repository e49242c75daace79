"""docs/slrs.md: rendered from its record, and no sentence says more than the figures."""

import copy
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from click.testing import CliRunner

from gpu_tests.benchmarks import slrs_generation, slrs_sections, slrs_verdict
from gpu_tests.benchmarks.slrs_page import main, render
from gpu_tests.benchmarks.slrs_record import read_record

DOCS = Path(__file__).parent.parent / "docs"
RECORD, PAGE = DOCS / "slrs.json", DOCS / "slrs.md"


@pytest.fixture
def record() -> dict[str, Any]:
    return read_record(RECORD)


def test_page_is_what_the_record_renders_to(record: dict[str, Any]) -> None:
    assert PAGE.read_text() == render(record) + "\n"
    assert PAGE.read_text() != render(shaken(record, seed=1)) + "\n"


def shaken(record: dict[str, Any], seed: int) -> dict[str, Any]:
    """The record with other figures wherever one was measured."""
    rng, names = random.Random(seed), {"low", "high", "error", "lazy", "full", "open", "shared"}
    names |= {"slem", "bonus", "residual", "block", "median", "max", "q25", "q75", "n_max"}
    names |= {"emitted", "target_forwards", "forwards_per_token", "contexts_per_token"}
    names |= {"whole_contexts_per_token", "tokens_per_iteration", "nodes", "target_tokens"}

    def shake(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: shake(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [shake(each) for each in value]
        if name not in names or value is None:
            return value
        return value * rng.randint(3, 9) if isinstance(value, int) else value * rng.random()

    return {part: of | {"rows": shake(copy.deepcopy(of["rows"]))} for part, of in record.items()}


def said(record: dict[str, Any]) -> list[str]:
    """All sentences that depend on figures."""
    return [
        slrs_sections.growth_claims(record["growth"]["rows"]),
        slrs_sections.bounds_claims(record["bounds"]),
        slrs_generation.spent_claims(record["generation"]["rows"]),
        slrs_generation.wider_claims(record["generation"]["rows"]),
        slrs_verdict.verdict(record),
    ]


def figures(text: str) -> set[str]:
    """The numbers of a text that are no part of a name."""
    return set(re.findall(r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]\d+)?%?(?!\w)", text))


def test_every_figure_of_the_text_is_from_the_record(record: dict[str, Any]) -> None:
    """A figure that stays where all measured ones are others is a size, or was not measured."""
    sizes = {str(number) for number in range(17)} | {"64", "256"}
    sizes |= {str(record["bounds"]["sizes"]["runs"]), str(len(record["growth"]["rows"]))}
    sizes |= {f"{record['temperature']['sizes']['tolerance']:g}"}
    others = [said(shaken(record, seed)) for seed in range(4)]
    for place, text in enumerate(said(record)):
        for figure in figures(text) - sizes:
            assert any(figure not in figures(other[place]) for other in others), figure
    planted = figures("bpe2k: 0.5 of 3, 12%, 1,025 and 1.8e+09.")
    assert planted == {"0.5", "3", "12%", "1,025", "1.8e+09"}


def pair_row(difference: float, error: float = 0.01, method: str = "tli") -> dict[str, Any]:
    """A pair on which a method's acceptance differs so much from that of SLRS, 0.5."""
    at = {"temperature": 1.0, "drafter_temperature": 1.0}
    slrs = {"method": "slrs", "low": 0.5, "high": 0.5, "error": error} | at
    value, apart = 0.5 + difference, {"low": difference, "high": difference, "error": error}
    other = {"method": method, "low": value, "high": value, "error": error, "over_slrs": apart}
    return {
        "pair": "small intersection",
        "target": "one",
        "drafter": "other",
        "shared": 50,
        "target_tokens": 100,
        "acceptance": [slrs, other | at],
    }


@pytest.mark.parametrize(
    ("difference", "said_so", "advice"),
    [
        (-0.1, "accepts more often than TLI (0.50 against 0.40).", "Use SLRS (`slrs`) if"),
        (0.1, "accepts less often than TLI (0.50 against 0.60).", "Use TLI, which"),
        (
            0.015,
            "not known to accept more or less than TLI (0.50 against 0.52, within two errors).",
            "Use TLI: not",
        ),
    ],
)
def test_verdicts_follow_the_figures(difference: float, said_so: str, advice: str) -> None:
    text = slrs_verdict.two_vocabularies(pair_row(difference))
    assert said_so in text
    assert advice in text
    assert "50% of the target's tokens" in text


def test_wide_bounds_decide_nothing() -> None:
    row = pair_row(-0.1)
    assert slrs_verdict.outcome(row, "tli", 1.0) == "more"
    row["acceptance"][1]["over_slrs"]["high"] = 0.0
    assert slrs_verdict.outcome(row, "tli", 1.0) == "not decided"


def test_advice_on_one_vocabulary_and_at_temperature_zero() -> None:
    worse, better = (pair_row(d, method="standard") for d in (0.1, -0.1))
    assert "Use standard" in slrs_verdict.one_vocabulary([worse])
    assert "Use standard" not in slrs_verdict.one_vocabulary([better])
    equal, apart = (pair_row(d, method="slem") for d in (0.0, -0.1))
    for row in (equal, apart):
        for at in row["acceptance"]:
            at |= {"temperature": 0.0, "drafter_temperature": 0.0}
    assert "Use SLEM" in slrs_verdict.greedy([equal])
    assert "Use SLEM" not in slrs_verdict.greedy([equal, apart])


def test_fewer_tokens_by_block_verification_would_be_said() -> None:
    means = {"slem": 1.2, "bonus": 1.5, "residual": 1.6, "block": 1.7}
    row = {"lookahead": 2, "means": means, "less": {"block": 0}}
    assert "in no case fewer" in slrs_verdict.blocks([row])
    assert "in no case fewer" not in slrs_verdict.blocks([row | {"less": {"block": 1}}])


def generated(method: str, per_second: float, tokens: float, forwards: float) -> dict[str, Any]:
    """A row of generation: tokens of an iteration, and forwards of the drafter for a token."""
    spread = {"median": per_second, "low": per_second, "high": per_second}
    row = {"pair": "one", "method": method, "width": 8, "tokens_per_second": spread}
    return row | {"tokens_per_iteration": tokens, "forwards_per_token": forwards}


def speed(*rows: dict[str, Any], more: str = "one") -> str:
    part, models = {"rows": rows, "sizes": {"prompts": 4}}, {"one": "big + small"}
    (text,) = slrs_generation.speed(part, models, [more])
    return text


def test_speed_is_told_as_it_is() -> None:
    tli, plain = generated("tli", 100, 1.25, 1.0), generated("autoregressive", 90, 1.0, 0.0)
    slow, fast = generated("lazy-slrs", 50, 2.5, 3.0), generated("lazy-slrs", 101, 1.2, 3.0)
    text = speed(slow, tli, plain)
    assert "big + small:** SLRS by bounds, width 8 makes 50 tokens/s, slower than TLI" in text
    assert "costs more than 20 of the drafter" in text  # 2 more; 0.8 - 0.4 less for a row of four
    assert slrs_generation.NOTHING in speed(slow, tli, plain, more="another")
    assert "faster than TLI" in speed(fast, tli, plain)
    assert slrs_generation.NOTHING in speed(fast, tli, plain)
    whole = generated("slrs", 1000, 1, 9.0)
    assert "TLI with 100; psi in full makes 1000." in speed(slow, whole, tli, plain)
    assert slrs_generation.fastest([slow, tli, plain]) == []
    assert slrs_generation.fastest([fast, tli, plain]) == ["one"]


def test_overlapping_times_decide_nothing() -> None:
    """Three repetitions are few: faster is what is faster in each of them."""
    fast, plain = generated("lazy-slrs", 101, 1.2, 3.0), generated("autoregressive", 90, 1.0, 0.0)
    plain["tokens_per_second"]["high"] = 102
    assert "neither clearly faster nor slower than no drafts with 90" in speed(fast, plain)
    assert slrs_generation.fastest([fast, plain]) == []


def test_the_usual_width_is_judged_however_fast_another_was() -> None:
    plain, usual = generated("autoregressive", 90, 1.0, 0.0), generated("lazy-slrs", 50, 2.5, 3.0)
    lucky = generated("lazy-slrs", 200, 2.5, 3.0) | {"width": 64}
    assert "width 8 makes 50 tokens/s, slower" in speed(usual, lucky, plain)
    assert slrs_generation.fastest([usual, lucky, plain]) == []
    assert "as many forwards as 8" in slrs_generation.wider_claims([usual, lucky])
    fewer = lucky | {"forwards_per_token": 2.4}
    assert "make 80% to 80% of" in slrs_generation.wider_claims([usual, fewer])
    assert slrs_generation.wider_claims([usual, plain]) == ""


@pytest.mark.deep
def test_command_renders_the_page_and_its_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="not_run (matplotlib is not installed)")
    page = tmp_path / "slrs.md"
    arguments = ["--from-json", str(RECORD), "--markdown", str(page)]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert page.read_text() == PAGE.read_text()
    for name in re.findall(r"\]\((slrs_\w+\.png)\)", page.read_text()):
        assert (tmp_path / name).stat().st_size > 1000
        assert (DOCS / name).exists()
    both = [*arguments, "--output", str(tmp_path / "other.json")]
    assert CliRunner().invoke(main, both).exit_code == 2
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps([]))
    with pytest.raises(ValueError, match="no record"):
        read_record(wrong)
