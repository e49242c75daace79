"""Which rule is for what: a tree of questions; the table of rules answers them."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from proofs_tests.pages.pictures.svg import Drawing
from specref.rule import Rule
from specref.rules import RULES

LINE, INDENT, BOX = 24, 34, 34


class Question(NamedTuple):
    """A question to a rule, with what follows if it is, and if it is not, so."""

    text: str
    holds: Callable[[Rule], bool]
    yes: "Question | str"
    no: "Question | str"


Tree: TypeAlias = Question | str
TREE = Question(
    "Does the draft model have the target's vocabulary?",
    lambda rule: rule.same_vocabulary,
    Question(
        "Has a position one draft, drawn from q?",
        lambda rule: rule.draws_from_q,
        Question(
            "Does a companion choose how many to verify?",
            lambda rule: rule.name.startswith("companion"),
            "both repair the published rule, which is lossy",
            "standard decides draft by draft, block jointly",
        ),
        Question(
            "Do drafts form a tree?",
            lambda rule: rule.tree,
            "drafts share their beginnings",
            "several drafts of one token",
        ),
    ),
    Question(
        "Are texts compared, not token ids?",
        lambda rule: rule.by_text,
        "each tokeniser must read the other's text",
        "tli never drafts what the target lacks",
    ),
)
NO_DRAFTS = "autoregressive"


def leaves(tree: Tree, rules: list[Rule]) -> list[list[str]]:
    """The names at each leaf, from the top."""
    if isinstance(tree, str):
        return [[rule.name for rule in rules]]
    yes, no = ([rule for rule in rules if tree.holds(rule) is so] for so in (True, False))
    return leaves(tree.yes, yes) + leaves(tree.no, no)


def rules_of_the_tree() -> list[Rule]:
    """All lossless rules that draft."""
    return [rule for rule in RULES.values() if rule.lossless and rule.name != NO_DRAFTS]


def choice() -> Drawing:
    """The tree, with a question a line and the rules at its leaves."""
    rules = rules_of_the_tree()
    drawing = Drawing(
        "Decision tree of the lossless rules that draft: by vocabulary, by the number of drafts "
        "of a token, by whether texts are compared.",
        height=0,
    )
    drawing.text(20, 32, "Which of the lossless rules?", bold=True)
    drawing.text(20, 54, "ids of the table that specref list rules prints", "muted", size=15)
    drawing.height = _branch(drawing, TREE, rules, 20, 72) + 8
    return drawing


def _branch(drawing: Drawing, tree: Tree, rules: list[Rule], x: float, y: float) -> float:
    """Draw from y downwards; gives where the next may start."""
    if isinstance(tree, str):
        names = [rule.name for rule in rules]
        lines = _folded(names, int((610 - x) / 9.4))
        drawing.rect(x, y, 620 - x, LINE * (len(lines) + 1) + 8, "panel", "line")
        for place, line in enumerate(lines):
            drawing.text(x + 12, y + 22 + LINE * place, line, bold=True)
        drawing.text(x + 12, y + 22 + LINE * len(lines), tree, "muted", size=15)
        return y + LINE * (len(lines) + 1) + 18
    drawing.text(x, y + 18, tree.text)
    y += BOX
    for told, part, so in (("yes", tree.yes, True), ("no", tree.no, False)):
        drawing.line(x + 6, y - 6, x + 6, y + 12)
        drawing.line(x + 6, y + 12, x + 16, y + 12)
        drawing.text(x + 20, y + 17, told, "muted", size=15)
        kept = [rule for rule in rules if tree.holds(rule) is so]
        end = _branch(drawing, part, kept, x + 20 + INDENT, y)
        if so:
            drawing.line(x + 6, y + 12, x + 6, end)
        y = end
    return y


def _folded(names: list[str], width: int) -> list[str]:
    lines = [names[0]]
    for name in names[1:]:
        if len(lines[-1]) + len(name) + 2 <= width:
            lines[-1] += f", {name}"
        else:
            lines.append(name)
    return lines
