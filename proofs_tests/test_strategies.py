"""The Hypothesis strategies: what they draw, what they reach, how failures read."""

import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from proofs_tests.helpers.bugs import planted
from specref import Vocabulary, is_lossless
from specref.distributions import is_exact
from specref.strategies import (
    RowsModel,
    contexts,
    distributions,
    heterogeneous_pairs,
    iterations,
    lookaheads,
    merge_spaces,
    model_pairs,
    models,
    non_injective_pairs,
    token_level_pairs,
    vocabularies,
)
from specref.vocabulary import find_untokenisable, intersection

ABC = Vocabulary("abc")
WITHOUT_HYPOTHESIS = """
import sys
sys.modules["hypothesis"] = None
import specref
try:
    import specref.strategies
except ImportError as error:
    print(error)
"""


def test_import_without_hypothesis_says_what_to_install():
    command = [sys.executable, "-c", WITHOUT_HYPOTHESIS]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == "specref.strategies needs Hypothesis: pip install hypothesis\n"


@given(st.integers(1, 6), st.integers(1, 5), st.data())
def test_distributions_are_exact_and_of_small_weights(size, largest, data):
    p = data.draw(distributions(size, largest))
    assert len(p) == size
    assert is_exact(p)
    assert p.sum() == 1
    assert all(value.denominator <= size * largest for value in p)


@pytest.mark.parametrize(
    "wanted",
    [
        lambda p: max(p) == 1 and p[2] == 1,
        lambda p: (p == Fraction(1, 3)).all(),
        lambda p: 0 < p[0] < p[1] < p[2],
        lambda p: p[1] == 0 and p[0] == p[2],
        lambda p: p[0] == 4 * p[1] > 0,
    ],
    ids=["point mass", "uniform", "all different", "zero and tie", "largest weight"],
)
def test_distributions_reach(wanted, counterexample):
    assert counterexample(distributions(3), lambda p: not wanted(p)) is not None


@given(vocabularies("abc", 5, longest=2))
def test_vocabularies_respect_their_limits(vocabulary):
    assert 1 <= len(vocabulary) <= 5
    assert vocabulary.longest <= 2
    assert set("".join(vocabulary.tokens)) <= set("abc")
    assert vocabulary.eos is None


@given(vocabularies("ab", 5, complete=True, eos=True))
def test_complete_vocabularies_tokenise_everything(vocabulary):
    assert set("ab") <= set(vocabulary.tokens)
    assert vocabulary.eos is None or vocabulary.eos in vocabulary.tokens
    assert find_untokenisable(Vocabulary("ab"), vocabulary) is None


@pytest.mark.parametrize(
    "wanted",
    [
        lambda vocabulary: len(vocabulary) == 5,
        lambda vocabulary: vocabulary.eos is None,
        lambda vocabulary: vocabulary.eos == "b",
        lambda vocabulary: vocabulary.longest == 3 and "a" not in vocabulary.tokens,
        lambda vocabulary: list(vocabulary.tokens) != sorted(vocabulary.tokens, key=len),
    ],
    ids=["full", "no eos", "eos", "not complete", "any order"],
)
def test_vocabularies_reach(wanted, counterexample):
    assert counterexample(vocabularies(eos=True), lambda vocabulary: not wanted(vocabulary))


@given(st.sampled_from([1, 2, 3, 8]).flatmap(lambda n: models(Vocabulary("abcdefgh"[:n]))))
def test_models_print_as_code_that_builds_them(model):
    again = eval(repr(model), {"RowsModel": RowsModel, "Vocabulary": Vocabulary})
    assert again.vocabulary == model.vocabulary
    assert [list(row) for row in again.rows] == [list(row) for row in model.rows]


def test_normaliser_is_printed_by_name():
    model = RowsModel(Vocabulary("a", eos="a", normalise=merge_spaces), [["1"]])
    assert repr(model) == "RowsModel(Vocabulary(['a'], eos='a', normalise=merge_spaces), [['1']])"


