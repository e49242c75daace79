"""Exact probing of functions that are given two models: a step, or a decode loop."""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import Fixture, Place
from specref.contracts.sampling import check_end, drawn_from, giver, read_tokens
from specref.models import Model, as_float
from specref.probing.blocks import ProbedBlock, completed_block
from specref.probing.calls import CannotInterpretError
from specref.probing.probe import MAX_RUNS, probe_program
from specref.probing.program import Program
from specref.probing.source import Source
from specref.vocabulary import Tokens


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
