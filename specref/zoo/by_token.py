"""Mutants and controls of union and TLI: tokens and rows of two vocabularies that do not fit."""

from dataclasses import replace
from functools import lru_cache
from typing import cast

from specref.algorithms import union
from specref.algorithms.standard import Draft
from specref.chance import Chance
from specref.distributions import Probabilities, normalise, relabel
from specref.models import Model
from specref.vocabulary import Tokens, intersection
from specref.zoo.entry import Entry
from specref.zoo.parts.by_token import TLI, UNION, Drafted, guarded, mapped
from specref.zoo.parts.standard import Position, one_hot, residual_or_p, verified


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


# Drafters that are misled, and rows declared in unusual ways: lossless.


def as_one_hot(drafted: Drafted) -> Draft:
    """The token, declared as if nothing else had been possible."""
    token, q = mapped(drafted)
    return Draft(token, q if token is None else one_hot(token, q))


def unmapped(drafted: Drafted) -> Draft:
    """The drafter's ids taken for target ids, in the token and in the row."""
    known = drafted.token < len(drafted.dictionary.target)
    return Draft(drafted.token if known else None, drafted.dictionary.unmoved(drafted.q))


def unknown_as_zero_declared(drafted: Drafted) -> Draft:
    """Id 0 for a token outside T, beside a row with its mass on 0."""
    token, q = mapped(drafted)
    q[0] += 1 - q.sum()
    return Draft(token or 0, q)


def unread_as_zero(target: Model, drafter: Model, context: Tokens) -> Tokens:
    """The context in drafter ids, 0 for what the drafter lacks."""
    ids = drafter.vocabulary.ids
    return tuple(ids.get(target.vocabulary.tokens[token], 0) for token in context)


def latest(target: Model, drafter: Model, context: Tokens) -> Tokens | None:
    """The last token of the context in drafter ids."""
    seen = union.read(target, drafter, context)
    return None if seen is None else seen[-1:]


def pruned_index(drafted: Drafted) -> int:
    """The position of a drafter token among the shared ones."""
    shared = sorted(drafted.dictionary.shared)
    return shared.index(drafted.token) if drafted.token in shared else drafted.token


SAME_WORDS = frozenset({"permuted"})
ALL_SHARED = "Every token of permuted is shared."

