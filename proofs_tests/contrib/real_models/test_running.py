"""The cross-check of two folders with tiny random models: rows, planted bugs, going on."""

import json
import shutil

import pytest

pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from click.testing import CliRunner
from safetensors.torch import load_file, save_file

from proofs_tests.contrib.real_models import tiny
from specref.cli import main
from specref.contrib.real_models import running
from specref.contrib.real_models.generating import Generator
from specref.contrib.real_models.judging import judge
from specref.contrib.real_models.loading import load
from specref.contrib.real_models.pairs import paired, shared_tokens
from specref.contrib.real_models.planted import BUGS, BUGS_OF
from specref.contrib.real_models.record import (
    Case,
    Record,
    Sizes,
    cases_of,
    verdict,
)
from specref.contrib.real_models.running import LEAST, minutes, missing, prompts_of, run_row
from specref.contrib.real_models.settings import Setting
from specref.contrib.real_models.tally import Place, Tally

LENGTH = 12
FOUND = Sizes(96, 0, 1500)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(running, "LENGTH", LENGTH)
    monkeypatch.setattr(running, "BATCH", 8)


def ran(pairs, tmp_path, case, tokens):
    record = Record(tmp_path / "record.json")
    run_row(record, case, pairs[case.method], tokens, lambda *_: None)
    return record.rows[case]


CLEAN = [
    ("tli", Setting(top_k=20)),
    ("autoregressive", Setting()),
    ("union", Setting()),
    ("slem", Setting(top_p=0.9)),
    ("slrs", Setting()),
    ("standard", Setting(0.7)),
    ("block", Setting()),
]


def test_slrs_is_compared_with_exact_match_on_the_same_drafts(pairs, tmp_path):
    """Exact match accepts a draft with p, SLRS with min(1, p / psi), which is nowhere less."""
    tally = ran(pairs, tmp_path, Case("tiny", "slrs"), 60)
    first = tally.places[0]
    assert first.compared == first.reached
    assert first.least == pytest.approx(first.matched + first.gain)
    mean, error = first.gained
    assert 0 < error < mean


def test_a_gain_has_the_error_of_a_mean():
    place = Place()
    for least in (0.5, 0.75, 1.0):
        place.compare(0.5, least)
    assert place.gained == pytest.approx((0.25, 0.25 / 3**0.5))


@pytest.mark.deep(one_in=7)
@pytest.mark.parametrize(("method", "setting"), CLEAN, ids=str)
def test_nothing_is_found_in_the_rules(pairs, tmp_path, method, setting):
    case = Case("tiny", method, setting)
    tally = ran(pairs, tmp_path, case, 150)
    assert verdict(case, tally) == "nothing found"
    assert tally.tokens >= 150
    assert tally.at_cut == 0
    assert tally.shaped > 90
    assert tally.misshaped == 0
    assert tally.decided.unexplained == 0, tally.decided.examples
    assert tally.decided.iterations > 50
    assert (method == "autoregressive") == (not tally.places)
    for place in tally.places:
        assert place.least <= place.most * (1 + 1e-9)


BUGGY = [(method, bug) for method, bugs in BUGS_OF.items() for bug in bugs]
FEW = {("tli", "permuted head"), ("standard", "row before"), ("block", "first failure")}


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    ("method", "bug"),
    [pytest.param(*one, marks=() if one in FEW else pytest.mark.deep) for one in BUGGY],
)
def test_planted_bugs_are_found(pairs, tmp_path, method, bug):
    case = Case("tiny", method, bug=bug)
    tally = ran(pairs, tmp_path, case, FOUND.bug)
    assert verdict(case, tally).startswith("found")


def test_every_bug_stands_somewhere():
    assert {bug for bugs in BUGS_OF.values() for bug in bugs} == set(BUGS)


def test_a_profile_says_which_bugs_are_planted():
    methods = ("slrs", "tli")
    for planted, hosts in ((None, {"slrs", "tli"}), ({"tli": ("lenient",)}, {"tli"})):
        cases = cases_of("tiny", methods, Sizes(1, 0, 1, planted=planted))
        assert {case.method for case in cases if case.bug} == hosts


