"""Exact probing of a verification over all drafts: the completed block against the target.

A tree verification is probed over all trees of a place; a loop of models, over all contexts.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from specref.arrays import Floats
from specref.chance import enumerate_paths
from specref.contracts.batch import TreeBatch
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import TOP, Fixture, Place, TreePlace
from specref.contracts.sampling import check_end, drawn_from, giver, read_tokens
from specref.contracts.tree import one_row
from specref.distributions import total_variation
from specref.laws import completed
from specref.models import Model, as_float
from specref.probing.probe import MAX_RUNS, Probed, batch_program, probe_program, probe_verify
from specref.probing.program import Program
from specref.probing.source import Call, CannotInterpretError, Source
from specref.vocabulary import Tokens


@dataclass(frozen=True)
class ProbedBlock:
    """The exact distribution of a completed block, and that of the target.

    Attributes
    ----------
    output, expected : dict
        {tokens: probability}; `output` is empty if the code cannot be interpreted.
    total_variation : float
        Their distance, up to `error_bound`; failures count as lost. 1 if not interpreted.
    error_bound : float
    failures : dict
        {exception: probability}.
    uninterpreted : str or None
    by_drafts : mapping
        {drafts: the distribution of the block after them}.
    emitted : dict
        {block: probability} as they are emitted: not completed, but cut after EOS.

    Examples
    --------
    >>> from specref.examples.lossy import verify
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> p, q = (iid_model(Vocabulary("ab"), row) for row in (["1/2", "1/2"], [1, 0]))
    >>> print(probe_block(verify, p, q))
    TV 0.25, within 1e-12: block (0, 0) has 0.375, the target's is 0.25
    """

    output: dict[Tokens, float]
    expected: dict[Tokens, float]
    total_variation: float
    error_bound: float
    failures: dict[str, float]
    uninterpreted: str | None
    by_drafts: Mapping[Tokens, Probed]
    emitted: dict[Tokens, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """The distance, and the block that is furthest off."""
        if self.uninterpreted:
            return f"not interpreted: {self.uninterpreted}"
        blocks = self.output.keys() | self.expected.keys()
        apart = {x: abs(self.output.get(x, 0.0) - self.expected.get(x, 0.0)) for x in blocks}
        worst = max(sorted(apart), key=apart.__getitem__)
        has, should = (law.get(worst, 0.0) for law in (self.output, self.expected))
        failed = "".join(f"; {error}: {chance:.4g}" for error, chance in self.failures.items())
        return (
            f"TV {self.total_variation:.4g}, within {self.error_bound:.2g}: "
            f"block {worst} has {has:.4g}, the target's is {should:.4g}{failed}"
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the error bound, if any."""
        texts = (probed.assumption for probed in self.by_drafts.values())
        return tuple(dict.fromkeys(text for text in texts if text))

    @property
    def calls(self) -> tuple[Call, ...]:
        found = (call for probed in self.by_drafts.values() for call in probed.calls)
        return tuple(dict.fromkeys(found))


def probe_block(
    verify: Callable[..., Any],
    target: Model,
    drafter: Model,
    context: Tokens = (),
    lookahead: int = 1,
    *,
    capabilities: Capabilities | None = None,
    max_runs: int = MAX_RUNS,
    kind: type[Verifier] = Verifier,
    known: bool = False,
) -> ProbedBlock:
    """The exact joint distribution of the completed block over all drafts, and its distance.

    Blocks are cut after EOS and extended by the target to lookahead + 1 tokens.

    Parameters
    ----------
    verify : callable
        Contract ``verify``.
    target, drafter : Model
        Over the same vocabulary.
    context : tuple of int
    lookahead : int
    capabilities : Capabilities, optional
    max_runs : int
        Of each draft.
    kind : type
        As for `probe_verify`.
    known : bool
        As for `probe_verify`.

    Examples
    --------
    >>> from specref.adapters.reference import verify
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> target = iid_model(Vocabulary("ab"), ["1/4", "3/4"])
    >>> drafter = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    >>> probe_block(verify, target, drafter).total_variation < 1e-9
    True
    """
    target, drafter = as_float(target), as_float(drafter)
    how: dict[str, Any] = {"capabilities": capabilities, "max_runs": max_runs, "kind": kind}
    found: list[tuple[Tokens, float, Probed]] = []
    for drafts, weight in drafted(drafter, context, lookahead):
        p, q = rows_after(target, context, drafts), rows_after(drafter, context, drafts)[:-1]
        found.append(
            (drafts, weight, probe_verify(verify, p, q, drafts, known=known or bool(found), **how))
        )
        if found[-1][2].uninterpreted:
            break
    return completed_block(found, target, context, lookahead + 1)


def completed_block(
    found: Iterable[tuple[Tokens, float, Probed]], target: Model, context: Tokens, length: int
) -> ProbedBlock:
    """The law of the completed block, from the laws of blocks after each draft.

    * `found`: Drafts, their probability, and the law of the block after them.
    * `length`: The length to which blocks are completed.
    """
    expected = _floats(completed({(): 1.0}, target, context, length))
    blocks: dict[Tokens, float] = {}
    failures: dict[str, float] = {}
    by_drafts: dict[Tokens, Probed] = {}
    error = 0.0
    for drafts, weight, probed in found:
        by_drafts[drafts] = probed
        if probed.uninterpreted:
            return ProbedBlock({}, expected, 1.0, 0.0, {}, probed.uninterpreted, by_drafts)
        _add(blocks, _until_eos(probed.distribution, target), weight)
        _add(failures, probed.failures, weight)
        error += weight * probed.error_bound
    output = _floats(completed(blocks, target, context, length))
    distance = float(total_variation(output, expected)) + sum(failures.values()) / 2
    return ProbedBlock(output, expected, distance, error, failures, None, by_drafts, blocks)


