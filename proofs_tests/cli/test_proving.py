"""`specref prove` for every p and q, of one rule, two or all: verdicts, exit codes, records."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from proofs_tests.helpers.command import assert_fits, run
from specref.cli import proving as module
from specref.verification.dominance import Question

STANDARD = "specref.algorithms.standard:step"
LOSSY = "proofs_tests.cli.test_proving:lossy"


def lossy(target, drafter, context, lookahead, chance):
    """The drafter's token where it is nearly sure, and right elsewhere."""
    from fractions import Fraction

    q = drafter.next_token(context)
    model = drafter if q[0] > Fraction(99, 100) else target
    return (chance.draw(model.next_token(context), "draw"),)


def converting(target, drafter, context, lookahead, chance):
    if float(target.next_token(context)[0]) > 2:
        return (0,)
    return (chance.draw(target.next_token(context), "draw"),)


def in_numpy(target, drafter, context, lookahead, chance):
    if np.isnan(target.next_token(context)).any():
        return (0,)
    return (chance.draw(target.next_token(context), "draw"),)


def test_proved_is_0_and_says_for_what() -> None:
    result = run("prove", STANDARD, "--everywhere", "--tokens", "2")
    assert result.exit_code == 0
    assert "lossless for every p and q over 2 tokens" in result.output
    said = " ".join(result.output.split())
    assert "10 regions, 0 open, error of the identity tests <= 2^-126" in said
    assert "--tokens 3 --lookahead 2" in said


def test_lossy_is_1_with_a_witness_that_replays(tmp_path: Path) -> None:
    case, record = tmp_path / "rows.json", tmp_path / "record.json"
    files = "--save", str(case), "--json", str(record)
    result = run("prove", LOSSY, "--everywhere", "--tokens", "2", *files)
    assert result.exit_code == 1
    assert "q(a) > 99/100" in result.output
    # Tokens have the names that the conditions have.
    assert re.search(r"^  P\(a\) = [\d/]+, the target's is [\d/]+$", result.output, re.MULTILINE)
    saved = json.loads(case.read_text())
    (proof,) = json.loads(record.read_text())["proofs"]
    assert proof["verdict"] == "lossy"
    assert proof["witness"]["rows"] == saved["rows"]
    again = run("replay", str(case))
    assert again.exit_code == 1
    assert f"total variation {saved['total_variation']}" in again.output
    assert_fits("prove-everywhere", record.read_text())


@pytest.mark.deep
def test_workers_write_the_same_record(tmp_path: Path) -> None:
    records = []
    for workers in ("1", "2"):
        file = tmp_path / f"{workers}.json"
        run("prove", LOSSY, "--everywhere", "--tokens", "2", "--workers", workers, "--json", file)
        record = json.loads(file.read_text())
        record["proofs"][0].pop("seconds")
        records.append(record)
    assert records[0] == records[1]
    assert records[0]["proofs"][0]["verdict"] == "lossy"


def test_open_is_2() -> None:
    result = run("prove", STANDARD, "--everywhere", "--budget", "1e-9")
    assert result.exit_code == 2
    assert "9 open" in result.output
    assert "try --budget 60" in result.output


def test_a_rule_that_converts_is_refused_with_its_line() -> None:
    result = run("prove", "proofs_tests.cli.test_proving:converting", "--everywhere")
    assert result.exit_code == 2
    line = converting.__code__.co_firstlineno + 1
    assert f"NotForAllError (line {line} of test_proving.py)" in result.output


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("rule", ["leaving", "endless"])
def test_what_does_not_return_is_2_with_its_line(rule: str) -> None:
    name = f"proofs_tests.proofs.everywhere.test_watch:{rule}"
    result = run("prove", name, "--everywhere", "--tokens", "2", "--budget", "1")
    assert result.exit_code == 2
    assert re.search(r"NotForAllError \(line \d+ of test_watch.py\): the rule ", result.output)


def test_a_call_that_needs_floats_is_refused_with_its_line_and_what_to_write() -> None:
    result = run("prove", "proofs_tests.cli.test_proving:in_numpy", "--everywhere")
    assert result.exit_code == 2
    line = in_numpy.__code__.co_firstlineno + 1
    assert f"TypeError (line {line} of test_proving.py)" in result.output
    assert "expected + - * /, whole powers and comparisons" in result.output


