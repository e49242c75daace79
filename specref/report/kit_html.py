"""The report of the conformance kit as a page: the verdict in words, then what it rests on."""

import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from specref.adapters import IMPLEMENTATIONS
from specref.conformance.checks.engines import SAME_LAW
from specref.conformance.diagnosis.ranking import SHOWN, Candidate
from specref.conformance.differences import Difference, as_number, numbers, row_text, times_seen
from specref.conformance.report import Report
from specref.conformance.status import CheckResult, Finding, Stage, Status
from specref.conformance.strata.laws import FEATURES
from specref.conformance.summary import (
    CAUSE_ABOVE,
    cause_in_short,
    diagnosis_told,
    found_at,
    shapes_asked_for,
    shown_first,
)
from specref.report.kit import SHIFTS, not_applicable, nowhere
from specref.report.page import (
    Markup,
    again,
    bars,
    cards,
    curve,
    element,
    facts,
    html_page,
    intervals,
    joined,
    legend,
    link_of,
    section,
    table,
    verdict_box,
)

ALIGNED = re.compile(r"\S {3,}\S|^ {8}")
"""A line with figures below each other, or one that goes on where the first of them stands."""
FIX = "Fix: "
KINDS: Mapping[Status, str] = {
    Status.PASSED: "good",
    Status.FAILED: "bad",
    Status.EXPECTED_FAILURE: "known",
    Status.UNEXPECTED_PASS: "known",
    Status.NOT_APPLICABLE: "none",
    Status.NOT_RUN: "open",
    Status.INCONCLUSIVE: "open",
}
HEADLINES: Mapping[Finding, str] = {
    Finding.DEPENDENCE: "Lossy: blocks depend on each other",
    Finding.LAW: "Lossy",
    Finding.CONTRACT: "Broken contract",
    Finding.EDGE: "Something impossible at the edge of a random number",
    Finding.ACCEPTANCE: "The number of accepted tokens is not the declared rule's",
    Finding.PLAIN: "The baseline's distribution is wrong",
    Finding.UNANSWERED: "Not answered in time",
    Finding.NOT_EXERCISED: "Speculation was not exercised",
}
ASKS: Mapping[Stage, str] = {
    Stage.SMOKE: "does it answer in the right form?",
    Stage.REPLAY: "is its block the one that the random numbers decide?",
    Stage.BOUNDARY: "zeros, ties and the ends of uniforms",
    Stage.JOINT: "is the distribution of the completed block the target's?",
    Stage.ACCEPTANCE: "is the number of accepted tokens that of the rule?",
    Stage.INDEPENDENCE: "do rows share randomness?",
    Stage.STRATA: "shapes, distributions and call patterns",
    Stage.ITERATIONS: "does it go on as it should?",
    Stage.END_TO_END: "whole texts",
}
BITS = 6
OPTIONS = {"algorithm": "rule", "seconds": "time-limit"}
"""Options of the command line whose names are not those of `check`."""
NUMBERS = ("number", "number")
FURTHEST_OFF = (
    "The largest differences of probability come first. A block that is shorter than the "
    "lookahead + 1 is continued by the target, so counts, in brackets, need be no whole numbers; "
    "one block alone need not prove anything: the evidence is about the whole distribution."
)
EXACT = (
    "The largest differences of probability come first. Both distributions are exact: "
    "nothing was sampled."
)
SCATTERED = (
    "No difference was found there: these are the estimates that are furthest from the target's "
    "distribution."
)


def kit_html(reports: Sequence[Report]) -> str:
    title = f"specref: {', '.join(report.name for report in reports)}"
    return html_page(title, *map(_article, reports))


def _article(report: Report) -> Markup:
    heading = element("h1", f"{report.name} {report.version}".rstrip(), " under specref check")
    of = "texts" if report.contract.of_engines else "the block"
    return element(
        "article",
        heading,
        _verdict(report),
        section("Where", *_lines(report.summary.where)),
        section("Likely cause", *_lines(report.summary.cause)),
        section("Also failed", *_lines(report.summary.also)),
        section("Not tried", *_lines(report.summary.untried)),
        section("Run it again", *_again(report)),
        _figures(report),
        section("Stages", _stages(report)),
        section(f"The distribution of {of}", *_law(report)),
        section("Evidence over trials", *_evidence(report)),
        section("Distance", *_distances(report)),
        section("Tokens of a block", *_lengths(report)),
        section("Diagnosis", *_diagnosis(report)),
        section("What was tried", *_tried(report)),
        section("Checks", *_checks(report)),
        section("Warnings", *(element("p", warning) for warning in report.warnings)),
    )


