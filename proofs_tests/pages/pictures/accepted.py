"""p and q side by side: the mass that is accepted, and the residual."""

from proofs_tests.pages.pictures.example import DRAFTER, TARGET, VOCABULARY, P, Q
from proofs_tests.pages.pictures.svg import Drawing
from specref.distributions import residual
from specref.rules import RULES

SCALE, BOTTOM, BAR, APART = 380, 250, 46, 150


def accepted() -> Drawing:
    """Two bars a token: as high as p and q, the common part in one colour."""
    rate, rest = RULES["standard"].acceptance_rate(TARGET, DRAFTER), residual(P, Q)
    drawn = {token: mass for token, mass in zip(VOCABULARY.tokens, rest, strict=True) if mass}
    drawing = Drawing(
        f"Bars of p and q over {len(P)} tokens. The common part, {rate}, is accepted; where p is "
        "higher lies the residual, where q is higher drafts are rejected.",
        height=392,
    )
    drawing.text(
        20, 32, "The draft model draws from q; the output must be distributed as p", bold=True
    )
    for place, (token, p, q) in enumerate(zip(VOCABULARY.tokens, P, Q, strict=True)):
        left = 48 + APART * place
        for x, name, value, over in ((left, "p", p, "over-p"), (left + 52, "q", q, "over-q")):
            both, whole = SCALE * float(min(p, q)), SCALE * float(value)
            drawing.rect(x, BOTTOM - both, BAR, both, "both")
            drawing.rect(x, BOTTOM - whole, BAR, whole - both, over)
            drawing.text(x + BAR / 2, BOTTOM - whole - 7, str(value), anchor="middle")
            drawing.text(x + BAR / 2, BOTTOM + 18, name, "muted", anchor="middle")
        drawing.text(left + 49, BOTTOM + 40, token, size=18, anchor="middle", bold=True)
    drawing.line(24, BOTTOM, 616, BOTTOM)
    drawing.key(24, 322, "both", f"min(p, q), accepted: {rate} in total")
    drawing.key(24, 348, "over-p", f"p above q, made up after a rejection: {1 - rate} in total")
    drawing.key(24, 374, "over-q", f"q above p, rejected: {1 - rate} in total")
    law = ", ".join(f"{token} {mass}" for token, mass in drawn.items())
    drawing.text(616, 322, f"residual: {law}", "muted", anchor="end")
    return drawing
