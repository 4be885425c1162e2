"""The homes of every format since 1.0: what was done to each, by name. Each shows another part of what is stored."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from tests.frozen_homes.writer import COMPACT, DAY_MS, HOUR_MS, Writer

HOMES: dict[str, Callable[[Writer], None]] = {}
BROKER_LOGS = Path(__file__).parents[1] / "data" / "broker_logs"


def home(write: Callable[[Writer], None]) -> Callable[[Writer], None]:
    """A home called as the function that writes it."""
    HOMES[write.__name__.replace("_", "-")] = write
    return write


@home
def never_cleaned(to: Writer) -> None:
    """Three segments that are all dirty, and a topic that nothing was appended to."""
    to.create("users", COMPACT)
    to.append("users", to.record("ada", "1", -30), to.record("bob", "1", -30), to.record("ada", "2", -30))
    to.append("users", to.record("cyd", "1", -20), to.record("bob", None, -20))
    to.append("users", to.record("ada", "3", -10), to.record("dan", "1", -10))
    to.create("nothing-yet", COMPACT, partitions=2)


@home
def cleaned_once(to: Writer) -> None:
    """Tombstones with their delete horizon, numbers of the last pass, a dirty section behind, and a cache."""
    to.create("users", COMPACT)
    to.append("users", *[to.record(f"key-{n % 7}", f"value {n}", -30 + n / 10) for n in range(30)])
    to.append("users", to.record("key-1", None, -20), to.record("key-2", None, -20), to.record("never", None, -20))
    to.clean("users")
    to.append("users", to.record("key-2", "back again", -1), to.record("key-3", None, -1), to.record("key-3", "x", -1))
    to.run("status")


@home
def tombstones(to: Writer) -> None:
    """Tombstones that are gone, that may go, and that have to wait for longer than the test's later time."""
    for topic, retention_ms in (("gone", HOUR_MS), ("due", DAY_MS), ("waiting", 100 * DAY_MS)):
        to.create(topic, COMPACT, f"delete.retention.ms={retention_ms}")
        to.append(topic, to.record("a", "1", -30), to.record("b", "1", -30), to.record("c", None, -30))
        to.append(topic, to.record("a", None, -20), to.record("d", "1", -20))
        to.clean(topic)
    to.now_ms += 2 * HOUR_MS
    to.run("expire", "gone")


@home
def by_timestamp(to: Writer) -> None:
    """A late record that lost, the watermarks of deleted keys, and later records that they must keep out, or let in."""
    to.create("users", COMPACT, "compaction.strategy=timestamp", f"keptlog.watermark.retention.ms={90 * DAY_MS}")
    to.append("users", to.record("a", "new", -20), to.record("b", "old", -30), to.record("c", "1", -25))
    to.append("users", to.record("a", "late", -22), to.record("b", "new", -15), to.record("d", "1", -18))
    to.append("users", to.record("c", None, -15), to.record("d", None, -15), to.record("e", None, -15))
    to.clean("users")
    to.now_ms += 2 * DAY_MS
    to.run("expire", "users")
    to.append("users", to.record("c", "too late", -16), to.record("d", "in time", -14), to.record("a", "too late", -21))


@home
def by_header(to: Writer) -> None:
    """The same by a header's version; some records have none, one has no number in it, one has two."""

    def versioned(key: str, value: str | None, day: float, *versions: int | bytes) -> dict[str, Any]:
        packed = [struct.pack(">q", each) if isinstance(each, int) else each for each in versions]
        headers = [{"key": "v", "value_base64": base64.b64encode(each).decode()} for each in packed]
        return to.record(key, value, day, headers=headers)

    settings = ["compaction.strategy=header", "compaction.strategy.header=v"]
    to.create("users", COMPACT, *settings, f"keptlog.watermark.retention.ms={90 * DAY_MS}", partitions=2)
    to.append("users", versioned("a", "7", -30, 7), versioned("b", "none", -30), versioned("c", "1", -30, 1))
    to.append("users", versioned("a", "5", -29, 5), versioned("b", "-1", -29, -1), versioned("c", None, -29, 9))
    to.append("users", versioned("d", "bad", -28, b"12"), versioned("e", "two", -28, 3, 2), versioned("e", "2", -28, 2))
    to.clean("users")
    to.now_ms += 2 * DAY_MS
    to.run("expire", "users")
    to.append("users", versioned("c", "8", -2, 8), versioned("d", "1", -2, 1), versioned("e", "1", -2, 1))


