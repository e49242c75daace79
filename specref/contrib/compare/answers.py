"""An answer of an OpenAI-compatible server as a record, whichever form it has.

Tokens are known by their ids, by their strings, or, where there is neither, by words of the text.
Log-probabilities come as three lists (`tokens`, `token_logprobs`, `top_logprobs`) or as one
(`content`). What is wrong with them is kept in the record under "faults".
"""

import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any, NamedTuple

UNMARKED = str.maketrans({"▁": " ", "Ġ": " ", "Ċ": "\n"})
"""Marks of spaces and ends of lines in the pieces of common tokenizers."""
ROUNDING = 1e-6
"""Logarithms of 1 in single precision may be so far above 0."""

NOTHING = 2**31 - 1
"""Stands for a text that ends at once, where its end has no id."""


class Entry(NamedTuple):
    """What is reported of one token; `likeliest` has tokens by id or string."""

    id: int | None
    string: str | None
    logprob: Any
    likeliest: list[tuple[int | str, Any]]


def record_of(
    answer: Mapping[str, Any], prompt: str, seed: int, most: int | None = None
) -> dict[str, Any]:
    """A record from an answer, with `most` of the likeliest tokens, of which servers may add one.

    >>> found = record_of({"choices": [{"text": "a b", "finish_reason": "stop"}]}, "x", 1)
    >>> found["token_ids"], found["unit"]
    ([1756872259, 2011248169], 'words')
    >>> record_of({"choices": [{"message": {"content": "a"}}]}, "x", 1)["token_ids"]
    [1756872259]
    """
    choice = answer["choices"][0]
    if "message" in choice:  # of a chat
        choice = choice | {"text": choice["message"].get("content") or ""}
    entries = list(_entries(choice.get("logprobs") or {}))
    unit, ids = _tokens(choice, entries)
    found: dict[str, Any] = {"prompt_id": prompt, "prompt": prompt, "seed": seed}
    found |= {"token_ids": ids, "unit": unit}
    if entries:
        expected = len(ids)
        if unit != "ids" or not choice.get("token_ids"):
            expected = (answer.get("usage") or {}).get("completion_tokens") or expected
        # A token that stops a text is counted, and may have no log-probability.
        known = expected - (choice.get("finish_reason") == "stop") <= len(entries) <= expected
        faults = [] if known else [f"not one for each token: {len(entries)} for {expected} tokens"]
        faults += _faults(entries, str(choice.get("text") or ""))
        if len(entries) == len(ids) and all(map(_is_logprob, (one.logprob for one in entries))):
            found["logprobs"] = [min(float(one.logprob), 0.0) for one in entries]
            if any(one.likeliest for one in entries):
                found["top_logprobs"] = [
                    _ranked(one, token, most) for one, token in zip(entries, ids, strict=True)
                ]
        if faults:
            found["faults"] = faults
    found |= {"finish_reason": choice.get("finish_reason"), "text": choice.get("text")}
    drafted = drafted_in(answer)
    return found if drafted is None else found | {"drafted": drafted}


def drafted_in(answer: Mapping[str, Any]) -> int | None:
    """How many tokens were drafted, as far as an answer says; None if it says nothing.

    >>> drafted_in({"timings": {"predicted_n": 8, "draft_n": 6}})
    6
    >>> drafted_in({"timings": {"predicted_n": 8}}), drafted_in({})
    (0, None)
    """
    timings = answer.get("timings") or {}
    if "predicted_n" in timings:  # llama.cpp, which leaves out a count of 0
        return int(timings.get("draft_n") or 0)
    details = (answer.get("usage") or {}).get("completion_tokens_details") or {}
    counts = [details.get(f"{kind}_prediction_tokens") for kind in ("accepted", "rejected")]
    known = [int(one) for one in counts if one is not None]
    return sum(known) if known else None


def number_of(string: str) -> int:
    """A number of 31 bits for a token that is known by its string."""
    return zlib.crc32(string.encode(errors="surrogatepass")) & 0x7FFFFFFF


def words_of(text: str) -> list[str]:
    """The words of a text, each with the spaces before it."""
    return re.findall(r"\s*\S+|\s+$", text)


def numbers_of(text: str) -> list[int]:
    """The words of a text as numbers; of no text one that stands for its end."""
    return [number_of(one) for one in words_of(text)] or [NOTHING]


def _entries(reported: Mapping[str, Any]) -> Iterator[Entry]:
    for one in reported.get("content") or []:
        top = one.get("top_logprobs") or []
        yield Entry(
            one.get("id"),
            one.get("token"),
            one.get("logprob"),
            [(_key(each), each["logprob"]) for each in top],
        )
    logs, tops = (reported.get(name) or [] for name in ("token_logprobs", "top_logprobs"))
    strings = reported.get("tokens") or [None] * len(logs)
    count = max(len(strings), len(logs))
    for string, log, top in islice(zip_longest(strings, logs, tops), count):
        # A JSON object has no order.
        likeliest = sorted((top or {}).items(), key=lambda pair: -float(pair[1] or 0))
        yield Entry(None, string, log, likeliest)


def _key(one: Mapping[str, Any]) -> int | str:
    return int(one["id"]) if one.get("id") is not None else str(one["token"])


def _tokens(choice: Mapping[str, Any], entries: Sequence[Entry]) -> tuple[str, list[int]]:
    """What tokens are known by, and their numbers."""
    if choice.get("token_ids"):
        return "ids", list(choice["token_ids"])
    if entries and all(one.id is not None for one in entries):
        return "ids", [int(one.id) for one in entries if one.id is not None]
    if entries and all(one.string is not None for one in entries):
        return "strings", [number_of(str(one.string)) for one in entries]
    return ("words" if choice["text"] else "nothing"), numbers_of(choice["text"])


def _ranked(one: Entry, token: int, most: int | None) -> list[list[float]]:
    """The likeliest tokens as [number, log-probability]; the token itself has its own number."""
    own = {one.id, one.string} - {None}
    named = [
        [token if key in own else key if isinstance(key, int) else number_of(key), value]
        for key, value in one.likeliest
    ]
    if most is not None and len(named) > most:
        least = sorted((value for _, value in named), reverse=True)[most - 1]
        named = [pair for pair in named if pair[1] >= least][:most]
    return named


def _is_logprob(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and -math.inf < value <= ROUNDING


def _faults(entries: Sequence[Entry], text: str) -> Iterator[str]:
    """What is wrong with what is reported, the kind before the colon."""
    wrong = [one.logprob for one in entries if not _is_logprob(one.logprob)]
    if wrong:
        yield f"no logarithm of a probability: {wrong[0]!r}"
    if all(one.string is not None for one in entries):
        spelled = "".join(str(one.string) for one in entries).translate(UNMARKED)
        # Others than ASCII may be bytes of a character; spaces are added and taken away.
        known = spelled.isascii() and text.isascii()
        if known and not "".join(spelled.split()).startswith("".join(text.split())):
            yield f"of other tokens than those of the text: {spelled[:40]!r} for {text[:40]!r}"
