"""What the zoo knows about one unusual sampler: a planted bug, or a control."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from specref.algorithms.greedy_block import Modifications
from specref.algorithms.trees.topdown import Verify as VerifyTree
from specref.batched import Verify
from specref.chance import Chance, exact_distribution
from specref.distributions import Probability, total_variation
from specref.laws import Law, first_tokens_carrying
from specref.models import Model
from specref.theory.metrics import Iteration
from specref.vocabulary import Tokens
from specref.zoo.fixtures import ExactFixture

Stage: TypeAlias = Literal[
    "draft",
    "accept",
    "residual",
    "bonus",
    "randomness",
    "context",
    "length",
    "vocabulary",
    "operator",
    "batch",
    "reporting",
    "contract",
]
PLACES: Mapping[Stage, str] = MappingProxyType(
    {
        "draft": "how draft tokens are made",
        "accept": "acceptance",
        "residual": "the residual",
        "bonus": "the bonus token",
        "randomness": "random numbers",
        "context": "contexts and rows",
        "length": "lengths and ends",
        "vocabulary": "vocabularies and texts",
        "operator": "how p and q are read",
        "batch": "batches",
        "contract": "the form of the answer",
        "reporting": "figures",
    }
)
"""{stage: where in an iteration an entry departs from its rule}, in the order of an iteration."""
Generate: TypeAlias = Callable[[Model, Model, Tokens, int, int, Chance], Tokens]
Setting: TypeAlias = tuple[Probability, Probability]
"""A temperature, and the mass of top-p."""
GenerateBatch: TypeAlias = Callable[..., tuple[Tokens, ...]]
"""(target, drafter, contexts, lookahead, tokens, chance, settings of rows) -> texts."""
Case: TypeAlias = tuple[Model, Model, Tokens, int]
Iterated: TypeAlias = tuple[Tokens, Modifications]
Blocks: TypeAlias = dict[Iterated, Probability]
Iterate: TypeAlias = Callable[[Model, Model, Tokens, int, Chance, Modifications], Iterated]
Figure: TypeAlias = Callable[[Sequence[Iteration]], Any]


def no_step(*arguments: Any, **options: Any) -> Tokens:
    """The step of an entry that is judged as something else; raises `TypeError`."""
    raise TypeError("this entry of the zoo is no step")


@dataclass(frozen=True)
class Entry:
    """A planted bug, or a lossless rule that looks like one.

    It departs from a clean rule in one place, and is judged as one of: a step, a decode loop,
    a batched one, iterations that carry something, a step of a batch, a batched verifier, a
    figure. Some steps come with the verifier of trees that they are made of.

    Attributes
    ----------
    id : str
        Kebab-case; never reused.
    stage : str
        Where the departure happens.
    rule : str
        The clean rule, by its name in `specref.rules`; "warped" for standard speculative decoding
        from a target with sampling parameters; of a figure, the definition in `theory.metrics`.
    formula : str
        The mechanism in one line; x is the drafted token, i its position, n the number of
        drafts, p_i and q_i the rows at position i, and (v)+ the positive part.
    symptom : str
        How it shows; for a control, why it looks wrong.
    hint : str
        How to fix it; for a control, why it is exact.
    cites : tuple of str
        Where it was seen: issues and pull requests (``owner/repo#number``), repositories
        (``owner/repo``), papers (``arXiv:number``). Empty where nothing was found.
    lossless : bool
        False for a mutant, True for a control.
    blind : frozenset of str
        The fixtures on which a mutant cannot be told from the clean rule.
    note : str
        Why it is blind there, or what else there is to know.
    distances : mapping
        {fixture: total variation}, as far as they are pinned; 0 where it survives.
    case : ExactFixture, optional
        The pair on which it is tried, if it is not tried on those of its rule.
    step : callable
        `(target, drafter, context, lookahead, chance)` -> block, with the sites of the clean
        rule where it draws the same thing; it may take the options of a fixture, too.
    generate : callable, optional
        `(target, drafter, context, lookahead, tokens, chance)` -> at most `tokens` token ids.
    generate_batch : callable, optional
        As `GenerateBatch`.
    iterate : callable, optional
        As `greedy_block.iterate`.
    batch_step : callable, optional
        As `companion.batch.fixed_budget_step`; its fixture is every request of a batch.
    make : callable, optional
        () -> a batched verifier of its own, since some keep state.
    contract : str
        The contract that the batched verifier is put to.
    shows : {"row", "rows", "calls", "coins"}, optional
        Where the departure of a batched verifier can be seen: in the distribution of one row, only
        in the joint distribution of the rows of a call, only in that of several calls, or only
        with random numbers that a generator yields once in millions of draws. For a control, where
        it looks wrong.
    figure : callable, optional
        Log -> value.
    verify_tree : callable, optional
        As `topdown.verify`: what the step does with the tree that it drafts.
    """

    id: str
    stage: Stage
    _: KW_ONLY
    rule: str = "standard"
    formula: str
    symptom: str
    hint: str
    cites: tuple[str, ...] = ()
    lossless: bool = False
    blind: frozenset[str] = frozenset()
    note: str = ""
    distances: Mapping[str, Probability] = field(default_factory=dict, hash=False)
    case: ExactFixture | None = None
    step: Callable[..., Tokens] = no_step
    generate: Generate | None = None
    generate_batch: GenerateBatch | None = None
    iterate: Iterate | None = None
    batch_step: Callable[..., tuple[Tokens, ...]] | None = None
    make: Callable[[], Verify] | None = None
    contract: Literal["verify", "ragged"] = "verify"
    shows: Literal["row", "rows", "calls", "coins"] | None = None
    figure: Figure | None = None
    verify_tree: VerifyTree | None = None

    @property
    def is_step(self) -> bool:
        """Whether it is judged as a step."""
        return self.step is not no_step

    def on(self, fixture: ExactFixture) -> Callable[..., Any]:
        """The step, or the step of a batch, told the options of a fixture."""
        return partial(self.batch_step or self.step, **fixture.options)


def exactly(**distances: str) -> Mapping[str, Probability]:
    """Distances as fractions."""
    return {name: Fraction(distance) for name, distance in distances.items()}


def law_on(entry: Entry, fixture: ExactFixture) -> Law:
    """The distribution of `fixture.length` tokens: of a completed block, or a loop's first.

    Raises
    ------
    TypeError
        The entry is neither a step, nor a decode loop, nor iterations.
    ValueError
        A block is longer; or as `exact_distribution`.
    """
    if entry.iterate is not None:
        return first_tokens(entry.iterate, fixture)
    if entry.generate is None:
        return fixture.output(entry.step)
    generate, pair = entry.generate, (fixture.target, fixture.drafter, fixture.context)
    wanted = fixture.lookahead, fixture.length
    return exact_distribution(lambda chance: generate(*pair, *wanted, chance))


def first_tokens(iterate: Iterate, fixture: ExactFixture) -> Law:
    """The law of the first `fixture.length` tokens of a loop, or up to EOS.

    Iterations meet in the tokens so far and in what is carried: paths that share both are merged.

    >>> from specref.algorithms import greedy_block
    >>> from specref.zoo.greedy_block import PAIRS
    >>> coin = PAIRS["coin"]
    >>> first_tokens(greedy_block.iterate, coin) == coin.continued()
    True
    """

    def after(text: Tokens, carried: Modifications) -> Blocks:
        case = fixture.target, fixture.drafter, (*fixture.context, *text), fixture.lookahead
        return iterated(iterate, case, carried)

    start: Modifications = ()
    return first_tokens_carrying(after, fixture.target.vocabulary, fixture.length, start)


def iterated(iterate: Iterate, case: Case, carried: Modifications = ()) -> Blocks:
    """The joint law of an iteration's block and the modifications carried after it."""
    return exact_distribution(lambda chance: iterate(*case, chance, carried))


def total_variation_on(entry: Entry, fixture: ExactFixture) -> Probability:
    """How far what an entry emits is from the target's own tokens, exactly.

    Raises
    ------
    TypeError, ValueError
        As `law_on`.
    """
    return total_variation(law_on(entry, fixture), fixture.continued())
