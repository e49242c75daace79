"""llama.cpp by the package xllamacpp: its server in this process, on a pair with a known law.

`draft-simple` proposes the drafter's argmax and keeps a draft if the target's own sampler drew the
same token; `probabilistic` draws drafts and keeps them by p / q. The others propose what the text
said before. Texts are asked for by the completions of the server, which reports drafts.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specref.adapters.needs import NotInstalledError, require
from specref.checkpoints import build, named_pair, shaped
from specref.checkpoints.law import Law
from specref.checkpoints.shaping import NO_SETTINGS
from specref.contracts.text.contract import Engine, Respond, Text
from specref.vocabulary import Tokens

PACKAGES = ("xllamacpp", "gguf")
REMEDY = "pip install xllamacpp gguf"
KINDS = ("draft-simple", "ngram-simple", "ngram-cache")
ASKED = {"temperature": 1.0, "samplers": ["temperature"], "cache_prompt": False}
SAMPLERS = {"repeat_penalty": "penalties"}  # others are called as the setting is
# The second repeats itself, so that n-grams propose something.
PROMPTS: tuple[Tokens, ...] = ((), (0, 1, 2, 0, 1, 2, 0, 1), (3, 2, 1, 0))


def load_engine(
    kind: str = "draft-simple",
    *,
    probabilistic: bool = False,
    law: str = "lookback",
    settings: Mapping[str, float] = NO_SETTINGS,
) -> Engine:
    """Speculative decoding of one kind, three drafts at most, beside plain decoding.

    Settings are the server's (`temperature`, `top_p`, `min_p`, `repeat_penalty`), in their order.

    Raises
    ------
    NotInstalledError
        xllamacpp or gguf is missing, or xllamacpp has no such setting.
    """
    require(PACKAGES, REMEDY)
    pair = named_pair(law)
    target, drafter = pair["target"], pair["drafter"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        paths = build(pair, Path(folder) / "pair", ["gguf"])
        plain = started(parameters(paths["target"]))
        try:
            params = parameters(paths["target"])
            speculate(params, kind, paths["drafter"], probabilistic)
        except AttributeError as error:
            raise NotInstalledError(f"xllamacpp has another interface: {error}") from None
        server = started(params)
    known = shaped(target.model, settings)
    return Engine(
        responding(server, target, settings),
        PROMPTS,
        law=known,
        plain=responding(plain, target, settings),
        drafter=drafter.model if kind == "draft-simple" else None,
        eos=None if known else target.eos,
        same_text=not probabilistic,
    )


def speculate(params: Any, kind: str, drafter: Path, probabilistic: bool) -> None:
    """Set one kind of speculation; one token that was seen before proposes two more."""
    import xllamacpp

    name = f"COMMON_SPECULATIVE_TYPE_{kind.replace('-', '_').upper()}"
    speculative = params.speculative
    speculative.types = [getattr(xllamacpp.common_speculative_type, name)]
    if kind == "draft-simple":
        draft = speculative.draft
        draft.mparams.path = str(drafter / "model.gguf")
        for setting, value in (("n_max", 3), ("p_min", 0.0), ("probabilistic", probabilistic)):
            getattr(draft, setting)  # an unknown one is not set silently
            setattr(draft, setting, value)
    elif kind == "ngram-simple":
        grams = speculative.ngram_simple
        grams.size_n, grams.size_m = 1, 2


def parameters(folder: Path) -> Any:
    """One slot and one thread."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(folder / "model.gguf")
    params.n_ctx, params.n_parallel, params.warmup, params.verbosity = 512, 1, False, -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    return params


def started(params: Any) -> Any:
    """The server."""
    import xllamacpp

    return xllamacpp.Server(params)


def responding(server: Any, law: Law, settings: Mapping[str, float] = NO_SETTINGS) -> Respond:
    """Texts by completions; tokens are single characters, so that the text says which they are."""
    ids, end = law.vocabulary.ids, law.eos
    samplers = [SAMPLERS.get(name, name) for name in {**settings, "temperature": 1.0}]
    given = {**ASKED, **settings, "samplers": samplers}

    def respond(prompt: Tokens, budget: int, seed: int) -> Text:
        asked = {"prompt": [law.start, *prompt], "n_predict": budget, "seed": seed, **given}
        answer = server.handle_completions(asked)
        choice, timings = answer["choices"][0], answer["timings"]
        tokens = [ids[letter] for letter in choice["text"]]
        if choice["finish_reason"] == "stop" and end is not None:
            tokens.append(end)
        return Text(tokens, timings.get("draft_n", 0), timings.get("draft_n_accepted", 0))

    return respond
