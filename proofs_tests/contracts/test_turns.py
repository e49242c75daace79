"""Turns with the global generators: begun once, undone once, given back whatever happens."""

from collections.abc import Callable
from threading import Thread

import pytest

from specref.contracts import turns
from specref.contracts.timeout import HungError
from specref.contracts.turns import turn


def counted(done: list[str]) -> Callable[[], Callable[[], None]]:
    def begin() -> Callable[[], None]:
        done.append("begun")
        return lambda: done.append("undone")

    return begin


def test_a_turn_is_begun_and_undone_once() -> None:
    done: list[str] = []
    with turn(counted(done)):
        assert done == ["begun"]
    assert done == ["begun", "undone"]


def test_a_turn_within_a_turn_begins_and_undoes_its_own() -> None:
    outer, inner = list[str](), list[str]()
    with turn(counted(outer)):
        with turn(counted(inner)):
            assert (outer, inner) == (["begun"], ["begun"])
        assert (outer, inner) == (["begun"], ["begun", "undone"])
    assert outer == ["begun", "undone"]


def test_a_beginning_that_fails_gives_its_turn_back() -> None:
    def fails() -> Callable[[], None]:
        raise ValueError("no state")

    with pytest.raises(ValueError, match="no state"), turn(fails):
        pass
    done: list[str] = []
    with turn(counted(done)):
        pass
    assert done == ["begun", "undone"]


def test_an_undoing_that_fails_gives_its_turn_back() -> None:
    def begin() -> Callable[[], None]:
        def undo() -> None:
            raise ValueError("no undoing")

        return undo

    with pytest.raises(ValueError, match="no undoing"), turn(begin):
        pass
    with turn(counted([])):
        pass


def test_who_waits_too_long_for_a_turn_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LONGEST", 5 * turns.SLICE)
    errors: list[BaseException] = []

    def other() -> None:
        try:
            with turn(counted([])):
                pass
        except BaseException as error:
            errors.append(error)

    with turn(counted([])):
        waiting = Thread(target=other)
        waiting.start()
        waiting.join(60)
    (error,) = errors
    assert isinstance(error, HungError)
    assert str(error).startswith("waited 0.1 s for another call")
