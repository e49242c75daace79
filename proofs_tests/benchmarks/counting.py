"""Counting every decomposition over Qwen2's vocabulary, beside listing them.

python -m proofs_tests.benchmarks.counting [--from PATH] [--sample 3000]

Listing is done for a sample of the tokens, or with --sample 0 for all of the 150,000 shortest, and
extrapolated in proportion to the number of decompositions, which counting gives exactly. The rest
of the vocabulary cannot be listed; what it would take at the same rate is a lower bound.
"""

import argparse
import random
import time
from collections.abc import Callable, Sequence

from specref.real_vocabularies import VocabularyNotInstalledError, load
from specref.real_vocabularies.summaries import SHORTEST
from specref.theory import decompositions, spellings
from specref.vocabulary import Text, Vocabulary

YEAR = 365.25 * 24 * 3600


def walked(text: Text, vocabulary: Vocabulary) -> int:
    """How many decompositions there are by visiting each and storing none."""
    ids, longest, last = vocabulary.ids, vocabulary.longest, len(text)
    stack, found = [0], 0
    while stack:
        start = stack.pop()
        for end in range(start + 1, min(start + longest, last) + 1):
            if text[start:end] in ids:
                if end == last:
                    found += 1
                else:
                    stack.append(end)
    return found


def timed(count: Callable[[Text], int], tokens: Sequence[Text]) -> tuple[list[int], float]:
    """The counts, and CPU seconds."""
    start = time.process_time()
    counts = [count(token) for token in tokens]
    return counts, time.process_time() - start


def all_figures(token: Text, vocabulary: Vocabulary) -> int:
    found = spellings(token, vocabulary)
    assert 0 < found.n_max <= found.forwards + 1
    return found.count


def row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="downloads", action="append", default=[])
    parser.add_argument("--sample", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        vocabulary = load("qwen2", options.downloads).by_string()
    except VocabularyNotInstalledError as error:
        raise SystemExit(f"not_run ({error})") from None
    compare(vocabulary, options.sample, options.seed)


def compare(vocabulary: Vocabulary, sample: int, seed: int) -> None:
    tokens = sorted(vocabulary.tokens, key=len)
    counts, counting = timed(lambda token: spellings(token, vocabulary).count, tokens)
    _, figures = timed(lambda token: all_figures(token, vocabulary), tokens)
    known, sequences = dict(zip(tokens, counts, strict=True)), sum(counts[:SHORTEST])
    row("CPU s", "tokens", "decompositions", "by", "ratio to counting")
    row(*["---"] * 5)
    row(f"{counting:.2f}", f"{len(tokens):,}", f"{sum(counts):.3g}", "counting", "")
    row(f"{figures:.2f}", f"{len(tokens):,}", f"{sum(counts):.3g}", "and forwards, n_max", "")
    short = tokens[:SHORTEST]
    listed = random.Random(seed).sample(short, sample) if sample else short
    for name, listing in {
        "visiting each": lambda token: walked(token, vocabulary),
        "`decompositions`": lambda token: len(decompositions(token, vocabulary)),
    }.items():
        found, seconds = timed(listing, listed)
        assert found == [known[token] for token in listed], "counting and listing disagree"
        scaled = seconds * sequences / sum(found)
        how = f"{name}, from {len(listed):,} tokens, {sum(found):,} listed in {seconds:.2f} s"
        row(f"{scaled:.1f}", f"{SHORTEST:,}", f"{sequences:,}", how, f"{scaled / counting:.0f}")
        years = seconds / sum(found) * sum(counts) / YEAR
        row(f"{years:.1g} years", f"{len(tokens):,}", f"{sum(counts):.3g}", "at that rate", "")


if __name__ == "__main__":
    main()
