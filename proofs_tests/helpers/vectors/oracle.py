"""The published vectors decided once more: from their JSON alone, in fractions, by other means."""

from fractions import Fraction
from math import prod

ONE = Fraction(1)


def law(strings):
    return [Fraction(text) for text in strings]


def certain(case):
    size = len(case["p"]["exact"][0])
    return [[Fraction(token == x) for token in range(size)] for x in case["draft_tokens"]]


def rows(case):
    """p, q (one-hot where there is none) and the drafts that exist."""
    q = certain(case) if case["q"] is None else list(map(law, case["q"]["exact"]))
    drafts = [token for token in case["draft_tokens"] if token >= 0]
    return list(map(law, case["p"]["exact"])), q[: len(drafts)], drafts


def below(coin, threshold, up_to):
    return coin < threshold or (up_to and coin == threshold != 0)


def excess(p, q, survival):
    return [max(survival * a - b, 0) for a, b in zip(p, q, strict=True)]


def thresholds(rule, p, q, drafts):
    """What each coin is compared with, and A_0, A_1, …; no coin of block verification is 0 / 0."""
    ratios = [p[i][x] / q[i][x] for i, x in enumerate(drafts)]
    if rule == "standard":
        return [min(ONE, ratio) for ratio in ratios], [ONE] * (len(drafts) + 1)
    survival = [ONE]
    for ratio in ratios:
        survival.append(min(ONE, survival[-1] * ratio))
    found = []
    for i in range(1, len(drafts)):
        left = sum(excess(p[i], q[i], survival[i]))
        found.append(left / (left + 1 - survival[i]) if left else Fraction(0))
    return [*found, *survival[-1:]] if drafts else [], survival


def decided(rule, case, *, up_to=False, closed=False):
    """accepted, last, law, tokens."""
    p, q, drafts = rows(case)
    edges, survival = thresholds(rule, p, q, drafts)
    passed = [
        below(Fraction(u), edge, up_to)
        for u, edge in zip(case["coins"]["accept"], edges, strict=False)
    ]
    if rule == "standard":
        kept = next((i for i, yes in enumerate(passed) if not yes), len(drafts))
    else:
        kept = max((i + 1 for i, yes in enumerate(passed) if yes), default=0)
    weights = p[kept]
    if kept < len(drafts):
        weights = excess(p[kept], q[kept], survival[kept])
    exact = [weight / sum(weights) for weight in weights]
    last = "residual" if kept < len(drafts) else "bonus"
    tokens = {n: [*drafts[:kept], t] for n, t in drawn(exact, case["coins"], closed).items()}
    return {"accepted": kept, "count": kept + 1, "last": last, "law": exact, "tokens": tokens}


def drawn(exact, coins, closed):
    possible = [token for token, weight in enumerate(exact) if weight]
    noise = {token: Fraction(coins["race"][token]) / exact[token] for token in possible}
    return {
        "inverse": passing(exact, possible, Fraction(coins["final"]), closed),
        "descending": passing(exact, possible[::-1], Fraction(coins["final"]), closed),
        "race": min(possible, key=noise.get),
    }


def passing(exact, order, u, closed):
    """The first token at which the mass so far exceeds u."""
    reached = Fraction(0)
    for token in order:
        reached += exact[token]
        if reached > u or (closed and reached == u):
            return token
    raise AssertionError("u is not below 1")


class Toys:
    """Two models of a step-level case, as strings and tables."""

    def __init__(self, case):
        self.case, self.lookahead = case, case["lookahead"]
        self.target, self.drafter = case["target"], case["drafter"]
        self.context = tuple(case["context"])

    def p(self, block):
        return row(self.target, (*self.context, *block))

    def ends(self, block):
        eos = self.target["eos"]
        return bool(block) and self.target["tokens"][block[-1]] == eos

    @property
    def shared(self):
        """{target id: drafter id}."""
        tokens = self.drafter["tokens"]
        names = enumerate(self.target["tokens"])
        return {here: tokens.index(name) for here, name in names if name in tokens}

    def seen(self, block):
        """A context in drafter ids, token by token; None if it cannot be read."""
        found = []
        for token in (*self.context, *block):
            name = self.target["tokens"][token]
            known = name in self.drafter["tokens"]
            pieces = [name] if known else spelled(self.drafter["tokens"], name)
            if pieces is None:
                return None
            found += map(self.drafter["tokens"].index, pieces)
        return tuple(found)

    def drafted_strings(self):
        """{drafter ids: probability} of whole drafts, after the context as a text."""
        text = "".join(self.target["tokens"][token] for token in self.context)
        names = self.drafter["tokens"]
        start = tuple(map(names.index, spelled(names, text)))
        found, open_ = {}, {(): ONE}
        for _ in range(self.lookahead):
            longer = {}
            for drafts, weight in open_.items():
                if drafts and names[drafts[-1]] == self.drafter["eos"]:
                    found[drafts] = weight
                    continue
                for token, chance in enumerate(row(self.drafter, (*start, *drafts))):
                    if chance:
                        longer[*drafts, token] = weight * chance
            open_ = longer
        return found | open_

    def read(self, drafts):
        """Drafter ids as the target reads their text."""
        text = "".join(self.drafter["tokens"][token] for token in drafts)
        return tuple(map(self.target["tokens"].index, spelled(self.target["tokens"], text)))

    def proposals(self):
        found = {}
        for drafts, weight in self.drafted_strings().items():
            tokens = self.read(drafts)
            found[tokens] = found.get(tokens, 0) + weight
        return found

    def q(self, block):
        """The law of the next drafted target token after accepted drafts; None for none."""
        if len(block) >= self.lookahead and self.case["id"].split("/")[0] != "slrs":
            return None
        return getattr(self, f"q_{self.case['id'].split('/')[0]}")(block)

    def q_standard(self, block):
        return row(self.drafter, (*self.context, *block))

    q_block = q_standard

    def q_union(self, block):
        seen = self.seen(block)
        if seen is None:
            return None
        drafted = row(self.drafter, seen)
        size = len(self.target["tokens"])
        return [drafted[self.shared[t]] if t in self.shared else Fraction(0) for t in range(size)]

    def q_tli(self, block):
        q = self.q_union(block)
        return [mass / sum(q) for mass in q] if q and sum(q) else None

    def q_slrs(self, block):
        proposals, depth = self.proposals(), len(block)
        mass = [Fraction(0)] * len(self.target["tokens"])
        start = sum(w for tokens, w in proposals.items() if tokens[:depth] == block)
        for tokens, weight in proposals.items():
            if tokens[:depth] == block and len(tokens) > depth:
                mass[tokens[depth]] += weight / start
        return mass if any(mass) else None

    q_slem = q_slrs


