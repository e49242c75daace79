"""Converts the published models: ``python -m specref.contrib.real_models``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from specref.contrib.real_models.conversion import (
    DTYPES,
    convert_all,
    converted,
    join,
    models_folder,
    split,
)
from specref.contrib.real_models.published import MODELS


def main(arguments: Sequence[str]) -> int:
    """Convert what is missing, or bring converted models to a machine without a network."""
    parser = argparse.ArgumentParser(
        prog="python -m specref.contrib.real_models",
        description="Converts the published models, into $SPECREF_MODELS or .models.",
    )
    work = parser.add_mutually_exclusive_group()
    work.add_argument("--packages", action="store_true", help="print what to install")
    work.add_argument("--split", type=Path, metavar="FOLDER", help="parts of 60 MB at most")
    work.add_argument("--join", type=Path, metavar="FOLDER", help="the parts, put together")
    parser.add_argument("--dtype", choices=DTYPES, default="bfloat16", help="for --split")
    given = parser.parse_args(arguments)
    if given.packages:
        print(*(one for model in MODELS.values() for one in model.requirements))
        return 0
    root = models_folder()
    try:
        if given.split:
            written = split(root, given.split, given.dtype)
            print(f"in {given.split}: {len(written)} files; there: --join {given.split}")
            return 0
        if given.join:
            join(given.join, root)
        else:
            convert_all(root, lambda line: print(line, flush=True))
    except (ImportError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"in {root}: {', '.join(converted(root))}")
    for name, model in MODELS.items():
        print(f"licence of {name}: {model.licence}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
