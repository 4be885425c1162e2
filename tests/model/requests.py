"""The rules of the state machine that erase keys: requests, looks at them, and the search that ends them.

A request is a tombstone of each key behind all that is there; so the specification gets a batch with them.
From then on each state is checked against the specification:

    tombstoned    the bound is behind the tombstone, and behind every record of the key that there was
    gone          no record of the key below its bound is in the specification's log, nor in the stored one
    verified      and in no file below the topic's location
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow.parquet as pq
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from keptlog.home import new_id
from keptlog.log.erasures.erasure import Erasure, ErasureState
from keptlog.log.record import NewRecord, Record
from keptlog.passes.clean import Cleaner
from keptlog.passes.erasures.erase import Eraser
from keptlog.passes.erasures.erasure_request import ErasureRequest, ErasureRow
from keptlog.table.store import LogStore
from tests.logs import ReferenceTwin
from tests.model.dropping import HASHER
from tests.model.histories import DAY_MS, KEYS, PARTITIONS, RECORDS, TOPIC

ERASABLE = KEYS.filter(bool)


@dataclass
class Asked:
    """A request as the specification knows it."""

    keys: set[bytes]
    ends: dict[int, int]
    """Partition to where its log ended, behind the tombstones."""


class Requesting:
    """What the machine has besides."""

    store: LogStore
    cleaner: Cleaner
    expected: dict[int, ReferenceTwin]
    written: dict[int, list[Record]]
    gaps: Iterator[int] | None
    now_ms: int
    asked: dict[str, Asked]
    is_compacted: bool
    counted: dict[str, int]

    @property
    def eraser(self) -> Eraser:
        self.store.seal = lambda _: None
        return Eraser(self.store, self.cleaner.engine, lambda **_: HASHER, new_id)

    @precondition(lambda self: not self.gaps)
    @rule(keys=st.sets(ERASABLE, min_size=1, max_size=2))
    def erase(self, keys: set[bytes]) -> None:
        """Its tombstones are appended at once, in every partition that has the key; the same again does nothing."""
        if not self.is_compacted:
            return
        request = ErasureRequest(f"r{len(self.asked)}", [TOPIC], sorted(keys), deadline_ms=self.now_ms + 99 * DAY_MS)
        for _ in range(2):
            proposal = self.eraser.propose(request, now_ms=self.now_ms)
            result = self.eraser.request(proposal, now_ms=self.now_ms)
            if result.failed:  # a version that no tombstone can beat; a topic that nobody can write to
                note(f"erase {sorted(keys)}: {dict(result.failed)}")
                assert not result.erasures
                return
        bounds = {each.partition: each.end_offset for each in result.erasures[TOPIC].bounds}
        for partition, twin in self.expected.items():
            new = [each for _, each in self.store.read(TOPIC, partition, twin.log.log_end_offset)]
            note(f"erase {sorted(keys)} in {partition}: {new}")
            assert all(each.is_tombstone and each.key in keys for each in new)
            had = {each.key for each in twin.records()} & keys
            assert had <= {each.key for each in new}, "a key has records here, and got no tombstone"
            assert len({each.key for each in new}) == len(new)
            twin.append([_as_new(each) for each in new], self.now_ms)
            if new:
                self.written[partition] += twin.log.batches[-1]
                assert bounds[partition] == twin.log.log_end_offset
        ends = {number: bounds.get(number, twin.log.log_end_offset) for number, twin in self.expected.items()}
        self.asked[request.id] = Asked(keys, ends)
        self.counted["asked"] += 1

    @rule(records=RECORDS, keys=st.sets(ERASABLE, min_size=1, max_size=2))
    def erase_and_go_on(self, records: list[NewRecord], keys: set[bytes]) -> None:
        """All that a schedule does, until most requests have ended."""
        self.append(records, DAY_MS + 1)  # type: ignore[attr-defined]
        if self.gaps:
            return
        self.erase(keys)
        for _ in range(3):
            self.clock(3 * DAY_MS)  # type: ignore[attr-defined]
            self.clean(PARTITIONS)  # type: ignore[attr-defined]
            self.is_as_specified()  # type: ignore[attr-defined]
            self.expire()  # type: ignore[attr-defined]
            self.purge(sweeps=True)  # type: ignore[attr-defined]
        self.verify_erasures()

    @rule()
    def verify_erasures(self) -> None:
        found = self.eraser.verify(now_ms=self.now_ms)
        assert not found.failed
        note(f"verify {[(row.id, str(row.erasure.state), row.blocked) for row in found.rows]}")
        for row in found.rows:
            if not row.erasure.is_open and row.id in self.asked:
                self._is_nowhere(self.asked[row.id])
                self.counted["verified"] += 1

    @invariant()
    def is_as_erased(self) -> None:
        """Whatever state a request is said to be in, the specification agrees."""
        if not self.asked:
            return
        found = self.eraser.list(now_ms=self.now_ms)
        assert not found.failed
        rows: dict[str, ErasureRow] = {row.id: row for row in found.rows}
        for request, asked in self.asked.items():
            if request in rows:  # one that was verified is forgotten after a while
                self._agrees(rows[request].erasure, asked)

    def _agrees(self, erasure: Erasure, asked: Asked) -> None:
        if erasure.has_reached(ErasureState.COMPACTED):
            for partition, log in self._logs().items():
                values = [each for each in _below(log, partition, asked) if not each.is_tombstone]
                assert not values, f"{erasure.id} is {erasure.state}, and the log has {values}"
        if erasure.gone is not None:
            for partition, log in self._logs().items():
                left = _below(log, partition, asked)
                assert not left, f"of {erasure.id} the records are said to be gone, and the log has {left}"

    def _logs(self) -> dict[int, list[Record]]:
        """The specification's; that the stored ones are the same is another invariant."""
        return {partition: twin.records() for partition, twin in self.expected.items()}

    def _is_nowhere(self, asked: Asked) -> None:
        location = self.store.describe_topic(TOPIC).location
        for file in self.store.files.list(location):
            if not file.path.endswith(".parquet") or "/erasures/" in file.path:
                continue
            with self.store.files.open_input(file.path) as source:
                rows = pq.read_table(source, columns=["partition", "offset", "key"]).to_pylist()
            left = [row for row in rows if row["key"] in asked.keys and row["offset"] < asked.ends[row["partition"]]]
            assert not left, f"{file.path} has {left}"


def _below(log: list[Record], partition: int, asked: Asked) -> list[Record]:
    return [each for each in log if each.key in asked.keys and each.offset < asked.ends[partition]]


def _as_new(record: Record) -> NewRecord:
    return NewRecord(record.key, record.value, record.timestamp_ms, headers=record.headers)
