"""What the texts of a folder were drawn from, so that no others are added to them."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from specref.contrib.compare.server import Request
from specref.report.machine import as_json, write_json

DRAWN = "drawn.json"


def refuse_others(place: Path, sides: Mapping[str, Request]) -> None:
    """Refuse to add to a folder whose texts have another address, model or setting.

    A folder that has texts, but does not say where they are from, is taken: versions before
    this file did not say it.

    * `sides`: A request for each side, by its name.
    * raises `ValueError`: The folder holds texts of another source; or its file was changed by
      hand.
    """
    file = place / DRAWN
    if not (file.exists() and has_texts(place)):
        return
    now = json.loads(as_json(_drawn(sides)))
    try:
        kept = json.loads(file.read_text("utf-8"))
        differ = list(_different(kept, now))
    except (ValueError, LookupError, AttributeError, TypeError):
        raise ValueError(
            f"{file}: it is no record of this command: choose another --folder"
        ) from None
    if differ:
        raise ValueError(f"{place} holds texts of {', '.join(differ)}: choose another --folder")


def note_source(place: Path, sides: Mapping[str, Request]) -> None:
    """Write, before the first text comes, where all of this folder are from."""
    if not has_texts(place):
        write_json(str(place / DRAWN), as_json(_drawn(sides)))


def has_texts(place: Path) -> bool:
    """Whether any text has come."""
    return any(one.stat().st_size for one in place.glob("*.jsonl"))


def _drawn(sides: Mapping[str, Request]) -> dict[str, dict[str, Any]]:
    """Of each side, all that its texts depend on, besides prompts and seeds."""
    return {
        side: {
            **one.settings,
            "address": one.base,
            "model": one.model,
            "max_tokens": one.max_tokens,
        }
        for side, one in sides.items()
    }


def _different(
    kept: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """What the folder has of all that differs, the addresses first.

    >>> kept = {"on": {"top_p": 0.9, "drafts": 4}, "off": {"top_p": 0.9, "drafts": 0}}
    >>> now = {"on": {"top_p": 0.8, "drafts": 2}, "off": {"top_p": 0.8, "drafts": 0}}
    >>> list(_different(kept, now))
    ['drafts 4 (on) and 0 (off)', 'top_p 0.9 (on) and 0.9 (off)']
    """
    names = {name for given in (*kept.values(), *now.values()) for name in given}
    for name in sorted(names, key=lambda one: (one != "address", one)):
        if any(kept[side].get(name) != now[side].get(name) for side in now):
            called = "" if name == "address" else f"{name} "
            yield called + " and ".join(
                f"{kept[side].get(name, 'unset')} ({side})" for side in now
            )
