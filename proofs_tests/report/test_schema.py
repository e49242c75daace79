"""What `--json` writes has the form that the schemas of the package say, and those are closed.

Other tests of commands hold their records against the schemas, too (`assert_fits`). Monte Carlo
here has one seed; what it finds is not asserted, but for bugs at total variation 0.1 or more.
"""

import copy
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from proofs_tests.helpers.command import assert_fits, problems
from proofs_tests.helpers.engines import LOSSY, engine, sampling
from proofs_tests.pages import json_reports
from specref import check
from specref.cli import main
from specref.conformance import suite
from specref.examples.correct import verify as correct
from specref.examples.lossy import verify as lossy
from specref.report import forms, kit_records, schema
from specref.report.kit import kit_record
from specref.report.machine import as_json
from specref.zoo.standard.printed import algorithm_5

WRONG = next(iter(LOSSY.values()))


def raising(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    raise ValueError("planted")


def hanging(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    time.sleep(60)


def printed_step(target, drafter, context, lookahead, *, chance):
    return algorithm_5(target, drafter, context, lookahead, chance)


def none(log: Any) -> int:
    return 0


def first_token(target: Any, drafter: Any, context: Any, tokens: int, rng: Any) -> list[int]:
    return [0] * tokens


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "right": (correct, {"only": ["smoke", "joint/wide", "acceptance/wide"], "detect_tv": 0.3}),
    "strata": (correct, {"only": ["strata/one-draft", "strata/bare"], "detect_tv": 0.3}),
    "own shape": (lossy, {"only": ["strata/own-shape"], "shapes": [(40, 2, 2)], "one_hot": False}),
    "lossy": (lossy, {"one_hot": False, "only": ["joint/wide", "joint/probed"]}),
    "many tokens": (lossy, {"one_hot": False, "only": ["joint/probed-vocabulary"]}),
    "raising": (raising, {"only": ["smoke/answers"]}),
    "hanging": (hanging, {"only": ["smoke/answers"], "timeout": 0.1}),
    "few trials": (correct, {"only": ["joint/wide"], "trials": 500}),
    "step": (printed_step, {"contract": "step", "only": ["joint/exact"]}),
    "figure": (none, {"contract": "metrics"}),
    "texts": (first_token, {"contract": "generate", "only": ["end-to-end"], "trials": 200}),
    "engine": (engine(WRONG, plain=sampling()), {"contract": "text"}),
    "engine, no law": (
        engine(WRONG, law=None, drafter=None, plain=sampling()),
        {"contract": "text"},
    ),
}


@pytest.mark.deep(one_in=3)
@pytest.mark.strata
@pytest.mark.parametrize("name", CASES)
def test_reports_fit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "diagnosed", lambda *given: None)
    implementation, options = CASES[name]
    report = check(implementation, **options)
    assert any(result.evidence for result in report.results) or name == "raising"
    text = as_json(kit_record(report))
    assert_fits("check", text)
    known = kit_records.EVIDENCE.keys()
    for result in json.loads(text)["results"]:
        assert result["evidence"].keys() <= known, result["id"]


def test_several_reports_and_none_fit() -> None:
    one = json.loads(as_json(kit_record(check(raising, only=["smoke/answers"]))))
    assert problems("check", {"reports": [one, one]}) == []
    not_run = {"implementation": "vllm", "status": "not_run", "reason": "vllm is not installed"}
    assert problems("check", not_run) == []


Change = Callable[[dict[str, Any]], Any]
PLANTED: dict[str, Change] = {
    "a field is missing": lambda record: record.pop("verdict"),
    "a field is new": lambda record: record.update(verdicts="LOSSY"),
    "a status is none": lambda record: record["results"][0].update(status="pass"),
    "a count is no number": lambda record: record["counts"].update(passed="1"),
    "a status is not counted": lambda record: record["counts"].pop("inconclusive"),
    "trials are negative": lambda record: record["results"][0]["evidence"].update(trials=-1),
    "a look has no evidence": lambda record: record["results"][0]["evidence"]["looks"][0].pop(),
    "an id has no stage": lambda record: record["results"][0].update(id="wide"),
    "a row is a text": lambda record: record["results"][0]["evidence"]["difference"]["rows"][
        0
    ].update(p="1/2, 1/2"),
    "an exit code is 3": lambda record: record.update(exit_code=3),
}


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return dict(json.loads(as_json(kit_record(check(correct, only=["joint/wide"], trials=500)))))


@pytest.mark.parametrize("name", PLANTED)
def test_wrong_records_are_refused(name: str, record: dict[str, Any]) -> None:
    assert problems("check", record) == []
    wrong = copy.deepcopy(record)
    PLANTED[name](wrong)
    assert problems("check", wrong)


def test_a_file_is_written_for_each_kind(tmp_path: Path) -> None:
    """As the wheel ships them."""
    schema.write_schemas(tmp_path / "schemas")
    written = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*/*.json")}
    assert written == {kind: schema.read_schema(kind) for kind in schema.KINDS}


def test_a_kind_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="kind = 'replay': expected one of check, prove, "):
        schema.read_schema("replay")


def test_every_command_with_json_has_a_schema() -> None:
    def writing(group: click.Group, words: str) -> Iterator[str]:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if any("--json" in one.opts for one in command.params):
                yield f"{words}{name}"
            if isinstance(command, click.Group):
                yield from writing(command, f"{words}{name} ")

    commands = set(writing(main, ""))
    assert {"check", "plan speed", "doctor"} <= commands
    written = [command.removeprefix("specref ") for command, _ in schema.KINDS.values()]
    lacking = [x for x in commands if not any(f"{y} ".startswith(f"{x} ") for y in written)]
    assert {*lacking} == {"replay", "plan samples"}  # a report of check; what plan writes
    # "plan" must not stand for "plan speed", or the other way round.
    assert {"plan", "plan speed"} <= set(written)


def objects(form: Any) -> Iterator[dict[str, Any]]:
    if isinstance(form, dict):
        if form.get("type") == "object":
            yield form
        for one in form.values():
            yield from objects(one)
    elif isinstance(form, list):
        for one in form:
            yield from objects(one)


@pytest.mark.parametrize("kind", schema.KINDS)
def test_schemas_are_schemas_and_closed(kind: str) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="not_run (jsonschema is not installed)")
    built = schema.read_schema(kind)
    jsonschema.Draft202012Validator.check_schema(built)
    seen = list(objects(built))
    open_ = [one for one in seen if one.get("additionalProperties") is not False]
    assert len(open_) == (kind == "check")
    assert all(one["properties"].keys() == kit_records.EVIDENCE.keys() for one in open_)
    references = set(re.findall(r'"#/\$defs/([^"]*)"', json.dumps(built)))
    assert references == built["$defs"].keys()


def test_a_type_without_a_form_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a dataclass, or a type of its fields"):
        forms.form_of(np.ndarray)


def test_every_field_of_every_schema_is_in_its_table() -> None:
    for kind in schema.KINDS:
        page = json_reports.tables([kind])
        for one in objects(schema.read_schema(kind)):
            for name, form in one.get("properties", {}).items():
                assert f"{name}`" in page
                assert form.get("description", "") in page.replace("\\|", "|")
