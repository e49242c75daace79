"""A row of NaN beside good ones: what is claimed of it holds, and the others are as they were."""

import numpy as np
import pytest

from specref import check
from specref.adapters.reference import verify
from specref.contracts.capabilities import Capabilities

pytestmark = pytest.mark.usefixtures("undiagnosed")

ONLY = {"only": ["boundary/certain"], "trials": 1_000}


def checked(function, **claims):
    (result,) = [
        one for one in check(function, **ONLY, **claims).results if one.id == "boundary/certain"
    ]
    return result


def raising(target_probs, draft_probs, draft_tokens, *, rng):
    if np.isnan(target_probs).any():
        raise ValueError("a row is NaN")
    return verify(target_probs, draft_probs, draft_tokens, rng=rng)


def sampling(spread=False, token=0, likeliest=False):
    """Gives such a row a token; beside one, `spread` and `likeliest` spoil all rows of a batch."""

    def function(target_probs, draft_probs, draft_tokens, *, rng):
        nan = np.isnan(target_probs).any(axis=(1, 2))
        p = target_probs / target_probs.max() if spread else target_probs
        p = np.nan_to_num(p)
        empty = p.sum(axis=2) == 0
        p[empty, 3] = 1
        p /= p.sum(axis=2, keepdims=True)
        tokens, counts = verify(p, draft_probs, draft_tokens, rng=rng)
        tokens, counts = np.array(tokens), np.array(counts)
        if likeliest and nan.any():
            tokens[:], counts[:] = -1, 1
            tokens[:, 0] = p[:, 0].argmax(axis=1)
        tokens[nan], counts[nan] = -1, 1
        tokens[nan, 0] = token
        return tokens, counts

    return function


def test_what_is_claimed_of_a_row_of_nan_holds():
    assert checked(raising, nan="raises").status == "passed"
    assert checked(sampling(), nan=0).status == "passed"


@pytest.mark.parametrize(
    ("function", "claim", "why"),
    [
        (sampling(), "raises", "nothing was raised"),
        (sampling(token=1), 0, r"is NaN and got \[1\]: it claims nan=0"),
        (sampling(spread=True), 0, "row 256 next to it is NaN"),
        (sampling(likeliest=True), 0, "of the 256 between them 256 begin with token 1: p is 1/2"),
    ],
)
def test_what_does_not_hold_is_found(function, claim, why):
    found = checked(function, nan=claim)
    assert found.status == "failed"
    others = "next to" in why or "between" in why
    assert found.finding == ("lossy law" if others else "broken contract")
    assert why.replace("\\", "") in found.message
    assert checked(function).status == "passed", "nothing is asked that nobody claims"


def test_other_claims_are_refused():
    for wrong in (-1, True, "zero"):
        with pytest.raises(ValueError, match="expected raises, or the id of a token"):
            Capabilities(nan=wrong)
