"""Small programs of the process contract: one with holes for faults, and the templates, built."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from specref.cli.init import harness
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.verify import sample_batch
from specref.process import Process

TOY = """
import json, os, signal, subprocess, sys, time
ABOUT = {{"name": "toy", "language": "Python", "contract": "verify", "takes": ["seed"]}}
{before}
for line in sys.stdin:
    asked = json.loads(line)
    said = {{"protocol": 1, "id": asked["id"]}}
    if asked["request"] == "start":
        said |= ABOUT
        {at_start}
    elif asked["request"] == "verify":
        width = asked["lookahead"] + 1
        said |= {{"tokens": ([0] + [-1] * (width - 1)) * asked["rows"],
                 "counts": [1] * asked["rows"]}}
        {at_verify}
    else:
        {at_stop}
        break
    print(json.dumps(said), flush=True)
    {after}
"""


def toy(
    folder: Path,
    *,
    before: str = "",
    at_start: str = "",
    at_verify: str = "",
    at_stop: str = "",
    after: str = "",
) -> str:
    """A program that answers token 0 to everything, with statements put in."""
    holes = {
        "before": before,
        "at_start": at_start,
        "at_verify": at_verify,
        "at_stop": at_stop,
        "after": after,
    }
    file = folder / "toy.py"
    file.write_text(TOY.format(**{name: text or "pass" for name, text in holes.items()}))
    return f"{python()} {shlex.quote(str(file))}"


def ask(program: Process, seed: int = 1) -> object:
    """What a program answers to a batch of 24 rows."""
    batch = sample_batch(CHAIN_FIXTURES["wide"], 24, np.random.default_rng(seed))
    rng = np.random.default_rng(seed)
    return program(batch.target_probs, batch.draft_probs, batch.draft_tokens, rng=rng)


def python() -> str:
    """This interpreter, without what it need not load."""
    return f"{shlex.quote(sys.executable)} -S -E"


BUILDS: dict[str, tuple[str, ...]] = {
    "cpp": ("g++", "-O{level}", "-o", "sampler", "sampler.cpp"),
    "rust": ("rustc", "-Copt-level={level}", "-o", "sampler", "sampler.rs"),
    "javascript": (),
    "python": (),
}
RUNS = {
    "cpp": "./sampler",
    "rust": "./sampler",
    "javascript": "node sampler.js",
    "python": f"{python()} sampler.py",
}
SUFFIXES = {"cpp": "cpp", "rust": "rs", "javascript": "js", "python": "py"}
NEEDED = {"cpp": "g++", "rust": "rustc", "javascript": "node", "python": sys.executable}

# What makes the template in C++ take coins.
BY_COINS = {
    "std::mt19937_64& random": "const double* accept, double final",
    "  auto uniform = [&] { return (random() >> 11) * 0x1p-53; };\n": "",
    "uniform() < p[": "accept[kept] < p[",
    "uniform() * std": "final * std",
    'std::mt19937_64 random(one("seed"));': (
        'const auto accept = numbers(line, "accept"), final = numbers(line, "final");'
        "size_t row = 0;"
    ),
    ", V, random);": ", V, &accept[row * K], final[row]);\n        ++row;",
    '"takes":["seed"]': '"takes":["coins"]',
    '"rule":"standard"': '"rule":"standard","recovery":"inverse"',
}


def built(
    language: str, folder: Path, changes: Mapping[str, str] | None = None, level: int = 0
) -> str:
    """The command of a template, built with some of its text replaced; optimised to `level`."""
    if shutil.which(NEEDED[language]) is None:
        pytest.skip(f"not_run (no {NEEDED[language]})")
    text = harness(language)
    for old, new in (changes or {}).items():
        assert text.count(old) == 1, f"{old!r} is not once in the template"
        text = text.replace(old, new)
    (folder / f"sampler.{SUFFIXES[language]}").write_text(text)
    if BUILDS[language]:
        quiet = {**os.environ, "RUSTFLAGS": ""}
        words = [word.format(level=level) for word in BUILDS[language]]
        found = subprocess.run(words, cwd=folder, capture_output=True, env=quiet)
        assert found.returncode == 0, found.stderr.decode()
    return RUNS[language]
