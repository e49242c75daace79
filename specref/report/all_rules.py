"""Documents about all rules: `specref prove --all`, and the same for every p and q."""

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from specref.report.document import Document, Heading, Kind, Part, bullets
from specref.report.layout import Column, Prose, Table
from specref.verification import AlgorithmReport, Verification
from specref.verification.everywhere import Answer, Box
from specref.verification.main_job import LOOP_LOOKAHEAD, LOOP_PATHS, LOOP_TOKENS, TRIED
from specref.verification.questions import QUESTIONS

SHOWN_FAILURES = 5
SHOWN_PAIRS = {"same vocabulary #0": "one", "two vocabularies #0": "two"}


def verification_document(verification: Verification) -> Document:
    """One row for each algorithm, its measured acceptance, and what the columns mean."""
    failures = [line for report in verification.reports for line in report.problems]
    shown = [Prose(f"failed: {failure}", "red") for failure in failures[:SHOWN_FAILURES]]
    rest = [Prose(f"failed: {failure}", "red") for failure in failures[SHOWN_FAILURES:]]
    if rest:
        shown.append(Prose(f"… and {len(rest)} more"))
    verdict = "every check holds" if verification.ok else f"{len(failures)} checks failed"
    parts: list[Part] = [
        *(Heading("Proofs and samples"), checks_table(verification), ""),
        *(checks_legend(verification), ""),
        *(Heading("Acceptance"), acceptance_table(verification), ""),
        *(acceptance_legend(verification), *shown, Prose(verdict, "bold")),
    ]
    kind: Kind = "good" if verification.ok else "bad"
    return Document("specref prove --all", kind, verdict.capitalize(), parts, rest)


def checks_table(verification: Verification) -> Table:
    columns = [
        *(Column("rule"), Column("lossless")),
        *(Column(name, right=True) for name in ("cases", "n/a", "paths", "loops", "accept")),
        Column("sampled", opens=True),
        *(Column(name, right=True) for name in ("TV ≥", "alpha", "blocks", "s")),
    ]
    return Table(columns, [_checks_row(report) for report in verification.reports])


def _checks_row(report: AlgorithmReport) -> list[Text | str]:
    if TRIED[report.algorithm].lossless:
        exact = _marked("proved", bool(report.cases and not report.failures))
    else:
        exact = _marked(f"refuted ×{report.refuted}", report.refuted > 0)
    numbers = (report.cases, report.not_applicable, report.paths, report.loops, report.acceptances)
    sampled: list[Text | str] = [unsampled(report), "", "", ""]
    if (campaign := report.monte_carlo) is not None:
        sampled = [
            _marked(f"TV ≤ {campaign.eps:g}", report.sampled_ok),
            f"{campaign.detectable:.4f}",
            f"{campaign.alpha:g}",
            f"{campaign.trials:,}",
        ]
    seconds = f"{report.seconds:.1f}"
    return [report.algorithm, exact, *map("{:,}".format, numbers), *sampled, seconds]


def unsampled(report: AlgorithmReport) -> str:
    """The cell of a rule that has no sampled blocks."""
    return "not run" if TRIED[report.algorithm].sampled else "n/a"


def _marked(what: str, holds: bool) -> Text:
    return Text(what, "green") if holds else Text("FAILED", "red")


def checks_legend(verification: Verification) -> Prose:
    return Prose(
        f"{verification.pairs} toy pairs, profile {verification.profile}, seed "
        f"{verification.seed}. lossless: proved on all its cases, or, of a rule that is published "
        "and lossy, on how many it is refuted; cases: exact proofs of one iteration; n/a: "
        "vocabularies the rule is not defined for, a listing that divides 0 by 0, or a rule that "
        "is not sampled; paths: random paths enumerated; loops: exact proofs of the first "
        f"{LOOP_TOKENS} decoded tokens, where an iteration has at most {LOOP_PATHS} paths; "
        "accept: formula equals the enumerated distribution of accepted tokens, or of the first "
        "acceptance, where there is one. sampled: one campaign on blocks of the rule; a sampler "
        "at 'TV ≥' from the target on any of its pairs is found with probability 0.999; alpha: "
        "chance of a false positive in the campaign; blocks: on its pairs together.",
        "dim",
    )


