"""mlx-lm: `speculative_generate_step` beside `generate_step`, on a pair with a known law."""

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from specref.adapters.needs import require, require_parameters
from specref.checkpoints import build, named_pair
from specref.contracts.text.contract import Engine, Text
from specref.vocabulary import Tokens

PACKAGES = ("mlx", "mlx_lm")
REMEDY = "pip install mlx-lm 'mlx[cpu]'"
PROMPTS: tuple[Tokens, ...] = ((), (0, 1, 2, 0, 1), (3, 2, 1, 0))
# Parameters of 0.32, by name; those that are left at their defaults change no law.
DEFAULTS = (
    "stream", "logits_processors", "prompt_cache", "prefill_step_size", "kv_bits", "kv_group_size",
    "quantized_kv_start",
)  # fmt: skip
PASSED = ("prompt", "model", "draft_model", "num_draft_tokens", "max_tokens", "sampler")


def load_engine(law: str = "lookback", lookahead: int = 3) -> Engine:
    """Drafts that are kept if the target draws the same token, beside plain decoding.

    mlx-lm says which tokens were drafted; how many drafts it proposed is seen by the sampler: the
    target's rows of a block are one more than its drafts, and a drafter's row comes alone. It goes
    on after EOS, so the text is cut there.

    Raises
    ------
    NotInstalledError
        mlx or mlx-lm is missing, or the function has other parameters.
    """
    require(PACKAGES, REMEDY)
    import mlx.core as mx
    from mlx_lm.generate import generate_step, speculative_generate_step
    from mlx_lm.sample_utils import make_sampler
    from mlx_lm.utils import load_model

    require_parameters(speculative_generate_step, "speculative_generate_step", PASSED, DEFAULTS)
    pair, draw = named_pair(law), make_sampler(temp=1.0)
    with tempfile.TemporaryDirectory() as folder:
        target, drafter = (load_model(p)[0] for p in build(pair, Path(folder) / "pair").values())
    start, end = pair["target"].start, pair["target"].eos

    def plain(prompt: Tokens, budget: int, seed: int) -> Text:
        mx.random.seed(seed)
        ids = mx.array([start, *prompt])
        steps = up_to(end, generate_step(ids, target, max_tokens=budget, sampler=draw))
        return Text([int(step[0]) for step in steps])

    def speculative(prompt: Tokens, budget: int, seed: int) -> Text:
        mx.random.seed(seed)
        rows: list[int] = []

        def sampler(logprobs: Any) -> Any:
            rows.append(logprobs.shape[0])
            return draw(logprobs)

        steps = up_to(end, speculative_generate_step(
            mx.array([start, *prompt]), target, drafter,
            num_draft_tokens=lookahead, max_tokens=budget, sampler=sampler,
        ))  # fmt: skip
        accepted = sum(step[2] for step in steps)
        return Text([int(step[0]) for step in steps], sum(rows) - len(rows), accepted)

    laws = {role: one.model for role, one in pair.items()}
    return Engine(speculative, PROMPTS, laws["target"], plain, laws["drafter"])


def up_to(end: int | None, steps: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The steps up to the token that ends a text; no further one is asked for.

    Examples
    --------
    >>> up_to(2, [(1, "a"), (2, "b"), (3, "c")])
    [(1, 'a'), (2, 'b')]
    """
    found = []
    for step in steps:
        found.append(step)
        if int(step[0]) == end:
            break
    return found
