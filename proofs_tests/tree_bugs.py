"""Planted bugs of tree verification: those of the zoo, and what it has of several drafts alone.

All are builders: branching -> step.
"""

from specref.algorithms import traversal, trees
from specref.algorithms.trees import Node, Tree
from specref.zoo.tree_mutants import TREES
from specref.zoo.tree_rules import drawn_independently, merged, with_tree


def declared(tree: Tree) -> Tree:
    """Every sibling says that it was drawn from what its eldest was drawn from."""
    return tuple(Node(node.token, tree[0].q, declared(node.children)) for node in tree)


BUGS = {mutant.id: mutant.build for mutant in TREES} | {
    "tree, siblings' q not updated": with_tree(trees.verify, submit=declared),
    "traversal, siblings' q not updated": with_tree(traversal.verify, submit=declared),
    "traversal, duplicates merged": with_tree(traversal.verify, drawn_independently, merged),
}
