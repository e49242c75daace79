"""What two papers measure, on the published pair: a companion's information, and n-gram drafts.

Kim et al. 2025 (section 4.2, Table 2): target Gemma 3 270M, drafter the same weights in 3 bits,
companion SmolLM2 135M, read over Gemma's tokens by bytes. Stewart et al. 2024 (Table 1): drafts
of the context and extended bigrams of Gemma itself. And what the pair accepts by temperature.

    SPECREF_MODELS=FOLDER python -m proofs_tests.benchmarks.real_pair   # 8 minutes of one core

Each part is written to docs/records/real_pair.json when it is done.
"""

import argparse
import json
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from proofs_tests.benchmarks.ngrams import measure, tokens_per_call
from proofs_tests.pages.console_blocks import ROOT
from specref.algorithms.ngrams.drafts import Propose, context_drafts
from specref.arrays import Floats
from specref.contrib.real_models.drafters import rounded
from specref.contrib.real_models.generating import Generator
from specref.contrib.real_models.loading import Loaded
from specref.contrib.real_models.pairs import BITS, Pair, Published, ids_of
from specref.contrib.real_models.prompts import PROMPTS
from specref.contrib.real_models.settings import Setting
from specref.contrib.speed.companion_table import Observation, profile
from specref.report.machine import write_json
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary, id_map
from specref.vocabulary import Tokens

RECORD = ROOT / "docs" / "records" / "real_pair.json"
LENGTH, BATCH = 32, 4
DRAFTS = 4
"""Drawn after each place, so that a bin has more to average."""
BINS = 2, 4, 8, 27
"""Of each signal, at most; the paper's adaptive bins are 27 of each."""
TEMPERATURES = 0.0, 0.25, 0.5, 0.75, 1.0
ROWS, WIDTHS = (1, 5, 10), (1, 2, 4)
SEED = 1
Said = Callable[[str, Any], None]


def texts(target: Loaded, temperature: float) -> list[tuple[list[int], list[int]]]:
    """(prompt, what the target goes on with) for each prompt."""
    generator = Generator(Pair("", target, target, ()), "autoregressive", Setting(temperature))
    ids = [target.tokenizer.encode(prompt) for prompt in PROMPTS]
    made: list[tuple[list[int], list[int]]] = []
    for start in range(0, len(ids), BATCH):
        batch = ids[start : start + BATCH]
        seeds = range(start, start + len(batch))
        found = generator(batch, seeds, LENGTH).generation.tokens
        made += [(prompt, list(text)) for prompt, text in zip(batch, found, strict=True)]
    return made


@torch.inference_mode()
def laws(loaded: Loaded, ids: Sequence[int], last: int) -> Floats:
    """The laws of the next token after each of the last contexts, in float64."""
    tokens = torch.tensor([list(ids)])
    logits = loaded.model(input_ids=tokens, use_cache=False, logits_to_keep=last).logits[0]
    return np.asarray(logits.double().softmax(-1))


class Companion:
    """Another model's law over the target's tokens; what it gives to others is left out."""

    def __init__(self, target: Loaded, companion: Loaded) -> None:
        read = TokenVocabulary.from_tokenizer
        self.target, self.companion = target, companion
        own, other = (read(one.tokenizer, ids_of(one)) for one in (target, companion))
        ids = id_map(own, other).numpy()
        self.shared, self.ids, self.size = ids >= 0, ids[ids >= 0], ids_of(target)

    def __call__(self, context: Sequence[int]) -> Floats:
        text = self.target.tokenizer.decode(context, skip_special_tokens=True)
        law = laws(self.companion, self.companion.tokenizer.encode(text), 1)[0]
        over = np.zeros(self.size)
        np.add.at(over, self.ids, law[self.shared])
        return over


Place = tuple[int, Floats, Floats, Floats]
"""Which text, and the laws of target, drafter and companion."""


def places(pair: tuple[Loaded, Loaded], companion: Companion) -> Iterator[Place]:
    """Each place of each sampled text."""
    for number, (prompt, text) in enumerate(texts(pair[0], 1.0)):
        whole = prompt + text[:-1]
        p, q = (laws(one, whole, len(text)) for one in pair)
        for at in range(len(text)):
            yield number, p[at], q[at], companion(whole[: len(prompt) + at])


def overlap(p: Floats, q: Floats) -> float:
    """Sum min(p, q): what a draft of q is accepted with."""
    return float(np.minimum(p, q).sum())


def tempered(law: Floats, temperature: float) -> Floats:
    """A law at a temperature; at 0 all of it is on the first of the likeliest tokens."""
    if temperature == 0:
        return np.asarray(np.arange(len(law)) == law.argmax(), float)
    weights = law ** (1 / temperature)
    return np.asarray(weights / weights.sum())


