"""What Timor et al. 2025 claims, row by row of the claims ledger, settled with exact fractions.

The name of a test starts with the row: H5.2 is `test_h5_2_…`. T and D are the vocabularies of
target and drafter, p and q their next-token distributions, n the lookahead.
"""

import itertools
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from proofs_tests.helpers.bugs import planted
from specref import Traced, Vocabulary, completed, exact_distribution, is_lossless
from specref.algorithms import autoregressive, slem, slrs, standard, tli, union
from specref.algorithms.standard import Draft
from specref.distributions import (
    as_distribution,
    normalise,
    overlap,
    relabel,
    residual,
    total_variation,
)
from specref.models import Model, hashed_model, iid_model, markov_model, table_model
from specref.proofs import is_lossless_loop
from specref.rules import RULES
from specref.theory import (
    conditional_psi,
    decompositions,
    fixed,
    n_max,
    proposals,
    psi,
    until_determined,
)
from specref.vocabulary import find_untokenisable, inexpressible, intersection, is_expressible
from specref.zoo.parts.standard import one_hot

HALF, THIRD = ["1/2", "1/2"], ["1/3", "1/3", "1/3"]
STRING_LEVEL = [
    ("a b ab", "a b"),
    ("a b", "a b ab ba"),
    ("a b aa ab", "b a bb aba"),
    ("a aa b", "b aa a"),
]
TOKEN_LEVEL = {
    "equal": ("a b c", "a b c"),
    "overlapping": ("a b c", "c x a"),
    "drafter inside": ("a b c", "b a"),
    "target inside": ("a b", "b x a"),
    "disjoint": ("a b", "x y"),
}
STRATEGIES = ("union", "tli", "slem", "slrs")


def words(spelled):
    return Vocabulary(spelled.split())


def iid(tokens, row):
    return iid_model(words(tokens), row)


def hashed(target, drafter, key=""):
    return hashed_model(words(target), f"target{key}"), hashed_model(words(drafter), f"draft{key}")


def hashed_pairs(pairs, keys=3):
    return [hashed(*both, key) for both in pairs for key in range(keys)]


def simplex(size, denominator):
    """Every distribution whose probabilities have the denominator."""
    counts = itertools.product(range(denominator + 1), repeat=size)
    return [
        as_distribution([Fraction(count, denominator) for count in row])
        for row in counts
        if sum(row) == denominator
    ]


def blocks_of(step, target, drafter, lookahead=1, context=()):
    return exact_distribution(lambda chance: step(target, drafter, context, lookahead, chance))


def distance(step, target, drafter, lookahead=1, context=()):
    """Total variation of the completed block from the target's own law."""
    return is_lossless(step, target, drafter, context, lookahead).total_variation


def first_token(blocks, size):
    row = np.full(size, Fraction(0))
    for block, weight in blocks.items():
        row[block[0]] += weight
    return row


def mean(law):
    return sum(length * weight for length, weight in law.items())


def mean_length(blocks):
    return sum(len(block) * weight for block, weight in blocks.items())


def mean_accepted(algorithm, *case):
    return mean(dict(enumerate(RULES[algorithm].accepted_lengths(*case))))


def verified(p, submitted, believed):
    """The law of the output when a token of one law is verified as if it had another.

    What was believed impossible is accepted.
    """
    ratios = [1 if b == 0 else min(1, Fraction(a) / b) for a, b in zip(p, believed, strict=True)]
    accepted = submitted * np.array(ratios, dtype=object)
    rejected = 1 - accepted.sum()
    return accepted + rejected * residual(p, believed) if rejected else accepted


def first_acceptance(step, target, drafter, lookahead=1):
    """P(the first submitted token is accepted), from enumeration."""

    def program(chance):
        traced = Traced(chance)
        step(target, drafter, (), lookahead, traced)
        return any(entry.site == "accept[0]" and entry.choice for entry in traced.steps)

    return exact_distribution(program).get(True, 0)


def first_match(target, drafter, lookahead):
    """P(the first target sample of SLEM is the first proposed token), from enumeration."""
    stop = fixed(target.vocabulary, drafter.vocabulary, lookahead)

    def program(chance):
        text = drafter.vocabulary.decode(slem.draft(drafter, (), stop, chance))
        proposed = target.vocabulary.encode(text)[0]
        return chance.draw(target.next_token(()), "target[0]") == proposed

    return exact_distribution(program).get(True, 0)


def test_h5_1_strict_or_weak_inequality():
    """Rejecting with probability 1 - p/q when p <= q, or when p < q, is the same rule."""
    for p, q in itertools.product(simplex(2, 6), simplex(2, 6)):
        for token in (0, 1):
            if q[token] > 0:
                weak = p[token] / q[token] if p[token] <= q[token] else 1
                strict = p[token] / q[token] if p[token] < q[token] else 1
                assert standard.acceptance(p, q, token) == weak == strict


def test_h5_2_residual_after_full_acceptance_is_lossy():
    """Algorithm 5 as printed draws the last token from the residual, come what may: lossy."""
    target, drafter = iid("a b", HALF), iid("a b", ["3/4", "1/4"])
    proof = is_lossless(planted.residual_bonus, target, drafter, (), 1)
    assert proof.total_variation == Fraction(3, 8)
    assert sum(weight for block, weight in proof.output.items() if block[1] == 0) == Fraction(1, 8)
    assert blocks_of(planted.residual_bonus, target, drafter, 0) == {(1,): 1}


def test_h5_3_printed_rule_crashes_on_a_perfect_drafter():
    """With q = p every draft is accepted and the printed last draw is from 0/0."""
    model = iid("a b", ["1/3", "2/3"])
    with pytest.raises(ValueError, match="all zero"):
        blocks_of(planted.residual_bonus, model, model)
    assert distance(standard.step, model, model) == 0


def test_h5_4_bonus_from_target_is_lossless():
    """Repaired: residual after a rejection only, else a bonus token from p."""
    for (target, drafter), n in itertools.product(hashed_pairs([("a b c", "a b c")]), range(4)):
        assert distance(standard.step, target, drafter, n) == 0
        assert {len(block) for block in blocks_of(standard.step, target, drafter, n)} <= set(
            range(1, n + 2)
        )


@pytest.mark.parametrize("bonus", ["drafter_bonus", "argmax_bonus", "stale_bonus"])
def test_h5_5_bonus_law_is_forced(bonus):
    """The distance is sum_x P(all drafts accepted = x) TV(bonus law after x, p after x)."""
    target, drafter = hashed("a b c", "a b c")
    expected = 0
    for x in itertools.product(range(3), repeat=2):
        accepted = [
            min(target.next_token(x[:i])[x[i]], drafter.next_token(x[:i])[x[i]]) for i in (0, 1)
        ]
        p = target.next_token(x)
        law = {
            "drafter_bonus": drafter.next_token(x),
            "argmax_bonus": one_hot(int(np.argmax(p)), p),
            "stale_bonus": target.next_token(()),
        }[bonus]
        expected += accepted[0] * accepted[1] * total_variation(law, p)
    assert distance(getattr(planted, bonus), target, drafter, 2) == expected > 0


