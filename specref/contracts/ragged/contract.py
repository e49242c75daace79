"""The contract ``ragged``: the drafts of all requests in one array, blocks out."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import numpy as np

from specref.arrays import Floats, Ints
from specref.coins import Coins
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import Subject
from specref.contracts.ragged.calling import TEMPERATURES, UNROUNDED, RaggedVerifier
from specref.contracts.ragged.parameters import (
    DRAFT_LAWS,
    DRAFTS,
    LENGTHS,
    PARAMETERS,
    SPARSE,
    TARGETS,
    named,
    problem,
)
from specref.contracts.signature import Read, of_arrays
from specref.contracts.verify.contract import VerifyContract


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
    programs: ClassVar[bool] = False
    rows_said: ClassVar[str] = (
        "rows are laws after temperature: a function that takes `temperature` is given "
        f"{', '.join(map('{:g}'.format, TEMPERATURES[:UNROUNDED]))}, in float64 also "
        f"{' and '.join(map('{:g}'.format, TEMPERATURES[UNROUNDED:]))}, "
        "for the requests of a call in turn, so "
        f"{TEMPERATURES[0]:g} for a single one, as in joint/probed"
    )

    def claimed(self, function: Callable[..., Any], capabilities: Capabilities) -> Capabilities:
        """The claims, with what the names of parameters say: whether any are logits.

        Raises
        ------
        ValueError
            Logits are claimed where no parameter has any, a rule where no parameter has q, or
            `greedy_at_zero` where no parameter is `temperature`.
        """
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
                "(--claim inputs=logits)"
            )
        claims, told = of_arrays(function, capabilities, explicit)
        many = "s" * (len(logits) > 1)
        also = (f"it is given logits: parameter{many} {', '.join(logits)}",) if logits else ()
        return claims, (*also, *told)

    def verifier(self, subject: Subject) -> Verifier:
        return RaggedVerifier(subject.function, subject.capabilities, subject.timeout)

    def takes(self, signature: inspect.Signature) -> bool:
        return not problem(signature)

    def lacks(self, signature: inspect.Signature) -> str:
        meant = DRAFTS in signature.parameters and set(LENGTHS) & set(signature.parameters)
        return problem(signature) if meant else ""

    def names(self, signature: inspect.Signature) -> bool:
        return self.takes(signature)

    def owns(self, signature: inspect.Signature) -> bool:
        return self.takes(signature)

    @property
    def passed(self) -> str:
        lengths, targets = (" or ".join(names) for names in (LENGTHS, TARGETS))
        known = (DRAFTS, *LENGTHS, *TARGETS)
        others = ", ".join(name for name in PARAMETERS if name not in known)
        return f"by name {DRAFTS}, {lengths}, {targets}, and any of {others}"


RAGGED = RaggedContract("ragged", VerifyRagged, (), PARAMETERS)
