"""Log-probabilities that a system reports of itself: each fault is named, and right ones pass.

alpha is 1e-9. Power: 1,000 tokens at temperature 0.4 exclude the other stage by
10^29 or more at six other seeds.
"""

import numpy as np
import pytest

from specref.contrib.compare.answers import drafted_in, record_of
from specref.contrib.compare.asking import TOLERANCE
from specref.contrib.compare.logprobs import Reported, agreement
from specref.contrib.compare.records import Texts, read_texts
from specref.contrib.real_models.settings import Setting

ROW = np.log([0.5, 0.3, 0.15, 0.05])


def judged(*records, setting=None, declared=None):
    judge = Reported(setting or Setting(), 1e-9, declared, 0.125)
    for number, record in enumerate(records, 1):
        judge.add(number, record)
    return judge.found("a file")


def right(token=0, ranked=None, **more):
    ranked = [[i, float(x)] for i, x in enumerate(ROW)] if ranked is None else ranked
    return {
        "token_ids": [token],
        "logprobs": [float(ROW[token])],
        "top_logprobs": [ranked],
        **more,
    }


WRONG = {
    "a token without a list": right(ranked=[]),
    "one token twice": right(ranked=[[0, -0.693], [0, -0.693]]),
    "not in order": right(ranked=[[1, float(ROW[1])], [0, float(ROW[0])]]),
    "more than 1": right(ranked=[[0, -0.693], [1, -0.1]]),
    "two values of one token": right(ranked=[[0, -0.8], [1, -1.2]]),
    "lacks though it ranks": right(ranked=[[1, float(ROW[1])], [2, float(ROW[2])]]),
    "no logarithm": right(ranked=[[0, 0.5], [1, -3.0]]),
    "not one for each token": right(faults=["not one for each token: 3 for 4 tokens"]),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_fault_is_named_with_its_line(fault):
    found = judged(right(), WRONG[fault])
    assert not found.right
    assert any(fault in one for one in found.faults)
    assert "line 2" in str(found)
    assert judged(right(), right(1)).right


def drawn(setting, stage, number=1_000, seed=1):
    """Tokens of a law at a setting, with lists of a stage."""
    rng, law = np.random.default_rng(seed), setting.law(ROW)
    shown = np.log(law) if stage == "processed" else ROW
    ranked = [[i, float(shown[i])] for i in range(3)]  # the least likely one is not in it
    for token in rng.choice(4, size=number, p=law).tolist():
        own = {"token_ids": [token], "logprobs": [float(shown[token])]}
        yield {**own, "top_logprobs": [ranked]}


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(("stage", "other"), [("raw", "processed"), ("processed", "raw")])
def test_the_stage_is_told_by_what_tokens_were_drawn_from(stage, other):
    warm = Setting(0.4)
    found = judged(*drawn(warm, stage), setting=warm, declared=stage)
    assert found.right
    assert found.excluded == (other,)
    wrong = judged(*drawn(warm, stage), setting=warm, declared=other)
    assert not wrong.right
    assert f"{other} ones are not what tokens were drawn from" in str(wrong)


def test_settings_of_the_servers_own_are_suspected_and_no_fault():
    found = judged(*drawn(Setting(0.4), "raw"))
    assert found.excluded == ("raw", "processed")
    assert found.right
    assert "settings of its own" in str(found)


def answer(**reported):
    choice = {"text": "ab", "token_ids": [0, 1], "finish_reason": "stop"}
    return {"choices": [{**choice, "logprobs": reported}]}


@pytest.mark.parametrize(
    ("reported", "fault"),
    [
        ({"tokens": ["a", "b", "c"], "token_logprobs": [-1.0, -1.0, -1.0]}, "3 for 2 tokens"),
        ({"tokens": ["a", "b"], "token_logprobs": [-1.0]}, "no logarithm of a probability: None"),
        ({"tokens": ["a", "b"], "token_logprobs": [-1.0, 0.5]}, "probability: 0.5"),
        ({"tokens": ["b", "a"], "token_logprobs": [-1.0, -2.0]}, "'ba' for 'ab'"),
    ],
)
def test_what_an_answer_reports_wrongly_is_kept_in_its_record(reported, fault):
    (told,) = record_of(answer(**reported), "x", 1)["faults"]
    assert fault in told


def test_a_token_that_stops_a_text_may_have_no_log_probability():
    one = answer(tokens=["a"], token_logprobs=[-1.0])
    one["choices"][0]["text"] = "a"
    assert "faults" not in record_of(one, "x", 1)
    one["choices"][0]["finish_reason"] = "length"
    assert record_of(one, "x", 1)["faults"] == ["not one for each token: 1 for 2 tokens"]


def test_answers_of_all_forms_are_read():
    lists = [{"a": -0.5, "b": -1.0, "c": -2.0}, {"b": -0.1}]
    named = answer(tokens=["a", "b"], token_logprobs=[-0.5, -0.1], top_logprobs=lists)
    found = record_of(named, "x", 1, most=2)
    assert found["logprobs"] == [-0.5, -0.1]
    assert [len(one) for one in found["top_logprobs"]] == [2, 1]
    assert found["top_logprobs"][1] == [[1, -0.1]]
    content = [{"id": 7, "token": "a", "logprob": -1, "top_logprobs": [{"id": 7, "logprob": -1}]}]
    one = {"choices": [{"text": "a", "logprobs": {"content": content}}]}
    assert record_of(one, "x", 1)["top_logprobs"] == [[[7, -1]]]
    empty = record_of({"choices": [{"text": ""}]}, "x", 1)
    assert (empty["unit"], empty["token_ids"]) == ("nothing", [2**31 - 1])
    with pytest.raises(KeyError):
        record_of({"error": "no"}, "x", 1)


def test_drafts_are_counted_as_openai_counts_them():
    details = {"accepted_prediction_tokens": 3, "rejected_prediction_tokens": 1}
    assert drafted_in({"usage": {"completion_tokens_details": details}}) == 4
    assert drafted_in({"usage": {"completion_tokens_details": None}}) is None


def test_a_file_with_wrong_lists_is_named_with_its_line(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"token_ids": [1, 2], "top_logprobs": [[[1, -1]]]}\n')
    judge = Reported(Setting(), 1e-9, None, 0.125)
    with pytest.raises(ValueError, match=r"t\.jsonl:1: top_logprobs: expected 2 lists"):
        read_texts(str(path), hear=(judge.add,))


P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])


