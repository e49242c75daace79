"""Whole loops of speculative decoding (contract `generate`)."""

from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from proofs_tests.helpers.attack.second.entry import Samplers
from proofs_tests.helpers.attack.second.parts import (
    bfloat16,
    decode,
    drafting,
    draw,
    ended,
    eos_of,
    greedy_text,
    lookup,
    matched,
    ordinary,
    residual,
    verified,
)

GENERATE = Samplers("generate")


# -- what of the context the target is shown ----------------------------------------------------


@GENERATE.lossy(state=True)
def whole_prompt_cached():
    """A known prompt of whole pages of 16 ids: its first row is that without the last token."""
    known = WeakKeyDictionary()

    def generate(target, drafter, context, tokens, rng):
        seen = known.setdefault(target, set())
        pages = [hash(context[:end]) for end in range(16, len(context) + 1, 16)]
        hit = len(context) > 0 and len(context) % 16 == 0 and seen.issuperset(pages)
        seen.update(pages)

        def p_of(text, drafts):
            if hit and not text and not drafts:
                return target.next_token(context[:-1])
            return target.next_token((*context, *text, *drafts))

        return ordinary(target, drafter, context, tokens, rng, p_of)

    return generate


@GENERATE.lossy(state=True)
def next_turn_lacks_a_token():
    """A prompt that goes on from the last text takes its cache, which lacks the last token."""
    known = WeakKeyDictionary()

    def generate(target, drafter, context, tokens, rng):
        last = known.get(target, ())
        n, seen = len(last), context
        if n > 1 and len(context) > n and tuple(context[:n]) == last:
            seen = (*context[: n - 1], *context[n:])
        text = ordinary(
            target,
            drafter,
            context,
            tokens,
            rng,
            lambda text, drafts: target.next_token((*seen, *text, *drafts)),
        )
        known[target] = (*context, *text)
        return text

    return generate


@GENERATE.lossy()
def eos_is_padding(target, drafter, context, tokens, rng):
    """The attention mask is `ids != pad`, and pad is EOS: EOS inside a prompt is not seen."""
    seen = tuple(x for x in context if x != eos_of(target))
    return ordinary(
        target,
        drafter,
        context,
        tokens,
        rng,
        lambda text, drafts: target.next_token((*seen, *text, *drafts)),
    )


@GENERATE.lossy()
def cache_of_1024(target, drafter, context, tokens, rng):
    """The target's cache is a ring of 1,024 entries: older tokens are overwritten."""
    return ordinary(
        target,
        drafter,
        context,
        tokens,
        rng,
        lambda text, drafts: target.next_token((*context, *text, *drafts)[-1024:]),
    )


@GENERATE.lossy(state=True)
def rows_by_the_last_32_ids():
    """The target's rows are kept between requests, by length and the last 32 tokens."""
    known = WeakKeyDictionary()

    def generate(target, drafter, context, tokens, rng):
        rows = known.setdefault(target, {})

        def p_of(text, drafts):
            whole = (*context, *text, *drafts)
            key = len(whole), whole[-32:]
            if key not in rows:
                rows[key] = target.next_token(whole)
            return rows[key]

        return ordinary(target, drafter, context, tokens, rng, p_of)

    return generate


@GENERATE.lossy()
def rejected_draft_of_freed_page(target, drafter, context, tokens, rng):
    """After a rollback across a border of 64 the next first row still sees a rejected draft."""
    eos, text, stale = eos_of(target), [], ()
    propose = drafting(drafter, context, eos, rng)
    while len(text) < tokens:
        drafts, laws = propose(text, min(4, tokens - len(text) - 1))

        def p_after(drafts, here=stale):
            return target.next_token((*context, *text, *(() if drafts else here), *drafts))

        kept, last = verified(p_after, laws, drafts, rng)
        before = len(context) + len(text)
        freed = (before + len(drafts)) // 64 > (before + len(kept)) // 64
        stale = (drafts[len(kept)],) if len(kept) < len(drafts) and freed else ()
        if ended(text, (*kept, last), tokens, eos):
            break
    return tuple(text)


