"""Contracts: how somebody's sampler is called, and what it claims to be."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from specref.algorithms import ALGORITHMS
from specref.losslessness.coins import Coins
from specref.models import Model
from specref.rules import RULES
from specref.theory.metrics import METRICS, Iteration
from specref.vocabulary import Tokens

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Dtype: TypeAlias = Literal["float64", "float32", "float16", "bfloat16"]
TREE_RULES = tuple(rule.name for rule in RULES.values() if rule.tree)
NAMED = ("rng", "coins", "lens", "chance", "generator")
CAPABILITIES = "specref_capabilities"
CLAIMABLE = "specref_claimable"
FLAGS = (
    "ragged", "one_hot", "seeded", "greedy", "in_place", "row_seeds", "repeats", "empty_trees",
)  # fmt: skip
WORDS: Mapping[str, tuple[str | None, ...]] = MappingProxyType(
    {
        "rule": (None, *ALGORITHMS, *TREE_RULES),
        "metric": tuple(METRICS),
        "recovery": (None, "race", "inverse"),
        "dtype": get_args(Dtype),
        "arrays": ("numpy", "torch"),
        "inputs": ("probs", "logits"),
    }
)


class Contract(StrEnum):
    """The call signature of an implementation."""

    VERIFY = "verify"
    STEP = "step"
    GENERATE = "generate"
    DRAFTER = "drafter"
    METRICS = "metrics"
    TREE = "tree"


RANDOMNESS = ("chance", "rng")
POSITIONAL: Mapping[Contract, tuple[str, ...]] = MappingProxyType(
    {
        Contract.VERIFY: ("target_probs", "draft_probs", "draft_tokens"),
        Contract.STEP: ("target", "drafter", "context", "lookahead"),
        Contract.GENERATE: ("target", "drafter", "context", "tokens"),
        Contract.DRAFTER: ("drafter", "context", "lookahead"),
        Contract.METRICS: ("log",),
        Contract.TREE: ("target_probs", "draft_probs", "draft_tokens", "parents"),
    }
)
BY_NAME: Mapping[Contract, tuple[str, ...]] = MappingProxyType(
    {
        Contract.VERIFY: ("rng", "coins", "lens", "generator"),
        Contract.STEP: RANDOMNESS,
        Contract.GENERATE: RANDOMNESS,
        Contract.DRAFTER: RANDOMNESS,
        Contract.METRICS: (),
        Contract.TREE: ("rng", "coins", "lens", "generator"),
    }
)
PLACES = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Verify(Protocol):
    """Contract ``verify``: drafts of a batch in, blocks out.

    Takes whichever of `rng`, `coins`, `lens` and `generator` are among its parameters; with
    none of them but `lens` it draws from the global generators of Python, NumPy or torch,
    which are seeded for each call.
    """

    def __call__(
        self,
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        *,
        rng: np.random.Generator = ...,
        coins: Coins = ...,
        lens: Ints = ...,
    ) -> tuple[Ints, Ints]:
        """Verify a batch.

        Parameters
        ----------
        target_probs : ndarray, shape (B, K + 1, V)
            Row i is the target's law after the first i drafts; its logits if `inputs` is
            claimed to be "logits", and so for `draft_probs`.
        draft_probs : ndarray, shape (B, K, V), or None
            The laws that drafts were drawn from. None: every draft is taken as certain.
        draft_tokens : ndarray of int, shape (B, K)
            -1 where a row has no draft.
        rng : numpy.random.Generator
            The only randomness, if it is a parameter. A `generator` is a `torch.Generator`.
        coins : Coins
            All randomness as numbers, if it is a parameter: float64 NumPy arrays, whatever
            the other arrays are.
        lens : ndarray of int, shape (B,)
            How many drafts each row has; 0 for some.

        Returns
        -------
        tokens : ndarray of int, shape (B, K + 1)
            Accepted drafts and one more token, padded with -1.
        counts : ndarray of int, shape (B,)
            How many tokens each row has.
        """
        ...


class VerifyTree(Protocol):
    """Contract ``tree``: drafted trees of a batch in, blocks out.

    Takes its randomness as `Verify` does; `coins.accept` has one for each node.
    """

    def __call__(
        self,
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        parents: Ints,
        *,
        rng: np.random.Generator = ...,
        coins: Coins = ...,
    ) -> tuple[Ints, Ints]:
        """Verify a batch.

        Parameters
        ----------
        target_probs : ndarray, shape (B, N + 1, V)
            Row 0 is the target's law after the context, row i + 1 after the path to node i.
        draft_probs : ndarray, shape (B, N, V), or None
            The law that each node was drawn from, given its elder siblings: without
            replacement, q without theirs, renormalised. None: nothing was drawn, and siblings
            differ.
        draft_tokens : ndarray of int, shape (B, N)
            Siblings in the order of drawing; -1 where a row has no node, after all others.
        parents : ndarray of int, shape (B, N)
            An earlier node, -1 for the root, -2 where there is no node.

        Returns
        -------
        tokens : ndarray of int, shape (B, columns)
            A path from the root and one more token, padded with -1; as many columns as the
            longest block needs, at most N + 1.
        counts : ndarray of int, shape (B,)
            How many tokens each row has.
        """
        ...


class Step(Protocol):
    """Contract ``step``: a context in, one block out; the implementation drafts itself.

    The last parameter is `rng`, or `chance` (then every random path can be enumerated).
    """

    def __call__(
        self,
        target: Model,
        drafter: Model,
        context: Tokens,
        lookahead: int,
        rng: np.random.Generator,
    ) -> Tokens:
        """One iteration."""
        ...


class Generate(Protocol):
    """Contract ``generate``: a context in, `tokens` tokens out (fewer only after EOS)."""

    def __call__(
        self, target: Model, drafter: Model, context: Tokens, tokens: int, rng: np.random.Generator
    ) -> Tokens:
        """A whole text."""
        ...


class Drafter(Protocol):
    """Contract ``drafter``: drafts, and the laws that they are declared to come from."""

    def __call__(
        self, drafter: Model, context: Tokens, lookahead: int, rng: np.random.Generator
    ) -> tuple[Tokens, Floats]:
        """Draft up to `lookahead` tokens; q has a row for each."""
        ...


class Reported(Protocol):
    """Contract ``metrics``: a log of iterations in, the figure that it is said to be out."""

    def __call__(self, log: Sequence[Iteration]) -> object:
        """The figure that `Capabilities.metric` names."""
        ...


SIGNATURES: Mapping[Contract, type] = MappingProxyType(
    {
        Contract.VERIFY: Verify,
        Contract.STEP: Step,
        Contract.GENERATE: Generate,
        Contract.DRAFTER: Drafter,
        Contract.METRICS: Reported,
        Contract.TREE: VerifyTree,
    }
)


@dataclass(frozen=True)
class Capabilities:
    """What an implementation claims; what it does not claim is not_applicable, and counted.

    Attributes
    ----------
    rule : str or None
        The algorithm whose acceptance law it claims ("standard", "tli", …; "topdown" or
        "traversal" for trees). None: any lossless rule, and accepted lengths are not judged.
    batch : int or None
        The largest batch it takes; None for any.
    ragged : bool
        Rows of a batch may have different numbers of drafts.
    one_hot : bool
        `draft_probs` may be None.
    seeded : bool
        The same `rng` gives the same blocks.
    recovery : {"race", "inverse", None}
        Which of the coins draws the last token: ``race``, or ``final`` by an inverse CDF.
        None: not said, so that blocks are not compared coin by coin.
    greedy : bool
        It decodes by argmax (temperature 0): a draft is accepted iff it is the argmax of the
        target's row, and each token is an argmax. Blocks and texts are compared one by one, and
        no law is asked for.
    in_place : bool
        It may change the arrays that it is given; they are copies.
    row_seeds : bool
        What a row gets depends on its own coins alone, not on its place in the batch.
    repeats : bool
        Siblings of a tree may repeat: they were drawn with replacement.
    empty_trees : bool
        A row may have a tree without nodes.
    metric : str
        For the contract ``metrics``: which definition of `theory.metrics` it claims to be.
    dtype : str
        What probabilities, or logits, are cast to before the call.
    tolerance : float
        Total variation a token that low precision may cost; not held against it.
    arrays : {"numpy", "torch"}
        Whether it is given arrays of NumPy or tensors.
    device : str
        Where its tensors are, as torch names it.
    inputs : {"probs", "logits"}
        Whether it is given probabilities or logits: the logarithm of each probability, -inf for
        0, plus a number for each position that differs between target and draft.
    """

    rule: str | None = None
    batch: int | None = None
    ragged: bool = True
    one_hot: bool = True
    seeded: bool = True
    recovery: Literal["race", "inverse"] | None = None
    greedy: bool = False
    in_place: bool = False
    row_seeds: bool = False
    repeats: bool = True
    empty_trees: bool = True
    metric: str = "acceptance_rate"
    dtype: Dtype = "float64"
    tolerance: float = 0.0
    arrays: Literal["numpy", "torch"] = "numpy"
    device: str = "cpu"
    inputs: Literal["probs", "logits"] = "probs"

    def __post_init__(self) -> None:
        for name, known in WORDS.items():
            value = getattr(self, name)
            if value not in known:
                raise ValueError(f"{name} = {value!r}: expected one of {known}")
        for name in FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} = {getattr(self, name)!r}: expected True or False")
        whole = isinstance(self.batch, Integral) and not isinstance(self.batch, bool)
        if self.batch is not None and not (whole and self.batch >= 1):
            raise ValueError(f"batch = {self.batch!r}: expected an integer >= 1, or None")
        if not isinstance(self.tolerance, Real) or not 0 <= self.tolerance < 1:
            raise ValueError(f"tolerance = {self.tolerance!r}: expected a number in [0, 1)")
        if self.arrays == "numpy" and (self.dtype == "bfloat16" or self.device != "cpu"):
            raise ValueError(
                f"arrays = 'numpy': expected 'torch' for {self.dtype} on {self.device}"
            )


F = TypeVar("F", bound=Callable[..., Any])


def capable(**claims: Any) -> Callable[[F], F]:
    """Decorate an implementation with what it claims, the fields of `Capabilities`.

    Examples
    --------
    >>> @capable(rule="standard", ragged=False)
    ... def verify(target_probs, draft_probs, draft_tokens, *, rng): ...
    >>> capabilities_of(verify).ragged
    False
    """
    record = Capabilities(**claims)

    def decorate(function: F) -> F:
        setattr(function, CAPABILITIES, record)
        return function

    return decorate


def capabilities_of(implementation: Callable[..., Any], **claims: Any) -> Capabilities:
    """The record of an implementation, with some claims overridden.

    Raises
    ------
    TypeError
        A claim is unknown, or the implementation is of a kind that cannot make it.
    """
    names = {field.name for field in fields(Capabilities)}
    for name in claims.keys() - names:
        raise TypeError(f"claim {name!r} is unknown: expected one of {', '.join(sorted(names))}")
    record = getattr(implementation, CAPABILITIES, Capabilities())
    if not isinstance(record, Capabilities):
        raise TypeError(f"{CAPABILITIES} = {record!r}: expected Capabilities (see `capable`)")
    possible = getattr(implementation, CLAIMABLE, names)
    for name, value in claims.items():
        if name not in possible and value != getattr(record, name):
            raise TypeError(
                f"claim {name!r} is none of {implementation!r}: expected one of "
                f"{', '.join(sorted(possible))}"
            )
    return replace(record, **claims)


def accepted_keywords(implementation: Callable[..., Any]) -> frozenset[str]:
    """Which of the named parameters a function declares.

    Raises
    ------
    TypeError
        It is not callable.

    Examples
    --------
    >>> sorted(accepted_keywords(lambda p, q, drafts, *, rng, lens, verbose=0: None))
    ['lens', 'rng']
    """
    if not callable(implementation):
        raise TypeError(f"implementation = {implementation!r}: expected a function")
    try:
        parameters = inspect.signature(implementation).parameters
    except (TypeError, ValueError):  # a compiled function that does not tell
        return frozenset()
    return frozenset(name for name in NAMED if name in parameters)


def signed(implementation: Callable[..., Any], contract: Contract) -> None:
    """Raise `TypeError` if a function cannot be called as its contract calls it.

    Nor may its required parameters have the very names of another contract.

    Examples
    --------
    >>> signed(lambda p, q: None, Contract.METRICS)
    Traceback (most recent call last):
        ...
    TypeError: <lambda> takes (p, q): contract metrics gives (log); no contract fits
    """
    signature = _signature(implementation)
    if signature is None or _takes(signature, contract):
        return
    name = getattr(implementation, "__name__", type(implementation).__name__)
    fitting = " or ".join(f"--contract {one}" for one in contracts_of(implementation))
    raise TypeError(
        f"{name} takes {_without_types(signature)}: contract {contract} gives "
        f"({', '.join(POSITIONAL[contract])}){_by_name(contract)}; {fitting or 'no contract'} fits"
    )


def contracts_of(implementation: Callable[..., Any]) -> tuple[Contract, ...]:
    """The contracts that can call a function; of several, those whose names it uses most.

    Examples
    --------
    >>> [str(one) for one in contracts_of(lambda target, drafter, context, n, rng: None)]
    ['step', 'generate']
    """
    signature = _signature(implementation)
    if signature is None:
        return tuple(Contract)
    shared = {
        one: len(set(POSITIONAL[one]) & set(signature.parameters))
        for one in Contract
        if _takes(signature, one)
    }
    return tuple(one for one in shared if shared[one] == max(shared.values()))


def _takes(signature: inspect.Signature, contract: Contract) -> bool:
    """Whether what the contract passes can be bound, and is not meant for another."""
    passed = [name for name in BY_NAME[contract] if name in signature.parameters]
    if BY_NAME[contract] == RANDOMNESS:
        passed = passed[:1]
    try:
        signature.bind(*POSITIONAL[contract], **dict.fromkeys(passed))
    except TypeError:
        return False
    places = [one for one in signature.parameters.values() if one.kind in PLACES]
    if tuple(one.name for one in places[: len(POSITIONAL[contract])]) == POSITIONAL[contract]:
        return True
    required = (one.name for one in places if one.default is one.empty and one.name not in NAMED)
    return tuple(required) not in POSITIONAL.values()


def _signature(implementation: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(implementation)
    except (TypeError, ValueError):  # a compiled function that does not tell
        return None


def _without_types(signature: inspect.Signature) -> inspect.Signature:
    bare = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    return signature.replace(parameters=bare, return_annotation=signature.empty)


def _by_name(contract: Contract) -> str:
    if BY_NAME[contract] == RANDOMNESS:
        return f", and by name {' or else '.join(RANDOMNESS)}"
    return f", and by name any of {', '.join(BY_NAME[contract])}" if BY_NAME[contract] else ""
