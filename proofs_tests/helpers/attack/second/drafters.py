"""Drafters, which say the law that each draft is drawn from (contract `drafter`)."""

import numpy as np

from proofs_tests.helpers.attack.second.entry import Samplers
from proofs_tests.helpers.attack.second.parts import draw

DRAFTER = Samplers("drafter")


def row_of(drafter, text):
    return np.asarray(drafter.next_token(tuple(text)), dtype=float)


def answer(drafter, context, text, rows, dtype=float):
    """The drafts, and their laws as an array, which has columns even without rows."""
    laws = np.array(rows, dtype=dtype).reshape(len(rows), len(row_of(drafter, context)))
    return tuple(text[len(context) :]), laws


@DRAFTER.lossy()
def fifth_row_is_the_fourth(drafter, context, lookahead, rng):
    """The buffer of q has four rows: from the fifth draft on the fourth is declared."""
    text, rows = tuple(context), []
    for i in range(lookahead):
        q = row_of(drafter, text)
        text += (draw(q, rng),)
        rows.append(q if i < 4 else rows[3])
    return text[len(context) :], np.array(rows).reshape(len(rows), -1)


@DRAFTER.lossy()
def unlikely_drafts_dropped(drafter, context, lookahead, rng):
    """A draft with q < 0.15 is dropped after it was drawn, and drafting ends."""
    text, rows = tuple(context), []
    for _ in range(lookahead):
        q = row_of(drafter, text)
        x = draw(q, rng)
        if q[x] < 0.15:
            break
        text += (x,)
        rows.append(q)
    return answer(drafter, context, text, rows)


@DRAFTER.lossy()
def window_of_128(drafter, context, lookahead, rng):
    """Drafts are drawn after the last 128 tokens; q is computed again, from the whole text."""
    text, rows = tuple(context), []
    for _ in range(lookahead):
        x = draw(row_of(drafter, text[-128:]), rng)
        rows.append(row_of(drafter, text))
        text += (x,)
    return answer(drafter, context, text, rows)


@DRAFTER.lossless()
def gumbel_drafts(drafter, context, lookahead, rng):
    """Drafts are the largest of log q plus Gumbel noise, which has the law q."""
    text, rows = tuple(context), []
    for _ in range(lookahead):
        q = row_of(drafter, text)
        with np.errstate(divide="ignore"):
            text += (int((np.log(q) + rng.gumbel(size=len(q))).argmax()),)
        rows.append(q)
    return answer(drafter, context, text, rows)


@DRAFTER.lossless()
def ends_after_an_unlikely_draft(drafter, context, lookahead, rng):
    """Ends after a draft with q < 0.3, which it keeps."""
    text, rows = tuple(context), []
    for _ in range(lookahead):
        q = row_of(drafter, text)
        x = draw(q, rng)
        text += (x,)
        rows.append(q)
        if q[x] < 0.3:
            break
    return answer(drafter, context, text, rows)


@DRAFTER.lossless()
def two_likeliest(drafter, context, lookahead, rng):
    """Draws from the likeliest two at temperature 0.7, and declares just that, in float32."""
    text, rows = list(context), []
    for _ in range(lookahead):
        q = row_of(drafter, text)
        likeliest = np.argsort(-q, kind="stable")[:2]
        weights = np.zeros(len(q))
        weights[likeliest] = q[likeliest] ** (1 / 0.7)
        weights /= weights.sum()
        text.append(draw(weights, rng))
        rows.append(np.float32(weights))
    return answer(drafter, context, text, rows, np.float32)
