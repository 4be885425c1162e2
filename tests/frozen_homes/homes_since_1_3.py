"""Homes that only format 1.3 knows, by name: topics that a file has declared, a clean that stands between two legs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from pyiceberg.catalog.sql import SqlCatalog

from tests.frozen_homes.writer import COMPACT, DAY_MS, HOUR_MS, Writer

_FILE = """\
topics:
  users:
    description: |
      Who they are.
      "Über: alles" #1
    owners: [team:crm, ada@example.com]
    partitions: %d
    config: {cleanup.policy: compact, delete.retention.ms: %d}
  ingested: {source: {topic: there, bootstrap: "broker:9092"}, config: {cleanup.policy: compact}}
  empty: {source: {bootstrap: "broker:9092"}, description: Nothing was ingested yet.}
"""


def declared(to: Writer) -> None:
    """A topic that got more partitions, one whose source was declared before it was ingested, one that waits for it."""
    file = to.inbox / "topics.yaml"
    file.write_text(_FILE % (2, HOUR_MS))
    to.run("topic", "apply", str(file))
    to.append("users", *[to.record(f"user-{n}", str(n), -30, partition=n % 2) for n in range(6)])
    to.append("users", to.record("user-1", None, -29, partition=1))
    rows = [
        {"key": key, "value": "1", "timestamp": to.day_0_ms, "at": at, "in": 1} for at, key in ((40, "a"), (42, "b"))
    ]
    to.append_with_offsets("ingested", rows, "--source-topic", "there")
    to.clean("users")
    to.now_ms += HOUR_MS
    file.write_text(_FILE % (3, 2 * HOUR_MS))
    to.run("topic", "apply", str(file))
    to.append("users", to.record("user-1", "again", -28, partition=2))


def between_two_legs(to: Writer) -> None:
    """Cleans that were stopped when their second leg was about to land: by offset, and by timestamp with watermarks."""
    to.home.mkdir()
    (to.home / "server.properties").write_text("keptlog.cleaner.commit.max.bytes=1\n")
    versions = ("compaction.strategy=timestamp", f"keptlog.watermark.retention.ms={90 * DAY_MS}")
    for topic, configs in (("users", ()), ("versions", versions)):
        to.create(topic, COMPACT, *configs)
        to.append(topic, *[to.record(f"{n}", "first", -30 + n / 10) for n in range(6)])
        to.clean(topic)
        to.append(topic, to.record("0", "second", -25), to.record("1", None, -25), to.record("6", "first", -25))
        to.append(topic, to.record("2", "late", -31), to.record("0", "third", -20), to.record("6", None, -20))
        with stopped_at_second_commit():
            to.run("clean", "--quiet", topic, code=130)
        to.now_ms += HOUR_MS
    to.append("users", to.record("3", "after", -1))


@contextlib.contextmanager
def stopped_at_second_commit() -> Iterator[None]:
    """As if somebody pressed Ctrl-C when the second commit was about to be sent."""
    commit, sent = SqlCatalog.commit_table, list[object]()

    def stopping(catalog: SqlCatalog, *args: Any) -> Any:
        sent.append(args)
        if len(sent) == 2:
            raise KeyboardInterrupt
        return commit(catalog, *args)

    with mock.patch.object(SqlCatalog, "commit_table", stopping):
        yield


HOMES_SINCE_1_3 = {"declared": declared, "between-two-legs": between_two_legs}
