"""What a campaign says is right: rarely LOSSY without cause, always LOSSY with one.

Power is a rule stated before sampling: 30 / TV^2 blocks find a bug of the library at alpha 1e-9,
40 / TV^2 one that is not in it. Rates are judged by binomial bounds that a correct engine breaks
with probability below 1e-6.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from proofs_tests.helpers.campaigns import (
    Array,
    Law,
    block_law,
    drawn,
    fresh,
    law_of,
    surely_at_most,
    template,
)
from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.chance import Chance, Sampled, Traced, exact_distribution
from specref.distributions import normalise, total_variation, with_temperature
from specref.models import Model, as_float, hashed_model, iid_model
from specref.proofs.exact import completed
from specref.rules import RULES
from specref.statistics.campaign.campaign import Campaign
from specref.statistics.campaign.evidence import CampaignCase
from specref.statistics.campaign.prefix_tree import impossible_traces, walk
from specref.statistics.campaign.verdict import CampaignReport, Conformance, Verdict
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo import CONTROLS, FIXTURES, MUTANTS, ExactFixture, speculative
from specref.zoo.parts.standard import Position, acceptance, residual_or_p

LOSSY, INCONCLUSIVE = Verdict.LOSSY, Verdict.INCONCLUSIVE
WITHIN = Verdict.LOSSLESS_WITHIN_EPS
BIG = ("wide", "deep", "eos")
KNOWN, UNKNOWN = 30, 40


def until_first_token(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """The target's own tokens up to the first 0: how long a block is depends on what is in it."""
    block: Tokens = ()
    while len(block) <= lookahead and 0 not in block and not target.vocabulary.ends(block):
        block += (chance.draw(target.next_token((*context, *block)), "target"),)
    return block


LOSSLESS: dict[str, Step] = {
    **{name: entry.step for name, entry in CONTROLS.items()},
    "standard": standard.step,
    "autoregressive": RULES["autoregressive"].step,
    "slem": RULES["slem"].step,
    "until-first-token": until_first_token,
}


