"""The table of contracts, and which of them a function can be called under."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from specref.contracts.contract import Contract
from specref.contracts.functions import DRAFTER, GENERATE, GENERATE_BATCH, METRICS, STEP
from specref.contracts.ragged import RAGGED
from specref.contracts.signature import misnamed, says, signature_of
from specref.contracts.text import ENGINE
from specref.contracts.tree import TREE
from specref.contracts.verify import VERIFY
from specref.wings import table_of

__all__ = [
    "CONTRACTS",
    "DRAFTER",
    "ENGINE",
    "GENERATE",
    "GENERATE_BATCH",
    "METRICS",
    "RAGGED",
    "STEP",
    "TREE",
    "VERIFY",
    "contract_named",
    "contracts_of",
    "signed",
]

LOOPS = (STEP, GENERATE, GENERATE_BATCH)
CONTRACTS: Mapping[str, Contract] = table_of(
    "contracts", VERIFY, *LOOPS, DRAFTER, METRICS, TREE, RAGGED, ENGINE
)


def contract_named(name: Contract | str) -> Contract:
    """The contract of a name.

    * raises `ValueError`: There is no such contract.
    """
    if str(name) not in CONTRACTS:
        raise ValueError(f"contract = {str(name)!r}: expected one of {list(CONTRACTS)}")
    return CONTRACTS[str(name)]


def signed(implementation: Callable[..., Any], contract: Contract) -> None:
    """Raise `TypeError` if a function cannot be called as its contract calls it.

    Nor may its required parameters have the very names of another contract.

    Examples
    --------
    >>> signed(lambda p, q: None, METRICS)
    Traceback (most recent call last):
        ...
    TypeError: <lambda> takes (p, q): contract metrics gives (log); no contract fits
    """
    signature = signature_of(implementation)
    if signature is None or _fits(signature, contract):
        return
    name = getattr(implementation, "__name__", type(implementation).__name__)
    found = contracts_of(implementation)
    fitting = " or ".join(f"--contract {one}" for one in found)
    named = any(_told(signature, one) for one in found)
    by = "" if named or not found else ", by the number of its parameters alone"
    bare = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    untyped = signature.replace(parameters=bare, return_annotation=signature.empty)
    raise TypeError(
        f"{name} takes {untyped}: contract {contract} gives {contract.passed}; "
        + (_nearly(signature) or f"{fitting or 'no contract'} fits{by}")
    )


def contracts_of(implementation: Callable[..., Any]) -> tuple[Contract, ...]:
    """The contracts that can call a function; of several, those that share most names with it.

    Examples
    --------
    >>> [str(one) for one in contracts_of(lambda target, drafter, context, n, rng: None)]
    ['step', 'generate']
    """
    signature = signature_of(implementation)
    if signature is None:
        return tuple(CONTRACTS.values())
    shared = {
        one: _told(signature, one)
        for one in CONTRACTS.values()
        if _fits(signature, one) and misnamed(list(signature.parameters), one.positional) is None
    }
    return tuple(one for one in shared if shared[one] == max(shared.values()))


def _told(signature: inspect.Signature, contract: Contract) -> int:
    """How many parameters tell by their names that they are what the contract passes there."""
    pairs = zip(signature.parameters, contract.positional, strict=False)
    by_name = set(contract.positional) & signature.parameters.keys()
    return len(by_name | {given for name, given in pairs if says(name, given)})


def _fits(signature: inspect.Signature, contract: Contract) -> bool:
    """Whether a contract can call the function, and it is not meant for another contract."""
    if not contract.takes(signature):
        return False
    return contract.names(signature) or not any(
        other.owns(signature) for other in CONTRACTS.values()
    )


def _nearly(signature: inspect.Signature) -> str:
    """Why a contract does not fit that a function is written for by its names; else empty."""
    wrong = {one: one.lacks(signature) for one in CONTRACTS.values()}
    return "; ".join(f"contract {one}: {why}" for one, why in wrong.items() if why)
