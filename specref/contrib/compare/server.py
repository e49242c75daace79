"""Texts of an OpenAI-compatible server as records of a file, which goes on where it was.

Requests differ by prompt and seed only. An answer that fails is asked for again; what has failed
too often ends the run, and all that came before stays in the file. Only the given address is used.
"""

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import click

from specref.contrib.compare.answers import number_of, record_of

RETRIES = 5
PAUSE = 0.5  # seconds before the first repetition, doubled each time
LONGEST = 120.0
"""Seconds that a server may ask to wait (Retry-After); one that asks for more is left."""
BUSY = (408, 409, 425, 429, 500, 502, 503, 504)
SAID = 200  # bytes of an error that are told
_KEY, _FEWER, _LOG = (
    " (--key sends a key)",
    " (--workers asks for fewer at the same time)",
    " (what does the server's log say?)",
)
HINTS = {401: _KEY, 403: _KEY, 429: _FEWER, 503: _FEWER, 500: _LOG, 502: _LOG, 504: _FEWER}
"""What to do after an error that stays."""
REFUSED, MISSING = (400, 422), (404, 405, 501)
LIKELIEST, NAMED = 5, 8
FORMS: tuple[Mapping[str, Any], ...] = (
    {"logprobs": LIKELIEST, "return_token_ids": True},
    {"logprobs": True, "return_token_ids": True},
    {"logprobs": True},
    {},
)
"""Ways to ask for log-probabilities and ids; a server that refuses one is asked in the next."""
CHATS: tuple[Mapping[str, Any], ...] = (
    {"logprobs": True, "top_logprobs": LIKELIEST, "return_token_ids": True},
    {"logprobs": True, "top_logprobs": LIKELIEST},
    {},
)
"""The same of a server that has no completions, but chats."""
DRAFTED = re.compile(r"^\S*draft_tokens_total(?:{.*})? (\S+)", re.MULTILINE)
"""A counter of drafted tokens, as vLLM and llama.cpp have it on their page /metrics."""
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
FEW_TOKENS = " (a model with few tokens? --prompts FILE, a prompt a line)"
"""Of a prompt of ours that is refused: a model of few characters has no token for some."""


class AnsweredError(OSError):
    """A server answers with an error, whose text is `said`."""

    def __init__(self, told: str, said: str) -> None:
        super().__init__(told)
        self.said = said


class RefusedError(AnsweredError):
    """A server does not take a request."""


class MissingError(AnsweredError):
    """An address has nothing of the kind."""


