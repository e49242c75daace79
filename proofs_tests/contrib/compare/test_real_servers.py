"""Servers of llama.cpp and mlx-lm, each with a draft model, by `specref check URL`.

alpha is 1e-9; 30 texts of 8 tokens of each of 3 prompts would show large differences only: what is
tested is that texts, drafts, seeds and log-probabilities are read as these servers send them.
"""

import json

import pytest
from click.testing import CliRunner

from proofs_tests.helpers import servers
from specref.cli import main

PROMPTS = ("ab", "abcabc", "dcba")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    pytest.importorskip("gguf", reason="not_run (gguf is not installed)")
    return servers.pair(tmp_path_factory.mktemp("servers") / "pair")


@pytest.fixture
def check(tmp_path):
    def check(url, *more):
        (tmp_path / "prompts").write_text("\n".join(PROMPTS))
        report = tmp_path / "report.json"
        given = ["--prompts", str(tmp_path / "prompts"), "--folder", str(tmp_path / "texts")]
        given += ["--texts", "30", "--json", str(report), *more]
        result = CliRunner().invoke(main, ["check", url, *given])
        assert report.exists(), result.output
        return result, json.loads(report.read_text())

    return check


def test_llama_cpp_says_nothing_of_drafted_tokens(check, pair):
    """Its texts are right; tokens after the first have log-probability 0 and no list."""
    pytest.importorskip("xllamacpp", reason="not_run (xllamacpp is not installed)")
    with servers.llama(pair, "draft-simple", True) as url, servers.llama(pair, None) as plain:
        result, found = check(url, "--plain", plain, "--model", "m", "--logprobs", "raw")
    assert result.exit_code == 1
    assert found["verdict"] == "INCONCLUSIVE"
    assert found["speculation"]["exercised"] == "yes"
    assert found["greedy"]["apart"] == 0
    assert [one["equal"] for one in found["seeds"]] == [6, 6]
    assert found["logprobs"]["apart"] > 0
    on, off = found["reported"]
    assert "a token without a list of the likeliest" in on["faults"]
    assert (off["faults"], off["excluded"]) == ({}, [])


@pytest.mark.deep
def test_mlx_lm_counts_no_drafts_and_lists_other_tokens(check, pair):
    """Its texts and values are right; with lists it reports the first of each as the token."""
    for package in ("mlx.core", "mlx_lm"):
        pytest.importorskip(package, reason=f"not_run ({package} is not installed)")
    with servers.mlx(pair, True) as url:
        result, found = check(url, "--off", "num_draft_tokens=0", "--model", "default_model")
    assert result.exit_code == 1
    assert found["verdict"] == "INCONCLUSIVE"
    assert found["speculation"]["exercised"] == "unknown"
    assert found["greedy"]["apart"] == 0
    assert found["logprobs"]["apart"] == found["logprobs"]["above"] == 0
    values, _, lists, _ = found["reported"]
    assert not values["faults"]
    assert "of other tokens than those of the text" in lists["faults"]


@pytest.mark.deep
def test_mlx_lm_with_a_draft_model_reads_another_context_after_a_prompt_that_came_before(
    check, pair
):
    """200 texts of each prompt: log10 p was -19. One server with a switch shows nothing."""
    for package in ("mlx.core", "mlx_lm"):
        pytest.importorskip(package, reason=f"not_run ({package} is not installed)")
    with servers.mlx(pair, True) as url, servers.mlx(pair, False) as plain:
        given = ("--plain", plain, "--model", "default_model", "--workers", "1")
        result, found = check(url, *given, "--texts", "200")
    assert result.exit_code == 1
    assert found["verdict"] == "LOSSY"
