"""mlx-lm: `speculative_generate_step` beside `generate_step`, on a pair with a known law."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from specref.adapters.needs import require, require_parameters
from specref.contracts.text import Engine, Respond, Text
from specref.contrib.checkpoints.law import NO_SETTINGS
from specref.contrib.engines.on_pairs import Pair, on_pair, up_to
from specref.vocabulary import Tokens

PACKAGES, REMEDY = ("mlx", "mlx_lm"), "pip install mlx-lm 'mlx[cpu]'"
PROMPTS: tuple[Tokens, ...] = ((), (0, 1, 2, 0, 1), (3, 2, 1, 0))
# Parameters of 0.32, by name; those that are left at their defaults change no law.
PASSED = (
    "prompt", "model", "draft_model", "num_draft_tokens", "max_tokens", "sampler",
    "logits_processors",
)  # fmt: skip
DEFAULTS = (
    "stream", "prompt_cache", "prefill_step_size", "kv_bits", "kv_group_size",
    "quantized_kv_start",
)  # fmt: skip


def load_engine(
    law: str = "lookback", lookahead: int = 3, settings: Mapping[str, float] = NO_SETTINGS,
    greedy: bool = False,
) -> Engine:  # fmt: skip
    """Drafts that are kept if the target draws the same token, and plain decoding.

    `greedy` is temperature 0, with one text after each of 80 prompts.

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
    from mlx_lm.utils import load_model

    name = "speculative_generate_step"
    require_parameters(speculative_generate_step, name, PASSED, DEFAULTS, by_position=2)
    draw, processors = sampling({"temperature": 0.0} if greedy else settings)
    rows: list[int] = []

    def sampler(logprobs: Any) -> Any:
        rows.append(logprobs.shape[0])
        return draw(logprobs)

    def modes(pair: Pair) -> tuple[Respond, Respond]:
        target, drafter = (load_model(folder)[0] for folder in pair[2:])
        own = {"sampler": sampler, "logits_processors": processors}
        drafting = {"draft_model": drafter, "num_draft_tokens": lookahead}

        def ask(steps: Callable[..., Any], prompt: Tokens, budget: int, seed: int) -> Text:
            mx.random.seed(seed)
            rows.clear()
            ids = mx.array([pair.target.start, *prompt])
            given = up_to(pair.target.eos, steps(ids, target, max_tokens=budget, **own))
            tokens = [int(one[0]) for one in given]
            if steps is generate_step:
                return Text(tokens)
            drafted = [bool(one[2]) for one in given]
            blocks = drafted.count(False) + drafted[-1]  # a text may end with an accepted draft
            return Text(tokens, (sum(rows) - blocks) // 2, sum(drafted))

        speculate = partial(speculative_generate_step, **drafting)
        return partial(ask, speculate), partial(ask, generate_step)

    return on_pair(modes, law, settings, greedy=greedy, prompts=PROMPTS)


def sampling(settings: Mapping[str, float]) -> tuple[Callable[[Any], Any], list[Any]]:
    """What draws a token, and the processors of logits, which are penalties."""
    from mlx_lm.sample_utils import make_logits_processors, make_sampler

    cuts: dict[str, Any] = {name: settings.get(name, 0.0) for name in ("top_p", "min_p")}
    penalties: dict[str, Any] = {
        name: value for name, value in settings.items() if name.endswith("penalty")
    }
    draw = make_sampler(temp=settings.get("temperature", 1.0), **cuts)
    return draw, make_logits_processors(**penalties)
