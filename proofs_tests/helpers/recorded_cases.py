"""The cases on which `prove` tries a rule in the profile quick.

    python -m proofs_tests.helpers.recorded_cases

writes the record again. Each line has how many cases a situation has, and a digest of their names,
vocabularies, contexts and lookaheads, and of the rows after texts of at most three tokens that are
the first or the last of the vocabulary. Another case changes what earlier proofs were of.
"""

import json
from collections.abc import Collection, Iterator
from itertools import product
from pathlib import Path

from proofs_tests.helpers.recorded import digest
from specref.models import Model
from specref.pairs import Case
from specref.verification.situations import situations
from specref.vocabulary import Tokens, UntokenisableError

RECORD = Path(__file__).with_name("recorded_cases.json")
DEPTH = 3


def recorded(only: Collection[str] | None = None) -> dict[str, list[int | str]]:
    """{situation: cases, and their digest}."""
    return {
        one.name: [len(one.cases), digest([line for case in one.cases for line in told(case)])]
        for one in situations(same_vocabulary=False, only=only)
    }


def told(case: Case) -> Iterator[str]:
    """What a case is: its name, and the rows of both models from its context on."""
    pair = case.pair
    yield f"{case} {pair.by_text} {pair.longest_lookahead}"
    yield from rows(pair.target, case.context)
    try:
        text = pair.target.vocabulary.decode(case.context)
        yield from rows(pair.drafter, pair.drafter.vocabulary.encode(text))
    except UntokenisableError:
        yield "cannot be read"


def rows(model: Model, context: Tokens) -> Iterator[str]:
    """The rows after texts of the first and the last token."""
    vocabulary = model.vocabulary
    yield f"{vocabulary.tokens} {vocabulary.eos}"
    for length in range(DEPTH + 1):
        for text in product(sorted({0, len(vocabulary) - 1}), repeat=length):
            yield f"{text} {' '.join(map(str, model.next_token((*context, *text))))}"


def main() -> None:
    lines = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in recorded().items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
