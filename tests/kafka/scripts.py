"""Random scripts, the same ones from the same seed, and how a script that shows a difference is made small.

The numbers are chosen so that things happen: few keys, segments of a few batches, times around the clock, lags and
retentions of the size of the clock's jumps.

A third of the logs are as a follower gets them from a leader that has cleaned: offsets with gaps between batches,
inside of them and behind their last record, and here and there a record without a key, which nobody could append.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

from tests.kafka.oracle import Operation, Script

LONG_MAX = 2**63 - 1
Part = TypeVar("Part")
_START_MS = 1_700_000_000_000
_LARGEST_BATCH = 6


def random_script(seed: str) -> Script:
    """One script; every operation but appends is observed."""
    return _Writer(Random(seed)).script()


class _Writer:
    """Writes one script, keeping in mind what it needs to know to write what makes sense."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now_ms = _START_MS
        self.log_end_offset = 0
        self.high_watermark = 0
        self.keys = [f"k{number}" for number in range(random.choice([2, 4, 8, 25]))]
        self.tombstones = random.choice([0.1, 0.3, 0.6])
        self.has_retention = random.random() < 0.3
        self.lags_behind = random.random() < 0.2
        """Whether the high watermark is not always the log end."""
        self.moves_positions = random.random() < 0.3
        self.map_sizes: list[int | None] = random.choice([[None], [None, 1, 2, 3, 5], [1, 2, 4]])

        self.is_replicated = random.random() < 0.35
        """Whether batches come with the gaps that a leader's cleaner has left."""
        self.unkeyed = random.choice([0, 0, 0.05, 0.3])
        """Of records that are replicated, how many have no key."""
        self.open_producers: set[int] = set()
        self.has_transactions = random.random() < 0.2
        if self.has_transactions:
            # Kafka errs when a pass ended inside of a segment (test_transactions.py), and forgets what was aborted
            # below the log start (such records are no reader's business).
            self.map_sizes = [None]
            self.has_retention = self.lags_behind = self.moves_positions = False

    def script(self) -> Script:
        create: Operation = {"op": "create", "config": self.config(), "now_ms": self.now_ms}
        return [create] + [self.operation() for _ in range(self.random.randrange(6, 60))]

    def config(self) -> dict[str, str]:
        choose = self.random.choice
        max_lag_ms = choose([LONG_MAX, LONG_MAX, 100, 1_000, 5_000])
        settings: dict[str, object] = {
            "cleanup.policy": choose(["compact", "compact,delete", "delete"]) if self.has_retention else "compact",
            "internal.segment.bytes": choose([400, 700, 1_500, 5_000]),
            # How long Kafka keeps its markers, and so how large its clean section is, does not concern keptlog.
            "min.cleanable.dirty.ratio": 0.0 if self.has_transactions else choose([0.0, 0.0, 0.3, 0.5, 0.8]),
            "min.compaction.lag.ms": min(choose([0, 0, 50, 500]), max_lag_ms),
            "max.compaction.lag.ms": max_lag_ms,
            "delete.retention.ms": choose([0, 50, 500, 3_000]),
            "segment.ms": choose([604_800_000, 300, 2_000]),
        }
        if self.has_retention:
            settings |= {"retention.ms": choose([-1, 0, 1_000, 4_000]), "retention.bytes": choose([-1, 0, 500, 2_000])}
        return {name: str(value) for name, value in settings.items()}

    def operation(self) -> Operation:
        kinds = {"append": 12, "roll": 3, "clock": 4, "clean": 6, "alter": 1}
        if self.open_producers:
            kinds |= {"end_transaction": 4}
        if self.has_retention:
            kinds |= {"retain": 3}
        if self.moves_positions:
            kinds |= {"delete_records": 2, "checkpoint": 1}
        (kind,) = self.random.choices(list(kinds), list(kinds.values()))
        operation: Operation = {"op": kind} | getattr(self, f"_{kind}")()
        return operation if kind == "append" else operation | {"observe": True}

    def _append(self) -> Operation:
        count = self.random.randint(1, _LARGEST_BATCH)
        records: Operation = {"records": [self.record() for _ in range(count)]}
        if self.is_replicated and self.random.random() < 0.7:
            records = self._with_gaps(records["records"])
            self.log_end_offset = records["last_offset"] + 1
        else:
            self.log_end_offset += count
        if self.lags_behind and self.random.random() < 0.5:
            return records | {"high_watermark": False}
        self.high_watermark = self.log_end_offset
        if self.has_transactions and self.random.random() < 0.6:
            producer = self.random.randint(1, 3)
            self.open_producers.add(producer)
            return records | {"producer": producer}
        return records

    def _with_gaps(self, records: list[Operation]) -> Operation:
        """A batch with its offsets, gaps before, between and behind its records."""
        base_offset = self.log_end_offset + self._gap()
        offset, replicated = base_offset - 1, []
        for record in records:
            offset += 1 + self._gap()
            key = None if self.random.random() < self.unkeyed else record["key"]
            replicated.append(record | {"offset": offset, "key": key})
        return {"records": replicated, "base_offset": base_offset, "last_offset": offset + self._gap()}

    def _gap(self) -> int:
        (gap,) = self.random.choices([0, 1, 2, 9], [6, 2, 1, 1])
        return int(gap)

    def _end_transaction(self) -> Operation:
        producer = self.random.choice(sorted(self.open_producers))
        self.open_producers.remove(producer)
        self.log_end_offset += 1
        self.high_watermark = self.log_end_offset
        return {"producer": producer, "commit": self.random.random() < 0.5}

    def record(self) -> Operation:
        random = self.random
        (spread_ms,) = random.choices([(0, 0), (-30, 0), (-2_000, 0), (0, 2_000)], [4, 4, 2, 1])
        record: Operation = {
            "key": random.choice(self.keys),
            "value": None if random.random() < self.tombstones else "v" * random.randrange(12),
            "timestamp": self.now_ms + random.randint(*spread_ms),
        }
        return record | ({"headers": [["h", str(random.randrange(10))]]} if random.random() < 0.1 else {})

    def _roll(self) -> Operation:
        return {}

    def _clock(self) -> Operation:
        self.now_ms += self.random.choice([1, 50, 51, 100, 200, 300, 500, 1_000, 2_000, 3_000, 10_000])
        return {"now_ms": self.now_ms}

    def _clean(self) -> Operation:
        max_keys = self.random.choice(self.map_sizes)
        return {} if max_keys is None else {"max_keys": max_keys}

    def _alter(self) -> Operation:
        config = self.config()
        changed = self.random.sample(sorted(config), self.random.randint(1, 2))
        lags = {"min.compaction.lag.ms", "max.compaction.lag.ms"}
        if lags & set(changed):  # one bounds the other
            changed = sorted(lags | set(changed))
        return {"config": {name: config[name] for name in changed}}

    def _retain(self) -> Operation:
        return {}

    def _delete_records(self) -> Operation:
        return {"offset": self.random.randint(0, self.high_watermark)}

    def _checkpoint(self) -> Operation:
        """Often back to the beginning, so that what was cleaned, and has gaps, is cleaned again."""
        return {
            "offset": self.random.choice([0, 0, self.random.randint(0, self.log_end_offset), self.log_end_offset + 3])
        }


