"""What a function's names, annotations and defaults say of what it is to be given."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from specref.contracts.capabilities import Capabilities

if TYPE_CHECKING:
    from specref.contracts.contract import Contract

NAMED = ("rng", "coins", "lens", "chance", "generator", "generators")
GENERATORS = frozenset({"rng", "generator", "generators", "seeds"})
"""Parameters that leave nothing to the global generators."""


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a function; None of a compiled one that does not tell."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """{name: parameter}; empty of a compiled function that does not tell."""
    signature = signature_of(function)
    return {} if signature is None else signature.parameters


def accepted_keywords(implementation: Callable[..., Any]) -> frozenset[str]:
    """Which of the named parameters a function declares."""
    if not callable(implementation):
        raise TypeError(f"implementation = {implementation!r}: expected a function")
    return frozenset(NAMED) & parameters_of(implementation).keys()


Read: TypeAlias = tuple[Capabilities, tuple[str, ...]]
Kind: TypeAlias = Literal["probs", "logits", "logprobs"]
PLACES = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
LAWS = ("target_probs", "draft_probs")
WORDS: Mapping[str, Kind] = MappingProxyType(
    {
        **dict.fromkeys(("logit", "logits"), "logits"),
        **dict.fromkeys(("logprob", "logprobs", "logp", "logq", "lp", "lq"), "logprobs"),
        **dict.fromkeys(
            (
                *("prob", "probs", "probability", "probabilities", "pmf", "p", "q"),
                *("dist", "dists", "distribution", "distributions"),
            ),
            "probs",
        ),
    }
)
TOKENS = frozenset({"token", "tokens", "id", "ids", "drafts"})
PARENTS, UPWARD = "parents", frozenset({"parent", "parents", "tree"})
ELSE = frozenset({"bonus", "len", "lens", "length", "lengths", "temperature", "temperatures"})
"""What a name has that is for none of the arrays that are passed by position."""
SIDES = {"target": 0, "draft": 1, "drafter": 1, "assistant": 1, "proposal": 1}
MODELS = ("target", "drafter")
WEAK = frozenset({*LAWS, "p", "q"})
"""Names of the contract, or of formulas: a claim may say that they are logits."""
TOLD: Mapping[str, str] = MappingProxyType(
    {"probs": "probabilities", "logits": "logits", "logprobs": "log-probabilities"}
)
MAPPING = re.compile(r"\b(dict|Dict|Mapping|MutableMapping)\b")
TENSOR, ARRAY = re.compile(r"\bTensor\b"), re.compile(r"\b(np|numpy|NDArray|ndarray)\b")


def words(name: str) -> list[str]:
    """The words of a name.

    Examples
    --------
    >>> words("draft_logProbs")
    ['draft', 'log', 'probs']
    """
    return [one.lower() for one in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)]


def law_kind(name: str) -> Kind | None:
    """In what form a parameter has a law, by its name; None if the name does not say.

    Examples
    --------
    >>> [law_kind(one) for one in ("target_logits", "q", "log_probs", "draft_token_probs", "x")]
    ['logits', 'probs', 'logprobs', 'probs', None]
    """
    said = words(name)
    kinds = [WORDS[one] for one in said if one in WORDS]
    if kinds and kinds[-1] == "probs" and "log" in said:
        return "logprobs"
    return kinds[-1] if kinds else None


def placed(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters that may be passed by position; none of a function that does not tell."""
    return [one for one in parameters_of(function).values() if one.kind in PLACES]


def law_kinds(function: Callable[..., Any], inputs: str) -> Mapping[str, str]:
    """{parameter of the contract: in what form its laws are passed}, by names, else as claimed.

    Examples
    --------
    >>> law_kinds(lambda target_logits, draft_probs, drafts: None, "probs")
    {'target_probs': 'logits', 'draft_probs': 'probs'}
    >>> law_kinds(lambda p, q, drafts: None, "logits")
    {'target_probs': 'logits', 'draft_probs': 'logits'}
    """
    names = [one.name for one in placed(function)[: len(LAWS)]]
    clear = [kind for name in names if name not in WEAK and (kind := law_kind(name))]
    if not clear:
        return dict.fromkeys(LAWS, inputs)
    return {law: law_kind(name) or clear[0] for law, name in zip(LAWS, names, strict=False)}


def by_position(
    function: Callable[..., Any],
    positional: Sequence[str],
    capabilities: Capabilities,
    explicit: Iterable[str],
) -> Read:
    """The claims of a function that is given laws by position, with those of its names."""
    parameters = placed(function)[: len(positional)]
    _in_order(parameters, positional)
    kinds = law_kinds(function, capabilities.inputs)
    inputs: Literal["probs", "logits"] = "logits"
    if set(kinds.values()) == {"probs"}:
        inputs = "probs"
    if "inputs" in explicit and inputs != capabilities.inputs:
        names = ", ".join(one.name for one in parameters[: len(LAWS)])
        raise ValueError(
            f"inputs = {capabilities.inputs!r}: the parameters {names} say otherwise "
            f"(--declare inputs={inputs})"
        )
    told = []
    if inputs == "logits" and "inputs" not in explicit:
        for kind in dict.fromkeys(kinds.values()):
            named = [
                parameter.name
                for parameter, one in zip(parameters, kinds.values(), strict=False)
                if one == kind
            ]
            many = "s" * (len(named) > 1)
            told.append(f"it is given {TOLD[kind]}: parameter{many} {', '.join(named)}")
    return replace(capabilities, inputs=inputs), tuple(told)