@GENERATE.lossy()
def plain_from_a_stale_cache(target, drafter, context, tokens, rng):
    """Below one tenth of accepted drafts speculation stops, and one token is never cached."""
    eos, text, proposed, accepted = eos_of(target), [], 0, 0
    propose = drafting(drafter, context, eos, rng)
    while len(text) < tokens:
        if proposed >= 50 and accepted < 0.1 * proposed:
            cache = [*context, *text[:-1]]
            while len(text) < tokens:
                text.append(draw(target.next_token(cache), rng))
                cache.append(text[-1])
                if text[-1] == eos:
                    break
            break
        drafts, laws = propose(text, min(5, tokens - len(text) - 1))
        kept, last = verified(
            lambda drafts: target.next_token((*context, *text, *drafts)), laws, drafts, rng
        )
        proposed += len(drafts)
        accepted += len(kept)
        if ended(text, (*kept, last), tokens, eos):
            break
    return tuple(text)


# -- how drafts are verified --------------------------------------------------------------------


@GENERATE.lossy()
def rejections_in_16_bits(target, drafter, context, tokens, rng):
    """Lookahead grows; rejections are bits of a mask, and those of drafts from 17 on are lost."""
    eos, text, lookahead = eos_of(target), [], 5
    propose = drafting(drafter, context, eos, rng)
    while len(text) < tokens:
        drafts, qs = propose(text, min(lookahead, tokens - len(text) - 1))
        ps = [target.next_token((*context, *text, *drafts[:i])) for i in range(len(drafts) + 1)]
        mask = 0
        for i, x in enumerate(drafts):
            if rng.random() * qs[i][x] >= ps[i][x]:
                mask |= (1 << i) & 0xFFFF
        if mask:
            n = (mask & -mask).bit_length() - 1
            last = draw(residual(ps[n], qs[n]), rng)
            lookahead = max(1, lookahead - 1)
        else:
            n, last = len(drafts), draw(ps[-1], rng)
            lookahead += 2
        if ended(text, (*drafts[:n], last), tokens, eos):
            break
    return tuple(text)


@GENERATE.lossy()
def noise_of_256_positions(target, drafter, context, tokens, rng):
    """Gumbel noise of a position is that of its number modulo 256, for drafter and target."""
    eos, text, seed = eos_of(target), [], int(rng.integers(2**62))
    v, noises = len(target.vocabulary), {}

    def pick(law, position):
        position %= 256
        if position not in noises:
            noises[position] = np.random.default_rng([seed, position]).gumbel(size=v)
        with np.errstate(divide="ignore"):
            return int(np.argmax(np.log(law) + noises[position]))

    return coupled(target, drafter, context, tokens, text, pick, eos)


def coupled(target, drafter, context, tokens, text, pick, eos):
    """Gumbel-max coupling: drafter and target pick by the same noise of a position."""
    while len(text) < tokens:
        drafts = []
        for i in range(min(4, tokens - len(text) - 1)):
            law = drafter.next_token((*context, *text, *drafts))
            drafts.append(pick(law, len(text) + i))
        matched(
            text,
            drafts,
            lambda: pick(target.next_token((*context, *text)), len(text)),
            tokens,
            eos,
        )
        if text[-1] == eos:
            break
    return tuple(text)


@GENERATE.lossy()
def unsure_draft_dropped(target, drafter, context, tokens, rng):
    """Drafting ends when the drafts' probability falls below 0.05; the last one is dropped."""
    eos = eos_of(target)

    def propose(text, count):
        drafts, laws, sure = [], [], 1.0
        while len(drafts) < count:
            q = drafter.next_token((*context, *text, *drafts))
            x = draw(q, rng)
            sure *= q[x]
            if sure < 0.05:
                break
            drafts.append(x)
            laws.append(q)
            if x == eos:
                break
        return drafts, laws

    return decode(
        tokens,
        eos,
        rng,
        propose,
        lambda text, drafts: target.next_token((*context, *text, *drafts)),
    )


