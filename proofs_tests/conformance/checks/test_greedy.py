"""The claim greedy=true: argmax verification is compared block by block, without sampling."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.bugs.verifiers import clean
from specref.algorithms import standard
from specref.algorithms.trees import topdown
from specref.arrays import Floats, Ints, one_hot_rows
from specref.chance import Sampled
from specref.conformance.checks import CHECKS, greedy
from specref.conformance.greedy import departures, greedy_text, likeliest
from specref.conformance.public import check
from specref.conformance.report import Report
from specref.conformance.status import Status
from specref.conformance.strata.table import STRATA, crossed
from specref.contracts.batch import NO_NODE, ROOT, Batch, TreeBatch
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.contracts.table import VERIFY
from specref.contracts.tree import as_verifier
from specref.models import Model, as_float

pytestmark = pytest.mark.usefixtures("undiagnosed")

Pick = Callable[[Floats], Ints]
GREEDY = [one for one in CHECKS if one.id.startswith("boundary/greedy-")]
LAWS = ("replay/", "joint/", "acceptance/", "independence/", "iterations/")


def first(p: Floats) -> Ints:
    return p.argmax(axis=2)


def last(p: Floats) -> Ints:
    return p.shape[2] - 1 - p[:, :, ::-1].argmax(axis=2)


def verifying(
    pick: Pick = first,
    *,
    hits: Callable[[Ints, Ints], Any] = lambda top, drafts: top[:, :-1] == drafts,
    kept: Callable[[Any], Ints] = lambda yes: np.logical_and.accumulate(yes, axis=1).sum(axis=1),
    bonus: Callable[[Ints, Ints], Ints] = lambda top, count: top[np.arange(len(top)), count],
    given: Callable[[Floats, Any], Floats] = lambda p, q: p,
) -> Any:
    """Argmax verification, with holes for bugs."""

    def verify(
        target_probs: Floats, draft_probs: Any, draft_tokens: Ints, *, rng: np.random.Generator
    ) -> tuple[Ints, Ints]:
        top = pick(given(target_probs, draft_probs))
        count = kept(hits(top, draft_tokens) & (draft_tokens >= 0))
        tokens = np.where(np.arange(top.shape[1] - 1) < count[:, None], draft_tokens, -1)
        tokens = np.pad(tokens, ((0, 0), (0, 1)), constant_values=-1)
        tokens[np.arange(len(tokens)), count] = bonus(top, count)
        return tokens, count + 1

    return verify


def middle_of_ties(p: Floats) -> Ints:
    """Of tied tokens the mean, which may be none of them."""
    tied = p == p.max(axis=2, keepdims=True)
    return (tied * np.arange(p.shape[2])).sum(axis=2) // tied.sum(axis=2)


def without_bonus(p: Floats, q: Any, drafts: Ints, *, rng: Any) -> tuple[Ints, Ints]:
    """A fully accepted row stops after its last draft."""
    tokens, counts = verifying()(p, q, drafts, rng=rng)
    lens = (drafts >= 0).sum(axis=1)
    counts = np.where((counts > lens) & (lens > 0), lens, counts)
    return np.where(np.arange(tokens.shape[1]) < counts[:, None], tokens, -1), counts


def accepting_by_chance(p: Floats, q: Any, drafts: Ints, *, rng: Any) -> tuple[Ints, Ints]:
    """Rejection sampling, then an argmax."""
    tokens, counts = clean(p, q, drafts, rng=rng)
    rows = np.arange(len(tokens))
    tokens[rows, counts - 1] = first(p)[rows, counts - 1]
    return tokens, counts


def ties_by_chance(p: Floats, q: Any, drafts: Ints, *, rng: Any) -> tuple[Ints, Ints]:
    tied = (p == p.max(axis=2, keepdims=True)) * rng.random(p.shape)
    return verifying(given=lambda p, q: tied)(p, q, drafts, rng=rng)


def accepting_near_ties(p: Floats, q: Any, drafts: Ints, *, rng: Any) -> tuple[Ints, Ints]:
    drafted = np.take_along_axis(p[:, :-1], np.maximum(drafts, 0)[:, :, None], axis=2)[:, :, 0]
    near = drafted > 0.9 * p[:, :-1].max(axis=2)
    return verifying(hits=lambda top, drafts: near)(p, q, drafts, rng=rng)


def rolled_if(acts: Callable[[Floats], bool]) -> Any:
    """Reads the next token's probability in batches of some shape."""
    return verifying(given=lambda p, q: np.roll(p, acts(p), axis=2))


