"""The parameters of the contract ``ragged``; a function takes those that it names."""

import inspect
from collections.abc import Callable
from typing import Any

DRAFTS = "draft_token_ids"
LENGTHS = ("num_draft_tokens", "cu_num_draft_tokens")
TARGETS = ("target_probs", "target_logits")
DRAFT_LAWS = ("draft_probs", "draft_logits")
SPARSE = ("draft_top_ids", "draft_top_probs")
BONUS = ("bonus_token_ids", "bonus_probs", "bonus_logits")
OTHERS = ("temperature", "max_spec_len")
PAGE = "docs/engines.md"
SECTIONS = {"sampling_metadata": "#vllm"}
"""{parameter of an engine: where the page shows a function that fills it in}."""
RANDOMNESS = ("rng", "coins", "generator", "generators", "seeds")
PARAMETERS = (DRAFTS, *LENGTHS, *TARGETS, *DRAFT_LAWS, *SPARSE, *BONUS, *OTHERS, *RANDOMNESS)


def named(function: Callable[..., Any]) -> frozenset[str]:
    """The parameters of the contract that a function has.

    Raises
    ------
    TypeError
        Its parameters cannot be read, as those of some compiled functions.

    Examples
    --------
    >>> sorted(named(lambda draft_token_ids, cu_num_draft_tokens, target_logits, scale=1: None))
    ['cu_num_draft_tokens', 'draft_token_ids', 'target_logits']
    """
    try:
        return frozenset(PARAMETERS) & set(inspect.signature(function).parameters)
    except ValueError:
        raise TypeError(
            f"implementation = {function!r}: expected a function whose parameters can be read"
        ) from None


def problem(signature: inspect.Signature) -> str:
    """Why a function cannot be called under the contract; empty if it can.

    Examples
    --------
    >>> problem(inspect.signature(lambda draft_token_ids, num_draft_tokens, target_logits: None))
    ''
    >>> problem(inspect.signature(lambda draft_token_ids, num_draft_tokens: None))
    'expected one of target_probs, target_logits'
    >>> problem(inspect.signature(lambda draft_token_ids, num_draft_tokens, target_probs, k: 0))
    'it does not give k: expected a default, or an adapter as in docs/engines.md'
    """
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
