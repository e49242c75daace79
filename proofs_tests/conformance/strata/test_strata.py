"""Strata: what is judged in each, what is not, and what a report says of it."""

import math
import operator
import re

import numpy as np
import pytest
from click.testing import CliRunner

from specref.batched import verifier
from specref.cli import main
from specref.conformance.checks.strata import CHECKS as STRATA_CHECKS
from specref.conformance.options import CheckOptions
from specref.conformance.public import check
from specref.conformance.status import Finding, Status
from specref.conformance.strata import batches, calls, campaign
from specref.conformance.strata.laws import (
    drawn_pool,
)
from specref.conformance.suite import prepare
from specref.contracts.capabilities import capable
from specref.contracts.table import RAGGED
from specref.contrib.selftest.triggers import (
    BASE_BUGS,
    MASKING,
    PADDING,
    TRIGGERS,
    Trigger,
    triggered,
)
from specref.examples.correct import verify as correct
from specref.report.kit import kit_record

pytestmark = pytest.mark.strata
BUGS = {bug.id: bug for bug in (*BASE_BUGS, *MASKING, *PADDING)}
SITUATIONS = {trigger.id: trigger for trigger in TRIGGERS}
# A situation and a bug that only the stratum, of those before it, has to find.
PAIRS = ("pair-1", "pair-2", "pair-3")
FOUND = {
    "first-call": ("first-call", "residual-is-p"),
    "one-draft": ("one-draft", "residual-is-p"),
    "two-and-three-drafts": ("batch-3-to-8", "rejects-every-draft"),
    "many-drafts": ("eight-drafts", "residual-is-p"),
    "long-drafts": ("position-8-on", "residual-is-p"),
    "batches-to-16": ("batch-9-to-16", "residual-is-p"),
    "batches-to-512": ("row-above-255", "last-token-is-argmax"),
    "batches-to-8192": ("row-above-1023", "residual-is-p"),
    "vocabulary-hundreds": ("vocabulary-above-128", "residual-is-p"),
    "vocabulary-thousands": ("vocabulary-above-1024", "rejects-every-draft"),
    "vocabulary-32k": ("vocabulary-above-32k", "last-token-is-argmax"),
    "vocabulary-128k": ("vocabulary-above-65536", "rejects-every-draft"),
    "vocabulary-ends": ("end-id-masked", "never-recovers-it"),
    "no-laws": ("no-laws-one-row", "residual-is-p"),
    "laws-flat": ("top-below-0.1", "residual-is-p"),
    "laws-peaked": ("top-above-0.95", "accepts-every-draft"),
    "laws-confident": ("top-above-0.9", "residual-is-p"),
    "laws-mixed": ("one-row-certain", "last-token-is-argmax"),
    "transposed-arrays": ("transposed", "residual-is-p"),
    "laws-rare": ("draft-p-below-0.001", "rejects-every-draft"),
    "laws-zeros": ("zeros-in-p", "residual-is-p"),
    "drafter-wrong": ("ratio-below-0.1", "accepts-every-draft"),
    "bare": ("coins-not-passed", "last-token-is-argmax"),
    "bare-no-laws": ("lens-not-passed", "last-token-is-argmax"),
    "int32-ids": ("int32-ids", "residual-is-p"),
    "strided-arrays": ("strided", "residual-is-p"),
    "read-only-arrays": ("read-only", "residual-is-p"),
    "arrays-filled-anew": ("same-array-again", "residual-is-p"),
    "answers-kept": ("one-draft", "rejects-every-draft"),
    "late-calls": ("call-above-20000", "last-token-is-argmax"),
}


# Of what only some samplers take; test_ragged.py has their bugs.
TAKEN = (
    "large-logits",
    "one-temperature",
    "beside-greedy",
    "generators-kept",
    "odd-temperatures",
)
# What each finds is in test_serving.py.
SERVING = (
    "drawn-shapes",
    "vocabulary-large-batches",
    "drafter-certain",
    "laws-repeated",
    "laws-in-turn",
)


def one_stratum(name, verify, **options):
    """The result of one stratum."""
    judge, checks = prepare(verify, CheckOptions(only=[f"strata/{name}"], **options))
    return checks[0].run(judge)


