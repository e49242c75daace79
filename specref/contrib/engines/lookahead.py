"""hao-ai-lab/LookaheadDecoding: both of its loops, with a toy model in place of its Llama."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from specref.adapters.needs import require, require_parameters
from specref.contrib.engines.checkouts import from_checkout

REPOSITORY = "hao-ai-lab/LookaheadDecoding"
PACKAGES = ("torch", "transformers")
# Of Transformers 4.36: annotations, defaults of what is given here, types of warpers.
UTILS = (
    "LogitsProcessorList", "StoppingCriteriaList", "GreedySearchOutput", "SampleOutput",
    "TemperatureLogitsWarper", "TopPLogitsWarper", "TopKLogitsWarper",
)  # fmt: skip
ABSENT = ("transformers.GenerationMixin", *(f"transformers.generation.utils.{x}" for x in UTILS))
GIVEN = ("self", "input_ids", "logits_processor", "stopping_criteria", "model_kwargs")
DEFAULTS = (
    "logits_warper", "max_length", "pad_token_id", "eos_token_id", "output_attentions",
    "output_hidden_states", "output_scores", "return_dict_in_generate", "synced_gpus", "streamer",
    "chat", "stop_token",
)  # fmt: skip
# Of all levels the one that guesses first: two tokens, from the second of a text on.
CONFIG = {"LEVEL": 3, "WINDOW_SIZE": 4, "GUESS_SET_SIZE": 4, "POOL_FROM_PROMPT": 1}


def load_generate(greedy: bool = False) -> Callable[..., Any]:
    """A loop under the contract ``generate``.

    Its prompt begins with tokens that the law does not read, so that short texts have guesses.
    """
    require(PACKAGES, "pip install torch transformers")
    from torch import arange, cat, ones_like, stack, tensor
    from transformers import LogitsProcessorList, MaxLengthCriteria, StoppingCriteriaList

    from specref.contrib.engines.toys import on_toys

    name = "jacobi_greedy_search_multilevel" if greedy else "jacobi_sample_multilevel"
    both = (name, "CONFIG_MAP")
    function, config = from_checkout(REPOSITORY, "decoding", *both, absent=ABSENT, under="lade")
    require_parameters(function, name, GIVEN, DEFAULTS, by_position=2)
    config.update(CONFIG)

    def decode(target: Any, drafter: Any, prompt: Any, tokens: int) -> Any:
        def forward(
            input_ids: Any, past_key_values: Any, past_tokens: Any, guess_tokens: Any,
            guess_size: int, fill_level: int, **others: Any,
        ) -> SimpleNamespace:  # fmt: skip
            """Logits after the text, the last level of the window, each token of a guess."""
            cached = past_key_values[0][0].flatten().tolist() if past_key_values else []
            text, guesses = cached + input_ids[0].tolist(), guess_tokens or []
            first, *rest = window = past_tokens[: fill_level + 1]
            ahead = [(*first[:at], *x) for at, x in enumerate(zip(*rest or [first], strict=True))]
            drafts = [guesses[at - at % guess_size : at + 1] for at in range(len(guesses))]
            paths = [(*text[2 * target.known - 1 :], *path) for path in ((), *ahead, *drafts)]
            logits, end = stack([target.row(path) for path in paths])[None], len(ahead) + 1
            fed = tensor([*text, *(x for one in window for x in one), *guesses]).view(1, 1, -1, 1)
            return SimpleNamespace(
                out_logits=logits[:, 0], inp_logits=logits[:, 1:end], guess_logits=logits[:, end:],
                past_key_values=[(fed, fed)], kvcache_len=len(text), step_len=fed.shape[2],
            )  # fmt: skip

        loop = SimpleNamespace(
            config=target.config, generation_config=target.generation_config,
            prepare_inputs_for_generation=lambda x, **_: {"input_ids": x, "position_ids": x},
            _update_model_kwargs_for_generation=lambda made, given, **_: given | vars(made),
            jforward_multilevel=forward,
        )  # fmt: skip
        whole = cat([arange(1 - target.known, target.known).abs()[None], prompt[:, 1:]], dim=1)
        most = StoppingCriteriaList([MaxLengthCriteria(whole.shape[1] + tokens)])
        return function(
            loop, whole, logits_processor=[], logits_warper=LogitsProcessorList(),
            stopping_criteria=most, return_dict_in_generate=False, attention_mask=ones_like(whole),
        )[0, whole.shape[1] :].tolist()  # fmt: skip

    return on_toys(decode, greedy=greedy)