def _lines(lines: Sequence[str]) -> list[Markup]:
    """Lines of a summary: sentences flow, figures are aligned as they are printed."""
    parts: list[Markup] = []
    for aligned, group in groupby(flowing(lines), key=_is_aligned):
        some = list(group)
        if aligned:
            parts.append(element("div", element("pre", "\n".join(some)), class_="aligned"))
        else:
            parts += [element("p", line.strip(), class_=_kind(line)) for line in some]
    return parts


def _is_aligned(line: str) -> bool:
    return bool(ALIGNED.search(line))


def _kind(line: str) -> str:
    return "said more" if line.startswith(" ") else "said"


def flowing(lines: Sequence[str]) -> list[str]:
    """Lines of which those that only go on, as they are wrapped, are put to the one before.

    Examples
    --------
    >>> flowing(["a law: it is", "  wrong", "  Fix: draw", "  anew.", "token 1    0.4444"])
    ['a law: it is wrong', '  Fix: draw anew.', 'token 1    0.4444']
    """
    whole: list[str] = []
    for line in lines:
        goes_on = line.startswith(" ") and not line.lstrip().startswith(FIX)
        if goes_on and whole and not (_is_aligned(line) or _is_aligned(whole[-1])):
            whole[-1] += f" {line.strip()}"
        else:
            whole.append(line)
    return whole


def _verdict(report: Report) -> Markup:
    sure = re.split(r"\n(?! )", "\n".join(report.summary.sure))  # the others are wrapped lines
    said = [element("p", " ".join(one.split())) for one in (report.summary.headline, *sure) if one]
    said += [element("p", _meaning(report), class_="soft")]
    first = next(iter(report.diagnosis.candidates), None) if report.diagnosis else None
    if first is not None and first.fits and not (report.diagnosis and report.diagnosis.unseen):
        hints = first.hint.replace(" / ", " Or: ")
        said.insert(1, element("p", f"Likely cause: {first.title}. {hints}"))
    elif why := cause_in_short(report):
        said.insert(1, element("p", f"Likely cause: {why}"))
    shown = shown_first(report)
    said[1:1] = [element("p", place) for place in (found_at(shown) if shown else ())]
    if report.finding is not None:
        open_ = report.finding in (Finding.UNANSWERED, Finding.NOT_EXERCISED)
        return verdict_box("open" if open_ else "bad", HEADLINES[report.finding], *said)
    if report.exit_code or not report.complete:
        return verdict_box("open", "Nothing can be said yet", *said)
    if report.lossy_as_expected:
        return verdict_box("known", "Lossy, as expected", *said)
    known = report.counts[Status.EXPECTED_FAILURE]
    headline = "No difference from lossless was found" + ", but for known failures" * bool(known)
    return verdict_box("known" if known else "good", headline, *said)


def _meaning(report: Report) -> str:
    """What the verdict means, and what it does not."""
    alpha = f"{report.alpha:g}"
    if report.lossy or report.lossy_as_expected:
        return (
            "What it emits does not have the joint distribution of the target's own tokens. A "
            f"lossless sampler is called lossy with probability {alpha} at most, over all checks."
        )
    if report.exit_code or not report.complete:
        return "This is no pass: what is said below is all that is known."
    if not report.has_power:
        return (
            f"Power: {report.power}. The checks below passed; nothing else was tested, nor "
            "was the engine around the sampler."
        )
    left_out = (
        "other prompts, lengths and settings, other models, and smaller differences."
        if report.contract.of_engines
        else "shapes, distributions and call patterns that are not listed, smaller differences, "
        "and the engine around the sampler."
    )
    return (
        "Differences as large as the verdict says would be detected there, 999 times in "
        f"1,000; a lossless sampler is called lossy with probability {alpha} at most. Not "
        f"tested: {left_out}"
    )


def _figures(report: Report) -> Markup:
    counts = {status: number for status, number in report.counts.items() if number}
    tv = report.detected_tv
    found = f"would be detected {report.contract.tried_on}"
    decided = report.worst or next((one for one in report.failures if _looked_at(one)), None)
    told = {} if decided is None else decided.evidence
    evidence = told.get("log10_evidence")
    decides = f"10^{told.get('log10_threshold', 0):.0f}"
    against = (
        [] if evidence is None else [("", f"10^{evidence:.0f}", f"evidence; {decides} decides")]
    )
    drafts = [one.evidence for one in report.results if "taken" in one.evidence][:1]
    return cards(
        [
            *(
                (KINDS[Status(status)], f"{number}", f"{_words(status)}")
                for status, number in counts.items()
                if status != Status.NOT_APPLICABLE
            ),
            *against,
            *(("", *_drafts(one)) for one in drafts),
            *([] if tv is None else [("", f"TV ≥ {tv:.3g}", found)]),
            ("", f"{report.alpha:g}", "false positives, all checks"),
            ("", f"{report.seconds:.1f} s", "of judging"),
        ]
    )


