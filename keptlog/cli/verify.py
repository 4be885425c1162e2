"""``keptlog verify``: do the stored logs keep what is promised of them?"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import click

from keptlog.cli.arguments import logs_argument
from keptlog.cli.colour import Wrong
from keptlog.cli.output import (
    EXIT_FAILED,
    as_columns,
    clock_ms,
    exit_if_failed,
    is_time_given,
    json_option,
    no_topics,
    print_json,
    print_table,
    require_topics_here,
    tell_read_only,
)
from keptlog.cli.unopened import unopened_store
from keptlog.log.broker import purge_interval_ms
from keptlog.log.words.counted import counted
from keptlog.passes.check import CHECKS, Outcome
from keptlog.passes.doctor.this_machine import held_here
from keptlog.passes.holders import GONE_IN_TIME, THIS_MACHINE, judged_here
from keptlog.passes.verify_pass import left_in, to_verify, verify_logs
from keptlog.settings import home_path

_TOLD = {Outcome.OK: "ok", Outcome.BROKEN: Wrong("BROKEN"), Outcome.NOT_LOOKED_AT: "not looked at"}
_NOTHING_TO_ADD = frozenset(each.description for each in (*CHECKS, GONE_IN_TIME))
"""What checks say that passed and know of nothing that is held yet, or could not be seen."""


@click.command(short_help="Check guarantees G1..G5 and G8 on the stored logs.")
@logs_argument
@click.option("--full", is_flag=True, help="Print the checks that found nothing wrong, too.")
@json_option
def verify(names: Sequence[str], *, full: bool, as_json: bool) -> None:
    """Read the stored logs and check their guarantees; exit 1 if one is broken, or can't be looked at.

    G1 to G5 are about what is live. G8 is about what is not: superseded bytes are gone by their deadline. Without a
    name, what may have bytes and is no topic any more is named too: a topic whose deletion was not finished, and a
    folder whose table another program has dropped.
    """
    store, now_ms = unopened_store(trusts=False), clock_ms()
    require_topics_here()
    asked = to_verify(store, names)
    found = verify_logs(store, asked, now_ms, left_in(home_path(), asked, is_of_now=not is_time_given()))
    held = held_here(home_path(), purge_interval_ms(store.broker_settings), store.metadata_locations())
    if here := judged_here(held, now_ms):
        found[THIS_MACHINE] = [here]
    rows = [
        {"topic_partition": name, "check": check.name, "result": _TOLD[check.outcome], "what": check.description}
        for name, checks in found.items()
        # For people, a topic that can't be read is one line on stderr, and not one for each check.
        if as_json or name not in asked.not_looked_at
        for check in checks
    ]
    if as_json:
        print_json({"checks": rows}, asked.not_looked_at)
    else:
        _print(rows, no_topics(asked.not_looked_at), full=full)
    tell_read_only(store.read_only, asked.not_looked_at)
    exit_if_failed(asked.not_looked_at)
    # Also for what only warns: its row says BROKEN, and no script should take that for fine.
    if not all(check.passed for checks in found.values() for check in checks):
        sys.exit(EXIT_FAILED)


def _print(rows: Sequence[Mapping[str, object]], empty: str, *, full: bool) -> None:
    """What people are to see of many checks: a home of 2,000 logs has 14,000 of them, and mostly all are ok."""
    told = Counter(str(row["result"]) for row in rows)
    shown = [as_columns(row) for row in rows if full or row["result"] != _TOLD[Outcome.OK]]
    if shown or not rows:
        print_table(shown, empty=empty)
    if rows:
        logs = counted(len({row["topic_partition"] for row in rows if row["check"] == "G1"}), "log")
        notes = "" if full else _notes(rows)
        click.echo(f"{logs}: {counted(sum(told.values()), 'check')}, {', '.join(_counts(told))}{notes}")


def _notes(rows: Sequence[Mapping[str, object]]) -> str:
    """That checks have passed and say more: it may be of bytes that nobody may take for gone."""
    noted = sum(row["result"] == _TOLD[Outcome.OK] and row["what"] not in _NOTHING_TO_ADD for row in rows)
    if not noted:
        return ""
    return f"; {noted} that {'is ok has a note' if noted == 1 else 'are ok have notes'}: see --full"


def _counts(told: Mapping[str, int]) -> Iterator[str]:
    if len(told) == 1 and _TOLD[Outcome.OK] in told:
        yield "all ok"
        return
    for each in map(str, _TOLD.values()):
        if each in told:
            yield f"{told[each]} {each}"
