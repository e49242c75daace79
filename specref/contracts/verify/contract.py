"""The contract ``verify``: drafts of a batch in, blocks out."""

from typing import ClassVar, Protocol

import numpy as np

from specref.arrays import Floats, Ints
from specref.coins import Coins
from specref.contracts.batch import Batch
from specref.contracts.contract import BatchContract, Subject
from specref.contracts.fixtures import Fixture
from specref.contracts.sampling import Sampler
from specref.contracts.verify.drawing import sample_batch
from specref.contracts.verify.sampling import Blocks, Iterations


class Verify(Protocol):
    """Contract ``verify``: drafts of a batch in, blocks out.

    Takes whichever of `rng`, `coins`, `lens`, `generator` and `generators` are among its
    parameters; with none of them but `lens` it draws from the global generators of Python,
    NumPy or torch, which are seeded for each call.
    """

    def __call__(
        self,
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        *,
        rng: np.random.Generator = ...,
        coins: Coins = ...,
        lens: Ints = ...,
    ) -> tuple[Ints, Ints]:
        """Verify a batch.

        Parameters
        ----------
        target_probs : ndarray, shape (B, K + 1, V)
            Row i is the target's law after the first i drafts; its logits if `inputs` is
            claimed to be "logits", and so for `draft_probs`.
        draft_probs : ndarray, shape (B, K, V), or None
            The laws that drafts were drawn from. None: every draft is taken as certain.
        draft_tokens : ndarray of int, shape (B, K)
            -1 where a row has no draft.
        rng : numpy.random.Generator
            The only randomness, if it is a parameter. A `generator` is a `torch.Generator`;
            `generators` are one for each row. Annotated as a dict they are {row: generator} of
            every other row: the rest draws from the global generators.
        coins : Coins
            All randomness as numbers, if it is a parameter: float64 NumPy arrays, whatever
            the other arrays are.
        lens : ndarray of int, shape (B,)
            How many drafts each row has; 0 for some.

        Returns
        -------
        tokens : ndarray of int, shape (B, K + 1)
            Accepted drafts and one more token, padded with -1.
        counts : ndarray of int, shape (B,)
            How many tokens each row has.
        """
        ...


class VerifyContract(BatchContract):
    coarse_tv: ClassVar[float | None] = 0.1
    programs: ClassVar[bool] = True
    quick_checks: ClassVar[tuple[str, ...]] = (
        "smoke",
        "joint/wide",
        "joint/one-hot",
        "joint/probed",
        "boundary/zero-coin",
        "boundary/empty-residual",
        "boundary/greedy",
    )

    def sample(self, fixture: Fixture, size: int, rng: np.random.Generator) -> Batch:
        return sample_batch(fixture, size, rng)

    def blocks(self, subject: Subject, fixture: Fixture, *, one_hot: bool = False) -> Sampler:
        return Blocks(self.verifier(subject), fixture, one_hot=one_hot)

    def texts(self, subject: Subject, fixture: Fixture, tokens: int) -> Sampler:
        """A sampler of the first tokens of texts of several iterations."""
        return Iterations(self.verifier(subject), fixture, tokens)


VERIFY = VerifyContract(
    "verify",
    Verify,
    ("target_probs", "draft_probs", "draft_tokens"),
    ("rng", "coins", "lens", "generator", "generators"),
)
