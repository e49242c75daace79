"""economize: its `RejectionVerifier`, for batches of drafts and for trees."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from specref.adapters.needs import imported, require, require_parameters
from specref.contracts.capabilities import capable

if TYPE_CHECKING:
    import numpy as np

PACKAGES = ("torch", "transformers", "economize")
REMEDY = "pip install economize"
CLAIMS: dict[str, Any] = {"inputs": "logits", "arrays": "torch", "dtype": "float32"}


def load_verify(tree: bool = False) -> Callable[..., Any]:
    """The verifier with a sampler that changes nothing, under ``verify`` or ``tree``."""
    require(PACKAGES, REMEDY)
    from torch import arange, cat, full

    made, draft_of, config, sampler = (
        imported(f"economize.decoding.{module}", name)
        for module, name in (
            ("verifiers", "RejectionVerifier"), ("protocols", "Draft"),
            ("config", "DecodeConfig"), ("selectors", "TopPSampler"),
        )
    )  # fmt: skip
    require_parameters(sampler, "TopPSampler", ("temperature", "top_p", "seed"), ("device",), 2)
    verifier = made(config(verifier="rejection"))

    def given(rng: "np.random.Generator", q: Any, x: Any, parents: Any = None) -> Any:
        lengths = (x >= 0).sum(dim=1).tolist()
        drafts = draft_of(x, lengths, parents, None if q is None else q.softmax(-1))
        return drafts, sampler(1.0, 1.0, seed=int(rng.integers(2**63)))

    @capable(rule="standard", **CLAIMS)
    def verify(p: Any, q: Any, x: Any, *, rng: "np.random.Generator") -> Any:
        kept, last = verifier.verify_batch(p, *given(rng, q, x), None, None)
        tokens = cat([x, last[:, None]], dim=1).scatter(1, kept[:, None], last[:, None])
        return tokens.where(arange(tokens.shape[1]) <= kept[:, None], -1), kept + 1

    @capable(rule="topdown", **CLAIMS)
    def verify_tree(p: Any, q: Any, x: Any, parents: Any, *, rng: "np.random.Generator") -> Any:
        paths, last = verifier.verify_tree(p, *given(rng, q, x, parents))
        tokens = full((len(x), x.shape[1] + 1), -1)
        for row, (path, final) in enumerate(zip(paths, last, strict=True)):
            tokens[row, : len(path) + 1] = x.new_tensor([*x[row, path].tolist(), final])
        return tokens, (tokens >= 0).sum(dim=1)

    return verify_tree if tree else verify
