"""Models and tokenizers from local folders, checked before minutes are spent."""

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specref.torch_backend.models.configs import vocabulary_size
from specref.torch_backend.vocabularies.spelling import needed_ids

if TYPE_CHECKING:
    from transformers import PreTrainedModel

WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "model*.bin")
TOKENIZERS = ("tokenizer*", "vocab*", "merges.txt", "*.model", "*_token*.json")
MAKING = ("config.json", "generation_config.json", *TOKENIZERS, *WEIGHTS)
"""What a digest reads: neither a model card nor a record that lies in the folder."""
ENGLISH = "It was a cold morning, and the children had gone to school before the snow began."
SURPRISED = 4.0  # nats a token above random tokens: random weights have few, another vocabulary 7


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model with its tokenizer.

    * `name`: For tables.
    * `doubt`: Why the tokenizer may be another model's; empty for none.
    """

    name: str
    model: "PreTrainedModel"
    tokenizer: Any
    doubt: str = ""


def check_folder(folder: str | Path, name: str) -> Path:
    """Raise `ValueError` unless a folder has a configuration, weights and a tokenizer.

    * `name`: Of the argument, for messages.
    """
    path = Path(folder)
    if not path.is_dir():
        raise ValueError(
            f"{name} = {folder}: there is no such folder; expected a folder of a Hugging Face "
            "model on this machine: nothing is downloaded"
        )
    if not (path / "config.json").is_file():
        raise ValueError(f"{name} = {folder}: it has no config.json: save_pretrained writes one")
    if not any(next(path.glob(pattern), None) for pattern in WEIGHTS):
        raise ValueError(
            f"{name} = {folder}: it has no weights: expected *.safetensors, which save_pretrained "
            "of the model writes"
        )
    if not any(path.glob("tokenizer*")):
        raise ValueError(
            f"{name} = {folder}: it has no tokenizer: save_pretrained of the tokenizer writes one"
        )
    return path


def digest(folder: str | Path) -> str:
    """A digest of the files that make a model: its configuration, weights and tokenizer."""
    path = Path(folder)
    files = {one for pattern in MAKING for one in path.glob(pattern) if one.is_file()}
    found = hashlib.sha256()
    for one in sorted(files):
        with one.open("rb") as opened:
            found.update(one.name.encode() + hashlib.file_digest(opened, "sha256").digest())
    return found.hexdigest()


def load(
    folder: str | Path, name: str, device: str = "cpu", dtype: str = "float32", label: str = "",
    reads: bool = True,
) -> Loaded:  # fmt: skip
    """Load a model and its tokenizer from a folder, never from the network.

    * `name`: Of the argument, for messages: "target" or "drafter".
    * `label`: For tables; the name of the folder by default.
    * `reads`: Whether its tokenizer is used, and so has to be its own.
    """
    path, told = check_folder(folder, name), f"{name} = {folder}"
    tokenizer, model = _read(path, told, dtype)
    model = model.to(device).eval()
    doubt = check_tokenizer(tokenizer, model, told) if reads else ""
    return Loaded(label or path.name or path.resolve().name, model, tokenizer, doubt)


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
        raise ValueError(
            f"{name}: it cannot be read ({type(error).__name__}: {line}): copy or save the model "
            "again"
        ) from error
    if lacking := sorted(loading["missing_keys"]):
        raise ValueError(
            f"{name}: its files lack {len(lacking)} weights, first {lacking[0]}: expected all "
            "that config.json asks for"
        )
    for weight, values in model.named_parameters():
        if not values.isfinite().all():
            raise ValueError(f"{name}: {weight} is not finite: expected undamaged weights")
    return tokenizer, model


def check_tokenizer(tokenizer: Any, model: Any, name: str) -> str:
    """Raise `ValueError` if a tokenizer has ids that its model lacks, or reads like no English.

    Returns a doubt: the model is surprised by English more than by random tokens. That is so
    with another model's tokenizer, or with random weights, or where it has learnt no English.
    Well beyond random tokens it is refused, where random weights are not.

    Tokens that were added to a tokenizer may lie beyond its model, as Gemma 3's for images do.
    """
    size, needed = vocabulary_size(model.config), needed_ids(tokenizer)
    if needed > size:
        raise ValueError(
            f"{name}: its tokenizer has the id {needed - 1} and its model {size} ids: they do not "
            "belong together; save the model's own tokenizer in its folder"
        )
    found, uniform = surprise(_english(tokenizer, name), model), math.log(size)
    if found <= uniform:
        return ""
    told = (
        f"{name}: plain English surprises the model by {found:.1f} nats a token, random tokens by "
        f"{uniform:.1f}: expected the tokenizer that it was trained with"
    )
    if found > uniform + SURPRISED:
        raise ValueError(told)
    return told


def _english(tokenizer: Any, name: str) -> list[int]:
    """A sentence in a tokenizer's ids: two or more, so that the model predicts one."""
    try:
        ids: list[int] = tokenizer.encode(ENGLISH)
    except Exception as error:  # every kind of tokenizer has errors of its own
        raise ValueError(
            f"{name}: its tokenizer cannot encode plain English ({error}): expected one that can"
        ) from error
    if len(ids) < 2:
        raise ValueError(
            f"{name}: its tokenizer encodes a sentence of plain English in {len(ids)} tokens: "
            "expected one that can encode English"
        )
    return ids


def surprise(ids: list[int], model: Any) -> float:
    """The mean of -log p over the tokens of a sentence but the first, in nats."""
    import torch

    read = torch.tensor([ids], device=model.device)
    with torch.inference_mode():
        logits = model(input_ids=read, use_cache=False).logits[0, :-1].double()
    taken = logits.log_softmax(-1).gather(1, read[0, 1:, None])
    return -float(taken.mean())
