"""The playground: its laws are those of specref, its verifier is judged, its page shows them.

Statistical are the checks of `joint` of the kit, seed 0, alpha 1e-9 for each judgement: that a
right verifier fails one has at most that probability. A law that is 0.2 off in total variation is
found with probability 999 in 1,000 at least; the bugs that are put to it are.
"""

import itertools
import json
import math
import re
import subprocess
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.pages import contrast
from proofs_tests.helpers.playground import PAGE, SCRIPT, laws, node, shown, text_of
from proofs_tests.pages.pictures.example import P, Q
from proofs_tests.pages.pictures.svg import DARK, LIGHT
from specref import check
from specref.algorithms import block, slem, slrs, standard, tli, union
from specref.algorithms.decoding import Step
from specref.chance import exact_distribution
from specref.conformance.options import CheckOptions
from specref.conformance.status import Finding, Status
from specref.conformance.suite import prepare
from specref.distributions import as_distribution, overlap, total_variation
from specref.laws import completed
from specref.models import iid_model
from specref.process import Process
from specref.rules import RULES
from specref.vectors.reading import FOLDER, load_cases
from specref.vectors.running import run
from specref.vocabulary import Vocabulary
from specref.zoo import ALL

SERVED: dict[str, Step] = {"standard": standard.step, "block": block.step}
RIGHT = SERVED | {"union": union.step, "tli": tli.step, "slem": slem.step, "slrs": slrs.step}
BUGS = (
    "residual-is-p", "residual-is-q", "inverted-ratio", "always-accept-u0",
    "algorithm-5-as-printed", "bonus-from-drafter", "shared-u", "block-tokenwise-residual",
)  # fmt: skip
STEPS = RIGHT | {name: ALL[name].step for name in BUGS}
ROWS = (
    (["1/2", "1/5", "1/5", "1/10"], ["1/5", "1/2", "1/10", "1/5"], 2),
    (["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"], 3),
    (["1/2", "0", "1/2"], ["1/3", "1/3", "1/3"], 2),
    (["1/7", "2/7", "4/7"], ["1/7", "2/7", "4/7"], 1),
    (["1", "0", "0"], ["0", "1/4", "3/4"], 2),
    (["1/5", "1/5", "1/5", "1/5", "1/5"], ["1/2", "1/4", "1/8", "1/16", "1/16"], 1),
)
VOCABULARIES: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    **dict.fromkeys(("union", "tli"), ("abc", "abd")),
    **dict.fromkeys(("slem", "slrs"), (["a", "b", "ab"], "ab")),
}
"""{rule: tokens of the target, and of the draft model}."""
ROWS_OF_TWO = {
    "abd": (
        (["1/2", "3/10", "1/5"], ["3/10", "3/10", "2/5"], 2),
        (["1/2", "1/3", "1/6"], ["1/7", "2/7", "4/7"], 3),
        (["0", "1/2", "1/2"], ["1/2", "0", "1/2"], 2),
        (["1/2", "1/3", "1/6"], ["0", "0", "1"], 2),
        (["1/3", "2/3", "0"], ["1/3", "2/3", "0"], 1),
    ),
    "ab": (
        (["2/5", "1/5", "2/5"], ["3/5", "2/5"], 2),
        (["1/2", "1/3", "1/6"], ["1/7", "6/7"], 3),
        (["0", "1/2", "1/2"], ["1/2", "1/2"], 2),
        (["1/2", "0", "1/2"], ["1", "0"], 3),
        (["1/6", "1/2", "1/3"], ["1/3", "2/3"], 1),
    ),
}
"""{tokens of the draft model: its cases}."""
PAIRS = (("standard", "block"), ("union", "tli"), ("slem", "slrs"))
"""Lossless rules that the page shows next to each other: the second accepts as much, or more."""
CLOSE = 1e-12


def cases(rule: str) -> Sequence[tuple[list[str], list[str], int]]:
    return ROWS_OF_TWO["".join(VOCABULARIES[rule][1])] if rule in VOCABULARIES else ROWS


def columns(tokens: Sequence[str], row: list[str], *, of: Sequence[str]) -> list[str]:
    """A row with a column for each token of `of`; 0 where its own vocabulary lacks one."""
    own = dict(zip(tokens, row, strict=True))
    return [own.get(token, "0") for token in of]