def acceptance_table(verification: Verification) -> Table:
    columns = [Column("algorithm"), Column("pair")]
    for quantity in ("accepted", "length"):
        columns.append(Column(quantity, right=True, opens=True))
        columns += [Column(title, right=True) for title in ("exact interval", "formula")]
    rows = [
        (
            report.algorithm,
            SHOWN_PAIRS[measured.case],
            *_with_interval(measured.rate, measured.rate_interval, measured.rate_formula),
            *_with_interval(measured.mean, measured.mean_interval, measured.mean_formula),
        )
        for report in verification.reports
        for measured in report.acceptance
        if measured.case in SHOWN_PAIRS
    ]
    return Table(columns, rows, keys=2)


def _with_interval(
    value: float, interval: tuple[float, float], formula: float
) -> list[Text | str]:
    low, high = interval
    colour = "green" if low <= formula <= high else "red"
    return [f"{value:.4f}", f"[{low:.4f}, {high:.4f}]", Text(f"{formula:.4f}", colour)]


def acceptance_legend(verification: Verification) -> Prose:
    every = [measured for report in verification.reports for measured in report.acceptance]
    agreeing = sum(measured.agrees for measured in every)
    names = ", ".join(f"{vocabularies}: {name}" for name, vocabularies in SHOWN_PAIRS.items())
    return Prose(
        f"The same blocks, lookahead {LOOP_LOOKAHEAD}. pair: with one or two vocabularies "
        f"({names}). accepted: how often the first draft was, with its Clopper–Pearson interval; "
        "length: mean number of accepted tokens, Dvoretzky–Kiefer–Wolfowitz–Massart. All "
        f"intervals of an algorithm hold together with probability 1 - alpha. {agreeing} of "
        f"{len(every)} sampled pairs agree with their formulas; --json has them all.",
        "dim",
    )


ARGUMENT = "../proofs-for-all-p-and-q.md"
STYLES = {"proved": "green", "lossy": "red", "open": "yellow"}
BOX = Column("rule"), Column("tokens"), Column("n", right=True)
LEGEND = (
    "A row is one rule over all p and q over these vocabularies, with zeros, ties, equal rows and "
    "point masses. n: lookahead. proved: lossless for all of them. lossy: some p and q refute it. "
    "open: neither. regions: sets of p and q on which each path runs alike, summed over completed "
    "outcomes. lossy: regions with p and q that refute the rule. open: pieces that are not "
    "decided. equations: pieces on which an equation holds. z3: calls of the solver. s: seconds "
    "of CPU time."
)


def answers_document(
    answers: Sequence[Answer], command: str = "", *, zoo: bool = False, linked: bool = False
) -> Document:
    """A row for each rule and size, what was not as known, and where lossy rules are lossy.

    * `linked`: Whether it may link to docs/proofs-for-all-p-and-q.md.
    """
    wrong = [answer for answer in answers if not answer.as_known]
    undecided = sum(answer.verdict in ("open", "not run") for answer in answers)
    parts: list[Part] = [
        answer_rows(answers),
        "",
        Prose(LEGEND, "dim"),
        *(Prose(line, "red") for line in unexpected(answers)),
        Prose(summary(answers), "bold"),
        *(Prose(line) for line in errors(answers)),
    ]
    title = "Steps of the zoo, for every p and q" if zoo else "Rules, for every p and q"
    said = f"{linked_argument(linked=linked)} says what that means, and by what argument."
    written = f"Written by `{command}`. {said}" if command else said
    more = [Prose(written), *_where_lossy(answers), *_elsewhere(answers)]
    if zoo:
        more += [Heading("Asked in another way"), *bullets(_questions())]
    if wrong:
        return Document(title, "bad", f"{len(wrong)} answers are not as known", parts, more)
    if undecided:
        told = f"{undecided} of {len(answers)} are open, the others as known"
        return Document(title, "open", told, parts, more)
    return Document(title, "good", "Every answer is as known", parts, more)


