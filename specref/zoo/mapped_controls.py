"""Controls of union and TLI: drafters that are misled, and rows declared in unusual ways."""

from dataclasses import replace

from specref.algorithms import union
from specref.algorithms.standard import Draft
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo.clean import one_hot, verified
from specref.zoo.dictionary import TLI, UNION, Drafted, mapped
from specref.zoo.entry import Entry


def as_one_hot(drafted: Drafted) -> Draft:
    """The token, declared as if nothing else had been possible."""
    token, q = mapped(drafted)
    return Draft(token, q if token is None else one_hot(token, q))


def unmapped(drafted: Drafted) -> Draft:
    """The drafter's ids taken for target ids, in the token and in the row."""
    known = drafted.token < len(drafted.dictionary.target)
    return Draft(drafted.token if known else None, drafted.dictionary.unmoved(drafted.q))


def unknown_as_zero(drafted: Drafted) -> Draft:
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


ENTRIES = (
    Entry(
        "tli-draft-probs-dropped",
        "vocabulary",
        formula="x ~ q', declared one-hot(x)",
        symptom="The declared law is not the one that was drawn from; acceptance is only p(x).",
        hint="For each x alone the law is p, so it is p for any x independent of the coins.",
        step=verified(replace(TLI, translate=as_one_hot)),
        algorithm="tli",
        cites=("vllm-project/vllm#38174",),
        lossless=True,
    ),
    Entry(
        "tli-unshared-submits-nothing",
        "vocabulary",
        formula="x ~ q, submitted if shared, declared q on T and D without renormalisation",
        symptom="Looks like tli-q-not-renormalised: the declared row sums to Z < 1.",
        hint="x has exactly that sub-law; the missing mass is the chance of nothing.",
        step=verified(UNION),
        algorithm="tli",
        lossless=True,
    ),
    Entry(
        "tli-context-in-pruned-ids",
        "vocabulary",
        formula="the drafter's context holds positions among the shared tokens instead of ids",
        symptom="A drafter that is the target under other ids accepts only half its drafts.",
        hint="q is arbitrary as long as it is the law of x; only the target's context matters.",
        step=verified(replace(TLI, remember=pruned_index)),
        algorithm="tli",
        cites=("huggingface/transformers#36695",),
        lossless=True,
    ),
    Entry(
        "unrelated-token-ends-draft",
        "vocabulary",
        formula="drafting stops after a token whose drafter id is that of the target's EOS",
        symptom="Drafts end in the middle of a sentence.",
        hint="The token that ends the draft is submitted with its law, like any other.",
        step=verified(
            replace(UNION, stop=lambda d: d.dictionary.target.ends((d.token,))),
        ),
        algorithm="union",
        lossless=True,
    ),
    Entry(
        "ids-taken-for-target-ids",
        "vocabulary",
        formula="x and q both left in drafter ids",
        symptom="Looks like draft-ids-unmapped: the text is another than the drafter wrote.",
        hint="Row and token agree, so x has the declared law; only acceptance is accidental.",
        note="The drafter does not know the target's EOS by that id, so the block is cut at it.",
        step=verified(
            replace(UNION, translate=unmapped), verify=lambda v: v.until_eos(v.block(v.prefix()))
        ),
        algorithm="union",
        lossless=True,
    ),
    Entry(
        "oov-draft-to-zero-declared",
        "vocabulary",
        formula="a draft outside T is sent as token 0, and q(0) has that mass",
        symptom="Looks like oov-draft-to-zero.",
        hint="The declared row is the law of the token that is sent.",
        step=verified(replace(UNION, translate=unknown_as_zero)),
        algorithm="union",
        lossless=True,
    ),
    Entry(
        "oov-context-to-zero",
        "vocabulary",
        formula="context tokens that the drafter lacks become its token 0",
        symptom="The drafter reads a text that nobody wrote.",
        hint="q is arbitrary as long as it is the law of x; only the target's context matters.",
        step=verified(replace(UNION, read=unread_as_zero)),
        algorithm="union",
        cites=("vllm-project/vllm#38174",),
        lossless=True,
    ),
    Entry(
        "drafter-context-truncated",
        "vocabulary",
        formula="q(. | last token of the context, drafts)",
        symptom="Acceptance decays: the drafter forgets the text.",
        hint="q is arbitrary as long as it is the law of x; only the target's context matters.",
        step=verified(replace(UNION, read=latest)),
        algorithm="union",
        cites=("vllm-project/vllm#38174",),
        lossless=True,
    ),
)
