"""Samplers for the contract `verify`: 30 that are lossy somewhere, 15 that are lossless.

verify(target_probs [B, K + 1, V], draft_probs [B, K, V] or None, draft_tokens [B, K], *, rng)
gives tokens [B, K + 1], padded with -1, and counts [B].
"""

import numpy as np

# ---------------------------------------------------------------- right parts that many share


def _drafted(p, q, d):
    """p and q of the drafts, [B, K] each; what stands at a missing draft is never used."""
    rows, cols = np.arange(d.shape[0])[:, None], np.arange(d.shape[1])
    px = np.asarray(p[rows, cols, d], dtype=np.float64)
    qx = np.ones(d.shape) if q is None else np.asarray(q[rows, cols, d], dtype=np.float64)
    return px, qx


def _prefix(accepted, d):
    return np.logical_and.accumulate(accepted & (d >= 0), axis=1).sum(axis=1)


def _q_at(q, d, rows, cols, size):
    """The drafter's laws at (rows, cols): one-hot where it declares none."""
    if q is not None:
        return np.asarray(q[rows, cols], dtype=np.float64)
    law = np.zeros((len(rows), size))
    law[np.arange(len(rows)), d[rows, cols]] = 1
    return law


def _weights(p, q, d, kept):
    """What the last token is drawn from, unnormalised: the residual, or p after all drafts."""
    w = np.asarray(p[np.arange(len(d)), kept], dtype=np.float64)
    (rejected,) = (kept < (d >= 0).sum(axis=1)).nonzero()
    if rejected.size:
        residual = np.maximum(w[rejected] - _q_at(q, d, rejected, kept[rejected], w.shape[1]), 0)
        left = residual.any(axis=1)
        w[rejected[left]] = residual[left]
    return w


def _inverse(w, u):
    ends = w.cumsum(axis=1)
    return (ends > (u * ends[:, -1])[:, None]).argmax(axis=1)


def _block(d, kept, last):
    batch, lookahead = d.shape
    tokens = np.full((batch, lookahead + 1), -1, dtype=np.int64)
    tokens[:, :lookahead] = np.where(np.arange(lookahead) < kept[:, None], d, -1)
    tokens[np.arange(batch), kept] = last
    return tokens, kept + 1


def _with_uniforms(p, q, d, u):
    """The right rule, by u [B, K + 1]: a coin for each draft, and one for the last token."""
    px, qx = _drafted(p, q, d)
    kept = _prefix(u[:, : d.shape[1]] * qx < px, d)
    return _block(d, kept, _inverse(_weights(p, q, d, kept), u[:, -1]))


def _standard_kept(p, q, d, rng):
    px, qx = _drafted(p, q, d)
    return _prefix(rng.random(d.shape) * qx < px, d)


# ------------------------------------------------------------------------------------- lossy


def smoothed_q(target_probs, draft_probs, draft_tokens, *, rng):
    """q is smoothed (0.8 q + 0.2 / V, against division by 0) though drafts come from q itself."""
    p, q, d = target_probs, draft_probs, draft_tokens
    if q is not None:
        q = 0.8 * np.asarray(q, dtype=np.float64) + 0.2 / q.shape[2]
    return _with_uniforms(p, q, d, rng.random((d.shape[0], d.shape[1] + 1)))


def bonus_tempered_twice(target_probs, draft_probs, draft_tokens, *, rng):
    """The bonus token goes once more through the default temperature of 0.7; residuals do not."""
    p, q, d = target_probs, draft_probs, draft_tokens
    kept = _standard_kept(p, q, d, rng)
    w = _weights(p, q, d, kept)
    bonus = kept == (d >= 0).sum(axis=1)
    w[bonus] = w[bonus] ** (1 / 0.7)
    return _block(d, kept, _inverse(w, rng.random(len(d))))


def min_p_left_on(target_probs, draft_probs, draft_tokens, *, rng):
    """The default min-p filter (0.05) of the sampler chain still cuts what the last token is
    drawn from.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    kept = _standard_kept(p, q, d, rng)
    w = _weights(p, q, d, kept)
    w[w < 0.05 * w.max(axis=1, keepdims=True)] = 0
    return _block(d, kept, _inverse(w, rng.random(len(d))))


def exponential_noise_floor(target_probs, draft_probs, draft_tokens, *, rng):
    """Exponential race whose noise is clamped to 1e-4: in a large flat law many tokens tie at
    the floor.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    kept = _standard_kept(p, q, d, rng)
    w = _weights(p, q, d, kept)
    noise = np.maximum(rng.standard_exponential(w.shape), 1e-4)
    return _block(d, kept, (w / noise).argmax(axis=1))


