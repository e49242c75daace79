"""What lazy SLRS takes on trained pairs: forwards and contexts for a token, acceptance, speed.

Beside SLRS with the whole of psi, SLEM, TLI, and no drafts; all take turns in one run.
Run: python -m gpu_tests.benchmarks.slrs [--json slrs.json]
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import click
import torch
from transformers.utils import logging

from gpu_tests.benchmarks.timing import Spread
from gpu_tests.pairs import Models, Pair
from specref.contracts.torch_state import one_thread
from specref.report.machine import write_json
from specref.torch_backend import Generation, SlrsDrafter, shape_logits
from specref.torch_backend.loop import Loop, Rules
from specref.torch_backend.methods import DRAFTERS
from specref.torch_backend.methods import Pair as Given
from specref.torch_backend.models.cached import CachedModel

LAZY, PLAIN = "lazy-slrs", "autoregressive"
BYTES = "byte-level"
SHAPE = partial(shape_logits, temperature=1.0)


@dataclass(frozen=True)
class Sizes:
    """What is generated; SLRS with the whole of psi has as many prompts, but fewer tokens."""

    pairs: tuple[str, ...] = (BYTES, "large intersection", "small intersection", "homogeneous")
    widths: tuple[int, ...] = (1, 8, 64, 256)
    others: tuple[str, ...] = ("tli", "slem", PLAIN)
    prompts: int = 8
    tokens: int = 32
    lookahead: int = 4
    repetitions: int = 3
    seed: int = 1


class Line(NamedTuple):
    """A method on a pair; `width` is that of lazy SLRS."""

    pair: str
    method: str
    width: int | None


class Run(NamedTuple):
    """One batch of texts, and how many contexts the drafter's law was asked for, if counted."""

    generation: Generation
    reads: int | None


class Contender:
    """A method on a pair, built once."""

    def __init__(self, line: Line, pair: Pair, sizes: Sizes) -> None:
        self.pair, self.line, self.sizes = pair, line, sizes
        models = pair.target, pair.drafter, pair.tokenizer, pair.drafter_tokenizer
        self.drafter = built(Given(*models, SHAPE, True), line)
        self.contexts = contexts_of_psi(self.drafter) if line.method == LAZY else None

    def run(self, repetition: int) -> Run:
        """Texts after all prompts, in one batch; seeds are those of the repetition."""
        sizes, count = self.sizes, self.sizes.prompts
        seeds = torch.arange(count, device=self.pair.target.device)
        seeds += (sizes.seed + repetition) * count
        rules = Rules(SHAPE, sizes.lookahead, sizes.tokens, clipped=self.line.method != "slem")
        before = getattr(self.drafter, "reads", None)
        loop = Loop(
            CachedModel(self.pair.target), self.drafter, self.pair.prompts(count), seeds, rules
        )
        made = loop.run()
        return Run(made, None if before is None else self.drafter.reads - before)


def built(given: Given, line: Line) -> Any:
    """The drafter of a line, None for no drafts."""
    if line.method == LAZY:
        return SlrsDrafter(given.tree_model, *given.vocabularies, SHAPE, line.width or 1)
    return None if line.method == PLAIN else DRAFTERS[line.method](given)


def contexts_of_psi(drafter: SlrsDrafter) -> int:
    """How many contexts the whole of psi takes: every path of drafter tokens within the tree."""
    settling, trie = drafter.settling, drafter.trie
    codes = settling.codes(trie.inner).long()
    paths = torch.zeros(settling.end + 1, dtype=torch.float64, device=codes.device)
    for row in reversed(range(len(codes))):
        paths[trie.inner[row]] = 1 + paths[codes[row].clamp(max=settling.end)].sum()
    return int(paths[0])


def lines(sizes: Sizes) -> Iterator[Line]:
    """Lazy SLRS by its widths, and the others, on every pair."""
    for pair in sizes.pairs:
        yield from (Line(pair, LAZY, width) for width in sizes.widths)
        yield from (Line(pair, method, None) for method in sizes.others)


def rows(sizes: Sizes, device: str = "cpu") -> Iterator[dict[str, Any]]:
    """One row for each line, that can be written as JSON."""
    models, named = Models(device), list(lines(sizes))
    pairs = {name: models.pair(name) for name in sizes.pairs}
    contenders = [Contender(line, pairs[line.pair], sizes) for line in named]
    runs: list[list[Run]] = [[] for _ in named]
    for repetition in range(-1, sizes.repetitions):
        for contender, found in zip(contenders, runs, strict=True):
            one = contender.run(repetition)
            if repetition >= 0:
                found.append(one)
    for contender, found in zip(contenders, runs, strict=True):
        yield contender.line._asdict() | figures(found, contender.contexts)


def measure(sizes: Sizes = Sizes(), device: str = "cpu") -> list[dict[str, Any]]:
    """All rows, on one thread."""
    with one_thread():
        return list(rows(sizes, device))


def figures(found: Sequence[Run], contexts: int | None) -> dict[str, Any]:
    """Of the repetitions together; `contexts` is what the whole of psi takes once."""
    made = [run.generation for run in found]
    emitted, drafted = sum(one.emitted for one in made), sum(one.drafted for one in made)
    log = [iteration for one in made for iteration in one.log]
    verified = sum(min(one.prefix + 1, one.drafted) for one in log)
    reads = [run.reads for run in found if run.reads is not None]
    return {
        "emitted": emitted,
        "drafted": drafted,
        "acceptance": sum(one.accepted for one in made) / drafted if drafted else None,
        "tokens_per_iteration": emitted / len(log),
        "target_forwards": sum(one.target_forwards for one in made),
        "drafter_forwards": sum(one.drafter_forwards for one in made),
        "forwards_per_token": sum(one.drafter_forwards for one in made) / emitted,
        "contexts_per_token": sum(reads) / emitted if reads else None,
        "contexts_of_psi": contexts,
        "whole_contexts_per_token": verified * contexts / emitted if contexts else None,
        "tokens_per_second": asdict(Spread.of([one.emitted / one.seconds for one in made])),
    }


COLUMNS = (
    "pair", "method", "width", "acceptance", "tokens_per_iteration", "forwards_per_token",
    "contexts_per_token", "whole_contexts_per_token",
)  # fmt: skip


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--device", default="cpu", show_default=True)
@click.option("--json", "output", type=click.Path(dir_okay=False), help="Write the rows here.")
@click.option("--prompts", default=Sizes.prompts, show_default=True)
@click.option("--tokens", default=Sizes.tokens, show_default=True)
@click.option("--seed", default=Sizes.seed, show_default=True)
def main(device: str, output: str | None, prompts: int, tokens: int, seed: int) -> None:
    """Measure lazy SLRS beside the other methods on all pairs."""
    logging.disable_progress_bar()
    found = measure(Sizes(prompts=prompts, tokens=tokens, seed=seed), device)
    click.echo("  ".join((*COLUMNS, "tokens_per_second")))
    for row in found:
        cells = [_cell(row[name]) for name in COLUMNS]
        click.echo("  ".join((*cells, f"{row['tokens_per_second']['median']:.0f}")))
    if output is not None:
        write_json(output, json.dumps(found, indent=1))


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "-" if value is None else str(value)


if __name__ == "__main__":
    main()
