"""How far it is to a user's function, and what an import loads: figures that are promised."""

import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest

import specref
from specref import check
from specref.examples.correct import verify as correct

PACKAGE = str(Path(specref.__file__).parent)
WALKS = {"joint/wide": 12, "joint/probed": 18}
LOADED = {
    "from specref.statistics import Campaign": 40,
    "from specref import check": 120,
}


def frames(thread: int) -> int:
    """How many functions of the package a thread is in."""
    stack = traceback.extract_stack(sys._current_frames()[thread])
    return sum(one.filename.startswith(PACKAGE) for one in stack)


@pytest.mark.parametrize("name", WALKS)
def test_a_check_reaches_the_sampler_in_few_frames(name: str, tmp_path: Path) -> None:
    walk = tmp_path / "walk"  # the sampler may be called in a copy of this process

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        threads = {threading.main_thread().ident, threading.get_ident()}
        if not walk.exists():
            walk.write_text(str(sum(frames(one) for one in threads if one is not None)))
        return correct(target_probs, draft_probs, draft_tokens, rng=rng)

    check(verify, only=[name], detect_tv=0.4)
    assert 0 < int(walk.read_text()) <= WALKS[name]


def loaded_by(statement: str) -> list[str]:
    """The modules of the package that a statement loads, in a process of its own."""
    code = f"import sys\n{statement}\nprint(*[one for one in sys.modules if 'specref' in one])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ran.stdout.split()


@pytest.mark.parametrize("statement", LOADED)
def test_an_import_loads_what_it_needs(statement: str) -> None:
    assert 0 < len(loaded_by(statement)) <= LOADED[statement]


def test_what_statistics_load_has_no_zoo_and_no_face() -> None:
    rooms = {one.split(".")[1] for one in loaded_by(next(iter(LOADED))) if "." in one}
    assert not rooms & {"zoo", "rules", "conformance", "contracts", "report", "contrib"}
