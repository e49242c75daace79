"""The zoo is what it says: every mutant is lossy, every control is not, and each by how much."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from importlib import import_module
from itertools import combinations, pairwise, product
from pkgutil import walk_packages
from typing import get_args

import numpy as np
import pytest
from scipy.integrate import quad

from specref import zoo
from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.chance import Chance, Path, Traced, enumerate_paths
from specref.distributions import Probability, residual, total_variation
from specref.models import Model, iid_model
from specref.rules import RULES
from specref.theory.metrics import METRICS
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo import (
    CONTROLS,
    FIXTURES,
    MUTANTS,
    OPERATORS,
    Entry,
    ExactFixture,
    fixtures_for,
    speculative,
    total_variation_on,
)
from specref.zoo.entry import Stage
from specref.zoo.standard import accept, printed
from specref.zoo.standard import residual as wrong_residuals

F = Fraction
Law = dict[Tokens, Probability]


def iid_pair(p: list[str], q: list[str], lookahead: int = 1) -> ExactFixture:
    vocabulary = Vocabulary("abcdef"[: len(p)])
    return ExactFixture("pair", iid_model(vocabulary, p), iid_model(vocabulary, q), lookahead)


COIN = iid_pair(["1/2", "1/2"], ["3/4", "1/4"])
A = iid_pair(["1/3", "2/3"], ["2/3", "1/3"], 2)
M_TWICE = ExactFixture("m twice", FIXTURES["m"].target, FIXTURES["m"].drafter, 2)


def first_tokens(law: Mapping[Tokens, Probability], count: int = 1) -> Law:
    shortened: Law = {}
    for tokens, probability in law.items():
        shortened[tokens[:count]] = shortened.get(tokens[:count], 0) + probability
    return shortened


def prefix_variation(step: Step, fixture: ExactFixture, count: int) -> Probability:
    """The total variation of the first `count` tokens."""
    output, expected = fixture.output(step), fixture.continued()
    return total_variation(first_tokens(output, count), first_tokens(expected, count))


def test_ids_are_unique_and_kebab_case() -> None:
    files = [import_module(file.name) for file in walk_packages(zoo.__path__, "specref.zoo.")]
    kinds = ("ENTRIES", "CONTROLS", "RAGGED", "OF_COINS")
    listed = [entry.id for file in files for kind in kinds for entry in getattr(file, kind, ())]
    assert max(Counter(listed).values()) == 1
    assert set(listed) == zoo.ALL.keys()
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in listed)
    assert all(name == entry.id for name, entry in zoo.ALL.items())


def test_mutants_are_lossy_and_controls_lossless_by_declaration() -> None:
    assert MUTANTS
    assert CONTROLS
    assert not any(entry.lossless for entry in MUTANTS.values())
    assert all(entry.lossless and not entry.blind for entry in CONTROLS.values())


def test_every_entry_is_judged_as_one_thing() -> None:
    for entry in zoo.ALL.values():
        loops = (entry.generate, entry.generate_batch, entry.iterate)
        judged = (*loops, entry.batch_step, entry.make, entry.figure)
        assert entry.is_step + sum(map(bool, judged)) == 1, entry.id
    stages = {entry.stage for entry in zoo.ALL.values() if not entry.lossless}
    assert stages == set(get_args(Stage))


@pytest.mark.deep(one_in=5)
@pytest.mark.parametrize("entry", OPERATORS.values(), ids=OPERATORS)
def test_parameters_in_the_verifier_are_lossy_on_every_fixture(entry: Entry) -> None:
    found = {name: total_variation_on(entry, fixture) for name, fixture in FIXTURES.items()}
    assert {name for name, variation in found.items() if not variation} == entry.blind
    assert all(isinstance(variation, F) for variation in found.values())


def test_entries_depart_from_a_rule_that_there_is() -> None:
    figures = {entry.rule for entry in zoo.ALL.values() if entry.figure}
    assert figures == METRICS.keys()
    assert {entry.rule for entry in zoo.ALL.values()} - figures - RULES.keys() == {"warped"}
    assert fixtures_for("standard") is FIXTURES
    with pytest.raises(ValueError, match="rule = 'ngrams': expected one of standard"):
        fixtures_for("ngrams")


def test_an_entry_that_is_no_step_says_so() -> None:
    for id_ in ("returns-nothing", "counts-bonus-as-accepted"):
        with pytest.raises(TypeError, match="this entry of the zoo is no step"):
            total_variation_on(zoo.ALL[id_], FIXTURES["m"])


def test_every_pinned_entry_has_a_pair_that_tells_it_from_the_clean_rule() -> None:
    """Mutants alone are pinned, and each is lossy on some pair of its rule."""
    pinned = [entry for entry in zoo.ALL.values() if entry.distances]
    assert pinned
    for entry in pinned:
        assert any(entry.distances.values()), entry.id
        assert not entry.lossless, entry.id
        pairs = {entry.case.name} if entry.case else fixtures_for(entry.rule).keys()
        assert entry.distances.keys() & pairs, entry.id


def test_every_entry_is_described_and_its_citations_are_well_formed() -> None:
    """A blind spot needs a reason."""
    form = r"[\w.-]+/[\w.-]+(#[1-9]\d*)?|arXiv:\d{4}\.\d{5}"
    for id_, entry in zoo.ALL.items():
        for text in (entry.formula, entry.symptom, entry.hint):
            assert text == text.strip() != "", id_
            assert "\n" not in text, id_
        assert bool(entry.note) >= bool(entry.blind), id_
        assert not (entry.lossless and entry.blind), id_
        assert isinstance(entry.cites, tuple), id_
        assert all(re.fullmatch(form, cite) for cite in entry.cites), id_
        assert len(set(entry.cites)) == len(entry.cites), id_


def traced_paths(
    step: Step, fixture: ExactFixture, context: Tokens, lookahead: int
) -> list[Path[tuple[Tokens, tuple[str, ...]]]]:
    def run(chance: Chance) -> tuple[Tokens, tuple[str, ...]]:
        traced = Traced(chance)
        block = step(fixture.target, fixture.drafter, context, lookahead, traced)
        return tuple(block), tuple(decision.site for decision in traced.steps)

    return list(enumerate_paths(run))


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("name", FIXTURES)
def test_without_a_patch_it_is_the_standard_step(name: str) -> None:
    for case in product([(), (1,), (0, 2)], range(4)):
        clean = traced_paths(speculative(), FIXTURES[name], *case)
        assert clean == traced_paths(standard.step, FIXTURES[name], *case)


def test_clean_step_has_the_errors_of_the_standard_step() -> None:
    other = ExactFixture("other", COIN.target, FIXTURES["m"].drafter, 1)
    for step in (speculative(), standard.step):
        with pytest.raises(ValueError, match="another vocabulary"):
            other.output(step)
        with pytest.raises(ValueError, match="lookahead = -1"):
            traced_paths(step, COIN, (), -1)


@pytest.mark.parametrize("name", ["wide", "deep", "eos"])
def test_rows_differ_by_position_and_by_context(name: str) -> None:
    for model in (FIXTURES[name].target, FIXTURES[name].drafter):
        by_position = [tuple(model.next_token((0,) * i)) for i in range(3)]
        by_context = [tuple(model.next_token((0, x, 0))) for x in range(len(model.vocabulary))]
        assert len(set(by_position)) == 3
        assert len(set(by_context)) > 1


def reachable(fixture: ExactFixture) -> list[tuple[Tokens, list[Probability]]]:
    """Every context in which a draft is verified, with the ratios accepted on the way."""
    found: list[tuple[Tokens, list[Probability]]] = [((), [])]
    for context, ratios in found:
        p, q = fixture.target.next_token(context), fixture.drafter.next_token(context)
        found += [
            ((*context, x), [*ratios, p[x] / q[x]])
            for x in range(len(p))
            if min(p[x], q[x]) > 0
            and len(context) + 1 < fixture.lookahead
            and not fixture.target.vocabulary.ends((x,))
        ]
    return found


def test_fixtures_have_the_rows_that_tell_bugs_apart() -> None:
    seen: dict[str, set[str]] = {name: set() for name in FIXTURES}
    for name, fixture in FIXTURES.items():
        for context, ratios in reachable(fixture):
            p, q = fixture.target.next_token(context), fixture.drafter.next_token(context)
            rejects = (p < q).any()
            facts = {
                "residual of 3": rejects and (p > q).sum() >= 3,
                "p = 0 < q": ((p == 0) & (q > 0)).any(),
                "q = 0 < p": ((q == 0) & (p > 0)).any(),
                "p = q": (p == q).all(),
                "ratio > 1 after < 1": any(r < 1 for r in ratios) and ((p > q) & (q > 0)).any(),
            }
            seen[name] |= {fact for fact, holds in facts.items() if holds}
    zeros = {"p = 0 < q", "q = 0 < p"}
    assert seen["wide"] >= zeros | {"residual of 3", "p = q", "ratio > 1 after < 1"}
    assert seen["deep"] >= zeros | {"p = q", "ratio > 1 after < 1"}
    assert seen["eos"] >= zeros | {"residual of 3", "ratio > 1 after < 1"}
    assert seen["c"] >= zeros | {"ratio > 1 after < 1"}


def test_eos_has_mass_in_drafts_and_targets() -> None:
    fixture = FIXTURES["eos"]
    vocabulary = fixture.target.vocabulary
    for model in (fixture.target, fixture.drafter):
        text = ExactFixture("text", model, model, fixture.lookahead).continued()
        ended = sum(weight for tokens, weight in text.items() if vocabulary.ends(tokens[:2]))
        assert ended > F(1, 10)


def test_a_block_longer_than_the_lookahead_allows_is_refused() -> None:
    with pytest.raises(ValueError, match=r"length = 2: block \(0, 0, 0\) has 3 tokens"):
        COIN.output(lambda *arguments: (0, 0, 0))


@pytest.mark.parametrize(
    ("step", "law"),
    [
        ("residual-is-p", ["37/144", "17/72", "17/144", "7/18"]),
        ("best-of-two", ["37/144", "17/72", "17/144", "7/18"]),
        (accept.lenient(2), ["7/20", "1/6", "1/6", "19/60"]),
        ("lenience-scaled-residual", ["13/48", "5/24", "1/6", "17/48"]),
        ("greedy-match", ["67/144", "11/72", "11/144", "11/36"]),
        ("drop-low-probability-draft", ["7/16", "1/24", "5/48", "5/12"]),
        ("q-raw-sampled-filtered", ["4/11", "2/11", "1/11", "4/11"]),
        ("greedy-draft-soft-q", ["2/3", "0", "1/6", "1/6"]),
        ("gumbel-draft-equals-recovery", ["21/46", "1/6", "1/12", "27/92"]),
    ],
)
def test_first_token_on_m(step: str | Step, law: list[str]) -> None:
    """p = (5, 2, 1, 4) / 12 and q = (1, 2, 6, 3) / 12."""
    patched = MUTANTS[step].step if isinstance(step, str) else step
    output = first_tokens(FIXTURES["m"].output(patched))
    assert [output.get((x,), 0) for x in range(4)] == [F(value) for value in law]
    both = (prefix_variation(patched, FIXTURES["m"], tokens) for tokens in (1, 2))
    assert len(set(both)) == 1  # whatever follows is the target's


@pytest.mark.parametrize(
    ("name", "fixture", "expected"),
    [
        ("lookahead-sees-coin", FIXTURES["m"], "1/24"),
        ("threshold-single", FIXTURES["m"], "5/36"),
        ("ensemble-target", COIN, "1/8"),
        ("beam-draft-declared-q", COIN, "1/6"),
        ("bonus-argmax", FIXTURES["c"], "37/216"),
        ("shared-u", FIXTURES["c"], "1/18"),
        ("shared-u", A, "1/9"),
        ("algorithm-5-as-printed", COIN, "3/8"),
        ("bonus-from-drafter", COIN, "3/16"),
        ("residual-is-p", COIN, "1/8"),
        ("residual-abs", COIN, "1/8"),
        ("greedy-draft-soft-q", COIN, "1/6"),
        (
            "truncated-bonus-from-residual",
            iid_pair(["1/2", "1/2"], ["3/4", "1/4"], 2),
            "3/8",
        ),
        (
            "drop-low-probability-draft",
            iid_pair(["1/5", "1/5", "3/5"], ["3/5", "1/5", "1/5"]),
            "3/25",
        ),
    ],
)
def test_known_total_variations(name: str, fixture: ExactFixture, expected: str) -> None:
    assert total_variation_on(MUTANTS[name], fixture) == F(expected)


@pytest.mark.parametrize("name", FIXTURES)
@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        ("bonus-from-drafter", lambda p, q: q),
        ("bonus-argmax", lambda p, q: np.arange(len(p)) == np.argmax(p)),
        ("algorithm-5-as-printed", residual),
    ],
)
def test_a_wrong_bonus_costs_its_own_total_variation(
    name: str, mutant: str, law: Callable[..., np.ndarray]
) -> None:
    """TV = sum over x of P(all accepted = x) TV(bonus law after x, p after x)."""
    fixture = FIXTURES[name]
    expected: Probability = 0
    for path in traced_paths(standard.step, fixture, (), fixture.lookahead):
        block, sites = path.outcome
        if sites[-1] == "bonus":
            p, q = fixture.target.next_token(block[:-1]), fixture.drafter.next_token(block[:-1])
            gap = total_variation(p, law(p, q) + p * 0)
            # Over all bonus tokens, the weights add up to P(all accepted = x).
            expected += path.weight * gap
    assert total_variation_on(MUTANTS[mutant], fixture) == expected


def with_one_uniform(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """Draw the interval that the one uniform lies in, then compare it with every ratio."""
    drafts = standard.draft(drafter, context, lookahead, chance)
    rows = [
        (target.next_token((*context, *(d.token for d in drafts[:i]))), d)
        for i, d in enumerate(drafts)
    ]
    ratios = [standard.acceptance(p, d.q, d.token) for p, d in rows]
    cuts = sorted({F(0), F(1), *ratios})
    widths = np.array([b - a for a, b in pairwise(cuts)])
    u = cuts[chance.draw(widths, "u")]
    block: Tokens = ()
    for (p, d), ratio in zip(rows, ratios, strict=True):
        if u >= ratio:
            return (*block, chance.draw(residual(p, d.q), "residual"))
        block = (*block, d.token)
    if target.vocabulary.ends(block):
        return block
    return (*block, chance.draw(target.next_token((*context, *block)), "bonus"))


@pytest.mark.parametrize("name", FIXTURES)
def test_one_shared_uniform_by_its_intervals(name: str) -> None:
    fixture = FIXTURES[name]
    assert fixture.output(MUTANTS["shared-u"].step) == fixture.output(with_one_uniform)


def test_reused_uniform_on_m_by_hand() -> None:
    # Only token 2 is rejected, with probability 5/12; its u is uniform on [1/6, 1), and the
    # residual's cumulative sum is 4/5 up to token 2, then 1.
    output = first_tokens(FIXTURES["m"].output(MUTANTS["recovery-reuses-accept-u"].step))
    zero = F(1, 12) + F(5, 12) * (F(4, 5) - F(1, 6)) / F(5, 6)
    assert [output[x,] for x in range(4)] == [zero, F(1, 6), F(1, 12), F(3, 4) - zero]


def same_noise(q: np.ndarray, r: np.ndarray, i: int, j: int) -> float:
    """P(argmin E / q = i, argmin E / r = j) for one exponential vector E, i != j."""
    others = [k for k in range(len(q)) if k not in (i, j)]

    def density(t: float) -> float:
        return 1 / (1 + t + sum(max(q[k] * t / q[i], r[k] / r[j]) for k in others)) ** 2

    end = q[i] / q[j] if q[j] else np.inf
    kinks = sorted(q[i] * r[k] / (r[j] * q[k]) for k in others if q[k])
    cuts = [0.0, *(kink for kink in kinks if 0 < kink < end), end]
    pairs = pairwise(cuts)
    return sum(quad(density, a, b, epsabs=1e-13)[0] for a, b in pairs)


@pytest.mark.parametrize("name", ["m", "wide", "eos"])
def test_shared_noise_by_numerical_integration(name: str) -> None:
    fixture = ExactFixture(name, FIXTURES[name].target, FIXTURES[name].drafter, 1)
    p, q = (model.next_token(()).astype(float) for model in (fixture.target, fixture.drafter))
    r, acceptance = residual(p, q), np.minimum(1, p / np.where(q > 0, q, 1))
    law = np.minimum(p, q)
    for i, j in np.argwhere((q > p)[:, None] & (r > 0)[None, :]):
        law[j] += (1 - acceptance[i]) * same_noise(q, r, i, j)
    output = first_tokens(fixture.output(MUTANTS["gumbel-draft-equals-recovery"].step))
    assert [float(output.get((x,), 0)) for x in range(len(p))] == pytest.approx(law, abs=1e-9)


@pytest.mark.parametrize("name", FIXTURES)
def test_printed_algorithm_5_differs_in_line_12_only(name: str) -> None:
    patched = speculative(bonus=lambda at: residual(at.p, at.q))
    assert FIXTURES[name].output(printed.algorithm_5) == FIXTURES[name].output(patched)


@pytest.mark.parametrize("lookahead", [0, 1, 2])
def test_printed_algorithm_5_crashes_on_a_perfect_drafter(lookahead: int) -> None:
    target = FIXTURES["c"].target
    perfect = ExactFixture("perfect", target, target, lookahead)
    with pytest.raises(ValueError, match="is all zero: nothing to draw from"):
        perfect.output(printed.algorithm_5)


@pytest.mark.deep(one_in=10)
@pytest.mark.parametrize(
    "name",
    [
        *(e.id for e in wrong_residuals.ENTRIES if e.stage == "bonus" and e.id != "bonus-always"),
        "shared-u",
        "stale-q-row",
        "target-row-off-by-one",
        "target-cache-not-rolled-back",
        "no-stop",
        "eos-ignored",
        "bonus-after-eos",
    ],
)
def test_first_token_alone_is_blind(name: str) -> None:
    # With one draft, the truncated block has no token before the wrong one.
    first = 1 if name == "truncated-bonus-from-residual" else 0
    blind = MUTANTS[name].blind
    lossy = [f for f in FIXTURES.values() if f.name not in blind and f.lookahead > first]
    assert lossy
    for fixture in lossy:
        assert prefix_variation(MUTANTS[name].step, fixture, 1) == 0
        assert prefix_variation(MUTANTS[name].step, fixture, fixture.lookahead + 1) > 0


@pytest.mark.parametrize(
    "name",
    [
        "stale-q-row",
        "residual-row-off-by-one",
        "residual-q-row-off-by-one",
        "bonus-wrong-row",
        "bonus-plus-recovered",
        "target-row-off-by-one",
        "target-cache-not-rolled-back",
        "no-stop",
    ],
)
def test_rows_that_ignore_the_prefix_are_blind(name: str) -> None:
    assert total_variation_on(MUTANTS[name], M_TWICE) == 0


@pytest.mark.parametrize("name", ["shared-u", "accept-after-rejection"])
def test_one_draft_is_blind_and_two_are_not(name: str) -> None:
    assert total_variation_on(MUTANTS[name], FIXTURES["m"]) == 0
    assert total_variation_on(MUTANTS[name], M_TWICE) > 0


@pytest.mark.parametrize(
    "name", ["residual-argmax", "recovery-reuses-accept-u", "gumbel-draft-equals-recovery"]
)
def test_two_tokens_are_blind_to_a_residual_of_one(name: str) -> None:
    assert total_variation_on(MUTANTS[name], COIN) == 0
    assert total_variation_on(MUTANTS[name], A) == 0


@pytest.mark.deep
def test_only_one_pair_of_mutants_has_the_same_laws() -> None:
    laws = {
        name: [fixture.output(entry.step) for fixture in FIXTURES.values()]
        for name, entry in MUTANTS.items()
    }
    same = [{a, b} for a, b in combinations(laws, 2) if laws[a] == laws[b]]
    assert same == [{"residual-is-p", "best-of-two"}]
