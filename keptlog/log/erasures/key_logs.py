"""In which logs of a topic the keys of a request may be, before anybody has looked for them.

    logs         users-0   users-1   users-2 (never had a record)
    a key        may be in either, for who appends chooses the partition; if it is in neither, its tombstone goes to
                 where the default partitioner puts it
    a key hash   may be in either; if it is in neither, it gets no tombstone

So a log without a segment needs a clean only for a key that is put there. What no log has any more is in retired files
for a while, and nothing is done before these are gone. A file of watermarks may have a key that is in no segment.
How long the fastest of a key's logs takes is the earliest; how long the slowest of all takes is what can be relied on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from keptlog.log.segment import Log


@dataclass(frozen=True, slots=True)
class KeyLogs:
    """Logs that may have some keys, and which of them one key may be in."""

    logs: tuple[Log, ...]
    choices: frozenset[frozenset[int]]
    """Of each key the partitions that it may be in; keys of the same partitions are one."""
    retired_until_ms: int = 0
    """Where no log has a record: until when files have those that it had."""
    remembering: tuple[Log, ...] = ()
    """All that have a file of watermarks: a key that was deleted may be in it, whatever segments there are."""
    stored_ms: Mapping[int, int] = field(default_factory=dict)
    """By partition, when the last watermark of its file ends; without those whose file can't be read."""
    unread: Mapping[int, str] = field(default_factory=dict)
    """By partition, why its file can't be read, so that nobody knows when the last watermark ends."""

    def earliest(self, done_ms: Callable[[Log], int], now_ms: int) -> int:
        """When all keys can be done, each in the fastest of its logs."""
        times = {log.topic_partition.partition: done_ms(log) for log in self.logs}
        fastest = (min(times[number] for number in each) for each in self.choices)
        return max([now_ms, self.retired_until_ms, *fastest])

    def latest(self, done_ms: Callable[[Log], int], now_ms: int) -> int:
        """When all keys can be done, wherever they are."""
        return max([now_ms, self.retired_until_ms, *map(done_ms, self.logs)])


def all_of(logs: Iterable[Log]) -> KeyLogs:
    """Where each log has to be done, whatever is in it."""
    logs = tuple(logs)
    choices = frozenset(frozenset([log.topic_partition.partition]) for log in logs)
    return KeyLogs(logs, choices, remembering=_remembering(logs))


def key_logs(logs: Sequence[Log], put_in: Iterable[int], *, has_hashes: bool) -> KeyLogs:
    """The logs of keys that the default partitioner puts into these partitions; besides them keys known by hashes."""
    homes, filled = set(put_in), {log.topic_partition.partition for log in logs if log.segments}
    choices = {frozenset(filled | {home}) for home in homes}
    if has_hashes and filled:
        choices.add(frozenset(filled))
    may_have = tuple(log for log in logs if log.topic_partition.partition in filled | homes)
    return KeyLogs(may_have, frozenset(choices), remembering=_remembering(logs))


def _remembering(logs: Iterable[Log]) -> tuple[Log, ...]:
    return tuple(log for log in logs if log.watermarks_path)
