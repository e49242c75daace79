"""The verdict on a user's rule: as text, and as a record."""

from rich.console import Group, RenderableType

from specref.pairs import Pair
from specref.report.layout import Prose
from specref.verification import Refutation, RuleReport
from specref.vocabulary import Vocabulary


def rule_report(name: str, report: RuleReport) -> RenderableType:
    """The counts, the smallest counterexample with its trace, and the first error."""
    if report.outside:
        return Prose(f"{name}: neither proved nor refuted")
    parts = [Prose(f"{name}: {_counts(report)}")]
    if report.refuted:
        parts += [Prose("LOSSY", "bold red"), Prose(_refutation(report.refuted[0]))]
    if report.raised:
        parts.append(Prose(f"first error: {first_error(report)}", "red"))
    elif report.proved and not report.refuted:
        where = " that it is defined for" if report.not_applicable else ""
        parts.append(Prose(f"LOSSLESS on every case{where}", "bold green"))
    return Group(*parts)


def first_error(report: RuleReport) -> str:
    """The first error that the rule raised, and on which case."""
    case, error = report.raised[0]
    return f"{type(error).__name__} on {case}: {error}"


def outside_chance(report: RuleReport) -> str:
    """Why the rule cannot be judged, if it made decisions that `chance` does not see; else ""."""
    if report.outside is None:
        return ""
    case, error = report.outside
    return f"{error} (on {case}); every decision must come from chance.draw or chance.accept"


def rule_record(name: str, report: RuleReport) -> dict[str, object]:
    """A record with every counterexample."""
    return {
        "rule": name,
        "proved": report.proved,
        "not_applicable": report.not_applicable,
        "not_run": report.not_run,
        "paths": report.paths,
        "outside_chance": outside_chance(report) or None,
        "refuted": [
            {
                "case": str(refutation.case),
                "total_variation": str(refutation.total_variation),
                "difference": str(refutation.difference),
                "block": refutation.block,
                "trace": refutation.trace.splitlines(),
            }
            for refutation in report.refuted
        ],
        "raised": [
            {"case": str(case), "type": type(error).__name__, "error": str(error)}
            for case, error in report.raised
        ],
    }


def _counts(report: RuleReport) -> str:
    counts = [
        f"{report.proved} cases proved lossless",
        f"{len(report.refuted)} refuted",
        f"{len(report.raised)} raised an error",
    ]
    if report.not_applicable:
        counts.append(f"{report.not_applicable} n/a (a text that one tokeniser cannot read)")
    if report.not_run:
        counts.append(f"{report.not_run} not run (two vocabularies: --pairs all)")
    return f"{', '.join(counts)}; {report.paths:,} paths"


def _refutation(refutation: Refutation) -> str:
    pair, block = refutation.case.pair, refutation.block
    ends = pair.target.vocabulary.ends
    gone_on = any(ends(block[:length]) for length in range(1, len(block)))
    after_eos = ", which goes on after EOS" * gone_on
    p, q = (", ".join(map(str, model.next_token(()))) for model in (pair.target, pair.drafter))
    lines = [
        f"smallest counterexample: {refutation.case}",
        f"  p = ({p}), q = ({q}) at the empty context",
        *(f"  {line}" for line in _vocabulary_lines(pair)),
        f"  total variation of the completed block: {refutation.total_variation}",
        f"  {refutation.difference}",
        f"  a path, block {block}{after_eos}:",
        *("    " + line for line in refutation.trace.splitlines()),
    ]
    return "\n".join(lines)


def _vocabulary_lines(pair: Pair) -> list[str]:
    target, drafter = pair.target.vocabulary, pair.drafter.vocabulary
    if pair.same_vocabulary and target.eos == drafter.eos:
        return [f"EOS = {_eos(target)}"] if target.eos is not None else []
    return [
        f"{name}'s tokens: {', '.join(map(repr, vocabulary.tokens))}"
        + (f"; EOS = {_eos(vocabulary)}" if vocabulary.eos is not None else "")
        for name, vocabulary in (("target", target), ("drafter", drafter))
    ]


def _eos(vocabulary: Vocabulary) -> str:
    assert vocabulary.eos is not None
    return f"token {vocabulary.ids[vocabulary.eos]} {vocabulary.eos!r}"
