"""Homes that only format 1.3 knows, by name: with topics that a file has declared."""

from __future__ import annotations

from tests.frozen_homes.writer import HOUR_MS, Writer

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


HOMES_SINCE_1_3 = {"declared": declared}
