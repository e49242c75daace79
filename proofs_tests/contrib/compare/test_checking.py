"""`specref check URL`: collected, judged and shown in one command, by a server of ours.

alpha is 1e-9, shared by looks. Power: 120 texts of 6 tokens of each of 3 prompts find permuted
drafts with log10 p of -20 or less at other seeds.
"""

import json

import pytest
from click.testing import CliRunner

from proofs_tests.contrib.compare.serving import PROMPTS, serving
from proofs_tests.helpers.command import assert_fits
from specref.cli import main
from specref.contrib.compare import server as client
from specref.contrib.compare.looking import texts_planned


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(client, "PAUSE", 0.001)


@pytest.fixture
def check(tmp_path):
    def check(url, *more, texts=60):
        prompts = tmp_path / "prompts.txt"
        prompts.write_text("\n".join(PROMPTS))
        given = ["--model", "m", "--prompts", str(prompts), "--texts", str(texts)]
        given += ["--folder", str(tmp_path / "texts"), "--within", "0.7", *more]
        return CliRunner().invoke(main, ["check", url, *given])

    return check


OFF = ("--off", "drafts=0")


def test_a_right_server_passes_and_what_has_come_is_kept(check, tmp_path):
    report = tmp_path / "report.json"
    with serving(cut=2, fail=[500]) as url:
        result = check(url, *OFF, "--logprobs", "processed", "--json", str(report), texts=48)
        file = tmp_path / "texts" / "on.jsonl"
        whole = file.read_text()
        file.write_text(whole[:-40])  # a process that was killed
        again = check(url, *OFF, texts=48)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("NO DIFFERENCE")
    assert "306 requests of 3 prompts" in result.stderr
    assert "GREEDY  3 of 3 texts at temperature 0 are equal" in result.output
    assert "SEEDS  asked for again, with speculation: 6 of 6 came again" in result.output
    assert_fits("compare", report.read_text())
    found = json.loads(report.read_text())
    assert found["speculation"]["exercised"] == "yes"
    assert all(not one["faults"] and not one["excluded"] for one in found["reported"])
    assert again.exit_code == 0
    assert "texts of an earlier run are in" in again.stderr
    assert sorted(map(kept, file.read_text().splitlines())) == sorted(
        map(kept, whole.splitlines())
    )


def test_a_folder_takes_no_texts_of_another_source(check, tmp_path):
    file = tmp_path / "texts" / "on.jsonl"
    with serving() as one, serving(speculate=False) as other:
        check(one, "--plain", other, texts=2)
        before = file.read_bytes()
        exchanged = check(other, "--plain", one, texts=2)
        warmer = check(one, "--plain", other, "--temperature", "1.5", texts=2)
        (tmp_path / "texts" / "drawn.json").unlink()
        older = check(other, "--plain", one, texts=2)
    assert exchanged.exit_code == warmer.exit_code == 2
    folder = f"error: {tmp_path / 'texts'} holds texts of"
    assert exchanged.stderr == f"{folder} {one} (on) and {other} (off): choose another --folder\n"
    assert warmer.stderr.startswith(f"{folder} temperature 1.0 (on) and 1.0 (off): choose")
    assert file.read_bytes() == before, "nothing is added"
    assert "holds texts" not in older.stderr, "folders of former versions say no source"


def kept(line):
    record = json.loads(line)
    return record["prompt_id"], record["seed"], record["token_ids"]


def test_a_lossy_server_of_chats_is_found_before_all_texts_have_come(check, tmp_path):
    with serving("permuted drafts", form="chat") as url:
        result = check(url, *OFF, "--within", "0.1", texts=240)
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("LOSSY")
    assert "has no /completions: chats are asked for" in " ".join(result.stderr.split())
    assert 3 * 30 <= len((tmp_path / "texts" / "on.jsonl").read_text().splitlines()) < 3 * 240


