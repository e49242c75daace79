"""Proofs that a rule is lossless for every p and q over small vocabularies, or rows where not."""

import itertools
import math
import random
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, TypeAlias

from specref.algorithms.decoding import Step
from specref.chance import Chance, OutsideChanceError, enumerate_paths
from specref.distributions import Probability
from specref.models import Model, table_model
from specref.proofs.everywhere.deadline import OutOfTimeError, look, until
from specref.proofs.everywhere.number import ACCIDENT, NotForAllError
from specref.proofs.everywhere.pristine import CAN_SPLIT, Pristine, apart
from specref.proofs.everywhere.rows import Letter, Row, Rows, Space, random_row
from specref.proofs.everywhere.slices import LongerBlockError, Plain, Slice, Slicer
from specref.proofs.everywhere.solver import Counts, Solver, is_installed
from specref.proofs.everywhere.walk import DIFFERENT, Choices, one_run
from specref.proofs.everywhere.watch import Watch
from specref.proofs.everywhere.words import separating
from specref.proofs.exact import (
    Proof,
    check_step,
    is_lossless,
    output_distribution,
    output_distributions,
    proof,
    shares_of,
    trace_to,
)
from specref.spoiled import SpoiledError, unspoiled
from specref.vocabulary import Tokens, Vocabulary

Verdict: TypeAlias = Literal["lossless", "lossy", "open"]
SCOUTS = 3
DENOMINATORS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 30, 50, 100, 1000)
BUDGET = 60.0
MOST_SHARES = 3
MOST_TRIED = 8
RANDOM_ROWS = 24
MOST_COMPARED = 1_000
"""Paths with fractions, of a rule that is proved; most of them are run twice."""
WORN = 1_500
"""Paths of one pair of models, each run twice: a rule may be another one after 1,000 calls."""
TO_WEAR_OUT = 2.0
"""Seconds for it; with fewer it would end at another path in each run."""
SEARCHED = 10
"""Where pieces are left open, random rows are tried for one part in so many of the budget."""


@dataclass(frozen=True)
class Witness:
    """Rows at which a rule is not lossless, and how it comes to that.

    * `rows`: {Row: probabilities}: what differs from uniform rows.
    * `proof`: What it does there, enumerated with fractions; None if it raises.
    * `error`: What it raises.
    * `trace`: A path to the smallest difference.
    * `conditions`: What tells the region apart from those where it is lossless.
    * `shares` (tuple of (str, Fraction)): What the probability of the smallest difference is the
      sum of; none where the text should have another law than the target's.
    * `block`: Where the traced path ends.
    """

    rows: Rows
    proof: Proof | None
    error: str | None
    trace: str
    conditions: tuple[str, ...]
    shares: tuple[tuple[str, Probability], ...] = ()
    block: Tokens = ()

    @property
    def distance(self) -> Probability | None:
        """The total variation distance there; None for a rule that raises."""
        return None if self.proof is None else self.proof.total_variation


