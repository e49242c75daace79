"""Mutants of union and TLI: tokens and rows of two vocabularies that do not fit each other."""

from dataclasses import replace
from functools import lru_cache
from typing import cast

from specref.algorithms import union
from specref.algorithms.standard import Draft
from specref.chance import Chance
from specref.distributions import Probabilities, normalise, relabel
from specref.models import Model
from specref.vocabulary import Tokens, intersection
from specref.zoo.clean import residual_or_p, verified
from specref.zoo.dictionary import TLI, UNION, Drafted, guarded
from specref.zoo.entry import Entry
from specref.zoo.position import Position


def reordered(drafted: Drafted) -> Draft:
    """Columns in the order of target ids, written as if in that of drafter ids."""
    shared = drafted.dictionary.shared
    columns = sorted(shared, key=lambda drafter_id: shared[drafter_id])
    written = dict(zip(columns, (shared[x] for x in sorted(shared)), strict=True))
    q = relabel(drafted.q, written, len(drafted.dictionary.target))
    return Draft(drafted.target_id, q)


def unmapped_token(drafted: Drafted) -> Draft:
    """The drafter's id for a token of the target, beside a row in target ids."""
    known = drafted.token < len(drafted.dictionary.target)
    return Draft(drafted.token if known else None, drafted.dictionary.moved(drafted.q))


def unknown_as_zero(drafted: Drafted) -> Draft:
    """Id 0 for a token outside T, beside a row without its mass."""
    return Draft(drafted.target_id or 0, drafted.dictionary.moved(drafted.q))


def renormalised(drafted: Drafted) -> Draft:
    """A token of q, beside q restricted to shared tokens and renormalised."""
    shared = drafted.dictionary.moved(drafted.q)
    return Draft(drafted.target_id, normalise(shared) if shared.any() else shared)


