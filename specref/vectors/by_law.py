"""A case without its coins: the exact law of the block, by the rule and by an implementation."""

from collections.abc import Mapping
from typing import Any

from specref.algorithms.standard import Draft
from specref.chance import exact_distribution
from specref.contracts.calling import Verifier
from specref.distributions import Probability, as_distribution, total_variation
from specref.models import Model
from specref.probing.probe import Probed, batch_program, probe_program
from specref.rule import Verify
from specref.rules import RULES
from specref.vectors.reading import as_batch
from specref.vocabulary import Tokens, Vocabulary

EXACT = 1e-6
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LOW = ("float16", "bfloat16")
NO_COINS = "it has the rows and drafts of a case above, and random numbers cannot be given"


def verification(rule: str) -> Verify:
    """The function by which a rule verifies given drafts.

    * raises `ValueError`: It drafts itself.
    """
    verify = RULES[rule].verify
    if verify is None:
        known = " and ".join(one.name for one in RULES.values() if one.verify)
        raise ValueError(f"rule {rule!r}: vectors of verification are for {known}")
    return verify


def question(case: Mapping[str, Any]) -> tuple[object, ...]:
    """The inputs of a case but its coins: equal for cases that differ in coins alone."""
    q = case["q"] and case["q"]["exact"]
    return str(case["p"]["exact"]), str(q), tuple(case["draft_tokens"])


def expected_law(case: Mapping[str, Any], rule: str) -> dict[Tokens, Probability]:
    """The law of the block that a rule answers to the drafts of a case."""
    p = [as_distribution(row) for row in case["p"]["exact"]]
    target = Model(Vocabulary(LETTERS[: len(p[0])]), lambda context: p[len(context)])
    drafted = [token for token in case["draft_tokens"] if token >= 0]
    certain = [[int(token == one) for token in range(len(p[0]))] for one in drafted]
    q = case["q"]["exact"] if case["q"] else certain
    laws = map(as_distribution, q)
    drafts = [Draft(token, law) for token, law in zip(drafted, laws, strict=False)]
    verify = verification(rule)
    return exact_distribution(lambda chance: verify(target, (), drafts, chance))


def probed_law(verifier: Verifier, case: Mapping[str, Any]) -> Probed:
    """The law of the block that an implementation answers, its randomness intercepted."""
    return probe_program(batch_program(verifier, as_batch(case)))


def unknown(found: Probed) -> str:
    """Why a law could not be probed, or "": draws from a seed are not intercepted."""
    if found.uninterpreted:
        return found.uninterpreted
    kinds = {request.kind for cell in found.cells for request in cell.requests}
    return "what it draws from its seed is not intercepted" if kinds == {"seed"} else ""


def difference(found: Probed, law: Mapping[Tokens, Probability]) -> str:
    """How a probed law differs from that of the rule, in words; "" if it does not."""
    if found.failures:
        worst = max(found.failures, key=lambda name: found.failures[name])
        return f"raises {worst} with probability {found.failures[worst]:.2g}"
    expected = {block: float(weight) for block, weight in law.items()}
    distance = float(total_variation(found.distribution, expected))
    if distance <= EXACT + found.error_bound:
        return ""
    got, blocks = found.distribution, found.distribution.keys() | expected.keys()
    block = max(blocks, key=lambda one: abs(got.get(one, 0.0) - expected.get(one, 0.0)))
    return (
        f"TV {distance:.6f} from the distribution of the rule, most at block {block}: "
        f"{got.get(block, 0.0):.6g} for {expected.get(block, 0.0):.6g}"
    )
