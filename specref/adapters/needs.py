"""Packages that an adapter needs, and the error if one is missing."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from inspect import signature
from pathlib import Path
from typing import Any

from specref.contracts.timeout import described

FOLDER = "SPECREF_GITHUB"
"""The environment variable: a folder with a clone of OWNER/NAME at OWNER/NAME."""


class NotInstalledError(ImportError):
    """The implementation's package is not installed, or cannot be called on this machine."""


def require(packages: Sequence[str], remedy: str) -> None:
    """Raise `NotInstalledError` unless every package can be imported.

    Examples
    --------
    >>> require(["numpy"], "")
    >>> require(["no_such_package"], "pip install it")
    Traceback (most recent call last):
    NotInstalledError: no_such_package is not installed: pip install it
    """
    for package in packages:
        try:
            import_module(package)
        except ImportError as error:
            raise NotInstalledError(f"{error.name} is not installed: {remedy}") from None


def there(name: str) -> bool:
    """Whether there is a package, which is not imported, or a clone ``OWNER/NAME``.

    Examples
    --------
    >>> there("numpy"), there("no_such_package"), there("owner/no-such-clone")
    (True, False, False)
    """
    return clone(name).is_dir() if "/" in name else find_spec(name) is not None


def clone(repository: str) -> Path:
    """Where a clone of ``OWNER/NAME`` is looked for."""
    return Path(os.environ.get(FOLDER) or "/nowhere", repository)


def imported(module: str, name: str) -> Any:
    """What a module has under a name, with dots; whatever that raises is `NotInstalledError`.

    Examples
    --------
    >>> imported("fractions", "Fraction.limit_denominator").__name__
    'limit_denominator'
    """
    try:
        return reduce(getattr, name.split("."), import_module(module))
    except Exception as error:  # packages raise anything
        raise NotInstalledError(f"{module} cannot be imported: {described(error)}") from None


def imported_alone(package: str, file: str, name: str, remedy: str) -> Any:
    """What one file of a package has under a name; nothing else of the package is imported.

    Raises
    ------
    NotInstalledError
        There is no package, or no such file, or it raises anything.
    """
    found = find_spec(package)
    path = Path(*(found.submodule_search_locations or ()) if found else (), file)
    if found is None or not path.exists():
        raise NotInstalledError(f"{package} is not installed, or has no {file}: {remedy}")
    spec = spec_from_file_location(f"specref_{package}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        return getattr(module, name)
    except Exception as error:  # packages raise anything
        raise NotInstalledError(f"{path.name} cannot be imported: {described(error)}") from None


def require_parameters(
    function: Callable[..., Any], name: str, needed: Sequence[str], known: Sequence[str] = ()
) -> None:
    """Raise `NotInstalledError` unless a function has just these parameters, maybe `known` ones.

    What others would change is not known.

    Examples
    --------
    >>> require_parameters(lambda p, q, strict: None, "sample", ["p", "q"])
    Traceback (most recent call last):
    NotInstalledError: sample has unknown parameters, strict
    """
    names = tuple(signature(function).parameters)
    unknown = [one for one in names if one not in (*needed, *known)]
    if unknown:
        raise NotInstalledError(f"{name} has unknown parameters, {', '.join(unknown)}")
    missing = [one for one in needed if one not in names]
    if missing:
        raise NotInstalledError(f"{name} has no parameter {', '.join(missing)}")


def set_known(thing: Any, **values: Any) -> None:
    """Set attributes that are there; for another `NotInstalledError` is raised.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> set_known(SimpleNamespace(n_max=16), n_max=3, p_min=0)
    Traceback (most recent call last):
    NotInstalledError: SimpleNamespace has no setting p_min
    """
    for name, value in values.items():
        if not hasattr(thing, name):
            raise NotInstalledError(f"{type(thing).__name__} has no setting {name}")
        setattr(thing, name, value)


def title(text: str, packages: Sequence[str]) -> str:
    """A name with the installed versions of packages.

    Examples
    --------
    >>> title("an adapter", ["no_such_package"])
    'an adapter (no_such_package is not installed)'
    """
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
