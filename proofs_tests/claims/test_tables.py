"""Every figure that follows from another one that the same paper prints, worked out anew.

`fixtures/printed_tables.json` has the numbers of the printed tables with their lines in the texts.
A printed figure agrees if some values that round to the figures it follows from give one that
rounds to it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from proofs_tests.helpers.published import TABLES, table
from proofs_tests.pages import claims

TASKS = ("chat", "code")
HETEROGENEOUS = {
    "Phi-3.5-mini-instruct",
    "Qwen2.5-0.5B-Instruct",
    "tiny_starcoder_py",
    "vicuna-68m",
}
"""Drafters of A Table 7 that have another vocabulary than every target there."""


class Checked(NamedTuple):
    """A printed statement of a row of the ledger, and whether the printed figures bear it out."""

    row: str
    where: str
    agrees: bool


class Near(NamedTuple):
    """The values that round to a printed figure."""

    low: float
    high: float

    def over(self, other: "Near") -> "Near":
        return Near(self.low / other.high, self.high / other.low)

    def less(self, other: "Near") -> "Near":
        return Near(self.low - other.high, self.high - other.low)

    def meets(self, other: "Near") -> bool:
        return self.low <= other.high + 1e-9 and other.low <= self.high + 1e-9


def near(printed: str, digits: int | None = None) -> Near:
    """Of a figure as printed, or of one whose zeros at the end were left out."""
    plain = printed.replace(",", "")
    half = 0.5 * 10.0 ** -(len(plain.partition(".")[2]) if digits is None else digits)
    return Near(float(plain) - half, float(plain) + half)


def benchmarks() -> Iterator[Checked]:
    """Speedups are ratios of throughputs; 2.8 is the greatest of SLEM; SD needs one vocabulary."""
    rows, plain = table("B Tables 1, 2, 6 and 7"), {}
    shares = {(row["target"], row["drafter"]): row["share"] for row in table("B Table 10")}
    for row in rows:
        plain = row if row["method"] == "AR" else plain
        ratio = near(row["tokens"], 1).over(near(plain["tokens"], 1))
        yield Checked("T.1", f"line {row['line']}", ratio.meets(near(row["speedup"], 2)))
        if row["method"] == "SD":
            one = shares.get((row["target"], row["drafter"]), "1.0") == "1.0"
            yield Checked("T.12", f"line {row['line']}", one)
    most = max(float(row["speedup"]) for row in rows if row["method"] == "SLEM")
    yield Checked("T.2", "the greatest speedup of SLEM", round(most, 1) == 2.8)


def earlier_edition() -> Iterator[Checked]:
    """Captions and sentences of A against its Tables 1 and 7."""
    first = {
        (row["dataset"], row["drafter"], row["temperature"]): row for row in table("A Table 1")
    }
    fast = {key: float(row["tokens"]) for key, row in first.items()}
    for (dataset, drafter, heat), rate in fast.items():
        if drafter != "vicuna-68m":
            continue
        where = f"{dataset} at {heat}"
        yield Checked("T.3", where, rate > fast[dataset, "AR", heat])
    best = max(rate for key, rate in fast.items() if key[0] == "cnn_dailymail")
    yield Checked("T.10", "Table 1", best == fast["cnn_dailymail", "vicuna-68m", "0"])
    seventh = table("A Table 7")
    for row in seventh:
        key = (row["dataset"], row["drafter"], row["temperature"])
        if row["target"] == "gemma-2-9b-it" and key in first:
            same = first[key]["tokens"].partition(".")[0] == row["tokens, cut"]
            yield Checked("T.3b", f"{key[1]} at {key[2]}", same)
    for where in ("Table 1", "Table 7"):
        slem, tli = map(mean, ratios(where))
        yield Checked("T.11", f"{where}, TLI against SLEM", tli > slem)
        yield Checked("T.11", f"{where}, TLI against autoregressive", tli > 1)


def plain_rows(row: Mapping[str, str]) -> list[dict[str, str]]:
    """Of A Table 7: without drafts, else as a row."""
    same = ("target", "dataset", "temperature")
    return [
        plain
        for plain in table("A Table 7")
        if plain["drafter"] == "AR" and all(row[k] == plain[k] for k in same)
    ]


def ratios(where: str) -> tuple[list[float], list[float]]:
    """How many times faster SLEM and TLI are than no drafts, row by row of a table of A."""
    if where == "Table 1":
        rows = table("A Table 1")
        plain = {
            (row["dataset"], row["temperature"]): float(row["tokens"])
            for row in rows
            if row["drafter"] == "AR"
        }
        found = [
            (row["temperature"], float(row["tokens"]) / plain[row["dataset"], row["temperature"]])
            for row in rows
            if row["drafter"] == "vicuna-68m"
        ]
    else:
        found = [
            (row["temperature"], float(plain_row["TPOT"]) / float(row["TPOT"]))
            for row in table("A Table 7")
            if row["drafter"] in HETEROGENEOUS
            for plain_row in plain_rows(row)
        ]
    slem = [rate for heat, rate in found if heat == "0"]
    tli = [rate for heat, rate in found if heat != "0"]
    return slem, tli


def vocabularies() -> Iterator[Checked]:
    """Shares are counts over sizes; a token of m characters has at most 2^(m-1) spellings."""
    for counted, sized in (("A Table 5", "A Table 4"), ("B Table 9", "B Table 8")):
        sizes = {row["model"]: row["size"] for row in table(sized)}
        for row in table(counted):
            share = near(row["shared"]).over(near(sizes[row["target"]]))
            yield Checked("T.4", f"{counted}, line {row['line']}", share.meets(near(row["share"])))
    for name in ("A Table 8", "B Table 5"):
        for row in table(name)[2:]:
            most = 2 ** (float(row["characters"]) - 1)
            yield Checked("H3.25", f"{name}, {row['what']}", float(row["combinations"]) <= most)


def ngrammys() -> Iterator[Checked]:
    """No speedup exceeds tokens per call; the best strategy is the best; more than 2 times.

    Of Fig. 6 five of the last row's numbers of GSM8K are legible, the last of them taken for
    that of (25, 14).
    """
    rows = table("N Table 1")
    for task in ("MT", "HumanEval", "GSM8K"):
        for default, best in zip(rows[::2], rows[1::2], strict=True):
            for row in (default, best):
                tokens, speedup = near(row[f"{task} tokens"]), near(row[f"{task} speedup"])
                where = f"{task}, {row['size']}, {row['strategy']}"
                yield Checked("G.3", where, speedup.low <= tokens.high)
                alone = (task, row["size"]) == ("MT", "7b")
                yield Checked("G.20", where, alone == (float(row[f"{task} speedup"]) <= 2))
            least, most = (float(row[f"{task} speedup"]) for row in (default, best))
            yield Checked("G.21", f"{task}, {default['size']}", least <= most)
    (last,) = table("N Fig. 6, GSM8K, last row")
    legible = [float(last[str(n)]) for n in range(1, 6)]
    yield Checked("G.21", "Fig. 6, GSM8K", max(legible) <= float(rows[1]["GSM8K speedup"]))
    yield Checked("G.22", "Fig. 6, GSM8K", legible[-1] == max(legible))
    (fast,), (many,) = (table(f"N Fig. {n}, MT-Bench, k = 1") for n in (8, 9))
    for w in TABLES["N Fig. 8, MT-Bench, k = 1"]["columns"][1:]:
        yield Checked("G.3", f"Fig. 8, w = {w}", near(fast[w]).low <= near(many[w]).high)


def verification() -> Iterator[Checked]:
    """Gains are differences of entropies; shares and averages are those of the counts."""
    rows = table("K Table 2")
    for row in rows:
        for task in TASKS:
            gain = near(row[f"H {task}"]).less(near(row[f"both {task}"]))
            agrees = gain.meets(near(row[f"gain {task}"]))
            yield Checked("V.29", f"{row['bins']} bins, {task}", agrees)
    for task in TASKS:
        share = near(rows[-1][f"gain {task}"]).over(near(rows[-1][f"H {task}"]))
        yield Checked("V.15", task, share.low <= 0.4 and share.high >= 0.3)
        left = near(rows[-1][f"both {task}"]).over(near(rows[-1][f"H {task}"]))
        yield Checked("V.28", task, Near(1 - left.high, 1 - left.low).meets(near("0.34")))
    rows = table("K Table 3")
    for row in rows:
        counts = {v: int(row[str(v)]) for v in range(1, 6)}
        average = sum(v * count for v, count in counts.items()) / sum(counts.values())
        where = f"request {row['request']}"
        yield Checked("V.17", where, near(row["average"]).meets(Near(average, average)))
    least = [row for row in rows if row["case"] == "worst"]
    steps = {v: sum(int(row[str(v)]) for row in least) for v in range(1, 6)}
    for printed, lengths in (("0.39", (4, 5)), ("0.47", (1, 2))):
        share = sum(steps[v] for v in lengths) / sum(steps.values())
        yield Checked("V.17", f"{printed}, pooled", near(printed).meets(Near(share, share)))
        own = mean([_share(row, lengths) for row in least])
        yield Checked("V.17", f"{printed} by request", near(printed).meets(Near(own, own)))
    pooled = sum(v * count for v, count in steps.items()) / sum(steps.values())
    yield Checked("V.17", "2.9, pooled", near("2.9").meets(Near(pooled, pooled)))
    average = mean([float(row["average"]) for row in least])
    yield Checked("V.17", "the five on average", near("2.9").meets(Near(average, average)))
    targets = {row["target"] for row in table("K settings")}
    yield Checked("V.31", "nine combinations", len(table("K settings")) == 9)
    yield Checked("V.31", "targets from 13B to 72B", targets >= {"13B", "72B"})
    yield Checked("V.31", "three sizes of targets", targets == {"13B", "34B", "72B"})


def _share(row: Mapping[str, str], lengths: tuple[int, ...]) -> float:
    """The share of a request's steps that accept so many tokens."""
    return sum(int(row[str(v)]) for v in lengths) / sum(int(row[str(v)]) for v in range(1, 6))


