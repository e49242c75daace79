"""``specref compare``: two files of texts, with speculation and without."""

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from rich.console import Group

from specref.cli.cluster import cores, worker_processes
from specref.cli.group import HOLDS, INTERRUPTED, MISUSED, VIOLATED, leave, progress, show
from specref.cli.options import json_option, verbosity
from specref.contrib.compare.asking import TOLERANCE, logprobs_option
from specref.report.machine import as_json, write_json
from specref.statistics.campaign.levels import ALPHA

if TYPE_CHECKING:
    from specref.contrib.compare.by_model import ByModel
    from specref.contrib.compare.checking import File, Judging
    from specref.contrib.compare.records import Encode, Texts

WORDS = "words"
"""In the place of a tokenizer."""
LARGE = 2**25
"""Bytes that take some seconds to read; unpacked ones are more."""


@click.command("compare")
@click.argument("spec", metavar="SPEC.jsonl")
@click.argument("plain", metavar="[PLAIN.jsonl]", required=False)
@click.option("--model", metavar="FOLDER", help="The target: judge SPEC by it, too.")
@click.option(
    "--temperature",
    default=1.0,
    show_default=True,
    help="What the texts were sampled at, for --model and log-probabilities.",
)
@click.option(
    "--top-k", type=click.IntRange(min=1), help="Top-k filter of the texts, for the same."
)
@click.option("--top-p", type=float, help="Top-p filter of the texts, for the same.")
@click.option("--time-limit", type=float, help="Seconds for --model; then the rest is not read.")
@click.option("--device", default="cpu", show_default=True, help="Where --model runs.")
@click.option(
    "--alpha", default=ALPHA, show_default=True, help="False-positive rate, of all tests together."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the shuffle that pairs texts.",
)
@click.option(
    "--within", default=0.05, show_default=True, help="The total variation to be excluded."
)
@click.option("--max-tokens", type=click.IntRange(min=1), help="Compare so many first tokens.")
@click.option(
    "--vocab-size", type=click.IntRange(min=1), help="Refuse token ids from this number on."
)
@click.option(
    "--tokenizer", metavar="FOLDER|words", help="For records with text alone; words needs none."
)
@click.option(
    "--logprob-tolerance",
    default=TOLERANCE,
    show_default=True,
    help="Nats between two reports of one value.",
)
@logprobs_option
@verbosity
@json_option
def compare_command(
    spec: str,
    plain: str | None,
    model: str | None,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    time_limit: float | None,
    device: str,
    alpha: float,
    seed: int,
    within: float,
    max_tokens: int | None,
    vocab_size: int | None,
    tokenizer: str | None,
    logprob_tolerance: float,
    logprobs: str | None,
    verbose: bool,
    quiet: bool,
    json_file: str | None,
) -> NoReturn:
    """Compare sequences of a system with and without speculation.

    Each line of a file is {"prompt_id": "a", "token_ids": [1, 2]}; "logprobs", one for each
    token, "finish_reason" and "seed" are used where they are there. Files may be gzipped; - is
    standard input. The distribution need not be known. Many prompts are judged together.

    With --model one file is enough: its records then need "prompt_token_ids" or "prompt". Every
    token is judged by a pass of that model over its text, under the declared settings.

    Texts are to be independent draws: one seed for all prompts is not enough. Every text that was
    drawn has to be in its file, and their number must not depend on what is in them. 100,000
    texts take seconds; a model takes as long as it reads, or --time-limit.

    Exit codes: 0 no difference, and none above --within (by a model: nothing, and temperature
    0.8 or 1.25 would have been found); 1 lossy, or log-probabilities that differ; 2
    inconclusive, or misuse.

    \b
    Examples:
      specref compare spec.jsonl plain.jsonl
      specref compare spec.jsonl.gz plain.jsonl.gz --max-tokens 16
      specref compare spec.jsonl --model ./my-model --temperature 0.7
    """
    from specref.contrib.compare.checking import Judging, judged
    from specref.contrib.compare.records import STDIN
    from specref.contrib.compare.report import checked_report, model_record, model_report
    from specref.contrib.real_models.settings import Setting

    if plain is None and model is None:
        raise ValueError("PLAIN.jsonl is missing: expected it, or --model FOLDER")
    if spec == plain == STDIN:
        raise ValueError("both files are -: expected one of them on standard input")
    if plain is not None and _is_file(spec, plain) and Path(spec).samefile(plain):
        raise ValueError(f"{spec} and {plain} are one file: expected texts of two systems")
    for name, value, right, expected in (
        ("--temperature", temperature, 0 <= temperature < math.inf, "a finite number, at least 0"),
        ("--top-p", top_p, top_p is None or 0 < top_p <= 1, "a number in (0, 1]"),
        ("--logprob-tolerance", logprob_tolerance, logprob_tolerance >= 0, "at least 0"),
    ):
        if not right:
            raise ValueError(f"{name} {value}: expected {expected}")
    encode = None if tokenizer is None else _encoder(tokenizer)
    setting = Setting(temperature, top_k, top_p)
    alpha /= 2 if plain is not None and model is not None else 1  # two verdicts share it
    judging = Judging(alpha, within, logprob_tolerance, seed, setting, logprobs)
    paths = [path for path in (spec, plain) if path is not None]
    files = _read(paths, judging, vocab_size, encode)
    if max_tokens is not None:
        files = [replace(one, texts=one.texts.cut(max_tokens)) for one in files]
    codes, parts, heads = set(), [], []
    records: dict[str, Any] = {}
    if len(files) == 2:
        found = judged(files[0], files[1], judging)
        parts.append(checked_report(found, verbose))
        records |= found.record()
        heads.append(found.head)
        codes.add(found.exit_code)
    if model is not None:
        by_model = _by_model(files[0].texts, model, device, judging, time_limit or math.inf)
        parts.append(model_report(by_model, spec))
        records |= {"by_model": model_record(by_model)}
        heads.append(by_model.head)
        lossy = by_model.report.lossy
        codes.add(VIOLATED if lossy else HOLDS if by_model.decides else MISUSED)
        codes |= {INTERRUPTED} if by_model.interrupted else set()
    if quiet:
        click.echo("\n".join(heads))
    else:
        show(Group(*parts), json_file)
    if json_file:
        write_json(json_file, as_json(records))
    leave(VIOLATED if VIOLATED in codes else max(codes))