def companions(pair: Pair, said: Said) -> None:
    """S against acceptance, what S and A tell of the verdict, and acceptance by temperature."""
    target = pair.target
    drafter = Loaded(f"its weights in {BITS} bits", rounded(target.model, BITS), target.tokenizer)
    draw = np.random.default_rng(SEED)
    similar, accepted, owner, seen = [], [], [], list[Observation]()
    warm: dict[float, list[float]] = {t: [] for t in TEMPERATURES}
    for number, p, q, c in places((target, drafter), Companion(target, pair.drafter)):
        similar.append(overlap(q, c))
        accepted.append(overlap(p, q))
        for token in draw.choice(len(q), DRAFTS, p=q / q.sum()):
            verdict = int(draw.random() < min(1.0, p[token] / q[token]))
            at_most_one = min(1.0, similar[-1])  # rounding
            seen.append(Observation(at_most_one, min(1.0, c[token] / q[token]), verdict))
            owner.append(number)
        for temperature, values in warm.items():
            common = tempered(c / c.sum(), temperature)  # TLI's drafts
            values.append(overlap(tempered(p, temperature), common))
    said("places", {"texts": len(PROMPTS), "places": len(similar), "drafts": len(seen)})
    said("correlation of S with acceptance", float(np.corrcoef(similar, accepted)[0, 1]))
    said("accepted", {"mean": float(np.mean(accepted)), "S": float(np.mean(similar))})
    said("information", [told(seen, owner, bins) for bins in signals()])
    said("TLI by temperature", {str(t): float(np.mean(values)) for t, values in warm.items()})


def signals() -> list[tuple[int, int]]:
    """(bins of S, bins of A), where one bin leaves a signal out."""
    return [pair for bins in BINS for pair in ((bins, 1), (1, bins), (bins, bins))]


def told(seen: Sequence[Observation], owner: Sequence[int], bins: tuple[int, int]) -> Any:
    """The plug-in estimate, the same of shuffled verdicts, and what is left on other texts."""
    verdicts = [one.accepted for one in seen]
    random.Random(SEED).shuffle(verdicts)
    shuffled = [one._replace(accepted=v) for one, v in zip(seen, verdicts, strict=True)]
    table = profile(seen, bins)
    even, odd = (
        [one for one, text in zip(seen, owner, strict=True) if text % 2 == half] for half in (0, 1)
    )
    return {
        "bins": list(bins),
        "cells": sum(count > 0 for row in table.counts for count in row),
        "entropy": table.gain().entropy,
        "share": table.gain().share,
        "shuffled": profile(shuffled, bins).gain().share,
        "held out": (_explained(even, odd, bins) + _explained(odd, even, bins)) / 2,
    }


def _explained(
    learnt: Sequence[Observation], other: Sequence[Observation], bins: tuple[int, int]
) -> float:
    """Share of the variance of the others' verdicts that cells of what was learnt explain."""
    mean = float(sum(one.accepted for one in learnt)) / len(learnt)
    table = profile(learnt, bins, otherwise=mean)
    wrong = [one.accepted - float(table(*one[:2])) for one in other]
    return 1 - sum(x * x for x in wrong) / sum((one.accepted - mean) ** 2 for one in other)


class Bigrams:
    """The likeliest tokens after each token, each continued greedily; made when asked for.

    The paper's tables, of those tokens that texts hold: the model reads its first token, then one.
    """

    def __init__(self, target: Loaded) -> None:
        self.target, self.rows = target, dict[int, tuple[Tokens, ...]]()

    def __call__(self, context: Tokens, lookahead: int) -> tuple[Tokens, ...]:
        token = context[-1]
        if token not in self.rows:
            self.rows[token] = self._made(token)
        return tuple(row[:lookahead] for row in self.rows[token])

    @torch.inference_mode()
    def _made(self, token: int) -> tuple[Tokens, ...]:
        first = [self.target.tokenizer.bos_token_id, token]
        likely = laws(self.target, first, 1)[0].argsort()[::-1][: max(ROWS)]
        rows = torch.tensor([[*first, int(one)] for one in likely])
        for _ in range(max(WIDTHS) - 1):
            logits = self.target.model(input_ids=rows, use_cache=False, logits_to_keep=1).logits
            rows = torch.cat([rows, logits[:, -1].argmax(-1, keepdim=True)], 1)
        return tuple(map(tuple, rows[:, 2:].tolist()))


def ngrams(pair: Pair, said: Said) -> None:
    """Tokens per call on greedy texts, for each number and length of drafts."""
    target = pair.target
    context, bigrams = context_drafts(1), Bigrams(target)
    strategies: dict[str, dict[str, Propose]] = {
        "context": {"context": context},
        "extended bigram": {"bigram": bigrams},
        "mixed": {"context": context, "bigram": bigrams},
    }
    made = texts(target, 0.0)
    table = [
        {"strategy": strategy, "k": k, "w": w, "tokens per call": tokens_per_call(calls)}
        for strategy, of in strategies.items()
        for k, w in product(ROWS, WIDTHS)
        for calls in [[c for start, t in made for c in measure(of, start + t, k, w, len(start))]]
    ]
    tokens = sum(len(text) for _, text in made)
    said("n-grams, greedy", {"texts": len(made), "tokens": tokens, "table": table})


PARTS = {"ngrams": ngrams, "companions": companions}


def main() -> None:
    """Run the parts that are named, and write each when it is done."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all")
    parser.add_argument("--record", type=Path, default=RECORD, help="JSON, of which others stay")
    given = parser.parse_args()
    parts = [PARTS[name] for name in given.parts or PARTS]
    pair = Published().pair("gemma<-smollm2")

    def said(name: str, value: Any) -> None:
        file = given.record
        answers = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        answers |= {"pair": pair.name, "length": LENGTH, "seed": SEED, name: value}
        answers = json.loads(json.dumps(answers), parse_float=lambda x: round(float(x), 4))
        print(f"{name}: {answers[name]}", flush=True)
        write_json(str(file), json.dumps(answers, indent=1, ensure_ascii=False))

    for part in parts:
        part(pair, said)


if __name__ == "__main__":
    main()
