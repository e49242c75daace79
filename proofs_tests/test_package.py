"""What the wheel holds, what it declares, and the action that installs it."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import specref
from specref.optional import CORE, PARTS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")


def test_the_wheel_holds_every_file_of_the_package():
    """What git would ignore is left out; `make dist` builds it and uses it in an empty folder."""
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["specref"]
    found = (ROOT / "specref").rglob("*")
    files = [str(path) for path in found if "__pycache__" not in path.parts]
    asked = ["git", "check-ignore", "--no-index", "--stdin"]
    done = subprocess.run(asked, input="\n".join(files), capture_output=True, text=True, cwd=ROOT)
    if done.returncode > 1:
        pytest.skip("not_run (this is no checkout of git)")
    assert done.stdout == ""


def test_extras_are_what_the_doctor_shows():
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    shown = {
        name: [f"{package.name}>={package.least}" for package in part.packages]
        for name, part in PARTS.items()
    }
    assert shown == {name: extras[name] for name in list(extras)[: len(shown)]}
    assert [f"{package.name}>={package.least}" for package in CORE] == project["dependencies"]


README = (ROOT / "README.md").read_text()
FENCED = re.compile(r"^```.*?^```$", flags=re.MULTILINE | re.DOTALL)
PAGE = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [specref.__version__]


def test_workflows_in_docs_are_yaml_and_name_inputs_of_the_action():
    yaml = pytest.importorskip("yaml", reason="not_run (PyYAML is not installed)")
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    text = (ROOT / "docs" / "tests-and-ci.md").read_text()
    shown = [yaml.safe_load(one) for one in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    jobs = [job for one in shown for job in one.get("jobs", {"": one}).values()]
    steps = [step for job in jobs for step in job["steps"]]
    assert len(shown) == 4
    assert all(("uses" in step) != ("run" in step) for step in steps)
    for workflow, job in zip(shown[:3], jobs, strict=False):  # whole, to be pasted
        assert workflow.keys() == {"name", True, "jobs"}  # YAML reads `on` as a truth value
        assert job.keys() == {"runs-on", "timeout-minutes", "steps"}
    ours = [step["with"] for step in steps if step.get("uses") == "OWNER/specref@REF"]
    assert len(ours) == 2
    needed = {name for name, one in action["inputs"].items() if one.get("required")}
    assert all(needed <= given.keys() <= action["inputs"].keys() for given in ours)
    assert all(f"| `{name}` |" in text for name in action["inputs"])
    assert action["outputs"].keys() == {"exit-code", "report"}
    assert "outputs are `exit-code` and `report`" in " ".join(text.split())


def run_of_the_action() -> str:
    """The commands of the step that judges."""
    text = (ROOT / "action.yml").read_text()
    script = text.split("      run: |\n")[1]
    return "\n".join(line.removeprefix(" " * 8) for line in script.splitlines())


PROBED = "--only joint/probed --claim one_hot=false"
LENGTHS = (
    "--only acceptance/wide --only joint/probed --algorithm block --claim one_hot=false "
    "--detect-tv 0.03"
)


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    ("target", "arguments", "code", "told"),
    [
        ("correct:verify", PROBED, 0, "no difference from lossless where it was tried"),
        ("lossy:verify", PROBED, 1, "LOSSY: the distribution is not the target's (joint/probed)"),
        pytest.param(
            "correct:verify",
            LENGTHS,
            1,
            "acceptance does not follow the declared rule (acceptance/wide); no check found "
            "a wrong distribution",
            marks=pytest.mark.deep,
        ),
        ("absent:verify", PROBED, 2, "nothing can be said"),
    ],
    ids=["right", "lossy", "lossless, other lengths", "absent"],
)
def test_the_action_leaves_with_the_code_of_the_verdict(tmp_path, target, arguments, code, told):
    for name, module in (("specref", "-m specref"), ("python", "")):
        command = tmp_path / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        command.chmod(0o755)
    (tmp_path / "report.json").write_text('{"verdict": "that of an earlier step"}')
    named = {"GITHUB_STEP_SUMMARY": "summary", "GITHUB_OUTPUT": "output", "REPORT": "report.json"}
    environment = {
        **os.environ,
        **{name: str(tmp_path / file) for name, file in named.items()},
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "TARGET": f"specref.examples.{target}",
        "CONTRACT": "verify",
        "ARGUMENTS": arguments,
    }
    # As GitHub calls bash.
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", run_of_the_action()]
    ran = subprocess.run(bash, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == code, ran.stdout + ran.stderr
    summary = (tmp_path / "summary").read_text()
    assert summary.startswith(f"## specref: {told}\n")
    assert summary.count("```") == 2
    assert f"exit-code={code}\n" in (tmp_path / "output").read_text()
    assert (tmp_path / "report.json").exists() == (code != 2)


USER = """from fractions import Fraction

from specref import Model, Vocabulary, check, exact_distribution, prove
from specref.algorithms import standard
from specref.examples.correct import verify

model = Model(Vocabulary("ab"), lambda _: [Fraction(1, 2)] * 2)
law = exact_distribution(lambda chance: standard.step(model, model, (), 1, chance))
code: int = check(verify).exit_code
proved: str = str(prove(standard.step))
reveal_type(law)
wrong: str = check(verify, seed="1").verdict
"""


@pytest.mark.deep
def test_a_user_s_mypy_sees_the_types_and_finds_no_error_in_specref(tmp_path):
    (tmp_path / "user.py").write_text(USER)
    asked = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "user.py"]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=tmp_path)
    revealed, wrong, found = done.stdout.splitlines()
    assert 'is "dict[tuple[int, ...], float | fractions.Fraction]"' in revealed
    assert wrong.startswith('user.py:12: error: Argument "seed" to "check"'), done.stdout
    assert found == "Found 1 error in 1 file (checked 1 source file)"
