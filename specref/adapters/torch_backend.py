"""specref's own batched backend, `torch_backend`, under the contracts of batches."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from specref.adapters.needs import NotInstalledError, require
from specref.coins import Coins, draw_coins
from specref.contracts.capabilities import Dtype, capable
from specref.optional import PARTS

if TYPE_CHECKING:
    from torch import Tensor

PACKAGES = ("torch",)
FUSED_PACKAGES = ("torch", "triton")
REMEDY = PARTS["torch"].remedy
FUSED_REMEDY = f"{REMEDY} triton"
Verified: TypeAlias = Callable[..., tuple["Tensor", "Tensor"]]
TOLERANCES: Mapping[Dtype, float] = MappingProxyType({"float16": 2.0**-10, "bfloat16": 2.0**-7})


def load_verify(
    device: str = "cpu",
    dtype: Dtype = "float64",
    recovery: Literal["race", "inverse"] = "race",
) -> Verified:
    """`verify` by given random numbers; the last token by a race, or by an inverse CDF.

    Half precision rounds p and q by one unit each, so two units are declared as tolerance.

    * raises `NotInstalledError`: torch is missing.

    Examples
    --------
    >>> from specref.conformance.public import check
    >>> check(load_verify(), only=["boundary/certain"]).exit_code
    0
    """
    require(PACKAGES, REMEDY)
    from specref.torch_backend.verification import chains

    claims = _claims(device, dtype) | {"rule": "standard", "recovery": recovery}
    return _with_coins(lambda: chains.verify, claims)


def load_fused_verify(device: str = "cpu", dtype: Dtype = "float64") -> Verified:
    """`fused.verify` by given random numbers; without CUDA in Triton's slow interpreter.

    * raises `NotInstalledError`: torch or triton is missing.
    """
    require(FUSED_PACKAGES, FUSED_REMEDY)
    from specref.torch_backend import fused

    claims = _claims(device, dtype) | {"rule": "standard", "recovery": "inverse"}
    return _with_coins(lambda: fused.verify, claims)


def load_fused_on_cuda() -> Verified:
    """`load_fused_verify` on CUDA; all checks would take the interpreter hours.

    * raises `NotInstalledError`: torch, triton or CUDA is missing.
    """
    require(FUSED_PACKAGES, FUSED_REMEDY)
    from torch import cuda

    if not cuda.is_available():
        raise NotInstalledError("no CUDA: these kernels are judged on a GPU")
    return load_fused_verify("cuda")


def load_verify_block(
    device: str = "cpu",
    dtype: Dtype = "float64",
    recovery: Literal["race", "inverse"] = "race",
) -> Verified:
    """`verify_block` by given random numbers; the last token by a race or an inverse CDF.

    * raises `NotInstalledError`: torch is missing.
    """
    require(PACKAGES, REMEDY)
    from specref.torch_backend.verification import block

    claims = _claims(device, dtype) | {"rule": "block", "recovery": recovery}
    return _with_coins(lambda: block.verify_block, claims)


def load_seeded_verify(device: str = "cpu", dtype: Dtype = "float64") -> Verified:
    """`verify` with a seed for each row, drawn from `rng`: tests `randomness.uniforms` as well.

    * raises `NotInstalledError`: torch is missing.
    """
    require(PACKAGES, REMEDY)
    from torch import from_numpy

    from specref.torch_backend import randomness
    from specref.torch_backend.verification import chains

    @capable(rule="standard", **_claims(device, dtype))
    def verify(
        target_probs: "Tensor",
        draft_probs: "Tensor | None",
        draft_tokens: "Tensor",
        *,
        rng: np.random.Generator,
    ) -> tuple["Tensor", "Tensor"]:
        """`chains.verify` with random numbers by `randomness.row_coins`."""
        seeds = from_numpy(rng.integers(2**63, size=len(draft_tokens))).to(device)
        coins = randomness.row_coins(seeds, 0, draft_tokens.shape[1])
        return chains.verify(target_probs, draft_probs, draft_tokens, coins=coins)

    return verify


def load_verify_ragged(device: str = "cpu", dtype: Dtype = "float64") -> Callable[..., Any]:
    """`verify` for drafts of all requests in one array, with logits, temperatures and seeds.

    * raises `NotInstalledError`: torch is missing.
    """
    require(PACKAGES, REMEDY)
    import torch

    from specref.torch_backend import randomness
    from specref.torch_backend.verification import chains

    @capable(rule="standard", **_claims(device, dtype))
    def verify_ragged(
        *,
        draft_token_ids: "Tensor",
        num_draft_tokens: "Tensor",
        target_logits: "Tensor",
        draft_probs: "Tensor | None",
        bonus_logits: "Tensor",
        temperature: "Tensor",
        seeds: "Tensor",
    ) -> tuple["Tensor", "Tensor"]:
        rows, lens = torch.arange(len(seeds), device=device), num_draft_tokens.long()
        most, size = int(lens.max()), target_logits.shape[1]
        drafted = torch.arange(most, device=device) < lens[:, None]
        hot = temperature[:, None]
        p = target_logits.new_zeros(len(rows), most + 1, size)
        p[:, :most][drafted] = (target_logits / hot.repeat_interleave(lens, 0)).softmax(-1)
        p[rows, lens] = (bonus_logits / hot).softmax(-1)
        drafts = torch.full_like(drafted, chains.NO_DRAFT, dtype=torch.int64)
        drafts[drafted] = draft_token_ids.long()
        q = None if draft_probs is None else torch.zeros_like(p[:, :most])
        if q is not None and draft_probs is not None:
            q[drafted] = draft_probs
        coins = randomness.row_coins(seeds, 0, most)
        return chains.verify(p, q, drafts, lens=lens, coins=coins)

    return verify_ragged


def load_verify_tree(
    device: str = "cpu",
    dtype: Dtype = "float64",
    rule: Literal["topdown", "traversal"] = "topdown",
) -> Verified:
    """`verify_tree` by given random numbers; the last token by a race.

    * raises `NotInstalledError`: torch is missing.
    """
    require(PACKAGES, REMEDY)
    from torch import from_numpy

    from specref.torch_backend.randomness import Coins as Drawn
    from specref.torch_backend.verification import trees

    @capable(rule=rule, row_seeds=True, **_claims(device, dtype))
    def verify_tree(
        target_probs: "Tensor",
        draft_probs: "Tensor | None",
        draft_tokens: "Tensor",
        parents: "Tensor",
        *,
        coins: Coins,
    ) -> tuple["Tensor", "Tensor"]:
        accept, race = (from_numpy(one).to(device) for one in (coins.accept, coins.race))
        given = target_probs, draft_probs, draft_tokens, parents
        drawn = Drawn(accept=accept, race=race)
        return trees.verify_tree(*given, rule=rule, coins=drawn)

    return verify_tree


def _with_coins(rule: Callable[[], Verified], claims: Mapping[str, Any]) -> Verified:
    """A rule, looked up at each call, that takes random numbers as NumPy arrays."""
    from torch import from_numpy

    from specref.torch_backend.randomness import Coins as Drawn

    device, race = claims["device"], claims["recovery"] == "race"

    @capable(row_seeds=True, **claims)
    def verify(
        target_probs: "Tensor",
        draft_probs: "Tensor | None",
        draft_tokens: "Tensor",
        *,
        rng: np.random.Generator,
        coins: Coins | None = None,
        lens: "Tensor | None" = None,
    ) -> tuple["Tensor", "Tensor"]:
        rows, longest, size = target_probs.shape
        given = coins or draw_coins(rows, longest - 1, size, rng)
        last = {"race": given.race} if race else {"final": given.final}
        arrays = {"accept": given.accept, **last}
        drawn = Drawn(**{name: from_numpy(one).to(device) for name, one in arrays.items()})
        return rule()(target_probs, draft_probs, draft_tokens, lens=lens, coins=drawn)

    return verify


def _claims(device: str, dtype: Dtype) -> dict[str, Any]:
    tolerance = TOLERANCES.get(dtype, 0.0)
    return {"arrays": "torch", "device": device, "dtype": dtype, "tolerance": tolerance}
