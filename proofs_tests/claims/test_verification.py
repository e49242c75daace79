"""What Kim et al. 2025, "Speculative Verification", claims, row by row of the claims ledger.

The name of a test starts with the row: V.8 is `test_v_8_…`. p, q and c are the laws of target,
drafter and companion, S and A the similarity and companion acceptance, v how many drafts are
verified, N how many are accepted. The paper's formulas for S, A and E[N] are read as the rows
say. "Printed goodput" is E[N] over the time of a pass; `goodputs` counts the token that is always
there, too. Rows V.15, V.17, V.28, V.29 and V.31, about printed figures, are in test_tables.py;
V.18 and V.25 to V.27 take the authors' models.
"""

import itertools
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from proofs_tests.helpers.companions import (
    AB,
    ABC,
    ALIKE,
    BOTH,
    CONTEXTS,
    DRAFTERS,
    RULES,
    is_predictable,
    keeping,
    models,
    simplex,
    truncating,
)
from specref import Model, Vocabulary, exact_distribution, is_lossless
from specref.algorithms import companion, slem, standard
from specref.algorithms.companion import rejecting
from specref.algorithms.companion.batch import fixed_budget_step
from specref.algorithms.companion.companion import companion_acceptance, similarity
from specref.contrib.speed.companion_table import (
    Observation,
    accepted_length_law,
    expected_accepted,
    information_gain,
    profile,
    truncated_law,
)
from specref.contrib.speed.latency import staircase
from specref.distributions import (
    as_distribution,
    normalise,
    overlap,
    total_variation,
    with_temperature,
)
from specref.models import hashed_model, iid_model
from specref.proofs.batches import is_jointly_lossless
from specref.theory import acceptance
from specref.theory.goodput import (
    allocation,
    best,
    first_decline,
    goodputs,
    greedy_length,
    greedy_lengths,
    optimal_length,
)
from specref.zoo import ALL, MUTANTS
from specref.zoo.companion import draft_first, look_past

F = Fraction
LAWS = simplex(3, 3)
STEPS = (0, 1, F(3, 2), F(3, 2), 2)
COIN = iid_model(AB, ["1/2", "1/2"])


def distance(step, target, drafter, lookahead=1):
    return is_lossless(step, target, drafter, (), lookahead).total_variation


def accepted_only(rates, latencies):
    """The printed goodput: accepted drafts over time, for v = 0, 1, …"""
    return batch_accepted_only([rates], latencies)


def batch_accepted_only(requests, latencies):
    """The printed goodput of a batch, for each number of drafts, by the greedy order."""
    totals = range(sum(map(len, requests)) + 1)
    return [
        sum(
            expected_accepted(rates, v)
            for rates, v in zip(requests, allocation(requests, drafts), strict=True)
        )
        / F(latencies[drafts])
        for drafts in totals
    ]


def while_it_improves(values):
    """The printed rule: one more as long as goodput improves."""
    steps = enumerate(itertools.pairwise(values))
    return next((k for k, (now, after) in steps if after <= now), len(values) - 1)


def test_v_1_similarity_and_companion_acceptance():
    """S = sum min(q, c) = 1 - TV in [0, 1], A = min(1, c / q), and E[A] = S under q."""
    for q, c in itertools.product(LAWS, LAWS):
        alike = similarity(q, c)
        assert 0 <= alike == 1 - total_variation(q, c) <= 1
        drawn = [x for x in range(3) if q[x] > 0]
        assert sum(q[x] * companion_acceptance(q, c, x) for x in drawn) == alike


def test_v_2_alignment_with_the_companion_is_not_alignment_with_the_target():
    """S = 1 at acceptance 0; what holds is |TV(q, p) - TV(c, p)| <= 1 - S."""
    one, other = as_distribution([1, 0]), as_distribution([0, 1])
    assert (similarity(one, one), overlap(one, other)) == (1, 0)
    for q, c, p in itertools.product(LAWS, LAWS, LAWS):
        gap = total_variation(q, p) - total_variation(c, p)
        assert abs(gap) <= 1 - similarity(q, c)
        assert overlap(p, q) >= similarity(q, c) - total_variation(c, p)


def test_v_3_accepted_length():
    """P(N = n) and E[N] from rates, against the law of an iteration by enumeration."""
    for key in range(4):
        target, drafter = hashed_model(ABC, f"length {key}"), hashed_model(ABC, f"drafts {key}")
        law = acceptance.standard(target, drafter, lookahead=3)
        reached = [sum(law[n:]) for n in range(len(law))]
        rates = [after / before for before, after in itertools.pairwise(reached)]
        assert accepted_length_law(rates, len(rates)) == law
        assert expected_accepted(rates, len(rates)) == sum(n * w for n, w in enumerate(law))


