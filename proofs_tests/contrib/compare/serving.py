"""A server of ours around the reference rule, with and without planted bugs."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

VOCABULARY, LENGTH = 12, 6
LATE, SLOW = -1, 0.3
"""In the place of a status: no answer, and after so many seconds the end of the connection."""
RNG = np.random.default_rng(0)
P, Q = RNG.dirichlet(np.full(VOCABULARY, 0.5), (2, VOCABULARY))
PROMPTS = ("a", "bb", "ccc")
MODELS = ("m", "mm")
BUGS = (
    "permuted drafts",
    "stale token",
    "no top-p",
    "ends early",
    "log-probabilities of q",
    "one seed",
)


def top(row, mass=0.7):
    order = np.argsort(-row)
    kept = np.zeros(len(row), dtype=bool)
    kept[order[: int(np.searchsorted(row[order].cumsum(), mass)) + 1]] = True
    return np.where(kept, row, 0) / row[kept].sum()


TOP = np.array([top(row) for row in P])


def text_of(first, rng, bug, speculate, greedy=False, length=LENGTH):
    """Tokens, rows of log-probabilities and the number of drafts, one draft at a time."""
    tokens, rows, drafted, last, stale = [], [], 0, first, first
    while len(tokens) < length:
        p, q = (P if bug == "no top-p" and speculate else TOP)[last], Q[last]
        if greedy:
            likeliest = Q[last] if bug == "greedy by q" and speculate else p
            p = np.eye(VOCABULARY)[likeliest.argmax()]
        if speculate:
            drafted += 1
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
        rows.append(q if bug == "log-probabilities of q" and speculate else TOP[last])
        tokens.append(int(token))
        stale, last = last, token
    return tokens, rows, drafted


def answered(asked, bug, speculate, form) -> dict[str, Any]:
    """The answer to a request; `form` is that of "ids", "content", "chat" or "words"."""
    if form == "content" and not isinstance(asked.get("logprobs", True), bool):
        return {"error": "logprobs must be of type bool"}
    if bug == "one model" and asked["model"] not in MODELS:
        return {"error": f"model {asked['model']} does not exist"}
    if bug == "no choices":
        return {"content": "abc"}
    speculate = speculate and asked.get("drafts", 1) != 0
    seed = 1 if bug == "one seed" and speculate else asked["seed"]
    rng = np.random.default_rng([seed, speculate])
    greedy = asked.get("temperature") == 0
    prompt = asked["messages"][0]["content"] if "messages" in asked else asked["prompt"]
    tokens, rows, drafted = text_of(len(prompt), rng, bug, speculate, greedy)
    with np.errstate(divide="ignore"):
        logs = [np.log(row) for row in rows]
    own = [float(row[token]) for row, token in zip(logs, tokens, strict=True)]
    ranked = [np.argsort(-row, kind="stable")[: asked.get("logprobs") or 0] for row in logs]
    tops = [
        [(int(x), max(float(row[x]), -80.0)) for x in ids]
        for row, ids in zip(logs, ranked, strict=True)
    ]
    words = [chr(97 + token) for token in tokens]
    choice: dict[str, Any] = {"text": "".join(words), "finish_reason": "length"}
    if form == "ids":
        choice["token_ids"] = tokens
        choice["logprobs"] = {
            "tokens": words,
            "token_logprobs": own,
            "top_logprobs": [{chr(97 + x): value for x, value in one} for one in tops],
        }
    elif form == "content":
        pairs = zip(tokens, own, strict=True)
        choice["logprobs"] = {"content": [{"id": x, "logprob": value} for x, value in pairs]}
    elif form == "chat":
        choice = {"message": {"role": "assistant", "content": choice.pop("text")}, **choice}
        choice["logprobs"] = {
            "content": [
                {"token": word, "logprob": value} for word, value in zip(words, own, strict=True)
            ]
        }
    answer: dict[str, Any] = {"choices": [choice], "usage": {"completion_tokens": len(tokens)}}
    answer["counted"] = drafted
    if form == "ids":
        answer["timings"] = {"predicted_n": len(tokens)} | (
            {"draft_n": drafted} if drafted else {}
        )
    return answer


class Server(ThreadingHTTPServer):
    request_queue_size = 64  # of five, connections of eight workers wait for a second


@contextmanager
def serving(
    bug: str | None = None,
    speculate: bool = True,
    fail: Sequence[int] = (),
    form: str = "ids",
    cut: int = 0,
    slow: int = 0,
    wait: str | None = None,
) -> Iterator[str]:
    """A server; first it answers by the statuses `fail`, or half, or late.

    `cut` and `slow` are how many answers; `wait` is the header Retry-After of a failure.
    """
    drafted: list[int] = []
    failures, lock = [*fail, *[0] * cut, *[LATE] * slow], threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                status = failures.pop() if failures else 200
            if status == LATE:
                time.sleep(SLOW)
                return
            missing = form == "chat" and not self.path.endswith("/chat/completions")
            status = 404 if missing else status
            answer = {"error": 0} if missing else answered(asked, bug, speculate, form)
            drafted.append(answer.pop("counted", 0))
            half = status == 0
            if "error" in answer or status not in (0, 200):
                status, answer = max(status, 400), {"error": "busy", **answer}
            self.send_response(status or 200)
            if wait is not None and status not in (0, 200):
                self.send_header("Retry-After", wait)
            self.end_headers()
            body = json.dumps(answer).encode()
            self.wfile.write(body[: len(body) // 2] if half else body)

        def do_GET(self) -> None:
            models = self.path.endswith("/models")
            self.send_response(404 if models and form == "words" else 200)
            self.end_headers()
            if models:
                named = {"data": [{"id": name} for name in MODELS]}
                self.wfile.write(json.dumps(named).encode())
                return
            told = f'spec_draft_tokens_total{{engine="0"}} {float(sum(drafted))}\nother 9\n'
            self.wfile.write(told.encode())

        def log_message(self, *_: object) -> None: ...

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
