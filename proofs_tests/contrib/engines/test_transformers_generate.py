"""Transformers' `generate` under the contract: what it does right, and its defects.

alpha is 1e-6 for each campaign and interval here. Power: 1,500 transitions find a lossy text at
an average distance of 0.1 (12 / 0.1^2 = 1,200); the planted and the known defects are further.
The order in which a fast tokenizer lists its vocabulary is random and not under a seed: where a
test depends on it, the docstring says how often luck would hide the defect.
"""

import logging
from itertools import permutations

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from proofs_tests.helpers.chains import (
    DRAFTER,
    DRIFT,
    DRIFT_RELABELLED,
    EIGHT,
    OTHER,
    PAIRS,
    RELABELLED,
    STILL,
    TARGET,
    TOKENS,
    kept_first,
    relabelled,
    rng,
)
from specref.algorithms import tli
from specref.algorithms.standard import Draft, verify
from specref.chance import Chance, exact_distribution
from specref.conformance.greedy import judge_greedy
from specref.conformance.markov import Chain, judge_markov
from specref.contrib.engines.calling_generate import LOGGER
from specref.contrib.engines.transformers_generate import Generate, toy_tokenizer
from specref.distributions import total_variation, with_temperature
from specref.models import Model, hashed_model, iid_model
from specref.proofs.exact import completed
from specref.statistics.campaign.acceptance import binomial_interval
from specref.statistics.campaign.levels import total_variation_test
from specref.statistics.campaign.verdict import Verdict
from specref.vocabulary import Tokens, Vocabulary

ALPHA = 1e-6


def judged(generate: Generate, drafter: Model, tokens: int = TOKENS):
    return judge_markov(generate, TARGET, drafter, tokens=tokens, seed=5, alpha=ALPHA)


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize(
    ("generate", "drafter"),
    [
        (Generate("ar"), DRAFTER),
        (Generate("sd"), DRAFTER),
        (Generate("sd", temperature=0.6), DRAFTER),
        (Generate("pld"), DRAFTER),
        (Generate("tli", order="sorted"), OTHER),
    ],
    ids=["ar", "sd", "sd at T = 0.6", "pld", "tli, sorted"],
)
def test_paths_without_a_finding(generate: Generate, drafter: Model) -> None:
    report = judged(generate, drafter)
    assert report.verdict == Verdict.INCONCLUSIVE
    assert report.stopped is None


@pytest.mark.deep
def test_tli_with_a_vocabulary_listed_backwards_is_lossy() -> None:
    report = judged(Generate("tli", order="reversed"), OTHER)
    assert report.verdict == Verdict.LOSSY


def test_tli_as_shipped_is_lossy() -> None:
    """Three orders: fewer than 1 in 2,000 put the law closer than 0.1, so luck is below 1e-9."""
    assert share_of_orders_within(0.1) < 1 / 2000
    reports = (judged(Generate("tli"), OTHER) for _ in range(3))
    assert any(report.verdict == Verdict.LOSSY for report in reports)


def share_of_orders_within(distance: float) -> float:
    """For which share of orders the first draft's law is this close to p, averaged over p."""
    orders = np.array(list(permutations(range(8))))
    p = np.stack([TARGET.next_token((x,)).astype(float) for x in range(8)])
    other = Model(EIGHT, lambda context: shared(OTHER.next_token(in_other(context))))
    q = np.stack([other.next_token((x,)).astype(float) for x in range(8)])
    visits = np.linalg.matrix_power(p, 500)[0]
    average = sum(visits[x] * distances(p[x], q[x], orders) for x in range(8))
    return float((average < distance).mean())


def in_other(context: Tokens) -> Tokens:
    return RELABELLED.encode(EIGHT.decode(context))


def shared(row: np.ndarray) -> np.ndarray:
    kept = np.array([row[RELABELLED.ids[token]] for token in EIGHT.tokens])
    return kept / kept.sum()


