"""``specref compare``: two files of texts, with speculation and without."""

from pathlib import Path
from typing import Any, NoReturn

import click

from specref.cli.group import HOLDS, MISUSED, VIOLATED, json_option, leave, show, verbosity
from specref.report.machine import as_json, write_json
from specref.statistics.campaign.levels import ALPHA
from specref.statistics.campaign.verdict import Verdict

CODES = {
    Verdict.LOSSY: VIOLATED,
    Verdict.LOSSLESS_WITHIN_EPS: HOLDS,
    Verdict.INCONCLUSIVE: MISUSED,
}


@click.command("compare")
@click.argument("spec", metavar="SPEC.jsonl")
@click.argument("plain", metavar="PLAIN.jsonl")
@click.option("--alpha", default=ALPHA, show_default=True, help="Of a false LOSSY.")
@click.option(
    "--within", default=0.05, show_default=True, help="The total variation to be excluded."
)
@click.option("--max-tokens", type=click.IntRange(min=1), help="Compare so many first tokens.")
@click.option("--vocab-size", type=click.IntRange(min=1), help="Refuse ids from here on.")
@click.option("--tokenizer", metavar="FOLDER", help="For records with text instead of ids.")
@click.option(
    "--logprob-tolerance",
    default=0.125,
    show_default=True,
    help="Nats between two reports of one value.",
)
@verbosity
@json_option
def compare_command(
    spec: str,
    plain: str,
    alpha: float,
    within: float,
    max_tokens: int | None,
    vocab_size: int | None,
    tokenizer: str | None,
    logprob_tolerance: float,
    verbose: bool,
    quiet: bool,
    json_file: str | None,
) -> NoReturn:
    """Compare texts of a system with speculation with texts of the same system without.

    Each line of a file is {"prompt_id": "a", "token_ids": [1, 2]}; "logprobs", one for each
    token, "finish_reason" and "seed" are used where they are there. Files may be gzipped; - is
    standard input. The distribution need not be known. Many prompts are judged together.

    Every text that was drawn has to be in its file, and their number must not depend on what is
    in them. 100,000 texts take seconds.

    Exit codes: 0 no difference, and none above --within; 1 lossy, or log-probabilities that
    differ; 2 inconclusive, or misuse.

    \b
    Examples:
      specref compare spec.jsonl plain.jsonl
      specref compare spec.jsonl.gz plain.jsonl.gz --max-tokens 16
    """
    from specref.contrib.compare.judging import compare
    from specref.contrib.compare.logprobs import agreement
    from specref.contrib.compare.records import STDIN, read_texts
    from specref.contrib.compare.report import (
        HEADS,
        comparison_record,
        comparison_report,
    )

    if spec == plain == STDIN:
        raise ValueError("both files are -: expected one of them on standard input")
    encode = None if tokenizer is None else _encoder(tokenizer)
    one, other = (read_texts(path, vocab_size, encode) for path in (spec, plain))
    if max_tokens is not None:
        one, other = one.cut(max_tokens), other.cut(max_tokens)
    found, agreed = compare(one, other, alpha, within), agreement(one, other, logprob_tolerance)
    if quiet:
        click.echo(HEADS[found.verdict].format(*found.names, within=found.within))
    else:
        show(comparison_report(found, agreed, verbose), json_file)
    if json_file:
        write_json(json_file, as_json(comparison_record(found, agreed)))
    leave(VIOLATED if agreed is not None and not agreed.agree else CODES[found.verdict])


def _encoder(folder: str) -> Any:
    """From a text to ids by a tokenizer of a local folder."""
    from transformers import AutoTokenizer

    if not Path(folder).is_dir():
        raise ValueError(f"--tokenizer {folder}: expected a folder with a tokenizer")
    tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return lambda text: tokenizer.encode(text, add_special_tokens=False)
