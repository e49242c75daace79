"""Pairs of texts for one prompt, one of each side: what is compared."""

from dataclasses import dataclass

import numpy as np

from specref.arrays import Ints
from specref.contrib.compare.records import Texts

SPELLED = 3
"""Texts of both files that tell two tokenizers: one text may be spelled in several ways."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Text `spec[i]` of one file and `plain[i]` of the other answer one prompt.

    * `prompts`: Of each pair, as a number of `ids`.
    * `alone`: Prompts that one file has only.
    """

    spec: Ints
    plain: Ints
    prompts: Ints
    ids: list[str]
    left: tuple[int, int]
    alone: list[str]

    def __len__(self) -> int:
        return len(self.prompts)


def paired(spec: Texts, plain: Texts, seed: int = 0) -> Pairs:
    """Pair texts of one prompt at random, by a shuffle of this seed, whatever is in them.

    Files may be in any order, of length for one: if both are, texts that follow each other in
    them are no independent pairs. `ValueError` is raised if they do not go together.
    """
    if set(spec.ids).isdisjoint(plain.ids):
        raise ValueError(
            f"{spec.name} has the prompts {_some(spec.ids)}, {plain.name} has "
            f"{_some(plain.ids)}: expected prompts in common, each under one prompt_id"
        )
    _check_lengths(spec, plain)
    _check_tokenizers(spec, plain)
    ids = list(dict.fromkeys([*spec.ids, *plain.ids]))
    number = {name: index for index, name in enumerate(ids)}
    keys = []
    for side, texts in enumerate((spec, plain)):
        prompts = np.array([number[name] for name in texts.ids])[texts.prompts]
        shuffled = np.random.default_rng([seed, side]).permutation(len(prompts))
        order = shuffled[np.argsort(prompts[shuffled], kind="stable")]
        ordered = prompts[order]
        rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        # A text's prompt and its place among the texts of that prompt, as one number.
        keys.append((ordered * (len(spec) + len(plain)) + rank, order))
    common, one, other = np.intersect1d(
        keys[0][0], keys[1][0], assume_unique=True, return_indices=True
    )
    alone = sorted(set(spec.ids) ^ set(plain.ids))
    left = len(spec) - len(common), len(plain) - len(common)
    prompts = common // (len(spec) + len(plain))
    return Pairs(keys[0][1][one], keys[1][1][other], prompts, ids, left, alone)


def _check_lengths(spec: Texts, plain: Texts) -> None:
    """Raise if both sides were cut, at different numbers of tokens."""
    cut = _cut(spec), _cut(plain)
    if None not in cut and cut[0] != cut[1]:
        raise ValueError(
            f"{spec.name} is cut after {cut[0]} tokens and {plain.name} after {cut[1]}: expected "
            "one max_tokens for both, or pass --max-tokens to compare the first ones"
        )


def _cut(texts: Texts) -> int | None:
    """The number of tokens after which texts were cut, as they say or, if none says, as it seems.

    Of texts that say it at several lengths it is None: these count words, or had little room left.
    """
    ended = np.array([one == "length" for one in texts.endings])
    if any(one is not None for one in texts.endings):
        kinds = np.unique(texts.lengths[ended])
        return int(kinds[0]) if len(kinds) == 1 else None
    longest = int(texts.lengths.max())
    cut = 2 * (texts.lengths == longest).sum() > len(texts)  # few would end there by themselves
    return longest if cut else None


def _check_tokenizers(spec: Texts, plain: Texts) -> None:
    """Raise if one prompt, or each text that both files have, is of other tokens in the other."""
    for name in spec.contexts.keys() & plain.contexts.keys():
        one, other = spec.contexts[name], plain.contexts[name]
        if type(one) is type(other) and one != other:
            raise ValueError(
                f"prompt {name} is {str(one)[:60]} in {spec.name} and {str(other)[:60]} in "
                f"{plain.name}: expected one prompt, and one tokenizer"
            )
    both = [text for text in spec.spelled if text in plain.spelled]
    if len(both) >= SPELLED and all(spec.spelled[x] != plain.spelled[x] for x in both):
        ids = [list(file.spelled[both[0]][:8]) for file in (spec, plain)]
        raise ValueError(
            f"the text {both[0][:40]!r} has the tokens {ids[0]} in {spec.name} and {ids[1]} in "
            f"{plain.name}, and so has each of {len(both)}: expected one tokenizer for both"
        )


def _some(names: list[str], most: int = 3) -> str:
    more = f", … ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(name[:40] for name in names[:most]) + more