def explainer() -> Iterator[Checked]:
    """5 drafts in 12 ms are 2.4 ms each; 2 to 2.5 times, or 2 to 3 rounded, in every result."""
    (verified,) = table("E ch. 0, K = 5")
    each = near(verified["ms"]).over(Near(5, 5))
    yield Checked("L.9", "ms a token", each.meets(near(verified["ms a token"])))
    for row in table("E ch. 5"):
        speedup = float(row["speedup"])
        yield Checked("L.17", row["task"], 2 <= speedup <= 2.5)
        yield Checked("L.17", f"{row['task']}, rounded", 2 <= round(speedup) <= 3)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


WALKS = (benchmarks, earlier_edition, vocabularies, ngrammys, verification, explainer)
CONTRADICTED = {
    "T.12": {f"line {n}" for n in (268, 272, 297, 300, 352, 356, 391)},
    "T.3": {"cnn_dailymail at 1e-07", "scrolls at 1e-07"},
    "T.3b": {"vicuna-68m at 1e-07", "gemma-2-2b-it at 0", "gemma-2-2b-it at 1"},
    "T.11": {f"Table {n}, TLI against SLEM" for n in (1, 7)},
    "G.3": {"GSM8K, 3b, (k*,w*)", "Fig. 8, w = 2", "Fig. 8, w = 4"},
    "G.22": {"Fig. 6, GSM8K"},
    "V.15": {"code"},
    "V.28": {"code"},
    "V.17": {
        "request 390",
        "request 141",
        "request 419",
        "0.39, pooled",
        "0.47, pooled",
        "2.9, pooled",
    },
    "V.31": {"three sizes of targets"},
    "L.17": {"Summarization"},
}


