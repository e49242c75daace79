"""What each flag of a vector means, read off its JSON once more."""

from fractions import Fraction

from proofs_tests.helpers.vectors.oracle import Toys, law, rows, spelled, thresholds

ULP = Fraction(1, 2**53)


def true_of(case):
    if case["level"] == "step":
        return {name for name, holds in STEP.items() if holds(case)}
    return {name for name, holds in VERIFY.items() if holds(case)}


def at_drafts(holds):
    """Whether it holds for p, q and the token of some draft."""
    return lambda case: any(holds(*place) for place in zip(*rows(case), strict=False))


def some_token(holds):
    return lambda p, q, x=None: any(holds(a, b) for a, b in zip(p, q, strict=True))


def compared(case):
    """The coins that are read, and what they are compared with."""
    rule = case["id"].split("/")[0]
    p, q, drafts = rows(case)
    edges, survival = thresholds(rule, p, q, drafts)
    coins = list(map(Fraction, case["coins"]["accept"]))
    pairs = list(zip(coins, edges, strict=False))
    kept = case["expected"]["accepted"]
    if rule == "standard":
        return pairs[: kept + 1]
    # From the last draft that is possible back to the one that is kept, or to the first.
    possible = next((i for i, chance in enumerate(survival) if chance == 0), len(survival))
    return pairs[max(kept - 1, 0) : possible - 1] if drafts else []


def edges_of_last(case):
    found, reached = set(), Fraction(0)
    for weight in law(case["expected"]["law"]):
        reached += weight
        found.add(reached)
    return {edge for edge in found if 0 < edge < 1}


def final(case):
    return Fraction(case["coins"]["final"])


def last_is(name):
    return lambda case: case["expected"]["last"] == name


def nothing_left(case):
    p, q, drafts = rows(case)
    survival = thresholds(case["id"].split("/")[0], p, q, drafts)[1]
    places = zip(p, q, survival, strict=False)
    return any(all(s * a <= b for a, b in zip(x, y, strict=True)) for x, y, s in places)


def all_equal(case):
    p, q, drafts = rows(case)
    return bool(drafts) and p[: len(drafts)] == q


def certain(case):
    p, q, drafts = rows(case)
    return any(1 in one for one in (*p[: len(drafts) + 1], *(q if case["q"] else ())))


def later_acceptance(case):
    p, q, drafts = rows(case)
    after = case["expected"]["accepted"] + 1
    coins = map(Fraction, case["coins"]["accept"])
    alone = [u < p[i][x] / q[i][x] for i, (x, u) in enumerate(zip(drafts, coins, strict=False))]
    return case["id"].startswith("standard") and any(alone[after:])


def overruled(case):
    p, q, drafts = rows(case)
    coins = map(Fraction, case["coins"]["accept"])
    alone = [u < p[i][x] / q[i][x] for i, (x, u) in enumerate(zip(drafts, coins, strict=False))]
    return case["id"].startswith("block") and not all(alone[: case["expected"]["accepted"]])


def drafted(case):
    return sum(token >= 0 for token in case["draft_tokens"])