def test_every_stratum_has_a_bug_that_it_fails():
    known = *FOUND, *TAKEN, *SERVING, "laws-fine", "own-shape", "large-call", *PAIRS
    of_batches = {c.id for c in STRATA_CHECKS if c.is_for(RAGGED)}
    assert {f"strata/{name}" for name in known} == of_batches


@pytest.mark.deep(one_in=5)
@pytest.mark.parametrize("name", FOUND)
def test_a_stratum_fails_a_bug_that_acts_there(name):
    trigger, bug = FOUND[name]
    verify = triggered(BUGS[bug], SITUATIONS[trigger])
    result = one_stratum(name, verify)
    assert result.status == Status.FAILED, result.message
    assert result.lossy


class AsText:
    """Takes numbers as text, as programs do."""

    specref_as_text = True

    def __init__(self, verify):
        self.verify = verify

    def __call__(self, p, q, drafts, *, rng):
        return self.verify(p, q, drafts, rng=rng)


def without_rare_tokens(p, q, drafts, *, rng):
    """Never draws a token with p < 1e-3 itself: far more than what the report says is found."""
    tokens, counts = np.full(p.shape[:2], -1), np.zeros(len(p), dtype=int)
    for row in range(len(p)):
        drafted, n = drafts[row][drafts[row] >= 0], 0
        while n < len(drafted) and rng.random() * q[row, n, drafted[n]] < p[row, n, drafted[n]]:
            tokens[row, n] = drafted[n]
            n += 1
        law = p[row, n] - q[row, n] if n < len(drafted) else p[row, n]
        law = np.maximum(law, 0)
        kept = np.where(p[row, n] < 1e-3, 0, law)
        law = kept if kept.any() else law
        tokens[row, n], counts[row] = rng.choice(len(law), p=law / law.sum()), n + 1
    return tokens, counts


def test_programs_are_judged_by_rare_tokens_at_smaller_vocabularies():
    """Numbers sent as text cost much: 1,000 tokens at most, and no strata of larger ones."""
    result = one_stratum("laws-rare", AsText(without_rare_tokens), claims={"one_hot": False})
    assert result.status == Status.FAILED, result.message
    assert "too few tokens with p < 1e-3," in result.message
    assert result.evidence["tried"].startswith("V 1,000; ")
    fine = one_stratum("laws-fine", AsText(verifier()))
    assert (fine.status, fine.evidence["tried"]) == (
        Status.PASSED, "V 1,000; lookahead 1; batch 64",
    )  # fmt: skip
    large = one_stratum("vocabulary-thousands", AsText(verifier()))
    assert large.status == Status.NOT_APPLICABLE
    assert large.message.startswith("numbers are sent as text: ask for")


@pytest.mark.parametrize(
    ("name", "claims", "why"),
    [
        ("no-laws", {"one_hot": False}, "does not take draft_probs=None"),
        ("large-call", {"batch": 139}, "takes 139 rows a call: too few for so many numbers"),
    ],
)
def test_what_a_sampler_does_not_take_is_not_applicable(name, claims, why):
    result = one_stratum(name, verifier(), claims=claims)
    assert (result.status, result.message) == (Status.NOT_APPLICABLE, why)


@pytest.fixture(scope="module")
def clean():
    return check(verifier(), only=["strata/"])


@pytest.mark.deep
def test_a_lossless_sampler_passes_and_is_told_what_was_tried(clean):
    found = {result.id: result for result in clean.strata}
    for name in ("own-shape", *TAKEN):
        left_out = found.pop(f"strata/{name}", None)
        assert left_out is None or left_out.status == Status.NOT_APPLICABLE
    assert {result.status for result in found.values()} == {Status.PASSED}
    large = found.pop("strata/large-call")
    assert large.message == "V 32,000, lookahead 4, batch 140: no impossible token"
    for result in found.values():
        shift = result.evidence["detectable_shift"]
        assert 0 < shift < 0.5
        assert f"a shift ≥ {shift:.2g} would be detected" in result.message
        assert result.message.startswith(result.evidence.get("pair", "V"))
    assert clean.exit_code == 0
    low, high = (f(r.evidence["detectable_shift"] for r in found.values()) for f in (min, max))
    assert (
        f"in {len(found)} situations shifts of {low:.2g} to {high:.2g}, as listed" in clean.verdict
    )