BUGS: dict[str, dict[str, Any]] = {
    "blocks": {
        "rejection sampling": clean,
        "accepts by chance": accepting_by_chance,
        "never a bonus token": without_bonus,
        "bonus of the row before": verifying(
            bonus=lambda top, n: top[np.arange(len(top)), np.maximum(n - 1, 0)]
        ),
        "keeps drafts after a mismatch": verifying(kept=lambda yes: yes.sum(axis=1)),
    },
    "ties": {"ties go to another token": verifying(middle_of_ties)},
    "randomness": {"ties by chance": ties_by_chance},
    "large": {"rounds before it compares": verifying(given=lambda p, q: np.round(p, 1))},
    "one-hot": {
        "needs q": verifying(given=lambda p, q: p if q is not None else np.roll(p, 1, axis=2))
    },
    "situations": {
        "eight drafts": rolled_if(lambda p: p.shape[1] == 9),
        "one row": rolled_if(lambda p: len(p) == 1),
        "more than 4,096 rows": rolled_if(lambda p: len(p) > 4_096),
        "accepts what is nearly the likeliest": accepting_near_ties,
        "argmax of float16": verifying(given=lambda p, q: p.astype(np.float16)),
        "ids of 16 bits": verifying(given=lambda p, q: p[:, :, : 1 << 16]),
    },
}
"""Bugs by the check that finds them."""
KILLED = [(f"boundary/greedy-{name}", bug) for name, bugs in BUGS.items() for bug in bugs]


def judged(verify: Any, **options: Any) -> Report:
    return check(verify, blocking=False, **{"greedy": True, **options})


def failing(report: Report) -> set[str]:
    return {result.id for result in report.failures}


NAMED = {one.name: one for one in STRATA}


