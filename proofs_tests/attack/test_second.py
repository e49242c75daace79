"""The page of the second attack says what its record says; samplers are what they are said to be.

Lossless ones: loops and steps by the law of their first three tokens, in 1,500 texts, by a
chi-squared test with alpha = 1e-6 each and a fixed seed; batches of NumPy arrays by an exact law.
"""

import json
import random
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

from scipy.stats import chi2

from proofs_tests.helpers.attack.second.tables import CONTRACTS, SECOND
from proofs_tests.pages.attack.page import alarms, missed
from proofs_tests.pages.attack.second import REASONS, SINCE, page
from specref import Model, Vocabulary, check
from specref.chance import Sampled
from specref.conformance.status import Status

DOCS = Path(__file__).parents[2] / "docs"
RECORD = json.loads((DOCS / "attack-second.json").read_text())
ROWS = {row["sampler"]: row for row in RECORD["rows"]}
ALPHA, TEXTS = 1e-6, 1500
# Cheap ones, of different contracts and checks.
FOUND = ("argmax_after_the_same_12_ids", "missing_drafts_are_zero", "stride_without_bonus_rows")
EXACT = {
    "tree": "joint/probed",
    "verify": "joint/probed-7-drafts",
    "ragged": "joint/probed-7-drafts",
    "metrics": "acceptance/reported",
}
# They keep state, draw from the system, or ask for too many numbers.
UNPROBED = {
    "half_of_the_trees", "levels_that_adapt", "residual_by_200_tries", "pool_of_the_system",
    "generator_of_first_request", "coins_in_flat_order", "residual_by_100000_tries",
}  # fmt: skip
LOSSLESS = [one for one in SECOND.values() if one.expected == "lossless"]


def test_page_is_that_of_the_record() -> None:
    assert (DOCS / "attack-second.md").read_text() == page(RECORD)


def test_a_changed_verdict_changes_the_page() -> None:
    rows = [dict(row) for row in RECORD["rows"]]
    rows[0].update(verdict="passed", failed=[])
    assert page({**RECORD, "rows": rows}) != page(RECORD)


def test_record_has_every_sampler_and_its_description() -> None:
    assert {*ROWS, *RECORD["not_judged"]} == {*SECOND}
    assert not {*ROWS} & {*RECORD["not_judged"]}
    assert len(SECOND) == sum(map(len, CONTRACTS))
    for name, row in ROWS.items():
        one = SECOND[name]
        known = (one.contract, one.expected, one.what, one.options)
        assert (row["contract"], row["expected"], row["what"], row["options"]) == known


def test_every_miss_and_every_alarm_has_a_reason_and_nothing_else() -> None:
    wrong = {row["sampler"] for row in (*missed(RECORD["rows"]), *alarms(RECORD["rows"]))}
    found = {row["sampler"] for row in RECORD["rows"]} - wrong
    assert wrong | ({*SINCE} & found) == {*REASONS} - {*RECORD["not_judged"]}


@pytest.mark.parametrize("name", FOUND)
def test_row_comes_out_again(name: str) -> None:
    """The check that the record names fails again, alone."""
    (id, finding, _), *_ = ROWS[name]["failed"]
    one = SECOND[name]
    report = check(
        one.make(), contract=one.contract, seed=RECORD["seed"], only=[id], **one.options
    )
    (result,) = report.results
    assert (result.status, str(result.finding)) == (Status.FAILED, finding)


def test_what_one_kept_is_not_in_the_next() -> None:
    """The sampler that keeps rows by the last 32 ids does so for itself alone."""
    same = Model(Vocabulary("ab"), lambda context: np.eye(2)[context[0]])
    one, rng = SECOND["rows_by_the_last_32_ids"], np.random.default_rng(0)
    prompts = [(first, *(0,) * 40) for first in (0, 1)]
    kept = one.make()
    assert [kept(same, same, prompt, 1, rng) for prompt in prompts] == [(0,), (0,)]
    assert one.make()(same, same, prompts[1], 1, rng) == (1,)


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize(
    "name",
    [
        one.name
        for one in LOSSLESS
        if one.contract in EXACT and not {"greedy", "arrays"} & {*one.options}
    ],
)
def test_lossless_batches_pass_an_exact_check(name: str) -> None:
    one = SECOND[name]
    report = check(one.make(), contract=one.contract, only=[EXACT[one.contract]], **one.options)
    (result,) = report.results
    assert result.status == (Status.NOT_APPLICABLE if name in UNPROBED else Status.PASSED)


