"""A topic that nobody could look at is told as that: nothing of it is broken, and its last clean may have landed."""

from __future__ import annotations

import errno
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from keptlog.errors import KeptlogError, LogCorrupt, StorageUnavailable, UnsupportedFormat
from keptlog.passes.clean import Cleaner
from keptlog.table.io import files
from keptlog.table.io.local_files import open_local
from keptlog.table.store import LogStore
from tests.orchestration.conftest import DAY_MS, World

CLEANED = dg.AssetCheckKey(dg.AssetKey(["users", "clean"]), "cleaned")


def told(world: World) -> tuple[bool, str, object]:
    """Whether the check's last evaluation passed, how serious that is, and how many are broken."""
    (record,) = world.instance.event_log_storage.get_asset_check_execution_history(CLEANED, limit=1)
    assert record.event
    assert record.event.dagster_event
    found = record.event.dagster_event.asset_check_evaluation_data
    return found.passed, found.severity.value, found.metadata["broken"].value


def refuse(monkeypatch: pytest.MonkeyPatch, why: KeptlogError) -> None:
    """Let the topic ``users`` alone not be read from now on."""

    def unless_refused(name: str) -> None:
        really: Any = getattr(LogStore, name)

        def asked(store: LogStore, topic: str, *given: object, **named: object) -> object:
            if topic == "users":
                raise why
            return really(store, topic, *given, **named)

        monkeypatch.setattr(LogStore, name, asked)

    for name in ("logs", "observe"):
        unless_refused(name)


@pytest.mark.parametrize(
    ("why", "expected"),
    [
        (StorageUnavailable("users: 403, it says no"), (False, "WARN", 0)),
        (UnsupportedFormat("users was written by a newer keptlog"), (False, "WARN", 0)),
        (LogCorrupt("users: its properties contradict themselves"), (False, "ERROR", 1)),
    ],
)
def test_a_topic_that_verify_could_not_read_is_broken_only_if_it_is_corrupt(
    world: World, monkeypatch: pytest.MonkeyPatch, why: KeptlogError, expected: tuple[bool, str, int]
) -> None:
    world.topic("users")
    world.topic("orders")
    refuse(monkeypatch, why)
    assert not world.run_job("verify", dg.RunRequest()).success
    assert told(world) == expected


def test_a_damage_that_was_mended_is_not_told_again_once_the_topic_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.topic("users")
    with monkeypatch.context() as damaged:
        refuse(damaged, LogCorrupt("users: its properties contradict themselves"))
        world.run_job("verify", dg.RunRequest())
    for _ in range(2):
        world.now_ms += DAY_MS
        assert world.run_job("verify", dg.RunRequest()).success
    refuse(monkeypatch, StorageUnavailable("users: 403, it says no"))
    for _ in range(2):
        world.now_ms += DAY_MS
        world.run_job("verify", dg.RunRequest())
        assert told(world) == (False, "WARN", 0)


def test_a_clean_that_landed_is_not_said_to_have_failed_where_its_topic_cannot_be_read_just_afterwards(
    world: World, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    for topic in ("users", "orders"):
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))
    committed = Cleaner.commit

    def commit(*given: Any, **named: Any) -> Any:
        landed = committed(*given, **named)
        refuse(monkeypatch, StorageUnavailable("users: 403, it says no"))
        return landed

    monkeypatch.setattr(Cleaner, "commit", commit)
    assert not world.clean().success
    assert told(world) == (False, "WARN", 0)


def test_a_file_that_nobody_could_read_is_told_once_and_not_by_each_check_of_its_log(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.topic("users")
    world.append("users", ("a", "1"))
    segment = world.segment_file("users")

    def refused(local: str, mode: str) -> object:
        if local == str(segment):
            raise PermissionError(errno.EACCES, "Permission denied", local)
        return open_local(local, mode)

    monkeypatch.setattr(files, "open_local", refused)
    failure = world.run_job("verify", dg.RunRequest()).failure_data_for_node("verify_logs")
    assert failure
    assert failure.user_failure_data
    told = failure.user_failure_data.description or ""
    assert told.count("Permission denied") == 1, told
