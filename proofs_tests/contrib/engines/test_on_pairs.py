"""Pairs for engines: what greedy texts of each law can show."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from specref import check
from specref.contracts.text import Engine, Text
from specref.contrib.engines.on_pairs import MANY, on_pair
from specref.vocabulary import Tokens

pytestmark = pytest.mark.usefixtures("undiagnosed")


def drafting(mistake: str | None) -> Any:
    """Greedy decoding, by three drafts of the drafter a block, with a mistake at EOS."""

    def modes(pair: Any) -> Any:
        end = pair.target.eos

        def first(law: Any, context: Tokens) -> int:
            return int(np.argmax([float(p) for p in law.model.next_token(context)]))

        def plain(prompt: Tokens, budget: int, seed: int) -> Text:
            text: Tokens = ()
            while len(text) < budget and end not in text:
                text += (first(pair.target, prompt + text),)
            return Text(text)

        def speculative(prompt: Tokens, budget: int, seed: int) -> Text:
            text, proposed, accepted = (), 0, 0
            while len(text) < budget and end not in text[-4:]:
                drafts: Tokens = ()
                for _ in range(3):
                    drafts += (first(pair.drafter, prompt + text + drafts),)
                proposed, block = proposed + 3, ()
                for draft in (*drafts, None):
                    token = first(pair.target, prompt + text + block)
                    block += (token,)
                    accepted += token == draft
                    if token != draft or (token == end and mistake != "reads on"):
                        break
                if mistake == "skips" and len(block) > 1:
                    block = tuple(token if token != end else 0 for token in block)
                text += block
            text = text[:budget]
            if mistake == "cuts" and text[-1:] == (end,):
                text = text[:-1] or text
            return Text(text, proposed, accepted)

        return speculative, plain

    return modes


def judged(mistake: str | None, law: str) -> int:
    engine = on_pair(drafting(mistake), law, {}, greedy=True)
    return check(engine, contract="text", greedy=True, seed=1).exit_code


@pytest.mark.deep
def test_right_greedy_texts_pass() -> None:
    assert [judged(None, law) for law in ("ending", "lookback")] == [0, 0]


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize(("law", "code"), [("ending", 1), ("lookback", 0)])
@pytest.mark.parametrize("mistake", ["reads on", "skips", "cuts"])
def test_what_goes_wrong_at_eos_is_found_where_texts_end(
    mistake: str, law: str, code: int
) -> None:
    """Texts that never end show nothing of it."""
    assert judged(mistake, law) == code


def test_most_texts_of_the_law_for_greedy_engines_end_and_some_do_not() -> None:
    engine: Engine = on_pair(drafting(None), "ending", {}, greedy=True)
    assert engine.plain is not None
    lengths = [len(engine.plain(prompt, 24, 0).tokens) for prompt in MANY]
    assert Counter(lengths) == {1: 20, 2: 15, 3: 15, 4: 10, 24: 20}
