"""What the zoo knows about one unusual sampler: a planted bug, or a control."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, TypeAlias

from specref.algorithms import Step
from specref.chance import Chance
from specref.models import Model
from specref.theory.metrics import Iteration
from specref.vocabulary import Tokens

Stage: TypeAlias = Literal[
    "draft",
    "accept",
    "residual",
    "bonus",
    "randomness",
    "context",
    "length",
    "vocabulary",
    "operator",
    "batch",
    "reporting",
    "contract",
]
Algorithm: TypeAlias = Literal["standard", "union", "tli", "slem", "slrs", "warped"]
Generate: TypeAlias = Callable[[Model, Model, Tokens, int, int, Chance], Tokens]


@dataclass(frozen=True)
class Described:
    """What every inhabitant of the zoo says about itself.

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
    cites : tuple of str
        Where it was seen: issues and pull requests (``owner/repo#number``), repositories
        (``owner/repo``), papers (``arXiv:number``). Empty where nothing was found.
    lossless : bool
        False for a mutant, True for a control.
    blind : frozenset of str
        The fixtures on which a mutant cannot be told from the clean rule.
    note : str
        Why it is blind there, or what else there is to know.
    """

    id: str
    stage: Stage
    _: KW_ONLY
    formula: str
    symptom: str
    hint: str
    cites: tuple[str, ...] = ()
    lossless: bool = False
    blind: frozenset[str] = frozenset()
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Entry(Described):
    """A step that departs from the clean rule of an algorithm in one place.

    Attributes
    ----------
    step : callable
        (target, drafter, context, lookahead, chance) -> block, with the sites of the clean
        rule where it draws the same thing.
    algorithm : str
        The clean rule that it patches, whose fixtures it needs: `standard` and its kin, or
        "warped", standard speculative decoding from a target with sampling parameters.
    """

    step: Step
    algorithm: Algorithm = "standard"


@dataclass(frozen=True, kw_only=True)
class TextEntry(Described):
    """A decode loop that departs from `algorithms.decode` in one place.

    Attributes
    ----------
    generate : callable
        (target, drafter, context, lookahead, tokens, chance) -> at most `tokens` token ids.
    """

    generate: Generate


@dataclass(frozen=True, kw_only=True)
class MetricEntry(Described):
    """A figure computed otherwise than its name says, from a log that is right.

    Attributes
    ----------
    metric : str
        The definition in `theory.metrics` that it claims to be.
    report : callable
        Log -> value.
    """

    metric: str
    report: Callable[[Sequence[Iteration]], Any]
