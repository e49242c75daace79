"""Mutants of token trees and of traversal verification."""

from specref.algorithms import trees
from specref.zoo import tree_rules as rules
from specref.zoo.block_pairs import exactly
from specref.zoo.multi_draft_parts import MultiDraftEntry
from specref.zoo.tree_rules import with_rows, with_tree

TREES = (
    MultiDraftEntry(
        "tree-wrong-slice",
        "context",
        clean="trees",
        formula="below sibling j, p after sibling j - 1",
        symptom="Right at the root, and below the eldest siblings.",
        hint="A row belongs to a node: its context is the path from the root.",
        cites=("NVIDIA/TensorRT-LLM#15098",),
        build=with_tree(with_rows(rules.of_elder_sibling)),
        distances=exactly(s1="0", m="0", m3="0", c="491/3240", eos="1741/167310"),
        note="0 for trees of one level.",
    ),
    MultiDraftEntry(
        "tree-row-of-the-parent",
        "context",
        clean="trees",
        formula="below an accepted node, p before it",
        symptom="Right for trees of one level; a token may come twice.",
        hint="The children of a node are verified with the row after it.",
        build=with_tree(with_rows(rules.of_parent)),
        distances=exactly(s1="0", m="0", m3="0", c="10/27", eos="16712447/64782432"),
    ),
    MultiDraftEntry(
        "tree-duplicates-merged",
        "accept",
        clean="trees",
        formula="drawn with replacement; of equal siblings the first is kept, with its subtree",
        symptom="As `siblings-duplicates-skipped`, at every node.",
        hint="Merge nodes for the forward pass alone, and verify every one that was drawn.",
        build=with_tree(trees.verify, rules.drawn_independently, rules.merged),
        distances=exactly(s1="0", m="1/24", m3="1/16", c="1/36", eos="0"),
        note="0 where the first residual is one point mass.",
    ),
    MultiDraftEntry(
        "tree-paths-with-their-own-draws",
        "randomness",
        clean="trees",
        formula="each path is matched with its own draws t ~ p; the longest match wins",
        symptom="Drafted tokens come out too often, the more paths share them.",
        hint="One draw of the target for each node.",
        cites=("foundation-model-stack/fms-extras#12",),
        build=with_tree(rules.paths_apart),
        distances=exactly(s1="1/24", m="7/162"),
    ),
    MultiDraftEntry(
        "traversal-survival-kept",
        "accept",
        clean="traversal",
        formula="after a refusal P as it should be, a as it was",
        symptom="Inner nodes are accepted too often, once their children are refused.",
        hint="a becomes Z / (Z + 1 - a), Z = sum (a P - q)+.",
        build=with_tree(rules.traversed(rules.survival_kept)),
        distances=exactly(s1="0", m="0", m3="0", c="1/12", eos="55/832"),
        note="0 for trees of one level: the root has a = 1 throughout.",
    ),
    MultiDraftEntry(
        "traversal-tokenwise-residual",
        "residual",
        clean="traversal",
        formula="after a refusal P becomes norm((P - q)+), a as it should be",
        symptom="Only the last token of a block that ends inside the tree is off.",
        hint="(a P - q)+: the node itself is not accepted for certain.",
        build=with_tree(rules.traversed(rules.tokenwise)),
        distances=exactly(s1="0", m="0", m3="0", c="1/24", eos="1/156"),
    ),
    MultiDraftEntry(
        "traversal-knows-the-siblings-alone",
        "accept",
        clean="traversal",
        formula="q on the siblings only, a = sum (a P - q)+ / sum of q not yet refused",
        symptom="Wrong for drawn siblings, and far off for the likeliest tokens.",
        hint="q of the whole vocabulary, and Z / (Z + 1 - a); for certain siblings q = 1.",
        cites=("arXiv:2505.12398",),
        build=with_tree(
            rules.traversed(rules.by_remaining_children), rules.top, rules.children_alone
        ),
        distances=exactly(s1="1/3", m="11/48", m3="29/108", c="4/9", eos="4/9"),
        note="As one public implementation has it; siblings are the likeliest tokens.",
    ),
    MultiDraftEntry(
        "traversal-drawn-siblings-alone",
        "accept",
        clean="traversal",
        formula="as `traversal-knows-the-siblings-alone`, siblings drawn without replacement",
        symptom="Less far off.",
        hint="q of the whole vocabulary, and Z / (Z + 1 - a).",
        cites=("arXiv:2505.12398",),
        build=with_tree(rules.traversed(rules.by_remaining_children), submit=rules.children_alone),
        distances=exactly(s1="2/27", m="191/2268", m3="5/72", c="5003/30780"),
    ),
)