def _read(
    paths: list[str], judging: "Judging", vocabulary: int | None, encode: "Encode | None"
) -> "list[File]":
    """The files; the second of two large ones in a process of its own."""
    from specref.contrib.compare.checking import read_file

    first, *rest = paths
    apart = rest and encode is None and all(map(_is_large, paths))
    with worker_processes(min(cores(), 2) if apart else 1) as pool:
        if pool is None:
            return [read_file(path, judging, vocabulary, encode) for path in paths]
        second = pool.submit(read_file, rest[0], judging, vocabulary)
        return [read_file(first, judging, vocabulary), second.result()]


def _is_file(*paths: str) -> bool:
    """Whether these are files, not standard input or pipes."""
    return all(Path(path).is_file() for path in paths)


def _is_large(path: str) -> bool:
    """Whether reading takes longer than starting a process."""
    return _is_file(path) and Path(path).stat().st_size >= LARGE


def _by_model(
    texts: "Texts", folder: str, device: str, judging: "Judging", seconds: float
) -> "ByModel":
    from specref.contrib.compare.by_model import judge_by_model
    from specref.contrib.engines.calling_generate import errors_only
    from specref.contrib.real_models.loading import load

    with errors_only():
        reads = any(isinstance(context, str) for context in texts.contexts.values())
        loaded = load(folder, "model", device, reads=reads)
    with progress(len(texts.tokens), "tokens") as advance:
        return judge_by_model(
            texts, loaded, judging.setting, judging.alpha, judging.tolerance, advance, seconds
        )


def _encoder(folder: str) -> Any:
    """From a text to ids by a tokenizer of a local folder, or by its words."""
    if folder == WORDS:
        from specref.contrib.compare.answers import numbers_of

        return numbers_of
    from transformers import AutoTokenizer

    if not Path(folder).is_dir():
        raise ValueError(
            f"--tokenizer {folder}: expected a folder with a tokenizer, or {WORDS}, which "
            "compares texts word by word"
        )
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (ValueError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"--tokenizer {folder}: it has no tokenizer.json: {reason}") from None
    return lambda text: tokenizer.encode(text, add_special_tokens=False)