@pytest.mark.deep
def test_looks_share_alpha_and_say_what_is_found_so_far(check, tmp_path):
    report = tmp_path / "report.json"
    with serving() as url:
        result = check(url, *OFF, "--within", "0.01", "--json", str(report), texts=100)
        last = result.stdout.splitlines()[-1]
        within = float(last.split()[-2])
        allowed, less = (
            check(url, *OFF, "--within", f"{one:.2f}", texts=100).exit_code
            for one in (within, within - 0.01)
        )
    assert json.loads(report.read_text())["alpha"] == 1e-9 / 3
    assert "GREEDY  3 of 3 texts at temperature 0 are equal" in result.stderr
    told = [line for line in result.stderr.splitlines() if "texts of each prompt: " in line]
    assert [line.partition(" texts")[0] for line in told] == ["After 25", "After 50"]
    assert all("INCONCLUSIVE" in line for line in told)
    assert last == f"With these 300 pairs: --within {within:g} passes."
    assert (allowed, less) == (0, 2)
    assert json.loads(report.read_text())["looks"] == {
        "planned": [25, 50, 100], "judged": 100, "ended": "--texts asks for no more"
    }  # fmt: skip
    told = " ".join(result.stdout.split())
    assert "STOPPED after 100 of 100 texts of each prompt: --texts asks for no more" in told
    assert "lossy with probability 1e-09 at most: 3 looks (after 25, 50 and 100 texts" in told


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("answers", [250, 100])
def test_a_run_that_a_server_ends_says_so_in_its_verdict(check, answers):
    with serving(fail=[403] + [200] * answers) as url:
        result = check(url, *OFF, "--within", "0.01", texts=100)
    assert result.exit_code == 2
    assert "HTTP 403" in result.stderr
    told = " ".join(result.stdout.split())
    if answers == 100:
        assert told.startswith("NO VERDICT: a request failed; the first one comes after 25 ")
    else:
        assert told.startswith("INCONCLUSIVE")
        assert "STOPPED after 25 of 100 texts of each prompt: a request failed; the same" in told


@pytest.mark.deep
def test_an_interrupted_run_has_the_verdict_of_its_last_look(check, tmp_path, monkeypatch):
    report, send, sent = tmp_path / "report.json", client.Request.send, []

    def sends(*asked):
        sent.append(asked)
        if len(sent) == 250:
            raise KeyboardInterrupt
        return send(*asked)

    monkeypatch.setattr(client.Request, "send", sends)
    with serving() as url:
        result = check(url, *OFF, "--within", "0.01", texts=100)
        again = check(url, *OFF, "--within", "0.01", texts=100)
        check(url, *OFF, "--within", "0.01", "--json", str(report), texts=25)
    assert json.loads(report.read_text())["pairs"] == 3 * 25, "a look takes its own texts"
    assert result.exit_code == 130
    assert result.stdout.startswith("INCONCLUSIVE")
    told = " ".join(result.stdout.split())
    assert "STOPPED after 25 of 100 texts of each prompt: interrupted; the same" in told
    assert "after 100 of 100 texts" in " ".join(again.stdout.split()), "it goes on"


def test_a_run_that_goes_on_has_the_looks_that_were_planned(tmp_path):
    """Whatever the pace is by now."""
    asked = {"minutes": 8.0, "prompts": PROMPTS}
    assert texts_planned(tmp_path, asked, 100) == 100
    assert texts_planned(tmp_path, asked, 130) == 100
    assert texts_planned(tmp_path, {**asked, "minutes": 9.0}, 130) == 130
    (tmp_path / "plan.json").write_text("{")
    assert texts_planned(tmp_path, asked, 110) == 110


def test_a_model_is_one_of_those_that_the_server_names(check, tmp_path):
    with serving("one model") as url:
        result = check(url, *OFF, "--model", "", texts=2)
        other = check(url, *OFF, "--model", "x", texts=2)
        collected = ["collect", url, str(tmp_path / "t.jsonl")]
        alone = CliRunner().invoke(main, collected)
    assert result.output == alone.output == "error: --model is missing: expected one of m, mm\n"
    assert other.output.startswith("error: --model x: expected one of m, mm; http://")
    assert other.exit_code == result.exit_code == 2
    assert not (tmp_path / "t.jsonl").exists()
    with serving(form="words") as url:
        told = check(url, *OFF, "--model", "", texts=2).output
    assert "--model is missing: expected the name that the server knows it by" in told


def test_an_address_where_nothing_answers_is_said_before_a_missing_model(check, tmp_path):
    told = check("http://127.0.0.1:1/v1", *OFF, "--model", "").output
    assert "is a server running at this address?" in told
    assert "--model" not in told
    with serving() as url:
        told = check(url, "--plain", "http://127.0.0.1:1/v1", "--model", "").output
    assert told.startswith("error: --model is missing: expected one of m, mm")


