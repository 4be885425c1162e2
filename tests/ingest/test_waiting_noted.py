"""What an ingest can't read before an open transaction ends is one note for all that is asked for, and no warning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from keptlog.home import wall_clock_ms
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.plans import IngestPlans
from keptlog.ingest.source import Survey
from keptlog.log.source import StoredSource
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.ingest.memory import MemorySource


@dataclass(frozen=True)
class BusySource(MemorySource):
    """Each log has an open transaction, of five offsets so far; as with a producer that writes in them all the time."""

    def survey(self, stored: Mapping[str, StoredSource | None]) -> Survey:
        seen = super().survey(stored)
        busy = [
            replace(
                each,
                there=replace(
                    each.there,
                    logs=tuple(replace(log, high_watermark=log.end_offset + 5) for log in each.there.logs),
                ),
            )
            for each in seen.topics
        ]
        return replace(seen, topics=tuple(busy))


def plans_of(store: LogStore, ends: Mapping[str, list[int]]) -> IngestPlans:
    return Ingest(store, in_process_engine(store.files), wall_clock_ms).plan(BusySource(ends))


def test_it_is_one_line_however_many_there_are(store: LogStore) -> None:
    plans = plans_of(store, {"orders": [1, 2], "users": [3] * 300})
    assert plans.notes == [
        "a transaction is open in orders-0, orders-1, users-0 and 299 more: 1510 offsets there can't be read before it "
        "ends"
    ]
    assert not plans.warnings


def test_only_what_is_asked_for_is_in_it(store: LogStore) -> None:
    plans = plans_of(store, {"orders": [1, 2], "users": [3, 4]})
    [note] = plans.only([TopicPartition("users", 1)]).notes
    assert note == "a transaction is open in users-1: 5 offsets there can't be read before it ends"


def test_where_none_is_open_there_is_none(store: LogStore) -> None:
    source = MemorySource({"users": [3]})
    assert Ingest(store, in_process_engine(store.files), wall_clock_ms).plan(source).notes == []
