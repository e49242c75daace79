"""docs/playground.html and its JavaScript: run by node, and shown by Chromium."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from proofs_tests.helpers.pages import dumped
from proofs_tests.pages.console_blocks import ROOT

PAGE, SCRIPT = ROOT / "docs" / "playground.html", ROOT / "docs" / "playground.js"


def node() -> str:
    """Where node is; skips where it is not."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("not_run (no node)")
    return found


def laws(cases: Iterable[Mapping[str, Any]], script: Path = SCRIPT) -> list[dict[str, Any]]:
    """What the page computes for each case, in JSON."""
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    command = [node(), str(script), "--laws"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def shown(folder: Path, fragment: str = "", script: str = "") -> str:
    """The page in Chromium, after `script` ran in it; skips where there is none."""
    page = folder / PAGE.name
    text = PAGE.read_text(encoding="utf-8")
    page.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    shutil.copy(SCRIPT, folder)
    return dumped(folder, f"{page.as_uri()}{fragment}")


def text_of(dom: str, identity: str) -> str:
    """The text of the element with an id, its tags left out."""
    tag, inner = re.findall(rf'<(\w+)[^>]* id="{identity}"[^>]*>(.*?)</\1>', dom, re.DOTALL)[0]
    assert f"<{tag}" not in inner, f"{identity} holds another {tag}"
    return " ".join(re.sub(r"<[^>]+>", " ", inner).split())
