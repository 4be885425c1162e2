"""What a home tells, as JSON: everything that a later version must find in it as it was.

Two views. ``stored`` is all that stands there, to the byte. ``meaning`` leaves out what a clean of another version may
rightly do otherwise: where segments are cut, how long it took. Bytes are shown as Latin-1, in which every byte is one
character; the home's own path is left out.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from keptlog.errors import KeptlogError
from keptlog.home import open_home
from keptlog.table.metadata.format import FORMAT_VERSION, FormatVersion, format_of
from tests.frozen_homes.command import keptlog

_COMPARED_IN_STATUS = [
    *("topic_partition", "log_start_offset", "first_dirty_offset", "log_end_offset", "segments", "clean_bytes"),
    *("cleanable_bytes", "cleanable_ratio", "max_compaction_delay_ms", "trigger", "uncleanable", "metrics"),
]
_COMPARED_IN_PURGE = ["expired_snapshots", "deleted_files", "deleted_orphans"]
_ONE_LINE = 110


def stored(home: Path) -> Any:
    """Everything that is stored."""
    return _plain(home, {topic: _topic(home, topic) for topic in open_home(home, {}).store.topics()})


def meaning(home: Path) -> Any:
    """What must be the same whoever cleaned."""
    told = stored(home)
    for log in (log for topic in told.values() for log in topic["logs"]):
        del log["segments"]
        log["last_pass"] = bool(log["last_pass"])
        log["uncleanable"] = log["uncleanable"] and log["uncleanable"]["attempts"]
    return told


def extent(home: Path) -> Any:
    """Of each log its start, its end, and the offsets that are left between them."""
    told = {topic: each["logs"] for topic, each in stored(home).items()}
    return {
        topic: [[log["log_start_offset"], log["log_end_offset"], _offsets(log["records"])] for log in logs]
        for topic, logs in told.items()
    }


def verdicts(home: Path, now_ms: int) -> Any:
    """What ``keptlog verify`` finds in a home: log to check to result, and the exit code."""
    ran = keptlog(home, now_ms, "verify", "--json")
    found: dict[str, Any] = {"code": ran.code}
    for row in (each for each in ran.json["checks"] if each["topic_partition"] != "this machine"):
        found.setdefault(row["topic_partition"], {})[row["check"]] = row["result"]
    return found


def as_told_then(found: Any, then: Any) -> Any:
    """Verdicts, but for two changes: what a broken file kept ``verify`` from seeing was called ok, and checks came.

    A home says nothing of a check that is newer than it is, nor does its exit code.
    """
    logs = {log: checks for log, checks in then.items() if log != "code"}
    newer = [found[log].pop(name) for log, checks in logs.items() for name in found[log].keys() - checks.keys()]
    if {*newer} - {"ok"}:
        found["code"] = int(any(result != "ok" for log in logs for result in found[log].values()))
    for log, checks in logs.items():
        if "BROKEN" in checks.values():
            unseen = (name for name, result in found[log].items() if result == "not looked at")
            found[log] |= {name: "ok" for name in unseen if checks[name] == "ok"}
    return found


def status(home: Path, now_ms: int) -> Any:
    """What ``keptlog status`` shows of each log."""
    rows = keptlog(home, now_ms, "status", "--json").json["logs"]
    compared = [{name: row[name] for name in _COMPARED_IN_STATUS} for row in rows]
    return _plain(home, [row | {"uncleanable": _mark(row["uncleanable"])} for row in compared])


def purged(home: Path, now_ms: int) -> Any:
    """What a purge says that it did, but for the bytes; of a deletion that it finished as much as it tells."""
    receipts = keptlog(home, now_ms, "purge", "--json").json
    receipts = receipts["topics"] | receipts["deletions"]
    return {topic: {key: row[key] for key in _COMPARED_IN_PURGE if key in row} for topic, row in receipts.items()}


_ANY_MS = 1_900_000_000_000
"""Nothing of what is declared depends on the time, but every command refuses one that is none."""


def declared(home: Path) -> Any:
    """What a file would have to declare of its topics, since format 1.3."""
    return keptlog(home, _ANY_MS, "topic", "export", "--json").json


def topics(home: Path) -> list[str]:
    return open_home(home, {}).store.topics()


def formats(home: Path) -> list[tuple[FormatVersion, str | None]]:
    """The format of each topic, and the property that tells it."""
    store = open_home(home, {}).store
    properties = {topic: store.load_table(topic).properties for topic in store.topics()}
    return [(format_of(topic, each), each.get(FORMAT_VERSION)) for topic, each in properties.items()]


def snapshots(home: Path) -> list[int | None]:
    """The current snapshot of each topic."""
    store = open_home(home, {}).store
    return [store.describe_topic(topic).snapshot_id for topic in store.topics()]


def live_segments(home: Path) -> set[str]:
    """The files of all live segments."""
    store = open_home(home, {}).store
    logs = [log for topic in store.topics() for log in store.logs(topic)]
    return {segment.path.removeprefix("file://") for log in logs for segment in log.segments}


def _topic(home: Path, topic: str) -> dict[str, Any]:
    store = open_home(home, {}).store
    described, source = store.describe_topic(topic), store.source_of(topic)
    set_by_somebody = {
        each.setting.name: [each.value, each.origin]
        for each in described.config.resolved
        if each.value != each.setting.default
    }
    passes = store.observe(topic).last_passes
    logs = []
    for log in store.logs(topic):
        last_pass = passes.get(log.topic_partition)
        logs.append(
            {
                "log_start_offset": log.log_start_offset,
                "log_end_offset": log.log_end_offset,
                "checkpoint": log.checkpoint,
                "uncleanable": _mark(dataclasses.asdict(log.uncleanable) if log.uncleanable else None),
                "last_pass": _last_pass(dataclasses.asdict(last_pass) if last_pass else None),
                "watermarks": _watermarks(log.watermarks_path),
                "segments": [dataclasses.asdict(segment) for segment in log.segments],
                "records": _records(home, topic, log.topic_partition.partition),
                "latest": _offsets(_records(home, topic, log.topic_partition.partition, latest=True)),
            }
        )
    return {
        "config": dict(described.raw_config),
        "resolved": set_by_somebody,
        "source": source.source and dataclasses.asdict(source.source),
        "positions": source.positions,
        "logs": logs,
    }


def _last_pass(last: dict[str, Any] | None) -> dict[str, Any] | None:
    """Without what an older keptlog did not store."""
    defaults = {("run_id", None), ("is_expiry", False)}
    return last and {name: value for name, value in last.items() if (name, value) not in defaults}


def _mark(mark: dict[str, Any] | None) -> dict[str, Any] | None:
    """A mark, without what older formats don't say, where it is the default: what helps, and how long it waits."""
    defaults = {("action", "retry"), ("wait_ms", None)}
    return mark and {name: value for name, value in mark.items() if (name, value) not in defaults}