def test_h5_6_acceptance_is_one_minus_total_variation():
    """A draft is accepted with probability sum min(p, q) = 1 - TV, which is 1 iff p = q."""
    for p, q in itertools.product(simplex(3, 4), simplex(3, 4)):
        pair = iid("a b c", p), iid("a b c", q)
        rate = first_acceptance(standard.step, *pair)
        assert rate == RULES["standard"].acceptance_rate(*pair) == 1 - total_variation(p, q)
        assert (rate == 1) == (list(p) == list(q))


def test_h5_7_the_same_output_is_not_what_stays():
    """Two runs of autoregressive decoding agree on the first token with probability 1/2."""
    model = iid("a b", HALF)

    def two_runs(chance):
        once, again = (autoregressive.step(model, model, (), 0, chance) for _ in range(2))
        return once == again

    assert exact_distribution(two_runs) == {True: Fraction(1, 2), False: Fraction(1, 2)}


def test_h5_8_each_pass_emits_a_token_at_least_as_without_drafts():
    """Autoregressive decoding has nothing to accept; it emits one token, drafts one or more."""
    for target, drafter in hashed_pairs([TOKEN_LEVEL["equal"]]):
        plain = blocks_of(autoregressive.step, target, drafter, 2)
        drafted = blocks_of(standard.step, target, drafter, 2)
        assert {len(block) for block in plain} == {1}
        assert {len(block) for block in drafted} == {1, 2, 3}


@pytest.mark.parametrize("relation", TOKEN_LEVEL)
def test_h1_1_union_is_lossless(relation):
    """For overlapping, nested and disjoint vocabularies; only target tokens come out."""
    for (target, drafter), n in itertools.product(hashed_pairs([TOKEN_LEVEL[relation]]), range(3)):
        blocks = blocks_of(union.step, target, drafter, n)
        assert distance(union.step, target, drafter, n) == 0
        assert {token for block in blocks for token in block} <= set(range(len(target.vocabulary)))
        assert relation != "disjoint" or set(map(len, blocks)) == {1}


def test_h1_1_with_algorithm_5_as_printed_a_nested_pair_is_lossy_and_a_disjoint_one_is_not():
    """T = {a, b}, D = {b} or {x, y}: both over the union, as Algorithm 1 has them."""
    nested = iid("a b", HALF), iid("a b", [0, 1])
    assert distance(planted.residual_bonus, *nested) == Fraction(1, 4)
    assert distance(union.step, iid("a b", HALF), iid("b", [1])) == 0
    disjoint = iid("a b x y", [*HALF, 0, 0]), iid("a b x y", [0, 0, "1/3", "2/3"])
    assert distance(planted.residual_bonus, *disjoint, 2) == 0


def test_h1_3_the_target_is_asked_at_contexts_of_its_own_tokens_alone():
    """Algorithm 5 as listed asks for p after every draft, foreign ones among them."""
    for plain, drafter in hashed_pairs([TOKEN_LEVEL["overlapping"]]):
        asked = set()

        def row(context, plain=plain, asked=asked):
            asked.add(context)
            return plain.next_token(context)

        assert distance(union.step, Model(plain.vocabulary, row), drafter, 2) == 0
        assert {len(context) for context in asked} == {0, 1, 2}
        own = set(range(len(plain.vocabulary)))
        assert {token for context in asked for token in context} <= own


def test_h1_4_optimality_hypothesis_is_vacuous():
    """p <= q on all of T, under which union is called optimal, forces q = p."""
    for p, q in itertools.product(simplex(3, 4), simplex(4, 4)):
        if (p <= q[:3]).all():
            assert list(p) == list(q[:3])
            assert RULES["union"].acceptance_rate(iid("a b c", p), iid("a b c x", q)) == 1


def test_h1_5_mass_outside_the_target_breaks_the_hypothesis():
    """p <= q on T is impossible as soon as q has mass outside T."""
    for p, q in itertools.product(simplex(2, 6), simplex(3, 6)):
        assert q[2] == 0 or (p > q[:2]).any()


def test_h1_6_renormalising_helps_for_every_target():
    """T = {a, b}, D = {a, b, c}, q uniform: TLI accepts 1/6 to 1/3 more than union."""
    drafter = iid("a b c", THIRD)
    gains = [
        RULES["tli"].acceptance_rate(target, drafter)
        - RULES["union"].acceptance_rate(target, drafter)
        for target in (iid("a b", p) for p in simplex(2, 12))
    ]
    assert (min(gains), max(gains)) == (Fraction(1, 6), Fraction(1, 3))


def test_h1_7_tli_never_rejects_what_it_never_drafts():
    """T = {a}, D = {a, aa}: union rejects aa, TLI never samples it, SLEM gains from it."""
    target, drafter = iid("a", [1]), iid("a aa", ["1/3", "2/3"])
    assert RULES["union"].acceptance_rate(target, drafter) == Fraction(1, 3)
    assert RULES["tli"].acceptance_rate(target, drafter) == 1
    assert mean_length(blocks_of(union.step, target, drafter, 2)) == Fraction(13, 9)
    assert mean_length(blocks_of(tli.step, target, drafter, 2)) == 3
    assert mean_length(blocks_of(slem.step, target, drafter, 2)) == Fraction(13, 3)


def test_h1_8_foreign_draft_must_be_rejected_not_dropped():
    """Dropping a draft outside T and drawing a bonus token from p is lossy."""
    target, drafter = iid("a b", ["2/3", "1/3"]), iid("a b c", THIRD)
    blocks = blocks_of(planted.foreign_draft_dropped, target, drafter)
    assert first_token(blocks, 2)[0] == Fraction(5, 9)
    assert distance(planted.foreign_draft_dropped, target, drafter) == Fraction(1, 9)
    assert distance(union.step, target, drafter) == 0


@pytest.mark.parametrize("relation", TOKEN_LEVEL)
def test_h4_1_tli_is_lossless(relation):
    """With 1 to n + 1 tokens, all of them the target's."""
    for (target, drafter), n in itertools.product(hashed_pairs([TOKEN_LEVEL[relation]]), range(3)):
        assert distance(tli.step, target, drafter, n) == 0
        assert all(1 <= len(block) <= n + 1 for block in blocks_of(tli.step, target, drafter, n))


@pytest.mark.parametrize(("tokens", "q"), [("x", [1]), ("x a", [1, 0])])
def test_h4_2_no_mass_on_shared_tokens(tokens, q):
    """The printed q' is 0/0 without mass on shared tokens; then nothing is drafted."""
    target, drafter = iid("a b", ["1/3", "2/3"]), iid(tokens, q)
    shared = intersection(target.vocabulary, drafter.vocabulary)
    with pytest.raises(ValueError, match="all zero"):
        normalise(relabel(drafter.next_token(()), shared, 2))
    assert blocks_of(tli.step, target, drafter, 3) == blocks_of(
        autoregressive.step, target, drafter
    )


