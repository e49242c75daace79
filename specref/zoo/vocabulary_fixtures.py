"""Exact pairs over two vocabularies: for drafts mapped by token, and for drafts read as text."""

from collections.abc import Mapping

from specref.vocabulary import Tokens, Vocabulary
from specref.zoo.fixtures import ExactFixture, by_name, hashed_pair


def _pair(
    name: str,
    key: int,
    target: Vocabulary,
    drafter: Vocabulary,
    lookahead: int,
    context: Tokens = (),
    longest: int | None = None,
) -> ExactFixture:
    models = hashed_pair(name, key, target, drafter)
    return ExactFixture(name, *models, lookahead, context, longest)


# The keys were found by search: as many mutants as possible show on a fixture, none of them
# with a total variation below 1/125, and the worst of them with as little as possible. On
# "overlap" and "ends" both models have mass on tokens that the other lacks.
TOKEN_FIXTURES: Mapping[str, ExactFixture] = by_name(
    _pair("permuted", 349, Vocabulary("abcd"), Vocabulary("cadb"), 2),
    _pair("overlap", 2567, Vocabulary("abcd"), Vocabulary("xcay"), 2),
    _pair(
        "ends",
        740,
        Vocabulary(["a", "b", "c", "$"], eos="$"),
        Vocabulary(["$", "x", "c", "a"], eos="$"),
        2,
    ),
)
TEXT_FIXTURES: Mapping[str, ExactFixture] = by_name(
    _pair("pieces", 88, Vocabulary(["a", "b", "ab"]), Vocabulary(["b", "a", "ba"]), 2, (), 5),
    _pair("letters", 7, Vocabulary(["a", "ab", "b"]), Vocabulary(["b", "a"]), 3),
    _pair("unread", 3, Vocabulary(["a", "ab", "b"]), Vocabulary(["b", "a"]), 1, (0, 2)),
    _pair(
        "text end",
        178,
        Vocabulary(["a", "b", "ab", "$"], eos="$"),
        Vocabulary(["$", "a", "b"], eos="$"),
        2,
    ),
)
