"""What is found in two files, and what is not.

alpha is 1e-9 for each comparison. Power: a rare token that is 2 % more frequent at each of 8
positions has a z of about 10 after 2,000 texts of each side; one of 100 prompts' own likeliest
tokens, after 20,000, about 15.
"""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from specref.cli import main
from specref.contrib.compare.judging import compare
from specref.contrib.compare.records import Texts
from specref.statistics.campaign.verdict import Verdict

TOKENS, LENGTH = 50, 8


def texts(laws, each, rng, name="t"):
    """So many texts of each prompt, from a law of its own."""
    rows = np.concatenate([rng.choice(len(law), (each, LENGTH), p=law) for law in laws])
    return of_rows(rows, np.repeat(np.arange(len(laws)), each), name)


def of_rows(rows, prompts, name="t"):
    starts = np.arange(0, rows.size + 1, rows.shape[1])
    ids = [str(one) for one in range(int(prompts.max()) + 1)]
    endings = [None] * len(rows)
    return Texts(name, rows.ravel(), starts, prompts, ids, endings, None, 0)


def shifted(law, token, share=0.02):
    moved = (1 - share) * law
    moved[token] += share
    return moved


UNIFORM = np.full(TOKENS, 1 / TOKENS)


def test_a_shift_of_one_token_is_found_and_named():
    rng = np.random.default_rng(1)
    found = compare(texts([shifted(UNIFORM, 3)], 2_500, rng), texts([UNIFORM], 2_500, rng))
    assert found.verdict == Verdict.LOSSY
    by_name = {test.name: test for test in found.tests}
    assert by_name["tokens anywhere"].significant
    assert by_name["tokens anywhere"].cells[0].label == "token 3"
    assert not by_name["lengths"].significant


def test_a_first_token_alone_is_found_at_its_position():
    rng = np.random.default_rng(2)
    plain, spec = (rng.choice(TOKENS, (2_000, LENGTH)) for _ in range(2))
    spec[:, 0] = rng.choice(TOKENS, 2_000, p=shifted(UNIFORM, 3, 0.1))
    prompts = np.zeros(2_000, dtype=int)
    found = compare(of_rows(spec, prompts), of_rows(plain, prompts))
    assert found.verdict == Verdict.LOSSY
    assert {test.name for test in found.tests if test.significant} >= {"position 1"}
    assert not {test.name for test in found.tests if test.significant} & {"position 2"}


KINDS = {
    "argmax": lambda law, rng: int(law.argmax()),
    "rarest": lambda law, rng: int(law.argmin()),
    "one token": lambda law, rng: 3,
    "another for each prompt": lambda law, rng: int(rng.integers(TOKENS)),
}


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_prompts_are_judged_together(kind):
    rng = np.random.default_rng(3)
    laws = rng.dirichlet(np.ones(TOKENS), 100)
    moved = [shifted(law, KINDS[kind](law, rng)) for law in laws]
    found = compare(texts(moved, 200, rng), texts(laws, 200, rng))
    assert found.verdict == Verdict.LOSSY
    assert found.prompts == 100


def test_repeats_are_found_where_frequencies_are_the_same():
    rng = np.random.default_rng(4)
    plain, spec = (rng.choice(TOKENS, (4_000, LENGTH)) for _ in range(2))
    again = rng.random(4_000) < 0.2
    spec[again, 5] = spec[again, 1]
    prompts = np.zeros(4_000, dtype=int)
    found = compare(of_rows(spec, prompts), of_rows(plain, prompts))
    assert {test.name for test in found.tests if test.significant} == {"share of repeated tokens"}


def test_equal_systems_are_certified_at_a_stated_distance():
    rng = np.random.default_rng(5)
    law = rng.dirichlet(np.ones(20))
    one, other = texts([law], 40_000, rng), texts([law], 40_000, rng)
    found = compare(one, other, within=0.1)
    assert found.verdict == Verdict.LOSSLESS_WITHIN_EPS
    assert {"position 1", "tokens given the one before"} <= {one.name for one in found.bounds}
    closer = compare(one, other, within=0.01)
    assert closer.verdict == Verdict.INCONCLUSIVE
    assert all(bound.needed > 40_000 for bound in closer.bounds)


@pytest.mark.deep
def test_bounds_hold_for_systems_that_differ():
    """In all of 10 runs at alpha 0.1, since the bounds are wide."""
    rng = np.random.default_rng(6)
    law, moved = UNIFORM[:10] * 5, shifted(UNIFORM[:10] * 5, 3, 0.1)
    truth = float(np.abs(law - moved).sum() / 2)
    held = 0
    for _ in range(10):
        found = compare(texts([moved], 300, rng), texts([law], 300, rng), alpha=0.1)
        held += all(b.most >= truth for b in found.bounds if b.name.startswith("position"))
    assert held == 10


