"""The page for readers, from the recorded JSON."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from gpu_tests.benchmarks.figures import figures, over_floors
from gpu_tests.benchmarks.lines import BLOCK, PLAIN

Row: TypeAlias = dict[str, Any]
TRAINED = 1000
PAGE = """\
# Recorded benchmarks

{devices}

Intervals go from the least to the most of the repetitions. A ratio is the median of the ratios
within each repetition. A figure is met if its median is. A row that failed names the exception.
Rows that need CUDA are `not_run` if no machine with CUDA has measured them.

## Figures to reach

{figures}

The TLI of Transformers as shipped is left out of the comparison: it verifies against a permuted
q, and its output does not have the target's distribution ([finding](trophies.md)).

{parts}

*Measured by `python -m gpu_tests.benchmarks.record --output docs/records/benchmarks.json
--markdown docs/records/benchmarks.md`. `--part` and `--device` measure some of it again.
`--from-json FILE` in place of `--output` renders this page and measures nothing.*
"""
VERIFICATION = """\
## Verification, {device}

{machine}

`verify`, with random numbers by `torch_backend.row_coins`, on random p and q. Draft tokens are
drawn from q, and caches are cold. *Compiled* is `verify` by `torch.compile`; *fused* is
`torch_backend.fused`, and *fused graph* the same as a CUDA graph. Two floors are times in which a
copy moves bytes, each once. *All rows* are every row of both models. *Needed rows* are of logits
those up to where verification stopped; of probabilities the row of p there, the row of q there
after a rejection, and p and q of each accepted draft. Both include the draft tokens and random
numbers that are read, and the output. Bytes and times are those of all rows, then of needed rows.
The copy of {buffer} ran at {bandwidth:.1f} GB/s, bytes read and
written counted, in the same run.

{table}"""
GENERATION = """\
## Generation, {device}

{machine}

The pairs of `fixtures/models`, in float32; the target was trained for {steps:,} steps
(sha256 {weights}){placeholder}. Within each repetition all rows run on the same prompts, with the
same number of new tokens, their order reversed by turns. Times are of whole calls, after the
tokenizers have been read once by both. *Plain* is autoregressive decoding by the same
implementation. *Block* is block verification. Transformers has batch 1
for drafts, no sampled SLEM, no greedy TLI, no union, no SLRS and no block verification;
*vocabulary by id* is its TLI with an assistant tokenizer that lists its vocabulary by id, without
which it is lossy. Tokens per target forward and time per iteration are per row of a batch;
forwards are calls for the whole batch, summed over repetitions. Rates of sampled rows vary with
what happens to be accepted; the time per iteration does not.

{table}"""
ON_CUDA = "On a CPU and on CUDA, device by device."
WITHOUT_CUDA = "**On a CPU alone: no GPU has been measured yet.**"
NOT_RUN = "## {part}, {device}\n\n{status}."


def render(record: Row) -> str:
    """Write the page, without its last line's end."""
    measured = [part["device"] for part in record["parts"] if part["machine"] is not None]
    return PAGE.format(
        devices=ON_CUDA if "cuda" in measured else WITHOUT_CUDA,
        figures=table(("figure", "outcome", "measured"), figures(record["parts"])),
        parts="\n\n".join(map(_part, record["parts"])),
    ).rstrip("\n")


def _part(part: Row) -> str:
    name, device = part["part"], part["device"].upper()
    if part["machine"] is None:
        status = f"{part['rows'][0]['status']}: {len(part['rows'])} rows"
        return NOT_RUN.format(part=name.capitalize(), device=device, status=status)
    return _verification(part, device) if name == "verification" else _generation(part, device)


def _verification(part: Row, device: str) -> str:
    measured = next(row for row in part["rows"] if row["status"] == "measured")
    return VERIFICATION.format(
        device=device,
        machine=_machine(part),
        buffer=as_bytes(measured["copied_bytes"]),
        bandwidth=measured["copy_bytes_per_second"] / 1e9,
        table=table(
            (*VERIFICATION_COLUMNS.split(" | "), *HOST_COLUMN * (device == "CUDA")),
            map(_verified, part["rows"]),
        ),
    )


