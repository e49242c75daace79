"""The library of a case: exact laws in few paths, and no mutant is dropped without a word."""

import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from specref.algorithms import autoregressive, slem, standard
from specref.algorithms.decoding import Step
from specref.chance import MAX_SITES, Chance, TooManyPathsError, exact_distribution
from specref.distributions import total_variation
from specref.models import Model, as_float, hashed_model, iid_model
from specref.proofs.lazy import Enumerator, Law, ReadableModel
from specref.report.machine import as_json
from specref.statistics.campaign import evidence
from specref.statistics.campaign.bets import STRENGTHS
from specref.statistics.campaign.campaign import Campaign
from specref.statistics.campaign.evidence import known_bugs
from specref.statistics.campaign.prefix_tree import prefix_tree
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo import CONTROLS, FIXTURES, MUTANTS, Entry, ExactFixture

RULES: dict[str, Step] = {
    "autoregressive": autoregressive.step,
    "standard": standard.step,
    "slem": slem.step,
    **{name: entry.step for name, entry in {**MUTANTS, **CONTROLS}.items()},
}
COIN = iid_model(Vocabulary("ab"), ["1/4", "3/4"])
MANY = 10**6


def plain_law(step: Step, fixture: ExactFixture) -> Law:
    target, drafter = as_float(fixture.target), as_float(fixture.drafter)
    return exact_distribution(lambda c: step(target, drafter, (), fixture.lookahead, c))


def lazy_law(step: Step, fixture: ExactFixture, max_paths: int = MANY) -> tuple[Law, int]:
    """The law, and how many paths it took."""
    enumerator = Enumerator(max_paths)
    models = (ReadableModel(model) for model in (fixture.target, fixture.drafter))
    return enumerator.law(step, *models, (), fixture.lookahead), enumerator.paths


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("name", FIXTURES)
def test_lazy_laws_are_the_exact_laws(name: str) -> None:
    fixture, compared = FIXTURES[name], 0
    for rule, step in RULES.items():
        try:
            law = plain_law(step, fixture)
        except ValueError as error:
            with pytest.raises(ValueError, match=re.escape(str(error)[:40])):
                lazy_law(step, fixture)
            continue
        lazy, _ = lazy_law(step, fixture)
        assert {b for b, p in lazy.items() if p > 0} == set(law), rule
        assert total_variation(lazy, law) < 1e-12, rule
        assert all(type(token) is int for block in lazy for token in block)
        compared += 1
    assert compared >= 60


@cache
def eight() -> ExactFixture:
    vocabulary = Vocabulary("abcdefgh")

    def dense(key: str) -> Model:
        sparse = as_float(hashed_model(vocabulary, key))
        return Model(vocabulary, lambda context: sparse.next_token(context) / 2 + 1 / 16)

    return ExactFixture("eight", dense("p"), dense("q"), 2)


def test_what_nothing_looks_at_costs_no_paths() -> None:
    # Drafts x_0 and x_1 are looked at when they are tested: 8 rejections of x_0 or fewer, 8 times
    # (8 rejections of x_1 and 8 bonus tokens) or fewer; every last token is emitted unseen.
    law, paths = lazy_law(standard.step, eight())
    assert total_variation(law, plain_law(standard.step, eight())) < 1e-12
    assert paths <= 8 + 8 * (8 + 8)
    assert len(law) > 4 * paths


def never_looks(target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance):
    return (chance.draw(target.next_token(context), "only"),)


def looks_at_the_last(target, drafter, context, lookahead, chance: Chance) -> Tokens:
    """The token again if it is the first one."""
    token = chance.draw(target.next_token(context), "first")
    return (token, 1) if token == 0 else (token,)


def emits_twice(target, drafter, context, lookahead, chance: Chance) -> Tokens:
    """The same draw in both places: the two may not differ."""
    token = chance.draw(target.next_token(context), "twice")
    return (token, token)


