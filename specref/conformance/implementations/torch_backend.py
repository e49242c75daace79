"""specref's own batched backend, `torch_backend.verification`, under the contract ``verify``."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from specref.conformance.contract import Dtype, capable
from specref.conformance.implementations.needs import require
from specref.losslessness.coins import Coins, draw_coins

if TYPE_CHECKING:
    from torch import Tensor

PACKAGES = ("torch",)
REMEDY = "pip install 'specref[torch]'"
TOLERANCES: Mapping[Dtype, float] = MappingProxyType({"float16": 2.0**-10, "bfloat16": 2.0**-7})


def load_verify(
    device: str = "cpu",
    dtype: Dtype = "float64",
    recovery: Literal["race", "inverse"] = "race",
) -> Callable[..., tuple["Tensor", "Tensor"]]:
    """`verify` with the kit's coins; the last token by a race, or by an inverse CDF.

    Half precision rounds p and q by one unit each: two units are declared as tolerance.

    Raises
    ------
    NotInstalledError
        torch is missing.

    Examples
    --------
    >>> from specref.conformance.suite import check
    >>> check(load_verify(), only=["boundary/certain"]).exit_code
    0
    """
    require(PACKAGES, REMEDY)
    from torch import from_numpy

    from specref.torch_backend import randomness, verification

    @capable(rule="standard", recovery=recovery, row_seeds=True, **_claims(device, dtype))
    def verify(
        target_probs: "Tensor",
        draft_probs: "Tensor | None",
        draft_tokens: "Tensor",
        *,
        rng: np.random.Generator,
        coins: Coins | None = None,
        lens: "Tensor | None" = None,
    ) -> tuple["Tensor", "Tensor"]:
        """`torch_backend.verification.verify` with coins of NumPy."""
        rows, longest, size = target_probs.shape
        given = coins or draw_coins(rows, longest - 1, size, rng)
        last = {"race": given.race} if recovery == "race" else {"final": given.final}
        arrays = {"accept": given.accept, **last}
        drawn = {name: from_numpy(array).to(device) for name, array in arrays.items()}
        return verification.verify(
            target_probs, draft_probs, draft_tokens, lens=lens, coins=randomness.Coins(**drawn)
        )

    return verify


def load_seeded_verify(
    device: str = "cpu", dtype: Dtype = "float64"
) -> Callable[..., tuple["Tensor", "Tensor"]]:
    """`verify` with a seed for each row, drawn from `rng`: judges `randomness.uniforms` as well.

    Raises
    ------
    NotInstalledError
        torch is missing.
    """
    require(PACKAGES, REMEDY)
    from torch import from_numpy

    from specref.torch_backend import randomness, verification

    @capable(rule="standard", **_claims(device, dtype))
    def verify(
        target_probs: "Tensor",
        draft_probs: "Tensor | None",
        draft_tokens: "Tensor",
        *,
        rng: np.random.Generator,
    ) -> tuple["Tensor", "Tensor"]:
        """`torch_backend.verification.verify` with coins of `randomness.row_coins`."""
        seeds = from_numpy(rng.integers(2**63, size=len(draft_tokens))).to(device)
        coins = randomness.row_coins(seeds, 0, draft_tokens.shape[1])
        return verification.verify(target_probs, draft_probs, draft_tokens, coins=coins)

    return verify


def _claims(device: str, dtype: Dtype) -> dict[str, Any]:
    tolerance = TOLERANCES.get(dtype, 0.0)
    return {"arrays": "torch", "device": device, "dtype": dtype, "tolerance": tolerance}