def _drafts(evidence: Mapping[str, Any]) -> tuple[str, str]:
    """How many drafts an engine says that it kept in its texts."""
    accepted, proposed = evidence["accepted"], evidence["proposed"]
    of = "" if proposed is None else f" of {proposed:,}"
    return f"{accepted:,}{of}", f"drafts accepted in {evidence['texts']:,} texts"


def _looked_at(result: CheckResult) -> bool:
    return bool(result.evidence.get("looks"))


def _words(status: str) -> str:
    return status.replace("_", " ")


def _by_stage(report: Report) -> dict[Stage, list[CheckResult]]:
    applying = (one for one in report.results if one.status != Status.NOT_APPLICABLE)
    results = sorted(applying, key=lambda one: list(Stage).index(one.stage))
    return {stage: list(found) for stage, found in groupby(results, key=lambda one: one.stage)}


def _stages(report: Report) -> Markup:
    entries = []
    for stage, results in _by_stage(report).items():
        counts = Counter(result.status for result in results)
        worst = next(status for status in WORST if counts[status])
        told = ", ".join(f"{number} {_words(status)}" for status, number in counts.items())
        entries.append((KINDS[worst], f"{stage}: {told}", ASKS[stage]))
    return cards(entries)


WORST = (
    Status.FAILED,
    Status.UNEXPECTED_PASS,
    Status.INCONCLUSIVE,
    Status.NOT_RUN,
    Status.EXPECTED_FAILURE,
    Status.PASSED,
    Status.NOT_APPLICABLE,
)


def _law(report: Report) -> list[str]:
    """Expected against observed law where they differ most, or of the first campaign."""
    compared = [one for one in report.results if "difference" in one.evidence]
    passed = [one for one in compared if one.status == Status.PASSED]
    if report.contract.of_engines:  # not of plain mode, and not of one token
        passed.sort(key=lambda one: one.id != SAME_LAW)
    result = report.worst or next(iter(passed), None)
    if result is None:
        return []
    found = result.evidence["difference"]
    exact = found["trials"] is None
    drawn = "its exact distribution" if exact else f"{found['trials']:,} {found['of']} drawn there"
    where = f"{result.id} at {found['place']}: {drawn}."
    failed = EXACT if exact else FURTHEST_OFF
    titled = "Texts" if found["of"] == "texts" else "Completed blocks"
    without = "not known" if found["of"] == "texts" else "no draft"
    first = sorted(found["first_tokens"], key=lambda one: list(one["tokens"]))
    return [
        element("p", where, " ", failed if report.worst else SCATTERED),
        element("p", f"{report.contract.rows_said}.") if report.contract.rows_said else "",
        element(
            "div",
            _probabilities(f"{titled}, as token ids", found["blocks"], found["trials"], _name),
            _probabilities("First token", first, found["trials"], _first),
            class_="pictures",
        ),
        element("h3", f"p and q along {_name(found['blocks'][0])}"),
        table(
            ("after", "p: the target's row", "q: the draft model's row"),
            (
                (
                    str(tuple(row["prefix"])),
                    row_text(row["p"], token),
                    without if row["q"] is None else row_text(row["q"], token),
                )
                for row, token in zip(found["rows"], found["blocks"][0]["tokens"], strict=True)
            ),
            ("name",),
        ),
    ]


def _probabilities(
    title: str,
    records: Sequence[Difference],
    trials: int | None,
    name_of: Callable[[Difference], str],
) -> Markup:
    entries = []
    for one in records:
        expected, observed = numbers(one["expected"], one["observed"])
        lengths = [(side, float(as_number(one[side]))) for side in ("expected", "observed")]
        seen = f"has {observed}"
        if trials is not None:
            seen = f"{observed} seen ({times_seen(one, trials)})"
        entries.append((name_of(one), f"{expected} expected, {seen}", lengths))
    return bars(
        entries,
        f"{title}: " + "; ".join(f"{name}: {told}" for name, told, _ in entries),
        joined(
            (f"{title}: ", legend(observed="its exact distribution" if trials is None else "seen"))
        ),
    )


def _first(one: Difference) -> str:
    return f"token {one['tokens'][0]}"


