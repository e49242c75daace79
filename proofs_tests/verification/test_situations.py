"""Bugs that act in one situation: the toy pairs prove the rule, the situations refute it."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from fractions import Fraction
from typing import NamedTuple

import pytest

from specref.algorithms import Step, standard
from specref.algorithms.standard import acceptance
from specref.distributions import Probabilities, corrected, is_exact
from specref.models import Model
from specref.rules import RULES
from specref.verification import (
    SITUATIONS,
    InterruptedProofError,
    prove,
    rule_cases,
    rules,
    situations,
)
from specref.verification.judging import Result, received, sent
from specref.vocabulary import Tokens


class Place(NamedTuple):
    """Where a draft is verified."""

    p: Probabilities
    q: Probabilities
    token: int
    position: int
    context: Tokens
    lookahead: int
    target: Model

    @property
    def ratio(self) -> Fraction:
        return self.p[self.token] / self.q[self.token]

    @property
    def residual_size(self) -> int:
        return int(sum(self.p > self.q))

    @property
    def eos(self) -> int | None:
        eos = self.target.vocabulary.eos
        return None if eos is None else self.target.vocabulary.ids[eos]


def planted(condition: Callable[[Place], bool]) -> Step:
    """Where the condition holds, a rejected draft is followed by a token of p."""

    def step(target, drafter, context, lookahead, chance):
        block: Tokens = ()
        for i, (token, q) in enumerate(standard.draft(drafter, context, lookahead, chance)):
            p = target.next_token((*context, *block))
            if not chance.accept(acceptance(p, q, token), f"accept[{i}]"):
                acts = condition(Place(p, q, token, i, context, lookahead, target))
                return (*block, chance.draw(p if acts else corrected(p, q), "residual"))
            block = (*block, token)
            if target.vocabulary.ends(block):
                return block
        return (*block, chance.draw(target.next_token((*context, *block)), "bonus"))

    return step


def smallest(row: Probabilities) -> Fraction:
    return min(entry for entry in row if entry)


BUGS: dict[str, Callable[[Place], bool]] = {
    "initial context of one token": lambda at: len(at.context) == 1,
    "initial context of three tokens": lambda at: len(at.context) == 3,
    "initial context above 200 tokens": lambda at: len(at.context) > 200,
    "six tokens and more": lambda at: len(at.p) >= 6,
    "V no multiple of 8, above 8": lambda at: len(at.p) > 8 and len(at.p) % 8 > 0,
    "ids of two bytes": lambda at: at.token >= 256,
    "five drafts": lambda at: at.lookahead == 5,
    "the fifth draft": lambda at: at.position == 4,
    "eight drafts": lambda at: at.lookahead == 8,
    "p at most 1/100": lambda at: smallest(at.p) <= Fraction(1, 100),
    "q at most 1/100": lambda at: smallest(at.q) <= Fraction(1, 100),
    "p of the draft below 1e-8": lambda at: 0 < at.p[at.token] < 1e-8,
    "max p at least 19/20, below 1": lambda at: Fraction(19, 20) <= max(at.p) < 1,
    "p / q from 1/50 to 1/10": lambda at: Fraction(1, 50) < at.ratio < Fraction(1, 10),
    "p / q below 1/1000": lambda at: 0 < at.ratio < Fraction(1, 1000),
    "EOS is id 0": lambda at: at.eos == 0,
    "p(EOS) < q(EOS)": lambda at: at.eos == at.token and at.position == 0 and at.ratio < 1,
    "EOS is the third draft": lambda at: at.eos == at.token and at.position == 2,
    "residual of four tokens": lambda at: at.residual_size == 4,
    "residual of six tokens": lambda at: at.residual_size == 6,
}


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_in_a_situation_is_refuted_there_and_only_there(name: str) -> None:
    """Restricted to the toy pairs, as everything was before, each of them is proved."""
    step = planted(BUGS[name])
    before = prove(step, only=["toy pairs"])
    assert (before.proved, before.refuted, before.raised) == (68, (), ())
    report = prove(step)
    assert report.refuted
    assert not report.raised
    found = report.refuted[0]
    assert found.total_variation > 0
    assert found.trace
    (toy, *others) = report.enumerated
    assert (toy.situation, toy.proved) == ("toy pairs", toy.cases)
    assert sum(row.cases - row.proved for row in others) == len(report.refuted)


def test_without_a_bug_it_is_proved_everywhere() -> None:
    report = prove(planted(lambda at: False))
    assert (report.refuted, report.raised, report.too_large) == ((), (), 0)
    assert (
        report.proved
        == len(rule_cases("quick", True))
        == sum(row.proved for row in report.enumerated)
    )
