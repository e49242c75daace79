"""Two files of texts, all that they say, and the verdict on it; also those of a server."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from specref.cli.group import HOLDS, MISUSED, VIOLATED
from specref.contrib.compare.beside import (
    Drafts,
    Exercised,
    Greedy,
    Seeds,
    Speculation,
    by_seed,
    greedy_agreement,
    seeds_of,
    speculation,
)
from specref.contrib.compare.judging import Comparison, compare, up
from specref.contrib.compare.logprobs import Agreement, Reported, ReportedLogprobs, agreement
from specref.contrib.compare.records import Encode, Texts, read_texts
from specref.contrib.real_models.settings import Setting
from specref.report.machine import write_json
from specref.statistics.campaign.verdict import Verdict

HEADS = {
    Verdict.LOSSY: "LOSSY: distributions differ (false-positive rate at most {alpha:.2g}).",
    Verdict.LOSSLESS_WITHIN_EPS: "NO DIFFERENCE, and none above {within:g} in what is listed "
    "(confidence 1 - {alpha:.2g}).",
    Verdict.INCONCLUSIVE: "INCONCLUSIVE: no difference found; one of up to {most:.2f} could "
    "still be there.",
}
"""A verdict and how sure it is, in one line of 80 columns."""
NOT_EXERCISED = {
    Exercised.NO: "NOT EXERCISED: no difference found, but the switch of drafts did not work.",
    Exercised.UNKNOWN: "COULD NOT TELL whether drafts were used; no difference found.",
}
BESIDE = {
    Exercised.NO: "not exercised",
    Exercised.UNKNOWN: "could not tell if drafts were used",
}
"""The same beside a fault."""
SPEC, PLAIN = "on", "off"


@dataclass(frozen=True)
class Judging:
    """How files are judged; the tolerance of log-probabilities is in nats.

    `setting` is what raw log-probabilities are shaped by, `declared` the stage of those reported.
    """

    alpha: float
    within: float
    tolerance: float
    seed: int
    setting: Setting
    declared: str | None


@dataclass(frozen=True)
class Looks:
    """How far a run came that judges its texts several times, as they come.

    Attributes
    ----------
    planned : tuple of int
        Texts of each prompt after which all are judged, each time at an equal part of alpha.
    judged : int
        After how many this verdict is.
    ended : str or None
        Why none were drawn after them, though they decided nothing.
    """

    planned: tuple[int, ...]
    judged: int
    ended: str | None = None


@dataclass(frozen=True)
class Checked:
    """All that was found; the last three of a server alone.

    `logprobs` is of both sides with each other, `reported` of each side that reports any;
    `speculation` is there where drafts are counted, and of a server.
    """

    comparison: Comparison
    logprobs: Agreement | None
    reported: tuple[ReportedLogprobs, ...]
    speculation: Speculation | None
    greedy: Greedy | None = None
    seeds: tuple[Seeds, Seeds] | None = None
    looks: Looks | None = None

    @property
    def exercised(self) -> Exercised:
        """Whether drafts were used in the first file alone; of files that count none, yes."""
        return Exercised.YES if self.speculation is None else self.speculation.exercised

    @property
    def faults(self) -> list[str]:
        """What is violated besides distributions."""
        greedy = self.greedy is not None and self.greedy.apart
        differ = self.logprobs is not None and not self.logprobs.agree
        wrong = differ or any(not one.right for one in self.reported)
        return ["GREEDY TEXTS DIFFER"] * bool(greedy) + ["LOG-PROBABILITIES WRONG"] * wrong

    @property
    def alpha(self) -> float:
        """Of a false LOSSY, by all looks together."""
        return self.comparison.alpha * (1 if self.looks is None else len(self.looks.planned))

    @property
    def head(self) -> str:
        """The verdict and how sure it is, in one line."""
        found = self.comparison
        told = HEADS[found.verdict].format(
            alpha=self.alpha, within=found.within, most=up(found.most)
        )
        if found.verdict == Verdict.LOSSY:
            return told
        if self.faults:
            beside = BESIDE.get(self.exercised) or told.partition(":")[0].partition(",")[0].lower()
            return f"{', '.join(self.faults)}; sampled texts: {beside}."
        return NOT_EXERCISED.get(self.exercised, told)

    @property
    def exit_code(self) -> int:
        """Of a command."""
        if self.faults or self.comparison.verdict == Verdict.LOSSY:
            return VIOLATED
        known = self.exercised == Exercised.YES and not (self.greedy and self.greedy.unknown)
        certified = self.comparison.verdict == Verdict.LOSSLESS_WITHIN_EPS
        return HOLDS if known and certified else MISUSED

    def record(self) -> dict[str, Any]:
        """What goes into JSON."""
        rest = asdict(self)
        comparison: dict[str, Any] = rest.pop("comparison")
        return comparison | {"verdict": str(self.comparison.verdict)} | rest


@dataclass
class File:
    """One file as it is read: its texts, and what else its records say."""

    texts: Texts
    drafts: Drafts
    reported: ReportedLogprobs | None


def read_file(
    path: str,
    judging: Judging,
    vocabulary: int | None = None,
    encode: Encode | None = None,
    seeds: range | None = None,
) -> File:
    """A file, with its log-probabilities judged and its drafts counted."""
    logs = Reported(judging.setting, judging.alpha, judging.declared, judging.tolerance)
    drafts = Drafts()
    texts = read_texts(path, vocabulary, encode, (drafts.add, logs.add), seeds)
    return File(texts, drafts, logs.found(path))


def judged(spec: File, plain: File, judging: Judging) -> Checked:
    """Compare two files; raise `ValueError` if they do not go together."""
    switched = speculation(spec.drafts, plain.drafts)
    return Checked(
        compare(spec.texts, plain.texts, judging.alpha, judging.within, judging.seed),
        agreement(spec.texts, plain.texts, judging.tolerance),
        tuple(one.reported for one in (spec, plain) if one.reported is not None),
        None if switched.drafted == (None, None) else switched,
    )


def note_drafts(folder: Path, side: str, drafted: int) -> None:
    """Add what a server counted to what it did before, for texts that do not say it."""
    file = folder / f"{side}.drafted"
    write_json(str(file), str((_noted(file) or 0) + drafted))


def _noted(file: Path) -> int | None:
    return int(file.read_text("utf-8")) if file.exists() else None


def judged_folder(folder: Path, judging: Judging, seeds: Mapping[str, range]) -> Checked:
    """Judge what ``specref check URL`` has collected in a folder, at one of its looks.

    A run that was interrupted has more texts than a look takes, of each side those of `seeds`.
    """
    files = [
        read_file(str(folder / f"{side}.jsonl"), judging, seeds=seeds[side])
        for side in (SPEC, PLAIN)
    ]
    for side, file in zip((SPEC, PLAIN), files, strict=True):
        noted = _noted(folder / f"{side}.drafted")
        if noted is not None and not file.drafts.counted:
            file.drafts.counted, file.drafts.drafted = len(file.texts), noted
    found = judged(files[0], files[1], judging)
    kinds = {
        kind: [by_seed(folder / f"{kind}{side}.jsonl") for side in (SPEC, PLAIN)]
        for kind in ("", "again-")
    }
    on, off = map(seeds_of, kinds[""], kinds["again-"])
    lists = [folder / f"lists-{side}.jsonl" for side in (SPEC, PLAIN)]
    more = [read_file(str(one), judging).reported for one in lists if one.exists()]
    return Checked(
        found.comparison,
        found.logprobs,
        (*found.reported, *(one for one in more if one is not None)),
        speculation(files[0].drafts, files[1].drafts),
        greedy_in(folder, judging.tolerance),
        (on, off),
    )


def greedy_in(folder: Path, tolerance: float) -> Greedy:
    """The texts at temperature 0 of a folder, held against each other."""
    on, off = (
        # Whatever their seeds are.
        {(prompt, None): one for (prompt, _), one in by_seed(folder / file).items()}
        for file in (f"greedy-{side}.jsonl" for side in (SPEC, PLAIN))
    )
    return greedy_agreement(on, off, tolerance)


def declared_setting(known: Mapping[str, Any]) -> Setting:
    """The settings that log-probabilities are judged by, of a request's."""
    most = known.get("top_k")
    return Setting(
        known.get("temperature", 1.0),
        most if isinstance(most, int) and most > 0 else None,
        known.get("top_p"),
    )