def asked(rule: str, p: list[str], q: list[str], lookahead: int) -> dict[str, Any]:
    if rule in VOCABULARIES:
        target, drafter = VOCABULARIES[rule]
        either = list(dict.fromkeys((*target, *drafter)))
        p, q = columns(target, p, of=either), columns(drafter, q, of=either)
    rows = {name: [float(Fraction(x)) for x in row] for name, row in (("p", p), ("q", q))}
    return {"rule": rule, "lookahead": lookahead, **rows}


def exact(rule: str, p: list[str], q: list[str], lookahead: int) -> dict[str, Any]:
    """The same figures by enumeration in fractions."""
    usual = ("abcde"[: len(p)],) * 2
    own, other = map(Vocabulary, VOCABULARIES.get(rule, usual))
    target, drafter = iid_model(own, p), iid_model(other, q)
    step = STEPS[rule]
    blocks = exact_distribution(lambda chance: step(target, drafter, (), lookahead, chance))
    law = completed(blocks, target, (), lookahead + 1)
    wanted = {
        tokens: np.prod([target.next_token(())[token] for token in tokens])
        for tokens in itertools.product(range(len(p)), repeat=lookahead + 1)
    }
    first = [sum(mass for text, mass in law.items() if text[0] == t) for t in range(len(p))]
    accepted = (
        RULES[rule].acceptance_rate(target, drafter, lookahead=lookahead)
        if rule in VOCABULARIES
        else overlap(as_distribution(p), as_distribution(q))
    )
    return {
        "blocks": blocks,
        "completed": law,
        "first": first,
        "accepted": accepted,
        "tokens": sum(len(tokens) * mass for tokens, mass in blocks.items()),
        "tv": total_variation(law, wanted),
        "tvFirst": total_variation(np.array(first), as_distribution(p)),
    }


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """The figures that are not the same to 1e-12."""
    own = dict(found)
    own["blocks"] = {ids(block): mass for block, mass in found["blocks"].items()}
    own["completed"] = {ids(block): has for block, has, _ in found["completed"] if has}

    def off(one: Any, other: Any) -> bool:
        if isinstance(other, dict):
            keys = one.keys() | other.keys()
            return any(off(one.get(key, 0), other.get(key, 0)) for key in keys)
        if isinstance(other, list):
            return any(itertools.starmap(off, itertools.zip_longest(one, other, fillvalue=0)))
        return bool(abs(one - float(other)) > CLOSE)

    return [name for name, value in wanted.items() if off(own[name], value)]


def ids(block: str) -> tuple[int, ...]:
    return tuple(map(int, block.split(",")))


@cache
def computed() -> dict[tuple[str, int], dict[str, Any]]:
    keys = [(rule, place) for rule in STEPS for place in range(len(cases(rule)))]
    return dict(zip(keys, laws(asked(rule, *cases(rule)[at]) for rule, at in keys), strict=True))


@pytest.mark.parametrize("rule", STEPS)
def test_its_laws_are_those_of_specref(rule: str) -> None:
    for place, (p, q, lookahead) in enumerate(cases(rule)):
        if rule == "algorithm-5-as-printed" and p == q:
            with pytest.raises(ValueError, match="all zero: nothing to draw from"):
                exact(rule, p, q, lookahead)
        else:
            assert differences(computed()[rule, place], exact(rule, p, q, lookahead)) == [], p


def test_other_laws_are_noticed() -> None:
    wanted = exact("standard", *ROWS[0])
    assert differences(computed()["bonus-from-drafter", 0], wanted) == [
        "blocks",
        "completed",
        "tv",
    ]
    assert "first" in differences(computed()["residual-is-p", 0], wanted)
    assert "tokens" in differences(computed()["block", 0], exact("standard", *ROWS[0]))
    almost = computed()["standard", 0] | {"tokens": computed()["standard", 0]["tokens"] + 1e-11}
    assert differences(almost, wanted) == ["tokens"]


@pytest.mark.parametrize("rule", STEPS)
def test_bugs_are_lossy_somewhere_and_rules_nowhere(rule: str) -> None:
    distances = [computed()[rule, place]["tv"] for place in range(len(cases(rule)))]
    assert (max(distances) < CLOSE) is (rule in RIGHT)


