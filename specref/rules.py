"""The table of all rules: what each needs, and which closed forms it has.

A rule is listed here once, and every other list of rules is made from this one. Each rule has a
`step`. What else there is of it is optional: a closed form of what is accepted, a verification of
drafts that are given. Where a part is asked for that a rule
lacks, it is reported as not applicable.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias

from specref.algorithms import (
    autoregressive,
    block,
    block_slrs,
    companion,
    greedy_block,
    lazy_slrs,
    multi_draft,
    ngrams,
    path_slrs,
    slem,
    slrs,
    standard,
    tli,
    traversal,
    union,
)
from specref.algorithms.companion import rejecting
from specref.algorithms.companion.guided import guided
from specref.algorithms.decoding import Step
from specref.algorithms.standard import Draft
from specref.algorithms.trees import topdown
from specref.algorithms.trees.k_seq import smallest_rho
from specref.algorithms.trees.transport import drafts_law, optimal_acceptance
from specref.chance import Chance
from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.theory import acceptance
from specref.theory import multi_draft as multi_draft_theory
from specref.theory import trees as trees_theory
from specref.vocabulary import Tokens

Vocabularies: TypeAlias = Literal["one", "two", "two by text"]
CoinOrder: TypeAlias = Literal["token by token", "jointly"]
First: TypeAlias = Callable[[Probabilities, Probabilities], Probability]
Verify: TypeAlias = Callable[[Model, Tokens, list[Draft], Chance], Tokens]

LEVIATHAN = "Leviathan et al. 2023"
TIMOR = "Timor et al. 2025"
SUN = "Sun et al. 2024"
MIAO = "Miao et al. 2023 (SpecInfer)"
KIM = "Kim et al. 2025"
DEFAULT = "standard"
"""The rule that is meant where none is declared."""
DRAFTS = 2
"""Siblings that rules for several drafts of a token are given here."""


class Lengths(Protocol):
    """A closed form: P(accepted length = 0), P(= 1), … of one iteration."""

    def __call__(
        self, target: Model, drafter: Model, context: Tokens = (), lookahead: int = 1
    ) -> tuple[Probability, ...]:
        """As far as it is positive."""
        ...


@dataclass(frozen=True)
class Rule:
    """A rule of verification, with whatever it drafts by.

    Attributes
    ----------
    name : str
        What it is called everywhere.
    papers : tuple of str
        Where it is from, with numbers of algorithms.
    step : callable
        One iteration, as all of them: `step(target, drafter, context, lookahead, chance)`.
    vocabularies : {"one", "two", "two by text"}
        Whether the drafter has the target's vocabulary; if not, whether each has to read the
        other's text.
    restricts : bool
        Whether the drafter never drafts what the target lacks, but draws from the rest of q,
        renormalised.
    accepts_equals : bool
        Whether a draft that is verified is accepted at every position where p = q.
    accepted_lengths : callable, optional
        (target, drafter, context, lookahead) -> P(accepted length = 0), P(= 1), ….
    accepts_first : callable, optional
        (p, q) -> the probability that a draft of the first position is accepted; for rules
        without `accepted_lengths`.
    sampled : bool
        Whether the main job draws blocks of it by the million, too.
    verify : callable, optional
        (target, context, drafts, chance) -> block, for drafts over the target's vocabulary that
        are given: what samplers of the contract ``verify`` do.
    coins : {"token by token", "jointly"}, optional
        How `verify` decides by one coin for each draft: it keeps drafts up to the first coin
        that fails, or up to the last that succeeds.
    verify_tree : callable, optional
        (target, context, tree, chance) -> block. Drafts of such a rule form a tree.
    draws_from_q : bool
        Whether a position has one draft, drawn from the drafter's law. No lossless rule keeps the
        first of such drafts more often than sum min(p, q).
    vectors : bool
        Whether test vectors of it are published; they cite its first paper.
    lossless : bool
        False for one that is published, and refuted.
    """

    name: str
    papers: tuple[str, ...]
    step: Step
    vocabularies: Vocabularies = "one"
    restricts: bool = False
    accepts_equals: bool = False
    accepted_lengths: Lengths | None = None
    accepts_first: First | None = None
    sampled: bool = False
    verify: Verify | None = None
    coins: CoinOrder | None = None
    verify_tree: topdown.Verify | None = None
    draws_from_q: bool = True
    vectors: bool = False
    lossless: bool = True

    def __post_init__(self) -> None:
        if (self.verify is None) != (self.coins is None):
            raise ValueError(f"coins = {self.coins!r}: expected with `verify`, and only then")

    @property
    def tree(self) -> bool:
        """Whether drafts form a tree."""
        return self.verify_tree is not None

    @property
    def same_vocabulary(self) -> bool:
        """Whether it is for drafters with the target's vocabulary alone."""
        return self.vocabularies == "one"

    @property
    def by_text(self) -> bool:
        """Whether target and drafter have to read each other's text."""
        return self.vocabularies == "two by text"

    def acceptance_rate(
        self, target: Model, drafter: Model, context: Tokens = (), lookahead: int = 1
    ) -> Probability:
        """The probability that the first submitted token is accepted, in closed form.

        0 where nothing can be submitted: an empty intersection, lookahead 0. Any other lookahead
        matters for rules by text alone.

        Raises
        ------
        ValueError
            No closed form is known; or models, context or lookahead are bad.

        Examples
        --------
        >>> from specref.models import iid_model
        >>> from specref.vocabulary import Vocabulary
        >>> target = iid_model(Vocabulary("ab"), ["2/3", "1/3"])
        >>> drafter = iid_model(Vocabulary("abc"), ["1/3", "1/3", "1/3"])
        >>> [str(RULES[name].acceptance_rate(target, drafter)) for name in ("union", "tli")]
        ['2/3', '5/6']
        """
        return acceptance.rate(self._lengths(target, drafter, context, lookahead))

    def acceptance_by_position(
        self, target: Model, drafter: Model, context: Tokens = (), lookahead: int = 1
    ) -> tuple[Probability, ...]:
        """The probability of each acceptance given the earlier ones, while it is positive.

        Errors as `acceptance_rate`.

        Examples
        --------
        >>> from specref.models import iid_model
        >>> from specref.vocabulary import Vocabulary
        >>> vocabulary = Vocabulary("ab")
        >>> p, q = iid_model(vocabulary, ["1/3", "2/3"]), iid_model(vocabulary, ["2/3", "1/3"])
        >>> RULES["standard"].acceptance_by_position(p, q, lookahead=2)
        (Fraction(2, 3), Fraction(2, 3))
        """
        return acceptance.by_position(self._lengths(target, drafter, context, lookahead))

    def _lengths(
        self, target: Model, drafter: Model, context: Tokens, lookahead: int
    ) -> tuple[Probability, ...]:
        if self.accepted_lengths is None:
            raise ValueError(
                f"rule {self.name!r}: no closed form of the number of accepted tokens is known"
            )
        return self.accepted_lengths(target, drafter, context, lookahead)


