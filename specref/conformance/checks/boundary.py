"""Stage boundary: rows that allow certain blocks only, so that one wrong block decides."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from specref.algorithms.standard import Draft
from specref.algorithms.trees.topdown import Node
from specref.arrays import NO_TOKEN, Floats
from specref.chance import Chance, exact_distribution
from specref.conformance.checks.check import DRAFTS, Check, failed, not_applicable, passed
from specref.conformance.judge import Judge
from specref.conformance.options import Profile
from specref.conformance.status import Finding, Outcome, Status
from specref.contracts.batch import Answer, Batch
from specref.contracts.errors import BrokenContractError
from specref.contracts.verify import VerifyContract
from specref.models import table_model
from specref.rule import Rule
from specref.vocabulary import Tokens, Vocabulary

SIZE = 512
ROUNDING = 1e-9
UNFAIR = 0.25
"""How far from 1/2 the share of a fair coin is in 256 rows with probability 3e-14 (Hoeffding)."""
RARE_P, RARE_ROWS = 2.0**-30, 1 << 13
# Calls, and how often the draft may be kept: more often has a probability below 1e-10 by uniforms
# of 23 bits. In the first, those of up to 13 bits are found, in the others up to 16.
RARE: Mapping[Profile, tuple[int, int]] = MappingProxyType(
    {"smoke": (16, 4), "quick": (16, 4), "standard": (128, 6), "thorough": (128, 6)}
)


def _batch(p: Floats, q: Floats, drafts: list[int]) -> Batch:
    tile = (SIZE, 1, 1)
    tokens = np.tile(drafts, (SIZE, 1))
    lens = np.full(SIZE, len(drafts))
    return Batch(np.tile(p, tile), np.tile(q, tile), tokens, lens, np.zeros(SIZE, dtype=np.int64))


def _all_are(answer: Answer, allowed: set[tuple[int, ...]], why: str) -> Outcome:
    """Pass if every block is one of these, or the start of one: a rule may stop early."""
    allowed = {block[:length] for block in allowed for length in range(1, len(block) + 1)}
    for row, tokens in enumerate(answer.tokens.tolist()):
        block = tuple(token for token in tokens if token >= 0)
        if block not in allowed:
            return failed(f"row {row} is {block}: {why}", row=row, block=block)
    return passed()


def equal_rows(judge: Judge) -> Outcome:
    """Where p = q every draft is accepted, by the rules that promise it."""
    if judge.declared is None or not judge.declared.accepts_equals:
        return not_applicable("declares no rule that accepts every draft where p = q")
    if judge.capabilities.inputs == "logits":
        return not_applicable("is given logits: where p = q their softmax may differ by rounding")
    p = np.array([[0.25, 0.25, 0.5], [0.1, 0.7, 0.2], [0.0, 1.0, 0.0]])
    answer = judge.verifier(_batch(p, p[:2], [0, 2]), judge.rng("equal rows"))
    for row in np.flatnonzero(answer.counts != 3)[:1].tolist():
        tokens = answer.tokens[row].tolist()
        return failed(
            f"row {row} is {tokens}: p = q accepts every draft",
            Finding.ACCEPTANCE,
            row=row,
        )
    return _all_are(answer, {(0, 2, 1)}, "after both drafts p leaves token 1 alone")


def disjoint(judge: Judge) -> Outcome:
    """Where p and q share no token, the first draft is rejected, always."""
    p = np.array([[0.0, 0.0, 0.25, 0.75], [1.0, 0.0, 0.0, 0.0]])
    q = np.array([[0.5, 0.5, 0.0, 0.0]])
    answer = judge.verifier(_batch(p, q, [1]), judge.rng("disjoint"))
    return _all_are(answer, {(2,), (3,)}, "token 1 has p = 0, and the residual is p")


def certain(judge: Judge) -> Outcome:
    """Greedy rows: a draft passes iff it is the target's only token."""
    eye = np.eye(4)
    p = np.stack([eye[2], eye[1], eye[3]])
    q = np.array([[0.25, 0.25, 0.25, 0.25], [0.5, 0.0, 0.5, 0.0]])
    batch, why = _batch(p, q, [2, 0]), "p allows 2, then 1 alone"
    wrong = beside_nan(judge, batch)
    if wrong is not None:
        return wrong
    return _all_are(judge.verifier(batch, judge.rng("certain")), {(2, 1)}, why)