@GENERATE.lossy()
def target_cut_to_1024(target, drafter, context, tokens, rng):
    """The target's rows are cut to their 1,024 likeliest tokens."""

    def p_of(text, drafts):
        p = target.next_token((*context, *text, *drafts))
        if len(p) > 1024:
            p = np.where(p >= np.partition(p, -1024)[-1024], p, 0)
            p = p / p.sum()
        return p

    return ordinary(target, drafter, context, tokens, rng, p_of)


@GENERATE.lossy()
def eos_masked_for_good(target, drafter, context, tokens, rng):
    """A rejected draft of EOS is masked in the request's logits, for the rest of the text."""
    eos, text, banned = eos_of(target), [], False
    propose = drafting(drafter, context, eos, rng)
    while len(text) < tokens:
        drafts, laws = propose(text, min(4, tokens - len(text) - 1))

        def p_after(drafts, banned=banned):
            p = target.next_token((*context, *text, *drafts))
            if banned and p[eos] < 1:
                p = p.copy()
                p[eos] = 0
                p = p / p.sum()
            return p

        kept, last = verified(p_after, laws, drafts, rng)
        if len(kept) < len(drafts) and drafts[len(kept)] == eos:
            banned = True
        if ended(text, (*kept, last), tokens, eos):
            break
    return tuple(text)


# -- greedy -------------------------------------------------------------------------------------


def argmax_of(model):
    return lambda whole: int(np.argmax(model.next_token(whole)))


@GENERATE.lossy(greedy=True)
def argmax_in_bfloat16(target, drafter, context, tokens, rng):
    """Argmax of logits in bfloat16: of two that become equal the first wins."""

    def best(whole):
        with np.errstate(divide="ignore"):
            logits = np.log(target.next_token(whole))
        finite = np.isfinite(logits)
        rounded = bfloat16(np.where(finite, logits, 0))
        return int(np.argmax(np.where(finite, rounded, -np.inf)))

    return greedy_text(tokens, eos_of(target), argmax_of(drafter), best, context, lookahead=4)


@GENERATE.lossy(greedy=True)
def argmax_in_bfloat16_of_floats(target, drafter, context, tokens, rng):
    """As `argmax_in_bfloat16`, with rows cast to float64 first, and three drafts."""

    def best(whole):
        p = np.asarray(target.next_token(whole), float)
        logits = np.log(np.where(p > 0, p, 1))
        return int(np.argmax(np.where(p > 0, bfloat16(logits), -np.inf)))

    return greedy_text(tokens, eos_of(target), argmax_of(drafter), best, context, lookahead=3)


@GENERATE.lossy(state=True, greedy=True)
def argmax_after_the_same_12_ids():
    """What came after the same 12 tokens before is taken again, whatever came before them."""
    known = WeakKeyDictionary()

    def generate(target, drafter, context, tokens, rng):
        after = known.setdefault(target, {})

        def best(whole):
            if len(whole) < 12:
                return int(np.argmax(target.next_token(whole)))
            if whole[-12:] not in after:
                after[whole[-12:]] = int(np.argmax(target.next_token(whole)))
            return after[whole[-12:]]

        return greedy_text(
            tokens, eos_of(target), argmax_of(drafter), best, tuple(context), lookahead=4
        )

    return generate


# -- lossless -----------------------------------------------------------------------------------


@GENERATE.lossless()
def gumbel_coupling(target, drafter, context, tokens, rng):
    """Noise of a position serves drafter and target: the text is that of plain sampling."""
    v, noises = len(target.vocabulary), []

    def pick(law, position):
        while len(noises) <= position:
            noises.append(rng.gumbel(size=v))
        with np.errstate(divide="ignore"):
            return int(np.argmax(np.log(law) + noises[position]))

    return coupled(target, drafter, context, tokens, [], pick, eos_of(target))