def _of_tree(read: trees_theory.Read) -> Lengths:
    def lengths(
        target: Model, drafter: Model, context: Tokens = (), lookahead: int = 1
    ) -> tuple[Probability, ...]:
        branching = topdown.branching_of(lookahead)
        law = trees_theory.accepted_length_distribution(
            target, drafter, context, branching, rule=read
        )
        return law[: max(length for length, mass in enumerate(law, 1) if mass > 0)]

    return lengths


def _several(
    name: str,
    paper: str,
    rule: multi_draft.PositionRule,
    first: First,
    *,
    accepts_equals: bool = True,
) -> Rule:
    step = partial(multi_draft.step, drafts=DRAFTS, rule=rule)
    return Rule(
        name,
        (paper,),
        step,
        accepts_equals=accepts_equals,
        accepts_first=first,
        draws_from_q=False,
    )


def _k_seq(p: Probabilities, q: Probabilities) -> Probability:
    rho = smallest_rho(p, q, DRAFTS)
    return multi_draft_theory.k_seq(p, q, DRAFTS, rho)


def _matching(p: Probabilities, q: Probabilities) -> Probability:
    return multi_draft_theory.matching(p, drafts_law(q, DRAFTS, replacement=False))


def _optimum(p: Probabilities, q: Probabilities) -> Probability:
    return optimal_acceptance(p, drafts_law(q, DRAFTS, replacement=False)).acceptance


def _table(*rules: Rule) -> Mapping[str, Rule]:
    table = {rule.name: rule for rule in rules}
    assert len(table) == len(rules), "two rules of one name"
    return MappingProxyType(table)


