"""Measurements of learning-free drafts and of companions: what they count, that they run."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from click.testing import CliRunner
from transformers import GPT2Config, GPT2LMHeadModel

from gpu_tests.benchmarks import companions, ngrams
from gpu_tests.benchmarks.companion_information import correlation, correlations, information
from gpu_tests.benchmarks.companion_speed import AtPrice, distance
from gpu_tests.benchmarks.companion_traces import Traces, judged
from gpu_tests.benchmarks.ngram_texts import Text, repeated
from gpu_tests.benchmarks.ngrams import Sizes, continued, grid, next_logits
from gpu_tests.benchmarks.ngrams_page import rate
from gpu_tests.pairs import card_entries
from proofs_tests.benchmarks import ngrams as words
from specref import Model, Vocabulary
from specref.algorithms.ngrams.drafts import Propose
from specref.algorithms.ngrams.tables import bigrams, extended_by_model
from specref.speed import traces as recorded
from specref.speed.companion_table import Observation, profile
from specref.speed.schedulers import Profile
from specref.vocabulary import Tokens

PLACES, POSITIONS, ALPHA = 1000, 2, 1e-9
COMMON_PREFIX = words.common_prefix
TEXT = Text((0, 1), tuple(range(2, 42)))
SIZES = Sizes(drafts=(1, 3), lookaheads=(1, 3, 4))
built = pytest.mark.skipif(not card_entries(), reason="not_run (fixtures/models is not built)")


def continuation(wrong: int = 0) -> Propose:
    """The text itself, each token off by `wrong`."""

    def propose(context: Tokens, lookahead: int) -> tuple[Tokens, ...]:
        ahead = TEXT.written[len(context) - 2 :][:lookahead]
        return (tuple(token + wrong for token in ahead),)

    return propose


def rates_of(propose: Propose) -> dict[int, float]:
    """Tokens per call by w, the same for every k."""
    found = grid({"only": propose}, [TEXT], SIZES)
    assert all(rate(found[1, w]) == rate(found[3, w]) for w in SIZES.lookaheads)
    return {w: rate(found[1, w]) for w in SIZES.lookaheads}


def test_oracle_makes_w_plus_one_tokens_and_an_impossible_draft_one() -> None:
    assert rates_of(continuation()) == {1: 2.0, 3: 4.0, 4: 5.0}
    assert set(rates_of(continuation(wrong=1)).values()) == {1.0}


def after_a_mismatch(draft: Sequence[int], ahead: Sequence[int]) -> int:
    """Planted: tokens count wherever they are equal, whatever came before."""
    return sum(a == b for a, b in zip(draft, ahead, strict=False))


def first_is_free(draft: Sequence[int], ahead: Sequence[int]) -> int:
    """Planted: the first draft token is not compared."""
    return 1 + COMMON_PREFIX(tuple(draft[1:]), tuple(ahead[1:]))


@pytest.mark.parametrize("bug", [after_a_mismatch, first_is_free])
def test_planted_matches_are_rejected(bug: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def first_wrong(context: Tokens, lookahead: int) -> tuple[Tokens, ...]:
        return tuple((99, *draft[1:]) for draft in continuation()(context, lookahead))

    assert set(rates_of(first_wrong).values()) == {1.0}
    monkeypatch.setattr(words, "common_prefix", bug)
    assert set(rates_of(first_wrong).values()) != {1.0}


def test_repeated_counts_what_the_text_had_before() -> None:
    assert repeated([TEXT]) == 0.0
    assert repeated([Text((1, 2), (1, 2, 1, 2, 3))], length=2) == pytest.approx(3 / 5)


def test_tables_are_those_of_the_specification() -> None:
    torch.manual_seed(1)
    config = GPT2Config(vocab_size=7, n_embd=8, n_layer=1, n_head=2, n_positions=16)
    target = GPT2LMHeadModel(config)
    target.train(False)

    def next_token(context: Tokens) -> np.ndarray:
        with torch.inference_mode():
            logits = target(input_ids=torch.tensor([list(context)])).logits[0, -1]
        law: np.ndarray = logits.double().softmax(-1).numpy()
        return law

    model = Model(Vocabulary("abcdefg"), next_token)
    table = bigrams(next_logits(target), 2)
    assert table.tolist() == bigrams([next_token((x,)) for x in range(7)], 2).tolist()
    expected = extended_by_model(model, table, 3)
    assert continued(target, table, 3).tolist() == expected.tolist()
    assert continued(target, table[:, ::-1], 3).tolist() != expected.tolist()


def laws(seed: int) -> torch.Tensor:
    """Multiples of 1/64, whose sums are exact."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(6, 0.7), size=(PLACES, POSITIONS))
    return torch.tensor(rng.multinomial(64, weights) / 64)


