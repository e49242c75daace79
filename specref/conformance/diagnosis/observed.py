"""The data of a diagnosis: counted blocks or texts of one case."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, TypeAlias, get_args

from specref.models import Model
from specref.vocabulary import Tokens

View: TypeAlias = Literal["boundary", "stream"]


@dataclass(frozen=True, eq=False)
class Observed:
    """The blocks or texts that a sampler emitted on one case.

    Parameters
    ----------
    name : str
        Name of the case.
    target, drafter : Model
    context : tuple of int
        Target token ids.
    lookahead : int
    blocks : mapping
        {block: count}, as they were emitted, not completed.
    view : {"boundary", "stream"}
        Whether `blocks` holds the blocks of single iterations, or texts of many.
    tokens : int, optional
        In view "stream": the length of each text, unless it ends with EOS. By default the
        length of the longest.

    options : tuple of (str, object)
        Further arguments of a rule: the shape of its tree.

    Raises
    ------
    TypeError
        A token or a count is no integer.
    ValueError
        Nothing was counted, a count is negative, a block is empty, a token id is out of range,
        a text is longer than `tokens`, or ends early without EOS.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> ab = Vocabulary("ab")
    >>> target, drafter = iid_model(ab, ["1/2", "1/2"]), iid_model(ab, ["1/3", "2/3"])
    >>> Observed("coin", target, drafter, (), 1, {(0,): 3, (1, 1): 4}).trials
    7
    """

    name: str
    target: Model
    drafter: Model
    context: Tokens
    lookahead: int
    blocks: Mapping[Tokens, int]
    view: View = "boundary"
    tokens: int | None = None
    options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if self.view not in get_args(View):
            raise ValueError(f"view = {self.view!r}: expected one of {get_args(View)}")
        if self.view == "boundary" and self.tokens is not None:
            raise ValueError(f"tokens = {self.tokens}: expected None, unless view is 'stream'")
        size = len(self.target.vocabulary)
        for block, count in self.blocks.items():
            if not isinstance(count, Integral) or not all(isinstance(x, Integral) for x in block):
                raise TypeError(f"blocks[{block!r}] = {count!r}: expected integers")
            if count < 0:
                raise ValueError(f"blocks[{block}] = {count}: expected a count >= 0")
            if not block or not all(0 <= x < size for x in block):
                raise ValueError(
                    f"blocks has {block}: expected at least one token id, each < {size}"
                )
        if not self.trials:
            raise ValueError(f"blocks of case {self.name!r} is empty: expected at least one")
        for text in self.blocks if self.view == "stream" else ():
            whole = len(text) == self.length or self.target.vocabulary.ends(text)
            if not whole or len(text) > (self.length or 0):
                raise ValueError(
                    f"blocks has the text {text}: expected {self.length} tokens, or EOS"
                )

    @property
    def trials(self) -> int:
        """The number of blocks or texts."""
        return sum(self.blocks.values())

    @property
    def length(self) -> int | None:
        """The number of tokens of a text; None for blocks."""
        if self.view == "boundary":
            return None
        return max(map(len, self.blocks)) if self.tokens is None else self.tokens
