"""Learning-free drafting: tokens per call over k and w, by strategy and by rank.

Exact match emits the target's own text whatever is drafted, so a text is all that a
measurement needs: greedy or sampled, from any model. Here the target is a word model of
docstrings of the standard library, and the bigram tables are its own.

Run: python -m proofs_tests.benchmarks.ngrams
"""

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import takewhile

import numpy as np

from specref import Model, Sampled, Vocabulary
from specref.algorithms import autoregressive
from specref.algorithms.decoding import decode
from specref.algorithms.ngrams.drafts import Propose, context_drafts, ranked, table_drafts
from specref.algorithms.ngrams.ngrams import Trie, trie
from specref.algorithms.ngrams.tables import bigram_rows, bigrams, extended
from specref.distributions import with_temperature
from specref.vocabulary import Tokens

MODULES = ("csv", "difflib", "functools", "heapq", "json", "statistics")
DRAFTS, LOOKAHEADS = (1, 2, 5, 10), (1, 2, 4, 8)
PROMPT, LENGTH, SEEDS = 40, 160, range(3)
WEIGHTS = (0.05, 0.25, 0.7)
Strategies = Mapping[str, Propose]


@dataclass(frozen=True)
class Call:
    """One call of the target: how many tokens of the text it emitted, and what it was given.

    Attributes
    ----------
    emitted, accepted, rows : int
        Tokens; draft tokens among them; drafts.
    submitted : int
        Draft tokens, where `nodes` counts equal prefixes once.
    nodes : int
    strategy, rank : str and int, or None
        Of the first draft that matched longest; None where nothing matched.
    """

    emitted: int
    accepted: int
    rows: int
    submitted: int
    nodes: int
    strategy: str | None
    rank: int | None


def measure(
    strategies: Strategies, text: Sequence[int], drafts: int, lookahead: int, prompt: int = 0
) -> list[Call]:
    """The calls that emit a text of the target with k = `drafts`, w = `lookahead`.

    The first `prompt` tokens are given. What a call emits beyond the end does not count.
    """
    tokens, calls = tuple(map(int, text)), []
    position = min(prompt, len(tokens))
    while position < len(tokens):
        rows = ranked([*strategies.values()], tokens[:position], lookahead, drafts)
        calls.append(_call([*strategies], rows, tokens[position:]))
        position += calls[-1].emitted
    return calls


def _call(names: list[str], rows: Sequence[tuple[int, Tokens]], ahead: Tokens) -> Call:
    matches = [common_prefix(draft, ahead) for _, draft in rows]
    accepted = max(matches, default=0)
    rank = matches.index(accepted) if accepted else None
    drafts = [draft for _, draft in rows]
    return Call(
        emitted=min(accepted + 1, len(ahead)),
        accepted=accepted,
        rows=len(rows),
        submitted=sum(map(len, drafts)),
        nodes=_nodes(trie(drafts)),
        strategy=None if rank is None else names[rows[rank][0]],
        rank=rank,
    )


def common_prefix(left: Tokens, right: Tokens) -> int:
    """How many tokens two sequences share from the start."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))))


def _nodes(tree: Trie) -> int:
    return sum(1 + _nodes(below) for below in tree.values())


def tokens_per_call(calls: Sequence[Call]) -> float:
    """1 + the mean number of accepted draft tokens, but for a text's cut end."""
    return sum(call.emitted for call in calls) / len(calls)


def accepted_by(calls: Iterable[Call], key: str) -> Counter[str | int]:
    """Accepted draft tokens by "strategy" or by "rank"."""
    counts: Counter[str | int] = Counter()
    for call in calls:
        if call.accepted:
            counts[getattr(call, key)] += call.accepted
    return counts


def ablation(
    strategies: Strategies, texts: Sequence[Sequence[int]], prompt: int
) -> dict[tuple[int, int], list[Call]]:
    """The calls for each k and w of the grid, over all texts."""
    return {
        (k, w): [call for text in texts for call in measure(strategies, text, k, w, prompt)]
        for k in DRAFTS
        for w in LOOKAHEADS
    }


