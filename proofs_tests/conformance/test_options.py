"""What a run of checks is told: defaults, and what is refused, by name."""

import re
from dataclasses import replace
from math import nan
from typing import Any

import pytest

from specref.conformance.checks import CHECKS
from specref.conformance.options import CheckOptions, timeout_of
from specref.conformance.public import check
from specref.conformance.suite import chosen, fitting, known_ids, reachable
from specref.contracts.capabilities import Capabilities
from specref.contracts.table import METRICS, STEP, TREE, VERIFY
from specref.contracts.timeout import TIMEOUT
from specref.examples.correct import verify as correct

OPTIONS = CheckOptions()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"contract": "verfy"}, "contract = 'verfy': expected one of ['verify', 'step', "),
        ({"profile": "slow"}, "profile = 'slow': expected one of ('quick', "),
        ({"alpha": 0}, "alpha = 0: expected a number in (0, 1)"),
        ({"alpha": 1}, "alpha = 1: expected a number in (0, 1)"),
        ({"alpha": nan}, "alpha = nan: expected a number in (0, 1)"),
        ({"detect_tv": 0.0}, "detect_tv = 0.0: expected a number in (0, 1)"),
        ({"detect_tv": 1.0}, "detect_tv = 1.0: expected a number in (0, 1)"),
        ({"seed": -1}, "seed = -1: expected at least 0"),
        ({"timeout": 0}, "timeout = 0: expected a positive number of seconds, or None"),
        ({"timeout": nan}, "timeout = nan: expected a positive number of seconds, or None"),
        ({"trials": 0}, "trials = 0: expected at least 1"),
        ({"time_limit": 3.0, "seconds": 4.0}, "time_limit = 3, seconds = 4: expected one"),
        ({"time_limit": -1.0}, "time_limit = -1.0: expected a positive number"),
        ({"time_limit": 3.0, "trials": 10}, "time_limit = 3, trials = 10: expected one"),
    ],
)
def test_bad_options_are_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        replace(OPTIONS, **changed)


def test_a_time_limit_is_what_seconds_are() -> None:
    assert CheckOptions(time_limit=3.0).seconds == 3.0


def test_patience_is_the_former_name_of_timeout() -> None:
    claims = {"patience": 3.0, "rule": "standard"}
    assert timeout_of(TIMEOUT, claims) == 3.0
    assert claims == {"rule": "standard"}
    assert timeout_of(5.0, claims) == 5.0
    with pytest.raises(TypeError, match=r"^patience is the former name of timeout: expected one"):
        timeout_of(5.0, {"patience": 3.0})


@pytest.mark.strata
def test_checks_are_chosen_by_their_ids_and_by_how_those_start() -> None:
    assert chosen(None) == CHECKS
    assert chosen([]) == ()
    (one,) = chosen(["joint/wide"])
    assert one.id == "joint/wide"
    joint = [one.id for one in CHECKS if one.id.startswith("joint")]
    assert [one.id for one in chosen(["joint"])] == joint
    assert len(chosen(["joint", "smoke"])) > len(joint) > 1


@pytest.mark.parametrize(
    ("only", "message"),
    [
        (["joint/wied"], ": did you mean 'joint/wide'?"),
        (["smoke", "jiont"], ": did you mean 'joint'?"),
        (["wide/joint"], ""),
    ],
)
def test_ids_that_no_check_has_are_refused(only: list[str], message: str) -> None:
    message = f"only = {only[-1]!r}: no check has an id like that{message}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        chosen(only)


def test_one_id_is_no_list() -> None:
    message = "only = 'joint': expected a list of ids, such as ['joint']"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        chosen("joint")


def test_expected_failures_are_of_checks_that_exist() -> None:
    known = {"joint/wide": "lenient"}
    assert known_ids(known) is known
    message = "expected_failures has no check 'joint/wied': did you mean 'joint/wide'?"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        known_ids(known | {"joint/wied": "lenient"})
    with pytest.raises(ValueError, match=r"^expected_failures has no check 'joint'"):
        known_ids({"joint": "a start is no id"})


def test_numpy_has_no_half_precision() -> None:
    reachable(Capabilities(dtype="float32"))
    message = (
        "dtype = float16, device = cpu: NumPy arrays are float64 or float32 on the CPU "
        "(arrays='torch' for others)"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        reachable(Capabilities(dtype="float16"))


def test_devices_are_tried() -> None:
    pytest.importorskip("torch", reason="not_run (torch is not installed)")
    for dtype in ("float16", "bfloat16"):
        reachable(Capabilities(dtype=dtype, arrays="torch"))
    with pytest.raises(ValueError, match=r"^device = 'abacus' cannot be used: .*abacus"):
        reachable(Capabilities(device="abacus", arrays="torch"))


def test_rules_go_with_contracts() -> None:
    fitting(None, TREE)
    fitting("topdown", TREE)
    fitting("standard", VERIFY)
    fitting("tli", STEP)
    for rule, contract, known in (
        ("standard", TREE, f"one of {TREE.rules}, or None"),
        ("topdown", VERIFY, f"one of {VERIFY.rules}, or None"),
        ("standard", METRICS, "no rule"),
    ):
        message = f"rule = {rule!r}: the contract {contract} has {known}"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            fitting(rule, contract)


def test_what_is_skipped_is_not_in_the_report() -> None:
    asked = check(correct, only=["smoke"], skip=["smoke/rows", "smoke/answers"])
    ids = {one.id for one in asked.results}
    assert not ids & {"smoke/rows-vary", "smoke/answers"}
    assert "smoke/one-hot" in ids
    with pytest.raises(ValueError, match="skip = 'jiont': no check has an id like that"):
        check(correct, skip=["jiont"])
