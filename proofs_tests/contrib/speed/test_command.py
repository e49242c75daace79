"""``specref plan speed`` as a user meets it, beside ``specref plan``."""

import json
import re
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from proofs_tests.helpers.command import assert_fits
from specref.cli import main
from specref.contrib.speed.command import speed_plan
from specref.contrib.speed.speedup import walltime_improvement

PNG = b"\x89PNG\r\n\x1a\n"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["plan", *arguments])


def speed(*arguments: str, acceptance: str = "0.7", cost: str = "0.05") -> Result:
    return run("speed", "--acceptance", acceptance, "--cost", cost, *arguments)


def rows(output: str) -> dict[int, list[str]]:
    found = re.findall(r"^ *(\d+) +(\d.*)$", output, flags=re.MULTILINE)
    return {int(lookahead): cells.split() for lookahead, cells in found}


def assert_refused(result: Result, *parts: str) -> None:
    assert result.exit_code == 2
    (line,) = result.stderr.strip().splitlines()
    assert all(part in line for part in parts), line
    assert result.stdout == ""


def test_table_marks_the_best_lookahead() -> None:
    result = speed()
    assert result.exit_code == 0, result.output
    table = rows(result.output)
    assert list(table) == list(range(17))
    assert table[0] == ["1.000", "1.000x", "1.000x"]
    assert table[6] == ["3.059", "2.353x", "2.387x", "0.231", "<-", "best"]
    assert table[1][-1] == "0.050"  # the break-even of one draft is the cost
    assert [k for k, cells in table.items() if cells[-1] == "best"] == [6]
    assert "acceptance 0.7 > cost 0.05" in result.output


def test_line_is_drawn_where_drafting_stops_paying() -> None:
    lines = speed(acceptance="0.5", cost="0.1").output.splitlines()
    (line,) = [k for k, text in enumerate(lines) if "╌" in text]
    assert lines[line - 1].split()[:3] == ["9", "1.998", "1.052x"]
    assert lines[line + 1].split()[:3] == ["10", "1.999", "1.000x"]
    assert any("no lookahead from 10 on is faster" in text for text in lines)
    assert "╌" not in speed().output


@pytest.mark.parametrize(("acceptance", "cost"), [("0", "0.05"), ("0.05", "1/20"), ("1", "1")])
def test_no_drafts_are_best_where_acceptance_does_not_exceed_cost(
    acceptance: str, cost: str
) -> None:
    output = speed(acceptance=acceptance, cost=cost).output
    assert rows(output)[0][-1] == "best"
    assert "no lookahead is faster than no drafts" in output


def speedups_are_right(record: dict) -> bool:
    exact = [walltime_improvement(Fraction(7, 10), k, Fraction(1, 20)) for k in range(10)]
    return [row["speedup"] for row in record["rows"]] == [float(x) for x in exact]


def test_json_is_the_same_arithmetic(tmp_path: Path) -> None:
    file = tmp_path / "speed.json"
    assert speed("--json", str(file), "--lookahead-max", "9", cost="1/20").exit_code == 0
    assert_fits("plan-speed", file.read_text())
    record = json.loads(file.read_text())
    assert (record["acceptance"], record["cost"]) == (["7/10"], "1/20")
    assert (record["best_lookahead"], record["is_faster"]) == (6, True)
    assert speedups_are_right(record)
    assert json.loads(speed("--json", "-").stdout)["best_lookahead"] == 6


