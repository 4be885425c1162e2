"""Random scripts, the same ones from the same seed.

The numbers are chosen so that things happen: few keys, segments of a few batches, times around the clock, lags and
retentions of the size of the clock's jumps. Each script draws which of the less usual things happen in it (``Traits``),
so that most scripts have few of them, and any two meet in some.

A third of the logs are as a follower gets them from a leader that has cleaned: offsets with gaps between batches,
inside of them and behind their last record, several batches at once, segments that begin before their first record,
and here and there a record without a key.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.kafka.oracle import Operation, Script

LONG_MAX = 2**63 - 1
_START_MS = 1_700_000_000_000
_DAY_MS = 86_400_000
_FAR_OFF_MS = 250_000_000_000_000
"""About the year 9892."""
_LARGEST_BATCH = 6
_LARGE_BYTES = 100_000
_ODD_KEYS = ("", "\0", "\xff\xfe", "k", "K" * 60, "Z\xc3\xbcrich")
_ODD_HEADERS = ([["", None]], [["h", ""], ["h", "\0\xff"], ["h", None]], [["\u540d\u524d", "v"]], [["x" * 60, "v"]])


def random_script(seed: str) -> Script:
    """One script; every operation but appends is observed."""
    return _Writer(Random(seed)).script()


@dataclass(frozen=True)
class Traits:
    """What happens in one script."""

    has_retention: bool
    flips_policy: bool
    """Whether a log may be compacted, retained, both or neither, from one operation to the next."""
    lags_behind: bool
    """Whether the high watermark is not always the log end."""
    moves_positions: bool
    is_replicated: bool
    """Whether batches come with the gaps that a leader's cleaner has left."""
    has_transactions: bool
    is_idempotent: bool
    has_odd_bytes: bool
    has_odd_times: bool
    """No timestamps, far-off ones, and the broker's own."""
    has_large_values: bool
    clock_goes_back: bool
    is_patient: bool
    """Whether days pass, and tombstones stay for as long."""

    @classmethod
    def drawn(cls, random: Random) -> Traits:
        chances = (0.3, 0.25, 0.2, 0.3, 0.35, 0.25, 0.15, 0.25, 0.25, 0.02, 0.15, 0.2)
        return cls(*(random.random() < chance for chance in chances))


