"""Links from a guide's first use of a kept word to its row in the glossary.

Markdown stays plain: the site's build makes them, and the names of the rows that they lead to.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

from proofs_tests.pages.words import NO_GUIDES

KEPT: Mapping[str, str] = {
    "psi": r"psi",
    "residual": r"residuals?",
    "bonus token": r"bonus\s+tokens?",
    "boundary uniform": r"boundary\s+uniforms?",
    "capability": r"capabilit(?:y|ies)",
    "contract": r"contracts?",
    "situation": r"situations?",
    "completed block": r"completed\s+blocks?",
    "counterexample": r"counterexamples?",
    "detectable difference": r"detectable\s+differences?",
    "e-value": r"e-values?",
    "one-hot q": r"one-hot\s+q",
    "push-forward": r"push-forwards?",
    "sub-distribution": r"sub-distributions?",
    "zoo": r"zoo",
}
"""{word, as the glossary has it: how pages use it}."""
USED = re.compile(
    r"(?<![\w-])(?:" + "|".join(f"({use})" for use in KEPT.values()) + r")(?![\w-])",
    flags=re.IGNORECASE,
)
NOT_IN = (
    *(nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw),
    *(nodes.reference, pending_xref, nodes.title),
)
"""What is no sentence, or leads elsewhere already."""


def anchor(word: str) -> str:
    """The name of a row in links.

    >>> anchor("bonus token")
    'word-bonus-token'
    """
    return f"word-{word.replace(' ', '-')}"


def with_anchors(glossary: str) -> str:
    """The page of the glossary, with names for the rows of the kept words.

    * raises `ValueError`: A kept word has no row.

    >>> rows = "".join(f"| **{word}** | … |\\n" for word in KEPT)
    >>> with_anchors(rows).splitlines()[0]
    '| <span id="word-psi"></span>**psi** | … |'
    """
    for word in KEPT:
        row = f"\n| **{word}**"
        if row not in f"\n{glossary}":
            raise ValueError(f"glossary = …: no row of '{word}'; write one, or take it from KEPT")
        named = f'\n| <span id="{anchor(word)}"></span>**{word}**'
        glossary = f"\n{glossary}".replace(row, named, 1)[1:]
    return glossary


def link(page: nodes.Element, glossary: str) -> list[str]:
    """Make the first use of each kept word in a page a link to its row; return these words."""
    words, done = list(KEPT), []
    for text in list(page.findall(nodes.Text)):
        if inside(text):
            continue
        parts: list[nodes.Node] = []
        end, told = 0, str(text)
        for found in USED.finditer(told):
            word = words[(found.lastindex or 0) - 1]
            if word in done:
                continue
            done.append(word)
            uri = f"{glossary}#{anchor(word)}"
            parts += [nodes.Text(told[end : found.start()])]
            parts += [nodes.reference("", found[0], refuri=uri, classes=["defined"])]
            end = found.end()
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(told[end:])])
    return done


def inside(node: nodes.Node) -> bool:
    """Whether a text is in what is no sentence."""
    above = node.parent
    return above is not None and (isinstance(above, NOT_IN) or inside(above))


def resolved(app: Sphinx, page: nodes.document, name: str) -> None:
    """Link a guide; records and written pages are none."""
    guide = (Path(app.srcdir) / f"{name}.md").exists() and "/" not in name
    if app.builder.format == "html" and guide and f"{name}.md" not in NO_GUIDES:
        link(page, app.builder.get_relative_uri(name, "glossary"))


def setup(app: Sphinx) -> None:
    """Link pages when they are written."""
    app.connect("doctree-resolved", resolved)
