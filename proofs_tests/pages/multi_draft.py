"""The exact tables of `docs/records/multi-draft.md`: what every rule accepts, on named pairs.

``python -m proofs_tests.pages.multi_draft docs/records/multi-draft.md`` writes them between the
marks of the page, and nothing else; without a page it prints them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import click

from specref.algorithms import block, greedy_block, standard
from specref.algorithms.greedy_block import Modification, Modifications
from specref.algorithms.trees.k_seq import smallest_rho
from specref.algorithms.trees.transport import drafts_law, optimal_acceptance
from specref.chance import Chance, exact_distribution
from specref.distributions import Probability
from specref.models import Model
from specref.theory import acceptance, multi_draft, trees
from specref.theory import block as jointly
from specref.theory import greedy_block as greedily
from specref.theory.block import draft_rows
from specref.vocabulary import Tokens
from specref.zoo.entry import Iterate, Iterated
from specref.zoo.fixtures import BLOCK_TOKENS, ExactFixture
from specref.zoo.parts.siblings import PAIRS


def tokens_of_iterations(
    iterate: Iterate, fixture: ExactFixture, lookahead: int, iterations: int
) -> list[Probability]:
    """The expected number of tokens of the 1st, 2nd, … iteration, for models of order 1 at most.

    Iterations meet in the last token and in what is carried, seen from there.

    >>> from specref.algorithms import greedy_block
    >>> from specref.zoo.fixtures import BLOCK_TOKENS
    >>> coin = BLOCK_TOKENS["coin"]
    >>> [str(x) for x in tokens_of_iterations(greedy_block.iterate, coin, 2, 3)]
    ['7/3', '19/9', '19/9']
    """
    states: dict[Iterated, Probability] = {((), ()): Fraction(1)}
    means: list[Probability] = []
    for _ in range(iterations):
        following: dict[Iterated, Probability] = {}
        means.append(0)
        for (last, carried), weight in states.items():
            for (tokens, left), probability in _blocks(
                iterate, fixture, last, lookahead, carried
            ).items():
                means[-1] += weight * probability * len(tokens)
                ago = len(last) + len(tokens) - 1  # contexts are cut to their last token
                state = tokens[-1:], tuple(Modification(r, end - ago) for r, end in left)
                following[state] = following.get(state, 0) + weight * probability
        states = following
    return means


def _blocks(
    iterate: Iterate, fixture: ExactFixture, last: Tokens, lookahead: int, carried: Modifications
) -> Mapping[Iterated, Probability]:
    return exact_distribution(
        lambda chance: iterate(fixture.target, fixture.drafter, last, lookahead, chance, carried)
    )


def stateless(step: Callable[..., Tokens]) -> Iterate:
    """An algorithm that carries nothing from one iteration to the next."""

    def iterate(
        target: Model,
        drafter: Model,
        context: Tokens,
        lookahead: int,
        chance: Chance,
        carried: Modifications,
    ) -> Iterated:
        return step(target, drafter, context, lookahead, chance), ()

    return iterate


Row = Sequence[str | Probability]
PATHS = (("coin", 2), ("coin", 3), ("c", 2), ("c", 3), ("m", 2), ("m", 3))
SHAPES = ((2, 1), (1, 2), (2, 2), (2, 1, 1))
RUNS = (("coin", 2), ("coin", 3), ("c", 2), ("m", 2))
ITERATIONS = 5

SIBLING_RULES: Mapping[str, Callable[..., Probability]] = {
    "matching, with replacement": lambda p, q, k: multi_draft.matching(
        p, drafts_law(q, k, replacement=True)
    ),
    "matching, without": lambda p, q, k: multi_draft.matching(
        p, drafts_law(q, k, replacement=False)
    ),
    "recursive rejection, with": lambda p, q, k: multi_draft.recursive_rejection(
        p, q, k, replacement=True
    ),
    "recursive rejection, without": lambda p, q, k: multi_draft.recursive_rejection(
        p, q, k, replacement=False
    ),
    "k-SEQ, rho = k": lambda p, q, k: multi_draft.k_seq(p, q, k, k),
    "k-SEQ, least rho in 64ths": lambda p, q, k: multi_draft.k_seq(p, q, k, smallest_rho(p, q, k)),
    "top drafts; SpecHub for k = 2": multi_draft.top_drafts,
    "optimum, with": lambda p, q, k: (
        optimal_acceptance(p, drafts_law(q, k, replacement=True)).acceptance
    ),
    "optimum, without": lambda p, q, k: (
        optimal_acceptance(p, drafts_law(q, k, replacement=False)).acceptance
    ),
}


def siblings() -> Iterator[Row]:
    """Acceptance of one position, for two and three drafts of S1 and M."""
    yield ("rule", *(f"{name.upper()}, k = {k}" for name, k in _positions()))
    for rule, accepted in SIBLING_RULES.items():
        cells = []
        for name, k in _positions():
            p, q = (model.next_token(()) for model in (PAIRS[name].target, PAIRS[name].drafter))
            cells.append(accepted(p, q, k))
        yield (rule, *cells)


def _positions() -> list[tuple[str, int]]:
    return [(name, k) for name in ("s1", "m") for k in (2, 3)]


def token_trees() -> Iterator[Row]:
    """Expected accepted drafts of trees on A and C."""
    yield (
        "pair, branching",
        "top-down, with",
        "traversal, with",
        "top-down, without",
        "traversal, without",
    )
    for name in ("coin", "c"):
        pair = BLOCK_TOKENS[name].target, BLOCK_TOKENS[name].drafter
        for shape in SHAPES:
            cells = [
                _mean(
                    trees.accepted_length_distribution(
                        *pair, (), shape, rule=rule, replacement=replacement
                    )
                )
                for replacement in (True, False)
                for rule in (trees.topdown, trees.traversal)
            ]
            yield (f"{_name(name)}, {shape}", *cells)


def one_path() -> Iterator[Row]:
    """Expected accepted drafts of the first iteration, for one path."""
    yield "pair, lookahead", "token", "block", "greedy block"
    for name, lookahead in PATHS:
        pair = BLOCK_TOKENS[name].target, BLOCK_TOKENS[name].drafter
        rows = draft_rows(*pair, (), lookahead)
        laws = (
            acceptance.standard(*pair, (), lookahead),
            jointly.length_law(jointly.accepted_prefixes(pair[0], (), rows)),
            jointly.length_law(greedily.accepted_prefixes(pair[0], (), rows)),
        )
        yield (f"{_name(name)}, {lookahead}", *map(_mean, laws))


def runs() -> Iterator[Row]:
    """Expected tokens of the first iteration, of the last, and of all, for one path."""
    rules = {
        "token": stateless(standard.step),
        "block": stateless(block.step),
        "greedy": greedy_block.iterate,
    }
    spans = {"1st": slice(1), f"{ITERATIONS}th": slice(-1, None), "all": slice(None)}
    yield "pair, lookahead", *(f"{span}: {rule}" for span in spans for rule in rules)
    for name, lookahead in RUNS:
        pair = BLOCK_TOKENS[name], lookahead, ITERATIONS
        means = [tokens_of_iterations(iterate, *pair) for iterate in rules.values()]
        cells = (sum(each[span]) for span in spans.values() for each in means)
        yield f"{_name(name)}, {lookahead}", *cells


def _mean(law: Sequence[Probability]) -> Probability:
    return sum(length * weight for length, weight in enumerate(law))


def _name(name: str) -> str:
    return {"coin": "A", "c": "C", "m": "M"}[name]


TABLES: Mapping[str, Callable[[], Iterator[Row]]] = {
    "siblings": siblings,
    "trees": token_trees,
    "one path": one_path,
    "runs": runs,
}


def markdown(rows: Iterator[Row]) -> str:
    """A table: fractions as they are where they are short, else to four places."""
    head, *body = ([_cell(cell) for cell in row] for row in rows)
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *body))


def _cell(cell: str | Probability) -> str:
    if isinstance(cell, str):
        return cell
    exact = str(cell)
    return exact if len(exact) <= 11 else f"{float(cell):.4f}"


def written(page: str) -> str:
    """The page with its tables as they are computed now.

    * raises `ValueError`: The page has no place for a table.
    """
    for name, rows in TABLES.items():
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        head, found, rest = page.partition(start)
        _, closed, tail = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"the page has no {start}, or no {end} after it")
        page = f"{head}{start}\n{markdown(rows())}\n{end}{tail}"
    return page


@click.command()
@click.argument("page", required=False, type=click.Path(exists=True, dir_okay=False))
def main(page: str | None) -> None:
    """Print the tables, or write them into a page."""
    if page is None:
        for name, rows in TABLES.items():
            click.echo(f"{name}\n\n{markdown(rows())}\n")
    else:
        Path(page).write_text(written(Path(page).read_text()))


if __name__ == "__main__":
    main()
