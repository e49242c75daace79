"""Texts of a server with speculation and without, judged at looks that were planned before.

The folder that keeps them says what was planned, and what they were drawn from, so that no others
are added to them.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from specref.contrib.compare.beside import Exercised
from specref.contrib.compare.checking import (
    PLAIN,
    SPEC,
    Checked,
    Judging,
    Looks,
    greedy_in,
    judged_folder,
    note_drafts,
)
from specref.contrib.compare.server import (
    LIKELIEST,
    RefusedError,
    Request,
    collect,
    drafted_so_far,
)
from specref.report.machine import as_json, write_json
from specref.statistics.campaign.verdict import Verdict

APART = 1_000_000
"""Between the seeds of the two sides: under equal ones texts may be equal, and no draws of two."""
GREEDY_TOKENS, AGAIN = 32, 2
LEAST = 25
"""Texts of a prompt, however slow the server is."""
LOOKS = (1 / 8, 1 / 4, 1 / 2, 1.0)
"""Shares of the texts after which they are judged, each at its part of alpha: which were settled
before any text came."""
PLAN, DRAWN = "plan.json", "drawn.json"
GOES_ON = "the same command goes on from there"
Advance = Callable[..., None]


@dataclass(frozen=True)
class Plan:
    """What is asked for, and when it is judged.

    * `limit`: Why there are no more texts.
    * `seconds`: A look that would come later is left to the next run.
    """

    prompts: Sequence[str]
    first_seed: int
    workers: int
    looks: tuple[int, ...]
    limit: str
    seconds: float = math.inf
    metrics: bool = False


def looks_of(texts: int) -> tuple[int, ...]:
    """After how many texts of each prompt they are judged.

    >>> looks_of(400), looks_of(60), looks_of(8)
    ((50, 100, 200, 400), (30, 60), (8,))
    """
    parts = [one for one in (math.ceil(texts * part) for part in LOOKS) if one >= LEAST]
    return tuple(sorted({*parts, texts}))


def texts_planned(place: Path, asked: Mapping[str, Any], texts: int) -> int:
    """How many texts of each prompt a run of the same command has planned before, or else these.

    How many a time allows depends on how busy a server is; looks at other numbers of texts would
    be more looks than alpha was shared by. `asked` is what it depends on besides that pace.
    """
    file, now = place / PLAN, json.loads(as_json(dict(asked)))
    with suppress(OSError, ValueError, LookupError, TypeError):
        kept = json.loads(file.read_text("utf-8"))
        if kept["asked"] == now:
            return int(kept["texts"])
    write_json(str(file), as_json({"asked": now, "texts": texts}))
    return texts


def looked(
    sides: Sequence[Request], place: Path, judging: Judging, plan: Plan, advance: Advance
) -> Iterator[Checked]:
    """Collect texts, and yield the verdict of each look; the last one decides, or says why not.

    `judging` is at the part of alpha that one look has. It raises as `collect` does; what came
    before is in the folder.
    """
    started = time.monotonic()
    asking = partial(collect, prompts=plan.prompts, workers=plan.workers, advance=advance)
    firsts = plan.first_seed, plan.first_seed + APART
    both = list(zip(firsts, (SPEC, PLAIN), sides, strict=True))
    for first, side, one in both:
        _collect_beside(one, side, place, first, min(AGAIN, plan.looks[-1]), asking)
    advance(0, line=f"GREEDY  {greedy_in(place, judging.tolerance)}")
    for before, look in pairwise([0, *plan.looks]):
        for first, side, one in both:
            seeds = range(first + before, first + look)
            _collect(one, side, place, seeds, plan.metrics, asking)
        seen = {side: range(first, first + look) for first, side, _ in both}
        checked = replace(judged_folder(place, judging, seen), looks=Looks(plan.looks, look))
        # The next look takes twice as many texts. Time says nothing of what is in them.
        late = 2 * (time.monotonic() - started) > plan.seconds
        if checked.comparison.verdict != Verdict.INCONCLUSIVE:
            yield checked
            return
        ended = _ended(checked, look == plan.looks[-1], late, plan.limit)
        if ended is not None:
            yield stopped(checked, ended)
            return
        advance(0, line=f"After {look:,} texts of each prompt: {checked.head}")
        yield checked


def _ended(checked: Checked, last: bool, late: bool, limit: str) -> str | None:
    """Why no more texts are drawn, though these have decided nothing; None if more are."""
    if checked.exercised == Exercised.NO:
        return "more decide nothing while the switch of drafts does not work"
    if last:
        return limit
    return f"the next look would come after --minutes; {GOES_ON}" if late else None


def stopped(checked: Checked, why: str) -> Checked:
    """The verdict of the last look of a run that has ended since."""
    return replace(checked, looks=checked.looks and replace(checked.looks, ended=why))


def _collect(
    request: Request, side: str, place: Path, seeds: range, metrics: bool,
    asking: Callable[..., int],
) -> None:  # fmt: skip
    """Texts of one side, with the server's own count of drafts if it is asked for."""
    before = drafted_so_far(request) if metrics else None
    asking(request, texts=len(seeds), first_seed=seeds.start, path=place / f"{side}.jsonl")
    after = drafted_so_far(request) if metrics else None
    if before is not None and after is not None:
        note_drafts(place, side, after - before)


def _collect_beside(
    request: Request, side: str, place: Path, first_seed: int, again: int,
    asking: Callable[..., int],
) -> None:  # fmt: skip
    """Texts that should equal others, and lists of tokens where these have a field."""
    greedy = replace(
        request,
        max_tokens=max(GREEDY_TOKENS, request.max_tokens),
        settings={**request.settings, "temperature": 0},
    )
    asking = partial(asking, first_seed=first_seed)
    asking(greedy, texts=1, path=place / f"greedy-{side}.jsonl")
    asking(request, texts=again, path=place / f"again-{side}.jsonl")
    if request.form.get("logprobs") is True:  # its lists have a field of their own
        listed = replace(request, settings={**request.settings, "top_logprobs": LIKELIEST})
        with suppress(RefusedError):
            asking(listed, texts=AGAIN, path=place / f"lists-{side}.jsonl")


def refuse_others(place: Path, sides: Mapping[str, Request]) -> None:
    """Refuse to add to a folder whose texts have another address, model or setting.

    A folder that has texts, but does not say where they are from, is taken: versions before
    this file did not say it. `ValueError` is raised, too, if its file was changed by hand.
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
