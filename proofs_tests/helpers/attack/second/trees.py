"""Verification of token trees (contract `tree`)."""

import random

import numpy as np
import torch

from proofs_tests.helpers.attack.second.entry import Samplers
from proofs_tests.helpers.attack.second.walk import Walk, draw_rows, minus

TREE = Samplers("tree")


# -- how nodes are found ------------------------------------------------------------------------


@TREE.lossy()
def masks_of_32_bits(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """The ancestors of a node are bits of 32: nodes 32 apart are taken for each other."""
    walk = Walk(target_probs, draft_probs, draft_tokens, parents)
    masks = np.zeros(parents.shape, dtype=np.uint32)
    bits = np.array([1 << (i & 31) for i in range(walk.nodes)], dtype=np.uint32)
    for i in range(walk.nodes):
        up = parents[:, i]
        masks[:, i] = np.where(up >= 0, masks[walk.rows, np.maximum(up, 0)], 0) | bits[i]
    here = np.zeros(walk.batch, dtype=np.uint32)
    for i in range(walk.nodes):
        child = (draft_tokens[:, i] >= 0) & ((masks[:, i] & ~bits[i]) == here)
        kept = walk.tries(i, child, rng)
        here[kept] = masks[kept, i]
    return walk.ends(draw_rows(walk.p, rng))


@TREE.lossy()
def children_by_argsort(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """Nodes are sorted by their parents, and the sort does not keep the order of siblings."""
    walk = Walk(target_probs, draft_probs, draft_tokens, parents)
    order = np.argsort(np.where(parents == -2, walk.nodes, parents), axis=1)
    for i in order.T:
        x = draft_tokens[walk.rows, i]
        if draft_probs is None:
            q = (np.arange(walk.v) == x[:, None]).astype(float)
        else:
            q = draft_probs[walk.rows, i]
        child = (x >= 0) & (parents[walk.rows, i] == walk.at)
        uniforms = rng.random(walk.batch)
        kept = child & (uniforms * q[walk.rows, x] < walk.p[walk.rows, x])
        minus(walk.p, q, np.flatnonzero(child & ~kept))
        walk.out[walk.rows[kept], walk.n[kept]] = x[kept]
        walk.n += kept
        walk.at[kept], walk.p[kept] = i[kept], target_probs[walk.rows[kept], i[kept] + 1]
    return walk.ends(draw_rows(walk.p, rng))


@TREE.lossy()
def siblings_merged_below_root(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """Below the root, siblings of one token are one node of a trie, and verified once."""
    walk = Walk(target_probs, draft_probs, draft_tokens, parents)
    merged = np.zeros(parents.shape, dtype=bool)
    for i in range(walk.nodes):
        for j in range(i):
            siblings = (parents[:, i] >= 0) & (parents[:, j] == parents[:, i])
            merged[:, i] |= siblings & (draft_tokens[:, j] == draft_tokens[:, i])
    for i in range(walk.nodes):
        walk.tries(i, walk.children(i) & ~merged[:, i], rng)
    return walk.ends(draw_rows(walk.p, rng))


@TREE.lossy()
def chain_if_the_first_row_is_one(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """If the first row is a chain, all rows are taken as chains."""
    walk = Walk(target_probs, draft_probs, draft_tokens, parents)
    if walk.nodes > 1 and (parents[0] == np.arange(-1, walk.nodes - 1)).all():
        alive = np.ones(walk.batch, dtype=bool)
        for i in range(walk.nodes):
            alive &= walk.tries(i, alive & (draft_tokens[:, i] >= 0), rng)
        return walk.ends(draw_rows(walk.p, rng))
    return walk.top_down(rng)


@TREE.lossy()
def rows_by_depth_and_token(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """Target rows are stored by depth and token: equal tokens of a depth share the last one's."""
    walk = Walk(target_probs, draft_probs, draft_tokens, parents)
    depth = np.zeros(parents.shape, dtype=int)
    for i in range(walk.nodes):
        up = parents[:, i]
        depth[:, i] = np.where(up >= 0, depth[walk.rows, np.maximum(up, 0)] + 1, 0)
    row_of = np.tile(np.arange(walk.nodes), (walk.batch, 1))
    for i in range(walk.nodes):
        for j in range(i):
            same = (depth[:, j] == depth[:, i]) & (draft_tokens[:, j] == draft_tokens[:, i])
            row_of[same, j] = i
    for i in range(walk.nodes):
        kept = walk.tries(i, walk.children(i), rng)
        walk.p[kept] = target_probs[walk.rows[kept], row_of[kept, i] + 1]
    return walk.ends(draw_rows(walk.p, rng))


# -- how siblings are tried ---------------------------------------------------------------------


@TREE.lossy()
def uniforms_of_five_levels(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """One uniform a level, stretched from sibling to sibling; the sixth level reads the first."""
    walk = Walk(target_probs, draft_probs, draft_tokens, parents)
    coins = rng.random((walk.batch, 5))
    last = rng.random((walk.batch, 1))
    u = coins[:, 0].copy()
    for i in range(walk.nodes):
        x, q, child = draft_tokens[:, i], walk.law(i), walk.children(i)
        likely = accepted_with(walk, x, q)
        kept = child & (u < likely)
        lost = np.flatnonzero(child & ~kept)
        u[lost] = (u[lost] - likely[lost]) / (1 - likely[lost])
        minus(walk.p, q, lost)
        walk.goes(i, kept)
        u[kept] = coins[kept, walk.n[kept] % 5]
    return walk.ends(inverse_rows(walk.p, last))


def accepted_with(walk, x, q):
    drafted = q[walk.rows, x]
    return np.minimum(1, walk.p[walk.rows, x] / np.where(drafted > 0, drafted, 1))


def inverse_rows(weights, uniforms):
    ends = weights.cumsum(axis=1)
    return (ends <= uniforms * ends[:, -1:]).sum(axis=1)


@TREE.lossy()
def refused_kept_after_a_repeat(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """Without laws: refused tokens stay refused if the accepted token is the same as the last."""
    walk = Walk(target_probs, draft_probs, draft_tokens, parents)
    if draft_probs is not None:
        return walk.top_down(rng)
    refused, previous = np.zeros(walk.p.shape, dtype=bool), np.full(walk.batch, -1)

    def left(rows):
        weights = np.where(refused[rows], 0, walk.p[rows])
        total = weights.sum(axis=1, keepdims=True)
        return np.where(total > 0, weights / np.where(total > 0, total, 1), walk.p[rows])

    for i in range(walk.nodes):
        x = draft_tokens[:, i]
        tried = np.flatnonzero(walk.children(i))
        weights = left(tried)
        hit = rng.random(walk.batch)[tried] < weights[np.arange(len(tried)), x[tried]]
        kept, lost = tried[hit], tried[~hit]
        refused[lost, x[lost]] = True
        walk.goes(i, np.isin(walk.rows, kept))
        refused[kept[x[kept] != previous[kept]]] = False
        previous[kept] = x[kept]
    return walk.ends(draw_rows(left(walk.rows), rng))


@TREE.lossy()
def unlikely_nodes_pruned(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """Nodes with q < 0.01 are pruned after they were drawn."""
    walk = Walk(target_probs, draft_probs, draft_tokens, parents)
    for i in range(walk.nodes):
        likely = walk.law(i)[walk.rows, draft_tokens[:, i]] >= 0.01
        walk.tries(i, walk.children(i) & likely, rng)
    return walk.ends(draw_rows(walk.p, rng))


@TREE.lossy()
def eight_siblings_tried(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """At most eight siblings are tried; all of them are masked out of the last token."""
    walk = Walk(target_probs, draft_probs, draft_tokens, parents)
    tried, mask = np.zeros(walk.batch, dtype=int), np.zeros(walk.p.shape, dtype=bool)
    for i in range(walk.nodes):
        child = walk.children(i)
        mask[walk.rows[child], draft_tokens[child, i]] = True
        child &= tried < 8
        tried += child
        kept = walk.tries(i, child, rng)
        tried[kept], mask[kept] = 0, False
    weights = np.where(mask, 0, walk.p)
    weights = np.where(weights.any(axis=1, keepdims=True), weights, walk.p)
    return walk.ends(draw_rows(weights, rng))


@TREE.lossy()
def survival_of_two_levels(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """Traversal that hands down what is left of a path for two levels, and 1 below them."""

    def survives(alive, depth):
        return alive if depth < 2 else 1

    return traversed(target_probs, draft_probs, draft_tokens, parents, rng, survives)


def traversed(target_probs, draft_probs, draft_tokens, parents, rng, survives):
    """Traversal verification of each row, depth first."""
    out, counts = np.full((len(parents), parents.shape[1] + 1), -1), np.zeros(len(parents), int)
    for b, tree in enumerate(parents):
        q = None if draft_probs is None else draft_probs[b]
        row = target_probs[b], q, draft_tokens[b], below(tree)
        block = visited(row, -1, 1.0, 0, rng, survives)
        out[b, : len(block)], counts[b] = block, len(block)
    return out, counts


def below(parents):
    """The children of each node of a tree; -1 is the root."""
    children = {}
    for i, up in enumerate(parents.tolist()):
        if up >= -1:
            children.setdefault(up, []).append(i)
    return children


def visited(row, node, alive, depth, rng, survives=lambda alive, depth: alive):
    target, draft, tokens, children = row
    p = target[node + 1]
    for i in children.get(node, ()):
        x = int(tokens[i])
        q = law_of(draft, i, x, len(p))
        left = survives(alive, depth)
        likely = min(1.0, left * p[x] / q[x])
        if likely > 0:
            rest = visited(row, i, likely, depth + 1, rng, survives)
            if rest:
                return [x, *rest]
        more = np.maximum(left * p - q, 0)
        total = more.sum()
        if total > 0:
            p, alive = more / total, total / (total + 1 - left)
        elif alive < 1:
            alive = 0.0
    if alive < 1 and rng.random() >= alive:
        return []
    return [int(draw_rows(p[None], rng)[0])]


def law_of(draft, i, x, v):
    return np.eye(1, v, x)[0] if draft is None else draft[i]


# -- the last token, and paths of their own ------------------------------------------------------


@TREE.lossy()
def whole_blocks_of_4096(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """The last token is drawn by blocks of 4,096 ids, without the last one if it is not full."""
    size, v = 4096, target_probs.shape[2]
    walk = Walk(target_probs, draft_probs, draft_tokens, parents)
    if v <= size:
        return walk.top_down(rng)
    for i in range(walk.nodes):
        walk.tries(i, walk.children(i), rng)
    starts = range(0, v - size + 1, size)
    sums = np.stack([walk.p[:, s : s + size].sum(axis=1) for s in starts], axis=1)
    empty = sums.sum(axis=1) == 0
    sums[empty, 0] = 1
    block = draw_rows(sums, rng)
    inside = walk.p[walk.rows[:, None], block[:, None] * size + np.arange(size)]
    inside[empty] = walk.p[empty, -size:]
    token = block * size + draw_rows(inside, rng)
    token[empty] += v - size
    return walk.ends(token)


@TREE.lossy()
def single_request_zeroes_tokens(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """A single request has a path of its own, where a refused token alone is taken out of p."""
    own = np.random.Generator(np.random.Philox(int(rng.integers(2**63))))
    walk = Walk(target_probs, draft_probs, draft_tokens, parents)
    if walk.batch > 1:
        return walk.top_down(own)
    at, p, block = -1, target_probs[0, 0].copy(), []
    for i, x in enumerate(draft_tokens[0]):
        if x < 0 or parents[0, i] != at:
            continue
        q = 1.0 if draft_probs is None else draft_probs[0, i, x]
        if own.random() * q < p[x]:
            block.append(x)
            at, p = i, target_probs[0, i + 1].copy()
        elif p[x] < p.sum():
            p[x] = 0
            p /= p.sum()
    block.append(draw_rows(p[None], own)[0])
    walk.out[0, : len(block)] = block
    return walk.out, np.array([len(block)])


# -- lossless -----------------------------------------------------------------------------------


@TREE.lossless(arrays="torch")
def target_token_looked_up(target_probs, draft_probs, draft_tokens, parents, *, generator):
    """Draws a token of the target at each node, and follows the child that it is."""
    batch, nodes = parents.shape
    noise = torch.empty(target_probs.shape, dtype=torch.float64).exponential_(generator=generator)
    choice = (target_probs.double() / noise).argmax(dim=2)
    at, n = torch.full((batch,), -1), torch.zeros(batch, dtype=torch.long)
    out, rows = torch.full((batch, nodes + 1), -1), torch.arange(batch)
    for i in range(nodes):
        kept = (parents[:, i] == at) & (draft_tokens[:, i] == choice[rows, at + 1])
        out[rows[kept], n[kept]] = draft_tokens[kept, i]
        n += kept.long()
        at = torch.where(kept, torch.full_like(at, i), at)
    out[rows, n] = choice[rows, at + 1]
    return out, n + 1


@TREE.lossless()
def one_coin_a_level(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """Reads no q: accepts if a coin is below the sum of p over the siblings so far."""
    walk = Walk(target_probs, draft_probs, draft_tokens, parents)
    walk.p /= walk.p.sum(axis=1, keepdims=True)
    coins = rng.random((walk.batch, walk.nodes + 1))
    mass, seen = np.zeros(walk.batch), np.zeros(walk.p.shape, dtype=bool)
    for i in range(walk.nodes):
        x = draft_tokens[:, i]
        child = walk.children(i) & ~seen[walk.rows, x]
        seen[walk.rows[child], x[child]] = True
        mass += np.where(child, walk.p[walk.rows, x], 0)
        kept = child & (coins[walk.rows, walk.n] < mass)
        walk.goes(i, kept)
        mass[kept], seen[kept] = 0, False
    weights = np.where(seen, 0, walk.p)
    weights = np.where(weights.any(axis=1, keepdims=True), weights, walk.p)
    return walk.ends(draw_rows(weights, rng))


@TREE.lossless(algorithm="topdown")
def one_uniform_a_level(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """What a refusal leaves of a level's uniform, stretched to [0, 1), is uniform again."""
    walk = Walk(target_probs, draft_probs, draft_tokens, parents)
    last, coins = rng.random((walk.batch, 1)), rng.random((walk.batch, walk.nodes + 1))
    for i in range(walk.nodes):
        x, q, child = draft_tokens[:, i], walk.law(i), walk.children(i)
        likely, u = accepted_with(walk, x, q), coins[walk.rows, walk.n]
        kept = child & (u < likely)
        lost = np.flatnonzero(child & ~kept)
        coins[lost, walk.n[lost]] = (u[lost] - likely[lost]) / (1 - likely[lost])
        minus(walk.p, q, lost)
        walk.goes(i, kept)
    return walk.ends(inverse_rows(walk.p, last))


@TREE.lossless(algorithm="topdown")
def coins_from_the_last_node(target_probs, draft_probs, draft_tokens, parents, *, coins, lens):
    """Node i reads the coin of the i-th from the end; what is left of p is not normalised."""
    walk = Walk(target_probs, draft_probs, draft_tokens, parents)
    total = walk.p.sum(axis=1)
    for i in range(walk.nodes):
        x, q = draft_tokens[:, i], walk.law(i)
        child = (i < lens) & (parents[:, i] == walk.at)
        drafted = np.where(x >= 0, q[walk.rows, x], 0)
        coin = coins.accept[:, walk.nodes - 1 - i]
        kept = child & (coin * drafted * total < walk.p[walk.rows, x])
        lost = np.flatnonzero(child & ~kept)
        rest = np.maximum(walk.p[lost] - q[lost] * total[lost, None], 0)
        some = rest.any(axis=1)
        walk.p[lost[some]] = rest[some]
        total[lost[some]] = rest[some].sum(axis=1)
        walk.goes(i, kept)
        total[kept] = walk.p[kept].sum(axis=1)
    tokens, counts = walk.ends((walk.p / np.maximum(coins.race, 1e-300)).argmax(axis=1))
    return tokens[:, : counts.max()], counts


@TREE.lossless(algorithm="traversal")
def traversal(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """Traversal verification, recursive, row by row."""
    return traversed(
        target_probs, draft_probs, draft_tokens, parents, rng, lambda alive, depth: alive
    )


@TREE.lossless(algorithm="topdown", repeats=False)
def elder_siblings_zeroed(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """Elder siblings are zeroed in q once more, which changes nothing in trees without repeats."""
    walk = Walk(target_probs, draft_probs, draft_tokens, parents)
    gone = np.zeros(walk.p.shape, dtype=bool)
    for i in range(walk.nodes):
        x = draft_tokens[:, i]
        q = np.where(gone, 0, walk.law(i))
        total = q.sum(axis=1, keepdims=True)
        child = walk.children(i)
        kept = walk.tries(i, child, rng, q / np.where(total > 0, total, 1))
        lost = np.flatnonzero(child & ~kept)
        gone[lost, x[lost]] = True
        gone[kept] = False
    return walk.ends(draw_rows(walk.p, rng))


@TREE.lossless()
def half_of_the_trees(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """Reads half of the trees, two levels and two siblings of them; rows go from the last up."""
    batch, nodes = parents.shape
    own = random.Random(int(rng.integers(2**62)))
    out, counts = np.full((batch, nodes + 1), -1), np.zeros(batch, dtype=int)
    for b in reversed(range(batch)):
        children, node, block = below(parents[b]), -1, []
        read = own.random() >= 0.5
        p = target_probs[b, 0]
        while read and len(block) < 2:
            for i in children.get(node, ())[:2]:
                x = int(draft_tokens[b, i])
                q = law_of(None if draft_probs is None else draft_probs[b], i, x, len(p))
                if own.random() * q[x] < p[x]:
                    block.append(x)
                    node, p = i, target_probs[b, i + 1]
                    break
                p = normalised_rest(p, q)
            else:
                break
        ends = p.cumsum()
        block.append(int(np.searchsorted(ends, own.random() * ends[-1], side="right")))
        out[b, : len(block)], counts[b] = block, len(block)
    return out, counts


def normalised_rest(p, q):
    rest = np.maximum(p - q, 0)
    return rest / rest.sum() if rest.any() else p


@TREE.lossless()
def topdown_then_traversal(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """Top-down among the children of the root, traversal below the one that is accepted."""
    batch, nodes = parents.shape
    out, counts = np.full((batch, nodes + 1), -1), np.zeros(batch, dtype=int)
    for b in range(batch):
        children, p, block = below(parents[b]), target_probs[b, 0], None
        draft = None if draft_probs is None else draft_probs[b]
        for i in children.get(-1, ()):
            x = int(draft_tokens[b, i])
            q = law_of(draft, i, x, len(p))
            if rng.random() * q[x] < p[x]:
                row = target_probs[b], draft, draft_tokens[b], children
                block = [x, *visited(row, i, 1.0, 0, rng)]
                break
            p = normalised_rest(p, q)
        block = block or [int(draw_rows(p[None], rng)[0])]
        out[b, : len(block)], counts[b] = block, len(block)
    return out, counts


@TREE.lossless(algorithm="topdown", arrays="torch", dtype="float32")
def tensors_of_float32(target_probs, draft_probs, draft_tokens, parents):
    """Tensors in float32, torch's global generator, answers of 32 bits."""
    batch, nodes = parents.shape
    rows, at, n = torch.arange(batch), torch.full((batch,), -1), torch.zeros(batch).long()
    p, out = target_probs[:, 0].clone(), torch.full((batch, nodes + 1), -1, dtype=torch.int32)
    uniforms = torch.rand((nodes, batch))
    for i in range(nodes):
        x = draft_tokens[:, i].long()
        safe = x.clamp(min=0)
        if draft_probs is None:
            q = torch.nn.functional.one_hot(safe, p.shape[1]).to(p.dtype)
        else:
            q = draft_probs[:, i]
        child = (x >= 0) & (parents[:, i] == at)
        kept = child & (uniforms[i] * q[rows, safe] < p[rows, safe])
        lost = (child & ~kept).nonzero()[:, 0]
        rest = (p[lost] - q[lost]).clamp(min=0)
        total = rest.sum(dim=1, keepdim=True)
        p[lost] = torch.where(total > 0, rest / total.clamp(min=1e-38), p[lost])
        out[rows[kept], n[kept]] = x[kept].int()
        n += kept.long()
        at[kept], p[kept] = i, target_probs[kept, i + 1]
    out[rows, n] = (p / torch.empty_like(p).exponential_()).argmax(dim=1).int()
    return out, (n + 1).int()


@TREE.lossless(greedy=True)
def youngest_tied_sibling(target_probs, draft_probs, draft_tokens, parents):
    """Greedy: follows the youngest sibling that is a likeliest token; of others takes the last."""
    batch, nodes = parents.shape
    best = target_probs == target_probs.max(axis=2, keepdims=True)
    out, counts = np.full((batch, nodes + 1), -1), np.ones(batch, dtype=np.int32)
    for b in range(batch):
        children, node, n = below(parents[b]), -1, 0
        while good := [i for i in children.get(node, ()) if best[b, node + 1, draft_tokens[b, i]]]:
            node = good[-1]
            out[b, n] = draft_tokens[b, node]
            n += 1
        out[b, n] = best.shape[2] - 1 - best[b, node + 1, ::-1].argmax()
        counts[b] = n + 1
    return out, counts


@TREE.lossless(greedy=True)
def longest_path_of_argmaxes(target_probs, draft_probs, draft_tokens, parents):
    """Greedy: the longest path of argmaxes from the root is emitted, and one more."""
    batch, nodes = parents.shape
    best = target_probs.argmax(axis=2)
    out, counts = np.full((batch, nodes + 1), -1), np.ones(batch, dtype=int)
    for b in range(batch):
        paths, longest = {-1: ()}, -1
        for i in range(nodes):
            up = int(parents[b, i])
            if up in paths and draft_tokens[b, i] == best[b, up + 1]:
                paths[i] = (*paths[up], int(draft_tokens[b, i]))
                if len(paths[i]) > len(paths[longest]):
                    longest = i
        block = (*paths[longest], best[b, longest + 1])
        out[b, : len(block)], counts[b] = block, len(block)
    return out, counts


@TREE.lossless(state=True, seeded=False)
def levels_that_adapt():
    """Reads fewer levels after calls that accepted little: earlier calls may decide that."""
    most = 3

    def verify(target_probs, draft_probs, draft_tokens, parents, *, rng):
        nonlocal most
        walk = Walk(target_probs, draft_probs, draft_tokens, parents)
        for i in range(walk.nodes):
            walk.tries(i, walk.children(i) & (walk.n < most), rng)
        most = 1 + int(walk.n.mean() > 0.7) + int(walk.n.mean() > 1)
        return walk.ends(draw_rows(walk.p, rng))

    return verify
