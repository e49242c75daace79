"""Laws of blocks, the most that a rule for given drafts can accept, and what a step evaluates."""

from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from specref import exact_distribution
from specref.chance import Traced
from specref.proofs import completed, output_distribution

F = Fraction


def law(step, case):
    return output_distribution(step, *case)[0]


def length(blocks):
    return sum(len(tokens) * weight for tokens, weight in blocks.items())


def most(target, context, drafts):
    """The greatest expected accepted length of a lossless rule, by linear programming.

    Given drafts x, a rule keeps k of them and adds y, with a probability for each (x, k, y).
    Those of each x sum to P(x), and what comes out, completed by the target, is the target's law.
    """
    longest = max(map(len, drafts)) + 1
    law = completed({(): F(1)}, target, context, longest)
    possible = {text[:k] for text in law for k in range(longest + 1)}
    tokens = range(len(target.vocabulary))
    cuts = [(x, k) for x in drafts for k in range(len(x) + 1)]
    choices = [(x, k, y) for x, k in cuts for y in tokens if (*x[:k], y) in possible]
    expected = {("drafts", x): w for x, w in drafts.items()} | law
    rows = {outcome: i for i, outcome in enumerate(expected)}
    sums = np.zeros((len(rows), len(choices)))
    for column, (x, k, y) in enumerate(choices):
        sums[rows["drafts", x], column] = 1
        for text, weight in completed({(*x[:k], y): F(1)}, target, context, longest).items():
            sums[rows[text], column] = weight
    gains = [-k for _, k, _ in choices]
    return -linprog(gains, A_eq=sums, b_eq=[float(w) for w in expected.values()]).fun


def evaluations(step, case):
    """How many tokens' psi, or paths' Q, are compared, in expectation."""

    def program(chance):
        traced = Traced(chance)
        step(*case, traced)
        sites = [asked.site for asked in traced.steps]
        return sites.count("residual") + ("accept[0]" in sites)

    return sum(count * weight for count, weight in exact_distribution(program).items())
