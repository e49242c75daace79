"""The table of all rules: what each needs, and which closed forms it has.

A rule is listed here once, and every other list of rules is made from this one.
"""

from collections.abc import Mapping
from functools import partial

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
from specref.algorithms.companion.companion import guided
from specref.algorithms.trees import topdown
from specref.algorithms.trees.k_seq import smallest_rho
from specref.algorithms.trees.transport import drafts_law, optimal_acceptance
from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.rule import First, Lengths, Rule
from specref.theory import acceptance
from specref.theory import multi_draft as multi_draft_theory
from specref.theory import trees as trees_theory
from specref.vocabulary import Tokens
from specref.wings import table_of

LEVIATHAN = "Leviathan et al. 2023"
TIMOR = "Timor et al. 2025"
SUN = "Sun et al. 2024"
MIAO = "Miao et al. 2023 (SpecInfer)"
KIM = "Kim et al. 2025"
RATIO = "A = A * min(1, p[x] / q[x])"
TEXT = "A = A * min(1, p[x] / psi[x])"
MATCHED = "A = sum(p[y] for y in S)"
SIBLINGS = (
    "r[y] = max(p[y] - q[y], 0) / sum(max(p[z] - q[z], 0) for z in V)\n"
    "s[y] = q[y] / (1 - q[x_1])\n"
    "a_1 = min(1, p[x_1] / q[x_1])\na_2 = min(1, r[x_2] / s[x_2])\n"
)
CHILDREN = "A = b_1 + (1 - a_1) * b_2"
HUB = "s[y] = q[y] / (1 - q[h])\nA = p[h] + sum(min(p[y], s[y]) for y in V - {h})"
FIT = "A = A * (x in F) * min(1, p[x] / q[x])"
BONUS = (
    "the bonus token is from p, not from the residual (Alg. 5, line 12, of the earlier edition)"
)
DEFAULT = "standard"
"""The rule that is meant where none is declared."""
DRAFTS = 2
"""Siblings that rules for several drafts of a token are given here."""


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
    formula: str,
    when: str,
    differs: str = "",
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
        formula=formula,
        when=when,
        differs=differs,
    )


def _k_seq(p: Probabilities, q: Probabilities) -> Probability:
    rho = smallest_rho(p, q, DRAFTS)
    return multi_draft_theory.k_seq(p, q, DRAFTS, rho)


def _matching(p: Probabilities, q: Probabilities) -> Probability:
    return multi_draft_theory.matching(p, drafts_law(q, DRAFTS, replacement=False))


def _optimum(p: Probabilities, q: Probabilities) -> Probability:
    return optimal_acceptance(p, drafts_law(q, DRAFTS, replacement=False)).acceptance


