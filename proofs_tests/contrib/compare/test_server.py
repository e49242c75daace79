"""A server of ours around the reference rule, with and without planted bugs.

alpha is 1e-9. Power: 250 texts of 6 tokens of each of 3 prompts find each of the bugs with a
log10 p of -20 or less at other seeds.
"""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from specref.cli import main
from specref.contrib.compare import server as client

VOCABULARY, LENGTH, DRAFTS = 12, 6, 3
RNG = np.random.default_rng(0)
P, Q = RNG.dirichlet(np.full(VOCABULARY, 0.5), (2, VOCABULARY))


def top(row, mass=0.7):
    order = np.argsort(-row)
    kept = np.zeros(len(row), dtype=bool)
    kept[order[: int(np.searchsorted(row[order].cumsum(), mass)) + 1]] = True
    return np.where(kept, row, 0) / row[kept].sum()


TOP = np.array([top(row) for row in P])
BUGS = (
    "permuted drafts",
    "stale token",
    "no top-p",
    "ends early",
    "log-probabilities of q",
    "one seed",
)


def text_of(first, rng, bug, speculate):
    """Tokens and log-probabilities by standard verification of one draft at a time."""
    tokens, logs, last, stale = [], [], first, first
    while len(tokens) < LENGTH:
        p, q = (P if bug == "no top-p" and speculate else TOP)[last], Q[last]
        if speculate:
            draft = rng.choice(VOCABULARY, p=Q[stale] if bug == "stale token" else q)
            if bug == "permuted drafts":
                draft = (draft + 1) % VOCABULARY
            if rng.random() * q[draft] < p[draft]:
                token = draft
            else:
                residual = np.maximum(p - q, 0)
                token = rng.choice(VOCABULARY, p=residual / residual.sum())
                if bug == "ends early" and len(tokens) == 3:
                    break
        else:
            token = rng.choice(VOCABULARY, p=p)
        row = q if bug == "log-probabilities of q" and speculate else p
        logs.append(float(np.log(row[token])))
        tokens.append(int(token))
        stale, last = last, token
    return tokens, logs


@contextmanager
def serving(bug=None, speculate=True, fail=()):
    """A server; `fail` are status codes that it answers first."""
    failures, lock = list(fail), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                status = failures.pop() if failures else 200
            seed = 1 if bug == "one seed" and speculate else asked["seed"]
            rng = np.random.default_rng([seed, speculate])
            tokens, logs = text_of(len(asked["prompt"]), rng, bug, speculate)
            choice = {"text": "", "token_ids": tokens, "finish_reason": "length"}
            choice["logprobs"] = {"token_logprobs": logs}
            answer = json.dumps({"choices": [choice]} if status == 200 else {"error": "busy"})
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(client, "PAUSE", 0.001)
    monkeypatch.setattr(client, "PROMPTS", ("a", "bb", "ccc"))


def collected(tmp_path, name, url, texts=250, *more):
    path = str(tmp_path / name)
    arguments = ["collect", url, path, "--model", "m", "--texts", str(texts), *more]
    return path, CliRunner().invoke(main, arguments)


def lines(path):
    return len(Path(path).read_text().splitlines())


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    with serving(speculate=False) as url:
        client_prompts, client.PROMPTS = client.PROMPTS, ("a", "bb", "ccc")
        path, result = collected(folder, "plain.jsonl", url)
        client.PROMPTS = client_prompts
    assert result.exit_code == 0, result.output
    return path


def test_the_rule_itself_is_not_called_lossy(tmp_path, plain):
    with serving() as url:
        path, result = collected(tmp_path, "spec.jsonl", url)
    assert result.exit_code == 0
    result = CliRunner().invoke(main, ["compare", path, plain])
    assert result.exit_code == 2
    assert "INCONCLUSIVE" in result.output
    assert "agree within" in result.output


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_found(tmp_path, plain, bug):
    with serving(bug) as url:
        path, _ = collected(tmp_path, "spec.jsonl", url)
    result = CliRunner().invoke(main, ["compare", path, plain])
    assert result.exit_code == 1
    if bug == "log-probabilities of q":
        assert "DIFFER at" in result.output


def test_a_busy_server_is_asked_again_and_an_error_keeps_what_came(tmp_path):
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


def test_a_file_of_other_settings_is_refused(tmp_path):
    with serving() as url:
        path, result = collected(tmp_path, "t.jsonl", url, 2)
        assert result.exit_code == 0
        result = collected(tmp_path, "t.jsonl", url, 2, "--temperature", "0.7")[1]
        assert result.exit_code == 2
        assert "choose another file" in result.output
        result = collected(tmp_path, "t.jsonl", url, 2, "--field", "seed=1")[1]
        assert "--field seed: collect sets it itself" in result.output
        assert lines(path) == 6


def test_prompts_share_no_random_numbers():
    seeds = {client.seed_of(prompt, k) for prompt in ("a", "bb", "ccc") for k in range(500)}
    assert len(seeds) == 1_500


def test_what_is_no_server_is_said(tmp_path):
    assert "expected an address" in collected(tmp_path, "t.jsonl", "localhost")[1].output
    url = "http://127.0.0.1:1/v1"
    result = collected(tmp_path, "t.jsonl", url, 1, "--workers", "1")[1]
    assert result.exit_code == 2
    assert "6 times" in result.output
    (tmp_path / "other.jsonl").write_text("{}\n")
    result = collected(tmp_path, "other.jsonl", url)[1]
    assert "it is no record of this command" in result.output