ENTRIES = (
    Entry(
        "tli-q-permuted",
        "vocabulary",
        formula="x ~ q', declared q'(pi x): columns in one order of the shared tokens, written in "
        "another",
        symptom="Acceptance above the sum of min(p, q'); the output drifts to the draft model's.",
        hint="Index the pruned columns by the map that the pruned head was built with.",
        step=guarded(replace(TLI, translate=reordered)),
        rule="tli",
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
        rule="tli",
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    Entry(
        "draft-ids-unmapped",
        "vocabulary",
        formula="x is sent in draft ids, q in target ids",
        symptom="The text is another than the draft model wrote; ids outside T crash.",
        hint="Map the token where the row is mapped.",
        step=guarded(replace(UNION, translate=unmapped_token)),
        rule="union",
        cites=("ggml-org/llama.cpp#17480",),
    ),
    Entry(
        "q-left-in-draft-ids",
        "vocabulary",
        formula="x is sent in target ids, q in draft ids",
        symptom="Acceptance collapses, and what is accepted is arbitrary.",
        hint="Scatter q into target ids with the same table that maps the token.",
        step=guarded(
            replace(UNION, translate=lambda d: Draft(d.target_id, d.dictionary.unmoved(d.q)))
        ),
        rule="union",
        cites=("vllm-project/vllm-ascend#16166",),
    ),
    Entry(
        "oov-draft-dropped",
        "vocabulary",
        formula="a draft outside T is forgotten, and its position gets a bonus token ~ p",
        symptom="Shared tokens come out too often: the unshared draft took nothing from p.",
        hint="Treat a draft outside T as rejected: draw from norm((p - q)+).",
        step=verified(without_unknown),
        rule="union",
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
        rule="union",
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
        rule="union",
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    Entry(
        "residual-on-shared-tokens",
        "vocabulary",
        formula="recovered token ~ norm((p - q)+ on T and D)",
        symptom="Tokens that only the target has come out as bonus tokens alone.",
        hint="Subtract on all of T: what the draft model lacks has q = 0 and stays whole.",
        step=verified(union.draft, recover=lambda at: on_shared(at, residual_or_p(at.p, at.q))),
        rule="union",
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    Entry(
        "bonus-on-shared-tokens",
        "vocabulary",
        formula="bonus token ~ norm(p on T and D)",
        symptom="Exact until every draft is accepted; then target-only tokens are missing.",
        hint="Prune the draft model's head, never the target's row.",
        step=verified(TLI, bonus=lambda at: on_shared(at, at.p)),
        rule="tli",
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    Entry(
        "target-pruned",
        "vocabulary",
        formula="p restricted to T and D, and renormalised, in every row",
        symptom="Tokens that only the target has never come out.",
        hint="Prune the draft model's head, never the target's row.",
        step=lambda target, drafter, *others: verified(TLI)(
            pruned(target, drafter), drafter, *others
        ),
        rule="tli",
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    Entry(
        "tli-residual-of-raw-q",
        "vocabulary",
        formula="x ~ q', tested with q', then residual (p - q)+ with q not renormalised",
        symptom="Acceptance is exact; recovered tokens are too often ones the draft model likes.",
        hint="Subtract the row that was tested with.",
        step=verified(TLI, recover=lambda at: residual_or_p(at.p, raw_row(at))),
        rule="tli",
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
)
CONTROLS = (
    Entry(
        "tli-draft-probs-dropped",
        "vocabulary",
        formula="x ~ q', declared one-hot(x)",
        symptom="The declared distribution is not the one that was drawn from; acceptance is "
        "only p(x).",
        hint="For each x alone the distribution is p, so it is p for any x independent of the "
        "random numbers.",
        step=verified(replace(TLI, translate=as_one_hot)),
        rule="tli",
        cites=("vllm-project/vllm#38174",),
        lossless=True,
    ),
    Entry(
        "tli-unshared-submits-nothing",
        "vocabulary",
        formula="x ~ q, submitted if shared, declared q on T and D without renormalisation",
        symptom="Looks like tli-q-not-renormalised: the declared row sums to Z < 1.",
        hint="x has exactly that sub-distribution; the missing mass is the chance of nothing.",
        step=verified(UNION),
        rule="tli",
        lossless=True,
    ),
    Entry(
        "tli-context-in-pruned-ids",
        "vocabulary",
        formula="the draft model's context holds positions among the shared tokens instead of ids",
        symptom="A draft model that is the target under other ids accepts only half its drafts.",
        hint="q is arbitrary as long as it is the distribution of x; only the target's context "
        "matters.",
        step=verified(replace(TLI, remember=pruned_index)),
        rule="tli",
        cites=("huggingface/transformers#36695",),
        lossless=True,
    ),
    Entry(
        "unrelated-token-ends-draft",
        "vocabulary",
        formula="drafting stops after a token whose draft id is that of the target's EOS",
        symptom="Drafts end in the middle of a sentence.",
        hint="The token that ends the draft is submitted with its distribution, like any other.",
        step=verified(
            replace(UNION, stop=lambda d: d.dictionary.target.ends((d.token,))),
        ),
        rule="union",
        lossless=True,
    ),
    Entry(
        "ids-taken-for-target-ids",
        "vocabulary",
        formula="x and q both left in draft ids",
        symptom="Looks like draft-ids-unmapped: the text is another than the draft model wrote.",
        hint="Row and token agree, so x has the declared distribution; only acceptance is "
        "accidental.",
        note="The draft model does not know the target's EOS by that id, so the block is cut at "
        "it.",
        step=verified(
            replace(UNION, translate=unmapped), verify=lambda v: v.until_eos(v.block(v.prefix()))
        ),
        rule="union",
        lossless=True,
    ),
    Entry(
        "oov-draft-to-zero-declared",
        "vocabulary",
        formula="a draft outside T is sent as token 0, and q(0) has that mass",
        symptom="Looks like oov-draft-to-zero.",
        hint="The declared row is the distribution of the token that is sent.",
        step=verified(replace(UNION, translate=unknown_as_zero_declared)),
        rule="union",
        lossless=True,
    ),
    Entry(
        "oov-context-to-zero",
        "vocabulary",
        formula="context tokens that the draft model lacks become its token 0",
        symptom="The draft model reads a text that nobody wrote.",
        hint="q is arbitrary as long as it is the distribution of x; only the target's context "
        "matters.",
        step=verified(replace(UNION, read=unread_as_zero)),
        rule="union",
        cites=("vllm-project/vllm#38174",),
        lossless=True,
    ),
    Entry(
        "drafter-context-truncated",
        "vocabulary",
        formula="q(. | last token of the context, drafts)",
        symptom="Acceptance decays: the draft model forgets the text.",
        hint="q is arbitrary as long as it is the distribution of x; only the target's context "
        "matters.",
        step=verified(replace(UNION, read=latest)),
        rule="union",
        cites=("vllm-project/vllm#38174",),
        lossless=True,
    ),
)
