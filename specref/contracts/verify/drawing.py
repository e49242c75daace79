"""Draws batches for the contract ``verify``: drafted from q; reading their padding fails."""

import numpy as np

from specref.arrays import NO_TOKEN, Floats, Ints
from specref.contracts.batch import Batch
from specref.contracts.fixtures import Fixture, Rows, rows


def draw_tokens(probabilities: Floats, rng: np.random.Generator) -> Ints:
    """One token from each row, by inverse CDF.

    Examples
    --------
    >>> draw_tokens(np.array([[0.0, 1.0], [1.0, 0.0]]), np.random.default_rng(1))
    array([1, 0])
    """
    return drawn_below(np.cumsum(probabilities, axis=1), rng)


def drawn_below(ends: Floats, rng: np.random.Generator) -> Ints:
    """One token from each row of cumulative sums."""
    u = rng.random(len(ends)) * ends[:, -1]
    return np.asarray(np.add.reduce(ends <= u[:, None], axis=1))


def draw_batch(
    fixture: Fixture, tables: Rows, node: Ints, place: Ints, rng: np.random.Generator
) -> Batch:
    """Draft from q after the given nodes; code that reads padding fails.

    The rows of p after that of the last draft put all mass on the last token, and so do those of
    q where there is no draft. If batches may be ragged, drafting ends with EOS.

    Parameters
    ----------
    node : ndarray of int, shape (B,)
        The node in the tables of each row of the batch.
    place : ndarray of int, shape (B,)
        The index in `fixture.places` of each row.
    """
    size, most = tables.p.shape[1], fixture.lookahead
    p, q = np.zeros((len(node), most + 1, size)), np.zeros((len(node), most, size))
    p[..., -1] = q[..., -1] = 1
    drafts = np.full((len(node), most), NO_TOKEN)
    allowed = fixture.lookaheads[place]
    going: slice | Ints = slice(None)  # as an index, much cheaper than all rows in an array
    lens = np.zeros(len(node), dtype=np.int64)
    p[:, 0] = tables.p.take(node, axis=0)
    for i in range(most):
        more = np.flatnonzero(allowed > i)
        if len(more) < len(node):
            going = more if isinstance(going, slice) else going[more]
            allowed, node = allowed[more], node[more]
        if not len(node):
            break
        q[going, i] = tables.q.take(node, axis=0)
        drafts[going, i] = token = drawn_below(tables.ends.take(node, axis=0), rng)
        lens[going] = i + 1
        node = tables.child[node, token]
        p[going, i + 1] = tables.p.take(node, axis=0)
        if fixture.ragged and fixture.eos is not None:
            allowed[token == fixture.eos] = 0
    return Batch(p, q, drafts, lens, place)


def sample_batch(fixture: Fixture, size: int, rng: np.random.Generator) -> Batch:
    """A batch with rows of every place."""
    tables = rows(fixture, 0)
    place = np.arange(size) % len(fixture.places)
    return draw_batch(fixture, tables, tables.root[place], place, rng)
