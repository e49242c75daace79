"""Shapes that a sampler is judged at besides: ``--shape V=…,K=…,B=…,dtype=…``."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

import click

from specref.conformance.strata.shape import Shape, shapes
from specref.contracts.capabilities import Dtype
from specref.contracts.contract import Contract
from specref.suggestions import did_you_mean

DEFAULT = Shape(32_000, 3, 4)
NAMES = {"V": "vocabulary", "K": "lookahead", "B": "batch", "dtype": "dtype"}


def shape_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option --shape, and those for a size each that came before it."""
    for name, kind in (("vocabulary", int), ("lookahead", int), ("batch", int)):
        command = click.option(f"--{name}", type=kind, multiple=True, hidden=True)(command)
    known = click.Choice(get_args(Dtype))
    command = click.option("--dtype", type=known, multiple=True, hidden=True)(command)
    return click.option(
        "--shape",
        multiple=True,
        metavar="V=…,K=…,B=…,dtype=…",
        help="Also test V tokens, K draft tokens and B rows (32000, 3 and 4 if not "
        "given), in this dtype; repeat for more.",
    )(command)


class Wanted(NamedTuple):
    """Shapes that were asked for: whole ones, and sizes of which every combination is meant."""

    whole: tuple[Mapping[str, str], ...] = ()
    vocabulary: tuple[int, ...] = ()
    lookahead: tuple[int, ...] = ()
    batch: tuple[int, ...] = ()
    dtype: tuple[Dtype, ...] = ()

    def shapes(self, contract: Contract) -> tuple[Shape, ...]:
        """The shapes under a contract, which may judge a row at a time."""
        one = DEFAULT if "batch" in contract.shaped else DEFAULT._replace(batch=1)
        found = [
            one._replace(**{name: int(x) for name, x in each.items() if name != "dtype"})
            for each in self.whole
        ]
        sizes = self.vocabulary, self.lookahead, self.batch
        if any(sizes) or (self.dtype and not self.whole):
            found += shapes(*(given or (usual,) for given, usual in zip(sizes, one, strict=True)))
        return tuple(dict.fromkeys(found))

    @property
    def dtypes(self) -> tuple[Dtype, ...]:
        """The dtypes; each shape is judged in all of them."""
        named: list[Any] = [each["dtype"] for each in self.whole if "dtype" in each]
        return tuple(dict.fromkeys([*named, *self.dtype]))


def read_shape(text: str) -> Mapping[str, str]:
    """A shape that is written NAME=VALUE,NAME=VALUE.

    Examples
    --------
    >>> read_shape("V=1000,K=5,dtype=float32")
    {'vocabulary': '1000', 'lookahead': '5', 'dtype': 'float32'}
    """
    found: dict[str, str] = {}
    for pair in text.split(","):
        name, equals, value = pair.partition("=")
        if name not in NAMES or not equals:
            hint = did_you_mean(name, NAMES)
            raise ValueError(f"shape has {pair!r}: expected {'=…, '.join(NAMES)}=…{hint}")
        if name != "dtype" and not value.isdigit():
            raise ValueError(f"shape has {pair!r}: expected an integer")
        found[NAMES[name]] = value
    return found


def wanted(shape: Sequence[str], **sizes: Any) -> Wanted:
    """What --shape, and the options before it, ask for."""
    return Wanted(tuple(map(read_shape, shape)), **sizes)
