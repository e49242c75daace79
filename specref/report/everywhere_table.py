"""The table of rules, proved or refuted for every p and q."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from specref.report.layout import Column, Prose, Table
from specref.verification.everywhere import Answer, Box
from specref.verification.questions import QUESTIONS

ARGUMENT = "../proofs-for-all-p-and-q.md"
STYLES = {"proved": "green", "lossy": "red", "open": "yellow"}
HEADINGS = (
    *("rule", "tokens", "lookahead", "verdict"),
    *("regions", "lossy", "open", "equations", "z3", "s"),
)
LEGEND = (
    "A row is one rule over all rows of p and q of these vocabularies, zeros, ties, equal rows "
    "and point masses included. proved: lossless for all of them; lossy: with rows at which it is"
    " refuted; open: neither. regions: sets of rows on which every path runs alike, summed over "
    "completed outcomes; lossy: of these, how many have rows at which the rule is refuted; open: "
    "how many pieces are not decided; equations: pieces on which an equation holds; z3: calls of "
    "the solver; s: of the processor."
)


def everywhere_table(answers: Sequence[Answer]) -> RenderableType:
    """A row for each rule and size, and what was not as known."""
    return Group(
        answer_rows(answers),
        "",
        Prose(LEGEND, "dim"),
        *(Prose(line, "red") for line in unexpected(answers)),
        Prose(summary(answers), "bold"),
    )


def answer_rows(answers: Sequence[Answer]) -> Table:
    columns = [
        *(Column("rule"), Column("tokens"), Column("n", right=True), Column("verdict")),
        *(Column(name, right=True) for name in ("regions", "lossy", "open", "equations")),
        *(Column(name, right=True) for name in ("z3", "s")),
    ]
    rows: list[list[Text | str]] = [
        [
            answer.box.rule,
            size(answer.box),
            str(answer.box.lookahead),
            Text(answer.verdict, STYLES.get(answer.verdict, "")),
            *map("{:,}".format, (answer.regions, answer.lossy, answer.open, answer.equations)),
            f"{answer.calls:,}",
            f"{answer.seconds:.1f}",
        ]
        for answer in answers
    ]
    return Table(columns, rows)


def unexpected(answers: Sequence[Answer]) -> list[str]:
    """What is not as the tables of rules and of the zoo say, and what was not run."""
    wrong = [answer for answer in answers if not answer.as_known]
    told = [f"not as known: {one.box.rule} over {size(one.box)} is {one.verdict}" for one in wrong]
    return told + [
        f"not run: {one.box.rule}: {one.note}" for one in answers if one.verdict == "not run"
    ]


def summary(answers: Sequence[Answer]) -> str:
    """How many of each verdict."""
    verdicts = [answer.verdict for answer in answers]
    names = [name for name in ("proved", "lossy", "open", "n/a", "not run") if name in verdicts]
    return ", ".join(f"{verdicts.count(name)} {name}" for name in names)


def within_docs(file: str) -> bool:
    """Whether a page that is written there is in a folder of docs, so that it has links."""
    return (Path(file).resolve().parent / ARGUMENT).is_file()


def linked_argument(*, linked: bool) -> str:
    """The page that says what such a proof is: a link from records, else its name."""
    name = f"docs/{Path(ARGUMENT).name}"
    return f"[{name}]({ARGUMENT})" if linked else name


def everywhere_page(
    answers: Sequence[Answer], command: str, *, zoo: bool = False, linked: bool = True
) -> str:
    """The table in Markdown, with where lossy rules are lossy.

    Parameters
    ----------
    linked : bool
        Whether it may link to docs/proofs-for-all-p-and-q.md.
    """
    lines = [
        "# Steps of the zoo, for every p and q" if zoo else "# Rules, for every p and q",
        "",
        f"Written by `{command}`: {summary(answers)}.",
        f"{linked_argument(linked=linked)} says what that means, and by what argument.",
        "",
        "| rule | tokens | lookahead | verdict | regions | lossy | open | equations | z3 | s |",
        "|---|---|--:|---|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [
        _line(
            [
                *(a.box.rule, size(a.box), a.box.lookahead, a.verdict),
                *map("{:,}".format, (a.regions, a.lossy, a.open, a.equations, a.calls)),
                f"{a.seconds:.1f}",
            ]
        )
        for a in answers
    ]
    lossy = [answer for answer in answers if answer.verdict == "lossy"]
    if lossy:
        lines += ["", "## Where the lossy ones are lossy", ""]
        lines += [
            "| rule | tokens | lookahead | TV | at a witness (other rows uniform) | where |",
            "|---|---|--:|---|---|---|",
        ]
        lines += [
            _line(
                [
                    *(a.box.rule, size(a.box), a.box.lookahead),
                    *(a.total_variation, a.witness, where(a)),
                ]
            )
            for a in lossy
        ]
    right = [answer for answer in lossy if answer.right]
    if right:
        lines += ["", "## Lossy ones whose distance is 0 at some rows", ""]
        lines += ["| rule | tokens | lookahead | rows (others uniform) |", "|---|---|--:|---|"]
        lines += [_line([a.box.rule, size(a.box), a.box.lookahead, a.right]) for a in right]
    elsewhere = [answer.box.rule for answer in answers if answer.is_elsewhere]
    if elsewhere:
        lines += ["", "## Bugs that do nothing over these vocabularies", ""]
        named = ", ".join(f"`{rule}`" for rule in elsewhere)
        lines += [f"The zoo has them as lossy; what is proved here is that they are not: {named}."]
    reasons = [answer for answer in answers if answer.verdict == "not run"]
    lines += [""] * bool(reasons) + [f"* {one.box.rule}: not run: {one.note}" for one in reasons]
    if zoo:
        lines += ["", "## Asked in another way", "", *_questions()]
    return "\n".join(lines) + "\n"


def _questions() -> list[str]:
    """How steps of the zoo are asked that are not asked as they are; those alike together."""
    ids: dict[str, list[str]] = {}
    for name, one in QUESTIONS.items():
        ids.setdefault(one.words, []).append(f"`{name}`")
    return [f"* {', '.join(names)}: {words}." for words, names in ids.items()]


def size(box: Box) -> str:
    """The vocabularies of a box."""
    if box.target == box.drafter:
        return str(len(box.target)) + ", EOS" * bool(box.eos)
    return f"{' '.join(box.target)}; {' '.join(box.drafter)}"


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def where(answer: Answer, mark: str = "`") -> str:
    """At which rows a rule is lossy, each condition between marks."""
    if not answer.lossy:
        return "at rows that were tried, among open pieces"
    if answer.lossy == answer.regions:
        return "at some rows of every region"
    if not answer.conditions:
        return "at some rows of every region of one outcome"
    shown = ", ".join(f"{mark}{one}{mark}" for one in answer.conditions[:4])
    return shown + ", …" * (len(answer.conditions) > 4)
