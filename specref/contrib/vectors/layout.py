"""Readable JSON: a law is on one line, and so is every value that fits on one."""

import json
from typing import Any

WIDTH = 100


def laid_out(value: Any, indent: int = 0, used: int = 0) -> str:
    """A value as JSON; lists and objects are broken where they are too long.

    Parameters
    ----------
    value : dict, list, str, number, bool or None
    indent : int
        Spaces before the lines of its parts, less two.
    used : int
        What stands before it on its own line.

    Examples
    --------
    >>> print(laid_out({"rows": [[0.0625] * 8] * 2}))
    {
      "rows": [
        [0.0625, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625],
        [0.0625, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625]
      ]
    }
    """
    line = json.dumps(value)
    if _is_flat(value) or indent + used + len(line) <= WIDTH:
        return line
    inside = indent + 2
    if isinstance(value, list):
        return _bracketed("[", [laid_out(item, inside) for item in value], "]", indent)
    parts = []
    for key, item in value.items():
        name = f"{json.dumps(key)}: "
        parts.append(name + laid_out(item, inside, len(name)))
    return _bracketed("{", parts, "}", indent)


def _is_flat(value: Any) -> bool:
    parts = value if isinstance(value, list) else ()
    return not isinstance(value, dict) and not any(isinstance(p, (dict, list)) for p in parts)


def _bracketed(opening: str, parts: list[str], closing: str, indent: int) -> str:
    """Parts between brackets: short ones side by side, as many as fit; long ones alone."""
    lines: list[str] = []
    for part in parts:
        together = f"{lines[-1]}, {part}" if lines else part
        if lines and "\n" not in together and indent + 2 + len(together) <= WIDTH:
            lines[-1] = together
        else:
            lines.append(part)
    inside = ",".join(f"\n{' ' * (indent + 2)}{line}" for line in lines)
    return f"{opening}{inside}\n{' ' * indent}{closing}"