RULES: Mapping[str, Rule] = _table(
    Rule(
        "autoregressive",
        ("the definition",),
        autoregressive.step,
        vocabularies="two",
        accepted_lengths=acceptance.autoregressive,
        sampled=True,
    ),
    Rule(
        "standard",
        (f"{LEVIATHAN}, Algorithm 1", "Chen et al. 2023, Algorithm 2", f"{TIMOR}, Algorithm 5"),
        standard.step,
        accepts_equals=True,
        accepted_lengths=acceptance.standard,
        sampled=True,
        verify=standard.verify,
        coins="token by token",
        vectors=True,
    ),
    Rule(
        "union",
        (f"{TIMOR}, Algorithm 1",),
        union.step,
        vocabularies="two",
        accepts_equals=True,
        accepted_lengths=acceptance.union,
        sampled=True,
        vectors=True,
    ),
    Rule(
        "tli",
        (f"{TIMOR}, Algorithm 4",),
        tli.step,
        vocabularies="two",
        restricts=True,
        accepts_equals=True,
        accepted_lengths=acceptance.tli,
        sampled=True,
        vectors=True,
    ),
    Rule(
        "slem",
        (f"{TIMOR}, Algorithm 2",),
        slem.step,
        vocabularies="two by text",
        accepted_lengths=acceptance.slem,
        sampled=True,
        vectors=True,
    ),
    Rule(
        "slrs",
        (f"{TIMOR}, Algorithm 3",),
        slrs.step,
        vocabularies="two by text",
        accepts_equals=True,
        accepted_lengths=acceptance.slrs,
        sampled=True,
        vectors=True,
    ),
    Rule(
        "block",
        (f"{SUN}, Algorithm 2",),
        block.step,
        accepts_equals=True,
        accepted_lengths=acceptance.block,
        sampled=True,
        verify=block.verify,
        coins="jointly",
        vectors=True,
    ),
    # An iteration emits the tokens that it owes, too: its length says nothing of acceptance.
    Rule("greedy-block", (f"{SUN}, appendix",), greedy_block.step, accepts_equals=True),
    Rule(
        "block-slrs",
        (f"{TIMOR}, Algorithm 3", f"{SUN}, Algorithm 2"),
        block_slrs.step,
        vocabularies="two by text",
        accepts_equals=True,
        accepted_lengths=acceptance.block_by_text,
    ),
    Rule(
        "lazy-slrs",
        (f"{TIMOR}, Algorithm 3",),
        lazy_slrs.step,
        vocabularies="two by text",
        accepts_equals=True,
        accepted_lengths=acceptance.slrs,
    ),
    Rule("path-slrs", (f"{TIMOR}, Algorithm 3",), path_slrs.step, vocabularies="two by text"),
    _several(
        "recursive-rejection",
        f"{MIAO}; Jeon et al. 2024",
        multi_draft.recursive_rejection,
        partial(multi_draft_theory.recursive_rejection, drafts=DRAFTS, replacement=False),
    ),
    _several("matching", MIAO, multi_draft.matching, _matching, accepts_equals=False),
    _several("k-seq", "Sun et al. 2023 (SpecTr)", multi_draft.k_seq, _k_seq),
    _several(
        "top-drafts",
        "Hu et al. 2025",
        multi_draft.top_drafts,
        partial(multi_draft_theory.top_drafts, drafts=DRAFTS),
    ),
    _several(
        "spechub",
        "Sun et al. 2024 (SpecHub)",
        multi_draft.spechub,
        partial(multi_draft_theory.top_drafts, drafts=DRAFTS),
    ),
    _several(
        "optimal",
        "Sun et al. 2023 (SpecTr)",
        multi_draft.optimal,
        _optimum,
    ),
    Rule(
        "topdown",
        (MIAO, "Chen et al. 2024 (Sequoia)"),
        topdown.step,
        accepts_equals=True,
        accepted_lengths=_of_tree(trees_theory.topdown),
        verify_tree=topdown.verify,
        draws_from_q=False,
    ),
    Rule(
        "traversal",
        ("Weng et al. 2025",),
        traversal.step,
        accepts_equals=True,
        accepted_lengths=_of_tree(trees_theory.traversal),
        verify_tree=traversal.verify,
        draws_from_q=False,
    ),
    Rule("ngrams", ("Stewart et al. 2024 (The N-Grammys)",), ngrams.step, draws_from_q=False),
    Rule(
        "companion",
        (f"{KIM}, repaired: decided before the draw",),
        partial(guided, companion.predictable_step, lambda similarity: similarity),
        accepts_equals=True,
    ),
    Rule(
        "companion-rejecting",
        (f"{KIM}, repaired: what is not verified is rejected",),
        partial(guided, rejecting.step, lambda similarity, acceptance: acceptance),
        accepts_equals=True,
    ),
    Rule(
        "companion-published",
        (f"{KIM}, sections 4.2 and 5",),
        partial(guided, companion.step, lambda similarity, acceptance: acceptance),
        accepts_equals=True,
        lossless=False,
    ),
)


def rule_of(algorithm: str) -> Rule:
    """The rule of a name.

    * raises `ValueError`: There is none.
    """
    if algorithm not in RULES:
        raise ValueError(f"algorithm = {algorithm!r}: expected one of {', '.join(RULES)}")
    return RULES[algorithm]


def declarable(*, tree: bool | None = None) -> tuple[str, ...]:
    """The names of the rules that a user's sampler may declare: for trees of drafts, or not.

    Examples
    --------
    >>> declarable(tree=True)
    ('topdown', 'traversal')
    >>> set(declarable()) == {*declarable(tree=True), *declarable(tree=False)}
    True
    """
    lossless = (rule for rule in RULES.values() if rule.lossless)
    return tuple(rule.name for rule in lossless if tree in (None, rule.tree))
