"""Checks of the contract ``tree``: greedy trees, joint law of the block, its length, rows."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from specref.arrays import NO_TOKEN, Ints
from specref.conformance.checks.acceptance import deviates, of_lengths
from specref.conformance.checks.check import Check, failed, not_applicable, passed, sampled
from specref.conformance.checks.independence import rows_independent
from specref.conformance.checks.joint import outcome_of
from specref.conformance.judge import Judge
from specref.conformance.status import Finding, Outcome, Status
from specref.contracts.batch import ROOT, TreeBatch, as_tree
from specref.contracts.tree import TreeContract
from specref.contracts.tree_fixtures import TREE_FIXTURES, WITH, TreeFixture
from specref.contracts.tree_rules import lengths
from specref.rules import declarable
from specref.statistics.campaign.acceptance import compare_lengths
from specref.statistics.campaign.verdict import AcceptanceResult

SIZE = 512
REPEATED = "; siblings may repeat there (repeats=false if they never do)"


def greedy(judge: Judge) -> Outcome:
    """Every row of the target is certain: what is emitted is its text, or the start of it."""
    for name in judge.fixtures:
        batch = as_tree(judge.sample(name, SIZE, f"greedy/{name}"))
        certain = np.eye(batch.target_probs.shape[2])[batch.target_probs.argmax(axis=2)]
        given = TreeBatch(**{**vars(batch), "target_probs": certain})
        tokens = judge.verifier(given, judge.rng("greedy")).tokens
        expected = greedy_texts(given)
        wrong = (tokens != NO_TOKEN) & (tokens != expected)
        for row in np.flatnonzero(wrong.any(axis=1))[:1].tolist():
            got, text = tokens[row].tolist(), expected[row].tolist()
            return failed(f"row {row} is {got}: p allows {text} alone", **given.facts(row))
    return passed()


def greedy_texts(batch: TreeBatch) -> Ints:
    """The likeliest tokens from the root on, as far as any path of the tree has rows for them.

    Where siblings repeat, several paths may start in the same way; their rows are the same laws.
    """
    rows, most = np.arange(len(batch)), batch.draft_tokens.shape[1]
    likeliest = batch.target_probs.argmax(axis=2)
    texts = np.full((len(batch), most + 1), NO_TOKEN)
    texts[:, 0] = likeliest[:, 0]
    depth = np.zeros((len(batch), most + 1), dtype=np.int64)
    reached = depth == 1
    reached[:, 0] = True
    for i in range(most):
        above = np.maximum(batch.parents[:, i], ROOT) + 1
        wanted = likeliest[rows, above] == batch.draft_tokens[:, i]
        reached[:, i + 1] = (batch.parents[:, i] >= ROOT) & reached[rows, above] & wanted
        depth[:, i + 1] = depth[rows, above] + 1
        there = np.flatnonzero(reached[:, i + 1])
        texts[there, depth[there, i + 1]] = likeliest[there, i + 1]
    return texts


def on_trees(name: str, judge: Judge) -> Outcome:
    """A campaign over trees of all places of a fixture."""
    if judge.refusal(name):
        return not_applicable(judge.refusal(name))
    outcome = outcome_of(judge, judge.blocks(name))
    if outcome.status == Status.FAILED and WITH in outcome.message:
        return replace(outcome, message=outcome.message + REPEATED)
    return outcome


def lengths_of_rule(name: str, judge: Judge) -> Outcome:
    """How many tokens blocks have follows the law of the declared rule."""
    rule, rules = judge.capabilities.rule, declarable(tree=True)
    if rule is None:
        return not_applicable(f"declares no rule (rule={' or '.join(map(repr, rules))})")
    if judge.refusal(name):
        return not_applicable(judge.refusal(name))
    longest = max(fixture.lookahead for fixture in TREE_FIXTURES.values())
    allowance = judge.capabilities.tolerance * longest
    results = list(compared(name, judge, rule))
    fitting = [
        other
        for other in rules
        if other != rule
        and not any(deviates(result, allowance) for result in compared(name, judge, other))
    ]
    return of_lengths(results, allowance, fitting, "exactly")


def compared(name: str, judge: Judge, rule: str) -> Iterator[AcceptanceResult]:
    """Compare the lengths at each place with the law of a rule."""
    fixture = judge.fixture(name)
    assert isinstance(fixture, TreeFixture)
    blocks = judge.blocks(name).blocks
    for place in fixture.places:
        counts = np.zeros(place.lookahead + 1, dtype=np.int64)
        for block, times in blocks[place].items():
            counts[len(block) - 1] += times
        if counts.any():
            alpha = judge.level / len(fixture.places)
            yield compare_lengths(place.name, counts, lengths(fixture, place, rule), alpha)


def independent(name: str, judge: Judge) -> Outcome:
    """Rows of a batch share no randomness."""
    if judge.refusal(name):
        return not_applicable(judge.refusal(name))
    return rows_independent(name, judge)


GREEDY = (Check("boundary/greedy-tree", TreeContract, greedy),)
JOINT = tuple(
    sampled(f"joint/{name}", TreeContract, partial(on_trees, name)) for name in TREE_FIXTURES
)
ACCEPTANCE = tuple(
    sampled(
        f"acceptance/{name}",
        TreeContract,
        partial(lengths_of_rule, name),
        finding=Finding.ACCEPTANCE,
    )
    for name in TREE_FIXTURES
)
INDEPENDENCE = tuple(
    sampled(
        f"independence/rows-{name}",
        TreeContract,
        partial(independent, name),
        finding=Finding.DEPENDENCE,
    )
    for name in TREE_FIXTURES
)