def test_v_4_averages_by_position_underestimate_long_prefixes():
    """Half the contexts accept everything, half nothing: E[N] = 1, from averages 3/4."""
    easy, hard, average = [F(1)] * 2, [F(0)] * 2, [F(1, 2)] * 2
    true = (expected_accepted(easy, 2) + expected_accepted(hard, 2)) / 2
    assert (true, expected_accepted(average, 2)) == (1, F(3, 4))
    latencies = [0, 1, F(8, 5), F(19, 10)]
    assert greedy_length(average, latencies) == optimal_length(average, latencies) == 0
    assert (1 + true) / latencies[3] > 1 / F(latencies[1])


@pytest.mark.parametrize(("rate", "without"), [(F(1, 2), 2), (F(1, 4), 1)])
def test_v_5_the_token_that_is_always_there_changes_the_best_length(rate, without):
    """L = 1 + v / 2: counting accepted drafts only, v = 0 is never chosen, though it is best."""
    times = [F(2 + v, 2) for v in range(5)]
    assert best(accepted_only([rate] * 4, times)) == without
    assert optimal_length([rate] * 4, [0, *times]) == 0
    assert accepted_only([rate] * 4, times)[0] == 0


def test_v_6_goodput_is_not_concave():
    """Latency linear, or at first flat, a = 1/2: second differences > 0, of both goodputs."""
    rates = [F(1, 2)] * 5
    slow = accepted_only(rates, [F(1), *(F(v, 2) for v in range(2, 7))])
    assert slow == [0, F(1, 2), F(1, 2), F(7, 16), F(3, 8), F(31, 96)]
    for values in (slow, goodputs([rates], range(7)), accepted_only(rates, range(1, 7))):
        slopes = [after - before for before, after in itertools.pairwise(values)]
        assert any(after > before for before, after in itertools.pairwise(slopes))
    assert values == [0, F(1, 4), F(1, 4), F(7, 32), F(3, 16), F(31, 192)]


@pytest.mark.deep
def test_v_6_first_decline_is_right_for_convex_latencies_and_wrong_for_staircases():
    rows = itertools.product([F(1, 4), F(1, 2), F(9, 10), F(1)], repeat=3)
    for rates, extra in itertools.product(rows, itertools.product(range(3), repeat=3)):
        latencies = [0, *itertools.accumulate([1, *itertools.accumulate(extra)])]
        values = goodputs([rates], latencies)
        assert values[greedy_length(rates, latencies)] == max(values)
        values = accepted_only(rates, latencies[1:])
        assert values[while_it_improves(values)] == max(values)
    printed = accepted_only([F(9, 10)] * 4, [1, 1, 2, 2, 2])
    assert [round(float(value), 3) for value in printed[1:]] == [0.9, 0.855, 1.22, 1.548]
    assert while_it_improves(printed) == first_decline(printed) == 1 < best(printed) == 4
    assert greedy_length([F(9, 10)] * 3, staircase(4, 2, base=1)) == 1


@pytest.mark.deep
def test_v_7_greedy_is_optimal_for_every_number_of_drafts():
    """Against all ways to split the total among three requests."""
    rates = [F(1, 4), F(4, 5), F(1)]
    for picks in itertools.product(itertools.product(rates, repeat=2), repeat=3):
        gains = [[expected_accepted(row, v) for v in range(3)] for row in picks]
        for total in range(7):
            splits = [v for v in itertools.product(range(3), repeat=3) if sum(v) == total]
            greatest = max(
                sum(g[v] for g, v in zip(gains, split, strict=True)) for split in splits
            )
            chosen = allocation(picks, total)
            assert sum(g[v] for g, v in zip(gains, chosen, strict=True)) == greatest


@pytest.mark.parametrize(
    ("other", "found"),
    [(F(9, 10), [0, 0.9, 0.9, 1.305, 1.71]), (F(4, 5), [0, 0.9, 0.855, 1.255, 1.575])],
)
def test_v_7_it_stops_before_the_peak_on_a_staircase(other, found):
    """Two requests, 1, 1, 2, 2, 2 for 0 to 4 drafts: at a tie, and at a decline."""
    values = batch_accepted_only([[F(9, 10)] * 2, [other] * 2], [1, 1, 2, 2, 2])
    assert list(map(float, values)) == found
    assert while_it_improves(values) == 1 < best(values) == 4


