"""What a report says first: the verdict, how sure it is, where, why, and what to do next.

Plain lines of 80 columns; every face of a report shows them in this order.
"""

import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specref.conformance.diagnosis import Candidate
from specref.conformance.differences import Difference, as_number, numbers, row_text
from specref.conformance.options import LONGER, CheckOptions, Profile
from specref.conformance.row_situations import COOLER, HEATED, HOTTER, LENGTHS, SITUATIONS
from specref.conformance.status import (
    CheckResult,
    Finding,
    Stage,
    Status,
    address_of_bug,
    address_of_finding,
    grouped,
    published,
)
from specref.conformance.strata.laws import ORDINARY
from specref.conformance.strata.stratum import Stratum
from specref.conformance.strata.table import (
    STEP_STRATA,
    STRATA,
    TEXT_STRATA,
    TREE_STRATA,
    UNTRIED,
)
from specref.contracts.calling import TENSORS
from specref.contracts.capabilities import Capabilities
from specref.contracts.verify import VerifyContract
from specref.probing.source import GIVEN
from specref.statistics.floats.floats import EQUIVALENCE_MARGIN
from specref.zoo import ALL

if TYPE_CHECKING:
    from specref.conformance.report import Report

NAMED_STRATA: tuple[Stratum[Any], ...] = (*STRATA, *STEP_STRATA, *TEXT_STRATA, *TREE_STRATA)
WIDTH, INDENT = 80, "  "
FEW, FRAMES, LEFT_OUT = 6, 8, 3
"""How many failures, lines of a traceback and untried situations are shown."""
PASS, FAILURE = 25, 60
"""The most lines of a report, heading included, so that its verdict is on the screen."""
LEAST: Mapping[str, int] = {"untried": 2, "warnings": 4, "also": 3, "where": 16, "cause": 6}
"""Sections that are cut to keep to that, in this order, and the least lines that they keep."""
REST = "… -v shows the rest"
LINE, ASSERTED = 560, 238
"""Characters of an answer in one line, and of one that pytest shows of a value without a cut."""
ROUNDED = 1e-6
"""A difference that four digits do not show; samplers may count in float32."""
SHORT = 150
"""Characters of a message beside others."""
HEADLINES: Mapping[Finding, str] = {
    Finding.DEPENDENCE: "LOSSY: blocks that should be independent depend on each other",
    Finding.LAW: "LOSSY: the output does not have the target's distribution",
    Finding.CONTRACT: "BROKEN CONTRACT: the function raised, or its answer is invalid",
    Finding.EDGE: "EDGE: a random number at its end gives an impossible token",
    Finding.ACCEPTANCE: "ACCEPTED TOKENS: the declared rule accepts drafts at other rates",
    Finding.PLAIN: "THE BASELINE IS WRONG: its distribution is off without speculation",
    Finding.UNANSWERED: "NOT ANSWERED in time",
    Finding.NOT_EXERCISED: "NOT EXERCISED: no draft is known to have been accepted",
}
UNDRAFTED = "BROKEN CONTRACT: a block goes on after a token that was not drafted"
WORDS: Mapping[Status, str] = {
    Status.FAILED: "failed",
    Status.UNEXPECTED_PASS: "xpassed",
    Status.INCONCLUSIVE: "inconclusive",
    Status.EXPECTED_FAILURE: "xfailed",
    Status.PASSED: "passed",
    Status.NOT_RUN: "skipped",
}
ELSEWHERE = {Stage.STRATA, Stage.ITERATIONS, Stage.END_TO_END}
NOT_COMPARED = (
    "No known bug is named: blocks over few tokens distinguish known bugs, and no check of those "
    "failed. Look at what is special in the situation above."
)
MARGIN = EQUIVALENCE_MARGIN["bfloat16"]
"""The largest exact distance that rounding explains."""
USES: Mapping[str, str] = {
    "accept": "p or q of the acceptance",
    "residual": "p or q of the residual",
    "bonus": "p of the bonus token",
}
"""{decision: what it is made from}."""
PADDED = (
    "Look for rows that are counted as if all requests had as many drafts, such as row * "
    "(max_spec_len + 1)."
)
ENDS = "An index that is cut off, or reaches too far, at an end of the arrays"
HINTS: Mapping[str, str] = {
    "none": "Look at what is done where draft_probs is None: each draft is certain there.",
    "empty": "Look at requests without drafts: an index that is right of others, such as "
    "start + length - 1, belongs to another request there.",
    **dict.fromkeys(sorted(LENGTHS), PADDED),
    "second": "Look for an index, or an offset, that is right for the first request of a call "
    "alone.",
    "first": "Look for an index that reaches into the rows of the next request.",
}
"""{feature of a situation in which alone a sampler is wrong: where to look}."""
REPEATING = (
    "Calls repeat random numbers. Look for a generator that is made, copied or seeded anew in "
    "each call, or for seeds that come again."
)
SHARING = (
    "Rows of a call share random numbers. Look for a draw without the dimension of the batch, "
    "such as noise of shape (1, V) that is expanded, or one seed for all rows."
)
OF_ANOTHER = (
    "The token that is drawn for one request is used in two. Look for the index of "
    "bonus_token_ids: it has to be that of the request."
)
OF_OTHERS = (
    "A token that is no draft of its row is kept. Look for the index of a row's first draft, and "
    "for drafts that are kept after a rejected one."
)
MADE_OF = "Look for an index that leaves out the position, or is that of another."
LIMIT = (
    "The draft at position {} is never kept (tried with {} drafts). Look for a limit on how many "
    "are accepted, such as a clamp, or the width of an array."
)
NEVER = re.compile(r"accept\[(\d+)\].* keeps draft \d+ with 0\.0000")
"""A draft that is never kept."""
UNREAD = re.compile(
    r"cannot be probed: (?P<call>[\w.]+), .*at (?P<where>.+:\d+): "
    r"its cells are neither boxes nor a race"
)
UNDER = re.compile(r" \((?:[^()]|\([^()]*\))*\)")
"""What is in brackets, with those within."""
UNKNOWN = "No known bug has this distribution. Start at the {} that WHERE names."
CAUSE_ABOVE = "The likely cause is the one above."
SHARED = {"calls": REPEATING, "rows": SHARING}
"""{between what random numbers are shared: what to look for}."""
LARGER: Mapping[Profile, Profile] = {"quick": "standard", "standard": "thorough"}
IMPORTED = re.compile(r"(?!process:)(\S+\.py|[\w.]+):[\w.]+")
"""A target that a pytest file can import: FILE.py:FUNCTION or MODULE:FUNCTION."""
LISTED = "specref list findings"
"""What prints the meaning of each finding, where the site has no address."""
BY_ITSELF = "To identify a known bug, run again with --only joint"
SAMPLED = {Stage.JOINT, Stage.ITERATIONS, Stage.END_TO_END, Stage.ACCEPTANCE}


