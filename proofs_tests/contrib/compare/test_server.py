"""Texts collected of a server of ours around the reference rule, with and without planted bugs.

alpha is 1e-9. Power: 250 texts of 6 tokens of each of 3 prompts find each of the bugs with a
log10 p of -20 or less at other seeds.
"""

from pathlib import Path

import pytest
from click.testing import CliRunner

from proofs_tests.contrib.compare.serving import BUGS, PROMPTS, serving
from specref.cli import main
from specref.contrib.compare import server as client


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(client, "PAUSE", 0.001)


@pytest.fixture(scope="module", autouse=True)
def prompts(tmp_path_factory):
    path = tmp_path_factory.mktemp("prompts") / "prompts.txt"
    path.write_text("\n".join(PROMPTS))
    return str(path)


@pytest.fixture(scope="module")
def collected(prompts):
    def collected(folder, name, url, texts=250, *more):
        path = str(folder / name)
        given = ["--model", "m", "--texts", str(texts), "--prompts", prompts, *more]
        return path, CliRunner().invoke(main, ["collect", url, path, *given])

    return collected


def lines(path):
    return len(Path(path).read_text().splitlines())


@pytest.fixture(scope="module")
def plain(tmp_path_factory, collected):
    with serving(speculate=False) as url:
        path, result = collected(tmp_path_factory.mktemp("plain"), "plain.jsonl", url)
    assert result.exit_code == 0, result.output
    return path


@pytest.mark.deep
def test_the_rule_itself_is_not_called_lossy(tmp_path, plain, collected):
    with serving() as url:
        path, result = collected(tmp_path, "spec.jsonl", url)
    assert result.exit_code == 0
    result = CliRunner().invoke(main, ["compare", path, plain])
    assert result.exit_code == 2
    assert "INCONCLUSIVE" in result.output
    assert "agree within" in result.output


@pytest.mark.deep
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_found(tmp_path, plain, bug, collected):
    with serving(bug) as url:
        path, _ = collected(tmp_path, "spec.jsonl", url)
    result = CliRunner().invoke(main, ["compare", path, plain])
    assert result.exit_code == 1
    if bug == "log-probabilities of q":
        assert "DIFFER at" in result.output


def test_a_busy_server_is_asked_again_and_an_error_keeps_what_came(tmp_path, collected):
    with serving(fail=[429, 503]) as url:
        path, result = collected(tmp_path, "t.jsonl", url, 4)
        assert result.exit_code == 0
        before = lines(path)
        assert before == 12
    with serving(fail=[404] + [200] * 5) as url:
        path, result = collected(tmp_path, "t.jsonl", url, 8, "--workers", "1")
        assert result.exit_code == 2
        assert "HTTP 404" in result.output
        kept = lines(path)
        assert before < kept < 24
        assert collected(tmp_path, "t.jsonl", url, 8)[1].exit_code == 0
        assert lines(path) == 24


def test_a_server_that_says_how_long_to_wait_is_waited_for(tmp_path, collected, monkeypatch):
    waited = []
    monkeypatch.setattr(client.time, "sleep", waited.append)
    with serving(fail=[429], wait="30") as url:
        assert collected(tmp_path, "t.jsonl", url, 1)[1].exit_code == 0
    assert 30.0 in waited
    with serving(fail=[429], wait="3600") as url:
        result = collected(tmp_path, "t.jsonl", url, 2)[1]
    assert result.exit_code == 2
    assert "HTTP 429, it asks to wait 3600 s" in result.output


def test_answers_that_were_under_way_when_one_failed_are_kept(tmp_path, collected, monkeypatch):
    came, send = [], client.Request.send

    def counted(*asked):
        came.append(send(*asked))
        return came[-1]

    monkeypatch.setattr(client.Request, "send", counted)
    with serving(fail=[403] + [200] * 12) as url:
        path, result = collected(tmp_path, "t.jsonl", url, 20, "--workers", "4")
    assert result.exit_code == 2
    kept = lines(path)
    assert kept == len(came) - 1  # the first was asked for to find the form of requests
    assert f"{kept} texts came now" in result.output