def without_unknown(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> list[Draft]:
    """Union's drafts up to the first outside T, which is forgotten."""
    drafts = union.draft(target, drafter, context, lookahead, chance)
    return [draft for draft in drafts if draft.token is not None]


def on_shared(at: Position, row: Probabilities) -> Probabilities:
    """A row restricted to shared tokens and renormalised, or the row if that is empty."""
    shared = intersection(at.target.vocabulary, at.drafter.vocabulary).values()
    kept = relabel(row, {token: token for token in shared}, len(row))
    return normalise(kept) if kept.any() else row


def raw_row(at: Position) -> Probabilities:
    """The drafter's row in target ids, not renormalised."""
    seen = union.read(at.target, at.drafter, (*at.context, *at.before))
    shared = intersection(at.target.vocabulary, at.drafter.vocabulary)
    return relabel(at.drafter.next_token(cast(Tokens, seen)), shared, len(at.p))


@lru_cache(maxsize=64)
def pruned(target: Model, drafter: Model) -> Model:
    """The target without the tokens that the drafter lacks, where it has others."""
    shared = intersection(target.vocabulary, drafter.vocabulary).values()

    def next_token(context: Tokens) -> Probabilities:
        row = target.next_token(context)
        kept = relabel(row, {token: token for token in shared}, len(row))
        return normalise(kept) if kept.any() else row

    return Model(target.vocabulary, next_token)


SAME_WORDS = frozenset({"permuted"})
ALL_SHARED = "Every token of permuted is shared."

ENTRIES = (
    Entry(
        "tli-q-permuted",
        "vocabulary",
        formula="x ~ q', declared q'(pi x): columns in one order of the shared tokens, written in "
        "another",
        symptom="Acceptance above the sum of min(p, q'); the output drifts to the drafter's.",
        hint="Index the pruned columns by the map that the pruned head was built with.",
        step=guarded(replace(TLI, translate=reordered)),
        algorithm="tli",
        cites=("huggingface/transformers#36695",),
    ),
    Entry(
        "tli-q-not-renormalised",
        "vocabulary",
        formula="x ~ q', declared q restricted to shared tokens, which sums to Z < 1",
        symptom="Drafts pass 1 / Z times too often.",
        hint="Divide the restricted row by its sum before both the draw and the test.",
        step=guarded(
            replace(TLI, translate=lambda d: Draft(d.target_id, d.dictionary.moved(d.row)))
        ),
        algorithm="tli",
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    Entry(
        "draft-ids-unmapped",
        "vocabulary",
        formula="x is sent in drafter ids, q in target ids",
        symptom="The text is another than the drafter wrote; ids outside T crash.",
        hint="Map the token where the row is mapped.",
        step=guarded(replace(UNION, translate=unmapped_token)),
        algorithm="union",
        cites=("ggml-org/llama.cpp#17480",),
    ),
    Entry(
        "q-left-in-draft-ids",
        "vocabulary",
        formula="x is sent in target ids, q in drafter ids",
        symptom="Acceptance collapses, and what is accepted is arbitrary.",
        hint="Scatter q into target ids with the same table that maps the token.",
        step=guarded(
            replace(UNION, translate=lambda d: Draft(d.target_id, d.dictionary.unmoved(d.q)))
        ),
        algorithm="union",
        cites=("vllm-project/vllm-ascend#16166",),
    ),
    Entry(
        "oov-draft-dropped",
        "vocabulary",
        formula="a draft outside T is forgotten, and its position gets a bonus token ~ p",
        symptom="Shared tokens come out too often: the unshared draft took nothing from p.",
        hint="Treat a draft outside T as rejected: draw from norm((p - q)+).",
        step=verified(without_unknown),
        algorithm="union",
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    Entry(
        "oov-draft-to-zero",
        "vocabulary",
        formula="a draft outside T is sent as token 0, q(0) without that mass",
        symptom="Token 0, often <unk>, comes out too often.",
        hint="Add the mass of every token that is sent as 0 to q(0), or send none.",
        step=guarded(replace(UNION, translate=unknown_as_zero)),
        algorithm="union",
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    Entry(
        "union-q-renormalised",
        "vocabulary",
        formula="x ~ q, declared q restricted to T and renormalised, though x may be outside T",
        symptom="Shared drafts pass too rarely, and the residual lacks their mass.",
        hint="Renormalise only if nothing outside T can be drawn, as TLI does.",
        step=guarded(replace(UNION, translate=renormalised)),
        algorithm="union",
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    Entry(
        "residual-on-shared-tokens",
        "vocabulary",
        formula="recovered token ~ norm((p - q)+ on T and D)",
        symptom="Tokens that only the target has come out as bonus tokens alone.",
        hint="Subtract on all of T: what the drafter lacks has q = 0 and stays whole.",
        step=verified(union.draft, recover=lambda at: on_shared(at, residual_or_p(at.p, at.q))),
        algorithm="union",
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    Entry(
        "bonus-on-shared-tokens",
        "vocabulary",
        formula="bonus token ~ norm(p on T and D)",
        symptom="Exact until every draft is accepted; then target-only tokens are missing.",
        hint="Prune the drafter's head, never the target's row.",
        step=verified(TLI, bonus=lambda at: on_shared(at, at.p)),
        algorithm="tli",
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    Entry(
        "target-pruned",
        "vocabulary",
        formula="p restricted to T and D, and renormalised, in every row",
        symptom="Tokens that only the target has never come out.",
        hint="Prune the drafter's head, never the target's row.",
        step=lambda target, drafter, *others: verified(TLI)(
            pruned(target, drafter), drafter, *others
        ),
        algorithm="tli",
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    Entry(
        "tli-residual-of-raw-q",
        "vocabulary",
        formula="x ~ q', tested with q', then residual (p - q)+ with q not renormalised",
        symptom="Acceptance is exact; recovered tokens are too often ones the drafter likes.",
        hint="Subtract the row that was tested with.",
        step=verified(TLI, recover=lambda at: residual_or_p(at.p, raw_row(at))),
        algorithm="tli",
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
)