def beside_nan(judge: Judge, batch: Batch) -> Outcome | None:
    """What is wrong beside a row of NaN, if it is claimed what becomes of one."""
    claim, row = judge.capabilities.nan, SIZE // 2
    if claim is None:
        return None
    p = batch.target_probs.copy()
    p[row] = np.nan
    rng = judge.rng("NaN")
    try:
        answer = judge.verifier(replace(batch, target_probs=p), rng)
    except BrokenContractError as error:
        if claim == "raises" and error.__cause__ is not None:
            return None
        raise
    if claim == "raises":
        what = f"row {row} is NaN, and nothing was raised: it claims nan=raises"
        return failed(what, Finding.CONTRACT, row=row)
    if wrong := _unclaimed(answer, [row], int(claim)):
        return wrong
    tokens = answer.tokens.copy()
    tokens[row] = tokens[row - 1]
    rest = _all_are(Answer(tokens, answer.counts), {(2, 1)}, f"row {row} next to it is NaN")
    if rest.status == Status.FAILED:
        return rest
    return None if judge.capabilities.greedy else _fair_beside_nan(judge, int(claim))


def _fair_beside_nan(judge: Judge, claim: int) -> Outcome | None:
    """Every other row is NaN; those between them begin with one of two tokens, as a fair coin."""
    rng, p = judge.rng("fair rows between NaN"), np.array([[0.0, 0.5, 0.5, 0.0]] * 2)
    batch = _batch(p, np.full((1, 4), 0.25), [0])
    batch.draft_tokens[:, 0] = rng.integers(4, size=SIZE)
    batch.target_probs[::2] = np.nan
    answer = judge.verifier(batch, rng)
    if wrong := _unclaimed(answer, range(0, SIZE, 2), claim):
        return wrong
    first = answer.tokens[1::2, 0]
    counts = [int((first == token).sum()) for token in (1, 2)]
    told = f"every other row is NaN, and of the {len(first)} between them"
    if sum(counts) < len(first):
        row = 1 + 2 * int(np.flatnonzero((first != 1) & (first != 2))[0])
        return failed(f"{told} row {row} begins with {answer.tokens[row, 0]}: p is 0", row=row)
    if abs(counts[0] / len(first) - 0.5) > UNFAIR:
        return failed(f"{told} {counts[0]} begin with token 1: p is 1/2")
    return None


def _unclaimed(answer: Answer, rows: Sequence[int], claim: int) -> Outcome | None:
    """The first row of NaN that did not get the token that is claimed."""
    for row in rows:
        got = answer.tokens[row, : answer.counts[row]].tolist()
        if got != [claim]:
            what = f"row {row} is NaN and got {got}: it claims nan={claim}"
            return failed(what, Finding.CONTRACT, row=row)
    return None


def forbidden(judge: Judge) -> Outcome:
    """A token with p = 0 is never emitted, as a draft, residual or bonus token."""
    p = np.array([[0.5, 0.0, 0.5, 0.0], [0.0, 0.3, 0.0, 0.7], [0.0, 0.0, 0.4, 0.6]])
    q = np.array([[0.6, 0.3, 0.0, 0.1], [0.2, 0.5, 0.3, 0.0]])
    allowed = {(2,), (0, 3), (0, 1, 2), (0, 1, 3)}
    answer = judge.verifier(_batch(p, q, [0, 1]), judge.rng("forbidden"))
    return _all_are(answer, allowed, "only 2, 0 3, 0 1 2 and 0 1 3 have positive probability")


def tiny(judge: Judge) -> Outcome:
    """Probabilities of 1e-20 and 1e-37 are no zeros: their ratio is 1e-17."""
    if judge.capabilities.dtype == "float16":
        return not_applicable("half precision has no such numbers")
    p = np.array([[0.5, 1e-37, 0.5], [1e-37, 0.5, 0.5]])
    q = np.array([[0.25, 1e-20, 0.75]])
    answer = judge.verifier(_batch(p, q, [1]), judge.rng("tiny"))
    allowed: set[Tokens] = {(0,), (2,)}
    if judge.declared and not judge.capabilities.greedy:  # tokens 0 and 2 are both an argmax
        allowed = likely_blocks(judge.declared, p, q[0], 1) or allowed
    why = "draft 1 is kept with probability 1e-17"
    if allowed == {(0,)}:
        why += ", and token 0 alone has p > q"
    return _all_are(answer, allowed, why)


