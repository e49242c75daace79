"""One iteration of a rule on its toy pair: a bar for each random decision, the choice filled."""

from proofs_tests.pages.pictures.svg import Drawing
from proofs_tests.pages.toy import LOOKAHEAD, Toy, toy
from specref.chance import Step
from specref.rule import Rule

LEFT, RIGHT, TOP, APART = 150, 500, 84, 46
LEGIBLE = 11
"""The width of a letter of a bar."""


def of_rule(rule: Rule) -> Drawing:
    """The path that the page of the rule shows."""
    shown = toy(rule)
    steps = shown.trace.steps
    block = " ".join(shown.target.vocabulary.tokens[token] for token in shown.shown.outcome)
    drawing = Drawing(
        f"One iteration of {rule.name} with {LOOKAHEAD} draft tokens: {len(steps)} random "
        f"decisions, and the block {block}.",
        height=TOP + APART * len(steps) + 36,
    )
    drawing.text(20, 32, f"One iteration of {rule.name}, decision by decision", bold=True)
    drawing.text(20, 58, "each bar is what could happen; what did is filled", "muted", size=15)
    for place, step in enumerate(steps):
        _decision(drawing, TOP + APART * place, step, branches(rule, shown, step))
    weight = shown.shown.weight
    end = TOP + APART * len(steps) + 14
    drawing.text(20, end, f"block: {block}", bold=True)
    drawing.text(620, end, f"probability {weight}", "muted", size=15, anchor="end")
    return drawing


def branches(rule: Rule, shown: Toy, step: Step) -> list[str]:
    """The name of each thing that could happen."""
    kind = step.site.partition("[")[0]
    if isinstance(step.choice, bool):
        return ["no", "yes"]
    if kind in ("accept", "keep"):  # by bounds: where the uniform falls between, they are refined
        return ["yes", "no", "refine"]
    if kind == "path":
        return [f"path {place}" for place in range(1, len(step.weights) + 1)]
    drafted = kind == "draft" and not rule.restricts
    return [str(one) for one in (shown.drafter if drafted else shown.target).vocabulary.tokens]


def _decision(drawing: Drawing, y: float, step: Step, names: list[str]) -> None:
    kind, _, place = step.site.partition("[")
    numbers = ".".join(str(int(one) + 1) for one in place.rstrip("]").split("][") if one)
    drawing.text(20, y + 19, f"{kind} {numbers}".rstrip(), bold=True)
    colour = {"residual": "over-p"}.get(kind, "both") if step.choice is not False else "over-q"
    x = float(LEFT)
    for choice, (name, weight) in enumerate(zip(names, step.weights, strict=True)):
        chosen = choice == step.choice
        width = (RIGHT - LEFT) * float(weight)
        drawing.rect(x, y, width, 28, colour if chosen else "panel", "line")
        if width > LEGIBLE * (len(name) + 1):
            ink = "on-fill" if chosen else "muted"
            drawing.text(x + width / 2, y + 19, name, ink, size=15, anchor="middle", bold=chosen)
        x += width
    told = f"{names[int(step.choice)]}: {step.weights[int(step.choice)]}"
    drawing.text(RIGHT + 16, y + 19, told)
