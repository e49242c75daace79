"""Triggers: situations in which a bug acts, and is right everywhere else.

A trigger says at which rows and positions of a call it holds. A base bug departs from the clean
batched verifier there alone. Every trigger with every base bug is a mutant.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from specref import batched
from specref.arrays import Bools, Floats, Ints
from specref.batched import Batch, Blocks, Verify, leading, ratios
from specref.coins import Coins, race_winner

BLOCK, LARGE, TINY = 1_024, 32_000, 1e-300
END_IDS = (50_256, 128_001, 151_645)


@dataclass
class Situation:
    """A call as triggers see it.

    * `given`: What was passed, by name; None where nothing was.
    * `call`: How many calls there were before.
    * `before`: The call before, without its own.
    """

    batch: Batch
    given: Mapping[str, Any]
    call: int
    before: "Situation | None" = field(default=None, repr=False)

    @property
    def rows(self) -> int:
        """The rows of the batch."""
        return int(self.batch.p.shape[0])

    @property
    def lookahead(self) -> int:
        """The most drafts of a row."""
        return int(self.batch.drafts.shape[1])

    @property
    def size(self) -> int:
        """The tokens of the vocabulary."""
        return int(self.batch.p.shape[2])

    @property
    def row(self) -> Ints:
        """Row numbers as a column."""
        return np.arange(self.rows)[:, None]

    @property
    def position(self) -> Ints:
        """Positions as a row."""
        return np.arange(self.lookahead + 1)[None]

    @property
    def top(self) -> Floats:
        """The largest probability of each row of the target, shape (B, K + 1)."""
        return np.asarray(self.batch.p.max(axis=2))

    def of_drafts(self, values: Any) -> Any:
        """A value for each draft, shape (B, K), as one for each position: False for the last."""
        return np.pad(values, ((0, 0), (0, 1)))

    @property
    def draft(self) -> Ints:
        """The draft at each position, -1 after the last."""
        return np.pad(self.batch.drafts, ((0, 0), (0, 1)), constant_values=-1)

    @property
    def p_draft(self) -> Floats:
        """The target's probability of each draft, shape (B, K)."""
        return self.batch.drafted(self.batch.p)

    @property
    def q_draft(self) -> Floats:
        """The drafter's probability of each draft, shape (B, K)."""
        return self.batch.drafted(self.batch.q)


Accepts = Callable[[Batch, Bools, Bools], Bools]
Weighs = Callable[[Batch, Ints, Floats, Bools], Floats]


@dataclass(frozen=True)
class BaseBug:
    """A departure from the clean verifier, at the rows and positions where a trigger holds.

    * `accepts`: (batch, verdicts, mask of drafts) -> verdicts.
    * `weighs`: (batch, count, weights, mask of rows) -> weights of the last token.
    """

    id: str
    accepts: Accepts | None = None
    weighs: Weighs | None = None


def _accept_all(batch: Batch, verdicts: Bools, mask: Bools) -> Bools:
    return np.where(mask, batch.drafts >= 0, verdicts)


def _reject_all(batch: Batch, verdicts: Bools, mask: Bools) -> Bools:
    return np.where(mask, False, verdicts)


def _residual_is_p(batch: Batch, count: Ints, weights: Floats, mask: Bools) -> Floats:
    rejected = mask & (count < batch.lens)
    return np.where(rejected[:, None], batch.p[batch.rows, count], weights)


def _likeliest(batch: Batch, count: Ints, weights: Floats, mask: Bools) -> Floats:
    only = weights * (weights == weights.max(axis=1, keepdims=True))
    return np.where(mask[:, None], only, weights)


BASE_BUGS: tuple[BaseBug, ...] = (
    BaseBug("accepts-every-draft", accepts=_accept_all),
    BaseBug("rejects-every-draft", accepts=_reject_all),
    BaseBug("residual-is-p", weighs=_residual_is_p),
    BaseBug("last-token-is-argmax", weighs=_likeliest),
)


def _masked(batch: Batch, mask: Bools) -> Batch:
    """The batch with p renormalised without some ids that end a text, in rows of a mask."""
    p = batch.p.copy()
    for one in (one for one in END_IDS if one < p.shape[2]):
        p[mask, :, one] = 0
    return replace(batch, p=p / np.maximum(p.sum(axis=2, keepdims=True), TINY))


def _judges_masked(batch: Batch, verdicts: Bools, mask: Bools) -> Bools:
    return batch.accept < ratios(_masked(batch, np.asarray(mask.any(axis=1))))


def _weighs_masked(batch: Batch, count: Ints, weights: Floats, mask: Bools) -> Floats:
    return batched.weights(_masked(batch, mask), count)


