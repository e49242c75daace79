"""The site: docs/*.md, and the pages that are written from the code when it is built.

Run from the root of a checkout, or by `make docs`:

    python -m sphinx -W --keep-going docs build/site
"""

import html
import re
import sys
from pathlib import Path
from shutil import copytree

from click import Context
from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import specref  # noqa: E402
from proofs_tests.pages import built, defined, displayed, redirects, site, words  # noqa: E402
from proofs_tests.pages.links import relinked  # noqa: E402
from proofs_tests.pages.rule_pages import named_papers  # noqa: E402
from specref.report.page import address  # noqa: E402
from specref.rules import RULES  # noqa: E402
from specref.zoo import ALL  # noqa: E402

project, copyright, author = "specref", "the specref authors, Apache-2.0", "the specref authors"
version = release = specref.__version__
extensions = [
    "myst_parser",
    "proofs_tests.pages.defined",
    "proofs_tests.pages.formulas",
    "proofs_tests.pages.search",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinxcontrib.bibtex",
    "sphinx_click",
]
html_theme, html_title, html_show_sphinx = "furo", "specref", False
html_extra_path = ["playground.js"]
html_static_path = html_css_files = ["site.css"]
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
myst_dmath_double_inline = True
html_math_renderer = "mathml"
bibtex_bibfiles = ["references.bib"]
default_role, smartquotes = "literal", False  # two hyphens are an option
napoleon_google_docstring, napoleon_use_ivar = False, True
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"

# Pages that are written, in the sections of docs/index.md, after those that it lists.
SECTIONS = {
    "Explanation": ["generated/playground"],
    "Reference": ["generated/cli", "generated/references"],
    "Project": ["generated/overview", "generated/contributing", "generated/changelog"],
}
BELOW = {
    "choose-an-algorithm": ("Rules", [f"generated/rules/{name}" for name in RULES]),
    "checks": (
        "Lists",
        [
            f"generated/{one}"
            for one in ("contracts", "capabilities", "checks", "names", "findings", "bugs")
        ],
    ),
    "claims": ("Papers", [f"generated/papers/{one}" for one in site.claims.SOURCES]),
    "api": ("Modules", [f"generated/api/{one}" for one in ("specref", *site.api.MODULES)]),
}  # fmt: skip

