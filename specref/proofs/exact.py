"""Exact proofs that the completed block has the target's joint distribution, or has not."""

import inspect
import itertools
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter
from typing import Any, Generic, TypeVar

from specref.algorithms.decoding import Step
from specref.chance import (
    MAX_PATHS,
    Chance,
    Exact,
    OutsideChanceError,
    Path,
    Traced,
    enumerate_paths,
)
from specref.distributions import Probability, is_exact, push_forward, total_variation
from specref.laws import Law, completed, first_tokens
from specref.models import Model, OwnModel, as_model, watched
from specref.spoiled import unspoiled
from specref.vocabulary import Tokens

ARGUMENTS = ("target", "drafter", "context", "lookahead", "chance")
LONGEST = 1_000
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Difference:
    """The shortest token sequence that comes out too often or too rarely."""

    tokens: Tokens
    output: Probability
    expected: Probability

    def __str__(self) -> str:
        return f"P{self.tokens} = {self.output}, the target's is {self.expected}"


@dataclass(frozen=True, repr=False)
class Comparison(Generic[Outcome]):
    """An exact output distribution, the one it should equal, and the number of random paths."""

    output: dict[Outcome, Probability]
    expected: dict[Outcome, Probability]
    paths: int

    @property
    def lossless(self) -> bool:
        """Whether the two distributions are equal."""
        return self.total_variation == 0

    @property
    def total_variation(self) -> Probability:
        """The total variation distance of the two distributions."""
        return total_variation(self.output, self.expected)

    def __bool__(self) -> bool:
        return self.lossless

    def __repr__(self) -> str:
        found = self.difference
        return (
            f"{type(self).__name__}(lossless={self.lossless}, "
            f"total_variation={self.total_variation}, paths={self.paths}"
            f"{'' if found is None else f', {found}'})"
        )

    @property
    def difference(self) -> object:
        """The smallest differing outcome, where outcomes have an order."""
        return None


class Proof(Comparison[Tokens]):
    """Whether an output distribution equals the target's, and by how much it does not.

    Attributes
    ----------
    output, expected : dict
        {tokens: probability}: the completed output distribution, and the target's.
    paths : int
        How many random paths were enumerated.
    """

    @property
    def difference(self) -> Difference | None:
        """The smallest differing outcome: shortest, then lowest ids; None when lossless."""
        for length in range(1, max(map(len, self.output | self.expected)) + 1):
            first = itemgetter(slice(length))
            output, expected = push_forward(self.output, first), push_forward(self.expected, first)
            for tokens in sorted(output.keys() | expected.keys()):
                gap = Difference(tokens, output.get(tokens, 0), expected.get(tokens, 0))
                if gap.output != gap.expected:
                    return gap
        return None


def is_lossless(
    step: Step,
    target: Model,
    drafter: Model,
    context: Tokens = (),
    lookahead: int = 1,
    *,
    max_paths: int = MAX_PATHS,
) -> Proof:
    """Prove or refute that one iteration is lossless, by enumerating every random path.

    Parameters
    ----------
    step : callable
        `(target, drafter, context, lookahead, chance)` -> block of target token ids.
    target, drafter : Model
        With exact probabilities.
    context : tuple of int
        Target token ids.
    lookahead : int
        Passed to `step`.
    max_paths : int
        Where to give up.

    Returns
    -------
    Proof
        True in a boolean context iff lossless. Blocks are completed to the longest block. If
        that holds in every context, the decode loop is exact too, by induction
        (`is_lossless_loop` checks it).

    Raises
    ------
    TypeError
        A model returns floats; or `step` is no function of five arguments, `context` no token
        ids, or a block none.
    TooManyPathsError
        More than `max_paths` paths, 1,000 decisions on one, or a million texts as long as the
        longest block.
    OutsideChanceError
        `step` is no function of its chance: of paths that were run twice, one run asked or
        returned something else. Or it asks for nothing, always returns the same block, and the
        target does not.
    ValueError
        An empty block, or one with a token id out of range.

    Examples
    --------
    >>> from specref.algorithms import standard
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> vocabulary = Vocabulary("ab")
    >>> target = iid_model(vocabulary, ["1/2", "1/2"])
    >>> drafter = iid_model(vocabulary, ["3/4", "1/4"])
    >>> is_lossless(standard.step, target, drafter, (), 2)
    Proof(lossless=True, total_variation=0, paths=12)
    """
    target, drafter = as_model(target, "target"), as_model(drafter, "drafter")
    arguments = (target, drafter, context, lookahead)
    blocks, paths = output_distribution(step, *arguments, max_paths)
    return _decided(proof(blocks, target, context, paths), blocks, step, *arguments)


