"""Lossy steps that try to be called proved: each differs from the target in a narrow place."""

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.algorithms.standard import Draft, acceptance
from specref.chance import Chance
from specref.distributions import Probabilities, Probability, corrected, normalise
from specref.models import Model
from specref.vocabulary import Tokens


class Standard:
    """Standard speculative decoding in parts, for subclasses that change one of them."""

    def __call__(
        self, target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        drafts = standard.draft(drafter, context, lookahead, chance)
        block: Tokens = ()
        for i, (token, q) in enumerate(drafts):
            p = self.row(target, context, block)
            place = Place(p, q, token, context, block, drafts, target)
            if not chance.accept(self.accept(place), f"accept[{i}]"):
                return (*block, chance.draw(self.residual(place), "residual"))
            block = (*block, token)
            if target.vocabulary.ends(block):
                return block
        return (*block, chance.draw(self.row(target, context, block), "bonus"))

    def row(self, target: Model, context: Tokens, block: Tokens) -> Probabilities:
        return target.next_token((*context, *block))

    def accept(self, at: "Place") -> Probability:
        return acceptance(at.p, at.q, at.token)

    def residual(self, at: "Place") -> Probabilities:
        return corrected(at.p, at.q)


class Place(NamedTuple):
    p: Probabilities
    q: Probabilities
    token: int
    context: Tokens
    block: Tokens
    drafts: list[Draft]
    target: Model


class RepeatedToken(Standard):
    """A draft that repeats the last token of the prompt is accepted."""

    def accept(self, at):
        return 1 if not at.block and at.context[-1:] == (at.token,) else super().accept(at)


class FourAlike(Standard):
    """After three equal accepted drafts, an equal fourth one is accepted."""

    def accept(self, at):
        return 1 if at.block[-3:] == (at.token,) * 3 else super().accept(at)


class LastOfSix(Standard):
    """The residual of the sixth draft is p."""

    def residual(self, at):
        return at.p if len(at.block) == 5 else super().residual(at)


class TenDrafts(Standard):
    """With ten drafts or more, the first residual is p."""

    def residual(self, at):
        return at.p if len(at.drafts) >= 10 else super().residual(at)


class LargeVocabulary(Standard):
    """With 1,024 tokens or more, residuals are p."""

    def residual(self, at):
        return at.p if len(at.p) >= 1024 else super().residual(at)


class ThinRatio(Standard):
    """A ratio p / q between 0.70 and 0.72 is taken for 1."""

    def accept(self, at):
        ratio = super().accept(at)
        return 1 if Fraction(70, 100) < ratio < Fraction(72, 100) else ratio


class SmallResidual(Standard):
    """Where p and q differ by less than 1/1000 in total, the residual is p."""

    def residual(self, at):
        mass = np.maximum(at.p - at.q, 0).sum()
        return at.p if mass < Fraction(1, 1000) else super().residual(at)


class TopTwenty(Standard):
    """Rows of the target keep their twenty likeliest tokens."""

    def row(self, target, context, block):
        p = super().row(target, context, block)
        kept = sorted(range(len(p)), key=lambda token: p[token])[-20:]
        return normalise(np.array([p[t] if t in kept else Fraction(0) for t in range(len(p))]))


class RareTail(Standard):
    """Tokens below 1e-12 are given to the likeliest one."""

    def row(self, target, context, block):
        p = np.array(super().row(target, context, block))
        rare = (p < Fraction(1, 10**12)) & (p > 0)
        p[np.argmax(p)] += p[rare].sum()
        p[rare] = Fraction(0)
        return p


class EosInPrompt(Standard):
    """With an EOS in the prompt, the residual is p."""

    def residual(self, at):
        return at.p if at.target.vocabulary.ends(at.context[:1]) else super().residual(at)


class LengthHundred(Standard):
    """With a prompt of one hundred tokens, residuals are p."""

    def residual(self, at):
        return at.p if len(at.context) == 100 else super().residual(at)


class SixteenBits(Standard):
    """Acceptances are multiples of 2**-16, rounded down, below 1 - 2**-16."""

    def accept(self, at):
        exact = super().accept(at)
        rounded = Fraction(int(exact * 2**16), 2**16)
        return rounded if Fraction(99, 100) < exact < 1 - Fraction(1, 2**16) else exact


class ThreeTies(Standard):
    """Where the three likeliest tokens of p tie and others are possible, the residual is p."""

    def residual(self, at):
        top = sorted(at.p)[-4:]
        tied = len(top) == 4 and top[1] == top[3] > top[0] > 0
        return at.p if tied else super().residual(at)


class AgreesTwice(Standard):
    """After two positions where q was p, a draft is accepted where q is not p."""

    def accept(self, at):
        start = len(at.context)
        equal = [
            bool((at.target.next_token((*at.context, *at.block[:i])) == at.drafts[i].q).all())
            for i in range(len(at.block))
        ]
        return 1 if equal[-2:] == [True, True] and start < 3 else super().accept(at)


class LongPromptSmallP(Standard):
    """After a prompt of thirty tokens, p below 1/50 is taken for 1/50."""

    def accept(self, at):
        clipped = min(1, Fraction(1, 50) / at.q[at.token])
        rare = 0 < at.p[at.token] < Fraction(1, 50) and len(at.context) >= 30
        return clipped if rare else super().accept(at)


class PromptSum(Standard):
    """Where the ids of a prompt of two tokens or more sum to 13 modulo 97, residuals are p."""

    def residual(self, at):
        acts = len(at.context) > 1 and sum(at.context) % 97 == 13
        return at.p if acts else super().residual(at)


class DroppedTail(Standard):
    """Entries of a residual below a twelfth of the largest are dropped."""

    def residual(self, at):
        row = super().residual(at)
        return normalise(np.where(row * 12 < max(row), Fraction(0), row))


class Denominator(Standard):
    """A q whose denominator is a multiple of 23 is accepted."""

    def accept(self, at):
        return 1 if at.q[at.token].denominator % 23 == 0 else super().accept(at)


class PrefixFoundAgain(Standard):
    """Where the prompt ends with the four tokens that it starts with, residuals are p."""

    def residual(self, at):
        found = len(at.context) >= 8 and at.context[:4] == at.context[-4:]
        return at.p if found else super().residual(at)


class EosIsFourth(Standard):
    """A fourth draft that is EOS is accepted."""

    def accept(self, at):
        ends = len(at.block) == 3 and at.target.vocabulary.ends((at.token,))
        return 1 if ends else super().accept(at)


class SeldomEos(Standard):
    """EOS is accepted where p says 1/1000 or less and q says 1/2 or more."""

    def accept(self, at):
        ends = at.target.vocabulary.ends((at.token,))
        rare = 0 < at.p[at.token] <= Fraction(1, 1000) and at.q[at.token] >= Fraction(1, 2)
        return 1 if ends and rare else super().accept(at)


class OtherThinRatio(Standard):
    """A ratio p / q between 0.51 and 0.53 is taken for 1."""

    def accept(self, at):
        ratio = super().accept(at)
        return 1 if Fraction(51, 100) < ratio < Fraction(53, 100) else ratio


class ConfidentLater(Standard):
    """After an accepted draft, a row whose largest p is from 0.96 to 0.985 becomes certain."""

    def row(self, target, context, block):
        p = super().row(target, context, block)
        if not block or not Fraction(96, 100) <= max(p) <= Fraction(985, 1000):
            return p
        return np.array([Fraction(int(entry == max(p))) for entry in p])


class NineDrafts(Standard):
    """With nine drafts, residuals are p."""

    def residual(self, at):
        return at.p if len(at.drafts) == 9 else super().residual(at)


class FlatTarget(Standard):
    """Where p is flat over ten tokens or more, residuals are p."""

    def residual(self, at):
        flat = len(at.p) >= 10 and len(set(at.p)) == 1
        return at.p if flat else super().residual(at)


class ResidualOfEight(Standard):
    """A residual of eight tokens is p."""

    def residual(self, at):
        return at.p if sum(at.p > at.q) == 8 else super().residual(at)


class FiftyTokens(Standard):
    """With fifty tokens, residuals are p."""

    def residual(self, at):
        return at.p if len(at.p) == 50 else super().residual(at)


class LastOfFive(Standard):
    """The residual of the last draft of five or more is p."""

    def residual(self, at):
        last = len(at.block) == len(at.drafts) - 1 >= 4
        return at.p if last else super().residual(at)


class DenseLater(Standard):
    """After an accepted draft, where p and q have five possible tokens, the residual is p."""

    def residual(self, at):
        dense = bool(at.block) and min(sum(at.p > 0), sum(at.q > 0)) >= 5
        return at.p if dense else super().residual(at)


class LongPrompt(Standard):
    """After a prompt of more than 512 tokens, residuals are p."""

    def residual(self, at):
        return at.p if len(at.context) > 512 else super().residual(at)


class Unseen(Standard):
    """Residuals are p in five places where no case of `specref prove` leads."""

    def residual(self, at):
        acts = (
            len(at.p) >= 2000
            or len(at.drafts) > 16
            or len(at.context) == 200
            or 0 < at.p[at.token] < Fraction(1, 10**15)
            or Fraction(613, 1000) < at.p[at.token] / at.q[at.token] < Fraction(615, 1000)
        )
        return at.p if acts else super().residual(at)


FIRST: Mapping[str, Step] = {
    cls.__name__: cls()
    for cls in (
        *(RepeatedToken, FourAlike, LastOfSix, TenDrafts, LargeVocabulary, ThinRatio),
        *(SmallResidual, TopTwenty, RareTail, EosInPrompt, LengthHundred, SixteenBits),
        *(ThreeTies, AgreesTwice, LongPromptSmallP),
    )
}
SECOND: Mapping[str, Step] = {
    cls.__name__: cls()
    for cls in (
        *(PromptSum, DroppedTail, Denominator, PrefixFoundAgain, EosIsFourth, SeldomEos),
        *(OtherThinRatio, ConfidentLater, NineDrafts, FlatTarget, ResidualOfEight),
        *(FiftyTokens, LastOfFive, DenseLater, LongPrompt),
    )
}
