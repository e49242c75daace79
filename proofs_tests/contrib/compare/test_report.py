"""The form of the JSON of specref compare, against what the command makes."""

import copy
import json

import numpy as np
import pytest

from proofs_tests.helpers.command import assert_fits, problems
from specref.contrib.compare.beside import Exercised, Greedy, Seeds, Speculation
from specref.contrib.compare.checking import Checked, Looks
from specref.contrib.compare.judging import compare
from specref.contrib.compare.logprobs import Agreement, ReportedLogprobs
from specref.contrib.compare.records import Texts, read_texts
from specref.contrib.real_models.entropy import EntropyReport
from specref.report.machine import as_json


def texts(seed: int, tmp_path) -> Texts:
    rng, path = np.random.default_rng(seed), tmp_path / f"{seed}.jsonl"
    rows = rng.integers(0, 4, (60, 5)).tolist()
    path.write_text("\n".join(json.dumps({"prompt_id": "a", "token_ids": row}) for row in rows))
    return read_texts(str(path), None, None)


@pytest.fixture
def record(tmp_path):
    found = Checked(
        compare(texts(1, tmp_path), texts(2, tmp_path)),
        Agreement(3, 0, 0, 0.1, 0.01, "place"),
        (ReportedLogprobs("a", 3, {"x": 1}, {"x": "line 1"}, 9, {"raw": 1.5}, ("raw",), None),),
        Speculation(Exercised.NO, (3, None), (1.5, None)),
        Greedy(3, 1, 1, 1, 0, "place"),
        (Seeds(3, 3), Seeds(3, 2)),
        Looks((25, 50), 25, "interrupted"),
    )
    return json.loads(as_json(found.record()))


def test_what_the_command_writes_has_the_form_and_nothing_else_has(record) -> None:
    assert_fits("compare", json.dumps(record))
    for change in (
        lambda one: one.update(pairs="60"),
        lambda one: one.update(verdicts="LOSSY"),
        lambda one: one["logprobs"].pop("example"),
        lambda one: one["speculation"].update(exercised="perhaps"),
    ):
        wrong = copy.deepcopy(record)
        change(wrong)
        assert problems("compare", wrong)


def test_a_file_by_the_model_has_the_form() -> None:
    pytest.importorskip("torch")
    from specref.contrib.compare.by_model import ByModel
    from specref.contrib.compare.report import model_record

    report = EntropyReport(9, 1.0, 1.1, -0.2, 1e-9, 0.3, 1.0, None)
    found = ByModel(report, 4, 4, 0, (0.5, None), {"raw": 2, "processed": 1}, 3)
    told = json.loads(as_json({"by_model": model_record(found)}))
    assert problems("compare", told) == []
    del told["by_model"]["stages"]
    assert problems("compare", told)
