"""What of other rows a row's block depends on is told, and told apart from shared numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.bugs.verifiers import BUGS, clean
from specref.arrays import Ints
from specref.conformance.beside import depends_on_others
from specref.conformance.options import CheckOptions
from specref.conformance.public import check
from specref.conformance.suite import prepare

VERDICTS = "a row's block depends on other rows' verdicts: "
LAWS = "a row's block depends on other rows' laws or drafts: "


def explained(verify: Callable[..., Any], **claims: Any) -> str:
    judge, _ = prepare(verify, CheckOptions(claims=claims))
    return depends_on_others(judge)


def committing(least: Callable[[Ints], int], *, redraw: bool) -> Callable[..., Any]:
    """All rows commit as many drafts as one of them keeps; the next token may be drawn anew."""

    def verify(p: Any, q: Any, drafts: Any, *, rng: Any) -> tuple[Ints, Ints]:
        tokens, counts = clean(p, q, drafts, rng=rng)
        tokens, shared = tokens.copy(), least(counts - 1)
        for row in np.flatnonzero(counts - 1 > shared) if redraw else ():
            tokens[row, shared] = rng.choice(p.shape[2], p=p[row, shared] / p[row, shared].sum())
        counts = np.minimum(counts, shared + 1)
        tokens[np.arange(tokens.shape[1]) >= counts[:, None]] = -1
        return tokens, counts

    return verify


def row_by_row(p: Any, q: Any, drafts: Any, *, rng: Any) -> tuple[Ints, Ints]:
    """Lossless; how many numbers a row draws depends on what is kept of it."""
    rows = [clean(*(x[i : i + 1] for x in (p, q, drafts)), rng=stream(rng)) for i in range(len(p))]
    return np.concatenate([r[0] for r in rows]), np.concatenate([r[1] for r in rows])


def stream(rng: Any) -> Any:
    """The same generator, some numbers further on."""
    rng.random(rng.integers(3))
    return rng


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("redraw", [True, False])
def test_a_decision_for_the_whole_batch_is_told(redraw: bool) -> None:
    assert explained(committing(min, redraw=redraw)).startswith(VERDICTS)


def test_rows_that_read_those_of_others_are_told_so() -> None:
    assert explained(BUGS["q of the row before"](), one_hot=False).startswith(LAWS)


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("bug", ["rows share uniforms", "pairs of rows share noise", "lenient"])
def test_other_bugs_are_not_explained_by_other_rows(bug: str) -> None:
    assert explained(BUGS[bug]()) == ""


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("verify", [clean, row_by_row])
def test_independent_rows_are_not_called_dependent(verify: Any) -> None:
    assert explained(verify) == ""
    assert explained(verify, batch=1) == ""


@pytest.mark.deep
def test_the_first_failure_says_so_and_no_pass_does() -> None:
    asked = {"only": ["joint/wide", "joint/beside-idle"], "detect_tv": 0.15}
    told = [
        VERDICTS in one.message for one in check(committing(min, redraw=True), **asked).results
    ]
    assert told == [True, False]
    lossless = check(committing(min, redraw=False), **asked)
    assert lossless.exit_code == 0
    assert not any(VERDICTS in result.message for result in lossless.results)
