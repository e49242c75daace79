"""mlx-lm: `speculative_generate_step` beside `generate_step`, on a pair with a known law."""

import inspect
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from specref.adapters.needs import NotInstalledError, require
from specref.arrays import Floats
from specref.checkpoints import build, named_pair
from specref.checkpoints.fidelity import Probabilities
from specref.contracts.text.contract import Engine, Text
from specref.vocabulary import Tokens

PACKAGES = ("mlx", "mlx_lm")
REMEDY = "pip install mlx-lm 'mlx[cpu]'"
PROMPTS: tuple[Tokens, ...] = ((), (0, 1, 2, 0, 1), (3, 2, 1, 0))
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

    check_parameters(speculative_generate_step, PASSED)
    pair, draw = named_pair(law), make_sampler(temp=1.0)
    with tempfile.TemporaryDirectory() as folder:
        target, drafter = (load_model(p)[0] for p in build(pair, Path(folder) / "pair").values())
    start, end = pair["target"].start, pair["target"].eos

    def plain(prompt: Tokens, budget: int, seed: int) -> Text:
        mx.random.seed(seed)
        ids = mx.array([start, *prompt])
        steps = generate_step(ids, target, max_tokens=budget, sampler=draw)
        return Text(up_to((token for token, _ in steps), end))

    def speculative(prompt: Tokens, budget: int, seed: int) -> Text:
        mx.random.seed(seed)
        rows: list[int] = []
        drafted: list[bool] = []

        def sampler(logprobs: Any) -> Any:
            rows.append(logprobs.shape[0])
            return draw(logprobs)

        steps = speculative_generate_step(
            mx.array([start, *prompt]), target, drafter,
            num_draft_tokens=lookahead, max_tokens=budget, sampler=sampler,
        )  # fmt: skip
        tokens = up_to((token for token, _, own in steps if drafted.append(own) is None), end)
        return Text(tokens, sum(rows) - len(rows), sum(drafted))

    laws = {role: one.model for role, one in pair.items()}
    return Engine(speculative, PROMPTS, laws["target"], plain, laws["drafter"])


def up_to(tokens: Iterable[Any], end: int | None) -> Tokens:
    """Token ids up to the one that ends a text; no further one is asked for.

    Examples
    --------
    >>> up_to([1, 2, 3], end=2)
    (1, 2)
    """
    found: list[int] = []
    for token in tokens:
        found.append(int(token))
        if found[-1] == end:
            break
    return tuple(found)


def check_parameters(function: Callable[..., Any], passed: tuple[str, ...]) -> None:
    """Raise `NotInstalledError` unless it has these parameters and needs no other.

    Examples
    --------
    >>> check_parameters(lambda prompt, model: None, ("prompt", "sampler"))
    Traceback (most recent call last):
    specref.adapters.needs.NotInstalledError: <lambda> has no parameter sampler
    """
    known = inspect.signature(function).parameters
    for name in passed:
        if name not in known:
            raise NotInstalledError(f"{function.__name__} has no parameter {name}")
    for name, parameter in known.items():
        if name not in passed and parameter.default is parameter.empty:
            raise NotInstalledError(f"{function.__name__} needs {name}, which is not known")


def load_probabilities(folder: Path) -> Probabilities:
    """The distribution after each of the ids, in float32; softmax in float64.

    Raises
    ------
    NotInstalledError
        mlx or mlx-lm is missing.
    """
    require(PACKAGES, REMEDY)
    import mlx.core as mx
    from mlx_lm.utils import load_model

    model, _ = load_model(folder)

    def probabilities(ids: Tokens) -> Floats:
        logits = np.array(model(mx.array([ids]))[0].astype(mx.float32), dtype=np.float64)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        rows: Floats = weights / weights.sum(axis=1, keepdims=True)
        return rows

    return probabilities