def shrunk(script: Script, still_differs: Callable[[Script], bool]) -> Script:
    """A smallest part of the script that still differs: no operation, record or setting of it can be left out."""
    while True:
        smaller = _shrunk_once(script[0], script[1:], still_differs)
        if smaller == script:
            return script
        script = smaller


def _shrunk_once(create: Operation, operations: Script, still_differs: Callable[[Script], bool]) -> Script:
    operations = _smallest(operations, lambda rest: still_differs([create, *rest]))
    for index, operation in enumerate(operations):
        if operation["op"] == "append":
            operations[index] = operation | {"records": _fewest_records(create, operations, index, still_differs)}
    settings = _smallest(
        list(create["config"].items()), lambda rest: still_differs([create | {"config": dict(rest)}, *operations])
    )
    return [create | {"config": dict(settings)}, *operations]


def _fewest_records(
    create: Operation, operations: list[Operation], index: int, still_differs: Callable[[Script], bool]
) -> list[Operation]:
    def differs_with(records: list[Operation]) -> bool:
        append = operations[index] | {"records": records}
        return bool(records) and still_differs([create, *operations[:index], append, *operations[index + 1 :]])

    return _smallest(operations[index]["records"], differs_with)


def _smallest(parts: list[Part], still_differs: Callable[[list[Part]], bool]) -> list[Part]:
    """Delta debugging: leave out runs of parts, long ones first, for as long as that is possible."""
    length = len(parts)
    while length:
        start = 0
        while start < len(parts):
            rest = parts[:start] + parts[start + length :]
            if still_differs(rest):
                parts = rest
            else:
                start += length
        length //= 2
    return list(parts)


def pasteable(script: Script) -> str:
    """The script as Python, one operation a line."""
    return "[\n" + "".join(f"    {operation!r},\n" for operation in script) + "]"
