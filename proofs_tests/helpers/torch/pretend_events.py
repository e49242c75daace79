"""What the host waits for, and sends to a pretended device, with the line that caused it."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TypeAlias

import torch

Places: TypeAlias = Counter[tuple[str, str]]
WATCHED = "/specref/torch_backend/"
PASSED = (f"{Path(torch.__file__).parent}/", "/helpers/torch/pretend")


class Event(NamedTuple):
    """A "wait" of the host for the device's values, a "blocking copy" or a "copy" to the device.

    Its place is the innermost in the torch backend, or in whatever called torch.
    """

    kind: str
    operation: str
    file: str
    function: str
    line: int


class Events(list[Event]):
    """What happened, in order."""

    def record(self, operation: Callable[..., Any], kinds: Iterable[str]) -> None:
        """Something that an operation did, which is being called."""
        for kind in kinds:
            frames = list(_frames())
            frame = next((f for f in frames if WATCHED in f.f_code.co_filename), frames[0])
            file, function = Path(frame.f_code.co_filename).name, frame.f_code.co_name
            self.append(Event(kind, operation.__name__, file, function, frame.f_lineno))

    def places(self, *kinds: str) -> Places:
        """How often each function of each file was the cause of some kinds of events."""
        return Counter((one.file, one.function) for one in self if one.kind in kinds)


def _frames() -> Iterator[FrameType]:
    """Those of the caller, from the innermost on, without torch's own and the device's."""
    frame: FrameType | None = sys._getframe(1)
    while frame:
        if not any(part in frame.f_code.co_filename for part in PASSED):
            yield frame
        frame = frame.f_back
