"""A log of a broker that was cut off, and has grown again: an unclean leader election.

A single broker elects nobody. So it is killed, the last batches are taken out of its log as if it never had them, and
it is started again: a new leader epoch begins where the log ends now.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient

from examples.kafka_broker import KafkaBroker, kafka_broker
from examples.kafka_jars import kafka_jars
from keptlog.errors import InvalidConfig, StalePlan
from keptlog.home import new_id
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.changes.truncate import Truncation
from tests.broker.broker import Broker
from tests.broker.ingesting import Ingesting
from tests.kafka.jars import or_skip

KEPT = 3
LARGE = b"taken back" * 60_000
"""A batch has room for one of them, and a table for some."""


@pytest.fixture(scope="module")
def process() -> Iterator[KafkaBroker]:
    """A broker of its own, because it is killed."""
    or_skip(kafka_jars)
    with kafka_broker() as started:
        yield started


@pytest.fixture
def there(process: KafkaBroker, tmp_path: Path) -> Ingesting:
    return Ingesting(Broker(process.bootstrap, process.folder, process.bootstrap, process.restart), tmp_path)


def cut_off(process: KafkaBroker, folder: Path, records: int) -> None:
    """Let the log have only its first records, each a batch of its own, and a new leader."""
    process.kill()
    path = folder / "00000000000000000000.log"
    content, position = path.read_bytes(), 0
    for _ in range(records):
        (length,) = struct.unpack_from(">i", content, position + 8)
        position += 12 + length
    path.write_bytes(content[:position])
    for index in (*folder.glob("*.index"), *folder.glob("*.timeindex")):
        index.unlink()
    process.start()


def produced(there: Ingesting, *values: bytes) -> None:
    for value in values:
        there.produce(value)


def read_and_cut_off(there: Ingesting, process: KafkaBroker) -> None:
    """Five records were read, and their log lacks some of them now."""
    there.create()
    produced(there, b"0", b"1", b"2", b"3", b"4")
    there.bring_all()
    cut_off(process, process.folder / f"{there.topic}-0", KEPT)


def test_a_log_that_was_cut_off_and_refilled_is_stopped_until_somebody_chooses(
    there: Ingesting, process: KafkaBroker
) -> None:
    read_and_cut_off(there, process)
    produced(there, *(b"of another leader" for _ in range(4)))

    stopped = there.bring().failed
    assert isinstance(stopped[f"{there.topic}-0"], InvalidConfig)
    why = str(stopped[f"{there.topic}-0"])
    assert "below offset 5 there are other records at its source than were read" in why
    assert f"keptlog truncate {there.topic}-0 {KEPT})" in why
    assert there.values() == [b"0", b"1", b"2", b"3", b"4"]

    assert not there.bring(skip_lost=True).failed
    assert there.values() == [b"0", b"1", b"2", b"3", b"4", b"of another leader", b"of another leader"]
    produced(there, b"next")
    there.bring_all()
    assert there.values()[-1] == b"next"


def test_a_log_that_was_cut_off_is_as_its_source_after_the_truncation_that_is_named(
    there: Ingesting, process: KafkaBroker
) -> None:
    read_and_cut_off(there, process)
    produced(there, *(b"of another leader" for _ in range(4)))
    why = str(there.bring().failed[f"{there.topic}-0"])
    offset = int(why.partition(f"keptlog truncate {there.topic}-0 ")[2].partition(")")[0])

    store, log = there.store, TopicPartition(there.topic, 0)
    Truncation(log, offset, new_id(), new_id).commit(store.committer, store.files)
    there.bring_all()
    assert there.values() == [b"0", b"1", b"2", *[b"of another leader"] * 4]


def test_a_new_leader_that_lacks_nothing_is_gone_on_with(there: Ingesting, process: KafkaBroker) -> None:
    there.create()
    produced(there, b"0", b"1")
    there.bring_all()
    process.restart()
    there.bring_all()  # there is nothing to be read, and it asks whether anything is lacking
    assert there.values() == [b"0", b"1"]
    produced(there, b"2")
    there.bring_all()
    assert there.values() == [b"0", b"1", b"2"]


def test_each_of_many_idle_logs_under_a_new_leader_is_asked_for_without_a_commit(
    there: Ingesting, process: KafkaBroker
) -> None:
    there.create(partitions=3)
    produced(there, b"0")
    there.bring_all()
    before = there.store.load_table(there.topic).metadata_location
    process.restart()

    assert [(each.partition, each.position) for each in there.plan().topics[0].plan.unsure] == [(0, 1)]
    there.bring_all()
    assert there.store.load_table(there.topic).metadata_location == before


def test_one_that_has_grown_up_to_the_position_and_no_further_is_stopped_too(
    there: Ingesting, process: KafkaBroker
) -> None:
    read_and_cut_off(there, process)
    produced(there, b"of another leader", b"of another leader")

    why = str(there.bring().failed[f"{there.topic}-0"])
    assert "below offset 5 there are other records at its source than were read" in why
    assert f"keptlog truncate {there.topic}-0 {KEPT})" in why
    assert not there.bring(skip_lost=True).failed
    there.bring_all()


def test_one_whose_records_go_while_it_is_asked_for_fails_nothing(there: Ingesting, process: KafkaBroker) -> None:
    there.create()
    produced(there, b"0")
    there.bring_all()
    process.restart()
    plans = there.plan()
    produced(there, b"1", b"2")
    admin = AdminClient({"bootstrap.servers": process.bootstrap})
    [done] = admin.delete_records([Position(there.topic, 0, 2)]).values()
    assert done.result(60).low_watermark == 2

    result = there.bring(plans)
    assert (result.failed, there.values()) == ({}, [b"0"])


def test_a_broker_that_is_gone_when_it_is_asked_is_a_warning_and_the_next_ingest_asks_it(
    there: Ingesting, process: KafkaBroker
) -> None:
    read_and_cut_off(there, process)
    produced(there, b"of another leader", b"of another leader")
    plans = there.plan()
    process.kill()
    result = there.bring(plans)
    process.start()
    assert not result.failed
    [warning] = result.warnings
    assert warning.startswith(
        f"{there.topic}-0: it can't be told whether records were cut off there, and the next ingest asks again: no "
    )
    assert "below offset 5 there are other records" in str(there.bring().failed[f"{there.topic}-0"])


def test_one_that_is_cut_off_behind_the_position_while_it_is_read_stops_nothing_for_good(
    there: Ingesting, process: KafkaBroker
) -> None:
    there.create()
    produced(there, b"0", b"1")
    there.bring_all()
    there.produce(*[LARGE] * 40)
    part = there.part(settings={"queued.max.messages.kbytes": "1024", "max.partition.fetch.bytes": "500000"})
    tables = part.read(print)
    next(tables)
    cut_off(process, process.folder / f"{there.topic}-0", KEPT)
    there.produce(*[b"of another leader"] * 45)

    with pytest.raises(StalePlan, match=f"was cut off at offset {KEPT} while it was read; ingest again"):
        list(tables)
    there.bring_all()
    assert there.values() == [b"0", b"1", LARGE, *[b"of another leader"] * 45]
