"""What ``specref cross-check`` does: batch after batch of every row of its pairs; the table."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import groupby
from statistics import median
from typing import Any

import torch
from rich.console import Group, RenderableType

from specref.contrib.real_models.generating import PROMPTS, Generator
from specref.contrib.real_models.judging import judge
from specref.contrib.real_models.pairs import (
    ONE_VOCABULARY,
    PAIRS,
    TWO_VOCABULARIES,
    Pair,
    Published,
    folders_pair,
    ids_of,
)
from specref.contrib.real_models.planted import BUGS, spoiled
from specref.contrib.real_models.record import (
    BATCH,
    LENGTH,
    PROFILES,
    Case,
    Record,
    Sizes,
    cases_of,
    verdict,
)
from specref.contrib.real_models.tally import ALPHA, Tally
from specref.report.layout import Column, Prose, Table
from specref.torch_backend.models.configs import longest_text

PACE, WEIGHTS, LEAST = 0.2, 4e8, 0.01
"""Seconds a token, generated and judged, for so many weights in both models on one core, where no
row has told: the median of the published pairs' rows. A pair of tiny models takes the least."""
FEW = 4
"""Texts of the first batch of a planted bug; each later one has as many as there were so far."""
BUG_TOKENS = 512
"""After how many a planted bug is found, to say how long: most needed no more."""


def missing(record: Record, cases: Sequence[Case], sizes: Sizes) -> list[tuple[Case, int]]:
    """The rows that have too few tokens, and how many they lack; none of a bug that is found."""
    found = []
    for case in cases:
        tally = record.rows.get(case, Tally())
        lacking = case.tokens(sizes) - tally.tokens
        if lacking > 0 and not (case.bug is not None and tally.lossy):
            found.append((case, lacking))
    return found


def minutes(
    record: Record, lacking: Sequence[tuple[Case, int]], pair: Pair, timed: int = 0
) -> float:
    """How long some rows take, by the pace of those of the same pair, else by the models' sizes.

    So many tokens of texts are timed besides.
    """
    alike = {_like(case) for case, _ in lacking}
    told = [tally for case, tally in record.rows.items() if _like(case) in alike and tally.wall]
    paces = [tally.wall / tally.tokens for tally in told]
    weights = sum(one.model.num_parameters() for one in (pair.target, pair.drafter))
    usual = median(paces) if paces else max(LEAST, PACE * weights / WEIGHTS)
    needed = [min(tokens, BUG_TOKENS) if case.bug else tokens for case, tokens in lacking]
    return usual * (sum(needed) + timed) / 60


def _like(case: Case) -> tuple[str, str, str]:
    """What the pace of a row depends on."""
    return case.pair, case.device, case.dtype


def prompts_of(pair: Pair) -> list[list[int]]:
    """The prompts in the target's tokens, if models can read them and their texts."""
    rows = [pair.target.tokenizer.encode(prompt) for prompt in PROMPTS]
    for role, loaded in (("target", pair.target), ("drafter", pair.drafter)):
        room, longest = longest_text(loaded.model.config), max(map(len, rows)) + LENGTH
        if longest > room:
            raise ValueError(
                f"{role} {loaded.name} reads {room} tokens: expected {longest}, the longest "
                "prompt and its text"
            )
    return rows


def run_row(
    record: Record, case: Case, pair: Pair, tokens: int, advance: Callable[[int, str], None]
) -> None:
    """Generate and judge batches until a row has so many tokens, or its bug is found."""
    generator = Generator(pair, case.method, case.setting, case.lookahead)
    prompts, tally = prompts_of(pair), record.tally(case)
    planted = BUGS[case.bug]() if case.bug else {}
    spoil = spoiled(case.bug, generator.drafter)
    while tally.tokens < tokens and not (case.bug is not None and tally.lossy):
        started, before = time.perf_counter(), tally.tokens
        # Some bugs are found in a few texts; of a rule, no more than it lacks.
        texts = min(BATCH, math.ceil((tokens - before) / LENGTH))
        texts = min(texts, max(FEW, tally.texts)) if case.bug is not None else texts
        numbers = range(tally.texts, tally.texts + texts)
        rows = [prompts[number % len(prompts)] for number in numbers]
        made = generator(rows, numbers, LENGTH, planted, spoil)
        judge(tally, made, case.method, case.setting, pair.target)
        tally.wall += time.perf_counter() - started
        record.write()
        advance(tally.tokens - before, str(case))


Progress = Callable[[int, str], AbstractContextManager[Callable[..., None]]]