def test_who_needs_laws_of_drafts_gets_them_in_the_large_call():
    seen = []

    def asking(p, q, drafts, *, rng):
        seen.append(q is None)
        return verifier()(p, q, drafts, rng=rng)

    for one_hot in (True, False):
        result = one_stratum("large-call", asking, claims={"one_hot": one_hot})
        assert result.status == Status.PASSED
    assert seen == [True, False]


@pytest.mark.parametrize("place", [0, 3])
def test_the_large_call_shows_whose_lengths_and_laws_are_read(place):
    """Beyond 2^22 numbers of the first axes, rows are read by the lengths of other rows."""

    def chunked(p, q, drafts, *, rng):
        tokens, counts = verifier()(p, q, drafts, rng=rng)
        row = (1 << 22) // p.shape[2]
        if row < len(p):
            other = (counts[row] - 1 + place) % p.shape[1]
            tokens[row, counts[row] - 1] = p[row, other].argmax()
        return tokens, counts

    found = one_stratum("large-call", chunked)
    assert found.status == (Status.FAILED if place else Status.PASSED)


@pytest.mark.parametrize("lossy", [False, True])
def test_laws_that_are_overwritten_are_judged_as_they_were(lossy):
    """Samplers may filter in place, and the large call gives away the only copy of its laws."""

    def writing(p, q, drafts, *, rng):
        tokens, counts = verifier()(p, q, drafts, rng=rng)
        if lossy:
            tokens[0, counts[0] - 1] = 5
            p[0, :, 5] = 1.0
        else:
            p[:, :, :] = 0.0
        return tokens, counts

    found = one_stratum("large-call", writing, claims={"in_place": True})
    assert found.status == (Status.FAILED if lossy else Status.PASSED)
    if lossy:
        assert "row 0: token 5 at position" in found.message


def test_small_residuals_are_met_behind_drafters_that_lack_few_tokens():
    def rounded(p, q, drafts, *, rng):
        """Residuals below 0.03 are taken for rounding."""
        tokens, counts = correct(p, q, drafts, rng=rng)
        for row in np.flatnonzero(counts <= (drafts >= 0).sum(axis=1)):
            at = counts[row] - 1
            if np.maximum(p[row, at] - q[row, at], 0).sum() < 0.03:
                tokens[row, at] = rng.choice(p.shape[2], p=p[row, at] / p[row, at].sum())
        return tokens, counts

    found = one_stratum("long-drafts", rounded)
    assert (found.status, found.finding) == (Status.FAILED, Finding.LAW)
    assert "q < 1e-3" in found.message or "q = 0" in found.message


def test_a_shape_whose_first_call_is_greedy_is_met():
    greedy = {}

    def captured(p, q, drafts, *, rng):
        """What a shape's first call is decides whether its calls take argmax."""
        if greedy.setdefault(p.shape, bool((p.max(axis=2) == 1).all())):
            p = np.eye(p.shape[2])[p.argmax(axis=2)]
        return correct(p, q, drafts, rng=rng)

    found = one_stratum("laws-mixed", captured)
    assert (found.status, found.finding) == (Status.FAILED, Finding.LAW)
    assert any(greedy.values())


def test_a_call_for_which_there_is_no_memory_is_not_held_against_a_sampler():
    def small(p, q, drafts, *, rng):
        if p.size > 1 << 24:
            raise MemoryError
        return verifier()(p, q, drafts, rng=rng)

    result = one_stratum("large-call", small)
    assert result.status == Status.NOT_RUN
    (told,) = result.not_tried
    assert told.startswith("140 rows, 4 drafts, 32,000 tokens")
    assert told.endswith("(not enough memory)")


@pytest.mark.deep
def test_where_something_is_suspected_four_times_as_many_tokens_are_drawn(monkeypatch):
    usual = one_stratum("one-draft", verifier(), trials=4_000)
    monkeypatch.setattr("specref.conformance.strata.campaign.SUSPECT", -math.inf)
    longer = one_stratum("one-draft", verifier(), trials=4_000)
    drawn = [
        int(one.message.split(": ")[1].split()[0].replace(",", "")) for one in (usual, longer)
    ]
    assert 2.5 < drawn[1] / drawn[0] < 5  # whole rounds