@dataclass(frozen=True)
class Summary:
    """The sections of a summary, each of lines.

    Attributes
    ----------
    headline : str
        The verdict.
    sure : tuple of str
        How sure it is.
    where : tuple of str
        One failure in full.
    cause : tuple of str
        What may explain it, and the fix.
    also : tuple of str
        The other failures, grouped.
    untried : tuple of str
        What was not tried.
    warnings : tuple of str
    counts : str
    next : tuple of str
        A command, or what to ask for.
    """

    headline: str
    sure: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    cause: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    counts: str = ""
    next: tuple[str, ...] = ()

    def fitted(self, most: int) -> "Summary":
        """The same in so many lines, if cutting what `LEAST` names is enough."""
        fitted, over = self, len(self.lines(0.0)) - most
        for name, least in LEAST.items():
            section = getattr(self, name)
            left = max(least, len(section) - over)
            if over > 0 and left < len(section):
                *kept, last = section[: left - 1]
                if section[left - 1].startswith(INDENT):  # of a list whose end is cut
                    last = last[: last.rfind(", ")] if ", " in last else last
                cut: dict[str, Any] = {name: (*kept, last, REST)}
                fitted = replace(fitted, **cut)
                over -= len(section) - left
        return fitted

    def lines(self, seconds: float) -> list[str]:
        """All of it, a section after the other, and how long it took."""
        found = [*wrapped(self.headline), *(INDENT + line for line in self.sure)]
        titles = "WHERE", "LIKELY CAUSE", "ALSO FAILED", "NOT TRIED", "WARNINGS"
        sections = self.where, self.cause, self.also, self.untried, self.warnings
        for title, section in zip(titles, sections, strict=True):
            if section:
                found += ["", f"{title}  {section[0]}", *(INDENT + line for line in section[1:])]
        return [*found, "", f"{self.counts} · {seconds:.1f} s", *self.next]