PLANTED = {
    "union": ("byText ? q : submitted(state)", "byText ? q : confined(q)"),
    "tli": ("(q) => normalised(q.map", "(q) => (q.map"),
    "slem": ("match(/ab|a|b/g)", "match(/a|b/g)"),
    "slrs": ("before.every((t, i) => t === tokens[i])", "true"),
}
"""{rule: (a part of the script, the same with a bug)}."""


@pytest.mark.parametrize("rule", PLANTED)
def test_a_bug_in_its_rules_for_two_vocabularies_is_noticed(rule: str, tmp_path: Path) -> None:
    right, wrong = PLANTED[rule]
    text = SCRIPT.read_text(encoding="utf-8")
    assert text.count(right) == 1
    script = tmp_path / SCRIPT.name
    script.write_text(text.replace(right, wrong), encoding="utf-8")
    (found,) = laws([asked(rule, *cases(rule)[1])], script)
    assert "blocks" in differences(found, exact(rule, *cases(rule)[1]))


@pytest.mark.parametrize(("less", "more"), PAIRS)
def test_of_two_rules_side_by_side_the_second_accepts_no_less(less: str, more: str) -> None:
    for figure in ("accepted", "tokens"):
        for place in range(len(cases(less))):
            one, other = (computed()[rule, place][figure] for rule in (less, more))
            assert one <= other + CLOSE


def program(rule: str) -> str:
    return f"{node()} {SCRIPT} --serve {rule}"


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(
    ("rule", "smoke"),
    [("standard", "smoke"), pytest.param("block", "smoke/answers", marks=pytest.mark.deep)],
)
def test_its_verifier_is_called_lossless(rule: str, smoke: str) -> None:
    asked_for = [smoke, "replay/coin-by-coin", "joint/wide", "joint/eos"]
    with Process(program(rule)) as process:
        report = check(process, only=asked_for, detect_tv=0.3, timeout=None)
    ran = {one.id for one in report.results if one.status is Status.PASSED}
    assert report.exit_code == 0, report.verdict
    assert ran >= {"smoke/answers", *asked_for[1:]}
    assert report.capabilities.rule == rule


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize(
    ("rule", "only"),
    [
        ("residual-is-p", "joint/wide"),
        ("residual-is-q", "joint/wide"),
        ("inverted-ratio", "joint/wide"),
        ("always-accept-u0", "joint/wide"),
        ("bonus-from-drafter", "joint/deep"),
    ],
)
def test_its_bugs_are_called_lossy(rule: str, only: str) -> None:
    with Process(program(rule)) as process:
        judge, (one,) = prepare(process, CheckOptions(only=[only], detect_tv=0.2, timeout=None))
        result = one.run(judge)
    assert (result.status, result.finding) == (Status.FAILED, Finding.LAW)


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("rule", [*SERVED, "residual-is-p"])
def test_the_published_vectors_are_put_to_it(rule: str) -> None:
    name = rule if rule in SERVED else "standard"
    cases = load_cases(FOLDER, name)
    with Process(program(rule)) as process:
        done = run(process, cases, algorithm=name)
    assert done.counts["passed"] > 60
    assert ("failed" not in done.counts) is (rule in SERVED)


def test_the_page_shows_what_is_computed(tmp_path: Path) -> None:
    p, q, lookahead = ROWS[1]
    fragment = f"#p={','.join(p)}&q={','.join(q)}&rule=bonus-from-drafter&k={lookahead}&coins=7"
    dom = shown(tmp_path, fragment)
    wanted = exact("bonus-from-drafter", *ROWS[1])
    for name, figure in (("accepted", "accepted"), ("tokens", "tokens"), ("tv", "tv")):
        assert text_of(dom, name) == f"{float(wanted[figure]):.4f}"
    assert text_of(dom, "tv-first") == "0"
    assert text_of(dom, "residual") == "a 1.0000"
    assert text_of(dom, "verdict").startswith(
        f"Lossy: the completed block is {float(wanted['tv']):.4f}"
    )
    assert text_of(dom, "first").split()[:3] == ["a", "0.5000", "0.5000"]
    worst = max(wanted["completed"].items(), key=lambda one: abs(one[1] - target_mass(p, one[0])))
    block = " ".join("abc"[token] for token in worst[0])
    assert text_of(dom, "blocks").startswith(f"{block} {float(worst[1]):.4f}")
    assert text_of(dom, "problem") == ""
    assert text_of(dom, "block").startswith("Block: ")
    assert dom.count('role="slider"') == 2 * len(p)
    assert len(re.findall(r'aria-label="[pq] of token [abc]"', dom)) == 2 * len(p)


