"""An order-1 chain and a drafter for it: few laws, so that one long text tells much."""

from specref.models import markov_model
from specref.vocabulary import Vocabulary

_LETTERS = Vocabulary("abcde")
_START = ["1/5"] * 5

CHAIN = markov_model(
    _LETTERS,
    _START,
    [
        ["1/10", "3/10", "2/5", "1/5", 0],
        ["1/2", 0, "1/6", "1/6", "1/6"],
        ["1/12", "5/12", "1/6", "1/4", "1/12"],
        [0, "1/4", "1/4", "1/4", "1/4"],
        ["2/5", "1/10", "1/5", "1/10", "1/5"],
    ],
)
GUESS = markov_model(
    _LETTERS,
    _START,
    [
        ["2/5", "1/10", "1/5", "1/10", "1/5"],
        ["1/6", "1/6", "1/2", 0, "1/6"],
        ["5/12", "1/12", "1/4", "1/6", "1/12"],
        ["1/4", "1/4", 0, "1/4", "1/4"],
        ["1/10", "2/5", "3/10", "1/5", 0],
    ],
)
