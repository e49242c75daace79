"""Engines: what is refused, what an answer may be, what is kept in a file, and other processes."""

import os
import re
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.engines import (
    ABC,
    ENDING,
    LAW,
    PROMPT,
    Speculating,
    engine,
    misbehaving,
    sampling,
)
from specref.contracts.asking import Asking, Child, Drafts, isolated, printed, read_text
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import Subject
from specref.contracts.errors import BrokenContractError
from specref.contracts.table import CONTRACTS, ENGINE, contracts_of, signed
from specref.contracts.text import PLAIN, SPECULATIVE, Asked, Engine, Journal, Text
from specref.contracts.timeout import HungError
from specref.models import Model, iid_model
from specref.vocabulary import Vocabulary


def right(prompt: Any, budget: int, seed: int) -> Text:
    return Text((0,) * budget)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"speculative": 3}, r"speculative = 3: expected a function$"),
    ({"plain": 3}, r"plain = 3: expected a function, or None$"),
    ({"law": "p"}, r"law = 'p': expected a Model, or None$"),
    ({"drafter": "q"}, r"drafter = 'q': expected a Model, or None$"),
    ({"law": None}, r"law = None, plain = None: expected one of them at least$"),
    ({"same_text": True}, r"same_text = True: expected plain, too$"),
    ({"tokens": 1}, r"tokens = 1: expected at least 2"),
    ({"tokens": 2.5}, r"tokens = 2.5: expected at least 2"),
    ({"eos": 2}, r"eos = 2: expected None, since the law names it$"),
    ({"prompts": ()}, r"prompts is empty: expected at least one$"),
    ({"prompts": [(0,), (0,)]}, r"prompts has one twice: expected different ones$"),
    ({"prompts": (0, 1)}, r"prompts\[0\] = 0: expected a tuple of token ids$"),
    ({"prompts": [(0, "a")]}, r"prompts\[0\]\[1\] = 'a': expected a token id"),
    ({"prompts": [(0,), (0, 7)]}, r"prompts\[1\]"),
    (
        {"drafter": iid_model(Vocabulary("ab"), [0.5, 0.5])},
        r"drafter has 2 tokens: expected 3, as the law$",
    ),
]


@pytest.mark.parametrize(("changed", "said"), WRONG, ids=range(len(WRONG)))
def test_engines_that_cannot_be_judged_are_refused(changed: dict[str, Any], said: str) -> None:
    good = {"speculative": right, "prompts": [PROMPT], "law": LAW}
    assert Engine(**good).end is None
    with pytest.raises((TypeError, ValueError), match=said):
        Engine(**good | changed)


def test_only_an_engine_is_judged_under_the_contract() -> None:
    assert CONTRACTS["text"] is ENGINE
    assert contracts_of(engine(right)) == (ENGINE,)
    signed(right, ENGINE)
    with pytest.raises(TypeError, match="expected an Engine"):
        ENGINE.admit(right)
    with pytest.raises(TypeError, match="contract text gives"):
        signed(lambda target_probs, draft_probs, draft_tokens: 0, ENGINE)


def test_a_law_with_too_many_texts_is_refused() -> None:
    many = Vocabulary([f"t{i}" for i in range(200)])
    wide = Engine(right, [()], law=iid_model(many, [1 / 200] * 200), tokens=4)
    with pytest.raises(
        ValueError, match=r"tokens = 4: expected fewer: the texts after a prompt are"
    ):
        ENGINE.admit(wide)


