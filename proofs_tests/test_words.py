"""The linters of words find a word that is planted, and leave names alone."""

import pytest

from proofs_tests.pages import displayed, docstrings, words


@pytest.mark.parametrize(
    "source",
    [
        'raise ValueError("the output law is wrong")',
        'told = f"{rows} rows share coins: {seed}"',
        'help = "Laws of drafts."',
    ],
)
def test_a_private_word_in_a_message_is_found(source: str) -> None:
    [(line, _)] = displayed.complaints(source)
    assert line == 1


@pytest.mark.parametrize(
    "source",
    [
        '"""The law of a row."""',
        'raise ValueError("law sums to 2: expected 1")',
        'told = "declare `law of x` by --law LAW, or strata/own-shape"',
        'key = "law"',
        'told = f"in {len(laws)} rows"',
    ],
)
def test_names_and_docstrings_are_left_alone(source: str) -> None:
    assert not list(displayed.complaints(source))


def test_a_private_word_on_a_page_is_found() -> None:
    assert words.read("The coin decides.").banned
    assert not words.read("The random number decides, `coin` by name.").banned


DOCSTRING = """The law of a block.

Parameters
----------
coins : array
    One coin for each row, in `coins`.

Examples
--------
>>> law(drafter=1)
'coin'
"""


def test_a_private_word_in_a_docstring_is_found_and_names_are_left_alone() -> None:
    assert [line for line, _ in docstrings.complaints(DOCSTRING)] == [1, 6]


@pytest.mark.deep
def test_docstrings_of_members_are_shown() -> None:
    shown = {getattr(one, "__qualname__", "") for one in docstrings.shown()}
    assert {"is_lossless", "Rule", "Rule.acceptance_rate", "Rule.by_text"} <= shown


def test_what_is_listed_is_read() -> None:
    assert {"checks", "bugs", "rules"} <= {
        section for section, text in docstrings.listed() if text
    }
