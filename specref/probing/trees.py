"""Exact probing of a tree verification over all trees of a place."""

from collections.abc import Iterator

from specref.chance import enumerate_paths
from specref.contracts.batch import TreeBatch
from specref.contracts.calling import Verifier
from specref.contracts.tree_fixtures import TOP, TreePlace
from specref.contracts.tree_rules import one_row
from specref.models import Model, as_float
from specref.probing.blocks import ProbedBlock, completed_block
from specref.probing.probe import MAX_RUNS, Probed, probe_program
from specref.probing.verification import batch_program
from specref.vocabulary import Tokens


def probe_trees(
    verifier: Verifier,
    target: Model,
    drafter: Model,
    place: TreePlace,
    *,
    max_runs: int = MAX_RUNS,
) -> ProbedBlock:
    """The exact joint law of the completed block over all trees of a place, and its distance.

    Parameters
    ----------
    verifier : Verifier
        An implementation of the contract ``tree``.
    target, drafter : Model
        Over the same vocabulary.
    place : TreePlace
    max_runs : int
        As for `Program`, for each tree.

    Examples
    --------
    >>> from specref.algorithms.trees import topdown
    >>> from specref.contracts.capabilities import Capabilities
    >>> from specref.contracts.tree import TreeVerifier
    >>> from specref.contracts.tree_rules import as_verifier
    >>> from specref.contracts.tree_fixtures import tree_place
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> p, q = (iid_model(Vocabulary("ab"), row) for row in ([0.25, 0.75], [0.5, 0.5]))
    >>> verifier = TreeVerifier(as_verifier(topdown.verify), Capabilities())
    >>> probe_trees(verifier, p, q, tree_place((), (2,))).total_variation < 1e-9
    True
    """
    target, drafter = as_float(target), as_float(drafter)

    def probed() -> Iterator[tuple[Tokens, float, Probed]]:
        for batch, weight in trees_of(target, drafter, place):
            program = batch_program(verifier, batch, max_runs)
            yield shape_of(batch), weight, probe_program(program)

    return completed_block(probed(), target, place.context, place.lookahead + 1)


def trees_of(target: Model, drafter: Model, place: TreePlace) -> Iterator[tuple[TreeBatch, float]]:
    """Each tree that may be drafted at a place, as a batch of one row, and its probability."""
    for path in enumerate_paths(lambda chance: place.tree(drafter, chance)):
        batch = one_row(target, place.context, path.outcome, one_hot=place.way == TOP)
        yield batch, float(path.weight)


def shape_of(batch: TreeBatch) -> Tokens:
    """The tokens of the first tree of a batch, and their parents: what its law is kept by."""
    return (*batch.draft_tokens[0].tolist(), *batch.parents[0].tolist())