def _recovers_masked(batch: Batch, count: Ints, weights: Floats, mask: Bools) -> Floats:
    return _weighs_masked(batch, count, weights, mask & (count < batch.lens))


def _gives_last(batch: Batch, count: Ints, weights: Floats, mask: Bools) -> Floats:
    last = np.arange(weights.shape[1]) == weights.shape[1] - 1
    return np.asarray(weights + 0.2 * weights.sum(axis=1, keepdims=True) * (mask[:, None] & last))


MASKING = (
    BaseBug("never-emits-it", accepts=_judges_masked, weighs=_weighs_masked),
    BaseBug("never-recovers-it", weighs=_recovers_masked),
)
PADDING = (BaseBug("emits-padding", weighs=_gives_last),)


@dataclass(frozen=True)
class Trigger:
    """When a bug acts, of batches, of steps, of texts or of trees.

    * `kind` ({"shape", "values", "ids", "mode", "call", "row"})
    * `holds`: `Situation` -> bool, or one for each row and position, shape (B, K + 1) or one that
      broadcasts to it; or `situations.Decision` -> bool.
    * `bugs`: Bugs of its own, that act nowhere else, in place of `BASE_BUGS`.
    """

    id: str
    kind: str
    holds: Callable[[Any], Any]
    bugs: tuple[BaseBug, ...] = ()


def _same_object(at: Situation) -> bool:
    return at.before is not None and at.given["target_probs"] is at.before.given["target_probs"]


def _contiguous(array: Any) -> bool:
    return bool(array.flags["C_CONTIGUOUS"])


def _changed_shape(at: Situation) -> bool:
    return at.before is not None and at.before.batch.p.shape != at.batch.p.shape