def broken_at_first():
    calls = []

    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        calls.append(len(draft_tokens))
        if len(calls) == 1:
            raise RuntimeError("not ready")
        return verifier()(target_probs, draft_probs, draft_tokens, rng=rng)

    return verify


def test_a_first_call_that_raises_is_a_broken_contract():
    report = check(broken_at_first(), only=["smoke/answers"])
    assert report.results[0].status == Status.FAILED
    assert report.results[0].message == "raised RuntimeError in a batch of 2048: not ready"


@pytest.mark.deep
def test_a_bug_that_acts_where_two_strata_meet_is_found_by_their_pair():
    # With seed 152 the second pair is of many drafts without laws.
    meeting = Trigger(
        "own", "mode", lambda at: at.given["draft_probs"] is None and at.lookahead == 8
    )
    verify = triggered(BUGS["accepts-every-draft"], meeting)
    assert one_stratum("no-laws", verify).status == Status.PASSED
    assert one_stratum("many-drafts", verify).status == Status.PASSED
    result = one_stratum("pair-2", verify, seed=152)
    assert result.status == Status.FAILED
    assert result.message.startswith("many-drafts, no-laws: ")
    assert result.evidence["pair"] == "many-drafts, no-laws"


def int64_alone(target_probs, draft_probs, draft_tokens, *, rng):
    if draft_tokens.dtype != np.int64:
        raise TypeError("expected int64")
    return verifier()(target_probs, draft_probs, draft_tokens, rng=rng)


def test_what_a_sampler_refuses_is_not_tried_and_the_report_says_so():
    report = check(int64_alone, only=["strata/int32-ids", "strata/bare", "strata/many-drafts"])
    status = {result.id: str(result.status) for result in report.results}
    assert (status["strata/int32-ids"], status["strata/bare"]) == ("not_run", "not_applicable")
    assert report.exit_code == 0
    assert report.verdict.endswith("; not tried: with int32 ids (raises TypeError)")
    told = {one["id"]: one for one in kit_record(report)["strata"]}
    assert told["strata/many-drafts"]["tried"] == (
        "V/lookahead/batch 6/4/4, 33/4/64, 6/5/64, 33/5/4, 6/6/4, 33/6/64, 6/7/64, 33/7/4, "
        "6/8/4, 33/8/64, 6/9/64, 33/9/4"
    )
    assert told["strata/int32-ids"]["detectable_shift"] is None


def reusing_its_output():
    known = {}

    @capable(ragged=False)
    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        answer = verifier()(target_probs, draft_probs, draft_tokens, rng=rng)
        kept = known.setdefault(answer[0].shape, answer)
        for old, new in zip(kept, answer, strict=True):
            old[...] = new
        return kept

    return verify


def test_an_answer_that_a_later_call_changes_is_a_broken_contract():
    result = one_stratum("answers-kept", reusing_its_output())
    assert result.status == Status.FAILED
    assert "a later call changed the answer of an earlier one" in result.message


@pytest.mark.deep
def test_a_row_is_judged_whatever_chunks_the_sampler_takes():
    verify = capable(batch=2)(triggered(BUGS["residual-is-p"], SITUATIONS["one-draft"]))
    assert one_stratum("one-draft", verify).status == Status.FAILED
    assert one_stratum("one-draft", capable(batch=2)(verifier())).status == Status.PASSED


def coarse(bits):
    """A right verifier, but for the last token: an inverse CDF of uniforms of so many bits."""

    def winner(weight, race):
        cdf = np.cumsum(weight, axis=1)
        uniform = np.floor(np.exp(-race[:, 0]) * 2**bits) / 2**bits
        return (cdf <= uniform[:, None] * cdf[:, -1:]).sum(axis=1)

    return verifier(winner=winner)


@pytest.mark.parametrize("bits", [8, 10])
def test_tokens_of_coarse_uniforms_come_again_too_soon(bits):
    result = one_stratum("laws-fine", coarse(bits))
    assert result.status == Status.FAILED
    assert "too many tokens that were given before for the same row of p," in result.message


BUG_AT_9 = """
import numpy as np
from specref.batched import verifier
from specref.contrib.selftest.triggers import BASE_BUGS, Trigger, triggered

bug = next(one for one in BASE_BUGS if one.id == "last-token-is-argmax")
verify = triggered(bug, Trigger("nine", "shape", lambda at: at.rows == 9 and at.size == 9))
"""


