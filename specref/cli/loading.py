"""Functions of the user, named on the command line as MODULE:FUNCTION or FILE.py:FUNCTION."""

import functools
import importlib
import importlib.util
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from specref.suggestions import did_you_mean
from specref.supervised import end_a_copy_of

MISSING = object()


def load_function(name: str, argument: str = "name") -> Callable[..., Any]:
    """The function that ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION`` names.

    A module is looked for in the current folder first; a file may import its neighbours, and
    what is in the current folder.
    """
    module_name, _, function_name = name.rpartition(":")
    if not module_name:
        raise ValueError(f"{argument} = {name!r}: expected MODULE:FUNCTION or FILE.py:FUNCTION")
    try:
        if module_name.endswith(".py"):
            module = _module_of_file(Path(module_name).resolve())
        else:
            _look_first_in(str(Path.cwd()))
            module = importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's module may raise anything
        reason = f"{type(error).__name__}: {error}"
        a_file = isinstance(error, ModuleNotFoundError) and error.name == module_name
        path = module_name.replace(".", "/")
        told = f" (of a file elsewhere: path/to/{path}.py:{function_name})" * a_file
        raise ImportError(f"cannot import {module_name!r}: {reason}{told}") from None
    function = getattr(module, function_name, MISSING)
    if function is MISSING:
        public = (one for one, what in vars(module).items() if callable(what) and one[:1] != "_")
        hint = did_you_mean(function_name, public)
        raise ValueError(f"{module_name!r} has no function {function_name!r}{hint}")
    if not callable(function):
        kind = type(function).__name__
        raise ValueError(f"{name} is not callable ({kind}): expected a function")
    loaded: Callable[..., Any] = function
    return loaded


class Loaded:
    """A loaded function that another process loads again, by its name, when it is sent there."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function = name, function
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        process = os.getpid()
        try:
            return self.function(*arguments, **options)
        finally:
            end_a_copy_of(process)

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded_once, (self.name,)


@functools.cache
def _loaded_once(name: str) -> Loaded:
    return Loaded(name, load_function(name))


def _module_of_file(path: Path) -> ModuleType:
    # Registered under a name of its own: dataclasses and pickle look their module up, and the
    # file may be called like a module that is there already.
    # The name is the same in every process.
    name = f"specref_loaded_{path.stem}_{zlib.crc32(bytes(path)):x}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise ImportError(f"{str(path)!r} is not a Python file")
    module = importlib.util.module_from_spec(specification)
    _look_first_in(str(Path.cwd()))
    _look_first_in(str(path.parent))
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _look_first_in(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)