@pytest.mark.deep
def test_v_7_it_reaches_the_peak_of_convex_latencies():
    """Two requests of two drafts, with the printed goodput."""
    rates = [F(1, 4), F(4, 5), F(1)]
    for picks in itertools.product(itertools.product(rates, repeat=2), repeat=2):
        for steps in itertools.product((0, F(1, 5), 1), repeat=4):
            values = batch_accepted_only(
                picks, list(itertools.accumulate([1, *itertools.accumulate(steps)]))
            )
            assert values[while_it_improves(values)] == max(values)


def test_v_7_the_order_takes_equal_costs():
    """Not the paper's setting, where a pass costs by its length: tokens that cost differently.

    a gains 9/10 for 10, b 4/5 for 1/10, over a base of 1: both 17/111, b alone 8/11.
    """
    gain, cost = {"a": F(9, 10), "b": F(4, 5)}, {"a": F(10), "b": F(1, 10)}
    value = {s: sum(map(gain.get, s)) / (1 + sum(map(cost.get, s))) for s in ("", "a", "b", "ab")}
    first = max(gain, key=gain.get)
    assert (first, value["ab"] > value["a"] > value[""]) == ("a", True)
    assert (value["ab"], value["b"]) == (F(17, 111), F(8, 11))


def test_v_8_the_published_rule_is_lossy():
    """p = q = (1/2, 1/2), c = (1/10, 9/10), L = (1, 3/2): P(a) = 1/4, TV 1/4."""
    entry = ALL["companion-judges-the-draft"]
    proof = is_lossless(entry.on(entry.case), entry.case.target, entry.case.drafter)
    assert proof.total_variation == F(1, 4)
    assert (proof.difference.tokens, proof.difference.output) == ((0,), F(1, 4))
    assert similarity(*(m.next_token(()) for m in (COIN, entry.case.options["companion"]))) == F(
        3, 5
    )


def test_v_8_the_published_rule_is_lossy_for_accepted_tokens_alone():
    """The same coin, the printed goodput, L = (1, 1, 8/5): the second token is a with 1/4."""

    def length(rates):
        return while_it_improves(accepted_only(rates, [1, 1, F(8, 5)]))

    third = ALL["companion-judges-the-draft"].case.options["companion"]
    step = partial(companion.step, companion=third, length=length, **BOTH)
    proof = is_lossless(step, COIN, COIN, (), 2)
    assert proof.total_variation == F(1, 4)
    assert sum(w for text, w in proof.output.items() if text[1] == 0) == F(1, 4)


@pytest.mark.deep
def test_v_8_it_is_lossy_on_most_models():
    """43 of 60 hashed triples over three tokens."""
    length = partial(greedy_length, latencies=(0, 1, F(3, 2), 2))
    lossy = 0
    for key in range(60):
        target, drafter, third = models(ABC, f"v8 {key}")
        step = partial(companion.step, companion=third, length=length, **BOTH)
        lossy += distance(step, target, drafter, 2) > 0
    assert lossy == 43


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("name", DRAFTERS)
def test_v_9_lossless_iff_predictable(name):
    """All rules of two drafts: 12 of 162 are lossless; p = q decides."""
    drafter = DRAFTERS[name]
    lossless = [is_lossless(truncating(rule), drafter, drafter, (), 2).lossless for rule in RULES]
    assert lossless == [is_predictable(rule, drafter) for rule in RULES]
    assert sum(lossless) == {"no memory": 7, "last token": 5}[name]
    for rule in itertools.compress(RULES, lossless):
        for key in range(5):
            assert distance(truncating(rule), hashed_model(AB, f"v9 {key}"), drafter, 2) == 0


def test_v_9_the_law_of_a_truncated_draft():
    """For p = q it is q (1 + w - E[w]), w the probability that the draft is verified."""
    for q, kept in itertools.product(LAWS, itertools.product([F(0), F(1, 3), F(1)], repeat=3)):
        w = np.array(kept, dtype=object)
        assert (truncated_law(q, q, w) == q * (1 + w - (q * w).sum())).all()


@pytest.mark.deep
def test_v_10_two_repairs():
    """Decide before the draw; or keep A, and reject what does not pass."""
    length = partial(greedy_length, latencies=STEPS)
    for vocabulary, key in itertools.product((AB, ABC), range(15)):
        target, drafter, third = models(vocabulary, f"v10 {key}")
        early = partial(companion.predictable_step, companion=third, length=length, **ALIKE)
        late = partial(rejecting.step, companion=third, length=length, **BOTH)
        assert distance(early, target, drafter, 2) == distance(late, target, drafter, 2) == 0


