"""Converted models as small files, for a machine without a network that takes no large ones.

Each file of a converted folder is cut into parts; a list says what they join to. Parts may arrive
in any order and over several transfers, until all are there.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from specref.contrib.real_models.conversion import DTYPES, folder_of, is_converted
from specref.contrib.real_models.published import COMMAND, MODELS

SIZE = 60 * 10**6
"""Bytes of a part: what services that take single files often allow is 64 MiB."""
LIST = "parts.json"


def split(root: Path, into: Path, dtype: str = "bfloat16", size: int = SIZE) -> list[Path]:
    """Cut every converted model into parts.

    * `root`, `into`: Of the converted models; where parts go.
    * `dtype`: Which of the two conversions.
    * `size`: Bytes of a part, at most.
    * returns: The parts and the list of each model.
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
    """Put together every model whose parts are all there.

    * returns: The folders, those that were there before included.
    * raises `FileNotFoundError`: There is no list of parts, or a part is missing.
    * raises `ValueError`: A file has another SHA-256 than the one that was cut.
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
        data = part.read_bytes()
        digest.update(data)
        out.write(data)
    return digest.hexdigest()
