"""Whole engines, which answer a prompt by a text (contract `text`)."""

import hashlib
from itertools import product

import numpy as np

from proofs_tests.helpers.attack.second.entry import Samplers
from proofs_tests.helpers.attack.second.parts import draw, drawn_by, matched, residual
from specref import Model, Vocabulary
from specref.contracts.text import Engine, Text

TEXT = Samplers("text")
WORDS = Vocabulary("abcd.", eos=".")
EOS = 4
PROMPTS = [(0, 1, 2), (3, 3, 1), (2, 0, 0), (1, 2, 3)]


def row(key, context, seen):
    """A law that depends on the last tokens."""
    name = f"{key}{tuple(context[-seen:])}".encode()
    digest = hashlib.blake2b(name, digest_size=8).digest()
    weights = np.array([1 + byte % 9 for byte in digest[: len(WORDS)]], float)
    weights[EOS] = 1 + digest[7] % 3
    return weights / weights.sum()


def target_row(context):
    return row("p", context, 3)


def draft_row(context):
    return (row("q", context, 1) + target_row(context)) / 2


LAW, DRAFTER = Model(WORDS, target_row), Model(WORDS, draft_row)


def plain(prompt, budget, seed):
    rng, text = np.random.default_rng(seed), []
    while len(text) < budget and EOS not in text:
        text.append(draw(target_row((*prompt, *text)), rng))
    return Text(text, 0, 0)


def decoded(prompt, budget, seed, first=None, leftover=None):
    """The ordinary loop; the first iteration's target rows are those of the prompt `first`."""
    rng, text, proposed, accepted = np.random.default_rng(seed), [], 0, 0
    while len(text) < budget:
        seen = first if first is not None and not text else prompt
        drafts, laws = [], []
        for _ in range(min(3, budget - len(text) - 1)):
            laws.append(draft_row((*prompt, *text, *drafts)))
            drafts.append(draw(laws[-1], rng))
        proposed += len(drafts)
        block = []
        for x, q in zip(drafts, laws, strict=True):
            p = target_row((*seen, *text, *block))
            if rng.random() * q[x] >= p[x]:
                block.append(draw(residual(p, q), rng))
                break
            block.append(x)
            accepted += 1
        else:
            block.append(draw(target_row((*seen, *text, *block)), rng))
        for i, x in enumerate(block):
            text.append(x)
            if x == EOS:
                if leftover is not None:
                    leftover[:] = block[i + 1 :]
                return Text(text, proposed, accepted)
    return Text(text[:budget], proposed, accepted)


@TEXT.lossy(state=True)
def budget_of_one():
    """A budget of one token is answered by the prefill, which has no sampler: by argmax."""

    def speculative(prompt, budget, seed):
        if budget == 1:
            return Text([int(np.argmax(target_row(prompt)))], 0, 0)
        return decoded(prompt, budget, seed)

    return Engine(speculative, PROMPTS, law=LAW, plain=plain, drafter=DRAFTER)


@TEXT.lossy(state=True)
def graph_of_the_last_prompt():
    """A prompt as long as the last one: the first iteration sees the rows of that one."""
    last = None

    def speculative(prompt, budget, seed):
        nonlocal last
        first, last = last, prompt
        same = first is not None and len(first) == len(prompt)
        return decoded(prompt, budget, seed, first=first if same else None)

    return Engine(speculative, PROMPTS, law=LAW, plain=plain, drafter=DRAFTER, tokens=3)


@TEXT.lossy(state=True, seeded=False)
def tokens_after_eos_come_next():
    """Tokens that were accepted after EOS are left in a queue: the next text begins with them."""
    queue = []

    def speculative(prompt, budget, seed):
        head, queue[:] = queue[:budget], []
        if EOS in head:
            return Text(head[: head.index(EOS) + 1], 0, 0)
        if len(head) == budget:
            return Text(head, 0, 0)
        rest = decoded((*prompt, *head), budget - len(head), seed, leftover=queue)
        return Text([*head, *rest.tokens], rest.proposed, rest.accepted)

    return Engine(speculative, PROMPTS, law=LAW, plain=plain, tokens=5)


# -- lossless -----------------------------------------------------------------------------------


def matching(prompt, budget, lookahead, draft, own):
    """A draft is kept if it is the target's own token; `draft`, `own` pick after a text."""
    text, proposed, accepted = [], 0, 0
    while len(text) < budget and not (text and text[-1] == EOS):
        drafts = []
        for _ in range(min(lookahead, budget - len(text) - 1)):
            drafts.append(draft((*prompt, *text, *drafts)))
        proposed += len(drafts)
        accepted += matched(text, drafts, lambda: own((*prompt, *text)), budget, EOS)
    return Text(text, proposed, accepted)


@TEXT.lossless(state=True)
def a_uniform_for_each_position():
    """Drafter and target read the same uniform at a position, and so does plain mode."""

    def answer(prompt, budget, seed, lookahead):
        def pick(law, whole):
            noise = np.random.default_rng([seed, len(prompt), len(whole) - len(prompt)])
            return drawn_by(law(whole), noise.random())

        return matching(
            prompt,
            budget,
            lookahead,
            lambda whole: pick(draft_row, whole),
            lambda whole: pick(target_row, whole),
        )

    return Engine(
        lambda prompt, budget, seed: answer(prompt, budget, seed, 3),
        PROMPTS,
        plain=lambda prompt, budget, seed: answer(prompt, budget, seed, 0),
        eos=EOS,
        same_text=True,
    )


@TEXT.lossless(state=True, greedy=True)
def last_of_ties_in_texts():
    """Greedy over rows with many ties: the last of them, in plain mode too."""

    def answer(prompt, budget, seed, lookahead):
        def draft(whole):
            return int(np.argmax(np.round(draft_row(whole) * 6)))

        def own(whole):
            weights = np.round(target_row(whole) * 6)
            return int(len(weights) - 1 - np.argmax(weights[::-1]))

        return matching(prompt, budget, lookahead, draft, own)

    return Engine(
        lambda prompt, budget, seed: answer(prompt, budget, seed, 4),
        list(product(range(4), repeat=3)),
        plain=lambda prompt, budget, seed: answer(prompt, budget, seed, 0),
        eos=EOS,
        tokens=24,
    )


@TEXT.lossless(state=True)
def rows_kept_between_requests():
    """Rows are kept by their whole context; a hash of seed, prompt and position is the uniform."""
    kept, served = {}, 0

    def cached(context):
        if context not in kept:
            kept[context] = target_row(context)
        return kept[context]

    def speculative(prompt, budget, seed):
        nonlocal served
        served += 1

        def own(whole):
            key = f"{seed}/{prompt}/{len(whole) - len(prompt)}".encode()
            uniform = int.from_bytes(hashlib.sha256(key).digest()[:7], "big") / 2**56
            return drawn_by(cached(whole), uniform)

        def draft(whole):
            return int(np.argmax(draft_row(whole)))

        return matching(prompt, budget, served % 5, draft, own)

    return Engine(speculative, PROMPTS, law=LAW, plain=plain, tokens=4)
