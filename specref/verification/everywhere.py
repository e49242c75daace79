"""All rules, proved or refuted for every p and q over small vocabularies."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, pairwise, repeat
from types import MappingProxyType

from specref.algorithms.companion.companion import guided, verified_length_for_proofs
from specref.algorithms.decoding import Step
from specref.chance import Chance
from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.pairs import Profile
from specref.proofs.everywhere import NotForAllError, is_lossless_everywhere
from specref.proofs.everywhere.pristine import Pristine
from specref.proofs.everywhere.proof import BUDGET, completing, rows_where_right
from specref.proofs.everywhere.rows import spelled_rows
from specref.proofs.everywhere.slices import Plain
from specref.rules import DEFAULT, RULES
from specref.verification.questions import QUESTIONS
from specref.vocabulary import Tokens, UntokenisableError, Vocabulary
from specref.zoo import ALL
from specref.zoo.entry import Entry
from specref.zoo.standard.printed import algorithm_5

PRINTED = "algorithm 5 as printed"
STOPPED = "interrupted"
SIZES: Mapping[Profile, Sequence[tuple[int, int]]] = MappingProxyType(
    {
        "quick": ((2, 2), (3, 1)),
        "standard": ((2, 2), (3, 1), (2, 3), (3, 2)),
        "thorough": ((2, 2), (3, 1), (2, 3), (3, 2), (4, 1)),
    }
)
"""Tokens of one vocabulary, and lookaheads."""
TWO = (
    (("a", "b", "c"), ("b", "c", "d")),
    (("a", "b", "ab"), ("a", "b")),
    (("a", "b"), ("a", "b", "ab")),
    (("a", "b"), ("b", "a")),
)
"""Pairs of vocabularies: partly shared, nested both ways, in another order."""
LONGER = (("a", "b"), ("a", "ab"))
"""A drafter that spells b in a longer token alone."""


def freely_guided(
    step: Callable[..., Tokens],
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
) -> Tokens:
    """One iteration of companion-guided verification, whatever its estimates are.

    The n-th estimate after a text is a number of its own in [0, 1]: an entry of the drafter's row
    after that text, with more tokens before it than are ever drafted, and a 1 and n zeros behind.
    """
    before = (0,) * (lookahead + 1)
    seen, asked = context, count()

    def next_token(text: Tokens) -> Probabilities:
        nonlocal seen, asked
        seen, asked = text, count()
        return drafter.next_token(text)

    def estimate(*signals: Probability) -> Probability:
        number: Probability = drafter.next_token((*before, *seen, 1, *(0,) * next(asked)))[0]
        return number

    third = Model(target.vocabulary, next_token)
    told = {"companion": third, "estimate": estimate, "length": verified_length_for_proofs}
    return step(target, drafter, context, lookahead, chance, **told)


GUIDED: Mapping[str, Step] = MappingProxyType(
    {
        name: partial(freely_guided, rule.step.args[0])
        for name, rule in RULES.items()
        if rule.lossless and isinstance(rule.step, partial) and rule.step.func is guided
    }
)
"""Rules that are lossless whatever a companion estimates."""


@dataclass(frozen=True)
class Box:
    """A rule, and the rows for which it is asked whether it is lossless.

    Attributes
    ----------
    rule : str
        A name of `rules.RULES`, an id of the zoo, or `PRINTED`.
    target, drafter : tuple of str
    lookahead : int
    eos : str or None
        A token of both that ends a text.
    """

    rule: str
    target: tuple[str, ...]
    drafter: tuple[str, ...]
    lookahead: int
    eos: str | None = None

    @property
    def step(self) -> Step:
        """The rule's step; one of `GUIDED` with free estimates."""
        if self.rule == PRINTED:
            return algorithm_5
        if self.rule in GUIDED:
            return GUIDED[self.rule]
        if self.rule in QUESTIONS:
            return QUESTIONS[self.rule].step
        return RULES[self.rule].step if self.rule in RULES else ALL[self.rule].step

    @property
    def plain(self) -> Plain | None:
        """Target -> the model whose law the text should have, if that is another one."""
        return QUESTIONS[self.rule].plain if self.rule in QUESTIONS else None

    @property
    def lossless(self) -> bool:
        """What the tables of rules and of the zoo say."""
        if self.rule == PRINTED:
            return False
        return (RULES if self.rule in RULES else ALL)[self.rule].lossless


@dataclass(frozen=True)
class Answer:
    """What was found for a box.

    Attributes
    ----------
    box : Box
    verdict : str
        ``proved``, ``lossy``, ``open``, ``n/a`` (a tokeniser cannot read the other's text), or
        ``not run`` with the reason in `note`.
    regions, lossy, open, equations, paths, calls : int
        As of `Everywhere`; calls are those of z3.
    bits : int
        Numbers were compared correctly, except with probability 2^-bits.
    total_variation : str
        At the counterexample.
    conditions : tuple of str
        Where it is lossy.
    witness : str
        Rows at which it is; other rows are uniform.
    right : str
        Of a lossy rule, rows at which its distance is 0 all the same, if some were met.
    seconds : float
        Of the processor.
    note : str
        Why it is not run.
    """

    box: Box
    verdict: str
    regions: int = 0
    lossy: int = 0
    open: int = 0
    equations: int = 0
    paths: int = 0
    calls: int = 0
    bits: int = 0
    total_variation: str = ""
    conditions: tuple[str, ...] = ()
    witness: str = ""
    right: str = ""
    seconds: float = 0.0
    note: str = ""

    @property
    def as_known(self) -> bool:
        """Whether the verdict does not contradict what the tables say.

        A bug of the zoo may do nothing over a few tokens.
        """
        if self.box.lossless:
            return self.verdict != "lossy"
        return self.verdict != "proved" or self.is_elsewhere

    @property
    def is_elsewhere(self) -> bool:
        """Whether this is a bug of the zoo that does nothing over these vocabularies."""
        known = self.box.rule in ALL and not self.box.lossless
        return known and self.verdict == "proved"


