"""Models and tokenizers from local folders, checked before minutes are spent."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specref.torch_backend.models.configs import vocabulary_size
from specref.torch_backend.vocabularies.spelling import needed_ids

if TYPE_CHECKING:
    from transformers import PreTrainedModel

WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "model*.bin")
ENGLISH = "It was a cold morning, and the children had gone to school before the snow began."
SURPRISED = 4.0  # nats a token above random tokens: random weights have few, another vocabulary 7


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model with its tokenizer.

    * `name`: For tables.
    """

    name: str
    model: "PreTrainedModel"
    tokenizer: Any


def check_folder(folder: str | Path, name: str) -> Path:
    """Raise `ValueError` unless a folder has a configuration, weights and a tokenizer.

    * `name`: Of the argument, for messages.
    """
    path = Path(folder)
    if not path.is_dir():
        raise ValueError(f"{name} = {folder}: expected a folder of a Hugging Face model")
    if not (path / "config.json").is_file():
        raise ValueError(f"{name} = {folder}: it has no config.json: save_pretrained writes one")
    if not any(next(path.glob(pattern), None) for pattern in WEIGHTS):
        raise ValueError(f"{name} = {folder}: it has no weights: expected *.safetensors")
    if not any(path.glob("tokenizer*")):
        raise ValueError(f"{name} = {folder}: it has no tokenizer: save its tokenizer there too")
    return path


def load(
    folder: str | Path, name: str, device: str = "cpu", dtype: str = "float32", label: str = ""
) -> Loaded:
    """Load a model and its tokenizer from a folder, never from the network.

    * `name`: Of the argument, for messages: "target" or "drafter".
    * `device`, `dtype`: Where the model goes, and in what it calculates.
    * `label`: For tables; the name of the folder by default.
    * raises `ValueError`: A part is missing or cannot be read, or the tokenizer is another
      model's.
    """
    path, told = check_folder(folder, name), f"{name} = {folder}"
    tokenizer, model = _read(path, told, dtype)
    model = model.to(device).eval()
    check_tokenizer(tokenizer, model, told)
    return Loaded(label or path.name, model, tokenizer)


def _read(path: Path, name: str, dtype: str) -> tuple[Any, Any]:
    """The tokenizer and the model, with every weight from the files.

    Transformers fills weights that a file lacks with random numbers, and warns.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    loaded: Any = AutoModelForCausalLM
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(path, local_files_only=True)
        model, loading = loaded.from_pretrained(
            path,
            dtype=getattr(torch, dtype),
            local_files_only=True,
            output_loading_info=True,
        )
    except Exception as error:  # every format of a file has errors of its own
        line = str(error).strip().partition("\n")[0]
        raise ValueError(f"{name}: it cannot be read ({type(error).__name__}: {line})") from error
    if lacking := sorted(loading["missing_keys"]):
        raise ValueError(
            f"{name}: its files lack {len(lacking)} weights, first {lacking[0]}: expected all "
            "that config.json asks for"
        )
    for weight, values in model.named_parameters():
        if not values.isfinite().all():
            raise ValueError(f"{name}: {weight} is not finite: expected undamaged weights")
    return tokenizer, model


def check_tokenizer(tokenizer: Any, model: Any, name: str) -> None:
    """Raise `ValueError` if a tokenizer has ids that its model lacks, or reads like no English.

    Tokens that were added to a tokenizer may lie beyond its model, as Gemma 3's for images do.

    A model is surprised by plain English more than by random tokens if it was trained with
    another tokenizer. One with random weights is as surprised as by random tokens, and passes.
    """
    size, needed = vocabulary_size(model.config), needed_ids(tokenizer)
    if needed > size:
        raise ValueError(
            f"{name}: its tokenizer has the id {needed - 1} and its model {size} ids: they do not "
            "belong together"
        )
    found, uniform = surprise(tokenizer, model), math.log(size)
    if found > uniform + SURPRISED:
        raise ValueError(
            f"{name}: plain English surprises the model by {found:.1f} nats a token, random "
            f"tokens by {uniform:.1f}: expected the tokenizer that it was trained with"
        )


def surprise(tokenizer: Any, model: Any) -> float:
    """The mean of -log p over the tokens of a sentence, in nats."""
    import torch

    ids = torch.tensor([tokenizer.encode(ENGLISH)], device=model.device)
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False).logits[0, :-1].double()
    taken = logits.log_softmax(-1).gather(1, ids[0, 1:, None])
    return -float(taken.mean())
