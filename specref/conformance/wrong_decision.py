"""The first decision of a probed sampler that standard verification makes otherwise: its line.

After given drafts the law of a block says how often each draft is kept, and what comes in its
place: a block that goes on has kept it. Where the random number of that decision is compared is
known from the paths that part there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TypeAlias

import numpy as np

from specref.algorithms.standard import acceptance
from specref.arrays import NO_TOKEN, Floats
from specref.distributions import corrected
from specref.models import Model, as_float
from specref.probing.blocks import ProbedBlock, rows_after
from specref.probing.calls import Decision
from specref.probing.probe import Probed
from specref.probing.tracing import Cell
from specref.vocabulary import Tokens, Vocabulary

SAME = 1e-6
"""A difference that rounding explains: samplers may count in float32."""
MOST_PAIRS = 4_000


@dataclass(frozen=True)
class WrongDecision:
    """A decision, what it should be, and where it is made.

    Attributes
    ----------
    name : str
        As a site of the listing: "accept[0]", "residual[0]", "bonus".
    drafts : tuple of int
    said : str
        Both probabilities, in a sentence.
    compared, number : str
        File and line where the random number is compared, and where it is drawn; empty if the
        paths do not tell.
    """

    name: str
    drafts: Tokens
    said: str
    compared: str = ""
    number: str = ""

    def __str__(self) -> str:
        numbered = f" (its random number: {self.number})" if self.number != self.compared else ""
        where = f"{self.compared}: " if self.compared else ""
        return f"{where}{self.name} {self.said}{numbered * bool(self.number)}"


def wrong_decision(
    found: ProbedBlock, target: Model, drafter: Model, context: Tokens
) -> WrongDecision | None:
    """The earliest decision that is wrong, and of several the one that matters most.

    None if every decision is that of standard verification, or blocks do not tell.

    Examples
    --------
    >>> from specref.examples.lossy import verify
    >>> from specref.models import iid_model
    >>> from specref.probing import probe_block
    >>> from specref.vocabulary import Vocabulary
    >>> p, q = (iid_model(Vocabulary("ab"), row) for row in ([0.5, 0.5], [0.75, 0.25]))
    >>> found = wrong_decision(probe_block(verify, p, q), p, q, ())
    >>> found.name, found.said.partition(";")[0]
    ('residual[0]', 'gives token 0 with 0.5000 after draft 0 was rejected')
    """
    target, drafter = as_float(target), as_float(drafter)
    candidates: list[tuple[int, float, WrongDecision]] = []
    for drafts, probed in found.by_drafts.items():
        if not probed.distribution or not drafts:
            continue
        p, q = rows_after(target, context, drafts), rows_after(drafter, context, drafts)[:-1]
        weight = float(np.prod([row[token] for row, token in zip(q, drafts, strict=True)]))
        for place, off, one in _wrong(probed, p, q, drafts, target):
            candidates.append((place, weight * off, one))
            break
    first = min((place for place, _, _ in candidates), default=0)
    there = [(off, one) for place, off, one in candidates if place == first]
    return max(there, key=lambda pair: pair[0])[1] if there else None


Found: TypeAlias = tuple[int, float, WrongDecision]
"""A position, how often the decision there is wrong, and the decision."""


def _wrong(probed: Probed, p: Floats, q: Floats, drafts: Tokens, target: Model) -> Iterator[Found]:
    """What is wrong after given drafts, in the order of positions."""
    for i, token in enumerate(drafts):
        at = _At(probed, drafts[:i], token, target.vocabulary)
        if at.total <= SAME:
            return
        found = at.acceptance(float(acceptance(p[i], q[i], token))) or at.residual(
            corrected(p[i], q[i]).astype(np.float64)
        )
        if found:
            yield found
            return
    if found := _At(probed, drafts, NO_TOKEN, target.vocabulary).bonus(p[-1]):
        yield found


@dataclass(frozen=True)
class _At:
    """The blocks that come as far as a position, after drafts that were kept."""

    probed: Probed
    before: Tokens
    token: int
    vocabulary: Vocabulary

    def reaches(self, block: Tokens) -> bool:
        return block[: len(self.before)] == self.before and len(block) > len(self.before)

    def keeps(self, block: Tokens) -> bool:
        """Whether the draft is kept: it is there, and the block goes on, or has ended with it."""
        i = len(self.before)
        goes_on = len(block) > i + 1 or self.vocabulary.ends(block[: i + 1])
        return self.reaches(block) and block[i] == self.token and goes_on

    def law(self, which: Callable[[Tokens], bool]) -> dict[Tokens, float]:
        return {b: mass for b, mass in self.probed.distribution.items() if which(b)}

    @property
    def total(self) -> float:
        return sum(self.law(self.reaches).values())

    def acceptance(self, right: float) -> Found | None:
        share = sum(self.law(self.keeps).values()) / self.total
        if abs(share - right) <= SAME:
            return None
        said = f"keeps draft {self.token} with {share:.4f}; min(1, p/q) is {right:.4f}"
        i = len(self.before)

        def part(a: Tokens, b: Tokens) -> bool:
            return self.reaches(a) and self.reaches(b) and self.keeps(a) != self.keeps(b)

        return i, abs(share - right), self._named(f"accept[{i}]", said, part)

    def residual(self, right: Floats) -> Found | None:
        def refuses(block: Tokens) -> bool:
            return self.reaches(block) and not self.keeps(block)

        told = "after draft {} was rejected; (p - q)+ over its sum is {:.4f}"
        return self._next(f"residual[{len(self.before)}]", refuses, right, told)

    def bonus(self, right: Floats) -> Found | None:
        return self._next(
            "bonus", self.reaches, right, "after the last draft was kept; p is {1:.4f}"
        )

    def _next(
        self, name: str, which: Callable[[Tokens], bool], right: Floats, told: str
    ) -> Found | None:
        """What is wrong with the law of the token that comes here, if these blocks come."""
        law, i = self.law(which), len(self.before)
        total = sum(law.values())
        if total <= SAME:
            return None
        has = np.zeros(len(right))
        for block, mass in law.items():
            has[block[i]] += mass / total
        worst = int(np.abs(has - right).argmax())
        off = float(abs(has[worst] - right[worst]))
        if off <= SAME:
            return None
        said = f"gives token {worst} with {has[worst]:.4f} " + told.format(
            self.token, float(right[worst])
        )

        def part(a: Tokens, b: Tokens) -> bool:
            return which(a) and which(b) and a[i] != b[i]

        return i, off * total, self._named(name, said, part, which)

    def _named(
        self,
        name: str,
        said: str,
        part: Callable[[Tokens, Tokens], bool],
        last: Callable[[Tokens], bool] = lambda block: False,
    ) -> WrongDecision:
        """With the lines where paths part; if none does, of the last number of a path."""
        lines = _lines(self.probed, part)
        if not lines[0]:
            asked = [c.requests for c in self.probed.cells if c.requests and last(_outcome(c))]
            lines = ("", "") if not asked else (_short(asked[0][-1].call.where),) * 2
        return WrongDecision(name, (*self.before, self.token), said, *lines)


def _lines(probed: Probed, part: Callable[[Tokens, Tokens], bool]) -> tuple[str, str]:
    """Where the paths of two blocks part that are otherwise most alike: compared, and drawn."""
    best: tuple[int, int, Decision] | None = None
    cells = [cell for cell in probed.cells if isinstance(cell.outcome, tuple) and cell.decisions]
    for _, (one, other) in zip(range(MOST_PAIRS), product(cells, cells), strict=False):
        if part(_outcome(one), _outcome(other)):
            apart = [
                (n, left)
                for n, (left, right) in enumerate(
                    zip(one.decisions, other.decisions, strict=False)
                )
                if (left.call, left.compared) == (right.call, right.compared)
                and left.way != right.way
            ]
            if apart and (best is None or (len(apart), apart[0][0]) < best[:2]):
                best = len(apart), *apart[0]
    return ("", "") if best is None else (_short(best[2].compared), _short(best[2].call.where))


def _differ(one: Decision, other: Decision) -> bool:
    """Whether they go different ways at the same place."""
    return (one.call, one.compared) == (other.call, other.compared) and one.way != other.way


def _outcome(cell: Cell) -> Tokens:
    """The block of a path; none of one that fails."""
    return cell.outcome if isinstance(cell.outcome, tuple) else ()


def _short(where: str) -> str:
    """A file and line, from the working directory if it is below that."""
    file, _, line = where.rpartition(":")
    path = Path(file)
    below = path.is_relative_to(Path.cwd())
    return f"{path.relative_to(Path.cwd()) if below else path.name}:{line}"
