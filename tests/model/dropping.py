"""The rule of the state machine that drops records: all of some keys, of a log that has a source."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from keptlog.home import new_id
from keptlog.log.record import Record
from keptlog.passes.clean import Cleaner
from keptlog.passes.drop import Dropper
from keptlog.storage.key_hash import KeyHasher
from keptlog.table.store import LogStore
from tests.logs import ReferenceTwin
from tests.model.histories import KEYS, PARTITIONS, TOPIC

HASHER = KeyHasher(b"secret")


class Dropping:
    """What the machine has besides."""

    store: LogStore
    cleaner: Cleaner
    expected: dict[int, ReferenceTwin]
    written: dict[int, list[Record]]
    seen: dict[int, list[Record]]
    changes: dict[int, int]
    gaps: Iterator[int] | None
    now_ms: int

    @precondition(lambda self: self.gaps)
    @rule(partition=st.sampled_from(PARTITIONS), keys=st.sets(KEYS, min_size=1), up_to=st.integers(0, 30))
    def drop(self, partition: int, keys: set[bytes], up_to: int) -> None:
        """Of some keys every record goes, below the log end or below any offset; done again it changes nothing."""
        if not self.store.logs(TOPIC)[partition].is_ingested:
            return
        twin = self.expected[partition]
        end_offsets = {key: min(twin.log.first_dirty_offset + up_to, twin.log.log_end_offset) for key in keys}
        note(f"drop the records of {sorted(keys)} in {partition} below {set(end_offsets.values())}")
        hashed = {HASHER.hash(key): offset for key, offset in end_offsets.items()}
        dropper = Dropper(self.store, self.cleaner.engine, HASHER)
        (result,) = dropper.drop(self.store.describe_topic(TOPIC), {partition: hashed}, new_id(), now_ms=self.now_ms)
        assert bool(result.dropped) is twin.log.drop(end_offsets)
        for records in (self.written, self.seen):
            records[partition] = [
                record
                for record in records[partition]
                if record.key is None or record.offset >= end_offsets.get(record.key, 0)
            ]
        self.changes[partition] += not result.is_empty
        (again,) = dropper.drop(self.store.describe_topic(TOPIC), {partition: hashed}, new_id(), now_ms=self.now_ms)
        assert again.is_empty
