"""Tracebacks of user code, without the frames of the kit that called it."""

import itertools
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType

PACKAGE = Path(__file__).parent
JUDGED = (
    "adapters",
    "algorithms",
    "examples",
    "torch_backend",
    "zoo",
)
RUNNING = ("concurrent.futures", "threading", "asyncio", "distributed", "dask", "contextlib")
"""Libraries through which the kit calls judged code: in threads, elsewhere, or in a context."""
MOST_FRAMES = 20


def own_traceback(error: BaseException) -> TracebackType | None:
    """The traceback of an error, from the first frame on that is not the kit's.

    * returns: None if the kit itself raised.

    Examples
    --------
    >>> from specref.contracts.timeout import within
    >>> try:
    ...     within(1, lambda: [][0])
    ... except Exception as error:
    ...     own_traceback(error.__cause__).tb_frame.f_code.co_name
    '<lambda>'
    """
    here = error.__traceback__
    while here is not None and _calls(here.tb_frame):
        here = here.tb_next
    return here


def own_line(error: BaseException) -> str:
    """The line of judged code that an error comes from; "" if the kit itself raised.

    Examples
    --------
    >>> own_line(ValueError("raised nowhere"))
    ''
    """
    found = list(traceback.walk_tb(own_traceback(error)))
    lines = [line for frame, line in found if _file(frame) == _file(found[0][0])]
    return f"line {lines[-1]} of {Path(_file(found[0][0])).name}" if lines else ""


def _file(frame: FrameType) -> str:
    return frame.f_code.co_filename


def in_its_own_frames(error: BaseException | None) -> BaseException | None:
    """The error without the frames of the kit; None if the kit itself raised."""
    own = None if error is None else own_traceback(error)
    return None if error is None or own is None else error.with_traceback(own)


def traceback_lines(error: BaseException | None) -> tuple[str, ...]:
    """The traceback of user code as lines, with the cause of its error; long ones are cut.

    * returns: Empty if the kit itself raised, or there is no error.

    Examples
    --------
    >>> traceback_lines(ValueError("raised nowhere"))
    ()
    """
    if error is None:
        return ()
    # A process pool sends the traceback as the text of a cause.
    remote = type(error.__cause__).__name__ == "_RemoteTraceback"
    own = own_traceback(error)
    if own is None and not remote:
        return ()
    shown = traceback.TracebackException(type(error), error, own, compact=True)
    return tuple(_shortened("".join(shown.format()).rstrip().splitlines()))


def stack_lines(thread: threading.Thread) -> tuple[str, ...]:
    """The present stack of a running thread, as lines; empty if it is in the kit."""
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return ()
    frames = list(traceback.walk_stack(frame))[::-1]
    own = list(itertools.dropwhile(lambda called: _calls(called[0]), frames))
    if not own:
        return ()
    text = "".join(traceback.StackSummary.extract(iter(own)).format())
    return tuple(_shortened(["It was here:", *text.rstrip().splitlines()]))


def _calls(frame: FrameType) -> bool:
    """Whether a frame is of the kit, or of a library through which it calls."""
    module = f"{frame.f_globals.get('__name__', '')}."
    if module.startswith(tuple(f"{name}." for name in RUNNING)):
        return True
    path = Path(frame.f_code.co_filename)
    if not path.is_relative_to(PACKAGE):
        return False
    return not any(path.is_relative_to(PACKAGE / name) for name in JUDGED)


def _shortened(lines: list[str]) -> Iterator[str]:
    most = 2 * MOST_FRAMES
    if len(lines) <= 2 * most:
        yield from lines
        return
    yield from lines[:most]
    yield f"  … {len(lines) - 2 * most} more lines …"
    yield from lines[-most:]
