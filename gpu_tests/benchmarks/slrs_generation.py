"""What generating with SLRS takes on trained pairs: the rows of `gpu_tests.benchmarks.slrs`."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeAlias

from gpu_tests.benchmarks.markdown import table
from gpu_tests.benchmarks.slrs_tables import count

Row: TypeAlias = dict[str, Any]
LAZY, WHOLE, PLAIN = "lazy-slrs", "slrs", "autoregressive"
NAMES = {WHOLE: "SLRS, psi in full", "tli": "TLI", "slem": "SLEM", PLAIN: "no drafts"}
NOTHING = "It is not known to save forwards of the target over ways without psi."
SPENT = """\
### On trained pairs

Batches of {prompts} texts of {tokens} tokens at temperature 1 ({whole} with psi in full),
lookahead {lookahead}, {repetitions} times (seed {seed}); the methods take turns. *Width* is how
many paths of each row bounds read in one forward, at most. *Paths* are the contexts after which
the drafter's law was read, drafting included; *in full* is what psi takes at the same verdicts:
all paths of drafter tokens that leave the first token open, for each. Forwards are those of whole
batches.

{table}

{claims}"""


def spent(part: Row) -> str:
    """The section: what was generated, forwards, paths and speed."""
    rows, sizes = part["rows"], part["sizes"]
    return SPENT.format(
        prompts=sizes["prompts"],
        tokens=sizes["tokens"],
        whole=sizes["whole_tokens"],
        lookahead=sizes["lookahead"],
        repetitions=sizes["repetitions"],
        seed=sizes["seed"],
        table=generation_table(rows),
        claims=spent_claims(rows),
    )


def generation_table(rows: Sequence[Row]) -> str:
    """All rows."""
    columns = (
        *("pair", "method", "tokens per iteration", "target forwards per token"),
        *("drafter forwards per token", "paths per token", "in full", "tokens/s"),
    )
    return table(columns, (_line(row) for row in rows))


def _line(row: Row) -> tuple[object, ...]:
    paths, whole = row["contexts_per_token"], row["whole_contexts_per_token"]
    speed = row["tokens_per_second"]
    return (
        row["pair"],
        named(row),
        f"{row['tokens_per_iteration']:.2f}",
        f"{row['target_forwards'] / row['emitted']:.3f}",
        f"{row['forwards_per_token']:.2f}",
        "" if paths is None else f"{paths:.1f}",
        "" if whole is None else count(round(whole)),
        f"{speed['median']:.0f} ({speed['low']:.0f} to {speed['high']:.0f})",
    )


def named(row: Row) -> str:
    """The method, and the width of bounds."""
    by_bounds = row["method"] == LAZY
    return f"SLRS by bounds, width {row['width']}" if by_bounds else NAMES[row["method"]]


def spent_claims(rows: Sequence[Row]) -> str:
    """How many paths bounds read of those of psi, at the least width."""
    narrow = [min(of, key=lambda row: int(row["width"])) for of in by_bounds(rows)]
    lines = [
        f"{row['contexts_per_token']:.1f} of {count(round(row['whole_contexts_per_token']))} "
        f"({row['pair']})"
        for row in narrow
    ]
    return f"At width {narrow[0]['width']} bounds read, for each token: {', '.join(lines)}."


def by_bounds(rows: Sequence[Row]) -> list[list[Row]]:
    """For each pair, the rows of SLRS by bounds."""
    lazy = [row for row in rows if row["method"] == LAZY]
    return [[row for row in lazy if row["pair"] == pair] for pair in pairs(rows)]


def pairs(rows: Sequence[Row]) -> list[str]:
    """The pairs in their order."""
    return [*dict.fromkeys(row["pair"] for row in rows)]


def speed(part: Row, accepts_more: Collection[str]) -> Iterator[str]:
    """For each pair, how fast SLRS by bounds is beside the others, and when it would pay.

    Parameters
    ----------
    part : dict
    accepts_more : collection of str
        The pairs on which it is known to accept more than TLI.
    """
    rows, batch = part["rows"], part["sizes"]["prompts"]
    for pair, lazy in zip(pairs(rows), by_bounds(rows), strict=True):
        others, mine = others_on(pair, rows), max(lazy, key=per_second)
        best = max(others, key=per_second)
        faster = "faster" if per_second(mine) > per_second(best) else "slower"
        saves = pays(lazy, others, batch) if pair in accepts_more else NOTHING
        yield (
            f"**Speed here, {pair}:** {named(mine)} makes {per_second(mine):.0f} tokens/s, "
            f"{faster} than {named(best)} with {per_second(best):.0f}{_in_full(pair, rows)}. "
            f"{saves}"
        )


def fastest(rows: Sequence[Row]) -> list[str]:
    """The pairs on which SLRS by bounds is faster than what needs no psi."""
    return [
        pair
        for pair, lazy in zip(pairs(rows), by_bounds(rows), strict=True)
        if max(map(per_second, lazy)) > max(map(per_second, others_on(pair, rows)))
    ]


def others_on(pair: str, rows: Sequence[Row]) -> list[Row]:
    """The rows of a pair that need no psi."""
    of = [row for row in rows if row["pair"] == pair]
    return [row for row in of if row["method"] not in (LAZY, WHOLE)]


def _in_full(pair: str, rows: Sequence[Row]) -> str:
    of = [row for row in rows if (row["pair"], row["method"]) == (pair, WHOLE)]
    return "".join(f"; psi in full makes {per_second(row):.0f}" for row in of)


def per_second(row: Row) -> float:
    """The median of tokens per second."""
    return float(row["tokens_per_second"]["median"])


def pays(lazy: Sequence[Row], others: Sequence[Row], batch: int) -> str:
    """How many drafter forwards one of the target must cost for SLRS to be the cheapest."""
    found = [max(break_even(row, other, batch) for other in others) for row in lazy]
    least = min(found)
    if least == float("inf"):
        return NOTHING
    width = lazy[found.index(least)]["width"]
    return (
        f"Counting forwards of full batches of {batch} alone, it pays where one of the target "
        f"costs more than {least:.0f} of the drafter (width {width})."
    )


def break_even(row: Row, other: Row, batch: int) -> float:
    """How many drafter forwards one of the target must cost for a row to be the cheaper, or inf.

    Examples
    --------
    >>> one = {"tokens_per_iteration": 2.0, "forwards_per_token": 3.0}
    >>> other = {"tokens_per_iteration": 1.0, "forwards_per_token": 0.0}
    >>> break_even(one, other, 2), break_even(other, one, 2)
    (12.0, inf)
    """
    saved = 1 / other["tokens_per_iteration"] - 1 / row["tokens_per_iteration"]
    more = row["forwards_per_token"] - other["forwards_per_token"]
    if more <= 0 <= saved:
        return 0.0
    return float(batch * more / saved) if saved > 0 else float("inf")
