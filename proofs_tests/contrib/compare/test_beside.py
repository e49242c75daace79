"""Texts at temperature 0 that part: at a near-tie, for certain, or where nothing tells."""

import pytest

from specref.contrib.compare.beside import greedy_agreement

PLAIN = {"token_ids": [1, 2, 3], "top_logprobs": [[[1, -0.1]], [[2, -0.7], [4, -0.72]], [[3, -1]]]}


@pytest.mark.parametrize(
    ("ids", "lists", "found"),
    [
        ([1, 2, 3], PLAIN["top_logprobs"], "equal"),
        ([1, 4, 3], PLAIN["top_logprobs"], "near"),
        ([1, 4, 3], [[[1, -0.1]], [[2, -0.7], [4, -1.7]], [[3, -1]]], "apart"),
        ([1, 9, 3], [[[1, -0.1]], [[2, -0.7], [4, -1.7]], [[3, -1]]], "apart"),  # 9 is below 4
        ([1, 9, 3], PLAIN["top_logprobs"], "unknown"),  # below 4, which is near
        ([1, 4, 3], None, "unknown"),
        ([1, 2], PLAIN["top_logprobs"], "unknown"),  # one has ended, by no token
    ],
)
def test_where_texts_part_is_explained_by_margins_or_not(ids, lists, found):
    plain = {**PLAIN, "top_logprobs": lists}
    told = greedy_agreement({"a": {"token_ids": ids}}, {"a": plain}, 0.125)
    counts = {name: getattr(told, name) for name in ("equal", "near", "apart", "unknown")}
    assert counts == {**dict.fromkeys(counts, 0), found: 1}
