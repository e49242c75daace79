"""What the paper asks of two vocabularies, on tiny models and by hand.

Exact, but for paces, of which only what does not go by the clock is compared.
"""

import json
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from specref.contrib.real_models import vocabularies
from specref.contrib.real_models.loading import Loaded
from specref.contrib.real_models.pairs import folders_pair
from specref.contrib.real_models.vocabularies import (
    LOOKAHEADS,
    Mean,
    decompositions,
    lookaheads,
    main,
    returned,
    rows,
)
from specref.contrib.vocabularies.vocabulary import RealVocabulary, Token

CONTEXTS = ["He opened the", "In the spring of", "import random"]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paces are measured by few tokens: of their values nothing is asserted."""
    monkeypatch.setattr(vocabularies, "BATCH", 2)
    monkeypatch.setattr(vocabularies, "LENGTH", 4)


def written(name: str, *pieces: bytes) -> RealVocabulary:
    return RealVocabulary(name, {i: Token(repr(one), one) for i, one in enumerate(pieces)})


def test_decompositions_are_of_the_targets_tokens_in_the_drafters() -> None:
    target = written("target", b"abb", b"a", b"c", b"ac")
    drafter = written("drafter", b"a", b"b", b"ab", b"bb")
    found = decompositions(target, drafter)
    assert (found["tokens"], found["expressible"]) == (4, 2)
    assert found["for example not"] == ["b'c'", "b'ac'"]
    assert found["decompositions"] == {
        "50 %": 1,
        "90 %": 1,
        "99 %": 1,
        "most": 3,
    }  # a-b-b, ab-b, a-bb
    assert found["forwards"]["most"] == 4  # after nothing, a, ab, a-b
    assert decompositions(target, written("all", b"a", b"b", b"c"))["expressible"] == 4


def test_rows_of_two_vocabularies(folders: dict[str, Path]) -> None:
    pair = folders_pair(folders["target"], folders["drafter"], "cpu", "float32")
    found = rows(pair, CONTEXTS)
    assert found["rows"] == len(CONTEXTS)
    assert 0 < found["drafted outside"]["mean"] < found["most outside"] < 1
    assert 0 < found["union"]["mean"] < found["tli"]["mean"] < 1
    assert found["least gain"] >= 0
    assert np.isclose(
        found["tli less union"]["mean"], found["tli"]["mean"] - found["union"]["mean"]
    )


def test_rows_of_a_model_and_itself_accept_all(folders: dict[str, Path]) -> None:
    pair = folders_pair(folders["target"], folders["target"], "cpu", "float32")
    found = rows(pair, CONTEXTS)
    for method in ("union", "tli"):
        assert found[method]["mean"] == pytest.approx(1, abs=1e-12)
    assert found["most outside"] == pytest.approx(0, abs=1e-12)


def test_means_have_the_error_of_independent_rows() -> None:
    found = Mean.of(NormalDist(2, 3).samples(400, seed=1))
    assert abs(found.mean - 2) < 5 * found.error
    assert found.error == pytest.approx(3 / 20, rel=0.1)


def test_the_formula_knows_the_cost_of_drafts(folders: dict[str, Path]) -> None:
    pair = folders_pair(folders["target"], folders["drafter"], "cpu", "float32")
    plain, *found = lookaheads(pair, acceptance=0.0)
    assert [one["lookahead"] for one in found] == list(LOOKAHEADS)
    assert all(one["measured"] > 0 for one in (plain, *found))
    cost = plain["formula"] / found[0]["formula"] - 1
    for one in found:  # nothing is accepted: every iteration has one token
        assert one["formula"] == pytest.approx(plain["formula"] / (one["lookahead"] * cost + 1))
    assert cost > 0


class Lower:
    """A tokenizer that is not injective: it takes capitals for small letters."""

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        assert not add_special_tokens
        return list(text.lower().encode())

    def decode(self, ids: list[int], clean_up_tokenization_spaces: bool) -> str:
        assert not clean_up_tokenization_spaces
        return bytes(ids).decode()


def test_texts_that_are_confused_are_counted() -> None:
    found = returned(Loaded("lower", None, Lower()), ["a", "A", "b"])  # type: ignore[arg-type]
    assert (found["returned"], found["confused"], found["example"]) == (2, 1, ("a", "A"))


def test_the_command_answers_everything(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [str(folders[name]) for name in ("target", "drafter")]
    assert main([*names, "--record", str(tmp_path / "answers.json")]) == 0
    answers = json.loads((tmp_path / "answers.json").read_text())
    assert answers["sizes"] == {"target": 300, "drafter": 280}
    assert set(answers) > {"sizes", "overlap", "rows", "lookahead"}
    assert len(capsys.readouterr().out.splitlines()) == len(answers)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["one"], "1 folders"),
        (["one", "two"], "target = one"),
        (["--pair", "no pair"], "--pair no pair"),
        (["--texts", "no file"], "--texts no file"),
        (["--record", "no folder/answers.json"], "cannot write no folder"),
    ],
)
def test_bad_input_is_one_line(
    given: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(given) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")
