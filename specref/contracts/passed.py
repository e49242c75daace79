"""What a function is passed: its own parameters, with dtype and dimensions, in words.

Read from the docstring of the contract's protocol, so the two cannot differ.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import Contract
from specref.contracts.signature import WEAK, law_kind, law_kinds, of_some, placed, says

DESCRIBED = re.compile(r"^(\w+(?:, \w+)*) : (.*)\n((?:(?:    .*)?\n?)*)", re.MULTILINE)
SHAPE = re.compile(r"[sS]hape \(([^)]*)\)")
BONUS = "bonus_"
ROLES = frozenset({"target_probs", "draft_probs", "draft_tokens", "parents"})
"""What is passed by its place, whatever its name is."""


def parameters_passed(
    function: Callable[..., Any], contract: Contract, capabilities: Capabilities
) -> tuple[str, ...]:
    """What each parameter is given, in order; empty if it cannot be told."""
    known = described(contract)
    own = [one.name for one in placed(function)[: len(contract.positional)]]
    names = dict(zip(own, contract.positional, strict=False))
    with suppress(TypeError, ValueError):  # a compiled function
        parameters = inspect.signature(function).parameters
        names |= {name: name for name in parameters if name in contract.by_name}
    kinds = law_kinds(function, capabilities.inputs) if contract.positional else {}
    bonus = any(name.startswith(BONUS) for name in names)
    found = []
    for own_name, name in names.items():
        unsaid = own_name in WEAK or law_kind(own_name) is None
        kind = kinds.get(name, "") if unsaid else ""
        guessed = name in ROLES and not says(own_name, name)
        what = [f"taken as {name} by its place"] if guessed else []
        what += [kind] if kind in ("logits", "logprobs") else []
        if name == "generators" and of_some(function):
            what.append("of every other request")
        elif name in known:
            what.append(_given(*known[name], bonus, capabilities))
        found.append(f"{own_name} ({', '.join(what)})" if what else own_name)
    return tuple(found)


def described(contract: Contract) -> Mapping[str, tuple[str, str]]:
    """{parameter: (its type, what is said of it)} by the docstring of the contract's protocol."""
    call = vars(contract.protocol).get("__call__", contract.protocol)
    text = (inspect.getdoc(call) or "").partition("Parameters\n----------\n")[2]
    found: dict[str, tuple[str, str]] = {}
    for together, kind, said in DESCRIBED.findall(text.partition("\n\nReturns\n")[0]):
        names, kinds = together.split(", "), kind.split(", ")
        apart = len(kinds) == len(names) and "shape" not in kind
        each = kinds if apart else [kind] * len(names)
        found |= {name: (one, said) for name, one in zip(names, each, strict=True)}
    return found


def _given(kind: str, said: str, bonus: bool, capabilities: Capabilities) -> str:
    """One parameter: the dtype and dimensions of an array, or the type of anything else."""
    if not kind.startswith("ndarray"):
        return kind
    dtype = "int64" if " of int" in kind else capabilities.dtype
    shapes = SHAPE.findall(kind) or SHAPE.findall(said)
    # Where two are described, the first is that beside a parameter for the bonus token.
    shape = shapes[0 if bonus or len(shapes) == 1 else 1] if shapes else ""
    sizes = ", ".join(re.sub(r" \+ ", "+", one) for one in filter(None, re.split(", ?", shape)))
    tensor = " tensor" * (capabilities.arrays == "torch")
    return f"{dtype}{tensor} [{sizes}]" if shapes else f"{dtype}{tensor}"
