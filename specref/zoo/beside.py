"""The mutants and controls of rules beside the kit's kill matrix: exact proof judges them."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from specref.distributions import Probability
from specref.zoo.block import BLOCK
from specref.zoo.companion import COMPANION
from specref.zoo.companion_batch import BATCH_COMPANION
from specref.zoo.entry import Described
from specref.zoo.greedy_block import GREEDY_BLOCK
from specref.zoo.multi_draft import MULTI_DRAFT
from specref.zoo.ngrams import NGRAMS


class Beside(NamedTuple):
    """Somebody beside the kit's zoo.

    Attributes
    ----------
    entry : Described
    rule : str
        The clean rule that it departs from, within `specref.algorithms`.
    total_variation : Fraction or float
        Of the completed block, or of the first tokens, on the case that refutes it; the largest
        of several; 0 for a control.
    """

    entry: Described
    rule: str
    total_variation: Probability


def _all() -> Iterator[Beside]:
    for ngram in NGRAMS.values():
        yield Beside(ngram, "ngrams", ngram.case.total_variation)
    for alone in COMPANION.values():
        yield Beside(alone, "companion", alone.case.total_variation)
    for batch in BATCH_COMPANION.values():
        yield Beside(batch, "companion_batch", batch.case.total_variation)
    for block in BLOCK.values():
        yield Beside(block, "block", max(block.distances.values(), default=0))
    for greedy in GREEDY_BLOCK.values():
        yield Beside(greedy, "greedy_block", max(greedy.distances.values(), default=0))
    for drafts in MULTI_DRAFT.values():
        yield Beside(drafts, drafts.clean, max(drafts.distances.values(), default=0))


BESIDE: Mapping[str, Beside] = MappingProxyType({one.entry.id: one for one in _all()})
