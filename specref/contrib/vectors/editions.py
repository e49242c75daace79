"""The published versions of the vectors: how many lines each has, and their digest."""

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple


class Edition(NamedTuple):
    """The first `ids` lines of ``published.txt``, and their SHA-256: neither ever changes."""

    ids: int
    sha256: str


EDITIONS: Mapping[str, Edition] = MappingProxyType(
    {
        "1.0": Edition(336, "26b928542aca20318659deeaf4796a1634cf28aa8708a7c710587bd7a9bc6c89"),
    }
)
SPEC_VERSION = max(EDITIONS, key=lambda version: EDITIONS[version].ids)


def sha256(lines: Sequence[str]) -> str:
    """The SHA-256 of lines, each with its line feed.

    Examples
    --------
    >>> sha256([])[:8]
    'e3b0c442'
    """
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def disagreement(lines: Sequence[str]) -> str:
    """Why lines of ``published.txt`` are not those of the editions; "" if they are.

    Examples
    --------
    >>> disagreement(["standard/interior/001 0123456789abcdef"])
    'the first 336 ids are not those of spec version 1.0'
    """
    for version, (ids, known) in EDITIONS.items():
        if sha256(lines[:ids]) != known:
            return f"the first {ids} ids are not those of spec version {version}"
    if len(lines) > EDITIONS[SPEC_VERSION].ids:
        return f"{len(lines)} ids: they need a spec version of their own, {sha256(lines)}"
    return ""