def test_rows_differ_by_position_and_by_whole_context():
    """With as many rows as the rolling hash has states, every single change shows."""
    model = RowsModel(ABC, [[Fraction(i, 6), Fraction(6 - i, 6), 0] for i in range(7)])

    def different(*some):
        return len({model.next_token(context)[0] for context in some}) == len(some)

    assert different((), (0,), (0, 0), (0, 0, 0), (0, 0, 0, 0))
    assert different((0, 1, 2), (1, 1, 2), (2, 1, 2))
    assert different((0, 0, 2), (0, 1, 2), (0, 2, 2))
    assert different((0, 1, 0), (0, 1, 1), (0, 1, 2))
    assert different((0, 1), (1, 0))


@pytest.mark.parametrize("wanted", [1, 6])
def test_models_reach_one_row_and_six(wanted, counterexample):
    assert counterexample(models(ABC), lambda model: len(model.rows) != wanted)


@given(model_pairs())
def test_model_pairs_share_a_vocabulary(pair):
    target, drafter = pair
    assert target.vocabulary is drafter.vocabulary


def test_model_pairs_are_sometimes_twins(counterexample):
    assert counterexample(model_pairs(), lambda pair: pair[0] is not pair[1])
    assert counterexample(model_pairs(), lambda pair: pair[0] is pair[1])


@given(heterogeneous_pairs() | non_injective_pairs())
def test_heterogeneous_pairs_read_each_other(pair):
    one, other = (model.vocabulary for model in pair)
    plain = [Vocabulary(vocabulary.tokens) for vocabulary in (one, other)]
    assert find_untokenisable(*plain) is None
    assert find_untokenisable(*reversed(plain)) is None


@given(non_injective_pairs())
def test_non_injective_pairs_normalise(pair):
    assert any(model.vocabulary.normalise for model in pair)


def shared(pair):
    target, drafter = (model.vocabulary for model in pair)
    return len(intersection(target, drafter)), len(target), len(drafter)


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(
    "wanted",
    [
        lambda both, target, drafter: both == 0,
        lambda both, target, drafter: both == target == drafter > 1,
        lambda both, target, drafter: both == target < drafter,
        lambda both, target, drafter: both == drafter < target,
        lambda both, target, drafter: 0 < both < min(target, drafter),
    ],
    ids=["disjoint", "equal", "target inside", "drafter inside", "overlapping"],
)
def test_token_level_pairs_reach(wanted, counterexample):
    assert counterexample(token_level_pairs(), lambda pair: not wanted(*shared(pair)))


def test_token_level_pairs_share_tokens_under_other_ids(counterexample):
    def same_ids(pair):
        vocabularies_ = [model.vocabulary for model in pair]
        return all(one == other for one, other in intersection(*vocabularies_).items())

    assert counterexample(token_level_pairs(), same_ids)


@given(contexts(ABC, 4), lookaheads(3))
def test_contexts_and_lookaheads_stay_in_range(context, lookahead):
    assert len(context) <= 4
    assert set(context) <= {0, 1, 2}
    assert 0 <= lookahead <= 3


@pytest.mark.deep
def test_a_planted_bug_shrinks_to_a_readable_case():
    def lossy(case):
        return not is_lossless(planted.always_accepted, *case)

    target, drafter, context, lookahead = find(iterations(model_pairs()), lossy)
    assert (len(target.vocabulary), len(target.rows), len(drafter.rows)) == (2, 1, 1)
    assert (context, lookahead) == ((), 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: distributions(0),
        lambda: distributions(2, 0),
        lambda: vocabularies("abc", 2, complete=True),
        lambda: vocabularies("", 2),
        lambda: vocabularies("ab", 0),
        lambda: vocabularies("ab", 3, longest=0),
        lambda: lookaheads(-1),
        lambda: RowsModel(ABC, []),
        lambda: RowsModel(ABC, [[1, 0, 0], [1, 0]]),
    ],
)
def test_impossible_requests_are_refused_at_once(make):
    with pytest.raises(ValueError, match="expected"):
        make()
