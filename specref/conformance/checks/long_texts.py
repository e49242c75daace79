"""Texts of an engine that are longer than those judged jointly: bets on every token of theirs."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from specref.arrays import Bools, Floats, Ints
from specref.conformance.checks.check import (
    Check,
    failed,
    inconclusive,
    not_applicable,
    passed,
    untried,
)
from specref.conformance.checks.engines import (
    asking,
    different,
    engine_of,
    quiet,
    seconds_of_a_text,
)
from specref.conformance.checks.strata import USELESS
from specref.conformance.greedy import greedy_difference
from specref.conformance.judge import Judge
from specref.conformance.status import Finding, Outcome, Status
from specref.conformance.strata.table import LONGEST_TEXT
from specref.contracts.asking import SEEDS
from specref.contracts.errors import BrokenContractError
from specref.contracts.text import PLAIN, SPECULATIVE, Engine, TextContract
from specref.statistics.features import FeatureSums, tokens_to_detect
from specref.vocabulary import Tokens

FEWEST, MOST = 30, LONGEST_TEXT
"""Tokens of a text; how many, the seed draws."""
COARSE, COARSEST = 0.1, 0.3
"""The shift that is to be found: a smaller one takes too many long texts, a larger says little."""
TWICE, ROUNDS = 12, 4


class Next(NamedTuple):
    """What is known before a token comes.

    * `p`, `q`: Its law, and the drafter's; q is p if that is not known.
    * `before`: The tokens before it, prompt included.
    * `made`: How many of them are of the text.
    """

    p: Floats
    q: Floats
    ids: Ints
    before: Tokens
    made: int

    @property
    def last(self) -> int:
        """The token before it; -1 if there is none."""
        return self.before[-1] if self.before else -1

    @property
    def once(self) -> int:
        """The token that followed the last time that the token before it came; -1 if never."""
        found = (i for i in range(len(self.before) - 2, -1, -1) if self.before[i] == self.last)
        return next((self.before[i + 1] for i in found), -1)


SETS: Mapping[str, Callable[[Next], Bools]] = MappingProxyType(
    {
        "that are the likeliest of p": lambda at: at.p == at.p.max(),
        "with q > p": lambda at: at.q > at.p,
        "with q > 2p": lambda at: at.q > 2 * at.p,
        "with p < 0.05": lambda at: at.p < 0.05,
        "with p < 1e-2": lambda at: at.p < 1e-2,
        "with p < 1e-3": lambda at: at.p < 1e-3,
        "of id 0": lambda at: at.ids == 0,
        "of odd ids": lambda at: at.ids % 2 == 1,
        "of the upper half of the ids": lambda at: at.ids >= len(at.ids) // 2,
        "of the last id": lambda at: at.ids == len(at.ids) - 1,
        "like the one before": lambda at: at.ids == at.last,
        "that followed the same token before": lambda at: at.ids == at.once,
        "that came before": lambda at: np.isin(at.ids, at.before),
    }
)
PLACES: Mapping[str, Callable[[Next], bool]] = MappingProxyType(
    {
        "anywhere": lambda at: True,
        "from token 4": lambda at: at.made >= 4,
        "from token 8": lambda at: at.made >= 8,
        "from token 16": lambda at: at.made >= 16,
        "after a token that came before": lambda at: at.once >= 0,
    }
)


class Bets:
    """Bets on each token of some texts, at each place."""

    def __init__(self, judge: Judge) -> None:
        self.sums = FeatureSums((len(PLACES), len(SETS)), judge.capabilities.tolerance)
        self.impossible, self.alpha = "", judge.level

    def add(self, engine: Engine, prompt: Tokens, text: Sequence[int]) -> None:
        """Bet on the tokens of one text."""
        values, means, places = [], [], []
        for at, token in zip(nexts(engine, prompt, text), text, strict=True):
            if at.p[token] <= 0 and not self.impossible:
                self.impossible = f"token {at.made} of {tuple(text)}, after {prompt}, has p = 0"
            chosen = [one(at) for one in SETS.values()]
            values.append([bool(one[token]) for one in chosen])
            means.append([float(at.p[one].sum()) for one in chosen])
            places.append([there(at) for there in PLACES.values()])
        mean = np.minimum(means, 1)
        self.sums.add(np.array(values), mean, mean * (1 - mean), np.array(places).T)

    def outcome(self, told: str) -> Outcome:
        """What they have shown of such texts."""
        sums, log10 = self.sums, math.log(10)
        tokens = int(sums.tokens[0, 0])
        shift = float(np.where(sums.variance > 0, sums.detectable(self.alpha), 0.0)[0].max())
        numbers: dict[str, object] = {
            "tokens": tokens,
            "log10_evidence": sums.log_evidence / log10,
            "log10_threshold": -math.log10(self.alpha),
        }
        if self.impossible:
            return failed(f"impossible: {self.impossible}", **numbers)
        if sums.log_evidence >= -math.log(self.alpha):
            (place, index), more = sums.most
            mean = abs(sums.excess[place, index]) / max(sums.tokens[place, index], 1)
            return failed(
                f"tokens are not drawn from the distribution: too {'many' if more else 'few'} "
                f"tokens {list(SETS)[index]}, {list(PLACES)[place]}, by {mean:.3f} a token; "
                f"evidence 10^{sums.log_evidence / log10:.0f} after {tokens:,} tokens, {told}",
                **numbers,
            )
        if shift > USELESS:
            return inconclusive(f"{told}: {tokens:,} tokens are too few to see much", **numbers)
        return passed(
            f"{told}: {tokens:,} tokens; a shift ≥ {shift:.2g} would be detected", **numbers
        )


def nexts(engine: Engine, prompt: Tokens, text: Sequence[int]) -> Iterator[Next]:
    """What is known before each token of a text."""
    law = engine.law
    assert law is not None
    drafter = engine.drafter or law
    ids, before = np.arange(len(law.vocabulary)), tuple(prompt)
    for made, token in enumerate(text):
        p, q = (np.asarray(one.next_token(before), dtype=np.float64) for one in (law, drafter))
        yield Next(p, q, ids, before, made)
        before = (*before, token)


def budget_of(judge: Judge) -> int:
    """How many tokens the texts of this seed have."""
    return int(judge.rng("long texts/budget").integers(FEWEST, MOST + 1))


@quiet
def long_texts(judge: Judge) -> Outcome:
    """Texts of 30 tokens and more: against the distribution, or non-speculative texts."""
    engine, budget = engine_of(judge), budget_of(judge)
    if engine.tokens >= budget:
        return not_applicable(f"its texts of {engine.tokens} tokens are judged jointly")
    told = f"texts of {budget} tokens"
    try:
        if judge.capabilities.greedy and engine.law is not None:
            return greedy_texts(judge, budget, told)
        if engine.same_text or judge.capabilities.greedy:
            return same_texts(judge, budget, told)
        if engine.law is None:
            return not_applicable(f"{told} are not compared: has no distribution")
        outcome = against_law(judge, SPECULATIVE, budget, told)
        if outcome.status == Status.FAILED and engine.plain is not None:
            plain = against_law(judge, PLAIN, budget, told)
            if plain.status == Status.FAILED:
                message = f"non-speculative decoding: {plain.message}"
                return replace(plain, message=message, finding=Finding.PLAIN)
    except BrokenContractError as error:
        if error.__cause__ is None and not error.evidence.get("hung"):
            raise
        return untried(told, str(error).splitlines()[0])
    return outcome


def against_law(judge: Judge, mode: str, budget: int, told: str) -> Outcome:
    """Bets on every token of texts of one mode."""
    engine = engine_of(judge)
    shift = min(max(judge.detect_tv, COARSE), COARSEST)
    wanted = judge.trials or tokens_to_detect(shift, judge.level, len(SETS) * len(PLACES))
    texts = max(len(engine.prompts), -(-wanted // budget))
    if judge.seconds is not None:
        each, _ = seconds_of_a_text(judge, mode, budget)
        texts = min(texts, max(len(engine.prompts), int(judge.seconds / each)))
    ask, rng = asking(judge, mode, budget), judge.rng(f"long texts/{mode}")
    bets = Bets(judge)
    for _ in range(ROUNDS):
        place, blocks, _ = ask(texts, rng)
        for index, block in zip(place.tolist(), blocks, strict=True):
            bets.add(engine, engine.prompts[index], block[block >= 0].tolist())
        if bets.sums.tokens[0, 0] >= wanted or judge.trials or judge.seconds is not None:
            break  # texts may end long before their budget
    return bets.outcome(told)


def greedy_texts(judge: Judge, budget: int, told: str) -> Outcome:
    """Long texts of an engine that decodes greedily, against the argmax of the law."""
    engine = engine_of(judge)
    assert engine.law is not None
    questions = [(prompt, budget, 0) for prompt in engine.prompts]

    def wrong(mode: str) -> str | None:
        assert engine.law is not None
        for prompt, text in zip(
            engine.prompts, asking(judge, mode, budget).texts(questions), strict=True
        ):
            if why := greedy_difference(engine.law, prompt, tuple(text.tokens), budget):
                return f"{why}, after {prompt}"
        return None

    if why := wrong(SPECULATIVE):
        plainly = engine.plain is not None and wrong(PLAIN)
        if plainly:
            return failed(f"{told}: non-speculative decoding: {plainly}", Finding.PLAIN)
        return failed(f"{told}: {why}", Finding.CONTRACT)
    return passed(f"{told}: {len(questions)} are those of greedy decoding of the distribution")


def same_texts(judge: Judge, budget: int, told: str) -> Outcome:
    """Long texts of both modes under the same seeds."""
    engine = engine_of(judge)
    if engine.plain is None:
        return not_applicable(f"{told} are not compared: has no non-speculative decoding")
    seeds = judge.rng("long texts/same").integers(SEEDS, size=TWICE).tolist()
    questions = [(prompt, budget, seed) for seed in seeds for prompt in engine.prompts]
    given, wanted = (
        [text.tokens for text in asking(judge, mode, budget).texts(questions)]
        for mode in (SPECULATIVE, PLAIN)
    )
    index = different(given, wanted)
    if index is not None:
        prompt, _, seed = questions[index]
        return failed(
            f"{told}: {given[index]} is not that of non-speculative decoding, {wanted[index]}, "
            f"after {prompt} under seed {seed}",
            Finding.CONTRACT,
        )
    if not judge.capabilities.greedy and len(set(map(tuple, wanted))) == 1:
        return inconclusive(f"{told}: all are {wanted[0]}: do seeds reach the engine?")
    return passed(
        f"{told}: {len(questions)} are those of non-speculative decoding under the same seeds"
    )


CHECKS = (
    Check(
        "end-to-end/texts-long",
        TextContract,
        long_texts,
        statistical=True,
        weight=0.2,
    ),
)