@pytest.mark.usefixtures("undiagnosed")
def test_the_command_judges_own_shapes_and_replays_what_fails(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samplers.py").write_text(BUG_AT_9)
    only = ["--only", "strata/own-shape"]
    run = CliRunner().invoke
    sizes = ["--vocabulary", "9", "--lookahead", "2", "--batch", "4", "--batch", "9"]
    failing = run(main, ["check", "samplers.py:verify", "-v", *only, *sizes, "--save", "failures"])
    assert failing.exit_code == 1
    assert "with V 9, lookahead 2, batch 9" in " ".join(failing.output.split())
    (case,) = (tmp_path / "failures").iterdir()
    replayed = run(main, ["replay", str(case)])
    assert replayed.exit_code == 1
    assert "--only strata/own-shape" in " ".join(replayed.output.split())
    in_float32 = run(
        main, ["check", "samplers.py:verify", "-v", *only, *sizes[:-2], "--dtype", "float32"]
    )
    assert in_float32.exit_code == 0
    assert "in float32: V 9; lookahead 2; batch 4: " in " ".join(in_float32.output.split())
    refused = run(main, ["check", "samplers.py:verify", "-v", *only, "--dtype", "bfloat16"])
    assert refused.exit_code == 2
    assert "expected 'torch' for bfloat16" in refused.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shapes": [(1, 2, 3)]}, r"shapes\[0\]: vocabulary = 1: expected at least 2"),
        ({"shapes": [(9, 1, 1), (9, 0, 3)]}, r"shapes\[1\]: lookahead = 0: expected at least 1"),
        ({"shapes": [(9, 2, 0)]}, r"shapes\[0\]: batch = 0: expected at least 1"),
        ({"dtypes": ["float32"]}, r"dtypes = \('float32',\): expected shapes, too"),
        ({"shapes": [(9, 1, 1)], "dtypes": ["int8"]}, r"dtypes has 'int8': expected some of"),
        ({"shapes": [(9, 1, 1)], "dtypes": ["bfloat16"]}, "arrays = 'numpy'"),
    ],
)
def test_shapes_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        check(verifier(), only=["strata/own-shape"], **options)


NUMBERED = (
    (r"(?:at|in) (position|depth|row) (\d+)", operator.eq),
    (r"from (position|depth|row) (\d+)", operator.ge),
    (r"after fewer than () ?(\d+) tokens", operator.lt),
    (r"after () ?(\d+) tokens and more", operator.ge),
)
NAMED = {
    "anywhere": lambda at: at.row >= 0,
    "in the last row": lambda at: at.row == at.rows - 1,
    "in rows with fewer drafts": lambda at: at.drafts < at.lookahead,
    "in the first call": lambda at: at.call == 0,
    "in odd rows": lambda at: at.row % 2 == 1,
    "in odd calls": lambda at: at.call % 2 == 1,
    "after a token that came twice": lambda at: at.again,
    **dict.fromkeys(
        ["after all drafts", "at the last position", "below the deepest nodes"],
        lambda at: at.position == at.drafts,
    ),
}


def said(name, at):
    """The tokens at a place, by its name."""
    if name in NAMED:
        return NAMED[name](at)
    for pattern, compare in NUMBERED:
        if found := re.fullmatch(pattern, name.replace(",", "")):
            what = {"depth": "position", "": "context"}.get(found[1], found[1])
            return compare(getattr(at, what), int(found[2]))
    raise AssertionError(name)


@pytest.mark.parametrize("places", [campaign.PLACES, calls.PLACES, batches.TREE_PLACES])
def test_a_place_has_the_tokens_that_its_name_says(places):
    number = np.arange(1_100)
    position, drafts = number % 5, number // 5 % 5
    at = calls.TextTokens(
        *(number, number, position, drafts, number, number % 3),
        *(len(number), 3, number, number % 7 == 0),
    )
    for name, chosen in places.items():
        assert (chosen(at) == said(name, at)).all(), name


def test_padding_is_never_drawn():
    pool = drawn_pool(np.random.default_rng(1), 64, 6, padding=7)
    assert (pool.p[:, -7:] == 0).all()
    assert (pool.q[:, -7:] == 0).all()
