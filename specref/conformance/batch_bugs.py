"""Bugs that need several requests in a call: told apart by blocks of their own verifiers.

The exact laws of the zoo are those of one request. A bug that reads the row of another request has
a law that depends on the batch. So its verifier is run on batches of the same layout, and its
blocks are compared with those of the sampler.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from specref.batched import Verify, verifier
from specref.conformance.diagnosis import Candidate
from specref.conformance.judge import Judge
from specref.conformance.trial import tallied
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import Subject
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import Place
from specref.contracts.table import contract_named
from specref.vocabulary import Tokens
from specref.zoo import ALL, Entry
from specref.zoo.batched import EVERY

Counts = Mapping[Place, Counter[Tokens]]
Seen = Mapping[str, Counts]
"""{fixture: {place: counts of blocks}}"""
ALPHA = 1e-6
"""The chance that the true bug is excluded, by a chi-square test; as for bugs with exact laws."""
FEWEST = 20
"""Blocks of a cell: with fewer, the chi-square law is a poor approximation."""


def bugs_of_batches(contract: str, *, hot: bool) -> Iterator[Entry]:
    """The bugs that show in the blocks of a request beside others.

    `hot`: the sampler is told the temperatures of requests.
    """
    for entry in ALL.values():
        shows = entry.stage == "batch" and entry.shows == "row" and not entry.blind >= EVERY
        if shows and (entry.contract == "verify" or (hot and entry.contract == contract)):
            yield entry


def batch_bug(judge: Judge) -> Candidate | None:
    """The bug whose blocks, in batches of the same layout, cannot be told from the sampler's.

    The likeliest of those that fit, if it is a million times as likely as the clean verifier.
    Blocks are those of the campaigns, and of `further`.
    """
    rng, seen = judge.rng("batch bugs"), _seen(judge)
    hot = "temperature" in judge.verifier.keywords
    asked = bugs_of_batches(str(judge.contract), hot=hot)
    blocks: dict[str, Seen] = {}
    for bug in asked:
        try:
            drawn = _drawn_while_alike(judge, bug, seen, rng)
        except BrokenContractError:
            continue  # the sampler's answers could be read
        if drawn is not None:
            blocks[bug.id] = drawn
    if not blocks:
        return None
    clean = _log_likelihood(seen, {name: _drawn(judge, None, name, rng) for name in seen})
    likely = {id_: _log_likelihood(seen, drawn) - clean for id_, drawn in blocks.items()}
    best, *others = sorted(likely, key=lambda id_: -likely[id_])
    if likely[best] < -math.log(ALPHA):
        return None
    ratio = likely[best] - likely[others[0]] if others else math.inf
    return Candidate(
        entries=(ALL[best],),
        strengths=(1.0,),
        log10_ratio=ratio / math.log(10),
        log10_over_clean=likely[best] / math.log(10),
        log10_against=0.0,
        fits=True,
        resembles=False,
        distance=max(_distance(*pair) for pair in _pairs(seen, blocks[best])),
    )


def _seen(judge: Judge) -> Seen:
    """The blocks of all campaigns over single iterations, and those drawn later."""
    return {
        name: {
            place: Counter(blocks) + more[place]
            for place, blocks in judge.memo[f"blocks/{name}"].blocks.items()
        }
        for name, more in judge.further.items()
    }


def _drawn_while_alike(
    judge: Judge, bug: Entry, seen: Seen, rng: np.random.Generator
) -> Seen | None:
    """Blocks of a bug on all fixtures; None as soon as they are told apart on one."""
    found: dict[str, Counts] = {}
    for name in seen:
        found[name] = _drawn(judge, bug, name, rng)
        if not _alike({one: seen[one] for one in found}, found):
            return None
    return found


def _drawn(judge: Judge, bug: Entry | None, name: str, rng: np.random.Generator) -> Counts:
    """As many blocks of a bug as were seen, in batches of the same sizes; None: it has no bug."""
    own: Verify = verifier() if bug is None or bug.make is None else bug.make()
    contract: Any = contract_named("verify" if bug is None else bug.contract)
    double = judge.capabilities.dtype == "float64"
    known = Capabilities(batch=judge.capabilities.batch, dtype="float64" if double else "float32")
    places = judge.fixture(name).places
    sampler = contract.blocks(Subject(own, known), judge.fixture(name))
    drawn: dict[Place, Counter[Tokens]] = {place: Counter() for place in places}
    # The sizes of batches depend on how many blocks are drawn at once.
    looks = [0, *(trials for trials, _ in judge.memo[f"blocks/{name}"].looks)]
    sizes = [after - before for before, after in pairwise(looks)]
    for size in (*sizes, *judge.further_sizes[name]):
        place, blocks, _ = sampler(size, rng)
        for index, one in enumerate(places):
            drawn[one] += tallied(blocks[place == index])
    return drawn


def _pairs(seen: Seen, drawn: Seen) -> Iterator[tuple[Counter[Tokens], Counter[Tokens]]]:
    return ((counts, drawn[name][place]) for name in seen for place, counts in seen[name].items())


def _alike(seen: Seen, drawn: Seen) -> bool:
    """Whether a chi-square test of two samples, over all places, does not tell them apart."""
    statistic, freedom = 0.0, 0
    for one, other in _pairs(seen, drawn):
        a, b = _cells(one, other)
        n, m = a.sum(), b.sum()
        if n and m and len(a) > 1:
            statistic += float((((a * m - b * n) ** 2) / (a + b)).sum() / (n * m))
            freedom += len(a) - 1
    from scipy.special import chdtrc  # it takes long to import

    return not freedom or float(chdtrc(freedom, statistic)) > ALPHA


def _cells(one: Counter[Tokens], other: Counter[Tokens]) -> tuple[np.ndarray, np.ndarray]:
    """Counts of blocks in both, rare blocks together."""
    blocks = list(one | other)
    a, b = (np.array([float(counts[block]) for block in blocks]) for counts in (one, other))
    rare = a + b < FEWEST
    if rare.any():
        a, b = (np.append(x[~rare], x[rare].sum()) for x in (a, b))
    return a, b


def _log_likelihood(seen: Seen, drawn: Seen) -> float:
    """Of what was seen, by frequencies of what was drawn, half a block added to each."""
    total = 0.0
    for one, other in _pairs(seen, drawn):
        whole = other.total() + 0.5 * len(one | other)
        total += sum(n * math.log((other[block] + 0.5) / whole) for block, n in one.items())
    return total


def _distance(one: Counter[Tokens], other: Counter[Tokens]) -> float:
    n, m = max(1, one.total()), max(1, other.total())
    return sum(abs(one[block] / n - other[block] / m) for block in one | other) / 2