SAMPLING = "specref.algorithms.autoregressive:step"
TWO_TOKENS = ("--everywhere", "--tokens", "2")


def test_at_least_is_0_and_less_is_1(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    page = tmp_path / "page.html"
    asked = (STANDARD, *TWO_TOKENS, "--against", SAMPLING)
    more = run("prove", *asked, "--json", str(file), "--html", str(page))
    assert more.exit_code == 0
    text = re.sub("</?span>", "", page.read_text())
    _, again = text.split('<pre class="command">specref prove ')
    assert sorted(again.split("</pre>")[0].split()) == sorted(asked)
    assert "accepts at least as many drafts as" in " ".join(more.output.split())
    (comparison,) = json.loads(file.read_text())["comparisons"]
    assert comparison["relation"] == "more"
    assert comparison["at_least"]["proved"]
    less = run("prove", SAMPLING, *TWO_TOKENS, "--against", "standard")  # of `specref list rules`
    assert less.exit_code == 1
    assert "No: standard accepts at least as many drafts" in " ".join(less.output.split())
    none = run("prove", SAMPLING, *TWO_TOKENS, "--against", "no-rule")
    assert (none.exit_code, "against = 'no-rule'" in none.output) == (2, True)
    assert_fits("prove-against", file.read_text())


def test_an_open_comparison_is_2_and_says_which_budget_to_try() -> None:
    result = run("prove", STANDARD, *TWO_TOKENS, "--against", SAMPLING, "--budget", "1e-9")
    assert result.exit_code == 2, result.output
    assert result.output.startswith("Open for ")
    assert "try --budget 60" in result.output


@pytest.mark.deep
def test_several_iterations_are_compared_by_their_tokens(tmp_path: Path) -> None:
    """Two iterations of autoregressive decoding emit 2 tokens, of standard with q = p 4."""
    file = tmp_path / "record.json"
    asked = (*TWO_TOKENS, "--against", STANDARD, "--iterations", "2", "--json", str(file))
    result = run("prove", SAMPLING, *asked)
    assert result.exit_code == 1
    assert "tokens in 2 iterations" in " ".join(result.output.split())
    (comparison,) = json.loads(file.read_text())["comparisons"]
    assert (comparison["iterations"], comparison["relation"]) == (2, "less")
    assert (comparison["less"]["left"], comparison["less"]["right"]) == ("2", "4")
    assert_fits("prove-against", file.read_text())


LENIENT = """
from specref.algorithms import standard

def step(target, drafter, context, lookahead, chance):
    return (chance.draw(drafter.next_token(context), "draft[0]"),) * 2

def twice(target, drafter, context, lookahead, chance):
    first = standard.step(target, drafter, context, lookahead, chance)
    return first + standard.step(target, drafter, (*context, *first), lookahead, chance)
"""


@pytest.mark.deep
def test_losslessness_that_was_not_asked_is_said_and_longer_steps_are_refused(tmp_path):
    file = tmp_path / "rules.py"
    file.write_text(LENIENT)
    result = run("prove", f"{file}:step", *TWO_TOKENS, "--against", "standard")
    said = " ".join(result.output.split())
    assert said.startswith("Yes: ")
    assert "rules.py:step is lossless was not asked" in said
    assert "whether standard is lossless" not in said
    longer = run("prove", f"{file}:twice", *TWO_TOKENS, "--against", "standard")
    assert longer.exit_code == 2
    assert "expected at most 2, those of 1 iteration with lookahead 1" in longer.output


RAISING = """
from specref.algorithms import standard

def step(target, drafter, context, lookahead, chance):
    p, q = target.next_token(context), drafter.next_token(context)
    if p[0] == q[0]:
        p[0] / (p[0] - q[0])
    return standard.step(target, drafter, context, lookahead, chance)
"""


def test_a_rule_that_raises_somewhere_is_not_compared(tmp_path: Path) -> None:
    rule = tmp_path / "raising.py"
    rule.write_text(RAISING)
    result = run("prove", f"{rule}:step", *TWO_TOKENS, "--against", STANDARD)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "raised ZeroDivisionError (line 7 of raising.py)" in line
    assert "rules that raise somewhere are not compared" in line


def test_an_error_of_the_proof_itself_is_not_put_down_to_a_rule(monkeypatch) -> None:
    def broken(*arguments, **options):
        raise KeyError("own")

    monkeypatch.setattr(module, "compare_everywhere", broken)
    monkeypatch.setattr(module, "_of_proofs", lambda file: True)  # this file is none of a rule
    result = run("prove", STANDARD, *TWO_TOKENS, "--against", SAMPLING)
    assert isinstance(result.exception, KeyError)


def test_what_is_stopped_is_open_and_has_no_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("specref.proofs.everywhere.comparison._Claims.look", stop)
    result = run("prove", STANDARD, *TWO_TOKENS, "--against", SAMPLING)
    said = " ".join(result.output.split())
    assert said.startswith("Open for ")
    assert "(0 regions, stopped before the end)" in said


LESS = """
from specref.algorithms import autoregressive, standard

def step(target, drafter, context, lookahead, chance):
    block = standard.step(target, drafter, context, lookahead, chance)
    return block[:1] if len(block) > 1 else (0,)
"""


@pytest.mark.deep
def test_what_accepts_less_and_is_lossy_is_answered_by_no(tmp_path: Path) -> None:
    """That it accepts at most as many cannot be shown: it is no lossless rule."""
    (tmp_path / "less.py").write_text(LESS)
    page = tmp_path / "page.html"
    rule = f"{tmp_path / 'less.py'}:step"
    result = run("prove", rule, *TWO_TOKENS, "--against", STANDARD, "--html", str(page))
    said = " ".join(result.output.split())
    assert result.exit_code == 1
    assert f"No: {STANDARD} accepts more drafts at " in said
    assert re.search(r"is open \(\d+ regions\), since .* is lossy\.", said)
    assert "pieces" not in said
    assert said.count("is lossy") == 2
    assert "Open" not in said
    assert "since" in page.read_text()


def test_the_table_is_a_page_and_a_record(tmp_path: Path, monkeypatch) -> None:
    few = [Question("standard", "autoregressive", ("a", "b"), ("a", "b"), 1)]
    monkeypatch.setattr(module, "questions_of", lambda profile: few)
    page, record = tmp_path / "page.md", tmp_path / "record.json"
    result = run("verify", "--dominance", "--markdown", str(page), "--json", str(record))
    assert result.exit_code == 0
    assert "`specref prove --all --compare --profile quick --budget 20 --markdown FILE`" in (
        page.read_text()
    )
    (answer,) = json.loads(record.read_text())["answers"]
    assert answer["sentence"] in page.read_text()
    assert_fits("verify-dominance", record.read_text())


@pytest.mark.deep
@pytest.mark.parametrize(
    ("rule", "formula", "budget", "code"),
    [
        ("tli", "min(p, q), 0 for what the draft model lacks", "20", 1),
        ("union", "min(p, q / sum of q over shared tokens)", "20", 1),
        ("union", "min(p, q), 0 for what the draft model lacks", "20", 0),
        ("union", "min(p, q), 0 for what the draft model lacks", "1e-9", 2),
    ],
)
def test_a_wrong_formula_is_1_and_an_open_one_is_2(rule, formula, budget, code, monkeypatch):
    """Whether the rule accepts less than the formula says, or more."""
    asked = Question(rule, formula, ("a", "b", "c"), ("b", "c", "d"), 1)
    monkeypatch.setattr(module, "questions_of", lambda profile: [asked])
    assert run("verify", "--dominance", "--budget", budget).exit_code == code


@pytest.mark.parametrize(
    ("rules", "budget"),
    [(("standard", "autoregressive"), "1e-9"), (("union", "standard"), "20")],
)
def test_pairs_that_are_open_or_not_run_are_2(rules, budget, monkeypatch):
    drafter = ("b", "c") if "union" in rules else ("a", "b")
    asked = Question(*rules, ("a", "b"), drafter, 1)
    monkeypatch.setattr(module, "questions_of", lambda profile: [asked])
    assert run("verify", "--dominance", "--budget", budget).exit_code == 2


def test_without_z3_nothing_is_run(monkeypatch) -> None:
    monkeypatch.setattr(module, "is_installed", lambda: False)
    asked = ("prove", STANDARD, *TWO_TOKENS, "--against", SAMPLING)
    for arguments in (asked, asked[:-2], ("verify", "--dominance"), ("verify", "--everywhere")):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "not_run: z3 is not installed; pip install z3-solver" in result.output
