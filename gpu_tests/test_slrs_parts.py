"""The parts of docs/slrs.json: what is counted, and that each is measured."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from gpu_tests.benchmarks import slrs, slrs_blocks, slrs_bounds, slrs_growth
from gpu_tests.benchmarks.slrs_record import MODULES, read_record, write_record
from gpu_tests.benchmarks.slrs_temperature import Sizes
from gpu_tests.pairs import card_entries
from specref import Vocabulary
from specref.pairs import cases, toy_pairs
from specref.real_vocabularies import VocabularyNotInstalledError
from specref.theory import decompositions

built = pytest.mark.skipif(not card_entries(), reason="not_run (fixtures/models is not built)")


def test_growth_counts_decompositions() -> None:
    drafter = Vocabulary([b"a", b"b", b"ab", b"bb", b"abb"])
    tokens = [b"a", b"abb", b"bbb", b"bab", b"abc"]
    rows = {row["length"]: row for row in slrs_growth.by_length(tokens, drafter)}
    counts = sorted(len(decompositions(token, drafter)) for token in tokens if len(token) == 3)
    assert counts == [0, 2, 3, 4]
    assert rows[3]["decompositions"] == {"q25": 0, "median": 2, "q75": 3, "max": 4}
    assert (rows[3]["tokens"], rows[3]["unspelled"], rows[3]["n_max"]) == (4, 1, 3)
    assert rows[1]["decompositions"]["max"] == 1


def test_ways_to_verify_are_in_order() -> None:
    pairs = [pair for pair in toy_pairs("quick") if pair.name == "overlapping"]
    found = [slrs_blocks.lengths(case, slrs_blocks.STEPS) for case in cases(pairs, "standard")]
    row = slrs_blocks.compared(found)
    assert set(row["less"].values()) == {0}
    assert all(row["more"].values())
    turned = slrs_blocks.compared([dict(reversed(one.items())) for one in found])
    assert any(turned["less"].values())


@pytest.mark.deep
@built
def test_parts_are_measured(tmp_path: Path) -> None:
    sizes = {
        "growth": slrs_growth.Sizes(("qwen2",), every=500),
        "bounds": slrs_bounds.Sizes(lookahead=2, words=3, runs=3),
        "temperature": Sizes(("byte-level",), (0.0, 1.0), documents=2, places=1),
        "generation": slrs.Sizes(("byte-level",), (1,), ("tli",), 1, 2, 1, repetitions=1),
        "blocks": slrs_blocks.Sizes("quick", "quick"),
    }
    file = tmp_path / "record.json"
    others = [part for part in MODULES if part != "growth"]
    write_record(file, others, sizes)
    assert [*read_record(file)] == others
    before = read_record(file)["bounds"]
    try:
        write_record(file, ["growth"], sizes)
    except VocabularyNotInstalledError as error:
        pytest.skip(f"not_run ({error})")
    assert [*read_record(file)] == [*MODULES]
    assert read_record(file)["bounds"] == before
