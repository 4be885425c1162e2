"""Homes that only format 1.2 knows, by name: with erasures, readers, a chain of receipts, a deletion that was begun."""

from __future__ import annotations

import os
import shutil
from typing import Any

from tests.frozen_homes.homes import stopped_at_second_segment
from tests.frozen_homes.writer import COMPACT, DAY_MS, HOUR_MS, MINUTE_MS, Writer

KEY = "customer-0007"
SHORT = (COMPACT, f"segment.ms={MINUTE_MS}", f"delete.retention.ms={HOUR_MS}", f"max.compaction.lag.ms={90 * DAY_MS}")


def erasures(to: Writer) -> None:
    """A topic for each state in which a request can stand still, and the receipts of purges and of one that has ended.

    The first to be asked for is ``verified``, the last stays ``requested``, because only its source may delete.
    """
    for topic in ("verified", "deleted", "unreferenced", "compacted", "tombstoned"):
        to.create(topic, *SHORT)
        to.append(topic, *[to.record(f"customer-{n:04}", f"lives at {n}", -30) for n in range(5, 9)])
    _ask(to, "verified", "--reason", "request 4711", "--key", "nobody-has-this")
    _to_deleted(to, "verified")
    to.run("erasure", "verify", "--quiet")
    _ask(to, "deleted")
    _to_deleted(to, "deleted")
    _ask(to, "unreferenced", "--by", "60d")
    live = to.segments("unreferenced")[-1]
    left = live.with_name(live.name.replace(".parquet", "-of-a-killed-run.parquet"))
    shutil.copy(live, left)
    os.utime(left, (to.day_0_ms / 1000, to.day_0_ms / 1000))
    _to_deleted(to, "unreferenced")
    _ask(to, "compacted")
    to.now_ms += HOUR_MS
    to.clean("compacted")
    _ask(to, "tombstoned", "--key-hex", "c3a4")
    to.create("requested", *SHORT)
    to.append_with_offsets("requested", [_row(to, 40, KEY, "1"), _row(to, 41, "a", "1")], "--source-topic", "there")
    _ask(to, "requested")
    to.run("erasure", "list")


def readers(to: Writer) -> None:
    """One that tombstones wait for, one that has met them all, and two for whom they did not wait long enough."""
    to.create("waiting", COMPACT, f"delete.retention.ms={HOUR_MS}", partitions=2)
    to.create("missed", COMPACT, f"delete.retention.ms={HOUR_MS}")
    for topic, last in (("waiting", 1), ("missed", 0)):
        for partition in range(last + 1):
            pairs = (("a", "1"), ("b", "1"), ("a", None), ("b", "2"), ("c", None))
            to.append(topic, *[to.record(key, value, -30, partition=partition) for key, value in pairs])
    to.run("reader", "add", "waiting", "search-index", "--hold-max-ms", str(100 * DAY_MS))
    to.run("reader", "commit", "waiting", "search-index", "0=2", "1=3")
    to.run("reader", "add", "waiting", "awake")
    to.run("read", "waiting", "--as-reader", "awake")
    to.run("reader", "add", "missed", "asleep", "--hold-max-ms", "0")
    to.run("reader", "commit", "missed", "asleep", "0=1")
    to.run("reader", "add", "missed", "never-here", "--hold-max-ms", "0")
    to.clean("waiting", "missed")
    to.now_ms += 2 * HOUR_MS
    to.run("expire", "waiting", "missed")


def deletion_begun(to: Writer) -> None:
    """A topic whose deletion was stopped after its first deleted segment, beside one that stays."""
    for topic in ("users", "doomed"):
        to.create(topic, COMPACT)
        for day in (-30, -29, -28):
            to.append(topic, to.record("a", str(day), day), to.record(f"{day}", "1", day))
    to.clean("doomed")
    to.now_ms += HOUR_MS
    to.run("purge", "doomed")
    to.append("doomed", to.record("a", "4", -10), to.record("-30", None, -10))
    with stopped_at_second_segment():
        to.run("topic", "delete", "doomed", "--yes", code=130)


def _ask(to: Writer, topic: str, *more: str) -> None:
    to.run("erase", topic, "--key", KEY, "--run-id", f"erase-{topic}", "--yes", "--quiet", *more)


def _to_deleted(to: Writer, topic: str) -> None:
    """What a schedule would do, until whatever nobody keeps is gone."""
    to.now_ms += HOUR_MS
    to.clean(topic)
    to.now_ms += 2 * HOUR_MS
    to.run("expire", topic)
    to.now_ms += HOUR_MS
    to.run("purge", topic)
    to.run("erasure", "list")


def _row(to: Writer, offset: int, key: str, value: str | None) -> dict[str, Any]:
    return {"in": 0, "at": offset, "key": key, "value": value, "timestamp": to.day_0_ms - 30 * DAY_MS}


HOMES_SINCE_1_2 = {each.__name__.replace("_", "-"): each for each in (erasures, readers, deletion_begun)}