@pytest.mark.deep
def test_h4_3_theorem_4_1_and_when_it_is_strict():
    """union <= TLI; strict iff q(T∩D) < 1 and some shared token has 0 < q < p."""
    strict = total = 0
    for p, q in itertools.product(simplex(3, 5), simplex(4, 5)):
        shared_mass = q[0] + q[1]
        pair = iid("a b t", p), iid("a b x y", q)
        ours, theirs = (RULES[name].acceptance_rate(*pair) for name in ("tli", "union"))
        if not shared_mass:
            assert ours == theirs == 0
        else:
            gain = ours - theirs
            improvable = any(0 < q[token] < p[token] for token in (0, 1))
            assert gain >= 0
            assert (gain > 0) == (shared_mass < 1 and improvable)
            strict, total = strict + (gain > 0), total + 1
    assert (strict, total) == (404, 1050)


def test_h4_4_tli_need_not_be_better():
    """A case with mass outside T where both accept exactly 1/2."""
    pair = iid("a b t", ["1/4", "1/4", "1/2"]), iid("a b x", ["1/4", "1/4", "1/2"])
    assert (
        RULES["union"].acceptance_rate(*pair)
        == RULES["tli"].acceptance_rate(*pair)
        == Fraction(1, 2)
    )


def test_h4_5_tli_accepts_longer_drafts_too():
    """The order of union and TLI extends to the accepted length of a whole draft."""
    for relation in ("overlapping", "target inside"):
        for pair in hashed_pairs([TOKEN_LEVEL[relation]], keys=5):
            case = (*pair, (), 3)
            assert mean_accepted("union", *case) <= mean_accepted("tli", *case)


def test_h4_6_shared_tokens_do_not_make_acceptance_positive():
    """A top-1 target and a top-1 drafter that disagree: acceptance 0; else, if all have mass."""
    pair = iid("a b", [1, 0]), iid("a b", [0, 1])
    assert RULES["union"].acceptance_rate(*pair) == RULES["tli"].acceptance_rate(*pair) == 0
    for p, q in itertools.product(simplex(2, 4), simplex(3, 4)):
        if p.all() and q.all():
            pair = iid("a b", p), iid("b x y", q)
            assert min(RULES[name].acceptance_rate(*pair) for name in ("union", "tli")) > 0


def test_h4_7_q_prime_lives_on_shared_tokens():
    """The printed sum over x in T reads q where it is undefined: q' is over T∩D."""
    target, drafter = iid("t a", HALF), iid("a x", ["1/4", "3/4"])
    drafts = exact_distribution(
        lambda chance: tuple((token, *q) for token, q in tli.draft(target, drafter, (), 1, chance))
    )
    assert drafts == {((1, 0, 1),): 1}


def test_h0_1_expressible_texts_can_be_untokenisable():
    """T ->> D* and D* ->> T* do not keep greedy tokenisation from getting stuck."""
    vocabulary = words("a ab bc")
    assert inexpressible(vocabulary, vocabulary) == ()
    assert find_untokenisable(vocabulary, vocabulary) == "abc"
    assert find_untokenisable(vocabulary, words("a ab bc b c")) is None


def test_h0_2_stronger_relation_is_equivalent():
    """D ->> T* says no more than D* ->> T*: concatenations inherit expressibility."""
    pool = ["a", "b", "ab", "ba"]
    subsets = [Vocabulary(some) for n in range(1, 5) for some in itertools.combinations(pool, n)]
    for source, vocabulary in itertools.product(subsets, subsets):
        texts = ["".join(some) for some in itertools.product(source.tokens, repeat=2)]
        tokens_only = inexpressible(source, vocabulary) == ()
        assert tokens_only == all(is_expressible(t, vocabulary) for t in (*source.tokens, *texts))


@pytest.mark.parametrize("both", STRING_LEVEL)
def test_h2_1_slem_is_lossless(both):
    """Algorithm 2, one iteration and the first four tokens of the loop."""
    for (target, drafter), n in itertools.product(hashed_pairs([both]), (1, 2)):
        assert distance(slem.step, target, drafter, n) == 0
    assert is_lossless_loop(slem.step, target, drafter, (), 1, 4)


def test_h2_2_argmin_of_a_predicate_is_the_first_match():
    """Taken literally, the argmin picks the first match, and outputs unsampled drafts."""
    pair = iid("a b", HALF), iid("a b", [1, 0])
    assert blocks_of(planted.slem_first_match, *pair, 2) == {
        (0,): Fraction(1, 2),
        (0, 0): Fraction(1, 4),
        (1,): Fraction(1, 4),
    }
    assert distance(planted.slem_first_match, *pair, 2) == Fraction(1, 4)


def test_h2_3_full_match_earns_one_more_token():
    """Returning t_1 … t_m after m matches is lossless too, but wastes a target sample."""
    target = markov_model(words("a b"), ["1/4", "3/4"], [["2/3", "1/3"], HALF])
    drafter = iid("a b", [1, 0])

    def without_bonus(target, drafter, context, lookahead, chance):
        return slem.step(target, drafter, context, lookahead, chance)[:lookahead]

    for step in (slem.step, without_bonus):
        assert distance(step, target, drafter, 2) == 0
    assert mean_length(blocks_of(slem.step, target, drafter, 2)) == Fraction(17, 12)
    assert mean_length(blocks_of(without_bonus, target, drafter, 2)) == Fraction(5, 4)


def test_h2_4_slem_outputs_the_targets_own_samples():
    """Path by path, the block is what was drawn at the target's sites."""
    for target, drafter in hashed_pairs(STRING_LEVEL, keys=1):

        def program(chance, target=target, drafter=drafter):
            traced = Traced(chance)
            block = slem.step(target, drafter, (), 2, traced)
            sampled = [step.choice for step in traced.steps if step.site.startswith("target")]
            return block == tuple(sampled)

        assert exact_distribution(program) == {True: 1}


def test_h2_5_context_must_stay_as_accepted():
    """Taking T(text) again as the target's context is lossy: it reads a, b as ab."""
    rows = {(): [*HALF, 0], (0,): [0, "3/10", "7/10"], (0, 1): [1, 0, 0], (2,): [0, 1, 0]}
    target = table_model(words("a b ab"), rows, otherwise=[0, 0, 1])
    drafter = iid("a b", [1, 0])

    def loop(step):
        return is_lossless_loop(step, target, drafter, (), 1, 3).total_variation

    assert loop(slem.step) == 0
    assert loop(planted.slem_context_retokenised) == Fraction(3, 20)


def test_h2_6_any_alignment_keeps_slem_lossless():
    """Whatever is proposed; but rewriting accepted ids with the normaliser is lossy."""
    vocabulary = Vocabulary("aA", normalise=str.lower)
    target, drafter = iid_model(vocabulary, ["5/8", "3/8"]), iid("A a", ["1/3", "2/3"])
    for propose in (slem.retokenised, slem.realigned(1), slem.realigned(2), lambda *_: (1, 7)):

        def step(*arguments, propose=propose):
            return slem.step(*arguments, propose=propose)

        assert distance(step, target, drafter, 2, (1, 0)) == 0
    assert distance(planted.slem_proposal_kept, target, drafter, 0) == Fraction(3, 8)


