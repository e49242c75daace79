"""Planted bugs of tree verification: those of the zoo, and what it has of several drafts alone.

All are steps that may be told a `branching`.
"""

from specref.algorithms import traversal
from specref.algorithms.trees import topdown
from specref.algorithms.trees.topdown import Node, Tree
from specref.zoo.parts.siblings import distinct
from specref.zoo.trees import ENTRIES, drawn_independently, throughout, with_tree


def declared(tree: Tree) -> Tree:
    """Every sibling says that it was drawn from what its eldest was drawn from."""
    return tuple(Node(node.token, tree[0].q, declared(node.children)) for node in tree)


BUGS = {mutant.id: mutant.step for mutant in ENTRIES} | {
    "tree, siblings' q not updated": with_tree(topdown.verify, submit=declared),
    "traversal, siblings' q not updated": with_tree(traversal.verify, submit=declared),
    "traversal, duplicates merged": with_tree(
        traversal.verify, drawn_independently, throughout(distinct)
    ),
}
