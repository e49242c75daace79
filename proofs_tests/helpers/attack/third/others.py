"""Samplers for the contracts step, generate, ragged and tree: 24 that are lossy, 12 that are not.

Each of the lossy ones is right nearly everywhere, and wrong in one ordinary situation (SITUATION).
"""

import math
from collections import OrderedDict

import numpy as np

# --------------------------------------------------------------------------- common, correct parts


def _row(model, context):
    return np.asarray(model.next_token(tuple(context)), dtype=float)


def _draw(weights, rng):
    ends = np.cumsum(weights)
    return int((ends > rng.random() * ends[-1]).argmax())


def _left(p, q):
    """The residual, or p if rounding alone rejected."""
    rest = np.maximum(p - q, 0)
    return rest if rest.any() else p


def _one_hot(size, token):
    row = np.zeros(size)
    row[token] = 1
    return row


def _draft(drafter, context, count, vocabulary, rng):
    """Drafts, and the rows that they were drawn from; EOS is the last one."""
    drafts, rows = [], []
    while len(drafts) < count and not (drafts and vocabulary.ends(drafts)):
        q = _row(drafter, (*context, *drafts))
        rows.append(q)
        drafts.append(_draw(q, rng))
    return drafts, rows


def _verify(law, drafts, rows, vocabulary, rng, left=_left):
    """Standard verification; law(i) is the target's row after i drafts."""
    for i, (x, q) in enumerate(zip(drafts, rows, strict=True)):
        p = law(i)
        if rng.random() * q[x] >= p[x]:
            return (*drafts[:i], _draw(left(p, q), rng))
    if drafts and vocabulary.ends(drafts):
        return tuple(drafts)
    return (*drafts, _draw(law(len(drafts)), rng))


def _remember(cache, key, value, size):
    cache[key] = value
    if len(cache) > size:
        cache.popitem(last=False)


# --------------------------------------------------------------------------------- step, lossy