@pytest.mark.deep
def test_wrong_acceptance_is_noticed(pairs, tmp_path):
    """A quarter of the drafts accepted unseen, judged as if it were the rule."""
    pair = pairs["tli"]
    generator, record = Generator(pair, "tli", Setting()), Record(tmp_path / "r.json")
    tally, rows = record.tally(Case("tiny", "tli")), prompts_of(pair)
    for start in range(0, 128, 8):
        made = generator(rows[:8], range(start, start + 8), LENGTH, BUGS["lenient"]())
        judge(tally, made, "tli", Setting(), pair.target)
    assert not tally.places[0].conforms
    assert 0 < tally.counts_off_at <= tally.tokens
    assert verdict(Case("tiny", "tli"), tally) in ("LOSSY", "decides otherwise")


def test_a_row_goes_on_and_a_finished_one_stays(pairs, tmp_path):
    case, sizes = Case("tiny", "union"), Sizes(96, 0, 0)
    ran(pairs, tmp_path, case, 96)
    first = json.loads((tmp_path / "record.json").read_text())
    again = Record(tmp_path / "record.json")
    assert missing(again, [case], sizes) == []
    whole = ran(pairs, tmp_path, case, 192)
    assert whole.tokens >= 192
    at_once = tmp_path / "other"
    at_once.mkdir()
    straight = ran(pairs, at_once, case, 192)
    assert (whole.tokens, whole.texts) == (straight.tokens, straight.texts)
    assert whole.wealth == pytest.approx(straight.wealth, abs=1e-6)
    assert first["rows"][0]["figures"]["tokens"] < whole.tokens


def test_a_row_gets_as_many_texts_as_it_lacks_and_a_bug_few_at_first(pairs, tmp_path, monkeypatch):
    asked = []

    def generated(self, rows, numbers, *others):
        asked.append(len(numbers))
        return made(self, rows, numbers, *others)

    made = Generator.__call__
    monkeypatch.setattr(Generator, "__call__", generated)
    ran(pairs, tmp_path, Case("tiny", "union"), 97)
    ran(pairs, tmp_path, Case("tiny", "autoregressive", bug="sharper"), 300)
    assert asked[:2] == [8, 1]
    assert asked[-4:-1] == [4, 4, 8]


def test_minutes_are_by_the_pace_of_the_same_pair_and_device(pairs, tmp_path):
    lacking = [(Case("tiny", "tli", device="cuda"), 600)]
    record = Record(tmp_path / "record.json")
    by_size = minutes(record, lacking, pairs["tli"])
    assert by_size == pytest.approx(600 * LEAST / 60)
    for other in (Case("other", "tli", device="cuda"), Case("tiny", "tli")):
        record.rows[other] = Tally(tokens=1, wall=3.0)
    assert minutes(record, lacking, pairs["tli"]) == by_size
    record.rows[Case("tiny", "slem", device="cuda")] = Tally(tokens=2, wall=1.0)
    assert minutes(record, lacking, pairs["tli"]) == 5
    assert minutes(record, lacking, pairs["tli"], timed=60) == 5.5


def test_another_file_is_not_overwritten(tmp_path):
    path = tmp_path / "record.json"
    path.write_text('{"version": 0}')
    with pytest.raises(ValueError, match="it is no record of this command"):
        Record(path)


def cross_check(*words):
    return CliRunner().invoke(main, ["cross-check", *map(str, words)])


def test_the_command_judges_two_folders(folders, tmp_path, monkeypatch):
    monkeypatch.setattr("specref.contrib.real_models.running.PROFILES", {"quick": Sizes(50, 0, 0)})
    path = tmp_path / "record.json"
    words = ("--target", folders["target"], "--drafter", folders["drafter"], "--record", path)
    done = cross_check(*words, "--method", "tli", "--method", "autoregressive")
    assert done.exit_code == 0, done.output
    rows = json.loads(path.read_text())["rows"]
    assert {row["case"]["method"] for row in rows} == {"autoregressive", "tli"}
    assert all(row["figures"]["verdict"] == "nothing found" for row in rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target", "x"), "go together"),
        (("--target", "x", "--drafter", "y", "--pair", "smollm2<-gemma"), "without --target"),
        (("--target", "x", "--drafter", "y"), "target = x: there is no such folder"),
        (("--pair", "other"), "expected one of gemma<-smollm2"),
        (("--method", "other"), "expected one of autoregressive, union"),
    ],
)
def test_misuse_is_said(words, message, tmp_path):
    done = cross_check(*words, "--record", tmp_path / "r.json")
    assert done.exit_code == 2
    assert message in done.output


