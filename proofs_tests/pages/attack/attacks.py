"""The recorded attacks: their samplers, and the situations that distances are measured in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from proofs_tests.helpers.attack.lossless import LOSSLESS, fresh
from proofs_tests.helpers.attack.lossy import LOSSY
from proofs_tests.helpers.attack.second.entry import Entry
from proofs_tests.helpers.attack.second.tables import SECOND
from proofs_tests.helpers.attack.situations import Situation
from proofs_tests.helpers.attack.third.tables import THIRD


@dataclass(frozen=True)
class Attack:
    samplers: Mapping[str, Entry]
    situations: Mapping[str, Callable[[], Situation]]


FIRST = {
    **{
        name: Entry(name, "verify", "lossy", lossy.mistake, lossy.make, {})
        for name, lossy in LOSSY.items()
    },
    **{
        name: Entry(
            name,
            "verify",
            "lossless",
            " ".join((made.__doc__ or "").split()),
            partial(fresh, name),
            {},
        )
        for name, made in LOSSLESS.items()
    },
}
ATTACKS = {
    "first": Attack(FIRST, {name: lossy.situation for name, lossy in LOSSY.items()}),
    "second": Attack(SECOND, {}),
    "third": Attack(THIRD, {}),
}
