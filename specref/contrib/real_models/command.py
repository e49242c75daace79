"""What ``specref cross-check`` does: the pairs, the rows, and the table of them."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, cast

from rich.console import Group, RenderableType

from specref.contrib.real_models.pairs import (
    ONE_VOCABULARY,
    PAIRS,
    TWO_VOCABULARIES,
    Pair,
    Published,
    folders_pair,
)
from specref.contrib.real_models.plan import PROFILES, Case, Profile, cases_of
from specref.contrib.real_models.record import Record, figures
from specref.contrib.real_models.running import minutes, missing, prompts_of, run_row
from specref.contrib.real_models.tally import ALPHA, Tally
from specref.report.layout import Column, Prose, Table

TIMED = 48
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

    def check(self) -> None:
        """Raise `ValueError` if they do not go together."""
        if (self.target is None) != (self.drafter is None):
            raise ValueError("--target and --drafter go together: expected both folders, or none")
        if self.target is not None and self.names:
            raise ValueError("--pair is of the published pairs: expected it without --target")
        for name in self.names:
            if name not in PAIRS:
                raise ValueError(f"--pair {name}: expected one of {', '.join(PAIRS)}")
        known = tuple(dict.fromkeys((*TWO_VOCABULARIES, *ONE_VOCABULARY)))
        for method in self.methods:
            if method not in known:
                raise ValueError(f"--method {method}: expected one of {', '.join(known)}")
        if self.device == "cuda":
            import torch

            if not torch.cuda.is_available():
                raise ValueError("--device cuda: torch finds none here; expected cpu")

    def pairs(self) -> Iterator[tuple[str, Pair]]:
        """The pairs, each loaded when its turn comes."""
        if self.target is not None and self.drafter is not None:
            pair = folders_pair(self.target, self.drafter, self.device, self.dtype)
            yield pair.name, pair
            return
        published = Published(self.device, self.dtype)
        for name in self.names or PAIRS:
            yield name, published.pair(name)

    def cases(self, name: str, pair: Pair) -> list[Case]:
        """The rows of a pair; none if it has no method that was asked for."""
        wanted = tuple(one for one in pair.methods if not self.methods or one in self.methods)
        sizes = PROFILES[cast(Profile, self.profile)]
        return cases_of(name, wanted, sizes, device=self.device, dtype=self.dtype)


def checked(chosen: Chosen, path: str, progress: Progress) -> tuple[RenderableType, set[str]]:
    """Run what is missing in a record; return its table, and the verdicts of these rows."""
    chosen.check()
    record, shown = Record(path), []
    versions = f"torch {version('torch')}, transformers {version('transformers')}"
    if versions not in record.made_with:
        record.made_with.append(versions)
    sizes = PROFILES[cast(Profile, chosen.profile)]
    for name, pair in chosen.pairs():
        prompts_of(pair)
        cases = chosen.cases(name, pair)
        shown += cases
        lacking = missing(record, cases, sizes)
        left = sum(tokens for _, tokens in lacking)
        with progress(left, "tokens") as advance:
            told = f"{pair.name}: {len(lacking)} rows, {left:,} tokens"
            advance(0, "", f"{told}, about {minutes(record, lacking):.0f} min")
            for case, _ in lacking:
                run_row(record, case, pair, case.tokens(sizes), _step(advance, str(case)))
        if not chosen.methods:
            _time(record, chosen, name, pair, sizes.timed, progress)
    rows = {case: record.rows[case] for case in shown}
    report = Group(table(rows), *timings(record.parts.get("speed", {})))
    return report, {figures(case, tally)["verdict"] for case, tally in rows.items()}


def _time(
    record: Record, chosen: Chosen, name: str, pair: Pair, prompts: int, progress: Progress
) -> None:
    """Time every path on so many prompts, unless the record has that."""
    from specref.contrib.real_models.speed import measure

    known = record.parts.setdefault("speed", {})
    key = f"{name}, {chosen.device}, {chosen.dtype}"
    if known.get(key, {"prompts": 0})["prompts"] >= prompts:
        return
    rows = prompts_of(pair)[:prompts]
    with progress(2 * prompts * (len(pair.methods) + 3), "texts") as advance:
        found = measure(pair, rows, TIMED, lambda doing: advance(1, doing))
    paths = [path.stored() for path in found]
    known[key] = {"prompts": prompts, "length": TIMED, "paths": paths}
    record.write()


def timings(parts: dict[str, Any]) -> Iterator[RenderableType]:
    """For each pair a table of paths, ours and Transformers'."""
    names = ("texts", "tokens/pass", "tokens/s", "equal", "near ties", "different")
    columns = [Column("path"), *(Column(name, right=True) for name in names)]
    for key, part in parts.items():
        yield Prose(f"{key}: {part['prompts']} prompts, up to {part['length']} tokens each")
        yield Table(columns, [_path_cells(path) for path in part["paths"]])
        for path in part["paths"]:
            if path["error"]:
                yield Prose(f"{path['by']}, {path['method']}, raises {path['error']}")


def _path_cells(path: dict[str, Any]) -> list[str]:
    kind = "sampled" if path["sampled"] else "greedy"
    texts = ["equal", "near_ties", "different"]
    return [
        f"{path['by']}, {path['method']}, {kind}",
        str(path["texts"]) if not path["error"] else "raises",
        f"{path['tokens_per_forward']:.2f}",
        f"{path['tokens_per_second']:.1f}",
        *("-" if path["sampled"] else str(path[one]) for one in texts),
    ]


def _step(advance: Callable[..., None], doing: str) -> Callable[[int], None]:
    return lambda count: advance(count, doing)


def table(rows: dict[Case, Tally]) -> RenderableType:
    """The rows as a table, and what its columns mean."""
    columns = [Column("row")]
    columns += [Column(name, right=True) for name in ("tokens", "z", "evidence")]
    columns += [Column(name, right=True) for name in ("accepted", "expected", "per pass")]
    columns += [Column("verdict")]
    legend = (
        f"evidence: log10 of what bets on another law have won at their best; from "
        f"{-math.log10(ALPHA):.0f} on the text has another law, wrongly so with probability 1e-9. "
        "accepted, expected: of the first drafts of blocks, the closed form on the same rows. "
        "per pass: tokens of a text for each pass of the target."
    )
    return Group(Table(columns, [_cells(*row) for row in rows.items()]), Prose(legend))


def _cells(case: Case, tally: Tally) -> list[str]:
    found: Any = figures(case, tally)
    first = tally.places[0] if tally.places and tally.places[0].reached else None
    low, high = (first.least / first.reached, first.most / first.reached) if first else (0.0, 0.0)
    expected = f"{low:.3f}" if f"{low:.3f}" == f"{high:.3f}" else f"{low:.3f} to {high:.3f}"
    return [
        str(case),
        f"{tally.tokens:,}",
        f"{tally.z:+.2f}",
        f"{tally.peak:.1f}" if not tally.impossible else "impossible",
        f"{first.accepted / first.reached:.3f}" if first else "-",
        expected if first else "-",
        f"{found['tokens_per_iteration']:.2f}",
        found["verdict"],
    ]
