"""The acceptance formula of each rule gives what the enumeration of all random paths counts."""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, combinations
from math import prod
from typing import Any

import numpy as np
import pytest

from proofs_tests.pages.typeset import STATE, latex, symbols
from specref.algorithms.companion.companion import between, companion_acceptance
from specref.algorithms.lookahead import fixed, until_determined
from specref.algorithms.ngrams.ngrams import learning_free, trie
from specref.algorithms.text.path_kernels import Drafting, canonical
from specref.algorithms.text.push_forward import conditional_psi
from specref.algorithms.trees.k_seq import smallest_rho
from specref.algorithms.trees.transport import drafts_law
from specref.chance import Replayed, Step, Traced, enumerate_paths
from specref.models import Model
from specref.rule import Rule
from specref.rules import DRAFTS, RULES
from specref.vocabulary import Vocabulary

ABC = Vocabulary("abc")


def turning(tokens: Any, *rows: list[str]) -> Model:
    """A model whose next token depends on the context, with no probability of 0."""
    return Model(Vocabulary(tokens), lambda context: rows[(len(context) + sum(context)) % 2])


P, Q = (
    (["1/6", "1/3", "1/2"], ["1/5", "3/5", "1/5"]),
    (["1/2", "3/8", "1/8"], ["1/7", "2/7", "4/7"]),
)
PAIRS: Mapping[str, tuple[Model, Model]] = {
    "one": (turning("abc", *P), turning("abc", *Q)),
    "two": (turning("abc", *P), turning("bcx", *Q)),
    "two by text": (
        turning("ab", ["2/3", "1/3"], ["1/5", "4/5"]),
        turning(["a", "b", "ab"], *Q),
    ),
}
LOOKAHEAD = 2


@dataclass(frozen=True)
class Row:
    """A function that a formula defines, or a table that lacks what is 0."""

    of: Callable[[Any], Any]

    def __getitem__(self, key: Any) -> Any:
        return self.of(key)


def evaluated(formula: str, known: Mapping[str, Any], state: dict[str, Any]) -> None:
    """Run the lines of a formula at one position."""
    names = dict(known) | state | {"prod": prod, "subsets": subsets}
    for line in ast.parse(formula).body:
        assert isinstance(line, ast.Assign)
        (target,), value = line.targets, compile(ast.Expression(line.value), "formula", "eval")
        if isinstance(target, ast.Subscript):
            name, argument = ast.unparse(target.value), ast.unparse(target.slice)
            names[name] = Row(
                lambda key, value=value, argument=argument: eval(value, names | {argument: key})
            )
        else:
            names[ast.unparse(target)] = eval(value, names)
    state.update({name: names[name] for name in STATE})


def subsets(of: frozenset[str]) -> Iterator[frozenset[str]]:
    return map(frozenset, chain.from_iterable(combinations(of, n) for n in range(len(of) + 1)))


def table(model: Model, context: tuple[int, ...]) -> Row:
    law = dict(zip(model.vocabulary.tokens, model.next_token(context), strict=True))
    return Row(lambda token: law.get(token, Fraction(0)))


def by_position(rule: Rule, drafts: Mapping[str, int]) -> Iterator[Mapping[str, Any]]:
    """What the formula reads at each position, where the drafts before it were accepted."""
    target, drafter = PAIRS[rule.vocabularies]
    whole = {
        "T": frozenset(target.vocabulary.tokens),
        "D": frozenset(drafter.vocabulary.tokens),
        "V": frozenset(target.vocabulary.tokens),
        "p": table(target, ()),
        "q": table(drafter, ()),
    }
    if rule.tree:
        yield whole | of_tree(target, drafter, drafts)
    elif rule.by_text:
        yield from of_text(target, drafter, tuple(drafts.values()))
    elif rule.name == "ngrams":
        proposed = trie(learning_free(drafter, LOOKAHEAD)((), LOOKAHEAD))
        yield whole | {"S": [ABC.tokens[token] for token in proposed]}
    elif not rule.draws_from_q:
        yield whole | of_siblings(target, drafter, tuple(drafts.values()))
    else:
        shared = {token: id_ for id_, token in enumerate(target.vocabulary.tokens)}
        context: tuple[int, ...] = ()
        seen: tuple[int, ...] = ()
        for id_ in drafts.values():
            # TLI numbers its drafts as the target does.
            letter = (target if rule.restricts else drafter).vocabulary.tokens[id_]
            p, q = table(target, context), table(drafter, seen)
            yield whole | {"p": p, "q": q, "x": letter, "F": passed(target, drafter, seen)}
            if letter not in shared:
                return
            context = (*context, shared[letter])
            seen = (*seen, drafter.vocabulary.tokens.index(letter))


def passed(target: Model, drafter: Model, context: tuple[int, ...]) -> set[str]:
    """What the companion for proofs lets through: an estimate of 3/4 or more."""
    if target.vocabulary.tokens != drafter.vocabulary.tokens:
        return set()
    q, c = drafter.next_token(context), between(target, drafter).next_token(context)
    return {x for i, x in enumerate(ABC.tokens) if 4 * companion_acceptance(q, c, i) >= 3}


