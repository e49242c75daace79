"""``specref replay``: a saved failing case, run again."""

import contextlib
import json
from pathlib import Path
from typing import Any, NoReturn

import click

from specref.cli.group import HOLDS, VIOLATED, leave, show
from specref.cli.loading import load_function
from specref.cli.options import json_option
from specref.cli.targets import closed_at_the_end, find_targets
from specref.conformance.case_files import load_case
from specref.conformance.options import CheckOptions
from specref.conformance.strata.shape import Shape
from specref.conformance.suite import run_checks
from specref.contracts.timeout import TIMEOUT
from specref.proofs.everywhere.proof import models_of
from specref.proofs.everywhere.rows import Space
from specref.proofs.exact import is_lossless
from specref.report.everywhere import FORMAT, rows_of
from specref.report.kit import kit_record, kit_report
from specref.report.machine import as_json, write_json
from specref.vocabulary import Vocabulary


@click.command("replay")
@click.argument("case", metavar="CASE.json", type=click.Path(exists=True, dir_okay=False))
@json_option
def replay_command(case: str, json_file: str | None) -> NoReturn:
    """Run a saved failing case again.

    It is the same check, with the same seed, capabilities and timeout. Cases are written by
    `specref check … --save FOLDER`, and rows at which a rule is lossy by `specref prove …
    --everywhere --save FILE`. Takes a few seconds for a sampler in NumPy, or as long as the check
    took.

    \b
    Examples:
      specref check samplers:verify --save failures
      specref replay failures/joint-wide-seed-0.json
    """
    rows = read_rows(case)
    if rows is not None:
        with contextlib.chdir(rows["folder"]):
            replay_rows(rows)
    saved = load_case(case)
    with contextlib.chdir(saved.get("folder", ".")):
        timeout = saved.get("patience") or TIMEOUT
        (target,) = closed_at_the_end(find_targets(saved["target"], timeout=timeout))
    options = CheckOptions(
        contract=saved["contract"],
        only=[saved["check"]],
        seed=saved["seed"],
        alpha=saved["alpha"],
        detect_tv=saved["detect_tv"],
        trials=saved.get("trials"),
        timeout=target.timeout,
        name=target.name,
        version=target.version,
        claims=saved["claims"],
        shapes=tuple(Shape(*shape) for shape in saved.get("shapes", ())),
        dtypes=tuple(saved.get("dtypes", ())),
    )
    report = run_checks(target.function, options)
    show(kit_report(report), json_file)
    if json_file:
        write_json(json_file, as_json(kit_record(report)))
    leave(report.exit_code)


def read_rows(path: str) -> Any:
    """The record of a witness, or None for a file of another format."""
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        return None
    return record if isinstance(record, dict) and record.get("format") == FORMAT else None


def replay_rows(record: Any) -> NoReturn:
    """Run a rule again on the rows of a witness, with fractions."""
    target, drafter = (Vocabulary(record[name], record["eos"]) for name in ("target", "drafter"))
    models = models_of(Space(target, drafter, 0), rows_of(record))
    try:
        proof = is_lossless(load_function(record["rule"]), *models, (), record["lookahead"])
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a rule may raise anything
        print(f"{record['rule']} raises {type(error).__name__}: {error}")
        leave(VIOLATED)
    print(f"{record['rule']}: total variation {proof.total_variation}")
    if proof.difference:
        print(proof.difference)
    leave(HOLDS if proof else VIOLATED)