@dataclass(frozen=True)
class Chosen:
    """The options of the command."""

    target: str | None
    drafter: str | None
    names: tuple[str, ...]
    methods: tuple[str, ...]
    profile: str
    device: str
    dtype: str
    use_cache: bool

    def check(self) -> None:
        """Raise `ValueError` if they do not go together."""
        if (self.target is None) != (self.drafter is None):
            raise ValueError("--target and --drafter go together: expected both folders, or none")
        if self.target is not None and self.names:
            raise ValueError("--pair is of the published pairs: expected it without --target")
        if self.target is None and not self.use_cache:
            raise ValueError("--no-cache is of two folders: expected it with --target")
        for name in self.names:
            if name not in PAIRS:
                raise ValueError(f"--pair {name}: expected one of {', '.join(PAIRS)}")
        known = tuple(dict.fromkeys((*TWO_VOCABULARIES, *ONE_VOCABULARY)))
        for method in self.methods:
            if method not in known:
                raise ValueError(f"--method {method}: expected one of {', '.join(known)}")
        _check_device(self.device)

    def pairs(self) -> Iterator[tuple[str, Pair]]:
        """The pairs, each loaded when its turn comes."""
        if self.target is not None and self.drafter is not None:
            pair = folders_pair(self.target, self.drafter, self.device, self.dtype, self.use_cache)
            yield pair.name, pair
            return
        published = Published(self.device, self.dtype)
        for name in self.names or PAIRS:
            yield name, published.pair(name)

    def cases(self, name: str, pair: Pair) -> list[Case]:
        """The rows of a pair; none if it has no method that was asked for."""
        wanted = tuple(one for one in pair.methods if not self.methods or one in self.methods)
        where = {"device": self.device, "dtype": self.dtype}
        return cases_of(name, wanted, PROFILES[self.profile], **where)


def _check_device(name: str) -> None:
    """Raise `ValueError` if torch has no such device here."""
    lacking = {"cuda": not torch.cuda.is_available(), "mps": not torch.backends.mps.is_available()}
    if lacking.get(name):
        raise ValueError(
            f"--device {name}: torch {torch.__version__} finds none here; expected cpu, or a "
            f"torch that is built for {name}"
        )


def checked(chosen: Chosen, path: str, progress: Progress) -> tuple[RenderableType, set[str]]:
    """Run what is missing in a record; return its table, and the verdicts of these rows."""
    chosen.check()
    record, shown, methods = Record(path), [], []
    versions = f"torch {version('torch')}, transformers {version('transformers')}"
    if versions not in record.made_with:
        record.made_with.append(versions)
    sizes = PROFILES[chosen.profile]
    for name, pair in chosen.pairs():
        prompts_of(pair)
        record.check_models(name, pair.digests)
        cases = chosen.cases(name, pair)
        shown += cases
        methods.append(f"{name} has {', '.join(pair.methods)}")
        if not cases:
            continue
        lacking = missing(record, cases, sizes)
        left = sum(tokens for _, tokens in lacking)
        key = f"{name}, {chosen.device}, {chosen.dtype}"
        known = record.parts.get("speed", {}).get(key, {"prompts": 0})["prompts"]
        prompts = sizes.timed if known < sizes.timed and not chosen.methods else 0
        timed = _texts(pair, prompts) * sizes.length
        with progress(left, "tokens") as advance:
            for line in announced(record, cases, lacking, pair, timed):
                advance(0, "", line)
            for case, _ in lacking:
                run_row(record, case, pair, case.tokens(sizes), advance)
        if prompts:
            _time(record, key, pair, prompts, sizes.length, progress)
    if not shown:
        raise ValueError(
            f"--method {', '.join(chosen.methods)}: no pair that was asked for has it, so nothing "
            f"was run: {'; '.join(methods)}"
        )
    rows = {case: record.rows[case] for case in shown}
    report = Group(table(rows), *timings(record.parts.get("speed", {})))
    return report, {verdict(case, tally) for case, tally in rows.items()}


def announced(
    record: Record,
    cases: Sequence[Case],
    lacking: Sequence[tuple[Case, int]],
    pair: Pair,
    timed: int,
) -> Iterator[str]:
    """What is said of a pair before its rows run, and so many tokens of texts are timed."""
    yield from filter(None, (pair.target.doubt, pair.drafter.doubt))
    if "standard" in pair.methods:
        yield f"{pair.name}: one vocabulary"
    elif pair.shared is not None:
        of = ids_of(pair.drafter)
        yield f"{pair.name}: the target has {pair.shared:,} of the draft model's {of:,} tokens"
    if done := len(cases) - len(lacking):
        yield f"rows from {record.path}: {done}; another --record runs them again"
    if lacking or timed:
        tokens = sum(tokens for _, tokens in lacking)
        told = f"about {minutes(record, lacking, pair, timed):.0f} min"
        yield f"{pair.name}: {len(lacking)} rows, at most {tokens:,} tokens, {told}"