LISTED = re.compile(r"^\* \[[^]]*\]\(([\w/-]+)\.md\)", flags=re.MULTILINE)
LONG_NAME, PAUSE = 11, re.compile(r"(?<=[/_\]])(?=\w)|(?<=\.)(?=[A-Za-z_])")
PRE = '<span class="pre">{}</span>'
REPOSITORIES = [cite for entry in ALL.values() for cite in entry.cites if "#" not in cite]
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+(#\d+)?")
PAPERS = named_papers("url")
NAMES = sorted({*REPOSITORIES, *PAPERS}, key=len, reverse=True)
PUBLIC_PLACE = re.compile(
    r"(?<![\w/.-])(arXiv:\d{4}\.\d{4,5}|[\w.-]+/[\w.-]+#\d+|"
    + "|".join(re.escape(one).replace(r"\ ", r"\s+") for one in NAMES)
    + r")(?![\w/#-])"
)


class LinkPublicPlaces(SphinxTransform):
    """Papers (arXiv:number, or authors and year), issues (owner/repo#number), repositories."""

    default_priority = 700

    def apply(self) -> None:
        """Make them links in the text of a page, but not in code, links and titles."""
        kept = (nodes.literal, nodes.literal_block, nodes.reference, nodes.title, pending_xref)
        for text in list(self.document.findall(nodes.Text)):
            if any(isinstance(one, kept) for one in ancestors(text)):
                continue
            parts = PUBLIC_PLACE.split(text)
            if len(parts) > 1:
                text.parent.replace(text, [
                    nodes.reference("", part, refuri=place(part)) if i % 2 else nodes.Text(part)
                    for i, part in enumerate(parts)
                ])  # fmt: skip


def place(named: str) -> str:
    """The address of a paper, an issue or a repository."""
    return PAPERS.get(" ".join(named.split())) or address(named)


def ancestors(node: nodes.Node) -> list[nodes.Node]:
    """What a node is in."""
    return [] if node.parent is None else [node.parent, *ancestors(node.parent)]


def arranged(app: Sphinx, docname: str, source: list[str]) -> None:
    """Give a page of docs its place in the site: links to rules, and what is below it."""
    folder = str(Path("docs", docname).parent)
    if folder not in ("docs", "docs/records"):
        return
    of_guide = source[0] if docname != "index" else site.home()
    if folder == "docs" and f"{docname}.md" not in words.NO_GUIDES:
        for complaint in words.read(of_guide).complaints():
            logging.getLogger("words").warning(complaint, location=docname)
    text = relinked(built.page(docname, source[0]), folder, folder)
    if docname in BELOW:
        text += toctree(*BELOW[docname], app)
    if docname == "glossary":
        text = defined.with_anchors(text)
    if docname == "api":
        text = site.linked_names(text)
    if docname == "claims":
        text = site.linked_rows(text)
    if docname == "index":
        _, *sections = text.split("\n## ")
        text = site.home()
        for section in sections:
            name = section.split("\n", 1)[0]
            listed = [*LISTED.findall(section), *SECTIONS.get(name, [])]
            text += toctree(name, listed, app, ":hidden:")
    if docname == "records/index":
        there = [name for name in LISTED.findall(text) if not name.startswith("../")]
        made = [f"../generated/records/{name}" for name in site.MEASURED]
        text += toctree("Records", [*there, *made], app, ":hidden:")
    source[0] = text


def toctree(caption: str, names: list[str], app: Sphinx, *options: str) -> str:
    """A table of contents of those pages that there are; visible ones repeat no caption."""
    folder = Path(app.srcdir, app.env.docname).parent
    there = [name for name in names if (folder / f"{name}.md").exists()]
    if not there:
        return ""
    said = [f":caption: {caption}"] if options else [":maxdepth: 1"]
    return "\n\n" + "\n".join(["```{toctree}", *said, *options, "", *there, "```"]) + "\n"


def examples_as_code(app: Sphinx, context: Context, lines: list[str]) -> None:
    """Show the examples of a command's help as code."""
    if "| Examples:" in lines:
        start = lines.index("| Examples:")
        code = [line.removeprefix("|").strip() for line in lines[start + 1 :]]
        lines[start:] = ["Examples:", "", ".. code-block:: sh", "", *(f"   {x}" for x in code), ""]


def written(app: Sphinx) -> None:
    """Write the pages, pictures and schemas that are no files of docs."""
    site.write(Path(app.srcdir) / "generated")
    built.write_files(Path(app.srcdir))


def always(
    app: Sphinx, env: object, added: set[str], changed: set[str], gone: set[str]
) -> list[str]:
    """The pages to read again although their files are as they were: code makes a part of them."""
    return [name for name in built.NAMES if name not in gone]


def breakable(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Let the name of a repository or an issue go on in the next line after / and #."""
    links = list(doctree.findall(nodes.reference)) if app.builder.format == "html" else []
    for link in links:
        named = link.astext()
        if REPOSITORY.fullmatch(named) and all(isinstance(x, nodes.Text) for x in link.children):
            parts = re.split(r"(?<=[/#])", named)
            link[:] = [
                piece
                for part in parts
                for piece in (nodes.raw("", "<wbr>", format="html"), nodes.Text(part))
            ][1:]


def breakable_cells(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Let a long name in a table go on in the next line after / . _ and ], and nowhere else."""
    if app.builder.format != "html":
        return
    pause = nodes.raw("", "<wbr>", format="html")
    for entry in doctree.findall(nodes.entry):
        literals = list(entry.findall(nodes.literal))
        texts = (one for one in entry.findall(nodes.Text) if one.parent not in literals)
        for node in [*literals, *(one for one in texts if not nested(one, nodes.reference))]:
            if not any(len(word) > LONG_NAME for word in node.astext().split()):
                continue
            if isinstance(node, nodes.literal):
                words = (PAUSE.split(word) for word in node.astext().split(" "))
                code = " ".join("<wbr>".join(map(PRE.format, map(html.escape, x))) for x in words)
                code = f'<code class="docutils literal notranslate">{code}</code>'
                node.parent.replace(node, nodes.raw("", code, format="html"))
            else:
                pieces = PAUSE.split(node.astext())
                told = [part for x in pieces for part in (pause.deepcopy(), nodes.Text(x))]
                node.parent.replace(node, told[1:])


def nested(node: nodes.Node, kind: type[nodes.Node]) -> bool:
    """Whether a node is in one of a kind."""
    return any(isinstance(one, kind) for one in ancestors(node))


def one_by_one(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Docstrings as napoleon reads them: a colon is none of a type, one attribute an entry."""
    if what in ("property", "attribute"):
        lines[:0] = ["..", ""]  # an empty comment, in which there is no colon
    if "Attributes" not in lines:
        return
    start = lines.index("Attributes") + 2
    while start < len(lines) and lines[start]:
        end = start + 1
        while end < len(lines) and lines[end].startswith(" "):
            end += 1
        named, colon, kind = lines[start].partition(" : ")
        told = [[f"{one}{colon}{kind}", *lines[start + 1 : end]] for one in named.split(", ")]
        lines[start:end] = [line for one in told for line in one]
        start += sum(map(len, told))


def in_full_size(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make a plot a link to its file, which a phone can enlarge."""
    plots = list(doctree.findall(nodes.image)) if app.builder.format == "html" else []
    for plot in plots:
        if plot["uri"].endswith(".png"):
            up = "../" * docname.count("/")
            link = nodes.reference("", "", refuri=f"{up}_images/{Path(plot['uri']).name}")
            plot.replace_self(link)
            link += plot


def with_pictures(app: Sphinx, error: Exception | None) -> None:
    """Copy what Sphinx leaves as it is: pictures, and the playground with a way back."""
    if app.builder.format == "html" and not error:
        copytree(Path(app.srcdir) / "pictures", Path(app.outdir) / "pictures", dirs_exist_ok=True)
        page = (Path(app.srcdir) / "playground.html").read_text(encoding="utf-8")
        page = page.replace("<header>", f"<header>\n{site.WAY_BACK}", 1)
        (Path(app.outdir) / "playground.html").write_text(page, encoding="utf-8")
        redirects.write(Path(app.outdir))


def complained(app: Sphinx) -> None:
    """Warn of private words in what the program shows."""
    for complaint in displayed.all_complaints():
        logging.getLogger("words").warning(complaint)


def setup(app: Sphinx) -> None:
    """Write pages before the others are read."""
    app.add_lexer("transcript", TextLexer)
    app.add_transform(LinkPublicPlaces)
    app.connect("builder-inited", written)
    app.connect("builder-inited", complained)
    app.connect("env-get-outdated", always)
    app.connect("source-read", arranged)
    app.connect("doctree-resolved", breakable)
    app.connect("doctree-resolved", breakable_cells)
    app.connect("autodoc-process-docstring", one_by_one, priority=100)  # before napoleon
    app.connect("doctree-resolved", in_full_size)
    app.connect("build-finished", with_pictures)
    app.connect("sphinx-click-process-description", examples_as_code)
