"""Servers with OpenAI's `/v1/completions`, under the contract ``text``, asked by urllib."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.request import Request, urlopen

from specref.contracts.text import Respond, Text
from specref.contracts.timeout import TIMEOUT
from specref.vocabulary import Tokens


def completions(
    url: str,
    *,
    tokens: Sequence[str] = (),
    start: Tokens = (),
    eos: int | None = None,
    counters: tuple[str, str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    timeout: float = TIMEOUT,
) -> Respond:
    """Texts of a server: one for each seed, the prompt as token ids.

    Token ids are read where the server gives them (`token_ids`, as vLLM does if it is asked), else
    from the words of `logprobs`.

    Parameters
    ----------
    url : str
        Of the completions, as ``http://localhost:8000/v1/completions``.
    tokens : sequence of str
        The word of each id, as `logprobs` has it, for servers that give no ids.
    start : tuple of int
        Ids before each prompt, such as that of BOS.
    eos : int, optional
        The id that ends a text: put behind one that the server stopped, if it leaves that out.
    counters : tuple of str, optional
        A page of counters, and the names of those of proposed and accepted drafts on it; vLLM has
        ``/metrics``. They are read before and after each text, so nobody else may ask the server.
    settings : mapping, optional
        More of the request: `model`, `temperature`, `top_p`, …
    timeout : float
        Seconds for a request.

    Returns
    -------
    callable
        (prompt, budget, seed) -> `Text`. It raises ValueError for an answer that has no text.
    """
    asked = {"temperature": 1.0, "n": 1, "logprobs": 1, "return_token_ids": True} | dict(
        settings or {}
    )

    def respond(prompt: Tokens, budget: int, seed: int) -> Text:
        before = drafts(counters, timeout)
        body = {"prompt": [*start, *prompt], "max_tokens": budget, "seed": seed, **asked}
        request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urlopen(request, timeout=timeout) as answer:
            choice = json.load(answer)["choices"][0]
        ids = ids_of(choice, tokens)
        if choice.get("finish_reason") == "stop" and eos is not None and ids[-1:] != [eos]:
            ids.append(eos)
        return Text(ids, *(a - b for a, b in zip(drafts(counters, timeout), before, strict=True)))

    return respond


def ids_of(choice: Mapping[str, Any], tokens: Sequence[str]) -> list[int]:
    """The ids of a text."""
    if choice.get("token_ids") is not None:
        return list(choice["token_ids"])
    words = (choice.get("logprobs") or {}).get("tokens")
    if words is None:
        raise ValueError("the answer has neither token_ids nor logprobs.tokens")
    ids = {word: index for index, word in enumerate(tokens)}
    for word in words:
        if word not in ids:
            known = f"expected one of {len(ids)} tokens, or token_ids with it"
            raise ValueError(f"logprobs.tokens has {word!r}: {known}")
    return [ids[word] for word in words]


def drafts(counters: tuple[str, str, str] | None, timeout: float) -> tuple[int, ...]:
    """What the counters show, over all their labels; nothing if there are none."""
    if counters is None:
        return ()
    page, *names = counters
    with urlopen(page, timeout=timeout) as answer:
        text = answer.read().decode()
    found = [re.findall(rf"^{re.escape(x)}(?:{{.*}})? (\S+)", text, re.MULTILINE) for x in names]
    if not all(found):
        raise ValueError(f"counters = {counters!r}: expected {' and '.join(names)} on the page")
    return tuple(int(sum(map(float, one))) for one in found)
