"""How often the criteria of engines' own distribution tests reject planted bugs.

Two criteria, written anew from what the tests ask for, with their sizes and thresholds. Target
and drafter are iid, so p and q are alike at every position, and bonus tokens are not looked at.

* vLLM, test_rejection_sampling_approximates_target_distribution: V = 10, lookahead 2. From 10
  blocks to 100,000, the distance to p must shrink by more than 20 times the factor by which the
  distance to 100 random laws shrinks.
* TensorRT-LLM, test_get_rejected_indices: V = 500 with 100 possible tokens in each row, one
  draft, 50,000 tokens. KL(p, tokens) must be within 0.01 of KL(p, direct draws from p).

Counts are drawn from the exact law of each rule. A run of the first has its own p and q; runs of
the second take turns on a few pairs. Run: python -m proofs_tests.benchmarks.upstream
     [--runs N] [--seed S]
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import entropy

from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.arrays import Floats
from specref.chance import exact_distribution
from specref.conformance.public import check
from specref.conformance.status import Status
from specref.contracts.table import STEP
from specref.contrib.selftest.kill_matrix import kill_matrix
from specref.models import Model
from specref.proofs.lazy import DrawnFromLaws
from specref.statistics.campaign.prefix_tree import as_blocks
from specref.vocabulary import Vocabulary
from specref.zoo import MUTANTS

Pair = tuple[Floats, Floats]
CLEAN = "clean rule"
NAMES = (
    "residual-is-p",
    "lenience-10-9",
    "lenience-5-4",
    "shared-u",
    "recovery-reuses-accept-u",
    "draft-temperature-mismatch",
    "argmax-verify",
    "accept-after-rejection",
    "no-stop",
    "bonus-from-drafter",
    "bonus-from-stale-residual",
    "bonus-wrong-row",
)
STEPS: Mapping[str, Step] = {CLEAN: standard.step} | {n: MUTANTS[n].step for n in NAMES}
DETECT_TV = 0.15
VLLM_SIZES, VLLM_REFERENCES, VLLM_FACTOR = (10, 100_000), 100, 20
TRT_SIZE, TRT_VOCABULARY, TRT_SUPPORT, TRT_MARGIN, TRT_PAIRS = 50_000, 500, 100, 0.01, 5


@dataclass(frozen=True)
class Visible:
    """The law of a rule's blocks, and how often each block shows each token before the bonus."""

    weights: Floats
    tokens: NDArray[np.int64]

    def frequencies(self, trials: int, rng: np.random.Generator) -> Floats:
        """Token frequencies of that many blocks, flattened."""
        counts = rng.multinomial(trials, self.weights) @ self.tokens
        return np.asarray(counts / counts.sum())


def iid_until_bonus(vocabulary: Vocabulary, row: Floats, lookahead: int) -> Model:
    """Bonus tokens are not looked at: a row of one certain token keeps the law small."""
    certain = np.eye(1, len(row))[0]
    return Model(vocabulary, lambda context: row if len(context) < lookahead else certain)


def visible(step: Step, pair: Pair, lookahead: int) -> Visible:
    vocabulary = Vocabulary([f"t{i}" for i in range(len(pair[0]))])
    target, drafter = (iid_until_bonus(vocabulary, row, lookahead) for row in pair)
    law = exact_distribution(lambda c: step(target, drafter, (), lookahead, c))
    blocks = as_blocks(list(law))[:, :lookahead]
    rows, columns = np.nonzero(blocks >= 0)
    tokens = np.zeros((len(blocks), len(vocabulary)), dtype=np.int64)
    np.add.at(tokens, (rows, blocks[rows, columns]), 1)
    weights = np.array([float(mass) for mass in law.values()])
    return Visible(weights / weights.sum(), tokens)


def flat_rows(rows: int, rng: np.random.Generator) -> Floats:
    """Softmax of uniform logits: no two probabilities are a factor e apart."""
    powers = np.exp(rng.random((rows, 10)))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def sparse_row(rng: np.random.Generator) -> Floats:
    """Uniform weights on their largest few, normalised."""
    row = rng.random(TRT_VOCABULARY)
    row[np.argsort(row)[:-TRT_SUPPORT]] = 0
    return np.asarray(row / row.sum())


def shrinkage(laws: Floats, few: Floats, many: Floats) -> float:
    return float(np.linalg.norm(laws - few) / np.linalg.norm(laws - many))


def vllm_runs(step: Step, runs: int, seed: int) -> Iterator[bool]:
    """Whether each run rejects."""
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        p, q, *references = flat_rows(2 + VLLM_REFERENCES, rng)
        law = visible(step, (p, q), 2)
        few, many = (law.frequencies(size, rng) for size in VLLM_SIZES)
        baseline = shrinkage(np.array(references), few, many)
        yield not shrinkage(p, few, many) > VLLM_FACTOR * baseline


def trt_runs(step: Step, runs: int, seed: int) -> Iterator[bool]:
    """Whether each run rejects."""
    laws = []
    for run in range(runs):
        if run < TRT_PAIRS:
            setup = np.random.default_rng([seed, run])
            p, q = sparse_row(setup), sparse_row(setup)
            laws.append((p, visible(step, (p, q), 1)))
        rng = np.random.default_rng([seed, run, 1])
        p, law = laws[run % TRT_PAIRS]
        direct = rng.multinomial(TRT_SIZE, p / p.sum()) / TRT_SIZE
        excess = entropy(p, law.frequencies(TRT_SIZE, rng)) - entropy(p, direct)
        yield not abs(excess) < TRT_MARGIN


def kit_killers(name: str) -> tuple[str, ...]:
    """The checks of the kit that fail a rule."""
    if name != CLEAN:
        return kill_matrix([name], detect_tv=DETECT_TV).rows[0].killers
    step = DrawnFromLaws(STEPS[name])
    report = check(step, contract=STEP, algorithm="standard", detect_tv=DETECT_TV, blocking=False)
    return tuple(result.id for result in report.results if result.status == Status.FAILED)


def kit_verdict(killers: tuple[str, ...]) -> str:
    """Killed or not, and by which check that sees samples only."""
    sampled = [killer for killer in killers if killer != "joint/exact"]
    if not killers:
        return "passed"
    return f"killed ({sampled[0] if sampled else 'joint/exact alone'})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"share of {options.runs} runs that reject, seed {options.seed}")
    print("| rule | vLLM criterion | TensorRT-LLM criterion | kit |\n|---|---|---|---|")
    for name, step in STEPS.items():
        rates = [
            np.mean([*runs(step, options.runs, options.seed)]) for runs in (vllm_runs, trt_runs)
        ]
        verdict = kit_verdict(kit_killers(name))
        print(f"| {name} | {rates[0]:.3f} | {rates[1]:.3f} | {verdict} |", flush=True)


if __name__ == "__main__":
    main()
