"""An engine in another process: what it does there is told here. No Monte Carlo."""

import time
from dataclasses import replace
from typing import Any

import pytest

from proofs_tests.helpers.engines import PROMPT, misbehaving
from specref.contracts.asking import Asking, Child, isolated
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import Subject
from specref.contracts.errors import BrokenContractError
from specref.contracts.text import PLAIN, SPECULATIVE
from specref.contracts.timeout import HungError


def test_a_crash_an_error_and_a_hang_leave_the_kit_as_it_is(
    capfd: pytest.CaptureFixture,
) -> None:
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
