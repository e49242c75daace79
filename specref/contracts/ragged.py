"""The contract ``ragged``: drafts of all requests in one array, as engines hold them."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Protocol

import numpy as np

from specref.arrays import NO_TOKEN, Floats, Ints
from specref.coins import Coins, race_winner
from specref.contracts.batch import Answer, Batch, as_numpy
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.contracts.errors import BrokenContractError
from specref.contracts.signature import Read, of_arrays
from specref.contracts.verify import VerifyContract, draw_tokens

DRAFTS = "draft_token_ids"
LENGTHS = ("num_draft_tokens", "cu_num_draft_tokens")
TARGETS = ("target_probs", "target_logits")
DRAFT_LAWS = ("draft_probs", "draft_logits")
SPARSE = ("draft_top_ids", "draft_top_probs")
BONUS = ("bonus_token_ids", "bonus_probs", "bonus_logits")
OTHERS = ("temperature", "max_spec_len")
PAGE = "docs/check-an-engine-sampler.md"
SECTIONS = {"sampling_metadata": "#vllm"}
"""{parameter of an engine: where the page shows a function that fills it in}."""
RANDOMNESS = ("rng", "coins", "generator", "generators", "seeds")
PARAMETERS = (DRAFTS, *LENGTHS, *TARGETS, *DRAFT_LAWS, *SPARSE, *BONUS, *OTHERS, *RANDOMNESS)


def named(function: Callable[..., Any]) -> frozenset[str]:
    """The parameters of the contract that a function has."""
    try:
        return frozenset(PARAMETERS) & set(inspect.signature(function).parameters)
    except ValueError:
        raise TypeError(
            f"implementation = {function!r}: expected a function whose parameters can be read"
        ) from None


def problem(signature: inspect.Signature) -> str:
    """Why a function cannot be called under the contract; empty if it can."""
    by_name = [
        one.name
        for one in signature.parameters.values()
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    names = set(by_name) & set(PARAMETERS)
    strange = [
        one.name
        for one in signature.parameters.values()
        if one.default is one.empty and one.name in by_name and one.name not in names
    ]
    if strange:
        section = next((SECTIONS[name] for name in strange if name in SECTIONS), "")
        return (
            f"it does not give {', '.join(strange)}: expected a default, or an adapter as in "
            f"{PAGE}{section}"
        )
    try:
        signature.bind(**dict.fromkeys(names))
    except TypeError as error:
        return f"{error}: expected parameters of the contract, and defaults for others"
    sparse = len(names & set(SPARSE))
    counts = {
        (DRAFTS,): (len(names & {DRAFTS}), 1, 1),
        LENGTHS: (len(names & set(LENGTHS)), 1, 2),
        TARGETS: (len(names & set(TARGETS)), 1, 1),
        (*DRAFT_LAWS, " and ".join(SPARSE)): (len(names & set(DRAFT_LAWS)) + sparse / 2, 0, 1),
        BONUS: (len(names & set(BONUS)), 0, 1),
    }
    for group, (count, least, most) in counts.items():
        if not least <= count <= most or count != int(count):
            often = "at most one" if not least else "one" if most == 1 else "one or both"
            return f"expected {often} of {', '.join(group)}"
    if "temperature" in names and "target_logits" not in names:
        return "expected target_logits with temperature"
    return ""


TEMPERATURES = (0.5, 2.0, 1.0, 0.75, 1.5)
"""Of the requests of a call in turn; in less than double precision the first three alone."""
UNROUNDED = 3
"""How many of them are powers of two, which round no logits: a row that is moved has its law."""


class RaggedVerifier(Verifier):
    """An implementation of the contract ``ragged``; it is given the parameters that it names."""

    needed = frozenset({"ragged"})
    short_rows = ""

    @staticmethod
    def keywords_of(implementation: Callable[..., Any]) -> frozenset[str]:
        return named(implementation)

    @staticmethod
    def kinds_of(implementation: Callable[..., Any], inputs: str) -> Mapping[str, str]:
        return dict.fromkeys(("target_probs", "draft_probs"), inputs)  # as `read` gives them

    def arguments(
        self, batch: Batch, rng: np.random.Generator, coins: Coins | None = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of one call, all by name: arrays of all requests, without padding."""
        random = self.randomness(batch, rng, coins)
        p, q, lens, rows = batch.target_probs, batch.draft_probs, batch.lens, np.arange(len(batch))
        columns = np.arange(p.shape[1])
        drafted = columns[:-1] < lens[:, None]
        of_target = columns < (lens if self.keywords & set(BONUS) else lens + 1)[:, None]
        temperature = self.temperatures(len(batch)) * (not self.capabilities.greedy)
        if "temperature" in self.keywords:
            self.temperatures_met.update(temperature.tolist())

        @cache
        def top() -> tuple[Ints, Floats] | tuple[None, None]:
            return (None, None) if q is None else likeliest(q[drafted])

        @cache
        def logits(kind: str) -> Floats:
            laws = p if q is None or kind == "target_probs" else q
            scale = np.where(temperature > 0, temperature, 1.0)
            hot = scale if "temperature" in self.keywords else np.ones_like(scale)
            return self.logits(kind, laws) * hot[:, None, None]

        made: Mapping[str, Callable[[], Any]] = {
            "draft_token_ids": lambda: batch.draft_tokens[drafted],
            "num_draft_tokens": lambda: lens,
            "cu_num_draft_tokens": lambda: lens.cumsum(),
            "target_probs": lambda: p[of_target],
            "target_logits": lambda: logits("target_probs")[of_target],
            "draft_probs": lambda: None if q is None else q[drafted],
            "draft_logits": lambda: None if q is None else logits("draft_probs")[drafted],
            "draft_top_ids": lambda: top()[0],
            "draft_top_probs": lambda: top()[1],
            "bonus_token_ids": lambda: self._bonus(
                p[rows, lens], temperature, rng, random.get("coins")
            ),
            "bonus_probs": lambda: p[rows, lens],
            "bonus_logits": lambda: logits("target_probs")[rows, lens],
            "temperature": lambda: temperature,
        }
        given = {name: self.array(made[name]()) for name in made if name in self.keywords}
        if "max_spec_len" in self.keywords:
            given["max_spec_len"] = int(lens.max(initial=0))
        return (), {**given, **random}

    def randomness(
        self, batch: Batch, rng: np.random.Generator, coins: Coins | None
    ) -> dict[str, Any]:
        found = super().randomness(batch, rng, coins)
        if "seeds" in self.keywords:
            found["seeds"] = self.array(self.seeds(len(batch), rng))
        return found

    def temperatures(self, requests: int) -> Floats:
        """Of each request."""
        double = self.capabilities.dtype == "float64"
        return np.resize(TEMPERATURES if double else TEMPERATURES[:UNROUNDED], requests)

    def seeds(self, requests: int, rng: np.random.Generator) -> Ints:
        """One for each request."""
        return np.array([rng.integers(2**63) for _ in range(requests)])

    def _bonus(
        self, laws: Floats, temperature: Floats, rng: np.random.Generator, coins: Coins | None
    ) -> Ints:
        """What an engine's ordinary sampler would draw; by the coins, if there are any."""
        greedy, likeliest = temperature == 0, laws.argmax(axis=1)
        if greedy.all():
            return np.asarray(likeliest)
        return np.where(greedy, likeliest, self._sampled_bonus(laws, rng, coins))

    def _sampled_bonus(self, laws: Floats, rng: np.random.Generator, coins: Coins | None) -> Ints:
        if coins is None:
            return draw_tokens(laws, rng)
        if self.capabilities.recovery != "inverse":
            return race_winner(laws, coins.race)
        ends = laws.cumsum(axis=1)
        return np.asarray((ends <= (coins.final * ends[:, -1])[:, None]).sum(axis=1))

    def read_answer(self, raw: Any, batch: Batch) -> Answer:
        try:
            return super().read_answer(padded(raw, batch), batch)
        except BrokenContractError as error:
            row = f", [{error.row}] = {batch.lens[error.row]}" if error.row is not None else ""
            told = f"{error} (num_draft_tokens = {brief(batch.lens)}{row})"
            retold = BrokenContractError(told, error.row)
            retold.evidence |= error.evidence
            raise retold from None


