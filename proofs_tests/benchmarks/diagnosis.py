"""How often a diagnosis names the right bug first, or among the first three.

Blocks are drawn from the exact law of each mutant; trials are the total over the cases. At
strength s a block is the mutant's with probability s, and clean otherwise. Entries with the
same law on all cases count as one. Run: python -m proofs_tests.benchmarks.diagnosis
"""

import argparse
import time

import numpy as np

from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.conformance.diagnosis import Diagnosis, Laws, Observed, diagnose
from specref.conformance.diagnosis.laws import Law, law_of
from specref.zoo import CONTROLS, FIXTURES, MUTANTS, ExactFixture

CASES = ("wide", "deep", "eos")
TRIALS = (2_000, 20_000, 200_000)
STRENGTHS = (1.0, 0.3, 0.1, 0.03)


def drawn(law: Law, trials: int, rng: np.random.Generator) -> dict[tuple[int, ...], int]:
    """Counts of blocks drawn from a law."""
    weights = np.array(list(law.values()))
    counts = rng.multinomial(trials, weights / weights.sum()).tolist()
    return {block: count for block, count in zip(law, counts, strict=True) if count}


def mixed(clean: Law, law: Law, strength: float) -> Law:
    blocks = {**clean, **law}
    return {b: (1 - strength) * clean.get(b, 0) + strength * law.get(b, 0) for b in blocks}


def observe(step: Step, trials: int, seed: int, strength: float = 1.0) -> list[Observed]:
    """Blocks of a step on every case, `trials` in all."""
    rng = np.random.default_rng(seed)
    cases = []
    for index, name in enumerate(CASES):
        share = trials // len(CASES) + (index < trials % len(CASES))
        empty = of_fixture(FIXTURES[name], {(0,): 1})
        law = mixed(law_of(standard.step, empty), law_of(step, empty), strength)
        cases.append(of_fixture(FIXTURES[name], drawn(law, share, rng)))
    return cases


def of_fixture(fixture: ExactFixture, blocks: dict[tuple[int, ...], int]) -> Observed:
    return Observed(fixture.name, fixture.target, fixture.drafter, (), fixture.lookahead, blocks)


def rank(diagnosis: Diagnosis, name: str) -> int:
    """The place of a bug among the candidates, from 0 on."""
    found = (i for i, c in enumerate(diagnosis.candidates) if name in c.ids)
    return next(found, len(diagnosis.candidates))


def named(strength: float, trials: int, runs: int, seed: int, laws: Laws) -> str:
    """A row of the table: how often the bug is first, among three, and fits; and misses."""
    first = three = fits = total = 0
    missed: dict[str, int] = {}
    for index, (name, entry) in enumerate(MUTANTS.items()):
        for run in range(runs):
            cases = observe(entry.step, trials, seed + 1000 * run + index, strength)
            diagnosis = diagnose(cases, laws)
            place = rank(diagnosis, name)
            total += 1
            first, three = first + (place == 0), three + (place < 3)
            fits += place < len(diagnosis.candidates) and diagnosis.candidates[place].fits
            if place:
                missed[name] = missed.get(name, 0) + 1
    cells = "".join(f"{count / total:>9.1%}" for count in (first, three, fits))
    worst = sorted(missed, key=lambda name: -missed[name])
    shown = ", ".join(f"{name} {missed[name]}/{runs}" for name in worst[:4])
    more = f", {len(worst) - 4} more" if len(worst) > 4 else ""
    return f"{strength:>8g}{trials:>10,}{cells}   {shown}{more}"


def left_out(trials: int, seed: int) -> str:
    """How often a bug whose law is not in the zoo is called unlike anything known."""
    unknown, mistaken = 0, []
    for index, (name, entry) in enumerate(MUTANTS.items()):
        cases = observe(entry.step, trials, seed + index)
        twins = diagnose(cases, LAWS).candidates
        same = next((set(c.ids) for c in twins if name in c.ids), {name})
        others = {other: MUTANTS[other] for other in MUTANTS if other not in same}
        diagnosis = diagnose(cases, Laws(others))
        unknown += not diagnosis.known
        if diagnosis.known:
            lengths = " (lengths aside)" if diagnosis.basis == "next tokens" else ""
            mistaken.append(f"{name} as {diagnosis.candidates[0].title}{lengths}")
    shown = "; ".join(mistaken[:4]) + (f"; {len(mistaken) - 4} more" if mistaken[4:] else "")
    return f"{trials:>10,}{unknown / len(MUTANTS):>9.1%}   {shown}"


def lossless(trials: int, runs: int, seed: int) -> str:
    """How often a lossless sampler is said to look like a bug."""
    steps = [standard.step, *(entry.step for entry in CONTROLS.values())]
    called = fits = 0
    for index, step in enumerate(steps):
        for run in range(runs):
            diagnosis = diagnose(observe(step, trials, seed + 1000 * run + index), LAWS)
            called += diagnosis.known and not diagnosis.clean_fits
            fits += diagnosis.tokens_fit
    total = len(steps) * runs
    return f"{trials:>10,}{fits / total:>13.1%}{called / total:>15.1%}"


LAWS = Laws()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    runs, seed = options.runs, options.seed
    print(f"{len(MUTANTS)} mutants, {runs} runs each, cases {', '.join(CASES)}, seed {seed}")
    print(f"{'strength':>8}{'trials':>10}{'top-1':>9}{'top-3':>9}{'fits':>9}   not first")
    for strength in STRENGTHS:
        for trials in TRIALS:
            print(named(strength, trials, runs, seed, LAWS), flush=True)
    print(f"\nleft out of the zoo\n{'trials':>10}{'unknown':>9}   taken for a known bug")
    for trials in TRIALS:
        print(left_out(trials, seed), flush=True)
    print(f"\nlossless rules\n{'trials':>10}{'tokens fit':>13}{'called a bug':>15}")
    for trials in TRIALS:
        print(lossless(trials, runs, seed), flush=True)
    cases, seconds = observe(standard.step, 20_000, seed), []
    for laws in (Laws, lambda: LAWS):
        started = time.perf_counter()
        diagnose(cases, laws())
        seconds.append(time.perf_counter() - started)
    print(f"\n{seconds[0]:.2f} s for a diagnosis, {seconds[1]:.2f} s with laws at hand")


if __name__ == "__main__":
    main()
