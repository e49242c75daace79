"""The verdict on two files for people: verdict, where, how sure, what is left open."""

import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType

from specref.cli.group import HOLDS
from specref.contrib.compare.beside import Greedy, Seeds, Speculation
from specref.contrib.compare.checking import Checked, Looks
from specref.contrib.compare.judging import Comparison, Test, up
from specref.contrib.compare.logprobs import Agreement, ReportedLogprobs
from specref.contrib.real_models.entropy import EntropyReport
from specref.report.forms import (
    WHOLE,
    YES,
    Reports,
    form_of,
    listed,
    optional,
    record,
    said,
    table,
)
from specref.report.layout import Column, Prose, Table
from specref.statistics.campaign.verdict import Verdict

if TYPE_CHECKING:
    from specref.contrib.compare.by_model import ByModel

ALSO, SHORT = 4, 40


def checked_report(checked: Checked, verbose: bool = False) -> RenderableType:
    """The report, its verdict in the first line; all tests and bounds with `verbose`."""
    found = checked.comparison
    parts: list[RenderableType] = [
        Prose(checked.head),
        Prose(
            f"{' and '.join(found.names)}: {found.pairs:,} pairs of texts, {found.prompts:,} "
            f"prompt{'s' * (found.prompts != 1)}, {found.tokens:,} tokens."
        ),
    ]
    for told in (_ended(checked.looks), _unused(found), _where(found), _beside(checked)):
        parts += map(Prose, told)
    parts += map(Prose, _open(found))
    if verbose or found.verdict != Verdict.LOSSY:
        parts.append(_bounds(found, verbose))
    if verbose:
        parts.append(_tests(found))
    parts.append(Prose(_spent(checked)))
    parts += map(Prose, _allowed(checked))
    return Group(*parts)


def _ended(looks: Looks | None) -> Iterator[str]:
    """That a run has not come to its end, or that its end decided nothing."""
    if looks is not None and looks.ended is not None:
        yield (
            f"STOPPED  after {looks.judged:,} of {looks.planned[-1]:,} texts of each prompt: "
            f"{looks.ended}"
        )


def _spent(checked: Checked) -> str:
    """What the probability of a false verdict is shared by."""
    looks = () if checked.looks is None else checked.looks.planned
    tests = len(checked.comparison.tests)
    each = f"{tests} tests have an equal part each"
    if len(looks) > 1:
        after = f"{', '.join(f'{one:,}' for one in looks[:-1])} and {looks[-1]:,}"
        each = (
            f"{len(looks)} looks (after {after} texts of each prompt) have an equal part each, "
            f"and so have the {tests} tests of a look"
        )
    return (
        f"ALPHA  equal systems are called lossy with probability {checked.alpha:.2g} at most: "
        f"{each}."
    )


def _beside(checked: Checked) -> Iterator[str]:
    """What was found besides distributions."""
    if checked.speculation is not None:
        yield f"SPECULATION  {checked.speculation.why}"
    if checked.greedy is not None:
        yield f"GREEDY  {checked.greedy}"
    if checked.seeds is not None:
        on, off = checked.seeds
        yield f"SEEDS  asked for again, with speculation: {on}; without: {off}"
    if checked.logprobs is not None:
        yield f"LOG-PROBABILITIES  {checked.logprobs}"
    for one in checked.reported:
        yield f"LOG-PROBABILITIES  of {one}"


def _where(found: Comparison) -> Iterator[str]:
    if found.verdict != Verdict.LOSSY:
        return
    significant = [test for test in found.tests if test.significant]
    # To one cell rather than to a number, the further off the better.
    first = max(significant, key=lambda one: (one.cells[0].label != one.name, abs(one.cells[0].z)))
    others = [test for test in significant if test is not first]
    at = f"; most in prompt {_short(found.prompt)}" if found.prompt is not None else ""
    yield f"WHERE  {_told(first)}{at}"
    if others:
        named = ", ".join(f"{test.name} ({_power(test)})" for test in others[:ALSO])
        more = f", and {len(others) - ALSO} more" if len(others) > ALSO else ""
        yield f"ALSO   {named}{more}"