def test_h2_7_round_trip_is_not_injectivity():
    """A tokeniser that prepends a space is injective and never round-trips."""
    vocabulary = Vocabulary(" abc", normalise=lambda text: " " + text)
    texts = ["".join(some) for n in range(6) for some in itertools.product("abc", repeat=n)]
    assert len({vocabulary.encode(text) for text in texts}) == len(texts) == 364
    assert not any(vocabulary.decode(vocabulary.encode(text)) == text for text in texts)


def test_h2_9_expected_matches_of_a_slem_iteration():
    """sum over k of sum over t_1 … t_k of p(t_1 … t_k) P(the proposal starts with it)."""
    for target, drafter in hashed_pairs(STRING_LEVEL, keys=2):
        law = proposals(target.vocabulary, drafter, (), 2)
        matches = sum(
            weight * planted.path_weight(target, (), tokens[:k])
            for tokens, weight in law.items()
            for k in range(1, len(tokens) + 1)
        )
        assert mean_length(blocks_of(slem.step, target, drafter, 2)) == 1 + matches


def test_h2_10_slem_is_not_token_matching_even_with_one_vocabulary():
    """T = D, q = p, n = 2: retokenising makes SLEM and SLRS accept 1/3, not 5/9 and 1."""
    model = iid("a aa", ["2/3", "1/3"])
    assert list(psi(model.vocabulary, model, (), 2)) == [0, 1]
    for algorithm in ("slem", "slrs"):
        assert RULES[algorithm].acceptance_rate(model, model, (), 2) == Fraction(1, 3)
    assert RULES["slem"].acceptance_rate(model, model, (), 1) == Fraction(5, 9)
    assert RULES["slrs"].acceptance_rate(model, model, (), 1) == 1


def test_h2_11_slem_accepts_every_draft_over_one_letter():
    """T = {a}, D = {a, aa}, n = 2: 3 to 5 tokens."""
    blocks = blocks_of(slem.step, iid("a", [1]), iid("a aa", ["1/3", "2/3"]), 2)
    assert {len(block): weight for block, weight in blocks.items()} == {
        3: Fraction(1, 9),
        4: Fraction(4, 9),
        5: Fraction(4, 9),
    }


def test_h2_12_slem_proposals_are_canonical():
    """A proposal is what T makes of its text; a target that is not matches none of two drafts."""
    for target, drafter in hashed_pairs(STRING_LEVEL, keys=1):
        vocabulary = target.vocabulary
        for tokens in proposals(vocabulary, drafter, (), 2):
            assert vocabulary.encode(vocabulary.decode(tokens)) == tokens
    spelling = markov_model(words("a b ab"), [1, 0, 0], [[0, 1, 0], [1, 0, 0], [1, 0, 0]])
    drafter = markov_model(words("a b"), [1, 0], [[0, 1], [1, 0]])
    rates = [RULES["slem"].acceptance_rate(spelling, drafter, (), n) for n in (1, 2)]
    assert rates == [1, 0]


def test_h3_1_theorem_3_1_needs_p_not_a_point_mass():
    """Exact match accepts less than rejection sampling (q = p) iff p is no point mass."""
    verdicts = []
    for p in simplex(3, 6):
        model = iid("a b c", p)
        less = RULES["slem"].acceptance_rate(model, model) < RULES["standard"].acceptance_rate(
            model, model
        )
        assert less == (max(p) < 1)
        verdicts.append((len(set(p)) > 1, less))
    assert verdicts.count((True, False)) == 3
    assert verdicts.count((False, True)) == 1
    assert len(verdicts) == 28


def test_h3_2_exact_match_never_accepts_more():
    """sum p psi <= sum min(p, psi); strict iff supports overlap and neither is a point mass."""
    equal = 0
    for p, law in itertools.product(simplex(3, 5), simplex(3, 5)):
        matched, accepted = (p * law).sum(), overlap(p, law)
        strict = accepted > 0 and max(p) < 1 and max(law) < 1
        assert matched <= accepted
        assert (matched < accepted) == strict
        equal += not strict
    assert equal == 117


def test_h3_3_listing_of_algorithm_3_falls_through():
    """Without "otherwise" line 8 always corrects: a distance of 1/2."""
    target, drafter = iid("a b", HALF), iid("a b ab", ["1/4", "1/4", "1/2"])
    assert distance(planted.slrs_falls_through, target, drafter) == Fraction(1, 2)
    assert distance(slrs.single_token_step, target, drafter) == 0


@pytest.mark.parametrize("both", STRING_LEVEL)
def test_h3_4_theorem_3_2_holds_for_the_push_forward(both):
    """Algorithm 3 outputs t with probability p(t), for autoregressive drafters."""
    for (target, drafter), n in itertools.product(hashed_pairs([both]), (1, 2, 3)):
        assert distance(slrs.single_token_step, target, drafter, n) == 0


def test_h3_4_every_other_psi_is_lossy_for_some_target():
    """Believing any other law than the true one breaks the output for some p."""
    law = as_distribution(["1/4", "1/4", "1/2"])
    for wrong in simplex(3, 4):
        outputs = [
            list(verified(p, law, wrong)) == list(p) for p in simplex(3, 4) if list(p) != list(law)
        ]
        assert all(outputs) == (list(wrong) == list(law))
        assert list(verified(wrong, law, wrong)) == list(law)


def test_h3_5_sum_over_decompositions_is_not_psi():
    """T = {a, b}, D = {a, b, ab}: the output is (3/4, 1/4) for a target of (1/2, 1/2)."""
    target, drafter = iid("a b", HALF), iid("a b ab", ["1/4", "1/4", "1/2"])
    assert list(planted.psi_by_decompositions(target.vocabulary, drafter)) == [Fraction(1, 4)] * 2
    assert list(psi(target.vocabulary, drafter)) == [Fraction(3, 4), Fraction(1, 4)]
    assert blocks_of(planted.slrs_psi_by_decompositions, target, drafter) == {
        (0,): Fraction(3, 4),
        (1,): Fraction(1, 4),
    }
    assert planted.psi_by_decompositions(words("a aa"), iid("a", [1])).sum() == 2
    read = [target.vocabulary.encode(text)[0] for text in drafter.vocabulary.tokens]
    assert (read.count(0), len(decompositions("a", drafter.vocabulary))) == (2, 1)  # a and ab; a