def drafted(drafter: Model, context: Tokens, lookahead: int) -> Iterator[tuple[Tokens, float]]:
    """Every draft with its probability; one that reaches EOS is shorter."""
    return iter(_floats(completed({(): 1.0}, drafter, context, lookahead)).items())


def rows_after(model: Model, context: Tokens, drafts: Tokens) -> Floats:
    """The laws after each prefix of the drafts, shape (len(drafts) + 1, V)."""
    prefixes = (drafts[:length] for length in range(len(drafts) + 1))
    return np.stack([model.next_token((*context, *prefix)) for prefix in prefixes])


def _until_eos(blocks: Mapping[Tokens, float], target: Model) -> dict[Tokens, float]:
    law: dict[Tokens, float] = {}
    for block, weight in blocks.items():
        ends = (n for n in range(1, len(block)) if target.vocabulary.ends(block[:n]))
        shorter = block[: next(ends, len(block))]
        law[shorter] = law.get(shorter, 0.0) + weight
    return law


def _add(total: dict[Any, float], law: Mapping[Any, float], weight: float) -> None:
    for key, probability in law.items():
        total[key] = total.get(key, 0.0) + weight * probability


def _floats(law: Mapping[Tokens, Any]) -> dict[Tokens, float]:
    return {tokens: float(weight) for tokens, weight in law.items()}


def probe_trees(
    verifier: Verifier,
    target: Model,
    drafter: Model,
    place: TreePlace,
    *,
    max_runs: int = MAX_RUNS,
    known: bool = False,
) -> ProbedBlock:
    """The exact joint law of the completed block over all trees of a place, and its distance.

    * `verifier`: An implementation of the contract ``tree``.
    * `target`, `drafter`: Over the same vocabulary.
    * `max_runs`: As for `Program`, for each tree.
    * `known`: As for `probe_program`.
    """
    target, drafter = as_float(target), as_float(drafter)

    def probed() -> Iterator[tuple[Tokens, float, Probed]]:
        for number, (batch, weight) in enumerate(trees_of(target, drafter, place)):
            program = batch_program(verifier, batch, max_runs)
            yield shape_of(batch), weight, probe_program(program, known=known or number > 0)

    return completed_block(probed(), target, place.context, place.lookahead + 1)


def trees_of(target: Model, drafter: Model, place: TreePlace) -> Iterator[tuple[TreeBatch, float]]:
    """Each tree that may be drafted at a place, as a batch of one row, and its probability."""
    for path in enumerate_paths(lambda chance: place.tree(drafter, chance)):
        batch = one_row(target, place.context, path.outcome, one_hot=place.way == TOP)
        yield batch, float(path.weight)


def shape_of(batch: TreeBatch) -> Tokens:
    """The tokens of the first tree of a batch, and their parents: what its law is kept by."""
    return (*batch.draft_tokens[0].tolist(), *batch.parents[0].tolist())


def probe_tokens(
    function: Callable[..., Any],
    target: Model,
    drafter: Model,
    context: Tokens,
    asked: int,
    longest: int,
    *,
    whole: bool = False,
    max_runs: int = MAX_RUNS,
    seconds: float = math.inf,
) -> ProbedBlock:
    """The exact joint distribution of the tokens that a function returns, and its distance.

    Drafts are its own. What it returns is extended by the target to `longest` tokens; tokens after
    EOS are a failure.

    Parameters
    ----------
    function : callable
        Contract ``step`` or ``generate``.
    target, drafter : Model
    context : tuple of int
    asked : int
        The lookahead of a step, or the tokens of a text.
    longest : int
        The most tokens that it may return.
    whole : bool
        Whether fewer are a failure, but after EOS: those of a text.
    max_runs : int
        As for `probe`.
    seconds : float
        After so many, its distribution is left uninterpreted.

    Returns
    -------
    ProbedBlock
        Of no drafts, `by_drafts` has the distribution of what is returned.

    Examples
    --------
    >>> from specref.algorithms import standard
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> p, q = (iid_model(Vocabulary("ab"), row) for row in (["1/4", "3/4"], ["1/2", "1/2"]))
    >>> probe_tokens(standard.step, p, q, (), 1, 2).total_variation < 1e-9
    True
    """
    target, drafter = as_float(target), as_float(drafter)
    fixture = Fixture("probed", target, drafter, (Place(context, longest),))
    keywords = drawn_from(function)
    # Adapters make a network of each model when they first see it. If they raise, so do all runs.
    with suppress(Exception):
        giver(function)((target, drafter, context, asked), np.random.default_rng(0))

    until = time.perf_counter() + seconds

    def run(source: Source) -> Tokens:
        if time.perf_counter() > until:
            source.problem = CannotInterpretError(f"it takes more than {seconds:g} s")
            return ()
        raw = function(target, drafter, context, asked, **keywords(program.generator))
        tokens = read_tokens(raw, longest, fixture)
        check_end(fixture, tokens)
        if whole and len(tokens) < longest and not target.vocabulary.ends(tokens):
            raise BrokenContractError(
                f"returned {len(tokens)} tokens: a text needs {longest}, or EOS at its end"
            )
        return tokens

    program = Program(run, function, max_runs)
    found = ((), 1.0, probe_program(program))
    return completed_block([found], target, context, longest)
