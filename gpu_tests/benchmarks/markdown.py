"""Numbers and tables as Markdown."""

from collections.abc import Iterable, Sequence


def as_bytes(count: int) -> str:
    """A number of bytes.

    Examples
    --------
    >>> as_bytes(1234), as_bytes(268435456)
    ('1.23 kB', '268 MB')
    """
    return _scaled(count, ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")))


def as_seconds(seconds: float) -> str:
    """A time.

    Examples
    --------
    >>> as_seconds(0.0123), as_seconds(4.5e-7)
    ('12.3 ms', '0.45 us')
    """
    return _scaled(seconds, ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")))


def _scaled(value: float, units: Sequence[tuple[float, str]]) -> str:
    size, unit = next((each for each in units if value >= each[0]), units[-1])
    return f"{float(f'{value / size:.3g}'):g} {unit}"


def table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table in GitHub's form."""
    header = list(columns)
    lines = [header, ["---"] * len(header), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