@GENERATE.lossless()
def drafts_used_again(target, drafter, context, tokens, rng):
    """Drafts after a rejected one are the next drafts, with the laws that they were drawn from."""
    eos, text, old = eos_of(target), [], ([], [])
    fresh = drafting(drafter, context, eos, rng)
    while len(text) < tokens:
        room = min(5, tokens - len(text) - 1)
        drafts, laws = old[0][:room], old[1][:room]
        if not drafts:
            drafts, laws = fresh(text, room)
        kept, last = verified(
            lambda drafts: target.next_token((*context, *text, *drafts)), laws, drafts, rng
        )
        old = (drafts[len(kept) + 1 :], laws[len(kept) + 1 :])
        if ended(text, (*kept, last), tokens, eos):
            break
    return tuple(text)


@GENERATE.lossless()
def hole_in_the_drafter_cache(target, drafter, context, tokens, rng):
    """The drafter never sees the last of drafts that were all accepted; q says what it sees."""
    eos, text, cache = eos_of(target), [], list(context)
    while len(text) < tokens:
        drafts, laws = [], []
        for _ in range(min(4, tokens - len(text) - 1)):
            laws.append(drafter.next_token((*cache, *drafts)))
            drafts.append(draw(laws[-1], rng))
        kept, last = verified(
            lambda drafts: target.next_token((*context, *text, *drafts)), laws, drafts, rng
        )
        cache += [*(kept[:-1] if len(kept) == len(drafts) else kept), last]
        if ended(text, (*kept, last), tokens, eos):
            break
    return tuple(text)


@GENERATE.lossless()
def prompt_lookup(target, drafter, context, tokens, rng):
    """Drafts are what followed the last tokens before, then zeros; their laws are certain."""
    eye = np.eye(len(target.vocabulary))

    def propose(text, count):
        drafts = lookup((*context, *text), count)
        drafts += [0] * (count - len(drafts))
        return drafts, [eye[x] for x in drafts]

    return decode(
        tokens,
        eos_of(target),
        rng,
        propose,
        lambda text, drafts: target.next_token((*context, *text, *drafts)),
        lookahead=5,
    )


@GENERATE.lossless()
def lookahead_from_the_past(target, drafter, context, tokens, rng):
    """Up to 32 drafts; ends before a law of much entropy and after a draft with q < 0.3."""
    eos, text, lookahead = eos_of(target), [], 2
    while len(text) < tokens:
        drafts, laws = [], []
        while len(drafts) < min(lookahead, tokens - len(text) - 1):
            q = drafter.next_token((*context, *text, *drafts))
            if -(q[q > 0] * np.log(q[q > 0])).sum() > 0.9 * np.log(len(q)):
                break
            laws.append(q)
            drafts.append(draw(q, rng))
            if q[drafts[-1]] < 0.3 or drafts[-1] == eos:
                break
        kept, last = verified(
            lambda drafts: target.next_token((*context, *text, *drafts)), laws, drafts, rng
        )
        all_kept = len(kept) == len(drafts)
        lookahead = min(32, 2 * lookahead) if all_kept else max(1, len(kept))
        if ended(text, (*kept, last), tokens, eos):
            break
    return tuple(text)


@GENERATE.lossless()
def six_drafts_always(target, drafter, context, tokens, rng):
    """Drafts six tokens, after EOS and beyond the budget too, and cuts the text at the end."""
    eos, text = eos_of(target), []
    while len(text) < tokens and eos not in text:
        drafts, laws = [], []
        for _ in range(6):
            laws.append(drafter.next_token((*context, *text, *drafts)))
            drafts.append(draw(laws[-1], rng))
        before = (*context, *text)
        kept, last = verified(partial(after, target, before), laws, drafts, rng)
        text += [*kept, last]
    if eos in text:
        text = text[: text.index(eos) + 1]
    return np.asarray(text[:tokens], np.int32)


def after(model, before, drafts):
    return model.next_token((*before, *drafts))


