"""llama.cpp by the package xllamacpp: its server in this process, which counts drafts.

`draft-simple` proposes the drafter's argmax and keeps a draft if the target's own sampler drew the
same token; `probabilistic` draws drafts and keeps them by p / q. Others repeat the text; those
with a map propose little in texts of a few tokens, and get longer ones.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specref.adapters.needs import imported, require, set_known
from specref.contracts.text import Engine, Respond, Text
from specref.contrib.checkpoints import Law
from specref.contrib.checkpoints.law import NO_SETTINGS
from specref.contrib.engines.on_pairs import Pair, ids_of, on_pair
from specref.vocabulary import Tokens

PACKAGES, REMEDY = ("xllamacpp", "gguf"), "pip install xllamacpp gguf"
ASKED = {"temperature": 1.0, "samplers": ["temperature"], "cache_prompt": False}
SAMPLERS = {"repeat_penalty": "penalties"}  # others are called as the setting is
# One token that was seen before proposes two more, or up to three.
ONE = {"size_n": 1, "size_m": 2}
OTHERS = {"ngram-cache": {}, "ngram-mod": {"n_match": 1, "n_max": 3, "n_min": 1}}


def load_engine(
    kind: str = "draft-simple", *, probabilistic: bool = False, law: str = "lookback",
    settings: Mapping[str, float] = NO_SETTINGS, greedy: bool = False,
) -> Engine:  # fmt: skip
    """Speculative decoding of one kind, three drafts at most, and plain decoding.

    Settings are the server's (`temperature`, `top_k`, `top_p`, `min_p`, `repeat_penalty`), in
    their order; `greedy` is temperature 0, with one text after each of 80 prompts.
    """
    require(PACKAGES, REMEDY)
    from xllamacpp import Server

    def modes(pair: Pair) -> tuple[Respond, Respond]:
        drafting, plain = (parameters(pair.target_folder) for _ in range(2))
        speculate(drafting, kind, pair.drafter_folder, probabilistic)
        given = pair.target, {"temperature": 0.0} if greedy else settings
        return responding(Server(drafting), *given), responding(Server(plain), *given)

    return on_pair(
        modes, law, settings, "gguf", greedy=greedy, has_drafter=kind == "draft-simple",
        same_text=not probabilistic, long=kind.startswith("ngram-map"),
    )  # fmt: skip


def speculate(params: Any, kind: str, drafter: Path, probabilistic: bool) -> None:
    """Set one kind of speculation."""
    name, speculative = kind.replace("-", "_"), params.speculative
    known = f"common_speculative_type.COMMON_SPECULATIVE_TYPE_{name.upper()}"
    speculative.types = [imported("xllamacpp", known)]
    if kind == "draft-simple":
        speculative.draft.mparams.path = str(drafter / "model.gguf")
        set_known(speculative.draft, n_max=3, p_min=0.0, probabilistic=probabilistic)
    else:
        set_known(getattr(speculative, name, None), **OTHERS.get(kind, ONE))


def parameters(folder: Path) -> Any:
    """One slot and one thread."""
    params = imported("xllamacpp", "CommonParams")()
    params.model.path = str(folder / "model.gguf")
    set_known(params, n_ctx=512, n_parallel=1, warmup=False, verbosity=-1)
    for one in (params.cpuparams, params.cpuparams_batch):
        set_known(one, n_threads=1)
    return params


def responding(server: Any, law: Law, settings: Mapping[str, float] = NO_SETTINGS) -> Respond:
    """Texts by completions; tokens are single characters, so that the text says which they are."""
    samplers = [SAMPLERS.get(name, name) for name in {**settings, "temperature": 1.0}]
    given = {**ASKED, **settings, "samplers": samplers}

    def respond(prompt: Tokens, budget: int, seed: int) -> Text:
        asked = {"prompt": [law.start, *prompt], "n_predict": budget, "seed": seed, **given}
        answer = server.handle_completions(asked)
        choice, timings = answer["choices"][0], answer["timings"]
        tokens = ids_of(choice["text"], law)
        if choice["finish_reason"] == "stop" and law.eos is not None:
            tokens.append(law.eos)
        return Text(tokens, timings.get("draft_n", 0), timings.get("draft_n_accepted", 0))

    return respond
