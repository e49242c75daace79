"""The target and drafter of the pictures, which the playground starts with, too."""

from specref.distributions import as_distribution
from specref.models import iid_model
from specref.vocabulary import Vocabulary

VOCABULARY = Vocabulary("abcd")
P = as_distribution(["1/2", "1/5", "1/5", "1/10"])
Q = as_distribution(["1/5", "1/2", "1/10", "1/5"])
TARGET, DRAFTER = iid_model(VOCABULARY, P), iid_model(VOCABULARY, Q)
