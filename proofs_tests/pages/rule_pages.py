"""The page of each rule: what it is, its formula, an example, its listing and its proof."""

import inspect
import os
import re
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from proofs_tests.pages import claims
from proofs_tests.pages.claims import anchor
from proofs_tests.pages.console_blocks import ROOT
from proofs_tests.pages.links import PARAGRAPH, rows_of
from proofs_tests.pages.paper_pages import short, uses
from proofs_tests.pages.pictures.svg import THEMES
from proofs_tests.pages.toy import LOOKAHEAD, pair, toy
from proofs_tests.pages.typeset import indexed, latex, symbols
from specref import Model, is_lossless
from specref.chance import Traced, exact_distribution, shown
from specref.report.listing import listing_of
from specref.report.listing import rules as listed_rules
from specref.rule import Rule
from specref.rules import RULES
from specref.zoo import ALL
from specref.zoo.entry import Entry

NO_DIFFERENCE = "in nothing that is known"
EQUAL = "a draft token is accepted wherever p equals the distribution it is verified against"
TEXTS = {
    "one": "the target's",
    "two": "any; nothing is drafted for a context that the draft model cannot spell",
    "two by text": "any two that can read each other's text",
}


def rule_page(rule: Rule) -> str:
    """The page of a rule."""
    listing = listing_of(rule)
    module = listing if inspect.ismodule(listing) else sys.modules[listing.__module__]
    (told,) = (row for row in listed_rules() if row.name == rule.name)
    facts = {
        "from": "; ".join(cited(paper) for paper in rule.papers),
        "this listing differs from the paper": rule.differs or NO_DIFFERENCE,
        "the paper's words, read literally": as_printed(rule),
        "vocabulary of the draft model": TEXTS[rule.vocabularies],
        "lossless": is_lossless_said(rule),
        EQUAL: "yes" if rule.accepts_equals else "no",
        "may be declared under the contracts": ", ".join(told.contracts) or "none",
        "when to use it": f"{rule.when} [Choose](../../choose-an-algorithm.md)",
        "statements about it": rows_about(rule),
        "published test vectors": "[yes](../../other-languages.md)" if rule.vectors else "no",
    }
    parts = [
        f"# {rule.name}\n\n*{told.text.rstrip('.')}.*\n",
        rows_of(("", ""), iter(facts.items())),
    ]
    said = [(inspect.getdoc(module) or "").partition(PARAGRAPH)[2]]
    said += [paragraphs(listing)] if listing is not module else []
    said = [one.removeprefix(told.text).lstrip() for one in said]
    why = ["## What it does, and why\n", *(f"{one}\n" for one in said)] if any(said) else []
    return "\n".join(
        [
            *parts,
            formula(rule),
            example(rule),
            proofs(rule, listing),
            *why,
            acceptance(rule),
            f"## Listing\n\n{included(module)}",
            bugs(rule),
        ]
    )


def formula(rule: Rule) -> str:
    """The acceptance formula of a rule, typeset, with its symbols."""
    lines = "\n\n".join(f"$$\n{line}\n$$" for line in latex(rule.formula))
    named = [("$A_i$" if indexed(rule.formula) else "$A$", given(rule))]
    for told, what in symbols(rule.formula):
        named += [(f"${told}$", f"one of the {what_is_verified(rule)}" if told == "x" else what)]
    symbol_rows = rows_of(("symbol", "meaning"), iter(named))
    return f"## Acceptance formula\n\n{symbol_rows}\n{lines}\n\n{CHECKED}\n"


CHECKED = (
    "The mean over what is drafted equals what the enumeration of all random paths counts: "
    "`proofs_tests/test_formulas.py` compares them on one pair of models."
)


def given(rule: Rule) -> str:
    """Of which event the formula is the probability."""
    if rule.name == "autoregressive":
        return "the probability that a draft token is accepted: there is none"
    if rule.tree:
        return "its mean is the probability that $x_1 y_1$ or $x_2 y_2$ is accepted"
    if indexed(rule.formula):
        return (
            f"the probability that the first i {what_is_verified(rule)} are accepted, given "
            "these; $A_0 = 1$, and p, q, psi and x are those of position i, after those before it"
        )
    return "the probability that a draft token of the position is accepted, given what is below"


