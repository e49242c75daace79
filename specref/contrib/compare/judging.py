"""From pairs to a verdict: tests that share alpha, and how far apart the two can be at most."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from specref.arrays import Ints
from specref.contrib.compare.answers import number_of, numbers_of, words_of
from specref.contrib.compare.features import (
    CELLS,
    PART,
    Counted,
    Numbers,
    Side,
    Table,
    by_prompt,
    commonest,
    counted,
    lumped,
    numbers,
    side_of,
)
from specref.contrib.compare.pairing import Pairs, paired
from specref.contrib.compare.records import Texts, numbered
from specref.statistics.campaign.levels import ALPHA
from specref.statistics.campaign.verdict import Verdict
from specref.statistics.two_sample.bounds import (
    detectable_square,
    log_tail,
    spectrum,
    statistic,
)

WITHIN = 0.05
SHOWN = 3


@dataclass(frozen=True)
class Cell:
    """What is counted in one cell.

    Attributes
    ----------
    label : str
    spec, plain : float
        How many a text of each side.
    z : float
        The difference in standard deviations.
    """

    label: str
    spec: float
    plain: float
    z: float


@dataclass(frozen=True)
class Test:
    """One test of equal distributions.

    Attributes
    ----------
    name : str
    log10_p : float
        A bound of the probability of such a difference, if both sides are equal.
    significant : bool
    detectable : float or None
        About the total variation that would have been detected with probability 0.999, of tables
        that have a text once.
    cells : tuple of Cell
        Those that differ most.
    """

    __test__ = False  # no class of tests

    name: str
    log10_p: float
    significant: bool
    detectable: float | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Bound:
    """How far apart the two sides can be, with confidence 1 - alpha for all bounds together.

    Attributes
    ----------
    name : str
    estimate, most : float
        Total variation as seen, and at most; of numbers the difference of means.
    needed : int
        About how many pairs would bring `most` to what was asked for.
    """

    name: str
    estimate: float
    most: float
    needed: int


@dataclass(frozen=True)
class Comparison:
    """The verdict on two files.

    Attributes
    ----------
    verdict : Verdict
    pairs, prompts, tokens : int
    alpha, within : float
    tests : tuple of Test
        The clearest first.
    bounds : tuple of Bound
    prompt : str or None
        Where the clearest difference is largest, of several prompts.
    left : tuple of int
        Texts of each file without a partner.
    alone : tuple of str
        Prompts of one file only.
    repeated : tuple of int
        Records of each file that were left out as repeated.
    names : tuple of str
    """

    verdict: Verdict
    pairs: int
    prompts: int
    tokens: int
    alpha: float
    within: float
    tests: tuple[Test, ...]
    bounds: tuple[Bound, ...]
    prompt: str | None
    left: tuple[int, int]
    alone: tuple[str, ...]
    repeated: tuple[int, int]
    names: tuple[str, str]

    @property
    def most(self) -> float:
        """How large a difference in what is listed could still be."""
        return max((bound.most for bound in self.bounds), default=1.0)


def up(value: float) -> float:
    """A bound in hundredths, which is one still.

    >>> up(0.231), up(1.0)
    (0.24, 1.0)
    """
    return math.ceil(100 * value) / 100


def compare(
    spec: Texts, plain: Texts, alpha: float = ALPHA, within: float = WITHIN, seed: int = 0
) -> Comparison:
    """Compare the texts of two files, of which nothing else is known.

    Texts of one prompt are to be independent, and all that were drawn; the number of texts was
    not chosen by what is in them.

    * `alpha`: The probability that two systems with one distribution are called lossy.
    * `within`: The total variation that is to be certified.
    * `seed`: Of the shuffle that pairs texts; not to be chosen by what comes out.
    * raises `ValueError`: A number is not in (0, 1), or the files do not go together.
    """
    for name, value in (("alpha", alpha), ("within", within)):
        if not 0 < value < 1:
            raise ValueError(f"{name} = {value}: expected a number in (0, 1)")
    pairs = paired(spec, plain, seed)
    ids, tokens, _ = numbered(np.concatenate([spec.tokens, plain.tokens]))
    tokens = tokens.astype(np.int32)  # numbers of `ids`: tables are as long as the largest one
    parts = tokens[: len(spec.tokens)], tokens[len(spec.tokens) :]
    sides = (
        side_of(replace(spec, tokens=parts[0]), pairs.spec),
        side_of(replace(plain, tokens=parts[1]), pairs.plain),
    )
    called = _called(ids, spec, plain)
    singles, prompts = list(numbers(sides, pairs)), by_prompt(sides, pairs, called)
    counts = list(counted(sides, len(pairs), called))
    share = alpha / (len(counts) + len(singles) + bool(prompts))
    tables = [one.table(len(pairs)) for one in counts]
    tests = [_test(one.name, [one], share) for one in tables]
    tests += [_test_of(one, share) for one in singles]
    tests += [_test("tokens, prompt by prompt", prompts, share)] if prompts else []
    tests.sort(key=lambda one: one.log10_p)
    bounds = _bounds(sides, counts, singles, len(pairs), alpha, within)
    if any(test.significant for test in tests):
        verdict = Verdict.LOSSY
    elif bounds and all(one.most <= within for one in bounds):
        verdict = Verdict.LOSSLESS_WITHIN_EPS
    else:
        verdict = Verdict.INCONCLUSIVE
    by_name = {one.name: one for one in tables}
    clearest = next((one.name for one in tests if one.significant and one.name in by_name), "")
    return Comparison(
        verdict,
        len(pairs),
        len(np.unique(pairs.prompts)),
        sum(len(side.token) for side in sides),
        alpha,
        within,
        tuple(tests),
        tuple(bounds),
        _worst_prompt(by_name[clearest], pairs) if clearest else None,
        pairs.left,
        tuple(pairs.alone),
        (spec.repeated, plain.repeated),
        (spec.name, plain.name),
    )


def _called(ids: Ints, spec: Texts, plain: Texts) -> list[str]:
    """What tokens are called: words by themselves, as far as records spell them, others by id."""
    words = {
        number_of(word): word.strip()
        for text, known in {**spec.spelled, **plain.spelled}.items()
        if tuple(numbers_of(text)) == known
        for word in words_of(text)
    }
    return [f"word {words[one]!r}" if one in words else f"token {one}" for one in ids.tolist()]


def _test(name: str, tables: Sequence[Table], alpha: float) -> Test:
    """One test of a table, or of tables of different pairs together."""
    value, spectra, cells = 0.0, [np.zeros(0)], []
    for table in tables:
        counts, second = table.counts(), table.second()
        sums, variances = counts[0] - counts[1], np.diag(second)
        spectra.append(spectrum(second))
        value += statistic(sums, variances)
        z = np.where(variances > 0, sums / np.sqrt(np.maximum(variances, 1)), 0)
        at = f"prompt {table.name}: " if len(tables) > 1 else ""
        cells += [
            Cell(
                at + table.labels[i],
                float(counts[0, i] / table.size),
                float(counts[1, i] / table.size),
                float(z[i]),
            )
            for i in np.argsort(-np.abs(z), kind="stable")[:SHOWN].tolist()
            if z[i]
        ]
    eigenvalues = np.concatenate(spectra)
    if not len(eigenvalues):
        return Test(name, 0.0, False, None, ())
    log_p, detectable = log_tail(value, eigenvalues), None
    if len(tables) == 1 and tables[0].once:
        # S' W S is at least 2 n TV^2: Cauchy-Schwarz, with diag(A) at most n (p + q).
        least = math.sqrt(detectable_square(alpha, eigenvalues) / (2 * tables[0].size))
        detectable = least if least < 1 else None
    cells.sort(key=lambda cell: -abs(cell.z))
    found = log_p <= math.log(alpha)
    return Test(name, log_p / math.log(10), found, detectable, tuple(cells[:SHOWN]))


def _test_of(one: Numbers, alpha: float) -> Test:
    apart = one.values[0] - one.values[1]
    variance = float((apart**2).sum())
    if variance == 0:
        return Test(one.name, 0.0, False, None, ())
    z = float(apart.sum()) / math.sqrt(variance)
    log_p = log_tail(z**2, np.ones(1))
    cell = Cell(one.name, float(one.values[0].mean()), float(one.values[1].mean()), z)
    return Test(one.name, log_p / math.log(10), log_p <= math.log(alpha), None, (cell,))


def _bounds(
    sides: tuple[Side, Side],
    counts: Sequence[Counted],
    singles: Sequence[Numbers],
    number: int,
    alpha: float,
    within: float,
) -> list[Bound]:
    """Upper bounds of the total variation, averaged over prompts as the pairs are.

    For the event on which the two sides differ most, the difference of its means in the samples
    falls short of the truth by more than sqrt(ln(1 / alpha) / n) with probability alpha at most
    (Hoeffding), and the total variation in the samples is at least that difference. Which tokens
    are told apart is chosen from every tenth pair, which is then left out.
    """
    choosing = np.arange(number) % PART == 0
    rest = number - int(choosing.sum())
    seen: dict[str, float] = {}
    for one in counts:
        if one.certified and rest:
            chosen = [choosing[pairs] for pairs in one.pairs]
            codes = zip(one.codes, chosen, strict=True)
            kept = commonest([code[at] for code, at in codes], CELLS)
            parts = []
            for code, pairs, at, side in zip(one.codes, one.pairs, chosen, sides, strict=True):
                weight = np.ones(number) if one.once else 1 / side.lengths
                cells = lumped(code[~at], kept)
                size = len(kept) + 1
                parts.append(np.bincount(cells, weight[pairs[~at]], minlength=size) / rest)
            seen[one.name] = float(np.abs(parts[0] - parts[1]).sum() / 2)
    for single in singles:
        if single.bounded and rest:
            apart = (single.values[0] - single.values[1])[~choosing]
            seen[single.name] = abs(float(apart.mean()))
    room = math.sqrt(math.log(2 * max(len(seen), 1) / alpha))
    return [
        Bound(
            name,
            estimate,
            min(1.0, estimate + room / math.sqrt(rest)),
            math.ceil(number / rest * ((estimate * math.sqrt(rest) + room) / within) ** 2),
        )
        for name, estimate in seen.items()
    ]


def _worst_prompt(table: Table, pairs: Pairs) -> str | None:
    """The prompt whose pairs differ most in the clearest cells, if there are several."""
    prompts = np.unique(pairs.prompts)
    if len(prompts) < 2:
        return None
    counts = table.counts()
    direction = np.sign(counts[0] - counts[1]).astype(np.float64)
    apart = np.zeros(len(pairs.ids))
    for sign, visits, cells in zip((1, -1), table.pairs, table.cells, strict=True):
        apart += sign * np.bincount(pairs.prompts[visits], direction[cells], len(pairs.ids))
    sizes = np.bincount(pairs.prompts, minlength=len(pairs.ids))
    score = apart / np.sqrt(np.maximum(sizes, 1))
    return pairs.ids[int(score.argmax())]