def answer_rows(answers: Sequence[Answer]) -> Table:
    columns = [
        *BOX,
        Column("verdict"),
        *(
            Column(name, right=True)
            for name in ("regions", "lossy", "open", "equations", "z3", "s")
        ),
    ]
    rows: list[list[Text | str]] = [
        [
            *_box(answer.box),
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
    verdicts = [answer.verdict for answer in answers]
    names = [name for name in ("proved", "lossy", "open", "n/a", "not run") if name in verdicts]
    return ", ".join(f"{verdicts.count(name)} {name}" for name in names)


def errors(answers: Sequence[Answer]) -> list[str]:
    """With which error the proofs hold; what is refuted is enumerated with fractions."""
    bits = [answer.bits for answer in answers if answer.verdict == "proved"]
    if not bits or not all(bits):  # what is on record may lack them
        return []
    return [
        f"Error of the identity tests of each proof: at most 2^-{min(bits)}. Refutations are "
        "enumerated with fractions."
    ]


def within_docs(file: str) -> bool:
    """Whether a page that is written there is in a folder of docs, so that it has links."""
    return (Path(file).resolve().parent / ARGUMENT).is_file()


def linked_argument(*, linked: bool) -> str:
    """The page that says what such a proof is: a link from records, else its name."""
    name = f"docs/{Path(ARGUMENT).name}"
    return f"[{name}]({ARGUMENT})" if linked else name


def _where_lossy(answers: Sequence[Answer]) -> list[Part]:
    """Where lossy rules are lossy, and where their distance is 0."""
    lossy = [answer for answer in answers if answer.verdict == "lossy"]
    right = [answer for answer in lossy if answer.right]
    parts: list[Part] = []
    if lossy:
        columns = [
            *BOX,
            Column("TV"),
            Column("at a counterexample (other rows uniform)", folds=True),
        ]
        rows = [[*_box(a.box), a.total_variation, a.witness, where(a)] for a in lossy]
        table = Table([*columns, Column("where", folds=True)], rows)
        parts += [Heading("Where the lossy ones are lossy"), table]
    if right:
        columns = [*BOX, Column("rows (others uniform)", folds=True)]
        title = "Lossy ones whose distance is 0 at some rows"
        parts += [Heading(title), Table(columns, [[*_box(a.box), a.right] for a in right])]
    return parts


def _elsewhere(answers: Sequence[Answer]) -> list[Part]:
    names = ", ".join(f"`{answer.box.rule}`" for answer in answers if answer.is_elsewhere)
    told = f"The zoo has them as lossy; what is proved here is that they are not: {names}."
    title = "Bugs that do nothing over these vocabularies"
    return [Heading(title), Prose(told)] if names else []


def _box(box: Box) -> list[str]:
    return [box.rule, size(box), str(box.lookahead)]


def _questions() -> list[str]:
    """How steps of the zoo are asked that are not asked as they are; those alike together."""
    ids: dict[str, list[str]] = {}
    for name, one in QUESTIONS.items():
        ids.setdefault(one.words, []).append(f"`{name}`")
    return [f"{', '.join(names)}: {words}." for words, names in ids.items()]


def size(box: Box) -> str:
    if box.target == box.drafter:
        return str(len(box.target)) + ", EOS" * bool(box.eos)
    return f"{' '.join(box.target)}; {' '.join(box.drafter)}"


def where(answer: Answer) -> str:
    """At which rows a rule is lossy."""
    if not answer.lossy:
        return "at rows that were tried, among open pieces"
    if answer.lossy == answer.regions:
        return "at some rows of every region"
    if not answer.conditions:
        return "at some rows of every region of one outcome"
    shown = ", ".join(f"`{one}`" for one in answer.conditions[:4])
    return shown + ", …" * (len(answer.conditions) > 4)