def judge_in(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Ask for these strata and no others: the rest take seconds."""
    monkeypatch.setattr(greedy, "STRATA", tuple(map(NAMED.__getitem__, names)))
    monkeypatch.setattr(greedy, "drawn_pairs", lambda rng, count: [])


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize(
    ("pick", "claims"),
    [(last, {"inputs": "logits"}), (first, {"rule": "standard"}),
     (first, {"ragged": False, "one_hot": False, "batch": 7}), (last, {}),
     (first, {"dtype": "float32", "inputs": "logits"}), (last, {"dtype": "float32"})],
)  # fmt: skip
def test_argmax_verification_passes(
    pick: Pick, claims: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways out of a tie and all claims; every pair of them would take a minute.

    All strata are asked for without claims, few under each of them.
    """
    if claims:
        judge_in(monkeypatch, "one-draft", "two-and-three-drafts", "laws-flat", "no-laws", "bare")
    report = judged(verifying(pick), **claims)
    assert report.exit_code == 0, report
    assert "argmax" in report.verdict
    asked = {r.id for r in report.results if r.status != Status.NOT_APPLICABLE}
    assert not [id_ for id_ in asked if id_.startswith(LAWS)]
    wanted = {one.id for one in GREEDY if VERIFY in one.contracts}
    skipped = set() if claims.get("one_hot", True) else {"boundary/greedy-one-hot"}
    assert wanted - asked == skipped


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("inputs", ["probs", "logits"])
def test_low_precision_ties_as_it_is_given(
    dtype: str, inputs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_in(monkeypatch, "one-draft", "laws-flat", "vocabulary-hundreds", "int32-ids")
    torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")

    def verify(p: Any, q: Any, drafts: Any) -> Any:
        top = p.argmax(dim=2)
        count = (top[:, :-1] == drafts).cumprod(dim=1).sum(dim=1)
        return torch.where(torch.arange(top.shape[1]) <= count[:, None], top, -1), count + 1

    report = judged(verify, arrays="torch", dtype=dtype, inputs=inputs)
    assert report.exit_code == 0, report


@pytest.mark.deep(one_in=9)
@pytest.mark.parametrize(("killer", "bug"), KILLED)
def test_planted_bugs_are_found(killer: str, bug: str) -> None:
    report = judged(BUGS[killer.removeprefix("boundary/greedy-")][bug], only=[killer])
    assert report.exit_code == 1
    assert failing(report) == {killer}, report


@pytest.mark.deep
@pytest.mark.strata
def test_checks_of_laws_do_not_apply_whatever_fails_before_them() -> None:
    """They are not `not_run`: nothing that is mended would have them run."""
    report = check(BUGS["situations"]["eight drafts"], greedy=True)
    found = {r.id: r.status for r in report.results}
    laws = {one.id for one in CHECKS if one.law and VERIFY in one.contracts}
    assert {found[id_] for id_ in laws} == {Status.NOT_APPLICABLE}
    assert {id_ for id_, one in found.items() if one == Status.NOT_RUN} <= {"strata/large-call"}


def test_ways_of_calling_are_judged_greedily_too(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_in(monkeypatch, "one-draft", "arrays-filled-anew")
    seen: dict[int, Ints] = {}

    def remembers(p: Floats, q: Any, drafts: Ints, *, rng: Any) -> tuple[Ints, Ints]:
        """Known again by its place in memory; held, so that no other array comes there."""
        top, _ = seen.setdefault(id(p), (first(p), p))  # type: ignore[misc]
        return verifying(lambda p: top)(p, q, drafts, rng=rng)

    report = judged(remembers, only=["boundary/greedy-situations"])
    (failure,) = report.failures
    assert failure.message.startswith("arrays-filled-anew, V = 8, 32 rows, call 1")


def test_pairs_of_strata_are_judged_greedily_too(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_in(monkeypatch, "many-drafts", "int32-ids")
    both = crossed(*(NAMED[name] for name in ("many-drafts", "int32-ids")))
    monkeypatch.setattr(greedy, "drawn_pairs", lambda rng, count: [both])

    def wrong(p: Floats, q: Any, drafts: Ints, *, rng: Any) -> tuple[Ints, Ints]:
        at = drafts.shape[1] == 8 and drafts.dtype == np.int32
        return verifying(given=lambda p, q: np.roll(p, at, axis=2))(p, q, drafts, rng=rng)

    (failure,) = judged(wrong, only=["boundary/greedy-situations"]).failures
    assert failure.message.startswith(f"{both.name}, V = ")


def test_every_check_of_greedy_decoding_finds_a_bug() -> None:
    drafts = {one.id for one in GREEDY if VERIFY in one.contracts}
    assert drafts <= {killer for killer, _ in KILLED}


def test_without_the_claim_nothing_of_it_is_asked() -> None:
    report = check(clean, only=["boundary/greedy"], blocking=False)
    assert {str(r.status) for r in report.results} == {"not_applicable"}


def test_argmax_verification_that_does_not_claim_it_is_told_so() -> None:
    only = ["smoke/answers", "smoke/calls-vary"]
    report = check(verifying(), only=only)
    assert report.exit_code == 1
    (result,) = report.failures
    assert "greedy=true" in result.message
    # A generator that is seeded anew in every call is no argmax.

    def anew(target_probs: Any, draft_probs: Any, draft_tokens: Any) -> Any:
        return clean(target_probs, draft_probs, draft_tokens, rng=np.random.default_rng(3))

    frozen = check(anew, only=only)
    assert "greedy=true" not in str(frozen)
    assert "seeded anew" in str(frozen)


def follows(nodes: list[tuple[int, int]], allowed: Any, block: list[int], eos: int) -> bool:
    """Whether a block is of greedy decoding, by its definition; `nodes` are (parent, token)."""
    at = {ROOT}
    for place, token in enumerate(block):
        if not allowed[min(at) + 1, token]:
            return False
        if token == eos:
            return True
        below = {node: {i for i, one in enumerate(nodes) if one == (node, token)} for node in at}
        if place == len(block) - 1:
            return not all(below.values())
        at = set().union(*below.values())
        if not at:
            return False
    return False


def test_departures_of_random_trees_are_those_of_the_definition() -> None:
    """With equal siblings, whose laws are equal too, shorter rows, and EOS."""
    rng, found = np.random.default_rng(5), [0, 0]
    for _ in range(300):
        size = int(rng.integers(1, 7))
        lens = rng.integers(size + 1, size=8)
        drafts = np.where(np.arange(size) < lens[:, None], rng.integers(2, size=(8, size)), -1)
        parents = np.array([[rng.integers(ROOT, i) for i in range(size)] for _ in lens])
        parents[drafts < 0] = NO_NODE
        allowed = rng.random((8, size + 1, 2)) < 0.6
        blocks = np.full((8, size + 1), -1)
        expected = []
        for row, (many, may) in enumerate(zip(lens.tolist(), allowed, strict=True)):
            nodes = list(zip(parents[row].tolist(), drafts[row].tolist(), strict=True))[:many]
            paths = [()]
            for parent, token in nodes:
                paths.append((*paths[parent + 1], token))
                may[len(paths) - 1] = may[paths.index(paths[-1])]
            block = [*paths[rng.integers(len(paths))], int(rng.integers(2))]
            blocks[row, : len(block)] = block
            expected += [] if follows(nodes, may, block, 1) else [row]
        batch = TreeBatch(1.0 * allowed, None, drafts, lens, lens, parents)
        assert departures(batch, allowed, blocks, 1).tolist() == expected
        found[0] += len(expected)
        found[1] += 8 - len(expected)
    assert min(found) > 500


def test_a_tolerance_lets_tokens_tie() -> None:
    p = np.array([[[0.5, 0.495, 0.005]]])
    none = np.zeros(1, dtype=np.int64)
    batch = Batch(p, None, np.zeros((1, 0), dtype=np.int64), none, none)
    for tolerance, tied in ((0.0, [True, False, False]), (0.003, [True, True, False])):
        verifier = Verifier(clean, Capabilities(tolerance=tolerance))
        assert likeliest(verifier, batch)[0, 0].tolist() == tied


def greedy_tree(p: Floats, q: Any, drafts: Ints, parents: Ints, *, rng: Any) -> Any:
    certain = one_hot_rows(p.argmax(axis=2), p.shape[2])
    return as_verifier(topdown.verify)(certain, None, drafts, parents, rng=rng)


@pytest.mark.deep
def test_trees_are_verified_greedily_too() -> None:
    claims = {"contract": "tree", "greedy": True}
    assert check(greedy_tree, **claims).exit_code == 0
    sampling = check(as_verifier(topdown.verify), blocking=False, **claims)
    assert "boundary/greedy-blocks" in failing(sampling)


TREE_SITUATIONS: dict[str, tuple[Callable[[Ints], bool], str]] = {
    "8 siblings": (lambda parents: (parents == ROOT).sum(axis=1).max() == 8, "tree-siblings"),
    "depth 5": (lambda parents: parents.shape[1] == 5 and parents.max() == 3, "tree-deep"),
    "one row": (lambda parents: len(parents) == 1, "tree-batches-to-32"),
    "1,024 rows": (lambda parents: len(parents) == 1_024, "tree-batches-to-1500"),
}


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("situation", TREE_SITUATIONS)
def test_trees_are_judged_greedily_in_situations(situation: str) -> None:
    acts, stratum = TREE_SITUATIONS[situation]

    def wrong(p: Floats, q: Any, drafts: Ints, parents: Ints, *, rng: Any) -> Any:
        rolled = np.roll(p, int(acts(parents)), axis=2)
        return greedy_tree(rolled, q, drafts, parents, rng=rng)

    report = judged(wrong, contract="tree", only=["smoke", "boundary"])
    assert failing(report) == {"boundary/greedy-situations"}
    (failure,) = report.failures
    assert failure.message.startswith(stratum)


def test_near_ties_are_no_ties_in_trees_steps_and_loops() -> None:
    def half(array: Floats) -> Floats:
        rounded = array.astype(np.float16).astype(np.float64)
        return np.asarray(rounded / rounded.sum(axis=-1, keepdims=True))

    def tree(p: Floats, q: Any, drafts: Ints, parents: Ints, *, rng: Any) -> Any:
        return greedy_tree(half(p), q, drafts, parents, rng=rng)

    def rounded(model: Model) -> Model:
        return Model(model.vocabulary, lambda context: half(as_float(model).next_token(context)))

    def step(target: Any, drafter: Any, context: Any, lookahead: int, rng: Any) -> Any:
        return greedy_step(rounded(target), drafter, context, lookahead, rng)

    def generate(target: Any, drafter: Any, context: Any, tokens: int, rng: Any) -> Any:
        return greedy_text(rounded(target), context, tokens)

    found = {
        "tree-laws-close": judged(tree, contract="tree", only=["boundary/greedy-situations"]),
        "step-vocabulary-thousands": judged(step, contract="step", only=["boundary/greedy-steps"]),
        "text-vocabulary-thousands": judged(
            generate, contract="generate", only=["end-to-end/greedy"]
        ),
    }
    for name, report in found.items():
        (failure,) = report.failures
        assert failure.message.startswith(name), report


@pytest.mark.deep
def test_last_siblings_are_read_greedily_too() -> None:
    """Nothing else finds who looks at no more than three siblings."""

    def three_siblings(p: Floats, q: Any, drafts: Ints, parents: Ints, *, rng: Any) -> Any:
        above = np.array(parents)
        for row in above:
            for node, parent in enumerate(row):
                if parent >= ROOT and (row[:node] == parent).sum() > 2:
                    row[node:] = -2
        return greedy_tree(p, q, np.where(above < ROOT, -1, drafts), above, rng=rng)

    report = judged(three_siblings, contract="tree")
    assert failing(report) == {"boundary/greedy-situations"}


def greedy_step(
    target: Model, drafter: Model, context: Any, lookahead: int, rng: np.random.Generator
) -> Any:
    """Drafts are drawn; what is kept of them is the target's own text."""
    drafts: tuple[int, ...] = ()
    while len(drafts) < lookahead and not target.vocabulary.ends(drafts):
        law = drafter.next_token((*context, *drafts))
        drafts += (int(rng.choice(len(law), p=law / law.sum())),)
    text = greedy_text(target, context, len(drafts) + 1)
    same = (n for n in range(min(len(drafts), len(text))) if drafts[n] != text[n])
    return text[: next(same, len(drafts)) + 1]


def test_steps_are_judged_greedily_too() -> None:
    report = check(greedy_step, contract="step", greedy=True)
    assert report.exit_code == 0, report
    asked = {r.id for r in report.results if r.status != Status.NOT_APPLICABLE}
    assert "boundary/greedy-steps" in asked
    assert not [id_ for id_ in asked if id_.startswith(LAWS)]

    def sampling(target: Any, drafter: Any, context: Any, lookahead: int, rng: Any) -> Any:
        return standard.step(target, drafter, context, lookahead, Sampled(rng))

    wrong = check(sampling, contract="step", greedy=True, only=["boundary"])
    assert failing(wrong) == {"boundary/greedy-steps"}
    assert "an argmax of the target is" in str(wrong)


def test_steps_are_judged_greedily_in_situations() -> None:
    def of_drafter_then(target: Any, drafter: Any, context: Any, lookahead: int, rng: Any) -> Any:
        models = (target, drafter) if lookahead < 5 else (drafter, target)
        return greedy_step(*models, context, lookahead, rng)

    asked: dict[str, Any] = {"contract": "step", "only": ["boundary/greedy-steps"]}
    (failure,) = check(of_drafter_then, greedy=True, **asked).failures
    assert failure.message.startswith("step-many-drafts, V 6, context 2, lookahead ")


def test_a_greedy_step_that_goes_on_after_eos_is_found() -> None:
    def endless(target: Any, drafter: Any, context: Any, lookahead: int, rng: Any) -> Any:
        return text_of(target, context, lookahead + 1, beyond_eos=True)

    report = check(endless, contract="step", greedy=True, only=["boundary/greedy-steps"])
    assert failing(report) == {"boundary/greedy-steps"}
    assert "after EOS" in str(report)


def text_of(
    model: Model,
    context: Any,
    tokens: int,
    reads: Callable[[Any], Any] = lambda context: context,
    *,
    beyond_eos: bool = False,
) -> Any:
    """Greedy decoding of a target that reads something else than the context."""
    text: tuple[int, ...] = ()
    while len(text) < tokens and (beyond_eos or not model.vocabulary.ends(text)):
        text += (int(np.argmax(model.next_token(reads((*context, *text))))),)
    return text


def last_of_ties(model: Model, context: Any, tokens: int) -> Any:
    """Greedy decoding by logarithms of float64; of tied tokens the last."""
    text: tuple[int, ...] = ()
    while len(text) < tokens and not model.vocabulary.ends(text):
        with np.errstate(divide="ignore"):
            row = np.log(model.next_token((*context, *text)))
        text += (len(row) - 1 - int(row[::-1].argmax()),)
    return text


def test_any_of_tied_tokens_will_do_in_texts() -> None:
    def generate(target: Any, drafter: Any, context: Any, tokens: int, rng: Any) -> Any:
        return last_of_ties(target, context, tokens)

    report = check(generate, contract="generate", greedy=True)
    assert report.exit_code == 0, report


@pytest.mark.deep
def test_texts_of_loops_are_judged_greedily_too() -> None:
    def generate(target: Any, drafter: Any, context: Any, tokens: int, rng: Any) -> Any:
        return greedy_text(target, context, tokens)

    def of_drafter_later(target: Any, drafter: Any, context: Any, tokens: int, rng: Any) -> Any:
        kept = greedy_text(target, context, min(tokens, 30))
        return (*kept, *greedy_text(drafter, (*context, *kept), tokens - len(kept)))

    def beyond_eos(target: Any, drafter: Any, context: Any, tokens: int, rng: Any) -> Any:
        return text_of(target, context, tokens, beyond_eos=True)

    def of_the_last_token(target: Any, drafter: Any, context: Any, tokens: int, rng: Any) -> Any:
        return text_of(target, context, tokens, lambda context: context[-1:])

    def of_few_tokens(target: Any, drafter: Any, context: Any, tokens: int, rng: Any) -> Any:
        """Right up to the 40 tokens that the longest of the other texts have."""
        return text_of(target, context, tokens, lambda context: context[-43:])

    asked: dict[str, Any] = {"contract": "generate", "only": ["end-to-end/greedy"]}
    assert check(generate, greedy=True, **asked).passed
    for wrong in (of_drafter_later, beyond_eos, of_the_last_token, of_few_tokens):
        assert failing(check(wrong, greedy=True, **asked)) == {"end-to-end/greedy"}, wrong
    (unclaimed,) = check(generate, **asked).results
    assert (unclaimed.status, unclaimed.message) == (
        Status.NOT_APPLICABLE,
        "does not decode greedily",
    )


def test_a_step_that_draws_nothing_is_told_of_the_claim() -> None:
    def text_alone(target: Any, drafter: Any, context: Any, lookahead: int, rng: Any) -> Any:
        return greedy_text(target, context, 1)

    report = check(text_alone, contract="step")
    assert "greedy=true" in str(report)
