"""The published vectors: decided once more in fractions, every flag explained, of one form."""

import re
from fractions import Fraction

import pytest

from proofs_tests.helpers.vectors import flags as vector_flags
from proofs_tests.helpers.vectors.files import (
    CASES,
    FILES,
    FOLDER,
    SCHEMA,
    STEPS,
    VERIFY,
    exact_law,
    rule,
)
from proofs_tests.helpers.vectors.oracle import (
    Toys,
    block_law,
    completed,
    decided,
    law,
    replay_weight,
    site_decision,
    texts,
)
from specref.contrib.vectors.building import PUBLISHED
from specref.contrib.vectors.flags import ITERATION_FLAGS, NOTES, VERIFICATION_FLAGS
from specref.contrib.vectors.publishing import laid_out

CONVENTIONS = {
    (): {},
    ("accept-up-to",): {"up_to": True},
    ("closed-cdf",): {"closed": True},
    ("accept-up-to", "closed-cdf"): {"up_to": True, "closed": True},
}


def numbers(values):
    """Every rational beside its double, wherever they are."""
    if isinstance(values, dict) and "float64" in values:
        yield from zip(flat(values["exact"]), flat(values["float64"]), strict=True)
    elif isinstance(values, (dict, list)):
        for item in values.values() if isinstance(values, dict) else values:
            yield from numbers(item)


def flat(values):
    if isinstance(values, (dict, list)):
        for item in values.values() if isinstance(values, dict) else values:
            yield from flat(item)
    else:
        yield values


def test_every_verification_is_decided_the_same_by_other_means():
    assert len(VERIFY) > 150
    for case in VERIFY:
        for outcome in (case["expected"], *case.get("either", [])):
            again = decided(rule(case), case, **CONVENTIONS[tuple(outcome.get("policies", ()))])
            wanted = {key: value for key, value in outcome.items() if key != "policies"}
            assert {**wanted, "law": law(wanted["law"])} == again, case["id"]


def test_every_convention_that_decides_otherwise_is_listed():
    for case in VERIFY:
        usual = decided(rule(case), case)["tokens"]
        others = {
            name
            for name, keywords in CONVENTIONS.items()
            if decided(rule(case), case, **keywords)["tokens"] != usual
        }
        listed = [tuple(one["policies"]) for one in case.get("either", [])]
        assert set(listed) == others, case["id"]
        assert len(listed) == len(others), case["id"]


def test_a_wrong_rule_decides_otherwise():
    for wrong in ("standard", "block"):
        mine = [case for case in VERIFY if rule(case) != wrong]
        assert any(
            decided(wrong, case)["tokens"] != case["expected"]["tokens"]
            for case in mine
            if len(case["draft_tokens"]) > 1
        )


def test_every_law_is_derived_by_other_means_and_sums_to_1():
    for case in STEPS:
        blocks = exact_law(case)
        assert sum(blocks.values()) == 1, case["id"]
        assert block_law(case) == blocks, case["id"]


def test_every_law_is_lossless_when_it_is_completed():
    for case in STEPS:
        toys, blocks = Toys(case), exact_law(case)
        length = max(map(len, blocks))
        assert completed(toys, blocks, length) == texts(toys, (), length), case["id"]


def test_a_law_with_a_planted_error_is_not_lossless():
    case = next(case for case in STEPS if case["id"] == "standard/step-swapped-coin/002")
    blocks, toys = exact_law(case), Toys(case)
    first, second, *_ = sorted(blocks, key=len)
    blocks[first], blocks[second] = blocks[second], blocks[first]
    assert completed(toys, blocks, 3) != texts(toys, (), 3)


def test_replays_decide_as_they_say():
    for case in STEPS:
        blocks = exact_law(case)
        for replay in case["replays"]:
            assert replay_weight(replay) == Fraction(replay["weight"]), case["id"]
            assert 0 < replay_weight(replay) <= blocks[tuple(replay["tokens"])], case["id"]
            for site in replay["sites"]:
                assert site_decision(site) == site["choice"], (case["id"], site)


def test_rationals_and_doubles_are_the_same_numbers():
    pairs = list(numbers(CASES))
    assert len(pairs) > 3000
    assert all(float(Fraction(exact)) == double for exact, double in pairs)
    for case in STEPS:
        for model in (case["target"], case["drafter"]):
            assert all(sum(law(row)) == 1 for row in model["exact"].values())
    for case in VERIFY:
        for laws in (case["p"], case["q"] or {"exact": []}):
            assert all(sum(law(row)) == 1 for row in laws["exact"])


def test_no_draft_is_impossible():
    for case in VERIFY:
        for token, q in zip(
            case["draft_tokens"], (case["q"] or {"exact": []})["exact"], strict=False
        ):
            assert token < 0 or Fraction(q[token]) > 0


def test_every_flag_is_true_and_every_truth_is_flagged():
    for case in CASES:
        assert set(case["flags"]) == vector_flags.true_of(case), case["id"]


def test_every_flag_is_used_and_explained():
    used = {flag for case in CASES for flag in case["flags"]}
    assert used == NOTES.keys() == VERIFICATION_FLAGS.keys() | ITERATION_FLAGS.keys()
    for file in FILES.values():
        assert file["notes"].keys() == {flag for case in file["cases"] for flag in case["flags"]}
    for note in NOTES.values():
        assert note.mechanism.endswith(".")
        assert note.effect.endswith(".")


def test_files_are_small_and_laws_are_on_one_line():
    for name, file in FILES.items():
        text = (FOLDER / f"{name}.json").read_text()
        assert len(file["cases"]) >= 20
        assert len(text) <= 300_000
        assert text == laid_out(file) + "\n"
        assert not re.search(r'\[[0-9" ./,]*\n[0-9" ./,]*\]', text)


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("name", PUBLISHED)
def test_files_fit_the_schema(name):
    assert list(fits(SCHEMA).iter_errors(FILES[name])) == []


def test_the_schema_refuses_what_is_not_in_it():
    case = VERIFY[0]
    for keyword, wrong in (
        ("additionalProperties", {**case, "extra": 1}),
        ("required", {key: value for key, value in case.items() if key != "coins"}),
        ("enum", {**case, "flags": ["Acceptable"]}),
        ("type", {**case, "draft_tokens": [0.5]}),
        ("exclusiveMaximum", {**case, "coins": {**case["coins"], "final": 1.0}}),
        ("pattern", {**case, "p": {**case["p"], "exact": [["0.5", "1/2"]]}}),
    ):
        assert keyword in refusals(wrong), keyword
    assert not refusals(case)


def refusals(case):
    """The keywords that a case violates as one of its level."""
    level = {"$defs": SCHEMA["$defs"], "$ref": f"#/$defs/{case['level']}"}
    return {error.validator for error in fits(level).iter_errors(case)}


def fits(schema):
    jsonschema = pytest.importorskip("jsonschema", reason="not_run (jsonschema is not installed)")
    return jsonschema.Draft202012Validator(schema)


def test_the_schema_is_closed():
    def objects(schema):
        if isinstance(schema, dict):
            if schema.get("type") == "object":
                yield schema
            for item in schema.values():
                yield from objects(item)
        elif isinstance(schema, list):
            for item in schema:
                yield from objects(item)

    found = list(objects(SCHEMA))
    assert len(found) > 15
    assert all(one["additionalProperties"] is False for one in found)
