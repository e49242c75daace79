"""Texts of an OpenAI-compatible server as records of a file, which goes on where it was.

Requests differ by prompt and seed only. An answer that fails is asked for again; what has failed
too often ends the run, and all that came before stays in the file. Only the given address is used.
"""

import http.client
import json
import math
import re
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RETRIES = 5
PAUSE = 0.5  # seconds before the first repetition, doubled each time
BUSY = (408, 409, 425, 429, 500, 502, 503, 504)
PROMPTS: tuple[str, ...] = (
    "The capital of France is",
    "Once upon a time",
    "def fibonacci(n):",
    "1, 2, 3, 4,",
    "In 1905 Albert Einstein",
    "She opened the door and",
    "The three primary colours are",
    "import numpy as",
)
"""Short beginnings of text and code, whose next tokens are partly sure and partly open."""


@dataclass(frozen=True)
class Request:
    """What every request of a run has in common.

    Attributes
    ----------
    url : str
        Of the API, as ``http://127.0.0.1:8000/v1``.
    model : str
    max_tokens : int
    settings : mapping
        More fields of the request: temperature, top_p, whatever the server knows.
    answers_within : float
        Seconds.
    key : str or None
        Sent as a bearer token.
    """

    url: str
    model: str
    max_tokens: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    answers_within: float = 60.0
    key: str | None = None

    def check(self) -> None:
        """Raise `ValueError` for an address that is none."""
        taken = {"prompt", "seed", "n", "stream"} & set(self.settings)
        if taken:
            raise ValueError(f"--field {min(taken)}: collect sets it itself")
        if not re.match(r"https?://[^/]+", self.url):
            raise ValueError(f"{self.url}: expected an address such as http://127.0.0.1:8000/v1")

    @property
    def mark(self) -> str:
        """What texts of one file have in common; not the address, since servers move."""
        return json.dumps([self.model, self.max_tokens, dict(self.settings)], sort_keys=True)

    def send(self, prompt: str, seed: int) -> dict[str, Any]:
        """One completion.

        Raises
        ------
        OSError
            The server cannot be reached, or answers with an error, again and again.
        ValueError
            The answer is no completion.
        """
        body = {
            "model": self.model,
            "prompt": prompt,
            "max_tokens": self.max_tokens,
            "seed": seed_of(prompt, seed),
            "logprobs": 1,
            "return_token_ids": True,
            **self.settings,
        }
        headers = {"Content-Type": "application/json"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        url = f"{self.url.rstrip('/')}/completions"
        for attempt in range(RETRIES + 1):
            asked = urllib.request.Request(url, json.dumps(body).encode(), headers)
            try:
                with urllib.request.urlopen(asked, timeout=self.answers_within) as answer:
                    found = record_of(json.loads(answer.read()), prompt, seed)
                    return found | {"settings": self.mark}
            except urllib.error.HTTPError as error:
                said = error.read(300).decode(errors="replace")
                if error.code not in BUSY or attempt == RETRIES:
                    raise OSError(f"{url}: HTTP {error.code}: {said}") from None
            except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
                if attempt == RETRIES:
                    reason = getattr(error, "reason", error)
                    raise OSError(f"{url}: {reason}, {RETRIES + 1} times") from None
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                raise ValueError(f"{url}: {error!r}: the answer is no completion") from None
            time.sleep(PAUSE * 2**attempt)
        raise AssertionError("the last attempt returns or raises")


def record_of(answer: Mapping[str, Any], prompt: str, seed: int) -> dict[str, Any]:
    """A record from an answer: ids if it has them, else numbers of its tokens or words.

    Raises
    ------
    KeyError, IndexError, TypeError
        A field is missing.

    Examples
    --------
    >>> record_of({"choices": [{"text": "a b", "finish_reason": "stop"}]}, "x", 1)["token_ids"]
    [1756872259, 2011248169]
    """
    choice = answer["choices"][0]
    found: dict[str, Any] = {"prompt_id": prompt, "prompt": prompt, "seed": seed}
    reported = choice.get("logprobs") or {}
    strings, ids = reported.get("tokens"), choice.get("token_ids")
    if ids:
        found["token_ids"] = list(ids)
    elif strings:
        found["token_ids"] = [number_of(one) for one in strings]
    else:
        words = re.findall(r"\s*\S+|\s+$", choice["text"]) or [""]
        found["token_ids"] = [number_of(one) for one in words]
    logprobs = reported.get("token_logprobs") or []
    numbers = all(isinstance(one, (int, float)) and -math.inf < one <= 0 for one in logprobs)
    if numbers and len(logprobs) == len(found["token_ids"]):
        found["logprobs"] = logprobs
    found["finish_reason"] = choice.get("finish_reason")
    found["text"] = choice.get("text")
    drafted = (answer.get("timings") or {}).get("draft_n")
    if drafted is not None:
        found["drafted"] = drafted
    return found


def seed_of(prompt: str, number: int) -> int:
    """The seed of text `number` of a prompt: prompts do not share random numbers."""
    return number_of(f"{number} {prompt}")


def number_of(string: str) -> int:
    """A number of 31 bits for a token that is known by its string."""
    return zlib.crc32(string.encode()) & 0x7FFFFFFF


def collect(
    request: Request,
    prompts: Sequence[str],
    texts: int,
    path: Path,
    workers: int,
    first_seed: int,
    advance: Callable[[int], None],
) -> int:
    """Ask for so many texts of each prompt, and append each to the file as it comes.

    Parameters
    ----------
    request : Request
    prompts : sequence of str
    texts : int
        Of each prompt. Those that the file has are not asked for again.
    path : Path
    workers : int
        Requests at the same time.
    first_seed : int
        Text k of a prompt has the seed `first_seed` + k.
    advance : callable
        Told of each text.

    Returns
    -------
    int
        How many texts came.

    Raises
    ------
    OSError, ValueError
        As `Request.send`; what came before is in the file.
    """
    request.check()
    known = set(_known(path, request.mark))
    wanted = [
        (prompt, seed)
        for seed in range(first_seed, first_seed + texts)
        for prompt in prompts
        if (prompt, seed) not in known
    ]
    came = 0
    with path.open("a", encoding="utf-8") as file, ThreadPoolExecutor(workers) as pool:
        running: set[Future[dict[str, Any]]] = set()
        try:
            for prompt, seed in wanted:
                if len(running) == workers:
                    came += _take(running, file, advance)
                running.add(pool.submit(request.send, prompt, seed))
            while running:
                came += _take(running, file, advance)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return came


def _take(running: set[Future[dict[str, Any]]], file: Any, advance: Callable[[int], None]) -> int:
    """Write what is done, the good answers first."""
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    running -= done
    failed = [one for one in done if one.exception()]
    for one in done - set(failed):
        file.write(json.dumps(one.result()) + "\n")
        advance(1)
    file.flush()
    for one in failed:
        one.result()
    return len(done)


def _known(path: Path, mark: str) -> Iterator[tuple[str, int]]:
    """The prompts and seeds of a file; a line cut short, or of other settings, is refused."""
    if not path.exists():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            record = json.loads(line)
            settings, place = record["settings"], (record["prompt_id"], record["seed"])
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f"{path}:{number}: it is no record of this command: delete the line, or choose "
                "another file"
            ) from None
        if settings != mark:
            raise ValueError(
                f"{path}:{number}: it was drawn with {settings}, now {mark}: choose another file"
            )
        yield place