def test_a_wrong_formula_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: without the bonus token, as in the loop of some explainers."""
    monkeypatch.setattr(
        "specref.contrib.speed.command.walltime_improvement",
        lambda a, g, c: sum(a**k for k in range(max(g, 1))) / (1 + g * c),
    )
    assert not speedups_are_right(json.loads(speed("--json", "-", "--lookahead-max", "9").stdout))


def test_acceptance_by_position_and_operations() -> None:
    output = speed("--operations", "0", acceptance="0.8,0.6,0.4", cost="0.3").output
    table = rows(output)
    assert list(table) == [0, 1, 2, 3]
    assert table[2] == ["2.280", "1.425x", "1.316x", "0.422", "<-", "best"]


def test_ties_are_decided_exactly() -> None:
    """1/2 twice at cost 1/5: one and two drafts are as fast, 5/4; floats may say otherwise."""
    assert rows(speed(acceptance="0.5,0.5", cost="0.2").output)[1][-1] == "best"
    assert "greater --lookahead-max" in speed("--lookahead-max", "3").output


def test_plan_itself_still_works() -> None:
    result = run("--tv", "0.01")
    assert result.exit_code == 0
    assert "alpha 1e-09 for the campaign" in result.output
    assert_refused(run(), "expected exactly one of --tv")
    assert_refused(
        run("--n", "9", *["speed", "--acceptance", "0.5", "--cost", "0.1"]), "--n before speed"
    )


def test_help_has_examples() -> None:
    for arguments in (["--help"], ["speed", "--help"]):
        output = run(*arguments).output
        assert "Examples:" in output
        assert "specref plan speed --acceptance 0.7 --cost 0.05" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--acceptance", "1.2", "--cost", ".1"], "acceptance = 6/5: expected a number in [0, 1]"),
        (["--acceptance", "0.5,-1", "--cost", ".1"], "acceptance[1] = -1"),
        (["--acceptance", "half", "--cost", ".1"], "acceptance = 'half': expected a number"),
        (["--acceptance", "0.5", "--cost", "0"], "cost = 0: expected a number > 0"),
        (["--acceptance", "0.5", "--cost", "1/0"], "cost = '1/0'"),
        (["--acceptance", "0.5", "--cost", "nan"], "cost = 'nan'"),
        (["--acceptance", ".5", "--cost", ".1", "--operations", "-1"], "operations_ratio = -1"),
        (["--acceptance", ".5", "--cost", ".1", "--lookahead-max", "-1"], "lookahead_max = -1"),
        (["--acceptance", ".5,.5", "--cost", ".1", "--lookahead-max", "3"], "has 2 positions"),
        (["--acceptance", ".5", "--cost", ".1", "--json", "no/f"], "cannot write no/f"),
    ],
)
def test_misuse_is_one_line(arguments: list[str], message: str) -> None:
    assert_refused(run("speed", *arguments), message)


def test_plot_without_matplotlib_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = speed("--plot", str(tmp_path / "speed.png"))
    assert_refused(result, "--plot needs matplotlib", "pip install matplotlib")


def test_plot_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="not_run (no matplotlib)")
    file = tmp_path / "speed.png"
    result = speed("--plot", str(file))
    assert result.exit_code == 0, result.output
    assert result.stderr == f"wrote {file}\n"
    assert file.read_bytes().startswith(PNG)
    assert_refused(speed("--plot", str(tmp_path / "speed.xyz")), "not supported")
    assert_refused(speed("--plot", str(tmp_path / "no" / "f.png")), "cannot write")


def test_plot_shows_what_the_plan_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="not_run (no matplotlib)")
    from matplotlib.figure import Figure

    from specref.contrib.speed.command import draw_speed_plan

    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, file, **options: drawn.append(self))
    plan = speed_plan(Fraction(7, 10), Fraction(1, 20), Fraction(1, 20), 16)
    draw_speed_plan(plan, str(tmp_path / "speed.png"))
    top, bottom = drawn[0].axes
    curves = {line.get_label(): list(line.get_ydata()) for line in top.lines}
    assert curves["cost 0.05"] == [row.speedup for row in plan.rows]
    assert list(bottom.lines[0].get_ydata()) == [row.operations for row in plan.rows]
    texts = {text.get_text() for text in top.texts}
    assert {"best: lookahead 6, 2.35x", "no drafts", "1 / (1 - acceptance) = 3.33"} <= texts
    assert top.get_legend() is not None
    assert all(axes.get_ylabel() for axes in (top, bottom))
    assert bottom.get_xlabel()
