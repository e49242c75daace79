"""Models: checked rows, and the toy families."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specref import Model, Vocabulary
from specref.models import (
    as_model,
    hashed_model,
    iid_model,
    markov_model,
    ngram_model,
    table_model,
    text_model,
)
from specref.strategies import contexts, distributions

AB = Vocabulary("ab")
HALF = ["1/2", "1/2"]


def test_rows_are_checked_and_read_only():
    row = Model(AB, lambda context: HALF).next_token([0, 1])
    assert list(row) == [Fraction(1, 2)] * 2
    with pytest.raises(ValueError, match="read-only"):
        row[0] = 1


def test_some_rows_are_remembered_and_not_more(monkeypatch):
    monkeypatch.setattr("specref.models.REMEMBERED_CONTEXTS", 2)
    asked = []
    model = Model(AB, lambda context: [asked.append(context), HALF][1])
    for context in [(), [], (0,), (0,), (1,), (0,)]:
        model.next_token(context)
    assert asked == [(), (0,), (1,), (0,)]
    assert len(model._remembered) == 2


class Own:
    """A model of one's own, whose rows are its arrays."""

    def __init__(self, row):
        self.vocabulary, self.row, self.calls = AB, np.array([Fraction(x) for x in row]), 0

    def next_token(self, context):
        self.calls += 1
        return self.row


def test_a_model_of_ones_own_gives_copies():
    own = Own(HALF)
    model = as_model(own, "target")
    row = model.next_token(())
    assert not row.flags.writeable
    assert not np.shares_memory(row, own.row)
    assert (model.row is own.row, model.calls) == (True, 1)
    assert as_model(model, "target") is model


def test_a_subclass_with_rows_of_its_own_gives_copies():
    class Writable(Model):
        def next_token(self, context):
            return np.array([Fraction(1, 2)] * 2)

    row = as_model(Writable(AB, lambda context: HALF), "target").next_token(())
    assert not row.flags.writeable


@pytest.mark.parametrize("model", [None, {"next_token": 1}, lambda context: HALF])
def test_what_is_no_model_is_refused(model):
    with pytest.raises(TypeError, match=r"drafter = .*: expected a Model"):
        as_model(model, "drafter")


def test_a_model_without_a_vocabulary_is_refused():
    own = Own(HALF)
    own.vocabulary = ["a", "b"]
    with pytest.raises(TypeError, match=r"target\.vocabulary: expected a Vocabulary"):
        as_model(own, "target")


@pytest.mark.parametrize("name", ["next_token", "vocabulary", "_next_token", "__class__"])
@pytest.mark.parametrize("make", [lambda: iid_model(AB, HALF), lambda: as_model(Own(HALF), "p")])
def test_what_rows_come_from_cannot_be_replaced(make, name):
    with pytest.raises(AttributeError, match=f"{name} of a model cannot be replaced"):
        setattr(make(), name, None)


def test_a_subclass_may_keep_attributes_of_its_own():
    class Counting(Model):
        calls = 0

    model = Counting(AB, lambda context: HALF)
    model.calls += 1
    assert model.calls == 1


def test_float_rows_stay_floats():
    assert Model(AB, lambda context: [0.25, 0.75]).next_token(()).dtype == np.float64


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        ([1], ValueError, r"next_token\(\(1,\)\) has length 1: expected 2"),
        (["1/2", "1/3"], ValueError, r"next_token\(\(1,\)\) sums to 5/6: expected 1"),
        ([2, -1], ValueError, r"next_token\(\(1,\)\)\[1\] = -1: expected a non-negative"),
        ([0.5, "1/2"], TypeError, r"next_token\(\(1,\)\)\[1\] = .*: expected all exact"),
    ],
)
def test_bad_row_names_its_context(row, error, message):
    with pytest.raises(error, match=message):
        Model(AB, lambda context: row).next_token((1,))


@pytest.mark.parametrize("token", [-1, 2])
def test_context_out_of_range(token):
    with pytest.raises(ValueError, match=rf"context\[1\] = {token}: expected 0 <= id < 2"):
        iid_model(AB, HALF).next_token((0, token))


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ("ab", r"context\[0\] = 'a': expected a token id \(vocabulary.encode"),
        ((0, 0.5), r"context\[1\] = 0.5: expected a token id$"),
        ((None,), r"context\[0\] = None: expected a token id$"),
    ],
)
def test_context_of_the_wrong_type(context, message):
    with pytest.raises(TypeError, match=message):
        iid_model(AB, HALF).next_token(context)


def test_context_may_be_numpy_integers():
    assert iid_model(AB, HALF).next_token(np.array([0, 1]))[0] == Fraction(1, 2)


def test_model_of_the_wrong_types():
    with pytest.raises(TypeError, match=r"vocabulary = 'abc': expected a Vocabulary, such as"):
        Model("abc", lambda context: HALF)
    with pytest.raises(TypeError, match=r"next_token = \['1/2', '1/2'\]: expected a function"):
        Model(AB, HALF)


