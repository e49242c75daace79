"""The family of toy pairs: exact models, every kind of pair, cases from the smallest on."""

from specref.distributions import is_exact
from specref.pairs import cases, toy_pairs
from specref.vocabulary import find_untokenisable, inexpressible, intersection

PAIRS = toy_pairs("standard")


def rows_of(pair, model):
    contexts = [(), (0,), (1, 0), (0, 1)]
    return [model.next_token(context) for context in contexts if max(context, default=0) < 2]


def test_names_are_unique() -> None:
    assert len({pair.name for pair in PAIRS}) == len(PAIRS)


def test_models_are_exact() -> None:
    for pair in PAIRS:
        for model in (pair.target, pair.drafter):
            assert all(map(is_exact, rows_of(pair, model))), pair.name


def test_every_kind_is_there() -> None:
    shared = [
        (len(intersection(pair.target.vocabulary, pair.drafter.vocabulary)), pair)
        for pair in PAIRS
    ]
    sizes = [(n, len(p.target.vocabulary), len(p.drafter.vocabulary)) for n, p in shared]
    assert any(n == t == d for n, t, d in sizes), "equal vocabularies"
    assert any(n == 0 for n, t, d in sizes), "disjoint"
    assert any(n == t < d for n, t, d in sizes), "target nested in drafter"
    assert any(n == d < t for n, t, d in sizes), "drafter nested in target"
    assert any(0 < n < min(t, d) for n, t, d in sizes), "overlapping"
    rows = [row for pair in PAIRS for row in rows_of(pair, pair.target)]
    assert any((row == 0).any() for row in rows), "zeros"
    assert any(len(set(row)) < len(row) for row in rows), "ties"
    assert any((row == 1).any() for row in rows), "point masses"
    assert any(pair.target.vocabulary.eos for pair in PAIRS), "EOS"
    assert any(pair.drafter.vocabulary.normalise for pair in PAIRS), "not injective"


def test_by_text_pairs_read_each_other() -> None:
    by_text = [pair for pair in PAIRS if pair.by_text]
    assert by_text
    for pair in by_text:
        target, drafter = pair.target.vocabulary, pair.drafter.vocabulary
        assert find_untokenisable(drafter, target) is None, pair.name
        assert drafter.normalise or inexpressible(target, drafter) == (), pair.name


def test_cases_start_with_the_smallest() -> None:
    ordered = list(cases(PAIRS, "standard"))
    keys = [(case.lookahead, len(case.pair.target.vocabulary)) for case in ordered]
    assert keys == sorted(keys)