def submit_spelled_tokens(target, drafter, context, lookahead, chance, otherwise="residual"):
    """Submit t_1 only if some of the drafts spell exactly it, and nothing otherwise."""

    def submit(chance):
        stop = fixed(target.vocabulary, drafter.vocabulary, lookahead)
        drafts = slem.draft(drafter, context, stop, chance)
        token = target.vocabulary.encode(drafter.vocabulary.decode(drafts))[0]
        heads = [drafter.vocabulary.decode(drafts[:i]) for i in range(1, len(drafts) + 1)]
        return token if target.vocabulary.tokens[token] in heads else None

    law = exact_distribution(submit)
    mu = np.array([law.get(t, Fraction(0)) for t in range(len(target.vocabulary))], dtype=object)
    submitted = submit(chance)
    if submitted is None and otherwise == "p":
        return (chance.draw(target.next_token(context), "nothing submitted"),)
    return standard.verify(target, context, [Draft(submitted, mu)], chance)[:1]


@pytest.mark.deep
def test_h3_6_decompositions_are_repaired_as_a_sub_probability():
    """Rejecting drafts that spell no exact token is lossless, and accepts no more."""
    for target, drafter in hashed_pairs(STRING_LEVEL, keys=2):
        assert distance(submit_spelled_tokens, target, drafter, 2) == 0
        accepted = first_acceptance(submit_spelled_tokens, target, drafter, 2)
        assert accepted <= RULES["slrs"].acceptance_rate(target, drafter, (), 2)
    pair = iid("a b", ["3/4", "1/4"]), iid("a b ab", ["1/4", "1/4", "1/2"])
    from_p = partial(submit_spelled_tokens, otherwise="p")
    assert distance(from_p, *pair) == Fraction(1, 8)


def test_h3_7_sum_over_all_lengths_diverges():
    """Read with a free number of drafts, psi("a") grows by 1/2 with every length."""
    drafter = iid("a b", HALF)
    by_length = [psi(words("a b"), drafter, (), n)[0] for n in range(1, 6)]
    assert [sum(by_length[:n]) for n in (1, 2, 5)] == [Fraction(1, 2), 1, Fraction(5, 2)]


def test_h3_8_product_of_one_q_is_not_psi():
    """For an autoregressive drafter psi needs q(d_j | d_<j); a fixed q is off by 1/5."""
    target = iid("a b ab", ["1/4", "1/2", "1/4"])
    drafter = markov_model(words("a b"), HALF, [["1/10", "9/10"], HALF])
    assert list(map(str, psi(target.vocabulary, drafter, (), 2))) == ["1/20", "1/2", "9/20"]
    wrong = planted.psi_of_fixed_q(target.vocabulary, drafter, (), 2)
    assert list(map(str, wrong)) == ["1/4", "1/2", "1/4"]
    assert distance(planted.slrs_psi_of_fixed_q, target, drafter, 2) == Fraction(1, 5)


def test_h3_9_algorithm_3_as_listed_cannot_be_faster():
    """One token per target evaluation, always; going on after an acceptance earns 1 + alpha."""
    pair = iid("a b", HALF), iid("a b ab", ["1/4", "1/4", "1/2"])
    assert set(map(len, blocks_of(slrs.single_token_step, *pair, 3))) == {1}
    assert 1 + RULES["slrs"].acceptance_rate(*pair) == Fraction(7, 4)
    assert mean_length(blocks_of(slrs.step, *pair)) == 2
    assert mean_length(blocks_of(partial(slrs.step, ending="bonus"), *pair)) == Fraction(23, 12)


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("modulus", [2, 3])
def test_h3_10_every_rule_that_sees_only_drafts_is_lossless(modulus):
    """For example: stop when the sum of the draft ids is a multiple of something."""

    def rule(target, drafter, lookahead):
        return lambda drafts: len(drafts) >= 1 and (sum(drafts) % modulus == 0 or len(drafts) >= 3)

    def step(*arguments):
        return slrs.step(*arguments, rule=rule)

    for target, drafter in hashed_pairs(STRING_LEVEL, keys=2):
        assert distance(step, target, drafter) == 0


def test_h3_10_stopping_by_n_or_once_determined_is_lossless():
    """The general rule of the text, by vocabularies and by probability, with psi its own."""
    for target, drafter in hashed_pairs(STRING_LEVEL, keys=1):

        def settled(_target, _drafter, lookahead, target=target, drafter=drafter):
            return until_settled(target, drafter, lookahead)

        for rule in (until_determined, settled):
            step = partial(slrs.step, rule=rule)
            assert distance(step, target, drafter, 2) == 0


def test_h3_10_rule_drawn_at_random_is_lossless():
    """Provided psi is that of the rule drawn, and the verifier's coins are others."""

    def step(*arguments):
        rule = (fixed, until_determined)[arguments[-1].accept(Fraction(1, 3), "rule")]
        return slrs.step(*arguments, rule=rule)

    for target, drafter in hashed_pairs(STRING_LEVEL, keys=2):
        assert distance(step, target, drafter, 2) == 0


def draft_more_when_rejected(target, drafter, context, lookahead, chance):
    """T = {a, aa}, D = {a}: one draft if the coin would accept a, else two drafts."""
    believed = as_distribution(HALF)
    coin = chance.accept(standard.acceptance(target.next_token(()), believed, 0), "coin")
    return (0,) if coin else (1,)


def test_h3_11_rule_that_sees_the_coin_is_lossy():
    """Half the time one draft, half the time two, as psi = (1/2, 1/2) says; and yet 1/4 off."""
    target, drafter = iid("a aa", ["1/4", "3/4"]), iid("a", [1])
    proof = is_lossless(draft_more_when_rejected, target, drafter)
    assert proof.output == {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}
    assert proof.total_variation == Fraction(1, 4)


def test_h3_12_printed_rule_draws_one_token_too_many():
    """S_1(i) = 1[i > n] stops at n + 1 drafts; with psi for n that is off by 1/4."""
    stops = [rule(words("a"), words("a"), 3) for rule in (fixed, planted.one_draft_more)]
    assert [sum(not stop((0,) * i) for i in range(9)) for stop in stops] == [3, 4]
    drafter = iid("a b", HALF)
    one, two = (psi(words("a b ab"), drafter, (), n) for n in (1, 2))
    assert list(map(str, (*one, *two))) == ["1/2", "1/2", "0", "1/4", "1/2", "1/4"]
    p = as_distribution(["1/2", "1/4", "1/4"])
    assert total_variation(verified(p, two, one), p) == Fraction(1, 4)


def expected_drafts(rule, target, drafter, lookahead):
    stop = rule(target.vocabulary, drafter.vocabulary, lookahead)
    return mean(exact_distribution(lambda chance: len(slem.draft(drafter, (), stop, chance))))


def test_h3_13_early_stopping_keeps_psi():
    """Stopping once t_1 is determined leaves its law, and saves drafts."""
    saved = []
    for (target, drafter), n in itertools.product(hashed_pairs(STRING_LEVEL, keys=2), (2, 3)):
        early = psi(target.vocabulary, drafter, (), n, until_determined)
        assert list(early) == list(psi(target.vocabulary, drafter, (), n))
        saved.append(n - expected_drafts(until_determined, target, drafter, n))
    assert min(saved) >= 0 < max(saved)