def docstring_words() -> list[str]:
    """Words and marks of the docstrings of some modules and of what they define."""
    texts = []
    for name in MODULES:
        module = import_module(name)
        owners = [module, *(value for _, value in sorted(vars(module).items()) if callable(value))]
        texts += [inspect.getdoc(owner) or "" for owner in owners]
    return re.findall(r"\w+|[^\w\s]|\n", "\n".join(texts))


def word_model(words: Sequence[str]) -> tuple[Model, Tokens]:
    """Interpolated counts after the last two words, one, and none; and the words' ids."""
    vocabulary = Vocabulary(sorted(set(words)))
    tokens = tuple(vocabulary.ids[word] for word in words)
    counts: dict[Tokens, Counter[int]] = {}
    for end, token in enumerate(tokens):
        for order in range(min(end, 2) + 1):
            counts.setdefault(tokens[end - order : end], Counter())[token] += 1

    def next_token(context: Tokens) -> np.ndarray:
        row = np.zeros(len(vocabulary))
        for order, weight in enumerate(WEIGHTS):
            seen = counts.get(context[len(context) - order :]) if order <= len(context) else None
            for token, count in (seen or {}).items():
                row[token] += weight * count / seen.total()
        return row / row.sum()

    return Model(vocabulary, next_token), tokens


def written_by(target: Model, prompt: Tokens, seed: int) -> Tokens:
    """The prompt and the tokens that the target samples after it."""
    chance = Sampled(np.random.default_rng(seed))
    return prompt + decode(autoregressive.step, target, target, prompt, 0, LENGTH, chance)


def print_ablation(name: str, grid: Mapping[tuple[int, int], list[Call]]) -> None:
    print(f"\n{name}: tokens per call\n{'k':>4}" + "".join(f"{f'w={w}':>8}" for w in LOOKAHEADS))
    for k in DRAFTS:
        cells = (f"{tokens_per_call(grid[k, w]):>8.2f}" for w in LOOKAHEADS)
        print(f"{k:>4}" + "".join(cells))


def print_shares(name: str, calls: Sequence[Call]) -> None:
    accepted = sum(call.accepted for call in calls)
    submitted, nodes = (sum(getattr(c, key) for c in calls) for key in ("submitted", "nodes"))
    print(f"\n{name}: {len(calls)} calls, {accepted} draft tokens accepted of {nodes} trie nodes")
    print(f"  submitted twice: {1 - nodes / submitted:.1%}")
    for key in ("strategy", "rank"):
        shares = accepted_by(calls, key).most_common()
        print(f"  by {key}: " + ", ".join(f"{of} {n / accepted:.1%}" for of, n in shares))


def main() -> None:
    target, words = word_model(docstring_words())
    greedy = Model(target.vocabulary, lambda x: with_temperature(target.next_token(x), 0))
    table = extended(bigrams(bigram_rows(target), max(DRAFTS)), max(LOOKAHEADS))
    strategies = {"context": context_drafts(1), "bigram": table_drafts(table)}
    starts = [seed * len(words) // len(SEEDS) for seed in SEEDS]
    prompts = [words[start : start + PROMPT] for start in starts]
    print(f"{len(words)} words, {len(target.vocabulary)} different; {len(prompts)} texts", end=" ")
    print(f"of {PROMPT} + {LENGTH} words")
    for name, writer in (("sampled", target), ("greedy", greedy)):
        texts = [written_by(writer, prompt, seed) for seed, prompt in enumerate(prompts)]
        grid = ablation(strategies, texts, PROMPT)
        print_ablation(f"{name}, mixed", grid)
        print_shares(
            f"{name}, k = {DRAFTS[-2]}, w = {LOOKAHEADS[2]}", grid[DRAFTS[-2], LOOKAHEADS[2]]
        )
        for only, strategy in strategies.items():
            print_ablation(f"{name}, {only} only", ablation({only: strategy}, texts, PROMPT))


if __name__ == "__main__":
    main()
