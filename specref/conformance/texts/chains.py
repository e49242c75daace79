"""Models of order 2, 1 and 0: with so few laws, one long text has many samples of each."""

from specref.models import Model, hashed_model, iid_model, markov_model
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

_HASHED = hashed_model(_LETTERS, "pairs")
PAIRS = Model(_LETTERS, lambda context: _HASHED.next_token(context[-2:]))
FLAT = iid_model(_LETTERS, ["1/5"] * 5)
PEAKED = iid_model(_LETTERS, ["3/5", "1/5", "1/10", "1/20", "1/20"])
