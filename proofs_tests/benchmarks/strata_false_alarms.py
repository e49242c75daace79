"""How often do the strata of steps, texts and trees fail a lossless sampler?

Each run puts every stratum of a contract to a lossless sampler, with its own seed: the rules of
the table in turn, whose steps are called one by one or, for texts, until the budget is used up;
for trees the two rules of trees. A run is an alarm if any stratum fails. By construction at most
`alpha` of the runs are; the interval is exact (Clopper–Pearson), 99.9 %.

Run: python -m proofs_tests.benchmarks.strata_false_alarms [--runs 100] [--alpha 0.2]
     [--trials 1000] [--seed 0] [--contract NAME …]
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from specref.adapters import reference
from specref.algorithms.decoding import Step, decode
from specref.chance import Chance
from specref.conformance.status import Status
from specref.conformance.suite import check
from specref.contracts.contract import Contract
from specref.contracts.table import GENERATE, STEP, TREE
from specref.models import Model
from specref.rules import RULES
from specref.statistics.campaign.acceptance import binomial_interval
from specref.vocabulary import Tokens

# The optimum is a flow in fractions, and psi is a sum over V^lookahead texts.
SLOW = ("optimal", "slrs", "block-slrs", "lazy-slrs")
LOOKAHEAD = 3


def text(
    step: Step, target: Model, drafter: Model, context: Tokens, tokens: int, chance: Chance
) -> Tokens:
    """A text of so many tokens, by iterations of a rule."""
    return decode(step, target, drafter, context, LOOKAHEAD, tokens, chance)


STEPS: Mapping[str, Step] = {
    name: rule.step for name, rule in RULES.items() if rule.lossless and name not in SLOW
}
SAMPLERS: Mapping[Contract, Mapping[str, Callable[..., Any]]] = {
    STEP: STEPS,
    GENERATE: {name: partial(text, step) for name, step in STEPS.items()},
    TREE: {"topdown": reference.verify_tree, "traversal": reference.verify_tree_traversal},
}


def alarms(
    contract: Contract, runs: int, alpha: float, trials: int, seed: int
) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """The sampler of each run, the strata that failed it, and the most evidence."""
    names = tuple(SAMPLERS[contract])
    for index in range(runs):
        name = names[index % len(names)]
        report = check(
            SAMPLERS[contract][name],
            contract=contract,
            only=["strata/"],
            alpha=alpha,
            trials=trials,
            seed=seed + index,
            blocking=False,
            timeout=None,
        )
        failed = tuple(r.id for r in report.strata if r.status == Status.FAILED)
        tried = [r.evidence["log10_evidence"] for r in report.strata if r.evidence]
        yield name, failed, max(tried)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="of each contract")
    parser.add_argument("--alpha", type=float, default=0.2)
    parser.add_argument("--trials", type=int, default=1_000, help="tokens of each stratum")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--contract", nargs="+", choices=list(map(str, SAMPLERS)))
    options = parser.parse_args()
    print(f"| contract | samplers | runs | alarms at alpha = {options.alpha:g} | most evidence |")
    print("|---|---|---|---|---|")
    started = time.perf_counter()
    for contract, samplers in SAMPLERS.items():
        if str(contract) not in (options.contract or map(str, SAMPLERS)):
            continue
        found = list(alarms(contract, options.runs, options.alpha, options.trials, options.seed))
        bad = [(name, failed) for name, failed, _ in found if failed]
        low, high = binomial_interval(len(bad), len(found), 1e-3)
        most = max(evidence for _, _, evidence in found)
        print(
            f"| {contract} | {len(samplers)} | {len(found)} | {len(bad)} ({low:.4f} to "
            f"{high:.4f}) | 10^{most:.1f} |"
        )
        for name, failed in bad:
            print(f"{name} failed {', '.join(failed)}")
    seconds = time.perf_counter() - started
    print(f"{options.trials:,} tokens a stratum, seed {options.seed}, {seconds:.0f} s")


if __name__ == "__main__":
    main()
