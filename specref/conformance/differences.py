"""Where two laws differ most: probabilities of blocks and first tokens, and the rows of p and q.

The block that is shown first is the one with the largest absolute difference of probability, ties
by token ids; of sampled blocks those come before it that the target excludes. One block alone need
not prove anything: that is for the evidence about the whole law.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from heapq import nsmallest
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from specref import chance
from specref.arrays import NO_TOKEN, Floats
from specref.distributions import Probability, push_forward
from specref.models import Model
from specref.statistics.campaign.evidence import CampaignCase
from specref.statistics.campaign.prefix_tree import drafter_row
from specref.vocabulary import Tokens

SHOWN = 8
LONGEST = 9
DIGITS, MOST_DIGITS = 4, 10
ROUNDING = 1e-9
NOISE = 4
Difference: TypeAlias = dict[str, Any]
Row: TypeAlias = list[float | str] | dict[str, Any]
"""Of p or q: all entries, or of a long row those that are shown."""


def difference(
    output: Mapping[Tokens, Probability],
    expected: Mapping[Tokens, Probability],
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    *,
    place: str = "",
) -> Difference:
    """Expected probabilities, and those of an exact law, of what is furthest off.

    Of at most 8 blocks and first tokens, the furthest off first, and of all other blocks together.
    ``rows`` are p and q after each prefix of the first block; q only where a draft may come, and
    the drafter is known. Of more than 12 tokens a row has only the entries that are shown.
    """
    blocks = _furthest_off(output, expected)
    others = (output.keys() | expected.keys()) - {tuple(one["tokens"]) for one in blocks}
    first = itemgetter(slice(1))
    return {
        "place": place or f"context {context}, lookahead {lookahead}",
        "context": list(context),
        "lookahead": lookahead,
        "of": "blocks",
        "trials": None,
        "blocks": blocks,
        "others": {
            "number": len(others),
            "expected": _told(sum(expected.get(one, 0) for one in others)),
            "observed": _told(sum(output.get(one, 0) for one in others)),
        },
        "first_tokens": _furthest_off(push_forward(output, first), push_forward(expected, first)),
        "rows": _rows(blocks[0]["tokens"], target, drafter, context, lookahead),
    }


def _rows(
    block: Sequence[int], target: Model, drafter: Model | None, context: Tokens, drafts: int
) -> list[Difference]:
    def told(n: int) -> Difference:
        before, drawn = (*context, *block[:n]), block[n]
        p = target.next_token(before)
        q = None if drafter is None or n >= drafts else drafter_row(target, drafter, before)
        return {
            "prefix": list(block[:n]),
            "p": _row(p.tolist(), drawn),
            "q": None if q is None else _row(q.tolist(), drawn),
        }

    return list(map(told, range(len(block))))


def _row(row: list[Probability], drawn: int) -> Row:
    if len(row) <= chance.LONG_ROW:
        return list(map(_told, row))
    return {
        "size": len(row),
        "positive": sum(map(bool, row)),
        "entries": {str(token): _told(row[token]) for token in chance.largest(row, drawn)},
    }


def _told(value: Probability) -> float | str:
    return str(value) if isinstance(value, Fraction) else value


def as_number(told: float | str) -> Probability:
    """The probability that a report tells."""
    return Fraction(told) if isinstance(told, str) else told


def _furthest_off(
    output: Mapping[Tokens, Probability],
    expected: Mapping[Tokens, Probability],
    trials: int | None = None,
) -> list[Difference]:
    def rank(tokens: Tokens) -> tuple[bool, float, Tokens]:
        off = abs(float(output.get(tokens, 0)) - float(expected.get(tokens, 0)))
        return trials is None or tokens in expected, -off, tokens

    return [
        {
            "tokens": list(tokens),
            "expected": _told(expected.get(tokens, 0)),
            "observed": _told(output.get(tokens, 0)),
            "count": None if trials is None else output.get(tokens, 0) * trials,
        }
        for tokens in nsmallest(SHOWN, output.keys() | expected.keys(), key=rank)
    ]


def seen_on(
    case: CampaignCase, blocks: Counter[Tokens], *, drafter_known: bool = True
) -> Difference:
    """The difference between the completed blocks that a campaign saw on a case and their law.

    Of blocks with a token that the target excludes, what comes up to that token is counted; the
    others are continued by the target.
    """
    tree, trials = case.tree, case.trials
    excluded = Counter[Tokens]()
    for block, times in blocks.items() if case.impossible else ():
        if cut := _excluded(case, block):
            excluded[cut] += times
    seen = tree.completed(case.counts, trials - case.impossible) / trials
    off = np.abs(seen - tree.law)
    # All that are tied with the last one that is shown: ties are broken by token ids.
    last = np.partition(off, -SHOWN)[-SHOWN] if len(off) > SHOWN else 0
    nodes, tokens = np.nonzero(tree.leaves)
    ends = {
        (*tree.prefixes[nodes[leaf]], int(tokens[leaf])): leaf
        for leaf in np.flatnonzero(off >= last).tolist()
    }
    output = {end: float(seen[leaf]) for end, leaf in ends.items()}
    output |= {block: times / trials for block, times in excluded.items()}
    expected = {end: float(tree.law[leaf]) for end, leaf in ends.items()}
    shown = _furthest_off(output, expected, trials)
    told = {tuple(one["tokens"]) for one in shown}
    rest = np.ones(len(off), dtype=np.bool_)
    rest[[leaf for end, leaf in ends.items() if end in told]] = False
    unseen = [times for block, times in excluded.items() if block not in told]
    texts = case.tokens is not None
    return {
        "place": case.name,
        "context": list(tree.context),
        "lookahead": tree.lookahead,
        "of": "texts" if texts else "blocks",
        "trials": trials,
        "blocks": shown,
        "others": {
            "number": int(rest.sum()) + len(unseen),
            "expected": float(tree.law[rest].sum()),
            "observed": float(seen[rest].sum()) + sum(unseen) / trials,
        },
        "first_tokens": _first_tokens(case, seen, excluded),
        "rows": _rows(
            shown[0]["tokens"],
            tree.target,
            tree.drafter if drafter_known else None,
            tree.context,
            tree.length if texts else tree.lookahead,
        ),
    }


def _first_tokens(
    case: CampaignCase, seen: Floats, excluded: Mapping[Tokens, int]
) -> list[Difference]:
    tree = case.tree
    first = np.array([prefix[0] if prefix else NO_TOKEN for prefix in tree.prefixes])
    nodes, tokens = np.nonzero(tree.leaves)
    heads = np.where(nodes == 0, tokens, first[nodes])
    size = tree.p.shape[1]
    output, expected = (np.bincount(heads, of, size) for of in (seen, tree.law))
    for block, times in excluded.items():
        output[block[0]] += times / case.trials
    possible = np.flatnonzero(tree.p[0] > 0).tolist()
    law: dict[Tokens, Any] = {(token,): float(expected[token]) for token in possible}
    found: dict[Tokens, Any] = {
        (token,): float(output[token]) for token in np.flatnonzero(output).tolist()
    }
    return _furthest_off(found, law, case.trials)


def _excluded(case: CampaignCase, block: Tokens) -> Tokens | None:
    """A block up to the first token that the target excludes, or that comes after the end."""
    node = 0
    for n, token in enumerate(block, 1):
        if node < 0 or case.tree.p[node, token] <= 0:
            return block[:n]
        node = int(case.tree.child[node, token])
    return None


def told(id_: str, found: Difference) -> list[str]:
    """The worst block and the worst first token of a check, and the rows, line by line."""
    trials = found["trials"]
    how = (
        "in its exact distribution"
        if trials is None
        else f"in {trials:,} {found['of']} drawn there"
    )
    lines = [f"{id_}, {found['place']}: furthest off, {how}"]
    block, first = found["blocks"][0], found["first_tokens"][0]
    lines.append(f"  {found['of'][:-1]} {tuple(block['tokens'])}: {_both(block, trials)}")
    apart = abs(float(as_number(first["observed"])) - float(as_number(first["expected"])))
    p = float(as_number(first["expected"]))
    said = f" {first['tokens'][0]}: {_both(first, trials)}"
    if trials is None and apart < ROUNDING:
        said = "s: no difference"
    elif trials and 0 < apart <= NOISE * (p * (1 - p) / trials) ** 0.5:
        said += f", within {NOISE} s.e."
    lines.append(f"  first token{said}")
    for row in found["rows"]:
        drawn = block["tokens"][len(row["prefix"])]
        q = "" if row["q"] is None else f", q = ({row_text(row['q'], drawn)})"
        lines.append(f"  after {tuple(row['prefix'])}: p = ({row_text(row['p'], drawn)}){q}")
    return lines


def _both(one: Difference, trials: int | None) -> str:
    expected, observed = numbers(one["expected"], one["observed"])
    if trials is None:
        return f"expected {expected}, has {observed}"
    return f"expected {expected}, observed {observed} ({times_seen(one, trials)})"


def times_seen(one: Difference, trials: int) -> str:
    """How often a block was seen, and the standard error of its probability under its law.

    No whole number if the target continued some; the standard error is at most that.

    Examples
    --------
    >>> times_seen({"count": 31.25, "expected": 0.2}, 100)
    '31.2 times, s.e. 0.0400'
    >>> times_seen({"count": 1200.0, "expected": 0.0}, 2_000)
    '1,200 times'
    """
    p = float(as_number(one["expected"]))
    count = f"{one['count']:,.1f}".removesuffix(".0")
    error = f", s.e. {_decimal((p * (1 - p) / trials) ** 0.5)}" if 0 < p < 1 else ""
    return f"{count} times{error}"


def row_text(row: Row, drawn: int | None = None) -> str:
    """A row for people: of a long one, the largest entries and the token that was drawn.

    Examples
    --------
    >>> row_text(["1/2", 0.5]), row_text([0.0] * 98 + [1.0])
    ('0.5000, 0.5000', '98: 1.0000, otherwise 0')
    >>> row_text({"size": 9_000, "positive": 7, "entries": {"5": "2/3", "80": "0"}})
    '5: 2/3, 80: 0, and 6 more, otherwise 0'
    """
    if not isinstance(row, dict):
        return chance.shown(map(as_number, row), drawn, numbers(*row))
    entries = row["entries"]
    words = dict(zip(map(int, entries), numbers(*entries.values()), strict=True))
    more = row["positive"] - sum(map(bool, map(as_number, entries.values())))
    return chance.entries_text(words, row["size"], more)


def numbers(*told: float | str) -> list[str]:
    """Probabilities for people: fractions if none of them is long, else four digits.

    They are more digits where those that differ would look equal.

    Examples
    --------
    >>> numbers("3/8", 0), numbers(0.12345, 1e-7, 0.0)
    (['3/8', '0'], ['0.1235', '1.0e-07', '0'])
    >>> numbers(0.33333334, 0.33333331)
    ['0.33333334', '0.33333331']
    """
    if all(not isinstance(one, float) and len(str(one)) <= LONGEST for one in told):
        return list(map(str, told))
    values = [float(as_number(one)) for one in told]
    for digits in range(DIGITS, MOST_DIGITS):
        shown = [_decimal(value, digits) for value in values]
        if len(set(shown)) == len(set(values)):
            return shown
    return list(map(_decimal, values))


def _decimal(value: float, digits: int = DIGITS) -> str:
    if not value:
        return "0"
    return f"{value:.{digits}f}" if value >= 1e-3 else f"{value:.{digits - 3}e}"
