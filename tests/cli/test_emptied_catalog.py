"""A configured catalog that is empty above files of topics is not one without topics: nobody says that all is well."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from keptlog.table.catalogs.catalog import open_catalog
from tests.cli.conftest import Run
from tests.cli.overdue import DAY_MS, MINUTE_MS, NOW_MS, tell_of_an_overdue_erasure

EMPTIED = "has no topic and no namespace keptlog, but files of topics lie in file://"


@pytest.fixture
def shared(keptlog: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: Callable[[int], None]) -> Path:
    """The database of a catalog with a topic whose erasure is overdue, of which people were told."""
    database = tmp_path / "shared.db"
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{database}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path}/lake")
    monkeypatch.setenv("KEPTLOG_NOTIFY_LOG", "true")
    tell_of_an_overdue_erasure(keptlog, at, tmp_path)
    return database


@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("verify",),
        ("purge",),
        ("clean",),
        ("retain",),
        ("plan",),
        ("erasure", "list"),
        ("topic", "list"),
        ("doctor", "--no-probes"),
    ],
)
def test_no_command_that_looks_at_all_topics_ends_well(keptlog: Run, shared: Path, command: tuple[str, ...]) -> None:
    shared.rename(shared.with_suffix(".lost"))
    told = keptlog(*command)
    text = " ".join((told.out + told.err).split())
    assert told.code != 0
    assert EMPTIED in text
    assert "/lake/keptlog (users)" in text


def test_doctor_knows_no_file_that_was_cut_off_and_is_to_be_put_back(keptlog: Run, shared: Path) -> None:
    shared.rename(shared.with_suffix(".lost"))
    told = keptlog("doctor", "--no-probes").out
    assert "cause: its uri names another database than is meant, or it was emptied" in told
    assert "next:  do what it says" in told
    assert "cut off" not in told
    assert "copy of the storage" not in told


@pytest.mark.parametrize("words", ["topic describe users", "history users", "receipt list", "receipt show 1"])
def test_no_command_says_of_a_named_topic_or_receipt_that_there_is_none(keptlog: Run, shared: Path, words: str) -> None:
    shared.rename(shared.with_suffix(".lost"))
    told = keptlog(*words.split())
    assert told.code == 1
    assert EMPTIED in told.err
    assert "there is no" not in told.err


def test_nothing_that_people_were_told_of_is_over(keptlog: Run, shared: Path, at: Callable[[int], None]) -> None:
    shared.rename(shared.with_suffix(".lost"))
    for minutes in (1, 40):
        at(NOW_MS + DAY_MS + minutes * MINUTE_MS)
        told = keptlog("notify", "--once")
        assert "is over" not in told.out + told.err
    assert EMPTIED in told.out + told.err
    shared.unlink()
    shared.with_suffix(".lost").rename(shared)
    assert keptlog("erasure", "list").code == 1


def test_who_makes_a_topic_is_told_first_and_goes_on(
    keptlog: Run, shared: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shared.rename(shared.with_suffix(".lost"))
    told = keptlog("topic", "create", "other", "--config", "cleanup.policy=compact")
    assert told.code == 0
    assert EMPTIED in told.err + caplog.text
    listed = keptlog("topic", "list")
    assert (listed.code, "other" in listed.out) == (0, True)
    verified = keptlog("verify")
    assert "/lake/keptlog/users: no topic of this catalog lies in this folder" in " ".join(verified.err.split())


def test_a_catalog_without_a_topic_above_a_warehouse_without_files_is_new(
    keptlog: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path}/new.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path}/lake")
    (tmp_path / "lake" / "keptlog").mkdir(parents=True)
    assert keptlog("status").code == 0
    assert open_catalog(tmp_path).list_namespaces() == []


def test_a_topic_that_could_not_be_made_hides_nothing(
    keptlog: Run, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The namespace is made before the first table, and one without a topic says that its topics were deleted."""
    shared.rename(shared.with_suffix(".lost"))

    def full(*_arguments: object, **_more: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(SqlCatalog, "create_table", full)
        assert keptlog("topic", "create", "orders").code == 1
    told = keptlog("status")
    assert told.code != 0
    assert EMPTIED in " ".join((told.out + told.err).split())
    assert keptlog("topic", "create", "orders").code == 0
    assert keptlog("status").code == 0


def test_a_new_catalog_has_neither_the_topic_that_is_named_nor_receipts(
    keptlog: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path}/new.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path}/lake")
    assert "there is no topic 'users'" in keptlog("topic", "describe", "users").err
    assert keptlog("receipt", "list").out == "no receipts yet\n"