@pytest.mark.deep
@pytest.mark.parametrize("pair", PAIRS[1:])
def test_two_vocabularies_are_shown_with_both_rules(pair: tuple[str, str], tmp_path: Path) -> None:
    p, q, lookahead = cases(pair[0])[0]
    rows = asked(pair[1], p, q, lookahead)
    fragment = "&".join(f"{name}={','.join(map(str, rows[name]))}" for name in "pq")
    dom = shown(tmp_path, f"#{fragment}&rule={pair[1]}&k={lookahead}&coins=7")
    wanted = [exact(rule, p, q, lookahead) for rule in pair]
    told = [f"{float(one[name]):.4f}" for one in wanted for name in ("accepted", "tokens")]
    assert text_of(dom, "pair").split() == [pair[0], *told[:2], pair[1], *told[2:]]
    assert text_of(dom, "problem") == ""
    assert text_of(dom, "verdict").startswith("Lossless for this p and q")
    assert text_of(dom, "accepted") == told[2]
    assert dom.count('role="slider"') == len(p) + len(q)
    assert len(re.findall('class="bar mu"', dom)) == len(p)


OTHER_FAMILY = """
const rule = document.getElementById("rule");
const told = ["slrs", "tli", "union", "standard"].map((id) => {
  rule.value = id;
  rule.dispatchEvent(new Event("change"));
  if (id === "tli") {
    document.querySelector("[data-row=q][data-token='0']").dispatchEvent(
      new KeyboardEvent("keydown", { key: "End", bubbles: true }));
    document.querySelector("[data-row=q][data-token='0']").dispatchEvent(
      new KeyboardEvent("keydown", { key: "PageDown", bubbles: true }));
  }
  return new URLSearchParams(location.hash.slice(1)).get("q");
});
document.title = told.join("|");
"""


@pytest.mark.deep
def test_a_token_that_a_model_lacks_gets_no_probability(tmp_path: Path) -> None:
    (told,) = re.findall("<title>(.*)</title>", shown(tmp_path, script=OTHER_FAMILY))
    rows = [[Fraction(x) for x in row.split(",")] for row in told.split("|")]
    assert [len(row) for row in rows] == [3, 4, 4, 4]
    assert all(sum(row) == 1 for row in rows)
    assert rows[0][2] == rows[1][2] == 0
    assert rows[1] == rows[2] == [Fraction(9, 10), Fraction(1, 20), 0, Fraction(1, 20)]


def target_mass(p: list[str], tokens: tuple[int, ...]) -> Fraction:
    return math.prod((Fraction(p[token]) for token in tokens), start=Fraction(1))


DRIVEN = """
const press = (bar, key) => document.querySelectorAll(".bar")[bar].dispatchEvent(
  new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
press(0, "PageUp");
press(0, "ArrowUp");
const dragged = document.querySelectorAll(".bar")[1], box = dragged.getBoundingClientRect();
dragged.dispatchEvent(new PointerEvent("pointermove", { clientY: 0 }));
try {
  const clientY = box.bottom - box.height * 0.7;
  dragged.dispatchEvent(new PointerEvent("pointerdown", { clientY }));
} catch (error) {}
const rule = document.getElementById("rule");
rule.value = "block";
rule.dispatchEvent(new Event("change"));
document.querySelector("input[name=lookahead][value='1']").click();
for (const id of ["next", "next", "next"]) document.getElementById(id).click();
"""