OPEN = {"G.21", "L.9"}
"""Rows whose figures follow, and that are not true: of G.21 the texts have too few of the
strategies that it compares, and L.9 holds on conditions that are not printed."""
APPENDIX_D = 208
"""The line of B at which its tables of all benchmarks begin."""


def test_printed_figures_follow_from_printed_tables():
    """But for those of `CONTRADICTED`, whose rows are not true; the others are, but for `OPEN`."""
    checked = [one for walk in WALKS for one in walk()]
    wrong: dict[str, set[str]] = {}
    for one in checked:
        if not one.agrees:
            wrong.setdefault(one.row, set()).add(one.where)
    assert wrong == CONTRADICTED
    verdicts = {row["id"]: row["verdict"] for _, row in claims.rows(claims.ledger())}
    for row in Counter(one.row for one in checked):
        assert (verdicts[row] == "true") == (row not in wrong and row not in OPEN), row


def test_figures_of_rows_that_compare_printed_ones():
    """T.1, T.2, T.10, T.11, V.15, V.17, and the rows of Table 7 that T.11 leaves out."""
    rows, plain, slower = table("B Tables 1, 2, 6 and 7"), {}, defaultdict[str, list[bool]](list)
    for row in rows:
        plain = row if row["method"] == "AR" else plain
        if row is not plain and int(row["line"]) > APPENDIX_D:
            slower[row["method"]].append(float(row["tokens"]) < float(plain["tokens"]))
    counts = {method: (sum(some), len(some)) for method, some in slower.items()}
    assert counts == {"SD": (11, 35), "SLEM": (17, 47), "TLI": (11, 48)}

    def most(method, some=rows):
        return max(float(row["speedup"]) for row in some if row["method"] == method)

    first = [row for row in rows if int(row["line"]) < APPENDIX_D]
    assert (most("SLEM", first), most("SLEM")) == (2.79, 2.79)
    assert (most("TLI", first), most("TLI"), most("SD")) == (1.77, 2.04, 3.05)
    both = [some for where in ("Table 1", "Table 7") for some in ratios(where)]
    assert [round(mean(some), 2) for some in both] == [1.56, 1.17, 1.25, 1.15]
    slow = [(sum(ratio < 1 for ratio in some), len(some)) for some in both]
    assert slow == [(0, 2), (2, 4), (4, 11), (5, 11)]
    slower_slem = {
        row["target"]: [int(row["tokens, cut"]), int(plain["tokens, cut"])]
        for row in table("A Table 7")
        for plain in plain_rows(row)
        if row["dataset"] == "cnn_dailymail"
        and row["drafter"] in HETEROGENEOUS
        and row["temperature"] == "0"
        and row["target"] != "gemma-2-9b-it"
    }
    assert sorted(slower_slem.values()) == [[9, 10], [12, 26]]
    left_out = [
        (row["line"], row["temperature"])
        for row in table("A Table 7")
        if row["drafter"] in HETEROGENEOUS and not plain_rows(row)
    ]
    assert left_out == [("327", "1e-07"), ("334", "1e-07")]
    bins = table("K Table 2")[-1]
    told = [round(100 * float(bins[f"gain {x}"]) / float(bins[f"H {x}"]), 1) for x in TASKS]
    assert told == [34.8, 20.8]
    least = [row for row in table("K Table 3") if row["case"] == "worst"]
    assert round(mean([float(row["average"]) for row in least]), 3) == 2.948
    counted = [sum(v * _share(row, (v,)) for v in range(1, 6)) for row in least]
    assert round(mean(counted), 3) == 2.951
    counts = {
        row["request"]: [round(sum(v * _share(row, (v,)) for v in range(1, 6)), 3), row["average"]]
        for row in table("K Table 3")
    }
    assert [counts[request] for request in ("390", "141", "419")] == [
        [2.889, "2.88"],
        [2.909, "2.90"],
        [4.932, "4.91"],
    ]
    own = [100 * mean([_share(row, some) for row in least]) for some in ((4, 5), (1, 2))]
    assert [round(share, 2) for share in own] == [39.02, 47.45]
    steps = [sum(int(row[str(v)]) for row in least) for v in range(1, 6)]
    assert (sum(steps), sum(steps[3:]), sum(steps[:2])) == (89, 34, 43)
    assert round(sum(v * n for v, n in enumerate(steps, 1)) / 89, 3) == 2.955


