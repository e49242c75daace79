"""``specref prove --all``: every rule over the toy pairs, for every p and q, or compared."""

from typing import NoReturn

from specref.cli.cluster import executor_of
from specref.cli.dominance import verify_dominance
from specref.cli.everywhere import require_z3
from specref.cli.group import HOLDS, INTERRUPTED, VIOLATED, deliver, leave, progress
from specref.pairs import Profile
from specref.proofs.everywhere.proof import BUDGET
from specref.report.everywhere_table import answers_document, within_docs
from specref.report.machine import as_json
from specref.report.main_job import verification_document
from specref.verification import cases_of, verify
from specref.verification.dominance import BUDGET as OF_CLAIMS
from specref.verification.everywhere import STOPPED, boxes_of, larger_box, prove_boxes
from specref.verification.reports import TRIED


def prove_all(
    profile: Profile,
    seed: int,
    workers: int,
    cluster: str | None,
    everywhere: bool,
    compare: bool,
    known_bugs: bool,
    budget: float | None,
    markdown: str | None,
    json_file: str | None,
    html_file: str | None,
) -> NoReturn:
    """Prove every rule over toy pairs, or for every p and q, or compare them; and leave."""
    if budget is None:
        budget = OF_CLAIMS if compare else BUDGET
    files = markdown, json_file, html_file
    if compare:
        if everywhere or known_bugs:
            raise ValueError("compare: expected without --everywhere and --known-bugs")
        verify_dominance(profile, seed, workers, cluster, budget, *files)
    if everywhere:
        verify_everywhere(profile, seed, workers, cluster, known_bugs, budget, *files)
    if known_bugs or markdown:
        name = "known-bugs" if known_bugs else "markdown"
        raise ValueError(f"{name}: expected with --everywhere")
    total = len(TRIED) * len(cases_of(profile))
    with executor_of(workers, cluster) as pool, progress(total, "cases") as advance:
        verification = verify(profile, seed, lambda name: advance(1), pool)
    told = verification_document(verification)
    record = as_json(verification, ok=verification.ok)
    deliver(told, record, json_file, html_file, None, ("seed", f"{seed}"))
    leave(HOLDS if verification.ok else VIOLATED)


def verify_everywhere(
    profile: Profile,
    seed: int,
    workers: int,
    cluster: str | None,
    zoo: bool,
    budget: float,
    markdown: str | None,
    json_file: str | None,
    html_file: str | None,
) -> NoReturn:
    """Print the table of all rules for every p and q."""
    require_z3()
    boxes = boxes_of(profile, zoo=zoo)
    unit = f"rules, at most {budget:g} s each"
    with executor_of(workers, cluster) as pool, progress(len(boxes), unit) as advance:
        answers = prove_boxes(boxes, seed, budget, pool, lambda answer: advance(1))
        while zoo and not any(answer.note == STOPPED for answer in answers):
            again = {answer: box for answer in answers if (box := larger_box(answer))}
            if not again:
                break
            further = prove_boxes(tuple(again.values()), seed, budget, pool)
            answers = tuple(one for one in answers if one not in again) + further
    command = f"specref prove --all --everywhere --profile {profile}" + " --known-bugs" * zoo
    linked = markdown is not None and within_docs(markdown)
    told = answers_document(answers, f"{command} --markdown FILE", zoo=zoo, linked=linked)
    record = as_json({"profile": profile, "seed": seed, "answers": answers})
    deliver(told, record, json_file, html_file, markdown)
    if any(answer.note == STOPPED for answer in answers):
        leave(INTERRUPTED)
    leave(HOLDS if all(answer.as_known for answer in answers) else VIOLATED)