def what_is_verified(rule: Rule) -> str:
    """Whose tokens a rule accepts or rejects."""
    by_text = rule.vocabularies == "two by text"
    return "target tokens of the drafted text" if by_text else "draft tokens"


def as_printed(rule: Rule) -> str:
    """The variants of a rule that are what its paper prints, to the letter."""
    told = (
        f"[{one.id}](../bugs.md#{one.id}), {kind_of(one)}: {one.formula}"
        for one in map(ALL.__getitem__, rule.printed)
    )
    return "; ".join(told) or "were not run apart from this listing"


def kind_of(entry: Entry) -> str:
    """Whether an entry of the zoo is lossless, and whether it is what its paper prints."""
    printed = " (as printed)" * (entry.id in RULES[entry.rule].printed)
    return ("lossless" if entry.lossless else "lossy") + printed


def picture(rule: Rule) -> str:
    """An iteration of the rule, in a light and in a dark form."""
    return "\n".join(
        f'<img class="only-{theme}" alt="One iteration of {rule.name}, decision by decision." '
        f'width="640" src="../../pictures/{rule.name}-{theme}.svg">'
        for theme in THEMES
    )


def is_lossless_said(rule: Rule) -> str:
    """Whether a rule is lossless as specref lists it, and what is known of it as printed."""
    if not rule.lossless:
        return "**no**: published, and refuted"
    ledger = claims.ledger()
    told = "yes, as listed here"
    for key in claims.SOURCES:
        name, page = short(ledger[key]), f"../papers/{key}.md"
        by_id = {row["id"]: row for row in ledger[key]["rows"]}
        rows = [by_id[id_] for id_ in ledger[key].get("as_printed", {}).get(rule.name, ())]
        links = ", ".join(f"[{row['id']}]({page}#{anchor(row['id'])})" for row in rows)
        if rows:
            told += f"; as printed in {name} **no**: {links}, in the editions that these rows name"
        elif uses(rule, name):
            told += f"; [verdicts on statements of {name}]({page})"
    return told


def rows_about(rule: Rule) -> str:
    """Links to the rows of the ledger that are about a rule."""
    ledger = claims.ledger()
    named = ledger["rules"].get(rule.name, ())
    links = (
        f"[{row['id']}](../papers/{source}.md#{anchor(row['id'])}) {row['verdict']}"
        for source, row in claims.rows(ledger)
        if row["id"] in named
    )
    return "; ".join(links) or "none was examined"


def cited(paper: str) -> str:
    """A paper as the table of rules names it, with its entry in the bibliography."""
    keys = [key for key, name in named_papers().items() if name in paper]
    longest = [
        key
        for key in keys
        if not any(named_papers()[key] in named_papers()[o] and o != key for o in keys)
    ]
    return f"{paper} {{cite:p}}`{','.join(longest)}`" if longest else paper


def named_papers(field: str = "") -> Mapping[str, str]:
    """{key: how specref names it} of the bibliography; with `field`, {that name: the field}."""
    text = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    first = rf"\b{field}\s*=\s*\{{(.*?)\}}" if field else r"@\w+\{([\w-]+),"
    last = r".*?keywords\s*=\s*\{(.*?)\}"
    found: list[tuple[str, str]] = re.findall(first + last, text, flags=re.DOTALL)
    return {name: value for value, name in found} if field else dict(found)


def paragraphs(described: object) -> str:
    """A docstring up to its sections, or examples."""
    return re.split(r"\n\n(?=[^\n]+\n---+\n)", inspect.getdoc(described) or "")[0]


def included(described: object, *, whole: bool = True) -> str:
    """The source of a module or, with `whole` False, of a function."""
    path = os.path.relpath(inspect.getsourcefile(described) or "", ROOT / "docs/generated/rules")
    only = "" if whole else f":pyobject: {described.__qualname__}\n"  # type: ignore[attr-defined]
    return f"```{{literalinclude}} {path}\n:language: python\n{only}```\n"