def until_settled(target, drafter, lookahead):
    """Stop once no drafts of positive probability change the first target token any more."""

    def first(drafts):
        return target.vocabulary.encode(drafter.vocabulary.decode(drafts))[0]

    def firsts(drafts):
        if len(drafts) == lookahead:
            return {first(drafts)}
        row = drafter.next_token(drafts)
        return set().union(*(firsts((*drafts, d)) for d in np.flatnonzero(row)))

    return lambda drafts: len(drafts) > 0 and firsts(drafts) == {first(drafts)}


def test_h3_13b_stopping_when_the_drafter_cannot_change_the_first_token_keeps_psi():
    """And never later than by the vocabularies alone; a greedy drafter shows the difference."""
    certain = markov_model(words("a b"), HALF, [[0, 1], [1, 0]])
    pairs = [*hashed_pairs(STRING_LEVEL, keys=1), (iid("a b aa ab", ["1/4"] * 4), certain)]
    sooner = []
    for target, drafter in pairs:
        stop = until_settled(target, drafter, 2)
        law = exact_distribution(lambda chance, d=drafter, s=stop: slem.draft(d, (), s, chance))
        found = [Fraction(0)] * len(target.vocabulary)
        for drafts, weight in law.items():
            found[target.vocabulary.encode(drafter.vocabulary.decode(drafts))[0]] += weight
        assert found == list(psi(target.vocabulary, drafter, (), 2))
        drawn = sum(len(drafts) * weight for drafts, weight in law.items())
        sooner.append(expected_drafts(until_determined, target, drafter, 2) - drawn)
    assert min(sooner) >= 0
    target, drafter = iid("a b aa", THIRD), certain
    stop = until_settled(target, drafter, 2)
    law = exact_distribution(lambda chance: slem.draft(drafter, (), stop, chance))
    assert set(map(len, law)) == {1}
    assert expected_drafts(until_determined, target, drafter, 2) == Fraction(3, 2)


def test_h3_14_longer_lookahead_can_accept_less():
    """T = {a, aa, aaa}, D = {a}: acceptance 1/2, 1/6, 1/3 for n = 1, 2, 3."""
    target, drafter = iid("a aa aaa", ["1/2", "1/6", "1/3"]), iid("a", [1])
    for algorithm in ("slem", "slrs"):
        rates = [str(RULES[algorithm].acceptance_rate(target, drafter, (), n)) for n in (1, 2, 3)]
        assert rates == ["1/2", "1/6", "1/3"]


def test_h3_15_ten_characters_need_three_drafts_of_four():
    """A token of ten characters is out of reach with fewer than three drafts."""
    drafter = iid("abcd efgh ij", THIRD)
    vocabulary = words("abcd efgh ij abcdefghij")
    assert [psi(vocabulary, drafter, (), n)[3] > 0 for n in (1, 2, 3)] == [False, False, True]
    assert psi(vocabulary, drafter, (), 2, planted.one_draft_more)[3] > 0


def test_h3_16_larger_n_need_not_cost_forwards():
    """With early stopping the expected number of drafts stays 3/2 for n = 2, 3, 10."""
    target, drafter = iid("a b ab", THIRD), iid("a b", HALF)
    early = [expected_drafts(until_determined, target, drafter, n) for n in (2, 3, 10)]
    assert early == [Fraction(3, 2)] * 3
    assert [expected_drafts(fixed, target, drafter, n) for n in (2, 3)] == [2, 3]


HELLO = words("hello_ world wo rld")
HELLO_WORLD = Vocabulary([*HELLO.tokens, "hello_world"])


def test_h3_20_n_max_of_hello_world_is_3():
    """hello_ + wo + rld is the longest way; 6 and 11 with single characters in both."""
    assert HELLO_WORLD.encode("hello_world") == (4,)
    assert n_max(HELLO_WORLD, HELLO) == 3
    assert len(decompositions("hello_world", HELLO)) == 2
    for characters, most in (("world", 6), (dict.fromkeys("hello_world"), 11)):
        drafted = [*HELLO.tokens, *characters]
        assert n_max(Vocabulary([*drafted, "hello_world"]), Vocabulary(drafted)) == most


def test_h3_21_sequences_that_start_with_hello_world():
    """Infinitely many; but hello_ + world already determines the first token."""
    counts = []
    for n in range(1, 7):
        texts = map("".join, itertools.product(HELLO.tokens, repeat=n))
        counts.append(sum(HELLO_WORLD.encode(text)[0] == 4 for text in texts))
    assert counts == [0, 1, 5, 20, 80, 320]
    assert not HELLO_WORLD.is_undetermined("hello_world")


def test_h3_22_n_max_is_at_most_the_longest_token():
    """Each draft adds a character, and a text as long as the longest token is determined."""
    pool = ["a", "b", "ab", "ba", "aab"]
    some = [Vocabulary(few) for n in (1, 2, 3) for few in itertools.combinations(pool, n)]
    assert all(n_max(T, D) <= T.longest for T, D in itertools.product(some, some))
    assert n_max(words("aab"), words("a b")) == 3


def test_h3_23_lemma_counts_equal_not_starting_with():
    """2^(m-1) sequences spell t; those whose text starts with t are 1, 9, 54, …"""
    complete = words("a b aa ab ba bb")
    longer = words("a b aa ab ba bb aaa aab aba abb baa bab bba bbb")
    for token in longer.tokens:
        assert len(decompositions(token, longer)) == 2 ** (len(token) - 1)
    assert len(decompositions("ab", complete)) == 2
    starting = [
        sum(
            complete.encode("".join(some))[0] == 3
            for some in itertools.product(complete.tokens, repeat=n)
        )
        for n in (1, 2, 3)
    ]
    assert starting == [1, 9, 54]
    stop = until_determined(complete, complete, 5)
    law = exact_distribution(
        lambda chance: slem.draft(iid_model(complete, ["1/6"] * 6), (), stop, chance)
    )
    texts = [complete.decode(drafts) for drafts in law]
    assert sum(complete.encode(text)[0] == 3 for text in texts) == 4


def test_h3_24_printed_list_of_three_letter_words():
    """D_3 as printed misses abb and bab; then abb has 3 spellings, where the lemma says 4."""
    printed = words("a b aa ab ba bb aaa aab aba baa bba bbb")
    complete = Vocabulary([*printed.tokens, "abb", "bab"])
    assert len(decompositions("abb", printed)) == 3
    assert len(decompositions("abb", complete)) == 4


def test_h3_25_no_text_has_more_decompositions_than_cuts():
    """2^(m-1) at most, over every vocabulary of the six strings of at most two letters."""
    pool = ["a", "b", "aa", "ab", "ba", "bb"]
    texts = ["".join(some) for m in (1, 3, 5) for some in itertools.product("ab", repeat=m)]
    for size in range(1, 7):
        for vocabulary in map(Vocabulary, itertools.combinations(pool, size)):
            for text in texts:
                assert len(decompositions(text, vocabulary)) <= 2 ** (len(text) - 1)
    assert 65_536 == 2 ** (17 - 1)  # the table's greatest number, and its greatest length
    assert all(
        count <= 2 ** (length - 1)
        for count, length in zip((7, 15, 56), (4, 6, 8), strict=True)  # quantile by quantile
    )