def echoing_bonus(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """One bonus token in five repeats the token before it."""
    block = standard.step(target, drafter, context, lookahead, chance)
    full = len(block) == lookahead + 1
    return (*block[:-1], block[-2]) if full and chance.accept(0.2, "echo") else block


def under_mirrored_uniform(at: Position) -> float:
    """P(1 - u < r_1 | u < r_0): the second coin is the first one mirrored."""
    first = acceptance(at.previous)
    return min(1, max(0, first + acceptance(at) - 1) / first)


BUGS_NOT_IN_THE_ZOO: dict[str, Step] = {
    "echoing bonus": echoing_bonus,
    "residual at temperature 1/2": speculative(
        recover=lambda at: with_temperature(normalise(np.maximum(at.p - at.q, 0)), 0.5)
    ),
    "antithetic coins": speculative(
        accept=lambda at: under_mirrored_uniform(at) if at.i == 1 else acceptance(at),
        recover=lambda at: residual_or_p(at.p, at.q),
    ),
}


@cache
def distance(step: Step, fixture: str) -> float:
    """The total variation of the completed block."""
    pair = FIXTURES[fixture]
    length = pair.lookahead + 2  # some bugs emit a token too many
    law, target = law_of(step, fixture), as_float(pair.target)
    output = completed(law, target, (), length)
    return float(total_variation(output, completed({(): 1.0}, target, (), length)))


def twins(name: str, fixture: str) -> set[str]:
    """The mutants with the same law of blocks."""
    law = law_of(MUTANTS[name].step, fixture)
    laws = {other: block_law(entry.step, fixture) for other, entry in MUTANTS.items()}
    return {other for other, same in laws.items() if same and total_variation(same, law) < 1e-9}


def lossy_mutants(fixture: str) -> list[str]:
    runs = [name for name, entry in MUTANTS.items() if block_law(entry.step, fixture)]
    return [name for name in runs if distance(MUTANTS[name].step, fixture) > 1e-12]


def judged(step: Step, fixture: str, factor: float, seed: int, **options) -> CampaignReport:
    """The report after factor / TV^2 blocks."""
    trials = math.ceil(factor / distance(step, fixture) ** 2)
    campaign, case = fresh(fixture, **options)
    blocks = drawn(law_of(step, fixture), trials, np.random.default_rng(seed))
    campaign.add(case, blocks)
    return campaign.report()


SMALL = ExactFixture(
    "small",
    hashed_model(Vocabulary("abc"), "target 4"),
    hashed_model(Vocabulary("abc"), "drafter 4"),
    1,
)


@cache
def small_case() -> CampaignCase:
    return Campaign().case(SMALL.target, SMALL.drafter, (), SMALL.lookahead, mutants=MUTANTS)


def wealth(blocks: list[Tokens]) -> float:
    """The e-process after these blocks."""
    campaign = Campaign(eps=None)
    campaign.add(campaign.adopt(small_case()), blocks)
    return math.exp(campaign.peak)


@cache
def all_wealth() -> dict[tuple[Tokens, Tokens], float]:
    """The e-process after every pair of blocks."""
    tokens = list(range(3))
    blocks = [(a,) for a in tokens] + list(itertools.product(tokens, tokens))
    possible = [block for block in blocks if chance_of(block) > 0]
    return {two: wealth(list(two)) for two in itertools.product(possible, repeat=2)}


def chance_of(block: Tokens) -> float:
    rows = (SMALL.target.next_token(block[:j])[token] for j, token in enumerate(block))
    return float(math.prod(rows))


def mean_wealth(step: Step) -> float:
    """The mean of the e-process after two blocks, over all that can happen."""
    target, drafter = as_float(SMALL.target), as_float(SMALL.drafter)
    law = exact_distribution(lambda c: step(target, drafter, (), SMALL.lookahead, c))
    pairs = itertools.product(law.items(), repeat=2)
    return sum(float(a * b) * all_wealth()[x, y] for (x, a), (y, b) in pairs)


@pytest.mark.parametrize("name", LOSSLESS)
def test_mean_wealth_is_one_under_every_lossless_rule(name: str) -> None:
    assert mean_wealth(LOSSLESS[name]) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("name", ["residual-is-p", "lenience-5-4", "accept-with-p"])
def test_mean_wealth_is_not_one_under_a_bug(name: str) -> None:
    # So early it may be less than one: most bets are on other bugs.
    assert abs(mean_wealth(MUTANTS[name].step) - 1) > 1e-3


@pytest.mark.deep
def test_false_alarms_keep_alpha_however_often_one_looks() -> None:
    rng, looks = np.random.default_rng(11), np.unique(np.geomspace(2, 1_500, 9).astype(int))
    runs = [watched(law_of(step, "c"), looks, rng) for step in LOSSLESS.values() for _ in range(8)]
    assert len(runs) >= 130
    assert surely_at_most(sum(accused for accused, _ in runs), 0.05, len(runs))
    for alpha in (0.2, 0.05, 0.01):
        crossed = sum(peak >= -math.log(alpha) for _, peak in runs)
        assert surely_at_most(crossed, alpha, len(runs)), alpha


def watched(law: Law, looks: Array, rng: np.random.Generator) -> tuple[bool, float]:
    """Whether any of many looks says LOSSY at alpha 0.05, and the highest evidence of all."""
    campaign, case = fresh("c", alpha=0.05)
    accused = False
    for batch in np.split(drawn(law, int(looks[-1]), rng), looks[:-1]):
        campaign.add(case, batch)
        accused |= campaign.report().verdict == LOSSY
    return accused, campaign.peak


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("fixture", BIG)
@pytest.mark.parametrize("name", LOSSLESS)
def test_no_lossless_rule_is_accused(name: str, fixture: str) -> None:
    law = law_of(LOSSLESS[name], fixture)
    campaign, case = fresh(fixture)
    campaign.add(case, drawn(law, 20_000, np.random.default_rng(12)))
    assert campaign.report().verdict == INCONCLUSIVE


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("fixture", BIG)
def test_every_known_bug_is_found(fixture: str) -> None:
    names = lossy_mutants(fixture)
    assert len(names) >= 46
    reports = {n: judged(MUTANTS[n].step, fixture, KNOWN, seed=13) for n in names}
    assert {n: r.log10_evidence for n, r in reports.items() if r.verdict != LOSSY} == {}


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("fixture", ["deep", "eos", "wide"])
def test_every_bug_is_found_without_knowing_it(fixture: str) -> None:
    missed = {}
    for name in lossy_mutants(fixture):
        left_out = twins(name, fixture)
        report = judged(MUTANTS[name].step, fixture, UNKNOWN, seed=14, left_out=left_out)
        if report.verdict != LOSSY:
            missed[name] = report.log10_evidence
    assert missed == {}


@pytest.mark.parametrize("fixture", ["wide", "deep"])
@pytest.mark.parametrize("bug", BUGS_NOT_IN_THE_ZOO)
def test_bugs_that_are_not_in_the_zoo_are_found(bug: str, fixture: str) -> None:
    assert judged(BUGS_NOT_IN_THE_ZOO[bug], fixture, UNKNOWN, seed=15).verdict == LOSSY


def test_a_lossless_sampler_is_certified_and_a_lossy_one_is_not() -> None:
    rng = np.random.default_rng(17)
    for name, verdict in (("no-bonus", WITHIN), ("sample-and-match", WITHIN)):
        campaign, case = fresh("c", eps=0.05)
        campaign.add(case, drawn(law_of(CONTROLS[name].step, "c"), 100_000, rng))
        assert campaign.report().verdict == verdict
    campaign, case = fresh("c", eps=0.05)
    campaign.add(case, drawn(law_of(MUTANTS["lenience-10-9"].step, "c"), 100_000, rng))
    assert campaign.report().verdict == LOSSY


def certified(campaign: Campaign, case: CampaignCase) -> Verdict:
    blocks = drawn(law_of(standard.step, "c"), 100_000, np.random.default_rng(18))
    campaign.add(case, blocks)
    return campaign.report().verdict


def test_one_case_does_not_certify_another() -> None:
    assert certified(*fresh("c", eps=0.05)) == WITHIN
    campaign, case = fresh("c", eps=0.05)
    campaign.case(SMALL.target, SMALL.drafter, mutants={})
    assert certified(campaign, case) == INCONCLUSIVE


def test_one_case_does_not_certify_observed_tokens() -> None:
    campaign, case = fresh("c", eps=0.05)
    campaign.observe(np.array([0.5, 0.5]), 0)
    assert certified(campaign, case) == INCONCLUSIVE


def test_one_campaign_pools_what_its_cases_saw() -> None:
    step, pairs = MUTANTS["residual-is-p"].step, [positive_pair(key) for key in range(20)]
    trials = math.ceil(KNOWN / sum(pair_distance(step, pair) ** 2 for pair in pairs))
    rng, together = np.random.default_rng(19), Campaign(eps=None)
    cases = [declared(together, pair) for pair in pairs]
    for pair, case in zip(pairs, cases, strict=True):
        blocks, alone = drawn(pair_law(step, pair), trials, rng), Campaign(eps=None)
        alone.add(declared(alone, pair), blocks)
        assert not alone.decided_lossy
        together.add(case, blocks)
    assert together.report().verdict == LOSSY


def declared(campaign: Campaign, pair: ExactFixture) -> CampaignCase:
    return campaign.case(pair.target, pair.drafter, (), 1, mutants=FEW_MUTANTS)


FEW_MUTANTS = {name: MUTANTS[name] for name in ("residual-is-p", "residual-abs", "lenience-5-4")}


def positive_pair(key: int) -> ExactFixture:
    """Full supports, so that no bug does the impossible."""
    vocabulary = Vocabulary("abcd")

    def model(role: str) -> Model:
        base = hashed_model(vocabulary, f"{role} {key}")
        return Model(vocabulary, lambda x: normalise(base.next_token(x) * 4 + 1))

    return ExactFixture(f"pair {key}", model("p"), model("q"), 1)


def pair_law(step: Step, pair: ExactFixture) -> Law:
    target, drafter = as_float(pair.target), as_float(pair.drafter)
    return exact_distribution(lambda c: step(target, drafter, (), pair.lookahead, c))


def pair_distance(step: Step, pair: ExactFixture) -> float:
    output = completed(pair_law(step, pair), as_float(pair.target), (), pair.lookahead + 1)
    return float(total_variation(output, pair.continued()))


SURE = iid_model(Vocabulary("z"), [1])


def unlucky(campaign: Campaign, case: CampaignCase) -> float:
    """The evidence of a campaign that lost some of its wealth."""
    campaign.add(case, drawn(law_of(standard.step, "c"), 400, np.random.default_rng(20)))
    assert campaign.peak < -0.2
    return campaign.peak


def test_a_token_that_is_certain_changes_no_evidence() -> None:
    campaign, case = fresh("c")
    before = unlucky(campaign, case)
    campaign.observe(np.array([1.0]), 0, np.array([1.0]))
    assert campaign.peak == pytest.approx(before, abs=1e-9)


def test_a_case_on_which_nothing_can_go_wrong_changes_no_evidence() -> None:
    campaign, case = fresh("c")
    sure = campaign.case(SURE, SURE, mutants={"another": MUTANTS["always-accept-u0"]})
    before = unlucky(campaign, case)
    campaign.add(sure, [(0, 0)] * 5)
    assert campaign.peak == pytest.approx(before, abs=1e-9)


def test_mean_wealth_stays_one_when_cases_are_declared_because_of_losses() -> None:
    # A bug that joined with a wealth of 1 whenever the others have less would be free money.
    target, drafter = as_float(SMALL.target), as_float(SMALL.drafter)
    law = exact_distribution(lambda c: standard.step(target, drafter, (), 1, c))
    mean = 0.0
    for (first, a), (second, b) in itertools.product(law.items(), repeat=2):
        campaign = Campaign(eps=None)
        campaign.add(campaign.adopt(small_case()), [first])
        if campaign.peak < 0:
            renamed = {f"another {name}": entry for name, entry in FEW_MUTANTS.items()}
            case = campaign.case(SMALL.target, SMALL.drafter, mutants=renamed)
            campaign.evidence.peak = (
                -math.inf
            )  # the wealth at the end is wanted, not the highest so far
            campaign.add(case, [second])
        mean += float(a * b) * math.exp(campaign.peak)
    assert mean == pytest.approx(1, abs=1e-9)


def test_a_drafter_that_rounding_alone_tells_from_the_target_is_no_evidence() -> None:
    row = [0.06821837320520822, 0.9293922291004534, 2.806668989404173e-05, 0.002361331004444138]
    target = iid_model(Vocabulary("abcd"), row)
    drafter = iid_model(Vocabulary("abcd"), [*row[:2], row[2] * (1 + 4.62e-12), row[3]])
    campaign = Campaign(eps=None)
    case = campaign.case(target, drafter, (), 0, mutants={})
    rng = np.random.default_rng(34)
    for _ in range(10):
        campaign.add(case, rng.choice(4, size=(50_000, 1), p=row))
    assert campaign.report().verdict == INCONCLUSIVE


@pytest.mark.parametrize("tolerance", [0.02, 0.1])
def test_a_sampler_within_the_tolerance_is_not_accused(tolerance: float) -> None:
    skewed = iid_model(Vocabulary("ab"), ["4/5", "1/5"])
    campaign = Campaign(tolerance=tolerance, eps=None)
    case = campaign.case(skewed, skewed, (), 0, mutants={})
    rng = np.random.default_rng(21)
    for _ in range(20):
        campaign.add(case, (rng.random((5_000, 1)) >= 0.8 + tolerance).astype(int))
    assert campaign.report().verdict == INCONCLUSIVE


def test_a_sampler_far_beyond_the_tolerance_is_accused() -> None:
    for name in ("residual-is-p", "bonus-from-drafter", "lenience-scaled-residual"):
        step = MUTANTS[name].step
        report = judged(step, "wide", 4 * KNOWN, seed=22, tolerance=1e-3)
        assert report.verdict == LOSSY, name


def text_law(step: Step, fixture: str, length: int) -> Law:
    """The law of the first tokens of a decode loop; paths with the same text are merged."""
    pair = FIXTURES[fixture]
    target, drafter = as_float(pair.target), as_float(pair.drafter)
    open_texts: dict[Tokens, float] = {(): 1.0}
    law: dict[Tokens, float] = {}
    while open_texts:
        text = min(open_texts, key=len)
        weight = open_texts.pop(text)
        blocks = exact_distribution(
            lambda c, at=text: step(target, drafter, at, pair.lookahead, c)
        )
        for block, probability in blocks.items():
            longer = (*text, *block)[:length]
            law_or_open = law if len(longer) == length else open_texts
            law_or_open[longer] = law_or_open.get(longer, 0.0) + weight * float(probability)
    return law


def streamed(step: Step, trials: int, seed: int) -> CampaignReport:
    pair = FIXTURES["c"]
    campaign = Campaign(view="stream", eps=None)
    case = campaign.case(pair.target, pair.drafter, (), pair.lookahead, mutants={}, tokens=3)
    campaign.add(case, drawn(text_law(step, "c", 3), trials, np.random.default_rng(seed)))
    return campaign.report()


def test_texts_of_a_lossless_rule_are_not_accused() -> None:
    for name in ("standard", "sample-and-match", "no-bonus", "random-lookahead"):
        assert streamed(LOSSLESS[name], 20_000, seed=23).verdict == INCONCLUSIVE, name


def test_texts_of_a_lossy_rule_are_accused() -> None:
    fair = completed({(): 1.0}, as_float(FIXTURES["c"].target), (), 3)
    for name in ("residual-is-p", "bonus-from-drafter", "lenience-5-4", "shared-u", "no-stop"):
        step = MUTANTS[name].step
        gap = float(total_variation(text_law(step, "c", 3), fair))
        assert gap > 0.01
        assert streamed(step, math.ceil(UNKNOWN / gap**2), seed=24).verdict == LOSSY, name


def stale_after_the_first_block(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """Exact from an empty context; afterwards the target is read without its latest token."""
    stale = Model(target.vocabulary, lambda x: target.next_token(x[:-1]))
    return standard.step(stale if context else target, drafter, context, lookahead, chance)


def test_a_bug_between_iterations_is_seen_in_texts_only() -> None:
    law = law_of(stale_after_the_first_block, "c")
    campaign, case = fresh("c")
    campaign.add(case, drawn(law, 20_000, np.random.default_rng(25)))
    assert campaign.report().verdict == INCONCLUSIVE
    assert streamed(stale_after_the_first_block, 20_000, seed=25).verdict == LOSSY


TracedBlock = tuple[Tokens, Tokens]


@cache
def traced_law(step: Step, fixture: str) -> dict[TracedBlock, float]:
    """The joint law of the block and the drafts that `draft[i]` drew."""
    pair = FIXTURES[fixture]
    target, drafter = as_float(pair.target), as_float(pair.drafter)
    law = exact_distribution(lambda c: with_drafts(step, target, drafter, pair.lookahead, c))
    return {outcome: float(weight) for outcome, weight in law.items()}


def with_drafts(
    step: Step, target: Model, drafter: Model, lookahead: int, chance: Chance
) -> TracedBlock:
    traced = Traced(chance)
    block = tuple(step(target, drafter, (), lookahead, traced))
    return block, tuple(s.choice for s in traced.steps if s.site.startswith("draft["))


def trace(fixture: str, outcomes: list[TracedBlock]) -> Campaign:
    campaign, case = fresh(fixture, view="trace")
    blocks, drafts = padded(case, outcomes)
    campaign.add(case, blocks, drafts)
    return campaign


def padded(case: CampaignCase, outcomes: list[TracedBlock]) -> tuple[Array, Array]:
    blocks = np.full((len(outcomes), case.tree.length), -1)
    drafts = np.full((len(outcomes), case.tree.lookahead), -1)
    for row, (block, drafted) in enumerate(outcomes):
        blocks[row, : len(block)] = block[: case.tree.length]
        drafts[row, : len(drafted)] = drafted
    return blocks, drafts


def impossible_share(law: Mapping[TracedBlock, float], fixture: str) -> float:
    """The exact probability that one block and its drafts decide."""
    case, outcomes = template(fixture), list(law)
    blocks, drafts = padded(case, outcomes)
    nodes, bad = walk(case.tree, blocks)
    wrong = {*bad.tolist(), *impossible_traces(case.tree, blocks, nodes, drafts).tolist()}
    return sum(law[outcomes[row]] for row in wrong)


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("fixture", FIXTURES)
def test_no_trace_of_standard_decoding_is_impossible(fixture: str) -> None:
    for step in (standard.step, CONTROLS["ratio-without-min"].step, CONTROLS["no-bonus"].step):
        assert impossible_share(traced_law(step, fixture), fixture) == 0


@pytest.mark.deep
@pytest.mark.parametrize("fixture", ["eos", "wide", "deep"])
def test_impossible_traces_decide_within_what_their_probability_promises(fixture: str) -> None:
    shares = {n: impossible_share(traced_law(MUTANTS[n].step, fixture), fixture)
              for n in lossy_mutants(fixture)}  # fmt: skip
    frequent = [name for name, share in shares.items() if share >= 0.025]
    assert len(frequent) >= 15
    for name in frequent:
        # All of so many blocks are possible with probability 1e-9; 819 blocks at most.
        trials = math.ceil(math.log(1e9) / -math.log1p(-min(shares[name], 0.99)))
        law = traced_law(MUTANTS[name].step, fixture)
        weights = np.array(list(law.values()))
        picks = np.random.default_rng(26).choice(len(law), size=trials, p=weights / weights.sum())
        report = trace(fixture, [list(law)[pick] for pick in picks]).report()
        assert report.verdict == LOSSY, name
        assert report.impossible is not None


UNLIKE_STANDARD = {
    # Exact match rejects drafts with p > q; TLI divides q by its mass on shared tokens.
    "slem": (FIXTURES["wide"].target, FIXTURES["wide"].drafter),
    "tli": (
        iid_model(Vocabulary("abc"), ["1/4", "1/4", "1/2"]),
        iid_model(Vocabulary("abcd"), ["1/6", "1/6", "1/6", "1/2"]),
    ),
}


@pytest.mark.parametrize("algorithm", UNLIKE_STANDARD)
def test_traces_of_another_lossless_algorithm_are_refused_or_pass(algorithm: str) -> None:
    target, drafter = UNLIKE_STANDARD[algorithm]
    campaign, rng = Campaign(view="trace", eps=None), np.random.default_rng(27)
    try:
        case = campaign.case(target, drafter, (), 2, algorithm=algorithm, mutants={})
    except ValueError:
        return
    step = RULES[algorithm].step
    runs = [with_drafts(step, target, drafter, 2, Sampled(rng)) for _ in range(100)]
    campaign.add(case, *padded(case, runs))
    assert campaign.report().verdict == INCONCLUSIVE


@pytest.mark.deep
def test_the_first_suspect_is_the_bug_or_its_twin() -> None:
    named, total = 0, 0
    for fixture in BIG:
        for name in lossy_mutants(fixture):
            report = judged(MUTANTS[name].step, fixture, KNOWN, seed=28)
            if report.impossible:
                continue
            suspects = [s.component for s in report.suspects]
            named += suspects[0] in {f"library: {twin}" for twin in twins(name, fixture)}
            total += 1
    assert total >= 80
    assert named >= 0.8 * total


def test_impossible_tokens_decide_at_once_and_are_named() -> None:
    campaign, case = fresh("c")
    p = case.tree.p[0], case.tree.p[case.tree.child[0, 0]]
    token = int(np.flatnonzero(p[1] == 0)[0])
    campaign.add(case, [(0,), (0, token), (0, token, 0)])
    report = campaign.report()
    assert report.verdict == LOSSY
    assert report.impossible == f"block (0, {token}) on case 0: the target excludes it"
    assert f"impossible: {report.impossible}" in str(report)
    assert report.anytime_p == 0


def test_a_block_that_goes_on_after_eos_is_impossible() -> None:
    campaign, case = fresh("eos")
    vocabulary = FIXTURES["eos"].target.vocabulary
    eos = vocabulary.ids[vocabulary.eos]
    campaign.add(case, [(eos,)])
    assert campaign.impossible is None
    campaign.add(case, [(eos, 0)])
    assert campaign.report().verdict == LOSSY


def test_the_report_says_what_is_needed_to_judge_and_repeat_it() -> None:
    report = judged(MUTANTS["residual-is-p"].step, "wide", KNOWN, seed=29, alpha=1e-6)
    text = str(replace(report, seed=29))
    assert text.startswith(f"LOSSY: {report.trials:,} trials, {report.tokens:,} tokens, view ")
    assert "view boundary, alpha 1e-06, seed 29" in text
    assert "suspect library: residual-is-p" in text
    assert str(report.intervals[0]) in text
    assert report.anytime_p == pytest.approx(10**-report.log10_evidence)
    assert report.anytime_p <= 0.5e-6
    assert report.detectable == report.intervals[0].detectable


def test_an_inconclusive_report_says_how_many_trials_would_decide() -> None:
    blocks = drawn(law_of(standard.step, "c"), 500, np.random.default_rng(30))
    campaign, case = fresh("c")
    campaign.add(case, blocks)
    assert (campaign.report().verdict, campaign.report().needed) == (INCONCLUSIVE, None)
    campaign, case = fresh("c", eps=0.05)
    campaign.add(case, np.repeat(blocks[:1], 500, axis=0))
    assert (campaign.report().verdict, campaign.report().needed) == (LOSSY, None)
    campaign, case = fresh("c", eps=0.05)
    campaign.add(case, blocks)
    report = campaign.report()
    assert report.verdict == INCONCLUSIVE
    assert 10**report.log10_evidence == pytest.approx(math.exp(campaign.peak))
    assert report.needed is not None
    assert report.needed > 500
    assert f"{report.needed:,}" in str(report)
    assert 0 <= report.anytime_p <= 1


BAD_BLOCKS = {
    "a token follows padding": np.array([[0, -1, 1]]),
    "expected a token id < 3": np.array([[0, 3, -1]]),
    "has more than 3 tokens": np.array([[0, 0, 0, 0]]),
    "empty block": [(0,), ()],
}


@pytest.mark.parametrize(("message", "blocks"), BAD_BLOCKS.items(), ids=list(BAD_BLOCKS))
def test_nothing_is_counted_of_bad_blocks(message: str, blocks) -> None:
    """What else is bad has `test_prefix_tree`."""
    campaign, case = fresh("c")
    with pytest.raises(ValueError, match=message):
        campaign.add(case, blocks)
    campaign.add(case, [])
    assert case.trials == 0


@pytest.mark.parametrize("drafts", [None, np.zeros((1, 2), dtype=int), np.zeros((2, 2))])
def test_nothing_is_counted_with_bad_drafts(drafts) -> None:
    campaign, case = fresh("c", view="trace")
    with pytest.raises((ValueError, TypeError), match="drafts"):
        campaign.add(case, [(0, 1), (1,)], drafts)
    assert case.trials == 0


def test_padding_columns_change_nothing() -> None:
    campaign, case = fresh("c")
    wide, wide_case = fresh("c")
    blocks = drawn(law_of(standard.step, "c"), 50, np.random.default_rng(35))
    campaign.add(case, blocks)
    wide.add(wide_case, np.pad(blocks, ((0, 0), (0, 3)), constant_values=-1))
    assert wide.peak == campaign.peak


def test_a_case_is_adopted_without_what_was_counted_on_it() -> None:
    blocks = drawn(law_of(standard.step, "c"), 500, np.random.default_rng(36))
    first, case = fresh("c")
    first.add(case, blocks)
    second = Campaign(eps=None)
    adopted = second.adopt(case)
    assert adopted.log_bets is case.log_bets
    assert adopted.trials == 0
    with pytest.raises(ValueError, match="campaign is empty"):
        second.report()
    second.add(adopted, blocks)
    assert (second.peak, case.trials) == (first.peak, 500)
    assert second.report().intervals == first.report().intervals


def test_a_case_that_does_not_fit_is_not_adopted() -> None:
    case = template("c")
    with pytest.raises(ValueError, match=r"case.tolerance = 0.0: expected 0.1"):
        Campaign(tolerance=0.1).adopt(case)
    with pytest.raises(ValueError, match=r"case.tokens = None: not for the view stream"):
        Campaign(view="stream").adopt(case)
    campaign, _ = fresh("c")
    with pytest.raises(ValueError, match="has a case of that name"):
        campaign.adopt(case)


def test_a_case_of_another_campaign_is_refused() -> None:
    # Its evidence would be counted here, and its interval there.
    campaign, _ = fresh("c")
    _, other = fresh("c")
    with pytest.raises(ValueError, match="another campaign"):
        campaign.add(other, [(0,)])


def test_bad_cases() -> None:
    with pytest.raises(ValueError, match="view = 'blocks'"):
        Campaign(view="blocks")
    coin = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    other = iid_model(Vocabulary("abc"), ["1/2", "1/2", 0])
    with pytest.raises(ValueError, match="algorithm = 'medusa'"):
        Campaign().case(coin, coin, algorithm="medusa")
    with pytest.raises(ValueError, match="another vocabulary"):
        Campaign().case(coin, other)
    with pytest.raises(ValueError, match="campaign is empty"):
        Campaign().report()
    campaign = Campaign()
    campaign.case(coin, coin, name="coin", mutants={})
    with pytest.raises(ValueError, match="coin"):
        campaign.case(coin, coin, name="coin", mutants={})
    for tokens in (0, -1):
        with pytest.raises(ValueError, match="tokens"):
            Campaign(view="stream").case(coin, coin, tokens=tokens, mutants={})


LENGTHS = {
    "standard": (standard.step, Conformance.CONFORMS),
    "ratio-without-min": (CONTROLS["ratio-without-min"].step, Conformance.CONFORMS),
    "residual-is-p": (MUTANTS["residual-is-p"].step, Conformance.CONFORMS),
    "bonus-from-drafter": (MUTANTS["bonus-from-drafter"].step, Conformance.CONFORMS),
    "accept-after-rejection": (MUTANTS["accept-after-rejection"].step, Conformance.INFLATED),
    "lenience-5-4": (MUTANTS["lenience-5-4"].step, Conformance.INFLATED),
    "always-accept-u0": (MUTANTS["always-accept-u0"].step, Conformance.INFLATED),
    "greedy-draft-soft-q": (MUTANTS["greedy-draft-soft-q"].step, None),
    "no-bonus": (CONTROLS["no-bonus"].step, Conformance.DEFLATED),
    "sample-and-match": (CONTROLS["sample-and-match"].step, Conformance.DEFLATED),
    "random-lookahead": (CONTROLS["random-lookahead"].step, Conformance.DEFLATED),
    "accept-with-p": (MUTANTS["accept-with-p"].step, Conformance.DEFLATED),
}


@pytest.mark.parametrize("fixture", ["wide", "deep"])
@pytest.mark.parametrize("name", LENGTHS)
def test_accepted_lengths_conform_deviate_upwards_or_downwards(name: str, fixture: str) -> None:
    step, expected = LENGTHS[name]
    gaps = length_gaps(law_of(step, fixture), fixture)
    campaign, case = fresh(fixture)
    campaign.add(case, drawn(law_of(step, fixture), 40_000, np.random.default_rng(31)))
    found = campaign.report().acceptance[0]
    # Gaps below the resolution of 40,000 blocks may go either way.
    if np.abs(gaps).max() < 1e-12 or np.abs(gaps).max() > 2 * found.allowed_gap:
        assert found.conformance == conformance_of(gaps, found.allowed_gap)
    assert expected in (None, found.conformance)


def length_gaps(law: Law, fixture: str) -> Array:
    """The closed form's distribution function of accepted lengths less the law's own."""
    pair = FIXTURES[fixture]
    closed = RULES["standard"].accepted_lengths(pair.target, pair.drafter, (), pair.lookahead)
    own = np.zeros(pair.lookahead + 2)
    for block, weight in law.items():
        own[len(block) - 1] += weight
    return np.cumsum(np.pad([float(x) for x in closed], (0, len(own) - len(closed))) - own)


def conformance_of(gaps: Array, allowed: float) -> Conformance:
    longer, shorter = bool((gaps > allowed).any()), bool((gaps < -allowed).any())
    names = {(False, False): Conformance.CONFORMS, (True, False): Conformance.INFLATED}
    return names.get((longer, shorter), Conformance.DEVIATES if longer else Conformance.DEFLATED)


@pytest.mark.deep
def test_accepted_lengths_of_a_conforming_sampler_rarely_deviate() -> None:
    rng, law, deviations = np.random.default_rng(32), law_of(standard.step, "c"), 0
    for _ in range(200):
        campaign, case = fresh("c", alpha=0.05)
        campaign.add(case, drawn(law, 400, rng))
        deviations += campaign.report().conformance != Conformance.CONFORMS
    assert surely_at_most(deviations, 0.05, 200)


def test_texts_that_end_early_are_refused() -> None:
    coin = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    campaign = Campaign(view="stream", eps=None)
    case = campaign.case(coin, coin, tokens=3, mutants={})
    campaign.add(case, [(0, 1, 0)])
    with pytest.raises(ValueError, match=r"blocks\[1\] has 1 tokens: a text needs 3, or EOS"):
        campaign.add(case, [(0, 1, 1), (0,)])


def test_total_variation_alone_counts_as_lossy() -> None:
    """Without bets the evidence stays at 1."""
    campaign, case = fresh("eos", alpha=1e-4)
    campaign.evidence.bet = lambda *arguments: None  # type: ignore[method-assign]
    campaign.evidence.tolerance = 1e-9  # no Dirichlet bets either
    law = law_of(MUTANTS["always-accept-u0"].step, "eos")
    campaign.add(case, drawn(law, 3_000, np.random.default_rng(2)))
    assert campaign.peak == pytest.approx(0)
    assert campaign.report().verdict == Verdict.LOSSY


def test_a_distance_that_was_found_stays_found() -> None:
    campaign, case = fresh("c")
    campaign._too_far = True
    campaign.add(case, [(0,)])
    assert campaign.report().verdict == LOSSY


@pytest.mark.parametrize(("eps", "said"), [(None, True), (0.02, False)])
def test_without_eps_nothing_certifies_and_it_says_so(eps, said):
    campaign = Campaign(eps=eps)
    case = campaign.case(SMALL.target, SMALL.drafter, lookahead=SMALL.lookahead, mutants=MUTANTS)
    campaign.add(case, [(0,)] * 2)
    report = campaign.report()
    assert report.verdict == Verdict.INCONCLUSIVE
    assert ("without eps no number of trials certifies the distribution" in str(report)) == said
    assert ("trials on each case would decide (eps 0.02)" in str(report)) != said
