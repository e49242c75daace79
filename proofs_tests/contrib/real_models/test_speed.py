"""Paths that are timed: all of ours, and those of Transformers that a pair allows."""

import pytest

pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from specref.contrib.real_models import speed
from specref.contrib.real_models.running import prompts_of
from specref.contrib.real_models.speed import OURS, THEIRS, measure


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("kind", ["tli", "standard"])
def test_greedy_texts_are_those_of_plain_greedy_decoding(pairs, kind):
    pair, told = pairs[kind], []
    before = {name: one.clone() for name, one in pair.drafter.model.state_dict().items()}
    paths = measure(pair, prompts_of(pair)[:1], 6, told.append)
    ours = {path.method for path in paths if path.by == OURS}
    assert ours == {"autoregressive", *pair.methods}
    assert len(told) == len(paths)
    for path in paths:
        assert path.error is None, path
        assert path.texts == 1
        assert path.forwards <= path.tokens
        if not path.sampled:
            assert (path.equal, path.different) == (1, 0)
    drafter = pair.drafter.model.state_dict()
    assert drafter.keys() == before.keys()
    assert all(drafter[name].equal(one) for name, one in before.items())


def test_another_greedy_text_is_different(pairs, monkeypatch):
    """Of ours every third token is another: no near-tie explains that."""
    run = speed._run

    def spoiled(path, make, *given):
        def made(*args):
            tokens, forwards = make(*args)
            if path.by == OURS:
                tokens[2] = (tokens[2] + 1) % 300
            return tokens, forwards

        run(path, made, *given)

    monkeypatch.setattr(speed, "_run", spoiled)
    paths = measure(pairs["standard"], prompts_of(pairs["standard"])[:1], 6, lambda _: None)
    assert {path.different for path in paths if path.by == OURS and not path.sampled} == {1}


def test_what_transformers_raises_is_a_row(pairs, monkeypatch):
    def raises(*_):
        raise RuntimeError("shapes\nof matrices")

    monkeypatch.setattr(speed.Hugging, "__call__", raises)
    paths = measure(pairs["tli"], prompts_of(pairs["tli"])[:1], 4, lambda _: None)
    errors = {path.error for path in paths if path.by == THEIRS}
    assert errors == {"RuntimeError: shapes"}
