"""Exact proofs for batches: the joint law of all requests' outputs, not of each by itself.

Requests that share a budget can each have the target's law and yet not be independent. Lossless
is a batch whose completed blocks have, jointly, the product of the target's laws.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from fractions import Fraction
from functools import reduce
from operator import itemgetter

from specref.algorithms.companion.batch import BatchStep
from specref.chance import MAX_PATHS, Chance, enumerate_paths
from specref.distributions import Probability, is_exact, push_forward, total_variation
from specref.laws import Law, completed
from specref.models import Model, as_model, watched
from specref.proofs.exact import Comparison, written_to
from specref.spoiled import unspoiled
from specref.vocabulary import Tokens

JointLaw = dict[tuple[Tokens, ...], Probability]


class JointProof(Comparison[tuple[Tokens, ...]]):
    """Whether a batch's joint output distribution is the product of the target's.

    * `output`, `expected`: {(tokens of request 0, tokens of request 1, …): probability}.
    * `paths`: How many random paths were enumerated.
    """

    def alone(self, request: int) -> Probability:
        """The total variation distance of one request's own output."""
        laws = (self.output, self.expected)
        return total_variation(*(push_forward(law, itemgetter(request)) for law in laws))


def is_jointly_lossless(
    step: BatchStep,
    target: Model,
    drafter: Model,
    contexts: Sequence[Tokens],
    lookahead: int = 1,
    *,
    max_paths: int = MAX_PATHS,
) -> JointProof:
    """Prove or refute that one iteration of a batch is jointly lossless, by enumeration.

    Parameters
    ----------
    step : callable
        (target, drafter, contexts, lookahead, chance) -> one block for each request.
    target, drafter : Model
        With exact probabilities.
    contexts : sequence of tuples of int
        One for each request.
    lookahead : int
        Passed to `step`; blocks are completed to `lookahead` + 1 tokens.
    max_paths : int
        Where to give up.

    Raises
    ------
    TypeError
        The target returns floats.
    ValueError
        More than `max_paths` paths, another number of blocks than contexts, or an empty or
        too long block.

    Examples
    --------
    >>> from specref.algorithms import standard
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> model = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    >>> def batch(target, drafter, contexts, lookahead, chance):
    ...     return tuple(standard.step(target, drafter, x, lookahead, chance) for x in contexts)
    >>> is_jointly_lossless(batch, model, model, [(), ()])
    JointProof(lossless=True, total_variation=0, paths=16)
    """
    target, drafter = as_model(target, "target"), as_model(drafter, "drafter")
    if not is_exact(target.next_token(contexts[0])):
        raise TypeError("target returns floats: a proof needs Fractions")
    paths = 0
    output: JointLaw = {}

    def program(chance: Chance) -> tuple[Tokens, ...]:
        try:
            return tuple(step(target, drafter, contexts, lookahead, chance))
        except ValueError as error:
            raise written_to(error) from error.__cause__

    with ExitStack() as watching:
        watching.enter_context(unspoiled())
        for context in contexts:
            watching.enter_context(watched(target, drafter, context, lookahead))
        for path in enumerate_paths(program, max_paths, twice=True):
            paths += 1
            if len(path.outcome) != len(contexts) or not all(path.outcome):
                raise ValueError(f"step returned {path.outcome}: expected {len(contexts)} blocks")
            output[path.outcome] = output.get(path.outcome, 0) + path.weight
    whole = _completed(output, target, contexts, lookahead + 1)
    nothing: JointLaw = {((),) * len(contexts): Fraction(1)}
    return JointProof(whole, _completed(nothing, target, contexts, lookahead + 1), paths)


def _completed(
    blocks: JointLaw, target: Model, contexts: Sequence[Tokens], length: int
) -> JointLaw:
    """Every request of every outcome extended by the target, independently."""
    law: JointLaw = {}
    for outcome, weight in blocks.items():
        requests = zip(outcome, contexts, strict=True)
        laws = [completed({block: Fraction(1)}, target, x, length) for block, x in requests]
        for texts, probability in product(laws).items():
            law[texts] = law.get(texts, 0) + weight * probability
    return law


def product(laws: Iterable[Law]) -> JointLaw:
    """The joint law of independent texts."""

    def joined(joint: JointLaw, law: Law) -> JointLaw:
        return {(*a, b): v * w for a, v in joint.items() for b, w in law.items()}

    return reduce(joined, laws, {(): Fraction(1)})
