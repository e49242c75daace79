"""Mutants and controls of union and TLI: tokens and rows of two vocabularies that do not fit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TypeAlias, cast

from specref.algorithms import union
from specref.algorithms.decoding import Step
from specref.algorithms.lookahead import positions
from specref.algorithms.standard import Draft
from specref.chance import Chance
from specref.distributions import Probabilities, normalise, relabel
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary, intersection
from specref.zoo.entry import Entry
from specref.zoo.parts.standard import (
    Position,
    one_hot,
    ratio,
    residual_or_p,
    verified,
)


@dataclass(frozen=True)
class Dictionary:
    """Two vocabularies, and the tokens they share."""

    target: Vocabulary
    drafter: Vocabulary

    @property
    def shared(self) -> Mapping[int, int]:
        """{drafter id: target id}."""
        return intersection(self.target, self.drafter)

    def moved(self, q: Probabilities) -> Probabilities:
        """The row in target ids; what the target lacks is left out."""
        return relabel(q, self.shared, len(self.target))

    def unmoved(self, q: Probabilities) -> Probabilities:
        """The row with drafter ids taken for target ids, cut or filled with 0."""
        ids = range(min(len(self.target), len(self.drafter)))
        return relabel(q, dict(zip(ids, ids, strict=True)), len(self.target))

    def restricted(self, q: Probabilities) -> Probabilities:
        """The row in drafter ids, 0 for what the target lacks."""
        return relabel(q, {token: token for token in self.shared}, len(q))


Read: TypeAlias = Callable[[Model, Model, Tokens], Tokens | None]


@dataclass(frozen=True)
class Drafted:
    """One draft in the drafter's ids: the token, the row it was drawn from, the drafter's row."""

    dictionary: Dictionary
    token: int
    q: Probabilities
    row: Probabilities

    @property
    def target_id(self) -> int | None:
        """The token in target ids, None if T lacks it."""
        return self.dictionary.shared.get(self.token)


def mapped(drafted: Drafted) -> Draft:
    """Token and row in target ids, None for a token outside T."""
    return Draft(drafted.target_id, drafted.dictionary.moved(drafted.q))


def whole(dictionary: Dictionary, q: Probabilities) -> Probabilities | None:
    """The row to draw from in union: q itself."""
    return q


def confined(dictionary: Dictionary, q: Probabilities) -> Probabilities | None:
    """The row to draw from in TLI: q restricted to shared tokens, and renormalised."""
    shared = dictionary.restricted(q)
    return normalise(shared) if shared.any() else None


@dataclass(frozen=True)
class Drafting:
    """The drafting of union or TLI, replaceable part by part; a rule for `verified`.

    * `confine`: (dictionary, q) -> the row to draw from, or None to draft nothing; in drafter ids.
    * `translate`: Drafted -> what the verifier is given.
    * `read`: (target, drafter, context) -> the context in drafter ids, or None.
    * `remember`: Drafted -> the token that the drafter's context grows by.
    * `stop`: Drafted -> whether nothing is drafted after it.
    """

    confine: Callable[[Dictionary, Probabilities], Probabilities | None]
    translate: Callable[[Drafted], Draft] = mapped
    read: Read = union.read
    remember: Callable[[Drafted], int] = lambda drafted: drafted.token
    stop: Callable[[Drafted], bool] = lambda drafted: False

    def __call__(
        self, target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> list[Draft]:
        """Draft until `lookahead`, EOS, a token outside T, or no row to draw from."""
        dictionary = Dictionary(target.vocabulary, drafter.vocabulary)
        drafts: list[Draft] = []
        seen = self.read(target, drafter, context)
        for i in positions(0 if seen is None else lookahead):
            row = drafter.next_token(cast(Tokens, seen))
            q = self.confine(dictionary, row)
            if q is None:
                break
            drafted = Drafted(dictionary, chance.draw(q, f"draft[{i}]"), q, row)
            drafts.append(self.translate(drafted))
            if drafts[-1].token is None or drafter.vocabulary.ends((drafted.token,)):
                break
            if self.stop(drafted):
                break
            seen = (*cast(Tokens, seen), self.remember(drafted))
        return drafts


UNION = Drafting(whole)
TLI = Drafting(confined)


def guarded(drafting: Drafting) -> Step:
    """A verification that survives a row in which the drafted token is impossible."""
    return verified(
        drafting,
        accept=lambda at: ratio(at.px, at.qx),
        recover=lambda at: residual_or_p(at.p, at.q),
    )


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

of_union = partial(Entry, stage="vocabulary", rule="union")
of_tli = partial(Entry, stage="vocabulary", rule="tli")
ENTRIES = (
    of_tli(
        "tli-q-permuted",
        formula="x ~ q', declared q'(pi x): columns in one order of the shared tokens, written in "
        "another",
        symptom="Acceptance above the sum of min(p, q'); the output drifts to the draft model's.",
        hint="Index the pruned columns by the map that the pruned head was built with.",
        step=guarded(replace(TLI, translate=reordered)),
        cites=("huggingface/transformers#36695",),
    ),
    of_tli(
        "tli-q-not-renormalised",
        formula="x ~ q', declared q restricted to shared tokens, which sums to Z < 1",
        symptom="Drafts pass 1 / Z times too often.",
        hint="Divide the restricted row by its sum before both the draw and the test.",
        step=guarded(
            replace(TLI, translate=lambda d: Draft(d.target_id, d.dictionary.moved(d.row)))
        ),
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    of_union(
        "draft-ids-unmapped",
        formula="x is sent in draft ids, q in target ids",
        symptom="The text is another than the draft model wrote; ids outside T crash.",
        hint="Map the token where the row is mapped.",
        step=guarded(replace(UNION, translate=unmapped_token)),
        cites=("ggml-org/llama.cpp#17480",),
    ),
    of_union(
        "q-left-in-draft-ids",
        formula="x is sent in target ids, q in draft ids",
        symptom="Acceptance collapses, and what is accepted is arbitrary.",
        hint="Scatter q into target ids with the same table that maps the token.",
        step=guarded(
            replace(UNION, translate=lambda d: Draft(d.target_id, d.dictionary.unmoved(d.q)))
        ),
        cites=("vllm-project/vllm-ascend#16166",),
    ),
    of_union(
        "oov-draft-dropped",
        formula="a draft outside T is forgotten, and its position gets a bonus token ~ p",
        symptom="Shared tokens come out too often: the unshared draft took nothing from p.",
        hint="Treat a draft outside T as rejected: draw from norm((p - q)+).",
        step=verified(without_unknown),
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    of_union(
        "oov-draft-to-zero",
        formula="a draft outside T is sent as token 0, q(0) without that mass",
        symptom="Token 0, often <unk>, comes out too often.",
        hint="Add the mass of every token that is sent as 0 to q(0), or send none.",
        step=guarded(replace(UNION, translate=unknown_as_zero)),
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    of_union(
        "union-q-renormalised",
        formula="x ~ q, declared q restricted to T and renormalised, though x may be outside T",
        symptom="Shared drafts pass too rarely, and the residual lacks their mass.",
        hint="Renormalise only if nothing outside T can be drawn, as TLI does.",
        step=guarded(replace(UNION, translate=renormalised)),
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    of_union(
        "residual-on-shared-tokens",
        formula="recovered token ~ norm((p - q)+ on T and D)",
        symptom="Tokens that only the target has come out as bonus tokens alone.",
        hint="Subtract on all of T: what the draft model lacks has q = 0 and stays whole.",
        step=verified(union.draft, recover=lambda at: on_shared(at, residual_or_p(at.p, at.q))),
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    of_tli(
        "bonus-on-shared-tokens",
        formula="bonus token ~ norm(p on T and D)",
        symptom="Exact until every draft is accepted; then target-only tokens are missing.",
        hint="Prune the draft model's head, never the target's row.",
        step=verified(TLI, bonus=lambda at: on_shared(at, at.p)),
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    of_tli(
        "target-pruned",
        formula="p restricted to T and D, and renormalised, in every row",
        symptom="Tokens that only the target has never come out.",
        hint="Prune the draft model's head, never the target's row.",
        step=lambda target, drafter, *others: verified(TLI)(
            pruned(target, drafter), drafter, *others
        ),
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
    of_tli(
        "tli-residual-of-raw-q",
        formula="x ~ q', tested with q', then residual (p - q)+ with q not renormalised",
        symptom="Acceptance is exact; recovered tokens are too often ones the draft model likes.",
        hint="Subtract the row that was tested with.",
        step=verified(TLI, recover=lambda at: residual_or_p(at.p, raw_row(at))),
        blind=SAME_WORDS,
        note=ALL_SHARED,
    ),
)
CONTROLS = (
    of_tli(
        "tli-draft-probs-dropped",
        formula="x ~ q', declared one-hot(x)",
        symptom="The declared distribution is not the one that was drawn from; acceptance is "
        "only p(x).",
        hint="For each x alone the distribution is p, so it is p for any x independent of the "
        "random numbers.",
        step=verified(replace(TLI, translate=as_one_hot)),
        cites=("vllm-project/vllm#38174",),
        lossless=True,
    ),
    of_tli(
        "tli-unshared-submits-nothing",
        formula="x ~ q, submitted if shared, declared q on T and D without renormalisation",
        symptom="Looks like tli-q-not-renormalised: the declared row sums to Z < 1.",
        hint="x has exactly that sub-distribution; the missing mass is the chance of nothing.",
        step=verified(UNION),
        lossless=True,
    ),
    of_tli(
        "tli-context-in-pruned-ids",
        formula="the draft model's context holds positions among the shared tokens instead of ids",
        symptom="A draft model that is the target under other ids accepts only half its drafts.",
        hint="q is arbitrary as long as it is the distribution of x; only the target's context "
        "matters.",
        step=verified(replace(TLI, remember=pruned_index)),
        cites=("huggingface/transformers#36695",),
        lossless=True,
    ),
    of_union(
        "unrelated-token-ends-draft",
        formula="drafting stops after a token whose draft id is that of the target's EOS",
        symptom="Drafts end in the middle of a sentence.",
        hint="The token that ends the draft is submitted with its distribution, like any other.",
        step=verified(
            replace(UNION, stop=lambda d: d.dictionary.target.ends((d.token,))),
        ),
        lossless=True,
    ),
    of_union(
        "ids-taken-for-target-ids",
        formula="x and q both left in draft ids",
        symptom="Looks like draft-ids-unmapped: the text is another than the draft model wrote.",
        hint="Row and token agree, so x has the declared distribution; only acceptance is "
        "accidental.",
        note="The draft model does not know the target's EOS by that id, so the block is cut at "
        "it.",
        step=verified(
            replace(UNION, translate=unmapped), verify=lambda v: v.until_eos(v.block(v.prefix()))
        ),
        lossless=True,
    ),
    of_union(
        "oov-draft-to-zero-declared",
        formula="a draft outside T is sent as token 0, and q(0) has that mass",
        symptom="Looks like oov-draft-to-zero.",
        hint="The declared row is the distribution of the token that is sent.",
        step=verified(replace(UNION, translate=unknown_as_zero_declared)),
        lossless=True,
    ),
    of_union(
        "oov-context-to-zero",
        formula="context tokens that the draft model lacks become its token 0",
        symptom="The draft model reads a text that nobody wrote.",
        hint="q is arbitrary as long as it is the distribution of x; only the target's context "
        "matters.",
        step=verified(replace(UNION, read=unread_as_zero)),
        cites=("vllm-project/vllm#38174",),
        lossless=True,
    ),
    of_union(
        "drafter-context-truncated",
        formula="q(. | last token of the context, drafts)",
        symptom="Acceptance decays: the draft model forgets the text.",
        hint="q is arbitrary as long as it is the distribution of x; only the target's context "
        "matters.",
        step=verified(replace(UNION, read=latest)),
        cites=("vllm-project/vllm#38174",),
        lossless=True,
    ),
)
