"""The table of rules: every one that is proved here, what it needs, and what is known of it.

Each rule has a `step`. What else there is of it is optional: a closed form of acceptance, whether
it accepts every draft where p = q. Whoever asks for a part that a rule lacks reports that as not
applicable.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Literal, TypeAlias

from specref.algorithms import (
    Step,
    autoregressive,
    block,
    block_slrs,
    companion,
    companion_rejecting,
    greedy_block,
    lazy_slrs,
    multi_draft,
    multi_draft_rules,
    ngrams,
    path_slrs,
    slem,
    slrs,
    standard,
    tli,
    traversal,
    trees,
    union,
)
from specref.chance import Chance
from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.theory import accepted_length_distribution, conditional_psi
from specref.theory import block as block_theory
from specref.theory import multi_draft as multi_draft_theory
from specref.theory import trees as trees_theory
from specref.theory.transport import drafts_law, optimal_acceptance
from specref.vocabulary import Tokens

Vocabularies: TypeAlias = Literal["one", "two", "two by text"]
Lengths: TypeAlias = Callable[[Model, Model, Tokens, int], tuple[Probability, ...]]
First: TypeAlias = Callable[[Probabilities, Probabilities], Probability]

LEVIATHAN = "Leviathan et al. 2023"
TIMOR = "Timor et al. 2025"
SUN = "Sun et al. 2024 (block verification)"
MIAO = "Miao et al. 2023 (SpecInfer)"
KIM = "Kim et al. 2025"
DRAFTS = 2
"""Siblings that rules for several drafts of a token are given here."""


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
    tree : bool
        Whether drafts form a tree.
    accepts_equals : bool
        Whether every draft is accepted where p = q.
    accepted_lengths : callable, optional
        (target, drafter, context, lookahead) -> P(accepted length = 0), P(= 1), ….
    accepts_first : callable, optional
        (p, q) -> the probability that a draft of the first position is accepted; for rules
        without `accepted_lengths`.
    lossless : bool
        False for one that is published, and refuted.
    """

    name: str
    papers: tuple[str, ...]
    step: Step
    vocabularies: Vocabularies = "one"
    tree: bool = False
    accepts_equals: bool = False
    accepted_lengths: Lengths | None = None
    accepts_first: First | None = None
    lossless: bool = True

    @property
    def same_vocabulary(self) -> bool:
        """Whether it is for drafters with the target's vocabulary alone."""
        return self.vocabularies == "one"

    @property
    def by_text(self) -> bool:
        """Whether target and drafter have to read each other's text."""
        return self.vocabularies == "two by text"


def _lengths(name: str) -> Lengths:
    return partial(accepted_length_distribution, name)


def _block_slrs_lengths(
    target: Model, drafter: Model, context: Tokens, lookahead: int
) -> tuple[Probability, ...]:
    seen = drafter.vocabulary.encode(target.vocabulary.decode(context))
    rows = conditional_psi(target.vocabulary, drafter, seen, lookahead)
    return block_theory.accepted_length_distribution(target, context, rows)


def _tree_lengths(rule: str) -> Lengths:
    def lengths(
        target: Model, drafter: Model, context: Tokens, lookahead: int
    ) -> tuple[Probability, ...]:
        branching = trees.branching_of(lookahead)
        law = trees_theory.accepted_length_distribution(
            target, drafter, context, branching, rule=rule
        )
        return law[: max(length for length, mass in enumerate(law, 1) if mass > 0)]

    return lengths


def _several(name: str, paper: str, rule: multi_draft.Rule, first: First) -> Rule:
    step = partial(multi_draft.step, drafts=DRAFTS, rule=rule)
    return Rule(name, (paper,), step, accepts_first=first)


def _k_seq(p: Probabilities, q: Probabilities) -> Probability:
    rho = multi_draft_theory.smallest_rho(p, q, DRAFTS)
    return multi_draft_theory.k_seq(p, q, DRAFTS, rho)


def _matching(p: Probabilities, q: Probabilities) -> Probability:
    return multi_draft_theory.matching(p, drafts_law(q, DRAFTS, replacement=False))


def _optimum(p: Probabilities, q: Probabilities) -> Probability:
    return optimal_acceptance(p, drafts_law(q, DRAFTS, replacement=False)).acceptance


def between(target: Model, drafter: Model) -> Model:
    """A companion for proofs: halfway between target and drafter."""

    def next_token(context: Tokens) -> Probabilities:
        row: Probabilities = (target.next_token(context) + drafter.next_token(context)) / 2
        return row

    return Model(target.vocabulary, next_token)


def likely(rates: Sequence[Probability]) -> int:
    """How many rates come before the first below 3/4."""
    return next((k for k, rate in enumerate(rates) if 4 * rate < 3), len(rates))


