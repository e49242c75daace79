"""Laws of lengths from prefixes, by hand."""

from specref.theory.prefixes import length_law, survival, tokens_emitted
from specref.vocabulary import Vocabulary

ACCEPTED = {(): 1, (0,): 0.5, (1,): 0.25, (0, 1): 0.25}


def test_a_prefix_that_eos_does_not_end_is_followed_by_a_token() -> None:
    assert tokens_emitted(ACCEPTED, Vocabulary("ab")) == 2
    assert tokens_emitted(ACCEPTED, Vocabulary("ab", eos="b")) == 1.5
    assert tokens_emitted({(): 1}, Vocabulary("ab")) == 1


def test_rounding_makes_no_length_impossibly_rare() -> None:
    rounded = {(): 1.0, (0,): 0.3, (0, 0): 0.1 + 0.2}  # more than 0.3, by rounding
    assert rounded[0, 0] > rounded[0,]
    assert survival(rounded) == (1.0, 0.3, 0.1 + 0.2)
    assert length_law(rounded) == (0.7, 0, 0.1 + 0.2)
