"""Where two laws differ most: probabilities of blocks and first tokens, and the rows of p and q.

The block that is shown first is the one with the largest absolute difference of probability, ties
by token ids; of sampled blocks those come before it that the target excludes. One block alone need
not prove anything: that is for the evidence about the whole law.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from specref.chance import LONG_ROW
from specref.distributions import Probability, push_forward
from specref.models import Model
from specref.statistics.campaign.cases import CampaignCase
from specref.statistics.campaign.prefix_tree import drafter_row
from specref.vocabulary import Tokens

SHOWN = 8
LONGEST = 9
ROUNDING = 1e-9
Difference: TypeAlias = dict[str, Any]


def difference(
    output: Mapping[Tokens, Probability],
    expected: Mapping[Tokens, Probability],
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    *,
    place: str = "",
    trials: int | None = None,
    texts: bool = False,
) -> Difference:
    """Expected and observed probabilities of what is furthest off, as evidence of an outcome.

    Parameters
    ----------
    output, expected : mapping
        {completed block: probability}.
    target, drafter : Model
    context : tuple of int
    lookahead : int
    place : str
        Its name; by default the context and the lookahead.
    trials : int, optional
        How many blocks were drawn; None if `output` is exact.
    texts : bool
        Whether these are texts of many iterations rather than blocks.

    Returns
    -------
    dict
        ``blocks`` and ``first_tokens``: at most 8 records each, the furthest off first;
        ``others``: the sums over all other blocks; ``rows``: p and q after each prefix of the
        first of the blocks, q only where a draft may come. As in all reports, floats are numbers
        and fractions are strings, "1/4".

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.proofs.exact import is_lossless
    >>> from specref.vocabulary import Vocabulary
    >>> from specref.zoo.standard.printed import algorithm_5
    >>> p, q = (iid_model(Vocabulary("ab"), row) for row in (["1/2", "1/2"], ["3/4", "1/4"]))
    >>> found = is_lossless(algorithm_5, p, q)
    >>> print(*told("a", difference(found.output, found.expected, p, q, (), 1)), sep="\\n")
    a, context (), lookahead 1: what is furthest off, exactly
      block (0, 0): expected 1/4, observed 0
      first tokens: no difference
      after (): p = (1/2, 1/2), q = (3/4, 1/4)
      after (0,): p = (1/2, 1/2)
    """
    blocks = _ranked(output, expected, trials)
    first = itemgetter(slice(1))
    tokens = _ranked(push_forward(output, first), push_forward(expected, first), trials)
    worst = blocks[0]["tokens"]
    return {
        "place": place or f"context {context}, lookahead {lookahead}",
        "context": list(context),
        "lookahead": lookahead,
        "of": "texts" if texts else "blocks",
        "trials": trials,
        "blocks": blocks[:SHOWN],
        "others": {
            "number": len(blocks[SHOWN:]),
            **{
                side: _told(sum(as_number(one[side]) for one in blocks[SHOWN:]))
                for side in ("expected", "observed")
            },
        },
        "first_tokens": tokens[:SHOWN],
        "rows": [
            {
                "prefix": worst[:n],
                "p": list(map(_told, target.next_token((*context, *worst[:n])).tolist())),
                "q": list(
                    map(_told, drafter_row(target, drafter, (*context, *worst[:n])).tolist())
                )
                if texts or n < lookahead
                else None,
            }
            for n in range(len(worst))
        ],
    }


def _told(value: Probability) -> float | str:
    return str(value) if isinstance(value, Fraction) else value


def as_number(told: float | str) -> Probability:
    """The probability that a report tells.

    Examples
    --------
    >>> as_number("3/8"), as_number(0.25)
    (Fraction(3, 8), 0.25)
    """
    return Fraction(told) if isinstance(told, str) else told


def _ranked(
    output: Mapping[Tokens, Probability],
    expected: Mapping[Tokens, Probability],
    trials: int | None,
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
        for tokens in sorted(output.keys() | expected.keys(), key=rank)
    ]


def seen_on(case: CampaignCase, blocks: Counter[Tokens]) -> Difference:
    """The difference between the completed blocks that a campaign saw on a case and their law.

    Parameters
    ----------
    case : CampaignCase
    blocks : Counter
        All blocks, as they were emitted. Of those with a token that the target excludes, what
        comes up to that token is counted; the others are continued by the target.
    """
    tree = case.tree
    ends = [
        (*tree.prefixes[node], int(token)) for node, token in np.argwhere(tree.leaves).tolist()
    ]
    counts = tree.completed(case.counts, case.trials - case.impossible)
    output: dict[Tokens, Any] = dict(zip(ends, (counts / case.trials).tolist(), strict=True))
    if case.impossible:
        for block, times in blocks.items():
            if excluded := _excluded(case, block):
                output[excluded] = output.get(excluded, 0.0) + times / case.trials
    return difference(
        output,
        dict(zip(ends, tree.law.tolist(), strict=True)),
        tree.target,
        tree.drafter,
        tree.context,
        tree.lookahead,
        place=case.name,
        trials=case.trials,
        texts=case.tokens is not None,
    )


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
    how = "exactly" if trials is None else f"of {trials:,} {found['of']}"
    lines = [f"{id_}, {found['place']}: what is furthest off, {how}"]
    block, first = found["blocks"][0], found["first_tokens"][0]
    lines.append(f"  {found['of'][:-1]} {tuple(block['tokens'])}: {_both(block)}")
    apart = abs(float(as_number(first["observed"])) - float(as_number(first["expected"])))
    same = trials is None and apart < ROUNDING
    said = "s: no difference" if same else f" {first['tokens'][0]}: {_both(first)}"
    lines.append(f"  first token{said}")
    for row in found["rows"]:
        q = "" if row["q"] is None else f", q = ({row_text(row['q'])})"
        lines.append(f"  after {tuple(row['prefix'])}: p = ({row_text(row['p'])}){q}")
    return lines


def _both(one: Difference) -> str:
    expected, observed = numbers(one["expected"], one["observed"])
    times = "" if one["count"] is None else f" ({times_seen(one['count'])} times)"
    return f"expected {expected}, observed {observed}{times}"


def times_seen(count: float) -> str:
    """How often a completed block was seen: no whole number if the target continued some.

    Examples
    --------
    >>> times_seen(1200.0), times_seen(31.25)
    ('1,200', '31.2')
    """
    return f"{count:,.1f}".removesuffix(".0")


def row_text(row: Sequence[float | str]) -> str:
    """A row for people: of a long one, the positive entries and their tokens.

    Examples
    --------
    >>> row_text(["1/2", 0.5]), row_text([0.0] * 98 + [1.0])
    ('0.5000, 0.5000', '98: 1.0000, otherwise 0')
    """
    if len(row) <= LONG_ROW:
        return ", ".join(numbers(*row))
    positive = (f"{i}: {x}" for i, x in enumerate(numbers(*row)) if as_number(row[i]))
    return ", ".join([*positive, "otherwise 0"])


def numbers(*told: float | str) -> list[str]:
    """Probabilities for people: fractions if none of them is long, else four digits.

    Examples
    --------
    >>> numbers("3/8", 0), numbers(0.12345, 1e-7, 0.0)
    (['3/8', '0'], ['0.1235', '1.0e-07', '0'])
    """
    if all(not isinstance(one, float) and len(str(one)) <= LONGEST for one in told):
        return list(map(str, told))
    return [_decimal(float(as_number(one))) for one in told]


def _decimal(value: float) -> str:
    if not value:
        return "0"
    return f"{value:.4f}" if value >= 1e-3 else f"{value:.1e}"
