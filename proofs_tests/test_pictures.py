"""The pictures of docs/pictures.md: readable and true. No check is statistical."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from xml.etree import ElementTree

import pytest

from proofs_tests.helpers.pages import contrast
from proofs_tests.pages.pictures import PICTURES, files
from proofs_tests.pages.pictures.choice import TREE, leaves, rules_of_the_tree
from proofs_tests.pages.pictures.example import DRAFTER, TARGET
from proofs_tests.pages.pictures.kills import Killed, mutants
from proofs_tests.pages.pictures.svg import DARK, LIGHT, THEMES, Drawing
from specref.algorithms import standard
from specref.chance import exact_distribution
from specref.conformance.status import Stage
from specref.contrib.selftest.kill_matrix import Matrix, Row
from specref.report.palette import GREY, OKABE_ITO, PALE
from specref.rules import RULES
from specref.zoo import ALL

SVG = "{http://www.w3.org/2000/svg}"
NARROW, WIDE = "iljtfr.,:;|!'()[]/ ", "mwMW≥<−%"


@cache
def written() -> dict[str, str]:
    return files()


NAMES = [f"{name}-{theme}.svg" for name in PICTURES for theme in THEMES]


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def inside(self, other: "Box") -> bool:
        return (
            other.left <= self.left
            and other.top <= self.top
            and self.right <= other.right
            and self.bottom <= other.bottom
        )

    def meets(self, other: "Box") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def box_of(text: ElementTree.Element) -> Box:
    """About what a line of text covers: as in DejaVu Sans, the widest of the usual fonts."""
    size, said = float(text.attrib["font-size"]), text.text or ""
    ems = sum(0.37 if c in NARROW else 0.9 if c in WIDE else 0.63 for c in said)
    width = ems * size * (1.08 if "font-weight" in text.attrib else 1)
    x, y = float(text.attrib["x"]), float(text.attrib["y"])
    left = x - {"start": 0.0, "middle": width / 2, "end": width}[text.attrib["text-anchor"]]
    return Box(left, y - 0.75 * size, left + width, y + 0.2 * size)


def texts(svg: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter(f"{SVG}text"))


def cut(svg: str) -> list[str]:
    """Texts that are not within the picture, but for a margin."""
    _, _, width, height = map(float, ElementTree.fromstring(svg).attrib["viewBox"].split())
    page = Box(4, 4, width - 4, height - 4)
    return [str(one.text) for one in texts(svg) if not box_of(one).inside(page)]


def overlapping(svg: str) -> list[tuple[str | None, str | None]]:
    return [
        (one.text, other.text)
        for one, other in combinations(texts(svg), 2)
        if box_of(one).meets(box_of(other))
    ]


def contrasts(svg: str) -> Iterator[tuple[str, float]]:
    """Each text, and the least contrast with a rectangle that it lies on."""
    areas: list[tuple[Box, str]] = []
    for part in ElementTree.fromstring(svg):
        if part.tag == f"{SVG}rect" and part.attrib["width"] == "100%":
            page = part.attrib["fill"]
        elif part.tag == f"{SVG}rect":
            x, y, width, height = (float(part.attrib[k]) for k in ("x", "y", "width", "height"))
            areas.append((Box(x, y, x + width, y + height), part.attrib["fill"]))
        elif part.tag == f"{SVG}text":
            box = box_of(part)
            below = [colour for area, colour in areas if box.meets(area)]
            if not any(box.inside(area) for area, _ in areas):
                below.append(page)
            yield part.text or "", min(contrast(part.attrib["fill"], one) for one in below)


def without_colours(svg: str) -> str:
    return re.sub(r'(fill|stroke)="#[0-9A-F]{6}"', "", svg)


def planted(*, x: float = 20, fill: str = "ink", twice: bool = False) -> str:
    drawing = Drawing("planted", 60, 200)
    drawing.rect(10, 10, 180, 40, "both")
    for _ in range(1 + twice):
        drawing.text(x, 36, "0.25 rejected", fill)
    return drawing.svg(LIGHT)


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("name", NAMES)
def test_texts_are_whole_and_apart(name: str) -> None:
    assert len(texts(written()[name])) > 5
    assert cut(written()[name]) == []
    assert overlapping(written()[name]) == []


def test_a_text_over_the_edge_or_over_another_is_noticed() -> None:
    assert cut(planted(fill="on-fill")) == overlapping(planted(fill="on-fill")) == []
    assert cut(planted(x=150)) == ["0.25 rejected"]
    assert cut(planted(x=2)) == ["0.25 rejected"]
    assert overlapping(planted(twice=True)) == [("0.25 rejected", "0.25 rejected")]


@pytest.mark.parametrize("name", NAMES)
def test_texts_stand_out(name: str) -> None:
    assert [one for one in contrasts(written()[name]) if one[1] < 4.5] == []


def test_a_text_that_does_not_stand_out_is_noticed() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)
    assert min(one for _, one in contrasts(planted(fill="on-fill"))) > 4.5
    assert min(one for _, one in contrasts(planted(fill="page"))) < 4.5


@pytest.mark.parametrize("name", PICTURES)
def test_variants_differ_in_their_colours_alone(name: str) -> None:
    light, dark = (written()[f"{name}-{theme}.svg"] for theme in THEMES)
    assert light != dark
    assert without_colours(light) == without_colours(dark)


def test_another_difference_of_variants_is_noticed() -> None:
    assert without_colours(planted(x=20)) == without_colours(planted(x=20, fill="page"))
    assert without_colours(planted(x=20)) != without_colours(planted(x=21))


def test_series_have_the_colours_of_the_palette() -> None:
    for theme in (LIGHT, DARK):
        assert {theme[name] for name in ("both", "over-p", "first")} <= {*OKABE_ITO}
    assert LIGHT["over-q"] == PALE
    assert contrast(GREY, "#FFFFFF") > 4.5


def said(name: str) -> list[str]:
    return [str(one.text) for one in texts(written()[f"{name}-light.svg"])]


def test_the_accepted_mass_is_that_of_all_paths() -> None:
    blocks = exact_distribution(lambda chance: standard.step(TARGET, DRAFTER, (), 1, chance))
    accepted = sum(mass for block, mass in blocks.items() if len(block) == 2)
    assert f"min(p, q), accepted: {accepted} in total" in said("accepted")
    rejected = {block: mass / (1 - accepted) for block, mass in blocks.items() if len(block) == 1}
    law = ", ".join(f"{'abcd'[token]} {rejected[token,]}" for (token,) in sorted(rejected))
    assert f"residual: {law}" in said("accepted")


def test_the_iteration_shows_every_kind_of_coin() -> None:
    shown = said("iteration")
    assert [shown.count(one) for one in ("accepted", "rejected", "residual")] == [2, 1, 1]
    for compared in (one for one in shown if " < " in one or " ≥ " in one):
        u, sign, bound = compared.split()
        above, _, below = bound.partition("/")
        assert (float(u) < int(above) / int(below or 1)) is (sign == "<")


def test_a_mutant_is_coloured_by_the_stages_that_fail_it() -> None:
    mutant, control = (
        next(entry for entry in ALL.values() if entry.lossless == lossless)
        for lossless in (False, True)
    )
    rows = (
        Row(mutant.id, ("joint", "smoke/answers", "boundary/tiny"), frozenset(), 0.1),
        Row(control.id, (), frozenset(), None),
    )
    (killed,) = mutants(Matrix(rows, 0, 0.1))
    assert killed == Killed(mutant.stage, frozenset({"smoke", "boundary", "joint"}))
    shown = [killed.colour(stage) for stage in (Stage.SMOKE, Stage.JOINT, Stage.ACCEPTANCE)]
    assert shown == ["first", "both", "panel"]


def test_the_tree_of_rules_has_each_rule_once() -> None:
    at = leaves(TREE, rules_of_the_tree())
    assert all(at)
    names = [name for leaf in at for name in leaf]
    assert sorted(names) == sorted(
        name for name, rule in RULES.items() if rule.lossless and name != "autoregressive"
    )
    shown = ", ".join(said("choice"))
    assert all(name in shown for name in names)