def _short(prompt: str) -> str:
    """The beginning of a prompt, in one line."""
    line = " ".join(prompt.split())
    return line if len(line) <= SHORT else line[: SHORT - 1] + "…"


def _told(test: Test) -> str:
    cell = test.cells[0]
    label = "" if cell.label == test.name else f" {cell.label}:"
    return (
        f"{test.name}:{label} {cell.spec:.4g} a text with speculation, {cell.plain:.4g} without "
        f"(z {cell.z:+.1f}; {_power(test)})"
    )


def _power(test: Test) -> str:
    return f"p <= 10^{math.ceil(test.log10_p)}"


def _open(found: Comparison) -> Iterator[str]:
    """What would have been found, and how many more texts decide."""
    if found.verdict == Verdict.LOSSY:
        return
    known = [test for test in found.tests if test.detectable is not None]
    first = next((test for test in known if test.name == "position 1"), None)
    if first is not None and first.detectable is not None:
        yield (
            f"WOULD HAVE FOUND  a total variation of about {first.detectable:.2g} in first "
            "tokens (the 256 most frequent, all others as one), averaged over prompts, with "
            "probability 0.999"
        )
    else:
        yield "WOULD HAVE FOUND  nothing: first tokens are all equal, or there are too few texts"
    if found.prompts > 1:
        yield (
            "A shift whose direction differs from prompt to prompt cancels in these averages. "
            "Only 'tokens, prompt by prompt' looks for it, with less power."
        )
    if found.verdict == Verdict.INCONCLUSIVE:
        needed = max((bound.needed for bound in found.bounds), default=0)
        if not needed:
            return
        yield f"NEEDS  about {needed:,} pairs for {found.within:g} in all that is listed"


def _bounds(found: Comparison, verbose: bool) -> RenderableType:
    columns = [Column("total variation (256 most frequent)")]
    columns += [
        Column(name, right=True) for name in ("difference seen", "could still be", "pairs needed")
    ]
    shown = found.bounds if verbose else sorted(found.bounds, key=lambda one: -one.most)[:6]
    rows = [
        (one.name, f"{one.estimate:.4f}", f"{one.most:.4f}", f"{one.needed:,}") for one in shown
    ]
    left = len(found.bounds) - len(rows)
    more = [Prose(f"{left} more are smaller (-v lists them).")] if left else []
    return Group(Table(columns, rows), *more)


def _tests(found: Comparison) -> RenderableType:
    columns = [Column("test"), Column("log10 p <=", right=True), Column("would find", right=True)]
    rows = [
        (
            test.name,
            f"{test.log10_p:.1f}",
            "-" if test.detectable is None else f"TV {test.detectable:.3f}",
        )
        for test in found.tests
    ]
    return Table(columns, rows)


def _unused(found: Comparison) -> Iterator[str]:
    for name, left, again in zip(found.names, found.left, found.repeated, strict=True):
        if left:
            yield f"NOT USED  {left:,} texts of {name}, which have no partner"
        if again:
            yield (
                f"COUNTED ONCE  {again:,} records of {name}, which repeat the prompt and seed of "
                "another"
            )
    if found.alone:
        some = ", ".join(map(_short, found.alone[:3])) + ", …" * (len(found.alone) > 3)
        yield f"NOT USED  {len(found.alone):,} prompts of one file only: {some}"


def _allowed(checked: Checked) -> Iterator[str]:
    """Which --within passes with these pairs, where nothing else is in the way of a pass.

    All bounds hold together, whatever is asked for: so it may be chosen after they were seen.
    """
    found = checked.comparison
    within = up(found.most)
    if within >= 1 or found.verdict != Verdict.INCONCLUSIVE:
        return
    passed = replace(found, verdict=Verdict.LOSSLESS_WITHIN_EPS, within=within)
    if replace(checked, comparison=passed).exit_code == HOLDS:
        yield f"With these {found.pairs:,} pairs: --within {within:g} passes."