def likely_blocks(rule: Rule, p: Floats, q: Floats, draft: int) -> set[Tokens]:
    """What a rule emits after one draft with probability above 1e-9; empty if it verifies none."""
    target = table_model(Vocabulary("abc"), {(): p[0]}, p[1])

    def verified(chance: Chance) -> Tokens:
        if rule.verify_tree is not None:
            return rule.verify_tree(target, (), (Node(draft, q, ()),), chance)
        return rule.verify(target, (), [Draft(draft, q)], chance) if rule.verify else ()

    law = exact_distribution(verified)
    return {block for block, mass in law.items() if block and mass > ROUNDING}


def rare_draft(judge: Judge) -> Outcome:
    """A draft with p = 2^-30 is kept as good as never, by coarse uniforms too often.

    The drafter is nearly certain of it. Uniforms of 23 bits or more keep it at most once in
    2^23 times; those of 12 bits once in 4,096.
    """
    claims, (calls, most) = judge.capabilities, RARE[judge.options.profile]
    if claims.dtype in ("float16", "bfloat16"):
        return not_applicable("low precision: such a probability is rounded")
    if claims.batch is not None and claims.batch < RARE_ROWS:
        return not_applicable(f"takes {claims.batch} rows a call: too few to look for rare drafts")
    p = np.array([[1 - RARE_P, RARE_P], [0.5, 0.5]])
    q = np.array([[RARE_P, 1 - RARE_P]])
    batch, rng, kept = _batch(p, q, [1])[np.zeros(RARE_ROWS, dtype=np.int64)], judge.rng("rare"), 0
    for _ in range(calls):
        kept += int((judge.verifier(batch, rng).tokens[:, 0] == 1).sum())
    rows = RARE_ROWS * calls
    if kept > most:
        return failed(
            f"a draft with p = 2^-30 was kept {kept} times in {rows:,}: uniforms of about "
            f"{np.log2(rows / kept):.0f} bits decide"
        )
    return passed(f"a draft with p = 2^-30 was kept {kept} times in {rows:,}")


def ragged(judge: Judge) -> Outcome:
    """Rows of 0 to 3 certain drafts, all different: each gets its own, and its own last token."""
    if not judge.capabilities.ragged:
        return not_applicable("does not take ragged batches")
    most, size = 3, 12
    least = judge.contract.fewest_drafts(judge.capabilities)
    lens = least + np.arange(SIZE) % (most + 1 - least)
    path = (np.arange(SIZE)[:, None] + 3 * np.arange(most + 1)) % (size - 1)
    p = np.eye(size)[path]
    none = np.arange(most) >= lens[:, None]
    drafts = np.where(none, NO_TOKEN, path[:, :-1])
    p[:, 1:][none] = np.eye(size)[-1]
    q = np.where(none[:, :, None], np.eye(size)[-1], p[:, :-1])
    tokens = judge.verifier(Batch(p, q, drafts, lens, lens), judge.rng("ragged")).tokens
    wrong = (tokens != NO_TOKEN) & (tokens != path)
    for row in np.flatnonzero(wrong.any(axis=1))[:1].tolist():
        got, allowed = tokens[row].tolist(), path[row, : lens[row] + 1].tolist()
        return failed(
            f"row {row} of {lens[row]} drafts is {got}: p allows {allowed} alone", row=row
        )
    return passed()


CHECKS = (
    Check("boundary/equal-rows", DRAFTS, equal_rows, law=True),
    Check("boundary/disjoint", DRAFTS, disjoint),
    Check("boundary/certain", DRAFTS, certain),
    Check("boundary/forbidden", DRAFTS, forbidden),
    Check("boundary/tiny", DRAFTS, tiny),
    Check("boundary/ragged", DRAFTS, ragged),
)
# It takes longer than a law that is wrong, which is seen at once.
COSTLY = (Check("boundary/rare-draft", VerifyContract, rare_draft, law=True),)