def test_float32_rows_are_told_the_remedy():
    row = np.array([0.1, 0.9], dtype=np.float32) * np.float32(1 + 2e-7)
    with pytest.raises(ValueError, match="convert to float64 and divide by the sum"):
        Model(AB, lambda context: row).next_token(())
    exact = row.astype(np.float64)
    assert Model(AB, lambda context: exact / exact.sum()).next_token(()).dtype == np.float64


@given(distributions(2), contexts(AB, 3))
def test_iid_model_ignores_its_context(p, context):
    assert list(iid_model(AB, p).next_token(context)) == list(p)


def test_table_model_looks_up_the_whole_context():
    model = table_model(AB, {(): [1, 0], (0, 1): [0, 1]}, otherwise=HALF)
    assert [model.next_token(context)[0] for context in [(), (1,), (0, 1), (1, 0, 1)]] == [
        1,
        Fraction(1, 2),
        0,
        Fraction(1, 2),
    ]


def test_table_model_without_the_context():
    with pytest.raises(ValueError, match=r"context \(0,\) is not in the table"):
        table_model(AB, {(): [1, 0]}).next_token((0,))


def test_markov_model_looks_at_the_last_token():
    model = markov_model(AB, HALF, [[1, 0], [0, 1]])
    assert [model.next_token(context)[0] for context in [(), (0,), (0, 1), (1, 0)]] == [
        Fraction(1, 2),
        1,
        0,
        1,
    ]


def test_markov_model_needs_a_row_for_each_token():
    with pytest.raises(ValueError, match="transitions has 1 rows: expected 2"):
        markov_model(AB, HALF, [[1, 0]])
    with pytest.raises(ValueError, match=r"transitions\[1\] sums to 0: expected 1"):
        markov_model(AB, HALF, [[1, 0], [0, 0]])


def test_ngram_model_looks_at_the_last_tokens():
    model = ngram_model(AB, 2, {(): [1, 0], (1,): [0, 1], (0, 1): [0, 1]}, otherwise=HALF)
    contexts_ = [(), (1,), (0, 1), (1, 0, 1), (0, 0, 0)]
    assert [model.next_token(context)[0] for context in contexts_] == [1, 0, 0, 0, Fraction(1, 2)]


def test_unigram_model_is_an_ngram_model_of_order_0():
    assert ngram_model(AB, 0, {(): [0, 1]}, otherwise=HALF).next_token((0, 1))[1] == 1


def test_ngram_model_needs_an_order():
    with pytest.raises(ValueError, match="order = -1"):
        ngram_model(AB, -1, {}, otherwise=HALF)


@pytest.mark.parametrize("order", [0, 1, 2])
@given(text=st.sampled_from(["abba", "aab", "b", "abcab"]), context=contexts(Vocabulary("abc"), 3))
def test_text_model_counts(order, text, context):
    vocabulary, smoothing = Vocabulary("abc"), Fraction(1, 2)
    seen, last = vocabulary.encode(text), context[max(0, len(context) - order) :]
    counts = [smoothing] * 3
    for position, token in enumerate(seen):
        if seen[max(0, position - order) : position] == last:
            counts[token] += 1
    row = text_model(vocabulary, text, order, smoothing).next_token(context)
    assert list(row) == [count / sum(counts) for count in counts]


@pytest.mark.parametrize(
    ("text", "order", "smoothing", "message"),
    [
        ("abc", 1, 1, "cannot tokenise 'abc'"),
        ("ab", -1, 1, "order = -1: expected an integer >= 0"),
        ("ab", 1, 0, "smoothing = 0: expected a number > 0"),
    ],
)
def test_bad_text_model(text, order, smoothing, message):
    with pytest.raises(ValueError, match=message):
        text_model(AB, text, order, smoothing)


def test_hashed_model_is_the_same_everywhere():
    model = hashed_model(Vocabulary("abc"), "target")
    assert [" ".join(map(str, model.next_token(context))) for context in [(), (0,), (0, 0)]] == [
        "3/7 1/7 3/7",
        "1/6 1/3 1/2",
        "0 0 1",
    ]


def test_hashed_model_has_zeros_ties_and_rows_that_differ():
    model = hashed_model(Vocabulary("abc"), "target")
    rows = [tuple(model.next_token(context)) for context in [(), (0,), (0, 0), (1, 0), (2, 1)]]
    assert len(set(rows)) == 5
    many = [model.next_token((i % 3, i // 3 % 3, i // 9)) for i in range(27)]
    assert any((row == 0).any() for row in many)
    assert any(len({*row}) < 3 for row in many)


def test_hashed_model_has_no_all_zero_row():
    model = hashed_model(AB, "zeros", largest=1)
    rows = [model.next_token((0,) * length) for length in range(40)]
    assert all(row.sum() == 1 for row in rows)
    assert sum(sorted(row) == [0, 1] for row in rows) > 10
