"""Log directories become topics: all that Kafka would read is in them once, and copies of other days are told apart."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from keptlog.errors import InvalidConfig
from keptlog.home import wall_clock_ms
from keptlog.ingest import kafka_logs as module
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.kafka_logs import KafkaLogs
from keptlog.log.reference import latest_values
from keptlog.log.source import SourceIdentity
from keptlog.passes.clean import Cleaner
from keptlog.passes.verify import verify_log
from keptlog.progress import silent
from keptlog.sources.kafka_log.directory import log_directories
from keptlog.spark.jobs import spark_engine
from keptlog.table.store import LogStore
from tests.data.expected import read_expected
from tests.in_process import in_process_engine
from tests.ingest.directories import (
    COMPACT,
    FIRST_MS,
    records_of,
    run_import,
    some_batch,
    some_records,
    write_high_watermarks,
    write_id,
    write_log,
    write_log_starts,
)
from tests.logs import carry_out
from tests.sources.kafka_log.encoder import BatchOptions, batch, marker, read_log

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
FOREIGN = Path(os.environ.get("KEPTLOG_TEST_LOG_DIR", ROOT.parent / "shared" / "data" / "kafka-log-dir"))
NOW_MS = FIRST_MS + 10**12


@pytest.fixture(params=["whole", "cut"])
def cuts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs as one part each, and cut at every segment."""
    if request.param == "cut":
        monkeypatch.setattr(module, "_LEAST_PART_BYTES", 1)
        monkeypatch.setattr(module, "_MOST_PART_BYTES", 1)


@pytest.mark.usefixtures("cuts")
@pytest.mark.parametrize("directory", ["broker_logs", "legacy_logs"])
def test_a_topic_holds_what_kafka_reads_from_its_log(store: LogStore, directory: str) -> None:
    imported = run_import(store, DATA / directory, "1")
    assert not imported.failed
    for log in log_directories(DATA / directory):
        topic = log.topic_partition.topic
        assert records_of(store, topic) == read_expected(log.folder.with_name(f"{log.folder.name}.jsonl")), topic
        assert store.logs(topic)[0].log_start_offset == read_log(log.folder, log.log_start_offset).scan.log_start_offset
        assert store.source_of(topic).source == SourceIdentity(topic, log.topic_id)


@pytest.mark.skipif(not FOREIGN.is_dir(), reason=f"there is no {FOREIGN}; KEPTLOG_TEST_LOG_DIR may name another")
def test_a_directory_from_elsewhere_arrives_whole(store: LogStore) -> None:
    imported = run_import(store, FOREIGN, "1")
    assert not imported.failed
    for log in log_directories(FOREIGN):
        name = log.topic_partition
        expected = [
            replace(each, delete_horizon_ms=None) for each in read_log(log.folder, log.log_start_offset).records
        ]
        assert records_of(store, name.topic, name.partition) == expected, name


def test_on_spark_nothing_is_different(store: LogStore, spark: SparkSession) -> None:
    logs = [log for log in log_directories(DATA / "broker_logs") if not log.topic_partition.topic.startswith("codec")]
    ingest = Ingest(store, spark_engine(lambda: spark, store.files), wall_clock_ms)
    by_topic = {log.topic_partition.topic: [log] for log in logs}
    source = KafkaLogs(by_topic, COMPACT, partial(ingest.engine.start_jobs, "1", silent))
    imported = ingest.carry_out(ingest.plan(source), "1")
    assert not imported.failed
    for log in logs:
        expected = read_expected(log.folder.with_name(f"{log.folder.name}.jsonl"))
        assert records_of(store, log.topic_partition.topic) == expected