@dataclass(frozen=True)
class Request:
    """What every request of a run has in common.

    * `url`: Of the API, as ``http://127.0.0.1:8000/v1``.
    * `model`: As the server calls it; empty if it was not given.
    * `settings`: More fields of the request: temperature, top_p, whatever the server knows.
    * `chat`: Whether a prompt is sent as the first message of a chat.
    """

    url: str
    model: str
    max_tokens: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    answers_within: float = 60.0
    key: str | None = None
    form: Mapping[str, Any] = field(default_factory=lambda: FORMS[0])
    chat: bool = False

    def check(self) -> None:
        """Raise `ValueError` for an address that is none."""
        taken = {"prompt", "messages", "seed", "n", "stream"} & set(self.settings)
        if taken:
            raise ValueError(f"--field {min(taken)}: collect sets it itself")
        if not re.match(r"https?://[^/]+", self.url):
            rest = re.sub(r"^(\w+:/+|/+)", "", self.url) or "127.0.0.1:8000"
            meant = rest if "/" in rest else f"{rest}/v1"
            raise ValueError(f"{self.url!r} is no address: expected http://{meant}")

    @property
    def base(self) -> str:
        """The address of the API, also where that of completions was given."""
        return re.sub(r"(/chat)?/completions$", "", self.url.rstrip("/"))

    @property
    def mark(self) -> str:
        """What texts of one file have in common; not the address, since servers move."""
        return json.dumps([self.model, self.max_tokens, dict(self.settings)], sort_keys=True)

    def models(self) -> list[str]:
        """What the server calls its models; none if it does not tell them."""
        url = f"{self.base}/models"
        try:
            asked = urllib.request.Request(url, headers=self._headers())
            with urllib.request.urlopen(asked, timeout=self.answers_within) as answer:
                return [str(one["id"]) for one in json.loads(answer.read())["data"]]
        except urllib.error.HTTPError:
            return []
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise OSError(f"{url}: {reason}: is a server running at this address?") from None
        except (http.client.HTTPException, ValueError, LookupError, TypeError):
            return []

    def refuse_no_model(self) -> None:
        """Raise `ValueError` if no model was given, with the names of those that there are."""
        if not self.model:
            known = self.models()
            told = f"one of {_some(known)}" if known else "the name that the server knows it by"
            none = "" if known else f" ({self.base}/models tells none: is the address right?)"
            raise ValueError(f"--model is missing: expected {told}{none}")

    def fitted(self, prompt: str) -> "Request":
        """The same in the first form that the server takes, tried with a prompt, from its own on.

        It raises as `send` does, for the last form; or if the server has no such model.
        """
        self.check()
        self.refuse_no_model()
        try:
            return self._fitted(prompt)
        except AnsweredError as error:
            known = self.models() if "model" in error.said.lower() else []
            if not known or self.model in known:
                raise
            raise OSError(
                f"--model {self.model}: expected one of {_some(known)}; {error}"
            ) from None

    def _fitted(self, prompt: str) -> "Request":
        forms = CHATS if self.chat else FORMS
        for form in forms[forms.index(self.form) :]:
            one = replace(self, form=form)
            try:
                one.send(prompt, 0)
            except RefusedError:
                if form == forms[-1]:
                    raise
            except MissingError as error:
                if self.chat:
                    raise
                try:
                    chat = replace(self, chat=True, form=CHATS[0])._fitted(prompt)
                except MissingError:
                    raise AnsweredError(
                        f"{error}, and no chats: expected an address such as "
                        "http://127.0.0.1:8000/v1, and a --model that is there",
                        error.said,
                    ) from None
                click.echo(f"{self.url} has no /completions: chats are asked for.", err=True)
                return chat
            else:
                return one
        raise AssertionError("the last form returns or raises")

    def _headers(self) -> dict[str, str]:
        return {} if self.key is None else {"Authorization": f"Bearer {self.key}"}

    def send(self, prompt: str, seed: int) -> dict[str, Any]:
        """One completion.

        * raises `RefusedError`, `MissingError`: The server does not take the request, or has
          nothing at that address.
        * raises `OSError`: It cannot be reached, or answers wrongly, again and again.
        * raises `ValueError`: The answer is no completion.
        """
        messages = {"messages": [{"role": "user", "content": prompt}]}
        body = {
            "model": self.model,
            **(messages if self.chat else {"prompt": prompt}),
            "max_tokens": self.max_tokens,
            "seed": seed_of(prompt, seed),
            **self.form,
            **self.settings,
        }
        headers = {"Content-Type": "application/json", **self._headers()}
        url = f"{self.base}/{'chat/' * self.chat}completions"
        at = f"{url} (prompt {prompt[:40]!r}, seed {seed})"
        for attempt in range(RETRIES + 1):
            pause = PAUSE * 2**attempt
            asked = urllib.request.Request(url, json.dumps(body).encode(), headers)
            started = time.monotonic()
            try:
                with urllib.request.urlopen(asked, timeout=self.answers_within) as answer:
                    came = answer.read().decode(errors="replace")
                    given = json.loads(came)
            except urllib.error.HTTPError as error:
                said = error.read(SAID).decode(errors="replace")
                asks = _seconds(error.headers.get("Retry-After"))
                if error.code not in BUSY or attempt == RETRIES or asks > LONGEST:
                    kind = RefusedError if error.code in REFUSED else AnsweredError
                    kind = MissingError if error.code in MISSING else kind
                    told = "" if asks > LONGEST else HINTS.get(error.code, "")
                    told += FEW_TOKENS if error.code in REFUSED and prompt in PROMPTS else ""
                    told += f", {attempt + 1} times" if attempt else ""
                    told += f", it asks to wait {asks:.0f} s" if asks > LONGEST else ""
                    raise kind(f"{at}: HTTP {error.code}{told}: {said}", said) from None
                pause = max(pause, asks)
            except (http.client.HTTPException, OSError, ValueError) as error:
                # A `ValueError` is JSON that ends too early: the connection was closed.
                if attempt == RETRIES:
                    reason = getattr(error, "reason", error)
                    if isinstance(error, ValueError):
                        reason = f"no whole JSON: {came[:60]!r}"
                    hint = " (--timeout?)" if isinstance(error, TimeoutError) else _LOG
                    raise OSError(f"{at}: {reason}, {RETRIES + 1} times{hint}") from None
            else:
                took = round(time.monotonic() - started, 4)
                try:
                    found = record_of(given, prompt, seed, LIKELIEST)
                except (LookupError, TypeError, AttributeError, ValueError) as error:
                    known = re.search(r"/v\d", self.base)
                    hint = "" if known else f" (is the address {self.base}/v1?)"
                    raise ValueError(
                        f"{at}: {error!r}: the answer is no completion{hint}: {str(given)[:200]}"
                    ) from None
                return found | {"settings": self.mark, "seconds": took}
            time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")


