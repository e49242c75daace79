"""What the paper asks of two vocabularies, on a real pair.

Run as ``python -m specref.contrib.real_models.vocabularies [TARGET DRAFTER]``, on the published
pair or on two folders. Timor et al. 2025 count tokens in common (Table 10) and decompositions
(Appendix D), and compare methods by the share of drafts that they accept.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from specref.contrib.real_models.generating import PROMPTS, Generator
from specref.contrib.real_models.loading import Loaded
from specref.contrib.real_models.pairs import PAIRS, Pair, Published, folders_pair, ids_of
from specref.contrib.real_models.settings import Setting
from specref.contrib.vocabularies.tokenisers import probing_texts, round_trip
from specref.contrib.vocabularies.vocabulary import RealVocabulary, Token, overlap
from specref.report.machine import check_destination, write_json
from specref.theory.acceptance import expected_tokens
from specref.theory.counting import spellings
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary, id_map

PERCENTILES = 50, 90, 99
EVERY = 3
"""Contexts are the starts of a text after so many words each."""
LOOKAHEADS = range(1, 6)
BATCH, LENGTH = 4, 16


@dataclass(frozen=True)
class Mean:
    """A mean over rows, with the standard error that independent rows would have."""

    mean: float
    error: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Mean":
        """Of at least two values."""
        array = np.array(values)
        return cls(float(array.mean()), float(array.std(ddof=1) / math.sqrt(len(array))))


def real_vocabulary(name: str, read: TokenVocabulary) -> RealVocabulary:
    """The ids of a tokenizer that have a string."""
    pairs = zip(read.strings, read.spelled, strict=True)
    named = {i: Token(string, data) for i, (string, data) in enumerate(pairs) if string}
    return RealVocabulary(name, named)


def decompositions(target: RealVocabulary, drafter: RealVocabulary) -> dict[str, Any]:
    """How the drafter's tokens spell those of the target, by bytes.

    A token that they do not spell is never proposed by SLEM or SLRS: its psi is 0. Forwards are
    the contexts at which the drafter's law is needed for the psi of one token.
    """
    pieces, texts = drafter.by_bytes(merge=True), list(dict.fromkeys(target.spelled))
    found = [spellings(text, pieces) for text in texts]
    counts = [one.count for one in found if one.count]
    forwards = [one.forwards for one in found if one.count]
    return {
        "tokens": len(texts),
        "expressible": len(counts),
        "for example not": [repr(t) for t, one in zip(texts, found, strict=True) if not one.count][
            :3
        ],
        "decompositions": _percentiles(counts),
        "forwards": _percentiles(forwards),
    }


def _percentiles(values: Sequence[int]) -> dict[str, int]:
    ordered = sorted(values)
    named = {f"{p} %": ordered[(len(ordered) - 1) * p // 100] for p in PERCENTILES}
    return named | {"most": ordered[-1]}


def returned(loaded: Loaded, texts: Sequence[str]) -> dict[str, Any]:
    """Round trips of texts through a tokenizer, without special tokens."""
    tokenizer = loaded.tokenizer
    found = round_trip(
        lambda text: tokenizer.encode(text, add_special_tokens=False),
        lambda ids: str(tokenizer.decode(ids, clean_up_tokenization_spaces=False)),
        texts,
    )
    return asdict(found)


def contexts_of(texts: Sequence[str]) -> list[str]:
    """Starts of texts, each some words longer than the one before."""
    found = []
    for text in texts:
        words = text.split(" ")
        found += [" ".join(words[:end]) for end in range(EVERY, len(words), EVERY)]
    return found


def rows(pair: Pair, contexts: Sequence[str]) -> dict[str, Any]:
    """Accepted mass of union and TLI on both models' laws after each context.

    Union accepts sum min(p, q) over common tokens; TLI the same with q given that the draft is
    common, which is nowhere less.
    """
    read = [
        TokenVocabulary.from_tokenizer(one.tokenizer, ids_of(one))
        for one in (pair.target, pair.drafter)
    ]
    ids = id_map(read[0], read[1])
    outside, union, tli = [], [], []
    for context in contexts:
        p, q = (_law(one, context) for one in (pair.target, pair.drafter))
        mapped = torch.zeros_like(p).index_add_(0, ids[ids >= 0], q[ids >= 0])
        inside = float(mapped.sum())
        outside.append(1 - inside)
        union.append(float(torch.minimum(p, mapped).sum()))
        tli.append(float(torch.minimum(p, mapped / inside).sum()))
    gains = [b - a for a, b in zip(union, tli, strict=True)]
    return {
        "rows": len(contexts),
        "drafted outside": asdict(Mean.of(outside)),
        "most outside": max(outside),
        "union": asdict(Mean.of(union)),
        "tli": asdict(Mean.of(tli)),
        "tli less union": asdict(Mean.of(gains)),
        "least gain": min(gains),
    }


@torch.inference_mode()
def _law(loaded: Loaded, context: str) -> torch.Tensor:
    ids = torch.tensor([loaded.tokenizer.encode(context)], device=loaded.model.device)
    logits = loaded.model(input_ids=ids, use_cache=False, logits_to_keep=1).logits[0, -1]
    law: torch.Tensor = logits.double().softmax(-1).cpu()
    return law


def lookaheads(pair: Pair, acceptance: float, method: str = "tli") -> list[dict[str, float]]:
    """Tokens a second of this process at each lookahead, and by the formula.

    The formula is Leviathan et al. 2023, Theorem 3.8: tokens per iteration by the acceptance of
    the rows, over lookahead times cost + 1; the cost of a drafter's pass is measured, too. Seconds
    are those of the process, so that others on the machine weigh less.
    """
    back = Pair("", pair.drafter, pair.target, ("autoregressive",))
    plain, drafting = (_pace(Generator(one, "autoregressive", Setting())) for one in (pair, back))
    cost = plain / drafting
    found = [{"lookahead": 0.0, "measured": plain, "formula": plain}]
    for lookahead in LOOKAHEADS:
        tokens = float(expected_tokens(acceptance, lookahead))
        measured = _pace(Generator(pair, method, Setting(), lookahead))
        formula = plain * tokens / (lookahead * cost + 1)
        found.append({"lookahead": float(lookahead), "measured": measured, "formula": formula})
    return found


def _pace(generator: Generator) -> float:
    ids = [generator.pair.target.tokenizer.encode(prompt) for prompt in PROMPTS[:BATCH]]
    generator(ids, range(BATCH), 2)  # what is built once is not counted
    started = time.process_time()
    made = generator(ids, range(BATCH), LENGTH)
    return made.generation.emitted / (time.process_time() - started)


def questions(pair: Pair, texts: Sequence[str], said: Callable[[str, Any], None]) -> None:
    """Answer each, and say it."""
    loaded = pair.target, pair.drafter
    names = [one.name for one in loaded]
    real = [
        real_vocabulary(one.name, TokenVocabulary.from_tokenizer(one.tokenizer, ids_of(one)))
        for one in loaded
    ]
    said("sizes", {one.name: len(one) for one in real})
    common = overlap(*real)
    shares = {"share": float(common.share_of_strings)}
    shares["share by bytes"] = float(common.share_of_spellings)
    said("overlap", asdict(common) | shares)
    said(f"{names[0]} in tokens of {names[1]}", decompositions(*real))
    for one in loaded:
        said(f"round trips of {one.name}", returned(one, texts))
    found = rows(pair, contexts_of(PROMPTS))
    said("rows", found)
    said("lookahead", lookaheads(pair, found["tli"]["mean"]))


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", metavar="TARGET DRAFTER")
    parser.add_argument("--pair", default="gemma<-smollm2", help="a published pair")
    parser.add_argument("--texts", type=Path, metavar="FILE", help="lines for round trips, too")
    parser.add_argument("--record", type=Path, metavar="FILE", help="JSON of what is printed")
    given = parser.parse_args(arguments)
    answers: dict[str, Any] = {}

    def said(name: str, value: Any) -> None:
        answers[name] = value
        print(f"{name}: {json.dumps(_rounded(value), ensure_ascii=False)}", flush=True)

    try:
        if len(given.folders) not in (0, 2):
            raise ValueError(f"{len(given.folders)} folders: expected a target and a draft model")
        if given.pair not in PAIRS:
            raise ValueError(f"--pair {given.pair}: expected one of {', '.join(PAIRS)}")
        if given.record:
            check_destination(str(given.record))
        lines = _lines(given.texts) if given.texts else []
        if given.folders:
            target, drafter = given.folders
            pair = folders_pair(target, drafter, "cpu", "float32")
            for doubt in filter(None, (pair.target.doubt, pair.drafter.doubt)):
                print(doubt, file=sys.stderr)
        else:
            pair = Published().pair(given.pair)
        texts = dict.fromkeys(filter(None, (*PROMPTS, *probing_texts(), *lines)))
        questions(pair, list(texts), said)
    except (ImportError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if given.record:
        write_json(str(given.record), json.dumps(answers, indent=1, ensure_ascii=False))
    return 0


def _lines(texts: Path) -> list[str]:
    try:
        return texts.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--texts {texts}: expected a text file in UTF-8 ({error})") from error


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, Mapping):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
