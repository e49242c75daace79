"""The example that the page of a rule shows: a toy pair, and one of its random paths."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specref import Model, Vocabulary
from specref.chance import Path, Replayed, Traced, enumerate_paths
from specref.models import iid_model
from specref.rule import Rule

LOOKAHEAD = 2
"""Of the example of each rule."""
JOINT = ("block", "greedy-block")
"""Rules that keep as much as standard on the usual pair, and more on another."""


def pair(rule: Rule) -> tuple[Model, Model]:
    """The toy pair that a rule is shown on."""
    if rule.by_text:
        target = iid_model(Vocabulary("ab"), ["2/3", "1/3"])
        return target, iid_model(Vocabulary(["a", "b", "ab"]), ["1/4", "1/4", "1/2"])
    if rule.name in JOINT:
        two = Vocabulary("ab")
        return iid_model(two, ["1/3", "2/3"]), iid_model(two, ["2/3", "1/3"])
    even, odd = ["1/3", 0, "2/3"], ["1/2", "1/3", "1/6"]
    target = Model(Vocabulary("abc"), lambda context: odd if len(context) % 2 else even)
    drafter = Vocabulary("abc" if rule.same_vocabulary else "bcx")
    return target, iid_model(drafter, ["1/6", "1/3", "1/2"])


@dataclass(frozen=True)
class Toy:
    """A rule on its pair: all random paths, and the one that is shown."""

    target: Model
    drafter: Model
    paths: Sequence[Path[tuple[int, ...]]]
    trace: Traced
    shown: Path[tuple[int, ...]]


def toy(rule: Rule) -> Toy:
    """The likeliest of the paths that show most: an acceptance and a rejection, if there are."""
    target, drafter = pair(rule)

    def program(chance: Any) -> tuple[int, ...]:
        return rule.step(target, drafter, (), LOOKAHEAD, chance)

    paths = list(enumerate_paths(program))
    traces = [Traced(Replayed(path.choices)) for path in paths]
    for trace in traces:
        program(trace)
    order = [(len({*verdicts(t)}), path.weight) for t, path in zip(traces, paths, strict=True)]
    best = max(range(len(paths)), key=order.__getitem__)
    return Toy(target, drafter, paths, traces[best], paths[best])


def verdicts(trace: Traced) -> list[bool]:
    """What was accepted on a path, and what was not."""
    return [step.choice for step in trace.steps if isinstance(step.choice, bool)]