ANSWERS: list[tuple[Any, str]] = [
    (None, "answered a NoneType: expected a Text, or tokens"),
    (7, "answered a int: expected a Text, or tokens"),
    ((0, 1), "answered 2 tokens and no EOS: expected 3, its budget"),
    ((), "answered 0 tokens and no EOS"),
    ((0, 1, 0, 1), r"answered more than 3 tokens, its budget: \(0, 1, 0, 1\)"),
    (iter(int, 1), "answered more than 3 tokens"),
    ((0, 2, 0), r"went on after EOS: \(0, 2, 0\)"),
    ((0, 3, 0), "token 1 is 3: expected 0 <= id < 3"),
    ((0, -1, 0), "token 1 is -1: expected 0 <= id < 3"),
    ((0, True, 0), "token 1 is True: expected"),
    ((0, 1.0, 0), "token 1 is 1.0: expected"),
    (Text((0, 1, 0), 3, 4), "accepted = 4: expected at most proposed, 3"),
    (Text((0, 1, 0), 3), r"\(proposed, accepted\) is \(3, None\): expected counts"),
    (Text((0, 1, 0), None, -1), "expected counts"),
    (Text((0, 1, 0), -1, -1), "expected counts"),
    (Text((0, 1, 0), 0.5, 0.5), "expected counts"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("raw", "said"), ANSWERS, ids=range(len(ANSWERS)))
def test_answers_that_are_no_texts_are_named(raw: Any, said: str) -> None:
    with pytest.raises(BrokenContractError, match=said):
        read_text(raw, engine(right, law=ENDING, drafter=None), 3)


def test_answers_may_be_lists_arrays_or_texts() -> None:
    ending = engine(right, law=ENDING, drafter=None)
    for raw in ((0, 1, 1), [0, 1, 1], np.array([0, 1, 1]), Text(np.array([0, 1, 1]))):
        assert read_text(raw, ending, 3) == Text((0, 1, 1))
    assert read_text(Text((0, 2), 5, 1), ending, 3) == Text((0, 2), 5, 1)
    without = engine(right, law=None, drafter=None, plain=right, eos=50_256)
    assert read_text((9_999, 50_256), without, 3).tokens == (9_999, 50_256)


def test_counts_that_say_nothing_of_speculation() -> None:
    assert Drafts().missing == "no draft was proposed in 0 texts"
    drafts = Drafts()
    drafts.add(Text((0,), 2, 1))
    assert not drafts.missing
    assert str(drafts) == "1 of 2 drafts accepted"
    drafts.add(Text((0,)))
    assert drafts.missing.startswith("1 of 2 texts came without counts")
    alone = Drafts(1, 0, 0, 0)
    alone.add(Text((0, 1), None, 1))
    assert not alone.missing
    assert str(alone) == "1 drafts accepted, of how many is not counted"
    assert Drafts(1, 0, None, 0).missing == "none of proposed drafts was accepted in 1 texts"


def asking(function: Any, timeout: float | None = None, journal: Any = None) -> Asking:
    return Asking(Subject(engine(function), Capabilities(), timeout), SPECULATIVE, journal)


def test_a_crash_and_a_hang_are_named_with_the_question() -> None:
    def crashes(prompt: Any, budget: int, seed: int) -> Text:
        raise SystemExit(3) if seed == 5 else MemoryError("no more")

    with pytest.raises(
        BrokenContractError,
        match=r"^speculative mode raised MemoryError: no more \(prompt \(0, 1\), budget 4, seed 2",
    ):
        asking(crashes).texts([(PROMPT, 4, 2)])
    with pytest.raises(BrokenContractError, match="raised SystemExit: 3"):
        asking(crashes).texts([(PROMPT, 4, 5)])

    def hangs(prompt: Any, budget: int, seed: int) -> Text:
        time.sleep(9 * seed)
        return right(prompt, budget, seed)

    hung = r"did not return within 1 s \(prompt \(0, 1\), budget 4, seed 1\), after 2 texts"
    with pytest.raises(HungError, match=hung):
        asking(hangs, 1.0).texts([(PROMPT, 4, 0), (PROMPT, 4, 0), (PROMPT, 4, 1)])


def test_what_is_printed_by_python_and_below_it_is_seen(capfd: pytest.CaptureFixture) -> None:
    with printed() as said:
        print("by Python")
        sys.stdout.flush()
        os.write(1, b"below\n")
    assert said == ["by Python\nbelow\n"]
    with printed() as nothing:
        pass
    assert nothing == []
    assert capfd.readouterr().out == ""


def test_texts_come_back_from_the_file_once_each(tmp_path: Path) -> None:
    file, questions = tmp_path / "texts", [(PROMPT, 4, seed) for seed in (1, 2, 1)]
    calls: list[int] = []

    def counted(prompt: Any, budget: int, seed: int) -> Text:
        calls.append(seed)
        return Speculating()(prompt, budget, seed)

    with closing(Journal(file, {"engine": "toy"})) as journal:
        first = asking(counted, journal=journal).texts(questions)
    assert calls == [1, 2, 1]
    with closing(Journal(file, {"engine": "toy"})) as journal:
        again = asking(counted, journal=journal)
        assert again.texts([*questions, (PROMPT, 4, 1)])[:3] == first
        assert (again.taken, again.drafts.texts) == (3, 4)
    assert calls == [1, 2, 1, 1]
    with closing(Journal(file, {"engine": "toy"})) as journal:
        other = Asking(Subject(engine(right, plain=right), Capabilities()), PLAIN, journal)
        assert other.texts([(PROMPT, 4, 1)]) == [Text((0,) * 4)]  # of another mode
        assert other.taken == 0


def test_a_line_that_was_left_unfinished_is_dropped(tmp_path: Path) -> None:
    file, asked = tmp_path / "texts", [Asked(PLAIN, (), 1, seed) for seed in (1, 2)]
    with closing(Journal(file, {})) as journal:
        for one in asked:
            journal.write(one, Text((0,)))
    whole = file.read_text()
    file.write_text(whole[:-4])  # killed while it wrote
    with closing(Journal(file, {})) as journal:
        assert [journal.take(one) for one in asked] == [Text((0,)), None]
        journal.write(asked[1], Text((0,)))
    assert file.read_text() == whole
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "expected texts of this engine"),
        (b"notes\n", "expected texts of this engine"),
        (b'{"format": "specref texts 1", "engine": "other"}\n', "expected texts of this engine"),
        (b"\xff\xfe", "expected text"),
        (b'{"format": "specref texts 1", "engine": "toy"}\n[1, 2]\n', "line 2: expected a quest"),
    ],
)
def test_a_file_of_something_else_is_refused_and_kept(
    content: bytes, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "texts"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=f"texts = {re.escape(str(file))}.*{said}"):
        Journal(file, {"engine": "toy"})
    assert file.read_bytes() == content


