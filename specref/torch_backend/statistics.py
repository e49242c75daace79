"""Generated texts, and figures of how many drafts were accepted.

A draft is *accepted* if it and all before it in its block were kept, and its token is in the
text: nothing after the first rejection counts, and nothing after an end-of-sequence token. The
token after the accepted drafts, residual or bonus, is *emitted* and never accepted.
"""

from dataclasses import dataclass
from itertools import chain


@dataclass(frozen=True)
class Iteration:
    """One iteration of one row.

    Attributes
    ----------
    drafted : int
        How many drafts were submitted to the target.
    prefix : int
        How many of them were kept before the first rejection.
    emitted : int
        How many tokens the text grew by: `prefix` and one more, or fewer if an
        end-of-sequence token ended it.

    Raises
    ------
    ValueError
        More were kept than drafted, or more or less emitted than that gives.

    Examples
    --------
    >>> Iteration(drafted=3, prefix=2, emitted=1).accepted  # the first draft ended the text
    1
    """

    drafted: int
    prefix: int
    emitted: int

    def __post_init__(self) -> None:
        if not 0 <= self.prefix <= self.drafted:
            raise ValueError(f"prefix = {self.prefix}: expected 0 to {self.drafted}")
        if not 1 <= self.emitted <= self.prefix + 1:
            raise ValueError(f"emitted = {self.emitted}: expected 1 to {self.prefix + 1}")

    @property
    def accepted(self) -> int:
        """How many drafts are in the text."""
        return min(self.prefix, self.emitted)


@dataclass(frozen=True)
class Generation:
    """The texts of a batch, and the iterations that made them.

    Attributes
    ----------
    tokens : tuple of tuple of int
        The new tokens of each row, the end-of-sequence token included.
    iterations : tuple of tuple of Iteration
        Of each row, until it was finished.
    target_forwards, drafter_forwards : int
        How often the models were called, for the whole batch at once.
    seconds : float
        On the wall clock.

    Examples
    --------
    >>> log = Iteration(drafted=2, prefix=1, emitted=2), Iteration(1, 1, 2)
    >>> generation = Generation(((5, 6, 7, 8),), (log,), 2, 3, 0.1)
    >>> generation.acceptance_rate, generation.tokens_per_target_forward
    (0.6666666666666666, 2.0)
    >>> print(generation)
    4 tokens in 1 text, 2 of 3 drafts accepted, 2.00 tokens per iteration, 40 tokens/s
    """

    tokens: tuple[tuple[int, ...], ...]
    iterations: tuple[tuple[Iteration, ...], ...]
    target_forwards: int
    drafter_forwards: int
    seconds: float

    def __str__(self) -> str:
        texts = f"{len(self.tokens)} text{'s' * (len(self.tokens) != 1)}"
        return (
            f"{self.emitted:,} tokens in {texts}, {self.accepted:,} of {self.drafted:,} drafts "
            f"accepted, {self.tokens_per_iteration:.2f} tokens per iteration, "
            f"{self.emitted / self.seconds:.0f} tokens/s"
        )

    @property
    def log(self) -> tuple[Iteration, ...]:
        """The iterations of all rows, row after row."""
        return tuple(chain.from_iterable(self.iterations))

    @property
    def drafted(self) -> int:
        """How many drafts were submitted."""
        return sum(i.drafted for i in self.log)

    @property
    def accepted(self) -> int:
        """How many drafts are in the texts."""
        return sum(i.accepted for i in self.log)

    @property
    def emitted(self) -> int:
        """How many tokens were generated."""
        return sum(i.emitted for i in self.log)

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted drafts over submitted drafts, pooled over all iterations of all rows.

        None if nothing was drafted, as in autoregressive texts.
        """
        return self.accepted / self.drafted if self.drafted else None

    @property
    def mean_accepted_length(self) -> float:
        """Accepted drafts per iteration of a row, without the residual or bonus token."""
        return self.accepted / len(self.log)

    @property
    def tokens_per_iteration(self) -> float:
        """Emitted tokens per iteration of a row: per evaluation of the target on that row."""
        return self.emitted / len(self.log)

    @property
    def tokens_per_target_forward(self) -> float:
        """Emitted tokens of all rows per call of the target.

        For one row this is `tokens_per_iteration`; a batch shares its calls.
        """
        return self.emitted / self.target_forwards

    @property
    def acceptance_at_positions(self) -> tuple[float, ...]:
        """For each position, the share of the drafts submitted there that were accepted.

        Earlier positions are not given: with equally many drafts in every iteration, these
        shares can only fall.
        """
        most = max((i.drafted for i in self.log), default=0)
        submitted = [sum(i.drafted > position for i in self.log) for position in range(most)]
        accepted = [sum(i.accepted > position for i in self.log) for position in range(most)]
        return tuple(part / whole for part, whole in zip(accepted, submitted, strict=True))