def _name(one: Difference) -> str:
    tokens = list(map(str, one["tokens"]))
    if len(tokens) > BITS:
        tokens = [*tokens[: BITS - 2], "…", tokens[-1]]
    return f"({', '.join(tokens)}{',' * (len(tokens) == 1)})"


def _evidence(report: Report) -> list[str]:
    """How the evidence grew: where it decided, or was highest; then in the other campaigns."""
    looked = list(filter(_looked_at, report.results))
    if not looked:
        return []
    highest = max(looked, key=lambda one: float(one.evidence["log10_evidence"]))
    best = looked[-1] if report.contract.of_engines else highest
    first = report.worst if report.worst in looked else best
    others = [one for one in looked if one is not first]
    summary = element("summary", f"{len(others)} more campaign" + "s" * (len(others) > 1))
    grown = element("div", *map(_growth, others), class_="pictures")
    said = (
        "Bets against the sampler start from 1, 10^0, and grow by what they win. Against a "
        "lossless sampler they reach 10^x, at any time, with probability 10^-x at most. At the "
        "dashed line the distribution is decided."
    )
    return [
        element("p", said),
        _growth(first),
        *([element("details", summary, grown)] if others else []),
    ]


def _growth(result: CheckResult) -> Markup:
    """A curve, and the same numbers as a table."""
    looks, threshold = result.evidence["looks"], result.evidence["log10_threshold"]
    told = "; ".join(f"10^{evidence:z.1f} after {trials:,}" for trials, evidence in looks)
    label = f"{result.id}: evidence {told}; 10^{threshold:.1f} decides"
    finite = [one for one in looks if math.isfinite(one[1])]
    caption = f"{result.id}: evidence against the distribution after so many trials"
    drawn = curve(finite, threshold, label, caption) if finite else ""
    rows = ((f"{trials:,}", f"{evidence:z.2f}") for trials, evidence in looks)
    titles = ("trials", "log10 of the evidence")
    numbers = element("details", element("summary", "As a table"), table(titles, rows, NUMBERS))
    return element("div", drawn, numbers)


def _distances(report: Report) -> list[str]:
    """One interval for each campaign, at the place with the largest estimate."""
    largest = {
        result.id: max(result.evidence["tv"].values())
        for result in report.results
        if result.evidence.get("tv")
    }
    entries = [(id_, float(tv), float(a), float(b)) for id_, (tv, a, b) in largest.items()]
    if not entries:
        return []
    mark = report.detected_tv
    what = "the completed block from the target"
    if report.contract.of_engines:
        known = any("difference" in result.evidence for result in report.results)
        what = "texts from " + (
            "the distribution that was given" if known else "those of non-speculative decoding"
        )
    caption = (
        f"Total variation of {what}, estimated, with an interval that holds for all "
        "places of a campaign together; of each campaign the place with the largest estimate. An "
        "estimate is above 0 for lossless samplers, too; bets find a difference long before such "
        "an interval leaves 0."
        + (f" Dashed: {mark:.3g}; {report.power_on_fixtures}." if mark else "")
    )
    told = "; ".join(f"{id_}: {tv:.3f} in [{a:.3f}, {b:.3f}]" for id_, tv, a, b in entries)
    return [intervals(entries, mark, f"Total variation by campaign: {told}", caption)]


def _lengths(report: Report) -> list[str]:
    """How many tokens blocks had in each campaign over single iterations."""
    pictures = []
    for result in report.results:
        counts = result.evidence.get("lengths")
        if counts:
            total = sum(counts.values())
            entries = [
                (
                    f"{length} token" + "s" * (int(length) != 1),
                    f"{count / total:.1%}, {count:,} blocks",
                    [("observed", count / total)],
                )
                for length, count in counts.items()
            ]
            told = "; ".join(f"{name}: {share}" for name, share, _ in entries)
            label = f"{result.id}: {told}"
            pictures.append(bars(entries, label, f"{result.id}: {total:,} blocks with drafts"))
    if not pictures:
        return []
    told = (
        "Accepted drafts and the token after them, at places with drafts. Numbers of accepted "
        "tokens are judged by the checks of stage acceptance, if a rule is declared."
    )
    return [element("p", told), element("div", *pictures, class_="pictures")]


def _diagnosis(report: Report) -> list[str]:
    diagnosis, told = report.diagnosis, diagnosis_told(report)
    if diagnosis is None:
        return [element("p", why) for why in told]
    ranking = diagnosis.unseen or diagnosis.dependent
    shown = () if ranking or told == [CAUSE_ABOVE] else diagnosis.candidates[:SHOWN]
    return [element("p", told[0]), *(_candidate(i, one) for i, one in enumerate(shown, 1))]