def test_a_second_import_finds_nothing_new_and_one_of_a_newer_copy_goes_on(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", [some_batch(0), some_batch(10)])
    run_import(store, there, "1")
    assert run_import(store, there, "2").committed == ()
    write_log(there, "t-0", [some_batch(0), some_batch(10), some_batch(20, 5)])
    write_log(there, "t-0", [some_batch(25)], base_offset=25)
    write_log(there, "t-1", [some_batch(0, 3)])
    [more, new] = run_import(store, there, "3").committed
    assert (more.range.from_offset, more.records, new.records) == (20, 15, 3)
    assert records_of(store, "t") == some_records(0, 35)
    assert records_of(store, "t", 1) == some_records(0, 3)


@pytest.mark.parametrize("reconcile", [False, True])
def test_a_copy_goes_on_inside_of_a_batch_that_a_broker_has_cleaned_together(
    store: LogStore, there: Path, reconcile: bool
) -> None:
    write_log(there, "t-0", [some_batch(0, 12)])
    run_import(store, there, "1")
    write_log(there, "t-0", [some_batch(5, 20)])
    assert not run_import(store, there, "2", reconcile=reconcile).failed
    assert records_of(store, "t") == some_records(0, 25)


def test_an_older_copy_stops_with_both_ends_and_the_choice(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", [some_batch(0), some_batch(10)])
    run_import(store, there, "1")
    write_log(there, "t-0", [some_batch(0)])
    result = run_import(store, there, "2")
    assert "ends at offset 20 here and at 10" in str(result.failed["t-0"])
    assert records_of(store, "t") == some_records(0, 20)


def test_what_retention_took_meanwhile_stops_unless_it_may_be_lost(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", [some_batch(0)])
    run_import(store, there, "1")
    (there / "t-0" / f"{0:020d}.log").unlink()
    write_log(there, "t-0", [some_batch(30)], base_offset=30)
    assert "10 to 29" in str(run_import(store, there, "2").failed["t-0"])
    assert not run_import(store, there, "3", skip_lost=True).failed
    assert records_of(store, "t") == some_records(0, 10) + some_records(30, 10)


def test_an_open_transaction_below_the_log_start_holds_back_its_topic_partition_alone(
    store: LogStore, there: Path
) -> None:
    of_producer = BatchOptions(producer_id=7, is_transactional=True)
    write_log(there, "t-0", [some_batch(0, 5), some_batch(5, 3, of_producer), some_batch(8, 8)])
    write_log(there, "u-0", [some_batch(0)])
    write_log_starts(there, t=10)
    result = run_import(store, there, "1")
    assert not result.failed
    [warning] = result.warnings
    assert warning.startswith("t-0: a transaction is open from offset 10 on; offsets up to 15 stay out")
    assert (records_of(store, "t"), records_of(store, "u")) == ([], some_records(0, 10))
    write_log(there, "t-0", [some_batch(5, 3, of_producer), some_batch(8, 8), marker(16, 7, 1)])
    assert not run_import(store, there, "2").failed
    assert records_of(store, "t") == some_records(10, 6)


def test_partitions_of_one_topic_come_from_several_brokers_directories(store: LogStore, tmp_path: Path) -> None:
    for broker, partitions in (("1", (0, 2)), ("2", (1, 2))):
        for partition in partitions:
            write_log(tmp_path / broker, f"t-{partition}", [some_batch(0, 4 + partition)])
            write_id(tmp_path / broker, f"t-{partition}", "AAAAAAAAAAAAAAAAAAAAAA")
    assert not run_import(store, tmp_path / "1", "1").failed
    assert store.source_of("t").positions == (4, None, 6)
    assert not run_import(store, tmp_path / "2", "2").failed
    assert store.source_of("t").positions == (4, 5, 6)


def test_a_topic_of_the_same_name_with_another_id_is_another_topic(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", [some_batch(0)])
    write_id(there, "t-0", "AAAAAAAAAAAAAAAAAAAAAA")
    run_import(store, there, "1")
    write_id(there, "t-0", "BBBBBBBBBBBBBBBBBBBBBB")
    write_log(there, "t-0", [some_batch(0), some_batch(10)])
    assert "deleted and created again" in str(run_import(store, there, "2").failed["t-0"])
    assert records_of(store, "t") == some_records(0, 10)


def test_partitions_with_different_ids_are_not_one_topic(store: LogStore, there: Path) -> None:
    for name, topic_id in (("t-0", "A" * 22), ("t-1", "B" * 22), ("u-0", "C" * 22)):
        write_log(there, name, [some_batch(0)])
        write_id(there, name, topic_id)
    result = run_import(store, there, "1")
    assert isinstance(result.failed["t"], InvalidConfig)
    assert "t-0 has AAA" in str(result.failed["t"])
    assert "t-1 has BBB" in str(result.failed["t"])
    assert store.topics() == ["u"]


def test_a_torn_end_is_told_and_comes_in_when_it_is_whole(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", [some_batch(0), some_batch(10)[:-7]])
    imported = run_import(store, there, "1")
    assert not imported.failed
    assert ["t-0: it ends at 10" in line for line in imported.warnings] == [True]
    write_log(there, "t-0", [some_batch(0), some_batch(10)])
    assert run_import(store, there, "2").warnings == ()
    assert records_of(store, "t") == some_records(0, 20)


def test_an_open_transaction_is_told_and_comes_in_when_it_has_ended(store: LogStore, there: Path) -> None:
    open_batch = some_batch(10, options=BatchOptions(producer_id=7, is_transactional=True))
    write_log(there, "t-0", [some_batch(0), open_batch, some_batch(20)])
    [warning] = run_import(store, there, "1").warnings
    assert "a transaction is open from offset 10 on; offsets up to 29" in warning
    assert records_of(store, "t") == some_records(0, 10)
    write_log(there, "t-0", [some_batch(0), open_batch, some_batch(20), marker(30, 7, 1)])
    assert run_import(store, there, "2").warnings == ()
    assert records_of(store, "t") == some_records(0, 30)
    assert store.source_of("t").positions == (31,)


def test_what_a_broker_has_cleaned_is_dirty_here_and_keeps_every_guarantee(store: LogStore) -> None:
    run_import(store, DATA / "broker_logs", "1")
    before = latest_values(records_of(store, "compacted"))
    cleaner = Cleaner(store, in_process_engine(store.files))
    for _ in range(2):
        [log] = store.logs("compacted")
        assert [check.name for check in verify_log(store, log, NOW_MS) if not check.passed] == []
        plan = cleaner.plan(["compacted"], now_ms=NOW_MS, requested=True)
        assert not carry_out(cleaner, plan, f"clean-{log.checkpoint}").failed
    assert store.logs("compacted")[0].checkpoint == 62
    assert latest_values(records_of(store, "compacted")) == before


def test_records_without_a_key_come_in_and_are_told_where_a_clean_would_remove_them(
    store: LogStore, there: Path
) -> None:
    keyless = [replace(record, key=None) for record in some_records(0, 4)]
    write_log(there, "t-0", [batch(keyless), some_batch(4, 2)])
    [warning] = run_import(store, there, "1").warnings
    assert warning.startswith("t-0: 4 of 6 records without a key")
    assert records_of(store, "t") == keyless + some_records(4, 2)
    store.alter_topic("t", {"cleanup.policy": "delete"})
    write_log(there, "t-1", [batch(keyless)])
    assert run_import(store, there, "2").warnings == ()


def test_nothing_in_the_directory_is_touched(store: LogStore, there: Path) -> None:
    shutil.copytree(DATA / "broker_logs", there)
    before = {path: path.read_bytes() for path in there.rglob("*") if path.is_file()}
    run_import(store, there, "1")
    assert {path: path.read_bytes() for path in there.rglob("*") if path.is_file()} == before


def test_what_lies_above_the_high_watermark_stays_out_until_a_newer_copy_has_it_below(
    store: LogStore, there: Path
) -> None:
    """Other replicas lack it, consumers do not see it, and another leader may put other records in its place."""
    write_log(there, "t-0", [some_batch(0), some_batch(10), some_batch(20)])
    write_high_watermarks(there, t=20)
    first = run_import(store, there, "1")
    assert not first.failed
    (warning,) = first.warnings
    assert warning.startswith("t-0: offsets 20 to 29 lie above its high watermark")
    assert records_of(store, "t") == some_records(0, 20)
    write_high_watermarks(there, t=30)
    assert not run_import(store, there, "2").warnings
    assert records_of(store, "t") == some_records(0, 30)


def test_a_log_whose_end_was_replaced_above_its_high_watermark_is_read_as_it_is_now(
    store: LogStore, there: Path
) -> None:
    write_log(there, "t-0", [some_batch(0), some_batch(10)])
    write_high_watermarks(there, t=10)
    run_import(store, there, "1")
    others = [replace(record, value=b"of another leader") for record in some_records(10, 25)]
    write_log(there, "t-0", [some_batch(0), batch(others)])
    write_high_watermarks(there, t=35)
    assert not run_import(store, there, "2").failed
    assert records_of(store, "t") == some_records(0, 10) + others


def test_what_lies_above_the_high_watermark_is_taken_if_that_is_asked_for_and_is_not_taken_back_then(
    store: LogStore, there: Path
) -> None:
    write_log(there, "t-0", [some_batch(0), some_batch(10)])
    write_high_watermarks(there, t=10)
    assert not run_import(store, there, "1", above_high_watermark=True).warnings
    assert records_of(store, "t") == some_records(0, 20)
    again = run_import(store, there, "2")
    assert (again.failed, again.warnings) == ({}, ())
    assert store.logs("t")[0].log_end_offset == 20


def test_a_batch_that_reaches_beyond_the_high_watermark_is_not_there_yet(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", [some_batch(0), some_batch(10)])
    write_high_watermarks(there, t=15)
    run_import(store, there, "1")
    assert records_of(store, "t") == some_records(0, 10)
    assert store.logs("t")[0].log_end_offset == 10


@pytest.mark.parametrize("noted", [None, 0])
def test_a_log_of_which_no_high_watermark_is_noted_is_read_whole_and_one_at_0_not_at_all(
    store: LogStore, there: Path, noted: int | None
) -> None:
    write_log(there, "t-0", [some_batch(0)])
    write_high_watermarks(there, **({} if noted is None else {"t": noted}))
    assert not run_import(store, there, "1").failed
    assert len(records_of(store, "t")) == (10 if noted is None else 0)


def test_a_transaction_whose_end_lies_above_the_high_watermark_is_open(store: LogStore, there: Path) -> None:
    of_producer = BatchOptions(producer_id=7, is_transactional=True)
    batches = [some_batch(0), some_batch(10, options=of_producer), marker(20, 7, 1), some_batch(21)]
    write_log(there, "t-0", batches)
    write_high_watermarks(there, t=20)
    warnings = run_import(store, there, "1").warnings
    assert records_of(store, "t") == some_records(0, 10)
    assert [line.split(":")[1].split(",")[0] for line in warnings] == [
        " offsets 20 to 30 lie above its high watermark",
        " a transaction is open from offset 10 on; offsets up to 19 stay out until a copy of the directory has its end",
    ]
    write_high_watermarks(there, t=31)
    run_import(store, there, "2")
    assert [each.offset for each in records_of(store, "t")] == [*range(20), *range(21, 31)]


def test_a_log_that_was_cut_off_below_the_position_and_grew_past_it_is_stopped(store: LogStore, there: Path) -> None:
    """An unclean leader election: from offset 10 on other records are there than were imported."""
    path = write_log(there, "t-0", [some_batch(0), some_batch(10)])
    epochs = path.with_name("leader-epoch-checkpoint")
    epochs.write_text("0\n1\n4 0\n")
    assert not run_import(store, there, "1").failed
    others = [replace(record, value=b"of another leader") for record in some_records(10, 25)]
    write_log(there, "t-0", [some_batch(0), batch(others)])
    epochs.write_text("0\n2\n4 0\n6 10\n")
    stopped = run_import(store, there, "2").failed
    assert str(stopped["t-0"]).startswith("below offset 20 there are other records at its source than were read")
    assert records_of(store, "t") == some_records(0, 20)

    assert not run_import(store, there, "3", skip_lost=True).failed
    assert records_of(store, "t") == some_records(0, 20) + others[10:]
    assert not run_import(store, there, "4").failed


def test_leaders_that_took_over_without_a_loss_stop_nothing(store: LogStore, there: Path) -> None:
    path = write_log(there, "t-0", [some_batch(0), some_batch(10)])
    epochs = path.with_name("leader-epoch-checkpoint")
    epochs.write_text("0\n1\n4 0\n")
    run_import(store, there, "1")
    write_log(there, "t-0", [some_batch(0), some_batch(10), some_batch(20)])
    epochs.write_text("0\n3\n4 0\n5 20\n9 25\n")
    assert not run_import(store, there, "2").failed
    assert records_of(store, "t") == some_records(0, 30)