@home
def some_partitions_cleaned(to: Writer) -> None:
    """Four logs in all states, one with several clean segments; and a log with an uncleanable section."""
    topic = "shop.users-v2"

    def append(day: int, partition: int) -> None:
        values = [hashlib.sha256(f"{day} {n}".encode()).hexdigest() for n in range(25)]
        pairs = [(f"{day} {n % 17}", value) for n, value in enumerate(values)]
        to.append(topic, *[to.record(key, value, day, partition=partition) for key, value in pairs])

    to.create(topic, COMPACT, "internal.segment.bytes=2500", partitions=4)
    for partition in range(3):
        append(-30, partition)
        append(-20, partition)
    to.clean(f"{topic}-0", f"{topic}-2")
    append(-15, 2)
    to.clean(f"{topic}-2")
    to.append(topic, *[to.record(f"-20 {n}", "after", -10, partition=n % 2) for n in range(6)])
    to.create("lagging", COMPACT, f"min.compaction.lag.ms={5 * DAY_MS}")
    for day in (-20, -10, -1):
        to.append("lagging", to.record("a", str(day), day), to.record("b", str(day), day))
    to.clean("lagging")


@home
def compact_and_delete(to: Writer) -> None:
    """Log starts that retention and deleted records have moved, one to the middle of a segment."""
    to.create("events", "cleanup.policy=compact,delete", f"retention.ms={25 * DAY_MS}")
    for day in (-30, -20, -10):
        to.append("events", *[to.record(f"{n % 3}", f"{day} {n}", day) for n in range(5)])
    to.run("retain")
    to.clean("events")
    to.append("events", to.record("0", "after", -1), to.record("1", None, -1))
    to.create("cut-off", COMPACT, partitions=2)
    for day in (-30, -20):
        to.append("cut-off", *[to.record(f"{n % 3}", f"{day} {n}", day, partition=n % 2) for n in range(10)])
    to.run("delete-records", "cut-off", "0", "7")
    to.run("delete-records", "cut-off", "1", "--", "-1")
    to.create("by-size", "cleanup.policy=delete", "retention.ms=-1", "retention.bytes=4000")
    for day in range(-30, -25):
        to.append("by-size", to.record("a", str(day), day))


@home
def broker_settings(to: Writer) -> None:
    """Topics that leave their policy to server.properties, and one that was altered: unkeyed records and all."""
    to.home.mkdir()
    lines = ["log.cleanup.policy=compact", "log.cleaner.delete.retention.ms=7200000", "log.roll.hours=24"]
    (to.home / "server.properties").write_text("\n".join(["# of the frozen broker", *lines, ""]))
    to.create("unset")
    to.append("unset", to.record("a", "1", -9), to.record("a", "2", -9), to.record("b", None, -9))
    to.clean("unset")
    to.append("unset", to.record("b", "1", -3), to.record("a", None, -3))
    to.create("altered", "cleanup.policy=delete", "retention.ms=-1", "segment.ms=1000")
    to.append("altered", to.record(None, "without a key", -9), to.record("a", "1", -9), to.record("a", "2", -8))
    to.run("topic", "alter", "altered", "--config", COMPACT, "--config", "min.cleanable.dirty.ratio=0.1")
    to.run("topic", "alter", "altered", "--delete-config", "retention.ms")


@home
def ingested_files(to: Writer) -> None:
    """Rows at their own offsets, with gaps, from a topic of another name; a clean between two ingests."""

    def rows(day: float, *at: tuple[int, int, str, str | None]) -> list[dict[str, Any]]:
        columns = ("in", "at", "key", "value")
        times = {"timestamp": to.day_0_ms + int(day * DAY_MS)}
        return [dict(zip(columns, each, strict=True)) | times for each in at]

    to.create("orders", COMPACT, partitions=2)
    first = rows(-30, (0, 40, "a", "1"), (0, 42, "b", "1"), (1, 3, "c", "1"), (0, 47, "a", "2"), (1, 9, "d", None))
    to.append_with_offsets("orders", first, "--source-topic", "orders-there")
    to.clean("orders")
    second = rows(-20, (0, 90, "b", None), (1, 10, "c", "2"), (0, 97, "e", "1"), (2, 1_000_000, "f", "new partition"))
    to.append_with_offsets("orders", second, "--source-topic", "orders-there")


