"""The verdict on a user's rule: as a document, and as a record."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from specref.chance import shown
from specref.distributions import Probability
from specref.pairs import Pair
from specref.proofs.exact import Difference
from specref.proofs.reached import Unreached
from specref.report.document import Bars, Document, Heading, Kind, Part
from specref.report.forms import Exact, Ids, Whole
from specref.report.layout import Column, Prose, Table
from specref.verification import Enumerated, Refutation, RuleReport
from specref.verification.rules import MAX_TEXTS, MOST_PATHS, notes_of
from specref.vocabulary import Vocabulary

MOST_SHARES = 4


def rule_document(name: str, report: RuleReport) -> Document:
    """The counts, the smallest counterexample with its trace, the first error, the situations."""
    kind, verdict = headline(report)
    title = f"{name} under specref prove"
    if report.outside:
        why = [Prose(outside_chance(report))]
        return Document(title, kind, verdict, [Prose(f"{name}: neither proved nor refuted")], why)
    parts: list[Part] = [Prose(f"{name}: {counts(report)}")]
    if report.refuted:
        parts += [Prose("LOSSY", "bold red"), Prose(_refutation(report.refuted[0]))]
    if report.raised:
        parts.append(Prose(f"first error: {first_error(report)}", "red"))
    elif report.proved and not report.refuted:
        parts.append(_lossless(report))
    if not report.proved or report.refuted or report.raised or report.never_ran is None:
        parts.append(Prose(never_ran(report.never_ran), "dim"))
    parts += ["", enumerated_table(report), "", Prose(not_enumerated(report), "dim")]
    pictures = pictures_of(report.refuted[0]) if report.refuted else []
    return Document(title, kind, verdict, parts, pictures)


def headline(report: RuleReport) -> tuple[Kind, str]:
    """The verdict in a few words."""
    if report.outside:
        return "open", "Neither proved nor refuted"
    if report.refuted:
        return "bad", "Lossy"
    if report.raised:
        return "open", "It raised an error: not tested"
    if not report.proved:
        return "open", "Nothing was proved"
    if report.cut_off:
        return "open", "No difference yet"
    some = " that was judged" if report.not_applicable or report.too_large else ""
    return "good", f"Lossless on every case{some}, by exact enumeration"


def _lossless(report: RuleReport) -> Prose:
    if report.cut_off:
        return Prose(f"no difference yet, {report.cut_off} cases not reached", "bold")
    where = " that it is defined for" if report.not_applicable else ""
    but = ", but for those not judged" if report.too_large else ""
    unseen = f"; {report.never_ran}" if report.never_ran else ""
    return Prose(f"LOSSLESS on every case{where}{but}{unseen}", "bold green")


def pictures_of(refutation: Refutation) -> list[Part]:
    """The probability that is off, and the rows of p and q there."""
    pair = refutation.case.pair
    found: list[Part] = [bars_of(refutation.difference)]
    if pair.same_vocabulary:
        start = refutation.case.context
        p, q = (model.next_token(start) for model in (pair.target, pair.drafter))
        rows = [
            (f"token {token}", f"p = {p[token]}, q = {q[token]}",
             [("expected", float(p[token])), ("observed", float(q[token]))])
            for token in range(len(p)) if p[token] or q[token]
        ]  # fmt: skip
        keys = "p, the target's row", "q, the draft model's"
        found.append(Bars(f"After {start}", rows, keys))
    return [Heading("As pictures"), *found]


def bars_of(difference: Difference) -> Bars:
    """The probability that a rule gets wrong, beside the target's."""
    both = (("the target's", "expected", difference.expected),
            ("this rule's", "observed", difference.output))  # fmt: skip
    entries = [(name, str(value), [(kind, float(value))]) for name, kind, value in both]
    return Bars(f"Probability of {difference.tokens}", entries)