def likeliest(laws: Floats) -> tuple[Ints, Floats]:
    """The S likeliest tokens of each law and their probabilities; S is the largest support."""
    most = max(1, int((laws > 0).sum(axis=1).max(initial=0)))
    ids = np.argsort(-laws, axis=1, kind="stable")[:, :most]
    return ids, np.take_along_axis(laws, ids, axis=1)


def padded(raw: Any, batch: Batch) -> Any:
    """(tokens, counts) as the contract ``verify`` has them; what cannot be read is left as it is.

    * `raw`: Without counts, a row ends at its first -1. With them, nothing after so many is read.

    Examples
    --------
    >>> from specref.contracts.ragged import RAGGED
    >>> batch = RAGGED.sample(RAGGED.fixtures["wide"], 2, np.random.default_rng(1))
    >>> batch.draft_tokens.shape
    (2, 2)
    >>> [part.tolist() for part in padded([[4], [1, 3, 0]], batch)]
    [[[4, -1, -1], [1, 3, 0]], [1, 3]]
    >>> unset = np.array([[4, 7, 7], [1, 3, 7]])
    >>> [part.tolist() for part in padded((unset, [1, 2]), batch)]
    [[[4, -1, -1], [1, 3, -1]], [1, 2]]
    """
    tokens, counts = raw if isinstance(raw, tuple) and len(raw) == 2 else (raw, None)
    if isinstance(tokens, list) and all(isinstance(row, list) for row in tokens):
        most = max(1, *map(len, tokens))
        tokens = [[*row, *[NO_TOKEN] * (most - len(row))] for row in tokens]
    rows, columns = batch.draft_tokens.shape
    none = np.zeros(rows, dtype=np.int64)
    try:
        array, length = as_numpy(tokens), None if counts is None else as_numpy(counts)
    except Exception:  # arrays of user code may raise anything
        return tokens, none if counts is None else counts
    if array.ndim != 2 or len(array) != rows or array.dtype.kind not in "iu":
        return array, none if length is None else length
    if length is None:
        length = np.cumprod(array >= 0, axis=1).sum(axis=1)
    elif length.shape != (rows,) or length.dtype.kind not in "iu":
        return array, length
    else:
        array = np.where(np.arange(array.shape[1]) < length[:, None], array, NO_TOKEN)
    if (array[:, columns + 1 :] >= 0).any():
        return array, length
    missing = columns + 1 - array.shape[1]
    if missing <= 0:
        return array[:, : columns + 1].copy(), length
    return np.pad(array, ((0, 0), (0, missing)), constant_values=NO_TOKEN), length


