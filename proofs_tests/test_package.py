"""What the wheel holds, what it declares, and the action that installs it."""

import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import specref
from specref.optional import CORE, PARTS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DATA = PROJECT["tool"]["setuptools"]["package-data"]["specref"]
PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")


def left_out(package: Path) -> list[str]:
    """Files that setuptools would not put into a wheel."""
    held = {path for pattern in DATA for path in package.glob(pattern)}
    files = [path for path in package.rglob("*") if path.is_file()]
    files = [path for path in files if "__pycache__" not in path.parts]
    return [
        str(path.relative_to(package))
        for path in files
        if path not in held and not (path.suffix == ".py" and in_packages(path.parent, package))
    ]


def in_packages(folder: Path, package: Path) -> bool:
    above = (folder, *folder.parents)
    return all((one / "__init__.py").exists() for one in above[: above.index(package) + 1])


def test_the_wheel_holds_every_file_of_the_package():
    # That it can be built, and that its commands work in an empty folder: `make dist`.
    assert PROJECT["tool"]["setuptools"]["packages"]["find"]["include"] == ["specref*"]
    assert left_out(ROOT / "specref") == []


def test_files_that_would_be_left_out_are_noticed(tmp_path):
    (tmp_path / "vectors" / "v1").mkdir(parents=True)
    (tmp_path / "algorithms").mkdir()
    for name in ("__init__.py", "vectors/v1/new.json", "vectors/new.json", "algorithms/new.py"):
        (tmp_path / name).touch()
    assert sorted(left_out(tmp_path)) == ["algorithms/new.py", "vectors/new.json"]


def test_extras_are_what_the_doctor_shows():
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    shown = {
        name: [f"{package.name}>={package.least}" for package in part.packages]
        for name, part in PARTS.items()
    }
    assert shown == {name: extras[name] for name in list(extras)[: len(shown)]}
    assert [f"{package.name}>={package.least}" for package in CORE] == project["dependencies"]
    page = (ROOT / "docs" / "install.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE) == list(shown)


SETUP = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")
README = (ROOT / "README.md").read_text()
PLACE = "https://example.org/specref/blob/v0.1.0"


def local(page: str) -> list[str]:
    """Links and pictures of a page, outside code, that need files beside it."""
    text = "".join(SETUP["FENCED"].split(page)[::2])
    found = re.findall(r"\]\(([^)]*)\)|\b(?:src|srcset)=\"([^\"]*)\"", text)
    return [one for one in map("".join, found) if not re.match("[a-z]+://", one)]


def test_the_page_of_the_package_needs_no_file_beside_it():
    assert len(local(README)) > 40
    there, without = (SETUP["description"](README, place) for place in (PLACE, None))
    assert local(there) == local(without) == []
    assert there.count(f"]({PLACE}/docs/") == README.count("](docs/") > 30
    assert f"]({PLACE}/README.md#is-your-rule-lossless)" in there
    assert f'src="{PLACE.replace("blob", "raw")}/docs/pictures/iteration-light.svg"' in there
    assert "| a rejection sampler in Python |" in without
    assert "\nOne iteration with 3 drafts, 7 coins: " in without
    for page in (there, without):
        assert SETUP["FENCED"].findall(page) == SETUP["FENCED"].findall(README)
        assert "<!--" not in page


def test_the_address_of_the_package_is_that_of_the_project():
    assert SETUP["address_of"]({}, "0.1.0") is None
    urls = {"urls": {"Repository": "https://example.org/specref/"}}
    assert SETUP["address_of"](urls, "0.1.0") == PLACE
    assert "readme" in PROJECT["project"]["dynamic"]
    assert "readme" not in PROJECT["project"]


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [specref.__version__]


@pytest.mark.parametrize("name", PAGES)
def test_pages_name_what_there_is(name):
    text = (ROOT / name).read_text()
    named = re.findall(r"\]\(([^)#:]+)\)", text)
    named += re.findall(r"(?:proofs_tests|specref|docs)/[\w/]*\w+(?:\.\w+|/)", text)
    assert [one for one in named if not (ROOT / one).exists()] == []
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make (verify|test|dist|\w+)`", text):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_workflows_in_docs_are_yaml_and_name_inputs_of_the_action():
    yaml = pytest.importorskip("yaml", reason="not_run (PyYAML is not installed)")
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    text = (ROOT / "docs" / "ci.md").read_text()
    shown = [yaml.safe_load(one) for one in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    jobs = [job for one in shown for job in one.get("jobs", {"": one}).values()]
    steps = [step for job in jobs for step in job["steps"]]
    assert len(shown) == 3
    assert all(("uses" in step) != ("run" in step) for step in steps)
    for workflow, job in zip(shown[:2], jobs, strict=False):  # whole, to be pasted
        assert workflow.keys() == {"name", True, "jobs"}  # YAML reads `on` as a truth value
        assert job.keys() == {"runs-on", "timeout-minutes", "steps"}
    (ours,) = [step["with"] for step in steps if step.get("uses") == "OWNER/specref@REF"]
    assert ours.keys() <= action["inputs"].keys()
    assert {name for name, one in action["inputs"].items() if one.get("required")} <= ours.keys()
    assert action["outputs"].keys() == {"exit-code", "report"}
    assert "outputs are `exit-code` and `report`" in " ".join(text.split())


def run_of_the_action() -> str:
    """The commands of the step that judges."""
    text = (ROOT / "action.yml").read_text()
    script = text.split("      run: |\n")[1]
    return "\n".join(line.removeprefix(" " * 8) for line in script.splitlines())


PROBED = "--only joint/probed --claim one_hot=false"
LENGTHS = "--only acceptance/wide --only joint/probed --algorithm block --claim one_hot=false"


@pytest.mark.parametrize(
    ("target", "arguments", "code", "told"),
    [
        ("correct:verify", PROBED, 0, "no difference from lossless where it was tried"),
        ("lossy:verify", PROBED, 1, "LOSSY: the law is not the target's (joint/probed)"),
        (
            "correct:verify",
            LENGTHS,
            1,
            "acceptance does not follow the declared rule (acceptance/wide); nothing found says"
            " that it is lossy",
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
