"""Which rules accept more drafts, and how many in closed form, for every p and q."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product, repeat
from types import MappingProxyType

from specref.algorithms import autoregressive
from specref.algorithms.decoding import Step
from specref.algorithms.text.push_forward import psi
from specref.algorithms.trees.transport import drafts_law, optimal_acceptance
from specref.distributions import Probabilities, Probability, normalise, relabel
from specref.models import Model
from specref.pairs import Profile
from specref.proofs.everywhere import NotForAllError
from specref.proofs.everywhere.acceptance import Formula
from specref.proofs.everywhere.comparison import Comparison, compare_everywhere
from specref.rules import RULES
from specref.verification.everywhere import GUIDED, STOPPED, TWO
from specref.vocabulary import Tokens, UntokenisableError, Vocabulary, intersection

BUDGET = 20.0  # CPU seconds of each of hundreds of claims
OPTIMUM_OF_TWO = "the optimum of transport of two drafts without replacement"
LONGEST = 99
"""For formulas that hold for any number of accepted drafts."""


def by_token(target: Model, drafter: Model, text: Tokens, lookahead: int) -> Probability:
    """The product of min(p, q) over the tokens: what standard accepts."""
    accepted: Probability = 1
    for index, token in enumerate(text):
        p, q = target.next_token(text[:index]), drafter.next_token(text[:index])
        accepted = accepted * min(p[token], q[token])
    return accepted


def jointly(target: Model, drafter: Model, text: Tokens, lookahead: int) -> Probability:
    """The least of Q(x_1 … x_j) p(x_{j+1} … x_k | x_1 … x_j): what block verification accepts."""
    accepted: Probability = 1
    drafted: Probability = 1
    for index, token in enumerate(text):
        drafted = drafted * drafter.next_token(text[:index])[token]
        accepted = min(drafted, accepted * target.next_token(text[:index])[token])
    return accepted


def greedily(target: Model, drafter: Model, text: Tokens, lookahead: int) -> Probability:
    """The lesser of the joint probabilities: what greedy block verification accepts."""
    drawn: Probability = 1
    drafted: Probability = 1
    for index, token in enumerate(text):
        drawn = drawn * target.next_token(text[:index])[token]
        drafted = drafted * drafter.next_token(text[:index])[token]
    return min(drawn, drafted)


def shared(target: Model, drafter: Model) -> Probabilities:
    """q of the drafter's tokens that the target has, over the target's vocabulary."""
    both = intersection(target.vocabulary, drafter.vocabulary)
    return relabel(drafter.next_token(()), both, len(target.vocabulary))


def of_shared(target: Model, drafter: Model, text: Tokens, lookahead: int) -> Probability:
    """Table 2, union: min(p, q) of a token of both vocabularies."""
    (token,) = text
    found: Probability = min(target.next_token(())[token], shared(target, drafter)[token])
    return found


def of_renormalised(target: Model, drafter: Model, text: Tokens, lookahead: int) -> Probability:
    """Table 2, TLI: min(p, q / sum of q over the tokens of both vocabularies)."""
    (token,) = text
    mu = shared(target, drafter)
    mu = normalise(mu) if mu.any() else mu
    found: Probability = min(target.next_token(())[token], mu[token])
    return found


def psi_of(target: Model, drafter: Model, lookahead: int) -> Probabilities:
    """The law of the target's first token of the drafter's text."""
    return psi(target.vocabulary, drafter, (), lookahead)


def matched(target: Model, drafter: Model, text: Tokens, lookahead: int) -> Probability:
    """Table 2, SLEM: p psi."""
    (token,) = text
    found: Probability = target.next_token(())[token] * psi_of(target, drafter, lookahead)[token]
    return found


def of_text(target: Model, drafter: Model, text: Tokens, lookahead: int) -> Probability:
    """Table 2, SLRS: min(p, psi)."""
    (token,) = text
    law = psi_of(target, drafter, lookahead)
    found: Probability = min(target.next_token(())[token], law[token])
    return found


def transported(
    drafts: int, target: Model, drafter: Model, text: Tokens, lookahead: int
) -> Probability:
    """The most that any lossless rule accepts of drafts from q, without replacement."""
    law = drafts_law(drafter.next_token(()), drafts, replacement=False)
    return optimal_acceptance(target.next_token(()), law).acceptance


FORMULAS: Mapping[str, Formula] = MappingProxyType(
    {
        "the product of min(p, q)": Formula(by_token, LONGEST),
        "the least of q(x_1 … x_j) p(x_{j+1} … x_k)": Formula(jointly, LONGEST),
        "the lesser of p(x) and q(x)": Formula(greedily, LONGEST),
        "min(p, q), 0 for what the draft model lacks": Formula(of_shared),
        "min(p, q / sum of q over shared tokens)": Formula(of_renormalised),
        "p psi": Formula(matched),
        "min(p, psi)": Formula(of_text),
        "the optimum of transport of the first draft": Formula(
            partial(transported, 1), total=True
        ),
        OPTIMUM_OF_TWO: Formula(partial(transported, 2), total=True),
    }
)
DECLARED = (
    ("standard", "the product of min(p, q)"),
    ("standard", "the optimum of transport of the first draft"),
    ("block", "the least of q(x_1 … x_j) p(x_{j+1} … x_k)"),
    ("greedy-block", "the lesser of p(x) and q(x)"),
    ("union", "min(p, q), 0 for what the draft model lacks"),
    ("tli", "min(p, q / sum of q over shared tokens)"),
    ("slem", "p psi"),
    ("slrs", "min(p, psi)"),
)
"""Rules, and what they accept: Timor et al. 2025, Table 2, and Sun et al. 2024."""
ONE_VOCABULARY = tuple(
    name for name, rule in RULES.items() if rule.same_vocabulary and rule.lossless
)
BY_TOKEN = tuple(n for n in ONE_VOCABULARY if RULES[n].draws_from_q and n not in GUIDED)
"""Rules with one draft a position, and no estimates."""
SIZES: Mapping[Profile, Sequence[tuple[int, int]]] = MappingProxyType(
    {
        "quick": ((2, 1),),
        "standard": ((2, 1), (2, 2), (3, 1)),
        "thorough": ((2, 1), (2, 2), (3, 1), (2, 3), (3, 2)),
    }
)
"""Tokens of one vocabulary, and lookaheads."""
ITERATIONS = 2
VARIANTS = ("lazy-slrs", "path-slrs")
"""SLRS with other decisions; asked in the profile thorough alone."""
ALL_OF_TWO = tuple(
    name
    for name, rule in RULES.items()
    if not rule.same_vocabulary and rule.step is not autoregressive.step
)
"""Rules for two vocabularies that accept drafts."""
TWO_VOCABULARIES = tuple(name for name in ALL_OF_TWO if name not in VARIANTS)
QUICK_IN_ITERATIONS = ("k-seq", "ngrams")
"""In two iterations no other rule for several drafts, or with estimates, is decided soon."""
OPEN_OVER_THREE = ("ngrams",)
LEFT_OUT = (
    "Over 3 tokens at lookahead 2, and over 2 at lookahead 3: all but block and standard.",
    "N-grams over 3 tokens: most pairs with them are not decided in a minute.",
    "Rules for two vocabularies where both are the same, beyond 2 tokens and lookahead 1: there, "
    "at lookahead 2, block and block-slrs are not decided in 10 s a claim.",
    "These rules at lookahead 2 where the draft model has a token more than the target: SLRS is "
    "not "
    "decided in minutes. Lazy-slrs and path-slrs, unless the vocabularies are the same, beyond "
    "lookahead 1.",
    "Vocabularies that differ in the order of tokens alone.",
    "In two iterations, other rules for several drafts or with estimates: standard and block "
    "against each of them, over 2 tokens at lookahead 1, are not decided in 8 s a claim.",
)
"""What is not asked of pairs of rules in any profile, and why."""


@dataclass(frozen=True)
class Question:
    """Two sides, and the rows for which it is asked which of them accepts more.

    * `left`: A name of `rules.RULES`.
    * `right`: A name of `rules.RULES` or of `FORMULAS`.
    * `iterations`: If more than 1, it is asked of the tokens that so many of them emit.
    """

    left: str
    right: str
    target: tuple[str, ...]
    drafter: tuple[str, ...]
    lookahead: int
    iterations: int = 1

    @property
    def is_formula(self) -> bool:
        """Whether a rule is compared with what it accepts in closed form."""
        return self.right in FORMULAS


@dataclass(frozen=True)
class Answered:
    """What was found for a question.

    * `found`: None where it could not be asked.
    * `note`: Why it could not be asked.
    """

    question: Question
    found: Comparison | None
    seconds: float = 0.0
    note: str = ""


def questions_of(profile: Profile) -> tuple[Question, ...]:
    """All questions: pairs of rules on common shapes, and rules with their closed forms."""
    found: list[Question] = []
    same = [one for one in DECLARED if RULES[one[0]].same_vocabulary]
    pairs = [*combinations(BY_TOKEN, 2), *same]
    for tokens, lookahead in SIZES[profile]:
        letters = ("a", "b", "c")[:tokens]
        large = [("block", "standard"), DECLARED[0]]
        asked = pairs if tokens * lookahead < 6 else large
        found += [Question(*pair, letters, letters, lookahead) for pair in asked]
    for target, drafter in TWO[:3]:
        names = [name for name in TWO_VOCABULARIES if can_read(name, target, drafter)]
        both = [*combinations(names, 2), *(one for one in DECLARED if one[0] in names)]
        found += [Question(*pair, target, drafter, 1) for pair in both]
        # With a token more than the target, SLRS is not decided in minutes at lookahead 2.
        if profile == "thorough" and len(drafter) <= len(target):
            found += [Question(*pair, target, drafter, 2) for pair in combinations(names, 2)]
    if profile == "thorough":
        found += of_all_rules()
        found += in_iterations(ITERATIONS)
    return tuple(found)


def of_all_rules() -> list[Question]:
    """The other pairs of lossless rules on common shapes; `LEFT_OUT` says which are not asked."""
    by_token = set(combinations(BY_TOKEN, 2))
    letters = ("a", "b", "c")
    two = letters[:2]
    found = [
        Question(one, other, two, two, 1) for one, other in product(ONE_VOCABULARY, ALL_OF_TWO)
    ]
    found += [Question(*pair, two, two, 1) for pair in combinations(ALL_OF_TWO, 2)]
    for tokens, lookahead in ((2, 1), (2, 2), (3, 1)):
        names = [name for name in ONE_VOCABULARY if tokens == 2 or name not in OPEN_OVER_THREE]
        pairs = [pair for pair in combinations(names, 2) if pair not in by_token]
        same = letters[:tokens]
        found += [Question(*pair, same, same, lookahead) for pair in pairs]
    optimal = Question("optimal", OPTIMUM_OF_TWO, letters, letters, 1)
    for target, drafter in TWO[:3]:
        names = [name for name in ALL_OF_TWO if can_read(name, target, drafter)]
        pairs = [pair for pair in combinations(names, 2) if pair[1] in VARIANTS]
        found += [Question(*pair, target, drafter, 1) for pair in pairs]
    return [*found, optimal]


def in_iterations(count: int) -> list[Question]:
    """Pairs of rules in several iterations, on the smallest common shapes."""
    letters = ("a", "b")
    found = [
        Question(*pair, letters, letters, lookahead, count)
        for lookahead in (1, 2)
        for pair in combinations(BY_TOKEN, 2)
    ]
    others = product(BY_TOKEN, QUICK_IN_ITERATIONS)
    found += [Question(*pair, letters, letters, 1, count) for pair in others]
    for target, drafter in (TWO[0], TWO[2]):
        names = [name for name in TWO_VOCABULARIES if can_read(name, target, drafter)]
        found += [Question(*both, target, drafter, 1, count) for both in combinations(names, 2)]
    return found


def can_read(name: str, target: Sequence[str], drafter: Sequence[str]) -> bool:
    """Whether a rule by text can read all tokens of the other vocabulary."""
    if not RULES[name].by_text:
        return True
    try:
        for one, other in ((target, drafter), (drafter, target)):
            Vocabulary(one).encode("".join(other))
    except UntokenisableError:
        return False
    return True


def step_of(name: str) -> Step:
    """The step of a rule; estimates of a companion are free numbers."""
    return GUIDED.get(name) or RULES[name].step


def ask(question: Question, seed: int, budget: float) -> Answered:
    started = time.process_time()
    right = FORMULAS.get(question.right) or step_of(question.right)
    rows = Vocabulary(question.target), Vocabulary(question.drafter), question.lookahead
    try:
        found = compare_everywhere(
            step_of(question.left),
            right,
            *rows,
            seed=seed,
            budget=budget,
            iterations=question.iterations,
        )
    except (NotForAllError, TypeError, ValueError, ModuleNotFoundError) as error:
        return Answered(question, None, note=f"{type(error).__name__}: {error}")
    return Answered(question, found, round(time.process_time() - started, 2))


def ask_all(
    questions: Sequence[Question],
    seed: int = 0,
    budget: float = BUDGET,
    executor: Executor | None = None,
    advance: Callable[[Answered], None] = lambda answer: None,
) -> tuple[Answered, ...]:
    """Which of two sides accepts more, for each question.

    * `budget`: Seconds of the processor, for each claim and for each rule that is to be lossless.
    * returns: After Ctrl-C, those that were not reached have the note ``interrupted``.
    """
    answers: list[Answered] = []
    mapped = map if executor is None else executor.map
    try:
        for answer in mapped(ask, questions, repeat(seed), repeat(budget)):
            if answer.found and answer.found.interrupted:
                raise KeyboardInterrupt
            answers.append(answer)
            advance(answer)
    except KeyboardInterrupt:
        answers += [Answered(one, None, note=STOPPED) for one in questions[len(answers) :]]
    return tuple(answers)
