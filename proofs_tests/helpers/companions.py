"""Models, estimates and rules for companion-guided verification."""

import itertools
from fractions import Fraction

from specref import Vocabulary
from specref.algorithms import standard
from specref.distributions import as_distribution
from specref.models import hashed_model, iid_model, markov_model
from specref.zoo.companion import mean

F = Fraction


AB, ABC = Vocabulary("ab"), Vocabulary("abc")


ALIKE = {"estimate": lambda alike: alike}


BOTH = {"estimate": mean}


def models(vocabulary, key):
    return [hashed_model(vocabulary, f"{role} {key}") for role in ("p", "q", "c")]


def truncating(rule):
    """Verify so many of two drafts as the rule says of their tokens; the bonus token is from p."""

    def step(target, drafter, context, lookahead, chance):
        drafts = standard.draft(drafter, context, 2, chance)
        kept = drafts[: rule[tuple(token for token, _ in drafts)]]
        return standard.verify(target, context, kept, chance)

    return step


def is_predictable(rule, drafter):
    """Whether P(draft k is verified | drafts up to k) is the same for all tokens at k."""
    q = {x: drafter.next_token(x) for x in [(), (0,), (1,)]}
    first = {x: sum(q[x,][y] * (rule[x, y] >= 1) for y in (0, 1)) for x in (0, 1)}
    second = all((rule[x, 0] == 2) == (rule[x, 1] == 2) for x in (0, 1))
    return first[0] == first[1] and second


DRAFTERS = {
    "no memory": iid_model(AB, ["1/3", "2/3"]),
    "last token": markov_model(AB, ["1/3", "2/3"], [["1/4", "3/4"], ["2/5", "3/5"]]),
}


PAIRS = list(itertools.product((0, 1), repeat=2))


RULES = [dict(zip(PAIRS, row, strict=True)) for row in itertools.product(range(3), repeat=4)]


def simplex(size, parts):
    counts = itertools.product(range(parts + 1), repeat=size)
    return [as_distribution([F(n, parts) for n in row]) for row in counts if sum(row) == parts]


def keeping(kept):
    """Verify one draft x with probability kept[x]."""

    def step(target, drafter, context, lookahead, chance):
        drafts = standard.draft(drafter, context, 1, chance)
        keep = chance.accept(kept[drafts[0].token], "keep")
        return standard.verify(target, context, drafts if keep else [], chance)

    return step


CONTEXTS = [(), (1, 0)]
