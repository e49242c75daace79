"""A server with `/v1/completions`, asked by HTTP: a right one passes, a wrong one does not.

Monte Carlo by fixed seeds: alpha 1e-9, and the distance that is named is found 999 times in 1,000.
"""

import json
import random
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from specref import Model, Vocabulary
from specref.conformance.public import check
from specref.conformance.status import Status
from specref.contracts.text import Engine, Text
from specref.contrib.engines.completions import completions

pytestmark = pytest.mark.usefixtures("undiagnosed")

AB = Vocabulary("ab")
P, Q = [0.75, 0.25], [0.25, 0.75]
LAW = Model(AB, lambda context: P)


class Server(ThreadingHTTPServer):
    """Each token is a draft from Q, kept by p / q, or whatever p is."""

    daemon_threads = True
    lossy = False
    form = "ids"
    counts = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.drafts = [0, 0]
        self.asked: dict[str, Any] = {}

    def address(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"

    def text(self, budget: int, seed: int) -> list[int]:
        rng, tokens = random.Random(seed), list[int]()
        for _ in range(budget):
            x = rng.choices((0, 1), Q)[0]
            kept = self.lossy or rng.random() < P[x] / Q[x]
            self.drafts[0] += 1
            self.drafts[1] += kept
            tokens.append(x if kept else 0)  # p - q is above 0 at 0 alone
        return tokens


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked = asked
        ids = self.server.text(asked["max_tokens"], asked["seed"])
        words = ["ab"[x] for x in ids]
        more: dict[str, Any] = {
            "ids": {"token_ids": ids}, "words": {"logprobs": {"tokens": words}}, "text": {},
        }[self.server.form]  # fmt: skip
        reason = "length" if len(ids) == asked["max_tokens"] else "stop"
        choice = {"text": "".join(words), "finish_reason": reason, **more}
        self.answer(json.dumps({"choices": [choice]}))

    def do_GET(self) -> None:
        names = ("proposed", "accepted") if self.server.counts else ("other", "another")
        counted = zip(names, self.server.drafts, strict=True)
        self.answer("".join(f'{name}_total{{engine="0"}} {float(n)}\n' for name, n in counted))

    def answer(self, text: str) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def engine(server: Server, **more: Any) -> Engine:
    counters = (server.address("/metrics"), "proposed_total", "accepted_total")
    ask = completions(server.address("/v1/completions"), tokens="ab", counters=counters, **more)
    return Engine(ask, prompts=[(0, 1)], law=LAW, tokens=2)


def test_what_is_asked_and_how_answers_are_read(server: Server) -> None:
    ask = engine(server, start=(7,), settings={"temperature": 0.5, "model": "it"})
    by_id = ask((0, 1), 5, 3)
    server.form = "words"
    assert ask((0, 1), 5, 3) == by_id
    assert isinstance(by_id, Text)
    assert by_id.proposed == 5
    assert server.asked["prompt"] == [7, 0, 1]
    asked = {name: server.asked[name] for name in ("seed", "max_tokens", "n", "model")}
    assert asked == {"seed": 3, "max_tokens": 5, "n": 1, "model": "it"}
    assert server.asked["temperature"] == 0.5


def test_a_text_that_was_stopped_ends_with_eos(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = completions(server.address("/v1/completions"), eos=0)
    for told in ([1], [1, 0]):
        monkeypatch.setattr(server, "text", lambda budget, seed, told=told: list(told))
        assert ask((), 3, 1) == Text([1, 0])
    assert ask((), 2, 1) == Text([1, 0])
    monkeypatch.setattr(server, "text", lambda budget, seed: [1])
    assert ask((), 1, 1) == Text([1])


def test_a_right_server_passes_and_its_drafts_are_counted(server: Server) -> None:
    report = check(engine(server), contract="text", detect_tv=0.45)
    assert report.exit_code == 0, str(report)
    (texts,) = [one for one in report.results if one.id == "end-to-end/texts"]
    assert texts.status == Status.PASSED
    assert 0 < texts.evidence["accepted"] < texts.evidence["proposed"]


def test_a_server_that_keeps_all_drafts_is_found(server: Server) -> None:
    server.lossy = True
    report = check(engine(server), contract="text", detect_tv=0.45)
    assert report.lossy
    assert report.exit_code == 1


def test_counters_and_answers_that_are_not_there_are_named(server: Server) -> None:
    server.counts = False
    with pytest.raises(ValueError, match="expected proposed_total and accepted_total on the page"):
        engine(server)((), 2, 1)
    server.form = "text"
    with pytest.raises(ValueError, match="neither token_ids nor logprobs"):
        completions(server.address("/v1/completions"))((), 2, 1)
