"""Exact pairs over two vocabularies: for drafts mapped by token, and for drafts read as text."""

from collections.abc import Mapping

from specref.vocabulary import Vocabulary
from specref.zoo.fixtures import ExactFixture, by_name, hashed_fixture

# The keys were found by search: as many mutants as possible show on a fixture, none of them
# with a total variation below 1/125, and the worst of them with as little as possible. On
# "overlap" and "ends" both models have mass on tokens that the other lacks.
TOKEN_FIXTURES: Mapping[str, ExactFixture] = by_name(
    hashed_fixture("permuted", 349, Vocabulary("abcd"), Vocabulary("cadb"), 2),
    hashed_fixture("overlap", 2567, Vocabulary("abcd"), Vocabulary("xcay"), 2),
    hashed_fixture(
        "ends",
        740,
        Vocabulary(["a", "b", "c", "$"], eos="$"),
        Vocabulary(["$", "x", "c", "a"], eos="$"),
        2,
    ),
)
TEXT_FIXTURES: Mapping[str, ExactFixture] = by_name(
    hashed_fixture(
        "pieces", 88, Vocabulary(["a", "b", "ab"]), Vocabulary(["b", "a", "ba"]), 2, (), 5
    ),
    hashed_fixture("letters", 7, Vocabulary(["a", "ab", "b"]), Vocabulary(["b", "a"]), 3),
    hashed_fixture("unread", 3, Vocabulary(["a", "ab", "b"]), Vocabulary(["b", "a"]), 1, (0, 2)),
    hashed_fixture(
        "text end",
        178,
        Vocabulary(["a", "b", "ab", "$"], eos="$"),
        Vocabulary(["$", "a", "b"], eos="$"),
        2,
    ),
)
