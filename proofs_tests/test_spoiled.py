"""Rules that change their judge are noticed, and the judge is put back."""

import builtins
from fractions import Fraction

import numpy as np
import pytest

import specref.conformance.checks.joint
import specref.laws
import specref.models
from specref import Vocabulary, check, exact_distribution, is_lossless
from specref.algorithms import standard
from specref.conformance.status import Finding
from specref.examples.correct import verify as correct
from specref.models import Model, iid_model
from specref.proofs.batches import is_jointly_lossless
from specref.proofs.everywhere.proof import first_runs, is_lossless_everywhere
from specref.proofs.everywhere.solver import is_installed
from specref.proofs.everywhere.watch import Watch
from specref.proofs.exact import is_lossless_loop
from specref.spoiled import SpoiledError, unspoiled
from specref.statistics import Campaign, run
from specref.tables import simulate
from specref.zoo import MUTANTS

ABC = Vocabulary("abc")
P, Q = ["1/2", "3/8", "1/8"], ["1/3", "1/3", "1/3"]
TARGET, DRAFTER = iid_model(ABC, P), iid_model(ABC, Q)


def filtered(row):
    kept = np.where(row < Fraction(1, 4), Fraction(0), row)
    return kept / kept.sum()


def of_filtered(target, drafter, context, lookahead, chance):
    """Lossless for the target behind a filter, so that it is lossy for the target itself."""
    model = Model(target.vocabulary, lambda text: filtered(target.next_token(text)))
    return standard.step(model, drafter, context, lookahead, chance)


def replacing(owner, name, value):
    """The lossy rule, which replaces a part of its judge before it answers."""

    def step(*arguments):
        setattr(owner, name, value)
        return of_filtered(*arguments)

    return step


CHEATS = {
    "Model.next_token": (
        Model,
        "next_token",
        lambda model, text: filtered(TARGET._next_token(())),
    ),
    "completed": (specref.laws, "completed", lambda *_: {(0,): Fraction(1)}),
    "a new global": (specref.laws, "dict", lambda *_: {}),
    "Fraction": (Fraction, "__eq__", lambda one, other: True),
    "numpy": (np, "asarray", np.array),
    "builtins": (builtins, "sorted", lambda *_, **__: []),
    "Vocabulary": (Vocabulary, "ends", lambda *_: True),
}
JUDGES = {
    "is_lossless": lambda step: is_lossless(step, TARGET, DRAFTER),
    "is_lossless_loop": lambda step: is_lossless_loop(step, TARGET, DRAFTER, (), 1, 2),
    "is_jointly_lossless": lambda step: is_jointly_lossless(
        lambda p, q, contexts, k, chance: [step(p, q, one, k, chance) for one in contexts],
        TARGET, DRAFTER, [()],
    ),
    "exact_distribution": lambda step: exact_distribution(
        lambda chance: step(TARGET, DRAFTER, (), 1, chance)
    ),
}  # fmt: skip


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("cheat", CHEATS)
def test_a_rule_that_replaces_a_part_of_its_judge_is_named(judge, cheat):
    owner, name, value = CHEATS[cheat]
    before = vars(owner).get(name)
    try:
        with pytest.raises(SpoiledError, match=rf"\.{name} was replaced while the rule ran"):
            JUDGES[judge](replacing(owner, name, value))
        assert vars(owner).get(name) is before
    finally:
        if before is not None:
            setattr(owner, name, before)
        elif name in vars(owner):
            delattr(owner, name)


def test_what_fails_is_put_back_too():
    before = specref.laws.completed

    def deleting(chance):
        del specref.laws.completed
        raise KeyError("the rule's own")

    with pytest.raises(SpoiledError) as caught:
        exact_distribution(deleting)
    assert isinstance(caught.value.__context__, KeyError)
    assert specref.laws.completed is before


SAMPLERS = {
    "a check": (specref.conformance.checks.joint, "outcome_of", lambda *_: None),
    "a campaign": (Campaign, "report", lambda _: "lossless"),
    "numpy": (np, "cumsum", np.array),
}


def spoiling(owner, name, value):
    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        setattr(owner, name, value)
        return correct(target_probs, draft_probs, draft_tokens, rng=rng)

    return verify


@pytest.mark.parametrize("cheat", SAMPLERS)
def test_a_sampler_that_replaces_a_part_of_the_kit_is_named(cheat, monkeypatch):
    owner, name, value = SAMPLERS[cheat]
    before = vars(owner)[name]
    monkeypatch.setattr(owner, name, before)  # put back, whatever comes
    report = check(spoiling(owner, name, value), only=["smoke/answers"])
    assert report.exit_code == 1
    assert report.finding == Finding.CONTRACT
    assert f".{name} was replaced while the sampler ran" in report.results[0].message
    assert vars(owner)[name] is before


def test_a_sampler_that_replaces_its_campaign_is_an_error(monkeypatch):
    campaign = Campaign(eps=None, seed=1)
    campaign.case(TARGET, DRAFTER, mutants=MUTANTS)
    monkeypatch.setattr(Campaign, "report", Campaign.report)

    def drafter_alone(name, trials, rng):
        Campaign.report = lambda campaign: "lossless"
        return simulate("autoregressive", DRAFTER, DRAFTER, trials=trials, rng=rng).blocks

    with pytest.raises(SpoiledError, match=r"Campaign\.report was replaced while the sampler"):
        run(campaign, drafter_alone, budget=1_000, seed=1)


def test_names_that_a_compiler_keeps_in_a_module_are_no_matter():
    laws = vars(specref.laws)
    with unspoiled():
        laws["__compiled_fn_1"] = len
    assert laws.pop("__compiled_fn_1") is len
    with pytest.raises(SpoiledError, match=r"laws\.len was replaced"), unspoiled():
        laws["len"] = lambda _: 0
    assert "len" not in laws


def test_what_is_put_back_in_time_is_no_matter(monkeypatch):
    with unspoiled():
        with monkeypatch.context() as patch:
            patch.setattr(specref.models, "REMEMBERED_CONTEXTS", 1)
        specref.models.iid_model(ABC, P)


@pytest.mark.skipif(not is_installed(), reason="needs z3")
@pytest.mark.parametrize("last", [{"seed": 0, "watch": Watch(60)}, {"budget": 60}])
def test_for_every_p_and_q_it_is_named_too(last):
    judge = first_runs if "watch" in last else is_lossless_everywhere
    before = vars(Fraction)["__add__"]
    step = replacing(Fraction, "__add__", lambda one, other: one)
    try:
        with pytest.raises(SpoiledError, match=r"fractions\.Fraction\.__add__ was replaced"):
            judge(step, Vocabulary("ab"), Vocabulary("ab"), 1, **last)
        assert vars(Fraction)["__add__"] is before
    finally:
        Fraction.__add__ = before
