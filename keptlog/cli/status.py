"""``keptlog status``: every log at a glance.

It is asked often, by people and by monitoring, and over very many logs; so it starts as little as it can: the store is
opened only for what has changed since the last look, and logs are judged anew only where a commit or the clock has
changed something since (``keptlog.passes.standings``).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from keptlog.cli.arguments import logs_argument
from keptlog.cli.colour import Wrong, wrong
from keptlog.cli.holders import all_holders, holders_json, tell_late
from keptlog.cli.most_shown import MOST_SHOWN, tell_more
from keptlog.cli.narrow import lines
from keptlog.cli.output import (
    EXIT_FAILED,
    clock_ms,
    exit_if_failed,
    json_option,
    no_topics,
    print_json,
    print_table,
    require_topics_here,
    tell_read_only,
    tell_wrong,
)
from keptlog.cli.unopened import unopened_store
from keptlog.errors import KeptlogError, LogCorrupt, StorageUnavailable
from keptlog.log.broker import CLEANER_DISABLED, CLEANER_ENABLED, BrokerConfig, purge_interval_ms
from keptlog.log.told.conditions import TIMELY_CHECKS, Condition, check_condition
from keptlog.log.told.standing import LogStanding
from keptlog.log.told.stored_files import WrongFile
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted
from keptlog.log.words.harmless import harmless
from keptlog.log.words.units import duration, glance, size
from keptlog.notify.checks import broken_checks, checks_file
from keptlog.passes.doctor.this_machine import held_here
from keptlog.passes.names import refuse_unknown
from keptlog.passes.standings import Standings, look_at_standings, wrong_files_on_disk
from keptlog.settings import home_path
from keptlog.table.catalogs.embedded import unfinished_deletion

_GO_FIRST = ("log start", "segments", "clean", "log end", "oldest uncompacted", "cleanable")
"""Columns, where a terminal has no room: what is late, and when a log is due, stays."""
MOST_DAMAGED = 20
"""Lines about logs whose files are missing or damaged."""


@click.command(short_help="Show every log: how dirty, how late, what is due.")
@logs_argument
@json_option
def status(names: Sequence[str], *, as_json: bool) -> None:
    """Show every log: how dirty, how late, what is due; and the cleaner's metrics, under Kafka's names.

    It ends in exit code 1 if something is wrong, and names it. That may be a topic that can't be read, a deletion of a
    topic that was not finished, or a home that nothing may be changed through. It may be superseded bytes that are held
    past their deadline, as far as tables tell.
    It may be a file on a disk that is missing, has another size than its table says, or can't be asked for. Or it may
    be what verify has found broken, and has not seen whole since. A log that is late is none of these. Of an object
    store it is asked whether it answers. It does not look at files there; explain and verify do.
    """
    store = unopened_store()
    require_topics_here()
    seen = look_at_standings(store, names, now_ms=clock_ms())
    refuse_unknown(seen.unreadable)
    failed = {**seen.unreadable, **seen.away, **{name: unfinished_deletion(name) for name in store.being_deleted()}}
    wrong_files = {} if store.read_only else wrong_files_on_disk(seen, store, unopened_store())
    seen, damaged, below = seen.knowing(wrong_files), _damaged(wrong_files), _told_below(wrong_files)
    broken, unknown = _broken(home_path(), seen)
    metrics = seen.metrics().to_dict()
    is_off = not BrokerConfig.of(store.broker_settings).log_cleaner_enable
    off_reason = CLEANER_DISABLED if is_off and any(each.is_compacted for each in seen.topics.values()) else None
    late_here = held_here(home_path(), purge_interval_ms(store.broker_settings)).late(seen.now_ms)
    if as_json:
        rows = [
            _status_row(each, seen.now_ms) | {"metrics": seen.metrics_of_log(each).to_dict()} for each in seen.all()
        ]
        state = {"holders": holders_json([*all_holders(seen), *late_here]), "read_only": store.read_only}
        off = {"cleaner_disabled": off_reason, **_files_json(damaged)}
        checks = {"broken": {each.subject: each.text for each in broken}}
        print_json({"now_ms": seen.now_ms, "metrics": metrics, "logs": rows} | state | off | checks, failed | unknown)
    else:
        shown = seen.all() if names or seen.logs <= MOST_SHOWN else seen.worst(MOST_SHOWN)
        print_table([_shown(each, seen.now_ms) for each in shown], empty=no_topics(failed), expendable=_GO_FIRST)
        _tell_notes(seen, shown, off_reason, below)
        _tell_metrics(_known(metrics, seen))
    tell_read_only(store.read_only, failed)
    late = [*seen.late_holders(), *late_here]
    tell_late(late)
    _tell_broken(broken, below)
    exit_if_failed({**failed, **_first(damaged), **unknown})
    if store.read_only or late or broken:
        sys.exit(EXIT_FAILED)


def _tell_notes(
    seen: Standings, shown: Sequence[LogStanding], off_reason: str | None, below: Mapping[str, str]
) -> None:
    """What no cell of the table has room for."""
    tell_more("worst", len(shown), seen.logs, "log", how="name topics to see theirs")
    if off_reason:
        click.echo(off_reason)
    for each in shown:
        if each.uncleanable:
            when = f"when {CLEANER_ENABLED}" if off_reason else None
            note, file = each.uncleanable.told(seen.now_ms, when), below.get(str(each.topic_partition))
            note = note.replace(file, "a file is missing or damaged, as told below") if file else note
            click.echo(f"{wrong(harmless(str(each.topic_partition)))}: {note}")
    for holder in all_holders(seen):
        if not holder.is_late:
            click.echo(harmless(str(holder)))


def _known(metrics: Mapping[str, object], seen: Standings) -> Mapping[str, object]:
    """Those that something is known of: of topics that can't be read it may be the erasures alone."""
    if seen.logs:
        return metrics
    return {name: each for name, each in metrics.items() if seen.unread_erasures and name.startswith("erasure")}


