"""What a program writes beside its answers: the last of it, safe to print."""

import contextlib
import os

CHUNK = 1 << 20
TAIL_LINES, TAIL_BYTES, TAIL_CHARACTERS = 3, 4_096, 160


class Tail:
    """The reading end of a pipe: emptied whenever asked to, of which only the end is kept."""

    def __init__(self, fd: int) -> None:
        self.fd, self.open = fd, True
        self._last = b""
        os.set_blocking(fd, False)

    def read(self) -> None:
        """Take what is there: all of it, since no pipe holds more."""
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
    """A text in which what would control a terminal is spelled out; lines are kept.

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
