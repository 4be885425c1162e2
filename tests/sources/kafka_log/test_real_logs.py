"""Logs that a broker wrote, and logs in old formats that Kafka's own classes wrote, hold what those say they hold.

What is expected lies beside each log (``tests/data``): of the broker's logs what a consumer saw that reads committed
records only, of the old ones what Kafka's classes read.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.sources.kafka_log.batches import Batch, batches
from keptlog.sources.kafka_log.directory import LogDirectory, log_directories
from keptlog.sources.kafka_log.segments import segments_to_read
from tests.data.expected import read_expected
from tests.sources.kafka_log.encoder import read_log

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"
FOREIGN = Path(os.environ.get("KEPTLOG_TEST_LOG_DIR", ROOT.parent / "shared" / "data" / "kafka-log-dir"))
"""A directory from somewhere else; there may be none."""
LOGS = {
    str(log.topic_partition): log for name in ("broker", "legacy") for log in log_directories(DATA / f"{name}_logs")
}


def all_batches(log: LogDirectory) -> list[Batch]:
    found = [each for segment in segments_to_read(log.folder) for each in batches(segment)]
    good = [each for each in found if isinstance(each, Batch)]
    assert good == found
    return good


@pytest.mark.parametrize("name", LOGS)
def test_a_log_holds_what_kafka_reads_from_it(name: str) -> None:
    log = LOGS[name]
    read = read_log(log.folder, log.log_start_offset)
    # A consumer is not told of horizons.
    records = [replace(record, delete_horizon_ms=None) for record in read.records]
    assert records == read_expected(log.folder.with_name(f"{name}.jsonl"))
    assert read.scan.torn is None


def test_the_logs_here_hold_every_format_and_codec() -> None:
    found = {(batch.magic, batch.codec) for log in LOGS.values() for batch in all_batches(log)}
    before_zstd = ("none", "gzip", "snappy", "lz4")
    assert found == {(magic, codec) for magic in (0, 1, 2) for codec in before_zstd} | {(2, "zstd")}


@pytest.mark.parametrize(("name", "is_framed"), [("codec.snappy-0", False), ("codec.snappy-framed-0", True)])
def test_the_logs_here_hold_both_framings_of_snappy(name: str, is_framed: bool) -> None:
    assert {bytes(batch.payload[:7]) == b"\x82SNAPPY" for batch in all_batches(LOGS[name])} == {is_framed}


def test_a_log_ends_for_a_reader_where_its_open_transaction_begins() -> None:
    read = read_log(LOGS["transactions-0"].folder)
    assert read.offsets[-1] < read.scan.last_stable_offset
    # Two records of the open one, three of nobody's transaction, an aborted one and its marker.
    assert read.scan.log_end_offset - read.scan.last_stable_offset == 2 + 3 + 2


def test_what_is_aborted_is_what_the_broker_noted_in_its_transaction_indexes() -> None:
    """Its entries: version, producer id, first offset, offset of the marker, last stable offset."""
    folder = LOGS["transactions-0"].folder
    index = b"".join(path.read_bytes() for path in sorted(folder.glob("*.txnindex")))
    entries = [index[start : start + 34] for start in range(0, len(index), 34)]
    noted = [tuple(int.from_bytes(entry[2 + at : 10 + at], "big") for at in (0, 8, 16)) for entry in entries]
    found = [(each.producer_id, each.first_offset, each.marker_offset) for each in read_log(folder).scan.aborted]
    assert len(noted) == 4
    assert found == noted


def test_tombstones_that_a_broker_has_cleaned_have_their_horizon() -> None:
    log = LOGS["compacted-0"]
    read = read_log(log.folder)
    tombstones = [record for record in read.records if record.is_tombstone]
    assert log.first_dirty_offset == read.scan.log_end_offset - 1
    assert tombstones
    for record in read.records:
        assert (record.delete_horizon_ms is not None) == record.is_tombstone, record


@pytest.mark.skipif(not FOREIGN.is_dir(), reason=f"there is no {FOREIGN}; KEPTLOG_TEST_LOG_DIR may name another")
def test_a_directory_from_elsewhere_is_read_to_its_end() -> None:
    for log in log_directories(FOREIGN):
        read = read_log(log.folder, log.log_start_offset)
        promised = sum(batch.record_count for batch in all_batches(log) if batch.magic == 2 and not batch.is_control)
        assert len(read.records) == promised, log
        assert read.scan.last_stable_offset == read.scan.log_end_offset