def test_the_page_is_driven_by_keys_pointer_and_buttons(tmp_path: Path) -> None:
    dom = shown(tmp_path, script=DRIVEN + "document.title = location.hash;")
    (state,) = re.findall("<title>(.*)</title>", dom)
    told = dict(pair.split("=") for pair in state.lstrip("#").replace("&amp;", "&").split("&"))
    rows = {name: [Fraction(x) for x in told[name].split(",")] for name in "pq"}
    assert all(sum(row) == 1 for row in rows.values())
    assert rows["p"][0] == Fraction(61, 100)
    assert rows["q"][0] == Fraction(70, 100)
    assert (told["rule"], told["k"], told["coins"]) == ("block", "1", "3")
    assert text_of(dom, "verdict").startswith("Lossless for this p and q")
    assert text_of(dom, "accepted") == f"{float(sum(map(min, *rows.values()))):.4f}"
    assert len(re.findall("<li>", dom)) == 3


RESIZED = """
const sizes = [5, 3, 4, 3].map((size) => {
  document.querySelector(`input[name=size][value="${size}"]`).click();
  return new URLSearchParams(location.hash.slice(1)).get("p");
});
document.title = sizes.join("|");
"""


@pytest.mark.deep
def test_the_number_of_tokens_is_changed(tmp_path: Path) -> None:
    (told,) = re.findall("<title>(.*)</title>", shown(tmp_path, "#p=1,0,0&q=0,1/2,1/2", RESIZED))
    rows = [[Fraction(x) for x in row.split(",")] for row in told.split("|")]
    assert [len(row) for row in rows] == [5, 3, 4, 3]
    assert all(sum(row) == 1 and min(row) >= 0 for row in rows)


@pytest.mark.parametrize("arguments", [[], ["--serve", "typical"], ["--sample"]])
def test_bad_arguments_are_told_in_a_line(arguments: list[str]) -> None:
    done = subprocess.run([node(), str(SCRIPT), *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "expected --laws, or --serve and one of standard,block," in done.stderr


@pytest.mark.deep
@pytest.mark.parametrize(
    ("fragment", "message"),
    [
        ("#p=.5,.6&q=.5,.5", "p = .5,.6: expected 3 to 5 probabilities with the sum 1"),
        ("#rule=typical", "rule = typical: expected one of the list"),
        (
            "#rule=slrs&q=.5,.25,.25",
            "q = .5,.25,.25: expected probabilities of a, b, ab with the sum 1, and 0 for ab",
        ),
    ],
)
def test_a_bad_address_is_told(tmp_path: Path, fragment: str, message: str) -> None:
    dom = shown(tmp_path, fragment)
    assert text_of(dom, "problem") == f"{message}. What is shown is the example."
    assert text_of(dom, "accepted") == f"{float(overlap(P, Q)):.4f}"


def test_the_page_starts_with_the_pair_of_the_pictures() -> None:
    start = re.search(r"START = \{ p: (\[.*?\]), q: (\[.*?\])", SCRIPT.read_text(encoding="utf-8"))
    assert start is not None
    for row, shown_ in ((P, start[1]), (Q, start[2])):
        assert json.loads(shown_) == [float(x) for x in row]


def test_the_page_has_the_colours_of_the_pictures() -> None:
    page = PAGE.read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", page, flags=re.DOTALL)
    names = {"page", "panel", "ink", "muted", "line", "both", "over-p", "over-q"}
    for style, theme in ((light, LIGHT), (dark, DARK)):
        colours = {
            name: value.upper() for name, value in re.findall(r"--([\w-]+): (#\w{6})", style)
        }
        assert {name: colours[name] for name in names} == {name: theme[name] for name in names}


def test_the_texts_of_the_page_stand_out() -> None:
    styles = re.findall(r":root \{(.*?)\}", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    for style in styles:
        colours = dict(re.findall(r"--([\w-]+): (#\w{6})", style))
        for text, area in itertools.product(("ink", "muted", "good", "bad"), ("page", "panel")):
            assert contrast(colours[text], colours[area]) >= 4.5, (text, area)
    assert contrast(LIGHT["on-fill"], LIGHT["both"]) >= 4.5


def test_the_page_loads_nothing_else() -> None:
    page, script = (path.read_text(encoding="utf-8") for path in (PAGE, SCRIPT))
    assert re.findall(r'(?:src|href)="([^"]+)"', page) == [SCRIPT.name]
    assert not re.search(r"https?:|@import|url\(|fetch\(|import\(", page + script)
    assert page.count("<script") == 1