def brief(lens: Ints) -> str:
    """How many drafts the first requests of a call have.

    Examples
    --------
    >>> brief(np.array([2, 0])), brief(np.arange(20))
    ('[2, 0]', '[0, 1, 2, 3, 4, 5, 6, 7, …]')
    """
    first = ", ".join(map(str, lens[:8].tolist()))
    return f"[{first}, …]" if len(lens) > 8 else f"[{first}]"


class VerifyRagged(Protocol):
    """Contract ``ragged``: the drafts of all requests in one array, blocks out.

    A function takes the parameters that it names, and is given them by name: `draft_token_ids`,
    one of the lengths or both, one of the targets, and any of the others. If it names no
    randomness, the global generators of Python, NumPy or torch are seeded for each call.
    """

    def __call__(
        self,
        *,
        draft_token_ids: Ints,
        num_draft_tokens: Ints = ...,
        cu_num_draft_tokens: Ints = ...,
        target_probs: Floats = ...,
        target_logits: Floats = ...,
        draft_probs: Floats | None = ...,
        draft_logits: Floats | None = ...,
        draft_top_ids: Ints | None = ...,
        draft_top_probs: Floats | None = ...,
        bonus_token_ids: Ints = ...,
        bonus_probs: Floats = ...,
        bonus_logits: Floats = ...,
        temperature: Floats = ...,
        max_spec_len: int = ...,
        rng: np.random.Generator = ...,
        coins: Coins = ...,
        generator: Any = ...,
        generators: Sequence[Any] | Mapping[int, Any] = ...,
        seeds: Ints = ...,
    ) -> Ints | tuple[Ints, Ints] | list[list[int]]:
        """Verify a batch of B requests with `sum` drafts in all, request after request.

        Parameters
        ----------
        draft_token_ids : ndarray of int, shape (sum,)
            No padding: a request without drafts has no place here.
        num_draft_tokens, cu_num_draft_tokens : ndarray of int, shape (B,)
            How many drafts each request has; and where its drafts end.
        target_probs, target_logits : ndarray
            Shape (sum, V) with any bonus parameter: the law of the target at each draft. Else
            shape (sum + B, V): for each request its drafts' rows and the row after all of them.
        draft_probs, draft_logits : ndarray, shape (sum, V), or None
            The laws that drafts were drawn from. None: every draft is taken as certain.
        draft_top_ids, draft_top_probs : ndarray, shape (sum, S), or None
            The same as the S likeliest tokens of each law and their probabilities; all others
            have 0. Both or neither.
        bonus_token_ids : ndarray of int, shape (B,)
            A token drawn after all drafts of each request, to be emitted if all are accepted.
        bonus_probs, bonus_logits : ndarray, shape (B, V)
            The law of the target after all drafts of each request.
        temperature : ndarray, shape (B,)
            Of each request. Then the law is the softmax of logits / temperature, for all
            logits that are given. 0 for samplers that claim to be greedy, or greedy at 0.
        max_spec_len : int
            The most drafts of a request.
        rng, generator : numpy.random.Generator, torch.Generator
            The only randomness.
        generators : list of torch.Generator, or dict
            One for each request. Annotated as a dict: {request: generator} of every other
            request; the rest draws from the global generators.
        seeds : ndarray of int, shape (B,)
            One for each request.
        coins : Coins
            As for `Verify`: `coins.accept` has shape (B, K), where K is at least `max_spec_len`.

        Returns
        -------
        tokens : ndarray of int, shape (B, columns), or a list of lists
            Accepted drafts and one more token of each request, then -1.
        counts : ndarray of int, shape (B,), optional
            In a tuple (tokens, counts): how many tokens each request has. What tokens hold
            after so many is not read.
        """
        ...