def summarize(report: "Report") -> Summary:
    """What a report says first."""
    shown = shown_first(report)
    return Summary(
        headline=f"{_word(report)} · {_headline(report)}",
        sure=tuple(_sure(report)),
        where=() if shown is None else tuple(_where(report, shown)),
        cause=tuple(_cause(report)),
        also=tuple(_also(report, shown)),
        untried=tuple(_untried(report)),
        warnings=tuple(_warned(report)),
        counts=_counts(report),
        next=tuple(_next(report, shown)),
    )


def _warned(report: "Report") -> Iterator[str]:
    """Warnings; of an edge of a random number its line first, and no more than what matters."""
    rare = [r for r in report.results if r.finding == Finding.EDGE and r.status == Status.PASSED]
    edges = [one for one in rare if "number" in one.evidence]
    said = [one for one in report.warnings if not one.endswith(tuple(e.message for e in edges))]
    first = {(e.evidence["at"], e.evidence["number"]): e.evidence for e in reversed(edges)}
    said += map(_edge, reversed(first.values()))
    for number, one in enumerate(said):
        yield from wrapped(one, taken=0 if number else 10)


def _edge(told: Mapping[str, Any]) -> str:
    """Where a number at its end gives something impossible, and how often."""
    often = f"probability {told['chance']:.0e} a draw"
    if not told["chance"]:
        often = f"not on this machine; {UNDER.sub('', told['elsewhere'])}"
    return f"{told['at']}: {told['number']}: {told['consequence']} ({often})"


def in_short(report: "Report", most: int = LINE) -> str:
    """The verdict, where, why and the fix, in one line: as much of it as so many characters take.

    The first wrong decision, with its line in the code, stands for the check that found it.
    """
    shown, diagnosis, headline = shown_first(report), report.diagnosis, _headline(report)
    parts = []
    if shown is not None:
        if place := next(found_at(shown), ""):
            headline = f"{headline.partition(':')[0]}: {place}"
        exact = f", exact TV {_distance(shown):.3g}" if "total_variation" in shown.evidence else ""
        parts.append(f" ({shown.id}{exact})")
    if diagnosis is not None and diagnosis.known and not diagnosis.unseen:
        first = diagnosis.candidates[0]
        parts += [f"; likely {first.title}", f": {first.hint}"]
    elif why := of_situation(report):
        parts += [f"; {' '.join(' '.join(why).split()).partition('. ')[0]}"]
    said = f"{report.name}: {_word(report)} · {headline}"
    for part in parts:
        if len(said + part) > most:
            break
        said += part
    return _cut(said, most)


def shown_first(report: "Report") -> CheckResult | None:
    """The failure that is shown in full: of the gravest finding, one of an exact law first."""
    wrong = [one for one in report.wrong if one.finding == report.finding]
    exact = [one for one in wrong if one.exact and "difference" in one.evidence]
    compared = [one for one in wrong if "difference" in one.evidence]
    undecided = [one for one in report.results if one.status == Status.INCONCLUSIVE]
    return next(iter([*exact, *compared, *wrong, *undecided]), None)


def _evidence(report: "Report") -> Mapping[str, Any]:
    """That of the failure that is shown; nothing if there is none."""
    shown = shown_first(report)
    return {} if shown is None else shown.evidence


def _word(report: "Report") -> str:
    if report.failures:
        return "FAILED"
    if report.exit_code or not report.complete:
        return "UNDECIDED"
    return "XFAILED" if report.lossy_as_expected else "PASSED"


def _headline(report: "Report") -> str:
    if report.finding is not None:
        if _evidence(report).get("undrafted"):
            return UNDRAFTED
        word, colon, said = HEADLINES[report.finding].partition(":")
        when = _evidence(report).get("when")
        return f"{word}, {when}{colon}{said}" if when else f"{word}{colon}{said}"
    if report.exit_code or not report.complete:
        # What was not tried has a section of its own.
        return report.verdict.partition("; not tried: ")[0].removeprefix("INCONCLUSIVE: ")
    if report.lossy_as_expected:
        return "lossy, as expected, and nothing else was found"
    done = sum(one.status == Status.PASSED for one in report.results)
    left = sum(one.status == Status.NOT_RUN for one in report.results)
    if left:
        return f"no difference found in {done} of {done + left} checks; {left} not tried"
    return f"no difference from the target's distribution in {done} check{'s' * (done != 1)}"


