"""``keptlog doctor`` and disks: each log needs room where it lies, and a bucket is no disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.log.config import TopicConfig
from keptlog.log.segment import Log, Segment
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.doctor.home_patient import Patient
from tests.cli.conftest import Run

_DISKS = (Path("/dev/shm"), Path("/dev"))  # noqa: S108  # nothing is written there
"""Of which one is another than that of the tests."""
_CREATE = ("topic", "create", "users", "--config", "cleanup.policy=compact")


def told_of_disks(keptlog: Run, monkeypatch: pytest.MonkeyPatch, path: str) -> list[dict[str, str]]:
    """The problems that doctor has with disks if a log of a pebibyte has this file."""
    segment = Segment(path, 0, 0, 0, 0, 1, size_bytes=2**50)
    log = Log(TopicPartition("users", 0), TopicConfig(), (segment,), 0, 1)
    monkeypatch.setattr(Patient, "logs", property(lambda _patient: [log]))
    [disk] = [each for each in keptlog("doctor", "--json").json["checks"] if each["name"] == "disk"]
    assert disk["diagnosis"] == ("wrong" if disk["problems"] else "fine")
    problems: list[dict[str, str]] = disk["problems"]
    return problems


def test_a_log_in_a_bucket_needs_no_room_here(keptlog: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    keptlog(*_CREATE)
    assert told_of_disks(keptlog, monkeypatch, "s3://lake/users/data/0.parquet") == []


def test_a_log_on_the_homes_disk_needs_room_there(keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keptlog(*_CREATE)
    [full] = told_of_disks(keptlog, monkeypatch, f"file://{home}/0.parquet")
    assert full["subject"] == str(home)
    assert "a clean of the largest log may write 1.0 PiB" in full["what"]


def test_a_log_on_another_disk_needs_room_there(keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keptlog(*_CREATE)
    other = next(each for each in _DISKS if each.is_dir() and each.stat().st_dev != home.stat().st_dev)
    [full] = told_of_disks(keptlog, monkeypatch, f"{other}/0.parquet")
    assert full["what"].startswith(f"the disk of {other} has room for ")


def test_a_log_whose_folder_is_gone_needs_no_room(keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keptlog(*_CREATE)
    assert told_of_disks(keptlog, monkeypatch, f"{home}/gone/0.parquet") == []


def test_a_home_that_opens_without_its_folder_needs_room_where_the_folder_would_be_made(
    keptlog: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lake").mkdir()
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path / 'lake'}")
    assert not home.exists()
    told = keptlog("doctor", "--no-probes", "--json").json
    [disk] = [each for each in told["checks"] if each["name"] == "disk"]
    assert (disk["diagnosis"], disk["not_looked_at"]) == ("fine", [])
    assert told["diagnosis"] == "fine"
