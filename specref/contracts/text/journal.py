"""Texts in a file, one a line, written as they come; a second run takes them from there."""

import json
import os
from collections import defaultdict, deque
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from specref.contracts.text.contract import Text
from specref.vocabulary import Tokens

FORMAT = "specref texts 1"


class Asked(NamedTuple):
    """What an engine was asked."""

    mode: str
    prompt: Tokens
    budget: int
    seed: int


class Journal:
    """The texts that an engine gave, by what it was asked.

    The first line says which engine it is; each other line is a question and its answer. A line
    that a killed process left unfinished is dropped.

    Parameters
    ----------
    path : str or Path
    engine : mapping
        What tells this engine from others, as JSON can hold it.

    Raises
    ------
    ValueError
        The file is not of this format, or of another engine.
    OSError
        It cannot be read or written.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "texts.jsonl"
    >>> asked = Asked("plain", (0,), 2, 7)
    >>> with Journal(path, {"name": "mine"}) as journal:
    ...     journal.write(asked, Text((1, 1)))
    >>> with Journal(path, {"name": "mine"}) as journal:
    ...     journal.take(asked), journal.take(asked)
    (Text(tokens=(1, 1), proposed=None, accepted=None), None)
    """

    def __init__(self, path: str | Path, engine: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._texts: dict[Asked, deque[Text]] = defaultdict(deque)
        head = json.dumps({"format": FORMAT, **engine})
        lines = self._lines(head) if self.path.exists() else []
        unfinished = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            unfinished.write_text("".join(f"{x}\n" for x in [head, *lines]), encoding="utf-8")
            unfinished.replace(self.path)
        finally:
            unfinished.unlink(missing_ok=True)
        self._file = self.path.open("a", encoding="utf-8")

    def take(self, asked: Asked) -> Text | None:
        """The answer that an earlier run got, each once; None if there is no other."""
        found = self._texts.get(asked)
        return found.popleft() if found else None

    def write(self, asked: Asked, text: Text) -> None:
        """Append a text; it is in the file when this returns."""
        line = [*asked, tuple(text.tokens), text.proposed, text.accepted]
        self._file.write(f"{json.dumps(line)}\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file; what was written stays."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _lines(self, head: str) -> list[str]:
        """The complete lines below the first; their texts can be taken."""
        try:
            first, *lines = self.path.read_text(encoding="utf-8").split("\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"texts = {self.path}: expected text ({error})") from None
        if first != head:
            raise ValueError(
                f"texts = {self.path}: expected texts of this engine, {head}, not {first[:300]!r}"
            )
        *complete, _ = lines or [""]  # after the last line end
        for number, line in enumerate(complete, 2):
            try:
                mode, prompt, budget, seed, tokens, proposed, accepted = json.loads(line)
                asked = Asked(mode, tuple(prompt), budget, seed)
                self._texts[asked].append(Text(tuple(tokens), proposed, accepted))
            except (ValueError, TypeError):
                raise ValueError(
                    f"texts = {self.path}, line {number}: expected a question and its answer"
                ) from None
        return complete
