"""The strata that a run of checks judges, and those that a user asks for."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from specref.conformance.strata.shape import Shape, shapes
from specref.conformance.strata.stratum import Stratum

SMALL = (5, 8, 37)
MIDDLE = (32_000, 32_768, 50_257, 65_537)
LARGE = (128_256, 151_936, 262_144)
# Few tokens are drawn from large vocabularies: from laws that show most.
APART = ("without",)
SHARPER = ("sharp", "cut")
SPREAD = ("zipf", "flat", "long tail", "steep")
STRATA: tuple[Stratum, ...] = (
    Stratum("one-draft", shapes(SMALL, [1], [1, 4, 32, 256])),
    Stratum("two-and-three-drafts", shapes(SMALL, [2, 3], [4, 64])),
    Stratum("many-drafts", shapes([6, 33], [4, 5, 8], [4, 64]), cost=2),
    Stratum("batches-to-16", shapes([7], [2], [2, 3, 5, 6, 7, 8, 9, 12, 15, 16]), cost=3),
    Stratum("batches-to-512", shapes([7], [2], [17, 31, 32, 48, 64, 100, 128, 256, 512]), cost=3),
    Stratum("batches-to-8192", shapes([7], [2], [600, 1_000, 1_024, 1_500, 4_097, 8_192])),
    Stratum("vocabulary-hundreds", shapes([100, 256, 257, 500, 1_000], [1, 3], [16, 64])),
    Stratum("vocabulary-thousands", shapes([1_024, 2_050, 4_096, 5_003], [1, 3], [8, 32]), cost=2),
    Stratum(
        "vocabulary-32k",
        (*shapes(MIDDLE, [1], [4]), Shape(32_000, 3, 4)),
        SPREAD,
        APART,
        ragged=False,
        cost=10,
    ),
    Stratum(
        "vocabulary-128k",
        shapes(LARGE, [1], [1, 4]),
        SPREAD,
        APART,
        ragged=False,
        padding=267,
        cost=28,
    ),
    Stratum("no-laws", shapes([5, 40], [1, 3, 5], [1, 16, 64]), laws=False),
    Stratum("laws-flat", shapes([50, 300], [3], [64]), ("flat", "long tail")),
    Stratum("laws-fine", shapes([5_003], [1], [64]), ("flat",), ("near", "sharp"), pairs=1),
    Stratum("laws-peaked", shapes([8, 50], [3], [64]), ("peaked", "confident", "steep")),
    Stratum("laws-confident", shapes([8, 50], [1, 3], [64]), ("peaked", "confident"), SHARPER),
    Stratum("laws-rare", shapes([2_000], [2], [64]), ("long tail", "zipf"), cost=3),
    Stratum("laws-zeros", shapes([8, 64], [3], [64]), ("truncated",), ("cut", "sharp", "wrong")),
    Stratum("drafter-wrong", shapes([8, 50], [1, 3], [64]), drafters=("wrong",)),
    Stratum("bare", shapes([6, 40], [1, 3], [1, 16, 64]), way="bare", ragged=False),
    Stratum("int32-ids", shapes([6, 300], [3], [64]), way="int32"),
    Stratum("strided-arrays", shapes([6, 40], [1, 3], [64]), way="strided"),
    Stratum("read-only-arrays", shapes([6, 40], [1, 3], [64]), way="read-only"),
    Stratum("arrays-filled-anew", shapes([8], [3], [32]), way="refilled"),
    Stratum("answers-kept", shapes([8], [1, 3], [32]), way="kept"),
    Stratum("late-calls", shapes([8], [1], [2, 4]), after=20_000),
)


OWN = "own-shape"
# One call of many rows: all that can be known of a first call.
FIRST = Stratum("first-call", (Shape(8, 2, 1_024),))


SHAPED = tuple(one for one in STRATA if one == Stratum(one.name, one.shapes, cost=one.cost))
OTHER = tuple(
    one for one in STRATA if one not in SHAPED and not one.after and one.drafters != APART
)


def crossed(shaped: Stratum, other: Stratum) -> Stratum:
    """The laws and the way of calling of one stratum, at the shapes of another.

    Examples
    --------
    >>> both = crossed(SHAPED[2], OTHER[-1])
    >>> both.name, both.way, both.shapes[0]
    ('many-drafts, answers-kept', 'kept', Shape(vocabulary=6, lookahead=4, batch=4))
    """
    name = f"{shaped.name}, {other.name}"
    return replace(other, name=name, shapes=shaped.shapes, pairs=None, cost=1.0)


def drawn_pairs(rng: np.random.Generator, count: int) -> list[Stratum]:
    """Different pairs of strata, of all that may meet."""
    both = [(one, other) for one in SHAPED for other in OTHER]
    return [crossed(*both[i]) for i in rng.choice(len(both), count, replace=False)]


def own_stratum(given: Sequence[Shape]) -> Stratum:
    """The stratum of the shapes that a user asks for."""
    return Stratum(OWN, tuple(given))


def capped(stratum: Stratum, batch: int | None) -> tuple[Shape, ...]:
    """The shapes that a sampler with a largest batch takes, smaller if need be."""
    most = batch or max(shape.batch for shape in stratum.shapes)
    return tuple(
        dict.fromkeys(shape._replace(batch=min(shape.batch, most)) for shape in stratum.shapes)
    )
