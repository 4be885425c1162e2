"""What ``keptlog erasure list`` and ``verify`` print: a table of requests, and below it what keeps them.

The open ones stand first, by their deadlines, as on Dagster's page. Thousands of requests may wait for one thing: it is
told once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import click

from keptlog.cli.colour import Wrong
from keptlog.cli.output import print_table
from keptlog.log.words.counted import counted, some_of
from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.units import glance
from keptlog.passes.erasures.erasure_request import ErasureRow

_WAITS_FOR, _DEADLINE, _OVERDUE = "waits for", "deadline", "overdue"
_GO_FIRST = ("since", "keys", _WAITS_FOR, _DEADLINE)
"""The columns that a narrow terminal does without; by when an open one is to be done, and what it waits for, is told
below then, for people are sent here to read that."""
_NAMED = 3
_TOLD = 20
"""So many lines of what has no room in the table; a pipe shows all."""


def print_erasures(rows: Iterable[ErasureRow], now_ms: int, *, empty: str) -> None:
    """The table, and below it what keeps them; ``empty`` if there are none."""
    rows = sorted(rows, key=lambda row: row.urgency(now_ms))
    is_any_overdue = any(row.erasure.is_overdue(now_ms) for row in rows)
    expendable = _GO_FIRST if is_any_overdue else (_OVERDUE, *_GO_FIRST)
    left_out = print_table([_row(row, now_ms) for row in rows], empty=empty, expendable=expendable)
    beside = [(row, _left_out(row, left_out, now_ms)) for row in rows if row.erasure.is_open]
    blocked = [(row, text) for row in rows for text in row.blocked]
    for line in [*_lines(beside, _TOLD), *_lines(blocked)]:
        click.echo(line)


def _row(row: ErasureRow, now_ms: int) -> dict[str, object]:
    deadline_ms = row.erasure.deadline_ms
    return {
        "id": row.id,
        "topic": row.topic,
        "keys": len(row.erasure.key_hashes),
        "state": row.erasure.state.value,
        "since": iso_time(row.erasure.reached[-1].at_ms),
        _WAITS_FOR: _waits_for(row, now_ms),
        _DEADLINE: None if deadline_ms is None else iso_time(deadline_ms),
        _OVERDUE: Wrong("OVERDUE") if row.erasure.is_overdue(now_ms) else None,
    }


def _left_out(row: ErasureRow, left_out: Sequence[str], now_ms: int) -> str:
    deadline_ms, waits_for = row.erasure.deadline_ms, _waits_for(row, now_ms)
    told = [f"by {glance(deadline_ms, now_ms)}"] if _DEADLINE in left_out and deadline_ms is not None else []
    return ", ".join([*told, *([f"waits for {waits_for}"] if _WAITS_FOR in left_out and waits_for else [])])


def _waits_for(row: ErasureRow, now_ms: int) -> str | None:
    """What brings it on, or the setting that keeps it and until when; null if only data can."""
    upcoming, kept_by = row.next_told(now_ms, partial(glance, now_ms=now_ms)), row.kept_by(now_ms)
    return f"{kept_by}, until {upcoming}" if kept_by else upcoming


def _lines(told: Iterable[tuple[ErasureRow, str]], limit: int | None = None) -> list[str]:
    """One for all requests of a topic of which the same is told; behind a limit, how many requests have none."""
    together: dict[tuple[str, str], list[str]] = {}
    for row, text in told:
        if text:
            together.setdefault((row.topic, text), []).append(row.id)
    lines = [f"{some_of(ids, _NAMED)} in {topic}: {text}" for (topic, text), ids in together.items()]
    more = 0 if limit is None else sum(map(len, list(together.values())[limit:]))
    return [*lines[:limit], *([f"and {counted(more, 'more request')}: --json and a pipe show all"] if more else [])]