def _tell_metrics(metrics: Mapping[str, object]) -> None:
    if metrics:
        click.echo("\n" + lines([f"{name} {'-' if value is None else value}" for name, value in metrics.items()]))


def _broken(home: Path, seen: Standings) -> tuple[list[Condition], dict[str, KeptlogError]]:
    """What verify has found broken in these logs, and has not seen whole since; or by file, why nobody knows.

    How late a log is, and what holds old bytes, is not taken from what verify has seen: it is looked at here.
    """
    try:
        stored = broken_checks(home)
    except KeptlogError as error:
        return [], {str(checks_file(home)): error}
    found = {name: _not_seen_here(checks) for name, checks in stored.items()}
    topic_of = {name: seen.topic_of(name) for name, checks in found.items() if checks}
    return [check_condition(name, topic, found[name]) for name, topic in topic_of.items() if topic], {}


def _not_seen_here(checks: Mapping[str, str]) -> dict[str, str]:
    """Without those that each status makes anew."""
    return {name: what for name, what in checks.items() if name not in TIMELY_CHECKS}


def _tell_broken(broken: Sequence[Condition], below: Mapping[str, str]) -> None:
    """All but what is said of a log's files anyway, if that is all that verify found."""
    for each in broken:
        file = below.get(each.subject)
        if not (file and each.text.endswith(f" broken: G1: {file}")):
            tell_wrong(each.text)


def _damaged(found: Mapping[TopicPartition, Sequence[WrongFile] | StorageUnavailable]) -> dict[str, KeptlogError]:
    """Topic-partition to what is wrong with its files where they lie on a disk, or why they can't be looked at."""
    return {str(name): each if isinstance(each, KeptlogError) else _corrupt(each) for name, each in found.items()}


def _told_below(found: Mapping[TopicPartition, Sequence[WrongFile] | StorageUnavailable]) -> dict[str, str]:
    """The file that each line at the end names, by its log; of others that line says how many there are."""
    lines_told = list(found.items())[:MOST_DAMAGED]
    return {str(name): str(each[0]) for name, each in lines_told if not isinstance(each, KeptlogError)}


def _files_json(damaged: Mapping[str, KeptlogError]) -> dict[str, object]:
    told = {name: str(error) for name, error in damaged.items()}
    seen = {name: text for name, text in told.items() if isinstance(damaged[name], LogCorrupt)}
    unseen = {name: text for name, text in told.items() if name not in seen}
    return {"damaged": seen, "files_not_looked_at": unseen}


def _corrupt(files: Sequence[WrongFile]) -> LogCorrupt:
    more = f"; and {len(files) - 1} more" if len(files) > 1 else ""
    return LogCorrupt(f"{files[0]}{more}")


def _first(damaged: Mapping[str, KeptlogError]) -> dict[str, KeptlogError]:
    """A few of them, and how many more there are: a volume that is not mounted damages every log."""
    told = dict(list(damaged.items())[:MOST_DAMAGED])
    left = list(damaged.values())[MOST_DAMAGED:]
    what = "missing or damaged" if all(isinstance(each, LogCorrupt) for each in left) else "missing, damaged or unseen"
    rest = LogCorrupt(f"files are {what}; status --json and verify name them all")
    return {**told, counted(len(left), "more log"): rest} if left else told


def _shown(standing: LogStanding, now_ms: int) -> dict[str, object]:
    late_ms, oldest_ms, due_ms = standing.delay_ms(now_ms), standing.earliest_uncompacted_ms, standing.due_ms(now_ms)
    return {
        "topic-partition": str(standing.topic_partition),
        "log start": standing.log_start_offset,
        "log end": standing.log_end_offset,
        "segments": standing.segments,
        "clean": size(standing.clean_bytes),
        "cleanable": size(standing.cleanable_bytes),
        "ratio": standing.cleanable_ratio,
        "late by": Wrong(duration(late_ms)) if late_ms else None,
        "oldest uncompacted": None if oldest_ms is None else glance(oldest_ms, now_ms),
        "due": standing.trigger or (None if due_ms is None else glance(due_ms, now_ms)),
    }


def _status_row(standing: LogStanding, now_ms: int) -> dict[str, object]:
    return {
        "topic_partition": str(standing.topic_partition),
        "log_start_offset": standing.log_start_offset,
        "first_dirty_offset": standing.first_dirty_offset,
        "log_end_offset": standing.log_end_offset,
        "segments": standing.segments,
        "clean_bytes": standing.clean_bytes,
        "cleanable_bytes": standing.cleanable_bytes,
        "cleanable_ratio": standing.cleanable_ratio,
        "max_compaction_delay_ms": standing.delay_ms(now_ms),
        "earliest_uncompacted_ms": standing.earliest_uncompacted_ms,
        "uncleanable": asdict(standing.uncleanable) if standing.uncleanable else None,
        "trigger": standing.trigger,
        "due_ms": standing.due_ms(now_ms),
    }
