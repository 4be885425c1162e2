"""Which logs a broker's log directory holds, and what the broker noted about them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig, LogCorrupt, StorageUnavailable
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_log.directory import LogDirectory, log_directories


def make(path: Path, *names: str) -> None:
    for name in names:
        (path / name).mkdir()


def test_logs_are_listed_by_topic_and_number_with_the_internal_ones(tmp_path: Path) -> None:
    make(tmp_path, "server.schema-table-10", "server.schema-table-2", "__consumer_offsets-0")
    names = [(log.topic_partition.topic, log.topic_partition.partition) for log in log_directories(tmp_path)]
    assert names == [("__consumer_offsets", 0), ("server.schema-table", 2), ("server.schema-table", 10)]


def test_folders_that_a_broker_does_not_serve_are_no_logs(tmp_path: Path) -> None:
    identifier = "0f1e2d3c4b5a49788796a5b4c3d2e1f0"
    make(tmp_path, "a-0", f"a-1.{identifier}-delete", f"a-2.{identifier}-future", f"a-3.{identifier}-stray", "other")
    (tmp_path / "file-0").touch()
    assert [log.folder.name for log in log_directories(tmp_path)] == ["a-0"]


def test_what_the_broker_noted_is_told(tmp_path: Path) -> None:
    make(tmp_path, "a-0", "a-1")
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n2\na 0 7\ngone 3 9\n")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\na 1 5\n")
    high_watermarks = tmp_path / "replication-offset-checkpoint"
    high_watermarks.write_text("0\n1\na 1 6\n")
    os.utime(high_watermarks, ns=(0, 8_000_000))
    (tmp_path / "a-0" / "partition.metadata").write_text("version: 0\ntopic_id: mzQ5Yk1aRE6TQkbDBJ2yLA")
    assert log_directories(tmp_path) == [
        LogDirectory(TopicPartition("a", 0), tmp_path / "a-0", "mzQ5Yk1aRE6TQkbDBJ2yLA", None, 7),
        LogDirectory(TopicPartition("a", 1), tmp_path / "a-1", None, 5, None, 6, 8),
    ]


@pytest.mark.parametrize("text", ["", "0\n0", "0\n0\n"])
def test_a_checkpoint_without_entries_notes_nothing(tmp_path: Path, text: str) -> None:
    make(tmp_path, "a-0")
    (tmp_path / "log-start-offset-checkpoint").write_text(text)
    assert log_directories(tmp_path)[0].log_start_offset is None


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"1\n0\n", "version 0"),
        (b"0\n", "number of its entries"),
        (b"0\n2\na 0 7\n", "number of its entries"),
        (b"0\n1\na 0\n", "line 3"),
        (b"0\n1\na 0 x\n", "line 3"),
        (b"\xff\xfe", "not text"),
    ],
)
def test_a_checkpoint_that_cannot_be_read_is_an_error(tmp_path: Path, content: bytes, part: str) -> None:
    make(tmp_path, "a-0")
    (tmp_path / "cleaner-offset-checkpoint").write_bytes(content)
    with pytest.raises(LogCorrupt, match=f"cleaner-offset-checkpoint.*{part}.*restore the file"):
        log_directories(tmp_path)


@pytest.mark.parametrize("content", [b"topic_id", b"\xff: \xfe", b"", b"version: 0\n", b"version: 0\ntopic_id: "])
def test_a_topic_id_that_cannot_be_read_is_an_error_of_its_log_alone(tmp_path: Path, content: bytes) -> None:
    make(tmp_path, "a-0", "a-1")
    (tmp_path / "a-0" / "partition.metadata").write_bytes(content)
    broken, whole = log_directories(tmp_path)
    assert isinstance(broken.unreadable, LogCorrupt)
    assert str(broken.unreadable).startswith(str(tmp_path / "a-0" / "partition.metadata"))
    assert whole.unreadable is None


@pytest.mark.parametrize("content", [bytes(20), b"0\n1\n4\n", b"0\n2\n4 0\n", b"\xff\xfe"])
def test_leader_epochs_that_cannot_be_read_are_an_error_of_their_log_alone(tmp_path: Path, content: bytes) -> None:
    make(tmp_path, "a-0", "a-1")
    (tmp_path / "a-0" / "leader-epoch-checkpoint").write_bytes(content)
    broken, whole = log_directories(tmp_path)
    assert isinstance(broken.unreadable, LogCorrupt)
    assert str(broken.unreadable).startswith(str(tmp_path / "a-0" / "leader-epoch-checkpoint"))
    assert whole.unreadable is None


def test_what_this_user_may_not_read_is_named(tmp_path: Path) -> None:
    make(tmp_path, "a-0", "a-0/partition.metadata")
    [log] = log_directories(tmp_path)
    assert isinstance(log.unreadable, StorageUnavailable)
    assert "partition.metadata can't be read: Is a directory" in str(log.unreadable)
    make(tmp_path, "cleaner-offset-checkpoint")
    with pytest.raises(StorageUnavailable, match=r"cleaner-offset-checkpoint can't be read: Is a directory"):
        log_directories(tmp_path)


def test_a_directory_without_logs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"name one of a broker's log\.dirs"):
        log_directories(tmp_path)
    make(tmp_path, "a-0")
    with pytest.raises(InvalidConfig, match="name the one above it"):
        log_directories(tmp_path / "a-0")
    with pytest.raises(InvalidConfig, match="not a directory"):
        log_directories(tmp_path / "missing")
