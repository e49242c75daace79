"""Texts from files of JSON lines: one record for each text, every fault named with its line."""

import gzip
import io
import json
import math
import sys
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specref.arrays import Floats, Ints

GZIP, MARK = b"\x1f\x8b", b"\xef\xbb\xbf"
"""What a gzipped file begins with, and what some programs put before UTF-8."""
OTHERS = {
    b"\x28\xb5\x2f\xfd": "packed by zstd: `zstd -d` unpacks it",
    b"BZh": "packed by bzip2: `bunzip2` unpacks it",
    b"\xfd7zXZ": "packed by xz: `unxz` unpacks it",
    b"PK\x03\x04": "packed by zip: `unzip` unpacks it",
    b"PAR1": "of Parquet: write it as lines of JSON",
    b"\xff\xfe": "UTF-16: `iconv -f UTF-16 -t UTF-8` makes UTF-8 of it",
    b"\xfe\xff": "UTF-16: `iconv -f UTF-16 -t UTF-8` makes UTF-8 of it",
    b"{\0": "UTF-16: `iconv -f UTF-16LE -t UTF-8` makes UTF-8 of it",
    b"\0{": "UTF-16: `iconv -f UTF-16BE -t UTF-8` makes UTF-8 of it",
}
"""What other files begin with, what they are, and what to do."""
INTEGERS = {int}
LARGEST = 2**31 - 1
LOWEST = -sys.float_info.max
SPELLED, MOST = 2_000, 8
SPARSE = 8
"""Times the number of codes: up to so large ones are counted, which is faster than sorting."""
STDIN = "-"
LINES = "`jq -c '.[]'` makes lines of a JSON list"
FIELDS = "prompt_id, token_ids (or text), logprobs, finish_reason, seed"
DECODE = json.JSONDecoder().raw_decode
"""As json.loads, without its choice of options and search for spaces in each line."""
Encode = Callable[[str], list[int]]
Hear = Callable[[int, Mapping[str, Any]], None]


@dataclass
class Texts:
    """The texts of one file, in its order.

    * `tokens`: Of all texts, one after the other, where `starts` (texts + 1) says.
    * `prompts`: Of each text, as a number of `ids`: names in the order in which they were met.
    * `endings`: Why each text has ended, as the system says.
    * `logprobs`: One for each token; None if no record has any.
    * `repeated`: Records left out, because their prompt and seed were there before.
    * `contexts`: {prompt: its text, or its token ids}, as far as records have them.
    * `spelled`: {text: its token ids}, of the first records that have both.
    """

    name: str
    tokens: Ints
    starts: Ints
    prompts: Ints
    ids: list[str]
    endings: list[str | None]
    logprobs: Floats | None
    repeated: int
    contexts: dict[str, str | list[int]] = field(default_factory=dict)
    spelled: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.prompts)

    @property
    def lengths(self) -> Ints:
        return np.diff(self.starts)

    def cut(self, most: int) -> "Texts":
        """The first tokens of each text."""
        lengths = np.minimum(self.lengths, most)
        kept = np.arange(min(most, int(self.lengths.max(initial=0)))) < lengths[:, None]
        at = (self.starts[:-1, None] + np.arange(kept.shape[1]))[kept]
        endings = [
            "length" if reached else one
            for one, reached in zip(self.endings, self.lengths >= most, strict=True)
        ]
        return replace(
            self,
            tokens=self.tokens[at],
            starts=np.concatenate([[0], lengths.cumsum()]),
            endings=endings,
            logprobs=None if self.logprobs is None else self.logprobs[at],
        )


def read_texts(
    path: str,
    vocabulary: int | None = None,
    encode: Encode | None = None,
    hear: Sequence[Hear] = (),
    seeds: range | None = None,
) -> Texts:
    """Read a file of JSON lines, a gzipped one, or standard input for ``-``.

    * `encode`: For records that have "text".
    * `hear`: Told of each record that counts, and of its line's number.
    * `seeds`: Records with other seeds do not count.
    * raises `ValueError`: A line is no record; the message has its number and what is wrong.
    """
    reader = _Reader(path, vocabulary, encode, hear, seeds)
    number = 0
    try:
        with _opened(path) as lines:
            for number, line in enumerate(lines, 1):
                if record := (line if number > 1 else line.removeprefix(MARK)).strip():
                    reader.add(number, record)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise reader.wrong(number + 1, f"{error}: expected a whole gzipped file") from None
    return reader.texts()