def never_ran(found: Unreached | None) -> str:
    """Which lines of a rule did not run, in a sentence."""
    if found is None:
        return "Which lines of the rule ran was not watched."
    return f"{found}." if found else f"Every line of {found.file} that the rule may call ran."


def enumerated_table(report: RuleReport) -> Table:
    """What "proved" is about."""
    columns = [
        Column("situation"),
        *(Column(title) for title in ("V", "context", "lookahead")),
        *(Column(title, right=True) for title in ("pairs", "cases", "proved", "paths")),
    ]
    return Table(columns, [_situation(row) for row in report.enumerated])


def _situation(row: Enumerated) -> list[str]:
    ranges = map(_range, (row.vocabularies, row.contexts, row.lookaheads))
    numbers = (row.pairs, row.cases, row.proved, row.paths)
    return [row.situation, *ranges, *map("{:,}".format, numbers)]


def _range(values: Sequence[int]) -> str:
    if len(values) > 2:
        return f"{values[0]} to {values[-1]}"
    return ", ".join(map(str, values)) or "none"


def not_enumerated(report: RuleReport) -> str:
    """What the columns mean, and of what nothing is said."""
    judged = [row for row in report.enumerated if row.cases]
    if not judged:
        return "No case was judged."
    longest, largest, drafts = (
        max(values[-1] for values in each)
        for each in zip(
            *((row.contexts, row.vocabularies, row.lookaheads) for row in judged), strict=True
        )
    )
    smallest = min(row.smallest for row in judged if row.smallest)
    return (
        "V: tokens of the target; context: tokens before the first draft; 'a to b': some values "
        "between; paths: random paths enumerated. Each pair is a target and a draft model with "
        "given rows. Not tested: other rows, so that a difference that none of these paths meets "
        f"is not found; V above {largest:,}, contexts of more than {longest:,} tokens, lookaheads "
        f"of 0 or above {drafts}, and p or q below {smallest} in a first row."
    )


def first_error(report: RuleReport) -> str:
    """The first error that the rule raised, and on which case."""
    case, error = report.raised[0]
    where = "".join(f" ({note})" for note in notes_of(error))
    return f"{type(error).__name__} on {case}: {error}{where}"


def outside_chance(report: RuleReport) -> str:
    """Why the rule cannot be judged, if it made decisions that `chance` does not see; else ""."""
    if report.outside is None:
        return ""
    case, error = report.outside
    return f"{error} (on {case}); every decision must come from chance.draw or chance.accept"


@dataclass(frozen=True)
class Share:
    branch: str
    probability: Exact


@dataclass(frozen=True)
class Counterexample:
    case: str
    total_variation: Exact
    difference: str
    block: Sequence[Whole]
    shares: Annotated[
        Sequence[Share],
        "What the probability of `difference` is the sum of: the verdicts on drafts and the last "
        "draw that lead there.",
    ]
    trace: Ids


@dataclass(frozen=True)
class Raised:
    case: str
    type: str
    error: str


NeverRan: TypeAlias = Annotated[
    Unreached | None,
    "Lines of the rule's file of which nothing ran, and lines of which a part did not.",
]


@dataclass(frozen=True)
class RuleRecord:
    """What ``specref prove`` writes as JSON."""

    rule: str
    proved: Annotated[Whole, "Cases that were proved."]
    not_applicable: Annotated[Whole, "Cases with a text that a tokeniser cannot read."]
    not_run: Annotated[Whole, "Cases over two vocabularies, without --pairs all."]
    paths: Annotated[Whole, "Random paths that were enumerated."]
    too_large: Annotated[Whole, "Cases that were not judged."]
    cut_off: Annotated[Whole, "Cases that were not reached."]
    outside_chance: Annotated[str | None, "Why the rule cannot be judged, if it cannot."]
    enumerated: Annotated[Sequence[Enumerated], "What was enumerated, by situation."]
    never_ran: NeverRan
    refuted: Annotated[Sequence[Counterexample], "The counterexamples, the smallest first."]
    raised: Sequence[Raised]


