"""Tokens per second of `torch_backend.generate` beside Transformers' `generate`.

All take turns on the same prompts in one run, with the same number of new tokens and drafts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from gpu_tests.benchmarks.contenders import Contender, Ours, Tally, Transformers
from gpu_tests.benchmarks.lines import OURS, PLAIN, Line, Sizes
from gpu_tests.benchmarks.timing import Spread
from gpu_tests.pairs import Models, prompts_of
from specref.contrib.real_models.pairs import Pair

WARM_UP_SEED, WARM_UP_TOKENS = 999, 4


@dataclass(frozen=True)
class Run:
    """One repetition of one row; without a tally it failed."""

    line: Line
    repetition: int
    tally: Tally | None
    error: str = ""


def steps(device: str, sizes: Sizes, seed: int) -> Iterator[Run]:
    """A warm-up of every row, then as many repetitions, in which rows take turns going first."""
    models = Models(device)
    pairs = {name: models.pair(name) for name in sizes.pairs}
    contenders = {line: _contender(line, pairs[line.pair]) for line in sizes.lines}
    failed: dict[Line, Run] = {}
    for line, contender in contenders.items():
        yield (run := _run(line, contender, WARM_UP_SEED, -1))
        if run.error:
            failed[line] = run
    for repetition in range(sizes.repetitions):
        for line in _turns(list(contenders), repetition):
            yield failed.get(line) or _run(line, contenders[line], seed + repetition, repetition)


def _turns(lines: list[Line], repetition: int) -> list[Line]:
    """Forwards and backwards by turns: who went first goes last."""
    return lines[::-1] if repetition % 2 else lines


def _contender(line: Line, pair: Pair) -> Contender:
    return Ours(pair, line) if line.implementation == OURS else Transformers(pair, line)


def _run(line: Line, contender: Contender, seed: int, repetition: int) -> Run:
    warm_up = repetition < 0
    prompts = prompts_of(contender.pair, 1 if warm_up else line.prompts)
    new_tokens = min(WARM_UP_TOKENS, line.new_tokens) if warm_up else line.new_tokens
    try:
        tally = contender.run(prompts, new_tokens, seed)
        if tally.emitted != len(prompts) * new_tokens:
            raise RuntimeError(f"{tally.emitted} tokens: expected {new_tokens} for each prompt")
        return Run(line, repetition, tally)
    except Exception as error:
        if line.implementation == OURS:
            raise
        return Run(line, repetition, None, f"failed ({type(error).__name__}: {error})")


def rows(found: Sequence[Run]) -> list[dict[str, Any]]:
    """One row for each line, compared in each repetition with what ran beside it."""
    failed = {run.line: run.error for run in found if run.error}
    tallies: dict[Line, list[Tally]] = {run.line: [] for run in found}
    for run in found:
        if run.tally is not None and run.repetition >= 0:
            tallies[run.line].append(run.tally)
    return [
        asdict(line) | ({"status": failed[line]} if line in failed else _figures(line, tallies))
        for line in tallies
    ]


def _figures(line: Line, tallies: Mapping[Line, list[Tally]]) -> dict[str, Any]:
    mine, total = tallies[line], sum(tallies[line], Tally())
    against = {
        other.implementation: _ratio(mine, tallies[other])
        for other in tallies
        if line.implementation == OURS and _same_task(other, line) and tallies[other]
    }
    plain = [other for other in tallies if _plain(other, line) and line.method != PLAIN]
    figures = {
        "status": "measured",
        "tokens_per_second": asdict(Spread.of([_rate(tally) for tally in mine])),
        "ratio_to": against,
        "ratio_to_autoregressive": _ratio(mine, tallies[plain[0]]) if plain else None,
    }
    return figures | {
        "seconds_per_iteration": total.seconds / total.iterations,
        "drafted": total.drafted,
        "accepted": total.accepted,
        "acceptance": total.accepted / total.drafted if total.drafted else None,
        "tokens_per_target_forward": total.emitted / total.iterations,
        "target_forwards": total.target_forwards,
        "drafter_forwards": total.drafter_forwards,
    }


def _same_task(other: Line, line: Line) -> bool:
    """Whether another implementation was given the same to do."""
    return other != line and replace(other, implementation=OURS) == line


def _plain(other: Line, line: Line) -> bool:
    """Whether this is the same implementation without drafts."""
    if (other.method, other.temperature, other.batch) != (PLAIN, line.temperature, line.batch):
        return False
    return (other.implementation == OURS) == (line.implementation == OURS)


def _rate(tally: Tally) -> float:
    return tally.emitted / tally.seconds


def _ratio(mine: Sequence[Tally], others: Sequence[Tally]) -> dict[str, Any]:
    pairs = zip(mine, others, strict=True)
    return asdict(Spread.of([_rate(ours) / _rate(theirs) for ours, theirs in pairs]))