def keeps_a_draw_for_later(target, drafter, context, lookahead, chance: Chance) -> Tokens:
    """Drawn first, looked at last."""
    token = chance.draw(target.next_token(context), "early")
    accepted = chance.accept(0.25, "coin")
    return (token, 0) if accepted and token > 0 else (0, token)


def wants_plain_integers(target, drafter, context, lookahead, chance: Chance) -> Tokens:
    token = chance.draw(target.next_token(context), "typed")
    if type(token) is not int:
        raise TypeError("not a token")
    return (token,)


def adds(target, drafter, context, lookahead, chance: Chance) -> Tokens:
    return ((chance.draw(target.next_token(context), "sum") + 1) % 2,)


def sorts_and_prints(target, drafter, context, lookahead, chance: Chance) -> Tokens:
    tokens = [chance.draw(target.next_token(context), f"{i}") for i in range(2)]
    return tuple(sorted(tokens)) if f"{tokens[0]}" < str(tokens[1]) else (max(tokens),)


def counts_with_numpy(target, drafter, context, lookahead, chance: Chance) -> Tokens:
    tokens = [chance.draw(target.next_token(context), f"{i}") for i in range(2)]
    return (int(np.eye(2)[tokens[0]].argmax()), int(np.arange(2)[tokens].sum()) // 2)


ODD = (
    never_looks,
    looks_at_the_last,
    emits_twice,
    keeps_a_draw_for_later,
    wants_plain_integers,
    adds,
    sorts_and_prints,
    counts_with_numpy,
)


@pytest.mark.parametrize("step", ODD, ids=lambda step: step.__name__)
def test_rules_that_look_in_odd_ways_have_their_exact_law(step: Step) -> None:
    fixture = ExactFixture("coin", COIN, COIN, 1)
    law, _ = lazy_law(step, fixture)
    assert law.keys() == plain_law(step, fixture).keys()
    assert total_variation(law, plain_law(step, fixture)) < 1e-12


def draws_for_ever(target, drafter, context, lookahead, chance: Chance) -> Tokens:
    while True:
        chance.draw(target.next_token(context), "again")


def waits_for_a_head(target, drafter, context, lookahead, chance: Chance) -> Tokens:
    while not chance.draw(target.next_token(context), "again"):
        pass
    return (1,)


@pytest.mark.parametrize("step", [draws_for_ever, waits_for_a_head])
def test_endless_rules_are_stopped(step: Step) -> None:
    with pytest.raises(TooManyPathsError, match=str(MAX_SITES)):
        lazy_law(step, ExactFixture("coin", COIN, COIN, 1))


def test_the_budget_of_paths_is_kept() -> None:
    _, paths = lazy_law(standard.step, FIXTURES["wide"])
    assert lazy_law(standard.step, FIXTURES["wide"], paths)[1] == paths
    with pytest.raises(TooManyPathsError, match=f"max_paths = {paths - 1}"):
        lazy_law(standard.step, FIXTURES["wide"], paths - 1)


def crashing(error: Exception) -> Entry:
    def step(target, drafter, context, lookahead, chance: Chance) -> Tokens:
        if chance.accept(0.5, "coin"):
            raise error
        return (0,)

    return Entry("crash", "accept", formula="", symptom="", hint="", step=step)


ERRORS = (ValueError("all zero"), ZeroDivisionError("0 / 0"), IndexError("no row"), KeyError("k"))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_mutant_that_crashes_is_left_out_with_the_reason(error: Exception) -> None:
    case = Campaign().case(COIN, COIN, mutants={"crash": crashing(error), **SOME})
    assert case.left_out == (f"crash: {type(error).__name__}: {error}",)
    assert {name for name, _ in case.library} == set(SOME)


SOME = {name: MUTANTS[name] for name in ("residual-is-p", "lenience-5-4")}


@pytest.mark.deep
def test_every_mutant_is_bet_on_or_left_out() -> None:
    for fixture in FIXTURES.values():
        arguments = fixture.target, fixture.drafter, (), fixture.lookahead
        bugs, left_out = known_bugs(prefix_tree(*arguments), "standard", MUTANTS)
        missing = [line.partition(": ")[0] for line in left_out]
        assert sorted([*missing, *{name for name, _ in bugs}]) == sorted(MUTANTS)


def test_mutants_over_the_budget_are_left_out() -> None:
    fixture = FIXTURES["deep"]
    tree = prefix_tree(fixture.target, fixture.drafter, (), fixture.lookahead)
    _, enough = lazy_law(standard.step, fixture)
    bugs, left_out = known_bugs(tree, "standard", MUTANTS, max_paths=enough)
    over = {line.partition(": ")[0] for line in left_out if f"max_paths = {enough}" in line}
    assert "no-stop" in over
    assert len(bugs) >= 4 * 20
    bugs, left_out = known_bugs(tree, "standard", MUTANTS, max_paths=enough - 1)
    assert not bugs
    assert len(left_out) == len(MUTANTS)
    assert all("the clean rule" in line for line in left_out)


def test_a_tree_has_a_library_up_to_so_many_bets(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = prefix_tree(COIN, COIN, (), 2)
    count = tree.p.size * len(SOME) * len(STRENGTHS)
    monkeypatch.setattr(evidence, "MOST_BETS", count)
    assert {name for name, _ in known_bugs(tree, "standard", SOME)[0]} == set(SOME)
    monkeypatch.setattr(evidence, "MOST_BETS", count - 1)
    bugs, left_out = known_bugs(tree, "standard", SOME)
    assert not bugs
    assert left_out == tuple(
        f"{name}: a tree of {tree.p.size} cells is too large for a library" for name in SOME
    )


def test_texts_share_the_budget_of_a_rule() -> None:
    pair = FIXTURES["m"].target, FIXTURES["m"].drafter, (), 1
    tree, one_block = prefix_tree(*pair, length=4), prefix_tree(*pair)
    assert not known_bugs(one_block, "standard", SOME, max_paths=10)[1]
    assert not known_bugs(tree, "standard", SOME, tokens=4, max_paths=1_000)[1]
    bugs, left_out = known_bugs(tree, "standard", SOME, tokens=4, max_paths=10)
    assert not bugs
    assert len(left_out) == len(SOME)


def test_bugs_that_two_vocabularies_rule_out_are_counted_in_the_report() -> None:
    other = iid_model(Vocabulary("ba"), ["1/4", "3/4"])
    campaign = Campaign(eps=None)
    case = campaign.case(COIN, other, algorithm="slem", mutants=MUTANTS)
    campaign.add(case, [(0,), (1,)])
    count = len(case.left_out)
    assert sum("another vocabulary" in line for line in case.left_out) >= 50
    assert count + len({name for name, _ in case.library}) == len(MUTANTS)
    report = campaign.report()
    assert report.left_out == count
    assert f"{count} known bugs not bet on" in str(report)
    assert json.loads(as_json(report))["left_out"] == count


def test_mutants_of_another_algorithm_are_none_of_the_library() -> None:
    entry = crashing(ValueError("not for this pair"))
    other = replace(entry, rule="tli")
    for algorithm, left_out in (("standard", 0), ("tli", 1), ("slem", 0)):
        case = Campaign().case(COIN, COIN, algorithm=algorithm, mutants={"crash": other, **SOME})
        assert len(case.left_out) == left_out
        assert {name for name, _ in case.library} == set(SOME)


def test_a_full_library_is_not_mentioned() -> None:
    campaign = Campaign(eps=None)
    case = campaign.case(COIN, COIN, mutants=SOME)
    campaign.add(case, [(0,), (1,)])
    assert case.left_out == ()
    assert "not bet on" not in str(campaign.report())


def test_an_error_of_the_model_is_no_reason_to_go_without_a_library() -> None:
    def next_token(context: Tokens) -> list[float]:
        if len(context) > 1:
            raise ValueError("context too long")
        return [0.5, 0.5]

    fragile = Model(Vocabulary("ab"), next_token)
    with pytest.raises(ValueError, match="context too long"):
        Campaign().case(fragile, COIN, (), 2, mutants=MUTANTS)