def _decided(found: Proof, emitted: Law, step: Step, *arguments: Any) -> Proof:
    """The proof; raises if a step emits one block, asks for nothing, and the target is random."""
    one = len(emitted) == 1 < len(found.expected)
    if one and not (found or asks_chance(step, *arguments)):
        raise OutsideChanceError(
            f"step takes no decision from chance: it asked for nothing and returned "
            f"{min(emitted)}, where the target's distribution has {len(found.expected)} texts"
        )
    return found


def proof(
    blocks: Mapping[Tokens, Probability],
    target: Model,
    context: Tokens,
    paths: int,
    max_texts: int = MAX_PATHS,
) -> Proof:
    """Compare a distribution of blocks, completed to the longest, with the target's law."""
    length = max(map(len, blocks))
    output = completed(blocks, target, context, length, max_texts)
    expected = completed({(): Fraction(1)}, target, context, length, max_texts)
    return Proof(output, expected, paths)


def is_lossless_loop(
    step: Step,
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    length: int,
    *,
    max_paths: int = MAX_PATHS,
) -> Proof:
    """Prove or refute that the first `length` tokens of the decode loop are the target's.

    Iterations meet only in the tokens emitted, so paths that emitted the same tokens
    are merged: each context is enumerated once.

    Parameters, returns and errors as `is_lossless`.

    Examples
    --------
    >>> from specref.algorithms import standard
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> vocabulary = Vocabulary("ab")
    >>> target = iid_model(vocabulary, ["1/2", "1/2"])
    >>> drafter = iid_model(vocabulary, ["3/4", "1/4"])
    >>> is_lossless_loop(standard.step, target, drafter, (), 1, 3).lossless
    True
    """
    target, drafter = as_model(target, "target"), as_model(drafter, "drafter")
    total_paths = 0

    def after(text: Tokens) -> Law:
        nonlocal total_paths
        blocks, paths = output_distribution(
            step, target, drafter, (*context, *text), lookahead, max_paths
        )
        total_paths += paths
        return blocks

    output = first_tokens(after, target.vocabulary, length)
    expected = completed({(): Fraction(1)}, target, context, length)
    found = Proof(dict(sorted(output.items())), expected, total_paths)
    return _decided(found, output, step, target, drafter, context, lookahead)


def output_distribution(
    step: Step,
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    max_paths: int = MAX_PATHS,
) -> tuple[Law, int]:
    """The exact distribution of one block, and the number of paths behind it.

    Raises
    ------
    TypeError, ValueError
        As `is_lossless`.
    """
    target, drafter = as_model(target, "target"), as_model(drafter, "drafter")
    _check_arguments(step, target, drafter, context)
    program = program_of(step, target, drafter, context, lookahead)
    with unspoiled(), watched(target, drafter, tuple(context), lookahead):
        return _blocks(enumerate_paths(program, max_paths, twice=True))


def output_distributions(
    step: Step, target: Model, drafter: Model, lookahead: int
) -> Generator[tuple[Law, int], None, None]:
    """The same of a rule that is asked again and again, with no prompt; each path runs once."""
    program = program_of(step, target, drafter, (), lookahead)
    with unspoiled(), watched(target, drafter, (), lookahead):
        while True:
            yield _blocks(enumerate_paths(program, MAX_PATHS))


def _blocks(paths: Iterable[Path[Tokens]]) -> tuple[Law, int]:
    """The distribution of what paths emit, and their number."""
    blocks: Law = {}
    number = 0
    for path in paths:
        if isinstance(path.weight, float):
            raise TypeError(
                f"step asked chance with a float probability (block {path.outcome}): a proof "
                "needs Fractions throughout, such as Fraction(1, 2) for 1 / 2"
            )
        blocks[path.outcome] = blocks.get(path.outcome, 0) + path.weight
        number += 1
    return blocks, number


def asks_chance(
    step: Step, target: Model, drafter: Model, context: Tokens, lookahead: int
) -> bool:
    """Whether a step takes a decision from its chance on its first path."""
    chance = Exact()
    program_of(step, target, drafter, context, lookahead)(chance)
    return bool(chance.requests)


def trace_to(
    tokens: Tokens, step: Step, target: Model, drafter: Model, context: Tokens, lookahead: int
) -> tuple[Tokens, Traced]:
    """A path to `tokens`, which end its block if that is possible; traced.

    If none leads there, one whose block agrees with them longest. Of those the likeliest.
    """
    program = program_of(step, target, drafter, context, lookahead)

    def closeness(path: Path[Tokens]) -> tuple[bool, int, bool, Probability]:
        block = path.outcome
        agreed = _agreement(block, tokens)
        leads_there = agreed == min(len(block), len(tokens))
        return leads_there, agreed, len(block) == len(tokens), path.weight

    closest = max(enumerate_paths(program), key=closeness)
    chance = Traced(Exact(closest.choices))
    return program(chance), chance