def _texts(pair: Pair, prompts: int) -> int:
    """How many are timed: sampled and greedy, by each of our methods and three of Transformers."""
    return 2 * prompts * (len(pair.methods) + 3)


def _time(
    record: Record, key: str, pair: Pair, prompts: int, length: int, progress: Progress
) -> None:
    """Time every path on so many prompts."""
    from specref.contrib.engines.calling_generate import errors_only
    from specref.contrib.real_models.speed import measure

    rows = prompts_of(pair)[:prompts]
    with progress(_texts(pair, prompts), "texts") as advance, errors_only():
        found = measure(pair, rows, length, lambda doing: advance(1, doing))
    paths = [path.stored() for path in found]
    known = record.parts.setdefault("speed", {})
    known[key] = {"prompts": prompts, "length": length, "paths": paths}
    record.write()


def timings(parts: dict[str, Any]) -> Iterator[RenderableType]:
    """For each pair a table of paths, ours and Transformers'."""
    names = ("tokens/pass", "tokens/s", "as plain greedy")
    columns = [Column("path"), *(Column(name, right=True) for name in names)]
    for key, part in parts.items():
        yield Prose(f"{key}: {part['prompts']} prompts, up to {part['length']} tokens each")
        yield Table(columns, [_path_cells(path) for path in part["paths"]])
        for path in part["paths"]:
            if path["error"]:
                yield Prose(f"{path['by']}, {path['method']}, raises {path['error']}")


def _path_cells(path: dict[str, Any]) -> list[str]:
    kind = "sampled" if path["sampled"] else "greedy"
    texts = f"{path['equal']} of {path['texts']}"
    texts += f", {path['near_ties']} near ties" * bool(path["near_ties"])
    return [
        f"{path['by']}, {path['method']}, {kind}",
        f"{path['tokens_per_forward']:.2f}",
        f"{path['tokens_per_second']:.1f}",
        "raises" if path["error"] else "-" if path["sampled"] else texts,
    ]


def table(rows: dict[Case, Tally]) -> RenderableType:
    """For each pair and setting a table of the rows, and what its columns mean."""
    columns = [Column("method")]
    columns += [Column(name, right=True) for name in ("tokens", "z", "log10 e")]
    columns += [Column(name, right=True) for name in ("accepted", "expected")]
    columns += [Column("verdict")]
    legend = (
        "log10 e: log10 of the largest e-value against another distribution; from "
        f"{-math.log10(ALPHA):.0f} on the verdict is LOSSY, wrongly with probability at most "
        "1e-9. accepted, expected: share of first draft tokens, and the closed form for the same "
        "contexts. A name behind a plus is a planted bug, which is to be found."
    )
    parts: list[RenderableType] = []
    for heading, group in groupby(rows.items(), lambda row: f"{row[0].pair}, {row[0].setting}"):
        parts += [Prose(heading), Table(columns, [_cells(*row) for row in group])]
    return Group(*parts, Prose(legend))


def _cells(case: Case, tally: Tally) -> list[str]:
    first = tally.places[0] if tally.places and tally.places[0].reached else None
    low, high = (first.least / first.reached, first.most / first.reached) if first else (0.0, 0.0)
    return [
        case.method + (f" + {case.bug}" if case.bug else ""),
        f"{tally.tokens:,}",
        f"{tally.z:+.2f}",
        f"{tally.peak:.1f}" if not tally.impossible else "impossible",
        f"{first.accepted / first.reached:.3f}" if first else "-",
        _between(low, high) if first else "-",
        verdict(case, tally).replace("found by acceptance", "by acceptance"),
    ]


def _between(low: float, high: float) -> str:
    """Bounds, as one number where they round to the same.

    >>> _between(0.42, 0.4201), _between(0.448, 0.451), _between(0.43, 0.47)
    ('0.420', '0.45', '0.43-0.47')
    """
    for digits in (3, 2):
        if f"{low:.{digits}f}" == f"{high:.{digits}f}":
            return f"{low:.{digits}f}"
    return f"{low:.2f}-{high:.2f}"