def model_report(found: "ByModel", name: str) -> RenderableType:
    """The verdict on one file by the model."""
    report = found.report
    of = "" if found.texts == found.given else f" (the first of {found.given:,})"
    parts = [
        found.head,
        f"{name}: {report.tokens:,} tokens of {found.texts:,} texts{of}, {report.surprise:.3f} "
        f"nats of surprise a token, {report.entropy:.3f} expected (z {report.z:+.1f}). Bets have "
        f"won 10^{report.log10_evidence:.1f}; 10^{-math.log10(report.alpha):.0f} decides.",
    ]
    if found.stopped is not None:
        parts.append(
            f"STOPPED  after {found.texts:,} of {found.given:,} texts: {found.stopped}; bets are "
            "fair whenever they end"
        )
    if report.impossible:
        parts.append(f"IMPOSSIBLE  {report.impossible}: the declared settings exclude it")
    elif report.lossy:
        parts.append(f"FITS  temperature {report.temperature:.2f} of what was declared, best")
    else:
        below, above = (None if one is None else f"{one:.2f}" for one in found.finds)
        known = [f"{below} or lower"] * bool(below) + [f"{above} or higher"] * bool(above)
        parts.append(
            f"WOULD HAVE FOUND  texts of temperature {' and '.join(known)}"
            if known
            else "WOULD HAVE FOUND  no other temperature: there are too few tokens"
        )
    if found.reported:
        counts = ", ".join(f"{stage} {count:,}" for stage, count in found.stages.items())
        parts.append(f"LOG-PROBABILITIES  of {found.reported:,} reported agree: {counts}")
    if found.at_cut:
        parts.append(f"{found.at_cut:,} tokens at the filter's cut were not judged.")
    return Group(*map(Prose, parts))


def model_record(found: "ByModel") -> dict[str, Any]:
    """What goes into JSON."""
    return asdict(found) | {"lossy": found.report.lossy}


_OF_TWO = {
    **form_of(Comparison)["properties"],
    "logprobs": said("Where both files report log-probabilities.", optional(form_of(Agreement))),
    "reported": said(
        "Of each file that reports log-probabilities.", listed(form_of(ReportedLogprobs))
    ),
    "speculation": said("Where drafts are counted.", optional(form_of(Speculation))),
    "greedy": said("Of a server: texts at temperature 0.", optional(form_of(Greedy))),
    "seeds": said(
        "Of a server: texts under one seed, with speculation and without.",
        optional(listed(form_of(Seeds))),
    ),
    "looks": said("Of a server: how far the run came.", optional(form_of(Looks))),
}
# By hand, as the class itself, `by_model.ByModel`, comes with torch.
_BY_MODEL = record(
    report=form_of(EntropyReport),
    texts=said("Those that were read until the verdict, or the end of the time.", WHOLE),
    given=said("All texts of the file.", WHOLE),
    at_cut=said("Tokens that the declared filter excludes by no more than rounding.", WHOLE),
    finds=said(
        "The nearest temperatures below and above 1 that so many tokens are expected to find.",
        form_of(tuple[float | None, float | None]),
    ),
    stages=said("Of reported log-probabilities, how many agree, by stage.", table(WHOLE)),
    reported=said("How many there are.", WHOLE),
    stopped=said("Why not all were read, though nothing was found.", form_of(str | None)),
    lossy=said("Whether the bets have decided.", YES),
)
REPORTS: Reports = {
    "compare": (
        "specref compare SPEC PLAIN, specref check URL",
        record(
            ("by_model", *_OF_TWO),
            **_OF_TWO,
            by_model=said("With --model: the first file by the model.", _BY_MODEL),
        ),
    ),
}