def test_h3_31_retokenised_draft_has_an_unsampled_remainder():
    """T = {a, b}: the draft aa becomes (a, a), and nobody sampled the second a."""
    assert words("a b").encode("aa") == (0, 0)
    drafter = iid("a b aa", [0, 0, 1])
    assert list(conditional_psi(words("a b"), drafter, (), 1)[0,]) == [1, 0]


def test_h3_32_remainders_arise_with_one_vocabulary_too():
    """T = D = {a, aa}: the draft (a, aa) reads back as (aa, a), like 8 of 14 drafts."""
    vocabulary = words("a aa")
    assert vocabulary.encode(vocabulary.decode((0, 1))) == (1, 0)
    drafts = [some for n in (1, 2, 3) for some in itertools.product((0, 1), repeat=n)]
    changed = [some for some in drafts if vocabulary.encode(vocabulary.decode(some)) != some]
    assert (len(changed), len(drafts)) == (8, 14)


def rates(p, q, target="a b", drafter="a aa b", lookahead=1):
    pair = iid(target, p), iid(drafter, q)
    return {name: RULES[name].acceptance_rate(*pair, (), lookahead) for name in STRATEGIES}


READABLE = [("a b", "a aa b"), ("a aa", "a aa"), ("a aa", "a"), ("a b ab", "b a")]


def always_ordered(lookahead):
    """The ordered pairs x <= y that hold for every p and q of a grid, in all vocabularies."""
    table = [
        rates(p, q, target, drafter, lookahead)
        for target, drafter in READABLE
        for p in simplex(len(words(target)), 4)
        for q in simplex(len(words(drafter)), 4)
    ]
    pairs = itertools.permutations(STRATEGIES, 2)
    return {(x, y) for x, y in pairs if all(row[x] <= row[y] for row in table)}


def test_o_1_orders_of_acceptance_with_one_draft():
    """union <= TLI, SLEM <= SLRS, union <= SLRS; witnesses against the other nine orders."""
    assert always_ordered(1) == {("union", "tli"), ("slem", "slrs"), ("union", "slrs")}
    tli_wins = rates([0, 1], [0, "3/4", "1/4"])
    assert tli_wins == {
        "union": Fraction(1, 4),
        "tli": 1,
        "slem": Fraction(1, 4),
        "slrs": Fraction(1, 4),
    }
    slrs_wins = rates(["3/4", "1/4"], [0, "3/4", "1/4"])
    assert list(map(str, slrs_wins.values())) == ["1/4", "1/4", "5/8", "1"]
    union_wins = rates(HALF, ["1/2", 0, "1/2"])
    assert list(map(str, union_wins.values())) == ["1", "1", "1/2", "1"]


def test_o_2_orders_of_acceptance_with_two_drafts():
    """union <= SLRS is lost: T = {a, aa}, D = {a}: union accepts always, SLRS never."""
    assert always_ordered(2) == {("union", "tli"), ("slem", "slrs")}
    found = rates([1, 0], [1], "a aa", "a", 2)
    assert found == {"union": 1, "tli": 1, "slem": 0, "slrs": 0}


def test_o_3_one_draft_psi_is_at_least_q():
    """For a shared token greedy gives T(d) = (d), so psi >= q on T∩D when n = 1."""
    for target, drafter in hashed_pairs(STRING_LEVEL):
        shared = intersection(target.vocabulary, drafter.vocabulary)
        q = relabel(drafter.next_token(()), shared, len(target.vocabulary))
        assert (psi(target.vocabulary, drafter) >= q).all()


def test_o_4_temperature_0_target():
    """p a point mass at t: SLEM and SLRS accept psi(t), union q(t), TLI q(t) / q(T∩D)."""
    for q, (t, p, own) in itertools.product(simplex(3, 4), [(0, [1, 0], 0), (1, [0, 1], 2)]):
        found, drafter = rates(p, q), iid("a aa b", q)
        law = psi(words("a b"), drafter)
        assert found["slem"] == found["slrs"] == law[t]
        assert found["union"] == q[own]
        assert found["tli"] == (q[own] / (q[0] + q[2]) if q[0] + q[2] else 0)


@pytest.mark.parametrize(("target", "drafter"), TOKEN_LEVEL.values(), ids=TOKEN_LEVEL)
def test_o_7_infinite_temperature_counts_tokens(target, drafter):
    """Uniform models: TLI accepts |T∩D| / |T|, union |T∩D| / max(|T|, |D|)."""
    sizes = [len(tokens.split()) for tokens in (target, drafter)]
    pair = [iid(t, [Fraction(1, n)] * n) for t, n in zip((target, drafter), sizes, strict=True)]
    shared = len({*target.split()} & {*drafter.split()})
    assert RULES["tli"].acceptance_rate(*pair) == Fraction(shared, sizes[0])
    assert RULES["union"].acceptance_rate(*pair) == Fraction(shared, max(sizes))


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("both", [*TOKEN_LEVEL.values(), *STRING_LEVEL])
def test_t_0_rows_of_the_table(both):
    """Against enumeration and the rules' own rates; for text of up to three drafts."""
    for target, drafter in hashed_pairs([both], keys=2):
        p, q = target.next_token(()), drafter.next_token(())
        q = relabel(q, intersection(target.vocabulary, drafter.vocabulary), len(p))
        printed = {
            ("union", 1): overlap(p, q),
            ("tli", 1): overlap(p, normalise(q)) if q.any() else 0,
        }
        if both in STRING_LEVEL:
            for n in (1, 2, 3):
                law = psi(target.vocabulary, drafter, (), n)
                printed |= {("slem", n): (p * law).sum(), ("slrs", n): overlap(p, law)}
        for (name, n), rate in printed.items():
            counted = (
                first_match(target, drafter, n)
                if name == "slem"
                else first_acceptance(RULES[name].step, target, drafter, n)
            )
            assert rate == counted == RULES[name].acceptance_rate(target, drafter, (), n)


def test_t_0_psi_by_decompositions_has_other_rates_and_standard_is_refused():
    others = {"slem": 0, "slrs": 0}
    for target, drafter in hashed_pairs(STRING_LEVEL, keys=1):
        p, law = target.next_token(()), psi(target.vocabulary, drafter)
        spelled = planted.psi_by_decompositions(target.vocabulary, drafter)
        others["slem"] += (p * spelled).sum() != (p * law).sum()
        others["slrs"] += overlap(p, spelled) != overlap(p, law)
    assert all(others.values())
    with pytest.raises(ValueError, match="another vocabulary"):
        is_lossless(standard.step, *hashed(*STRING_LEVEL[0]))


