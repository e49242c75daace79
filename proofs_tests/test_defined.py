"""The first use of a kept word on a page leads to its row in the glossary."""

import pytest
from docutils import nodes

from proofs_tests.pages import defined


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
