"""Packages that an adapter needs, and the error if one is missing."""

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version


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


def title(text: str, packages: Sequence[str]) -> str:
    """A name with the installed versions of packages.

    Examples
    --------
    >>> title("an adapter", ["no_such_package"])
    'an adapter (no_such_package is not installed)'
    """
    return f"{text} ({', '.join(map(_named, packages))})" if packages else text


def _named(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} is not installed"
