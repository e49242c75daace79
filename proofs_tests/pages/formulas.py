"""Formulas as MathML, which browsers draw themselves: no script, and nothing from the network."""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx


def inline(page: Any, node: nodes.Element) -> None:
    """A formula in a line."""
    page.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def displayed(page: Any, node: nodes.Element) -> None:
    """A formula in a line of its own, which is scrolled where it is wider than the screen."""
    page.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Make it known to Sphinx as `mathml`."""
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