@pytest.mark.deep
def test_equal_systems_are_not_called_lossy():
    """Of 20 pairs of files at alpha 0.2, 16 or more have a probability below 1e-6."""
    rng = np.random.default_rng(7)
    laws = rng.dirichlet(np.ones(TOKENS), 3)
    false = 0
    for _ in range(20):
        found = compare(texts(laws, 40, rng), texts(laws, 40, rng), alpha=0.2)
        false += found.verdict == Verdict.LOSSY
    assert false < 16


def test_the_order_of_files_and_what_one_of_them_lacks_are_no_difference():
    """Equal systems whose files are sorted, have far ids, or name endings in one file only."""
    rng = np.random.default_rng(10)
    rows = [rng.choice(4, (3_000, 2)) for _ in range(2)]
    ordered = [one[np.lexsort(one.T[::-1])] for one in rows]
    prompts = np.zeros(3_000, dtype=int)
    one, other = (of_rows(part, prompts) for part in ordered)
    one.endings[:] = ["length"] * len(one)
    assert compare(one, other).verdict != Verdict.LOSSY
    far = [of_rows(part * 2**29, prompts) for part in ordered]
    assert compare(*far).verdict != Verdict.LOSSY


@pytest.mark.parametrize("values", [{"alpha": 0}, {"within": 1.0}])
def test_numbers_out_of_range_are_refused(values):
    rng = np.random.default_rng(8)
    with pytest.raises(ValueError, match=r"expected a number in \(0, 1\)"):
        compare(texts([UNIFORM], 2, rng), texts([UNIFORM], 2, rng), **values)


def lines(path, rows, **more):
    with path.open("w") as file:
        for row in rows.tolist():
            file.write(json.dumps({"prompt_id": "a", "token_ids": row, **more}) + "\n")
    return str(path)


def test_the_command_says_where_and_leaves_with_a_code(tmp_path):
    rng = np.random.default_rng(9)
    plain, spec = (
        lines(tmp_path / f"{name}.jsonl", rng.choice(TOKENS, (2_500, LENGTH), p=law))
        for name, law in (("plain", UNIFORM), ("spec", shifted(UNIFORM, 3, 0.04)))
    )
    result = CliRunner().invoke(main, ["compare", spec, plain, "--json", str(tmp_path / "r")])
    assert result.exit_code == 1
    verdict, files = result.output.splitlines()[:2]
    assert verdict == "LOSSY: distributions differ (false-positive rate at most 1e-09)."
    assert files.startswith(spec[:40]), "the verdict is one line"
    assert "token 3" in result.output
    assert max(map(len, result.output.splitlines())) <= 80
    record = json.loads((tmp_path / "r").read_text())
    assert (record["verdict"], record["pairs"]) == ("LOSSY", 2_500)
    again = lines(tmp_path / "again.jsonl", rng.choice(TOKENS, (2_500, LENGTH)))
    assert CliRunner().invoke(main, ["compare", plain, again]).exit_code == 2
    same = ["compare", plain, again, "--within", "0.5", "--max-tokens", "2", "-q"]
    assert CliRunner().invoke(main, same).exit_code == 0
    assert CliRunner().invoke(main, ["compare", "-", "-"]).exit_code == 2


def test_what_too_few_pairs_allow_passes_and_less_does_not(tmp_path):
    rng = np.random.default_rng(12)
    files = []
    for name in ("spec", "plain"):
        rows = rng.choice(8, (600, 3)).tolist()
        files.append(tmp_path / f"{name}.jsonl")
        lines = (json.dumps({"prompt_id": "a", "token_ids": row}) for row in rows)
        files[-1].write_text("\n".join(lines))

    def told(*more):
        return CliRunner().invoke(main, ["compare", *map(str, files), *more])

    first = told()
    assert first.exit_code == 2
    last = first.stdout.splitlines()[-1]
    assert last.startswith("With these 600 pairs: --within 0.")
    within = float(last.split()[-2])
    assert told("--within", f"{within}", "-q").exit_code == 0
    assert told("--within", f"{within - 0.01}", "-q").exit_code == 2
    few = told("--within", "0.01", "--alpha", "1e-300")
    assert few.exit_code == 2
    assert "passes" not in few.stdout, "nothing below 1 does"