def rule_record(name: str, report: RuleReport) -> RuleRecord:
    return RuleRecord(
        rule=name,
        proved=report.proved,
        not_applicable=report.not_applicable,
        not_run=report.not_run,
        paths=report.paths,
        too_large=report.too_large,
        cut_off=report.cut_off,
        outside_chance=outside_chance(report) or None,
        enumerated=report.enumerated,
        never_ran=report.never_ran,
        refuted=list(map(_counterexample, report.refuted)),
        raised=[
            Raised(str(case), type(error).__name__, str(error)) for case, error in report.raised
        ],
    )


def _counterexample(refutation: Refutation) -> Counterexample:
    return Counterexample(
        str(refutation.case),
        str(refutation.total_variation),
        str(refutation.difference),
        refutation.block,
        [Share(branch, str(share)) for branch, share in refutation.shares],
        refutation.trace.splitlines(),
    )


def counts(report: RuleReport) -> str:
    """How many cases were proved, refuted and left open."""
    told = [
        f"{report.proved} cases proved lossless",
        f"{len(report.refuted)} refuted",
        f"{len(report.raised)} raised an error",
    ]
    if report.not_applicable:
        told.append(f"{report.not_applicable} n/a (a text that one tokeniser cannot read)")
    if report.not_run:
        told.append(f"{report.not_run} not run (two vocabularies: --pairs all)")
    if report.too_large:
        limits = f"more than {MOST_PATHS:,} paths or {MAX_TEXTS:,} texts"
        told.append(f"{report.too_large} not judged ({limits})")
    if report.cut_off:
        told.append(f"{report.cut_off} not reached")
    return f"{', '.join(told)}; {report.paths:,} paths"


def _refutation(refutation: Refutation) -> str:
    pair, block = refutation.case.pair, refutation.block
    ends = pair.target.vocabulary.ends
    gone_on = any(ends(block[:length]) for length in range(1, len(block)))
    after_eos = ", which goes on after EOS" * gone_on
    start = refutation.case.context if pair.same_vocabulary else ()
    p, q = (shown(model.next_token(start)) for model in (pair.target, pair.drafter))
    lines = [
        f"smallest counterexample: {refutation.case}",
        f"  p = ({p}), q = ({q}) at {'that' if start else 'the empty'} context",
        *(f"  {line}" for line in _vocabulary_lines(pair)),
        f"  total variation of the completed block: {refutation.total_variation}",
        f"  {refutation.difference}",
        *sum_of(refutation.difference, refutation.shares),
        *_later_rows(refutation),
        f"  a path, block {block}{after_eos}:",
        *("    " + line for line in refutation.trace.splitlines()),
    ]
    return "\n".join(lines)


def sum_of(difference: Difference, shares: Sequence[tuple[str, Probability]]) -> list[str]:
    """What the probability of a difference is the sum of, if it is of several paths."""
    shares = shares if len(shares) > 1 else ()
    lines = [f"  {difference.output} is the sum of"] * bool(shares)
    lines += [f"    {share} {branch}" for branch, share in shares[:MOST_SHARES]]
    if rest := shares[MOST_SHARES:]:
        lines.append(f"    {sum(share for _, share in rest)} {len(rest)} more")
    return lines


def _later_rows(refutation: Refutation) -> list[str]:
    """The rows after the first tokens of the difference."""
    case, tokens = refutation.case, refutation.difference.tokens
    lines = []
    for n in range(1, len(tokens)):
        after = (*case.context, *tokens[:n])
        line = f"  after {tokens[:n]}: p = ({shown(case.pair.target.next_token(after))})"
        if case.pair.same_vocabulary and n < case.lookahead:
            line += f", q = ({shown(case.pair.drafter.next_token(after))})"
        lines.append(line)
    return lines


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