@pytest.mark.parametrize(
    ("name", "column", "row", "planted"),
    [
        ("B Tables 1, 2, 6 and 7", "speedup", "T.1", "9.99"),
        ("A Table 5", "share", "T.4", "0.99"),
        ("K Table 2", "gain chat", "V.29", "0.43"),
        ("K Table 3", "average", "V.17", "1.00"),
        ("N Table 1", "MT speedup", "G.3", "3.00"),
        ("E ch. 5", "speedup", "L.17", "2.6"),
    ],
)
def test_a_figure_that_does_not_follow_is_noticed(name, column, row, planted, monkeypatch):
    """In the second line of a table."""
    found = TABLES[name]
    rows = [list(one) for one in found["rows"]]
    rows[1][found["columns"].index(column)] = planted
    before = {one.where for walk in WALKS for one in walk() if one.row == row and not one.agrees}
    monkeypatch.setitem(TABLES, name, {**found, "rows": rows})
    after = {one.where for walk in WALKS for one in walk() if one.row == row and not one.agrees}
    assert len(after - before) == 1


def digits(text: str) -> str:
    return re.sub(r"[^\d]", "", text)


@pytest.mark.skipif(not claims.folder(), reason="SPECREF_PAPERS names no folder of the texts")
def test_tables_are_those_of_the_texts():
    """Every number of a row is in its line, in their order, digit by digit."""
    texts = claims.texts(claims.ledger(), claims.folder())
    for name, found in TABLES.items():
        for line, *cells in found["rows"]:
            rest = digits(texts[found["text"]][line - 1])
            for cell in cells:
                if re.fullmatch(r"[\d,.]+[BM]?", cell):
                    assert digits(cell) in rest, (name, line, cell)
                    rest = rest.partition(digits(cell))[2]