class _Writer:
    """Writes one script, keeping in mind what it needs to know to write what makes sense."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.traits = Traits.drawn(random)
        self.now_ms = _START_MS
        self.log_end_offset = 0
        self.high_watermark = 0
        self.keys = [f"k{number}" for number in range(random.choice([2, 4, 8, 25]))]
        if self.traits.has_odd_bytes:
            self.keys[-1:] = _ODD_KEYS
        self.tombstones = random.choice([0.1, 0.3, 0.6])
        self.map_sizes: list[int | None] = random.choice([[None], [None, 1, 2, 3, 5], [1, 2, 4]])
        self.unkeyed = random.choice([0, 0, 0.05, 0.3])
        """Of records where a key may be missing, how many have none."""
        self.open_producers: set[int] = set()
        self.settings: dict[str, str] = {}
        self.appended_ms: list[int] = []
        """Of the latest appends the timestamp of the first record."""

    def script(self) -> Script:
        self.settings = self.config()
        create: Operation = {"op": "create", "config": dict(self.settings), "now_ms": self.now_ms}
        return [create] + [self.operation() for _ in range(self.random.randrange(6, 60))]

    def config(self) -> dict[str, str]:
        choose, traits = self.random.choice, self.traits
        max_lag_ms = choose([LONG_MAX, LONG_MAX, 100, 1_000, 5_000])
        sizes = [150_000, 400_000] if traits.has_large_values else [400, 700, 1_500, 5_000]
        retentions_ms = [0, 50, 500, 3_000, *((60_000, _DAY_MS, 30 * _DAY_MS) if traits.is_patient else ())]
        settings: dict[str, object] = {
            "cleanup.policy": self.policy(),
            "internal.segment.bytes": choose(sizes),
            "min.cleanable.dirty.ratio": choose([0.0, 0.0, 0.3, 0.5, 0.8]),
            "min.compaction.lag.ms": min(choose([0, 0, 50, 500]), max_lag_ms),
            "max.compaction.lag.ms": max_lag_ms,
            "delete.retention.ms": choose(retentions_ms),
            "segment.ms": choose([604_800_000, 300, 2_000]),
        }
        if traits.has_retention:
            settings |= {"retention.ms": choose([-1, 0, 1_000, 4_000]), "retention.bytes": choose([-1, 0, 500, 2_000])}
        if traits.has_odd_times:
            settings |= {"message.timestamp.type": choose(["CreateTime", "CreateTime", "LogAppendTime"])}
        return {name: str(value) for name, value in settings.items()}

    def policy(self) -> str:
        if self.traits.flips_policy:
            return self.random.choice(["compact", "compact", "compact,delete", "delete", ""])
        return self.random.choice(["compact", "compact,delete", "delete"]) if self.traits.has_retention else "compact"

    def operation(self) -> Operation:
        traits = self.traits
        kinds = {"append": 12, "roll": 3, "clock": 4, "clean": 6, "alter": 3 if traits.flips_policy else 1}
        if self.open_producers:
            kinds |= {"end_transaction": 4}
        if traits.has_retention or traits.flips_policy:
            kinds |= {"retain": 3}
        if traits.moves_positions:
            kinds |= {"delete_records": 2, "checkpoint": 1}
        (kind,) = self.random.choices(list(kinds), list(kinds.values()))
        operation: Operation = {"op": kind} | getattr(self, f"_{kind}")()
        return operation if kind == "append" else operation | {"observe": True}

    def _append(self) -> Operation:
        records = self._records()
        if self.traits.is_replicated and self.random.random() < 0.7:
            ahead = {"segment_base": self.log_end_offset + self._gap()} if self.random.random() < 0.1 else {}
            return self._sent(ahead | self._with_gaps(records, ahead.get("segment_base", self.log_end_offset)))
        self.log_end_offset += len(records)
        if "compact" not in self.settings["cleanup.policy"]:
            records = [self._perhaps_unkeyed(record) for record in records]
        return self._sent({"records": records})

    def _records(self) -> list[Operation]:
        """As many as fit into a segment."""
        records: list[Operation] = []
        left_bytes = int(self.settings["internal.segment.bytes"])
        for _ in range(self.random.randint(1, _LARGEST_BATCH)):
            record = self.record()
            left_bytes -= _at_most_bytes(record)
            if records and left_bytes < 0:
                break
            records.append(record)
        self.appended_ms = [*self.appended_ms[-3:], records[0]["timestamp"]]
        return records

    def _sent(self, records: Operation) -> Operation:
        """By whom, and whether all replicas have it at once."""
        if self.traits.has_transactions and self.random.random() < 0.6:
            producer = self.random.randint(1, 3)
            self.open_producers.add(producer)
            records |= {"producer": producer}
        elif self.traits.is_idempotent and self.random.random() < 0.6:
            records |= {"producer": self.random.randint(11, 13), "idempotent": True}
        return records | self._replicated_now()

    def _replicated_now(self) -> Operation:
        if self.traits.lags_behind and self.random.random() < 0.5:
            return {"high_watermark": False}
        self.high_watermark = self.log_end_offset
        return {}

    def _with_gaps(self, records: list[Operation], from_offset: int) -> Operation:
        """Batches with their offsets, gaps before, between and behind their records."""
        base_offset = from_offset + self._gap()
        offset, replicated = base_offset - 1, list[Operation]()
        for record in records:
            placed = self._perhaps_unkeyed(record)
            if replicated and self.random.random() < 0.2:
                last = offset + self._gap()
                batch_base = last + 1 + self._gap()
                placed |= {"previous_last": last, "batch_base": batch_base}
                offset = batch_base - 1
            offset += 1 + self._gap()
            replicated.append(placed | {"offset": offset})
        last_offset = offset + self._gap()
        self.log_end_offset = last_offset + 1
        return {"records": replicated, "base_offset": base_offset, "last_offset": last_offset}

    def _perhaps_unkeyed(self, record: Operation) -> Operation:
        return record | ({"key": None} if self.random.random() < self.unkeyed else {})

    def _gap(self) -> int:
        (gap,) = self.random.choices([0, 1, 2, 9], [6, 2, 1, 1])
        return int(gap)

    def _end_transaction(self) -> Operation:
        producer = self.random.choice(sorted(self.open_producers))
        self.open_producers.remove(producer)
        self.log_end_offset += 1
        return {"producer": producer, "commit": self.random.random() < 0.5} | self._replicated_now()

    def record(self) -> Operation:
        random = self.random
        record: Operation = {"key": random.choice(self.keys), "value": self._value(), "timestamp": self._timestamp()}
        if random.random() < 0.1:
            return record | {"headers": [["h", str(random.randrange(10))]]}
        if self.traits.has_odd_bytes and random.random() < 0.2:
            return record | {"headers": random.choice(_ODD_HEADERS)}
        return record

    def _value(self) -> str | None:
        random = self.random
        if random.random() < self.tombstones:
            return None
        if self.traits.has_large_values and random.random() < 0.2:
            return "v" * _LARGE_BYTES
        if self.traits.has_odd_bytes and random.random() < 0.3:
            return random.choice(["", "\0\xff\x80"])
        return "v" * random.randrange(12)

    def _timestamp(self) -> int:
        random = self.random
        if self.traits.has_odd_times and random.random() < 0.3:
            return random.choice([-1, -1, 0, 1, _FAR_OFF_MS])
        if self.appended_ms and random.random() < 0.05:  # just when a segment is closed, or one ms later
            return max(0, random.choice(self.appended_ms) + int(self.settings["segment.ms"]) + random.randrange(2))
        (spread_ms,) = random.choices([(0, 0), (-30, 0), (-2_000, 0), (0, 2_000)], [4, 4, 2, 1])
        return self.now_ms + random.randint(*spread_ms)

    def _roll(self) -> Operation:
        return {}

    def _clock(self) -> Operation:
        jumps_ms = [1, 50, 51, 100, 200, 300, 500, 1_000, 2_000, 3_000, 10_000]
        if self.traits.is_patient:
            jumps_ms += [60_000, _DAY_MS]
        if self.traits.clock_goes_back:
            jumps_ms += [-1, -500, -3_000]
        self.now_ms += self.random.choice(jumps_ms)
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
        self.settings |= {name: config[name] for name in changed}
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


def _at_most_bytes(record: Operation) -> int:
    """What a record may take in a batch of its own, in which the times of two records may lie far apart."""
    headers = [part for header in record.get("headers", []) for part in header]
    return 61 + 40 + sum(4 * len(text) for text in headers if text) + len(record["key"]) + len(record["value"] or "")