def named(ids: tuple[int, ...]) -> frozenset[str]:
    return frozenset(ABC.tokens[id_] for id_ in ids)


def of_siblings(target: Model, drafter: Model, ids: tuple[int, ...]) -> Mapping[str, Any]:
    p, q = target.next_token(()), drafter.next_token(())
    letters = [ABC.tokens[id_] for id_ in ids]
    all_in = drafts_law(q, DRAFTS, replacement=False)
    return {
        "S": letters,
        **{f"x_{place}": letter for place, letter in enumerate(letters, 1)},
        "h": ABC.tokens[int(np.argmax(q))],
        "rho": smallest_rho(p, q, DRAFTS),
        "Q": Row(lambda within: sum(all_in[ids] for ids in all_in if named(ids) <= within)),
    }


def of_tree(target: Model, drafter: Model, drafts: Mapping[str, int]) -> Mapping[str, Any]:
    known: dict[str, Any] = {}
    for place in range(DRAFTS):
        above, below = drafts[f"draft[{place}]"], drafts[f"draft[{place}][0]"]
        known |= {
            f"x_{place + 1}": ABC.tokens[above],
            f"y_{place + 1}": ABC.tokens[below],
            f"p_{place + 1}": table(target, (above,)),
            f"q_{place + 1}": table(drafter, (above,)),
        }
    return known


def of_text(target: Model, drafter: Model, path: tuple[int, ...]) -> Iterator[Mapping[str, Any]]:
    mine, theirs = target.vocabulary, drafter.vocabulary
    tokens = mine.encode(theirs.decode(path))
    psi = conditional_psi(mine, drafter, (), LOOKAHEAD, fixed)
    drafting = Drafting(mine, drafter, (), until_determined(mine, theirs, LOOKAHEAD))
    kernel = canonical(drafting)
    for k, token in enumerate(tokens):
        read = psi.get(tokens[:k], np.zeros(len(mine)))
        yield {
            "p": table(target, tokens[:k]),
            "psi": Row(dict(zip(mine.tokens, read, strict=True)).__getitem__),
            "kappa": Row(lambda key: kernel(mine.tokens.index(key[1])).get(key[0], 0)),
            "Q": Row(drafting.weight),
            "d": path,
            "x": mine.tokens[token],
        }


def accepted(rule: Rule, block: tuple[int, ...], steps: list[Step]) -> int:
    """How many draft tokens were; greedy-block emits what it owes after them."""
    owed = sum(step.site == "modified" for step in steps)
    return len(block) - 1 - owed


def counted(rule: Rule, formula: str) -> Iterator[tuple[Fraction, Fraction]]:
    """P(so many draft tokens or more are accepted): by the formula, and by all random paths."""
    target, drafter = PAIRS[rule.vocabularies]
    lookahead = LOOKAHEAD if rule.draws_from_q or rule.tree else 1
    at_least: dict[int, list[Fraction]] = {}
    program = lambda chance: rule.step(target, drafter, (), lookahead, chance)  # noqa: E731
    for path in enumerate_paths(program):
        trace = Traced(Replayed(path.choices))
        block = program(trace)
        drafts = {s.site: s.choice for s in trace.steps if s.site.startswith("draft")}
        state: dict[str, Any] = {"A": Fraction(1), "W": Fraction(1)}
        count = accepted(rule, block, trace.steps)
        first = LOOKAHEAD if rule.tree else 1  # of a tree, whole branches
        told = {}
        for place, known in enumerate(by_position(rule, drafts), first):
            evaluated(formula, known, state)
            told[place] = state["A"]
        for place in range(first, first + max(len(told), 1)):
            sums = at_least.setdefault(place, [Fraction(0), Fraction(0)])
            sums[0] += path.weight * told.get(place, 0)
            sums[1] += path.weight * (count >= place)
    yield from ((by_formula, by_paths) for by_formula, by_paths in at_least.values())


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_formula_gives_what_all_paths_count(rule: Rule) -> None:
    both = list(counted(rule, rule.formula))
    assert [one for one, _ in both] == [other for _, other in both]
    assert both
    lines = latex(rule.formula)
    assert len(lines) == len(rule.formula.splitlines())
    assert symbols(rule.formula) or rule.name == "autoregressive"


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("standard", "min(1, p[x] / q[x])", "p[x]"),
        ("block", "min(1, A * p[x] / q[x])", "A * min(1, p[x] / q[x])"),
        ("greedy-block", "min(1, W)", "min(1, A * p[x] / q[x])"),
        ("traversal", "min(1, a_1 * p_1[y_1] / q_1[y_1])", "a_1 * min(1, p_1[y_1] / q_1[y_1])"),
        ("optimal", "max(Q[H]", "max(0 * Q[H]"),
    ],
)
def test_a_wrong_formula_is_noticed(name: str, right: str, wrong: str) -> None:
    rule = replace(RULES[name], formula=RULES[name].formula.replace(right, wrong))
    assert rule.formula != RULES[name].formula
    assert any(one != other for one, other in counted(rule, rule.formula))