def guided(
    step: Callable[..., Tokens],
    estimate: Callable[..., Probability],
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
) -> Tokens:
    """One iteration of companion-guided verification, with a companion and a length for proofs."""
    third = between(target, drafter)
    told = {"companion": third, "estimate": estimate, "length": likely}
    return step(target, drafter, context, lookahead, chance, **told)


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
        accepted_lengths=_lengths("autoregressive"),
    ),
    Rule(
        "standard",
        (f"{LEVIATHAN}, Algorithm 1", "Chen et al. 2023, Algorithm 2", f"{TIMOR}, Algorithm 5"),
        standard.step,
        accepts_equals=True,
        accepted_lengths=_lengths("standard"),
    ),
    Rule(
        "union",
        (f"{TIMOR}, Algorithm 1",),
        union.step,
        vocabularies="two",
        accepts_equals=True,
        accepted_lengths=_lengths("union"),
    ),
    Rule(
        "tli",
        (f"{TIMOR}, Algorithm 4",),
        tli.step,
        vocabularies="two",
        accepts_equals=True,
        accepted_lengths=_lengths("tli"),
    ),
    Rule(
        "slem",
        (f"{TIMOR}, Algorithm 2",),
        slem.step,
        vocabularies="two by text",
        accepted_lengths=_lengths("slem"),
    ),
    Rule(
        "slrs",
        (f"{TIMOR}, Algorithm 3",),
        slrs.step,
        vocabularies="two by text",
        accepts_equals=True,
        accepted_lengths=_lengths("slrs"),
    ),
    Rule(
        "block",
        (f"{SUN}, Algorithm 2",),
        block.step,
        accepts_equals=True,
        accepted_lengths=_lengths("block"),
    ),
    # An iteration emits the tokens that it owes, too: its length says nothing of acceptance.
    Rule("greedy-block", (f"{SUN}, appendix",), greedy_block.step),
    Rule(
        "block-slrs",
        (f"{TIMOR}, Algorithm 3", f"{SUN}, Algorithm 2"),
        block_slrs.step,
        vocabularies="two by text",
        accepted_lengths=_block_slrs_lengths,
    ),
    Rule(
        "lazy-slrs",
        (f"{TIMOR}, Algorithm 3",),
        lazy_slrs.step,
        vocabularies="two by text",
        accepted_lengths=_lengths("slrs"),
    ),
    Rule("path-slrs", (f"{TIMOR}, Algorithm 3",), path_slrs.step, vocabularies="two by text"),
    _several(
        "recursive-rejection",
        f"{MIAO}; Jeon et al. 2024",
        multi_draft.recursive_rejection,
        partial(multi_draft_theory.recursive_rejection, drafts=DRAFTS, replacement=False),
    ),
    _several(
        "matching",
        MIAO,
        multi_draft.matching,
        _matching,
    ),
    _several("k-seq", "Sun et al. 2023 (SpecTr)", multi_draft_rules.k_seq, _k_seq),
    _several(
        "top-drafts",
        "Hu et al. 2025",
        multi_draft_rules.top_drafts,
        partial(multi_draft_theory.top_drafts, drafts=DRAFTS),
    ),
    _several(
        "spechub",
        "Sun et al. 2024 (SpecHub)",
        multi_draft_rules.spechub,
        partial(multi_draft_theory.top_drafts, drafts=DRAFTS),
    ),
    _several(
        "optimal",
        "Sun et al. 2023 (SpecTr)",
        multi_draft_rules.optimal,
        _optimum,
    ),
    Rule(
        "topdown",
        (MIAO, "Chen et al. 2024 (Sequoia)"),
        trees.step,
        tree=True,
        accepts_equals=True,
        accepted_lengths=_tree_lengths("topdown"),
    ),
    Rule(
        "traversal",
        ("Weng et al. 2025",),
        traversal.step,
        tree=True,
        accepts_equals=True,
        accepted_lengths=_tree_lengths("traversal"),
    ),
    Rule("ngrams", ("Stewart et al. 2024 (The N-Grammys)",), ngrams.step),
    Rule(
        "companion",
        (f"{KIM}, repaired: decided before the draw",),
        partial(guided, companion.predictable_step, lambda similarity: similarity),
    ),
    Rule(
        "companion-rejecting",
        (f"{KIM}, repaired: what is not verified is rejected",),
        partial(guided, companion_rejecting.step, lambda similarity, acceptance: acceptance),
    ),
    Rule(
        "companion-published",
        (f"{KIM}, sections 4.2 and 5",),
        partial(guided, companion.step, lambda similarity, acceptance: acceptance),
        lossless=False,
    ),
)