VERIFY = {
    "BonusToken": last_is("bonus"),
    "ResidualToken": last_is("residual"),
    "DisjointSupport": at_drafts(lambda p, q, x: not some_token(min)(p, q)),
    "ZeroDraftMass": at_drafts(some_token(lambda a, b: a != 0 and b == 0)),
    "ZeroTargetMass": at_drafts(lambda p, q, x: p[x] == 0),
    "EqualDistributions": all_equal,
    "PointMass": certain,
    "TieAtOne": at_drafts(lambda p, q, x: p[x] == q[x] and p != q),
    "RatioAboveOne": at_drafts(lambda p, q, x: p[x] / q[x] > 1),
    "SubnormalRatio": at_drafts(lambda p, q, x: 0 < p[x] / q[x] < Fraction(1, 2**126)),
    "ResidualZero": nothing_left,
    "OneHotDraft": lambda case: case["q"] is None,
    "TruncatedDraft": lambda case: 0 < drafted(case) < len(case["draft_tokens"]),
    "NoDraft": lambda case: drafted(case) == 0,
    "CoinZero": lambda case: any(u == 0 for u, edge in compared(case)),
    "CoinAtThreshold": lambda case: any(u == edge for u, edge in compared(case)),
    "CoinNextToThreshold": lambda case: any(
        0 < abs(u - edge) <= ULP for u, edge in compared(case)
    ),
    "FinalZero": lambda case: final(case) == 0,
    "FinalAtEdge": lambda case: final(case) in edges_of_last(case),
    "FinalNextToEdge": lambda case: any(
        0 < abs(final(case) - edge) <= ULP for edge in {1, *edges_of_last(case)}
    ),
    "NoiseZero": lambda case: 0 in case["coins"]["race"],
    "LaterAcceptance": later_acceptance,
    "FailureOverruled": overruled,
}


def opening(holds):
    """Whether it holds for the first law of the target and of the drafts, if any are made."""

    def check(case):
        toys = Toys(case)
        q = toys.q(()) if toys.lookahead else None
        return q is not None and holds(toys.p(()), q)

    return check


def sites(case):
    return [site["site"] for replay in case["replays"] for site in replay["sites"]]


def site_is(start):
    return lambda case: any(name.startswith(start) for name in sites(case))


def names(case):
    return case["target"]["tokens"], case["drafter"]["tokens"]


def any_replay(holds):
    return lambda case: any(holds(case, replay) for replay in case["replays"])


def ends(case, block):
    eos = case["target"]["eos"]
    return bool(block) and case["target"]["tokens"][block[-1]] == eos


def accepted_end(case, replay):
    last = replay["sites"][-1]["site"]
    return ends(case, replay["tokens"]) and last.startswith("accept")


def no_coin_refused(case, replay):
    refused = [site for site in replay["sites"] if site["choice"] is False]
    return replay["sites"][-1]["site"] == "residual" and not refused


def read_otherwise(case, replay):
    if case["id"].split("/")[0] not in ("slem", "slrs"):
        return False
    target, drafter = names(case)
    made = [drafter[s["choice"]] for s in replay["sites"] if s["site"].startswith("draft")]
    return spelled(target, "".join(made)) != made


def nothing_shared(case):
    target, drafter = names(case)
    shared = [i for i, name in enumerate(drafter) if name in target]
    laws = map(law, case["drafter"]["exact"].values())
    return bool(shared) and any(not any(row[i] for i in shared) for row in laws)


def moved(case):
    target, drafter = names(case)
    return any(name in target and target.index(name) != i for i, name in enumerate(drafter))


STEP = {
    "BonusToken": site_is("bonus"),
    "ResidualToken": site_is("residual"),
    "DisjointSupport": opening(lambda p, q: not some_token(min)(p, q)),
    "ZeroDraftMass": opening(some_token(lambda a, b: a != 0 and b == 0)),
    "EqualDistributions": opening(lambda p, q: p == q),
    "PointMass": opening(lambda p, q: 1 in p or 1 in q),
    "NoDraft": lambda case: not site_is("draft")(case),
    "EndOfText": lambda case: any(ends(case, [int(k) for k in b.split()]) for b in case["law"]),
    "AcceptedEos": any_replay(accepted_end),
    "IntersectionEmpty": lambda case: not set(names(case)[0]) & set(names(case)[1]),
    "DrafterOnlyToken": lambda case: bool(set(names(case)[1]) - set(names(case)[0])),
    "TargetOnlyToken": lambda case: bool(set(names(case)[0]) - set(names(case)[1])),
    "ReorderedIds": moved,
    "NothingShared": nothing_shared,
    "UnreadableContext": lambda case: Toys(case).seen(()) is None,
    "Retokenised": any_replay(read_otherwise),
    "RefusedWithoutCoin": any_replay(no_coin_refused),
}