@pytest.mark.parametrize("relation", TOKEN_LEVEL)
def test_t_8_tli_in_place_of_union_emits_at_least_as_many_tokens(relation):
    """On average, of up to three drafts; as many if all of D, or nothing of it, is in T."""
    as_many = relation in ("equal", "drafter inside", "disjoint")
    for pair in hashed_pairs([TOKEN_LEVEL[relation]]):
        for lookahead in (1, 2, 3):
            ours, theirs = (
                mean_length(blocks_of(rule.step, *pair, lookahead)) for rule in (tli, union)
            )
            assert ours >= theirs >= 1
            assert not as_many or ours == theirs
            assert as_many or lookahead == 1 or ours > theirs


def extreme_coupling(p, law, rows, columns):
    """Fill rows and columns in the given orders as far as possible: a vertex of all couplings."""
    left, right, coupling = list(p), list(law), {}
    for i, j in itertools.product(rows, columns):
        coupling[i, j] = min(left[i], right[j])
        left[i], right[j] = left[i] - coupling[i, j], right[j] - coupling[i, j]
    return coupling


@pytest.mark.deep
def test_n_1_no_coupling_agrees_more_often_than_one_minus_tv():
    """P(output = proposal) <= sum min(p, psi); rejection sampling attains it."""
    orders = list(itertools.permutations(range(3)))
    for p, law in itertools.product(simplex(3, 3), simplex(3, 3)):
        agreements = [
            sum(coupling[i, i] for i in range(3))
            for coupling in (
                extreme_coupling(p, law, *both) for both in itertools.product(orders, orders)
            )
        ]
        assert max(agreements) <= overlap(p, law)
        pair = iid("a b c", p), iid("a b c", law)
        assert first_acceptance(standard.step, *pair) == overlap(p, law)
        assert first_match(*pair, 1) == (p * law).sum()


def test_n_6_marginalising_never_hurts():
    """Verifying with psi averaged over side information accepts at least as much."""
    for p, one, other in itertools.product(simplex(2, 4), simplex(2, 4), simplex(2, 4)):
        apart = (overlap(p, one) + 2 * overlap(p, other)) / 3
        assert apart <= overlap(p, (one + 2 * other) / 3)


@pytest.mark.deep
def test_n_9_multi_token_slrs():
    """Both endings are lossless, and yield: residual >= bonus >= SLEM."""

    def bonus_ending(*arguments):
        return slrs.step(*arguments, ending="bonus")

    steps = (slrs.step, bonus_ending, slem.step)
    for (target, drafter), n in itertools.product(hashed_pairs(STRING_LEVEL, keys=2), (1, 2)):
        assert all(distance(step, target, drafter, n) == 0 for step in steps)
        lengths = [mean_length(blocks_of(step, target, drafter, n)) for step in steps]
        assert lengths == sorted(lengths, reverse=True)


def test_n_9_slrs_can_take_more_iterations_than_slem():
    target = markov_model(
        words("x y c a z"),
        [Fraction(1, 2), Fraction(1, 2), 0, 0, 0],
        [[0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 1, 0], [0, 0, 0, 1, 0]],
    )
    drafter = markov_model(
        words("x y c a z ca"),
        [Fraction(1, 2), Fraction(1, 2), 0, 0, 0, 0],
        [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 1], *[[0, 0, 0, 0, 1, 0]] * 4],
    )

    def iterations(step, context=()):
        if len(context) >= 4:
            return 0
        blocks = blocks_of(step, target, drafter, 1, context)
        return 1 + sum(p * iterations(step, context + block) for block, p in blocks.items())

    bonus_ending = partial(slrs.step, ending="bonus")
    steps = (slem.step, slrs.step, bonus_ending)
    assert [iterations(step) for step in steps] == [Fraction(5, 2), 3, 3]


def test_n_11_deterministic_drafter_makes_slrs_exact_match():
    """psi a point mass at t: SLRS and SLEM both accept p(t)."""
    for p in simplex(3, 4):
        target, drafter = iid("a b ab", p), markov_model(words("a b"), [1, 0], [[0, 1], [1, 0]])
        for algorithm in ("slem", "slrs"):
            assert RULES[algorithm].acceptance_rate(target, drafter, (), 2) == p[2]


def test_n_13_iterations_compose():
    """Another algorithm and lookahead in each iteration, chosen from accepted tokens: exact."""

    def mixed(target, drafter, context, lookahead, chance):
        names = ["autoregressive", "union", "tli", "slem", "slrs"]
        step = RULES[names[sum(context) % len(names)]].step
        return step(target, drafter, context, len(context) % 3, chance)

    for target, drafter in hashed_pairs(STRING_LEVEL, keys=1):
        assert is_lossless_loop(mixed, target, drafter, (), 0, 4)
        assert is_lossless_loop(mixed, target, drafter, (0, 1), 0, 3)


def submit(mu):
    """Submit a token of the sub-law mu, or nothing, and verify."""

    def step(target, drafter, context, lookahead, chance):
        token = chance.draw(np.append(mu, 1 - mu.sum()), "draft[0]")
        draft = Draft(token if token < len(mu) else None, mu)
        return standard.verify(target, context, [draft], chance)[:1]

    return step


@pytest.mark.deep
def test_n_15_sub_probability_lemma():
    """Accept min(1, p/mu), else draw from (p - mu)+: lossless, acceptance sum min(p, mu)."""
    for p, padded in itertools.product(simplex(3, 3), simplex(4, 3)):
        target, mu = iid("a b c", p), padded[:3]
        assert distance(submit(mu), target, target) == 0
        assert first_acceptance(submit(mu), target, target) == overlap(p, mu)
        if mu.any():
            assert mu.sum() * overlap(p, normalise(mu)) <= overlap(p, mu)


@pytest.mark.parametrize("kept", list(itertools.product(["1/4", "1/2", "1"], repeat=2)))
def test_n_15_dropping_drafts_is_lossless_only_if_blind_to_the_token(kept):
    """Verify with q what is kept, else draw from p: exact for p = q iff all are kept alike."""

    def step(target, drafter, context, lookahead, chance):
        drafts = standard.draft(drafter, context, lookahead, chance)
        keep = chance.accept(Fraction(kept[drafts[0].token]), "keep")
        return standard.verify(target, context, drafts if keep else [], chance)

    model = iid("a b", ["1/3", "2/3"])
    assert (distance(step, model, model) == 0) == (kept[0] == kept[1])


def test_distance_compares_completed_blocks_not_first_tokens():
    """`distance` speaks of the completed block, not of its first token."""
    target, drafter = iid("a b", HALF), iid("a b", ["3/4", "1/4"])
    blocks = blocks_of(planted.drafter_bonus, target, drafter)
    assert list(first_token(blocks, 2)) == list(target.next_token(()))
    law = completed(blocks, target, (), 2)
    expected = completed({(): Fraction(1)}, target, (), 2)
    off = distance(planted.drafter_bonus, target, drafter)
    assert off == total_variation(law, expected) == Fraction(3, 16)