def _sure(report: "Report") -> Iterator[str]:
    """How sure the verdict is."""
    wrong = [one for one in report.wrong if one.finding == report.finding]
    if report.lossy:
        exact = sum(one.exact for one in wrong)
        by = f"Found by {len(wrong)} check{'s' * (len(wrong) != 1)}"
        yield by + (f", {exact} of them exact: no sampling error there." if exact else ".")
        if exact < len(wrong):
            yield f"A lossless sampler gets this verdict with probability <= {report.alpha:g}."
    elif report.failures and not _evidence(report).get("undrafted"):
        left = report.counts[Status.NOT_RUN]
        yield "No check found a wrong distribution" + f"; {left} did not run." * bool(left)
    elif not report.exit_code and report.complete:
        yield from _power(report)


def _power(report: "Report") -> Iterator[str]:
    """What a pass would have found."""
    passed = [one for one in report.results if one.status == Status.PASSED]
    exact = [_distance(one) for one in passed if one.exact]
    if report.capabilities.greedy:
        yield from wrapped(report.power)
        return
    if exact:
        many = f"{len(exact)} check{'s' * (len(exact) != 1)}"
        yield f"{'exact':11}{many}: TV at most {max(exact):.1g}, which is rounding"
    if report.power_on_fixtures:
        yield from wrapped(f"{'sampled':11}{report.power_on_fixtures}", " " * 11)
    held = (one for one in report.strata if one.status == Status.PASSED)
    shifts = sorted((one for one in held if "detectable_shift" in one.evidence), key=_shift)
    if shifts:
        spread = f"{_shift(shifts[0]):.2g} to {_shift(shifts[-1]):.2g}"
        coarse = ", ".join(f"{_name(one)} {_shift(one):.2g}" for one in shifts[:-4:-1])
        said = f"{len(shifts)}: a shift of {spread} would be detected; least in {coarse}"
        yield from wrapped(f"{'situations':11}{said}", " " * 11)
    if not exact and not shifts and not report.power_on_fixtures:
        yield from wrapped(report.power)
    elif not shifts and not report.power_on_fixtures:
        yield "Not sampled: other shapes, independence of rows, repeated iterations."
        if report.options.profile == "smoke" and report.options.only is None:
            names = ", ".join(one.removeprefix("joint/probed-") for one in LONGER)
            certain = isinstance(report.contract, VerifyContract) and report.capabilities.one_hot
            none = "; any where draft_probs is None" * certain
            yield from wrapped(f"Not computed: the exact distributions {names}{none}.")
    else:
        yield f"Probability 0.999 of finding them; false positives {report.alpha:g} in all."


def _distance(one: CheckResult) -> float:
    return float(as_number(one.evidence["total_variation"]))


def _shift(one: CheckResult) -> float:
    return float(one.evidence["detectable_shift"])


def _where(report: "Report", shown: CheckResult) -> Iterator[str]:
    # Of blocks that depend on each other the law cannot be told.
    told = shown.finding != Finding.DEPENDENCE
    found: Difference | None = shown.evidence.get("difference") if told else None
    if found is None:
        yield from wrapped(f"{shown.id}: {shown.message}", taken=7)
        yield from wrapped(_tried(shown))
        yield from _located(report, shown)
        yield from wrapped(shown.growth)
    else:
        exactly = shown.evidence.get("total_variation")
        how = "sampled" if exactly is None else f"exact, TV {float(as_number(exactly)):.6f}"
        yield f"{shown.id}, {how}: {found['place']}"
        yield from _located(report, shown)
        yield from _compared(found)
        if exactly is None:
            yield from wrapped(shown.message)
            yield from wrapped(shown.growth)
    for why in dict.fromkeys(one.evidence.get("explanation") for one in report.failures):
        if why and why not in shown.message:
            yield from wrapped(why)
    trace = next((one.traceback for one in [shown, *report.failures] if one.traceback), ())
    yield from map(_narrow, trace[-FRAMES:])


def _narrow(line: str) -> str:
    """A line of a traceback in one of the screen: of a path, its end and the number are kept."""
    most, file = WIDTH - len(INDENT), '  File "'
    if len(line) > most and line.startswith(file):
        return f"{file}…{line[len(line) - most + len(file) + 1 :]}"
    return _cut(line, most)


def _located(report: "Report", shown: CheckResult) -> Iterator[str]:
    for place in found_at(shown):
        yield from wrapped(place)
    if shown.finding == Finding.LAW and "decision" not in shown.evidence:
        yield from wrapped(_unread(report))


def _unread(report: "Report") -> str:
    """The line of noise that is used in no known way; empty if all is, or nothing is known."""
    found = next(filter(None, (UNREAD.fullmatch(one.message) for one in report.results)), None)
    if found is None:
        return ""
    return (
        f"{Path(found['where']).name}: {found['call']} is neither compared with a threshold nor "
        "raced as exponential noise. Does the rule need this noise?"
    )


