"""One iteration of two models: its exact law, replays that name every site, and its flags."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType

from specref.algorithms.text.push_forward import conditional_psi
from specref.algorithms.union import read
from specref.chance import Chance, Path, Replayed, Step, Traced, enumerate_paths
from specref.contrib.vectors.cases import Row, StepCase
from specref.contrib.vectors.flags import disjoint, undrafted
from specref.distributions import relabel
from specref.models import Model
from specref.rule import Rule
from specref.rules import RULES
from specref.vocabulary import Tokens, intersection

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


@dataclass(frozen=True)
class Iteration:
    """A case, its exact law and its replays."""

    case: StepCase
    blocks: Sequence[Tokens]
    replays: Sequence[Replay]

    @property
    def rule(self) -> Rule:
        return RULES[self.case.algorithm]

    @cached_property
    def target(self) -> Model:
        return self.case.target.model()

    @cached_property
    def drafter(self) -> Model:
        return self.case.drafter.model()

    @cached_property
    def shared(self) -> dict[int, int]:
        """The tokens that both have: {drafter id: target id}."""
        return intersection(self.target.vocabulary, self.drafter.vocabulary)

    @property
    def readable(self) -> bool:
        """Whether the drafter can read the context, token by token."""
        return read(self.target, self.drafter, self.case.context) is not None

    @property
    def p(self) -> Row:
        """The target's law after the context."""
        return tuple(self.target.next_token(self.case.context))

    @cached_property
    def q(self) -> Row | None:
        """The law of the first drafted target token; None if there is none."""
        if self.case.lookahead == 0 or not self.readable:
            return None
        if self.rule.by_text:
            text = self.target.vocabulary.decode(self.case.context)
            encoded = self.drafter.vocabulary.encode(text)
            depth = self.case.lookahead
            return tuple(conditional_psi(self.target.vocabulary, self.drafter, encoded, depth)[()])
        seen = read(self.target, self.drafter, self.case.context)
        q = self.drafter.next_token(seen or ())
        moved = relabel(q, self.shared, len(self.target.vocabulary))
        total = moved.sum() if self.rule.restricts else 1
        return tuple(moved / total) if total else None

    def any_site(self, name: str) -> bool:
        """Whether some replay asks a site of that name."""
        return any(step.site.startswith(name) for one in self.replays for step in one.steps)

    def retokenised(self, replay: Replay) -> bool:
        """Whether the target reads the drafted text as other pieces than were drafted."""
        drafted = [step.choice for step in replay.steps if step.site.startswith("draft")]
        text = self.drafter.vocabulary.decode(drafted)
        pieces = [self.drafter.vocabulary.tokens[token] for token in drafted]
        tokens = self.target.vocabulary.encode(text)
        return pieces != [self.target.vocabulary.tokens[token] for token in tokens]


def step_flags(iteration: Iteration) -> list[str]:
    """The flags of an iteration, in the order of `FLAGS`."""
    return [name for name, holds in FLAGS.items() if holds(iteration)]


def _law(holds: Callable[[Row, Row], bool]) -> Callable[[Iteration], bool]:
    return lambda one: one.q is not None and holds(one.p, one.q)


def _accepted_eos(one: Iteration) -> bool:
    ended = (r for r in one.replays if one.target.vocabulary.ends(r.block))
    return any(replay.steps[-1].site.startswith("accept") for replay in ended)


def _refused(one: Iteration) -> bool:
    ends = (r for r in one.replays if r.steps[-1].site == "residual")
    choices = ([s.choice for s in r.steps if s.site.startswith("accept")] for r in ends)
    return any(all(accepts) for accepts in choices)


def _nothing_shared(one: Iteration) -> bool:
    masses = (sum(row[token] for token in one.shared) for row in one.case.drafter.rows.values())
    return bool(one.shared) and not all(masses)


FLAGS: Mapping[str, Callable[[Iteration], bool]] = MappingProxyType(
    {
        "BonusToken": lambda one: one.any_site("bonus"),
        "ResidualToken": lambda one: one.any_site("residual"),
        "DisjointSupport": _law(disjoint),
        "ZeroDraftMass": _law(undrafted),
        "EqualDistributions": _law(lambda p, q: p == q),
        "PointMass": _law(lambda p, q: 1 in p or 1 in q),
        "NoDraft": lambda one: not one.any_site("draft"),
        "EndOfText": lambda one: any(map(one.target.vocabulary.ends, one.blocks)),
        "AcceptedEos": _accepted_eos,
        "IntersectionEmpty": lambda one: not one.shared,
        "DrafterOnlyToken": lambda one: len(one.shared) < len(one.drafter.vocabulary),
        "TargetOnlyToken": lambda one: len(one.shared) < len(one.target.vocabulary),
        "ReorderedIds": lambda one: any(here != there for here, there in one.shared.items()),
        "NothingShared": _nothing_shared,
        "UnreadableContext": lambda one: not one.readable,
        "Retokenised": lambda one: one.rule.by_text and any(map(one.retokenised, one.replays)),
        "RefusedWithoutCoin": _refused,
    }
)
