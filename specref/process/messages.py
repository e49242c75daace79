"""The lines of protocol 1: requests with a fixed order of keys, and checked answers."""

import contextlib
import json
import os
from typing import Any

import numpy as np

from specref.arrays import Floats, Ints
from specref.coins import Coins
from specref.contracts.errors import BrokenContractError


class CannotStartError(OSError):
    """The program was not found, or did not answer `start` as it should."""


class EndedError(Exception):
    """The program crashed before it answered. It is restarted for the next request."""


class SamplerError(Exception):
    """The program answered ``{"error": …}``; the message is that of the program."""


CHUNK = 1 << 20
TAIL_LINES, TAIL_BYTES, TAIL_CHARACTERS = 3, 4_096, 160


class Tail:
    """Reads a pipe without blocking, and keeps only the end."""

    def __init__(self, fd: int) -> None:
        self.fd, self.open = fd, True
        self._last = b""
        os.set_blocking(fd, False)

    def read(self) -> None:
        """Read what is there: all of it, since a pipe does not hold more than a chunk."""
        with contextlib.suppress(BlockingIOError):
            chunk = os.read(self.fd, CHUNK)
            self.open = bool(chunk)
            self._last = (self._last + chunk)[-TAIL_BYTES:]

    def __str__(self) -> str:
        if self.open:
            self.read()
        lines = map(str.strip, self._last.decode(errors="replace").split("\n"))
        last = " / ".join(list(filter(None, lines))[-TAIL_LINES:])[-TAIL_CHARACTERS:]
        return f"; stderr ends: {printable(last)}" if last else ""


def printable(text: str) -> str:
    """A text with control characters escaped, except for ends of lines.

    Examples
    --------
    >>> printable("\\x1b[31mred\\ufffd")
    '\\\\x1b[31mred\\ufffd'
    """
    return "".join(
        one if one.isprintable() or one == "\n" else one.encode("unicode_escape").decode("ascii")
        for one in text
    )


def shown(line: bytes) -> str:
    """The start of a line, quoted.

    Examples
    --------
    >>> shown(b"Loading model\\n...")
    "'Loading model'"
    """
    text = line.split(b"\n")[0].decode(errors="replace")
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


PROTOCOL = 1
MOST_IDS = 2**53


def request(id_: int, name: str, **fields: Any) -> bytes:
    """A request as a line: ASCII without spaces, floats as the shortest exact decimal.

    Examples
    --------
    >>> request(3, "verify", seed=7, target_probs=[0.1, 1.0], draft_probs=None)
    b'{"protocol":1,"id":3,"request":"verify","seed":7,"target_probs":[0.1,1.0],\
"draft_probs":null}\\n'
    """
    message = {"protocol": PROTOCOL, "id": id_, "request": name, **fields}
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def batch_fields(p: Floats, q: Floats | None, drafts: Ints, lens: Ints) -> dict[str, Any]:
    """The fields of a batch: its distinct cases, and the case of each row.

    Examples
    --------
    >>> p = np.array([[[0.5, 0.5]], [[1.0, 0.0]], [[0.5, 0.5]]])
    >>> none = np.zeros((3, 0), dtype=np.int64)
    >>> fields = batch_fields(p, None, none, np.zeros(3, dtype=np.int64))
    >>> fields["rows"], fields["cases"], fields["case"], fields["target_probs"]
    (3, 2, [0, 1, 0], [0.5, 0.5, 1.0, 0.0])
    """
    given = [array for array in (p, q, drafts, lens) if array is not None]
    seen: dict[bytes, int] = {}
    case = [
        seen.setdefault(b"".join(array[row].tobytes() for array in given), len(seen))
        for row in range(len(drafts))
    ]
    first = np.unique(case, return_index=True)[1]
    return {
        "rows": len(case),
        "cases": len(seen),
        "lookahead": drafts.shape[1],
        "vocabulary": p.shape[2],
        "case": case,
        "lens": lens[first].tolist(),
        "draft_tokens": drafts[first].ravel().tolist(),
        "target_probs": p[first].ravel().tolist(),
        "draft_probs": None if q is None else q[first].ravel().tolist(),
    }


def coin_fields(coins: Coins) -> dict[str, Any]:
    """The coins of a batch as fields of a request, each a flat list.

    Examples
    --------
    >>> coin_fields(Coins(np.array([[0.25, 0.5]]), np.log([[2.0, 3.0]])))["accept"]
    [0.25, 0.5]
    """
    fields = {"accept": coins.accept, "race": coins.race, "final": coins.final}
    return {
        name: np.asarray(value, dtype=np.float64).ravel().tolist()
        for name, value in fields.items()
    }


def read_message(line: bytes, id_: int) -> dict[str, Any]:
    """Read an answer; one that reports an error is raised as `SamplerError`."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise BrokenContractError(
            f"answered {shown(line)}: expected a JSON object on one line (other output belongs on "
            "stderr)"
        )
    for name, expected in (("protocol", PROTOCOL), ("id", id_)):
        found = message.get(name)
        if found != expected or isinstance(found, bool):
            raise BrokenContractError(f"answered with {name} {found!r}: expected {expected}")
    if message.get("error") is not None:
        raise SamplerError(printable(str(message["error"])))
    return message


def read_blocks(message: dict[str, Any], rows: int, width: int) -> tuple[Any, Any]:
    """tokens [rows, width] and counts [rows] of an answer, with unchecked values."""
    tokens = _integers(message, "tokens", rows * width, f"{rows} rows of {width}")
    return tokens.reshape(rows, width), _integers(message, "counts", rows, "one for each row")


def _integers(message: dict[str, Any], name: str, number: int, what: str) -> Ints:
    values = message.get(name)
    expected = f"expected a flat array of {number:,} integers ({what})"
    if not isinstance(values, list):
        raise BrokenContractError(f"answered with {name} {values!r:.60}: {expected}")
    if len(values) != number:
        raise BrokenContractError(f"{name} has {len(values):,} values: {expected}")
    for index, value in enumerate(values):
        if type(value) is not int or abs(value) > MOST_IDS:
            raise BrokenContractError(f"{name}[{index}] is {value!r:.60}: {expected}")
    return np.array(values, dtype=np.int64)
