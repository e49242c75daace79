"""Which of two rules accepts more drafts for every p and q: as a document, and as a record."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from specref.proofs.everywhere.comparison import AtLeast, Comparison, Gap, Relation
from specref.proofs.everywhere.rows import spelled_rows
from specref.report.all_rules import linked_argument
from specref.report.document import Bars, Document, Heading, Kind, Part, bullets
from specref.report.everywhere import ABOUT, box, laws_of, longer
from specref.report.layout import Column, Prose, Table
from specref.verification.dominance import LEFT_OUT, Answered, Question
from specref.vocabulary import Vocabulary

MANY = 4
"""Rules of one shape from which on their relations are a table as well."""
TURNED = {"more": "less", "less": "more", "at least": "at most", "at most": "at least"}
COLUMN = {"at least": "more", "at most": "less"}
COLUMNS = {
    "more": "accepts at least as many as",
    "equal": "as many as",
    "less": "at most as many as",
    "neither": "sometimes more, sometimes fewer than",
    "open": "open",
    "not run": "not run",
}
RELATIONS: Mapping[Relation, str] = MappingProxyType(
    {
        "equal": "Equal",
        "more": "At least as much, and more somewhere",
        "at least": "At least as much",
        "at most": "At most as much",
        "less": "At most as much, and less somewhere",
        "neither": "Neither at least as much as the other",
        "open": "Open",
    }
)
UNDECIDED = ("open", "not run")
GROUPS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "One rule never accepts fewer than the other": ("more", "at least", "less", "at most"),
        "Two rules accept as many": ("equal",),
        "Sometimes more, sometimes fewer": ("neither",),
        "Open": UNDECIDED,
    }
)
"""{heading: the relations below it}, in the order in which readers look for them."""
COMPARED = (
    "Of a block all tokens but the last are accepted drafts, in one iteration, or all tokens that "
    "two iterations emit, the second in the context that the first leaves; tokens that greedy "
    "block verification owes later are none. `a against b` are expected numbers; rows of p and q "
    "that an example does not name are uniform. Several drafts are two at each position, trees "
    "have two siblings first, estimates of a companion are any numbers in [0, 1]: entries of the "
    "draft model's rows after more tokens than are drafted, as q(·|a a a b) at lookahead 2. "
    "Autoregressive decoding accepts no draft: every rule accepts at least as many. The published "
    "companion rule is lossy, and is not compared. Closed forms are those of W(x), the "
    "probability that the accepted drafts start with x, for each x up to the lookahead; those of "
    "Table 2 (Timor et al. 2025) for each x of one token. The optimum of transport is the sum of "
    "W(x) over these."
)
COUNTED = (
    "Every token of a block but the last counts as an accepted draft: a rule that may end a block "
    "with a draft is not compared rightly."
)
STYLES = {"neither": "bold", "open": "bold yellow", "at least": "bold green", "more": "bold green"}


def comparison_document(
    left: str,
    right: str,
    found: Sequence[Comparison],
    left_out: Sequence[str],
    budget: float | None = None,
) -> Document:
    """What is proved of two rules over each pair of vocabularies, and where they differ.

    * `budget`: The seconds that a claim had, for what to try where one is open.
    """
    proved = bool(found) and all(one.at_least.proved for one in found)
    kind: Kind = "bad" if any(one.less for one in found) else "good" if proved else "open"
    headlines = dict.fromkeys(RELATIONS[one.relation] for one in found)
    parts: list[Part] = []
    for one in found:
        parts.append(Heading(f"Over {box(one.target, one.drafter, one.lookahead)}"))
        parts.append(Prose(answer(left, right, one), STYLES.get(one.relation, "")))
        parts.append(Prose(f"  {counts(left, right, one)}"))
        for name, premise in ((left, one.at_most.premise), (right, one.at_least.premise)):
            if premise is None:
                parts.append(Prose(f"  whether {name} is lossless was not asked"))
        parts += [_bars(left, right, one, gap) for gap in (one.more, one.less) if gap]
    if budget and any(_is_open(one) for one in found):
        parts.append(Prose(longer(budget)))
    parts += [Prose(f"not applicable to {one}") for one in left_out]
    if found and found[0].iterations == 1:
        parts.append(Prose(COUNTED, "dim"))
    verdict = "; ".join(headlines) or "Nothing was compared"
    return Document(f"{left} against {right}", kind, verdict, parts, [Prose(ABOUT, "dim")])


def _is_open(found: Comparison) -> bool:
    """Whether some claim, or premise of one, is neither proved nor refuted."""
    premises = (found.at_least.premise, found.at_most.premise)
    undecided = any(one is not None and one.verdict == "open" for one in premises)
    return found.relation == "open" or undecided


def _bars(left: str, right: str, found: Comparison, gap: Gap) -> Bars:
    what = "tokens" if found.iterations > 1 else "accepted drafts"
    return Bars(
        f"Expected {what} at {spelled_rows(gap.rows, found.target, found.drafter)}",
        [
            (left, str(gap.left), [("expected", float(gap.left))]),
            (right, str(gap.right), [("observed", float(gap.right))]),
        ],
    )


def answer(left: str, right: str, found: Comparison) -> str:
    """Whether one rule accepts at least as much as another: yes, no, or open; and the sentence."""
    if found.relation != "open" or not found.less:
        said = sentence(left, right, found)
        if said.startswith("open"):
            return f"O{said[1:]}"
        told = "No" if found.less else "Yes" if found.at_least.proved else "Open"
        return f"{told}{_but_lossy(left, right, found)}: {said}"
    does, what = _counted(found)
    premise = found.at_most.premise
    why = ""
    if premise is not None and not premise:
        open_ = premise.verdict == "open"
        why = f", since {f'whether {left} is lossless is open' if open_ else f'{left} is lossy'}"
    rows = f"every p and q over {box(found.target, found.drafter, found.lookahead)}"
    return (
        f"No: {right} {does} more {what} at {_gap(found, found.less, True)}. Whether it {does} at "
        f"least as many for {rows}, is open ({_undecided(found, found.at_most)}){why}."
    )


def _but_lossy(left: str, right: str, found: Comparison) -> str:
    """Which of the two is lossy: what it accepts is no argument for it."""
    premises = {left: found.at_most.premise, right: found.at_least.premise}
    lossy = [name for name, one in premises.items() if one is not None and one.verdict == "lossy"]
    return f", but {' and '.join(lossy)} {'are' if lossy[1:] else 'is'} lossy" if lossy else ""


def sentence(left: str, right: str, found: Comparison) -> str:
    """The relation of two rules in a sentence, with rows at which they differ."""
    rows = f"for every p and q over {box(found.target, found.drafter, found.lookahead)}"
    proved = f"({_regions(found)}, error of the identity tests <= 2^-{found.bits})"
    does, what = _counted(found)
    if found.relation == "equal":
        return f"{left} {does} as many {what} as {right} in expectation, {rows} {proved}."
    if found.relation in ("more", "at least", "less", "at most"):
        turned = found.relation in ("less", "at most")
        great, small = (right, left) if turned else (left, right)
        gap = found.less if turned else found.more
        strict = f"; more at {_gap(found, gap, turned)}" if gap else ""
        return (
            f"{great} {does} at least as many {what} as {small} in expectation, {rows} "
            f"{proved}{strict}."
        )
    known = [
        f"{name} {does} more at {_gap(found, gap, turned)}"
        for name, gap, turned in ((left, found.more, False), (right, found.less, True))
        if gap
    ]
    if found.relation == "neither":
        return (
            f"neither of {left} and {right} {does} at least as many {what} as the other "
            f"{rows}: {'; '.join(known)}."
        )
    said = f": {'; '.join(known)}" if known else ""
    undecided = _undecided(found, found.at_least, found.at_most) + _why(found)
    return f"open for {left} and {right}, {rows} ({undecided}){said}."


def _counted(found: Comparison) -> tuple[str, str]:
    if found.iterations == 1:
        return "accepts", "drafts"
    return "emits", f"tokens in {found.iterations} iterations"


def formula_sentence(rule: str, formula: str, found: Comparison) -> str:
    """Whether a rule accepts what a formula says, in a sentence."""
    rows = f"for every p and q over {box(found.target, found.drafter, found.lookahead)}"
    if found.relation == "equal":
        return (
            f"What {rule} accepts is {formula}, {rows} ({_regions(found)}, error of the identity "
            f"tests <= 2^-{found.bits})."
        )
    gap = found.more or found.less
    if gap:
        return f"What {rule} accepts is not {formula}: at {_gap(found, gap, False)}."
    return f"Whether what {rule} accepts is {formula} is open, {rows} ({_regions(found)})."


def answer_sentence(answer: Answered) -> str:
    asked = answer.question
    if answer.found is None:
        return f"{asked.left} and {asked.right}: not run: {answer.note}."
    say = formula_sentence if asked.is_formula else sentence
    said = say(asked.left, asked.right, answer.found)
    return said[0].upper() + said[1:] if said.startswith(("neither", "open")) else said


class Told(NamedTuple):
    """A question, and what is said of it; how long it took, if it was asked now."""

    question: Question
    relation: str
    sentence: str
    seconds: float | None = None


def told(answer: Answered) -> Told:
    relation = "not run" if answer.found is None else answer.found.relation
    return Told(answer.question, relation, answer_sentence(answer), answer.seconds)


def dominance_document(
    answers: Sequence[Told], command: str = "", *, linked: bool = True
) -> Document:
    """Which rules accept more than which, and which closed forms hold."""
    formulas = [one for one in answers if one.question.is_formula]
    rules = [one for one in answers if not one.question.is_formula]
    refuted = sum(one.relation not in ("equal", *UNDECIDED) for one in formulas)
    undecided = sum(one.relation in UNDECIDED for one in answers)
    kind: Kind = "bad" if refuted else "open" if undecided else "good"
    verdict = (
        f"{refuted} closed forms are refuted" if refuted
        else f"{undecided} of {len(answers)} questions are open" if undecided
        else f"All {len(answers)} questions are decided"
    )  # fmt: skip
    several = [one for one in rules if one.question.iterations > 1]
    once = [one for one in rules if one.question.iterations == 1]
    parts = _by_relation(once)
    if several:
        parts += [Heading("In two iterations"), *_sentences(_by_rank(several)), ""]
    if formulas:
        parts += [Heading("Closed forms"), *_sentences(_by_rank(formulas)), ""]
    parts += _by_shape(once)
    written = f"Written by `{command}`. " if command else ""
    more = [
        Heading("What is compared"),
        Prose(f"{written}{linked_argument(linked=linked)} says by what argument. {COMPARED}"),
        Heading("What is not asked"),
        *bullets(LEFT_OUT),
    ]
    return Document("Which rule accepts more, for every p and q", kind, verdict, parts, more)


def _sentences(answers: Sequence[Told]) -> list[Part]:
    return bullets(
        [
            one.sentence if one.seconds is None else f"{one.sentence} {one.seconds:.1f} s"
            for one in answers
        ]
    )


def _by_relation(answers: Sequence[Told]) -> list[Part]:
    """The sentences below what they say: what is proved first, what is open last."""
    parts: list[Part] = []
    for title, relations in GROUPS.items():
        if some := [one for one in answers if one.relation in relations]:
            parts += [Heading(title), *_sentences(some), ""]
    return parts


def _by_rank(answers: Sequence[Told]) -> list[Told]:
    order = [relation for relations in GROUPS.values() for relation in relations]
    return sorted(answers, key=lambda one: order.index(one.relation))


def _by_shape(answers: Sequence[Told]) -> list[Part]:
    """A table of each pair of vocabularies and lookahead that was asked of many rules."""
    shapes: dict[tuple[object, ...], list[Told]] = {}
    for one in answers:
        asked = one.question
        shapes.setdefault((asked.target, asked.drafter, asked.lookahead), []).append(one)
    parts: list[Part] = []
    for several in shapes.values():
        asked = several[0].question
        over = box(Vocabulary(asked.target), Vocabulary(asked.drafter), asked.lookahead)
        if overview := _overview(several):
            parts += [Heading(f"Over {over}"), *overview]
    return parts


def _overview(answers: Sequence[Told]) -> list[Part]:
    """Of each rule, which it accepts more than, as many as, and so on."""
    relations: dict[str, dict[str, list[str]]] = {}
    for one in answers:
        sides = one.question.left, one.question.right
        for (name, other), said in (
            (sides, one.relation),
            (sides[::-1], TURNED.get(one.relation, one.relation)),
        ):
            relations.setdefault(name, {}).setdefault(COLUMN.get(said, said), []).append(other)
    if len(relations) < MANY:
        return []
    columns = [one for one in COLUMNS if any(one in found for found in relations.values())]
    rows = [
        [name, *(", ".join(found.get(column, [])) for column in columns)]
        for name, found in relations.items()
    ]
    return [Table([Column("rule"), *(Column(COLUMNS[x], folds=True) for x in columns)], rows), ""]


def comparison_record(left: str, right: str, found: Sequence[Comparison]) -> dict[str, object]:
    return {
        "rule": left,
        "against": right,
        "comparisons": [
            {
                "relation": one.relation,
                "target": list(map(str, one.target.tokens)),
                "drafter": list(map(str, one.drafter.tokens)),
                "lookahead": one.lookahead,
                "iterations": one.iterations,
                "at_least": _claim(one.at_least),
                "at_most": _claim(one.at_most),
                "more": _gap_record(one.more),
                "less": _gap_record(one.less),
                "solver_calls": one.counts.calls,
                "error_bits": one.bits,
                "seconds": round(one.seconds, 3),
            }
            for one in found
        ],
    }


def answers_record(answers: Sequence[Answered]) -> list[dict[str, object]]:
    return [
        {
            **comparison_record(
                one.question.left, one.question.right, [] if one.found is None else [one.found]
            ),
            "target": one.question.target,
            "drafter": one.question.drafter,
            "lookahead": one.question.lookahead,
            "iterations": one.question.iterations,
            "sentence": answer_sentence(one),
            "seconds": one.seconds,
        }
        for one in answers
    ]


def _claim(claim: AtLeast) -> dict[str, object]:
    return {
        "proved": claim.proved,
        "for_each_text": claim.by_text,
        "regions": claim.regions,
        "open": claim.open,
        "other_is": None if claim.premise is None else claim.premise.verdict,
    }


def _gap_record(gap: Gap | None) -> dict[str, object] | None:
    if gap is None:
        return None
    return {
        "rows": laws_of(gap.rows),
        "left": str(gap.left),
        "right": str(gap.right),
        "texts": gap.texts,
    }


def _regions(found: Comparison) -> str:
    return _counted_as(found.at_least.regions + found.at_most.regions, "region")


def _undecided(found: Comparison, *claims: AtLeast) -> str:
    """How far claims came; pieces are left out where none is open, and other things are missing.

    A rule that has to be lossless may be lossy or open, or Ctrl-C came.
    """
    pieces = sum(one.open for one in claims)
    told = [_regions(found)]
    told += [f"{_counted_as(pieces, 'piece')} open"] if pieces else []
    told += ["stopped before the end"] if found.interrupted else []
    return ", ".join(told)


def _counted_as(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _why(found: Comparison) -> str:
    """What is missing besides open pieces: a rule that is not shown to be lossless."""
    premises = [one.premise for one in (found.at_least, found.at_most)]
    bad = [one.verdict for one in premises if one is not None and not one]
    return f"; a rule that has to be lossless is {bad[0]}" if bad else ""


def _gap(found: Comparison, gap: Gap | None, turned: bool) -> str:
    assert gap is not None
    first, second = (gap.right, gap.left) if turned else (gap.left, gap.right)
    return f"{spelled_rows(gap.rows, found.target, found.drafter)}: {first} against {second}"


def counts(left: str, right: str, found: Comparison) -> str:
    """What the claim rests on, and what it took."""
    premises = [
        f"{name} is {claim.premise.verdict}, by {claim.premise.regions} regions of its own"
        for name, claim in ((right, found.at_least), (left, found.at_most))
        if claim.premise is not None
    ]
    named = ["rows that are not named are uniform"] if found.more or found.less else []
    asked = [f"{found.counts.calls:,} calls of z3", f"{found.seconds:.1f} s"]
    return "; ".join([*premises, *named, *asked])
