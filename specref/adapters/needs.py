"""Packages that an adapter needs, and the error if one is missing."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, reduce
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from inspect import signature
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from specref.contracts.timeout import described

FOLDER = "SPECREF_GITHUB"
"""The environment variable: a folder with a clone of OWNER/NAME at OWNER/NAME."""
StandIns = Mapping[str, Mapping[str, Any] | ModuleType]
NO_STAND_INS: StandIns = MappingProxyType({})


class NotInstalledError(ImportError):
    """The implementation's package is not installed, or cannot be called on this machine."""


def require(packages: Sequence[str], remedy: str) -> None:
    """Raise `NotInstalledError` unless every package can be imported."""
    for package in packages:
        try:
            import_module(package)
        except ImportError as error:
            raise NotInstalledError(f"{error.name} is not installed: {remedy}") from None


def there(name: str) -> bool:
    """Whether there is a package, which is not imported, or a clone ``OWNER/NAME``."""
    return clone(name).is_dir() if "/" in name else find_spec(name) is not None


def clone(repository: str) -> Path:
    """Where a clone of ``OWNER/NAME`` is looked for."""
    return Path(os.environ.get(FOLDER) or "/nowhere", repository)


def imported(module: str, name: str) -> Any:
    """What a module has under a name, with dots; whatever that raises is `NotInstalledError`."""
    try:
        return reduce(getattr, name.split("."), import_module(module))
    except Exception as error:  # packages raise anything
        raise NotInstalledError(f"{module} cannot be imported: {described(error)}") from None


def imported_alone(
    package: str, file: str, name: str, remedy: str, stand_ins: StandIns = NO_STAND_INS
) -> Any:
    """What one file of a package has under a name; nothing else of the package is imported.

    * `remedy`: How to install the package.
    * `stand_ins`: {module: {name: value}, or a module}: in place of modules of the package. If
      there are any, the file can import no others of it, and no other names.
    * raises `NotInstalledError`: There is no package, or no such file, or it raises anything.
    """
    module = file_alone(package, file, remedy, stand_ins)
    if not hasattr(module, name):
        raise NotInstalledError(f"{file} has no {name}")
    return getattr(module, name)


def file_alone(
    package: str, file: str, remedy: str, stand_ins: StandIns = NO_STAND_INS
) -> ModuleType:
    """One file of a package as a module; parameters and errors as for `imported_alone`."""
    found = find_spec(package)
    path = Path(*(found.submodule_search_locations or ()) if found else (), file)
    if found is None or not path.exists():
        raise NotInstalledError(f"{package} is not installed, or has no {file}: {remedy}")
    spec = spec_from_file_location(f"specref_{package}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    try:
        with _replaced(package, stand_ins):
            spec.loader.exec_module(module)
    except Exception as error:  # packages raise anything
        raise NotInstalledError(f"{path.name} cannot be imported: {described(error)}") from None
    return module


@contextmanager
def _replaced(package: str, stand_ins: StandIns) -> Iterator[None]:
    """The modules of a package are these alone, if there are any."""
    if not stand_ins:
        yield
        return
    start = f"{package}."
    before = {name: one for name, one in sys.modules.items() if f"{name}.".startswith(start)}
    for name in before:
        del sys.modules[name]
    for name, values in {package: {}, **stand_ins}.items():
        module = values if isinstance(values, ModuleType) else ModuleType(name)
        if module is not values:
            vars(module).update(values)
        sys.modules[name] = module  # none is a package, so that nothing else is found in it
    try:
        yield
    finally:
        for name in [one for one in sys.modules if f"{one}.".startswith(start)]:
            del sys.modules[name]
        sys.modules.update(before)


def require_parameters(
    function: Callable[..., Any],
    name: str,
    needed: Sequence[str],
    known: Sequence[str] = (),
    by_position: int = 0,
) -> None:
    """Raise `NotInstalledError` unless a function has just these parameters, maybe `known` ones.

    What others would change is not known. The first `by_position` of those that are needed are
    passed without their names: they are the first that it has.
    """
    parameters = signature(function).parameters
    require_names(parameters, name, "parameter", needed, known)
    first, expected = (tuple(names)[:by_position] for names in (parameters, needed))
    if first != expected:
        raise NotInstalledError(
            f"{name} begins with the parameters {', '.join(first)}, not with {', '.join(expected)}"
        )


def require_names(
    names: Iterable[str], name: str, kind: str, needed: Sequence[str], known: Sequence[str]
) -> None:
    """The same of names of any kind, such as the options that an engine lists."""
    there = tuple(names)
    unknown = [one for one in there if one not in (*needed, *known)]
    if unknown:
        raise NotInstalledError(f"{name} has unknown {kind}s, {', '.join(unknown)}")
    missing = [one for one in needed if one not in there]
    if missing:
        raise NotInstalledError(f"{name} has no {kind} {', '.join(missing)}")


@contextmanager
def tried(what: str) -> Iterator[None]:
    """Load and call an engine once in here: what that raises is `NotInstalledError`."""
    try:
        yield
    except NotInstalledError:
        raise
    except Exception as error:  # packages raise anything
        raise NotInstalledError(f"{what} cannot be called: {described(error)}") from None


def set_known(thing: Any, **values: Any) -> None:
    """Set attributes that are there; for another `NotInstalledError` is raised."""
    for name, value in values.items():
        if not hasattr(thing, name):
            raise NotInstalledError(f"{type(thing).__name__} has no setting {name}")
        setattr(thing, name, value)


def title(text: str, packages: Sequence[str]) -> str:
    """A name with the installed versions of packages."""
    return f"{text} ({', '.join(map(_named, packages))})" if packages else text


def _named(package: str) -> str:
    for name in (package, *(_distributions().get(package, ()) if there(package) else ())):
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return f"{package} is not installed"


@cache
def _distributions() -> Mapping[str, Sequence[str]]:
    """The packages that are imported by other names than they are installed by."""
    return packages_distributions()
