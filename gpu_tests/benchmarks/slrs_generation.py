"""What generating with SLRS takes on trained pairs: the rows of `gpu_tests.benchmarks.slrs`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from gpu_tests.benchmarks.markdown import table
from gpu_tests.benchmarks.slrs_tables import count
from specref.torch_backend.drafters.slrs import WIDTH

Row: TypeAlias = dict[str, Any]
LAZY, WHOLE, PLAIN = "lazy-slrs", "slrs", "autoregressive"
NAMES = {WHOLE: "SLRS, psi in full", "tli": "TLI", "slem": "SLEM", PLAIN: "no drafts"}
NOTHING = "It is not known to save forwards of the target over ways without psi."
WHOLE_READS = """ Psi in full reads
hundreds of paths of a row in one forward, so that its forwards are longer; its texts had {}
tokens."""
SPENT = """\
### On trained pairs

Batches of {prompts} texts of {tokens} tokens at temperature 1, lookahead {lookahead},
{repetitions} times (seed {seed}); the methods take turns. Tokens/s are the median, and the least
and the most. The pairs: {models}.

SLRS by bounds is `generate(method="slrs")`, of width {width}. Psi in full was another method, for
drafters of single bytes; it was taken out because it was slower.
*Width* is how many paths of each row bounds read in one forward, at most. *Paths* are the contexts
after which the drafter's law was read, drafting included; *in full* is what psi takes at the same
verdicts: all paths of drafter tokens that leave the first token open, for each, however unlikely.
Forwards are those of whole batches, which last as long as their slowest text.{whole}

{table}

{claims}"""


def spent(part: Row, models: Mapping[str, str]) -> str:
    """The section: what was generated, forwards, paths and speed."""
    rows, sizes = part["rows"], part["sizes"]
    return SPENT.format(
        prompts=sizes["prompts"],
        tokens=sizes["tokens"],
        whole=WHOLE_READS.format(sizes["whole_tokens"]) if "whole_tokens" in sizes else "",
        width=WIDTH,
        lookahead=sizes["lookahead"],
        repetitions=sizes["repetitions"],
        seed=sizes["seed"],
        models=", ".join(f"{pair} is {models[pair]}" for pair in pairs(rows)),
        table=generation_table(rows),
        claims=f"{spent_claims(rows)} {wider_claims(rows)}".rstrip(),
    )


def generation_table(rows: Sequence[Row]) -> str:
    """All rows; of the bounds, the narrowest and those of the usual width."""
    columns = (
        *("pair", "method", "tokens per iteration", "target forwards per token"),
        *("drafter forwards per token", "paths per token", "in full", "tokens/s"),
    )
    shown = [row for of in by_bounds(rows) for row in (narrowest(of), usual(of))]
    return table(columns, (_line(row) for row in rows if row["method"] != LAZY or row in shown))


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
    narrow = [narrowest(of) for of in by_bounds(rows)]
    lines = [
        f"{row['contexts_per_token']:.1f} of {count(round(row['whole_contexts_per_token']))} "
        f"({row['pair']})"
        for row in narrow
    ]
    return f"At width {narrow[0]['width']} bounds read, for each token: {', '.join(lines)}."


def wider_claims(rows: Sequence[Row]) -> str:
    """Whether more than the usual width saves forwards."""
    wider = [(row, usual(of)) for of in by_bounds(rows) for row in of if row["width"] > WIDTH]
    if not wider:
        return ""
    widths = " and ".join(map(str, sorted({row["width"] for row, _ in wider})))
    shares = [row["forwards_per_token"] / own["forwards_per_token"] for row, own in wider]
    if all(share == 1 for share in shares):
        return f"Widths {widths} make as many forwards as {WIDTH}: the likeliest paths decide."
    least, most = min(shares), max(shares)
    return f"Widths {widths} make {least:.0%} to {most:.0%} of the forwards of {WIDTH}."


def narrowest(lazy: Sequence[Row]) -> Row:
    """The row of the least width."""
    return min(lazy, key=lambda row: int(row["width"]))


def usual(lazy: Sequence[Row]) -> Row:
    """The row whose width is that of the backend, or next to it."""
    return min(lazy, key=lambda row: abs(int(row["width"]) - WIDTH))


def by_bounds(rows: Sequence[Row]) -> list[list[Row]]:
    """For each pair, the rows of SLRS by bounds."""
    lazy = [row for row in rows if row["method"] == LAZY]
    return [[row for row in lazy if row["pair"] == pair] for pair in pairs(rows)]


def pairs(rows: Sequence[Row]) -> list[str]:
    """The pairs in their order."""
    return [*dict.fromkeys(row["pair"] for row in rows)]


def speed(part: Row, models: Mapping[str, str], accepts_more: Collection[str]) -> Iterator[str]:
    """For each pair, how fast SLRS by bounds is beside the others, and when it would pay.

    Parameters
    ----------
    part : dict
    models : mapping from str to str
        Those of each pair.
    accepts_more : collection of str
        The pairs on which it is known to accept more than TLI.
    """
    rows, batch = part["rows"], part["sizes"]["prompts"]
    for pair, lazy in zip(pairs(rows), by_bounds(rows), strict=True):
        others, mine = others_on(pair, rows), usual(lazy)
        best = max(others, key=per_second)
        saves = pays(mine, others, batch) if pair in accepts_more else NOTHING
        yield (
            f"**Speed here, {models[pair]}:** {named(mine)} makes {per_second(mine):.0f} "
            f"tokens/s, {beside(mine, best)} {named(best)} with {per_second(best):.0f}"
            f"{_in_full(pair, rows)}. {saves}"
        )


def beside(mine: Row, other: Row) -> str:
    """Which is faster, where no repetition of the slower one was as fast as one of the other."""
    one, two = mine["tokens_per_second"], other["tokens_per_second"]
    if one["low"] > two["high"]:
        return "faster than"
    return "slower than" if one["high"] < two["low"] else "neither clearly faster nor slower than"


def fastest(rows: Sequence[Row]) -> list[str]:
    """The pairs on which SLRS by bounds is faster than all that need no psi."""
    return [
        pair
        for pair, lazy in zip(pairs(rows), by_bounds(rows), strict=True)
        if all(beside(usual(lazy), other) == "faster than" for other in others_on(pair, rows))
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


def pays(row: Row, others: Sequence[Row], batch: int) -> str:
    """How many drafter forwards one of the target must cost for SLRS to be the cheapest."""
    most = max(break_even(row, other, batch) for other in others)
    if most == float("inf"):
        return NOTHING
    return (
        f"Counting forwards alone, in batches of {batch} without an end, it pays where one of the "
        f"target costs more than {most:.0f} of the drafter."
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
