"""The work of ``specref zoo``: the kill matrix, and that of triggers."""

from typing import NoReturn

from specref.cli.cluster import executor_of
from specref.cli.group import HOLDS, VIOLATED, command_line, leave, progress, show
from specref.cli.workers import cores
from specref.contrib.selftest.html import trigger_html, zoo_html
from specref.contrib.selftest.kill_matrix import kill_matrix
from specref.contrib.selftest.kills_report import zoo_markdown, zoo_record, zoo_table
from specref.contrib.selftest.trigger_matrix import WANTED, trigger_matrix
from specref.contrib.selftest.triggered import ALL as SITUATIONS
from specref.contrib.selftest.triggered import bugs_at
from specref.contrib.selftest.triggers_report import (
    trigger_markdown,
    trigger_record,
    trigger_table,
)
from specref.report.everywhere_table import within_docs
from specref.report.machine import as_json, check_destination, write_json
from specref.zoo import ALL


def judge_zoo(
    ids: tuple[str, ...],
    detect_tv: float,
    markdown: str | None,
    triggers: bool,
    every: bool,
    seed: int,
    workers: int | None,
    cluster: str | None,
    json_file: str | None,
    html_file: str | None,
) -> NoReturn:
    """The kill matrix, or that of triggers; leave with the exit code."""
    if markdown:
        check_destination(markdown)
    workers = workers or (1 if ids or cluster else cores())
    if triggers:
        judge_triggers(ids, every, seed, workers, cluster, markdown, html_file, json_file)
    entries = progress(len(ids or ALL), "mutants and controls")
    with executor_of(workers, cluster) as pool, entries as advance:
        matrix = kill_matrix(
            ids or None,
            detect_tv=detect_tv,
            seed=seed,
            executor=pool,
            advance=lambda id_: advance(1),
        )
    show(zoo_table(matrix), json_file)
    if json_file:
        write_json(json_file, as_json(zoo_record(matrix)))
    if markdown:
        page = zoo_markdown(matrix, pictured=matrix.whole and within_docs(markdown))
        write_json(markdown, page)
    if html_file:
        write_json(html_file, zoo_html(matrix, command_line()))
    leave(VIOLATED if matrix.problems else HOLDS)


def judge_triggers(
    ids: tuple[str, ...],
    every: bool,
    seed: int,
    workers: int,
    cluster: str | None,
    markdown: str | None,
    html_file: str | None,
    json_file: str | None,
) -> NoReturn:
    """The matrix of triggers; leave with the exit code."""
    known = [
        bug
        for one in SITUATIONS.values()
        for trigger in one.triggers
        for bug in bugs_at(one, trigger)
        if not ids or trigger.id in ids
    ]
    rows = progress(len(known), "situations and bugs")
    with executor_of(workers, cluster) as pool, rows as advance:
        matrix = trigger_matrix(
            ids or None, seed=seed, every=every, executor=pool, advance=lambda id_: advance(1)
        )
    show(trigger_table(matrix), json_file)
    if json_file:
        write_json(json_file, as_json(trigger_record(matrix)))
    if markdown:
        write_json(markdown, trigger_markdown(matrix))
    if html_file:
        write_json(html_file, trigger_html(matrix, command_line()))
    leave(HOLDS if matrix.share >= WANTED else VIOLATED)