def traced(p: torch.Tensor, q: torch.Tensor, c: torch.Tensor) -> Traces:
    """Drafts from q, judged by p with a companion c; every seed is fixed."""
    rng = torch.Generator().manual_seed(3)
    drafts = torch.multinomial(q.flatten(0, 1), 1, generator=rng).view(q.shape[:2])
    return judged(p, q, c, drafts, rng, np.arange(len(p)) % 2)


def verdicts_conform(found: Traces, overlap: torch.Tensor) -> bool:
    """The mean verdict is within Hoeffding's bound of the mean overlap, at 1e-9."""
    bound = math.sqrt(math.log(2 / ALPHA) / (2 * found.accepted.size))
    return bool(abs(found.accepted.mean() - float(overlap.mean())) <= bound)


def test_verdicts_are_the_targets() -> None:
    p, q = laws(1), laws(2)
    overlap = torch.minimum(p, q).sum(-1)
    assert verdicts_conform(traced(p, q, q), overlap)
    assert not verdicts_conform(traced(q, q, p), overlap)  # planted: the companion's
    assert not verdicts_conform(traced(1 - p, q, q), overlap)  # planted: another p


def test_companions_that_know_all_and_nothing() -> None:
    p, q = laws(1), laws(2)
    target, drafter = traced(p, q, p), traced(p, q, q)
    assert next(correlations(target))[1:] == pytest.approx((1.0, 1.0))
    assert next(correlations(drafter)) == ("S", 0.0, 0.0)
    known, nothing = (list(information(found, 1)) for found in (target, drafter))
    assert next(row for row in known if row.bins == 8 and row.signals == "S, A").held_out > 0.2
    assert all(row.plugin == 0 for row in nothing if row.signals.startswith("S"))
    assert correlation(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])) == pytest.approx(-1.0)


def test_reached_drafts_are_those_after_accepted_ones() -> None:
    found = traced(laws(1), laws(2), laws(3))
    assert found.reached[:, 0].all()
    assert (found.reached[:, 1] == found.accepted[:, 0]).all()
    everywhere = np.ones(PLACES, dtype=bool)
    assert len(found.observations(everywhere)) == PLACES + found.accepted[:, 0].sum()


def test_distance_is_zero_only_where_the_draft_is_not_judged() -> None:
    fair, odd = np.array([0.5, 0.5]), np.array([0.1, 0.9])
    run = [Observation(0.6, a, v) for a, v in ((0.2, 0), (0.2, 0), (1.0, 1), (1.0, 1))]
    table = profile(run, (1, 2))
    assert distance((fair, fair, odd), table, price=0.5) == pytest.approx(0.25)
    assert distance((fair, fair, odd), table, price=-1.0) == pytest.approx(0.0)
    assert distance((fair, fair, odd), table, price=1.0) == pytest.approx(0.0)


def test_price_stops_at_the_first_draft_below_it() -> None:
    source = recorded.Traces([[1, 1, 1]], believed=[[0.9, 0.5, 1.0]])
    iterations = source.draw((1, 1, 2), np.random.default_rng(1))
    times = Profile(np.arange(9.0))
    lengths = [int(AtPrice(price)(iterations, times).verified[0, 0, 0]) for price in (0.4, 0.6, 1)]
    assert lengths == [3, 1, 0]


@pytest.mark.deep
@built
def test_commands_write_their_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = pytest.importorskip("matplotlib.figure", reason="not_run (no matplotlib)")
    drawn: list[Any] = []
    save = figures.Figure.savefig

    def saved(figure: Any, *arguments: Any, **options: Any) -> None:
        drawn.append(figure)
        save(figure, *arguments, **options)

    monkeypatch.setattr(figures.Figure, "savefig", saved)
    runs = (
        (ngrams, ["--prompts", "1", "--tokens", "4", "--drafts", "1", "--lookaheads", "1"]),
        (companions, ["--prompts", "2", "--tokens", "3", "--trials", "2", "--places", "1"]),
    )
    for module, sizes in runs:
        page, image = tmp_path / "page.md", tmp_path / "page.png"
        arguments = ["--markdown", str(page), "--plot", str(image), *sizes]
        result = CliRunner().invoke(module.main, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        assert image.stat().st_size > 1000
        assert module.__name__ in page.read_text()
        assert "nan" not in page.read_text()
    (goodput,) = (
        axes for figure in drawn for axes in figure.axes if "goodput over" in axes.get_ylabel()
    )
    assert goodput.get_ylim()[0] == 0, "a ratio is drawn from 0 on"
