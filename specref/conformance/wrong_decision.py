"""The first decision of a probed sampler that its rule makes otherwise: its line.

After given drafts the law of a block says how often each draft is kept, and what comes in its
place: a block that goes on has kept it. The rule's own law of the block says how often it should
be. Where the random number of that decision is compared is known from the paths that part there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path
from typing import TypeAlias

import numpy as np

from specref.algorithms.standard import Draft
from specref.algorithms.trees.topdown import Tree
from specref.arrays import Floats, one_hot_rows
from specref.chance import Chance, exact_distribution
from specref.contracts.batch import TreeBatch
from specref.contracts.errors import BrokenContractError
from specref.contracts.tree import GivenRows, read
from specref.models import Model
from specref.probing.probe import Probed
from specref.probing.source import GIVEN, Decision
from specref.probing.tracing import Cell
from specref.rules import DEFAULT, RULES
from specref.vocabulary import Tokens

SAME = 1e-6
"""A difference of probabilities that rounding explains: samplers may count in float32."""
MOST_PAIRS = 4_000
ACCEPT, BONUS = "accept", "bonus"
IN_VAIN, NO_NUMBER = "; its random number makes no difference", "; no random number decides it"
GRID = 1 << 20
"""Steps on which numbers of searched cells are told apart."""
Law: TypeAlias = Mapping[Tokens, float]
Offered: TypeAlias = tuple[tuple[int, str], ...]
"""The drafts that may be kept next, and their sites."""


@dataclass(frozen=True)
class WrongDecision:
    """A decision, what it should be, and where it is made.

    * `name`: As a site of the listing: "accept[0]", "residual[0]", "bonus"; of trees
      "accept[1][0]".
    * `compared`, `number`: File and line where the random number is compared, and where it is
      drawn; empty if the paths do not tell.
    * `apart`: By how much the probability is not the one that it should be.
    * `made`: The rows of p and q that the token is drawn from instead; empty if unknown.
    """

    name: str
    drafts: Tokens
    said: str
    compared: str = ""
    number: str = ""
    apart: float = 0.0
    made: str = ""

    def __str__(self) -> str:
        where = self.compared or self.number
        numbered = f" (its random number: {self.number})" if self.number != where else ""
        return f"{where}: " * bool(where) + f"{self.name} {self.said}{numbered}"


@dataclass(frozen=True)
class Verified:
    """What a sampler does with given drafts, and what its rule does with them.

    * `offers`: {what a block has begun with: what may be kept next}.
    * `rule`: Its name, if it does something else with a draft than to compare p/q with a number.
    * `drawn`: Whether the sampler draws the drafts itself: then they are not given, but any that
      the drafter may draw.
    * `rows`: p and q at each position of a chain.
    """

    probed: Probed
    right: Law
    offers: Mapping[Tokens, Offered]
    drafts: Tokens
    weight: float = 1.0
    rule: str = ""
    drawn: bool = False
    rows: tuple[Floats, Floats] | None = None


def verified_chain(
    probed: Probed, p: Floats, q: Floats | None, drafts: Tokens, weight: float, rule: str
) -> Verified | None:
    """Of drafts one after the other; None if the rule does not verify drafts that are given.

    Without q the drafts were certain.
    """
    verify = RULES[rule].verify
    if verify is None:
        return None
    laws = one_hot_rows(np.array(drafts, dtype=np.int64), p.shape[1]) if q is None else q
    target = GivenRows({drafts[:i]: row for i, row in enumerate(p)})
    given = [Draft(token, law) for token, law in zip(drafts, laws, strict=True)]
    right = _law(lambda chance: verify(target, (), given, chance))
    offers = {drafts[:i]: ((token, f"[{i}]"),) for i, token in enumerate(drafts)}
    jointly = RULES[rule].coins != "token by token"
    return Verified(probed, right, offers, drafts, weight, rule * jointly, rows=(p, laws))


def verified_tree(probed: Probed, batch: TreeBatch, weight: float, rule: str) -> Verified | None:
    """Of the tree in the first row of a batch; None if the rule verifies no trees."""
    verify = RULES[rule].verify_tree
    if verify is None:
        return None
    n = int(batch.lens[0])
    tokens, above = batch.draft_tokens[0, :n].tolist(), batch.parents[0, :n].tolist()
    p, laws = batch.target_probs[0, : n + 1], batch.draft_probs
    q = one_hot_rows(batch.draft_tokens[0, :n], p.shape[1]) if laws is None else laws[0, :n]
    target, tree = read(p, q, tokens, above)
    right = _law(lambda chance: verify(target, (), tree, chance))
    offers = dict(_offers(tree, (), ""))
    return Verified(probed, right, offers, tuple(tokens), weight, rule * (rule != "topdown"))


def verified_step(
    probed: Probed, target: Model, drafter: Model, context: Tokens, lookahead: int, rule: str
) -> Verified:
    """Of a step that drafts by itself: what it drafts and keeps, and what else comes."""
    step = RULES[rule].step
    right = _law(lambda chance: step(target, drafter, context, lookahead, chance))
    offers: dict[Tokens, Offered] = {}
    for block in right:
        for i in range(min(len(block), lookahead)):
            likely = np.flatnonzero(drafter.next_token((*context, *block[:i])) > 0)
            offers[block[:i]] = tuple((token, f"[{i}]") for token in likely.tolist())
    return Verified(probed, right, offers, (), rule=rule * (rule != DEFAULT), drawn=True)


def _law(run: Callable[[Chance], Tokens]) -> Law:
    return {block: float(mass) for block, mass in exact_distribution(run).items()}


def _offers(tree: Tree, before: Tokens, site: str) -> Iterator[tuple[Tokens, Offered]]:
    """Of equal siblings, and what is below them, the first alone."""
    first: dict[int, str] = {}
    for j, node in enumerate(tree):
        if node.token not in first:
            first[node.token] = f"{site}[{j}]"
            yield from _offers(node.children, (*before, node.token), f"{site}[{j}]")
    if first:
        yield before, tuple(first.items())


def wrong_decision(given: Iterable[Verified]) -> WrongDecision | None:
    """The earliest decision that is wrong, and of several the one that matters most.

    None if every decision is that of the rule, or blocks do not tell.
    """
    everything = list(given)
    firsts = (next(_wrong(one), None) for one in everything)
    found = [wrong for wrong in firsts if wrong is not None]
    first = min((place for place, _, _ in found), default=0)
    there = [(bool(one.compared), off, one) for place, off, one in found if place == first]
    if not there:
        return None
    worst = max(there, key=lambda three: three[:2])[2]
    if not worst.name.startswith(ACCEPT):
        of_chains = (one for one in everything if one.rows and not one.rule)
        worst = replace(worst, made=_made_of(of_chains, first, bonus=worst.name == BONUS))
    return worst if worst.compared else _elsewhere(worst, everything)


def _reached(one: Verified) -> Iterator["_At"]:
    """The positions that drafts lead to, in their order."""
    pending: list[Tokens] = [()]
    while pending:
        at = _At(one, pending.pop(0))
        yield at
        pending += [(*at.before, token) for token, _ in at.offered]


def _wrong(one: Verified) -> Iterator["Found"]:
    """What is wrong after given drafts."""
    return (wrong for at in _reached(one) for wrong in at.wrong())


def _elsewhere(wrong: WrongDecision, given: Sequence[Verified]) -> WrongDecision:
    """A decision that no random number makes, with the line that makes it after other drafts."""
    before, none, _ = wrong.said.partition(NO_NUMBER)
    for at in (at for one in given for at in _reached(one)) if none else ():
        if lines := at.lines(wrong.name):
            said = f"{before}{none}, as one does after other drafts"
            return replace(wrong, said=said, compared=lines[0], number=lines[1])
    return wrong


def _made_of(chains: Iterable[Verified], position: int, *, bonus: bool) -> str:
    """The one formula, in words, that gives the token at a position after each chain.

    With `bonus`, after all its drafts were kept; else in place of the next. Empty if no formula
    does, or several.
    """
    fitting: list[set[str]] = []
    for one in chains:
        drafts = one.drafts
        if one.rows is None or (len(drafts) != position if bonus else len(drafts) <= position):
            continue
        at = _At(one, drafts[:position])
        law = at.reaching(one.probed.distribution) if bonus else at.refusing()
        if sum(law.values()) > SAME:
            has, shares = np.zeros(one.rows[0].shape[1]), _tokens_at(law, position)
            has[list(shares)] = list(shares.values())
            rows = _other_rows(*one.rows, position).items()
            fitting.append({name for name, row in rows if np.abs(has - row).max() <= SAME})
    found = set.intersection(*fitting) if fitting else set()
    return found.pop() if len(found) == 1 else ""


def _other_rows(p: Floats, q: Floats, at: int) -> dict[str, Floats]:
    """What an index that is wrong may read at a position, in words; q has a row less than p."""
    drafted = [i for i in range(len(p)) if i != at and i < len(q)]
    left = {i: np.maximum(p[i] - q[i], 0) for i in drafted}
    rests = {i: p[i] if rest.sum() <= SAME else rest for i, rest in left.items()}
    return {
        **{f"(p - q)+ of position {i}": rest / rest.sum() for i, rest in rests.items()},
        **{f"p of position {i}": row for i, row in enumerate(p)},
        **{f"q of position {i}": row for i, row in enumerate(q)},
    }


Found: TypeAlias = tuple[int, float, WrongDecision]
"""A position, how often the decision there is wrong, and the decision."""


@dataclass(frozen=True)
class _At:
    """The blocks that come as far as a position, after drafts that were kept."""

    given: Verified
    before: Tokens

    @property
    def offered(self) -> Offered:
        return self.given.offers.get(self.before, ())

    def refusing(self) -> Law:
        """The blocks in which the next draft of the chain is not kept."""
        token = self.given.drafts[len(self.before)]
        law = self.reaching(self.given.probed.distribution)
        return {block: mass for block, mass in law.items() if not self._keeps(block, token)}

    def wrong(self) -> Iterator[Found]:
        """Each draft that is offered, if none before it is kept; then what comes if none is."""
        whole = self.reaching(self.given.probed.distribution), self.reaching(self.given.right)
        (has, right), cells, refused = whole, self._cells(), 0
        for token, site in self.offered:
            mass = sum(has.values())
            if min(mass, sum(right.values())) <= SAME:
                return
            kept, should = self._share(has, token), self._share(right, token)
            keep = [one for one in cells if self._keeps(_outcome(one), token)]
            cells = [one for one in cells if not self._keeps(_outcome(one), token)]
            if abs(kept - should) * mass > SAME:
                said = f"keeps draft {token} with {kept:.4f}; {self._rule(refused)} {should:.4f}"
                if self.given.drawn:
                    both, due = (self._share(law, token) for law in whole)
                    said = f"drafts and keeps token {token} with {both:.4f}; "
                    said += f"{self._rule(0)} {due:.4f}"
                pairs = product(keep, self._ending(cells))
                wrong = self._named(f"{ACCEPT}{site}", said, pairs, [*keep, *cells])
                wrong = replace(wrong, apart=abs(kept - should))
                yield len(self.before), self.given.weight * abs(kept - should) * mass, wrong
            has = {b: m for b, m in has.items() if not self._keeps(b, token)}
            right = {b: m for b, m in right.items() if not self._keeps(b, token)}
            refused += 1
        yield from self._last(has, right, cells, refused)

    def _last(self, has: Law, right: Law, cells: Sequence[Cell], refused: int) -> Iterator[Found]:
        """What is wrong with the law of the token that comes where no draft is kept."""
        mass, i = sum(has.values()), len(self.before)
        if min(mass, sum(right.values())) <= SAME:
            return
        comes, should = (_tokens_at(law, i) for law in (has, right))
        apart = {x: abs(comes.get(x, 0.0) - should.get(x, 0.0)) for x in {*comes, *should}}
        worst = max(sorted(apart), key=apart.__getitem__)
        if apart[worst] * mass <= SAME:
            return
        residual = "was rejected; (p - q)+ over its sum is"
        if not refused:
            when = "after the last draft was kept" if self.before else "without a draft"
            told = f"{when}; p is"
        elif self.given.rule:
            told = f"after its drafts; {self.given.rule} has"
        elif self.given.drawn:
            told = f"after its draft {residual}"
        elif refused == 1:
            told = f"after draft {self.offered[0][0]} {residual}"
        else:
            told = f"after {refused} siblings were rejected; what is left of p is"
        said = f"gives token {worst} with {comes.get(worst, 0.0):.4f} {told} "
        said += f"{should.get(worst, 0.0):.4f}"
        one = [c for c in cells if _outcome(c)[i] == worst]
        other = [c for c in cells if _outcome(c)[i] != worst]
        name = f"residual[{i}]" if refused else BONUS
        wrong = replace(self._named(name, said, product(one, other), cells), apart=apart[worst])
        yield i, self.given.weight * apart[worst] * mass, wrong

    def _ending(self, cells: list[Cell]) -> list[Cell]:
        """Of drafts that are drawn, the paths on which the block ends here."""
        ends = [one for one in cells if len(_outcome(one)) == len(self.before) + 1]
        return ends if self.given.drawn else cells

    def _rule(self, refused: int) -> str:
        if self.given.drawn and not self.given.rule:
            return "min(p, q) is"
        if self.given.rule:
            return f"{self.given.rule} verification has"
        if refused:
            return f"after {refused} rejected, min(1, p/q) with what is left of p is"
        return "min(1, p/q) is"

    def lines(self, name: str) -> tuple[str, str] | None:
        """The lines of an acceptance, or of the token that is drawn in place of drafts, here."""
        cells = self._cells()
        for token, _ in self.offered:
            keep = [one for one in cells if self._keeps(_outcome(one), token)]
            cells = [one for one in cells if not self._keeps(_outcome(one), token)]
            if name.startswith(ACCEPT) and (lines := _lines(product(keep, cells))):
                return lines
        i = len(self.before)
        if name.partition("[")[0] != ("residual" if self.offered else BONUS):
            return None
        pairs = ((a, b) for a, b in product(cells, cells) if _outcome(a)[i] != _outcome(b)[i])
        return _lines(pairs)

    def _named(
        self, name: str, said: str, pairs: Iterable[tuple[Cell, Cell]], cells: Sequence[Cell]
    ) -> WrongDecision:
        """With the lines where paths part; if none does, of a number that is drawn in vain."""
        lines, unused = _lines(pairs), ""
        if not (lines or name.startswith(ACCEPT)):  # of a token that never comes
            lines = self.lines(name)
        if lines is None and self.given.probed.way == "traced":
            last = not name.startswith(ACCEPT)
            # The numbers of acceptance may be drawn for more drafts than are reached.
            accepting = self.lines(ACCEPT) if last else None
            unused = _unused(cells, last, accepting[1] if accepting else "")
            said += IN_VAIN if unused else NO_NUMBER
            if last and not unused:
                unused = _last_drawn(cells)
                said += ", the last that is drawn is named" * bool(unused)
        return WrongDecision(name, self.given.drafts, said, *(lines or ("", unused)))

    def reaching(self, law: Law) -> Law:
        """The blocks that come as far."""
        return {block: mass for block, mass in law.items() if self._reaches(block)}

    def _reaches(self, block: Tokens) -> bool:
        return block[: len(self.before)] == self.before and len(block) > len(self.before)

    def _cells(self) -> list[Cell]:
        return [one for one in self.given.probed.cells if self._reaches(_outcome(one))]

    def _keeps(self, block: Tokens, token: int) -> bool:
        """Whether the draft is kept: it is there, and the block goes on."""
        return len(block) > len(self.before) + 1 and block[len(self.before)] == token

    def _share(self, law: Law, token: int) -> float:
        return sum(m for b, m in law.items() if self._keeps(b, token)) / sum(law.values())


def _tokens_at(law: Law, i: int) -> dict[int, float]:
    """The law of the token at a position, of blocks that have it."""
    shares: dict[int, float] = {}
    for block, weight in law.items():
        shares[block[i]] = shares.get(block[i], 0.0) + weight / sum(law.values())
    return shares


def raising(error: str, probed: Probed) -> WrongDecision | None:
    """The number of which depends whether it raises, or gives an answer that is not valid."""
    bad = [one for one in probed.cells if not isinstance(one.outcome, tuple)]
    fine = [one for one in probed.cells if isinstance(one.outcome, tuple)]
    part = _part(product(bad, fine))
    if part is None:
        return None
    when = "is below" if part.way == 1 else "reaches"
    why = error.removeprefix(f"{BrokenContractError.__name__}: ")
    said = f"is invalid when this random number {when} its threshold: {why}"
    return WrongDecision("answer", (), said, *_places(part))


def shared(probed: Probed, two: Callable[[Tokens], tuple[Tokens, Tokens]]) -> tuple[str, str]:
    """Where paths part of which both blocks are others, though one number decides otherwise."""
    cells = [one for one in probed.cells if isinstance(one.outcome, tuple)]

    def both(a: Cell, b: Cell) -> bool:
        return all(x != y for x, y in zip(two(_outcome(a)), two(_outcome(b)), strict=True))

    return _lines(pair for pair in product(cells, cells) if both(*pair)) or ("", "")


def _lines(pairs: Iterable[tuple[Cell, Cell]]) -> tuple[str, str] | None:
    """Where the paths of two cells part that are otherwise most alike: compared, and drawn."""
    part = _part(pairs)
    return None if part is None else _places(part)


def _part(pairs: Iterable[tuple[Cell, Cell]]) -> Decision | None:
    """The decision in which two cells part, the first of a pair, that are most alike."""
    best: tuple[int, bool, int, Decision] | None = None
    for one, other in islice(pairs, MOST_PAIRS):
        apart = [
            (given, n, a)
            for given in (False, True)  # what the code is given is drawn before it runs
            for n, (a, b) in enumerate(zip(_of(one, given), _of(other, given), strict=False))
            if _differ(a, b)
        ]
        if apart and (best is None or (len(apart), *apart[0][:2]) < best[:3]):
            best = len(apart), *apart[0]
    return None if best is None else best[3]


def _of(cell: Cell, given: bool) -> list[Decision]:
    """What numbers of the code decide, or those of what it is given."""
    return [one for one in _decided(cell) if (one.call.where == GIVEN) is given]


def _places(one: Decision) -> tuple[str, str]:
    return short(one.compared), short(one.call.where)


def _decided(cell: Cell) -> tuple[Decision, ...]:
    """What was decided on a path; of one that was searched for, each number in which it differs
    from others."""
    if cell.decisions or not cell.numbers:
        return cell.decisions
    return tuple(
        Decision(one.call, one.call.where, round(cell.numbers.get(n, 0.0) * GRID), 0.0, n)
        for n, one in enumerate(cell.requests)
    )


def _differ(one: Decision, other: Decision) -> bool:
    """Whether they go different ways at the same place."""
    return (one.call, one.compared) == (other.call, other.compared) and one.way != other.way


def _unused(cells: Sequence[Cell], last: bool, other: str) -> str:
    """The first number that is drawn, not at an `other` line, and does not matter, or the last;
    empty if all do."""
    for cell in cells:
        used = {one.number for one in cell.decisions}
        places = (short(where) for n, where in _drawn(cell) if n not in used)
        vain = [place for place in places if place != other]
        if vain:
            return vain[-1 if last else 0]
    return ""


def _last_drawn(cells: Sequence[Cell]) -> str:
    """Where the last number of a path is drawn; empty if there is none."""
    drawn = ([where for _, where in _drawn(one)] for one in cells)
    return next((short(places[-1]) for places in drawn if places), "")


def _drawn(cell: Cell) -> Iterator[tuple[int, str]]:
    """The numbers that the code draws, and where: none that it is given, nor seeds of these."""
    for number, one in enumerate(cell.requests):
        if one.kind != "seed" and one.call.where != GIVEN:
            yield number, one.call.where


def _outcome(cell: Cell) -> Tokens:
    """The block of a path; none of one that fails."""
    return cell.outcome if isinstance(cell.outcome, tuple) else ()


def short(where: str) -> str:
    """A file and line, from the working directory if it is below that."""
    if where == GIVEN:
        return where
    file, _, line = where.rpartition(":")
    path = Path(file)
    below = path.is_relative_to(Path.cwd())
    return f"{path.relative_to(Path.cwd()) if below else path.name}:{line}"