@home
def ingested_kafka_logs(to: Writer) -> None:
    """The logs of a real broker: gaps, transactions, LogAppendTime, a log start; positions, and the topic's id."""
    to.now_ms = to.day_0_ms = 1_900_000_000_000
    topics = ("append-time", "codec.zstd", "compacted", "transactions", "truncated")
    options = [word for topic in topics for word in ("--topic", topic)]
    to.run("import", "kafka-logs", str(BROKER_LOGS), "--quiet", *options)
    to.clean("compacted", "transactions")


@home
def uncleanable(to: Writer) -> None:
    """Two logs whose clean failed, of a segment that was cut short; one of them is whole again, but still marked."""
    for topic in ("healed", "broken", "sound"):
        to.create(topic, COMPACT)
        to.append(topic, *[to.record(f"{n % 3}", f"value {n}", -30) for n in range(8)], to.record("1", None, -30))
    segments = [to.segments(topic)[0] for topic in ("healed", "broken")]
    whole = [path.read_bytes() for path in segments]
    for path, content in zip(segments, whole, strict=True):
        path.write_bytes(content[: len(content) // 2])
    to.clean("healed", "broken", "sound", code=1)
    to.now_ms += HOUR_MS
    to.clean("broken", code=1)
    segments[0].write_bytes(whole[0])


@home
def purge_interrupted(to: Writer) -> None:
    """A purge that was stopped after its first deleted segment: the snapshots are expired, its journal lies there."""
    _replaced_segments(to)
    to.now_ms += HOUR_MS
    with stopped_at_second_segment():
        to.run("purge", code=130)


@home
def waiting_for_purge(to: Writer) -> None:
    """Segments that a clean has replaced, an earlier purge's receipt, and a file that nobody refers to."""
    _replaced_segments(to)
    to.now_ms += HOUR_MS
    to.run("purge")
    to.append("users", to.record("a", "5", -5), to.record("f", "1", -5), to.record("a", "6", -5))
    to.now_ms += 8 * DAY_MS
    to.clean("users")
    live = to.segments("users")[-1]
    shutil.copy(live, live.with_name(live.name.replace(".parquet", "-of-a-killed-run.parquet")))


@home
def all_kinds_of_records(to: Writer) -> None:
    """Null and empty keys and values, bytes that are no text, headers of all kinds, both types of timestamps."""
    to.create("events", "cleanup.policy=delete", "retention.ms=-1")
    odd = base64.b64encode(bytes(range(256))).decode()
    headers = [
        {"key": "h", "value": "1"},
        {"key": "h", "value": "2"},
        {"key": "", "value": ""},
        {"key": "none", "value": None},
        {"key": "ü", "value_base64": "/wA="},
    ]
    records = [
        to.record(None, None, -3),
        to.record(None, "", -3),
        to.record("", "empty key", -3),
        to.record("k", None, -3, headers=headers),
        to.record("k", "", -3, headers=[]),
        {"key_base64": odd, "value_base64": odd, "timestamp": 0},
        to.record("große Straße", "漢字 \N{GRINNING FACE}", -3),
        {"key": "no time", "value": "1", "timestamp": -1},
    ]
    to.append("events", *records)
    to.create("stamped", COMPACT, "message.timestamp.type=LogAppendTime", "segment.ms=1000")
    to.append("stamped", *records[2:])
    to.now_ms += HOUR_MS
    to.append("stamped", to.record("k", "again", -9), to.record("", None, -9))


@home
def many_appends(to: Writer) -> None:
    """So many commits that small manifests were put together, before and after a clean."""
    to.create("users", COMPACT, partitions=2)
    for number in range(24):
        to.append("users", to.record(f"{number % 5}", str(number), -30 + number, partition=number % 2))
    to.clean("users-0")
    for number in range(4):
        to.append("users", to.record(f"{number}", None, -2, partition=number % 2))


def _replaced_segments(to: Writer) -> None:
    """A topic whose first three segments one has taken the place of."""
    to.create("users", COMPACT)
    for day in (-30, -29, -28):
        to.append("users", to.record("a", str(day), day), to.record(f"{day}", "1", day))
    to.clean("users")
    to.append("users", to.record("a", "4", -10), to.record("-30", None, -10))


@contextlib.contextmanager
def stopped_at_second_segment() -> Iterator[None]:
    """As if somebody pressed Ctrl-C when the second segment was about to be deleted."""
    unlink, deleted = Path.unlink, list[Path]()

    def stopping(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".parquet":
            deleted.append(path)
        if len(deleted) == 2:
            raise KeyboardInterrupt
        unlink(path, missing_ok)

    with mock.patch.object(Path, "unlink", stopping):
        yield