def bisects_sixteen_times(target_probs, draft_probs, draft_tokens, *, rng):
    """The CDF is bisected in a fixed 16 steps, which ends one to three ids early above 65,536
    tokens.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    kept = _standard_kept(p, q, d, rng)
    ends = _weights(p, q, d, kept).cumsum(axis=1)
    rows = np.arange(len(d))
    u = rng.random(len(d)) * ends[:, -1]
    low, high = np.zeros(len(d), dtype=np.int64), np.full(len(d), ends.shape[1] - 1)
    for _ in range(16):
        middle = (low + high) // 2
        beyond = ends[rows, middle] > u
        high = np.where(beyond, middle, high)
        low = np.where(beyond, low, np.minimum(middle + 1, high))
    return _block(d, kept, low)


def vector_loads_drop_tail(target_probs, draft_probs, draft_tokens, *, rng):
    """From 4,096 tokens on, the last token is drawn by loads of four: the V % 4 ids at the end
    are never drawn.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    kept = _standard_kept(p, q, d, rng)
    w = _weights(p, q, d, kept)
    size = w.shape[1]
    if size >= 4096 and size % 4:
        some = w[:, : size // 4 * 4].any(axis=1)
        w[some, size // 4 * 4 :] = 0
    return _block(d, kept, _inverse(w, rng.random(len(d))))


def draft_ids_in_16_bits(target_probs, draft_probs, draft_tokens, *, rng):
    """Drafts are packed as uint16 where p / q is looked up: from id 65,536 on it is another
    token's ratio.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    packed = np.where(d < 0, d, d & 0xFFFF)
    px, qx = _drafted(p, q, packed)
    kept = _prefix(rng.random(d.shape) * qx < px, d)
    return _block(d, kept, _inverse(_weights(p, q, packed, kept), rng.random(len(d))))


def gives_up_after_16_tries(target_probs, draft_probs, draft_tokens, *, rng):
    """The residual is drawn by trying tokens of p; after 16 tries the last one tried is taken
    as it is.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    kept = _standard_kept(p, q, d, rng)
    law = np.asarray(p[np.arange(len(d)), kept], dtype=np.float64)
    last = _inverse(law, rng.random(len(d)))
    (pending,) = (kept < (d >= 0).sum(axis=1)).nonzero()
    if pending.size:
        less = _q_at(q, d, pending, kept[pending], law.shape[1])
        for attempt in range(16):
            if attempt:
                last[pending] = _inverse(law[pending], rng.random(len(pending)))
            at = np.arange(len(pending)), last[pending]
            p_at = law[pending, last[pending]]
            again = ~(rng.random(len(pending)) * p_at < p_at - less[at])
            pending, less = pending[again], less[again]
            if not pending.size:
                break
    return _block(d, kept, last)


def small_residual_is_rounding(target_probs, draft_probs, draft_tokens, *, rng):
    """A residual whose sum is below 0.03 is thought to be rounding, and p is drawn from
    instead.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    kept = _standard_kept(p, q, d, rng)
    w = _weights(p, q, d, kept)
    noise = w.sum(axis=1) < 0.03
    w[noise] = p[np.arange(len(d)), kept][noise]
    return _block(d, kept, _inverse(w, rng.random(len(d))))


def ties_go_to_the_first(target_probs, draft_probs, draft_tokens, *, rng):
    """Radix selection draws a probability *value* and then looks its id up: of equal ones the
    first gets all.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    kept = _standard_kept(p, q, d, rng)
    w = _weights(p, q, d, kept)
    value = w[np.arange(len(d)), _inverse(w, rng.random(len(d)))]
    return _block(d, kept, (w == value[:, None]).argmax(axis=1))


def reduceat_of_empty_segment(target_probs, draft_probs, draft_tokens, *, rng):
    """Flat drafts and `reduceat`: a row without drafts reads the next row's first flag, and its
    q.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    size = p.shape[2]
    px, qx = _drafted(p, q, d)
    accepted = rng.random(d.shape) * qx < px
    kept = _prefix(accepted, d)
    drafted = d >= 0
    lens = drafted.sum(axis=1)
    starts = lens.cumsum() - lens
    flags = np.append(accepted[drafted], True)
    all_kept = np.logical_and.reduceat(
        flags, starts
    )  # gives flags[start] where a segment is empty
    w = np.asarray(p[np.arange(len(d)), kept], dtype=np.float64)
    (rejected,) = (~all_kept).nonzero()
    if rejected.size:
        flat_rows, flat_cols = drafted.nonzero()
        at = starts[rejected] + kept[rejected]
        less = _q_at(q, d, flat_rows[at], flat_cols[at], size)
        residual = np.maximum(w[rejected] - less, 0)
        left = residual.any(axis=1)
        w[rejected[left]] = residual[left]
    return _block(d, kept, _inverse(w, rng.random(len(d))))


def ragged_offsets_one_row_late(target_probs, draft_probs, draft_tokens, *, rng):
    """Coins lie flat, by inclusive (not exclusive) sums of the lengths: a row longer than the
    next shares coins with it.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    batch, lookahead = d.shape
    lens = (d >= 0).sum(axis=1)
    flat = rng.random(max(int(lens.sum()), 1))
    at = lens.cumsum()[:, None] + np.arange(lookahead)
    u = np.concatenate([flat[at % len(flat)], rng.random((batch, 1))], axis=1)
    return _with_uniforms(p, q, d, u)


def unsorted_by_the_wrong_permutation(target_probs, draft_probs, draft_tokens, *, rng):
    """Rows are sorted by length; the last tokens go back by the permutation, not by its
    inverse.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    kept = _standard_kept(p, q, d, rng)
    order = np.argsort(-(d >= 0).sum(axis=1), kind="stable")
    last = _inverse(_weights(p, q, d, kept)[order], rng.random(len(d)))
    return _block(d, kept, last[order])


def seeds_by_draft(target_probs, draft_probs, draft_tokens, *, rng):
    """A row's stream is seeded by the call and a hash of its drafts: rows with the same drafts
    share all coins.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    _, group = np.unique(d, axis=0, return_inverse=True)
    group = np.reshape(group, -1)
    u = rng.random((int(group.max(initial=0)) + 1, d.shape[1] + 1))[group]
    return _with_uniforms(p, q, d, u)


def arithmetic_sampling(target_probs, draft_probs, draft_tokens, *, rng):
    """Coins are stratified over the batch, one for each B-th part of [0, 1): every row is
    right, rows are not independent.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    shape = d.shape[0], d.shape[1] + 1
    strata = np.broadcast_to(np.arange(shape[0])[:, None], shape)
    u = (rng.permuted(strata, axis=0) + rng.random(shape)) / max(shape[0], 1)
    return _with_uniforms(p, q, d, np.minimum(u, 1 - 2.0**-53))


def odd_row_reuses_a_pair(target_probs, draft_probs, draft_tokens, *, rng):
    """Coins are made for pairs of rows; the last row of an odd batch takes those of the row
    before it.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    u = rng.random((d.shape[0], d.shape[1] + 1))
    if len(u) > 1 and len(u) % 2:
        u[-1] = u[-2]
    return _with_uniforms(p, q, d, u)


def key_used_twice(target_probs, draft_probs, draft_tokens, *, rng):
    """One key for coins [B, K] and for last draws [B]: row r draws its token with coin r of the
    flat [B, K].
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    batch, lookahead = d.shape
    stream = rng.random(batch * max(lookahead, 1))
    u = np.concatenate(
        [stream[: batch * lookahead].reshape(d.shape), stream[:batch, None]], axis=1
    )
    return _with_uniforms(p, q, d, u)


def offset_grows_by_tokens(target_probs, draft_probs, draft_tokens, *, rng):
    """The stream's offset grows by the tokens emitted, not by the coins taken: the next call
    meets old coins again.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    source = getattr(rng, "bit_generator", None)
    before = None if source is None else source.state
    tokens, counts = _with_uniforms(p, q, d, rng.random((d.shape[0], d.shape[1] + 1)))
    if before is not None:
        source.state = before
        rng.random(int(counts.sum()))
    return tokens, counts


def sixteen_bit_seed(target_probs, draft_probs, draft_tokens, *, rng):
    """Each call seeds a generator of its own with 16 bits: there are 65,536 answers to a batch."""
    p, q, d = target_probs, draft_probs, draft_tokens
    own = np.random.default_rng(int(rng.integers(1 << 16)))
    return _with_uniforms(p, q, d, own.random((d.shape[0], d.shape[1] + 1)))


_PADDED_Q = {}


def stale_padded_q(target_probs, draft_probs, draft_tokens, *, rng):
    """q is copied into a workspace kept between calls, with a zero column for the bonus;
    shorter rows find the last call's q there.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    batch, lookahead = d.shape
    shape = batch, lookahead + 1, p.shape[2]
    if shape not in _PADDED_Q:
        _PADDED_Q.clear()
        if batch * (lookahead + 1) * p.shape[2] > 1 << 24:  # too large to keep
            return _with_uniforms(p, q, d, rng.random((batch, lookahead + 1)))
        _PADDED_Q[shape] = np.zeros(shape)
    padded = _PADDED_Q[shape]
    rows, cols = (d >= 0).nonzero()
    padded[rows, cols] = _q_at(q, d, rows, cols, p.shape[2])
    kept = _standard_kept(p, q, d, rng)
    law = np.asarray(p[np.arange(batch), kept], dtype=np.float64)
    w = np.maximum(law - padded[np.arange(batch), kept], 0)
    none = ~w.any(axis=1)
    w[none] = law[none]
    return _block(d, kept, _inverse(w, rng.random(batch)))


_GRAPHS = {}


def graph_captured_while_greedy(target_probs, draft_probs, draft_tokens, *, rng):
    """A graph is captured for each shape, and 'all rows are greedy' is baked into it by the
    first batch.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    shape = (*d.shape, p.shape[2])
    if shape not in _GRAPHS:
        _GRAPHS[shape] = bool((p.max(axis=2) == 1).all())
    if not _GRAPHS[shape]:
        return _with_uniforms(p, q, d, rng.random((d.shape[0], d.shape[1] + 1)))
    best = p.argmax(axis=2)
    kept = _prefix(best[:, : d.shape[1]] == d, d)
    return _block(d, kept, best[np.arange(len(d)), kept])


def memo_of_three_numbers(target_probs, draft_probs, draft_tokens, *, rng):
    """Residuals of a batch are memoised by (token, p, q) of the rejected draft: other rows with
    the same three share it.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    px, qx = _drafted(p, q, d)
    kept = _prefix(rng.random(d.shape) * qx < px, d)
    w = _weights(p, q, d, kept)
    seen = {}
    for row in (kept < (d >= 0).sum(axis=1)).nonzero()[0]:
        at = row, kept[row]
        w[row] = seen.setdefault((int(d[at]), float(px[at]), float(qx[at])), w[row].copy())
    return _block(d, kept, _inverse(w, rng.random(len(d))))


def second_chunk_takes_first_lengths(target_probs, draft_probs, draft_tokens, *, rng):
    """The last draw is chunked when B x V > 4 Mi numbers; every chunk reads the accepted
    lengths of the first.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    kept = _standard_kept(p, q, d, rng)
    lens = (d >= 0).sum(axis=1)
    step = max(1, (1 << 22) // p.shape[2])
    last = np.zeros(len(d), dtype=np.int64)
    for start in range(0, len(d), step):
        part = slice(start, start + step)
        number = len(d[part])
        lengths = np.minimum(kept[:number], lens[part])  # kept[part] was meant
        w = _weights(p[part], None if q is None else q[part], d[part], lengths)
        last[part] = _inverse(w, rng.random(number))
    return _block(d, kept, last)


def guesses_the_layout(target_probs, draft_probs, draft_tokens, *, rng):
    """Takes the target's laws as [K + 1, B, V] if the first axis has K + 1 entries, which it
    has also if B = K + 1.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    if p.shape[0] == d.shape[1] + 1:
        p = p.swapaxes(0, 1)
    return _with_uniforms(p, q, d, rng.random((d.shape[0], d.shape[1] + 1)))


def mask_in_eight_signed_bits(target_probs, draft_probs, draft_tokens, *, rng):
    """The lowest 0 of a mask in an int8 is looked for: with 8 drafts all accepted there is
    none, and it is taken for none accepted.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    lookahead = d.shape[1]
    px, qx = _drafted(p, q, d)
    accepted = (rng.random(d.shape) * qx < px) & (d >= 0)
    if lookahead <= 8:
        mask = (accepted << np.arange(lookahead)).sum(axis=1).astype(np.uint8).view(np.int8)
        lowest = (~mask & (mask + np.int8(1))).view(np.uint8)
        bits = (lowest[:, None] >> np.arange(9)) & 1
        kept = np.where(lookahead == 8, bits[:, :8].argmax(axis=1), bits.argmax(axis=1))
    else:
        kept = _prefix(accepted, d)
    return _block(d, kept, _inverse(_weights(p, q, d, kept), rng.random(len(d))))


def infers_a_greedy_drafter(target_probs, draft_probs, draft_tokens, *, rng):
    """If every draft of the batch is the drafter's most likely token, the drafter is taken to
    be greedy (q one-hot).
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    if q is not None:
        there = d >= 0
        if (q.argmax(axis=2)[there] == d[there]).all():
            q = None
    return _with_uniforms(p, q, d, rng.random((d.shape[0], d.shape[1] + 1)))


def grammar_truncates_drafts(target_probs, draft_probs, draft_tokens, *, rng):
    """Drafts that the mask forbids (p = 0) are cut off beforehand, so p follows there and not
    the residual.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    px, _ = _drafted(p, q, d)
    d = np.where(np.logical_and.accumulate((px > 0) & (d >= 0), axis=1), d, -1)
    return _with_uniforms(p, q, d, rng.random((d.shape[0], d.shape[1] + 1)))


def reads_memory_as_it_lies(target_probs, draft_probs, draft_tokens, *, rng):
    """Laws are read in the order of memory without regard to strides: wrong for a transposed
    view.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    p = p.ravel(order="K").reshape(p.shape)
    if q is not None:
        q = q.ravel(order="K").reshape(q.shape)
    return _with_uniforms(p, q, d, rng.random((d.shape[0], d.shape[1] + 1)))


def ratios_in_a_map_by_token(target_probs, draft_probs, draft_tokens, *, rng):
    """p / q of a row's drafts lie in a map by token: a token drafted twice is judged by its
    last place both times.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    lookahead = d.shape[1]
    px, qx = _drafted(p, q, d)
    if lookahead:
        same = d[:, :, None] == d[:, None, :]
        place = lookahead - 1 - same[:, :, ::-1].argmax(axis=2)
        px, qx = np.take_along_axis(px, place, axis=1), np.take_along_axis(qx, place, axis=1)
    kept = _prefix(rng.random(d.shape) * qx < px, d)
    return _block(d, kept, _inverse(_weights(p, q, d, kept), rng.random(len(d))))


def masks_all_proposals(target_probs, draft_probs, draft_tokens, *, rng):
    """draft_probs=None: after a rejection all drafts of the row are masked, not the rejected
    one alone.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    kept = _standard_kept(p, q, d, rng)
    w = _weights(p, q, d, kept)
    if q is None:
        for row in (kept < (d >= 0).sum(axis=1)).nonzero()[0]:
            masked = w[row].copy()
            masked[d[row][d[row] >= 0]] = 0
            if masked.any():
                w[row] = masked
    return _block(d, kept, _inverse(w, rng.random(len(d))))


# ---------------------------------------------------------------------------------- lossless


def gumbel_and_logs(target_probs, draft_probs, draft_tokens, *, rng):
    """Right: log u < log p - log q, and argmax of log weight + Gumbel noise; the noise is drawn
    before the coins.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    gumbel = rng.gumbel(size=(len(d), p.shape[2]))
    px, qx = _drafted(p, q, d)
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = _prefix(np.log(rng.random(d.shape)) + np.log(qx) < np.log(px), d)
        scores = np.log(_weights(p, q, d, kept)) + gumbel
    return _block(d, kept, scores.argmax(axis=1))


def alias_tables(target_probs, draft_probs, draft_tokens, *, rng):
    """Right: the last token by an alias table (Walker), made for all rows at once; large laws
    by the CDF.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    kept = _standard_kept(p, q, d, rng)
    w = _weights(p, q, d, kept)
    batch, size = w.shape
    if size > 64:
        return _block(d, kept, _inverse(w, rng.random(batch)))
    rows = np.arange(batch)
    mass = w / w.sum(axis=1, keepdims=True) * size
    share, other = np.ones((batch, size)), np.tile(np.arange(size), (batch, 1))
    done = np.zeros((batch, size), dtype=bool)
    for _ in range(size - 1):
        small = np.where(done, np.inf, mass).argmin(axis=1)
        large = np.where(done, -np.inf, mass).argmax(axis=1)
        share[rows, small] = np.minimum(mass[rows, small], 1)
        other[rows, small] = large
        mass[rows, large] -= np.where(small == large, 0, 1 - share[rows, small])
        done[rows, small] = True
    column = rng.integers(size, size=batch)
    own = rng.random(batch) < share[rows, column]
    return _block(d, kept, np.where(own, column, other[rows, column]))


def cdf_from_above(target_probs, draft_probs, draft_tokens, *, rng):
    """Right: rejects if (1 - u) q <= q - p, and sums the weights from the last id down."""
    p, q, d = target_probs, draft_probs, draft_tokens
    px, qx = _drafted(p, q, d)
    coins = 1 - rng.random(d.shape)  # in (0, 1]
    kept = _prefix(~(coins * qx <= qx - px), d)
    w = _weights(p, q, d, kept)[:, ::-1]
    return _block(d, kept, w.shape[1] - 1 - _inverse(w, rng.random(len(d))))


def draws_all_ends_first(target_probs, draft_probs, draft_tokens, *, rng):
    """Right: an end is drawn for every place, rejected there or not, before any coin; places go
    from the last to the first.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    batch, lookahead = d.shape
    lens = (d >= 0).sum(axis=1)
    ends = np.zeros((batch, lookahead + 1), dtype=np.int64)
    for place in range(lookahead, -1, -1):
        at = np.minimum(place, lens)
        ends[:, place] = _inverse(_weights(p, q, d, at), rng.random(batch))
    px, qx = _drafted(p, q, d)
    kept = lens.copy()
    for place in range(lookahead - 1, -1, -1):
        rejected = ~(rng.random(batch) * qx[:, place] < px[:, place]) & (place < lens)
        kept[rejected] = place
    return _block(d, kept, ends[np.arange(batch), kept])


def residual_by_trying(target_probs, draft_probs, draft_tokens, *, rng):
    """Right: tokens of p are tried until one passes with (p - q) / p; after 40 tries the
    residual itself is drawn from.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    kept = _standard_kept(p, q, d, rng)
    law = np.asarray(p[np.arange(len(d)), kept], dtype=np.float64)
    last = _inverse(law, rng.random(len(d)))
    (pending,) = (kept < (d >= 0).sum(axis=1)).nonzero()
    for _ in range(40):
        if not pending.size:
            return _block(d, kept, last)
        last[pending] = _inverse(law[pending], rng.random(len(pending)))
        p_at = law[pending, last[pending]]
        q_at = _q_at(q, d, pending, kept[pending], law.shape[1])
        passes = (
            rng.random(len(pending)) * p_at < p_at - q_at[np.arange(len(pending)), last[pending]]
        )
        pending = pending[~passes]
    if pending.size:
        last[pending] = _inverse(_weights(p, q, d, kept)[pending], rng.random(len(pending)))
    return _block(d, kept, last)


def one_uniform_for_a_row(target_probs, draft_probs, draft_tokens, *, rng):
    """Right: a single u decides a row; it is stretched to [0, 1) again after every decision."""
    p, q, d = target_probs, draft_probs, draft_tokens
    batch, lookahead = d.shape
    px, qx = _drafted(p, q, d)
    u = rng.random(batch)
    going, kept = np.ones(batch, dtype=bool), np.zeros(batch, dtype=np.int64)
    for place in range(lookahead):
        going &= d[:, place] >= 0
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = np.where(
                px[:, place] >= qx[:, place],
                np.where(px[:, place] > 0, 1.0, 0.0),
                px[:, place] / qx[:, place],
            )
            accepted = u < chance
            stretched = np.where(accepted, u / chance, (u - chance) / (1 - chance))
        u = np.where(going, np.clip(stretched, 0, 1 - 2.0**-53), u)
        going &= accepted
        kept += going
    return _block(d, kept, _inverse(_weights(p, q, d, kept), u))


def rows_of_the_coupling(target_probs, draft_probs, draft_tokens, *, rng):
    """Right: of the maximal coupling of p and q, the row of the draft is drawn from; the draft
    is kept if it comes out.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    batch, lookahead = d.shape
    rows = np.arange(batch)
    last = np.zeros(batch, dtype=np.int64)
    going, kept = np.ones(batch, dtype=bool), np.zeros(batch, dtype=np.int64)
    for place in range(lookahead + 1):
        (now,) = going.nonzero()
        if not now.size:
            break
        law = np.asarray(p[now, place], dtype=np.float64)
        has = d[now, place] >= 0 if place < lookahead else np.zeros(len(now), dtype=bool)
        if has.any():
            some, x = now[has], d[now[has], place]
            less = _q_at(q, d, some, np.full(len(some), place), law.shape[1])
            index = np.arange(len(some))
            px, qx = law[has][index, x], less[index, x]
            stays = np.where(px >= qx, 1.0, px / np.where(qx > 0, qx, 1))
            stays[px == 0] = 0
            residual = np.maximum(law[has] - less, 0)
            total = residual.sum(axis=1)
            coupling = residual / np.where(total > 0, total, 1)[:, None] * (1 - stays)[:, None]
            coupling[index, x] += stays
            law[has] = coupling
        last[now] = _inverse(law, rng.random(len(now)))
        going[now] = has
        if has.any():
            going[now[has]] = last[now[has]] == d[now[has], place]
        kept[rows[going]] += 1
    return _block(d, kept, last)


def sorted_twice(target_probs, draft_probs, draft_tokens, *, rng):
    """Right: rows are sorted by length and sent back, and each law is sorted by weight before
    its CDF.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    order = np.argsort((d >= 0).sum(axis=1), kind="stable")
    back = np.argsort(order)
    d_sorted, p_sorted = d[order], p[order]
    q_sorted = None if q is None else q[order]
    kept = _standard_kept(p_sorted, q_sorted, d_sorted, rng)
    w = _weights(p_sorted, q_sorted, d_sorted, kept)
    by_weight = np.argsort(-w, axis=1)
    place = _inverse(np.take_along_axis(w, by_weight, axis=1), rng.random(len(d)))
    last = by_weight[np.arange(len(d)), place]
    tokens, counts = _block(d_sorted, kept, last)
    return tokens[back], counts[back]


_ENDS = {}


def memo_of_whole_laws(target_probs, draft_probs, draft_tokens, *, rng):
    """Right: CDFs of residuals are memoised, between calls too, by all bytes of the weights."""
    p, q, d = target_probs, draft_probs, draft_tokens
    kept = _standard_kept(p, q, d, rng)
    w = _weights(p, q, d, kept)
    u = rng.random(len(d))
    if w.shape[1] > 4096:
        return _block(d, kept, _inverse(w, u))
    last = np.zeros(len(d), dtype=np.int64)
    for row, law in enumerate(w):
        key = law.tobytes()
        if key not in _ENDS:
            if len(_ENDS) >= 1000:
                _ENDS.clear()
            _ENDS[key] = law.cumsum()
        ends = _ENDS[key]
        last[row] = np.searchsorted(ends, u[row] * ends[-1], side="right")
    return _block(d, kept, last)


def tiles_then_tokens(target_probs, draft_probs, draft_tokens, *, rng):
    """Right: u chooses a tile of 7 ids by the tiles' sums, and what is left of u, stretched,
    chooses within it.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    kept = _standard_kept(p, q, d, rng)
    w = _weights(p, q, d, kept)
    batch, size = w.shape
    tiles = np.pad(w, ((0, 0), (0, -size % 7))).reshape(batch, -1, 7)
    rows = np.arange(batch)
    sums = tiles.sum(axis=2)
    ends = sums.cumsum(axis=1)
    u = rng.random(batch) * ends[:, -1]
    tile = (ends > u[:, None]).argmax(axis=1)
    left = (u - (ends[rows, tile] - sums[rows, tile])) / sums[rows, tile]
    within = _inverse(tiles[rows, tile], np.clip(left, 0, 1 - 2.0**-53))
    return _block(d, kept, tile * 7 + within)


def recycles_unused_coins(target_probs, draft_probs, draft_tokens, *, rng):
    """Right: the last token is drawn by the coin of the place after the rejected draft, which
    decided nothing.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    u = rng.random((d.shape[0], d.shape[1] + 1))
    px, qx = _drafted(p, q, d)
    kept = _prefix(u[:, : d.shape[1]] * qx < px, d)
    rejected = kept < (d >= 0).sum(axis=1)
    coin = u[np.arange(len(d)), kept + rejected]
    return _block(d, kept, _inverse(_weights(p, q, d, kept), coin))


def word_by_word(target_probs, draft_probs, draft_tokens, *, rng):
    """Right: a coin has 20 bits; where these are those of p / q, and decide nothing, a second
    number decides.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    px, qx = _drafted(p, q, d)
    ratio = np.where(px >= qx, 1.0, px / np.where(qx > 0, qx, 1))
    ratio[px == 0] = 0
    whole = np.floor(ratio * 2**20)
    bits = rng.integers(1 << 20, size=d.shape)
    accepted = bits < whole
    undecided = (bits == whole).nonzero()
    accepted[undecided] = rng.random(len(undecided[0])) < (ratio * 2**20 - whole)[undecided]
    kept = _prefix(accepted, d)
    return _block(d, kept, _inverse(_weights(p, q, d, kept), rng.random(len(d))))


def sums_modulo_one(target_probs, draft_probs, draft_tokens, *, rng):
    """Right: row r's coins are the sums, modulo 1, of those of rows 0 to r; such sums are
    independent and uniform.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    numbers = rng.integers(1 << 53, size=(d.shape[0], d.shape[1] + 1), dtype=np.uint64)
    sums = numbers.cumsum(axis=0, dtype=np.uint64) & np.uint64((1 << 53) - 1)
    return _with_uniforms(p, q, d, sums.astype(np.float64) * 2.0**-53)


def a_stream_for_each_row(target_probs, draft_probs, draft_tokens, *, rng):
    """Right: each row has a generator of its own, seeded by 128 random bits of the call and the
    row's number; coins are taken one by one, if p < q alone.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    base = [int(word) for word in rng.integers(1 << 32, size=4)]
    px, qx = _drafted(p, q, d)
    kept, u = np.zeros(len(d), dtype=np.int64), np.zeros(len(d))
    for row in range(len(d)):
        own = np.random.Generator(np.random.PCG64([row, *base]))
        for place in range(d.shape[1]):
            if d[row, place] < 0 or px[row, place] == 0:
                break
            if px[row, place] < qx[row, place] and own.random() * qx[row, place] >= px[row, place]:
                break
            kept[row] += 1
        u[row] = own.random()
    return _block(d, kept, _inverse(_weights(p, q, d, kept), u))


_WORKSPACE = {}


def padded_workspace(target_probs, draft_probs, draft_tokens, *, rng):
    """Right: the batch is padded to a power of two with copies of row 0, in a workspace kept
    between calls; an exponential race in it.
    """
    p, q, d = target_probs, draft_probs, draft_tokens
    batch, size = len(d), p.shape[2]
    padded = 1 << max(batch - 1, 0).bit_length()
    source = np.concatenate([np.arange(batch), np.zeros(padded - batch, dtype=np.int64)])
    px, qx = _drafted(p, q, d)
    kept = _prefix((rng.random((padded, d.shape[1]))[:batch] * qx) < px, d)
    if _WORKSPACE.get("shape") != (padded, size):
        _WORKSPACE.update(shape=(padded, size), array=np.empty((padded, size)))
    work = _WORKSPACE["array"]
    work[:] = _weights(p, q, d, kept)[source]
    work /= rng.standard_exponential((padded, size))
    return _block(d, kept, work.argmax(axis=1)[:batch])


# "m": measured by /tmp/third/measure2.py or measure3.py; the others are by reasoning.