@pytest.mark.parametrize("name", [one.name for one in LOSSLESS if "greedy" in one.options])
def test_greedy_ones_pass_a_greedy_check(name: str) -> None:
    one = SECOND[name]
    ids = ["boundary/greedy-tree", "boundary/greedy-steps", "boundary/ragged", "end-to-end"]
    report = check(one.make(), contract=one.contract, only=ids, **one.options)
    assert Status.PASSED in {result.status for result in report.results}
    assert report.counts["failed"] == 0


def models() -> tuple[Model, Model]:
    """A target and a drafter of three tokens, whose laws depend on the last two tokens."""
    words = Vocabulary("ab.", eos=".")
    rows = np.random.default_rng(0).dirichlet([2, 2, 1], size=(2, 9))

    def law(which: int, context: tuple[int, ...]) -> np.ndarray:
        return rows[which, sum(x * 3**i for i, x in enumerate(context[-2:]))]

    return Model(words, lambda context: law(0, context)), Model(words, lambda c: law(1, c))


def p_value(texts: list[tuple[int, ...]], target: Model, context: tuple[int, ...]) -> float:
    """Of the law of texts of up to three tokens."""
    expected = {}
    left = [((), 1.0)]
    while left:
        text, share = left.pop()
        if len(text) == 3 or target.vocabulary.ends(text):
            expected[text] = share
        else:
            law = target.next_token((*context, *text))
            left += [((*text, x), share * mass) for x, mass in enumerate(law)]
    assert set(texts) <= expected.keys()
    n = len(texts)
    statistic = sum((texts.count(t) - n * p) ** 2 / (n * p) for t, p in expected.items())
    return float(chi2.sf(statistic, len(expected) - 1))


def drawn(name: str, target: Model, drafter: Model, context: tuple[int, ...]) -> list:
    """Texts of up to three tokens; those of a step are completed by the target."""
    one, rng, texts = SECOND[name], np.random.default_rng(1), []
    sample = one.make()
    for _ in range(TEXTS):
        if one.contract == "generate":
            text = sample(target, drafter, context, 3, rng)
        elif "chance" in sample.__code__.co_varnames:
            text = sample(target, drafter, context, 4, Sampled(rng))
        else:
            given = [rng] if "rng" in sample.__code__.co_varnames else []
            text = sample(target, drafter, context, 4, *given)
        whole = [int(x) for x in text[:3]]
        while len(whole) < 3 and not target.vocabulary.ends(whole):
            whole.append(int(rng.choice(3, p=target.next_token((*context, *whole)))))
        texts.append(tuple(whole))
    return texts


MODELLED = [
    one.name
    for one in LOSSLESS
    if one.contract in ("generate", "step") and "greedy" not in one.options
]


@pytest.mark.parametrize("name", MODELLED)
def test_lossless_loops_and_steps(name: str) -> None:
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    target, drafter = models()
    assert p_value(drawn(name, target, drafter, (0, 1)), target, (0, 1)) > ALPHA


def test_a_lossy_step_is_noticed() -> None:
    target, drafter = models()
    texts = drawn("laws_by_token", target, drafter, (0, 1))
    assert p_value(texts, target, (0, 1)) < ALPHA


# Claims that the kit knows since then.
NEW_CLAIMS = {"greedy_beside_sampled": {"greedy_at_zero": True}}


@pytest.mark.strata
@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("name", SINCE)
def test_what_was_missed_at_first_and_is_found_since(name: str) -> None:
    one = SECOND[name]
    claims = {**one.options, **NEW_CLAIMS.get(name, {})}
    report = check(one.make(), contract=one.contract, only=[SINCE[name]], **claims)
    (result,) = report.results
    assert result.status == Status.FAILED
