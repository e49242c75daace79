"""One pair with two vocabularies: what union, TLI, SLEM and SLRS submit, and what they accept."""

import numpy as np

from proofs_tests.pages.pictures.svg import Drawing
from specref.algorithms.text.push_forward import psi
from specref.distributions import Probabilities, as_distribution, normalise, relabel
from specref.models import iid_model
from specref.rules import RULES
from specref.vocabulary import Vocabulary, intersection

LOOKAHEAD = 2
OWN, OTHER = Vocabulary(["a", "b", "ab"]), Vocabulary(["a", "b", "ba"])
P, Q = (as_distribution(row) for row in (["1/3", "1/3", "1/3"], ["1/2", "1/6", "1/3"]))
TARGET, DRAFTER = iid_model(OWN, P), iid_model(OTHER, Q)
SCALE, BAR, WIDE, HIGH = 144, 27, 310, 236


def first_token() -> dict[str, tuple[str, Probabilities, Probabilities]]:
    """{rule: (what it does, the law of the first token submitted, what is accepted of it)}."""
    shared = relabel(Q, intersection(OWN, OTHER), len(OWN))
    spelled = psi(OWN, DRAFTER, (), LOOKAHEAD)
    return {
        "union": ("drafts that the target has", shared, np.minimum(P, shared)),
        "tli": ("q over shared tokens alone", normalise(shared), np.minimum(P, normalise(shared))),
        "slem": ("drafted text; equal tokens", spelled, P * spelled),
        "slrs": ("drafted text; ratio test", spelled, np.minimum(P, spelled)),
    }


def vocabularies() -> Drawing:
    """A panel a rule: beside p the law of what it submits, and what of both is accepted."""
    rates = {
        name: RULES[name].acceptance_rate(TARGET, DRAFTER, lookahead=LOOKAHEAD)
        for name in first_token()
    }
    drawing = Drawing(
        f"Two vocabularies, {LOOKAHEAD} draft tokens. Of the first token that a rule submits it "
        "accepts: " + ", ".join(f"{name} {rate}" for name, rate in rates.items()) + ".",
        height=140 + 2 * HIGH,
    )
    drawing.text(
        20,
        32,
        f"Two vocabularies, {LOOKAHEAD} draft tokens: what each rule accepts first",
        bold=True,
    )
    for y, name, vocabulary, row in ((58, "p", OWN, P), (80, "q", OTHER, Q)):
        law = ", ".join(f"{t} {x}" for t, x in zip(vocabulary.tokens, row, strict=True))
        whose = "target" if name == "p" else "draft model"
        drawing.text(20, y, f"{whose}, {name}: {law}", "muted")
    drawing.text(620, 58, "left bar: p", "muted", anchor="end")
    drawing.text(620, 80, "right bar: what is submitted", "muted", anchor="end")
    for place, (name, (told, submitted, accepted)) in enumerate(first_token().items()):
        x, y = 20 + WIDE * (place % 2), 104 + HIGH * (place // 2)
        drawing.rect(x, y, WIDE - 20, HIGH - 16, "panel")
        drawing.text(x + 12, y + 24, f"{name} accepts {rates[name]}", bold=True)
        drawing.text(x + 12, y + 44, told, "muted", size=15)
        _bars(drawing, x + 14, y + HIGH - 58, submitted, accepted)
    bottom = 104 + 2 * HIGH + 18
    drawing.key(20, bottom, "both", "accepted")
    drawing.key(140, bottom, "over-p", "rest of p")
    drawing.key(262, bottom, "over-q", "rejected, or no token of the target")
    return drawing


def _bars(
    drawing: Drawing, left: float, bottom: float, submitted: Probabilities, accepted: Probabilities
) -> None:
    for token, p, mu, both in zip(OWN.tokens, P, submitted, accepted, strict=True):
        for x, value, over in ((left, p, "over-p"), (left + BAR + 3, mu, "over-q")):
            whole, common = SCALE * float(value), SCALE * float(both)
            drawing.rect(x, bottom - whole, BAR, whole - common, over)
            drawing.rect(x, bottom - common, BAR, common, "both")
            if value:
                drawing.text(x + BAR / 2, bottom - whole - 5, str(value), size=15, anchor="middle")
        drawing.text(left + BAR + 1.5, bottom + 20, token, anchor="middle", bold=True)
        left += 2 * BAR + 18
    none = 1 - submitted.sum()
    drawing.rect(left, bottom - SCALE * float(none), BAR, SCALE * float(none), "over-q")
    if none:
        told = str(none)
        drawing.text(
            left + BAR / 2, bottom - SCALE * float(none) - 5, told, size=15, anchor="middle"
        )
        drawing.text(left + BAR / 2, bottom + 20, "none", "muted", size=15, anchor="middle")
    drawing.line(left - 3 * (2 * BAR + 18), bottom, left + BAR, bottom)