def test_a_file_that_cannot_be_written_is_not_the_engines_fault(tmp_path: Path) -> None:
    class Full(Journal):
        def write(self, asked: Asked, text: Text) -> None:
            raise OSError(28, "No space left on device")

    journal = closing(Full(tmp_path / "texts", {}))
    with journal as full, pytest.raises(OSError, match="No space left"):
        asking(right, journal=full).texts([(PROMPT, 4, 1)])


def test_the_fingerprint_is_that_of_the_law() -> None:
    same = Model(ABC, LAW.next_token)
    assert engine(right).fingerprint == engine(right, law=same).fingerprint
    other = iid_model(ABC, [0.2, 0.3, 0.5])
    assert engine(right).fingerprint != engine(right, law=other).fingerprint
    assert engine(right, law=None, drafter=None, plain=sampling()).fingerprint is None


def test_a_crash_an_error_and_a_hang_leave_the_kit_as_it_is(capfd: pytest.CaptureFixture) -> None:
    here = misbehaving()
    there = isolated(here, misbehaving)
    subject = Subject(there, Capabilities(), timeout=60.0)
    fast, slow = Asking(subject, SPECULATIVE), Asking(subject, PLAIN)
    question = [(PROMPT, 4, 7)]
    for sampler, function in ((fast, here.speculative), (slow, here.plain)):
        assert function is not None
        (text,) = sampler.texts(question)
        assert text == function(*question[0])
    with pytest.raises(BrokenContractError, match=r"EngineRaisedError: MemoryError: no more \("):
        fast.texts([(PROMPT, 4, 1)])
    with pytest.raises(BrokenContractError, match="its process ended with signal SIGSEGV"):
        fast.texts([(PROMPT, 4, 2)])
    started = time.monotonic()
    fast.texts(question)  # in another process
    hurried = Asking(replace(subject, timeout=1.0), SPECULATIVE)
    with pytest.raises(HungError, match=r"did not return within 1 s"):
        hurried.texts([(PROMPT, 4, 3)])
    assert time.monotonic() - started < 60
    killed = there.speculative.func.__self__.process  # type: ignore[attr-defined]
    killed.join(10)  # a signal takes its time
    assert not killed.is_alive()
    assert capfd.readouterr().out == "printed\n"  # by the call above, in this process


@pytest.mark.deep
def test_a_process_that_starts_while_its_question_is_given_up_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = Child._start

    def slowly(child: Child) -> Any:
        time.sleep(1)
        return start(child)

    monkeypatch.setattr(Child, "_start", slowly)
    there = isolated(misbehaving(), misbehaving)
    hurried = Asking(Subject(there, Capabilities(), timeout=1.0), SPECULATIVE)
    with pytest.raises(HungError):
        hurried.texts([(PROMPT, 4, 3)])
    time.sleep(1)
    process = there.speculative.func.__self__.process  # type: ignore[attr-defined]
    process.join(10)
    assert not process.is_alive()