def test_v_10_acceptance_of_the_second_repair():
    """sum min(p, q') with q' = q on the tokens that pass."""
    p, q = as_distribution(["1/2", "1/2"]), as_distribution(["3/4", "1/4"])
    passing = np.array([F(3, 4), F(0)], dtype=object)
    target, drafter, third = (iid_model(AB, row) for row in (p, q, [1, 0]))
    assert distance(keeping([F(1), F(0)]), target, drafter) > 0
    step = partial(
        rejecting.step,
        companion=third,
        estimate=lambda alike, acceptance: acceptance,
        length=lambda rates: int(rates[0] > 0),
    )
    law = exact_distribution(lambda chance: step(target, drafter, (), 1, chance))
    accepted = sum(weight for block, weight in law.items() if len(block) == 2)
    assert accepted == overlap(p, passing) == F(1, 2)
    assert distance(step, target, drafter) == 0


def test_v_11_the_bonus_token_is_from_p():
    """Verify 1 of 2 drafts, last token from the residual of the discarded one: TV 3/8."""
    target, drafter = COIN, iid_model(AB, ["3/4", "1/4"])
    step = MUTANTS["truncated-bonus-from-residual"].step
    assert distance(step, target, drafter, 2) == F(3, 8)


@pytest.mark.parametrize("rule", RULES[::5], ids=lambda rule: "".join(map(str, rule.values())))
def test_v_12_exceptions(rule):
    """Greedy target; deterministic drafter; exact match: any truncation is lossless."""

    def cold(model):
        return Model(model.vocabulary, lambda x: with_temperature(model.next_token(x), 0))

    def matching(target, drafter, context, lookahead, chance):
        drafts = tuple(d.token for d in standard.draft(drafter, context, 2, chance))
        return slem.match(target, context, drafts[: rule[drafts]], chance)

    for key in range(4):
        target, drafter, _ = models(AB, f"v12 {key}")
        assert distance(truncating(rule), cold(target), drafter, 2) == 0
        assert distance(truncating(rule), target, cold(drafter), 2) == 0
        assert distance(matching, target, drafter, 2) == 0


def test_v_12_sampling_is_no_exception():
    lossy = [
        rule for rule in RULES if distance(truncating(rule), *[DRAFTERS["last token"]] * 2, 2)
    ]
    assert len(lossy) == len(RULES) - 5


def test_v_13_other_requests_may_decide_the_own_draft_may_not():
    """Own tokens compete for one draft: TV 1/8. Request 0's token decides on request 1: 0."""
    entry = ALL["batch-drafts-compete"]
    models_of = (entry.case.target, entry.case.drafter)
    proof = is_jointly_lossless(entry.on(entry.case), *models_of, [(), ()])
    assert proof.alone(0) == F(1, 8)
    assert sum(w for texts, w in proof.output.items() if texts[0][0] == 0) == F(3, 8)

    def one_decides(rates):
        return [1, int(rates[0][0] == 1)]

    told = {
        "companion": entry.case.options["companion"],
        "estimate": lambda alike, acceptance: acceptance,
    }
    step = partial(draft_first, lengths=one_decides, **told)
    assert is_jointly_lossless(step, *models_of, [(), ()])


@pytest.mark.deep
def test_v_14_at_least_one_token_for_each_request():
    """With v = 0 too, if the request's last token is in the pass."""
    target, drafter, third = models(ABC, "v14")
    for lengths in itertools.product(range(3), repeat=2):
        step = partial(
            draft_first,
            companion=third,
            estimate=lambda alike, acceptance: alike,
            lengths=lambda rates, chosen=lengths: chosen,
        )
        law = exact_distribution(lambda chance, s=step: s(target, drafter, CONTEXTS, 2, chance))
        assert min(len(block) for outcome in law for block in outcome) == 1


def test_v_15_seeing_both_tells_at_least_as_much_as_one():
    """H(X | S, A) <= H(X | S): merging bins never gains information, whatever X is.

    The paper's X is the acceptance probability; this one is the verdict.
    """
    for key in range(5):
        p, q, c = (model.next_token(()) for model in models(Vocabulary("abcdefgh"), f"v15 {key}"))
        run = [
            Observation(similarity(q, c), companion_acceptance(q, c, x), min(p[x] / q[x], 1))
            for x in np.flatnonzero(q)
        ]
        both, alone = profile(run, (3, 3)).gain(), profile(run, (3, 1)).gain()
        assert both.information >= alone.information - 1e-12
        assert both.entropy == alone.entropy