def example(rule: Rule) -> str:
    """The rule on its toy pair: both distributions, a traced path, and what all paths give."""
    shown_toy = toy(rule)
    target, drafter = shown_toy.target, shown_toy.drafter
    proof = is_lossless(rule.step, target, drafter, lookahead=LOOKAHEAD)
    mean = expected_tokens(rule, target, drafter)
    many = "1 token" if mean == 1 else f"{mean} tokens"
    usual = RULES["standard"]
    if rule.same_vocabulary and rule is not usual:
        many += f" (standard: {expected_tokens(usual, target, drafter)})"
    rows = []
    for name, model in (("p", target), ("q", drafter)):
        tokens = ", ".join(model.vocabulary.tokens)
        first, second = (shown(model.next_token(context)) for context in ((), (0,)))
        every = first if first == second else f"{first} after an even number of tokens; {second}"
        rows.append((name, tokens, every))
    return f"""## On a toy pair

{rows_of(("", "tokens", "distribution of the next token"), iter(rows))}
One random path with {LOOKAHEAD} draft tokens, from the empty context:

{picture(rule)}

The same path as `Traced` records it. Tokens are numbered from 0, each by its own vocabulary.

```text
{shown_toy.trace}
block {shown_toy.shown.outcome}, probability {shown_toy.shown.weight}
```

Enumerated when this page was built: {len(shown_toy.paths)} random paths, {many} in expectation,
and a total variation of {proof.total_variation} between the completed block and the target.
"""


def expected_tokens(rule: Rule, target: Model, drafter: Model) -> Any:
    """The mean length of a block, by all random paths; without tokens that it owes later ones."""

    def program(chance: Any) -> tuple[int, int]:
        traced = Traced(chance)
        block = rule.step(target, drafter, (), LOOKAHEAD, traced)
        return len(block), sum(step.site == "modified" for step in traced.steps)

    law = exact_distribution(program)
    return sum((length - owed) * mass for (length, owed), mass in law.items())


def acceptance(rule: Rule) -> str:
    """The closed form of what is accepted, and its value on the toy pair."""
    target, drafter = pair(rule)
    if rule.accepted_lengths:
        lengths = rule.accepted_lengths(target, drafter, (), LOOKAHEAD)
        formula = inspect.getclosurevars(rule.accepted_lengths).nonlocals.get("read")
        listed = formula or rule.accepted_lengths
        value = f"P(number of accepted tokens = 0), P(= 1), …: {', '.join(map(str, lengths))}"
    elif rule.accepts_first:
        first = rule.accepts_first(target.next_token(()), drafter.next_token(()))
        listed = getattr(rule.accepts_first, "func", rule.accepts_first)
        value = f"P(a draft of the first position is accepted): {first}"
    else:
        return "## Acceptance\n\nNo closed form is known to specref.\n"
    module = sys.modules[listed.__module__]
    above = inspect.getdoc(module) if module.__name__.startswith("specref.theory.") else None
    return f"""## Acceptance

On the pair above, in closed form: {value}. The closed form is this function of
`{listed.__module__}`:

{included(listed, whole=False)}
""" + (f"That module says: {above}\n" if above else "")


def proofs(rule: Rule, listing: object) -> str:
    """The commands that prove it."""
    target = f"{rule.step.__module__}:step" if not isinstance(rule.step, partial) else ""
    pairs = "" if rule.same_vocabulary else " --pairs all"
    command = (
        f"specref prove {target}{pairs}"
        if target
        else f"specref prove --all   # row {rule.name}; a minute on two cores"
    )
    return f"""## {"Prove it" if rule.lossless else "Refute it"}

```sh
{command}
specref prove --all --everywhere
```

The first enumerates toy pairs. The second is for every p and q over small vocabularies
([what that means](../../proofs-for-all-p-and-q.md));
[the page of all rules](../../records/everywhere_rules.md) has what it proved.
"""


def bugs(rule: Rule) -> str:
    """What the zoo plants into it."""
    entries = [entry for entry in ALL.values() if entry.rule == rule.name]
    if not entries:
        return "## Known bugs\n\nThe zoo has none for this rule.\n"
    rows = (
        (f"[{one.id}](../bugs.md#{one.id})", one.formula, kind_of(one), ", ".join(one.cites))
        for one in entries
    )
    return f"""## Known bugs, and rules that look like one

From [the zoo](../records/zoo.md), where the checks that find each are listed:

{rows_of(("id", "formula", "distribution", "seen in"), rows)}"""
