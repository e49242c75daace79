"""One iteration of standard speculative decoding, coin by coin."""

import numpy as np

from proofs_tests.pages.pictures.example import DRAFTER, TARGET, VOCABULARY
from proofs_tests.pages.pictures.svg import Drawing
from specref.algorithms import standard
from specref.chance import Sampled, Step, Traced

LOOKAHEAD = 3
LEFT, RIGHT, TOP, APART = 150, 500, 78, 54


class Noted:
    """Uniforms of a generator, kept."""

    def __init__(self, seed: int) -> None:
        self.rng, self.numbers = np.random.default_rng(seed), list[float]()

    def random(self) -> float:
        self.numbers.append(self.rng.random())
        return self.numbers[-1]


def iteration(seed: int = 122) -> Drawing:
    """A bar a coin, cut into what can happen; a mark where its uniform falls."""
    uniforms = Noted(seed)
    chance = Traced(Sampled(uniforms))
    block = standard.step(TARGET, DRAFTER, (), LOOKAHEAD, chance)
    tokens = [VOCABULARY.tokens[token] for token in block]
    drawing = Drawing(
        f"One iteration with {LOOKAHEAD} draft tokens, {len(chance.steps)} random numbers: "
        f"{len(block) - 1} drafts are accepted, and the block is {' '.join(tokens)}.",
        height=TOP + APART * len(chance.steps) + 38,
    )
    drawing.text(20, 32, "One iteration of speculative decoding, step by step", bold=True)
    drawing.text(LEFT, 54, "the mark is a uniform u: what it falls on, happens", "muted", size=15)
    drafts = [step.choice for step in chance.steps[:LOOKAHEAD]]
    for place, (step, u) in enumerate(zip(chance.steps, uniforms.numbers, strict=True)):
        _coin(drawing, TOP + APART * place, step, u, drafts)
    last = chance.steps[-1].site
    said = f"block: {' '.join(tokens)} ({len(block) - 1} accepted, then the {last} token)"
    drawing.text(20, TOP + APART * len(chance.steps) + 16, said, bold=True)
    return drawing


def _coin(drawing: Drawing, y: float, step: Step, u: float, drafts: list[int]) -> None:
    kind, _, index = step.site.rstrip("]").partition("[")
    letters = VOCABULARY.tokens
    name = f"{kind} {int(index) + 1}" if index else kind
    if kind == "accept":
        bound, name = step.weights[1], f"{name}: {letters[drafts[int(index)]]}"
        branches = [("accept", bound, step.choice), ("reject", 1 - bound, not step.choice)]
        colour = "both" if step.choice else "over-q"
        result, told = "accepted" if step.choice else "rejected", "min(1, p/q)"
        compared = f"{u:.2f} {'<' if u < bound else '≥'} {bound}"
    else:
        branches = [
            (letter, weight, token == step.choice)
            for token, (letter, weight) in enumerate(zip(letters, step.weights, strict=True))
        ]
        told = {"draft": "from q", "residual": "norm((p − q)+)", "bonus": "from p"}[kind]
        result, compared = letters[step.choice], f"u = {u:.2f}"
        colour = "over-p" if kind == "residual" else "both"
    drawing.text(20, y + 12, name, bold=True)
    drawing.text(20, y + 31, told, "muted", size=15)
    x, at = float(LEFT), LEFT + (RIGHT - LEFT) * u
    for label, weight, chosen in branches:
        end = x + (RIGHT - LEFT) * float(weight)
        drawing.rect(x, y, end - x, 28, colour if chosen else "panel", "line")
        # Beside the mark, on the wider side.
        ends = max((x, at), (at, end), key=lambda ends: ends[1] - ends[0]) if chosen else (x, end)
        if ends[1] - ends[0] > 12 * len(label):
            ink = "on-fill" if chosen else "muted"
            drawing.text(sum(ends) / 2, y + 20, label, ink, size=15, anchor="middle", bold=chosen)
        x = end
    drawing.mark(at, y - 3, y + 28)
    drawing.text(RIGHT + 16, y + 12, result, bold=True)
    drawing.text(RIGHT + 16, y + 31, compared, "muted", size=15)