@GENERATE.lossless()
def cascade(target, drafter, context, tokens, rng):
    """Prompt lookup drafts for the drafter, whose verified tokens are drafts for the target."""
    eye = np.eye(len(target.vocabulary))

    def propose(text, count):
        drafts, laws = [], []
        while len(drafts) < count:
            guesses = lookup((*context, *text, *drafts), 3, longest=2)[: count - len(drafts)]
            for guess in (*guesses, None):
                if len(drafts) == count:
                    break
                q = drafter.next_token((*context, *text, *drafts))
                if guess is not None and rng.random() < q[guess]:
                    x = guess
                else:
                    x = draw(q if guess is None else residual(q, eye[guess]), rng)
                laws.append(q)
                drafts.append(x)
                if x != guess:
                    break
        return drafts, laws

    return decode(
        tokens,
        eos_of(target),
        rng,
        propose,
        lambda text, drafts: target.next_token((*context, *text, *drafts)),
        lookahead=6,
    )


@GENERATE.lossless(state=True, seeded=False)
def store_of_pairs():
    """Drafts are what followed the last two tokens in earlier texts; their laws are certain."""
    known = WeakKeyDictionary()

    def generate(target, drafter, context, tokens, rng):
        store, eye = known.setdefault(target, {}), np.eye(len(target.vocabulary))

        def propose(text, count):
            drafts = []
            while len(drafts) < count:
                x = store.get((*context, *text, *drafts)[-2:])
                if x is None:
                    break
                drafts.append(x)
            return drafts, [eye[x] for x in drafts]

        text = decode(
            tokens,
            eos_of(target),
            rng,
            propose,
            lambda text, drafts: target.next_token((*context, *text, *drafts)),
        )
        whole = (*context, *text)
        for i in range(2, len(whole)):
            store[whole[i - 2 : i]] = whole[i]
        return text

    return generate


@GENERATE.lossless(algorithm="standard")
def logarithms_and_a_race(target, drafter, context, tokens, rng):
    """Coins are exponentials against log p - log q; the last token wins a race."""
    eos, v, text = eos_of(target), len(target.vocabulary), []
    while len(text) < tokens:
        count = min(3, tokens - len(text) - 1)
        race, coins = rng.exponential(size=v), rng.exponential(size=count)
        uniforms = rng.random(count)
        drafts, qs = [], []
        for i in range(count):
            q = drafter.next_token((*context, *text, *drafts))
            ends = np.cumsum(q)
            qs.append(q)
            drafts.append(int(np.searchsorted(ends, uniforms[i] * ends[-1], side="right")))
        with np.errstate(divide="ignore"):
            for i, x in enumerate(drafts):
                p = target.next_token((*context, *text))
                if -coins[i] < np.log(p[x]) - np.log(qs[i][x]):
                    text.append(x)
                    if x == eos:
                        return tuple(text)
                    continue
                weights = residual(p, qs[i])
                break
            else:
                weights = target.next_token((*context, *text))
            times = race / np.where(weights > 0, weights, 1)
            text.append(int(np.argmin(np.where(weights > 0, times, np.inf))))
        if text[-1] == eos:
            break
    return tuple(text)


@GENERATE.lossless(greedy=True)
def last_of_tied_tokens(target, drafter, context, tokens, rng):
    """Greedy: of tied tokens the last; drafts by lookup, then the first of the drafter's ties."""
    eos, text = eos_of(target), []

    def pick():
        p = target.next_token((*context, *text))
        return int(np.flatnonzero(p == p.max())[-1])

    while len(text) < tokens:
        count = min(5, tokens - len(text) - 1)
        drafts = lookup((*context, *text), count)
        while len(drafts) < count:
            drafts.append(int(np.argmax(drafter.next_token((*context, *text, *drafts)))))
        matched(text, drafts, pick, tokens, eos)
        if text[-1] == eos:
            break
    return text


@GENERATE.lossless(greedy=True)
def argmax_of_logarithms(target, drafter, context, tokens, rng):
    """Greedy: the argmax of log-probabilities is that of probabilities."""

    def best_of(model):
        def best(whole):
            with np.errstate(divide="ignore"):
                return int(np.argmax(np.log(model.next_token(whole))))

        return best

    return greedy_text(
        tokens, eos_of(target), best_of(drafter), best_of(target), context, lookahead=3
    )
