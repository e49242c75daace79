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

    * `verifier`: An implementation of the contract ``tree``.
    * `target`, `drafter`: Over the same vocabulary.
    * `max_runs`: As for `Program`, for each tree.
    """
    target, drafter = as_float(target), as_float(drafter)

    def probed() -> Iterator[tuple[Tokens, float, Probed]]:
        for number, (batch, weight) in enumerate(trees_of(target, drafter, place)):
            program = batch_program(verifier, batch, max_runs)
            yield shape_of(batch), weight, probe_program(program, known=number > 0)

    return completed_block(probed(), target, place.context, place.lookahead + 1)


def trees_of(target: Model, drafter: Model, place: TreePlace) -> Iterator[tuple[TreeBatch, float]]:
    """Each tree that may be drafted at a place, as a batch of one row, and its probability."""
    for path in enumerate_paths(lambda chance: place.tree(drafter, chance)):
        batch = one_row(target, place.context, path.outcome, one_hot=place.way == TOP)
        yield batch, float(path.weight)


def shape_of(batch: TreeBatch) -> Tokens:
    """The tokens of the first tree of a batch, and their parents: what its law is kept by."""
    return (*batch.draft_tokens[0].tolist(), *batch.parents[0].tolist())
