"""Models of order 1, which a judge of long texts can be put to."""

from specref.conformance.markov import Chain
from specref.models import Model, hashed_model, markov_model
from specref.vocabulary import Vocabulary


def chain(vocabulary: Vocabulary, key: str) -> Model:
    """An order-1 model with zeros and ties, quick for long texts."""
    rows = hashed_model(vocabulary, key, 9)
    after = [rows.next_token((last,)) for last in range(len(vocabulary))]
    return Chain(markov_model(vocabulary, after[0], after))