def test_a_method_that_no_pair_has_is_no_pass(folders, tmp_path):
    words = ("--target", folders["target"], "--drafter", folders["drafter"])
    done = cross_check(*words, "--method", "block", "--record", tmp_path / "r.json")
    assert done.exit_code == 2
    assert "nothing was run: target <- drafter has autoregressive, union" in done.output


def test_published_models_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECREF_MODELS", str(tmp_path))
    done = cross_check("--record", tmp_path / "r.json")
    assert done.exit_code == 2
    assert "is not there: make models" in done.output


def test_short_positions_are_said_first(pairs, folders, tmp_path):
    tiny.save(tmp_path / "short", 280, 5, positions=24)
    pair = paired(pairs["tli"].target, load(tmp_path / "short", "drafter"))
    with pytest.raises(ValueError, match="drafter short reads 24 tokens: expected"):
        prompts_of(pair)


def test_vocabularies_that_share_nothing(pairs, monkeypatch):
    monkeypatch.setattr("specref.contrib.real_models.pairs.shared_tokens", lambda *_: 0)
    with pytest.raises(ValueError, match="shares no token with target"):
        paired(pairs["tli"].target, pairs["tli"].drafter)


@pytest.mark.parametrize(("words", "shared"), [("〇一", 0), ("〇a", 1)])
def test_the_end_of_a_text_is_no_shared_token(pairs, words, shared):
    """Both models have one, and a draft that can only end the text is none."""
    assert shared_tokens(pairs["tli"].target, tiny.of_words([*words, "<e>"])) == shared


def changed(folder, copy):
    """A copy of a folder whose weights are others."""
    shutil.copytree(folder, copy)
    weights = load_file(copy / "model.safetensors")
    weights["model.norm.weight"] *= 1.01
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    return copy


def test_rows_of_other_models_do_not_go_on(folders, tmp_path, monkeypatch):
    """Models of the same names: after training, or in another place."""
    monkeypatch.setattr("specref.contrib.real_models.running.PROFILES", {"quick": Sizes(20, 0, 0)})
    words = ("--drafter", folders["drafter"], "--method", "union", "--record", tmp_path / "r.json")
    first = cross_check("--target", folders["target"], *words)
    assert first.exit_code == 0, first.output
    assert "another --record" not in first.output
    again = cross_check("--target", folders["target"], *words)
    assert f"rows from {tmp_path / 'r.json'}: 1; another --record" in again.output
    other = cross_check("--target", changed(folders["target"], tmp_path / "target"), *words)
    assert other.exit_code == 2
    assert "its rows of target <- drafter are of another target" in other.output


def test_an_interrupted_run_says_how_to_go_on(folders, tmp_path, monkeypatch):
    def interrupted(record, *_):
        record.write()
        raise KeyboardInterrupt

    monkeypatch.setattr("specref.contrib.real_models.running.run_row", interrupted)
    words = ("--target", folders["target"], "--drafter", folders["drafter"])
    ended = cross_check(*words, "--record", tmp_path / "r.json")
    assert ended.exit_code == 130
    assert f"what is finished is in {tmp_path / 'r.json'}; the same command" in ended.output


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_that_is_not_there(tmp_path, monkeypatch, device):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    done = cross_check("--device", device, "--record", tmp_path / "r.json")
    assert done.exit_code == 2
    assert f"--device {device}: torch" in done.output


def test_a_model_whose_cache_cannot_be_cropped_is_judged_without(folders, tmp_path, monkeypatch):
    """Mamba's state cannot be taken back; the refusal names the option that reads texts again."""
    monkeypatch.setattr("specref.contrib.real_models.running.PROFILES", {"quick": Sizes(20, 0, 0)})
    stateful = tiny.save_stateful(tmp_path / "mamba", 300, 4)
    words = ("--target", stateful, "--drafter", folders["drafter"], "--method", "tli")
    refused = cross_check(*words, "--record", tmp_path / "r.json")
    assert refused.exit_code == 2
    assert "--no-cache" in refused.output
    done = cross_check(*words, "--no-cache", "--record", tmp_path / "r.json")
    assert done.exit_code == 0, done.output
    (row,) = json.loads((tmp_path / "r.json").read_text())["rows"]
    assert row["figures"]["verdict"] == "nothing found"
    assert row["figures"]["tokens"] >= 20
    assert row["figures"]["decided_twice"]["unexplained"] == 0