def _some(names: Sequence[str]) -> str:
    """The first names."""
    return ", ".join(names[:NAMED]) + f", … ({len(names)} in all)" * (len(names) > NAMED)


def _seconds(asked: str | None) -> float:
    """What a header Retry-After asks to wait, which is a number of seconds or a date.

    >>> _seconds("30"), _seconds(None), _seconds("soon")
    (30.0, 0.0, 0.0)
    """
    with suppress(ValueError):
        return float(asked or 0)
    with suppress(ValueError):
        return parsedate_to_datetime(str(asked)).timestamp() - time.time()
    return 0.0


def drafted_so_far(request: Request) -> int | None:
    """What the page /metrics of a server counts of drafted tokens; None if it has no counter."""
    page = re.sub(r"/v\d+$", "", request.base) + "/metrics"
    try:
        with urllib.request.urlopen(page, timeout=request.answers_within) as answer:
            found = DRAFTED.findall(answer.read().decode(errors="replace"))
    except urllib.error.HTTPError:
        return None
    return int(sum(map(float, found))) if found else None


def seed_of(prompt: str, number: int) -> int:
    """The seed of text `number` of a prompt: prompts do not share random numbers."""
    return number_of(f"{number} {prompt}")


def collect(
    request: Request,
    prompts: Sequence[str],
    texts: int,
    path: Path,
    workers: int,
    first_seed: int,
    advance: Callable[[int], None],
) -> int:
    """Ask for so many texts of each prompt, and append each to the file; how many came.

    Those that the file has are not asked for again; it keeps what came before an error.

    * `first_seed`: Text k of a prompt has the seed `first_seed` + k.
    * `advance`: Told of texts that are there already, and of each that comes.
    """
    request.check()
    _end_with_a_line(path)
    known = set(_known(path, request.mark))
    wanted = [
        (prompt, seed)
        for seed in range(first_seed, first_seed + texts)
        for prompt in prompts
        if (prompt, seed) not in known
    ]
    advance(texts * len(prompts) - len(wanted))
    if not wanted:
        return 0
    request, came = request.fitted(prompts[0]), 0
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
            pool.shutdown(cancel_futures=True)
            came += _write((one for one in running if not one.cancelled()), file, advance)
            click.echo(
                f"{came:,} texts came now; {path} keeps all that have come, and the same command "
                "goes on from there.",
                err=True,
            )
            raise
    return came


def _take(running: set[Future[dict[str, Any]]], file: Any, advance: Callable[[int], None]) -> int:
    """Write what is done, the good answers first; raise for one that failed."""
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    failed = [one for one in done if one.exception()]
    if not failed:
        running -= done
        return _write(done, file, advance)
    failed[0].result()
    raise AssertionError("it has failed")


def _write(
    done: Iterable[Future[dict[str, Any]]], file: Any, advance: Callable[[int], None]
) -> int:
    """Write the good answers; how many there are."""
    good = [one.result() for one in done if not one.exception()]
    for record in good:
        file.write(json.dumps(record) + "\n")
        advance(1)
    file.flush()
    return len(good)


def _end_with_a_line(path: Path) -> None:
    """Cut off what a process that was killed has written of a record: it is asked for again."""
    if path.exists():
        with path.open("rb+") as file:
            file.truncate(file.read().rfind(b"\n") + 1)


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