def test_v_16_the_gain_grows_with_the_number_of_bins_though_there_is_none():
    """Fair verdicts that no bin knows of, four observations: 0, 0.237, 0.376, 0.461 bits."""

    def mean_gain(bins):
        gains = []
        for places in itertools.product(range(bins), repeat=4):
            for verdicts in itertools.product((0, 1), repeat=4):
                seen = list(zip(places, verdicts, strict=True))
                counts = [places.count(cell) for cell in range(bins)]
                accepted = [seen.count((cell, 1)) for cell in range(bins)]
                gains.append(information_gain(counts, accepted).information)
        return sum(gains) / len(gains)

    assert [round(mean_gain(bins), 3) for bins in (1, 2, 3, 4)] == [0, 0.237, 0.376, 0.461]


def test_v_24_overall_gain_of_a_slower_prefill_and_a_faster_decoding():
    """1.2 overall at batch 64 only without prefill, 1.35 at 80 with little of the time before."""

    def shares(decoding, overall, off=0):
        """Least and most of the time without a companion that is prefill.

        That is x in x / prefill + (1 - x) / decoding = 1 / overall, prefill 0.85 to 0.95, the
        other two off by so much; it is monotone in each.
        """
        corners = itertools.product((-off, off), (-off, off), (F(17, 20), F(19, 20)))
        found = [
            (1 / (overall + b) - 1 / (decoding + a)) / (1 / prefill - 1 / (decoding + a))
            for a, b, prefill in corners
        ]
        return [round(100 * float(share), 1) for share in (min(found), max(found))]

    at_64, at_80 = (F(6, 5), F(6, 5)), (F(7, 5), F(27, 20))
    assert (shares(*at_64), shares(*at_80)) == ([0, 0], [5.7, 7.8])
    assert (shares(*at_64, F(1, 200))[1], shares(*at_80, F(1, 200))) == (3.1, [4.6, 9.3])


def test_v_19_a_published_counterexample_in_its_own_numbers():
    """a_1 = 4/5, a_2 = 9/10 after a and 0 after b: the scan emits a with 17/20, not 7/10."""
    entry = ALL["companion-looks-past-the-draft"]
    case = entry.case
    proof = is_lossless(entry.on(case), case.target, case.drafter, (), 2)
    assert (str(proof.difference), proof.total_variation) == (
        "P(0,) = 17/20, the target's is 7/10",
        F(3, 20),
    )
    told = dict(case.options) | {"length": partial(greedy_length, latencies=(0, 1, 2, F(20, 9)))}
    early = partial(look_past, **told)
    assert is_lossless(early, case.target, case.drafter, (), 2)


@pytest.mark.deep
def test_v_20_first_decline_is_causal_the_scan_is_not():
    """40 models: with S alone the walk is always exact, the scan is not, nor the walk with A."""
    stairs, line = (0, 1, 2, 2), (0, 1, F(3, 2), 2)
    lossy = {}
    for name, rule, length, latencies, told in (
        ("walk on other stairs", look_past, greedy_length, stairs, ALIKE),
        ("walk on stairs", look_past, greedy_length, (0, 1, 1, 2), ALIKE),
        ("walk on a line", look_past, greedy_length, line, ALIKE),
        ("scan on stairs", look_past, optimal_length, stairs, ALIKE),
        ("walk that sees A", companion.step, greedy_length, line, BOTH),
    ):
        lossy[name] = 0
        for key in range(40):
            target, drafter, third = models(ABC, f"v20 {key}")
            chosen = partial(length, latencies=latencies)
            step = partial(rule, companion=third, length=chosen, **told)
            lossy[name] += distance(step, target, drafter, 2) > 0
    assert list(lossy.values()) == [0, 0, 0, 7, 26]


def test_v_20_a_walk_that_steps_back_among_equals_is_not_causal():
    """Ties are the exception: first among equals needs to know how the walk goes on."""
    entry = ALL["companion-steps-back-among-equals"]
    case = entry.case
    proof = is_lossless(entry.on(case), case.target, case.drafter, (), 2)
    assert proof.total_variation == F(1, 4)
    assert sum(w for text, w in proof.output.items() if text[0] == 0) == F(3, 4)
    told = dict(case.options) | {
        "length": partial(greedy_length, latencies=(0, 1, F(3, 2), F(19, 10)))
    }
    ended = partial(look_past, **told)
    assert distance(ended, case.target, case.drafter, 2) == 0