def test_a_server_that_does_not_answer_in_time_is_asked_again(tmp_path, collected):
    with serving(slow=2) as url:
        assert collected(tmp_path, "t.jsonl", url, 1, "--timeout", "0.1")[1].exit_code == 0
    with serving(slow=10**3) as url:
        result = collected(tmp_path, "late.jsonl", url, 1, "--timeout", "0.02")[1]
    assert result.exit_code == 2
    assert "(prompt 'a', seed 0): timed out, 6 times (--timeout?)" in result.output


def test_answers_that_are_no_completions_name_the_request(tmp_path, collected):
    for given, told in (
        ({"fail": [404] * 2}, "and no chats: expected an address such as"),
        ({"fail": [401]}, "HTTP 401 (--key sends a key)"),
        ({"cut": 6}, "no whole JSON: '{"),
        ({"cut": 6}, "6 times (what does the server's log say?)"),
        ({"fail": [429] * 6}, "HTTP 429 (--workers asks for fewer at the same time), 6 times"),
    ):
        with serving(**given) as url:
            result = collected(tmp_path, "t.jsonl", url, 1)[1]
        assert result.exit_code == 2
        assert "(prompt 'a', seed 0)" in result.output
        assert told in result.output


def test_a_prompt_of_ours_that_is_refused_may_be_another(tmp_path, collected, monkeypatch):
    told = "HTTP 400 (a model with few tokens? --prompts FILE, a prompt a line): "
    with serving(fail=[400] * 99) as url:
        assert "few tokens" not in collected(tmp_path, "t.jsonl", url, 1)[1].output
        monkeypatch.setattr(client, "PROMPTS", PROMPTS)
        result = collected(tmp_path, "t.jsonl", url, 1)[1]
    assert result.exit_code == 2
    assert told in result.output


def test_a_file_of_other_settings_is_refused(tmp_path, collected):
    with serving() as url:
        path, result = collected(tmp_path, "t.jsonl", url, 2)
        assert result.exit_code == 0
        result = collected(tmp_path, "t.jsonl", url, 2, "--temperature", "0.7")[1]
        assert result.exit_code == 2
        assert "choose another file" in result.output
        result = collected(tmp_path, "t.jsonl", url, 2, "--field", "seed=1")[1]
        assert "--field seed: collect sets it itself" in result.output
        assert lines(path) == 6


@pytest.mark.parametrize("path", ["/", "/completions", "/chat/completions"])
def test_the_address_of_completions_is_one_of_the_api(tmp_path, collected, path):
    with serving() as url:
        assert collected(tmp_path, "t.jsonl", url + path, 1)[1].exit_code == 0


def test_an_api_that_is_not_openais_is_told_by_its_address(tmp_path, collected):
    with serving(bug="no choices") as url:
        result = collected(tmp_path, "t.jsonl", url.removesuffix("/v1"), 1)[1]
    assert result.exit_code == 2
    assert "no completion (is the address " + url + "?)" in result.output


def test_prompts_share_no_random_numbers():
    seeds = {client.seed_of(prompt, k) for prompt in PROMPTS for k in range(500)}
    assert len(seeds) == 1_500


def test_what_is_no_server_is_said(tmp_path, collected):
    told = collected(tmp_path, "t.jsonl", "localhost")[1].output
    assert told == "error: 'localhost' is no address: expected http://localhost/v1\n"
    url = "http://127.0.0.1:1/v1"
    result = collected(tmp_path, "t.jsonl", url, 1, "--workers", "1")[1]
    assert result.exit_code == 2
    assert "(prompt 'a', seed 0)" in result.output
    assert "6 times" in result.output
    (tmp_path / "other.jsonl").write_text("{}\n")
    result = collected(tmp_path, "other.jsonl", url)[1]
    assert "it is no record of this command" in result.output