TRIGGERS: tuple[Trigger, ...] = (
    Trigger("one-draft", "shape", lambda at: at.lookahead == 1),
    Trigger("four-drafts", "shape", lambda at: at.lookahead >= 4),
    Trigger("eight-drafts", "shape", lambda at: at.lookahead >= 8),
    Trigger("nine-drafts", "shape", lambda at: at.lookahead >= 9),
    Trigger("batch-of-1", "shape", lambda at: at.rows == 1),
    Trigger("batch-3-to-8", "shape", lambda at: 3 <= at.rows <= 8),
    Trigger("batch-of-8", "shape", lambda at: at.rows == 8),
    Trigger("batch-9-to-16", "shape", lambda at: 9 <= at.rows <= 16),
    Trigger("batch-14-to-64", "shape", lambda at: 14 <= at.rows <= 64),
    Trigger("batch-16-to-256", "shape", lambda at: 16 <= at.rows <= 256),
    Trigger("batch-power-of-2", "shape", lambda at: at.rows > 2 and not at.rows & (at.rows - 1)),
    Trigger("batch-odd", "shape", lambda at: at.rows > 1 and at.rows % 2 == 1),
    Trigger("batch-above-4096", "shape", lambda at: at.rows > 4_096),
    Trigger("batch-600-to-1500", "shape", lambda at: 600 <= at.rows <= 1_500),
    Trigger("vocabulary-above-5", "shape", lambda at: at.size > 5),
    Trigger("vocabulary-8-divides", "shape", lambda at: at.size % 8 == 0),
    Trigger("vocabulary-above-8-odd", "shape", lambda at: at.size > 8 and at.size % 8 != 0),
    Trigger("vocabulary-above-128", "shape", lambda at: at.size > 128),
    Trigger("vocabulary-above-1024", "shape", lambda at: at.size > 1_024),
    Trigger("vocabulary-above-32k", "shape", lambda at: at.size >= 32_000),
    Trigger("vocabulary-above-65536", "shape", lambda at: at.size > 65_536),
    Trigger("no-laws", "mode", lambda at: at.given["draft_probs"] is None),
    Trigger(
        "no-laws-one-row", "mode", lambda at: at.given["draft_probs"] is None and at.rows == 1
    ),
    Trigger(
        "no-laws-three-drafts",
        "mode",
        lambda at: at.given["draft_probs"] is None and at.lookahead >= 3,
    ),
    Trigger("coins-not-passed", "mode", lambda at: at.given["coins"] is None),
    Trigger("lens-not-passed", "mode", lambda at: at.given["lens"] is None),
    Trigger("int32-ids", "mode", lambda at: at.given["draft_tokens"].dtype == np.int32),
    Trigger("strided", "mode", lambda at: not _contiguous(at.given["target_probs"])),
    Trigger(
        "transposed",
        "mode",
        lambda at: (
            at.given["target_probs"].flags["F_CONTIGUOUS"]
            and not _contiguous(at.given["target_probs"])
        ),
    ),
    Trigger("read-only", "mode", lambda at: not at.given["target_probs"].flags["WRITEABLE"]),
    Trigger("same-array-again", "mode", _same_object),
    Trigger("changed-shape", "mode", _changed_shape),
    Trigger("first-call", "call", lambda at: at.call == 0),
    Trigger("odd-calls", "call", lambda at: at.call % 2 == 1),
    Trigger("call-above-1000", "call", lambda at: at.call >= 1_000),
    Trigger("call-above-20000", "call", lambda at: at.call >= 20_000),
    Trigger("row-0", "row", lambda at: at.row == 0),
    Trigger("last-row", "row", lambda at: at.row == at.rows - 1),
    Trigger("odd-rows", "row", lambda at: at.row % 2 == 1),
    Trigger("row-above-63", "row", lambda at: at.row >= 64),
    Trigger("row-above-255", "row", lambda at: at.row >= 256),
    Trigger("row-above-1023", "row", lambda at: at.row >= 1_024),
    Trigger("one-row-in-1000", "row", lambda at: at.row % 1_000 == 999),
    Trigger("short-rows", "row", lambda at: (at.batch.lens < at.lookahead)[:, None]),
    Trigger("position-3-on", "row", lambda at: at.position >= 3),
    Trigger("position-8-on", "row", lambda at: at.position >= 8),
    Trigger("top-above-0.9", "values", lambda at: at.top > 0.9),
    Trigger("top-above-0.95", "values", lambda at: at.top > 0.95),
    Trigger("one-row-certain", "values", lambda at: bool((at.top == 1).all(axis=1).any())),
    Trigger("top-below-0.1", "values", lambda at: at.top < 0.1),
    Trigger("draft-p-below-0.001", "values", lambda at: at.of_drafts(at.p_draft < 1e-3)),
    Trigger("draft-p-below-0.01", "values", lambda at: at.of_drafts(at.p_draft < 1e-2)),
    Trigger("draft-q-below-0.01", "values", lambda at: at.of_drafts(at.q_draft < 1e-2)),
    Trigger("draft-q-above-0.9", "values", lambda at: at.of_drafts(at.q_draft > 0.9)),
    Trigger("ratio-below-0.1", "values", lambda at: at.of_drafts(at.p_draft < 0.1 * at.q_draft)),
    Trigger("zeros-in-p", "values", lambda at: (at.batch.p == 0).any(axis=2)),
    Trigger("draft-id-0", "ids", lambda at: at.draft == 0),
    Trigger("draft-id-odd", "ids", lambda at: at.draft % 2 == 1),
    Trigger("draft-id-above-255", "ids", lambda at: at.draft >= 256),
    Trigger("draft-id-above-65535", "ids", lambda at: at.draft >= 65_536),
    Trigger("draft-last-id", "ids", lambda at: at.draft == at.size - 1),
    Trigger(
        "draft-last-block",
        "ids",
        lambda at: (at.draft >= at.size // BLOCK * BLOCK) & (at.size > BLOCK),
    ),
    Trigger("end-id-masked", "ids", lambda at: at.size >= LARGE, MASKING),
    Trigger(
        "padding",
        "ids",
        lambda at: (at.size >= LARGE) & (at.batch.p[:, :, -1] == 0),
        PADDING,
    ),
)


def triggered(bug: BaseBug, trigger: Trigger) -> Verify:
    """A verifier with a bug that acts where a trigger holds; each counts its own calls."""
    latest: list[Situation] = []

    def verify(
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        *,
        rng: np.random.Generator | None = None,
        coins: Coins | None = None,
        lens: Ints | None = None,
    ) -> Blocks:
        batch = batched.read(target_probs, draft_probs, draft_tokens, rng, coins, lens)
        given = {
            "target_probs": target_probs,
            "draft_probs": draft_probs,
            "draft_tokens": draft_tokens,
            "coins": coins,
            "lens": lens,
        }
        before = latest.pop() if latest else None
        call = before.call + 1 if before else 0
        now = Situation(batch, given, call, before)
        held = np.broadcast_to(trigger.holds(now), (now.rows, now.lookahead + 1))
        verdicts = batch.accept < ratios(batch)
        if bug.accepts is not None:
            verdicts = bug.accepts(batch, verdicts, held[:, :-1] & (batch.drafts >= 0))
        count = leading(verdicts)
        weights = batched.weights(batch, count)
        if bug.weighs is not None:
            weights = bug.weighs(batch, count, weights, held[batch.rows, count])
        last = race_winner(weights, batch.race)
        latest.append(replace(now, before=None))
        return batched.write(batch, count, last)

    return verify