def test_a_field_that_the_server_ignores_is_no_pass(check):
    with serving() as url:
        result = check(url, "--off", "speculative.n_max=0", texts=4)
    assert result.exit_code == 2
    assert result.stdout.startswith("NOT EXERCISED")
    assert "--within" not in result.stdout, "no --within makes it a pass"


def test_drafts_that_nothing_counts_are_no_pass_and_forms_are_found(check):
    with serving(form="content") as url, serving(form="content", speculate=False) as plain:
        result = check(url, "--plain", plain, texts=4)
    assert result.exit_code == 2
    assert result.stdout.startswith("COULD NOT TELL whether drafts were used")
    assert "tokens a second, a hint" in result.output
    assert "No answer counts drafted tokens" in result.stderr


def test_drafts_on_a_page_of_counters_are_read_if_asked_for(check):
    with serving(form="content") as url, serving(form="content", speculate=False) as plain:
        result = check(url, "--plain", plain, "--metrics", texts=48)
        assert result.exit_code == 0, result.output
        told = result.stdout.partition("with speculation: ")[2].split(";")[0]
        assert int(told.replace(",", "")) > 300
        again = check(url, "--plain", plain, "--metrics", texts=48)
        assert again.exit_code == 0, "nothing new is drafted"


def test_texts_at_temperature_0_are_held_against_each_other(check):
    with serving("greedy by q") as url:
        result = check(url, *OFF, texts=4)
    assert result.exit_code == 1
    assert result.stdout.startswith("GREEDY TEXTS DIFFER; sampled texts: inconclusive.\n")


def test_seeds_that_are_not_obeyed_are_said(check, monkeypatch):
    numbers = iter(range(10**6))
    monkeypatch.setattr(client, "seed_of", lambda prompt, seed: next(numbers))
    with serving() as url:
        result = check(url, *OFF, texts=4)
    assert "seeds do not settle a text" in " ".join(result.stdout.split())


def test_log_probabilities_of_the_draft_model_are_found_by_themselves(check):
    with serving("log-probabilities of q") as url:
        result = check(url, *OFF, "--logprobs", "processed", texts=20)
    assert result.exit_code == 1
    assert result.stdout.startswith("LOG-PROBABILITIES WRONG; sampled texts: ")
    told = " ".join(result.stdout.split())
    assert "processed ones are not what tokens were drawn from" in told


def test_both_sides_have_to_be_known(check):
    assert "expected --plain URL" in check("http://127.0.0.1:1/v1").output
    assert "expected --plain URL" in check("http://127.0.0.1:1/v1", *OFF, "--plain", "x").output
    result = CliRunner().invoke(main, ["check", "http://127.0.0.1:1/v1", "--help"])
    assert "OpenAI-compatible" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


@pytest.mark.parametrize(
    ("url", "plain", "named", "meant"),
    [
        ("127.0.0.1:1/v1", "127.0.0.1:2/v1", "127.0.0.1:1/v1", "127.0.0.1:1/v1"),
        ("localhost:1", "http://127.0.0.1:2/v1", "localhost:1", "localhost:1/v1"),
        ("http://127.0.0.1:1/v1", "localhost:2/v1", "localhost:2/v1", "localhost:2/v1"),
    ],
)
def test_an_address_without_http_is_told_with_it(check, tmp_path, url, plain, named, meant):
    result = check(url, "--plain", plain)
    assert result.exit_code == 2
    assert result.output == f"error: '{named}' is no address: expected http://{meant}\n"
    assert not (tmp_path / "texts").exists()


def test_an_address_alone_is_one_of_a_server():
    result = CliRunner().invoke(main, ["check", "127.0.0.1:1/v1", "--model", "m"])
    assert "'127.0.0.1:1/v1' is no address" in result.output


def test_different_forms_of_tokens_are_no_comparison(check, tmp_path):
    with serving() as url, serving(form="words", speculate=False) as plain:
        result = check(url, "--plain", plain, texts=4)
    assert result.exit_code == 2
    assert "tokens are known by ids with speculation, and by words without" in result.output
    assert not (tmp_path / "texts" / "on.jsonl").exists(), "said before texts are collected"
