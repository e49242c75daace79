"""Kernels kappa(path | t): a target over drafted paths that needs the laws of single paths only.

A path is a whole draft: drafted until the rule stops, or EOS. Its probability Q(path) is a product
of laws along it, and psi(t) is the sum of Q over the paths whose text starts with the token t.
SLRS may verify the path in place of t (`specref.algorithms.text.path_slrs`), against the target
p(t) kappa(path | t), where kappa(. | t) is any law. It accepts sum min(p kappa, Q), at most
sum min(p, psi): a sum of minima is at most the minimum of sums. They are equal iff no token has
paths on both sides, one with p kappa > Q and one with p kappa < Q. The drafter's conditional law,
`posterior`, is such a kernel for every p, and where p = psi the only one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias

from specref.algorithms.lookahead import Stop
from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.vocabulary import Tokens, UntokenisableError, Vocabulary

Kernel: TypeAlias = Callable[[int], Mapping[Tokens, Probability]]
NO_PATH: Mapping[Tokens, Probability] = MappingProxyType({(): Fraction(1)})


@dataclass(frozen=True)
class Drafting:
    """How a text is drafted: what paths there are, with which probabilities and first tokens.

    * `vocabulary`: The target's.
    * `context`: What the drafter conditions on: ids of its own vocabulary.
    * `stop`: What a lookahead rule gives.
    """

    vocabulary: Vocabulary
    drafter: Model
    context: Tokens
    stop: Stop

    def ends(self, drafts: Tokens) -> bool:
        """Whether nothing is drafted after these."""
        return self.stop(drafts) or self.drafter.vocabulary.ends(drafts)

    def weight(self, path: Tokens) -> Probability:
        """Q(path), at most one forward for each draft; 0 unless the path is a whole draft."""
        weight: Probability = Fraction(1)
        for length, draft in enumerate(path):
            if self.ends(path[:length]):
                return 0 * weight
            weight *= self.drafter.next_token((*self.context, *path[:length]))[draft]
        return weight if self.ends(path) else 0 * weight

    def token(self, path: Tokens) -> int:
        """The first target token of the text."""
        return self.vocabulary.first_token(self.drafter.vocabulary.decode(path))

    def paths(self) -> Iterator[Tokens]:
        """Every whole draft, also such as the drafter's laws exclude: no forward."""
        pending: list[Tokens] = [()]
        while pending:
            path = pending.pop()
            if self.ends(path):
                yield path
            else:
                size = len(self.drafter.vocabulary)
                pending += [(*path, draft) for draft in reversed(range(size))]


def canonical(drafting: Drafting) -> Kernel:
    """One path for each token: its greedy spelling, and lowest ids that leave the token first.

    A token without such a path is never accepted, only drawn from the residual.
    """
    spell = drafting.drafter.vocabulary.encode

    def kernel(token: int) -> Mapping[Tokens, Probability]:
        try:
            path = spell(drafting.vocabulary.tokens[token])
        except UntokenisableError:
            return NO_PATH
        while path and _starts(drafting, path, token):
            if drafting.ends(path):
                return {path: Fraction(1)}
            longer = [(*path, draft) for draft in range(len(drafting.drafter.vocabulary))]
            path = next((one for one in longer if _starts(drafting, one, token)), ())
        return NO_PATH

    return kernel


def uniform(drafting: Drafting) -> Kernel:
    """All paths of a token alike, whatever the drafter's laws; lists every path there is."""
    found: dict[int, list[Tokens]] = {}
    for path in drafting.paths():
        if path:
            found.setdefault(drafting.token(path), []).append(path)

    def kernel(token: int) -> Mapping[Tokens, Probability]:
        paths = found.get(token, [()])
        return {path: Fraction(1, len(paths)) for path in paths}

    return kernel


def posterior(drafting: Drafting) -> Kernel:
    """Q(path) / psi(t): accepts as much as psi, and costs as much."""
    found: dict[int, dict[Tokens, Probability]] = {}
    for path in drafting.paths():
        weight = drafting.weight(path) if path else 0
        if weight > 0:
            found.setdefault(drafting.token(path), {})[path] = weight

    def kernel(token: int) -> Mapping[Tokens, Probability]:
        weights = found.get(token, NO_PATH)
        psi = sum(weights.values())
        return {path: weight / psi for path, weight in weights.items()}

    return kernel


def path_acceptance(p: Probabilities, drafting: Drafting, kernel: Kernel) -> Probability:
    """sum over tokens and paths of min(p kappa, Q): the probability that a path is accepted."""
    total: Probability = 0
    for token, share in enumerate(p):
        for path, probability in kernel(token).items():
            if path:
                total += min(share * probability, drafting.weight(path))
    return total


def _starts(drafting: Drafting, path: Tokens, token: int) -> bool:
    """Whether the first target token of the path's text is this one."""
    try:
        return drafting.token(path) == token
    except UntokenisableError:
        return False