@contextmanager
def _opened(path: str) -> Iterator[Iterable[bytes]]:
    with ExitStack() as stack:
        raw: Any = (
            sys.stdin.buffer if path == STDIN else stack.enter_context(Path(path).open("rb"))
        )
        buffered = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
        if buffered.peek(2)[:2] == GZIP:
            buffered = gzip.GzipFile(fileobj=buffered)
        start = buffered.peek(5)
        for other, what in OTHERS.items():
            if start.startswith(other):
                raise ValueError(f"{path}: it is {what}; expected UTF-8, or UTF-8 in gzip")
        yield buffered


@dataclass
class _Reader:
    path: str
    vocabulary: int | None
    encode: Encode | None
    hear: Sequence[Hear]
    only: range | None = None
    tokens: "array[int]" = field(default_factory=lambda: array("i"))
    starts: "array[int]" = field(default_factory=lambda: array("q", [0]))
    prompts: "array[int]" = field(default_factory=lambda: array("i"))
    logprobs: "array[float]" = field(default_factory=lambda: array("d"))
    endings: list[str | None] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    seeds: set[tuple[int, Any]] = field(default_factory=set)
    contexts: dict[str, str | list[int]] = field(default_factory=dict)
    spelled: dict[str, tuple[int, ...]] = field(default_factory=dict)
    repeated: int = 0

    def add(self, number: int, line: bytes) -> None:
        """One record."""
        try:
            decoded = line.decode()
            record, end = DECODE(decoded)
            if end < len(decoded):
                raise ValueError(f"more after character {end}")
        except UnicodeDecodeError as error:
            raise self.wrong(number, f"{error}: expected UTF-8") from None
        except (ValueError, RecursionError) as error:
            raise self.wrong(
                number,
                f"{_said(error)}: expected one JSON object on each line, and this one is cut "
                f"short, or goes on in the next ({LINES})",
            ) from None
        if not isinstance(record, dict):
            raise self.wrong(number, f"a {type(record).__name__}: expected an object, {LINES}")
        if self.only is not None and record.get("seed") not in self.only:
            return
        prompt = record.get("prompt_id", "")
        if "prompt_id" not in record and isinstance(record.get("prompt"), str):
            prompt = record["prompt"]
        if not isinstance(prompt, (str, int)) or isinstance(prompt, bool):
            raise self.wrong(number, f"prompt_id = {prompt!r}: expected a string or a number")
        index = self.ids.setdefault(str(prompt), len(self.ids))
        if "prompt" in record or "prompt_token_ids" in record:
            self._add_context(number, str(prompt), record)
        seed = record.get("seed")
        if seed is not None:
            if type(seed) not in (str, int):
                raise self.wrong(number, f"seed = {seed!r}: expected a number or a string")
            if (index, seed) in self.seeds:
                self.repeated += 1
                return
            self.seeds.add((index, seed))
        ids = self._tokens(number, record)
        self._add_logprobs(number, record, len(ids))
        ending = record.get("finish_reason")
        if ending is not None and not isinstance(ending, str):
            raise self.wrong(number, f"finish_reason = {ending!r}: expected a string")
        self.tokens.fromlist(ids)
        self.starts.append(len(self.tokens))
        self.prompts.append(index)
        self.endings.append(ending and sys.intern(ending))
        text = record.get("text")
        if isinstance(text, str) and len(self.spelled) < SPELLED:
            self.spelled.setdefault(text, tuple(ids))
        for hear in self.hear:
            try:
                hear(number, record)
            except ValueError as error:
                raise self.wrong(number, str(error)) from None

    def _add_context(self, number: int, prompt: str, record: dict[str, Any]) -> None:
        context = record.get("prompt_token_ids")
        if context is None and isinstance(record.get("prompt"), str):
            context = record["prompt"]
        if context is None:
            return
        ids = isinstance(context, list) and {*map(type, context)} == {int}
        if not isinstance(context, str) and not ids:
            raise self.wrong(
                number, f"prompt_token_ids = {context!r}: expected a list of integers"
            )
        if "prompt_id" not in record and self.contexts.get(prompt, context) != context:
            raise self.wrong(number, "prompt_id is missing, and there are several prompts")
        if self.contexts.setdefault(prompt, context) != context:
            raise self.wrong(number, f"prompt_id {prompt} stood for another prompt before")

    def _tokens(self, number: int, record: dict[str, Any]) -> list[int]:
        ids = record.get("token_ids")
        if not {"token_ids", "text"} & record.keys():
            given = ", ".join(list(record)[:MOST]) or "nothing"
            raise self.wrong(
                number, f"no token_ids and no text, but {given}: expected fields {FIELDS}"
            )
        if ids is None and "text" in record:
            if self.encode is None:
                raise self.wrong(
                    number,
                    "it has text: expected token_ids, or --tokenizer FOLDER or words",
                )
            ids = self.encode(str(record["text"]))
        if not isinstance(ids, list):
            raise self.wrong(number, f"token_ids = {ids!r}: expected a list; fields are {FIELDS}")
        if not ids:
            raise self.wrong(
                number,
                "token_ids is empty: give the end token's id, or an unused one, in both files",
            )
        highest = LARGEST if self.vocabulary is None else min(LARGEST, self.vocabulary - 1)
        if {*map(type, ids)} != INTEGERS or not 0 <= min(ids) <= max(ids) <= highest:
            place, one = next(
                (i, x) for i, x in enumerate(ids) if type(x) is not int or not 0 <= x <= highest
            )
            raise self.wrong(
                number, f"token_ids[{place}] = {one!r}: expected an integer from 0 to {highest}"
            )
        return ids

    def _add_logprobs(self, number: int, record: dict[str, Any], tokens: int) -> None:
        given = record.get("logprobs")
        if given is None:
            self.logprobs.extend([math.nan] * tokens)
            return
        if not isinstance(given, list) or len(given) != tokens:
            count = len(given) if isinstance(given, list) else repr(given)
            raise self.wrong(
                number, f"logprobs = {count}: expected {tokens} numbers, one for each token"
            )
        with suppress(TypeError, OverflowError):
            # A NaN or an infinite number makes the sum one, and that of no numbers is an error.
            if bool not in map(type, given) and sum(given) >= LOWEST and max(given) <= 0:
                self.logprobs.fromlist(given)
                return
        for place, one in enumerate(given):
            if type(one) not in (int, float) or not LOWEST <= one <= 0:
                raise self.wrong(
                    number, f"logprobs[{place}] = {one!r}: expected a finite number, at most 0"
                )
        self.logprobs.fromlist(given)  # finite numbers with an infinite sum

    def wrong(self, number: int, what: str) -> ValueError:
        """The error of a line."""
        return ValueError(f"{self.path}:{number}: {what}")

    def texts(self) -> Texts:
        """All that was read."""
        if not self.prompts:
            raise ValueError(f"{self.path}: it has no record: expected lines with {FIELDS}")
        logprobs = np.frombuffer(self.logprobs, dtype=np.float64)
        return Texts(
            self.path,
            np.frombuffer(self.tokens, dtype=np.int32),
            np.frombuffer(self.starts, dtype=np.int64),
            np.frombuffer(self.prompts, dtype=np.int32),
            list(self.ids),
            self.endings,
            None if np.isnan(logprobs).all() else logprobs,
            self.repeated,
            self.contexts,
            self.spelled,
        )


def _said(error: Exception) -> str:
    """What is wrong with a line of JSON, without the decoder's count of lines."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, at character {error.pos + 1}"
    return str(error)


def numbered(codes: NDArray[np.integer[Any]]) -> tuple[Ints, Ints, Ints]:
    """The different codes in ascending order, which of them each code is, and their counts.

    As ``np.unique``, of integers from 0.

    >>> numbered(np.array([5, 3, 5]))
    (array([3, 5]), array([1, 0, 1]), array([1, 2]))
    >>> numbered(np.array([50, 30, 50]))
    (array([30, 50]), array([1, 0, 1]), array([1, 2]))
    """
    if codes.max(initial=0) >= SPARSE * len(codes):
        kinds, which, counts = np.unique(codes, return_inverse=True, return_counts=True)
        return kinds.astype(np.int64), which, counts
    counts = np.bincount(codes)
    seen = counts > 0
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[codes], counts[seen]