def shares_of(
    difference: Difference,
    step: Step,
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
) -> tuple[tuple[str, Probability], ...]:
    """What the probability of a difference is the sum of, largest first.

    Paths with the same verdicts on drafts, and the same last draw, are one share. Of a text that
    ends, the smallest difference may be that no block ends there: those that go on are left out.

    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> from specref.zoo.standard.printed import algorithm_5
    >>> p, q = (iid_model(Vocabulary("ab"), row) for row in (["1/2", "1/2"], ["3/4", "1/4"]))
    >>> for branch, share in shares_of(Difference((1, 1), 3 / 8, 1 / 4), algorithm_5, p, q, (), 1):
    ...     print(share, branch)
    1/4 accept[0] yes, residual
    1/8 accept[0] no, residual, then the target
    """
    tokens = difference.tokens
    program = program_of(step, target, drafter, context, lookahead)
    shares: dict[str, Probability] = {}
    for path in enumerate_paths(program):
        block = path.outcome
        if _agreement(block, tokens) < min(len(block), len(tokens)):
            continue
        rest, mass = tokens[len(block) :], path.weight
        if rest and target.vocabulary.ends(block):
            continue
        if len(block) > len(tokens) and target.vocabulary.ends(tokens):
            continue
        for i, token in enumerate(rest, len(block)):
            mass *= target.next_token((*context, *tokens[:i]))[token]
        chance = Traced(Exact(path.choices))
        program(chance)
        said = [f"{one.site} {one.said}" for one in chance.steps if isinstance(one.choice, bool)]
        drawn = [str(one.site) for one in chance.steps if not isinstance(one.choice, bool)]
        said += [site for site in drawn[-1:] if not site.startswith("draft") or not said]
        branch = ", ".join(said + ["then the target"] * bool(rest)) or "no decision"
        if mass:
            shares[branch] = shares.get(branch, 0) + mass
    return tuple(sorted(shares.items(), key=lambda item: -item[1]))


def _agreement(left: Tokens, right: Tokens) -> int:
    """The length of the common prefix."""
    pairs = zip(left, right, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


def program_of(
    step: Step, target: Model, drafter: Model, context: Tokens, lookahead: int
) -> Callable[[Chance], Tokens]:
    """One iteration of a step, as a program of its chance; what it returns is checked.

    It gets models and vocabularies of its own: what it does to them spoils no judge.
    """
    given = OwnModel(target)
    other = given if drafter is target else OwnModel(drafter)

    def program(chance: Chance) -> Tokens:
        try:
            block = _tokens(step(given, other, context, lookahead, chance))
        except ValueError as error:
            raise written_to(error) from error.__cause__
        if not block:
            raise ValueError(f"step returned an empty block in context {context}")
        target.vocabulary.check(block, "block")
        return block

    return program


def written_to(error: ValueError) -> ValueError:
    """The error of a step, or what to do where it wrote into a read-only array."""
    if not str(error).endswith("read-only"):
        return error
    told = f"{error}: rows of models are, so change a row.copy()"
    return ValueError(told).with_traceback(error.__traceback__)


def _tokens(raw: object) -> Tokens:
    if isinstance(raw, str) or not isinstance(raw, Iterable):
        wait = ", which is not awaited" if isinstance(raw, Awaitable) else ""
        if inspect.iscoroutine(raw):
            raw.close()
        raise TypeError(f"step returned {type(raw).__name__}{wait}: expected a tuple of token ids")
    tokens = tuple(itertools.islice(raw, LONGEST + 1))
    if len(tokens) > LONGEST:
        raise ValueError(f"step returned more than {LONGEST:,} tokens")
    return tokens


def check_step(step: Step) -> None:
    """Raise `TypeError` unless a step can be called as one."""
    if not callable(step):
        raise TypeError(f"step = {step!r}: expected a function, such as standard.step")
    try:
        signature = inspect.signature(step)
    except (TypeError, ValueError):  # a compiled function that does not tell
        return
    try:
        signature.bind(*ARGUMENTS)
    except TypeError:
        raise TypeError(f"step takes {signature}: expected ({', '.join(ARGUMENTS)})") from None
    if list(signature.parameters)[3:4] == ["tokens"]:
        raise TypeError(
            f"step takes {signature}: expected ({', '.join(ARGUMENTS)}); with `tokens` in "
            "place of `lookahead` it is a loop: specref check --contract generate"
        )


def _check_arguments(step: Step, target: Model, drafter: Model, context: Tokens) -> None:
    check_step(step)
    if isinstance(context, (str, bytes)) or not isinstance(context, Iterable):
        raise TypeError(f"context = {context!r}: expected a tuple of token ids")
    for name, model, seen in (("target", target, context), ("drafter", drafter, ())):
        if not is_exact(model.next_token(seen)):
            raise TypeError(
                f"{name} returns floats: a proof needs Fractions (for floats, compare "
                "exact_distribution with completed by total_variation)"
            )