@pytest.mark.parametrize("key", range(4))
def test_v_21_a_fixed_budget_is_jointly_lossless(key):
    """Drafting as it goes, or the K greatest of all."""
    target, drafter, third = models(AB, f"v21 {key}")
    told = {"companion": third, "estimate": lambda alike, acceptance: alike}
    for budget in (1, 2, 3):
        early = partial(fixed_budget_step, companion=third, budget=budget, **ALIKE)
        late = partial(draft_first, lengths=partial(allocation, drafts=budget), **told)
        assert is_jointly_lossless(early, target, drafter, CONTEXTS, 2)
        assert is_jointly_lossless(late, target, drafter, CONTEXTS, 2)


@pytest.mark.deep
def test_v_21_a_walk_is_jointly_lossless_and_the_best_total_is_not():
    """Drafts in the order of survival while goodput grows, or the total by argmax over all."""
    walk = partial(greedy_lengths, latencies=(0, 1, 2, F(5, 2), 3, F(7, 2), 4))
    stairs = (0, 1, 1, 2, 2, 2, 2)

    def scan(rates):
        return allocation(rates, best(goodputs(rates, stairs)))

    lossy = []
    for lengths in (walk, partial(greedy_lengths, latencies=stairs), scan):
        proofs = []
        for key in range(12):
            target, drafter, third = models(AB, f"v21 {key}")
            told = {"companion": third, "estimate": lambda alike, acceptance: alike}
            step = partial(draft_first, lengths=lengths, **told)
            proofs.append(is_jointly_lossless(step, target, drafter, CONTEXTS, 2))
        lossy.append(sum(not proof for proof in proofs))
    assert lossy == [0, 0, 2]
    assert max(proof.total_variation for proof in proofs) == F(1, 5)


def test_v_22_each_request_exact_is_not_the_batch_exact():
    """P(both a) = 5/16, not 1/4; TV 1/8; each alone exact."""
    entry = ALL["batch-makes-room"]
    proof = is_jointly_lossless(
        entry.on(entry.case), entry.case.target, entry.case.drafter, [(), ()]
    )
    both = sum(w for texts, w in proof.output.items() if texts[0][0] == texts[1][0] == 0)
    assert (both, proof.total_variation) == (F(5, 16), F(1, 8))
    assert (proof.alone(0), proof.alone(1)) == (0, 0)


P, Q = as_distribution(["1/5", "1/5", "3/5"]), as_distribution(["3/5", "1/5", "1/5"])
LIKELY = np.array([x >= F(1, 4) for x in Q])


def test_v_23_discarding_an_unlikely_draft_is_lossy():
    """q(x) < 1/4 discarded, bonus token from p: TV 3/25."""
    assert list(truncated_law(P, Q, LIKELY * F(1))) == [F(7, 25), F(2, 25), F(16, 25)]
    target, drafter = iid_model(ABC, P), iid_model(ABC, Q)
    first = truncated_law(P, Q, LIKELY * F(1))
    assert total_variation(first, P) == F(3, 25)
    assert distance(MUTANTS["drop-low-probability-draft"].step, target, drafter) >= F(3, 25)


def test_v_23_keeping_it_and_stopping_after_it_is_lossless():
    """As are filtering q before the draw, and the residual of what is not discarded."""

    def keep_and_stop(target, drafter, context, lookahead, chance):
        drafts = standard.draft(drafter, context, lookahead, chance)
        unlikely = [k for k, (token, q) in enumerate(drafts) if q[token] < F(1, 4)]
        return standard.verify(target, context, drafts[: min([*unlikely, 9]) + 1], chance)

    def filtered_before(target, drafter, *rest):
        def likely(context):
            q = drafter.next_token(context)
            return normalise(np.where(q >= F(1, 4), q, q * 0))

        return standard.step(target, Model(ABC, likely), *rest)

    def with_residual(target, drafter, context, lookahead, chance):
        q = drafter.next_token(context)
        token = chance.draw(q, "draft[0]")
        passes = np.where(q >= F(1, 4), q, q * 0)
        drafts = [standard.Draft(token if passes[token] else None, passes)]
        return standard.verify(target, context, drafts, chance)

    target, drafter = iid_model(ABC, P), iid_model(ABC, Q)
    for step in (keep_and_stop, filtered_before, with_residual):
        assert distance(step, target, drafter, 2) == 0
