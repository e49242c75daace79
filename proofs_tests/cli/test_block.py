"""Commands that list the algorithms offer block verification."""

from dataclasses import replace

import pytest

from proofs_tests.helpers.command import run
from specref.rules import RULES
from specref.verification import cases_of, check_case
from specref.zoo import ALL

LENGTHS = ("--only", "acceptance/deep")


@pytest.mark.deep
def test_token_verification_is_not_taken_for_block_verification() -> None:
    """Its lengths are 0.053 off, and 0.023 is allowed: ten standard deviations of 0.003."""
    result = run("check", "examples.correct:verify", "--algorithm", "block", *LENGTHS)
    assert result.exit_code == 1
    text = " ".join(result.output.split())
    assert "rule block" in text
    assert "; they are those of 'standard'" in text
    assert "FAILED · ACCEPTED TOKENS" in text
    assert "LOSSY" not in text


@pytest.mark.deep
def test_a_registered_name_declares_it() -> None:
    pytest.importorskip("torch", reason="not_run (torch is not installed)")
    result = run("check", "torch-backend-block", "--only", "replay", *LENGTHS)
    assert result.exit_code == 0, result.output
    assert "rule block" in " ".join(result.output.split())


@pytest.mark.deep
def test_the_main_job_proves_it_and_notices_its_mutants() -> None:
    """Where it is defined: pairs over one vocabulary."""
    some = [case for case in cases_of("quick") if case.lookahead == 2]
    right = [check_case(RULES["block"], case) for case in some]
    assert not any(report.failures for report in right)
    assert [report.not_applicable for report in right] == [
        int(not case.pair.same_vocabulary) for case in some
    ]
    for name in ("block-by-tokens", "block-total-alone"):
        step = ALL[name].step
        failures = [
            text
            for c in some
            for text in check_case(replace(RULES["block"], step=step), c).failures
        ]
        assert any("acceptance" in text for text in failures)
        assert any("lossy" in text for text in failures) != ALL[name].lossless
