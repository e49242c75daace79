"""What takes minutes or hours to find out, in docs/records, and the pages of the site made of it.

    python -m proofs_tests.pages.measured zoo              # a second or more for each entry
    python -m proofs_tests.pages.measured everywhere_zoo   # two seconds for each step
    python -m proofs_tests.pages.measured dominance        # eight seconds for each question

Each finds out what is not on record yet, drops what is no longer asked, and writes the record
anew; with --again it finds out everything. A page says what is not on record: nobody has to run
this for a new rule or a new mutant.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import asdict, fields
from typing import Any

from proofs_tests.pages.console_blocks import ROOT
from specref.contrib.selftest.kill_matrix import STAGES as ALL_STAGES
from specref.contrib.selftest.kill_matrix import Matrix, Row, row_of
from specref.contrib.selftest.kills_report import (
    columns_said,
    entries_table,
    family,
    headline,
    missed,
)
from specref.report.all_rules import answers_document
from specref.report.document import Document, Heading, Part, bullets, markdown
from specref.report.dominance import Told, dominance_document, told
from specref.report.layout import Prose
from specref.report.machine import write_json
from specref.verification.dominance import Question, ask, questions_of
from specref.verification.everywhere import Answer, Box, box_of, larger_box, prove_box
from specref.zoo import ALL

RECORDS = ROOT / "docs" / "records"
Line = dict[str, Any]
SEED = 0
DETECT_TV = 0.1
"""Of the kill matrix: small enough that all mutants are killed, and a third of the trials."""
BUDGETS = {"everywhere_zoo": 20.0, "dominance": 60.0}
"""Seconds of the processor: of a step; of each of the claims about two rules."""


def lines(name: str) -> list[Line]:
    """The rows of a record."""
    found: list[Line] = json.loads((RECORDS / f"{name}.json").read_text("utf-8"))["rows"]
    return found


def save(name: str, rows: Iterable[Line]) -> None:
    """Write a record, a row a line; what else it says, such as its seed, stays."""
    path = RECORDS / f"{name}.json"
    said = {x: y for x, y in json.loads(path.read_text("utf-8")).items() if x != "rows"}
    above = "".join(f" {json.dumps(x)}: {json.dumps(y)},\n" for x, y in said.items())
    text = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows)
    write_json(str(path), f'{{\n{above} "rows": [\n{text}\n ]\n}}')


def kept(values: Mapping[str, Any]) -> Line:
    """What says something: no zeros, no empty texts."""
    return {name: value for name, value in values.items() if value not in (0, "", (), [], None)}


def frozen(line: Line) -> Line:
    """As the dataclasses have it: tuples for lists."""
    return {x: tuple(y) if isinstance(y, list) else y for x, y in line.items()}


def unknown(names: Sequence[str], command: str) -> str:
    """What a page says of what is not on record."""
    listed = ", ".join(f"`{name}`" for name in names)
    how = f"`python -m proofs_tests.pages.measured {command}`"
    return f"\nNot on record yet, {how} measures: {listed}.\n" if names else ""


# The zoo


def killed(id_: str) -> Line:
    """A row of the kill matrix, as its page shows it."""
    row = row_of(id_, {"detect_tv": DETECT_TV, "seed": SEED}, ALL_STAGES, first=False)
    passed = [one for one in row.asked - set(row.killers) if one.startswith("joint/")]
    return {
        "id": id_,
        "tv": None if row.variation is None else round(row.variation, 4),
        "killed_by": list(dict.fromkeys(map(family, row.killers))),
        "passes": sorted(passed) if row.killers else [],
    }


def matrix() -> Matrix:
    """The kill matrix on record, of what is in the zoo today."""
    known = {line["id"]: line for line in lines("zoo")}
    rows = (known[id_] for id_ in ALL if id_ in known)
    return Matrix(
        tuple(
            Row(one["id"], tuple(one["killed_by"]), frozenset(one["passes"]), one["tv"])
            for one in rows
        ),
        SEED,
        DETECT_TV,
        whole=False,  # of checks that are idle, the record says nothing
    )


def zoo_page() -> str:
    """The page of the zoo."""
    found = matrix()
    new = sorted(set(ALL) - {row.id for row in found.rows})
    made = (
        f"Written by `python -m proofs_tests.pages.measured zoo` (seed {SEED}, --detect-tv "
        f"{DETECT_TV:g})."
    )
    picture = PICTURE.format(said=said_of_heat_map(**found.counts))
    parts: list[Part] = [
        *(Prose(line) for line in found.problems),
        *(Prose(picture), Prose(HOW), *columns_said(), entries_table(found)),
        *(Heading("What each test case alone would miss"), *bullets(missed(found)), Prose(made)),
    ]
    return markdown(Document("The zoo", *headline(found), parts)) + "\n" + unknown(new, "zoo")


PICTURE = (
    '<picture><source media="(prefers-color-scheme: dark)" srcset="../pictures/kills-dark.svg">'
    '<img alt="{said}" src="../pictures/kills-light.svg" width="640"></picture>'
)
HOW = (
    "A line for each known bug, and at the left where it departs from its rule; a column for each "
    "stage of checks. An empty cell is a stage that the bug passed, or whose checks are for "
    "another contract."
)


def said_of_heat_map(mutants: int, killed: int, **others: int) -> str:
    """What the heat map shows, in words."""
    return (
        f"Heat map of {mutants} planted bugs, by where they are, against {len(ALL_STAGES)} stages "
        f"of checks: {killed} fail at least one stage."
    )


# Steps of the zoo, for every p and q


UNSHOWN = ("box", "paths")


def proved(id_: str) -> Line:
    """What is proved of a step of the zoo, where it is asked last."""
    answer = prove_box(box_of(ALL[id_]), SEED, BUDGETS["everywhere_zoo"])
    while again := larger_box(answer):
        answer = prove_box(again, SEED, BUDGETS["everywhere_zoo"])
    rest = {x: y for x, y in asdict(answer).items() if x not in UNSHOWN}
    return kept({**asdict(answer.box), **rest})


def answer_of(line: Line) -> Answer:
    """An answer that is on record."""
    of_box = {one.name for one in fields(Box)}
    values = frozen(line)
    box = Box(**{x: y for x, y in values.items() if x in of_box})
    return Answer(box, **{x: y for x, y in values.items() if x not in of_box})


def everywhere_zoo_page() -> str:
    """The page of the steps of the zoo, for every p and q."""
    asked = [id_ for id_, entry in ALL.items() if entry.is_step]
    known = {line["rule"]: line for line in lines("everywhere_zoo")}
    answers = [answer_of(known[id_]) for id_ in asked if id_ in known]
    command = "python -m proofs_tests.pages.measured everywhere_zoo"
    page = markdown(answers_document(answers, command, zoo=True, linked=True))
    return page + unknown([id_ for id_ in asked if id_ not in known], "everywhere_zoo")


# Which rule accepts more


def compared(question: Question) -> Line:
    """The answer to a question, in a sentence."""
    found = told(ask(question, SEED, BUDGETS["dominance"]))
    line = kept({**asdict(question), "relation": found.relation, "sentence": found.sentence})
    return {x: y for x, y in line.items() if (x, y) != ("iterations", 1)}


def question_of(line: Line) -> Question:
    """A question that is on record."""
    names = {one.name for one in fields(Question)}
    return Question(**{x: y for x, y in frozen(line).items() if x in names})


def dominance_of_all() -> str:
    """The page of which rule accepts more."""
    known = {question_of(line): line for line in lines("dominance")}
    asked = questions_of("thorough")
    rows = [
        Told(one, known[one]["relation"], known[one]["sentence"]) for one in asked if one in known
    ]
    new = [f"{one.left} and {one.right}" for one in asked if one not in known]
    page = markdown(dominance_document(rows, "python -m proofs_tests.pages.measured dominance"))
    return page + unknown(list(dict.fromkeys(new)), "dominance")


Names = Callable[[], Sequence[Any]]
ASKED: Mapping[str, tuple[Names, Callable[[Any], Line], Callable[[Line], Any]]] = {
    "zoo": (lambda: list(ALL), killed, lambda line: line["id"]),
    "everywhere_zoo": (
        lambda: [id_ for id_, entry in ALL.items() if entry.is_step],
        proved,
        lambda line: line["rule"],
    ),
    "dominance": (lambda: questions_of("thorough"), compared, question_of),
}
"""{record: what it is asked of, how, and of what a line of it is}."""


def refresh(name: str, executor: Executor, *, again: bool = False) -> None:
    """Find out what is not on record, and write it after each answer."""
    names, find, of = ASKED[name]
    known = {} if again else {of(line): line for line in lines(name)}
    new = [one for one in names() if one not in known]
    for one, line in zip(new, executor.map(find, new), strict=True):
        known[one] = line
        save(name, (known[one] for one in names() if one in known))
    save(name, (known[one] for one in names() if one in known))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("record", choices=list(ASKED))
    parser.add_argument("--again", action="store_true", help="not only what is not on record")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.workers) as executor:
        refresh(options.record, executor, again=options.again)


if __name__ == "__main__":
    main()
