"""What a step of string-level rejection costs in evaluations of psi or Q."""

from specref import exact_distribution
from specref.chance import Traced


def evaluations(step, case):
    """How many tokens' psi, or paths' Q, are compared, in expectation."""

    def program(chance):
        traced = Traced(chance)
        step(*case, traced)
        sites = [asked.site for asked in traced.steps]
        return sites.count("residual") + ("accept[0]" in sites)

    return sum(count * weight for count, weight in exact_distribution(program).items())
