"""Which page the site's search shows first for the words that people search.

An entry of the index leads there, and where node is installed the site's own search is run.
"""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import index
from sphinx.application import Sphinx
from sphinx.util import logging

FEWER = "does-block-verification-ever-accept-fewer-tokens-than-standard"
FIRST: Mapping[str, tuple[str, str]] = {
    "psi": ("choose-an-algorithm", "through-text"),
    "residual": ("losslessness", "the-acceptance-rule"),
    "bonus token": ("losslessness", "the-acceptance-rule"),
    "acceptance rate": ("losslessness", "the-acceptance-rule"),
    "expected tokens": ("speed", "formulas"),
    "logits": ("check-a-sampler", "declare-what-your-sampler-does-not-support"),
    "block verification": ("choose-an-algorithm", "one-chain"),
    "accepts fewer tokens": ("choose-an-algorithm", FEWER),
    "block verification fewer tokens": ("choose-an-algorithm", FEWER),
    "e-value": ("how-verdicts-work", "the-e-process"),
    "exit codes": ("checks", "exit-codes"),
    "vllm": ("check-an-engine-sampler", "vllm"),
}
"""{what is searched: (page, section)}."""
ASK = """
const fs = require("fs"), vm = require("vm"), [folder, ...queries] = process.argv.slice(1);
const page = { addEventListener() {}, getElementById: () => null, readyState: "loading" };
const world = vm.createContext({
  document: page, location: { search: "" }, URLSearchParams, SPHINX_HIGHLIGHT_ENABLED: false,
  _ready() {}, _: (text) => text,
});
world.window = world;
const files = ["_static/language_data.js", "_static/searchtools.js", "searchindex.js"];
const code = files.map((name) => fs.readFileSync(`${folder}/${name}`, "utf8")).join("\\n");
const last = `;${JSON.stringify(queries)}.map((query) =>
  Search._performSearch(...Search._parseQuery(query)).map((one) => one[0]).reverse())`;
console.log(JSON.stringify(vm.runInContext(code + last, world)));  // it shows the last one first
"""


def indexed(app: Sphinx, doctree: nodes.document) -> None:
    """Give a page the entries of the index that lead to it."""
    here = app.env.docname
    entries = [
        ("single", words, section, "main", None)
        for words, (page, section) in FIRST.items()
        if page == here
    ]
    if entries:
        doctree.insert(0, index(entries=entries))


def found(site: Path, queries: Sequence[str]) -> list[list[str]]:
    """The pages that the search of a site shows for each query, the first one first.

    * raises `FileNotFoundError`: node is not installed.
    """
    node = shutil.which("node")
    if node is None:
        raise FileNotFoundError("node is not installed")
    done = subprocess.run(
        [node, "-e", ASK, str(site), *queries], capture_output=True, text=True, check=True
    )
    pages: list[list[str]] = json.loads(done.stdout)
    return pages


def checked(app: Sphinx, error: Exception | None) -> None:
    """Warn of a word whose first page is another one."""
    log = logging.getLogger("search")
    if error or app.builder.format != "html":
        return
    try:
        answers = found(Path(app.outdir), list(FIRST))
    except FileNotFoundError as missing:
        log.info("search: not_run (%s)", missing)
        return
    for (words, (page, _)), pages in zip(FIRST.items(), answers, strict=True):
        if pages[:1] != [page]:
            log.warning("a search of '%s' shows %s first, not %s", words, pages[:3], page)


def again(
    app: Sphinx, env: object, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """The pages with entries: Sphinx forgets those of a page that it does not write again."""
    return sorted({page for page, _ in FIRST.values()} - removed)


def setup(app: Sphinx) -> None:
    """Index the words, and try them when the site is built."""
    app.connect("env-get-outdated", again)
    app.connect("doctree-read", indexed)
    app.connect("build-finished", checked)
