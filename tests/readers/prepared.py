"""The topic that all readers are tried on, as it stands at several moments of one history.

Three partitions, two of which share their keys, with all that readers could take differently: tombstones, a key that
comes back, records without a key, empty values and an empty key, bytes that are no text, headers with null values and
twice the same name, a timestamp of -1, and a log start that lies inside a segment.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from keptlog.log.record import NewRecord
from keptlog.log.steps import Expire
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.clean import Cleaner
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.logs import carry_out, open_store

TOPIC = "users"
DAY_MS = 24 * 3_600_000
NOW_MS = 1_700_000_000_000
FIRST_CLEAN_MS, SECOND_CLEAN_MS, EXPIRY_MS = NOW_MS + 10 * DAY_MS, NOW_MS + 30 * DAY_MS, NOW_MS + 50 * DAY_MS
LONG_AFTER_MS = 4 * NOW_MS
"""Later than the wall clock at which the tests write, which purges compare with."""

ODD_HEADERS = (("trace", b"1"), ("none", None), ("trace", b"\xff\x00"), ("", b""))


def _first() -> list[NewRecord]:
    records = [
        NewRecord(b"ada", b"1", NOW_MS, headers=ODD_HEADERS),
        NewRecord(b"bob", b"", NOW_MS + 1),
        NewRecord(b"cyd", b"1", -1),
        NewRecord(None, b"no key", NOW_MS + 2),
        NewRecord(b"", b"the empty key", NOW_MS + 3),
        NewRecord(b"ada", b"2", NOW_MS + 4, headers=(("trace", None),)),
        NewRecord(b"\xff\x00", b"\x00\xfe", NOW_MS + 5),
        NewRecord(b"cyd", None, NOW_MS + 6, headers=(("why", b"asked for"),)),
        NewRecord(b"only early", b"1", NOW_MS + 7),
        NewRecord(b"late", b"1", NOW_MS + 8),
    ]
    return [replace(each, partition=number) for number in range(2) for each in records]


def _second(now_ms: int) -> list[NewRecord]:
    records = [
        NewRecord(b"bob", None, now_ms),
        NewRecord(b"cyd", b"back", now_ms + 1),
        NewRecord(b"late", b"2", now_ms - 20 * DAY_MS),
        NewRecord(b"eve", b"1", now_ms + 2),
        NewRecord(b"eve", b"2", now_ms + 2),
    ]
    return [replace(each, partition=number) for number in range(2) for each in records]


def _append_unkeyed_too(store: LogStore) -> None:
    """Only a topic that is not compacted takes records without a key; those that it took before, it keeps."""
    store.create_topic(TOPIC, 3, {"cleanup.policy": "delete", "delete.retention.ms": str(15 * DAY_MS)})
    store.append(TOPIC, _first(), "append-1", NOW_MS)
    store.alter_topic(TOPIC, {"cleanup.policy": "compact"})


def _append_again(store: LogStore) -> None:
    store.append(TOPIC, _second(FIRST_CLEAN_MS), "append-2", FIRST_CLEAN_MS)
    store.append(TOPIC, [NewRecord(b"ada", None, FIRST_CLEAN_MS, 1)], "append-3", FIRST_CLEAN_MS)


def _delete_before(offset: int) -> Callable[[LogStore], None]:
    """Of partition 1, up to the middle of its first segment, which stays."""

    def delete(store: LogStore) -> None:
        first = store.logs(TOPIC)[1].segments[0]
        assert first.base_offset < offset <= first.last_offset
        assert not store.delete_records(TopicPartition(TOPIC, 1), offset, f"delete-{offset}").segments

    return delete


def _clean(now_ms: int) -> Callable[[LogStore], None]:
    def clean(store: LogStore) -> None:
        cleaner = Cleaner(store, in_process_engine(store.files))
        done = carry_out(cleaner, cleaner.plan(now_ms=now_ms, requested=True), f"clean-{now_ms}")
        assert done.committed
        assert not done.failed

    return clean


def _expire(store: LogStore) -> None:
    cleaner = Cleaner(store, in_process_engine(store.files))
    done = carry_out(cleaner, cleaner.plan(now_ms=EXPIRY_MS), "expire", [Expire])
    assert done.committed
    assert not done.failed


def _purge(store: LogStore) -> None:
    assert store.purge(TOPIC, LONG_AFTER_MS).deleted_files


HISTORY: dict[str, Callable[[LogStore], None]] = {
    "as appended": _append_unkeyed_too,
    "deleted up to the middle of a segment": _delete_before(6),
    "cleaned": _clean(FIRST_CLEAN_MS),
    "appended again": _append_again,
    "deleted up to the middle of a clean segment": _delete_before(9),
    "cleaned twice": _clean(SECOND_CLEAN_MS),
    "tombstones expired": _expire,
    "purged": _purge,
}

MOMENTS = [name for name in HISTORY if name not in {"appended again", "tombstones expired"}]
"""Those that differ for readers from the ones after them."""


def prepare(home: Path, moment: str) -> LogStore:
    """A home with the topic as it is at a moment of the history."""
    store = open_store(home)
    play(store, moment)
    return store


def play(store: LogStore, moment: str) -> None:
    """The history of the topic up to a moment."""
    moments: Sequence[str] = list(HISTORY)
    for name in itertools.islice(moments, moments.index(moment) + 1):
        HISTORY[name](store)