def boxes_of(profile: Profile, *, zoo: bool = False) -> tuple[Box, ...]:
    """The boxes of all rules; or of the steps of the zoo."""
    letters = tuple("abcd")
    if zoo:
        return tuple(box_of(one) for one in ALL.values() if one.is_step)
    boxes = [
        Box(name, letters[:tokens], letters[:tokens], lookahead)
        for tokens, lookahead in SIZES[profile]
        for name in (*RULES, PRINTED)
    ]
    boxes += [
        Box(name, target, drafter, 1 if profile == "quick" else 2)
        for name, rule in RULES.items()
        if rule.vocabularies != "one" and name != "autoregressive"
        for target, drafter in TWO
    ]
    return tuple(boxes)


def box_of(entry: Entry) -> Box:
    """Where a step of the zoo is asked first."""
    return escalation(entry)[0]


def escalation(entry: Entry) -> tuple[Box, ...]:
    """Where a step of the zoo is asked, until it is refuted."""
    if entry.id in QUESTIONS:
        return tuple(Box(entry.id, *shape) for shape in QUESTIONS[entry.id].shapes)
    rule, two = RULES[entry.rule], ("a", "b")
    if rule.by_text:
        first = Box(entry.id, *TWO[1], 1)
        return (first, Box(entry.id, *LONGER, 1), replace(first, lookahead=2))
    if rule.vocabularies != "one":
        first = Box(entry.id, *TWO[0], 1)
        return (first, replace(first, lookahead=2), Box(entry.id, *TWO[3], 1))
    first, letters = Box(entry.id, two, two, 2), ("a", "b", "c")
    if entry.rule == DEFAULT:
        ending = ("a", "b", "$")
        return (first, Box(entry.id, ending, ending, 1, "$"))
    return (first, replace(first, target=letters, drafter=letters))


def larger_box(answer: Answer) -> Box | None:
    """Where to ask again for a bug of the zoo that is not refuted."""
    box = answer.box
    if box.rule not in ALL or box.lossless or answer.verdict not in ("proved", "open"):
        return None
    boxes = escalation(ALL[box.rule])
    return dict(pairwise(boxes)).get(box)


def prove_boxes(
    boxes: Sequence[Box],
    seed: int = 0,
    budget: float = BUDGET,
    executor: Executor | None = None,
    advance: Callable[[Answer], None] = lambda answer: None,
) -> tuple[Answer, ...]:
    """Prove, refute or leave open each box.

    * `budget`: Seconds of the processor for a box; what is not done by then is open.
    * returns: After Ctrl-C, those that were not reached are ``not run``.
    """
    answers: list[Answer] = []
    mapped = map if executor is None else executor.map
    try:
        for answer in mapped(prove_box, boxes, repeat(seed), repeat(budget)):
            answers.append(answer)
            advance(answer)
    except KeyboardInterrupt:
        asked = boxes[len(answers) :]
        answers += [Answer(box, "not run", note=STOPPED) for box in asked]
    return tuple(answers)


def prove_box(box: Box, seed: int, budget: float) -> Answer:
    """Prove, refute or leave open one box; its rule is trusted to keep nothing between calls."""
    target, drafter = Vocabulary(box.target, box.eos), Vocabulary(box.drafter, box.eos)
    started = time.process_time()
    try:
        found = is_lossless_everywhere(
            *(box.step, target, drafter, box.lookahead),
            seed=seed,
            budget=budget,
            until_open=True,
            plain=box.plain,
            pristine=Pristine(partial(completing, box.step, box.plain), doubts=False),
        )
    except UntokenisableError as error:
        return Answer(box, "n/a", note=str(error))
    except (NotForAllError, TypeError, ValueError, ModuleNotFoundError) as error:
        return Answer(box, "not run", note=f"{type(error).__name__}: {error}")
    if found.interrupted:
        raise KeyboardInterrupt
    distance, conditions, witness, right = "", tuple[str, ...](), "", ""
    if found.witness:
        conditions = found.witness.conditions
        distance = found.witness.error or str(found.witness.distance)
        witness = spelled_rows(found.witness.rows, target, drafter)
        if box.rule in ALL:
            harmless = rows_where_right(box.step, found, box.plain)
            right = "" if harmless is None else spelled_rows(harmless, target, drafter)
    return Answer(
        box,
        "proved" if found.verdict == "lossless" else found.verdict,
        found.regions,
        found.lossy,
        found.open,
        found.charts,
        found.paths,
        found.counts.calls,
        found.bits,
        distance,
        conditions,
        witness,
        right,
        round(time.process_time() - started, 2),
    )
