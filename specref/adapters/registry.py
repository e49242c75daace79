"""The implementations that can be judged by name: those of the package, and of its wings."""

from collections.abc import Mapping
from functools import partial

from specref.adapters import reference, torch_backend
from specref.adapters.implementation import Implementation
from specref.contracts.table import RAGGED, STEP, TREE, VERIFY
from specref.wings import table_of

_of_torch = partial(Implementation, packages=torch_backend.PACKAGES, remedy=torch_backend.REMEDY)
OWN = (
    Implementation("reference", STEP, "specref standard, step", lambda: reference.step),
    Implementation(
        "reference-verify", VERIFY, "specref standard, batches", lambda: reference.verify
    ),
    Implementation(
        "reference-ragged", RAGGED, "specref standard, flattened", lambda: reference.verify_ragged
    ),
    Implementation(
        "reference-verify-tree", TREE, "specref trees, row by row", lambda: reference.verify_tree
    ),
    Implementation(
        "reference-verify-tree-traversal",
        TREE,
        "specref traversal, row by row",
        lambda: reference.verify_tree_traversal,
    ),
    _of_torch(
        "torch-backend", VERIFY, "specref torch_backend, batches", torch_backend.load_verify
    ),
    _of_torch(
        "torch-backend-seeded",
        VERIFY,
        "specref torch_backend, a seed for each row",
        torch_backend.load_seeded_verify,
    ),
    _of_torch(
        "torch-backend-ragged",
        RAGGED,
        "specref torch_backend, flattened drafts, logits, a seed for each request",
        torch_backend.load_verify_ragged,
    ),
    Implementation(
        "torch-backend-fused",
        VERIFY,
        "specref torch_backend, Triton kernels",
        torch_backend.load_fused_on_cuda,
        torch_backend.FUSED_PACKAGES,
        torch_backend.FUSED_REMEDY,
    ),
    _of_torch(
        "torch-backend-block",
        VERIFY,
        "specref torch_backend, block verification",
        torch_backend.load_verify_block,
    ),
    _of_torch(
        "torch-backend-tree",
        TREE,
        "specref torch_backend, trees from the root down",
        torch_backend.load_verify_tree,
    ),
    _of_torch(
        "torch-backend-tree-traversal",
        TREE,
        "specref torch_backend, trees by traversal",
        partial(torch_backend.load_verify_tree, rule="traversal"),
    ),
)
IMPLEMENTATIONS: Mapping[str, Implementation] = table_of("implementations", *OWN)
