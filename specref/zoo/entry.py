"""What the zoo knows about one unusual sampler: a planted bug, or a control."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from specref.algorithms import Step

Stage: TypeAlias = Literal[
    "draft", "accept", "residual", "bonus", "randomness", "context", "length"
]


@dataclass(frozen=True)
class Entry:
    """A sampler that departs from standard speculative decoding in one place.

    Attributes
    ----------
    id : str
        Kebab-case; never reused.
    stage : str
        Where the departure happens.
    formula : str
        The mechanism in one line; x is the drafted token, i its position, n the number of
        drafts, p_i and q_i the rows at position i, and (v)+ the positive part.
    symptom : str
        How it shows; for a control, why it looks wrong.
    hint : str
        How to fix it; for a control, why it is exact.
    step : callable
        (target, drafter, context, lookahead, chance) -> block, with the sites of
        `standard.step` where it draws the same thing.
    cites : tuple of str
        Where it was seen: issues and pull requests (``owner/repo#number``), repositories
        (``owner/repo``), papers (``arXiv:number``). Empty where nothing was found.
    lossless : bool
        False for a mutant, True for a control.
    blind : frozenset of str
        The fixtures on which the mutant has total variation 0.
    note : str
        Why it is blind there, or what else there is to know.
    """

    id: str
    stage: Stage
    formula: str
    symptom: str
    hint: str
    step: Step
    cites: tuple[str, ...] = ()
    lossless: bool = False
    blind: frozenset[str] = frozenset()
    note: str = ""