def _in_order(parameters: Sequence[inspect.Parameter], positional: Sequence[str]) -> None:
    """Raise `ValueError` if names say that something else is expected at a place."""
    if (place := misnamed([one.name for one in parameters], positional)) is not None:
        raise ValueError(
            f"parameter {place + 1} is {parameters[place].name}, where the contract gives "
            f"{positional[place]}: expected ({', '.join(positional)}), in that order (an adapter "
            "can exchange them)"
        )


def misnamed(names: Sequence[str], positional: Sequence[str]) -> int | None:
    """The first place at which a name says that something else is expected; None if none does.

    Examples
    --------
    >>> arrays = "target_probs", "draft_probs", "draft_tokens", "parents"
    >>> misnamed(["p", "q", "drafts", "bonus_probs"], arrays)
    3
    >>> misnamed(["p", "q", "drafts", "tree"], arrays)
    """
    for place, (name, given) in enumerate(zip(names, positional, strict=False)):
        law, said = law_kind(name), set(words(name))
        sides = {SIDES[word] for word in said & SIDES.keys()}
        wrong = len(sides) == 1 and given in LAWS and place not in sides
        wrong |= given in LAWS and law is None and bool(said & TOKENS)
        wrong |= given == "draft_tokens" and law is not None and not said & TOKENS
        wrong |= given == PARENTS and not said & UPWARD and bool(law or said & TOKENS)
        wrong |= given in MODELS and law is not None and name not in ("p", "q")
        wrong |= given in (*LAWS, "draft_tokens", PARENTS) and bool(said & ELSE)
        if wrong:
            return place
    return None


def says(name: str, given: str) -> bool:
    """Whether a name tells that it is for one of the arrays that are passed by position.

    Examples
    --------
    >>> says("parent_ids", "parents"), says("x", "parents"), says("q", "draft_probs")
    (True, False, True)
    """
    said = set(words(name))
    if given in LAWS:
        return law_kind(name) is not None or bool(said & SIDES.keys())
    known = {"draft_tokens": {*TOKENS, "draft"}, PARENTS: UPWARD}
    return name == given or bool(said & known.get(given, set()))


def models_in_order(function: Callable[..., Any]) -> None:
    """Raise `ValueError` if a function of two models names the drafter first."""
    first = [{SIDES[w] for w in words(one.name) if w in SIDES} for one in placed(function)[:2]]
    if first == [{1}, {0}]:
        names = ", ".join(one.name for one in placed(function)[:2])
        raise ValueError(
            f"the first parameters are {names}: expected the target, then the drafter"
        )


def of_arrays(
    function: Callable[..., Any], capabilities: Capabilities, explicit: Iterable[str]
) -> Read:
    """The claims of a function, with those of its annotations and defaults: tensors or arrays."""
    known = parameters_of(function).values()
    some = ("it is given generators of every other request",) * of_some(function)
    texts = {one.name: _text(one.annotation) for one in known}
    for name, wrong, right in (
        ("rng", "torch.Generator", "generator"),
        ("generator", "random.Generator", "rng"),
    ):
        if wrong in texts.get(name, ""):
            raise ValueError(
                f"{name} is annotated {texts[name]}: name it {right}, to be given one"
            )
    tensors = [
        one.name
        for one in known
        if (TENSOR.search(texts[one.name]) and not ARRAY.search(texts[one.name]))
        or type(one.default).__module__.split(".")[0] == "torch"
    ]
    if capabilities.arrays == "torch" or not tensors:
        return capabilities, some
    if "arrays" in explicit:
        raise ValueError(
            f"arrays = {capabilities.arrays!r}: {', '.join(tensors)} are of torch by their "
            "annotations or defaults (--declare arrays=torch)"
        )
    told = f"it is given tensors: {', '.join(tensors)}, by annotations or defaults"
    return replace(capabilities, arrays="torch"), (told, *some)


def of_some(function: Callable[..., Any]) -> bool:
    """Whether its `generators` are those of some requests alone: they are annotated as a mapping.

    Examples
    --------
    >>> def verify(p, q, drafts, *, generators: "dict[int, torch.Generator]"): ...
    >>> of_some(verify), of_some(lambda p, q, drafts, *, generators: None)
    (True, False)
    """
    parameter = parameters_of(function).get("generators")
    return parameter is not None and bool(MAPPING.search(_text(parameter.annotation)))


def _text(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    return annotation if isinstance(annotation, str) else str(annotation)


DESCRIBED = re.compile(r"^(\w+(?:, \w+)*) : (.*)\n((?:(?:    .*)?\n?)*)", re.MULTILINE)
SHAPE = re.compile(r"[sS]hape \(([^)]*)\)")
BONUS = "bonus_"
ROLES = frozenset({"target_probs", "draft_probs", "draft_tokens", "parents"})
"""What is passed by its place, whatever its name is."""


def parameters_passed(
    function: Callable[..., Any], contract: "Contract", capabilities: Capabilities
) -> tuple[str, ...]:
    """What each parameter is given, in words, in order; empty if it cannot be told.

    Read from the docstring of the contract's protocol, so the two cannot differ.
    """
    known = described(contract)
    own = [one.name for one in placed(function)[: len(contract.positional)]]
    names = dict(zip(own, contract.positional, strict=False))
    names |= {name: name for name in parameters_of(function) if name in contract.by_name}
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


def described(contract: "Contract") -> Mapping[str, tuple[str, str]]:
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