def _generation(part: Row, device: str) -> str:
    steps, columns = part["machine"]["target_steps"], GENERATION_COLUMNS.split(" | ")
    return GENERATION.format(
        device=device,
        machine=_machine(part),
        steps=steps,
        weights=part["machine"]["target_sha256"][:12],
        placeholder="" if steps >= TRAINED else ", a placeholder: acceptance means nothing",
        table="\n\n".join(
            f"### {pair}, {device}\n\n{table(columns, map(_generated, rows))}"
            for pair, rows in groupby(part["rows"], key=lambda row: row["pair"])
        ),
    )


def _machine(part: Row) -> str:
    machine = part["machine"]
    versions = ", ".join(f"{name} {machine[name]}" for name in ("python", "torch", "transformers"))
    start, end = machine["load_average"]
    return (
        f"{machine['device']}, {machine['threads']} thread of the host, {machine['date']}; "
        f"{versions}; seed {part['seed']}; load average of the host {start:.1f} before and "
        f"{end:.1f} after."
    )


VERIFICATION_COLUMNS = (
    "B | lookahead | V | dtype | given | variant | "
    "bytes | floors | time | x all rows | x needed rows"
)
FLOORS = "all rows", "needed rows"
HOST_COLUMN = ("host returns after",)


def _verified(row: Row) -> Iterator[object]:
    yield from (row[name] for name in ("batch", "lookahead"))
    yield f"{row['vocabulary']:,}"
    yield from (row[name] for name in ("dtype", "input", "variant"))
    if row["status"] != "measured":
        yield from ("", "", row["status"], "", "")
        return
    time = row["seconds"]
    yield ", ".join(as_bytes(row["bytes"][name]) for name in FLOORS)
    yield ", ".join(as_seconds(row["floor_seconds"][name]) for name in FLOORS)
    yield f"{as_seconds(time['median'])} ({as_seconds(time['low'])} to {as_seconds(time['high'])})"
    yield from (f"{over_floors(row)[name]:.2f}" for name in FLOORS)
    if "host_seconds" in row:
        yield as_seconds(row["host_seconds"]["median"])


GENERATION_COLUMNS = (
    "method | T | lookahead | by | batch, new tokens | tokens/s | x Transformers | x plain | "
    "accepted | tokens per target forward | time per iteration | forwards of target, draft model"
)


def _generated(row: Row) -> Iterator[object]:
    jointly = ", block" * (row["verification"] == BLOCK)
    yield from (row["method"] + jointly, f"{row['temperature']:g}")
    yield from ("" if row["method"] == PLAIN else row["lookahead"], row["implementation"])
    yield f"{row['batch']}, {row['prompts']} x {row['new_tokens']}"
    if row["status"] != "measured":
        yield from (row["status"], *[""] * 6)
        return
    rate = row["tokens_per_second"]
    yield f"{rate['median']:.1f} ({rate['low']:.1f} to {rate['high']:.1f})"
    yield ", ".join(_against(row["ratio_to"]))
    plain = row["ratio_to_autoregressive"]
    yield _ratio(plain) if plain else ""
    drafted = row["drafted"]
    yield f"{row['acceptance']:.3f} of {drafted:,}" if drafted else ""
    yield f"{row['tokens_per_target_forward']:.2f}"
    yield as_seconds(row["seconds_per_iteration"])
    yield f"{row['target_forwards']:,}, {row['drafter_forwards']:,}"


def _against(peers: Row) -> Iterator[str]:
    """The ratio to Transformers; if there are two, with what each is to."""
    for peer, ratio in peers.items():
        yield _ratio(ratio) + f" {'by id' if 'by id' in peer else 'as shipped'}" * (len(peers) > 1)


def _ratio(ratio: Row) -> str:
    return f"{ratio['median']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"


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
