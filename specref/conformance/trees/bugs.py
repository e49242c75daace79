"""Known bugs of tree verification, and lossless rules that accept otherwise.

Those of the zoo are put to trees that are given; the others are seen in trees of a kit alone.
"""

from collections.abc import Mapping
from types import MappingProxyType

from specref.conformance.trees import bug_rules as rules
from specref.conformance.trees.nodes import Verify
from specref.conformance.trees.rules import RULES, Planted
from specref.zoo import Entry, tree_rules
from specref.zoo.entry import Described, Stage
from specref.zoo.multi_draft import MULTI_DRAFT

OF_THE_ZOO: Mapping[str, Verify] = MappingProxyType(
    {
        "siblings-q-not-updated": rules.of_tree(rules.q_of_the_eldest),
        "siblings-rejected-only-zeroed": rules.siblings(left=rules.zeroed),
        "siblings-judged-apart": rules.siblings(left=lambda p, _: p, last=rules.of_the_last),
        "siblings-each-with-its-own-draw": rules.siblings(
            likely=rules.of_target, left=lambda p, _: p
        ),
        "siblings-matched-then-redrawn": rules.one_draw(fresh=True),
        "tree-duplicates-merged": rules.of_tree(tree_rules.merged),
        "tree-wrong-slice": tree_rules.with_rows(tree_rules.of_elder_sibling),
        "tree-row-of-the-parent": tree_rules.with_rows(tree_rules.of_parent),
        "traversal-survival-kept": tree_rules.traversed(tree_rules.survival_kept),
        "traversal-tokenwise-residual": tree_rules.traversed(tree_rules.tokenwise),
        "siblings-drawn-are-certain": rules.of_tree(rules.all_certain),
        "siblings-matched-by-one-draw": rules.one_draw(fresh=False),
    }
)


def _of_the_zoo(id_: str, verify: Verify) -> Entry:
    return _entry(MULTI_DRAFT[id_], verify)


def _entry(known: Described, verify: Verify) -> Entry:
    return Entry(
        known.id,
        known.stage,
        step=Planted(verify),
        formula=known.formula,
        symptom=known.symptom,
        hint=known.hint,
        cites=known.cites,
        lossless=known.lossless,
        note=known.note,
    )


def _own(
    id_: str,
    stage: Stage,
    verify: Verify,
    formula: str,
    symptom: str,
    hint: str,
    *cites: str,
    lossless: bool = False,
) -> Entry:
    return Entry(
        id_,
        stage,
        step=Planted(verify),
        formula=formula,
        symptom=symptom,
        hint=hint,
        cites=cites,
        lossless=lossless,
    )


ENTRIES = (
    *(_of_the_zoo(id_, verify) for id_, verify in OF_THE_ZOO.items()),
    _own(
        "siblings-not-renormalised",
        "residual",
        rules.siblings(left=rules.not_renormalised),
        "P becomes (P - q)+",
        "Younger siblings are accepted too seldom.",
        "Divide by the sum of (P - q)+.",
    ),
    _own(
        "siblings-last-from-p",
        "residual",
        rules.siblings(last=lambda first, p, tree: first),
        "all siblings rejected: the last token from p",
        "Drafts come out too often: accepted, or drawn again.",
        "After rejections the last token is drawn from what they left of p.",
    ),
    _own(
        "siblings-best-first",
        "accept",
        rules.siblings(order=rules.best_first),
        "siblings verified in the order of p / q, the largest first",
        "What the target likes comes out too often.",
        "Verify in the order of drawing, which knows nothing of p.",
    ),
    _own(
        "tree-bonus-of-the-root",
        "bonus",
        rules.bonus_of_the_root,
        "after a leaf the last token from row 0",
        "Only the token after a whole branch is off.",
        "After leaf i the last token is drawn from row i + 1 of target_probs.",
    ),
    _own(
        "tree-topdown",
        "length",
        RULES["topdown"],
        "recursive rejection, from the root down",
        "It does not accept as often as traversal.",
        "what is below a rejected sibling is never read.",
        "arXiv:2305.09781",
        lossless=True,
    ),
    _own(
        "tree-traversal",
        "length",
        RULES["traversal"],
        "a node after everything below it, with what is left of its acceptance",
        "It does not accept as often as top-down verification.",
        "a refused child leaves a P to its parent, and no more.",
        "arXiv:2505.12398",
        lossless=True,
    ),
    _own(
        "tree-eldest-alone",
        "length",
        rules.of_tree(rules.eldest_alone),
        "only the first sibling of each node is verified",
        "It accepts no more than a single draft.",
        "drafts that are not read change nothing.",
        lossless=True,
    ),
)
TREES: Mapping[str, Entry] = MappingProxyType({entry.id: entry for entry in ENTRIES})


def beside(rule: str) -> Mapping[str, Entry]:
    """All but the rule itself."""
    return {id_: entry for id_, entry in TREES.items() if id_ != f"tree-{rule}"}
