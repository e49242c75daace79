"""Mutants and controls of several drafts at a position, of token trees and of traversal.

They sit beside the kit's zoo. Exact distances are those of the completed block on named pairs;
where one is 0 the mutant survives, whatever the test.
"""

from collections.abc import Mapping
from types import MappingProxyType

from specref.distributions import corrected
from specref.zoo import multi_draft_controls
from specref.zoo import multi_draft_rules as rules
from specref.zoo.block_pairs import exactly
from specref.zoo.multi_draft_parts import (
    MultiDraftEntry,
    drawn_independently,
    sibling_rule,
    with_rule,
)
from specref.zoo.tree_mutants import TREES

SIBLINGS = (
    MultiDraftEntry(
        "siblings-q-not-updated",
        "accept",
        clean="siblings",
        formula="x_j drawn without replacement, accepted with min(1, P / q), q that of x_1",
        symptom="Younger siblings come out too often: they were likelier than q says.",
        hint="After a rejection q loses the token and is normalised.",
        cites=("SafeAILab/EAGLE#74",),
        build=with_rule(sibling_rule(submit=rules.eldest_law)),
        distances=exactly(s1="0", m="1/12", m3="1/12", c="1/6", eos="153121/12882870"),
        note="0 where the first residual is one point mass.",
    ),
    MultiDraftEntry(
        "siblings-rejected-only-zeroed",
        "residual",
        clean="siblings",
        formula="P becomes P without x, normalised, in place of norm((P - q)+)",
        symptom="What q drafts too often still does.",
        hint="A rejection takes all of q from P, unless x was certain.",
        cites=("SafeAILab/EAGLE#20",),
        build=with_rule(sibling_rule(left=rules.rejected_zeroed)),
        distances=exactly(
            s1="2/15", m="1174/6237", m3="1174/6237", c="7/135", eos="1240027/7567560"
        ),
    ),
    MultiDraftEntry(
        "siblings-judged-apart",
        "accept",
        clean="siblings",
        formula="x_j accepted with min(1, p / q), P = p for all j; then norm((p - q)+)",
        symptom="min(p, q) comes out k times, the residual too rarely.",
        hint="After a rejection P is norm((P - q)+).",
        cites=("apple/ml-recurrent-drafter",),
        build=with_rule(
            sibling_rule(
                drawn_independently, left=lambda p, x: p, last=lambda p, q: corrected(p, q)
            )
        ),
        distances=exactly(s1="1/6", m="23/144", m3="391/1728", c="11/81", eos="31/192"),
    ),
    MultiDraftEntry(
        "siblings-duplicates-skipped",
        "accept",
        clean="siblings",
        formula="drawn with replacement; x_j = x_i for some i < j is passed over",
        symptom="P is not made less where it should be: trees that merge equal nodes.",
        hint="A duplicate is a sibling: it is rejected, and takes q from P once more.",
        cites=("MasterGodzilla/Speculative_decoding_OT",),
        build=with_rule(sibling_rule(drawn_independently, submit=rules.distinct)),
        distances=exactly(s1="0", m="1/24", m3="1/16", c="1/36", eos="965429/129196782"),
        note="0 where the first residual is one point mass.",
    ),
    MultiDraftEntry(
        "siblings-top-with-soft-q",
        "draft",
        clean="siblings",
        formula="x_1 … x_k the likeliest tokens, verified as if drawn from q",
        symptom="The top of q comes out too often.",
        hint="What is certain has q = 1: accept x with P(x), else P loses x.",
        cites=("NJUNLP/MCSD", "romsto/Speculative-Decoding"),
        build=with_rule(sibling_rule(rules.top)),
        distances=exactly(s1="1/3", m="1/6", m3="1/6", c="139/360", eos="97/144"),
    ),
    MultiDraftEntry(
        "siblings-likeliest-first",
        "draft",
        clean="siblings",
        formula="drawn without replacement, sorted by q, verified as if drawn in that order",
        symptom="Right for siblings drawn with replacement in an order of their own.",
        hint="Keep the order of drawing: that is what q, less the elder, is the law of.",
        cites=("ggml-org/llama.cpp#5625",),
        build=with_rule(sibling_rule(submit=rules.likeliest_first)),
        distances=exactly(s1="11/60", m="343/1980", m3="130/693", c="83/360"),
        note="Top-k kernels return keys in descending order: those of log(u) / q keep it.",
    ),
    MultiDraftEntry(
        "k-seq-with-rho-1",
        "accept",
        clean="multi_draft_rules",
        formula="x_j accepted with min(1, p / q) for all j, residual (p - min(p, q) G)+",
        symptom="No law is left for the residual: some of it would be negative.",
        hint="min(1, p / rho q) with an admissible rho; k always is one.",
        cites=("arXiv:2310.15141",),
        build=with_rule(rules.k_seq_of_one),
        distances=exactly(s1="1/6", m="1/8", m3="61/288", c="19/162", eos="877/5616"),
    ),
    MultiDraftEntry(
        "siblings-each-with-its-own-draw",
        "randomness",
        clean="multi_draft",
        formula="x_j accepted iff t_j = x_j, t_1 … t_k ~ p apart; none accepted: another t ~ p",
        symptom="Drafted tokens come out too often.",
        hint="One draw of the target for each node, whatever is below it.",
        cites=(
            "FasterDecoding/Medusa",
            "FasterDecoding/REST",
            "foundation-model-stack/fms-extras#12",
        ),
        build=with_rule(rules.own_draws),
        distances=exactly(s1="2/9", m="49/216", m3="265/1296", c="7/36", eos="7/32"),
        note="The nucleus acceptance of Medusa and REST, for the likeliest tokens as drafts.",
    ),
    MultiDraftEntry(
        "siblings-matched-then-redrawn",
        "residual",
        clean="multi_draft",
        formula="t ~ p, accepted iff it is a sibling; if not, another t ~ p",
        symptom="Drafted tokens come out too often.",
        hint="t is the token, accepted or not.",
        build=with_rule(rules.redrawn),
        distances=exactly(s1="4/45", m="4093/47520", m3="1207/12096", c="11/90"),
    ),
)

MUTANTS = (*SIBLINGS, *TREES)
MULTI_DRAFT: Mapping[str, MultiDraftEntry] = MappingProxyType(
    {entry.id: entry for entry in (*MUTANTS, *multi_draft_controls.LOSSLESS)}
)
