"""How often each letter of OpenVINO GenAI's texts is b, where the target gives b with 0.1.

    python -m proofs_tests.benchmarks.openvino_genai

Two letters, every token independent, one draft at a time; a drafter that likes b (q = 0.9), and
one that is the target.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from specref.contrib.checkpoints import as_law, build
from specref.contrib.engines.openvino_genai import EXACT, Responding

BUDGET = 4


def texts(q: float, count: int) -> np.ndarray:
    """Texts under seeds 0, 1, …, where the drafter gives b with probability `q`."""
    import openvino_genai as genai

    scheduler = genai.SchedulerConfig()
    scheduler.enable_prefix_caching = False
    rows = {"target": [0.9, 0.1], "drafter": [1 - q, q]}
    laws = {
        name: as_law({"tokens": ["a", "b"], "initial": row, "rows": {"a": row, "b": row}})
        for name, row in rows.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        paths = build(laws, Path(folder, "pair"), ["openvino"])
        draft = genai.draft_model(paths["drafter"], "CPU", **EXACT)
        pipe = genai.LLMPipeline(
            paths["target"], "CPU", scheduler_config=scheduler, draft_model=draft, **EXACT
        )
    ask = Responding(pipe, laws["target"], num_assistant_tokens=1)
    return np.array([ask((), BUDGET, seed).tokens for seed in range(count)])


def main() -> None:
    """Print a line for each drafter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=6_000)
    count = parser.parse_args().texts
    for q in (0.9, 0.1):
        found = texts(q, count)
        often = " ".join(f"{share:.3f}" for share in found.mean(axis=0))
        second = [found[found[:, 0] == first][:, 1].mean() for first in (0, 1)]
        print(f"q = {q}: b at positions 1 to {BUDGET}: {often}")
        print(f"    the second is b after a: {second[0]:.3f}, after b: {second[1]:.3f}")


if __name__ == "__main__":
    main()
