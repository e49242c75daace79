"""A batch of requests that share a fixed number of drafts, allocated by the companion.

Kim et al. 2025 (arXiv:2509.24328), section 5, "Batch", with the drafted token left out of its own
judgement and the total fixed beforehand. Then the outputs of all requests are *jointly* the
target's: independent of each other, though the requests compete. The reason is that each
draft is drawn after it was given its place, whatever was drawn for the others by then. Rules
that break this are in `zoo.companion`; some keep each request's own law.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from specref.algorithms.companion.companion import Prior, check_vocabularies, rate, similarity
from specref.algorithms.lookahead import positions
from specref.algorithms.standard import Draft, verify
from specref.chance import Chance
from specref.distributions import Probability
from specref.models import Model
from specref.vocabulary import Tokens

BatchStep: TypeAlias = Callable[[Model, Model, Sequence[Tokens], int, Chance], tuple[Tokens, ...]]


@dataclass
class Request:
    """One request of a batch, while it is drafted.

    `seen` is its context with the drafts, `survival` the estimate that all of them are accepted.
    """

    context: Tokens
    seen: Tokens
    drafts: list[Draft] = field(default_factory=list)
    survival: Probability = Fraction(1)

    def is_open(self, drafter: Model, lookahead: int) -> bool:
        """Whether another draft may follow."""
        ended = self.drafts and drafter.vocabulary.ends(self.seen)
        return len(self.drafts) < lookahead and not ended


def fixed_budget_step(
    target: Model,
    drafter: Model,
    contexts: Sequence[Tokens],
    lookahead: int,
    chance: Chance,
    *,
    companion: Model,
    estimate: Prior,
    budget: int,
) -> tuple[Tokens, ...]:
    """One iteration of a batch, jointly lossless: `budget` drafts in all, the likeliest first.

    The next draft goes to the request whose next survival probability is greatest, the first
    among equals. Survival never grows along a request, so these are the `budget` greatest of
    all: what `theory.goodput.allocation` would choose if everything were drafted.

    Parameters
    ----------
    target, drafter, companion : Model
        Over the same vocabulary.
    contexts : sequence of tuples of int
        One for each request.
    lookahead : int
        The most drafts of one request.
    chance : Chance
        Sites ``request[r].draft[k]``, then those of `standard.verify` for each request.
    estimate : callable
        S -> acceptance in [0, 1] of a draft not yet drawn: `AcceptanceTable.before_drawing`.
    budget : int
        Drafts of the whole batch; fewer if all requests are at the end.

    Returns
    -------
    tuple of tuples of int
        The blocks.

    Raises
    ------
    ValueError
        The vocabularies differ, an estimate is not in [0, 1], `lookahead` < 0 or `budget` < 0.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> model = iid_model(Vocabulary("ab"), [1, 0])
    >>> exact_distribution(lambda chance: fixed_budget_step(
    ...     model, model, [(), ()], 2, chance, companion=model, estimate=lambda s: s, budget=3))
    {((0, 0, 0), (0, 0)): Fraction(1, 1)}
    """
    check_vocabularies(target, drafter, companion)
    most = len(positions(lookahead))
    if budget < 0:
        raise ValueError(f"budget = {budget}: expected an integer >= 0")
    requests = [Request(context, context) for context in contexts]
    for _ in range(budget):
        waiting = {
            r: outlook(request, drafter, companion, estimate)
            for r, request in enumerate(requests)
            if request.is_open(drafter, most)
        }
        if not waiting:
            break
        r = max(waiting, key=waiting.__getitem__)
        extend(requests[r], waiting[r], drafter, chance, f"request[{r}]")
    return tuple(verify(target, request.context, request.drafts, chance) for request in requests)


def outlook(request: Request, drafter: Model, companion: Model, estimate: Prior) -> Probability:
    """The estimated probability that all drafts are accepted, and one more, not drawn yet."""
    alike = similarity(drafter.next_token(request.seen), companion.next_token(request.seen))
    return request.survival * rate(estimate(alike), len(request.drafts))


def extend(
    request: Request, survival: Probability, drafter: Model, chance: Chance, name: str
) -> None:
    """Draw one more draft; `survival` is the estimate that all of them are accepted."""
    q = drafter.next_token(request.seen)
    token = chance.draw(q, f"{name}.draft[{len(request.drafts)}]")
    request.drafts.append(Draft(token, q))
    request.seen, request.survival = (*request.seen, token), survival