def _candidate(rank: int, one: Candidate) -> Markup:
    parts = [element("h3", f"{rank}. {one.title} [{one.stage}], {one.match}")]
    if rank == 1 and (one.fits or one.resembles):
        fix = "Why it is exact" if one.lossless else "Fix" if one.fits else "Fix, if it were that"
        parts.append(facts([("Symptom", one.symptom), (fix, one.hint)]))
    if one.cites:
        links = [piece for cite in one.cites for piece in (", ", link_of(cite))][1:]
        parts.append(element("p", "Seen in ", *links))
    return element("div", *parts)


def _tried(report: Report) -> list[str]:
    """The strata: what was tried, and the shift that would have been found there."""
    if not any(one.status != Status.NOT_APPLICABLE for one in report.strata):
        return []
    rows = []
    for one in report.strata:
        shift = one.evidence.get("detectable_shift")
        rows.append(
            (
                one.id.removeprefix("strata/"),
                _status(one),
                one.evidence.get("tried") or one.message,
                "" if shift is None else f"{shift:.2g}",
            )
        )
    return [
        element("p", SHIFTS.format(len(FEATURES)), class_="soft"),
        *(element("p", line, class_="soft") for line in nowhere(report)),
        table(
            ("stratum", "status", "tried", "shift that would be detected"),
            rows,
            ("name", "", "wide", "number"),
        ),
    ]


def _status(result: CheckResult) -> Markup:
    return element("span", _words(result.status), class_=f"status {KINDS[result.status]}")


def _checks(report: Report) -> list[str]:
    parts: list[str] = []
    seen = report.seen
    for stage, results in _by_stage(report).items():
        rows = [(one.id, _status(one), seen[one.id], f"{one.seconds:.1f}") for one in results]
        titles, classes = ("check", "status", "what was seen", "s"), ("name", "", "wide", "number")
        wrong = any(one.status != Status.PASSED for one in results)
        summary = element("summary", f"{stage}: {len(results)} check" + "s" * (len(results) != 1))
        open_ = {"open": ""} if wrong and stage != Stage.STRATA else {}
        parts.append(element("details", summary, table(titles, rows, classes), **open_))
    for ids, lines in report.tracebacks.items():
        parts += [element("h3", f"Traceback of {ids}"), element("pre", "\n".join(lines))]
    return parts + [element("p", line, class_="soft") for line in not_applicable(report)]


def _again(report: Report) -> list[str]:
    claims = report.capabilities
    given = [
        ("rule", claims.rule or "not declared, so acceptance is not judged"),
        ("given", f"{claims.arrays} arrays of {claims.dtype} on {claims.device}"),
    ]
    told = (
        ("contract", str(report.contract)),
        *(given if not report.contract.of_engines else ()),
        ("seed", f"{report.seed}"),
    )
    return again(replay_line(report), *told, python=report.python)


def replay_line(report: Report) -> str:
    """The command that repeats the run, or only its first failure, if possible one of a law.

    In Python, where the implementation has no name on the command line.
    """
    options = report.options
    failure = report.worst or next(iter(report.failures), None)
    only = list(options.only or ()) if failure is None else [failure.id]
    given: dict[str, Any] = {
        "contract": str(report.contract),
        "profile": options.profile if options.profile == "smoke" and not only else None,
        "algorithm": options.algorithm,
        "seed": report.seed,
        "alpha": report.alpha,
        "detect_tv": None if options.seconds is not None else report.detect_tv,
        "trials": options.trials,
        "seconds": None if options.time_limit is not None else options.seconds,
        "time_limit": options.time_limit,
    }
    given = {name: value for name, value in given.items() if value is not None}
    claims = options.claims.items()
    if ":" not in report.name and report.name not in IMPLEMENTATIONS:
        more: dict[str, Any] = {"only": only} if only else {}
        more |= {"shapes": [tuple(one) for one in options.shapes]} if options.shapes else {}
        more |= {"dtypes": list(options.dtypes)} if options.dtypes else {}
        named = [f"{name}={value!r}" for name, value in (*given.items(), *more.items(), *claims)]
        return f"specref.check({', '.join([report.name, *named])})"
    words = ["specref", "check", report.name]
    for name, value in given.items():
        told = f"{value:g}" if isinstance(value, float) else str(value)
        words += [f"--{OPTIONS.get(name, name).replace('_', '-')}", told]
    for name, value in claims:
        told = str(value).lower() if isinstance(value, bool) else str(value)
        words += ["--declare", f"{name}={told}"]
    words += shapes_asked_for(options)
    return shlex.join([*words, *(word for one in only for word in ("--only", one))])