def distances(p: np.ndarray, q: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """Total variation of a verified draft from q, when q is declared in these orders."""
    declared = q[orders]
    ratio = np.divide(p, declared, out=np.full(declared.shape, np.inf), where=declared > 0)
    kept = q * np.where((declared == 0) & (p == 0), 0, np.minimum(1, ratio))
    excess = np.maximum(p - declared, 0)
    total = excess.sum(axis=1, keepdims=True)
    residual = np.divide(excess, total, out=np.tile(p, (len(orders), 1)), where=total > 0)
    emitted = kept + (1 - kept.sum(axis=1, keepdims=True)) * residual
    return np.abs(emitted - p).sum(axis=1) / 2


def test_order() -> None:
    """Ten equal listings of nine tokens have probability 1e-50."""
    tokenizer = toy_tokenizer(EIGHT)
    assert len({tuple(tokenizer.get_vocab()) for _ in range(10)}) > 1
    tokenizer.order = "sorted"
    assert list(tokenizer.get_vocab().values()) == list(range(9))


def backwards(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """TLI that declares q in the opposite order."""
    drafts = tli.draft(target, drafter, context, lookahead, chance)
    return verify(target, context, [Draft(token, q[::-1]) for token, q in drafts], chance)


AB = Vocabulary("ab")
COIN = iid_model(AB, ["1/2", "1/2"])
BIASED = iid_model(AB, ["3/4", "1/4"])


def test_minimal_case() -> None:
    """p = (1/2, 1/2), q = (3/4, 1/4), one draft: the first token is a with 5/6 instead of 1/2.

    The blocks are what the declared order says, to the digit that 600 tokens show.
    """
    law = exact_distribution(lambda chance: backwards(COIN, BIASED, (), 1, chance))
    one, two = ({(): 1}, COIN, (), 1), (law, COIN, (), 2)
    first: dict[Tokens, object] = {}
    for block, weight in law.items():
        first[block[:1]] = first.get(block[:1], 0) + weight
    assert str(total_variation(first, completed(*one))) == "1/3"
    assert str(total_variation(completed(*two), completed({(): 1}, COIN, (), 2))) == "1/3"

    generate = Generate("tli", lookahead=1, order="reversed")
    text = generate(Chain(COIN), Chain(BIASED), (0,), 600, rng())
    counts: dict[Tokens, int] = {}
    for block in generate.blocks[: 600 // 2 - 1]:
        tokens = text[block.start : block.start + block.accepted + 1]
        counts[tokens] = counts.get(tokens, 0) + 1
    clean = exact_distribution(lambda chance: tli.step(COIN, BIASED, (), 1, chance))
    assert not total_variation_test(counts, law, ALPHA).rejected
    assert total_variation_test(counts, clean, ALPHA).rejected


def overlap(p: np.ndarray, q: np.ndarray) -> float:
    return float(np.minimum(p, q).sum())


@pytest.mark.deep
@pytest.mark.parametrize(
    ("generate", "drafter"),
    [
        (Generate("sd", lookahead=1), DRIFT),
        (Generate("tli", lookahead=1, order="sorted"), DRIFT_RELABELLED),
    ],
    ids=["sd", "tli, sorted"],
)
def test_acceptance_is_sum_min(generate: Generate, drafter: Model) -> None:
    low, high = binomial_interval(*kept_first(generate, STILL, drafter), ALPHA)
    assert low <= overlap(STILL.next_token(()), DRIFT.next_token(())) <= high


@pytest.mark.deep
def test_inflated() -> None:
    """TLI keeps more than sum min(p, q'), which no lossless rule can."""
    generate = Generate("tli", lookahead=1, order="reversed")
    low, _ = binomial_interval(*kept_first(generate, STILL, DRIFT_RELABELLED), ALPHA)
    assert low > overlap(STILL.next_token(()), DRIFT.next_token(()))


SKEWED = np.array([0.4, 0.2, 0.12, 0.1, 0.08, 0.05, 0.03, 0.02])


@pytest.mark.deep
def test_warpers() -> None:
    """At T = 0.6 a drafter that is the target drafts at 0.6 squared, and is not always kept."""
    p, q = (with_temperature(SKEWED, temperature) for temperature in (0.6, 0.6**2))
    model = Chain(iid_model(EIGHT, p))
    generate = Generate("sd", lookahead=1, temperature=0.6)
    low, high = binomial_interval(*kept_first(generate, model, model), ALPHA)
    assert low <= overlap(p, q) <= high < 1


@pytest.mark.deep
@pytest.mark.parametrize(
    ("generate", "target", "drafter", "all_kept"),
    [
        (Generate("sd"), PAIRS, PAIRS, True),
        (Generate("tli", order="sorted"), TARGET, relabelled(TARGET), True),
        (Generate("tli", order="reversed"), TARGET, relabelled(TARGET), False),
        (Generate("tli", order="sorted"), PAIRS, relabelled(PAIRS), False),
    ],
    ids=["sd", "tli, sorted, order 1", "tli, reversed, order 1", "tli, sorted, order 2"],
)
def test_relabelled(generate: Generate, target: Model, drafter: Model, all_kept: bool) -> None:
    """A drafter that is the target under other ids: every draft should be kept.

    Sorted, TLI still feeds one wrong token to the drafter, which a model of order 1 does not
    notice.
    """
    generate(target, drafter, (0, 1), 500, rng())
    assert all(block.accepted == block.drafted for block in generate.blocks) == all_kept


GREEDY = [
    ("p", EIGHT, "q"),
    ("r", RELABELLED, "s"),
    ("t", Vocabulary(["a", "b", "ab", "ba"]), "u"),
]


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("case", GREEDY, ids=["equal", "relabelled", "pieces"])
def test_slem_is_greedy_decoding(case: tuple[str, Vocabulary, str]) -> None:
    key, vocabulary, other = case
    target = hashed_model(Vocabulary("abcdefgh"), key, 9)
    drafter = hashed_model(vocabulary, other, 9)
    contexts = [(), (0,), (3, 1, 0), (1,) * 12]
    for generate in (Generate("slem"), Generate("ar", greedy=True)):
        assert judge_greedy(generate, target, drafter, contexts, tokens=20, seed=1) is None


def test_sampled_text_is_not_greedy_decoding() -> None:
    assert judge_greedy(Generate("sd"), TARGET, DRAFTER, [(0,)], tokens=20, seed=1)


def test_deprecations_of_the_library_by_itself_are_left_out(monkeypatch) -> None:
    """Those of our calls alone: what others log arrives, before and after."""
    arrived: list[str] = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda record: arrived.append(record.getMessage()))
    logger = logging.getLogger(LOGGER)
    monkeypatch.setattr(logger, "disabled", False)
    monkeypatch.setattr(logger, "level", logging.WARNING)  # whatever earlier tests have set
    monkeypatch.setattr(logger, "handlers", [*logger.handlers, handler])
    logging.Logger.warning_once.cache_clear()  # of earlier tests
    Generate("sd", lookahead=2)(TARGET, DRAFTER, (0,), 8, rng())
    assert arrived == []
    logger.warning("something of another library is deprecated")
    assert arrived == ["something of another library is deprecated"]
