"""What lies before a record or batch that can't be taken in lands: who goes on without that one loses nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.kafka_client.settings import ClientSettings
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.ingest.directories import records_of
from tests.ingest.test_broken_batch import BATCHES, produce
from tests.mock_broker import MockBroker, mock_broker

NOW_MS = 1_700_000_000_000
NO_TABLE_HOLDS_MS = 2**62


def _produce_unfit(broker: MockBroker) -> None:
    broker.produce("users", ("bad", "1"), timestamp_ms=NO_TABLE_HOLDS_MS)


def _produce_broken(broker: MockBroker) -> None:
    produce(broker, "users", BATCHES["a flipped bit"])


@pytest.mark.parametrize(
    ("produce_bad", "why"),
    [(_produce_unfit, "the record at offset 2 has the timestamp"), (_produce_broken, "the batch at offset 2 can't")],
    ids=["a record that no table can hold", "a damaged batch"],
)
def test_it_lands_and_the_next_ingest_stops_at_the_same_place(
    store: LogStore, produce_bad: Callable[[MockBroker], None], why: str
) -> None:
    with mock_broker() as broker:
        broker.produce("users", ("a", "1"), ("b", "2"))
        produce_bad(broker)
        broker.produce("users", ("c", "3"))
        ingest = Ingest(store, in_process_engine(store.files), lambda: NOW_MS)
        source = KafkaBrokers(ClientSettings.load({}, {}), {"users": "users"}, broker.bootstrap)
        for run_id, landed in (("run-1", 2), ("run-2", 0)):
            done = ingest.carry_out(ingest.plan(source), run_id)
            assert sum(intake.records for intake in done.committed) == landed
            assert why in str(done.failed["users-0"])
            assert [record.key for record in records_of(store, "users")] == [b"a", b"b"]
            assert store.logs("users")[0].log_end_offset == 2