class RaggedContract(VerifyContract):
    kind: ClassVar[type[Verifier]] = RaggedVerifier
    programs: ClassVar[bool] = False
    rows_said: ClassVar[str] = (
        "rows are distributions after temperature: a function that takes `temperature` is given "
        f"{', '.join(map('{:g}'.format, TEMPERATURES[:UNROUNDED]))}, in float64 also "
        f"{' and '.join(map('{:g}'.format, TEMPERATURES[UNROUNDED:]))}, for the requests of a "
        f"call in turn, so {TEMPERATURES[0]:g} for a single one, as in joint/probed"
    )

    def claimed(self, function: Callable[..., Any], capabilities: Capabilities) -> Capabilities:
        """The claims, with what the names of parameters say: whether any are logits."""
        names = named(function)
        logits = {"target_logits", "draft_logits", "bonus_logits"}
        if capabilities.inputs == "logits" and not names & logits:
            raise ValueError("inputs = 'logits': expected a parameter target_logits instead")
        if capabilities.rule is not None and not names & {*DRAFT_LAWS, *SPARSE}:
            raise ValueError(
                f"rule = {capabilities.rule!r}: expected none of a function that takes no "
                f"{' or '.join(DRAFT_LAWS)}: how often it accepts is not judged"
            )
        if capabilities.greedy_at_zero and "temperature" not in names:
            raise ValueError("greedy_at_zero = True: expected a parameter temperature")
        return replace(capabilities, inputs="logits" if names & logits else "probs")

    def read(
        self, function: Callable[..., Any], capabilities: Capabilities, explicit: Iterable[str]
    ) -> Read:
        logits = [one for one in PARAMETERS if one.endswith("_logits") and one in named(function)]
        if logits and "inputs" in explicit and capabilities.inputs == "probs":
            raise ValueError(
                f"inputs = 'probs': the parameters {', '.join(logits)} say otherwise "
                "(--declare inputs=logits)"
            )
        claims, told = of_arrays(function, capabilities, explicit)
        many = "s" * (len(logits) > 1)
        also = (f"it is given logits: parameter{many} {', '.join(logits)}",) if logits else ()
        return self.claimed(function, claims), (*also, *told)

    def takes(self, signature: inspect.Signature) -> bool:
        return not problem(signature)

    def lacks(self, signature: inspect.Signature) -> str:
        meant = DRAFTS in signature.parameters and set(LENGTHS) & set(signature.parameters)
        return problem(signature) if meant else ""

    names = owns = takes  # parameters are passed by name alone

    @property
    def passed(self) -> str:
        lengths, targets = (" or ".join(names) for names in (LENGTHS, TARGETS))
        known = (DRAFTS, *LENGTHS, *TARGETS)
        others = ", ".join(name for name in PARAMETERS if name not in known)
        return f"by name {DRAFTS}, {lengths}, {targets}, and any of {others}"


RAGGED = RaggedContract("ragged", VerifyRagged, (), PARAMETERS)
