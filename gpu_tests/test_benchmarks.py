"""The benchmarks: what they count, that they run on each device, and the recorded page."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from click.testing import CliRunner

from gpu_tests.benchmarks import cases, generation, lines, record, timing
from gpu_tests.benchmarks.cases import Case, Problem, floors
from gpu_tests.benchmarks.contenders import Tally
from gpu_tests.benchmarks.figures import faster_than_plain, near_floor, no_slower
from gpu_tests.benchmarks.generation import Run
from gpu_tests.benchmarks.lines import BY_ID, OURS, THEIRS, Line
from gpu_tests.pairs import card_entries
from gpu_tests.sizes import PRETENDED

CASE = Case(2, 3, 100, "float32", "probabilities", "eager")
LINE = Line("homogeneous", "standard", 1.0, OURS, 1, 1, 6, 4)


def bytes_by_hand(case: Case, itemsize: int) -> int:
    """Two rows with 3 drafts: one keeps all and has a bonus token, one rejects its second."""
    bonus = 100 * itemsize + 3 * 2 * itemsize + 3 * (8 + 8) + 8
    rejected = 2 * 100 * itemsize + 2 * itemsize + 2 * (8 + 8) + 8
    return bonus + rejected + 2 * (4 * 8 + 8)


@pytest.mark.parametrize(("dtype", "itemsize"), [("float32", 4), ("bfloat16", 2)])
def test_floor_counts_each_byte_once(dtype: str, itemsize: int) -> None:
    case = replace(CASE, dtype=dtype)
    all_rows = 2 * 7 * 100 * itemsize + (3 + 2) * 16 + 2 * 8 + 2 * 40
    found = floors(case, [4, 2])
    assert found == {"all rows": all_rows, "needed rows": bytes_by_hand(case, itemsize)}
    assert floors(case, [4, 4])["needed rows"] < floors(case, [4, 3])["needed rows"]
    logits = replace(case, input="logits")
    after_the_stop = (2 + 1) * 100 * itemsize
    needed = {"all rows": all_rows, "needed rows": all_rows - after_the_stop}
    assert floors(logits, [4, 2]) == needed


def test_floor_is_that_of_what_is_read() -> None:
    """Rows that verification does not reach may hold anything; those it stops at may not."""
    problem = Problem.drawn(replace(CASE, batch=16), "cpu", 1)
    tokens, counts = problem.call(replace(CASE, batch=16))()
    rejected = counts <= CASE.lookahead
    assert rejected.any()
    assert not rejected.all()
    row = torch.arange(CASE.lookahead + 1)
    problem.target[row > counts[:, None] - 1] = torch.nan
    problem.drafter[row[:-1] > counts[:, None] - 1] = torch.nan
    assert torch.equal(problem.call(replace(CASE, batch=16))()[0], tokens)
    problem.target[row == counts[:, None] - 1] = torch.nan
    assert not torch.equal(problem.call(replace(CASE, batch=16))()[0], tokens)


def test_stopwatch_repeats_as_told() -> None:
    calls = []
    stopwatch = timing.Stopwatch("cpu", 1 << 10)
    for most, seconds, expected in ((5, float("inf"), 5), (5, 0.0, 3), (2, 0.0, 2)):
        calls.clear()
        assert len(stopwatch.times(lambda: calls.append(0), most, seconds)) == expected
        assert len(calls) == expected + timing.WARM_UP
    assert stopwatch.copy_bandwidth() > 0


def tally(seconds: float) -> Tally:
    return Tally(seconds, emitted=6, drafted=8, accepted=2, iterations=4, target_forwards=4)


def test_ratios_are_taken_within_repetitions() -> None:
    """The second repetition is ten times slower, for all: ratios do not see it."""
    theirs, plain = replace(LINE, implementation=THEIRS), replace(LINE, method="autoregressive")
    failed = Run(replace(theirs, implementation=BY_ID), 0, None, "failed (E)")
    slower = [(line, repetition) for repetition in (0, 1) for line in (LINE, theirs, plain)]
    seconds = {LINE: 1.0, theirs: 2.0, plain: 4.0}
    runs = [Run(line, turn, tally(seconds[line] * 10**turn)) for line, turn in slower]
    mine, other, _, last = generation.rows([Run(LINE, -1, tally(99.0)), *runs, failed])
    assert {ratio["median"] for ratio in mine["ratio_to"].values()} == {2.0}
    assert mine["ratio_to"][THEIRS]["low"] == mine["ratio_to"][THEIRS]["high"] == 2.0
    assert mine["ratio_to_autoregressive"]["median"] == 4.0
    assert mine["tokens_per_second"] == {"median": 3.3, "low": 0.6, "high": 6.0, "repetitions": 2}
    assert (mine["acceptance"], mine["drafted"]) == (0.25, 16)
    assert (mine["tokens_per_target_forward"], mine["seconds_per_iteration"]) == (1.5, 1.375)
    assert (other["ratio_to"], last["status"]) == ({}, "failed (E)")


def timed(variant: str, seconds: float, **case: object) -> dict[str, object]:
    shape = {"batch": 64, "vocabulary": 152_064, "lookahead": 4, "dtype": "float32"}
    floors = {"all rows": 1.0, "needed rows": 0.5}
    times = {"floor_seconds": floors, "seconds": {"median": seconds}, "status": "measured"}
    return shape | {"input": "logits", "variant": variant} | times | case


def test_verification_figure_takes_the_best_variant_and_the_worst_case() -> None:
    rows = [timed("eager", 9.0), timed("compiled", 1.1), timed("eager", 9.0, dtype="bfloat16")]

    def outcome(*rows: dict[str, object], given: str = "logits") -> str:
        return near_floor(rows, given, "float32").outcome

    assert outcome(*rows) == "met"
    assert outcome(*rows, timed("eager", 1.3, lookahead=8)) == "missed"
    assert outcome(*rows, timed("eager", 1.3, batch=16)) == "met"
    assert outcome(timed("eager", 1.0, status="not_run (x)")) == "not_run (x)"
    assert outcome(timed("eager", 0.7, input="probabilities"), given="probabilities") == "met"
    assert outcome(timed("eager", 0.8, input="probabilities"), given="probabilities") == "missed"


def generated(method: str, peer: float, plain: float, **names: object) -> dict[str, object]:
    row = {"pair": "p", "method": method, "temperature": 1.0, "lookahead": 4, "batch": 1}
    row |= {"implementation": OURS, "verification": "token"}
    ratios = {"ratio_to": {THEIRS: {"median": peer, "low": peer, "high": peer}}}
    return row | ratios | {"ratio_to_autoregressive": {"median": plain}} | names


def test_generation_figures_judge_every_row() -> None:
    rows = [generated("slem", 1.0, 1.1), generated("tli", 0.5, 0.9)]
    assert no_slower(rows, "cpu").outcome == "met"
    assert no_slower([*rows, generated("slem", 0.99, 0.5)], "cpu").outcome == "missed"
    assert faster_than_plain(rows, "cuda").outcome == "missed"
    assert faster_than_plain([*rows, generated("tli", 0.5, 1.2)], "cuda").outcome == "met"
    jointly = generated("tli", 0.5, 1.2, verification="block")
    assert (
        "tli 1.20 x (p, T 1, lookahead 4, by block)"
        in faster_than_plain([*rows, jointly], "cpu").evidence
    )
    batches = [*rows, generated("tli", 0.5, 1.2, batch=16)]
    assert faster_than_plain(batches, "cuda").outcome == "missed"


@pytest.fixture(scope="module")
def recorded(device: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny record of one device; compiled where that takes seconds only."""
    if not card_entries():
        pytest.skip("not_run (fixtures/models is not built)")
    folder, kind = tmp_path_factory.mktemp("record"), device.partition(":")[0]
    files = [f"--output={folder / 'record.json'}", f"--markdown={folder / 'page.md'}"]
    with pytest.MonkeyPatch.context() as patch:
        tiny = (
            cases.TINY if kind == "cpu" else replace(cases.TINY, compiled=lambda c: c.batch == 2)
        )
        if device != PRETENDED:  # which has smaller ones
            sizes = {"verification": tiny, "generation": lines.TINY}
            sizes = {part: dict.fromkeys(record.DEVICES, one) for part, one in sizes.items()}
            patch.setattr(record, "SIZES", sizes)
        result = CliRunner().invoke(record.main, [*files, "--device", kind])
    assert result.exit_code == 0, result.output
    return folder


