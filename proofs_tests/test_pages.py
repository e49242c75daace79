"""What makes the pages: names, the glossary, linters of words, tables."""

from fractions import Fraction
from pathlib import Path

import pytest
from docutils import nodes

from proofs_tests.pages import api, defined, displayed, docstrings, words
from proofs_tests.pages.multi_draft import (
    markdown,
    one_path,
    stateless,
    tokens_of_iterations,
    written,
)
from specref.algorithms import block, greedy_block, standard
from specref.zoo.fixtures import BLOCK_TOKENS


def test_a_name_that_a_page_imports_is_public(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nfrom specref.laws import completed\n```\n")
    assert list(api.imports(page)) == [("specref.laws", "completed")]
    assert api.line("MOST", 3) == "| `MOST` | `3` |"


def test_defaults_are_those_of_the_code() -> None:
    def sampler(texts: list, size: int = 3, *, strict: bool = False, seed: int | None = None):
        """Sample."""

    assert api.line("sampler", sampler) == (
        "| `sampler` | Sample. Defaults: `size=3, strict=False, seed=None`. |"
    )


def page(*children: nodes.Node) -> nodes.paragraph:
    paragraph = nodes.paragraph()
    paragraph.extend(children)
    return paragraph


def links(paragraph: nodes.Element) -> list[tuple[str, str]]:
    return [(one.astext(), one["refuri"]) for one in paragraph.findall(nodes.reference)]


def test_the_first_use_alone_is_a_link() -> None:
    told = page(nodes.Text("Two bonus\ntokens, a residual; the Residual, zoology and psi-like."))
    assert defined.link(told, "glossary.html") == ["bonus token", "residual"]
    assert links(told) == [
        ("bonus\ntokens", "glossary.html#word-bonus-token"),
        ("residual", "glossary.html#word-residual"),
    ]
    assert told.astext() == "Two bonus\ntokens, a residual; the Residual, zoology and psi-like."


def test_code_and_links_stay() -> None:
    kept = nodes.literal("", "psi"), nodes.reference("", "the contract", refuri="x.html")
    told = page(*kept, nodes.Text(" and contracts"))
    defined.link(told, "g")
    assert links(told) == [("the contract", "x.html"), ("contracts", "g#word-contract")]


def test_each_kept_word_has_a_row_and_a_word_without_one_is_refused() -> None:
    glossary = "\n".join(f"| **{word}** | what it is |" for word in defined.KEPT)
    named = defined.with_anchors(glossary)
    assert all(f'id="{defined.anchor(word)}"' in named for word in defined.KEPT)
    with pytest.raises(ValueError, match="no row of 'psi'"):
        defined.with_anchors(glossary.replace("**psi**", "**Psi**"))


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


F = Fraction


def test_a_page_without_a_place_for_a_table_is_refused():
    with pytest.raises(ValueError, match="the page has no <!-- siblings -->"):
        written("# Nothing")


def test_a_table_in_markdown():
    head, rule, first, *_ = markdown(one_path()).splitlines()
    assert head == "| pair, lookahead | token | block | greedy block |"
    assert rule == "| --- | ---: | ---: | ---: |"
    assert first == "| A, 2 | 10/9 | 11/9 | 4/3 |"


def totals(iterate, name, lookahead):
    """Expected tokens after one, two and three iterations."""
    means = tokens_of_iterations(iterate, BLOCK_TOKENS[name], lookahead, 3)
    return [sum(means[: i + 1]) for i in range(3)]


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize(("name", "lookahead"), [("coin", 2), ("coin", 3), ("c", 2), ("m", 2)])
def test_greedy_block_verification_is_ahead_once_and_behind_after_three(name, lookahead):
    greedy = totals(greedy_block.iterate, name, lookahead)
    blockwise = totals(stateless(block.step), name, lookahead)
    assert greedy[0] > blockwise[0]
    assert greedy[2] < blockwise[2]


@pytest.mark.deep
def test_greedy_block_verification_may_make_less_than_token_verification():
    """On A with two drafts the same from the second iteration on; on M less."""
    coin = tokens_of_iterations(greedy_block.iterate, BLOCK_TOKENS["coin"], 2, 6)
    assert coin == [F(7, 3)] + [F(19, 9)] * 5
    pair = BLOCK_TOKENS["m"], 2, 3
    by_token = tokens_of_iterations(stateless(standard.step), *pair)
    assert tokens_of_iterations(greedy_block.iterate, *pair)[2] < by_token[2]
