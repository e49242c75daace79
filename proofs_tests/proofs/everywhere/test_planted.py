"""Bugs that act on few rows are found; and rules that were written to be called proved.

Six of these are called proved: each leaves the box of what is claimed, and the page names it.
"""

import re
from fractions import Fraction

import pytest

from proofs_tests.helpers.bugs.everywhere.attacks import ATTACKS
from proofs_tests.helpers.bugs.everywhere.planted import PLANTED
from specref import Vocabulary, is_lossless
from specref.proofs.everywhere import is_lossless_everywhere
from specref.proofs.everywhere.proof import models_of
from specref.proofs.everywhere.rows import Row, Rows, Space

SLOW = ("argmax", "corner of three tokens", "tie of three", "support")
"""Seconds, where the others take tenths."""


@pytest.mark.deep(one_in=40)
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.deep] * (one in SLOW)) for one in PLANTED]
)
def test_found_with_a_witness(name: str) -> None:
    bug = PLANTED[name]
    found = is_lossless_everywhere(bug.step, bug.tokens, lookahead=bug.lookahead, budget=120)
    assert found.verdict == "lossy"
    space = Space(found.target, found.drafter, 0)
    proof = is_lossless(bug.step, *models_of(space, found.witness.rows), (), bug.lookahead)
    assert proof.total_variation == found.witness.proof.total_variation > 0  # type: ignore[union-attr]
    assert found.witness.conditions
    for words in found.witness.conditions:
        assert holds(words, found.target, found.witness.rows), words


def holds(words: str, vocabulary: Vocabulary, rows: Rows) -> bool:
    """Whether a condition as it is printed holds at rows, the others being uniform."""

    def entry(found: re.Match[str]) -> str:
        letter, token, after = found.groups()
        context = tuple(map(vocabulary.tokens.index, (after or "").split()))
        law = rows.get(Row(letter, context))  # type: ignore[arg-type]
        uniform = Fraction(1, len(vocabulary))
        return f"({uniform if law is None else law[vocabulary.tokens.index(token)]})"

    said = re.sub(r"([pq])\((\w)(?:\|([\w ]+))?\)", entry, words)
    said = re.sub(r"(?<=[^<>!]) = ", " == ", said.replace("·", "*").replace("^", "**"))
    said = re.sub(r"(?<!\*\*)\b\d+", lambda number: f"Fraction({number[0]})", said)
    return bool(eval(said, {"Fraction": Fraction}))


def test_conditions_are_read_as_they_are_printed() -> None:
    two, rows = Vocabulary("ab"), {Row("p", ()): [Fraction(1, 3), Fraction(2, 3)]}
    for words in ("p(b) = 2/3", "p(a) < q(a)", "9·p(a)^2 + p(b|a b) >= 3/2", "p(a) = (1)/(3)"):
        assert holds(words, two, rows)
    for words in ("p(b) != 2/3", "p(a) >= q(a)", "9·p(a)^2 + p(b|a b) > 3/2", "p(a) = 1/(2)"):
        assert not holds(words, two, rows)


def outcome(name: str) -> str:
    try:
        found = is_lossless_everywhere(ATTACKS[name].step, "ab", lookahead=1, budget=60)
    except (TypeError, ValueError):
        return "error"
    return {"lossless": "proved"}.get(found.verdict, found.verdict)


@pytest.mark.deep(one_in=96)
@pytest.mark.parametrize("name", ATTACKS)
def test_what_comes_of_it(name: str) -> None:
    assert outcome(name) == ATTACKS[name].comes


@pytest.mark.deep
def test_another_seed_refutes_a_rule_that_knows_the_prime_of_seed_0() -> None:
    found = is_lossless_everywhere(ATTACKS["known prime"].step, "ab", lookahead=1, seed=1)
    assert found.verdict == "lossy"