RULES: Mapping[str, Rule] = table_of(
    "rules",
    Rule(
        "autoregressive",
        ("the definition",),
        autoregressive.step,
        vocabularies="two",
        accepted_lengths=acceptance.autoregressive,
        sampled=True,
        formula="A = 0",
        when="If nothing is drafted. Other rules are compared with it.",
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
        formula=RATIO,
        when="For one chain of draft tokens from the target's vocabulary: the least code.",
        differs=BONUS,
        printed=("algorithm-5-as-printed",),
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
        formula=RATIO,
        when="As the simplest rule for two vocabularies. TLI accepts at least as much.",
        differs=f"q' in line 4; what the target lacks is rejected, not dropped; {BONUS}",
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
        formula="t[y] = q[y] / sum(q[z] for z in T & D)\nA = A * min(1, p[x] / t[x])",
        when="For two vocabularies that share most of what is drafted.",
        differs=f"q' is on shared tokens; drafts nothing where q has no mass there; {BONUS}",
    ),
    Rule(
        "slem",
        (f"{TIMOR}, Algorithm 2",),
        slem.step,
        vocabularies="two by text",
        accepted_lengths=acceptance.slem,
        sampled=True,
        vectors=True,
        formula="A = A * p[x]",
        when="For two vocabularies that read each other's text and share little, without psi.",
        differs="stops at the first mismatch, not at the argmin; keeps the target's token ids",
        printed=("slem-first-match", "slem-context-retokenised"),
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
        formula=TEXT,
        when="For two vocabularies that read each other's text and share little, with psi.",
        differs="psi is a push-forward; n draft tokens, not n + 1; several tokens an iteration",
        printed=(
            "slrs-exact-decompositions",
            "slrs-lookahead-off-by-one",
            "slrs-fall-through",
            "slrs-single-token",
        ),
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
        formula="A = min(1, A * p[x] / q[x])",
        when="For one chain of draft tokens: on average it accepts at least as many as standard.",
        differs="random numbers are drawn from the last draft token back, not from the first on",
        printed=("block-tossed-forwards",),
    ),
    # An iteration emits the tokens that it owes, too: its length says nothing of acceptance.
    Rule(
        "greedy-block",
        (f"{SUN}, appendix",),
        greedy_block.step,
        accepts_equals=True,
        formula="W = W * p[x] / q[x]\nA = min(1, W)",
        when="If you stop after one iteration: it accepts the most there, and pays later.",
    ),
    Rule(
        "block-slrs",
        (f"{TIMOR}, Algorithm 3", f"{SUN}, Algorithm 2"),
        block_slrs.step,
        vocabularies="two by text",
        accepts_equals=True,
        accepted_lengths=acceptance.block_by_text,
        formula="A = min(1, A * p[x] / psi[x])",
        when="In place of SLRS, if draft tokens may be accepted jointly.",
        differs="block verification of psi, which the paper does not have",
    ),
    Rule(
        "lazy-slrs",
        (f"{TIMOR}, Algorithm 3",),
        lazy_slrs.step,
        vocabularies="two by text",
        accepts_equals=True,
        accepted_lengths=acceptance.slrs,
        formula=TEXT,
        when="In place of SLRS: it accepts the same, with bounds of psi.",
        differs="decides by bounds of psi",
    ),
    Rule(
        "path-slrs",
        (f"{TIMOR}, Algorithm 3",),
        path_slrs.step,
        vocabularies="two by text",
        formula="A = min(1, p[x] * kappa[d, x] / Q[d])",
        when="For two vocabularies by text, without psi. It accepts as much as SLRS, or less.",
        differs="decides by the drafted path, without psi",
    ),
    _several(
        "recursive-rejection",
        f"{MIAO}; Jeon et al. 2024",
        multi_draft.recursive_rejection,
        partial(multi_draft_theory.recursive_rejection, drafts=DRAFTS, replacement=False),
        formula=SIBLINGS + "A = a_1 + (1 - a_1) * a_2",
        when="For several draft tokens of one position: the default.",
    ),
    _several(
        "matching",
        MIAO,
        multi_draft.matching,
        _matching,
        accepts_equals=False,
        formula=MATCHED,
        when="For several draft tokens of one position, if the sampler draws from p anyway.",
    ),
    _several(
        "k-seq",
        "Sun et al. 2023 (SpecTr)",
        multi_draft.k_seq,
        _k_seq,
        formula="A = 1 - prod(1 - min(1, p[x] / (rho * q[x])) for x in S)",
        when="For several draft tokens of one position that are drawn with replacement.",
        differs="refuses a rho that is lossy",
    ),
    _several(
        "top-drafts",
        "Hu et al. 2025",
        multi_draft.top_drafts,
        partial(multi_draft_theory.top_drafts, drafts=DRAFTS),
        formula=HUB,
        when="For several draft tokens of one position: the likeliest, and one draw outside.",
    ),
    _several(
        "spechub",
        "Sun et al. 2024 (SpecHub)",
        multi_draft.spechub,
        partial(multi_draft_theory.top_drafts, drafts=DRAFTS),
        formula=HUB,
        when="As top-drafts, for two draft tokens of one position.",
    ),
    _several(
        "optimal",
        "Sun et al. 2023 (SpecTr)",
        multi_draft.optimal,
        _optimum,
        formula="A = 1 - max(Q[H] - sum(p[y] for y in H) for H in subsets(V))",
        when="For several draft tokens of one position over a small vocabulary.",
    ),
    Rule(
        "topdown",
        (MIAO, "Chen et al. 2024 (Sequoia)"),
        topdown.step,
        accepts_equals=True,
        accepted_lengths=_of_tree(trees_theory.topdown),
        verify_tree=topdown.verify,
        draws_from_q=False,
        formula=SIBLINGS
        + "b_1 = a_1 * min(1, p_1[y_1] / q_1[y_1])\nb_2 = a_2 * min(1, p_2[y_2] / q_2[y_2])\n"
        + CHILDREN,
        when="For a tree of draft tokens. It reads nothing below a rejected sibling.",
    ),
    Rule(
        "traversal",
        ("Weng et al. 2025",),
        traversal.step,
        accepts_equals=True,
        accepted_lengths=_of_tree(trees_theory.traversal),
        verify_tree=traversal.verify,
        draws_from_q=False,
        formula=SIBLINGS
        + "b_1 = min(1, a_1 * p_1[y_1] / q_1[y_1])\nb_2 = min(1, a_2 * p_2[y_2] / q_2[y_2])\n"
        + CHILDREN,
        when="For a tree whose siblings may repeat: it accepts at least as much as topdown.",
    ),
    Rule(
        "ngrams",
        ("Stewart et al. 2024 (The N-Grammys)",),
        ngrams.step,
        draws_from_q=False,
        formula=MATCHED,
        when="For certain draft tokens, such as continuations that are found in the context.",
        differs="adds sampling: one target draw a position, compared with all draft tokens",
    ),
    Rule(
        "companion",
        (f"{KIM}, repaired: decided before the draw",),
        partial(guided, companion.predictable_step, lambda similarity: similarity),
        accepts_equals=True,
        formula=RATIO,
        when="If a third model says how many draft tokens to verify, before each is drawn.",
        differs="decides before each draft token is drawn",
    ),
    Rule(
        "companion-rejecting",
        (f"{KIM}, repaired: what is not verified is rejected",),
        partial(guided, rejecting.step, lambda similarity, acceptance: acceptance),
        accepts_equals=True,
        formula=FIT,
        when="If a third model judges draft tokens that were drawn.",
        differs="what the companion declines counts as rejected",
    ),
    Rule(
        "companion-published",
        (f"{KIM}, sections 4.2 and 5",),
        partial(guided, companion.step, lambda similarity, acceptance: acceptance),
        accepts_equals=True,
        lossless=False,
        formula=FIT,
        when="Never for sampling: it is lossy there.",
    ),
)


def rule_of(algorithm: str) -> Rule:
    """The rule of a name."""
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
