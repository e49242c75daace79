"""The kit judges tree verification: its form, its joint law, its accepted lengths, its coins.

What rules do at a place is enumerated exactly; what the kit must then say of them is sampled, at
alpha 1e-9 for each call of `check` and with fixed seeds. Every planted rule is 0.06 or more from
the target at some place of the fixture "siblings", and with detect_tv = 0.1 those nearest to it
are found by bets on 5,600 blocks a place: 6 standard deviations of the tilted tokens' frequencies.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.published import TREE_VERIFIER
from specref.adapters import IMPLEMENTATIONS, reference
from specref.algorithms import traversal
from specref.algorithms.trees import topdown
from specref.coins import Coins
from specref.conformance.checks import CHECKS
from specref.conformance.checks.greedy import CHECKS as GREEDY
from specref.conformance.checks.greedy import greedy_texts
from specref.conformance.diagnosis.laws import TREES, compared_with
from specref.conformance.public import check
from specref.conformance.report import Report
from specref.conformance.status import Status
from specref.contracts.batch import (
    NO_NODE,
    ROOT,
    TreeBatch,
    batch_of_one,
    read_answer,
)
from specref.contracts.capabilities import Capabilities, capable
from specref.contracts.contract import Contract
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import TOP, TREE_FIXTURES, WITH, TreeFixture, rows, tree_place
from specref.contracts.table import TREE, VERIFY, signed
from specref.contracts.tree import TreeVerifier, as_verifier, law, one_row, read, sample_trees
from specref.models import iid_model
from specref.probing.blocks import probe_trees
from specref.proofs.lazy import ReadableModel
from specref.rules import declarable
from specref.theory import trees as theory
from specref.vocabulary import Vocabulary

Ask = Any
LOSSLESS = {id_: entry for id_, entry in TREES.items() if entry.lossless}
MUTANTS = {id_: entry for id_, entry in TREES.items() if not entry.lossless}
OTHER_LENGTHS = {
    "tree-traversal",
    "tree-eldest-alone",
    "siblings-drawn-are-certain",
    "siblings-matched-by-one-draw",
}
PLACES = [(fixture, place) for fixture in TREE_FIXTURES.values() for place in fixture.places]
NAMES = [f"{fixture.name}, {place.name}" for fixture, place in PLACES]
JUDGED = ["joint/siblings", "acceptance/siblings"]


def judged(verify: Ask, only: Any = JUDGED, tv: float = 0.1, **options: Any) -> Report:
    return check(
        verify, contract="tree", only=only, detect_tv=tv, **{"blocking": False, **options}
    )


def failing(report: Report) -> set[str]:
    return {result.id for result in report.failures}


def message(report: Report, id_: str) -> str:
    return next(result.message for result in report.results if result.id == id_)


def statuses(report: Report) -> dict[str, str]:
    """Of the checks for trees, but for those of greedy decoding, which nobody here claims."""
    return {r.id: str(r.status) for r in report.results if r.id in SAMPLED}


SAMPLED = {one.id for one in CHECKS if TREE in one.contracts} - {g.id for g in GREEDY}


# Batches, and how answers are read.

ABC = np.array([[2, 1, 1, 0, 0, 0]]) * np.ones((7, 1)) / 4
ONE = batch_of_one([0, 0, 1, 2, 1], [ROOT, ROOT, ROOT, 1, 3], ABC[:6], ABC[:5])
RAGGED = TreeBatch(
    np.stack([ABC[:3], ABC[:3]]),
    np.stack([ABC[:2], ABC[:2]]),
    np.array([[1, 2], [0, -1]]),
    np.array([2, 1]),
    np.zeros(2, dtype=np.int64),
    np.array([[ROOT, 0], [ROOT, NO_NODE]]),
)


@pytest.mark.parametrize("width", [3, 4, 6])
def test_as_many_columns_as_the_longest_block_needs_are_enough(width: int) -> None:
    tokens = np.array([[0, 2, 0] + [-1] * (width - 3)])
    answer = read_answer((tokens, np.array([3])), ONE)
    assert answer.tokens.tolist() == [[0, 2, 0, -1, -1, -1]]


@pytest.mark.parametrize(
    ("tokens", "count", "words"),
    [
        ([[0, 2, 1, 0]], 5, "expected 1 to 4 (3 drafts and one more)"),
        ([[0]], 2, "expected 2 tokens, then -1"),
        ([[1, 2, 0]], 3, "expected a path among its nodes"),
        ([[0, 1, 1, 1]], 4, "expected a path among its nodes"),
        ([[2, 2]], 2, "expected a path among its nodes"),
        ([[0, 7]], 2, "expected 0 <= id < 6"),
        ([[0, 1, 2, 3, 4, 5, 0]], 1, "expected (1, 1) to (1, 6)"),
    ],
)
def test_what_is_no_path_and_one_more_token_is_refused(
    tokens: Any, count: int, words: str
) -> None:
    with pytest.raises(BrokenContractError, match=re.escape(words)):
        read_answer((np.array(tokens), np.array([count])), ONE)


def test_a_path_may_go_through_the_second_of_equal_siblings() -> None:
    answer = read_answer((np.array([[0, 2, 1, 5]]), np.array([4])), ONE)
    assert answer.counts.tolist() == [4]


def test_a_row_of_a_ragged_batch_has_its_own_tree() -> None:
    tokens = np.array([[1, 2, 0], [0, 2, 0]])
    with pytest.raises(BrokenContractError, match=r"counts\[1\] = 3: expected 1 to 2"):
        read_answer((tokens, np.array([3, 3])), RAGGED)
    assert RAGGED[1:].parents.tolist() == [[ROOT, NO_NODE]]
    assert RAGGED.facts(1)["parents"] == [ROOT, NO_NODE]


# Trees, as they are drawn.


@pytest.mark.parametrize("fixture", TREE_FIXTURES.values(), ids=TREE_FIXTURES)
def test_drawn_trees_are_what_is_declared(fixture: TreeFixture) -> None:
    batch = sample_trees(fixture, 700, np.random.default_rng(1))
    tables, orders = rows(fixture, 0), set()
    for row, place in enumerate(fixture.places[i] for i in batch.place):
        tokens, parents = batch.draft_tokens[row].tolist(), batch.parents[row].tolist()
        many, node = batch.lens[row], [tables.root[batch.place[row]]]
        assert tokens[many:] == [-1] * (len(tokens) - many)
        assert parents[many:] == [NO_NODE] * (len(tokens) - many)
        for i, (token, parent) in enumerate(zip(tokens[:many], parents[:many], strict=True)):
            assert ROOT <= parent < i
            assert parent == ROOT or tokens[parent] != fixture.eos
            elder = [tokens[j] for j in range(i) if parents[j] == parent]
            node.append(tables.child[node[parent + 1], token])
            expected = tables.q[node[parent + 1]].copy()
            expected[elder if place.way != WITH else []] = 0
            if place.way == TOP:
                assert token not in elder
            else:
                assert batch.draft_probs is not None
                law = expected / expected.sum()
                assert abs(batch.draft_probs[row, i] - law).max() < 1e-12
        assert (batch.target_probs[row, : many + 1] == tables.p[node]).all()
        traps = batch.target_probs[row, many + 1 :, -1]
        assert (traps == 1).all()
        orders.add((place, tuple(parents)))
    assert (batch.draft_probs is None) == fixture.one_hot
    if fixture.name == "siblings":
        chains, pairs = (tree_place(context, (2, 1)) for context in ((), (0,)))
        assert sum(place == chains for place, _ in orders) == 1, "q has one token there"
        assert sum(place == pairs for place, _ in orders) == 3, "not every order is drawn"


@pytest.mark.parametrize(("fixture", "place"), PLACES, ids=NAMES)
def test_a_tree_is_read_as_it_was_written(fixture: TreeFixture, place: Any) -> None:
    target, drafter = ReadableModel(fixture.target), ReadableModel(fixture.drafter)
    batch = sample_trees(fixture, 30, np.random.default_rng(2))
    for row in np.flatnonzero(batch.place == fixture.places.index(place)).tolist():
        q = np.eye(4)[batch.draft_tokens] if batch.draft_probs is None else batch.draft_probs
        shape = batch.draft_tokens[row].tolist(), batch.parents[row].tolist()
        _, tree = read(batch.target_probs[row], q[row], *shape)
        again = one_row(target, place.context, tree)
        model, same = read(
            again.target_probs[0], again.draft_probs[0],  # type: ignore[index]
            again.draft_tokens[0].tolist(), again.parents[0].tolist(),
        )  # fmt: skip
        assert str(same) == str(tree)
        assert (model.next_token(()) == target.next_token(place.context)).all()
    assert drafter.vocabulary == fixture.drafter.vocabulary


# What rules do there, exactly.


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(("fixture", "place"), PLACES, ids=NAMES)
def test_the_law_of_a_rule_is_its_closed_form(fixture: TreeFixture, place: Any) -> None:
    if place.way == TOP:
        laws = [law(fixture, place, rule) for rule in declarable(tree=True)]
        assert laws[0].keys() == laws[1].keys()  # certain siblings: nothing is left to retry
        assert all(laws[0][block] == pytest.approx(laws[1][block]) for block in laws[0])
        return
    models = fixture.target, fixture.drafter, place.context, place.branching
    for rule in declarable(tree=True):
        read = getattr(theory, rule)
        closed = theory.block_law(*models, rule=read, replacement=place.way == WITH)
        found = law(fixture, place, rule)
        for block in {*closed, *found}:
            assert found.get(block, 0) == pytest.approx(float(closed.get(block, 0)), abs=1e-12)


# What the kit says of them, and of the sampler of the docs.


def sampler(changes: Mapping[str, str] = MappingProxyType({})) -> Ask:
    """The sampler of the docs, with changes."""
    code = TREE_VERIFIER
    for old, new in changes.items():
        assert code.count(old) == 1
        code = code.replace(old, new)
    namespace: dict[str, Any] = {}
    exec(compile(code, "docs", "exec"), namespace)
    return namespace["verify_tree"]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("verify", "rule", "tv"),
    [
        (reference.verify_tree, "topdown", 0.35),
        (reference.verify_tree_traversal, "traversal", 0.35),
        (capable(rule="topdown")(sampler()), "topdown", 0.15),
    ],
    ids=["topdown", "traversal", "the sampler of the docs"],
)
def test_right_samplers_pass(verify: Ask, rule: str, tv: float) -> None:
    report = check(verify, contract="tree", detect_tv=tv)
    assert report.exit_code == 0, report
    assert report.capabilities.rule == rule
    assert set(statuses(report).values()) == {"passed"}


@pytest.mark.deep
@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("entry", MUTANTS.values(), ids=MUTANTS)
def test_every_mutant_is_killed_and_named(entry: Ask) -> None:
    report = judged(as_verifier(entry.step.verify), only=["joint/siblings"])
    assert failing(report) == {"joint/siblings"}
    assert report.lossy
    assert report.diagnosis is not None
    likeliest = report.diagnosis.candidates[0]
    assert likeliest.fits
    assert likeliest.ids == (entry.id,)


@pytest.mark.deep(one_in=6)
@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("entry", LOSSLESS.values(), ids=LOSSLESS)
def test_lossless_rules_fail_iff_they_accept_otherwise(entry: Ask) -> None:
    report = judged(as_verifier(entry.step.verify), algorithm="topdown", tv=0.2)
    assert failing(report) == ({"acceptance/siblings"} & {JUDGED[entry.id in OTHER_LENGTHS]})
    assert not report.lossy


@pytest.mark.deep
@pytest.mark.usefixtures("few_blocks")
def test_traversal_that_claims_to_be_topdown_is_named() -> None:
    report = judged(as_verifier(traversal.verify), algorithm="topdown")
    assert failing(report) == {"acceptance/siblings"}
    assert message(report, "acceptance/siblings").endswith("; they are those of 'traversal'")
    assert report.verdict.startswith("acceptance does not follow the declared rule")
    assert report.diagnosis is not None
    assert report.diagnosis.candidates[0].ids == ("tree-traversal",)
    assert compared_with("traversal").keys() == TREES.keys() - {"tree-traversal"}


@pytest.mark.deep(one_in=4)
@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize(
    ("changes", "killer"),
    [
        ({"target_probs[:, 0].copy()": "target_probs[:, 0]"}, "smoke/inputs-unchanged"),
        ({"counts + 1": "counts"}, "smoke/answers"),
        ({"parents[:, i] == at": "at == i - 1"}, "smoke/answers"),
        ({"parents[:, i] == at": "np.maximum(parents[:, i], -1) == at"}, "smoke/answers"),
        ({"parents[:, i] == at": "parents[0, i] == at"}, "smoke/answers"),
        ({"target_probs[kept, i + 1]": "target_probs[kept, i]"}, "boundary/greedy-tree"),
        ({"target_probs[kept, i + 1]": "target_probs[0, i + 1]"}, "boundary/greedy-tree"),
        ({"at[kept], p[kept] = x[kept], i": "at[here], p[kept] = x[kept], i"}, "smoke/answers"),
        ({"else draft_probs[:, i]": "else draft_probs[:, 0]"}, "joint/siblings"),
        ({"(rng.random(len(rows)) *": "(rng.random() *"}, "smoke/rows-vary"),
        ({"* q[rows, x] <": "* q[rows, x] ** 0.5 <"}, "joint/siblings"),
        ({"rows, at =": "rng = np.random.default_rng(1); rows, at ="}, "smoke/calls-vary"),
        (
            {
                "tokens = np.full": "u = rng.random(len(rows)); tokens = np.full",
                "rng.random(len(rows)) * q": "u * q",
            },
            "joint/siblings",
        ),
    ],
)
def test_planted_mistakes_are_found(changes: dict[str, str], killer: str) -> None:
    assert failing(judged(sampler(changes), [killer], tv=0.2)) == {killer}


@pytest.mark.parametrize(
    ("rows", "tokens", "parents"),
    [
        ([1, 0, 2, 0], [0, 1, 2], [ROOT, ROOT, 1]),
        ([1, 2, 2, 0], [1, 1, 2], [ROOT, ROOT, 1]),  # it is longer below the second sibling
    ],
)
def test_greedy_trees_have_one_text(
    rows: list[int], tokens: list[int], parents: list[int]
) -> None:
    batch = batch_of_one(tokens, parents, np.eye(3)[rows])
    text = greedy_texts(batch)
    assert text.tolist() == [[1, 2, 0, -1]]
    found, _ = reference.verify_tree(*batch.arguments.values(), rng=np.random.default_rng(1))
    assert ((found == text) | (found == -1)).all()
    assert found[0, 0] == text[0, 0]  # more of it where the first sibling has it


def target_only(
    target_probs: Any, draft_probs: Any, draft_tokens: Any, parents: Any, *, rng: Any
) -> Any:
    """One coin a level, against the sum of p over siblings; wide as its longest block."""
    rows, at = np.arange(len(parents)), np.full(len(parents), ROOT)
    counts, p = np.zeros(len(rows), dtype=int), target_probs[:, 0].copy()
    coin, total = rng.random(len(rows)), np.zeros(len(rows))
    tokens = np.full((len(rows), parents.shape[1] + 1), -1)
    for i, x in enumerate(draft_tokens.T):
        here = parents[:, i] == at
        total += here * target_probs[rows, at + 1, x]
        kept, lost = here & (coin < total), here & (coin >= total)
        p[lost, x[lost]] = 0
        tokens[rows[kept], counts[kept]], at[kept], p[kept] = x[kept], i, target_probs[kept, i + 1]
        coin[kept], total[kept] = rng.random(kept.sum()), 0
        counts += kept
    ends = p.cumsum(axis=1)
    tokens[rows, counts] = (ends <= rng.random((len(rows), 1)) * ends[:, -1:]).sum(axis=1)
    return tokens[:, : counts.max() + 1], counts + 1


@pytest.mark.deep
@pytest.mark.usefixtures("undiagnosed")
def test_target_only_verification_is_lossless_where_siblings_differ() -> None:
    """With replacement it is at TV 0.13 and 0.08; without, power is for TV 0.2."""
    only = ["smoke", "boundary", "joint"]
    report = judged(target_only, only, tv=0.2, repeats=False)
    assert report.exit_code == 0, report
    report = judged(target_only, ["joint/siblings", "joint/ending"])
    assert failing(report) == {"joint/siblings", "joint/ending"}
    for id_ in failing(report):
        assert "with replacement" in message(report, id_)
        assert message(report, id_).endswith(
            "siblings may repeat there (repeats=false if they never do)"
        )


# Claims.


@pytest.mark.parametrize("fixture", TREE_FIXTURES.values(), ids=TREE_FIXTURES)
def test_siblings_of_distinct_trees_differ(fixture: TreeFixture) -> None:
    batch = sample_trees(fixture.distinct(), 300, np.random.default_rng(3))
    for tokens, parents in zip(batch.draft_tokens.tolist(), batch.parents.tolist(), strict=True):
        nodes = [node for node in zip(tokens, parents, strict=True) if node[0] >= 0]
        assert len(nodes) == len(set(nodes))


def test_even_batches_without_repeats_still_have_siblings() -> None:
    fixture = TREE_FIXTURES["siblings"].distinct().even()
    assert {place.branching for place in fixture.places} == {(2, 1)}
    batch = sample_trees(fixture, 300, np.random.default_rng(4))
    assert (batch.lens == 4).all()
    report = judged(
        sampler(), ["smoke", "joint/siblings"], tv=0.3, repeats=False, ragged=False, one_hot=False
    )
    assert report.exit_code == 0, report


@pytest.mark.parametrize(
    ("contract", "verify", "words"),
    [
        ("tree", lambda p, q, drafts, *, rng: None, "--contract verify"),
        ("tree", lambda p, q, drafts, *, parents, rng: None, "no contract fits"),
        ("verify", lambda p, q, drafts, parents, *, rng: None, "--contract tree"),
    ],
)
def test_a_signature_of_the_other_contract_is_refused_once(
    contract: str, verify: Ask, words: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(words)):
        check(verify, contract=contract)


def fits(implementation: Ask, contract: Contract) -> bool:
    try:
        signed(implementation, contract)
    except TypeError:
        return False
    return True


def test_functions_that_take_anything_are_called() -> None:
    assert fits(lambda *arguments, **keywords: None, TREE)
    assert fits(lambda *arguments, **keywords: None, VERIFY)
    assert fits(lambda p, q, drafts, parents=None: None, VERIFY)
    assert not fits(lambda p, q, drafts, parents: None, VERIFY)


@pytest.mark.deep
def test_who_takes_even_batches_alone_gets_those() -> None:
    seen = set()

    def even(target_probs: Any, draft_probs: Any, *rest: Any, rng: Any) -> Any:
        drafts, parents = rest
        assert draft_probs is not None
        assert (parents != NO_NODE).all()
        seen.add(len(parents))
        return reference.verify_tree(target_probs, draft_probs, drafts, parents, rng=rng)

    claims = {"ragged": False, "one_hot": False, "batch": 64}
    report = check(even, contract="tree", detect_tv=0.3, **claims)
    assert report.exit_code == 0, report
    assert max(seen) == 64
    found = statuses(report)
    assert {id_ for id_, status in found.items() if status == Status.NOT_APPLICABLE} == {
        "smoke/no-drafts", "smoke/one-hot", "boundary/equal-rows", "boundary/ragged",
        "joint/likeliest", "independence/rows-likeliest", "joint/ending",
        "independence/rows-ending", "independence/identical-trees", "joint/probed-no-laws",
        *(f"acceptance/{name}" for name in TREE_FIXTURES),
    }  # fmt: skip


def test_coins_come_one_for_each_node() -> None:
    def by_coins(p: Any, q: Any, drafts: Any, parents: Any, *, coins: Coins) -> Any:
        assert coins.accept.shape == drafts.shape
        assert coins.race.shape == (len(drafts), p.shape[2])
        return np.argmin(coins.race / p[:, 0], axis=1)[:, None], np.ones(len(drafts), dtype=int)

    with np.errstate(divide="ignore", invalid="ignore"):
        report = judged(by_coins, ["smoke", "joint/probed"])
    assert report.failures == ()


# Without sampling.


def test_a_mutant_is_named_by_its_exact_law() -> None:
    report = judged(as_verifier(TREES["siblings-last-from-p"].step.verify), ["joint/probed"])
    assert failing(report) == {"joint/probed"}
    assert re.search(r"TV 0\.\d+ from the target, exactly", message(report, "joint/probed"))
    assert report.diagnosis is not None
    assert "siblings-last-from-p" in report.diagnosis.candidates[0].ids


def test_randomness_that_cannot_be_interpreted_is_not_applicable() -> None:
    def normal(p: Any, q: Any, drafts: Any, parents: Any, *, rng: Any) -> Any:
        rng.normal()
        return trees_verify(p, q, drafts, parents, rng=rng)

    report = judged(normal, ["joint/probed"])
    assert report.counts["not_applicable"] == 1
    assert "Generator.normal" in message(report, "joint/probed")


trees_verify = as_verifier(topdown.verify)


def test_a_tree_that_is_probed_is_known_by_its_tokens_and_parents() -> None:
    p, q = (iid_model(Vocabulary("ab"), [0.25, 0.75]) for _ in range(2))
    verifier = TreeVerifier(as_verifier(topdown.verify), Capabilities())
    found = probe_trees(verifier, p, q, tree_place((), (2,))).by_drafts
    assert found.keys() == {(0, 1, ROOT, ROOT), (1, 0, ROOT, ROOT)}
    chain = probe_trees(verifier, p, q, tree_place((), (1, 1))).by_drafts
    assert (0, 1, ROOT, 0) in chain


def test_probed_edges_take_narrow_answers() -> None:
    """A rejection leaves one column, which the contract allows."""
    report = judged(target_only, ["boundary/zero-coin", "boundary/empty-residual"])
    assert report.failures == ()
    assert report.counts["passed"] == 2


@pytest.mark.deep
@pytest.mark.parametrize("name", ["torch-backend-tree", "torch-backend-tree-traversal"])
def test_the_torch_backend_passes(name: str) -> None:
    pytest.importorskip("torch", reason="not_run (torch is not installed)")
    only = ["smoke", "boundary/greedy-tree", "boundary/certain", "joint", "acceptance"]
    wanted = [one.id for one in CHECKS if one.id.startswith(tuple(only))]
    wanted = [id_ for id_ in wanted if not id_.startswith("joint/probed")]
    report = check(IMPLEMENTATIONS[name].load(), contract="tree", only=wanted, detect_tv=0.3)
    assert report.exit_code == 0, report