def row(model, context):
    key = str(context[-1]) if context and model["order"] else ""
    return law(model["exact"][key])


def spelled(tokens, text):
    """Greedy longest match; None where it is stuck."""
    found = []
    while text:
        fits = [token for token in tokens if text.startswith(token)]
        if not fits:
            return None
        found.append(max(fits, key=len))
        text = text[len(found[-1]) :]
    return found


def add(laws, block, weight):
    if weight:
        laws[block] = laws.get(block, 0) + weight


def verified_in_turn(toys, block=(), weight=ONE, laws=None):
    """min(p, q) goes on, (p - q)+ ends the block: standard, union, TLI and SLRS."""
    laws = {} if laws is None else laws
    if toys.ends(block):
        add(laws, block, weight)
        return laws
    p, q = toys.p(block), toys.q(block)
    for token, mass in enumerate(p):
        both = min(mass, q[token]) if q else Fraction(0)
        add(laws, (*block, token), weight * (mass - both))
        if both:
            verified_in_turn(toys, (*block, token), weight * both, laws)
    return laws


def verified_jointly(toys):
    """Block verification, draft by draft."""
    laws = {}
    for drafts, chance in toys.drafted_strings().items():
        p = [toys.p(drafts[:i]) for i in range(len(drafts) + 1)]
        q = [toys.q(drafts[:i]) for i in range(len(drafts))]
        edges, survival = thresholds("block", p, q, drafts)
        open_ = chance
        for kept in range(len(drafts), -1, -1):
            weight = open_ * (edges[kept - 1] if kept else 1)
            open_ -= weight
            rest = p[kept]
            if kept < len(drafts):
                rest = excess(p[kept], q[kept], survival[kept])
            if kept == len(drafts) and toys.ends(drafts):
                add(laws, drafts, weight)
            elif weight:
                for token, mass in enumerate(rest):
                    add(laws, (*drafts[:kept], token), weight * mass / sum(rest))
    return laws


def matched(toys):
    """SLEM: target tokens while they are those of the proposal, and one more."""
    laws = {}
    for proposal, chance in toys.proposals().items():
        open_ = {(): chance}
        while open_:
            block, weight = open_.popitem()
            for token, mass in enumerate(toys.p(block)):
                longer = (*block, token)
                same = longer == proposal[: len(longer)] and not toys.ends(longer)
                add(open_ if same else laws, longer, weight * mass)
    return laws


LAWS = {"block": verified_jointly, "slem": matched}


def block_law(case):
    """{block: probability}, by other means than enumerating the algorithm."""
    return LAWS.get(case["id"].split("/")[0], verified_in_turn)(Toys(case))


def completed(toys, laws, length):
    """Every block extended by the target to `length` tokens, or EOS."""
    found = {}
    for block, weight in laws.items():
        for longer, mass in texts(toys, block, length).items():
            add(found, longer, weight * mass)
    return found


def texts(toys, start, length):
    open_, found = {start: ONE}, {}
    while open_:
        block, weight = open_.popitem()
        if len(block) >= length or toys.ends(block):
            found[block] = weight
            continue
        for token, mass in enumerate(toys.p(block)):
            add(open_, (*block, token), weight * mass)
    return found


def site_weight(site):
    if "law" in site:
        return law(site["law"])[site["choice"]]
    yes = Fraction(site["probability"])
    return yes if site["choice"] else 1 - yes


def site_decision(site):
    """What the uniform of a site decides."""
    u = Fraction(site["u"])
    if "probability" in site:
        return u < Fraction(site["probability"])
    exact = law(site["law"])
    return passing(exact, range(len(exact)), u, closed=False)


def replay_weight(replay):
    return prod(map(site_weight, replay["sites"]))
