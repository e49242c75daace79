"""The last lines that a program writes to stderr, safe to print."""

import contextlib
import os

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
