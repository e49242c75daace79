"""Workers and seconds of `specref check`: the same report, and how long it will take."""

import json
import re
from pathlib import Path

import pytest

from proofs_tests.helpers.command import run
from proofs_tests.helpers.records import without_seconds
from specref.cli.targets import LoadTarget
from specref.conformance.public import check

PRINTING = """
from specref.examples.correct import verify as correct

def verify(p, q, drafts, *, rng):
    print("hello from the sampler")
    return correct(p, q, drafts, rng=rng)
"""
DIES = """
import multiprocessing, os
from specref.examples.correct import verify as correct

def verify(p, q, drafts, *, rng):
    if multiprocessing.parent_process():
        os._exit(1)
    return correct(p, q, drafts, rng=rng)
"""
GENERATES = """
import numpy as np

def generate(target, drafter, context, tokens, rng):
    text = ()
    while len(text) < tokens and not target.vocabulary.ends(text):
        p = np.asarray(target.next_token((*context, *text)), dtype=float)
        text += (int(rng.choice(len(p), p=p / p.sum())),)
    return text
"""


@pytest.fixture
def generates(tmp_path: Path) -> str:
    file = tmp_path / "generates.py"
    file.write_text(GENERATES)
    return f"{file}:generate"


def test_workers_give_the_same_record_and_print_nothing_into_it(tmp_path: Path) -> None:
    sampler = tmp_path / "printing.py"
    sampler.write_text(PRINTING)
    only = ("--only", "smoke/answers", "--only", "joint/deep", "--detect-tv", "0.2")
    options = ("check", f"{sampler}:verify", *only, "--json", "-")
    alone, together = (run(*options, "--workers", count) for count in "12")
    assert alone.exit_code == together.exit_code == 0
    records = [without_seconds(json.loads(one.stdout)) for one in (alone, together)]
    assert records[0] == records[1]
    assert "hello from the sampler" in alone.stderr


def test_a_worker_that_dies_is_an_error_in_one_line(tmp_path: Path) -> None:
    sampler = tmp_path / "dies.py"
    sampler.write_text(DIES)
    options = ("--only", "smoke/answers", "--workers", "2")
    result = run("check", f"{sampler}:verify", *options)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: a worker process died")


def test_a_file_has_the_same_name_in_every_process(generates: str) -> None:
    """Exceptions and objects of the module travel between processes by this name."""
    first, again = LoadTarget(generates, 1.0)(), LoadTarget(generates, 1.0)()
    assert first.__module__ == again.__module__
    assert re.fullmatch(r"specref_loaded_generates_[0-9a-f]+", first.__module__)


def test_every_text_is_counted(generates: str) -> None:
    drawn: list[int] = []
    options = {"contract": "generate", "only": ["end-to-end/deep"], "trials": 60}
    check(LoadTarget(generates, 1.0)(), **options, advance=drawn.append)
    assert drawn == [1] * 60