@dataclass(frozen=True)
class Everywhere:
    """Whether a rule is lossless for every p and q over two vocabularies, at a lookahead.

    * `slices`: One for each completed outcome.
    * `counts`: How questions about conditions were answered.
    * `outcomes`: Completed outcomes that there are.
    * `interrupted`: Whether Ctrl-C came; what was found by then is kept.
    """

    target: Vocabulary
    drafter: Vocabulary
    lookahead: int
    slices: tuple[Slice, ...]
    witness: Witness | None
    counts: Counts
    seconds: float
    outcomes: int
    interrupted: bool

    @property
    def verdict(self) -> Verdict:
        if self.witness:
            return "lossy"
        return "open" if self.open or self.lossy else "lossless"

    @property
    def regions(self) -> int:
        """Regions, over all outcomes."""
        return sum(one.regions for one in self.slices)

    @property
    def lossy(self) -> int:
        """Regions where the rule is not lossless."""
        return sum(len(one.lossy) for one in self.slices)

    @property
    def open(self) -> int:
        """Pieces of space of which nothing is known, outcomes that were not looked at included."""
        return sum(one.open for one in self.slices) + self.outcomes - len(self.slices)

    @property
    def paths(self) -> int:
        """Random paths, over all regions."""
        return sum(one.paths for one in self.slices)

    @property
    def flips(self) -> int:
        return sum(one.flips for one in self.slices)

    @property
    def charts(self) -> int:
        """Pieces on which an equation holds: zeros, ties, equal rows, point masses and others."""
        return sum(one.charts for one in self.slices)

    @property
    def bits(self) -> int:
        """All numbers that were told apart were told apart rightly, but for 2^-bits at most."""
        # One bit less, for the 2^-128 that the modulus is no prime: 2^-k + 2^-128 <= 2^-(k - 1).
        return min(126, ACCIDENT - sum(one.mistakes for one in self.slices).bit_length() - 1)

    def __bool__(self) -> bool:
        return self.verdict == "lossless"

    def __repr__(self) -> str:
        return (
            f"Everywhere({self.verdict!r}, regions={self.regions}, lossy={self.lossy}, "
            f"open={self.open}, paths={self.paths})"
        )


@unspoiled()
def is_lossless_everywhere(
    step: Step,
    target: Vocabulary | Iterable[str],
    drafter: Vocabulary | Iterable[str] | None = None,
    lookahead: int = 1,
    *,
    seed: int = 0,
    budget: float = BUDGET,
    executor: Executor | None = None,
    until_open: bool = False,
    plain: Plain | None = None,
    pristine: Pristine | None = None,
    advance: Callable[[Slice], None] = lambda found: None,
) -> Everywhere:
    """Prove or refute that one iteration is lossless whatever the rows of p and q are.

    Parameters
    ----------
    step : callable
        (target, drafter, context, lookahead, chance) -> block of target token ids, as for
        `is_lossless`; it is run as it is, in the empty context.
    target, drafter : Vocabulary, or iterable of str
        The drafter's is the target's by default.
    lookahead : int
    seed : int
        Of the samples, the prime and the residues.
    budget : float
        Seconds of the processor; what is not done by then is open. No outcome gets more than
        three times its share of what is left.
    executor : concurrent.futures.Executor, optional
        Runs outcomes that begin with different tokens apart, those with one token with that
        budget; the result is the same if that suffices. What it is handed must be picklable.
    until_open : bool
        Stop at an outcome that is left open: then nothing is proved, and all others are open.
    plain : callable, optional
        Target -> the model whose law the text should have, such as one that applies a
        temperature; the target itself by default. It is run as the rule is.
    pristine : Pristine, optional
        Made before the rule was called, for a rule that was called already; one is made here by
        default.
    advance : callable
        Called with each `Slice`.

    Returns
    -------
    Everywhere
        True in a boolean context iff proved.

    Raises
    ------
    NotForAllError
        The rule converts or hashes a number, keeps one between two calls, or does something
        else with it that is not a function of all its values.
    ModuleNotFoundError
        z3 is missing.
    TypeError, ValueError
        As `is_lossless`: floats, empty blocks, a rule that is no function of its chance.

    Examples
    --------
    >>> from specref.algorithms import standard
    >>> is_lossless_everywhere(standard.step, "ab", lookahead=1)
    Everywhere('lossless', regions=10, lossy=0, open=0, paths=14)
    """
    if not is_installed():
        raise ModuleNotFoundError("z3 is not installed: pip install z3-solver")
    check_step(step)
    target, drafter = as_vocabularies(target, drafter)
    if not budget > 0:
        raise ValueError(f"budget = {budget}: expected seconds > 0")
    started = time.monotonic()
    with (
        nullcontext(pristine) if pristine else Pristine(partial(completing, step, plain)) as first
    ):
        watch = Watch(budget * (1 + 1 / SEARCHED))
        choices = first_runs(step, target, drafter, lookahead, seed, watch, budget / SEARCHED)
        length = max(map(len, choices.values()))
        while True:
            outcomes = completed_outcomes(target, length)
            # A copy of a vocabulary has nothing that a rule attached to it.
            size = replace(target), replace(drafter), lookahead, length
            jobs = [
                Job(step, *size, seed, budget, until_open, choices, each, plain)
                for _, same in itertools.groupby(outcomes, lambda outcome: outcome[0])
                for each in [tuple(same)]
            ]
            try:
                slices, counts, interrupted = _covered(jobs, first, executor, advance)
                break
            except LongerBlockError as longer:
                length = longer.args[0]
        space = Space(target, drafter, seed)
        question = Question(watch.of(step), space, lookahead, plain)
        witness = watch.run(partial(_witness, question, slices, time.process_time() + budget / 2))
        if witness is None and not interrupted:
            search = partial(_searched, question, slices, length, seed, budget / SEARCHED)
            try:
                witness = watch.run(search)
            except KeyboardInterrupt:
                interrupted = True
        seconds = time.monotonic() - started
        done = len(outcomes), interrupted
        return Everywhere(target, drafter, lookahead, slices, witness, counts, seconds, *done)