def step_bonus_tile(target, drafter, context, lookahead, rng):
    """Logits lie in whole tiles of 16 rows, so the bonus row of 16 (32) drafts wraps to row 0."""
    drafts, rows = _draft(drafter, context, lookahead, target.vocabulary, rng)
    tile = 16 * max(1, -(-lookahead // 16))

    def law(i):
        return _row(target, (*context, *drafts[: i % tile]))

    return _verify(law, drafts, rows, target.vocabulary, rng)


_PREFIXES = OrderedDict()


def step_adapter_blind_cache(target, drafter, context, lookahead, rng):
    """The prefix cache (prompts of 16 tokens and more) is not keyed by the target, or adapter."""
    drafts, rows = _draft(drafter, context, lookahead, target.vocabulary, rng)
    first = None
    if len(context) >= 16:
        key = (tuple(context), len(target.vocabulary))
        first = _PREFIXES.get(key)
        if first is None:
            first = _row(target, context)
            _remember(_PREFIXES, key, first, 4096)

    def law(i):
        return first if i == 0 and first is not None else _row(target, (*context, *drafts[:i]))

    return _verify(law, drafts, rows, target.vocabulary, rng)


def step_stop_bits(target, drafter, context, lookahead, rng):
    """Stop tokens among drafts are a mask of 8 bits: an EOS drafted ninth or later is refused."""
    drafts, rows = _draft(drafter, context, lookahead, target.vocabulary, rng)
    for i, (x, q) in enumerate(zip(drafts, rows, strict=True)):
        p = _row(target, (*context, *drafts[:i]))
        unseen = i >= 8 and target.vocabulary.ends(drafts[: i + 1])
        if unseen or rng.random() * q[x] >= p[x]:
            return (*drafts[:i], _draw(_left(p, q), rng))
    if drafts and target.vocabulary.ends(drafts):
        return tuple(drafts)
    return (*drafts, _draw(_row(target, (*context, *drafts)), rng))


def step_small_residual(target, drafter, context, lookahead, rng):
    """A residual that sums to less than 0.1 is taken for rounding, and p is drawn from."""
    drafts, rows = _draft(drafter, context, lookahead, target.vocabulary, rng)

    def left(p, q):
        rest = np.maximum(p - q, 0)
        return rest if rest.sum() >= 0.1 else p

    def law(i):
        return _row(target, (*context, *drafts[:i]))

    return _verify(law, drafts, rows, target.vocabulary, rng, left)


def step_short_ids(target, drafter, context, lookahead, rng):
    """The recovered token is written as 16 bits: ids from 65,536 on come out 65,536 lower."""
    drafts, rows = _draft(drafter, context, lookahead, target.vocabulary, rng)
    for i, (x, q) in enumerate(zip(drafts, rows, strict=True)):
        p = _row(target, (*context, *drafts[:i]))
        if rng.random() * q[x] >= p[x]:
            return (*drafts[:i], _draw(_left(p, q), rng) & 0xFFFF)
    if drafts and target.vocabulary.ends(drafts):
        return tuple(drafts)
    return (*drafts, _draw(_row(target, (*context, *drafts)), rng))


def _looked_up(context, n=8):
    """What followed the last n tokens each time before: its continuation, if seen twice, alike."""
    last, found = tuple(context[-n:]), []
    if len(context) < 3 * n:
        return ()
    for at in range(len(context) - n - 1, -1, -1):
        if context[at + n - 1] == last[-1] and tuple(context[at : at + n]) == last:
            found.append(at + n)
            if len(found) == 2:
                break
    if len(found) < 2 or context[found[0]] != context[found[1]]:
        return ()
    return tuple(context[found[0] :])


def step_hybrid_lookup(target, drafter, context, lookahead, rng):
    """In a context that loops, drafts are copied from it, but judged by the drafter's q."""
    copied = _looked_up(tuple(context))
    drafts, rows = [], []
    while len(drafts) < lookahead and not (drafts and target.vocabulary.ends(drafts)):
        i, q = len(drafts), _row(drafter, (*context, *drafts))
        sure = i < len(copied) and tuple(copied[:i]) == tuple(drafts) and q[copied[i]] > 0
        rows.append(q)
        drafts.append(copied[i] if sure else _draw(q, rng))

    def law(i):
        return _row(target, (*context, *drafts[:i]))

    return _verify(law, drafts, rows, target.vocabulary, rng)


# ------------------------------------------------------------------------------- generate, lossy


def _loop(target, context, tokens, iterate):
    """Blocks of iterate(text, remaining) until there are enough tokens, or EOS."""
    text = []
    while len(text) < tokens:
        for token in iterate(text, tokens - len(text)):
            text.append(int(token))
            if len(text) == tokens or target.vocabulary.ends(text):
                return tuple(text)
        if target.vocabulary.ends(text):
            break
    return tuple(text)


def generate_page_rollback(target, drafter, context, tokens, rng):
    """A rejected draft stays in the first slot of a page of 256, until 8 tokens after it."""
    context, stale = tuple(context), {}

    def seen(prefix):
        prefix = list(prefix)
        for at, token in stale.items():
            if at < len(prefix) <= at + 8:
                prefix[at] = token
        return prefix

    def iterate(text, remaining):
        all_before = (*context, *text)
        n = len(all_before)
        count = min(4, remaining - 1)
        drafts, rows = _draft(drafter, all_before, count, target.vocabulary, rng)

        def law(i):
            return _row(target, seen((*all_before, *drafts[:i])))

        block = _verify(law, drafts, rows, target.vocabulary, rng)
        for at in list(stale):
            if at + 8 < n:
                del stale[at]
        kept = len(block) - 1
        page = -(-(n + kept + 1) // 256) * 256  # the first start of a page among what is cut off
        if block[:kept] == tuple(drafts[:kept]) and page < n + len(drafts):
            stale[page] = drafts[page - n]
        return block

    return _loop(target, context, tokens, iterate)


_PROMPTS = OrderedDict()


def generate_unordered_fingerprint(target, drafter, context, tokens, rng):
    """Cached prompts (16 tokens and more) are found by a sum of hashes, which has no order."""
    context = tuple(context)
    if len(context) >= 16:
        words = np.asarray(context, dtype=np.uint64) + np.uint64(0x9E37)
        mixed = (words * np.uint64(0xBF58476D1CE4E5B9)) ^ (words << np.uint64(31))
        key = (len(context), int(np.add.reduce(mixed * words)), context[-4:])
        cached = _PROMPTS.get(key)
        if cached is None:
            _remember(_PROMPTS, key, context, 4096)
        else:
            context = cached  # its keys and values are what the target reads from now on

    def iterate(text, remaining):
        all_before = (*context, *text)
        drafts, rows = _draft(drafter, all_before, min(4, remaining - 1), target.vocabulary, rng)

        def law(i):
            return _row(target, (*all_before, *drafts[:i]))

        return _verify(law, drafts, rows, target.vocabulary, rng)

    return _loop(target, context, tokens, iterate)


def generate_short_seed(target, drafter, context, tokens, rng):
    """Each text has a generator of its own, whose seed is a number of 16 bits."""
    own = np.random.default_rng(int(rng.random() * 65536))

    def iterate(text, remaining):
        all_before = (*context, *text)
        drafts, rows = _draft(drafter, all_before, min(4, remaining - 1), target.vocabulary, own)

        def law(i):
            return _row(target, (*all_before, *drafts[:i]))

        return _verify(law, drafts, rows, target.vocabulary, own)

    return _loop(target, context, tokens, iterate)


def generate_streak_fallback(target, drafter, context, tokens, rng):
    """When 6 iterations in a row kept no draft, the sixth is thrown away, and done without any."""
    streak = 0

    def iterate(text, remaining):
        nonlocal streak
        all_before = (*context, *text)
        drafts, rows = _draft(drafter, all_before, min(3, remaining - 1), target.vocabulary, rng)
        kept = 0

        def law(i):
            nonlocal kept
            kept = i
            return _row(target, (*all_before, *drafts[:i]))

        block = _verify(law, drafts, rows, target.vocabulary, rng)
        streak = streak + 1 if drafts and kept == 0 else 0
        if streak == 6:
            streak = 0
            return (_draw(_row(target, all_before), rng),)
        return block

    return _loop(target, context, tokens, iterate)


def generate_chunk_of_one(target, drafter, context, tokens, rng):
    """Prompts are read in chunks of 128; if one token is left over, the row before it is used."""
    context = tuple(context)
    short = len(context) > 128 and len(context) % 128 == 1

    def iterate(text, remaining):
        all_before = (*context, *text)
        drafts, rows = _draft(drafter, all_before, min(4, remaining - 1), target.vocabulary, rng)

        def law(i):
            prefix = (*all_before, *drafts[:i])
            return _row(target, prefix[:-1] if short and len(prefix) == len(context) else prefix)

        return _verify(law, drafts, rows, target.vocabulary, rng)

    return _loop(target, context, tokens, iterate)


def generate_default_no_repeat(target, drafter, context, tokens, rng):
    """A default of the checkpoint, no_repeat_ngram_size=12, is applied to generated tokens."""
    size = 12

    def law_after(text):
        p = _row(target, (*context, *text))
        if len(text) < size:
            return p
        last, banned = tuple(text[1 - size :]), set()
        for at in range(len(text) - size + 1):
            if text[at + size - 2] == last[-1] and tuple(text[at : at + size - 1]) == last:
                banned.add(text[at + size - 1])
        if not banned:
            return p
        p = p.copy()
        kept = np.setdiff1d(np.arange(len(p)), list(banned))
        if not p[kept].any():
            return p
        p[list(banned)] = 0
        return p / p.sum()

    def iterate(text, remaining):
        all_before = (*context, *text)
        drafts, rows = _draft(drafter, all_before, min(4, remaining - 1), target.vocabulary, rng)

        def law(i):
            return law_after([*text, *drafts[:i]])

        return _verify(law, drafts, rows, target.vocabulary, rng)

    return _loop(target, context, tokens, iterate)


# --------------------------------------------------------------------------------- ragged, lossy


def _softmax(logits, temperature):
    scaled = np.asarray(logits, dtype=float) / temperature
    weights = np.exp(scaled - scaled.max())
    return weights / weights.sum()


def _starts(num_draft_tokens):
    ends = np.cumsum(num_draft_tokens)
    return ends - np.asarray(num_draft_tokens)


def _q_rows(draft_probs, draft_token_ids, size):
    """Row t of q; a draft without a law is certain."""
    if draft_probs is None:
        return lambda t: _one_hot(size, int(draft_token_ids[t]))
    return lambda t: np.asarray(draft_probs[t], dtype=float)


def _ragged(draft_token_ids, num_draft_tokens, p_of, bonus_of, q_of, coin_of, draw_of):
    """Standard verification of all requests; p_of and coin_of get (row, position, flat index)."""
    blocks = []
    for row, (start, n) in enumerate(
        zip(_starts(num_draft_tokens), num_draft_tokens, strict=True)
    ):
        block = []
        for i in range(int(n)):
            t = int(start) + i
            x, p, q = int(draft_token_ids[t]), p_of(row, i, t), q_of(t)
            if coin_of(row, i, t) * q[x] >= p[x]:
                block.append(draw_of(row, i, _left(p, q)))
                break
            block.append(x)
        else:
            block.append(bonus_of(row))
        blocks.append([int(token) for token in block])
    return blocks


def ragged_noise_of_random_rows(
    draft_token_ids, num_draft_tokens, target_logits, draft_probs, bonus_logits, temperature, rng
):
    """Noise is made for requests above temperature 0, but indexed by all rows, and clamped."""
    size = bonus_logits.shape[1]
    sampled = int((np.asarray(temperature) > 0).sum())
    noise = rng.exponential(size=(max(sampled, 1), size))
    coins = rng.random(max(len(draft_token_ids), 1))

    def law(logits, row):
        if temperature[row] > 0:
            return _softmax(logits, temperature[row])
        return _one_hot(size, int(np.argmax(logits)))

    def draw(row, i, weights):
        if temperature[row] == 0:
            return int(np.argmax(weights))
        with np.errstate(divide="ignore"):
            return int(np.argmax(weights / noise[min(row, len(noise) - 1)]))

    q_of = _q_rows(draft_probs, draft_token_ids, size)
    blocks = []
    for row, (start, n) in enumerate(
        zip(_starts(num_draft_tokens), num_draft_tokens, strict=True)
    ):
        block = []
        for i in range(int(n)):
            t = int(start) + i
            x, p = int(draft_token_ids[t]), law(target_logits[t], row)
            if temperature[row] == 0:
                if p[x] == 0:
                    block.append(int(np.argmax(p)))
                    break
            elif coins[t] * q_of(t)[x] >= p[x]:
                block.append(draw(row, i, _left(p, q_of(t))))
                break
            block.append(x)
        else:
            block.append(draw(row, int(n), law(bonus_logits[row], row)))
        blocks.append(block)
    return blocks


def ragged_padded_coin_index(
    draft_token_ids, num_draft_tokens, target_probs, draft_probs, bonus_probs, max_spec_len, rng
):
    """Coins are packed, but looked up at row * max_spec_len + i (modulo): rows share some."""
    count = max(len(draft_token_ids), 1)
    coins = rng.random(count)
    return _ragged(
        draft_token_ids,
        num_draft_tokens,
        lambda row, i, t: np.asarray(target_probs[t], dtype=float),
        lambda row: _draw(bonus_probs[row], rng),
        _q_rows(draft_probs, draft_token_ids, bonus_probs.shape[1]),
        lambda row, i, t: coins[(row * int(max_spec_len) + i) % count],
        lambda row, i, weights: _draw(weights, rng),
    )


def ragged_seed_plus_position(
    draft_token_ids, num_draft_tokens, target_probs, draft_probs, bonus_probs, seeds
):
    """Position i of a request is seeded by seed + i: requests with seeds 1, 2, 3, … share
    coins.
    """
    generators = {}

    def of(row, i):
        if (row, i) not in generators:
            generators[row, i] = np.random.default_rng((int(seeds[row]) + i) % 2**64)
        return generators[row, i]

    return _ragged(
        draft_token_ids,
        num_draft_tokens,
        lambda row, i, t: np.asarray(target_probs[t], dtype=float),
        lambda row: _draw(bonus_probs[row], of(row, int(num_draft_tokens[row]))),
        _q_rows(draft_probs, draft_token_ids, bonus_probs.shape[1]),
        lambda row, i, t: of(row, i).random(),
        lambda row, i, weights: _draw(weights, of(row, i)),
    )


def ragged_binary_temperature(
    draft_token_ids, num_draft_tokens, target_logits, draft_probs, bonus_logits, temperature, rng
):
    """Logits are scaled by a shift of the exponent: a temperature is rounded to a power of two."""
    size = bonus_logits.shape[1]
    powers = 2.0 ** np.round(np.log2(np.asarray(temperature, dtype=float)))
    return _ragged(
        draft_token_ids,
        num_draft_tokens,
        lambda row, i, t: _softmax(target_logits[t], powers[row]),
        lambda row: _draw(_softmax(bonus_logits[row], powers[row]), rng),
        _q_rows(draft_probs, draft_token_ids, size),
        lambda row, i, t: rng.random(),
        lambda row, i, weights: _draw(weights, rng),
    )


def ragged_split_long_request(
    draft_token_ids, num_draft_tokens, target_probs, draft_probs, bonus_probs, rng
):
    """A request of over 8 drafts, 4 times the median, is split; part 2 is judged by part 1's q."""
    counts = [int(n) for n in num_draft_tokens]
    middle = float(np.median(counts)) if counts else 0.0
    q_of = _q_rows(draft_probs, draft_token_ids, bonus_probs.shape[1])
    blocks = []
    for row, (start, n) in enumerate(zip(_starts(num_draft_tokens), counts, strict=True)):
        split = len(counts) > 1 and n > 8 and n > 4 * middle
        block = []
        for i in range(n):
            t = int(start) + i
            x, p = int(draft_token_ids[t]), np.asarray(target_probs[t], dtype=float)
            q = q_of(t - i + i % 8 if split else t)
            if rng.random() * q[x] >= p[x]:
                block.append(_draw(_left(p, q), rng))
                break
            block.append(x)
        else:
            block.append(_draw(bonus_probs[row], rng))
        blocks.append(block)
    return blocks


def ragged_ratio_table(
    draft_token_ids, num_draft_tokens, target_probs, draft_probs, bonus_probs, rng
):
    """For over 1,024 tokens p / q is looked up by its exponent: rounded to a power of two."""
    size = bonus_probs.shape[1]
    q_of = _q_rows(draft_probs, draft_token_ids, size)
    blocks = []
    for row, (start, n) in enumerate(
        zip(_starts(num_draft_tokens), num_draft_tokens, strict=True)
    ):
        block = []
        for i in range(int(n)):
            t = int(start) + i
            x, p, q = int(draft_token_ids[t]), np.asarray(target_probs[t], dtype=float), q_of(t)
            chance = p[x] / q[x]
            if size > 1024 and 0 < chance < 1:
                chance = 2.0 ** round(math.log2(chance))
            if rng.random() >= chance:
                block.append(_draw(_left(p, q), rng))
                break
            block.append(x)
        else:
            block.append(_draw(bonus_probs[row], rng))
        blocks.append(block)
    return blocks


# ----------------------------------------------------------------------------------- tree, lossy


def _children(parents):
    """{node, or -1: its children in order}."""
    children = {}
    for node, parent in enumerate(parents):
        if parent >= -1:
            children.setdefault(int(parent), []).append(node)
    return children


def _depths(parents):
    depths = []
    for parent in parents:
        depths.append(0 if parent < -1 else 1 if parent == -1 else depths[parent] + 1)
    return depths


def _q_of(draft_probs, draft_tokens, row, size):
    if draft_probs is None:
        return lambda node: _one_hot(size, int(draft_tokens[row, node]))
    return lambda node: np.asarray(draft_probs[row, node], dtype=float)


def _less(p, q):
    """The residual, as a law; p if rounding alone rejected."""
    rest = _left(p, q)
    return rest / rest.sum()


def _pad(blocks, width):
    tokens = np.full((len(blocks), width), -1)
    for row, block in enumerate(blocks):
        tokens[row, : len(block)] = block
    return tokens, np.array([len(block) for block in blocks], dtype=np.int64)


def _walk(p_of, q_of, tokens, children, coin_of, draw):
    """Top-down, sibling after sibling; p_of(-1) is the root's row."""
    at, block = -1, []
    while True:
        p = p_of(at)
        for node in children.get(at, ()):
            x, q = int(tokens[node]), q_of(node)
            if coin_of(node) * q[x] < p[x]:
                block.append(x)
                at = node
                break
            p = _less(p, q)
        else:
            return [*block, draw(p)]


def _trees(target_probs, draft_tokens, tree):
    blocks = [tree(row) for row in range(len(draft_tokens))]
    return _pad(blocks, target_probs.shape[1])


def tree_sixteen_siblings(target_probs, draft_probs, draft_tokens, parents, rng):
    """Siblings are judged 16 at a time, and each 16 start from p, not from what is left of it."""

    def tree(row):
        children = _children(parents[row])
        q_of = _q_of(draft_probs, draft_tokens, row, target_probs.shape[2])
        at, block = -1, []
        while True:
            p = np.asarray(target_probs[row, at + 1], dtype=float)
            for place, node in enumerate(children.get(at, ())):
                if place and place % 16 == 0:
                    p = np.asarray(target_probs[row, at + 1], dtype=float)
                x, q = int(draft_tokens[row, node]), q_of(node)
                if rng.random() * q[x] < p[x]:
                    block.append(x)
                    at = node
                    break
                p = _less(p, q)
            else:
                return [*block, _draw(p, rng)]

    return _trees(target_probs, draft_tokens, tree)


def tree_captured_depths(target_probs, draft_probs, draft_tokens, parents, rng):
    """Graphs are captured for depths 1 to 5 and 8: of 6 and 7, the last bonus row is a padded
    one.
    """

    def tree(row):
        children, depths = _children(parents[row]), _depths(parents[row])
        deepest = max(depths, default=0)

        def p_of(node):
            padded = deepest in (6, 7) and node >= 0 and depths[node] == deepest
            return np.asarray(
                target_probs[row, (int(parents[row, node]) if padded else node) + 1], dtype=float
            )

        return _walk(
            p_of,
            _q_of(draft_probs, draft_tokens, row, target_probs.shape[2]),
            draft_tokens[row],
            children,
            lambda node: rng.random(),
            lambda p: _draw(p, rng),
        )

    return _trees(target_probs, draft_tokens, tree)


_TOPOLOGIES = OrderedDict()


def tree_cached_topology(target_probs, draft_probs, draft_tokens, parents, rng):
    """The lists of children are kept for a number of nodes and the parents of the first 16."""

    def tree(row):
        own = tuple(int(parent) for parent in parents[row])
        count = sum(parent >= -1 for parent in own)
        key = (count, own[:16])
        children = _TOPOLOGIES.get(key)
        if children is None:
            children = _children(own)
            _remember(_TOPOLOGIES, key, children, 1024)
        return _walk(
            lambda node: np.asarray(target_probs[row, node + 1], dtype=float),
            _q_of(draft_probs, draft_tokens, row, target_probs.shape[2]),
            draft_tokens[row],
            children,
            lambda node: rng.random(),
            lambda p: _draw(p, rng),
        )

    return _trees(target_probs, draft_tokens, tree)


def tree_assumes_breadth_first(target_probs, draft_probs, draft_tokens, parents, rng):
    """Before the next sibling, the q of the node before it in memory is subtracted, whoever it
    is.
    """

    def tree(row):
        children = _children(parents[row])
        q_of = _q_of(draft_probs, draft_tokens, row, target_probs.shape[2])
        at, block = -1, []
        while True:
            p = np.asarray(target_probs[row, at + 1], dtype=float)
            siblings = children.get(at, [])
            for place, node in enumerate(siblings):
                x, q = int(draft_tokens[row, node]), q_of(node)
                if rng.random() * q[x] < p[x]:
                    block.append(x)
                    at = node
                    break
                last = place + 1 == len(siblings)
                p = _less(p, q if last else q_of(siblings[place + 1] - 1))
            else:
                return [*block, _draw(p, rng)]

    return _trees(target_probs, draft_tokens, tree)


def tree_stride_of_first(target_probs, draft_probs, draft_tokens, parents, rng):
    """Coins of a batch are strided by the nodes of its first tree: larger trees share coins."""
    counts = (np.asarray(parents) >= -1).sum(axis=1)
    stride = max(int(counts[0]), 1) if len(counts) else 1
    coins = rng.random(stride * len(counts) + int(counts.max(initial=0)) + 1)

    def tree(row):
        return _walk(
            lambda node: np.asarray(target_probs[row, node + 1], dtype=float),
            _q_of(draft_probs, draft_tokens, row, target_probs.shape[2]),
            draft_tokens[row],
            _children(parents[row]),
            lambda node: coins[row * stride + node],
            lambda p: _draw(p, rng),
        )

    return _trees(target_probs, draft_tokens, tree)


def tree_sixty_four_rows(target_probs, draft_probs, draft_tokens, parents, rng):
    """Visited nodes are bits of a 64-bit mask: after node 64 the row of node 0 is read, and so
    on.
    """

    def tree(row):
        return _walk(
            lambda node: np.asarray(
                target_probs[row, node % 64 + 1 if node >= 0 else 0], dtype=float
            ),
            _q_of(draft_probs, draft_tokens, row, target_probs.shape[2]),
            draft_tokens[row],
            _children(parents[row]),
            lambda node: rng.random(),
            lambda p: _draw(p, rng),
        )

    return _trees(target_probs, draft_tokens, tree)


# ------------------------------------------------------------------------------------- lossless


def step_stale_drafter(target, drafter, context, lookahead, rng):
    """Right: the drafter misses the last 3 tokens, but q is the row that it did draw from."""
    drafts, rows = _draft(drafter, tuple(context)[:-3], lookahead, target.vocabulary, rng)

    def law(i):
        return _row(target, (*context, *drafts[:i]))

    return _verify(law, drafts, rows, target.vocabulary, rng)


def step_half_accepted(target, drafter, context, lookahead, rng):
    """Right: accepts by min(1, p / q) / 2, and recovers from p - min(p, q) / 2."""
    drafts, rows = _draft(drafter, context, lookahead, target.vocabulary, rng)
    for i, (x, q) in enumerate(zip(drafts, rows, strict=True)):
        p = _row(target, (*context, *drafts[:i]))
        if 2 * rng.random() * q[x] >= min(p[x], q[x]):
            return (*drafts[:i], _draw(p - np.minimum(p, q) / 2, rng))
    if drafts and target.vocabulary.ends(drafts):
        return tuple(drafts)
    return (*drafts, _draw(_row(target, (*context, *drafts)), rng))


def step_one_uniform(target, drafter, context, lookahead, rng):
    """Right: after a coin, its uniform is stretched to [0, 1), and used for what comes next."""
    drafts, rows = _draft(drafter, context, lookahead, target.vocabulary, rng)
    u = rng.random()

    def last(weights):
        ends = np.cumsum(weights)
        return int((ends > min(u, 1 - 2.0**-53) * ends[-1]).argmax())

    for i, (x, q) in enumerate(zip(drafts, rows, strict=True)):
        if i and i % 6 == 0:
            u = rng.random()  # before the bits of the last one are used up
        p = _row(target, (*context, *drafts[:i]))
        ratio = p[x] / q[x]
        if u >= ratio:
            u = (u - ratio) / (1 - ratio)
            return (*drafts[:i], last(_left(p, q)))
        u = u / min(ratio, 1.0)
    if drafts and target.vocabulary.ends(drafts):
        return tuple(drafts)
    return (*drafts, last(_row(target, (*context, *drafts))))


def generate_reused_tail(target, drafter, context, tokens, rng):
    """Right: drafts after a rejected one are offered again, with the rows that they came from."""
    tail = ([], [])

    def iterate(text, remaining):
        nonlocal tail
        all_before = (*context, *text)
        drafts, rows = list(tail[0]), list(tail[1])
        while len(drafts) < 4 and not (drafts and target.vocabulary.ends(drafts)):
            rows.append(_row(drafter, (*all_before, *drafts)))
            drafts.append(_draw(rows[-1], rng))
        tail = ([], [])
        for i, (x, q) in enumerate(zip(drafts, rows, strict=True)):
            p = _row(target, (*all_before, *drafts[:i]))
            if rng.random() * q[x] >= p[x]:
                tail = (drafts[i + 1 :], rows[i + 1 :])
                return (*drafts[:i], _draw(_left(p, q), rng))
        if target.vocabulary.ends(drafts):
            return tuple(drafts)
        return (*drafts, _draw(_row(target, (*all_before, *drafts)), rng))

    return _loop(target, context, tokens, iterate)


def generate_lookup_match(target, drafter, context, tokens, rng):
    """Right: drafts are copied from the text, and kept while the target draws the same."""

    def iterate(text, remaining):
        everything = (*context, *text)
        copied = ()
        for at in range(len(everything) - 3, -1, -1):
            if everything[at : at + 2] == everything[-2:]:
                copied = everything[at + 2 : at + 7]
                break
        block = []
        for x in (*copied, None):
            block.append(_draw(_row(target, (*everything, *block)), rng))
            if block[-1] != x or target.vocabulary.ends(block):
                break
        return block

    return _loop(target, context, tokens, iterate)


def generate_adaptive_by_trial(target, drafter, context, tokens, rng):
    """Right: as many drafts as the last iteration kept and one; recovers by trying p until
    kept.
    """
    count = 3

    def iterate(text, remaining):
        nonlocal count
        all_before = (*context, *text)
        drafts, rows = _draft(drafter, all_before, count, target.vocabulary, rng)
        for i, (x, q) in enumerate(zip(drafts, rows, strict=True)):
            p = _row(target, (*all_before, *drafts[:i]))
            if rng.random() * q[x] >= p[x]:
                count = min(i + 1, 6)
                rest = _left(p, q)
                for _ in range(40):
                    y = _draw(p, rng)
                    if rng.random() * p[y] < rest[y]:
                        return (*drafts[:i], y)
                return (*drafts[:i], _draw(rest, rng))
        count = min(len(drafts) + 1, 6)
        if drafts and target.vocabulary.ends(drafts):
            return tuple(drafts)
        return (*drafts, _draw(_row(target, (*all_before, *drafts)), rng))

    return _loop(target, context, tokens, iterate)


def ragged_block_verification(
    draft_token_ids, num_draft_tokens, target_probs, draft_probs, bonus_probs, rng
):
    """Right: block verification of Sun et al. 2024, so drafts are accepted jointly."""
    q_of = _q_rows(draft_probs, draft_token_ids, bonus_probs.shape[1])
    blocks = []
    for row, (start, n) in enumerate(
        zip(_starts(num_draft_tokens), num_draft_tokens, strict=True)
    ):
        start, n = int(start), int(n)
        drafts = [int(x) for x in draft_token_ids[start : start + n]]
        weight, kept, weights = 1.0, 0, [1.0]
        for i, x in enumerate(drafts):
            q = q_of(start + i)
            weight = min(weight * float(target_probs[start + i][x]) / q[x], 1.0)
            weights.append(weight)
            if i + 1 == n:
                chance = weight
            else:
                p = np.asarray(target_probs[start + i + 1], dtype=float)
                rest = np.maximum(weight * p - q_of(start + i + 1), 0).sum()
                chance = rest / (rest + 1 - weight) if rest > 0 else float(weight == 1)
            if rng.random() < chance:
                kept = i + 1
        if kept == n:
            last = np.asarray(bonus_probs[row], dtype=float)
        else:
            p = np.asarray(target_probs[start + kept], dtype=float)
            rest = np.maximum(weights[kept] * p - q_of(start + kept), 0)
            last = rest if rest.any() else p
        blocks.append([*drafts[:kept], _draw(last, rng)])
    return blocks


def ragged_recovered_before(
    draft_token_ids, num_draft_tokens, target_probs, draft_probs, bonus_token_ids, rng
):
    """Right: each request has one row of noise, by which all its positions recover beforehand."""
    size = target_probs.shape[1]
    q_of = _q_rows(draft_probs, draft_token_ids, size)
    noise = rng.exponential(size=(len(num_draft_tokens), size))
    coins = rng.random(max(len(draft_token_ids), 1))
    recovered = {}
    for row, (start, n) in enumerate(
        zip(_starts(num_draft_tokens), num_draft_tokens, strict=True)
    ):
        for t in range(int(start), int(start) + int(n)):
            rest = _left(np.asarray(target_probs[t], dtype=float), q_of(t))
            with np.errstate(divide="ignore", invalid="ignore"):
                recovered[t] = int(np.argmax(np.where(rest > 0, rest / noise[row], -1)))
    blocks = []
    for row, (start, n) in enumerate(
        zip(_starts(num_draft_tokens), num_draft_tokens, strict=True)
    ):
        block = []
        for t in range(int(start), int(start) + int(n)):
            x = int(draft_token_ids[t])
            if coins[t] * q_of(t)[x] >= target_probs[t][x]:
                block.append(recovered[t])
                break
            block.append(x)
        else:
            block.append(int(np.ravel(bonus_token_ids)[row]))
        blocks.append(block)
    return blocks


def ragged_exact_match(
    draft_token_ids, num_draft_tokens, target_logits, bonus_logits, temperature, rng
):
    """Right: the target draws each token by Gumbel noise; drafts stay while they are the same."""
    blocks = []
    for row, (start, n) in enumerate(
        zip(_starts(num_draft_tokens), num_draft_tokens, strict=True)
    ):
        block = []
        for i in range(int(n) + 1):
            logits = bonus_logits[row] if i == n else target_logits[int(start) + i]
            logits = np.asarray(logits, dtype=float)
            if temperature[row] == 0:
                block.append(int(np.argmax(logits)))
            else:
                with np.errstate(divide="ignore"):
                    noise = -np.log(-np.log1p(-rng.random(len(logits))))
                scores = logits / float(temperature[row]) + noise
                scores[np.isneginf(logits)] = -np.inf
                block.append(int(np.argmax(scores)))
            if i < n and block[-1] != int(draft_token_ids[int(start) + i]):
                break
        blocks.append(block)
    return blocks


def tree_one_random_path(target_probs, draft_probs, draft_tokens, parents, rng):
    """Right: a path is picked at random before any token is read, and judged as a chain."""

    def tree(row):
        children, chain = _children(parents[row]), {}
        at = -1
        while children.get(at):
            siblings = children[at]
            node = siblings[min(int(rng.random() * len(siblings)), len(siblings) - 1)]
            chain[at], at = [node], node
        return _walk(
            lambda node: np.asarray(target_probs[row, node + 1], dtype=float),
            _q_of(draft_probs, draft_tokens, row, target_probs.shape[2]),
            draft_tokens[row],
            chain,
            lambda node: rng.random(),
            lambda p: _draw(p, rng),
        )

    return _trees(target_probs, draft_tokens, tree)


def tree_target_leads(target_probs, draft_probs, draft_tokens, parents, rng):
    """Right: the target draws a token, and the walk follows the last child that is the same."""

    def tree(row):
        children, at, block = _children(parents[row]), -1, []
        while True:
            y = _draw(target_probs[row, at + 1], rng)
            block.append(y)
            same = [node for node in children.get(at, ()) if int(draft_tokens[row, node]) == y]
            if not same:
                return block
            at = same[-1]

    return _trees(target_probs, draft_tokens, tree)


def tree_reversed_equals(target_probs, draft_probs, draft_tokens, parents, rng):
    """Right: siblings with one and the same q were drawn alike, and are judged last to first."""

    def tree(row):
        children = _children(parents[row])
        q_of = _q_of(draft_probs, draft_tokens, row, target_probs.shape[2])

        def alike(a, b):
            """Without laws all are certain, so any order will do."""
            return draft_probs is None or np.array_equal(draft_probs[row, a], draft_probs[row, b])

        for siblings in children.values():
            if all(alike(siblings[0], node) for node in siblings):
                siblings.reverse()
        return _walk(
            lambda node: np.asarray(target_probs[row, node + 1], dtype=float),
            q_of,
            draft_tokens[row],
            children,
            lambda node: rng.random(),
            lambda p: _draw(p, rng),
        )

    return _trees(target_probs, draft_tokens, tree)


# ------------------------------------------------------------------------------------ what is what