def found_at(shown: CheckResult) -> Iterator[str]:
    """The first wrong decision, and the situations it comes about in."""
    for key in ("decision", "split"):
        if found := shown.evidence.get(key):
            yield str(found["text"])


def _compared(found: Difference) -> Iterator[str]:
    """The worst first token and block, in a small table, and p and q at each position."""
    trials = found["trials"]
    block, first = found["blocks"][0], found["first_tokens"][0]
    has = "probability" if trials is None else f"of {trials:,}"
    yield f"{'':26}{has:>14}{'expected':>14}" + ("" if trials is None else f"{'std. error':>14}")
    for name, one in (("first token", first), ("output", block)):
        tokens = one["tokens"]
        what = f"{name} {tokens[0] if name == 'first token' else tuple(tokens)}"
        values = _shares(one, trials)
        apart = abs(float(as_number(one["observed"])) - float(as_number(one["expected"])))
        if trials is None and apart < 1e-9:
            yield f"{name:26}{'no difference':>28}"
        elif trials is None and apart < ROUNDED:
            yield f"{_cut(what, 26):26}{f'{apart:.0e} off: rounding':>28}"
        else:
            yield f"{_cut(what, 26):26}" + "".join(f"{value:>14}" for value in values)
    longest = 1 + max(len(_place(row)) for row in found["rows"])
    for row in found["rows"]:
        drawn = block["tokens"][len(row["prefix"])]
        q = "" if row["q"] is None else f"   q {row_text(row['q'], drawn)}"
        place = f"{_place(row):{max(15, longest)}}"
        yield from wrapped(f"{place} p {row_text(row['p'], drawn)}{q}", INDENT * 8)


def _place(row: Mapping[str, Any]) -> str:
    """The tokens before a position."""
    return f"after {tuple(row['prefix'])}" if row["prefix"] else "position 0"


def _tried(shown: CheckResult) -> str:
    """In which shapes a situation was tried, and with which p; empty if it is none."""
    name = shown.id.partition("/")[2]
    stratum = next((one for one in NAMED_STRATA if one.name == name), None)
    if stratum is None or "tried" not in shown.evidence:
        return ""
    few = f"; p {' or '.join(stratum.targets)}" * (stratum.targets != ORDINARY)
    return f"situation: {shown.evidence['tried']}{few}"


def _shares(one: Difference, trials: int | None) -> list[str]:
    if trials is None:
        expected, observed = numbers(one["expected"], one["observed"])
        return [observed, expected]
    p, seen = float(as_number(one["expected"])), float(as_number(one["observed"]))
    return [f"{seen:.2%}", f"{p:.2%}", f"{(p * (1 - p) / trials) ** 0.5:.2%}"]


def _cause(report: "Report") -> Iterator[str]:
    found, evidence = report.diagnosis, _evidence(report)
    if found is None:
        told = _of_dependence(report) or OF_OTHERS * bool(evidence.get("undrafted"))
        if said := told or why_unnamed(report):
            yield from wrapped(said, taken=14)
        return
    if elsewhere := of_situation(report):
        yield from elsewhere
        return
    exact = [_distance(one) for one in report.failures if one.exact]
    if exact and max(exact) <= MARGIN and not (found.known or _larger(report)):
        said = f"the largest exact distance, TV {max(exact):.2g}, is of the size that rounding has"
        yield from wrapped(f"No known bug is named: {said}.", taken=14)
        yield from wrapped(
            "Look for p or q in bfloat16, float16 or integers: docs/low-precision.md"
        )
        return
    first, place = next(iter(found.candidates), None), evidence.get("split", {}).get("place")
    at_an_end = f"{ENDS}: it is wrong {place}."
    if first is None or found.unseen or not (first.fits or first.resembles):
        decision = evidence.get("decision", {})
        if limit := _limit(evidence):
            said = limit
        elif made := decision.get("made"):
            said = f"{decision['name']} is drawn from {made}. {MADE_OF}"
        elif place:
            said = at_an_end
        elif decision.get("number") and not found.unseen:
            said = UNKNOWN.format("decision")
        elif not (decision or found.unseen) and _unread(report):
            said = UNKNOWN.format("noise")
        else:
            said = " ".join(str(found).split("\n1. ")[0].split())
        yield from wrapped(said, taken=14)
        yield from () if found.unseen else _less_likely(found.candidates[:2])
        return
    cases = f"{found.cases} case{'s' * (found.cases != 1)}"
    how = "Fits" if first.fits else "Resembles"
    drawn = f", {found.trials:,} samples" if found.trials else ", exactly"
    if place:
        yield from wrapped(at_an_end, taken=14)
    yield f"{how} what was seen on {cases}{drawn}"
    for entry, share in zip(first.entries[:FEW], first.strengths, strict=False):
        part = "" if share == 1 else f", in {share:.0%} of blocks"
        yield from wrapped(f"{entry.id}{part}: {entry.symptom}", INDENT)
        yield from wrapped(f"  {'Exact because' if entry.lossless else 'Fix'}: {entry.hint}")
    if published():
        yield from wrapped(f"More: {', '.join(map(address_of_bug, first.ids[:1]))}", INDENT)
    if first.cites:
        yield from wrapped(f"Seen in {', '.join(first.cites)}", INDENT)
    yield from _less_likely(found.candidates[1:3])


