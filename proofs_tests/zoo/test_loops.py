"""Decode loops: which write the target's texts, and by how much the others miss them, exactly."""

from fractions import Fraction

import numpy as np
import pytest

from specref.algorithms import standard
from specref.algorithms.decoding import decode
from specref.chance import Chance, Exact, enumerate_paths, exact_distribution
from specref.models import iid_model
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo import ALL, TEXTS, Entry, ExactFixture, law_on, total_variation_on
from specref.zoo.loops import Reseeded, looped

F = Fraction
LOOPS = {id_: entry for id_, entry in ALL.items() if entry.generate}
CONTROLS = [entry for entry in LOOPS.values() if entry.lossless]
CLEAN = Entry(
    "clean", "length", formula="f", symptom="s", hint="h", generate=looped(), lossless=True
)


def named(entry: Entry) -> str:
    return entry.id


@pytest.mark.parametrize("name", TEXTS)
def test_the_clean_loop_is_the_decode_loop(name: str) -> None:
    f = TEXTS[name]

    def run(chance: Chance) -> Tokens:
        return decode(standard.step, f.target, f.drafter, f.context, f.lookahead, f.length, chance)

    assert law_on(CLEAN, f) == exact_distribution(run) == f.continued()


COIN = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
PERFECT = ExactFixture("perfect", COIN, COIN, 1, (), 3)


def test_reseeding_repeats_the_block_for_ever() -> None:
    """With q = p, draft and bonus token of every iteration are those of the first."""
    law = law_on(LOOPS["reseeded-each-iteration"], PERFECT)
    assert law == {(x, y, x): F(1, 4) for x in range(2) for y in range(2)}
    assert total_variation_on(LOOPS["reseeded-each-iteration"], PERFECT) == F(1, 2)


def test_one_uniform_for_two_laws_by_hand() -> None:
    first, second = np.array([F(1, 2), F(1, 2)]), np.array([F(1, 4), F(3, 4)])

    def twice(chance: Chance) -> tuple[int, int]:
        same = Reseeded(chance)
        return same.draw(first, "x"), same.draw(second, "x")

    # u < 1/4, u in [1/4, 1/2), u >= 1/2.
    assert exact_distribution(twice) == {(0, 0): F(1, 4), (0, 1): F(1, 4), (1, 1): F(1, 2)}


@pytest.mark.parametrize(
    ("name", "lengths"),
    [
        ("budget-overshot", {4}),
        ("budget-counts-iterations", {6}),
        ("lookahead-fits-budget", {3}),
        ("lookahead-adapts", {3}),
    ],
)
def test_lengths_of_texts_of_a_perfect_drafter(name: str, lengths: set[int]) -> None:
    assert {len(text) for text in law_on(LOOPS[name], PERFECT)} == lengths


def test_texts_run_on_or_break_off() -> None:
    f = TEXTS["loop, EOS"]
    ends = f.target.vocabulary.ends
    after = law_on(LOOPS["end-tested-once-per-block"], f)
    assert any(any(ends(text[:k]) for k in range(1, len(text))) for text in after)
    broken = law_on(LOOPS["rejected-eos-finishes"], f)
    assert any(len(text) < f.length and not ends(text) for text in broken)


def drafts_of(entry: Entry, f: ExactFixture) -> set[tuple[Tokens, int]]:
    """Texts, and on how many decisions they rest."""
    found = set()
    for path in enumerate_paths(
        lambda c: entry.generate(f.target, f.drafter, f.context, f.lookahead, f.length, c)
    ):
        chance = Exact(path.choices)
        entry.generate(f.target, f.drafter, f.context, f.lookahead, f.length, chance)
        found.add((path.outcome, len(path.choices)))
    return found


@pytest.mark.parametrize("entry", CONTROLS, ids=named)
def test_controls_do_something_else_than_the_clean_loop(entry: Entry) -> None:
    assert any(drafts_of(entry, f) != drafts_of(CLEAN, f) for f in TEXTS.values())