def _records(home: Path, topic: str, partition: int, *, latest: bool = False) -> list[list[Any]] | str:
    """Records as short rows, if they can be read."""
    try:
        return [
            [each.offset, each.timestamp_ms, int(each.timestamp_type), each.key, each.value, each.headers]
            + ([each.delete_horizon_ms] if each.delete_horizon_ms is not None else [])
            for _, each in open_home(home, {}).store.read(topic, partition, latest=latest)
        ]
    except (KeptlogError, OSError, pa.ArrowInvalid):
        return "unreadable"


def _offsets(records: list[list[Any]] | str) -> list[int] | str:
    return records if isinstance(records, str) else [record[0] for record in records]


def without_watermarks(meaning: Mapping[str, Any]) -> dict[str, Any]:
    """The same meaning once all watermarks are past their time."""
    return {
        name: topic | {"logs": [log | {"watermarks": []} for log in topic["logs"]]} for name, topic in meaning.items()
    }


def _watermarks(path: str | None) -> list[list[Any]]:
    if path is None:
        return []
    with pa.OSFile(path.removeprefix("file://")) as file:
        return [list(row.values()) for row in pa.ipc.open_file(file).read_all().to_pylist()]


def written(told: Any, indent: str = "") -> str:
    """As JSON in which whatever is short takes one line."""
    short = json.dumps(told)
    if len(short) <= _ONE_LINE or not isinstance(told, dict | list):
        return short
    if isinstance(told, dict):
        rows = [f"{json.dumps(key)}: {written(each, indent + ' ')}" for key, each in told.items()]
    else:
        rows = [written(each, indent + " ") for each in told]
    before, after = "{}" if isinstance(told, dict) else "[]"
    return before + ",".join(f"\n{indent} {row}" for row in rows) + f"\n{indent}{after}"


def _plain(home: Path, told: Any) -> Any:
    """As JSON brings it back, without the home's path."""
    text = json.dumps(told, default=lambda value: value.decode("latin-1"))
    return json.loads(text.replace(str(home), "HOME"))