def _of_dependence(report: "Report") -> str:
    """What may make blocks depend on each other; empty of another finding."""
    shown = shown_first(report)
    if shown is None or shown.finding != Finding.DEPENDENCE:
        return ""
    if shown.evidence.get("decision", {}).get("number") == GIVEN:
        return OF_ANOTHER
    return SHARED.get(str(shown.evidence.get("between")), "")


def cause_in_short(report: "Report") -> str:
    """The likely cause and the fix in one paragraph, where a decision or situation tells it."""
    if of_situation(report) or _of_dependence(report):
        return " ".join(" ".join(report.summary.cause).split())
    return ""


def diagnosis_told(report: "Report") -> list[str]:
    """The headline of the diagnosis, and the bugs that are ranked, as the cause above has it."""
    found = report.diagnosis
    if found is None:
        return list(filter(None, [why_unnamed(report)]))
    headline, *ranking = str(found).split("\n1. ")
    if of_situation(report):  # bugs that are near without it would deny it
        return [CAUSE_ABOVE]
    return [headline, *(f"1. {one}" for one in ranking)]


def of_situation(report: "Report") -> list[str]:
    """What may be wrong if one row alone is right, without known bugs of such a row.

    Blocks of all situations together are a mixture, to which no known bug is compared.
    """
    found, evidence = report.diagnosis, _evidence(report)
    if found is None or (found.known and not found.unseen):
        return []
    if said := _of_temperature(evidence):
        heating = (
            "Fix: divide the logits of every row by its own temperature, once, before softmax."
        )
        return [*wrapped(said, taken=14), *wrapped(heating)]
    if not _situational(evidence):
        return []
    split = evidence["split"]
    wrong = [one for one in SITUATIONS if one.name in split["wrong"]]
    features = {x for one in wrong for x in one.features}
    if features & LENGTHS:  # whichever rows are wrong, too, lengths are what is read wrongly
        features -= {"empty"}
    hint = next((said for feature, said in HINTS.items() if feature in features), "")
    known = [ALL[id_] for id_ in split.get("known", ())]
    if known and wrong:
        names = " or ".join(one.id for one in known[:FEW])
        said = f"the output has exactly the distribution of {names}."
        lines = wrapped(f"{wrong[0].said[:1].upper()}{wrong[0].said[1:]}, {said}", taken=14)
        return [*lines, *wrapped(known[0].symptom), *wrapped(f"Fix: {known[0].hint} {hint}")]
    alone = "one row alone, with draft_probs," if "none" in features else "one row alone"
    right = f"No known bug is named: {alone} is right."
    return wrapped(f"{right} {hint}".rstrip(), taken=14)


def _of_temperature(evidence: Mapping[str, Any]) -> str:
    """What is wrong if everything is right at temperature 1; empty otherwise."""
    wrong = set(evidence.get("split", {}).get("wrong", ()))
    if not wrong or not wrong <= HEATED:
        return ""
    name = evidence.get("decision", {}).get("name", "").partition("[")[0]
    what = f"the logits of {USES.get(name, 'p or q')}"
    if not wrong & {COOLER, HOTTER}:  # it is right in a row that is alone
        said = f"The temperature of another row, or none, is applied to {what}."
        features = {x for one in SITUATIONS if one.name in wrong for x in one.features}
        return f"{said} {PADDED}" if features & LENGTHS else said
    return f"The temperature is applied wrongly, twice or not at all to {what}."


def _limit(evidence: Mapping[str, Any]) -> str:
    """What may be wrong if longer blocks alone are, in which a draft is never kept."""
    wrong = evidence.get("split", {}).get("lookaheads", ())
    found = NEVER.search(evidence.get("decision", {}).get("text", ""))
    if not wrong or found is None or int(found[1]) != min(wrong) - 1:
        return ""
    return LIMIT.format(found[1], ", ".join(map(str, wrong)))


