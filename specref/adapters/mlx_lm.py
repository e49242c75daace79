"""mlx-lm: `speculative_generate_step` beside `generate_step`, on a pair with a known law."""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from specref.adapters.needs import require, require_parameters
from specref.checkpoints import build, named_pair, shaped
from specref.checkpoints.shaping import NO_SETTINGS
from specref.contracts.text.contract import Engine, Text
from specref.vocabulary import Tokens

PACKAGES = ("mlx", "mlx_lm")
REMEDY = "pip install mlx-lm 'mlx[cpu]'"
PROMPTS: tuple[Tokens, ...] = ((), (0, 1, 2, 0, 1), (3, 2, 1, 0))
# Parameters of 0.32, by name; those that are left at their defaults change no law.
DEFAULTS = (
    "stream", "prompt_cache", "prefill_step_size", "kv_bits", "kv_group_size",
    "quantized_kv_start",
)  # fmt: skip
PASSED = (
    "prompt", "model", "draft_model", "num_draft_tokens", "max_tokens", "sampler",
    "logits_processors",
)  # fmt: skip


def load_engine(
    law: str = "lookback", lookahead: int = 3, settings: Mapping[str, float] = NO_SETTINGS
) -> Engine:
    """Drafts that are kept if the target draws the same token, beside plain decoding.

    mlx-lm says which tokens were drafted; how many drafts it proposed is seen by the sampler: a
    block has a row for each draft, and the target's, which are one more. It goes on after EOS, so
    the text is cut there.

    Raises
    ------
    NotInstalledError
        mlx or mlx-lm is missing, or the function has other parameters.
    """
    require(PACKAGES, REMEDY)
    import mlx.core as mx
    from mlx_lm.generate import generate_step, speculative_generate_step
    from mlx_lm.sample_utils import make_logits_processors, make_sampler
    from mlx_lm.utils import load_model

    require_parameters(speculative_generate_step, "speculative_generate_step", PASSED, DEFAULTS)
    pair = named_pair(law)
    cuts: dict[str, Any] = {name: settings.get(name, 0.0) for name in ("top_p", "min_p")}
    draw = make_sampler(temp=settings.get("temperature", 1.0), **cuts)
    penalties: dict[str, Any] = {
        name: value for name, value in settings.items() if name.endswith("penalty")
    }
    processors = make_logits_processors(**penalties)
    with tempfile.TemporaryDirectory() as folder:
        target, drafter = (load_model(p)[0] for p in build(pair, Path(folder) / "pair").values())
    start, end = pair["target"].start, pair["target"].eos

    def plain(prompt: Tokens, budget: int, seed: int) -> Text:
        mx.random.seed(seed)
        ids = mx.array([start, *prompt])
        steps = up_to(end, generate_step(
            ids, target, max_tokens=budget, sampler=draw, logits_processors=processors,
        ))  # fmt: skip
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
            logits_processors=processors,
        ))  # fmt: skip
        drafted = [bool(step[2]) for step in steps]
        blocks = drafted.count(False) + drafted[-1]  # a text may end with an accepted draft
        proposed = (sum(rows) - blocks) // 2
        return Text([int(step[0]) for step in steps], proposed, sum(drafted))

    known = shaped(pair["target"].model, settings)
    return Engine(
        speculative,
        PROMPTS,
        known,
        plain,
        pair["drafter"].model,
        eos=None if known else end,
    )


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
