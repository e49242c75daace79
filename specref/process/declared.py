"""What a program declares about itself when it is started."""

from dataclasses import dataclass, fields
from typing import Any

from specref.contracts.capabilities import Capabilities
from specref.contracts.errors import BrokenContractError
from specref.contracts.table import VERIFY

TAKES = ("coins", "seed")
# Claims about arrays in memory, or for other contracts.
ELSEWHERE = ("arrays", "device", "inputs", "in_place", "metric", "repeats", "empty_trees")
CLAIMS = tuple(field.name for field in fields(Capabilities) if field.name not in ELSEWHERE)


@dataclass(frozen=True)
class Declaration:
    """The answer to `start`.

    * `takes`: The randomness that it takes: ``coins``, ``seed``, both, or nothing if it has its
      own.
    """

    name: str
    version: str
    language: str
    takes: tuple[str, ...]
    capabilities: Capabilities

    def __str__(self) -> str:
        return " ".join(filter(None, [self.name, self.version, f"({self.language})"]))


def read_declaration(message: dict[str, Any]) -> Declaration:
    """Read the answer to `start`.

    * raises `BrokenContractError`: A field is missing or invalid, or a claim is unknown.

    Examples
    --------
    >>> said = {"name": "toy", "language": "Rust", "contract": "verify", "takes": ["seed"]}
    >>> print(read_declaration(said | {"claims": {"ragged": False}}))
    toy (Rust)
    """
    words = {name: _word(message, name) for name in ("name", "language", "contract")}
    if words["contract"] != str(VERIFY):
        raise BrokenContractError(f"contract is {words['contract']!r}: expected 'verify'")
    takes = message.get("takes")
    if not isinstance(takes, list) or any(one not in TAKES for one in takes):
        raise BrokenContractError(f"takes is {takes!r}: expected a list of 'coins' and 'seed'")
    return Declaration(
        words["name"],
        _word({"version": ""} | message, "version"),
        words["language"],
        tuple(one for one in TAKES if one in takes),
        _claimed(message.get("claims", {})),
    )


def _word(message: dict[str, Any], name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str) or not value.isprintable():
        raise BrokenContractError(f"{name} is {value!r}: expected a string of one line")
    return value


def _claimed(claims: object) -> Capabilities:
    if not isinstance(claims, dict):
        raise BrokenContractError(f"claims is {claims!r}: expected an object")
    for name in claims.keys() - set(CLAIMS):
        raise BrokenContractError(
            f"claim {name!r} is unknown: expected one of {', '.join(CLAIMS)}"
        )
    try:
        return Capabilities(**claims)
    except (ValueError, TypeError) as error:
        raise BrokenContractError(f"claims: {error}") from None