def _larger(report: "Report") -> bool:
    """Whether some decision is further off than rounding explains, or right in one row alone."""
    decided = [one.evidence.get("decision", {}) for one in report.failures if one.exact]
    return _situational(_evidence(report)) or any(
        one.get("apart", 0.0) > MARGIN for one in decided
    )


def _situational(evidence: Mapping[str, Any]) -> bool:
    """Whether one row alone is right, and others are not: blocks of all are a mixture."""
    wrong = evidence.get("split", {}).get("wrong")
    return bool(wrong) and "alone" not in wrong


def _less_likely(others: Sequence[Candidate]) -> Iterator[str]:
    possible = [one for one in others if one.fits or one.resembles]
    ruled_out = [one for one in others if one not in possible]
    if possible:
        said = "; ".join(f"{one.title}, {one.match}" for one in possible)
        yield from wrapped(f"Less likely: {said}", INDENT)
    if ruled_out:
        said = "; ".join(f"{one.title} (off by {one.distance:.3f})" for one in ruled_out)
        yield from wrapped(f"Do not fit: {said}", INDENT)


def why_unnamed(report: "Report") -> str:
    """Why a lossy sampler was not compared with known bugs; empty if it was, or is not lossy."""
    if report.diagnosis is not None or not report.failures:
        return ""
    hung = any(r.finding == Finding.UNANSWERED or r.error for r in report.results)
    invalid = any(one.finding == Finding.CONTRACT for one in report.failures)
    blocked = any(
        result.stage == Stage.JOINT and result.message.startswith("blocked by")
        for result in report.results
    )
    if blocked and not hung and not invalid:
        return BY_ITSELF
    failing = {one.stage for one in report.failures if one.finding == Finding.LAW}
    alone = failing & ELSEWHERE and not failing & {Stage.JOINT, Stage.ACCEPTANCE}
    return NOT_COMPARED if alone else ""


def _also(report: "Report", shown: CheckResult | None) -> Iterator[str]:
    left = [one for one in report.wrong if one is not shown]
    if not left:
        return
    laws = [one for one in left if one.finding == Finding.LAW]
    yield f"{len(left)} check{'s' * (len(left) != 1)}"
    exact = [one for one in laws if one.exact]
    strata = [one for one in laws if one.stage == Stage.STRATA]
    sampled = [one for one in laws if one not in exact and one not in strata]
    told = [
        ("exact", [f"{_name(one)} {_distance(one):.3f}" for one in exact]),
        ("sampled", [_name(one) for one in sampled]),
        ("situations", [_name(one) for one in strata]),
    ]
    for kind, names in told:
        if names:
            yield from wrapped(f"{kind:11}{few(names, 9)}", " " * 11)
    others = (one for one in left if one not in laws)
    same = grouped((f"{one.finding}: {one.message}", one.id) for one in others)
    for said, ids in list(same.items())[:FEW]:
        yield from wrapped(_cut(f"{', '.join(ids[:3])}{' …' * (len(ids) > 3)}: {said}", SHORT))
    if len(same) > FEW:
        yield f"and {len(same) - FEW} more kinds: -v lists them"


def _name(one: CheckResult) -> str:
    return one.id if one.stage in SAMPLED and not one.exact else one.id.partition("/")[2]


def _untried(report: "Report") -> Iterator[str]:
    said = list(report.untried_by_reason.items())
    for number, (why, some) in enumerate(said[:LEFT_OUT]):
        told = f"{few(some, LEFT_OUT, '; ')} ({why}"
        yield from wrapped(told, taken=0 if number else 11)
    if len(said) > LEFT_OUT:
        yield f"and {len(said) - LEFT_OUT} more reasons: -v lists them"
    if not report.exit_code and (limits := UNTRIED.get(str(report.contract))):
        told = _cut(f"unless asked for: {'; '.join(limits)}", SHORT)
        yield from wrapped(told, taken=0 if said else 11)
    skipped = Counter(
        one.message for one in report.results if one.status == Status.NOT_RUN and not one.not_tried
    )
    for why, number in skipped.most_common(LEFT_OUT):
        keep = " (--keep-going samples there, too)" * why.startswith("settled by")
        told = f"{number} check{'s' * (number != 1)} {why}{keep}"
        yield from wrapped(told, taken=11)