def as_vocabularies(
    target: Vocabulary | Iterable[str], drafter: Vocabulary | Iterable[str] | None
) -> tuple[Vocabulary, Vocabulary]:
    """Both as vocabularies; the drafter's is the target's by default."""
    first = target if isinstance(target, Vocabulary) else Vocabulary(target)
    drafter = first if drafter is None else drafter
    return first, drafter if isinstance(drafter, Vocabulary) else Vocabulary(drafter)


@dataclass(frozen=True)
class Job:
    """Outcomes that begin with one token, and what is needed to cover all rows for them."""

    step: Step
    target: Vocabulary
    drafter: Vocabulary
    lookahead: int
    length: int
    seed: int
    budget: float
    until_open: bool
    choices: Mapping[Choices, Tokens]
    outcomes: tuple[Tokens, ...]
    plain: Plain | None = None


@dataclass(frozen=True)
class Completing:
    """A rule whose blocks are completed to `length` tokens by draws from another model."""

    step: Step
    plain: Plain
    length: int

    def __call__(
        self, target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        block = tuple(self.step(target, drafter, context, lookahead, chance))
        model = self.plain(target)
        while block and len(block) < self.length and not target.vocabulary.ends(block):
            row = model.next_token((*context, *block))
            block = (*block, chance.draw(row, "completion"))
        return block


def completing(step: Step, plain: Plain | None, length: int) -> Step:
    """The step; where the text should have another law, with blocks completed by that."""
    return step if plain is None else Completing(step, plain, length)


@dataclass(frozen=True)
class Question:
    """What is asked at chosen rows: a rule, the space of rows, and the law it should have."""

    step: Step
    space: Space
    lookahead: int
    plain: Plain | None

    def proof(self, rows: Rows) -> Proof:
        """What the rule does at rows, enumerated with fractions; raises what the rule raises."""
        target, drafter = models_of(self.space, rows)
        step = timely(self.step)
        if self.plain is None:
            return is_lossless(step, target, drafter, (), self.lookahead)
        blocks, paths = output_distribution(step, target, drafter, (), self.lookahead)
        return proof(blocks, self.plain(target), (), paths)

    def fails(self, rows: Rows, raises: bool) -> bool:
        """Whether the rule is lossy at these rows; or whether it raises there."""
        try:
            found = self.proof(rows)
        except Exception:
            return raises
        return not (raises or found)


def _covered(
    jobs: Sequence[Job],
    pristine: Pristine,
    executor: Executor | None,
    advance: Callable[[Slice], None],
) -> tuple[tuple[Slice, ...], Counts, bool]:
    slices: list[Slice] = []
    total = Counts()
    try:
        if executor is None:
            left, outcomes = jobs[0].budget, sum(len(job.outcomes) for job in jobs)
            for job in jobs:
                started = time.process_time()
                for found in _slices_of(job, pristine, left, outcomes - len(slices), total):
                    slices.append(found)
                    advance(found)
                    if job.until_open and found.open:
                        return tuple(slices), total, False
                left -= time.process_time() - started
        else:
            for several, counts in executor.map(cover_job, jobs):
                slices += several
                total += counts
                for found in several:
                    advance(found)
    except KeyboardInterrupt:
        return tuple(slices), total, True
    return tuple(slices), total, False


@unspoiled()
def cover_job(job: Job) -> tuple[list[Slice], Counts]:
    """The outcomes of a job, in a process of its own: the worker itself never calls the rule."""
    return apart(partial(_job_covered, job)) if CAN_SPLIT else _job_covered(job)


def _job_covered(job: Job) -> tuple[list[Slice], Counts]:
    counts = Counts()
    slices: list[Slice] = []
    try:
        with Pristine(partial(completing, job.step, job.plain)) as pristine:
            for found in _slices_of(job, pristine, job.budget, len(job.outcomes), counts):
                slices.append(found)
                if job.until_open and found.open:
                    break
    except NotForAllError as error:  # frames do not leave the process
        error.stack = error.stack or traceback.extract_tb(error.__traceback__)
        raise
    return slices, counts


def _slices_of(
    job: Job, pristine: Pristine, budget: float, outcomes: int, counts: Counts
) -> Iterator[Slice]:
    """What is found for each outcome of a job; `outcomes` are to share the budget."""
    deadline = time.process_time() + budget
    space, watch = Space(job.target, job.drafter, job.seed), Watch(budget)
    size = job.lookahead, job.length
    step = watch.of(completing(job.step, job.plain, job.length))
    slicer = Slicer(step, space, *size, Solver(counts), job.choices, pristine, job.plain)
    for done, outcome in enumerate(job.outcomes):
        left = deadline - time.process_time()
        share = min(left, MOST_SHARES * left / (outcomes - done))
        yield watch.run(partial(slicer.cover, outcome, share))


def completed_outcomes(vocabulary: Vocabulary, length: int) -> list[Tokens]:
    """All texts of so many tokens, or up to EOS."""
    texts: list[Tokens] = []
    for tokens in itertools.product(range(len(vocabulary)), repeat=length):
        ends = (k for k in range(1, length) if vocabulary.ends(tokens[:k]))
        text = tokens[: next(ends, length)]
        if text not in texts[-1:]:
            texts.append(text)
    return texts


@unspoiled()
def first_runs(
    step: Step,
    target: Vocabulary,
    drafter: Vocabulary,
    lookahead: int,
    seed: int,
    watch: Watch,
    seconds: float = math.inf,
) -> dict[Choices, Tokens]:
    """As `scouted`, after one run with numbers, which refuse what Fractions do not."""
    watched = watch.of(step)

    def runs() -> dict[Choices, Tokens]:
        one_run(watched, Space(target, drafter, seed), lookahead)
        return scouted(watched, target, drafter, lookahead, seed, seconds)

    return watch.run(runs)


def scouted(
    step: Step,
    target: Vocabulary,
    drafter: Vocabulary,
    lookahead: int,
    seed: int,
    seconds: float = math.inf,
) -> dict[Choices, Tokens]:
    """{choices: block} of paths at a few random rows, where the rule is run with fractions.

    Those of all paths, as far as there is time; one at least.
    """
    found: dict[Choices, Tokens] = {}
    run = timely(step)
    try:
        with until(time.process_time() + seconds):
            for scout in range(SCOUTS):
                p, q = _random_models(target, drafter, f"{seed} scout {scout}")
                if scout == 0:
                    output_distribution(run, p, q, (), lookahead)
                for path in enumerate_paths(partial(run, p, q, (), lookahead)):
                    found[path.choices] = tuple(path.outcome)
    except OutOfTimeError:
        if not found:
            path = next(enumerate_paths(partial(step, p, q, (), lookahead)))
            found[path.choices] = tuple(path.outcome)
    return found


def timely(step: Step) -> Step:
    """The same, unless its time is over."""

    def run(*arguments: Any) -> Tokens:
        look()
        return step(*arguments)

    return run


def _random_models(target: Vocabulary, drafter: Vocabulary, key: str) -> tuple[Model, Model]:
    def model(vocabulary: Vocabulary, letter: Letter) -> Model:
        return Model(
            vocabulary, lambda text: random_row(f"{key} {letter} {text}", len(vocabulary))
        )

    return model(target, "p"), model(drafter, "q")


def _witness(question: Question, slices: Sequence[Slice], moment: float) -> Witness | None:
    """The witness of the simplest lossy region, its rows made as simple as time allows."""
    lossy = [(s, one) for s in slices for one in s.lossy]
    if not lossy:
        return None
    found, one = min(
        lossy,
        key=lambda pair: (bool(pair[1].error), len(pair[1].equations), len(pair[1].clauses)),
    )
    rows = {row: one.sample.row(row) for row in found.space.rows}
    raises = one.error is not None
    conditions = separating(one, found.lossless)
    with until((time.process_time() + moment) / 2):
        words = conditions.words
    with until(moment):
        return _simple_witness(question, rows, raises, words, conditions.hold)


def _simple_witness(
    question: Question,
    rows: Rows,
    raises: bool,
    conditions: tuple[str, ...] = (),
    hold: Callable[[Rows], bool] = lambda rows: True,
) -> Witness:
    """What a rule does at these rows, made as simple as the conditions allow."""
    simple = simplified(rows, lambda rows: hold(rows) and question.fails(rows, raises))
    try:
        found = question.proof(simple)
    except Exception as raised:
        return Witness(spoken(simple), None, f"{type(raised).__name__}: {raised}", "", conditions)
    if found or found.difference is None:
        raise NotForAllError(
            f"{DIFFERENT}: at some rows it is lossless with fractions, and lossy with the others"
        )
    models = models_of(question.space, simple)
    asked = question.step, *models, (), question.lookahead
    block, trace = trace_to(found.difference.tokens, *asked)
    shares = shares_of(found.difference, *asked) if question.plain is None else ()
    return Witness(spoken(simple), found, None, str(trace), conditions, shares, block)


def rows_where_right(step: Step, found: Everywhere, plain: Plain | None = None) -> "Rows | None":
    """Simple rows at which a lossy rule is lossless all the same, if some were met."""
    question = Question(step, Space(found.target, found.drafter, 0), found.lookahead, plain)

    def is_right(rows: Rows) -> bool:
        try:
            return bool(question.proof(rows))
        except Exception:
            return False

    for one in found.slices:
        for covered in one.lossless[:MOST_TRIED]:
            rows = {row: covered.sample.row(row) for row in one.space.rows}
            if is_right(rows):
                return spoken(simplified(rows, is_right))
    return None


def _searched(
    question: Question, slices: Sequence[Slice], length: int, seed: int, budget: float
) -> Witness | None:
    """Rows at which a rule is lossy, of pieces left open or drawn."""
    longest = max(length, question.lookahead)
    ends = time.process_time() + budget
    drawn = (
        random_rows(question.space, longest, f"{seed} search {number}")
        for number in range(RANDOM_ROWS)
    )
    if not any(one.open for one in slices):
        vocabularies = question.space.vocabularies
        models = _random_models(vocabularies["p"], vocabularies["q"], f"{seed} worn")
        with until(ends):
            _compare_with_fractions(question, drawn, ends)
            if budget >= TO_WEAR_OUT:
                _wear_out(question, models, ends)
        return None
    in_pieces = (
        {row: point.row(row) for row in one.space.rows} for one in slices for point in one.points
    )
    for rows in itertools.chain(in_pieces, drawn):
        if time.process_time() > ends:
            break
        with until(ends):
            fails = question.fails(rows, False)
        if fails:
            return _simple_witness(question, rows, False)
    return None


def _compare_with_fractions(question: Question, drawn: Iterable[Rows], ends: float) -> None:
    """Raise if a rule that is proved is lossy at rows with fractions, or is no function of them.

    Its calls are counted: a rule may be another one after a hundred.
    """
    paths = 0
    for rows in drawn:
        if paths > MOST_COMPARED or time.process_time() > ends:
            return
        try:
            found = question.proof(rows)
        except OutsideChanceError:
            raise
        except Exception:  # such as of more paths than may be enumerated
            continue
        paths += found.paths
        if not found:
            raise NotForAllError(
                f"{DIFFERENT}: at some rows it is lossy with fractions, and lossless with the "
                "others"
            )


def _wear_out(question: Question, models: tuple[Model, Model], ends: float) -> None:
    """Raise if a rule that is proved is lossy at a later call with the same models."""
    target, paths, first = models[0], 0, None
    law = question.plain(target) if question.plain else target
    try:
        step = timely(question.step)
        with closing(output_distributions(step, *models, question.lookahead)) as called:
            for blocks, more in called:
                paths += more
                if blocks != first and not proof(blocks, law, (), more):
                    break
                first = blocks
                if paths >= WORN or time.process_time() >= ends:
                    return
    except (OutsideChanceError, SpoiledError):
        raise
    except Exception:  # such as of more paths than may be enumerated
        return
    raise NotForAllError(
        f"the rule keeps something between calls: proved at its first, it is lossy after "
        f"{paths:,} calls and more with one pair of models"
    )


def random_rows(space: Space, length: int, key: str) -> Rows:
    """Rows with some zeros, ties and point masses, of all texts that are shorter than `length`."""
    rng = random.Random(key)
    largest = rng.choice((1, 3, 9, 99))
    found: Rows = {}
    for row in all_rows(space, length):
        size = len(space.vocabularies[row.letter])
        weights = [rng.randint(0, largest) for _ in range(size)]
        weights = weights if any(weights) else [1] * size
        found[row] = [Fraction(weight, sum(weights)) for weight in weights]
    return found


def all_rows(space: Space, length: int) -> list[Row]:
    """The rows of all texts that are shorter than `length`."""
    return [
        Row(letter, context)
        for letter, vocabulary in space.vocabularies.items()
        for size in range(length)
        for context in itertools.product(range(len(vocabulary)), repeat=size)
    ]


def models_of(space: Space, rows: Rows) -> tuple[Model, Model]:
    """Target and drafter with these rows, and uniform rows elsewhere."""

    def model(letter: Letter) -> Model:
        vocabulary = space.vocabularies[letter]
        table: dict[Tokens, Any] = {
            row.context: law for row, law in rows.items() if row.letter == letter
        }
        return table_model(vocabulary, table, [Fraction(1, len(vocabulary))] * len(vocabulary))

    return model("p"), model("q")


def simplified(rows: Rows, fails: Callable[[Rows], bool]) -> Rows:
    """Rows of smaller denominators for which something still fails."""
    with suppress(OutOfTimeError):
        for size in DENOMINATORS:
            together = {row: _rounded(law, size) for row, law in rows.items()}
            look()
            if fails(together):
                rows = together
                break
        for row in sorted(rows, key=lambda row: (-len(row.context), row)):
            uniform = [Fraction(1, len(rows[row]))] * len(rows[row])
            for law in (uniform, *(_rounded(rows[row], size) for size in DENOMINATORS)):
                if _weight(law) >= _weight(rows[row]):
                    continue
                look()
                if fails({**rows, row: law}):
                    rows = {**rows, row: law}
                    break
    return rows


def _weight(law: Sequence[Fraction]) -> int:
    uniform = all(value == law[0] for value in law)
    return 0 if uniform else sum(value.numerator + value.denominator for value in law)


def _rounded(law: Sequence[Fraction], size: int) -> list[Fraction]:
    """A law with denominator `size`, by largest remainders."""
    parts = [int(value * size) for value in law]
    rest = sorted(range(len(law)), key=lambda t: (parts[t] - law[t] * size, t))
    for token in rest[: size - sum(parts)]:
        parts[token] += 1
    return [Fraction(part, size) for part in parts]


def spoken(rows: Rows) -> Rows:
    """The rows that are not uniform."""
    return {row: law for row, law in sorted(rows.items()) if _weight(law)}