def test_a_tiny_record(recorded: Path, device: str) -> None:
    kind = device.partition(":")[0]
    record = json.loads((recorded / "record.json").read_text())
    parts = {(part["part"], part["device"]): part for part in record["parts"]}
    assert len(parts) == 4
    for (_, where), part in parts.items():
        statuses = {row["status"].split(" (")[0] for row in part["rows"]}
        assert statuses == {"measured" if where == kind else "not_run"}
        assert (part["machine"] is not None) == (where == kind)
    rows = parts["generation", kind]["rows"]
    assert {row["implementation"] for row in rows if row["temperature"] == 0} == {OURS, THEIRS}


def test_rendering_alone_changes_nothing(recorded: Path, tmp_path: Path) -> None:
    file, again = recorded / "record.json", tmp_path / "again.md"
    before = file.read_text()
    CliRunner().invoke(record.main, ["--from-json", str(file), "--markdown", str(again)])
    assert again.read_text() == (recorded / "page.md").read_text()
    assert file.read_text() == before


def test_what_cannot_be_measured_stays_as_it_was(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other parts are of this version's sizes, and not run."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    file = tmp_path / "record.json"
    file.write_text((recorded / "record.json").read_text())
    measured = record.read_measured(file)
    record.write_record(file, {("verification", "cuda"), ("generation", "cuda")}, seed=1)
    assert record.read_measured(file) == measured
    parts = json.loads(file.read_text())["parts"]
    others = [row["status"] for part in parts if not part["machine"] for row in part["rows"]]
    assert others
    assert set(others) <= {record.NO_CUDA, record.NOT_ASKED}
    assert len(measured) == 2