def _counts(report: "Report") -> str:
    counted = [
        f"{report.counts[status]} {word}"
        for status, word in WORDS.items()
        if report.counts[status]
    ]
    other = report.counts[Status.NOT_APPLICABLE] - report.other_contracts
    counted += [f"{other} not applicable"] * bool(other)
    return f"{', '.join(counted)} · exit code {report.exit_code}"


def _next(report: "Report", shown: CheckResult | None) -> Iterator[str]:
    """What to type next."""
    if shown is not None:
        # Where a failure of smoke has blocked them, checks of stage joint name the bug.
        id_ = str(Stage.JOINT) if why_unnamed(report) == BY_ITSELF else shown.id
        command = asking_for(report, id_)
        if command and TENSORS in shown.message:
            command = f"{asking_for(report)} {TENSORS}"
        elif command and list(report.options.only or ()) == [id_]:  # it is the one that was typed
            command += " -v"
        yield from _typed(command or f'only=["{id_}"]')
        if shown.finding is not None:
            docs = address_of_finding(shown.finding) if published() else LISTED
            yield f"Docs: {docs}"
    elif not report.exit_code:
        if command := _after_a_pass(report):
            yield from _typed(command)
        if report.capabilities.rule is None and report.contract.rules:
            yield "The number of accepted tokens was not judged: declare --rule RULE."


def _after_a_pass(report: "Report") -> str:
    """A command that is not the one that was typed; empty if no command was."""
    asked, typed = report.options, ":" in report.name
    if asked.expected_failures:  # no command line has what is expected
        return ""
    if asked.profile == "smoke" or asked.only or asked.skip or asked.time_limit is not None:
        return asking_for(report) or 'profile="quick"'  # all checks
    if typed and report.contract.written and IMPORTED.fullmatch(report.name):
        return shlex.join(_words(report, "init"))  # a test for CI
    larger = LARGER.get(asked.profile)
    more = ["--profile", larger] if larger else ["-v"]
    return f"{asking_for(report)} {shlex.join(more)}" if typed else ""


def _typed(command: str) -> Iterator[str]:
    """A command in lines that a shell takes for one."""
    *lines, last = textwrap.wrap(
        f"Next: {command}", WIDTH - 2, subsequent_indent=" " * 6, break_on_hyphens=False
    )
    yield from (f"{line} \\" for line in lines)
    yield last


def asking_for(report: "Report", id_: str | None = None) -> str:
    """The command that runs a check again, or all; empty if the name is none of a command."""
    if ":" not in report.name:
        return ""
    options = report.options
    words = _words(report, "check")
    words += ["--seed", str(options.seed)] if options.seed else []
    words += shapes_asked_for(options)
    return shlex.join([*words, *(["--only", id_] if id_ else [])])


def _words(report: "Report", command: str) -> list[str]:
    """A command about the same target, contract, rule and claims."""
    options = report.options
    words = ["specref", command, report.name]
    if str(report.contract) != "verify":
        words += ["--contract", str(report.contract)]
    words += ["--rule", options.algorithm] if options.algorithm else []
    usual = asdict(Capabilities())
    for claim, value in options.claims.items():
        if claim in usual and value == usual[claim]:
            continue
        words += ["--declare", f"{claim}={_claimed(value)}"]
    return words


def shapes_asked_for(options: CheckOptions) -> list[str]:
    """The options --shape that ask for the same shapes and dtypes.

    Examples
    --------
    >>> from specref.conformance.strata.shape import Shape
    >>> shapes_asked_for(CheckOptions(shapes=(Shape(9, 2, 4),), dtypes=("float32",)))
    ['--shape', 'V=9,K=2,B=4,dtype=float32']
    """
    sizes = [f"V={one.vocabulary},K={one.lookahead},B={one.batch}" for one in options.shapes]
    last = [f",dtype={one}" for one in options.dtypes] or [""]
    asked = [f"{size}{last[0]}" for size in sizes]
    asked += [f"{sizes[-1]}{one}" for one in last[1:]]
    return [word for one in asked for word in ("--shape", one)]


def _claimed(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def few(names: Sequence[str], most: int, between: str = ", ") -> str:
    """So many names, and the number of the others."""
    more = f" and {len(names) - most} more" * (len(names) > most)
    return f"{between.join(names[:most])}{more}"


def wrapped(text: str, later: str = INDENT, taken: int = 0) -> list[str]:
    """A text in lines; so many columns are taken by what stands before the first."""
    lines = textwrap.wrap(
        text,
        WIDTH - len(INDENT),
        initial_indent=" " * taken,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line[taken:] if index == 0 else line for index, line in enumerate(lines)]