def texts(rng, reported, number=60):
    rows = rng.choice(3, (number, 2), p=P)
    prompts = np.zeros(number, dtype=int)
    starts = np.arange(0, rows.size + 1, 2)
    logs = np.log(reported)[rows.ravel()]
    return Texts("t", rows.ravel(), starts, prompts, ["a"], [None] * number, logs, 0)


def test_equal_reports_agree_and_rounding_is_no_difference():
    rng = np.random.default_rng(1)
    one, other = texts(rng, P), texts(rng, P)
    found = agreement(one, other, TOLERANCE)
    assert found.agree
    assert found.repeated == 2 * 120 - 3 - 9  # but for each token and pair seen first
    other.logprobs += 0.1
    assert agreement(one, other, TOLERANCE).agree
    assert not agreement(one, other, tolerance=0.05).agree


def test_reports_of_the_drafter_are_found():
    rng = np.random.default_rng(2)
    found = agreement(texts(rng, Q), texts(rng, P), TOLERANCE)
    assert found.apart == 12
    assert found.largest > 1
    assert "position" in found.example


def test_what_adds_up_to_more_than_one_is_found():
    """Both files report residuals alike, so they do not differ from each other."""
    rng = np.random.default_rng(3)
    found = agreement(texts(rng, 1.5 * P), texts(rng, 1.5 * P), TOLERANCE)
    assert found.apart == 0
    assert found.above == 4


def test_without_reports_there_is_nothing_to_compare():
    rng = np.random.default_rng(4)
    one, other = texts(rng, P), texts(rng, P)
    other.logprobs = None
    assert agreement(one, other, TOLERANCE) is None
