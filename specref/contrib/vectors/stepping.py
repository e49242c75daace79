"""One iteration of an algorithm: its exact law, and replays that name every site."""

from dataclasses import dataclass
from fractions import Fraction

from specref.chance import Chance, Path, Replayed, Step, Traced, enumerate_paths
from specref.contrib.vectors.cases import StepCase
from specref.rules import RULES
from specref.vocabulary import Tokens

MOST_REPLAYS = 8


@dataclass(frozen=True)
class Replay:
    """One random path: every decision, the block, and its probability."""

    steps: tuple[Step, ...]
    block: Tokens
    weight: Fraction

    @property
    def shape(self) -> tuple[tuple[str, bool], ...]:
        """Which sites were asked, and what was accepted."""
        return tuple((one.site, is_accept(one) and bool(one.choice)) for one in self.steps)


def is_accept(step: Step) -> bool:
    """Whether a decision is a yes or no."""
    return isinstance(step.choice, bool)


def paths(case: StepCase) -> list[Path[Tokens]]:
    """Every random path of a case."""
    target, drafter = case.target.model(), case.drafter.model()

    def program(chance: Chance) -> Tokens:
        step = RULES[case.algorithm].step
        return step(target, drafter, case.context, case.lookahead, chance)

    return list(enumerate_paths(program))


def law(found: list[Path[Tokens]]) -> dict[Tokens, Fraction]:
    """{block: probability}, the shortest first."""
    total: dict[Tokens, Fraction] = {}
    for path in found:
        total[path.outcome] = total.get(path.outcome, Fraction(0)) + Fraction(path.weight)
    return dict(sorted(total.items(), key=lambda item: (len(item[0]), item[0])))


def replays(case: StepCase, found: list[Path[Tokens]]) -> list[Replay]:
    """The likeliest path of each shape, at most eight, in the order of enumeration."""
    target, drafter = case.target.model(), case.drafter.model()
    likeliest: dict[tuple[tuple[str, bool], ...], Replay] = {}
    for path in found:
        chance = Traced(Replayed(path.choices))
        step = RULES[case.algorithm].step
        block = step(target, drafter, case.context, case.lookahead, chance)
        replay = Replay(tuple(chance.steps), block, Fraction(path.weight))
        known = likeliest.get(replay.shape)
        if known is None or replay.weight > known.weight:
            likeliest[replay.shape] = replay
    return list(likeliest.values())[:MOST_REPLAYS]


def uniform(step: Step) -> float:
    """The middle of the uniforms that lead to a choice: by u < probability, or inverse CDF."""
    if is_accept(step):
        yes = Fraction(step.weights[1])
        return float(yes / 2 if step.choice else (yes + 1) / 2)
    end = sum((Fraction(weight) for weight in step.weights[: step.choice + 1]), Fraction(0))
    return float(end - Fraction(step.weight) / 2)
