"""The flags of a case: every flag that holds is listed, and no other."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from specref.contrib.vectors.cases import Row, VerifyCase
from specref.contrib.vectors.deciding import Outcome, inner_edges
from specref.rules import RULES

SMALLEST_NORMAL = Fraction(1, 2**126)
NEXT = Fraction(1, 2**53)


class Place(NamedTuple):
    """One draft: the laws there, and how likely a prefix is that ends before it (jointly: A_i)."""

    p: Row
    q: Row
    draft: int
    survival: Fraction


class Facts(NamedTuple):
    """A case, its outcome, and its drafts."""

    case: VerifyCase
    outcome: Outcome
    places: tuple[Place, ...]

    @property
    def final(self) -> Fraction:
        return Fraction(self.case.coins.final)


Predicate: TypeAlias = Callable[[Facts], bool]


def places(case: VerifyCase) -> tuple[Place, ...]:
    """The drafts of a case, up to the first that has no probability."""
    found: list[Place] = []
    survival, jointly = Fraction(1), RULES[case.rule].coins == "jointly"
    for p, q, draft in zip(case.p, case.laws, case.drafted, strict=False):
        found.append(Place(p, q, draft, survival if jointly else Fraction(1)))
        survival = min(Fraction(1), survival * p[draft] / q[draft])
    return tuple(found)


def verify_flags(case: VerifyCase, outcome: Outcome) -> list[str]:
    """The flags of a verification, in the order of `FLAGS`."""
    facts = Facts(case, outcome, places(case))
    return [name for name, holds in FLAGS.items() if holds(facts)]


def somewhere(holds: Callable[[Place], bool]) -> Predicate:
    """True if it holds at some draft."""
    return lambda facts: any(map(holds, facts.places))


def disjoint(p: Row, q: Row) -> bool:
    """Whether no token has probability in both."""
    return not any(map(min, p, q))


def undrafted(p: Row, q: Row) -> bool:
    """Whether some token of the target is never drafted."""
    return any(a > 0 == b for a, b in zip(p, q, strict=True))


def _point_mass(facts: Facts) -> bool:
    laws = facts.case.p[: len(facts.places) + 1] + (facts.case.q or ())[: len(facts.places)]
    return any(1 in law for law in laws)


def _final_next_to(facts: Facts) -> bool:
    edges = inner_edges(facts.outcome) | {Fraction(1)}
    return any(0 < abs(facts.final - edge) <= NEXT for edge in edges)


def _later_acceptance(facts: Facts) -> bool:
    coins, kept = facts.case.coins.accept, facts.outcome.accepted
    later = zip(facts.places[kept + 1 :], coins[kept + 1 :], strict=False)
    token = RULES[facts.case.rule].coins == "token by token"
    return token and any(Fraction(u) * at.q[at.draft] < at.p[at.draft] for at, u in later)


def _overruled(facts: Facts) -> bool:
    """Token verification would have stopped earlier."""
    coins = facts.case.coins.accept[: facts.outcome.accepted]
    kept = zip(facts.places, coins, strict=False)
    refused = (Fraction(u) * at.q[at.draft] >= at.p[at.draft] for at, u in kept)
    return RULES[facts.case.rule].coins == "jointly" and any(refused)


FLAGS: Mapping[str, Predicate] = MappingProxyType(
    {
        "BonusToken": lambda facts: facts.outcome.last == "bonus",
        "ResidualToken": lambda facts: facts.outcome.last == "residual",
        "DisjointSupport": somewhere(lambda at: disjoint(at.p, at.q)),
        "ZeroDraftMass": somewhere(lambda at: undrafted(at.p, at.q)),
        "ZeroTargetMass": somewhere(lambda at: at.p[at.draft] == 0),
        "EqualDistributions": lambda facts: (
            bool(facts.places) and all(at.p == at.q for at in facts.places)
        ),
        "PointMass": _point_mass,
        "TieAtOne": somewhere(lambda at: at.p[at.draft] == at.q[at.draft] and at.p != at.q),
        "RatioAboveOne": somewhere(lambda at: at.p[at.draft] > at.q[at.draft]),
        "SubnormalRatio": somewhere(
            lambda at: 0 < at.p[at.draft] / at.q[at.draft] < SMALLEST_NORMAL
        ),
        "ResidualZero": somewhere(
            lambda at: all(at.survival * a <= b for a, b in zip(at.p, at.q, strict=True))
        ),
        "OneHotDraft": lambda facts: facts.case.q is None,
        "TruncatedDraft": lambda facts: 0 < len(facts.places) < len(facts.case.drafts),
        "NoDraft": lambda facts: not facts.places,
        "CoinZero": lambda facts: any(a.coin == 0 for a in facts.outcome.asked),
        "CoinAtThreshold": lambda facts: any(a.coin == a.probability for a in facts.outcome.asked),
        "CoinNextToThreshold": lambda facts: any(
            0 < abs(a.coin - a.probability) <= NEXT for a in facts.outcome.asked
        ),
        "FinalZero": lambda facts: facts.final == 0,
        "FinalAtEdge": lambda facts: facts.final in inner_edges(facts.outcome),
        "FinalNextToEdge": _final_next_to,
        "NoiseZero": lambda facts: 0 in facts.case.coins.race,
        "LaterAcceptance": _later_acceptance,
        "FailureOverruled": _overruled,
    }
)
