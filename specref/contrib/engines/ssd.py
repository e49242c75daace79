"""tanishqkumar/ssd: `verify` with and without `jit_speculate`, which `Config` sets to False."""

from collections.abc import Callable
from typing import Any

from specref.adapters.needs import require, require_parameters
from specref.contracts.capabilities import capable
from specref.contrib.engines.checkouts import from_checkout

REPOSITORY = "tanishqkumar/ssd"
PACKAGES = ("torch", "transformers")
GIVEN = (
    "logits_p", "logits_q", "speculations", "temperatures_target", "temperatures_draft",
    "cache_hits", "sampler_x", "async_fan_out", "jit_speculate",
)  # fmt: skip
# What is not called: the packages above it import kernels for CUDA.
ABSENT = (
    "ssd.utils.async_helpers.async_spec_helpers.apply_sampler_x_rescaling", "ssd.config.Config",
)  # fmt: skip


def load_verify(jit: bool = True) -> Callable[..., Any]:
    """The function under the contract ``verify``; rows have equally many drafts.

    Drafts without laws are those of a drafter at temperature 0.

    * `jit`: `jit_speculate`, which its scripts set by default. False is what `Config` says; its
      synchronous speculator then names no cache hits.
    """
    require(PACKAGES, "pip install torch transformers")
    from torch import arange, cat, multinomial, nn, tensor

    (function,) = from_checkout(REPOSITORY, "verify", "verify", absent=ABSENT, under="ssd/utils")
    require_parameters(function, "verify", GIVEN, by_position=5)

    @capable(
        rule="standard" if jit else None, inputs="logits", arrays="torch", dtype="float32",
        ragged=False,
    )  # fmt: skip
    def verify(p: Any, q: Any, x: Any) -> Any:
        if not x.shape[1]:  # it is never called for these
            return multinomial(p[:, 0].softmax(-1), 1), x.new_ones(len(x))
        ones = p.new_ones(len(x))
        of_q = nn.functional.one_hot(x, p.shape[2]).float() if q is None else q
        texts, last = function(
            p, of_q, nn.functional.pad(x, (1, 0)), ones, ones * (q is not None), jit_speculate=jit
        )
        kept = tensor([len(text) - 1 for text in texts])  # each begins with the token before
        tokens = cat([x, ones[:, None].long()], dim=1)
        tokens = tokens.scatter(1, kept[:, None], tensor(last)[:, None])
        return tokens.where(arange(tokens.shape[1]) <= kept[:, None], -1), kept + 1

    return verify
